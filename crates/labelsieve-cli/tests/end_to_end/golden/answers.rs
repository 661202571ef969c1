//! The whole `--json` answers.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use super::files::Golden;
use super::stable::stable;
use crate::class_text::write_texts;
use crate::common::{command, run};
use crate::embed::{png, write, write_model};
use crate::examples::{class_name, clean_of, noisy_of, task_folder, write_truth};
use crate::networks::{FINETUNE, PRETRAIN, base_folder, draw, novel_folder};
use crate::pictures::copy_small_network;

/// `labelsieve COMMAND OPTIONS --json` must answer what `answers/NAME.json` says.
#[track_caller]
fn check(golden: &mut Golden, folder: &Path, name: &str, line: &str) {
    let done = run(folder, &format!("{line} --json")).ok();
    golden.check(&format!("answers/{name}.json"), &stable(&done.out));
}

#[test]
fn placeholders_and_rounded_numbers_keep_the_layout() {
    let answer = "{\n  \"version\": \"0.1.0\",\n  \"seconds\": {\n    \"total\": 1.5e-7\n  },\n  \"a\": [\n    0.12345,\n    7\n  ]\n}";
    let expected = "{\n  \"version\": \"{version}\",\n  \"seconds\": {\n    \"total\": \"{total}\"\n  },\n  \"a\": [\n    0.1235,\n    7\n  ]\n}\n";
    assert_eq!(stable(answer), expected.replace("0.1235", &format!("{:.4}", 0.12345)));
}

#[test]
fn answers_about_relevance_stay_as_they_are() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    clean_of(&task).parquet(folder.join("C.parquet"), "c");
    noisy_of(&task).parquet(folder.join("N.parquet"), "n");
    let mut golden = Golden::default();
    let mut check = |name: &str, line: &str| check(&mut golden, folder, name, line);
    let pools = "--clean C.parquet --pool N.parquet --device cpu";
    check("score-dry-run", &format!("score {pools} --dry-run"));
    for method in ["gcn", "mlp", "label-propagation", "similarity", "linear", "beta", "mixture", "auto"] {
        check(&format!("score-{method}"), &format!("score {pools} --method {method} -o {method}.parquet"));
    }
    let mut decisions = "id,class,decision\n".to_owned();
    for (row, &class) in noisy_of(&task).classes.iter().enumerate().step_by(5) {
        let decision = ["accept", "reject", "unsure"][row / 5 % 3];
        decisions += &format!("n{row},{},{decision}\n", class_name(class));
    }
    write(folder, "d.csv", decisions.as_bytes());
    check("score-decisions", &format!("score {pools} --decisions d.csv -o decided.parquet"));
    check("decisions-import", "decisions import d.csv -o d.parquet");
    check("decisions-show", "decisions show d.parquet");
    check("evaluate-decisions", "evaluate --relevance auto.parquet --decisions d.csv");

    check("plan", &format!("plan {pools} --method gcn --bins 2 -o plan.json"));
    for bin in 0..2 {
        let line = format!("score {pools} --method gcn --plan plan.json --bin {bin} -o parts/{bin}.parquet");
        std::fs::create_dir_all(folder.join("parts")).expect("disk space");
        check(&format!("score-bin-{bin}"), &line);
    }
    check("merge", "merge parts -o merged.parquet");
    review_answer(&mut golden, folder);
    golden.finish();
}

/// A review prints its answer and goes on.
fn review_answer(golden: &mut Golden, folder: &Path) {
    let line =
        "review gcn.parquet --clean C.parquet --pool N.parquet -o D.parquet --no-open --device cpu --json";
    let mut review =
        command(folder, line).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut answer = String::new();
    for line in BufReader::new(review.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("text");
        answer += &format!("{line}\n");
        if line == "}" {
            break;
        }
    }
    review.kill().expect("it runs");
    review.wait().expect("it ends");
    golden.check("answers/review.json", &stable(&answer));
}

#[test]
fn answers_about_classifiers_stay_as_they_are() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    write_truth(&task, folder.join("truth.parquet"));
    let mut golden = Golden::default();
    let mut check = |name: &str, line: &str| check(&mut golden, folder, name, line);
    let pools = "--clean C.npz --pool N.npz --device cpu";
    run(folder, &format!("score {pools} -o R.parquet")).ok();
    write_texts(folder, "text.parquet", None);
    check("score-class-text", &format!("score {pools} --class-text text.parquet -o X.parquet"));
    check("train", &format!("train {pools} --relevance R.parquet -o M.safetensors"));
    let cosine = format!("train {pools} --relevance R.parquet --classifier cosine --epochs 3");
    check("train-cosine", &format!("{cosine} -o W.safetensors"));
    check("predict-features", "predict --model W.safetensors --features T.npz -o P.csv");
    let baseline = "--baseline M.safetensors --relevance R.parquet";
    check("evaluate-model", &format!("evaluate --model W.safetensors --test T.npz {baseline}"));
    check("evaluate-truth", "evaluate --relevance R.parquet --truth truth.parquet");
    check("report", "report R.parquet -o R.html");
    check("report-figures", "report R.parquet --figures figures");
    golden.finish();
}

#[test]
fn answers_about_texts_and_images_stay_as_they_are() {
    let folder = novel_folder();
    let folder = folder.path();
    let mut golden = Golden::default();
    let mut check = |name: &str, line: &str| check(&mut golden, folder, name, line);
    check("classes", "classes base -o classes.toml");
    write(folder, "texts.csv", b"id,caption\n1,long rows\n2,two columns\n3,nothing\n4,a row of columns\n");
    check("match", "match --classes classes.toml --text texts.csv -o M.parquet");
    std::fs::create_dir(folder.join("shards")).expect("disk space");
    check("match-shard", "match --classes classes.toml --text texts.csv --shard 0/1 -o shards/0.parquet");
    check("merge-match", "merge shards -o merged.parquet");
    check("pretrain", &format!("{PRETRAIN} -o E.safetensors"));
    check("embed", "embed --model N.safetensors --images base --device cpu -o E.npz");
    check(
        "embed-pca",
        "embed --model N.safetensors --images base --fit-pca 4 --pca-output PCA.safetensors --device cpu -o P.npz",
    );
    check("finetune", &format!("{FINETUNE} -o F.safetensors"));
    check("predict-images", "predict --model F.safetensors --images test --device cpu -o P.csv");
    golden.finish();
}

#[test]
fn the_answer_of_a_run_stays_as_it_is() {
    let folder = base_folder();
    let folder = folder.path();
    copy_small_network(folder);
    draw(folder, "pool", &["columns", "rows"], 4, 200);
    let mut captions = "file_name,caption\n".to_owned();
    for class in ["columns", "rows"] {
        (200..204).for_each(|i| captions += &format!("{class}/{i:03}.png,some {class}\n"));
    }
    write(folder, "pool/metadata.csv", captions.as_bytes());
    let mut golden = Golden::default();
    check(
        &mut golden,
        folder,
        "run",
        "run --clean base --pool pool --model tiny-resnet10.safetensors --device cpu -o RUN",
    );
    golden.finish();
}

/// An embedding with pictures that cannot be read.
#[test]
fn the_answer_about_skipped_images_stays_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write_model(&folder.join("M.safetensors"), 0);
    (0..3).for_each(|i| write(folder, &format!("photos/{i}.png"), &png(i)));
    write(folder, "photos/bad.png", b"bad");
    let mut golden = Golden::default();
    check(
        &mut golden,
        folder,
        "embed-skipped",
        "embed --model M.safetensors --images photos --device cpu -o E.npz",
    );
    golden.finish();
}
