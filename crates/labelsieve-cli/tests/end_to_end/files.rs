//! Files of images that are damaged, enormous or no files at all: bounded memory, nothing lost without a word.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use image::{GrayImage, ImageFormat};
use labelsieve_files::{NetworkFile, NetworkMetadata, Precision, RelevanceRow, RelevanceWriter};
use labelsieve_networks::{Architecture, Snapshot, Stem, weights};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::common::{Finished, bytes, listing, run, shell};
use crate::embed::{encoded, folder_of, png, table, write};

const EMBED: &str = "embed --model M.safetensors --device cpu --images";

/// Runs `labelsieve LINE` with so many megabytes of address space, which it must not exceed.
fn within(megabytes: usize, folder: &Path, line: &str) -> Finished {
    shell(folder, &format!("ulimit -v {}; exec \"$LABELSIEVE\" {line} --threads 2", megabytes << 10))
}

/// A network that looks at whole images of 96×96.
fn write_wide_model(path: &Path) {
    let network = Architecture::ConvNet128.network(96, 96, Stem::Photo).expect("a size");
    let metadata = NetworkMetadata {
        architecture: "convnet128".to_owned(),
        image_size: (96, 96),
        channel_mean: network.mean,
        channel_deviation: network.deviation,
        view: "whole".to_owned(),
        ..NetworkMetadata::default()
    };
    let tensors =
        weights::to_tensors(&network, &Snapshot::initial(&network, 0, 0)).expect("a valid snapshot");
    NetworkFile { tensors, metadata: Some(metadata) }.save(path, Precision::F32).expect("disk space");
}

fn strip(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    encoded(&GrayImage::new(width, height).into(), format)
}

fn skipped(folder: &Path, name: &str) -> String {
    String::from_utf8(bytes(folder, name)).expect("text")
}

#[test]
#[cfg(target_os = "linux")]
fn a_small_file_with_an_enormous_picture_is_listed_and_takes_no_memory() {
    let folder = folder_of(2);
    let folder = folder.path();
    write_wide_model(&folder.join("M.safetensors"));
    let wide = strip(10_000_000, 1, ImageFormat::Png);
    assert!(wide.len() < 100_000, "{}", wide.len());
    write(folder, "photos/cat/wide.png", &wide);
    write(folder, "photos/cat/wider.png", &strip(60_000_000, 1, ImageFormat::Png));
    write(folder, "photos/cat/tall.png", &strip(1, 60_000_000, ImageFormat::Png));
    write(folder, "photos/cat/wide.tiff", &strip(20_000_000, 1, ImageFormat::Tiff));
    write(folder, "photos/cat/wide.bmp", &strip(20_000_000, 1, ImageFormat::Bmp));
    // Each fits alone; both at once would not.
    write(folder, "photos/owl/a.png", &strip(3_000_000, 1, ImageFormat::Png));
    write(folder, "photos/owl/b.png", &strip(3_000_000, 1, ImageFormat::Png));
    let done = within(2000, folder, &format!("{EMBED} photos -o F.parquet")).ok();
    assert!(done.err.contains("5 of 9 images were skipped"), "{done:?}");
    let list = skipped(folder, "F.parquet.skipped.csv");
    for name in ["wide.png", "wider.png", "wide.tiff"] {
        let line = list.lines().find(|line| line.starts_with(&format!("cat/{name},"))).expect("it is listed");
        assert!(line.contains("expected at most 1073741824 bytes for decoding and scaling"), "{line}");
        assert!(line.contains("0000000×1 pixels, which need "), "{line}");
    }
    assert_eq!(table(folder, "F.parquet").0, ["cat/000.png", "owl/001.png", "owl/a.png", "owl/b.png"]);
    let pretrain = "pretrain --images photos --architecture convnet128 --size 64 --epochs 1 --batches 1 \
                    --batch-size 4 --device cpu -o N.safetensors";
    let trained = within(2000, folder, pretrain).ok();
    assert!(
        trained.err.contains("skipped `cat/wider.png`: expected at most 1073741824 bytes"),
        "{trained:?}"
    );
}

