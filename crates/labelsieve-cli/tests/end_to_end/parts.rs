//! Work in parts: bins of a plan, or shards, merged into the file of a single run, byte for byte.

use std::path::Path;

use labelsieve_files::{FeatureLayout, FeatureRows, FeatureWriter, Precision};
use labelsieve_matching::{CandidateRow, CandidateWriter};
use serde_json::Value;

use crate::common::{bytes, listing, refuses, run, shell};
use crate::examples::{Examples, class_name, clean_of, noisy_of, task_folder};
use crate::json::check_answer;
use crate::resume::{holds_work, kill, slow_folder, stopped_when};

const GCN: &str = "--clean C.parquet --pool N.parquet --method gcn --lambda 0.01 --device cpu";
const AUTO: &str = "--clean C.parquet --pool N.parquet --device cpu --seed 7";

/// `C.parquet` and `N.parquet` of six classes, of which one has no candidates.
fn folder() -> tempfile::TempDir {
    let (folder, task) = task_folder();
    clean_of(&task).parquet(folder.path().join("C.parquet"), "c");
    noisy().parquet(folder.path().join("N.parquet"), "n");
    folder
}

fn noisy() -> Examples {
    noisy_of(&crate::examples::RECIPE.generate(0)).only(|class| class != 2)
}

/// Makes a plan with these bins.
fn plan(folder: &Path, arguments: &str, bins: usize) -> Value {
    run(folder, &format!("plan {arguments} --bins {bins} -o plan.json")).ok();
    serde_json::from_slice(&bytes(folder, "plan.json")).expect("JSON")
}

/// The positions of the classes of a bin.
fn classes_of(bin: &Value) -> Vec<usize> {
    let classes = bin["classes"].as_array().expect("positions").iter();
    classes.map(|class| class.as_u64().expect("a position") as usize).collect()
}

/// Scores all bins of `plan.json` into `folder/parts`, the last one first.
fn score_bins(folder: &Path, arguments: &str, bins: usize) {
    let _ = std::fs::create_dir(folder.join("parts"));
    for bin in (0..bins).rev() {
        let line = format!("score {arguments} --plan plan.json --bin {bin} -o parts/{bin}.parquet");
        run(folder, &line).ok();
    }
}

/// The merged bins and the merged shards of a run must be the bytes of the single run.
#[track_caller]
fn is_the_same_in_parts(folder: &Path, arguments: &str, n: usize) {
    run(folder, &format!("score {arguments} -o whole.parquet")).ok();
    plan(folder, arguments, n);
    score_bins(folder, arguments, n);
    check_answer(&run(folder, "merge parts -o merged.parquet --json").ok(), "merge");
    assert_eq!(bytes(folder, "merged.parquet"), bytes(folder, "whole.parquet"), "bins of {arguments}");
    std::fs::remove_dir_all(folder.join("parts")).expect("a folder");

    std::fs::create_dir(folder.join("parts")).expect("disk space");
    for shard in 0..n {
        run(folder, &format!("score {arguments} --shard {shard}/{n} -o parts/{shard}.parquet")).ok();
    }
    run(folder, "merge parts -o merged.parquet").ok();
    assert_eq!(bytes(folder, "merged.parquet"), bytes(folder, "whole.parquet"), "shards of {arguments}");
    std::fs::remove_dir_all(folder.join("parts")).expect("a folder");
}

#[test]
fn bins_and_shards_merge_into_the_bytes_of_the_single_run() {
    let folder = folder();
    let folder = folder.path();
    is_the_same_in_parts(folder, GCN, 3);
    is_the_same_in_parts(folder, AUTO, 2);
    is_the_same_in_parts(folder, AUTO, 1);
    is_the_same_in_parts(folder, AUTO, 9); // more than there are classes
    let linear = "--clean C.parquet --pool N.parquet --method linear --device cpu"; // draws examples of other classes
    is_the_same_in_parts(folder, linear, 4);
}

