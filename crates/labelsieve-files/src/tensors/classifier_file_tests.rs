//! Saved classifiers, good and bad.

use super::*;

fn classifier() -> SavedClassifier {
    SavedClassifier {
        classes: vec!["owl".into(), "cat".into()],
        dim: 3,
        weight: vec![1.0, 0.0, 0.0, 0.0, 0.6, 0.8],
        scale: 10.0,
        backbone: Some("resnet10".into()),
        network: Some("resnet10 0123456789abcdef".into()),
        n_base: 1,
        settings: serde_json::json!({"epochs": 100, "rate": 0.1}),
        discriminant: None,
        confidence: None,
    }
}

fn discriminant(basis: Option<Vec<f32>>) -> SavedClassifier {
    let rank = basis.as_ref().map_or(3, |basis| basis.len() / 3);
    let covariance = (0..rank * rank).map(|i| if i % (rank + 1) == 0 { 0.5 } else { 0.1 }).collect();
    SavedClassifier {
        n_base: 0,
        discriminant: Some(SavedDiscriminant { covariance, basis, shrinkage: 0.03, n_pooled: 2 }),
        confidence: Some(SavedConfidence { temperature: 0.7, distances: vec![1.0, 2.5] }),
        ..classifier()
    }
}

#[test]
fn a_saved_discriminant_is_loaded_over_all_columns_or_the_span_of_few_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    for basis in [None, Some(vec![1.0, 0.0, 0.0, 0.0, 0.0, 1.0]), Some(Vec::new())] {
        let saved = discriminant(basis);
        saved.save(&path).unwrap();
        assert_eq!(SavedClassifier::load(&path).unwrap(), saved);
        let whole = std::fs::read(&path).unwrap();
        for at in [9, whole.len() / 2, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            check_load(&damaged, "");
        }
    }
}

