//! The systems that the paper compares with: trained from files, and used as any other classifier.

use std::path::Path;

use labelsieve_files::SavedClassifier;

use crate::common::{bytes, listing, refuses, run};
use crate::damage::poison;
use crate::examples::{Examples, task_folder};
use crate::pictures::write;
use crate::product::product;
use crate::stopping::held;

const CLEAN: &str =
    "score --clean C.npz --pool N.npz --method gcn --lambda 0.01 --seed 0 --threads 2 -o R.parquet";
const TRAIN: &str =
    "train --clean C.npz --pool N.npz --relevance R.parquet --classifier prototype -o M.safetensors";
const EVALUATE: &str = "evaluate --model M.safetensors --test T.npz --json";

fn accuracy(folder: &Path) -> f64 {
    run(folder, EVALUATE).ok().json()["top_1"].as_f64().expect("a number")
}

#[test]
fn attention_to_base_classes_is_learned_saved_and_used_in_place_of_prototypes() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    product(folder, CLEAN);
    let learn = "train-attention --base T.npz --posing 2 --steps 40 -o";
    let learned = run(folder, &format!("{learn} G.safetensors --threads 1")).ok();
    assert!(
        learned.err.contains("attention over 6 base classes written to `G.safetensors`; loss "),
        "{learned:?}"
    );
    run(folder, &format!("{learn} H.safetensors --threads 3")).ok();
    assert_eq!(bytes(folder, "G.safetensors"), bytes(folder, "H.safetensors"));

    let train = TRAIN.replace("prototype", "attention");
    run(folder, &train).fails_with(&["--attention <FILE>"]);
    run(folder, &format!("{train} --attention R.parquet")).fails_with(&["`R.parquet`"]);
    run(folder, &format!("{train} --attention G.safetensors")).ok();
    assert!(accuracy(folder) > 0.4);
    let saved = SavedClassifier::load(folder.join("M.safetensors")).expect("the file just written");
    assert_eq!(saved.settings["classifier"], "attention");
}

#[test]
fn labels_that_spread_over_one_graph_are_a_classifier_too() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    product(folder, CLEAN);
    let train = TRAIN.replace("prototype", "diffusion --iterations 2");
    run(folder, &format!("{train} --threads 1")).ok();
    let first = bytes(folder, "M.safetensors");
    assert!(accuracy(folder) > 0.4, "diffusion");
    run(folder, &format!("{train} --threads 3")).ok();
    assert_eq!(bytes(folder, "M.safetensors"), first);
    run(folder, "predict --model M.safetensors --features T.npz --top 2 -o P.csv").ok();
    for options in ["--labels own", "--logistic 0.5", "--background T.npz --labels any"] {
        run(folder, &format!("{train} {options}")).ok();
        assert!(accuracy(folder) > 0.4, "{options}");
    }
    run(folder, &format!("{train} --logistic 2"))
        .fails_with(&["weight of the fusion: expected a number in [0, 1], found 2"]);
    run(folder, &TRAIN.replace("prototype", "pmn --episodes E.safetensors --iterations 2"))
        .fails_with(&["--iterations", "--classifier diffusion"]);
    let base = format!("{train} --base M.safetensors");
    run(folder, &base).fails_with(&["a diffusion has no class weights", "hint: leave out --base"]);
}

#[test]
fn systems_learn_from_episodes_of_base_classes_and_then_new_ones() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    product(folder, CLEAN);
    for (system, classifier) in [("hallucination", "hallucination"), ("pmn", "pmn"), ("prototypical", "pmn")]
    {
        let learn = format!("train-episodes --base T.npz --system {system} --ways 4 --steps 20 -o");
        let learned = run(folder, &format!("{learn} E.safetensors --threads 1")).ok();
        assert!(
            learned.err.contains("system of 6 base classes written to `E.safetensors`; loss "),
            "{learned:?}"
        );
        run(folder, &format!("{learn} F.safetensors --threads 3")).ok();
        assert_eq!(bytes(folder, "E.safetensors"), bytes(folder, "F.safetensors"), "{system}");
        let train = TRAIN.replace("prototype", classifier);
        run(folder, &train).fails_with(&["--episodes <FILE>"]);
        let trained = run(folder, &format!("{train} --episodes E.safetensors")).ok();
        let is_told =
            trained.err.contains("is of the kind `prototypical`, which sees classes without their context");
        assert_eq!(is_told, system == "prototypical", "{trained:?}");
        assert!(accuracy(folder) > 0.4, "{system}");
        run(folder, "predict --model M.safetensors --features T.npz -o P.csv").ok();
    }
    let train = TRAIN.replace("prototype", "hallucination");
    run(folder, &format!("{train} --episodes E.safetensors"))
        .fails_with(&["the system in `E.safetensors` has no hallucinator", "hint: "]);
    std::fs::copy(folder.join("M.safetensors"), folder.join("L.safetensors")).expect("disk space");
    run(folder, &format!("{train} --episodes L.safetensors"))
        .fails_with(&["`L.safetensors`: `kind`: expected `episodes`"]);
    run(folder, "train-episodes --base T.npz --system pmn --ways 7 -o E.safetensors")
        .fails_with(&["`T.npz` has 6 base classes, but an episode takes 7", "hint: lower --ways"]);
}