#[test]
fn decisions_base_classes_class_texts_and_candidates_make_no_difference() {
    let folder = folder();
    let folder = folder.path();
    let task = crate::examples::RECIPE.generate(0);
    std::fs::write(folder.join("d.csv"), decisions(&["accept", "reject", "unsure"])).expect("disk space");
    is_the_same_in_parts(folder, &format!("{AUTO} --decisions d.csv"), 3);

    crate::examples::test_of(&task).only(|class| class < 4).npz(folder.join("B.npz"));
    is_the_same_in_parts(folder, &format!("{AUTO} --base B.npz"), 3);

    let mut texts = crate::examples::test_of(&task).only(|class| class > 1);
    let first = (2..6).map(|class| texts.classes.iter().position(|&found| found == class).expect("a row"));
    let rows: Vec<usize> = first.collect();
    texts.features =
        rows.iter().flat_map(|row| texts.features[row * texts.dim..][..texts.dim].to_vec()).collect();
    texts.classes = vec![2, 3, 4, 5];
    texts.parquet(folder.join("T.parquet"), "t");
    is_the_same_in_parts(folder, &format!("{AUTO} --class-text T.parquet"), 2);

    write_candidates(folder, "K.parquet", |_| true);
    is_the_same_in_parts(folder, &format!("{GCN} --candidates K.parquet"), 3);
}

/// Every seventh candidate is decided about; one decision is about nothing.
fn decisions(words: &[&str]) -> String {
    let rows = noisy().classes.into_iter().enumerate().step_by(7);
    let line = |(row, class)| format!("n{row},{},{}\n", class_name(class), words[row / 7 % words.len()]);
    format!("id,class,decision\nn1,no such class,accept\n{}", rows.map(line).collect::<String>())
}

/// Candidates whose examples may be of two classes, some without features, some of a class without clean examples.
fn write_candidates(folder: &Path, name: &str, keep: impl Fn(&str) -> bool) {
    let classes = noisy().classes;
    let rows = classes.iter().enumerate().flat_map(|(row, &class)| {
        let second = (row % 10 == 0).then(|| class_name((class + 1) % 6));
        [Some(class_name(class)), second].into_iter().flatten().map(move |class| (format!("n{row}"), class))
    });
    let strange = [("lost", class_name(1)), ("n3", "no such class".to_owned()), ("lost too", class_name(4))];
    let strange = strange.into_iter().map(|(id, class)| (id.to_owned(), class));
    let rows: Vec<CandidateRow> = rows
        .chain(strange)
        .filter(|(_, class)| keep(class))
        .map(|(id, class)| CandidateRow {
            matched_name: format!("{class}s"),
            id,
            class,
            field: "title".to_owned(),
            leak: None,
        })
        .collect();
    let mut writer = CandidateWriter::create(folder.join(name), &[]).expect("disk space");
    writer.write(&rows).expect("disk space");
    writer.finish().expect("disk space");
}

#[test]
fn a_bin_needs_the_rows_of_its_own_classes_alone_and_says_nothing_of_the_others() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("d.csv"), decisions(&["reject", "accept"])).expect("disk space");
    let arguments = format!("{AUTO} --decisions d.csv");
    run(folder, &format!("score {arguments} -o whole.parquet")).ok();
    let plan = plan(folder, &arguments, 6);
    std::fs::create_dir(folder.join("parts")).expect("disk space");
    for (index, bin) in plan["bins"].as_array().expect("bins").iter().enumerate() {
        own_rows(folder, &classes_of(bin));
        let line = arguments.replace("N.parquet", "own.parquet");
        let line = format!("score {line} --plan plan.json --bin {index} -o parts/{index}.parquet");
        let said = run(folder, &line).ok();
        for misfire in ["swapped", "are clean examples of their class: none", "no decision in"] {
            assert!(!said.err.contains(misfire), "{said:?}");
        }
        let stray = "about unknown classes: `no such class`";
        assert_eq!(said.err.contains(stray), index == 0, "the first part alone tells of it: {said:?}");
        assert!(!said.err.contains("not candidates of their class"), "{said:?}");
    }
    run(folder, "merge parts -o merged.parquet").ok();
    assert_eq!(bytes(folder, "merged.parquet"), bytes(folder, "whole.parquet"));
}