/// An archive of `n` images of `size` zeros each, which take no disk space.
fn write_hollow_tar(path: &Path, n: usize, size: u64) {
    let mut file = std::fs::File::create(path).expect("disk space");
    for i in 0..n {
        let mut header = tar::Header::new_ustar();
        header.set_path(format!("{i}.jpg")).expect("a name");
        header.set_size(size);
        header.set_mode(0o644);
        header.set_cksum();
        file.write_all(header.as_bytes()).expect("disk space");
        file.seek(SeekFrom::Current(size.next_multiple_of(512) as i64)).expect("a place");
    }
    file.write_all(&[0; 1024]).expect("disk space");
}

#[test]
#[cfg(target_os = "linux")]
fn large_files_in_archives_and_tables_are_not_held_all_at_once() {
    let folder = folder_of(1);
    let folder = folder.path();
    write_hollow_tar(&folder.join("A.tar"), 20, 100 << 20);
    let done = within(1200, folder, &format!("{EMBED} A.tar photos -o F.parquet")).ok();
    assert!(done.err.contains("20 of 21 images were skipped"), "{done:?}");
    let large = vec![7u8; 40 << 20];
    let pictures: ArrayRef = Arc::new(BinaryArray::from_iter_values((0..16).map(|_| &large)));
    let plain = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::None);
    write_table(&folder.join("P.parquet"), vec![("image", pictures)], plain.build());
    let done = within(800, folder, &format!("{EMBED} P.parquet photos -o G.parquet")).ok();
    assert!(done.err.contains("16 of 17 images were skipped"), "{done:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_report_reads_a_few_pictures_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::create_dir(folder.join("photos")).expect("disk space");
    let row = |i: usize| RelevanceRow {
        id: format!("{i}.png"),
        class: "owl".into(),
        relevance: 1.0 - i as f32 / 100.0,
        probability: None,
        is_clean: i == 0,
        matched_name: None,
        best_clean: None,
        best_clean_similarity: None,
        reciprocal_neighbours: None,
    };
    let mut writer = RelevanceWriter::create(folder.join("R.parquet"), &[]).expect("disk space");
    writer.write(&(0..30).map(row).collect::<Vec<_>>()).expect("disk space");
    writer.finish().expect("disk space");
    for i in 0..30 {
        let file = std::fs::File::create(folder.join(format!("photos/{i}.png"))).expect("disk space");
        file.set_len(100 << 20).expect("a hole");
    }
    write(folder, "photos/3.png", &strip(12_000, 12_000, ImageFormat::Png));
    write(folder, "photos/4.png", &strip(20_000, 20_000, ImageFormat::Png));
    write(folder, "photos/5.png", &png(5));
    let done = within(3500, folder, "report R.parquet --images photos -o R.html").ok();
    assert!(done.err.contains("skipped unreadable pictures"), "{done:?}");
    assert!(bytes(folder, "R.html").len() > 1000);
}

#[test]
#[cfg(unix)]
fn special_files_are_listed_and_not_waited_for() {
    let folder = folder_of(2);
    let folder = folder.path();
    let made = shell(
        folder,
        "cd photos/cat && mkfifo pipe.png && ln -s nowhere.png gone.png && ln -s loop.png loop.png \
         && ln -s ../.. up && ln -s /dev/zero zero.png && ln -s pipe.png link.png && ln -s 000.png same.png",
    );
    made.ok();
    let line = format!("timeout 300 \"$LABELSIEVE\" {EMBED} photos -o F.parquet");
    let done = shell(folder, &line).ok();
    assert!(done.err.contains("6 of 9 images were skipped"), "{done:?}");
    assert_eq!(table(folder, "F.parquet").0, ["cat/000.png", "cat/same.png", "owl/001.png"]);
    let list = skipped(folder, "F.parquet.skipped.csv");
    for (name, reason) in [
        ("gone.png", "No such file"),
        ("link.png", "expected a regular file, found a FIFO"),
        ("loop.png", "symbolic links"),
        ("pipe.png", "expected a regular file, found a FIFO"),
        ("up", "a link to a folder, which is not followed"),
        ("zero.png", "expected a regular file, found a device"),
    ] {
        let line = list.lines().find(|line| line.starts_with(&format!("cat/{name},"))).expect("it is listed");
        assert!(line.contains(reason), "{line}");
    }
    let strict = shell(folder, &format!("{line} --strict"));
    strict.fails_with(&["cannot read `cat/gone.png`: ", "hint: ", "--strict"]);
    // A shard that is not a regular file would block as well.
    shell(folder, "mkfifo A.tar B.parquet").ok();
    for name in ["A.tar", "B.parquet"] {
        let line = format!("timeout 300 \"$LABELSIEVE\" {EMBED} {name} -o G.parquet");
        shell(folder, &line).fails_with(&[name, "expected a regular file, found a FIFO"]);
    }
}

