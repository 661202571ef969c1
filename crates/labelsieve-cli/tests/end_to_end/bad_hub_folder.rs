//! Folders of networks that cannot be used: what is wrong, where, and what to do. Nothing is written.

use std::path::Path;

use labelsieve_files::Precision;
use serde_json::{Value, json};

use crate::common::{command, listing, refuses, shell};
use crate::embed::write;
use crate::hub_folder::{EMBED, Published, save, save_bf16, write_shards};

/// The published network with other settings in its configuration; `null` removes one.
fn configured(name: &str, changes: Value) -> Published {
    let published = Published::new(name);
    let path = published.net("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON");
    change(&mut config, changes);
    std::fs::write(&path, config.to_string()).expect("disk space");
    published
}

fn change(config: &mut Value, changes: Value) {
    match changes {
        Value::Object(changes) if config.is_object() => {
            for (key, value) in changes {
                change(&mut config[&key], value);
            }
        }
        value => *config = value,
    }
}

/// The command must refuse, and must not ask for more than 4 GiB of memory on its way there.
#[track_caller]
fn refuses_cheaply(folder: &Path, parts: &[&str]) {
    let before = listing(folder);
    shell(folder, &format!("ulimit -v 4194304; exec \"$LABELSIEVE\" {EMBED}")).fails_with(parts);
    assert_eq!(listing(folder), before);
}

#[test]
fn a_folder_without_one_of_its_files_is_refused_by_the_name_of_the_file() {
    for file in ["config.json", "preprocessor_config.json", "model.safetensors"] {
        let published = Published::new("vit");
        std::fs::remove_file(published.net(file)).expect("removed");
        let has_no = format!("`net` has no file `{file}`");
        refuses(published.path(), EMBED, &[&has_no, "hint: a folder needs `config.json`"]);
    }
    let published = Published::new("vit");
    std::fs::rename(published.net("model.safetensors"), published.net("pytorch_model.bin")).expect("renamed");
    refuses(published.path(), EMBED, &["`net` has no file `model.safetensors`", "hint: weights in `.bin`"]);
}

#[test]
fn other_architectures_are_named_with_those_that_work() {
    let works = "expected clip, siglip, siglip2, dinov2";
    for (config, found) in [
        (json!({ "model_type": "swin" }), "found swin"),
        (json!({ "architecture": "convnext_base" }), "found convnext_base"),
        (json!({ "architecture": "vit_relpos_base_patch16_224" }), "found vit_relpos_base_patch16_224"),
        (json!({ "hidden_size": 24 }), "found a configuration without `model_type`"),
    ] {
        let published = Published::new("vit");
        write(published.path(), "net/config.json", config.to_string().as_bytes());
        refuses(published.path(), EMBED, &["`net/config.json`: architecture: ", works, found]);
    }
    // A model of texts has no file about images; that it is none for photos comes first.
    let published = configured("vit", json!({ "model_type": "bert" }));
    std::fs::remove_file(published.net("preprocessor_config.json")).expect("removed");
    refuses(published.path(), EMBED, &["net/config.json", works, "found bert", "hint: ", "ONNX"]);
    let published = configured("vit", json!({ "model_type": "clip_text_model" }));
    refuses(published.path(), EMBED, &["net/config.json", works, "found clip_text_model", "hint: "]);
}

