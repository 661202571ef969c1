//! `embed`: images of every kind in, features out.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use image::{DynamicImage, ImageFormat, RgbImage};
use labelsieve_files::{ExampleTable, TableColumns};
use parquet::arrow::ArrowWriter;

pub use crate::pictures::{encoded, png, write, write_model};

use crate::common::{bytes, listing, refuses, run};
use crate::hub_folder::Published;
use crate::pictures::{TINY_RESNET10, drawn};

const EMBED: &str = "embed --model M.safetensors --device cpu --images";

/// A folder with a network and `n` pictures under `photos/{cat,owl}`.
pub fn folder_of(n: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write_model(&folder.path().join("M.safetensors"), 0);
    for i in 0..n {
        let class = if i % 2 == 0 { "cat" } else { "owl" };
        write(folder.path(), &format!("photos/{class}/{i:03}.png"), &png(i));
    }
    folder
}

/// Ids, classes and rows of a table.
pub fn table(folder: &Path, name: &str) -> (Vec<String>, Option<Vec<String>>, Vec<Vec<f32>>) {
    let table = ExampleTable::open(folder.join(name), &TableColumns::default()).expect("a table");
    let rows: Vec<usize> = (0..table.len()).collect();
    let mut values = vec![0.0; table.len() * table.features.cols()];
    table.features.read_rows(&rows, &mut values).expect("rows");
    let ids = rows.iter().map(|&row| table.ids.get(row).into_owned()).collect();
    let classes = table.labels.map(|labels| rows.iter().map(|&row| labels.get(row).to_owned()).collect());
    (ids, classes, values.chunks(table.features.cols()).map(<[f32]>::to_vec).collect())
}

fn length(row: &[f32]) -> f32 {
    row.iter().map(|value| value * value).sum::<f32>().sqrt()
}

#[test]
fn the_built_in_network_goes_by_name_and_is_used_when_none_is_chosen() {
    let folder = folder_of(3);
    let folder = folder.path();
    let network = |name: &str| {
        let table = ExampleTable::open(folder.join(name), &TableColumns::default()).expect("a table");
        (table.network.expect("a network"), table.features.cols())
    };
    run(folder, "embed --images photos --device cpu -o usual.parquet").ok();
    let (usual, width) = network("usual.parquet");
    assert!(usual.starts_with("efficientnet-lite0 ") && width == 1280, "{usual}, {width}");
    run(folder, "embed --model efficientnet-lite0 --images photos --device cpu -o named.parquet").ok();
    assert_eq!(bytes(folder, "named.parquet"), bytes(folder, "usual.parquet"));
    run(folder, &format!("embed --model {TINY_RESNET10} --images photos --device cpu -o tiny.parquet")).ok();
    assert!(network("tiny.parquet").0.starts_with("resnet10 "));
    refuses(
        folder,
        "embed --model tiny-resnet-10 --images photos -o x.parquet",
        &[
            "the network `tiny-resnet-10` is not built in",
            "hint: pass its file: `models/tiny-resnet10.safetensors` of the repository",
        ],
    );
    refuses(
        folder,
        "embed --model clip --images photos -o x.parquet",
        &[
            "there is no file, folder or built-in network `clip`",
            "hint: the built-in network is `efficientnet-lite0`",
        ],
    );
    assert!(!folder.join("x.parquet").exists());
    refuses(
        folder,
        "run --clean photos --pool photos --model efficientnet_lite_0 -o out",
        &["there is no network `efficientnet_lite_0`", "hint: did you mean `efficientnet-lite0`?"],
    );
}