/// `own.parquet`: the rows of `N.parquet` of these classes, with their ids, laid out as `embed` does it.
fn own_rows(folder: &Path, classes: &[usize]) {
    let all = noisy();
    let kept = || (0..all.len()).filter(|&row| classes.contains(&all.classes[row]));
    let ids: Vec<String> = kept().map(|row| format!("n{row}")).collect();
    let labels: Vec<Option<String>> = kept().map(|row| Some(class_name(all.classes[row]))).collect();
    let values: Vec<f32> = kept().flat_map(|row| all.features[row * all.dim..][..all.dim].to_vec()).collect();
    let n_rows = ids.len();
    let precision = Precision::F32;
    let layout = FeatureLayout { n_rows, n_with_class: n_rows, dim: all.dim, precision, network: None };
    let mut writer = FeatureWriter::create(&folder.join("own.parquet"), layout, "{}").expect("disk space");
    writer.add(FeatureRows { ids: &ids, labels: &labels, values: &values }).expect("disk space");
    writer.finish().expect("disk space");
}

#[test]
fn candidates_and_features_may_both_be_those_of_the_bin_alone() {
    let folder = folder();
    let folder = folder.path();
    write_candidates(folder, "K.parquet", |_| true);
    let arguments = format!("{GCN} --candidates K.parquet");
    run(folder, &format!("score {arguments} -o whole.parquet")).ok();
    let plan = plan(folder, &arguments, 6);
    std::fs::create_dir(folder.join("parts")).expect("disk space");
    for (index, bin) in plan["bins"].as_array().expect("bins").iter().enumerate() {
        let names: Vec<String> = classes_of(bin).into_iter().map(class_name).collect();
        write_candidates(folder, "own.parquet", |class| names.iter().any(|name| name == class));
        let line = arguments.replace("K.parquet", "own.parquet");
        let line = format!("score {line} --plan plan.json --bin {index} -o parts/{index}.parquet");
        let said = run(folder, &line).ok();
        assert!(!said.err.contains("whose class has no clean example"), "{said:?}");
    }
    run(folder, "merge parts -o merged.parquet").ok();
    assert_eq!(bytes(folder, "merged.parquet"), bytes(folder, "whole.parquet"));
}

#[test]
fn a_plan_holds_every_class_once_and_says_what_bounds_the_time() {
    let folder = folder();
    let folder = folder.path();
    let answer = run(folder, &format!("plan {AUTO} --bins 4 -o plan.json --json")).ok();
    check_answer(&answer, "plan");
    let answer = answer.json();
    let mut classes: Vec<usize> =
        answer["bins"].as_array().expect("bins").iter().flat_map(classes_of).collect();
    classes.sort_unstable();
    assert_eq!(classes, [0, 1, 2, 3, 4, 5]);
    let table = run(folder, &format!("plan {AUTO} --bins 4 -o plan.json")).ok();
    assert!(table.out.starts_with("bin  classes  candidates  "), "{table:?}");
    assert!(table.out.contains("\nlargest class: `"), "{table:?}");
    let first = bytes(folder, "plan.json");
    run(folder, &format!("plan {AUTO} --bins 4 -o plan.json --threads 1")).ok();
    assert_eq!(bytes(folder, "plan.json"), first, "the same plan every time");

    let empty = run(folder, &format!("plan {AUTO} --bins 8 -o plan.json")).ok();
    let warning = "2 bins of 8 stay empty: there are 6 classes\nhint: use --bins 6 or fewer";
    assert!(empty.err.contains(warning), "{empty:?}");
    let small = run(folder, &format!("plan {AUTO} --bins 2 --memory 40KiB -o plan.json")).ok();
    assert!(small.err.contains("need more memory than 40 KiB: `"), "{small:?}");
    assert!(small.err.contains("hint: score these bins with `labelsieve score --memory`"), "{small:?}");
    assert!(small.out.contains("40 KiB, out of core"), "{small:?}");
}

