use std::collections::HashSet;
use std::fs::File;

use super::super::PictureSources;
use super::*;
use crate::image_files::{ThumbnailRow, ThumbnailWriter};

fn locate(sources: &PictureSources, wanted: &[&str]) -> PictureFiles {
    let set: HashSet<&str> = wanted.iter().copied().collect();
    PictureFiles::locate(&sources.find(&set).unwrap(), wanted).unwrap()
}

fn of(images: &[&Path]) -> PictureSources {
    PictureSources { images: images.iter().map(|path| path.to_path_buf()).collect(), ..Default::default() }
}

fn write_tar(path: &Path, files: &[(&str, &[u8])]) {
    let mut builder = tar::Builder::new(File::create(path).unwrap());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    builder.finish().unwrap();
}

#[test]
fn pictures_of_folders_tars_and_tables_are_read_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let photos = folder.path().join("photos");
    let tar = folder.path().join("0.tar");
    std::fs::create_dir_all(photos.join("owl")).unwrap();
    std::fs::write(photos.join("owl/1.png"), b"first").unwrap();
    write_tar(
        &tar,
        &[("t1.jpg", &[1; 700]), ("t1.txt", b"caption"), ("t2.jpg", &[2; 5]), ("t2.json", b"{}")],
    );
    let table = folder.path().join("thumbnails.parquet");
    let mut writer = ThumbnailWriter::create(&table).unwrap();
    let rows: Vec<ThumbnailRow> = (0..300u32)
        .map(|i| ThumbnailRow { id: format!("p{i}"), image: i.to_le_bytes().to_vec(), title: None })
        .collect();
    writer.write(&rows).unwrap();
    writer.finish().unwrap();

    let wanted = ["p299", "owl/1.png", "t2", "p0", "nowhere", "t1", "p150"];
    let files = locate(&of(&[&photos, &tar, &table]), &wanted);
    let read = |at: usize| files.read(at).unwrap();
    assert_eq!(read(0), Some(299u32.to_le_bytes().to_vec()));
    assert_eq!(read(1), Some(b"first".to_vec()));
    assert_eq!(read(2), Some(vec![2; 5]));
    assert_eq!(read(3), Some(0u32.to_le_bytes().to_vec()));
    assert_eq!(read(4), None);
    assert_eq!(read(5), Some(vec![1; 700]));
    assert_eq!(read(6), Some(150u32.to_le_bytes().to_vec()));
    assert_eq!(read(7), None, "there is no such example");
    assert_eq!((files.n_found(), files.has(4), files.has(5)), (6, false, true));
}

#[test]
fn an_id_in_the_json_of_a_tar_counts_where_its_column_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let tar = folder.path().join("0.tar");
    write_tar(&tar, &[("a.jpg", b"A"), ("a.json", br#"{"uid": 7}"#), ("b.jpg", b"B")]);
    let sources = PictureSources { id_column: Some("uid".to_owned()), ..of(&[&tar]) };
    let files = locate(&sources, &["7", "b", "a"]);
    assert_eq!(files.read(0).unwrap(), Some(b"A".to_vec()));
    assert_eq!(files.read(1).unwrap(), Some(b"B".to_vec()), "a key without the value keeps its name");
    assert!(!files.has(2));
    let json = br#"{"id": "photo 7", "key": "a", "status": "success"}"#;
    write_tar(&tar, &[("a.jpg", b"A"), ("a.json", json), ("b.jpg", b"B")]);
    let files = locate(&of(&[&tar]), &["photo 7", "b", "a"]);
    assert_eq!(files.read(0).unwrap(), Some(b"A".to_vec()), "img2dataset carried it along");
    assert!(files.has(1) && !files.has(2));
}

#[test]
fn a_tar_that_was_cut_short_after_it_was_opened_gives_an_error_and_not_half_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let tar = folder.path().join("0.tar");
    write_tar(&tar, &[("a.jpg", &[9; 4000])]);
    let files = locate(&of(&[&tar]), &["a"]);
    File::options().write(true).open(&tar).unwrap().set_len(1000).unwrap();
    let error = files.read(0).unwrap_err().to_string();
    assert!(error.ends_with("byte 512: expected 4000 bytes, found 488 bytes"), "{error}");
}
