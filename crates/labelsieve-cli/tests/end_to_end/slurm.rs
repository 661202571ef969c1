//! The scripts of `tools/slurm`, as they are, against a stand-in for `sbatch` that runs tasks one after the other.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Finished, bytes, run};
use crate::resume::slow_folder;

/// Numbers jobs, runs the tasks of an array in turn, and a job that depends on another only if that one went well. With
/// `KILL=I`, task I is killed once its journal is there, and queued again.
const SBATCH: &str = r#"#!/usr/bin/env bash
set -u
array="" after="" log=/dev/null
while [[ $1 == --* ]]; do
    case "$1" in
        --array=*) array=${1#--array=} ;;
        --dependency=afterok:*) after=${1#--dependency=afterok:} ;;
        --output=*) log=${1#--output=} ;;
    esac
    shift
done
id=$(($(cat "$JOBS/last" 2>/dev/null || echo 100) + 1))
echo "$id" >"$JOBS/last"
echo "$id;cluster"
if [[ -n $after && -e $JOBS/$after.failed ]]; then exit 0; fi
first=${array%-*} last=${array#*-}
for task in $(seq "${first:-0}" "${last:-0}"); do
    export SLURM_ARRAY_TASK_ID=$task SLURM_CPUS_PER_TASK=1
    output=${log//%a/$task}
    bash "$@" >>"$output" 2>&1 &
    child=$!
    if [[ ${KILL:-} == "$task" ]]; then
        journal="$3/$task.parquet.partial"
        while kill -0 $child 2>/dev/null && ! [[ -s $journal ]]; do sleep 0.001; done
        kill -KILL $child && touch "$JOBS/killed"
        wait $child
        bash "$@" >>"$output" 2>&1 &
        child=$!
    fi
    wait $child || touch "$JOBS/$id.failed"
done
"#;

/// Runs `tools/slurm/submit LINE` in `folder`, with the stand-in in front of the path.
fn submit(folder: &Path, line: &str, variables: &[(&str, &str)]) -> Finished {
    let bin = folder.join("bin");
    if !bin.exists() {
        std::fs::create_dir(&bin).expect("a folder");
        std::fs::write(bin.join("sbatch"), SBATCH).expect("a file");
        std::fs::set_permissions(bin.join("sbatch"), PermissionsExt::from_mode(0o755)).expect("a file");
        symlink(env!("CARGO_BIN_EXE_labelsieve"), bin.join("labelsieve")).expect("a link");
    }
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tools/slurm/submit");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.arg(script).args(line.split_whitespace()).current_dir(folder);
    command.env("PATH", path).env("JOBS", &bin).env_remove("LABELSIEVE_PLAN");
    command.envs(variables.iter().copied());
    Finished::from(command.output().expect("bash starts"))
}

const TABLES: &str = "--clean C.npz --pool N.npz --lambda 0.01";

#[test]
fn a_killed_task_is_queued_again_and_the_merged_file_is_that_of_a_single_run() {
    let folder = slow_folder();
    let folder = folder.path();
    run(folder, &format!("score {TABLES} -o single.parquet")).ok();
    let said = submit(folder, &format!("4 R.parquet score {TABLES}"), &[("KILL", "1")]).ok();
    assert_eq!(said.out, "4 parts: job 101; merging into R.parquet: job 102; logs in R.parquet.parts\n");
    assert!(folder.join("bin/killed").exists(), "the task was quicker than the kill");
    assert_eq!(bytes(folder, "R.parquet"), bytes(folder, "single.parquet"));

    // A lost part: the same line makes that one, and leaves the others as they are.
    std::fs::remove_file(folder.join("R.parquet")).expect("it exists");
    std::fs::remove_file(folder.join("R.parquet.parts/2.parquet")).expect("it exists");
    let kept = std::fs::metadata(folder.join("R.parquet.parts/3.parquet")).expect("it exists");
    submit(folder, &format!("4 R.parquet score {TABLES}"), &[]).ok();
    assert_eq!(bytes(folder, "R.parquet"), bytes(folder, "single.parquet"));
    let after = std::fs::metadata(folder.join("R.parquet.parts/3.parquet")).expect("it exists");
    assert_eq!(after.modified().expect("a time"), kept.modified().expect("a time"));
}

#[test]
fn bins_of_a_plan_are_the_parts_of_an_array() {
    let folder = slow_folder();
    let folder = folder.path();
    run(folder, &format!("score {TABLES} -o single.parquet")).ok();
    run(folder, &format!("plan {TABLES} --bins 3 -o plan.json")).ok();
    submit(folder, &format!("3 R.parquet score {TABLES}"), &[("LABELSIEVE_PLAN", "plan.json")]).ok();
    assert_eq!(bytes(folder, "R.parquet"), bytes(folder, "single.parquet"));
}

#[test]
fn a_failed_part_is_not_merged_over() {
    let folder = slow_folder();
    let folder = folder.path();
    submit(folder, &format!("3 R.parquet score {TABLES} --seed 7"), &[]).ok();
    std::fs::remove_file(folder.join("R.parquet")).expect("it exists");
    // The folder holds the parts of another seed: every task refuses to replace one, and nothing is merged.
    submit(folder, &format!("3 R.parquet score {TABLES} --seed 8"), &[]).ok();
    assert!(!folder.join("R.parquet").exists());
    let log = String::from_utf8(bytes(folder, "R.parquet.parts/0.log")).expect("text");
    assert!(log.contains("error: "), "{log}");
}

#[test]
fn texts_are_matched_in_shards() {
    let folder = slow_folder();
    let folder = folder.path();
    let text: String = (0..2000).map(|i| format!("{i},\"an owl\nor {} cats\"\n", i % 7)).collect();
    std::fs::write(folder.join("text.csv"), format!("id,caption\n{text}")).expect("a file");
    std::fs::write(folder.join("classes.csv"), "id,names\nowl,owl\ncat,3 cats\n").expect("a file");
    run(folder, "match --classes classes.csv --text text.csv -o single.parquet").ok();
    submit(folder, "5 M.parquet match --classes classes.csv --text text.csv", &[]).ok();
    assert_eq!(bytes(folder, "M.parquet"), bytes(folder, "single.parquet"));
}

#[test]
fn a_line_that_is_none_is_answered_with_the_usage() {
    let folder = slow_folder();
    for line in ["", "0 R.parquet score", "x R.parquet score", "4 R.parquet train", "4 R.parquet"] {
        let said = submit(folder.path(), line, &[]);
        assert_eq!(
            (said.code, said.err.as_str()),
            (Some(2), "usage: submit N FILE score|match OPTIONS…\n"),
            "{line}"
        );
    }
}