#[test]
fn a_dry_run_is_about_the_bin() {
    let folder = folder();
    let folder = folder.path();
    let plan = plan(folder, AUTO, 3);
    let line = format!("score {AUTO} --plan plan.json --bin 1 --dry-run --json");
    let estimate = run(folder, &line).ok().json();
    assert_eq!(estimate["n_candidates"], plan["bins"][1]["n_candidates"]);
    assert_eq!(estimate["n_classes"].as_u64(), Some(classes_of(&plan["bins"][1]).len() as u64));
    assert!(!folder.join("P.parquet").exists());
}

#[test]
fn a_part_that_is_complete_is_left_alone_and_one_of_another_run_is_not_replaced() {
    let folder = folder();
    let folder = folder.path();
    plan(folder, GCN, 2);
    let line = format!("score {GCN} --plan plan.json --bin 0 -o P.parquet --json");
    let first = run(folder, &line).ok();
    check_answer(&first, "score");
    assert_eq!(first.json()["part"]["was_complete"], false);
    let made = std::fs::metadata(folder.join("P.parquet")).and_then(|file| file.modified()).expect("a file");
    let again = run(folder, &line).ok();
    check_answer(&again, "score");
    assert!(again.err.contains("`P.parquet` is already complete"), "{again:?}");
    let one = first.json();
    let other = again.json();
    assert_eq!(other["part"]["was_complete"], true);
    assert_eq!(one["n_candidates"], other["n_candidates"]);
    let now = std::fs::metadata(folder.join("P.parquet")).and_then(|file| file.modified()).expect("a file");
    assert_eq!(made, now);

    let exists = |what: &'static str| ["`P.parquet` exists and ", what, "hint: move it elsewhere"];
    let shard = |shard: &str, seed: usize| format!("score {GCN} --shard {shard} --seed {seed} -o P.parquet");
    refuses(folder, &shard("0/2", 1), &exists("is a part of another run, with different files or settings"));
    refuses(folder, &shard("1/2", 0), &exists("is part 0 of 2, not part 1 of 2"));
    refuses(folder, &shard("0/3", 0), &exists("is part 0 of 2, not part 0 of 3"));
    run(folder, &format!("score {GCN} -o whole.parquet")).ok();
    std::fs::rename(folder.join("whole.parquet"), folder.join("P.parquet")).expect("a file");
    refuses(folder, &shard("0/2", 0), &exists("is not a part of a run"));
    std::fs::write(folder.join("P.parquet"), "half").expect("disk space");
    refuses(folder, &shard("0/2", 0), &exists("cannot be read as a part: "));
    // The same bins in another order hold other classes under the same numbers.
    std::fs::remove_file(folder.join("P.parquet")).expect("a file");
    run(folder, &line).ok();
    edit_plan(folder, |plan| plan["bins"].as_array_mut().expect("bins").reverse());
    refuses(folder, &line, &exists("holds the classes of another plan"));
}

/// Changes `plan.json` by hand.
fn edit_plan(folder: &Path, edit: impl Fn(&mut Value)) {
    let mut plan: Value = serde_json::from_slice(&bytes(folder, "plan.json")).expect("JSON");
    edit(&mut plan);
    std::fs::write(folder.join("plan.json"), plan.to_string()).expect("disk space");
}