#[test]
fn configurations_that_cannot_be_meant_are_refused_before_memory_is_asked_for() {
    let huge = 1_000_000_000_000u64;
    for (name, changes, parts) in [
        ("vit", json!({ "hidden_size": huge }), &["`hidden_size`", "1 to 1048576, found 1000000000000"][..]),
        ("vit", json!({ "hidden_size": 0 }), &["`hidden_size`", "found 0"]),
        ("vit", json!({ "hidden_size": -24 }), &["`hidden_size`", "found -24"]),
        ("vit", json!({ "hidden_size": 24.5 }), &["`hidden_size`", "found 24.5"]),
        ("vit", json!({ "hidden_size": "wide" }), &["`hidden_size`", "found \"wide\""]),
        ("vit", json!({ "num_attention_heads": 5 }), &["heads", "a divisor of the width 24, found 5"]),
        ("vit", json!({ "patch_size": 0 }), &["`patch_size`", "found 0"]),
        ("vit", json!({ "patch_size": [8, 4] }), &["`patch_size`", "square patches, found [8,4]"]),
        ("vit", json!({ "image_size": 1_000_000_000 }), &["`image_size`", "1 to 16384, found 1000000000"]),
        ("vit", json!({ "image_size": 4 }), &["size of images", "one patch of 8×8, found 4×4"]),
        ("vit", json!({ "image_size": 16384 }), &["position_embeddings`", "expected 4194305×24"]),
        ("vit", json!({ "layer_norm_eps": -1 }), &["`layer_norm_eps`", "a positive number, found -1"]),
        ("vit", json!({ "hidden_act": "relu" }), &["`hidden_act`", "expected gelu", "found \"relu\""]),
        ("vit", json!({ "qkv_bias": "yes" }), &["`qkv_bias`", "true or false, found \"yes\""]),
        ("vit", json!({ "intermediate_size": 1_048_576 }), &["intermediate.dense.weight`", "1048576×24"]),
        ("vit", json!({ "num_hidden_layers": 1_000_000 }), &["tensor `encoder.layer.", "found none"]),
        ("dinov2", json!({ "mlp_ratio": 1e300 }), &["`mlp_ratio`", "with a width of 24, found 1e+300"]),
        ("dinov2", json!({ "mlp_ratio": 1e-9 }), &["`mlp_ratio`", "with a width of 24, found 1e-9"]),
        ("dinov3", json!({ "num_attention_heads": 4 }), &["per attention head", "multiple of 4", "found 6"]),
        ("clip, quick_gelu", json!({ "vision_config": 5 }), &["`vision_config`", "an object, found 5"]),
        ("clip, quick_gelu", json!({ "projection_dim": 1_048_576 }), &["visual_projection", "1048576×24"]),
        ("siglip2", json!({ "vision_config": { "num_patches": 1_048_576 } }), &["position_embedding"]),
    ] {
        let published = configured(name, changes.clone());
        refuses_cheaply(published.path(), parts);
        refuses(published.path(), EMBED, &[&["net/"], parts].concat());
    }
    for nonsense in ["", "{", "[]", "7", "\"vit\"", "<html>", "null"] {
        let published = Published::new("vit");
        for file in ["config.json", "preprocessor_config.json"] {
            let whole = std::fs::read(published.net(file)).expect("a file");
            write(published.path(), &format!("net/{file}"), nonsense.as_bytes());
            refuses(published.path(), EMBED, &[&format!("`net/{file}`")]);
            write(published.path(), &format!("net/{file}"), &whole);
        }
    }
}

