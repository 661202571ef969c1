//! `embed --model x.onnx`: the models of `labelsieve-networks/tests/golden/onnx`, exported by PyTorch.

use crate::common::refuses;
use crate::embed::folder_of;

#[cfg(not(feature = "onnx"))]
#[test]
fn a_build_without_onnx_says_which_one_has_it() {
    let folder = folder_of(1);
    std::fs::write(folder.path().join("x.onnx"), "").expect("disk space");
    refuses(
        folder.path(),
        "embed --model x.onnx --images photos -o F.parquet",
        &["`x.onnx`: this build of labelsieve does not support ONNX", "hint: ", "--features onnx"],
    );
}

#[test]
fn options_of_onnx_files_are_refused_for_other_models() {
    let folder = folder_of(1);
    for option in ["--image-mean 0.5", "--image-std 0.2,0.2,0.2", "--onnx-output y"] {
        let line = format!("embed --model M.safetensors --images photos --device cpu -o F.parquet {option}");
        refuses(folder.path(), &line, &["are for .onnx files, but `M.safetensors` is not one"]);
    }
    let line = "embed --model x.onnx --images photos -o F.parquet";
    refuses(folder.path(), &format!("{line} --image-mean 1,2"), &["expected one number or three"]);
    refuses(folder.path(), &format!("{line} --image-std 0"), &["expected positive numbers"]);
}

#[cfg(feature = "onnx")]
mod with_onnx {
    use std::path::Path;

    use image::{DynamicImage, ImageFormat, RgbImage};
    use labelsieve_files::{ExampleTable, TableColumns};

    use crate::common::{Finished, command, refuses, run};
    use crate::embed::{encoded, folder_of, table, write};

    /// A folder with a model and the eight images that its features are known of; none, with a message, without ONNX Runtime.
    fn golden(model: &str) -> Option<tempfile::TempDir> {
        let folder = tempfile::tempdir().expect("a folder");
        copy(model, folder.path(), "x.onnx");
        let byte = |i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8;
        for i in 0..8 {
            let pixels = (i * 24 * 24 * 3..(i + 1) * 24 * 24 * 3).map(byte).collect();
            let image: DynamicImage = RgbImage::from_raw(24, 24, pixels).expect("all pixels").into();
            write(folder.path(), &format!("photos/{i}.png"), &encoded(&image, ImageFormat::Png));
        }
        let found = run(folder.path(), "embed --model x.onnx --image-size 24 --images photos -o try.parquet");
        if found.err.contains("ONNX Runtime is not installed") {
            eprintln!("skipped: ONNX Runtime is not installed (`pip install onnxruntime`)");
            return None;
        }
        Some(folder)
    }

    fn copy(model: &str, folder: &Path, name: &str) {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../labelsieve-networks/tests/golden/onnx");
        std::fs::copy(golden.join(model), folder.join(name)).expect("a model");
    }

