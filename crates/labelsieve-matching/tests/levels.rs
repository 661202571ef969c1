//! Copies are found alike at every level of the machine. One test in a program of its own: the level belongs to the process.

use labelsieve::Features;
use labelsieve_matching::LeakGuard;
use labelsieve_numerics::level::Level;
use labelsieve_numerics::random::Stream;

/// Clusters, copies, rows of zeros and one row that comes again and again, in an odd number of columns.
fn awkward(n: usize, dim: usize) -> Features {
    let stream = Stream::new(n as u64);
    let value = |row: usize, column: usize| match row % 9 {
        0 => 0.0,
        1 => stream.normal(column as u64),
        2 => stream.branch(row as u64 / 27).normal(column as u64),
        _ => {
            stream.branch((row % 6) as u64).normal(column as u64)
                + 0.2 * stream.branch(1 << 30).normal((row * dim + column) as u64)
        }
    };
    Features::new((0..n * dim).map(|i| value(i / dim, i % dim)).collect(), dim).unwrap()
}

#[test]
fn leaks_are_the_same_at_every_level() {
    let guarded = awkward(300, 65);
    let candidates = awkward(900, 65);
    let mut found = Vec::new();
    for level in Level::available() {
        level.make_current();
        found.push(LeakGuard::new(&guarded, &[], 0.97).leaks(&candidates, &[]).unwrap());
    }
    assert!(found.iter().all(|leaks| *leaks == found[0]), "leaks differ between levels");
}
