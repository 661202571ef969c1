//! Arbitrary bytes, and valid files with bytes flipped or cut off: every reader answers with an error or with data,
//! never with a panic.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use labelsieve_files::{
    ExampleTable, Journal, NpyHeader, Npz, NpzWriter, RelevanceRow, RelevanceWriter, Result, SavedClassifier,
    TableColumns, read_relevance, write_npy_f32,
};
use labelsieve_matching::{CandidateRow, CandidateWriter, read_candidates};
use proptest::prelude::*;

/// A valid file of every format, by extension-bearing name.
static VALID: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_npy_f32(std::fs::File::create(at("x.npy")).unwrap(), &[3, 2], &[0.5; 6]).unwrap();
    let npz = NpzWriter::create(at("x.npz")).unwrap().f32("features", &[3, 2], &[0.5; 6]).unwrap();
    npz.i64("labels", &[3], &[1, 2, 1]).unwrap().finish().unwrap();
    let mut writer = RelevanceWriter::create(at("relevance.parquet"), &[("k".into(), "v".into())]).unwrap();
    writer.write(&vec![relevance_row(); 20]).unwrap();
    writer.finish().unwrap();
    let mut writer = CandidateWriter::create(at("candidates.parquet"), &[]).unwrap();
    let [id, class, matched_name, field] = ["1", "owl", "owl", "title"].map(str::to_owned);
    writer.write(&vec![CandidateRow { id, class, matched_name, field, leak: None }; 20]).unwrap();
    writer.finish().unwrap();
    classifier().save(at("c.safetensors")).unwrap();
    let (journal, _) = Journal::open(at("j.journal"), "run").unwrap();
    journal.append("owl", b"payload").unwrap();
    ["x.npy", "x.npz", "relevance.parquet", "candidates.parquet", "c.safetensors", "j.journal"]
        .map(|name| (name, std::fs::read(at(name)).unwrap()))
        .to_vec()
});

fn relevance_row() -> RelevanceRow {
    RelevanceRow {
        id: "1".into(),
        class: "owl".into(),
        relevance: 0.5,
        probability: None,
        is_clean: false,
        matched_name: Some("owl".into()),
        best_clean: None,
        best_clean_similarity: Some(0.5),
        reciprocal_neighbours: Some(3),
    }
}

fn classifier() -> SavedClassifier {
    SavedClassifier {
        classes: vec!["owl".into(), "cat".into()],
        dim: 2,
        weight: vec![1.0, 0.0, 0.0, 1.0],
        scale: 10.0,
        backbone: None,
        network: None,
        n_base: 0,
        settings: serde_json::json!({}),
        discriminant: None,
        confidence: None,
    }
}

/// Reads `bytes` with the reader that the name asks for, down to the last value.
fn read(name: &str, bytes: &[u8]) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    match name {
        "relevance.parquet" => read_relevance(&path).map(|_| ()),
        "candidates.parquet" => read_candidates(&path).map(|_| ()),
        "c.safetensors" => SavedClassifier::load(&path).map(|_| ()),
        "j.journal" => Journal::open(&path, "run").map(|_| ()),
        _ => {
            let table = ExampleTable::open(&path, &TableColumns::default())?;
            let rows: Vec<usize> = (0..table.len()).collect();
            table.features.read_rows(&rows, &mut vec![0.0; rows.len() * table.features.cols()])
        }
    }
}

/// Errors name the file; success is fine too.
fn check(name: &str, bytes: &[u8]) {
    if let Err(error) = read(name, bytes) {
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn the_files_that_get_damaged_below_are_valid() {
    for (name, bytes) in VALID.iter() {
        read(name, bytes).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for (name, _) in VALID.iter() {
            check(name, &bytes);
        }
        let _ = NpyHeader::parse(Path::new("a.npy"), &bytes, bytes.len() as u64);
    }

    #[test]
    fn arbitrary_bytes_behind_a_valid_start_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        keep in 0usize..40,
    ) {
        for (name, valid) in VALID.iter() {
            check(name, &[&valid[..keep], &bytes].concat());
        }
    }

    #[test]
    fn an_arbitrary_npy_dictionary_never_panics(
        text in r"[{}(),:'\[\]<|>a-z0-9 LTrueFalse]{0,80}",
        claimed in any::<u64>(),
    ) {
        let length = (text.len() as u16).to_le_bytes();
        let bytes = [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes()].concat();
        let _ = NpyHeader::parse(Path::new("a.npy"), &bytes, bytes.len() as u64);
        let _ = NpyHeader::parse(Path::new("a.npy"), &bytes, claimed);
    }

    #[test]
    fn a_flipped_bit_never_panics(position in any::<prop::sample::Index>(), bit in 0u8..8) {
        for (name, valid) in VALID.iter() {
            let mut bytes = valid.clone();
            bytes[position.index(valid.len())] ^= 1 << bit;
            check(name, &bytes);
        }
    }

    #[test]
    fn a_missing_end_or_middle_never_panics(
        from in any::<prop::sample::Index>(),
        length in 1usize..64,
        to_the_end in any::<bool>(),
    ) {
        for (name, valid) in VALID.iter() {
            let from = from.index(valid.len());
            let until = if to_the_end { valid.len() } else { (from + length).min(valid.len()) };
            check(name, &[&valid[..from], &valid[until..]].concat());
        }
    }
}

#[test]
fn every_member_of_a_damaged_archive_can_be_tried() {
    let (name, valid) = &VALID[1];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    for position in 0..valid.len() {
        let mut bytes = valid.clone();
        bytes[position] ^= 0xff;
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(mut archive) = Npz::open(&path) {
            for array in archive.names() {
                let _ = archive.array(&array).and_then(|array| array.read_ints());
            }
        }
    }
}

#[test]
fn a_parquet_file_that_makes_its_library_panic_is_an_error_like_any_other() {
    let (name, valid) = &VALID[3];
    for position in 0..valid.len() {
        let mut bytes = valid.clone();
        bytes[position] ^= 1; // six of these positions panic in the library
        check(name, &bytes);
    }
}
