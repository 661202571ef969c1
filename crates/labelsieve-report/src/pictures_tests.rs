use std::collections::HashMap;
use std::io::Cursor;

use image::{ImageFormat, Rgb, RgbImage};

use super::*;

fn png(value: u8) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    RgbImage::from_pixel(9, 9, Rgb([value; 3])).write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn load(pictures: &Pictures, wanted: &[&str]) -> Thumbnails {
    let wanted = wanted.iter().copied().collect();
    super::load(pictures, &wanted, &wanted, &mut |_| ()).unwrap()
}

fn of(images: Vec<PathBuf>) -> Pictures {
    Pictures { images, ..Pictures::default() }
}

fn ids(found: &Thumbnails) -> Vec<&str> {
    let mut ids: Vec<&str> = found.by_id.keys().map(String::as_str).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn files_are_found_by_path_and_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["owl/1.png", "owl/2.png", "3.png", "4.png"] {
        write(folder.path(), name, &png(7));
    }
    write(folder.path(), "5.jpg", b"no picture");
    let found = load(&of(vec![folder.path().to_path_buf()]), &["owl/1.png", "2", "3.png", "5", "6"]);
    assert_eq!(ids(&found), ["2", "3.png", "owl/1.png"]);
    assert_eq!(found.unreadable, [("5".to_owned(), "neither JPEG, PNG, WebP nor GIF".to_owned())]);
}

#[test]
fn the_file_whose_path_is_the_id_wins_over_one_of_that_name_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let [clean, photos] = ["clean", "photos"].map(|name| folder.path().join(name));
    write(&clean, "owl/1.png", &png(1));
    write(&photos, "1.png", &png(2));
    let both = of(vec![clean, photos.clone()]);
    let found = load(&both, &["1.png"]);
    assert_eq!(found.by_id["1.png"], load(&of(vec![photos.clone()]), &["1.png"]).by_id["1.png"]);
    assert!(found.ambiguous.is_empty());
    write(&photos, "owl/1.png", &png(3));
    assert_eq!(load(&both, &["owl/1.png"]).ambiguous, BTreeSet::from(["owl/1.png".to_owned()]));
}

#[test]
fn captions_lie_beside_the_images() {
    let folder = tempfile::tempdir().unwrap();
    let [clean, photos] = ["clean", "photos"].map(|name| folder.path().join(name));
    write(&clean, "owl/1.png", &png(1));
    write(&photos, "1.png", &png(2));
    write(&photos, "2.png", &png(3));
    let text =
        format!("file_name,photo,caption,note\n1.png,p1,{},x\n2.png,p2,,y\n", "a long owl ".repeat(40));
    write(&photos, "metadata.csv", text.as_bytes());
    let pictures = of(vec![clean, photos.clone()]);
    let found = load(&pictures, &["owl/1.png", "1.png", "2.png"]);
    assert_eq!(ids(&found), ["1.png", "2.png", "owl/1.png"]);
    assert_eq!(found.captions.len(), 1);
    assert!(found.captions["1.png"].starts_with("a long owl a") && found.captions["1.png"].ends_with('…'));

    let noted = Pictures { text_columns: vec!["note".into()], ..pictures.clone() };
    assert_eq!(load(&noted, &["1.png", "2.png"]).captions["2.png"], "y");
    let named = Pictures { id_column: Some("photo".into()), images: vec![photos.clone()], ..noted };
    let found = load(&named, &["p2"]);
    assert_eq!((ids(&found), found.captions["p2"].as_str()), (vec!["p2"], "y"));
    let wrong = Pictures { text_columns: vec!["notes".into()], ..pictures.clone() };
    let wanted = HashSet::from(["1.png"]);
    assert!(super::load(&wrong, &wanted, &wanted, &mut |_| ()).is_err());

    write(folder.path(), "texts.csv", b"id,text\nowl/1.png,verified\n");
    let texts = Pictures { texts: vec![folder.path().join("texts.csv")], ..pictures };
    let found = load(&texts, &["owl/1.png", "1.png"]);
    assert_eq!(found.captions, HashMap::from([("owl/1.png".to_owned(), "verified".to_owned())]));
}

#[test]
fn examples_without_a_picture_on_the_page_have_their_captions_and_files_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "1.png", &png(1));
    write(folder, "2.png", &png(2));
    write(folder, "metadata.csv", b"file_name,caption\n1.png,first\n2.png,second\n");
    let wanted = HashSet::from(["1.png", "2.png"]);
    let pictures = of(vec![folder.to_path_buf()]);
    let found = super::load(&pictures, &wanted, &HashSet::from(["1.png"]), &mut |_| ()).unwrap();
    assert_eq!(ids(&found), ["1.png"]);
    assert_eq!(found.captions["2.png"], "second");
    assert_eq!(found.files["2.png"], folder.join("2.png"));
}
