use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::*;
use crate::image_files::{ImageResult, RowFilter};

fn open(path: &Path, columns: &ImageColumns) -> Result<ImageSource> {
    ImageSource::open(&[path.to_path_buf()], columns)
}

fn written(image: ImageResult) -> String {
    match image {
        Ok(image) => {
            format!(
                "{} {} {}",
                image.id,
                image.label.as_deref().unwrap_or("-"),
                String::from_utf8_lossy(&image.bytes)
            )
        }
        Err(error) => format!("{}: {error}", error.id),
    }
}

/// `id label bytes` of every image.
fn all(path: &Path, columns: &ImageColumns) -> Vec<String> {
    open(path, columns).unwrap().images().unwrap().map(written).collect()
}

fn plain() -> ImageColumns {
    ImageColumns::default()
}

fn filtered(filter: &str) -> ImageColumns {
    ImageColumns { filters: vec![filter.parse::<RowFilter>().unwrap()], ..plain() }
}

fn write_files(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn parquet(path: &Path, columns: Vec<(&str, ArrayRef)>, metadata: Option<&str>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let pairs = metadata.map(|text| vec![KeyValue::new("huggingface".to_owned(), text.to_owned())]);
    let properties = WriterProperties::builder().set_key_value_metadata(pairs).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn bytes(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(values.iter().map(|value| value.map(str::as_bytes)).collect::<BinaryArray>())
}

fn tar_bytes(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn a_folder_gives_its_images_sorted_with_folder_names_as_labels() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write_files(
        root,
        &[
            ("owl/b.JPG", "1"),
            ("owl/a.png", "2"),
            ("cat/x/c.webp", "3"),
            ("top.gif", "4"),
            ("owl/notes.txt", ""),
        ],
    );
    write_files(root, &[(".cache/d.jpg", "5"), ("owl/.e.jpg", "6")]);
    assert_eq!(
        all(root, &plain()),
        ["cat/x/c.webp x 3", "owl/a.png owl 2", "owl/b.JPG owl 1", "top.gif - 4"]
    );
    assert_eq!(open(root, &plain()).unwrap().len_hint(), Some(4));
}

#[test]
fn a_metadata_file_says_which_images_count_and_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write_files(root, &[("a.jpg", "A"), ("deep/b.jpg", "B"), ("c.jpg", "C")]);
    write_files(
        root,
        &[(
            "metadata.csv",
            "file_name,label,split\ndeep/b.jpg,owl,train\na.jpg,cat,test\ngone.jpg,x,train\n",
        )],
    );
    let found = all(root, &plain());
    assert_eq!(found[..2], ["deep/b.jpg owl B", "a.jpg cat A"]);
    assert!(found[2].starts_with("gone.jpg: cannot open `") && found.len() == 3, "{found:?}");
    assert_eq!(all(root, &filtered("split=test")), ["a.jpg cat A"]);
    let error = open(root, &filtered("role=base")).unwrap_err().to_string();
    assert!(error.ends_with("columns: expected `role`, found file_name, label, split"), "{error}");
    std::fs::remove_file(root.join("metadata.csv")).unwrap();
    write_files(root, &[("metadata.jsonl", "{\"file_name\": \"c.jpg\", \"kind\": 7, \"name\": \"n\"}\n")]);
    let columns = ImageColumns { label: Some("kind".into()), id: Some("name".into()), ..plain() };
    assert_eq!(all(root, &columns), ["n 7 C"]);
    std::fs::remove_file(root.join("metadata.jsonl")).unwrap();
    parquet(&root.join("metadata.parquet"), vec![("file_name", texts(&["c.jpg"]))], None);
    assert_eq!(all(root, &plain()), ["c.jpg - C"]);
}

#[test]
fn a_metadata_file_cannot_reach_outside_its_folder() {
    for name in ["../secret.jpg", "/etc/secret.jpg", "a/../../b.jpg"] {
        let folder = tempfile::tempdir().unwrap();
        write_files(folder.path(), &[("metadata.csv", &format!("file_name,label\n{name},x\n"))]);
        let error = open(folder.path(), &plain()).unwrap_err().to_string();
        assert!(error.ends_with(&format!("expected files below its folder, found `{name}`")), "{error}");
    }
}

#[test]
fn folders_without_images_and_columns_without_a_table_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = open(folder.path(), &plain()).unwrap_err().to_string();
    assert!(
        error.ends_with("folder: expected images (jpg, jpeg, png, webp, gif, bmp, tif, tiff), found none"),
        "{error}"
    );
    write_files(folder.path(), &[("a.jpg", "")]);
    let error = open(folder.path(), &filtered("role=base")).unwrap_err().to_string();
    assert!(
        error.ends_with("a metadata.csv, .jsonl or .parquet with a column `role`, found none"),
        "{error}"
    );
    let error = open(&folder.path().join("b.jpg"), &plain()).unwrap_err().to_string();
    assert!(error.starts_with("cannot open `"), "{error}");
}

