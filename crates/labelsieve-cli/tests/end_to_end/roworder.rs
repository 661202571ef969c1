//! Results do not depend on the order of rows and classes, a closed pipe or a second process.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use arrow_array::{ArrayRef, StringArray};
use labelsieve_files::read_relevance;
use labelsieve_numerics::random::Stream;

use crate::common::{listing, refuses, run, with_closed_stdout};
use crate::embed::{png, write, write_model};
use crate::examples::{Examples, RECIPE, class_name, clean_of, noisy_of, task_folder, write_parquet};
use crate::stopping::held;

/// The rows of `order`, each with an id that it keeps wherever it stands.
fn write_rows(examples: &Examples, order: &[usize], path: &Path) {
    let mut embedding = FixedSizeListBuilder::new(Float32Builder::new(), examples.dim as i32);
    for &row in order {
        embedding.values().append_slice(&examples.features[row * examples.dim..(row + 1) * examples.dim]);
        embedding.append(true);
    }
    let ids = order.iter().map(|row| format!("row-{row}"));
    let classes = order.iter().map(|&row| class_name(examples.classes[row]));
    write_parquet(
        path.to_path_buf(),
        [
            ("id", Arc::new(StringArray::from_iter_values(ids)) as ArrayRef),
            ("class", Arc::new(StringArray::from_iter_values(classes))),
            ("embedding", Arc::new(embedding.finish())),
        ],
    );
}

/// The relevance of every candidate, by class and id.
fn relevance(folder: &Path, line: &str) -> HashMap<(String, String), f32> {
    run(folder, &format!("score {line} --seed 3 --device cpu -o R.parquet")).ok();
    let table = read_relevance(folder.join("R.parquet")).expect("a relevance file");
    let noisy = (0..table.ids.len()).filter(|&i| !table.is_clean[i]);
    noisy.map(|i| ((table.classes.get(i).to_owned(), table.ids[i].to_owned()), table.relevance[i])).collect()
}

const METHODS: [&str; 7] = ["gcn", "mlp", "label-propagation", "similarity", "linear", "mixture", "auto"];

#[test]
fn shuffled_candidates_have_the_same_relevance() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let task = RECIPE.generate(0);
    let clean = clean_of(&task);
    let noisy = noisy_of(&task);
    write_rows(&clean, &(0..clean.len()).collect::<Vec<_>>(), &folder.join("C.parquet"));
    write_rows(&noisy, &(0..noisy.len()).collect::<Vec<_>>(), &folder.join("N.parquet"));
    write_rows(&noisy, &Stream::new(1).choose(noisy.len(), noisy.len()), &folder.join("S.parquet"));
    for method in METHODS {
        let before = relevance(folder, &format!("--clean C.parquet --pool N.parquet --method {method}"));
        let after = relevance(folder, &format!("--clean C.parquet --pool S.parquet --method {method}"));
        assert!(before.len() > 290 && before.len() == after.len(), "a few are copies of clean examples");
        for (candidate, relevance) in &before {
            let gap = (after[candidate] - relevance).abs();
            assert!(gap <= 1e-4, "{method}, {candidate:?}: {relevance} became {}", after[candidate]);
        }
    }
}

#[test]
fn neither_the_order_of_classes_nor_candidates_of_another_class_change_a_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let task = RECIPE.generate(0);
    let clean = clean_of(&task);
    let noisy = noisy_of(&task);
    let all: Vec<usize> = (0..noisy.len()).collect();
    let (few, last): (Vec<usize>, Vec<usize>) =
        all.iter().partition(|&&row| noisy.classes[row] + 1 < RECIPE.n_classes || row % 2 == 0);
    // Whole classes change places, their rows do not.
    let turned: Vec<usize> = (0..RECIPE.n_classes)
        .rev()
        .flat_map(|class| (0..clean.len()).filter(|&row| clean.classes[row] == class).collect::<Vec<_>>())
        .collect();
    write_rows(&clean, &(0..clean.len()).collect::<Vec<_>>(), &folder.join("C.parquet"));
    write_rows(&clean, &turned, &folder.join("T.parquet"));
    write_rows(&noisy, &few, &folder.join("N.parquet"));
    write_rows(&noisy, &[few, last].concat(), &folder.join("M.parquet"));
    for method in METHODS {
        let before = relevance(folder, &format!("--clean C.parquet --pool N.parquet --method {method}"));
        let others = relevance(folder, &format!("--clean T.parquet --pool N.parquet --method {method}"));
        assert_eq!(before, others, "{method}: classes in another order");
        let more = relevance(folder, &format!("--clean C.parquet --pool M.parquet --method {method}"));
        let grown = class_name(RECIPE.n_classes - 1);
        for (candidate, relevance) in before.iter().filter(|((class, _), _)| *class != grown) {
            assert_eq!(more[candidate], *relevance, "{method}, {candidate:?}: `{grown}` has grown");
        }
    }
}

