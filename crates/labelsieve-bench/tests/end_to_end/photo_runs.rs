//! `labelsieve-bench photos` with a single draw, a closed pipe, a second process, and another protocol.

use labelsieve_report::RunDirectory;

use crate::common::{bytes, listing, refuses, run, with_closed_stdout};
use crate::photos::{BENCH, CONFIG, photo_folder};
use crate::stopping::{kill, stopped_when};

#[test]
fn a_single_episode_or_trial_has_no_interval() {
    let folder = photo_folder();
    let folder = folder.path();
    let config = CONFIG.replace("episodes = 2", "episodes = 1").replace("trials = 12", "trials = 1");
    std::fs::write(folder.join("c.toml"), config).expect("a file");
    for (line, name) in [(BENCH.to_owned(), "RUN"), (BENCH.replace("RUN", "FEW --protocol 5way"), "FEW")] {
        let done = run(folder, &line).ok();
        assert!(done.out.contains("clean only") && !done.out.contains('±'), "{done:?}");
        let tables = String::from_utf8(bytes(folder, &format!("{name}/tables.json"))).expect("text");
        assert!(!tables.contains("half_width") && !tables.contains("95 %"), "{tables}");
        let results = String::from_utf8(bytes(folder, &format!("{name}/results.json"))).expect("text");
        assert!(!results.contains("\"half_width\": 0"), "{results}");
    }
}

#[test]
fn a_benchmark_with_a_closed_pipe_continues_to_its_last_table() {
    let folder = photo_folder();
    let folder = folder.path();
    run(folder, BENCH).ok();
    for protocol in ["low-shot", "5way"] {
        let line = format!("{} --protocol {protocol}", BENCH.replace("RUN", protocol));
        with_closed_stdout(folder, &line);
        let run = RunDirectory::open(folder.join(protocol)).expect("a run directory");
        let n_tables = run.tables().expect("tables").len();
        assert_eq!(n_tables, if protocol == "5way" { 2 } else { 2 * 6 }, "{protocol}: both rules");
    }
    assert_eq!(bytes(folder, "low-shot/results.json"), bytes(folder, "RUN/results.json"));
    with_closed_stdout(folder, &format!("{BENCH} --json"));
}

#[test]
fn a_second_benchmark_in_a_busy_folder_changes_nothing() {
    let folder = photo_folder();
    let folder = folder.path();
    let place = ("RUN/cells-features.journal", "RUN/results.json");
    let first = stopped_when(folder, &format!("{BENCH} --threads 1"), place, &|journal| journal.len() > 2000);
    let files = ["RUN/run.json", "RUN/episodes.json"];
    let before = files.map(|name| bytes(folder, name));
    let parts = ["another process is using `RUN`", "hint: wait until it has finished"];
    refuses(folder, &format!("{BENCH} --seed 5"), &parts);
    assert_eq!(files.map(|name| bytes(folder, name)), before);
    kill(first);
    run(folder, BENCH).ok();
    assert!(!listing(folder).contains(&"RUN/run.lock".to_owned()));
}

#[test]
fn the_protocols_do_not_share_a_folder() {
    let folder = photo_folder();
    let folder = folder.path();
    run(folder, BENCH).ok();
    let few_way = format!("{BENCH} --protocol 5way");
    let before = listing(folder).into_iter().filter(|name| name.starts_with("RUN/"));
    let before: Vec<_> = before.map(|name| (bytes(folder, &name), name)).collect();
    refuses(
        folder,
        &few_way,
        &["`RUN` contains a run of the low-shot protocol", "hint: choose another folder"],
    );
    assert!(before.iter().all(|(found, name)| bytes(folder, name) == *found));
    run(folder, &few_way.replace("RUN", "FEW")).ok();
    refuses(folder, &BENCH.replace("RUN", "FEW"), &["`FEW` contains a run of the 5way protocol", "hint: "]);
}