#[test]
fn preparations_that_cannot_be_meant_are_refused() {
    for (config, expected) in [
        (json!({ "resample": 7 }), "`resample`: expected a filter of Pillow, 0 to 5, found 7"),
        (json!({ "size": 0 }), "`size`: expected a side"),
        (json!({ "size": 1_000_000_000 }), "up to 4096, found 1000000000"),
        (json!({ "size": { "height": 24 } }), "`size`: expected a side"),
        (json!({ "image_std": [0.5, -0.5, 0.5] }), "`image_std`: expected three positive numbers"),
        (json!({ "image_mean": "half" }), "`image_mean`: expected three numbers, found \"half\""),
        (json!({ "rescale_factor": 0 }), "`rescale_factor`: expected a positive number, found 0"),
        (json!({ "do_resize": false }), "`do_resize`: expected true"),
    ] {
        let published = Published::new("vit");
        write(published.path(), "net/preprocessor_config.json", config.to_string().as_bytes());
        refuses_cheaply(published.path(), &["`net/preprocessor_config.json`: ", expected, "hint: "]);
    }
    let published = Published::new("vit");
    write(published.path(), "net/preprocessor_config.json", br#"{"size": 4}"#);
    refuses(
        published.path(),
        EMBED,
        &["image size: expected at least one patch of 8×8, found 4×4", "hint: "],
    );
    let line = format!("{EMBED} --image-size 4096");
    refuses(published.path(), &line, &["image size: expected at most 2896 pixels per side", "hint: "]);
}

#[test]
fn weights_that_do_not_fit_are_refused_by_their_tensor() {
    let same = "hint: configuration and weights must be of the same network";
    let published = configured("vit", json!({ "hidden_size": 48, "num_attention_heads": 2 }));
    let shapes = "tensor `embeddings.patch_embeddings.projection.weight`: expected 48×3×8×8, found 24×3×8×8";
    refuses(published.path(), EMBED, &["`net/model.safetensors`: ", shapes, same]);

    let mut published = Published::new("vit");
    let gone = published.tensors.iter().position(|(name, _, _)| name == "layernorm.bias").expect("it");
    let bias = published.tensors.remove(gone);
    save(&published.tensors, &published.net("model.safetensors"), Precision::F32);
    refuses(published.path(), EMBED, &["tensor `layernorm.bias`: expected 24 numbers, found none", same]);

    let mut more = Published::new("vit");
    more.tensors.push(("encoder.layer.1.attention.q_norm.weight".to_owned(), vec![12], vec![1.0; 12]));
    save(&more.tensors, &more.net("model.safetensors"), Precision::F32);
    let left =
        "tensor `encoder.layer.1.attention.q_norm.weight`: expected none of this name in vit, found one";
    refuses(more.path(), EMBED, &["`net/model.safetensors`: ", left, same]);

    for (value, found) in [(f32::NAN, "found NaN"), (f32::NEG_INFINITY, "found -inf")] {
        let (name, shape, mut values) = bias.clone();
        values[7] = value;
        let tensors = [&published.tensors[..], &[(name, shape, values)]].concat();
        save_bf16(&tensors, &published.net("model.safetensors")); // we ourselves write no such numbers
        let place = "tensor `layernorm.bias`, number 7: expected a finite number";
        refuses(published.path(), EMBED, &["`net/model.safetensors`", place, found, "hint: ", "damaged"]);
    }
    save_bf16(&published.tensors, &published.net("model.safetensors")); // without a header of ours
    let pass = [
        "`net/model.safetensors` does not contain a supported network",
        "hint: ",
        "`labelsieve embed --model net`",
    ];
    refuses(published.path(), &EMBED.replace("--model net", "--model net/model.safetensors"), &pass);
}

#[test]
fn files_that_are_cut_short_or_missing_are_named() {
    let published = Published::new("dinov2");
    let whole = std::fs::read(published.net("model.safetensors")).expect("a file");
    for length in [0, 5, 300, whole.len() - 9] {
        write(published.path(), "net/model.safetensors", &whole[..length]);
        refuses(published.path(), EMBED, &["`net/model.safetensors`", "hint: "]);
    }
    // A clone of the hub's repository without its large files.
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n";
    write(published.path(), "net/model.safetensors", pointer);
    refuses(published.path(), EMBED, &["`net/model.safetensors`", "hint: ", "`git lfs pull`"]);
    write(published.path(), "net/model.safetensors", &whole);
    write_shards(&published);
    let shard = std::fs::read(published.net("model-2.safetensors")).expect("a shard");
    write(published.path(), "net/model-2.safetensors", &shard[..shard.len() - 9]);
    refuses(published.path(), EMBED, &["`net/model-2.safetensors`", "file is truncated", "hint: "]);
    std::fs::remove_file(published.net("model-2.safetensors")).expect("removed");
    let absent = ["`net/model-2.safetensors`", "but `net/model.safetensors.index.json` lists it", "hint: "];
    refuses(published.path(), EMBED, &absent);
    for index in ["{", "[]", r#"{"weight_map": {"a": 3}}"#, r#"{"weight_map": {"a": "../x"}}"#] {
        write(published.path(), "net/model.safetensors.index.json", index.as_bytes());
        refuses(published.path(), EMBED, &["`net/model.safetensors.index.json`"]);
    }
    write(published.path(), "net/model.safetensors.index.json", br#"{"weight_map": {}}"#);
    refuses(published.path(), EMBED, &["net/model.safetensors.index.json`", "tensor `embeddings."]);
}

#[test]
fn a_folder_is_no_network_to_train_on_or_to_predict_with() {
    let published = Published::new("vit");
    let folder = published.path();
    for line in ["predict --model net --images photos", "evaluate --model net --images photos"] {
        refuses(folder, line, &["`net`", "hint: ", "labelsieve embed"]);
    }
    // From another directory, by another spelling of the path.
    let photos = folder.join("photos");
    let model =
        format!("embed --model ../net/ --images . --device cpu -o {}", folder.join("G.npy").display());
    let done = command(&photos, &model).output().expect("the binary starts");
    assert!(done.status.success(), "{done:?}");
}