#[test]
fn parquet_rows_are_filtered_and_a_missing_image_is_named_with_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("photos.parquet");
    parquet(
        &path,
        vec![
            ("id", Arc::new(Int64Array::from(vec![5, 6, 7, 8]))),
            ("image", bytes(&[Some("A"), Some("B"), None, Some("D")])),
            ("role", texts(&["base", "novel", "base", "base"])),
            ("wnid", texts(&["n1", "n2", "n1", "n3"])),
        ],
        None,
    );
    let columns = ImageColumns { label: Some("wnid".into()), ..filtered("role=base") };
    let found = all(&path, &columns);
    assert_eq!((found[0].as_str(), found[2].as_str()), ("5 n1 A", "8 n3 D"));
    assert!(found[1].starts_with("7: `"), "{found:?}");
    assert!(
        found[1].ends_with("column `image`, row 2: expected the bytes of an image, found null"),
        "{found:?}"
    );
    assert_eq!(open(&path, &columns).unwrap().len_hint(), None);
    let error = open(&path, &filtered("rôle=base")).unwrap_err().to_string();
    assert!(error.ends_with("columns: expected `rôle`, found id, image, role, wnid"), "{error}");
    let error = open(&path, &ImageColumns { image: Some("role".into()), ..plain() }).unwrap_err().to_string();
    assert!(
        error.ends_with("column `role`: expected bytes, or a structure with a field `bytes`, found Utf8"),
        "{error}"
    );
}

#[test]
fn hugging_faces_structures_and_class_names_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train-00000.parquet");
    let fields = Fields::from(vec![
        Field::new("bytes", DataType::Binary, true),
        Field::new("path", DataType::Utf8, true),
    ]);
    let pictures =
        StructArray::new(fields, vec![bytes(&[Some("A"), Some("B")]), texts(&["a.jpg", "b.jpg"])], None);
    let names = r#"{"info": {"features": {"label": {"names": ["owl", "cat"], "_type": "ClassLabel"}}}}"#;
    let labels = Arc::new(Int64Array::from(vec![1, 0]));
    parquet(&path, vec![("picture", Arc::new(pictures)), ("label", labels)], Some(names));
    let expected = ["train-00000-0 cat A", "train-00000-1 owl B"];
    assert_eq!(all(&path, &plain()), expected);
    assert_eq!(all(folder.path(), &plain()), expected, "a folder of Parquet files");
}

#[test]
fn tars_group_files_by_key() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("d/000.jpg", "A"),
        ("d/000.cls", "7\n"),
        ("d/000.txt", "an owl"),
        ("d/001.json", r#"{"label": "cat", "split": "x"}"#),
        ("d/001.png", "B"),
        ("d/002.txt", "no image"),
        ("d/003.seg.png", "mask"),
        ("d/003.WEBP", "C"),
    ];
    std::fs::write(folder.path().join("b.tar"), tar_bytes(&files)).unwrap();
    std::fs::write(folder.path().join("a.tar"), tar_bytes(&[("9.jpg", "Z")])).unwrap();
    assert_eq!(all(folder.path(), &plain()), ["9 - Z", "d/000 7 A", "d/001 cat B", "d/003 - C"]);
    assert_eq!(all(folder.path(), &filtered("split=x")), ["d/001 cat B"]);
    let columns = ImageColumns { image: Some("seg.png".into()), ..plain() };
    assert_eq!(all(&folder.path().join("b.tar"), &columns), ["d/003 - mask"]);
}

#[test]
fn only_downloads_that_succeeded_count_and_missing_ones_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("00000.tar");
    std::fs::write(&path, tar_bytes(&[("0.jpg", "A"), ("1.jpg", "B"), ("2.jpg", "C")])).unwrap();
    let table = |keys: &[&str], status: &[&str]| {
        let columns = vec![("key", texts(keys)), ("status", texts(status))];
        parquet(&folder.path().join("00000.parquet"), columns, None);
    };
    table(&["0", "1", "2"], &["success", "failed_to_resize", "success"]);
    assert_eq!(all(folder.path(), &plain()), ["0 - A", "2 - C"]);
    assert_eq!(open(folder.path(), &plain()).unwrap().len_hint(), Some(2));
    table(&["0", "7"], &["success", "success"]);
    let found = all(&path, &plain());
    assert_eq!(found[0], "0 - A");
    assert!(found[1].ends_with("in the Parquet file beside it, found 1 missing, the first `7`"), "{found:?}");
}

#[test]
fn ids_that_img2dataset_carried_along_take_the_place_of_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("00000.tar");
    let json = |id: &str| format!(r#"{{"id": {id}, "caption": "x", "key": "0", "status": "success"}}"#);
    let [text, number, null] = ["\"photo 7\"", "8", "null"].map(json);
    let other = r#"{"id": "mine"}"#;
    let files = [
        ("000.jpg", "A"),
        ("000.json", text.as_str()),
        ("001.json", number.as_str()),
        ("001.jpg", "B"),
        ("002.jpg", "C"),
        ("002.json", null.as_str()),
        ("003.jpg", "D"),
        ("003.json", other),
    ];
    std::fs::write(&path, tar_bytes(&files)).unwrap();
    assert_eq!(all(&path, &plain()), ["photo 7 - A", "8 - B", "002 - C", "003 - D"]);
    let chosen = ImageColumns { id: Some("key".into()), ..plain() };
    assert_eq!(all(&path, &chosen), ["0 - A", "0 - B", "0 - C", "003 - D"]);
}