#[test]
fn the_product_reads_no_file_of_a_compared_system() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    product(folder, CLEAN);
    run(folder, &TRAIN.replace("prototype", "diffusion")).ok();
    let refused = labelsieve_jobs::inputs::classifier::load_classifier(&folder.join("M.safetensors"));
    let message = refused.err().expect("class weights alone").to_string();
    assert!(
        message.contains("M.safetensors") && message.contains("description of a classifier"),
        "{message}"
    );
}

#[test]
fn numbers_that_cannot_be_are_refused_with_file_tensor_and_position() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    product(folder, CLEAN);
    run(folder, "train-attention --base T.npz --posing 2 --steps 4 -o G.safetensors").ok();
    let train = TRAIN.replace("prototype", "attention --attention X-G.safetensors");
    poison(folder, "G.safetensors", "scale", 0.0);
    let scale = "tensor `scale`, number 0: expected a positive number, found 0";
    refuses(folder, &train, &["`X-G.safetensors`: ", scale]);
    poison(folder, "G.safetensors", "keys", f32::NAN);
    let keys = "tensor `keys`, number 0: expected a finite number, found NaN";
    refuses(folder, &train, &["`X-G.safetensors`: ", keys]);
}

#[test]
fn an_output_in_the_place_of_any_file_of_the_command_is_refused() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    product(folder, CLEAN);
    product(folder, &TRAIN.replace("M.safetensors", "W.safetensors"));
    run(folder, "train-attention --base C.npz --steps 1 --posing 2 --most-shots 1 -o A.safetensors").ok();
    write(folder, "labels.txt", b"x");
    Examples::new(2, &[1.0, 0.0], &[0]).npz_with_labels(folder.join("K.npz"), &[0]);
    for (target, link) in
        [("C.npz", "C-link.safetensors"), ("K.npz", "K-link.npy"), ("labels.txt", "labels-link.safetensors")]
    {
        std::fs::hard_link(folder.join(target), folder.join(link)).expect("disk space");
    }
    let attention = "train --classifier attention --attention A.safetensors --clean C.npz --pool N.npz --relevance R.parquet";
    for (line, output) in [
        (attention, "A.safetensors"),
        ("train-attention --base C.npz", "C-link.safetensors"),
        ("train-attention --base C.npz --base-classifier W.safetensors", "W.safetensors"),
        ("train-attention --base C.npz --base-labels labels.txt", "labels-link.safetensors"),
    ] {
        let message = format!("the output `{output}` would replace the input `");
        refuses(folder, &format!("{line} -o {output}"), &[&message, "hint: choose another name"]);
    }
    let message = "the output `K-link.npy` would replace the input `K.npz`";
    refuses(folder, "class K.npz --out K-link.npy", &[message]);
    for (line, ending) in
        [("train-attention --base B -o m.bin", ".safetensors"), ("class F --out r.npz", ".npy")]
    {
        let message = format!("the extension must be {ending}\nhint: the extension decides the format");
        refuses(folder, line, &[&message]);
    }
}

#[test]
fn a_training_is_refused_while_another_works_on_its_output() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    let attention = "train-attention --base C.npz --steps 2 --posing 2 -o O.safetensors";
    let lock = held(folder, "O.safetensors.lock");
    refuses(folder, attention, &["another process is using `O.safetensors`", "hint: wait until"]);
    drop(lock); // as a kill would: the file stays
    assert!(folder.join("O.safetensors.lock").exists());
    run(folder, attention).ok();
    assert!(!listing(folder).iter().any(|name| name.contains("lock")), "{:?}", listing(folder));
}

#[test]
fn settings_out_of_range_and_options_that_do_nothing_are_refused_by_name() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    let attention = "train-attention --base C.npz -o O.safetensors";
    const HUGE: [&str; 4] = ["0", "4294967296", "18446744073709551615", "-1"];
    for (line, option, message) in [
        (attention, "--steps", "steps: expected 1 to 1000000, found "),
        (attention, "--posing", ": expected "),
        (attention, "--most-shots", "most_shots: expected 1 to 1000000, found "),
        ("class C.npz", "--repeats", ""),
        ("sanity", "--shots", "expected an integer from 1 to 1000"),
    ] {
        for number in HUGE {
            // A number that looks like an option is refused by the parser.
            let message = if number == "-1" { "" } else { message };
            refuses(folder, &format!("{line} {option} {number}"), &[message]);
        }
    }
    for (line, message) in [
        ("paper --features . --splits . --shots 3", "expected one of 1, 2, 5, 10, 20"),
        ("paper --features . --splits . --episodes 6", "'6' for '--episodes <EPISODES>'"),
    ] {
        refuses(folder, line, &[message]);
    }
    let no_columns = "none of the inputs has columns, so ";
    refuses(folder, &format!("{attention} --id-column id"), &[no_columns, "hint: "]);
    let diffusion = TRAIN.replace("prototype", "diffusion --attention A.safetensors");
    refuses(folder, &diffusion, &["--classifier diffusion does not use --attention", "hint: "]);
    let attention = TRAIN.replace("prototype", "attention --attention A.safetensors --epochs 3");
    refuses(folder, &attention, &["unexpected argument '--epochs'"]);
}
