use labelsieve::Decision;

use super::*;
use crate::read_decisions;

fn row(id: &str, decision: impl Into<Option<Decision>>) -> DecisionRow {
    let [id, class, by, at] = [id, "owl", "ann", "2026-01-02T03:04:05.000006Z"].map(str::to_owned);
    DecisionRow { id, class, decision: decision.into(), by, at }
}

fn ids(rows: &[DecisionRow]) -> Vec<&str> {
    rows.iter().map(|row| row.id.as_str()).collect()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Ends a log as a kill would: no rows are moved into the table, and the lock is gone.
fn kill(log: DecisionLog) {
    log.lock().state = State::Closed;
    let keep = std::fs::read(&log.log_path).unwrap();
    let path = log.log_path.clone();
    drop(log);
    std::fs::write(path, keep).unwrap();
}

#[test]
fn decisions_survive_a_kill_and_go_into_the_table_when_the_log_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["d.parquet", "d.csv", "d.tsv"] {
        let path = folder.path().join(name);
        let (log, table) = DecisionLog::open(&path).unwrap();
        assert_eq!(table.rows, []);
        let first = [row("a\tb\n\"c\"", Decision::Accept), row("ü, 2", Decision::Reject)];
        log.append(&first).unwrap();
        assert_eq!(read_decisions(&path).unwrap().rows, first);
        kill(log);
        assert_eq!(read_decisions(&path).unwrap().rows, first);
        let (log, table) = DecisionLog::open(&path).unwrap();
        assert_eq!(table.rows, first);
        let second = [row("c", None), row("d", Decision::Unsure)];
        log.append(&second).unwrap();
        let all = [first, second].concat();
        assert_eq!(read_decisions(&path).unwrap().rows, all);
        log.fold(&mut log.lock()).unwrap();
        assert_eq!(read_table(&path).unwrap(), all);
        log.append(&[row("e", Decision::Accept)]).unwrap();
        log.close().unwrap();
        assert_eq!(ids(&read_table(&path).unwrap()[4..]), ["e"]);
    }
    assert_eq!(names_in(folder.path()), ["d.csv", "d.parquet", "d.tsv"]);
}

#[test]
fn a_second_log_on_the_same_table_is_refused_by_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    let (log, _) = DecisionLog::open(&path).unwrap();
    let error = DecisionLog::open(&path).unwrap_err();
    assert!(matches!(&error, DataError::InUse { path: named } if *named == path), "{error}");
    #[cfg(unix)]
    {
        let link = folder.path().join("link.csv");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(DecisionLog::open(&link).unwrap_err(), DataError::InUse { .. }));
        log.append(&[row("a", Decision::Accept)]).unwrap();
        assert_eq!(read_decisions(&link).unwrap().rows.len(), 1);
        drop(log);
        let (log, _) = DecisionLog::open(&link).unwrap();
        log.append(&[row("b", Decision::Accept)]).unwrap();
        log.close().unwrap();
        assert!(link.is_symlink());
        assert_eq!(names_in(folder.path()), ["d.csv", "link.csv"]);
    }
    assert_eq!(read_decisions(&path).unwrap().rows.len(), 2);
}

#[test]
fn a_log_cut_anywhere_keeps_whole_rows_and_can_be_continued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    let (log, _) = DecisionLog::open(&path).unwrap();
    log.append(&[row("a", Decision::Accept)]).unwrap();
    log.append(&[row("b", Decision::Accept), row("c", Decision::Reject)]).unwrap();
    let log_path = log.log_path.clone();
    let table = std::fs::read(&path).unwrap();
    let whole = std::fs::read(&log_path).unwrap();
    drop(log);
    let mut counts = Vec::new();
    for length in 0..=whole.len() {
        std::fs::write(&path, &table).unwrap();
        std::fs::write(&log_path, &whole[..length]).unwrap();
        let before = read_decisions(&path).unwrap().rows;
        let (log, opened) = DecisionLog::open(&path).unwrap();
        assert_eq!(opened.rows, before);
        log.append(&[row("d", Decision::Unsure)]).unwrap();
        kill(log);
        let after = read_decisions(&path).unwrap().rows;
        assert_eq!(ids(&after), [ids(&before), vec!["d"]].concat());
        counts.push(before.len());
        std::fs::remove_file(&log_path).unwrap();
    }
    counts.dedup();
    assert_eq!(counts, [0, 1, 3]);
}

#[test]
fn a_kill_between_writing_the_table_and_emptying_the_log_doubles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.parquet");
    let (log, _) = DecisionLog::open(&path).unwrap();
    // The same decision twice in a row, so that equal rows alone do not tell.
    log.append(&[row("a", Decision::Accept), row("a", Decision::Accept)]).unwrap();
    log.fold(&mut log.lock()).unwrap();
    log.append(&[row("a", Decision::Accept)]).unwrap();
    let bytes = std::fs::read(&log.log_path).unwrap();
    log.fold(&mut log.lock()).unwrap();
    let log_path = log.log_path.clone();
    drop(log);
    std::fs::write(&log_path, bytes).unwrap();
    assert_eq!(read_decisions(&path).unwrap().rows.len(), 3);
    let (log, table) = DecisionLog::open(&path).unwrap();
    assert_eq!(table.rows.len(), 3);
    log.append(&[row("b", Decision::Reject)]).unwrap();
    assert_eq!(ids(&read_decisions(&path).unwrap().rows), ["a", "a", "a", "b"]);
    drop(log);
    assert_eq!(ids(&read_decisions(&path).unwrap().rows), ["a", "a", "a", "b"]);
}

