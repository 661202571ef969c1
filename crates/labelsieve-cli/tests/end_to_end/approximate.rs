//! Neighbours that are searched approximately.

use labelsieve_files::read_relevance;
use labelsieve_numerics::random::Stream;

use crate::common::{bytes, refuses, run};
use crate::examples::task_folder;

const SCORE: &str = "score --clean C.npz --pool N.npz --method gcn --lambda 0.01 -o R.parquet";

/// `n` rows of 256 numbers around 60 centres in 20 directions, as an `.npy` file.
fn rows(n: usize, stream: Stream) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({n}, 256), }}");
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(header.as_bytes());
    let centres = Stream::new(7);
    for i in 0..n {
        let centre = stream.branch(1).below(i as u64, 60);
        for j in 0..256 {
            let noise = stream.normal((i * 256 + j) as u64);
            let number =
                if j < 20 { centres.normal((centre * 20 + j) as u64) + 0.4 * noise } else { 0.02 * noise };
            bytes.extend(number.to_le_bytes());
        }
    }
    bytes
}

#[test]
fn many_candidates_are_searched_approximately_and_the_recall_is_told() {
    const N: usize = 70_000;
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("C.npy"), rows(3, Stream::new(1))).expect("disk space");
    std::fs::write(folder.join("N.npy"), rows(N, Stream::new(2))).expect("disk space");
    std::fs::write(folder.join("C.txt"), "crane\n".repeat(3)).expect("disk space");
    std::fs::write(folder.join("N.txt"), "crane\n".repeat(N)).expect("disk space");
    let line = "score --clean C.npy --clean-labels C.txt --pool N.npy --pool-labels N.txt --method label-propagation -o";
    run(folder, &format!("{line} exact.parquet --device cpu")).ok();
    let told = run(folder, &format!("{line} R.parquet --neighbours-approximate=0.9")).ok();
    assert!(told.err.contains("`crane`: neighbours searched approximately, "), "{told:?}");
    let again =
        run(folder, &format!("{line} S.parquet --neighbours-approximate=0.9 --threads 1 --json")).ok().json();
    let recall = again["approximate"][0]["recall"].as_f64().expect("a number");
    assert!((0.8..1.0).contains(&recall), "{again}");
    assert_eq!(bytes(folder, "R.parquet"), bytes(folder, "S.parquet"));
    let relevance = |name: &str| read_relevance(folder.join(name)).expect("what we wrote").relevance;
    let exact = relevance("exact.parquet");
    let found = relevance("R.parquet");
    let difference = exact.iter().zip(&found).map(|(a, b)| f64::from((a - b).abs())).sum::<f64>() / N as f64;
    assert!(exact != found && difference < 0.05, "{difference}");
}

#[test]
fn few_candidates_are_searched_exactly() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    run(folder, SCORE).ok();
    let relevance = || read_relevance(folder.join("R.parquet")).expect("what we wrote").relevance;
    let exact = relevance();
    let told = run(folder, &format!("{SCORE} --neighbours-approximate")).ok();
    assert!(!told.err.contains("approximately") && relevance() == exact, "{told:?}");
}

#[test]
fn what_cannot_be_approximate_is_refused() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    for (options, parts) in [
        (
            "--neighbours-approximate=1",
            &["expected a number between 0 and 1, found 1", "hint: 0.95 is usual"][..],
        ),
        ("--neighbours-approximate=nan", &["expected a number between 0 and 1"]),
        ("--neighbours-approximate --memory 4GiB", &["in memory", "leave out --memory"]),
        ("--neighbours-approximate --shard 0/2", &["not supported for parts of a run"]),
        ("--neighbours-approximate --device cuda", &["a GPU searches exactly"]),
        (
            "--neighbours-approximate --dry-run",
            &["--dry-run does not use --neighbours-approximate", "hint: "],
        ),
    ] {
        refuses(folder, &format!("{SCORE} {options}"), parts);
    }
}
