//! Stages against the CPU and against the full search. Every test skips with a message on a machine without a GPU.

use labelsieve::Features;
use labelsieve::graph::Neighbours;
use labelsieve_numerics::random::Stream;

use super::*;
use crate::rows::Staging;

/// Rows whose spread falls by direction, λ ∝ 1 / (1 + k)^power, around `centres` centres.
fn rows(n: usize, dim: usize, power: f32, centres: u64) -> Vec<f32> {
    let own = Stream::new(n as u64);
    let centre = Stream::new(9);
    let value = |i: usize| {
        let row = i / dim;
        let k = i % dim;
        let of_centre =
            centre.branch(own.branch(1).below(row as u64, centres as usize) as u64).normal(k as u64);
        (own.normal(i as u64) + of_centre) * (1.0 + k as f32).powf(-power / 2.0)
    };
    (0..n * dim).map(value).collect()
}

fn gpu_or_skip() -> Option<Gpu> {
    Gpu::open(0).map_err(|error| eprintln!("skipped: {error}")).ok()
}

/// What the stages find with `p` directions, whether or not they pay.
fn staged(gpu: &Gpu, features: &Features, p: usize, count: usize) -> (Rows, Lists) {
    let rows = Staging::new(gpu).unwrap().upload(gpu, features).unwrap();
    let width = count.min(rows.n - 1);
    let indices = gpu.buffer(rows.n * width).unwrap();
    let similarities = gpu.buffer(rows.n * width).unwrap();
    let lists = Lists { indices, similarities, width };
    let screen = Screen::new(gpu, &rows).unwrap();
    let directions = {
        let moments = directions::second_moments(gpu, &rows).unwrap();
        Directions::from_moments(gpu, &moments, rows.dim).unwrap()
    };
    staged::search(gpu, &rows, &screen, (&directions, p), &lists).unwrap();
    (rows, lists)
}

fn read(gpu: &Gpu, n: usize, lists: &Lists) -> (Vec<u32>, Vec<f32>) {
    let len = n * lists.width;
    (gpu.read(&lists.indices, len).unwrap(), gpu.read(&lists.similarities, len).unwrap())
}

#[track_caller]
fn check(gpu: &Gpu, name: &str, features: &Features, p: usize, count: usize) {
    let (rows, lists) = staged(gpu, features, p, count);
    let found = read(gpu, rows.n, &lists);
    let exact = Neighbours::exact(features, count);
    let (indices, similarities) = exact.lists();
    let wrong = |i: &usize| {
        let list = i * lists.width..(i + 1) * lists.width;
        found.0[list.clone()] != indices[list.clone()] || found.1[list.clone()] != similarities[list]
    };
    let wrong: Vec<usize> = (0..rows.n).filter(wrong).collect();
    let first = wrong.first().map(|&i| {
        let list = i * lists.width..(i + 1) * lists.width;
        (i, &found.0[list.clone()], &found.1[list.clone()], exact.of(i))
    });
    let n = features.len();
    let dim = features.dim();
    assert!(
        wrong.is_empty(),
        "{name}: {n} × {dim}, {p} directions, {count} neighbours: {} rows are wrong, first {first:?}",
        wrong.len()
    );
    eprintln!("{name}: {n} × {dim}, {p} directions, {count} neighbours: right");
}

#[test]
fn stages_find_the_neighbours_of_the_exact_search_bit_for_bit() {
    let Some(gpu) = gpu_or_skip() else { return };
    let features = |data: Vec<f32>, dim: usize| Features::new(data, dim).unwrap();
    for (n, dim, power) in
        [(3001, 256, 2.0), (5000, 300, 1.0), (4097, 515, 3.0), (2500, 130, 2.0), (300, 256, 2.0)]
    {
        let data = rows(n, dim, power, 20);
        for p in [63, 95, 127] {
            if p < 95 || dim >= 256 {
                check(&gpu, "steep", &features(data.clone(), dim), p, 50);
                check(&gpu, "steep", &features(data.clone(), dim), p, 7);
            }
        }
    }
    check(&gpu, "flat", &features(rows(3000, 256, 0.0, 40), 256), 63, 50);
    check(&gpu, "few rows", &features(rows(40, 256, 2.0, 3), 256), 63, 50);
    check(&gpu, "one direction", &features(rows(2000, 256, 12.0, 3), 256), 127, 50);
}

#[test]
fn stages_order_duplicates_and_zeros_as_the_exact_search_does() {
    let Some(gpu) = gpu_or_skip() else { return };
    let n = 5003;
    let dim = 256;
    let steep = rows(n, dim, 2.0, 30);
    let row = |i: usize| steep[i * dim..(i + 1) * dim].iter().copied();
    let with = |source: &dyn Fn(usize) -> Option<usize>| {
        let data: Vec<f32> =
            (0..n).flat_map(|i| source(i).map_or_else(|| vec![0.0; dim], |i| row(i).collect())).collect();
        Features::new(data, dim).unwrap()
    };
    for p in [63, 95, 127] {
        check(&gpu, "600 equal rows", &with(&|i| Some(if i % 8 == 3 { 3 } else { i })), p, 50);
        check(&gpu, "a third of equal rows", &with(&|i| Some(if i % 3 == 0 { 0 } else { i })), p, 50);
        check(&gpu, "pairs", &with(&|i| Some(i / 2)), p, 50);
        check(&gpu, "zeros", &with(&|i| (i % 50 != 7).then_some(i)), p, 50);
        check(&gpu, "many zeros", &with(&|i| (i % 4 != 1).then_some(i)), p, 50);
    }
    check(&gpu, "three rows", &with(&|i| Some(i % 3)), 63, 50);
    check(&gpu, "nothing", &with(&|_| None), 63, 50);
}

#[test]
fn many_rows_have_the_same_neighbours_in_stages_and_in_full() {
    let Some(gpu) = gpu_or_skip() else { return };
    let n = 150_001;
    let dim = 256;
    let features = Features::new(rows(n, dim, 2.0, 40), dim).unwrap();
    let (rows, by_stages) = staged(&gpu, &features, 63, 50);
    let in_full =
        Lists { indices: gpu.buffer(n * 50).unwrap(), similarities: gpu.buffer(n * 50).unwrap(), width: 50 };
    full::search(&gpu, &rows, &Screen::new(&gpu, &rows).unwrap(), None, &in_full).unwrap();
    assert!(read(&gpu, n, &by_stages) == read(&gpu, n, &in_full));
}
