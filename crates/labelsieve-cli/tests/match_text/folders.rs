//! Folders as texts, and columns by name.

use labelsieve_networks::image_files::{ImageColumns, ImageSource};

use crate::{Folder, rows_of};

impl Folder {
    /// The ids that `embed` gives the images of a folder.
    fn image_ids(&self, name: &str) -> Vec<String> {
        let source = ImageSource::open(&[self.path(name)], &ImageColumns::default()).unwrap();
        source.images().unwrap().map(|image| image.unwrap().id).collect()
    }
}

#[test]
fn a_folder_of_images_is_read_by_its_metadata_under_the_ids_of_its_images() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("photos/deep")).unwrap();
    for name in ["photos/a.jpg", "photos/deep/b.jpg"] {
        folder.write(name, "pixels");
    }
    let csv = "id,file_name,text\n1,a.jpg,a church\n2,deep/b.jpg,the crane\n";
    let jsonl = "{\"id\": 1, \"file_name\": \"a.jpg\", \"text\": \"a church\"}\n\
                 {\"id\": 2, \"file_name\": \"deep/b.jpg\", \"text\": \"the crane\"}\n";
    for (name, text) in [("photos/metadata.csv", csv), ("photos/metadata.jsonl", jsonl)] {
        folder.write(name, text);
        assert_eq!(folder.candidates("--text photos"), ["a.jpg n1 church", "deep/b.jpg n2 crane"], "{name}");
        assert_eq!(folder.image_ids("photos"), ["a.jpg", "deep/b.jpg"], "{name}");
        assert_eq!(
            folder.candidates("--text photos --id-column id"),
            ["1 n1 church", "2 n2 crane"],
            "{name}"
        );
        std::fs::remove_file(folder.path(name)).unwrap();
    }
    assert_eq!(rows_of(&folder.path("out.parquet")).len(), 2);
}

#[test]
fn folders_without_texts_say_what_they_lack() {
    let folder = Folder::new();
    let expected =
        "`photos`: folder: expected metadata.csv, metadata.jsonl, metadata.parquet or Parquet files, found ";
    std::fs::create_dir(folder.path("photos")).unwrap();
    let message = folder.error("--text photos");
    assert!(message.contains(&format!("{expected}an empty folder")), "{message}");
    folder.write("photos/a.jpg", "pixels");
    let message = folder.error("--text photos");
    assert!(message.contains(&format!("{expected}others (`a.jpg`, …)")), "{message}");
    let message = folder.error("--text photso");
    assert!(message.contains("cannot open `photso`"), "{message}");
    assert!(message.contains("hint: "), "{message}");
    folder.write("photos/metadata.csv", "id,text\n1,crane\n");
    let message = folder.error("--text photos");
    assert!(
        message.contains("metadata.csv`: columns: expected an id under file_name, found id, text"),
        "{message}"
    );
}

#[test]
fn an_unknown_column_is_answered_with_the_option_and_the_nearest_name() {
    let folder = Folder::new();
    folder.write("a.csv", "id,title\n1,crane\n");
    folder.write("b.csv", "nummer,words\n1,crane\n");
    folder.write("a.jsonl", "{\"id\": 1, \"title\": \"crane\"}\n");
    let check = |arguments: &str, message: &str, hint: &str| {
        let error = folder.error(arguments);
        assert!(error.contains(message), "{error}");
        assert!(error.contains(hint), "{error}");
    };
    for name in ["a.csv", "a.jsonl"] {
        check(
            &format!("--text {name} --text-column titel"),
            "columns: expected `titel`, found id, title",
            "hint: did you mean `--text-column title`?",
        );
        check(
            &format!("--text {name} --id-column number"),
            "columns: expected `number`, found id, title",
            "hint: choose one of these columns with --id-column",
        );
    }
    let id =
        "`b.csv`: columns: expected an id under id, key, uid, image_path, file_name, found nummer, words";
    check("--text b.csv", id, "hint: choose one of these columns with --id-column");
    check(
        "--text b.csv --id-column nummer",
        "`b.csv`: columns: expected a text under title,",
        "with --text-column",
    );
}
