//! The whole `--json` answers.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use super::Golden;
use crate::class_text::write_texts;
use crate::common::{command, run};
use crate::embed::{png, write, write_model};
use crate::examples::{class_name, clean_of, noisy_of, task_folder, write_truth};
use crate::networks::{FINETUNE, PRETRAIN, base_folder, draw, novel_folder};
use crate::{bench_photos, release};

/// Fields that say how fast or large something was, or on what machine and with which version.
const VOLATILE: [&str; 24] = [
    "grid_seconds",
    "images_per_second",
    "longest_bin_seconds",
    "memory_bytes",
    "n_bytes",
    "n_threads",
    "peak_mib",
    "run",
    "scratch_bytes",
    "search_gflops",
    "seconds",
    "seconds_per_class",
    "table_bytes",
    "threads",
    "times_gcn",
    "total",
    "train_gflops",
    "train_gigabytes_per_second",
    "url",
    "useful_bins",
    "version",
    // The stages of `bench class`:
    "graph",
    "search",
    "train",
];

/// The answer with placeholders for what is [`VOLATILE`] and numbers of four decimals.
pub fn stable(answer: &str) -> String {
    answer.lines().map(|line| stable_line(line) + "\n").collect()
}

fn stable_line(line: &str) -> String {
    let content = line.trim_start();
    let indent = &line[..line.len() - content.len()];
    let (content, comma) = content.strip_suffix(',').map_or((content, ""), |content| (content, ","));
    let field = content.strip_prefix('"').and_then(|rest| rest.split_once("\": "));
    let Some((name, value)) = field else { return format!("{indent}{}{comma}", rounded(content)) };
    let is_simple = !matches!(value, "{" | "[" | "null");
    let value =
        if is_simple && VOLATILE.contains(&name) { format!("\"{{{name}}}\"") } else { rounded(value) };
    format!("{indent}\"{name}\": {value}{comma}")
}

fn rounded(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(number) if value.contains(['.', 'e']) => {
            format!("{:.4}", number + 0.0).replace("-0.0000", "0.0000")
        }
        _ => value.to_owned(),
    }
}

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
    check("train-attention", "train-attention --base C.npz --steps 4 --posing 2 -o A.safetensors");
    for system in ["hallucination", "prototypical", "pmn"] {
        let line = format!("train-episodes --base C.npz --system {system} --ways 4 --steps 4");
        check(&format!("train-episodes-{system}"), &format!("{line} -o {system}.safetensors"));
    }
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
        "run --clean base --pool pool --model tiny-resnet10 --device cpu -o RUN",
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

/// Photos with one rule, one shot and one episode.
pub fn short_photo_folder() -> tempfile::TempDir {
    let folder = bench_photos::photo_folder();
    let config = bench_photos::CONFIG.replace("\"phrase\", \"any-word\"", "\"phrase\"");
    let config = config.replace("shots = [1, 3]\nepisodes = 2", "shots = [1]\nepisodes = 1");
    assert_eq!(config.matches("[1]").count(), 2, "{config}");
    write(folder.path(), "c.toml", config.as_bytes());
    folder
}

#[test]
fn answers_of_benchmarks_stay_as_they_are() {
    let mut golden = Golden::default();
    let photos = short_photo_folder();
    check(&mut golden, photos.path(), "bench-photos", bench_photos::BENCH);
    check(&mut golden, photos.path(), "bench-sanity", "bench sanity --shots 1");
    let five_way = bench_photos::BENCH.replace("RUN", "5WAY");
    check(&mut golden, photos.path(), "bench-photos-5way", &format!("{five_way} --protocol 5way"));
    let lists = bench_photos::mini_imagenet_folder();
    let line = "bench mini-imagenet --splits . --images . -o mini.parquet";
    check(&mut golden, lists.path(), "bench-mini-imagenet", line);
    let paper = tempfile::tempdir().expect("a folder");
    release::write(paper.path());
    let line = "bench paper --features . --splits . --run run --shots 1 --episodes 1";
    check(&mut golden, paper.path(), "bench-paper", &format!("{line} --no-cosine"));
    check(&mut golden, paper.path(), "bench-paper-dry-run", &format!("{line} --dry-run"));
    let line = "bench relevance -o out --sets generated-small --shots 1 --draws 1 --methods label-propagation --device cpu";
    check(&mut golden, paper.path(), "bench-relevance", line);
    golden.finish();
}
