//! Generated files in all layouts.

use super::*;

fn all(folder: &Path, images: Option<&Path>, part: MiniPart) -> Result<Vec<MiniPhoto>> {
    let mut photos = Vec::new();
    MiniImageNet::open(folder, images).photos(part, &mut |photo| {
        photos.push(photo);
        Ok(())
    })?;
    Ok(photos)
}

fn write(path: PathBuf, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn lists_name_photos_as_they_are_or_by_their_place_in_imagenets_folders() {
    let folder = tempfile::tempdir().unwrap();
    let lists = folder.path().join("lists");
    let images = folder.path().join("images");
    write(
        lists.join("train.csv"),
        b"filename,label\nn0200000000000002.jpg,n02000000\nn0100000000000001.jpg,n01000000\n\
        n0100000000000003.jpg,n01000000\n",
    );
    write(lists.join("val.csv"), b"filename,label\nn0300000000000001.jpg,n03000000\n");
    // In the order of their numbers, not of their names: 2, 10, 33.
    for number in [10, 2, 33] {
        let name = format!("n01000000/n01000000_{number}.JPEG");
        write(images.join(name), format!("photo {number}").as_bytes());
    }
    write(images.join("n02000000/n0200000000000002.jpg"), b"in its folder");
    write(images.join("n0300000000000001.jpg"), b"below the images");
    let found = all(&lists, Some(&images), MiniPart::Train).unwrap();
    let seen: Vec<(&str, &str, &MiniImage)> =
        found.iter().map(|photo| (photo.class.as_str(), photo.id.as_str(), &photo.image)).collect();
    let bytes = |text: &str| MiniImage::Encoded(text.as_bytes().to_vec());
    assert_eq!(seen[0], ("n01000000", "n0100000000000001.jpg", &bytes("photo 2")));
    assert_eq!(seen[1], ("n01000000", "n0100000000000003.jpg", &bytes("photo 33")));
    assert_eq!(seen[2], ("n02000000", "n0200000000000002.jpg", &bytes("in its folder")));
    let found = all(&lists, Some(&images), MiniPart::Validation).unwrap();
    assert_eq!(found[0].image, bytes("below the images"));
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let lists = folder.path().join("lists");
    let images = folder.path().join("images");
    let refused = |part| all(&lists, Some(&images), part).unwrap_err().to_string();
    std::fs::create_dir(&lists).unwrap();
    assert!(refused(MiniPart::Test).contains("`test.csv`, `mini-imagenet-cache-test.pkl` or"));
    write(lists.join("train.csv"), b"file,label\na.jpg,n1\n");
    assert!(
        refused(MiniPart::Train)
            .ends_with("line 1: expected columns `filename` and `label`, found `file,label`")
    );
    write(lists.join("train.csv"), b"filename,label\na.jpg,n1\n");
    let error = refused(MiniPart::Train);
    assert!(error.contains("photo `a.jpg` of class `n1`: expected an image below"), "{error}");
    write(lists.join("val.csv"), b"filename,label\na.jpg,\n");
    let error = refused(MiniPart::Validation);
    assert!(error.ends_with("line 2: expected a file name and a label, found an empty one"), "{error}");
    write(lists.join("mini-imagenet-cache-test.pkl"), b"\x80\x02}.");
    assert!(refused(MiniPart::Test).ends_with("expected `image_data` or `data`, found neither"));
}

/// `{"NAME": array of `n` photos of 1×2 pixels, …}` in protocol 2.
fn pickle(name: &str, n: u8, rest: &[u8]) -> Vec<u8> {
    let text = |text: &str| [&[b'U', text.len() as u8], text.as_bytes()].concat();
    let mut bytes = [b"\x80\x02}(".to_vec(), text(name)].concat();
    bytes.extend(b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01(");
    bytes.extend([b'K', n, b'K', 1, b'K', 2, b'K', 3, b't']);
    bytes.extend(
        b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89",
    );
    bytes.extend([b'U', 6 * n]);
    bytes.extend(0..6 * n);
    bytes.extend(b"tb");
    [bytes, rest.to_vec(), b"u.".to_vec()].concat()
}

#[test]
fn pickles_of_both_kinds_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let of_classes = b"U\nclass_dict}(U\x02n2]K\x01aU\x02n1](K\x00K\x02eu";
    write(folder.path().join("mini-imagenet-cache-train.pkl"), &pickle("image_data", 3, of_classes));
    let of_labels = b"U\x06labels](K\x05K\x04K\x05eU\rcatname2label}(U\x02n4K\x04U\x02n5K\x05u";
    write(folder.path().join("miniImageNet_category_split_test.pickle"), &pickle("data", 3, of_labels));
    let ids = |part| -> Vec<(String, MiniImage)> {
        let photos = all(folder.path(), None, part).unwrap();
        photos.into_iter().map(|photo| (photo.id, photo.image)).collect()
    };
    let image = |row: u8| MiniImage::Pixels { height: 1, width: 2, rgb: (6 * row..6 * row + 6).collect() };
    let named = |id: &str, row: u8| (id.to_owned(), image(row));
    assert_eq!(ids(MiniPart::Train), [named("n1-0", 0), named("n1-2", 2), named("n2-1", 1)]);
    assert_eq!(ids(MiniPart::Test), [named("n4-1", 1), named("n5-0", 0), named("n5-2", 2)]);
    let beyond = b"U\nclass_dict}(U\x02n1]K\x03au";
    write(folder.path().join("mini-imagenet-cache-val.pkl"), &pickle("image_data", 3, beyond));
    let error = all(folder.path(), None, MiniPart::Validation).unwrap_err().to_string();
    assert!(error.ends_with("class `n1`: expected rows below 3, found 3"), "{error}");
}