#[test]
fn a_demo_with_a_closed_stdout_still_writes_its_report() {
    let folder = tempfile::tempdir().expect("a folder");
    with_closed_stdout(folder.path(), "demo -q");
    let names = listing(folder.path());
    for name in ["report.html", "run/tables.json", "run/relevance.parquet"] {
        assert!(names.contains(&format!("labelsieve-demo/{name}")), "no {name}: {names:?}");
    }
}

#[test]
fn files_are_written_though_stdout_is_closed() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    run(folder, "score --clean C.npz --pool N.npz -o R.parquet").ok();
    run(folder, "train --clean C.npz --pool N.npz --relevance R.parquet -o M.safetensors").ok();
    with_closed_stdout(folder, "predict --model M.safetensors --features T.npz -o P.parquet");
    with_closed_stdout(folder, "predict --model M.safetensors --features N.npz");
    with_closed_stdout(folder, "evaluate --model M.safetensors --test T.npz");
    std::fs::write(folder.join("c.toml"), "[[class]]\nid = \"owl\"\nnames = [\"owl\"]\n").expect("a file");
    std::fs::write(folder.join("t.csv"), "id,caption\n1,an owl\n2,a fox\n").expect("a file");
    with_closed_stdout(folder, "match --classes c.toml --text t.csv --stats S.json -o X.parquet");
    for name in ["P.parquet", "S.json", "X.parquet"] {
        assert!(folder.join(name).exists(), "no {name}");
    }
}

#[test]
fn a_training_is_refused_while_another_works_on_its_output() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    for class in ["owl", "fox"] {
        for i in 0..4 {
            write(folder, &format!("base/{class}/{i}.png"), &png(i));
        }
    }
    write_model(&folder.join("M.safetensors"), 0);
    run(folder, "score --clean C.npz --pool N.npz -o R.parquet").ok();
    let pretrain = "pretrain --images base --architecture convnet128 --size 16 --epochs 1 --batches 1 --batch-size 4 \
                    --device cpu -o O.safetensors";
    let finetune = "finetune --network M.safetensors --images base --relevance R.parquet \
                    --device cpu -o O.safetensors";
    for line in [pretrain, finetune] {
        let lock = held(folder, "O.safetensors.lock");
        refuses(folder, line, &["another process is using `O.safetensors`", "hint: wait until"]);
        drop(lock); // as a kill would: the file stays
        assert!(folder.join("O.safetensors.lock").exists());
    }
    run(folder, pretrain).ok();
    assert!(!listing(folder).iter().any(|name| name.contains("lock")), "{:?}", listing(folder));
}

#[test]
fn counts_out_of_range_are_refused_and_never_a_panic() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    write(folder, "base/owl/1.png", &png(1));
    write(folder, "base/fox/1.png", &png(2));
    write_model(&folder.join("M.safetensors"), 0);
    run(folder, "score --clean C.npz --pool N.npz -o R.parquet").ok();
    let pretrain = "pretrain --images base --architecture convnet128 --device cpu -o O.safetensors";
    let cosine = "train --clean C.npz --pool N.npz --relevance R.parquet --classifier cosine --device cpu -o O.safetensors";
    let embed = "embed --model M.safetensors --images base --device cpu -o O.parquet";
    let finetune = "finetune --network M.safetensors --images base --relevance R.parquet --device cpu \
                    -o O.safetensors";
    const HUGE: [&str; 4] = ["0", "4294967296", "18446744073709551615", "-1"];
    for (line, option, message) in [
        (pretrain, "--epochs", "epochs: expected 1 to 1000000, found "),
        (pretrain, "--batches", "batches per epoch: expected 1 to "),
        (pretrain, "--batch-size", "batch size: expected at "),
        (pretrain, "--size", "image size: expected "),
        (finetune, "--epochs", "epochs: expected 1 to 1000000, found "),
        (finetune, "--batch-size", "batch size: expected at "),
        (cosine, "--epochs", "epochs: expected 1 to 1000000, found "),
        (embed, "--batch", "expected an integer from 1 to 65536"),
        (embed, "--image-size", "expected HEIGHTxWIDTH, each from 1 to 4096"),
        (embed, "--pca-output P.safetensors --fit-pca", ""),
    ] {
        for number in HUGE {
            // A number that looks like an option is refused before anybody reads it.
            let message = if number == "-1" { "" } else { message };
            refuses(folder, &format!("{line} {option} {number}"), &[message]);
        }
    }
    for line in [cosine, &cosine.replace("cosine", "cosine --epochs 1")] {
        for size in ["1", "4294967296", "18446744073709551615"] {
            run(folder, &format!("{line} --batch-size {size}")).ok(); // one batch of all
        }
    }
}