#[test]
fn every_kind_of_image_is_embedded_or_listed() {
    let folder = folder_of(2);
    let folder = folder.path();
    let good = drawn(7);
    let sixteen = DynamicImage::ImageRgb8(good.clone()).into_rgb16();
    write(folder, "photos/cat/a-16bit.png", &encoded(&sixteen.into(), ImageFormat::Png));
    write(folder, "photos/cat/b.gif", &animation(&good));
    let jpeg = encoded(&good.clone().into(), ImageFormat::Jpeg);
    write(folder, "photos/cat/c.jpg", &jpeg);
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../labelsieve-networks/tests/golden/images/cmyk.jpg");
    write(folder, "photos/cat/d-cmyk.jpg", &std::fs::read(golden).expect("a file of the repository"));
    write(folder, "photos/cat/e-cut.jpg", &jpeg[..jpeg.len() / 2]);
    write(folder, "photos/cat/f-empty.jpg", b"");
    write(folder, "photos/cat/g-garbage.jpg", b"<html>not found</html>");
    let mut huge = encoded(&good.clone().into(), ImageFormat::Bmp);
    huge[18..26].copy_from_slice(&[0xff, 0xff, 0, 0, 0xff, 0xff, 0, 0]);
    write(folder, "photos/cat/h-huge.bmp", &huge);
    write(folder, "photos/cat/i.webp", &encoded(&good.clone().into(), ImageFormat::WebP));
    let done = run(folder, &format!("{EMBED} photos --batch 3 -o F.parquet")).ok();
    assert!(done.err.contains("7 images, 128 features each, written to `F.parquet`"), "{done:?}");
    assert!(
        done.err.contains("warning: 4 of 11 images were skipped; `F.parquet.skipped.csv` says why"),
        "{done:?}"
    );
    let (ids, classes, rows) = table(folder, "F.parquet");
    let names = ["000.png", "a-16bit.png", "b.gif", "c.jpg", "d-cmyk.jpg", "i.webp"]
        .map(|name| format!("cat/{name}"));
    assert_eq!(ids[..6], names);
    assert_eq!(classes.expect("all known")[5..], ["cat", "owl"]);
    assert!(rows.iter().all(|row| (length(row) - 1.0).abs() < 1e-5));
    assert_eq!(rows[1], rows[5], "16 bits and WebP without loss are the same picture");
    let skipped = String::from_utf8(bytes(folder, "F.parquet.skipped.csv")).expect("text");
    let lines: Vec<&str> = skipped.lines().collect();
    assert_eq!(lines[0], "id,reason");
    for (line, start) in lines[1..].iter().zip([
        "cat/e-cut.jpg,file is truncated: a JPEG without an end marker",
        "cat/f-empty.jpg,\"expected an image, found no bytes\"",
        "cat/g-garbage.jpg,\"expected JPEG, PNG, WebP, GIF, BMP or TIFF, found other bytes\"",
        "cat/h-huge.bmp,",
    ]) {
        assert!(line.starts_with(start), "{line}");
    }
    assert_eq!(lines.len(), 5);
}

/// Two pictures, one after the other.
fn animation(first: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::gif::GifEncoder::new(&mut bytes);
    for picture in [first.clone(), RgbImage::new(24, 20)] {
        encoder.encode_frame(image::Frame::new(DynamicImage::from(picture).into_rgba8())).expect("a frame");
    }
    drop(encoder);
    bytes
}