fn write_tar(path: &Path, n: u32) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for i in 0..n {
        let class = if i % 2 == 0 { "cat" } else { "owl" };
        let picture = png(i);
        for (ending, contents) in [("png", &picture[..]), ("cls", class.as_bytes())] {
            let mut header = tar::Header::new_gnu();
            header.set_size(contents.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, format!("{i:03}.{ending}"), contents).expect("disk space");
        }
    }
    let bytes = builder.into_inner().expect("disk space");
    std::fs::write(path, &bytes).expect("disk space");
    bytes
}

/// Where the header of a file is.
fn header_of(tar: &[u8], name: &str) -> usize {
    tar.windows(name.len()).position(|window| window == name.as_bytes()).expect("it exists")
}

#[test]
fn a_damaged_tar_is_named_with_what_was_not_read_of_it() {
    let folder = folder_of(2);
    let folder = folder.path();
    let whole = write_tar(&folder.join("A.tar"), 6);
    let size = whole.len();
    let third = header_of(&whole, "003.png");
    let mut bad_header = whole.clone();
    bad_header[third + 5] ^= 1;
    let mut hole = whole.clone();
    hole[third..third + 512].fill(0);
    let unread = format!("{} of {size} bytes not read", size - third);
    let behind = format!("{} of {size} bytes not read", size - third - 512);
    let cut = third + 600;
    let cut_unread = format!("{} of {cut} bytes not read", cut - third - 512);
    for (damaged, found, lost) in [
        (&bad_header[..], "checksum mismatch", unread.as_str()),
        (&hole, "zeros followed by more data", &behind),
        (&whole[..cut], "a file that ends after ", &cut_unread),
        (&whole[..third], "the end-of-archive marker, found none: the file may be truncated", ""),
    ] {
        write(folder, "A.tar", damaged);
        let done = run(folder, &format!("{EMBED} A.tar photos -o F.parquet")).ok();
        let warning =
            done.err.lines().find(|line| line.starts_with("warning: `A.tar` was not read completely: "));
        let warning = warning.unwrap_or_else(|| panic!("{done:?}"));
        assert!(warning.contains(found) && warning.contains(lost), "{warning}");
        assert!(done.err.contains("1 damaged file was not read completely; see `F.parquet.skipped.csv`"));
        let list = skipped(folder, "F.parquet.skipped.csv");
        assert!(list.contains("\nA.tar,") && list.contains(found) && list.contains(lost), "{list}");
        let ids = table(folder, "F.parquet").0;
        assert_eq!(ids, ["000", "001", "002", "cat/000.png", "owl/001.png"], "the rest is still read");
        let strict = run(folder, &format!("{EMBED} A.tar photos --strict -o G.parquet"));
        strict.fails_with(&["cannot read `A.tar`: ", found, "hint: "]);
    }
    assert!(!listing(folder).contains(&"G.parquet".to_owned()));
}

fn write_table(path: &Path, columns: Vec<(&str, ArrayRef)>, properties: WriterProperties) {
    let batch = RecordBatch::try_from_iter(columns).expect("columns");
    let file = std::fs::File::create(path).expect("disk space");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a schema");
    writer.write(&batch).expect("rows");
    writer.close().expect("disk space");
}

/// Three row groups of four images, of which the second is damaged in the column of the images.
fn write_damaged_table(path: &Path) {
    let texts = |values: Vec<String>| Arc::new(StringArray::from(values)) as ArrayRef;
    let pictures: Vec<Vec<u8>> = (0..12).map(png).collect();
    let columns = vec![
        ("id", texts((0..12).map(|i| format!("p{i:02}")).collect())),
        ("image", Arc::new(BinaryArray::from_iter_values(&pictures)) as ArrayRef),
        ("class", texts((0..12).map(|i| ["cat", "owl"][i % 2].to_owned()).collect())),
    ];
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(4)).set_compression(Compression::SNAPPY);
    write_table(path, columns, properties.build());
    let reader = SerializedFileReader::new(std::fs::File::open(path).expect("a file")).expect("Parquet");
    let (start, length) = reader.metadata().row_group(1).column(1).byte_range();
    let mut file = std::fs::OpenOptions::new().read(true).write(true).open(path).expect("a file");
    let mut contents = Vec::new();
    file.read_to_end(&mut contents).expect("bytes");
    file.seek(SeekFrom::Start(start)).expect("a place");
    file.write_all(&vec![0xa5; length as usize]).expect("disk space");
}