#[test]
fn what_differs_from_the_plan_is_named() {
    let folder = folder();
    let folder = folder.path();
    plan(folder, GCN, 2);
    let score = |arguments: &str| format!("score {arguments} --plan plan.json --bin 0 -o P.parquet");
    let other = |difference: &'static str| ["`plan.json` is a plan for another run: ", difference, "hint: "];
    refuses(folder, &score(&format!("{GCN} --seed 3")), &other("seed: 0 in the plan, 3 here"));
    let auto = GCN.replace("--method gcn", "--method auto");
    refuses(folder, &score(&auto), &other("method: gcn in the plan, auto here"));
    let lambda = GCN.replace("0.01", "0.5");
    refuses(folder, &score(&lambda), &other("settings of the method: {"));
    std::fs::write(folder.join("d.csv"), decisions(&["accept"])).expect("disk space");
    let decided = format!("{GCN} --decisions d.csv");
    refuses(folder, &score(&decided), &other("decisions: not given in the plan, given here"));
    plan(folder, &decided, 2);
    std::fs::write(folder.join("d.csv"), decisions(&["reject"])).expect("disk space");
    refuses(folder, &score(&decided), &other("the decisions differ"));

    plan(folder, GCN, 2);
    let task = crate::examples::RECIPE.generate(0);
    clean_of(&task).with(0, 0, 0.5).parquet(folder.join("C2.parquet"), "c");
    refuses(folder, &score(&GCN.replace("C.parquet", "C2.parquet")), &other("the clean examples differ"));
    noisy().only(|class| class != 1).parquet(folder.join("N2.parquet"), "n");
    let fewer = GCN.replace("N.parquet", "N2.parquet");
    let lost = |bin| format!("score {fewer} --plan plan.json --bin {bin} -o P.parquet");
    let found = [run(folder, &lost(0)), run(folder, &lost(1))];
    assert!(found.iter().any(|said| said.err.contains("in the plan, 0 here")), "{found:?}");
    let mut features = noisy();
    features.features.iter_mut().step_by(3).for_each(|value| *value += 0.25);
    features.parquet(folder.join("N3.parquet"), "n");
    let changed = GCN.replace("N.parquet", "N3.parquet");
    let parts = [
        "the candidates of `",
        "` are not those of `plan.json`: other ids, another order, or other features",
    ];
    refuses(folder, &score(&changed), &parts);
}

#[test]
fn features_that_changed_between_two_shards_make_parts_of_two_runs() {
    let folder = folder();
    let folder = folder.path();
    std::fs::create_dir(folder.join("parts")).expect("disk space");
    run(folder, &format!("score {GCN} --shard 0/2 -o parts/0.parquet")).ok();
    let mut features = noisy();
    features.features.iter_mut().for_each(|value| *value = *value * 0.5 + 0.125);
    features.parquet(folder.join("N.parquet"), "n");
    run(folder, &format!("score {GCN} --shard 1/2 -o parts/1.parquet")).ok();
    let message =
        ["parts/0.parquet", "parts/1.parquet", "parts of different runs: the inputs or settings differ"];
    refuses(folder, "merge parts -o merged.parquet", &message);
}

#[test]
fn clocks_and_places_do_not_matter() {
    let folder = folder();
    let folder = folder.path();
    run(folder, &format!("score {GCN} -o whole.parquet")).ok();
    plan(folder, GCN, 2);
    std::fs::create_dir(folder.join("parts")).expect("disk space");
    run(folder, &format!("score {GCN} --plan plan.json --bin 0 -o parts/0.parquet")).ok();
    shell(folder, "mkdir elsewhere; cp C.parquet N.parquet plan.json elsewhere").ok();
    shell(folder, "touch -d 2031-01-01 elsewhere/*; touch -d 1999-12-31 elsewhere/plan.json").ok();
    let there =
        GCN.replace("C.parquet", "../elsewhere/C.parquet").replace("N.parquet", "../elsewhere/N.parquet");
    let line = format!("score {there} --plan ../elsewhere/plan.json --bin 1 -o 1.parquet");
    run(&folder.join("parts"), &line).ok();
    run(folder, "merge parts -o merged.parquet").ok();
    assert_eq!(bytes(folder, "merged.parquet"), bytes(folder, "whole.parquet"));
}