#[test]
fn rows_of_a_parquet_file_are_chosen_by_their_columns() {
    let folder = folder_of(0);
    let folder = folder.path();
    let texts = |values: [&str; 4]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let pictures: Vec<Vec<u8>> = (0..4).map(png).collect();
    let columns = [
        ("key", texts(["a", "b", "c", "d"])),
        ("picture", Arc::new(BinaryArray::from_iter_values(&pictures)) as ArrayRef),
        ("role", texts(["base", "novel", "base", "base"])),
        ("split", texts(["train", "train", "test", "train"])),
        ("kind", texts(["owl", "cat", "owl", "cat"])),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns");
    let file = std::fs::File::create(folder.join("P.parquet")).expect("disk space");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.close().expect("disk space");
    let line =
        format!("{EMBED} P.parquet --where role=base --where split=train --label-column kind -o F.parquet");
    run(folder, &line).ok();
    let (ids, classes, _) = table(folder, "F.parquet");
    assert_eq!((ids, classes), (vec!["a".into(), "d".into()], Some(vec!["owl".into(), "cat".into()])));
    refuses(
        folder,
        &format!("{EMBED} P.parquet --where rolle=base -o G.parquet"),
        &["P.parquet", "columns: expected `rolle`"],
    );
    refuses(folder, &format!("{EMBED} P.parquet --where role -o G.parquet"), &["expected COLUMN=VALUE"]);
    refuses(
        folder,
        &format!("{EMBED} P.parquet --where role=none -o G.parquet"),
        &["no readable images (0 tried)", "hint: "],
    );
}

#[test]
fn a_pca_is_fitted_saved_and_applied_again() {
    let folder = folder_of(12);
    let folder = folder.path();
    let fit =
        run(folder, &format!("{EMBED} photos --fit-pca 5 --pca-output P.safetensors -o A.parquet")).ok();
    assert!(fit.err.contains("PCA of width 5 keeps "), "{fit:?}");
    run(folder, &format!("{EMBED} photos --pca P.safetensors --dtype f16 -o B.npy")).ok();
    let ((ids, _, fitted), (_, _, applied)) = (table(folder, "A.parquet"), table(folder, "B.npy"));
    assert_eq!((fitted.len(), fitted[0].len()), (12, 5));
    for (a, b) in fitted.iter().flatten().zip(applied.iter().flatten()) {
        assert!((a - b).abs() < 1e-3, "{a} {b}");
    }
    let table = String::from_utf8(bytes(folder, "B.npy.ids.csv")).expect("text");
    assert!(table.starts_with(&format!("id,class,network\n{},cat,convnet128+pca5 ", ids[0])), "{table}");
    refuses(
        folder,
        &format!("{EMBED} photos --fit-pca 129 --pca-output Q.safetensors -o C.parquet"),
        &["1 to 128"],
    );
    refuses(
        folder,
        &format!("{EMBED} photos --pca M.safetensors -o C.parquet"),
        &["`M.safetensors` does not contain a PCA", "hint: "],
    );
    refuses(
        folder,
        "embed --model P.safetensors --images photos -o C.parquet",
        &["`P.safetensors` does not contain a network", "--pca"],
    );
}

#[test]
fn the_result_does_not_depend_on_threads_or_batches() {
    let folder = folder_of(9);
    let folder = folder.path();
    for (name, options) in
        [("A", "--threads 1 --batch 2"), ("B", "--threads 2 --batch 2"), ("C", "--threads 2 --batch 64")]
    {
        run(folder, &format!("{EMBED} photos {options} -o {name}.npy")).ok();
    }
    assert_eq!(bytes(folder, "A.npy"), bytes(folder, "B.npy"));
    assert_eq!(bytes(folder, "A.npy"), bytes(folder, "C.npy"));
}

#[test]
fn threads_and_batches_do_not_matter_to_any_kind_of_network() {
    let published = Published::new("siglip");
    let folder = published.path();
    (0..5).for_each(|i| write(folder, &format!("photos/{i}.png"), &png(i)));
    for model in ["efficientnet-lite0", TINY_RESNET10, "net"] {
        let embed = |options: &str| {
            run(folder, &format!("embed --model {model} --images photos --device cpu {options} -o A.npy"))
                .ok();
            bytes(folder, "A.npy")
        };
        let one = embed("--threads 1 --batch 64");
        assert_eq!(one, embed("--threads 2 --batch 64"), "{model}");
        assert_eq!(one, embed("--threads 2 --batch 3"), "{model}");
    }
}

#[test]
fn inputs_are_not_replaced_and_bad_files_are_named() {
    let folder = folder_of(2);
    let folder = folder.path();
    refuses(folder, &format!("{EMBED} photos -o F.csv"), &["`F.csv`", ".parquet, .npz or .npy"]);
    write(folder, "photos/metadata.parquet", b"no table");
    refuses(
        folder,
        &format!("{EMBED} photos -o F.parquet"),
        &["metadata.parquet`: expected a Parquet file, found a text file"],
    );
    std::fs::remove_file(folder.join("photos/metadata.parquet")).expect("it exists");
    refuses(folder, &format!("{EMBED} nowhere -o F.parquet"), &["cannot open `nowhere`", "hint: "]);
    refuses(folder, "embed --model photos/cat/000.png --images photos -o F.parquet", &["000.png"]);
    refuses(
        folder,
        &format!("{EMBED} photos --image-size 8 -o F.parquet"),
        &["larger images for convnet128"],
    );
    std::fs::copy(folder.join("M.safetensors"), folder.join("M.npy")).expect("disk space");
    refuses(folder, "embed --model M.npy --images photos -o M.npy", &["would replace the input `M.npy`"]);
}

#[test]
fn a_run_with_other_images_starts_anew_and_leaves_nothing_behind() {
    let folder = folder_of(4);
    let folder = folder.path();
    write(folder, "photos/cat/bad.png", b"bad");
    run(folder, &format!("{EMBED} photos -o F.parquet")).ok();
    assert!(listing(folder).contains(&"F.parquet.skipped.csv".to_owned()));
    std::fs::remove_file(folder.join("photos/cat/bad.png")).expect("it exists");
    run(folder, &format!("{EMBED} photos -o F.parquet")).ok();
    let names: Vec<String> = listing(folder).into_iter().filter(|name| name.starts_with('F')).collect();
    assert_eq!(names, ["F.parquet"], "no list of an earlier run, no journal");
}
