//! Pictures, small and whole.

use crate::client::{number, row};
use crate::fixture::Fixture;

#[test]
fn pictures_come_small_and_whole_and_what_is_none_says_so() {
    let fixture = Fixture::new();
    let running = fixture.serve();
    let client = &running.client;
    let class = client.json(&format!("api/classes/{}", number(client, "cat")));
    let picture =
        |folder: &str, id: &str| client.get(&format!("{folder}/{}", class["example"][row(&class, id)]));
    let size = |bytes: &[u8]| {
        let image = image::load_from_memory(bytes).unwrap();
        (image.width(), image.height())
    };
    let large = picture("thumbnails", "cat 1");
    assert_eq!((large.header("content-type"), size(&large.body)), (Some("image/jpeg"), (192, 144)));
    assert!(large.header("cache-control").unwrap().contains("max-age"));
    assert_eq!(picture("thumbnails", "cat 1").body, large.body, "kept");
    let whole = picture("pictures", "cat 1");
    assert_eq!(whole.body, std::fs::read(fixture.path().join("pictures/cat 1.png")).unwrap());
    let small = picture("thumbnails", "cat 2");
    assert_eq!((small.header("content-type"), size(&small.body)), (Some("image/png"), (20, 20)));
    let tiff = picture("pictures", "cat 4");
    assert_eq!((tiff.header("content-type"), size(&tiff.body)), (Some("image/jpeg"), (50, 30)));
    for folder in ["thumbnails", "pictures"] {
        let message = picture(folder, "cat 3").is_error(415);
        assert!(message.starts_with("expected JPEG, PNG"), "{message}");
        picture(folder, "cat 5").is_error(404);
        client.get(&format!("{folder}/4000000")).is_error(404);
        client.get(&format!("{folder}/..%2f..%2fcaptions.csv")).is_error(400);
    }
}

#[test]
fn a_file_that_is_too_large_cannot_be_decoded_and_is_no_failure_of_the_server() {
    let fixture = Fixture::new();
    let large = std::fs::File::create(fixture.path().join("pictures/cat 5.png")).unwrap();
    large.set_len(1 << 40).unwrap(); // takes no space
    let running = fixture.serve();
    let client = &running.client;
    let class = client.json(&format!("api/classes/{}", number(client, "cat")));
    for folder in ["thumbnails", "pictures"] {
        let example = &class["example"][row(&class, "cat 5")];
        let message = client.get(&format!("{folder}/{example}")).is_error(415);
        assert!(message.contains("cat 5.png`: size: expected at most"), "{message}");
    }
}