#[test]
fn rows_that_another_program_added_to_the_table_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    let (log, _) = DecisionLog::open(&path).unwrap();
    log.append(&[row("b", Decision::Accept)]).unwrap();
    std::fs::write(&path, "id,class,decision\na,owl,reject\n").unwrap();
    log.close().unwrap();
    assert_eq!(ids(&read_decisions(&path).unwrap().rows), ["a", "b"]);
}

#[test]
fn a_table_with_further_columns_is_left_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    let (log, _) = DecisionLog::open(&path).unwrap();
    log.append(&[row("b", Decision::Accept)]).unwrap();
    kill(log);
    let text = "id,class,decision,notes\na,owl,accept,blurred\n";
    std::fs::write(&path, text).unwrap();
    let error = DecisionLog::open(&path).unwrap_err().to_string();
    assert!(error.ends_with("columns: expected only id, class, decision, by, at, found `notes`"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    assert_eq!(ids(&read_decisions(&path).unwrap().rows), ["a", "b"]);
}

#[test]
fn a_file_in_the_place_of_the_log_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    let other = folder.path().join("d.csv.log");
    std::fs::write(&other, "12:03 started").unwrap();
    let error = DecisionLog::open(&path).unwrap_err().to_string();
    assert!(error.ends_with("expected a log of decisions, found another file"), "{error}");
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "12:03 started");
    assert_eq!(names_in(folder.path()), ["d.csv.log"]);
}

#[test]
fn a_table_that_cannot_be_started_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    assert!(DecisionLog::open(folder.path().join("no/d.csv")).is_err());
    let error = DecisionLog::open(folder.path().join("d.txt")).unwrap_err().to_string();
    assert!(error.ends_with("expected .parquet, .csv or .tsv, found `.txt`"), "{error}");
    std::fs::write(folder.path().join("d.parquet"), "no table").unwrap();
    assert!(DecisionLog::open(folder.path().join("d.parquet")).is_err());
    assert_eq!(names_in(folder.path()), ["d.parquet"]);
}

/// `/dev/full` answers every write with "no space left".
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_leaves_earlier_rows_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    let (mut log, _) = DecisionLog::open(&path).unwrap();
    log.append(&[row("a", Decision::Accept)]).unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let file = std::mem::replace(&mut log.lock().file, full);
    let log_path = std::mem::replace(&mut log.log_path, "/dev/full".into());
    let error = log.append(&[row("b", Decision::Accept)]).unwrap_err().to_string();
    assert!(error.starts_with("cannot write `/dev/full`: "), "{error}");
    log.lock().file = file;
    log.log_path = log_path;
    assert_eq!(ids(&read_decisions(&path).unwrap().rows), ["a"]);
    log.append(&[row("c", Decision::Accept)]).unwrap();
    log.close().unwrap();
    assert_eq!(ids(&read_decisions(&path).unwrap().rows), ["a", "c"]);
}

#[test]
fn many_threads_may_append() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.parquet");
    let (log, _) = DecisionLog::open(&path).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let log = &log;
            scope.spawn(move || {
                for i in 0..10 {
                    log.append(&[row(&format!("{thread}-{i}"), Decision::Accept)]).unwrap();
                }
            });
        }
        log.fold(&mut log.lock()).unwrap();
    });
    drop(log);
    assert_eq!(read_decisions(&path).unwrap().latest().len(), 40);
    assert_eq!(read_decisions(&path).unwrap().rows.len(), 40);
}

/// Other systems do not let open files be deleted.
#[cfg(unix)]
#[test]
fn a_deleted_table_and_a_deleted_log_are_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    std::fs::write(&path, "id,class,decision\na,owl,reject\n").unwrap();
    let (log, _) = DecisionLog::open(&path).unwrap();
    log.append(&[row("b", Decision::Accept)]).unwrap();
    std::fs::remove_file(&log.log_path).unwrap();
    assert!(matches!(DecisionLog::open(&path).unwrap_err(), DataError::InUse { .. }));
    assert_eq!(names_in(folder.path()), ["d.csv"]);
    log.append(&[row("c", Decision::Accept)]).unwrap();
    assert_eq!(ids(&read_decisions(&path).unwrap().rows), ["a", "b", "c"]);
    assert!(matches!(DecisionLog::open(&path).unwrap_err(), DataError::InUse { .. }));
    std::fs::remove_file(&path).unwrap();
    log.append(&[row("d", Decision::Accept)]).unwrap();
    assert_eq!(ids(&read_decisions(&path).unwrap().rows), ["a", "b", "c", "d"]);
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&log.log_path).unwrap();
    log.close().unwrap();
    assert_eq!(ids(&read_decisions(&path).unwrap().rows), ["a", "b", "c", "d"]);
    assert_eq!(names_in(folder.path()), ["d.csv"]);
}

#[cfg(unix)]
#[test]
fn another_file_in_the_place_of_a_deleted_log_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.csv");
    let (log, _) = DecisionLog::open(&path).unwrap();
    std::fs::remove_file(&log.log_path).unwrap();
    std::fs::write(&log.log_path, "12:03 started").unwrap();
    let error = log.append(&[row("a", Decision::Accept)]).unwrap_err().to_string();
    assert!(error.ends_with("expected the log of this review, found another file in its place"), "{error}");
    log.close().unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("d.csv.log")).unwrap(), "12:03 started");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_table_that_does_not_exist_yet_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link.csv");
    std::os::unix::fs::symlink("d.csv", &link).unwrap();
    let (log, _) = DecisionLog::open(&link).unwrap();
    log.append(&[row("a", Decision::Accept)]).unwrap();
    assert_eq!(names_in(folder.path()), ["d.csv", "d.csv.log", "link.csv"]);
    log.close().unwrap();
    assert!(link.is_symlink());
    assert_eq!(ids(&read_decisions(folder.path().join("d.csv")).unwrap().rows), ["a"]);
}