#[test]
fn missing_double_and_foreign_parts_are_refused_by_name() {
    let folder = folder();
    let folder = folder.path();
    plan(folder, GCN, 3);
    score_bins(folder, GCN, 3);
    std::fs::remove_file(folder.join("parts/1.parquet")).expect("a file");
    let missing = ["1 part of 3 is missing: 1", "hint: ", "score --bin 1"];
    refuses(folder, "merge parts -o merged.parquet", &missing);
    shell(folder, "cp parts/2.parquet parts/copy.parquet").ok();
    let double = ["`parts/2.parquet` and `parts/copy.parquet` are both part 2 of 3"];
    refuses(folder, "merge parts -o merged.parquet", &double);
    std::fs::remove_file(folder.join("parts/copy.parquet")).expect("a file");
    let seed = format!("{GCN} --seed 1");
    run(folder, &format!("score {seed} --shard 1/3 -o parts/1.parquet")).ok();
    let foreign = ["parts of different runs: the inputs or settings differ"];
    refuses(folder, "merge parts -o merged.parquet", &foreign);
    std::fs::remove_file(folder.join("parts/1.parquet")).expect("a file");
    run(folder, &format!("score {GCN} --shard 1/4 -o parts/1.parquet")).ok();
    refuses(folder, "merge parts -o merged.parquet", &["one is of 3 parts, the other of 4"]);
}

#[test]
fn a_damaged_or_edited_plan_is_refused_but_classes_may_move_between_bins() {
    let folder = folder();
    let folder = folder.path();
    plan(folder, GCN, 2);
    let whole = bytes(folder, "plan.json");
    let line = format!("score {GCN} --plan plan.json --bin 1 -o P.parquet");
    std::fs::write(folder.join("plan.json"), &whole[..whole.len() / 2]).expect("disk space");
    refuses(
        folder,
        &line,
        &["`plan.json` is not a complete plan: EOF while parsing", "hint: make the plan again"],
    );
    type Edit = fn(&mut Value);
    let edits: [(&str, Edit); 7] = [
        ("`plan.json` was changed: its settings and classes", |plan| plan["seed"] = 9.into()),
        ("`plan.json` was changed: its settings and classes", |plan| plan["classes"][1]["name"] = "x".into()),
        ("`plan.json` was made by labelsieve 9.9.9, but this is", |plan| plan["labelsieve"] = "9.9.9".into()),
        ("`plan.json`: format: expected 1, found 2", |plan| plan["format"] = 2.into()),
        ("` is in no bin", |plan| plan["bins"][0]["classes"] = Value::Array(Vec::new())),
        ("` is in two bins: 0 and 1", |plan| {
            let first = plan["bins"][0]["classes"][0].clone();
            plan["bins"][1]["classes"].as_array_mut().expect("positions").push(first);
        }),
        ("bin 1: expected classes below 6, found 6", |plan| {
            plan["bins"][1]["classes"].as_array_mut().expect("positions").push(6.into());
        }),
    ];
    for (message, edit) in edits {
        std::fs::write(folder.join("plan.json"), &whole).expect("disk space");
        edit_plan(folder, edit);
        refuses(folder, &line, &[message, "hint: "]);
    }
    std::fs::write(folder.join("plan.json"), &whole).expect("disk space");
    let third = line.replace("--bin 1", "--bin 2");
    refuses(
        folder,
        &third,
        &["`plan.json` has 2 bins: bin 2 is out of range", "hint: bins are numbered from 0 to 1"],
    );
    edit_plan(folder, |plan| {
        let moved = plan["bins"][0]["classes"].as_array_mut().and_then(Vec::pop).expect("a class");
        plan["bins"][1]["classes"].as_array_mut().expect("positions").insert(0, moved);
    });
    run(folder, &format!("score {GCN} -o whole.parquet")).ok();
    score_bins(folder, GCN, 2);
    run(folder, "merge parts -o merged.parquet").ok();
    assert_eq!(bytes(folder, "merged.parquet"), bytes(folder, "whole.parquet"));
}