#[test]
fn a_tar_cut_anywhere_gives_what_came_before_and_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    let long = "x".repeat(2000);
    let whole = tar_bytes(&[("0.jpg", "A"), ("1.jpg", &long), ("2.jpg", "C")]);
    // Headers are at 0, 1024 and 3584, contents 512 bytes after them.
    for (cut, n_before, message) in [
        (2000, 1, "byte 1536: expected a complete tar, found a file that ends after 464 of 2000 bytes"),
        (1200, 1, "byte 1024: expected a complete tar, found "),
        (3700, 2, "byte 3584: expected a complete tar, found "),
    ] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let found = all(&path, &plain());
        assert_eq!(found[0], "0 - A");
        assert_eq!(found.len(), n_before + 1, "{found:?}");
        assert!(found[n_before].contains(message), "{cut}: {found:?}");
    }
}

#[test]
fn reading_can_begin_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), &[("f/a.jpg", "1"), ("f/b.jpg", "2"), ("g/c.jpg", "3")]);
    let path = folder.path().join("h.parquet");
    parquet(&path, vec![("img", bytes(&[Some("4"), None, Some("6")]))], None);
    let inputs = [folder.path().join("f"), folder.path().join("g/*.jpg"), path];
    let source = ImageSource::open(&inputs, &plain()).unwrap();
    let whole: Vec<String> = source.images().unwrap().map(written).collect();
    assert_eq!(whole.len(), 6);
    for start in 0..8 {
        let rest: Vec<String> = source.images_from(start).unwrap().map(written).collect();
        assert_eq!(rest, whole[start.min(6)..], "from {start}");
    }
    drop(source.images().unwrap()); // stops without being read
}

#[test]
fn the_fingerprint_notices_a_change_deep_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), &[("f/a.jpg", "1"), ("f/b.jpg", "2")]);
    let fingerprint = || open(folder.path(), &plain()).unwrap().fingerprint().unwrap();
    let before = fingerprint();
    assert_eq!(before, fingerprint());
    write_files(folder.path(), &[("f/b.jpg", "22")]);
    assert_ne!(before, fingerprint());
}

proptest::proptest! {
    #[test]
    fn any_tar_is_read_or_refused(position in 0usize..4096, value: u8, cut in 0usize..6000) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        let mut bytes = tar_bytes(&[("0.jpg", "A"), ("0.json", "{}"), ("1.jpg", "B")]);
        let position = position % bytes.len();
        bytes[position] = value;
        bytes.truncate(cut);
        std::fs::File::create(&path).unwrap().write_all(&bytes).unwrap();
        let n = open(&path, &plain()).unwrap().images().unwrap().count();
        proptest::prop_assert!(n <= 3);
    }
}

#[test]
fn what_waits_to_be_taken_is_bounded_by_bytes_and_dropping_ends_the_wait() {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..12 {
        let file = std::fs::File::create(folder.path().join(format!("{i:02}.jpg"))).unwrap();
        file.set_len(30 << 20).unwrap();
    }
    let source = open(folder.path(), &plain()).unwrap();
    let sizes: Vec<usize> = source.images().unwrap().map(|image| image.unwrap().bytes.len()).collect();
    assert_eq!(sizes, [30 << 20; 12], "all of them come, however few may wait");
    let mut stream = source.images().unwrap();
    stream.next();
    drop(stream); // the reader is waiting for buffer space, or will be soon; either way it must end
}

#[test]
fn a_tar_without_its_end_and_one_with_a_hole_are_told_from_a_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    let whole = tar_bytes(&[("0.jpg", "A"), ("1.jpg", "B"), ("2.jpg", "C")]);
    // Headers are at 0, 1024 and 2048, the end-of-archive marker at 3072.
    for end in [3072 + 512, 3072 + 1024, whole.len()] {
        std::fs::write(&path, &whole[..end]).unwrap();
        assert_eq!(all(&path, &plain()), ["0 - A", "1 - B", "2 - C"], "{end}");
    }
    std::fs::write(&path, &whole[..2048]).unwrap();
    let found = all(&path, &plain());
    assert_eq!(found[..2], ["0 - A", "1 - B"]);
    assert!(
        found[2].ends_with("expected the end-of-archive marker, found none: the file may be truncated"),
        "{found:?}"
    );
    let mut hole = whole.clone();
    hole[1024..1536].fill(0);
    std::fs::write(&path, &hole).unwrap();
    let found = all(&path, &plain());
    assert_eq!((found[0].as_str(), found.len()), ("0 - A", 2));
    let lost = format!("{} of {} bytes not read", whole.len() - 1536, whole.len());
    assert!(found[1].contains("byte 1024: ") && found[1].ends_with(&lost), "{found:?}");
}
