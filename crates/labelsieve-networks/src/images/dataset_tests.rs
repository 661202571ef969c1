use super::*;

fn png(height: u32, width: u32, seed: u64) -> Vec<u8> {
    let stream = Stream::new(seed);
    let image = image::RgbImage::from_fn(width, height, |x, y| {
        image::Rgb(std::array::from_fn(|c| stream.bits(u64::from(3 * (y * width + x)) + c as u64) as u8))
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

fn encoded(id: &str, label: Option<&str>, bytes: std::result::Result<Vec<u8>, String>) -> Encoded {
    let bytes = bytes.map_err(|reason| Unreadable { reason, cause: Cause::BadImage });
    Encoded { id: id.to_owned(), label: label.map(str::to_owned), bytes }
}

fn animals() -> Dataset {
    let source = vec![
        encoded("a", Some("owl"), Ok(png(9, 7, 0))),
        encoded("b", Some("cat"), Ok(png(20, 40, 1))),
        encoded("c", Some("owl"), Ok(b"no image".to_vec())),
        encoded("d", None, Ok(png(3, 3, 2))),
        encoded("e", Some("cat"), Err("cannot read".to_owned())),
        encoded("f", Some("owl"), Ok(png(8, 8, 3))),
    ];
    Dataset::decode(source.into_iter(), &DatasetOptions::default())
}

#[test]
fn what_can_be_used_is_kept_in_order_and_the_rest_is_listed() {
    let dataset = animals();
    assert_eq!(dataset.ids(), ["a", "b", "f"]);
    assert_eq!(dataset.classes(), ["cat", "owl"]);
    assert_eq!(dataset.labels(), [1, 0, 1]);
    let skipped: Vec<_> = dataset.skipped().iter().map(|s| format!("{}: {}", s.id, s.reason)).collect();
    let expected =
        ["c: expected JPEG, PNG, WebP, GIF, BMP or TIFF, found other bytes", "d: no label", "e: cannot read"];
    assert_eq!(skipped, expected);
}

#[test]
fn given_classes_keep_their_numbers() {
    let options =
        DatasetOptions { classes: Some(vec!["owl".into(), "fox".into()]), ..DatasetOptions::default() };
    let source = [("a", "cat"), ("b", "owl")].map(|(id, label)| encoded(id, Some(label), Ok(png(3, 3, 0))));
    let dataset = Dataset::decode(source.into_iter(), &options);
    assert_eq!((dataset.labels(), dataset.classes().len()), (&[0][..], 2));
    assert_eq!(dataset.skipped()[0].reason, "class `cat` is not among the chosen ones");
}

#[test]
fn large_images_are_stored_smaller_and_small_ones_as_they_are() {
    let options = DatasetOptions { storage: Storage::ShorterSide(10), ..DatasetOptions::default() };
    let source = [png(20, 40, 0), png(9, 30, 0)].map(|bytes| encoded("x", Some("a"), Ok(bytes)));
    let dataset = Dataset::decode(source.into_iter(), &options);
    let sizes: Vec<_> = (0..2).map(|i| (dataset.image(i).height(), dataset.image(i).width())).collect();
    assert_eq!(sizes, [(10, 20), (9, 30)]);
}

#[test]
fn a_batch_is_the_same_at_any_number_of_threads_and_in_any_company() {
    let dataset = animals();
    let augmentation = Augmentation::usual(8, 8);
    let draw = |rows: &[usize]| dataset.batch(rows, &augmentation, Stream::new(5)).unwrap();
    let all = draw(&[0, 1, 2, 0]);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(pool.install(|| draw(&[0, 1, 2, 0])), all);
    assert_eq!(draw(&[2]).pixels(), &all.pixels()[2 * 192..3 * 192]);
    assert_ne!(dataset.batch(&[0], &augmentation, Stream::new(6)).unwrap().pixels(), &all.pixels()[..192]);
}

#[test]
fn evaluation_sees_the_image_itself() {
    let dataset = animals();
    let batch = dataset.evaluation_batch(&[2], (8, 8), View::Whole).unwrap();
    assert_eq!(batch.pixels(), dataset.image(2).pixels());
    let error = dataset.evaluation_batch(&[3], (8, 8), View::Whole).unwrap_err().to_string();
    assert_eq!(error, "row of a dataset: expected below 3, found 3");
}

#[test]
fn an_image_that_cannot_be_looked_at_within_the_limits_is_left_out() {
    let small = png(8, 8, 0);
    let wide = png(1, 4000, 0);
    let source =
        || [("a", &small), ("b", &wide)].map(|(id, bytes)| encoded(id, Some("x"), Ok(bytes.clone())));
    let limits = DecodeLimits { bytes: 1 << 20, ..DecodeLimits::default() };
    let options = DatasetOptions { limits, size: (32, 32), ..DatasetOptions::default() };
    assert_eq!(Dataset::decode(source().into_iter(), &options).len(), 2);
    let options = DatasetOptions { size: (224, 224), ..options };
    let dataset = Dataset::decode(source().into_iter(), &options);
    assert_eq!(dataset.ids(), ["a"]);
    let skipped = &dataset.skipped()[0];
    assert_eq!((skipped.id.as_str(), skipped.cause), ("b", Cause::BadImage));
    let start = "expected at most 1048576 bytes for decoding and scaling, found 4000×1 pixels, which need ";
    assert!(skipped.reason.starts_with(start), "{}", skipped.reason);
    let on_damage = OnDamage::Stop;
    let bad = encoded("c", None, Err("gone".to_owned()));
    let stopped =
        Dataset::decode([bad].into_iter(), &DatasetOptions { on_damage, ..DatasetOptions::default() });
    assert_eq!(stopped.skipped()[0].reason, "gone", "not that it has no label");
}