#[test]
fn options_of_parts_that_do_not_go_together_are_refused() {
    let folder = folder();
    let folder = folder.path();
    plan(folder, GCN, 2);
    let clean = |more: &str| format!("score {GCN} {more}");
    refuses(folder, &clean("--bin 1 -o P.parquet"), &["--plan <FILE>"]);
    refuses(folder, &clean("--plan plan.json -o P.parquet"), &["--bin <I>"]);
    refuses(folder, &clean("--plan plan.json --bin 0 --shard 0/2 -o P.parquet"), &["cannot be used with"]);
    refuses(folder, &clean("--shard 2/2 -o P.parquet"), &["shards count from 0: the last of 2 is 1/2"]);
    refuses(
        folder,
        &clean("--shard 0/2 -o P.csv"),
        &["cannot write `P.csv`: the extension must be .parquet"],
    );
    refuses(folder, &clean("--shard 0/2 -o -"), &["cannot write `-`: the extension must be .parquet"]);
    refuses(folder, &clean("--plan plan.json --bin 0 -o plan.json"), &["the extension must be .parquet"]);
    refuses(folder, &format!("plan {GCN} --bins 0 -o plan.json"), &["--bins"]);
    refuses(folder, &format!("plan {GCN} --bins 2 -o plan.toml"), &["the extension must be .json"]);
    let memory = |size: &str| format!("plan {GCN} --bins 2 --memory {size} -o plan.json");
    refuses(folder, &memory("8"), &["expected a unit, e.g. `8GiB`, found `8`"]);
    refuses(folder, &memory("lots"), &["expected a size such as 8GiB, 512MiB or 2GB, found `lots`"]);
}

#[test]
fn a_killed_part_goes_on_and_merges_as_if_nothing_had_happened() {
    let folder = slow_folder();
    let folder = folder.path();
    let arguments = "--clean C.npz --pool N.npz --lambda 0.01 --threads 1 --device cpu";
    run(folder, &format!("score {arguments} -o whole.parquet")).ok();
    let line = |shard: usize| format!("score {arguments} --shard {shard}/2 -o {shard}.parquet");
    kill(stopped_when(folder, &line(0), ("0.parquet.partial", "0.parquet"), &holds_work));
    assert!(!folder.join("0.parquet").exists());
    let again = run(folder, &line(0)).ok();
    assert!(again.err.contains("resuming: ") && again.err.contains(" classes done"), "{again:?}");
    assert!(!folder.join("0.parquet.partial").exists());
    // What one part left is not continued by another.
    kill(stopped_when(folder, &line(1), ("1.parquet.partial", "1.parquet"), &holds_work));
    let other = format!("score {arguments} --shard 2/3 -o 1.parquet");
    let said = run(folder, &other).ok();
    assert!(said.err.contains("was made with different settings or files; starting over"), "{said:?}");
    std::fs::remove_file(folder.join("1.parquet")).expect("a file");
    run(folder, &line(1)).ok();
    run(folder, "merge 0.parquet 1.parquet -o merged.parquet").ok();
    assert_eq!(bytes(folder, "merged.parquet"), bytes(folder, "whole.parquet"));
}

#[test]
fn a_full_disk_leaves_no_part_behind_and_the_next_try_makes_it() {
    let folder = folder();
    let folder = folder.path();
    run(folder, &format!("score {GCN} -o whole.parquet")).ok();
    plan(folder, GCN, 2);
    let before = listing(folder);
    let line = |bin: usize| format!("score {GCN} --plan plan.json --bin {bin} -o {bin}.parquet");
    let full = shell(folder, &format!("ulimit -f 0; trap '' XFSZ; exec $LABELSIEVE {}", line(0)));
    full.fails_with(&["cannot write `", "0.parquet", "File too large"]);
    assert_eq!(listing(folder), before);
    let plan_again = format!("ulimit -f 0; trap '' XFSZ; exec $LABELSIEVE plan {GCN} --bins 3 -o plan.json");
    let kept = bytes(folder, "plan.json");
    shell(folder, &plan_again).fails_with(&["cannot write `plan.json`", "File too large"]);
    assert_eq!((bytes(folder, "plan.json"), listing(folder)), (kept, before));
    run(folder, &line(0)).ok();
    run(folder, &line(1)).ok();
    run(folder, "merge 0.parquet 1.parquet -o merged.parquet").ok();
    assert_eq!(bytes(folder, "merged.parquet"), bytes(folder, "whole.parquet"));
}
