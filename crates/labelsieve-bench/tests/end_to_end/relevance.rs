//! `labelsieve-bench relevance` on the built-in sets.

use crate::common::{refuses, run};
use crate::json_page::check_answer;
use crate::photos;

#[test]
fn methods_are_compared_on_the_same_draws_and_a_second_run_resumes_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = "relevance -o out --sets icons,generated-small --shots 1,2 --methods label-propagation --device cpu --json";
    let first = run(folder.path(), &format!("{line} --draws 1")).ok();
    check_answer(&first, "labelsieve-bench relevance");
    let answer = first.json();
    let sets = answer["sets"].as_array().expect("sets");
    assert_eq!(sets.len(), 2, "{answer}");
    for set in sets {
        let rows = set["rows"].as_array().expect("rows");
        let names: Vec<&str> = rows.iter().filter_map(|row| row["method"].as_str()).collect();
        let expected = ["clean-only", "beta", "similarity", "label-propagation", "oracle"];
        assert_eq!(names, expected.repeat(2), "{set}");
        for rows in rows.chunks(expected.len()) {
            let top_1 = |i: usize| rows[i]["top_1"]["mean"].as_f64().expect("an accuracy");
            assert!((0..4).all(|i| top_1(4) > top_1(i)), "the oracle is best: {set}");
            assert_eq!(rows[1]["auc"]["mean"], 0.5, "one number for all says nothing");
            let share = 1.0 - set["noise_ratio"].as_f64().expect("a share");
            let gap = rows[1]["calibration_error"]["mean"].as_f64().expect("an error") - (1.0 - share);
            assert!(gap.abs() < 1e-3, "beta says 1 of all, {share} are right: {set}");
            assert_eq!((&rows[0]["of_the_way"], &rows[4]["of_the_way"]), (&0.0.into(), &1.0.into()));
        }
    }
    assert_eq!((&sets[0]["n_classes"], &sets[0]["n_base_classes"]), (&16.into(), &181.into()));
    assert!(folder.path().join("out/figures/reliability-icons-k2.svg").is_file());

    let second = run(folder.path(), &format!("{line} --draws 2")).ok();
    assert!(second.err.contains("resuming: 10 cells done"), "{}", second.err);
    let by_draw = |answer: &serde_json::Value| answer["sets"][1]["rows"][3]["top_1"]["by_draw"].clone();
    let one = by_draw(&answer);
    let two = by_draw(&second.json());
    assert_eq!((&one[0], two.as_array().map(Vec::len)), (&two[0], Some(2)));
    let given = "--draws 1 --sets icons --features icons=out/icons/features-icons.parquet";
    let line = line.replace("-o out --sets icons,generated-small", "-o given");
    let own = run(folder.path(), &format!("{line} {given}")).ok().json();
    assert_eq!(own["sets"][0]["rows"][3]["top_1"], sets[0]["rows"][3]["top_1"], "features made earlier");
    let built_in = run(folder.path(), &format!("{line} {given} --backbone built-in")).ok().json();
    assert_eq!(built_in["sets"][0]["n_base_classes"], 0, "the directions of its classes are unknown");
}

#[test]
fn tables_name_every_set_and_method_and_the_halves_differ() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = "relevance -o out --sets generated-known --shots 1 --draws 2 --methods linear --device cpu";
    let report = run(folder.path(), line).ok().out;
    for part in ["generated-known: 20 classes", "k = 1: top-1 %", "linear", "oracle", "time / gcn"] {
        assert!(report.contains(part), "no `{part}` in {report}");
    }
    assert_ne!(run(folder.path(), &format!("{line} --half tune")).ok().out, report);
    assert!(run(folder.path(), &format!("{line} --half all")).ok().out.contains("40 classes"));
}

#[test]
fn photos_are_a_set_per_rule_and_clean_ones_leave_the_pools() {
    let folder = photos::photo_folder();
    let line = "relevance c.toml --features c=features.npz --sets c --shots 3,40 --draws 2 --methods gcn --half all --device cpu -o out";
    let done = run(folder.path(), &format!("{line} --json")).ok();
    check_answer(&done, "labelsieve-bench relevance");
    assert!(done.err.contains("c-phrase: k = 40 skipped"), "{}", done.err);
    let answer = done.json();
    let sets = answer["sets"].as_array().expect("sets");
    let names: Vec<&str> = sets.iter().filter_map(|set| set["set"].as_str()).collect();
    assert_eq!(names, ["c-phrase", "c-any-word"]);
    assert_eq!((&sets[0]["n_classes"], &sets[0]["n_base_classes"]), (&6.into(), &7.into()));
    let gcn = |set: usize| &sets[set]["rows"][3];
    assert_eq!((&gcn(1)["method"], &gcn(1)["times_gcn"]), (&"gcn".into(), &1.0.into()));
    let n_scored: u64 =
        gcn(1)["reliability"].as_array().expect("bins").iter().filter_map(|bin| bin["n"].as_u64()).sum();
    let n_candidates = sets[1]["n_candidates"].as_u64().expect("a number");
    assert_eq!(
        n_scored,
        2 * (n_candidates - 6 * 3),
        "two draws without three clean photos of each of six classes"
    );
    refuses(folder.path(), "relevance c.toml -o r --sets d", &["unknown set `d`", "c, icons"]);
    refuses(folder.path(), "relevance c.toml -o r --features d=x", &["unknown configuration `d`"]);
    refuses(
        folder.path(),
        "relevance c.toml -o r --backbone d",
        &["`c.toml` has no backbone `d`", "it has "],
    );
}

#[test]
fn unknown_names_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    refuses(folder.path(), "relevance -o r --data d", &["CONFIG"]);
    refuses(folder.path(), "relevance -o r --methods gnc", &["unknown variant `gnc`"]);
    refuses(folder.path(), "relevance -o r --sets tiny", &["unknown set `tiny`", "icons"]);
}