    /// Rows of `features.json`, of unit length.
    fn expected(name: &str) -> Vec<Vec<f32>> {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../labelsieve-networks/tests/golden/onnx/features.json");
        let all: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).expect("features")).expect("JSON");
        let mut rows: Vec<Vec<f32>> = serde_json::from_value(all[name].clone()).expect("rows");
        for row in &mut rows {
            let length = row.iter().map(|value| value * value).sum::<f32>().sqrt();
            row.iter_mut().for_each(|value| *value /= length);
        }
        rows
    }

    #[track_caller]
    fn assert_near(found: &[Vec<f32>], expected: &[Vec<f32>]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            let largest = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
            assert!(found.len() == expected.len() && largest < 1e-4, "{found:?} and {expected:?}");
        }
    }

    #[test]
    fn photos_become_the_features_that_pytorch_computes() {
        let Some(folder) = golden("cnn.onnx") else { return };
        let folder = folder.path();
        let embed = |options: &str| -> Finished {
            let line = format!("embed --model x.onnx --images photos --batch 3 -o F.parquet {options}");
            run(folder, &line)
        };
        let said = embed("--image-size 24").ok();
        assert!(said.err.contains("does not say how pixels are normalised: using ImageNet's"), "{said:?}");
        assert_near(&table(folder, "F.parquet").2, &expected("cnn"));
        let open = "does not fix the size of its images";
        embed("").fails_with(&["`x.onnx`", open, "hint: ", "--image-size 224", "`x.json`"]);

        // The same from a file beside the model, which says nothing any more.
        let sidecar = r#"{"crop_size": {"height": 24, "width": 24}, "size": {"shortest_edge": 24}, "do_center_crop": true,
            "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "rescale_factor": 0.00392156862745098}"#;
        std::fs::write(folder.join("x.json"), sidecar).expect("disk space");
        let said = embed("").ok();
        assert!(!said.err.contains("ImageNet"), "{said:?}");
        let said = embed("--image-size 32 --image-mean 0.5 --image-std 0.5,0.5,0.5").ok();
        assert!(said.err.contains("8 images, 16 features each"), "{said:?}");
        assert!(table(folder, "F.parquet").2[0][2] != expected("cnn")[0][2]);
    }

    #[test]
    fn features_of_two_models_are_not_mixed() {
        let Some(folder) = golden("cnn.onnx") else { return };
        let folder = folder.path();
        copy("cnn-bytes.onnx", folder, "y.onnx");
        run(folder, "embed --model x.onnx --image-size 24 --images photos -o X.parquet").ok();
        run(folder, "embed --model y.onnx --images photos -o Y.parquet").ok();
        assert_near(&table(folder, "Y.parquet").2, &expected("cnn"));
        for option in ["--image-mean 0.5", "--image-std 0.5"] {
            let line = format!("embed --model y.onnx --images photos -o N.parquet {option}");
            let itself = "`y.onnx` takes pixels as bytes and normalises them itself";
            refuses(folder, &line, &[itself, "hint: leave out --image-mean and --image-std"]);
        }
        let network = |name: &str| {
            let table = ExampleTable::open(folder.join(name), &TableColumns::default()).expect("a table");
            table.network.expect("a network")
        };
        assert!(network("X.parquet").starts_with("onnx "), "{}", network("X.parquet"));
        assert_ne!(network("X.parquet"), network("Y.parquet"));
        run(folder, "embed --model x.onnx --image-size 24 --images photos --image-mean 0.5 -o Z.parquet")
            .ok();
        assert_ne!(network("X.parquet"), network("Z.parquet"));
    }

    #[test]
    fn models_that_do_not_make_a_row_per_photo_are_refused() {
        let Some(folder) = golden("vit.onnx") else { return };
        let folder = folder.path();
        std::fs::remove_file(folder.join("try.parquet")).expect("a file");
        for model in ["two-inputs", "two-rows"] {
            copy(&format!("{model}.onnx"), folder, &format!("{model}.onnx"));
        }
        std::fs::write(folder.join("text.onnx"), "no model").expect("disk space");
        let embed = |model: &str, options: &str| {
            format!("embed --model {model}.onnx --images photos -o F.parquet {options}")
        };
        let inputs = ["`two-inputs.onnx`: inputs: expected one", "`pixel_values`", "`scale`", "hint: "];
        refuses(folder, &embed("two-inputs", ""), &inputs);
        let outputs = ["has several outputs: `mean`", "`most`", "hint: choose one with --onnx-output NAME"];
        refuses(folder, &embed("two-rows", ""), &outputs);
        refuses(folder, &embed("two-rows", "--onnx-output x"), &["has no output `x`: it has `mean`"]);
        let tokens = ["output `last_hidden_state`", "a row of numbers for each", "10×16", "hint: "];
        refuses(folder, &embed("x", "--onnx-output last_hidden_state"), &tokens);
        let size = ["`x.onnx` takes images of 24×24, but --image-size says 32×32"];
        refuses(folder, &embed("x", "--image-size 32"), &size);
        refuses(folder, &embed("text", ""), &["`text.onnx`: ", "hint: "]);
        refuses(folder, &embed("none", ""), &["none.onnx"]);
        refuses(folder, &embed("x", "--device cuda"), &["ONNX files run on the CPU"]);
        for (bad, part) in [
            ("{", "x.json"),
            (r#"{"image_std": [1, 0, 1]}"#, "`x.json`: `image_std`: expected three positive numbers"),
            (r#"{"size": 32, "do_center_crop": false}"#, "24×24, but `x.json` says 32×32"),
        ] {
            std::fs::write(folder.join("x.json"), bad).expect("disk space");
            refuses(folder, &embed("x", ""), &[part]);
        }
    }

    #[test]
    fn a_library_that_cannot_be_used_is_named() {
        let folder = folder_of(1);
        copy("cnn.onnx", folder.path(), "x.onnx");
        let line = "embed --model x.onnx --image-size 24 --images photos -o F.parquet";
        let mut elsewhere = command(folder.path(), line);
        elsewhere.env("ORT_DYLIB_PATH", folder.path().join("M.safetensors"));
        let said = Finished::from(elsewhere.output().expect("the binary starts"));
        said.fails_with(&["cannot load ONNX Runtime from", "M.safetensors", "hint: ", "pip install"]);
        let mut nowhere = command(folder.path(), line);
        nowhere.env_clear(); // neither Python nor ONNX Runtime in sight, unless the system has one
        let said = Finished::from(nowhere.output().expect("the binary starts"));
        if said.code != Some(0) {
            said.fails_with(&[
                "ONNX Runtime is not installed",
                "hint: ",
                "`pip install onnxruntime`",
                "ORT_DYLIB_PATH",
            ]);
        }
    }
}
