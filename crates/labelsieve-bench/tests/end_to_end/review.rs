//! `labelsieve-bench review` on the bundled icons.

use crate::common::{refuses, run};
use crate::json_page::check_answer;

#[test]
fn decisions_raise_accuracy_and_a_second_run_repeats_the_first_from_its_features() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = "review -o review --draws 1 --shots 1 --decisions 0,20 --orders covering,random \
                --method similarity --device cpu --json";
    let first = run(folder.path(), line).ok();
    check_answer(&first, "labelsieve-bench review");
    let answer = first.json();
    let rows = answer["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 4, "{answer}");
    for of_order in rows.chunks(2) {
        let top_1 = |row: &serde_json::Value| row["top_1"].as_f64().expect("an accuracy");
        assert!(top_1(&of_order[1]) > top_1(&of_order[0]) + 0.02, "{answer}");
    }
    let features = folder.path().join("review/features-icons.parquet");
    let made = std::fs::metadata(&features).and_then(|file| file.modified()).expect("features");
    assert_eq!(run(folder.path(), line).ok().json(), answer);
    let kept = std::fs::metadata(&features).and_then(|file| file.modified()).expect("features");
    assert_eq!(made, kept, "the features were made again");
}

#[test]
fn options_without_effect_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    refuses(folder.path(), "review -o r --data d", &["CONFIG"]);
    refuses(folder.path(), "review -o r --method gnc", &["expected the name of a method"]);
}