#[test]
fn a_damaged_group_of_a_table_costs_its_own_rows_and_is_named() {
    let folder = folder_of(2);
    let folder = folder.path();
    write_damaged_table(&folder.join("P.parquet"));
    let done = run(folder, &format!("{EMBED} P.parquet -o F.parquet")).ok();
    let lost = "4 of 12 rows not read";
    assert!(done.err.contains("warning: `P.parquet` was not read completely: "), "{done:?}");
    assert!(
        done.err.contains(lost) && done.err.contains("1 damaged file was not read completely"),
        "{done:?}"
    );
    assert!(skipped(folder, "F.parquet.skipped.csv").contains(lost));
    let expected: Vec<String> = (0..4).chain(8..12).map(|i| format!("p{i:02}")).collect();
    assert_eq!(table(folder, "F.parquet").0, expected);
    let strict = format!("{EMBED} P.parquet --strict -o G.parquet");
    run(folder, &strict).fails_with(&["cannot read `P.parquet`: ", lost, "hint: "]);

    let pretrain = "pretrain --images P.parquet --architecture convnet128 --size 16 --epochs 1 --batches 1 \
                    --batch-size 4 --device cpu -o N.safetensors";
    let trained = run(folder, pretrain).ok();
    assert!(trained.err.contains("warning: `P.parquet` was not read completely: "), "{trained:?}");
    assert!(trained.err.contains(lost), "{trained:?}");
    run(folder, &format!("{pretrain} --strict")).fails_with(&["cannot read `P.parquet`: ", lost, "hint: "]);
    let predict = "predict --model N.safetensors --images P.parquet --device cpu";
    let named = run(folder, predict).ok();
    assert!(named.err.contains("warning: `P.parquet` was not read completely: "), "{named:?}");
    assert!(named.err.contains(lost), "{named:?}");
    run(folder, &format!("{predict} --strict")).fails_with(&["cannot read `P.parquet`: ", lost, "hint: "]);

    // Fine-tuning looks for images by id; the damage may be where they were.
    run(folder, &format!("{EMBED} photos -o C.parquet")).ok();
    let clean = "score --clean C.parquet --pool F.parquet --neighbours 2 -o R.parquet";
    run(folder, clean).ok();
    let tune = "finetune --relevance R.parquet --network N.safetensors --device cpu \
                --images photos P.parquet --batch-size 4 --epochs 1 -o T.safetensors";
    let tuned = run(folder, tune).ok();
    assert!(tuned.err.contains("warning: `P.parquet` was not read completely: "), "{tuned:?}");
    run(folder, &format!("{tune} --strict")).fails_with(&["cannot read `P.parquet`: ", lost, "hint: "]);
}

#[test]
fn strict_stops_at_a_picture_that_cannot_be_decoded() {
    let folder = folder_of(4);
    let folder = folder.path();
    write(folder, "photos/cat/bad.png", b"bad");
    let run_strict = |line: &str| run(folder, &format!("{line} --strict"));
    let parts = ["cannot read `cat/bad.png`: expected JPEG", "hint: ", "--strict"];
    run_strict(&format!("{EMBED} photos -o F.parquet")).fails_with(&parts);
    let pretrain = "pretrain --images photos --architecture convnet128 --size 16 --epochs 1 --batches 1 \
                    --batch-size 4 --device cpu -o N.safetensors";
    run_strict(pretrain).fails_with(&parts);
    run(folder, pretrain).ok();
    run_strict("predict --model N.safetensors --images photos --device cpu -o Q.parquet").fails_with(&parts);
    // Files that an earlier, lenient run skipped are errors as well.
    run(folder, &format!("{EMBED} photos -o F.parquet")).ok();
    std::fs::remove_file(folder.join("photos/cat/bad.png")).expect("it exists");
    run_strict(&format!("{EMBED} photos -o F.parquet")).ok();
}