#[test]
fn an_invalid_discriminant_is_not_saved() {
    let good = discriminant(None);
    let with = |change: fn(&mut SavedClassifier)| {
        let mut bad = good.clone();
        change(&mut bad);
        bad
    };
    for (bad, message) in [
        (
            with(|bad| bad.discriminant.as_mut().unwrap().covariance.truncate(8)),
            "covariance: expected as many",
        ),
        (
            with(|bad| bad.discriminant.as_mut().unwrap().covariance[4] = f32::NAN),
            "finite numbers, found NaN",
        ),
        (
            with(|bad| bad.discriminant.as_mut().unwrap().shrinkage = 0.0),
            "shrinkage: expected a number above 0",
        ),
        (
            with(|bad| bad.discriminant.as_mut().unwrap().n_pooled = 0),
            "n_pooled: expected at least 1, found 0",
        ),
        (
            with(|bad| bad.confidence.as_mut().unwrap().temperature = f32::NAN),
            "temperature: expected a positive",
        ),
        (
            with(|bad| bad.confidence.as_mut().unwrap().distances.reverse()),
            "left_out_distances: expected finite",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let error = bad.save(folder.path().join("c.safetensors")).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

fn check_load(bytes: &[u8], message: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    std::fs::write(&path, bytes).unwrap();
    let error = SavedClassifier::load(&path).unwrap_err().to_string();
    assert!(error.contains("c.safetensors`") && error.contains(message), "{error}");
}

fn saved() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    classifier().save(&path).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn a_saved_classifier_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    classifier().save(&path).unwrap();
    assert_eq!(SavedClassifier::load(&path).unwrap(), classifier());
    assert_eq!(saved(), std::fs::read(&path).unwrap(), "the same classifier gives the same bytes");
}

#[test]
fn an_invalid_classifier_is_neither_saved_nor_left_half_written() {
    let good = classifier();
    for (bad, message) in [
        (
            SavedClassifier { dim: 4, ..good.clone() },
            "weight: expected 2 classes × 4 features, at least one of each, found 6 numbers",
        ),
        (
            SavedClassifier { n_base: 3, ..good.clone() },
            "n_base: expected at most 2, the number of classes, found 3",
        ),
        (SavedClassifier { scale: f32::NAN, ..good.clone() }, "scale: expected a finite number, found NaN"),
        (
            SavedClassifier { weight: vec![0.0, 0.0, 0.0, 0.0, f32::INFINITY, 0.0], ..good.clone() },
            "weight, row 1, column 1: expected a finite number, found inf",
        ),
        (
            SavedClassifier { classes: vec!["owl".into(), "owl".into()], ..good.clone() },
            "classes: expected distinct names, found `owl` twice",
        ),
        (SavedClassifier { classes: vec![], weight: vec![], ..good.clone() }, "at least one of each"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let error = bad.save(folder.path().join("c.safetensors")).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    let error = good.save("/no/such/folder/c.safetensors").unwrap_err().to_string();
    assert!(error.starts_with("cannot write `/no/such/folder/c.safetensors`"), "{error}");
}

#[test]
fn a_cut_file_is_refused_at_every_length() {
    let whole = saved();
    for length in 0..whole.len() {
        check_load(&whole[..length], "");
    }
    check_load(
        &whole[..5],
        "safetensors header: expected a length and that many bytes, found a file of 5 bytes",
    );
    check_load(&whole[..whole.len() - 1], "expected data within 27 bytes, found");
}

#[test]
fn lengths_that_overflow_when_summed_are_refused() {
    // Eight tensors, each as long as a length in bits can say, end at 2^64 - 8: one header length away from overflow.
    const LONGEST: u64 = (1 << 61) - 1;
    let entry = |i: u64| {
        let start = i * LONGEST;
        let end = (i + 1) * LONGEST;
        format!(r#""t{i}":{{"dtype":"U8","shape":[{LONGEST}],"data_offsets":[{start},{end}]}}"#)
    };
    let header = format!("{{{}}}", (0..8).map(entry).collect::<Vec<_>>().join(","));
    check_load(&with_header(&header, &[0; 16]), "expected data within 16 bytes");
    check_load(&[[0xff; 8], [0; 8]].concat(), "expected a length and that many bytes");
}

#[test]
fn tensors_of_another_kind_are_named() {
    let plain = r#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    check_load(
        &with_header(plain, &[0; 4]),
        "expected metadata `labelsieve` of a saved classifier, found none",
    );
    let text = String::from_utf8_lossy(&saved()).into_owned();
    let header = text[8..text.rfind("}}").unwrap() + 2].replace("checksum", "nothing");
    let data = [0; 28];
    check_load(
        &with_header(&header.replace("[2,3]", "[3,2]"), &data),
        "tensor `weight`: expected [2, 3] of F32",
    );
    check_load(&with_header(&header.replace("F32", "I32"), &data), "found [2, 3] of I32");
    check_load(&with_header(&header.replace("\"scale\"", "\"scald\""), &data), "`scale` not found");
    check_load(
        &with_header(&header.replace(r#"\"n_base\":1"#, r#"\"n_base\":-1"#), &data),
        "description of a classifier",
    );
}

#[test]
fn a_flipped_bit_anywhere_is_noticed_and_older_files_without_a_checksum_are_read() {
    let whole = saved();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        // A bit in the word `checksum` itself leaves a file like an older one, with everything else intact.
        if let Ok(read) = SavedClassifier::load(&path) {
            assert_eq!(read, classifier(), "byte {at}");
        }
    }
    let text = String::from_utf8_lossy(&whole).into_owned();
    let end = text.rfind("}}").unwrap() + 2;
    let old = text[8..end].replace("checksum", "nothing");
    let data = &whole[whole.len() - 28..];
    std::fs::write(&path, with_header(&old, data)).unwrap();
    assert_eq!(SavedClassifier::load(&path).unwrap(), classifier());
}
