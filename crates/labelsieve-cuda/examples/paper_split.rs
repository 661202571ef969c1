//! The shape of the paper's test split on one GPU: 311 classes, 3,744,994 candidates of 512 numbers, from 0 to 620,142 a class.
//!
//! ```text
//! cargo run --release -p labelsieve-cuda --example paper_split -- [search|classes|single|methods|grid|all]
//! ```

use std::error::Error;
use std::time::{Duration, Instant};

use labelsieve::classifier::{Cosine, WeightedClass};
use labelsieve::engine::{Engine, Job};
use labelsieve::graph::Neighbours;
use labelsieve::relevance::{LabelPropagation, Mlp, Similarity};
use labelsieve::{ClassProblem, Features, Method, NoisyPool};
use labelsieve_cuda::{Cuda, Phases};
use labelsieve_numerics::random::Stream;
use rayon::prelude::*;

const DIM: usize = 512;
const N_CLASSES: usize = 311;
const N_ROWS: usize = 3_744_994;
const LARGEST: usize = 620_142;
const SHOTS: [usize; 5] = [1, 2, 5, 10, 20];
const EPISODES: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let what = std::env::args().nth(1).unwrap_or_else(|| "all".to_owned());
    let wanted = |name: &str| what == name || what == "all";
    let start = Instant::now();
    let cuda = Cuda::open(0)?;
    println!("{}: kernels compiled and loaded in {:.2} s", cuda.name(), start.elapsed().as_secs_f64());
    if wanted("search") {
        for spectrum in [FLAT, PHOTOS, FASHION] {
            search_alone(&cuda, spectrum)?;
        }
    }
    if wanted("classes") {
        classes_alone(&cuda)?;
    }
    for spectrum in [PHOTOS, FLAT] {
        if !(wanted("single") || wanted("methods") || wanted("grid")) {
            break;
        }
        let classes = generate(spectrum);
        if wanted("single") {
            run(&cuda, &Method::gcn(), &classes, &SHOTS[..1], 1)?;
            run(&cuda, &Method::gcn(), &classes, &SHOTS[..1], 1)?;
        }
        if wanted("grid") {
            run(&cuda, &Method::gcn(), &classes, &SHOTS, EPISODES)?;
        }
        if wanted("methods") {
            for method in [
                Method::Mlp(Mlp::default()),
                Method::LabelPropagation(LabelPropagation::default()),
                Method::Similarity(Similarity {}),
            ] {
                run(&cuda, &method, &classes, &SHOTS[..1], 1)?;
            }
            classifiers(&cuda, &classes)?;
        }
    }
    Ok(())
}

fn generate(spectrum: Spectrum) -> Vec<Class> {
    let start = Instant::now();
    let classes: Vec<Class> =
        sizes().into_par_iter().enumerate().map(|(c, size)| Class::generate(c, size, spectrum)).collect();
    let rows = classes.iter().map(|class| class.noisy.features().len()).sum::<usize>();
    let time = start.elapsed();
    let n = classes.len();
    let name = spectrum.name;
    println!("\n{n} classes, {rows} rows with {name} generated in {:.1} s", time.as_secs_f64());
    classes
}

/// A long tail: size ∝ 1/(rank + 1)^a, the first 620,142, the last 0, the sum as in the paper.
fn sizes() -> Vec<usize> {
    let tail = |a: f64| -> Vec<f64> {
        (0..N_CLASSES - 1).map(|rank| LARGEST as f64 / (1.0 + rank as f64).powf(a)).collect()
    };
    let mut low = 0.1;
    let mut high = 3.0;
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if tail(middle).iter().sum::<f64>() > N_ROWS as f64 { low = middle } else { high = middle }
    }
    let mut sizes: Vec<usize> = tail(low).iter().map(|&size| size as usize).collect();
    let missing = N_ROWS - sizes.iter().sum::<usize>();
    sizes[1..].iter_mut().take(missing).for_each(|size| *size += 1); // the parts that rounding cut off
    sizes.push(0);
    sizes
}

/// A class's candidates and enough clean examples for every shot and episode.
struct Class {
    clean: Vec<Features>,
    noisy: NoisyPool,
}

impl Class {
    fn generate(class: usize, size: usize, spectrum: Spectrum) -> Class {
        let stream = Stream::new(class as u64);
        let centres = Stream::new(class as u64).branch(0);
        let clean = SHOTS
            .iter()
            .flat_map(|&k| (0..EPISODES).map(move |episode| (k, episode)))
            .map(|(k, episode)| rows(k, stream.branch((1 + episode * 100 + k) as u64), centres, spectrum))
            .collect();
        Class { clean, noisy: NoisyPool::new(rows(size, stream.branch(9999), centres, spectrum)) }
    }
}

/// How much of the rows lies along each direction: the eigenvalues of their second moments, λ₀ ≥ λ₁ ≥ ….
#[derive(Clone, Copy)]
struct Spectrum {
    name: &'static str,
    eigenvalue: fn(f64) -> f64,
    /// The share of the centres in each eigenvalue; the rest is noise around them.
    centres: f64,
}

/// As much in every direction, but for the 40 centres.
const FLAT: Spectrum = Spectrum { name: "a flat spectrum", eigenvalue: |_| 1.0, centres: 0.5 };

/// Features of a ResNet-10: 46,200 photos of Tiny ImageNet. A power law bent down before it breaks off, and one for the tail,
/// both read off the measured eigenvalues (λ₀ = 0.055, λ₁₆ = 0.018, λ₆₄ = 0.0044, λ₁₂₈ = 3.3e-5, λ₂₅₆ = 1.1e-5), the share of
/// the centres chosen such that similarities to the 50 nearest and the pairs that 63 directions leave come out alike: 0.28 %
/// of 44,000 generated rows, 0.29 % of the real ones. With 31 directions they do not (10 and 19 %).
const PHOTOS: Spectrum = Spectrum {
    name: "the spectrum of photos",
    eigenvalue: |k| {
        if k < 76.0 {
            0.0547 * (1.0 + k).powf(-0.42) / (1.0 + (k / 63.0).powi(6))
        } else {
            3.25e-5 * ((1.0 + k) / 129.0).powf(-1.5)
        }
    },
    centres: 0.35,
};

/// As above for 43,612 pictures of clothes (λ₀ = 0.15, λ₁₆ = 0.018, λ₃₂ = 0.0017, λ₆₄ = 3.1e-4, λ₂₅₆ = 4.4e-5). 63 directions leave
/// 0.21 % of the pairs here, 0.24 % there; real neighbours are nearer (0.81 for the fiftieth, 0.64 here).
const FASHION: Spectrum = Spectrum {
    name: "the spectrum of clothes",
    eigenvalue: |k| {
        if k < 33.0 {
            0.153 * (1.0 + k).powf(-0.75) / (1.0 + (k / 27.0).powi(8))
        } else {
            3.06e-4 * ((1.0 + k) / 65.0).powf(-1.4)
        }
    },
    centres: 0.35,
};

/// Rows around 40 centres, turned so that no direction is an axis. The sum of four random bytes stands in for a normal number:
/// it is fifty times faster.
fn rows(n: usize, stream: Stream, centres: Stream, spectrum: Spectrum) -> Features {
    let scales = |share: f64| -> Vec<f32> {
        (0..DIM).map(|k| ((spectrum.eigenvalue)(k as f64) * share).sqrt() as f32).collect()
    };
    let own_scale = scales(1.0 - spectrum.centres);
    let centre_scale = scales(spectrum.centres);
    let mut data = vec![0f32; n * DIM];
    data.par_chunks_mut(DIM * 64).enumerate().for_each(|(block, data)| {
        for (i, row) in data.chunks_exact_mut(DIM).enumerate() {
            let number = (block * 64 + i) as u64;
            let centre = centres.branch(stream.below(number, 40) as u64);
            let draws = stream.branch(number);
            for half in 0..DIM / 2 {
                let own = draws.bits(half as u64);
                let of_centre = centre.bits(half as u64);
                for (k, shift) in [(2 * half, 0), (2 * half + 1, 32)] {
                    row[k] = bell((own >> shift) as u32) * own_scale[k]
                        + bell((of_centre >> shift) as u32) * centre_scale[k];
                }
            }
            turn(row);
        }
    });
    Features::new(data, DIM).expect("generated numbers are finite")
}

/// A rotation, the same for all: random signs, then Walsh and Hadamard's transform.
fn turn(row: &mut [f32]) {
    let signs = Stream::new(77);
    for (block, row) in row.chunks_mut(64).enumerate() {
        let bits = signs.bits(block as u64);
        row.iter_mut().enumerate().filter(|(k, _)| bits >> k & 1 == 1).for_each(|(_, x)| *x = -*x);
    }
    let mut width = 1;
    while width < row.len() {
        for pair in row.chunks_exact_mut(2 * width) {
            let (low, high) = pair.split_at_mut(width);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        width *= 2;
    }
}

fn bell(bits: u32) -> f32 {
    bits.to_le_bytes().iter().map(|&byte| f32::from(byte) - 127.5).sum()
}

fn run(
    cuda: &Cuda,
    method: &Method,
    classes: &[Class],
    shots: &[usize],
    episodes: usize,
) -> Result<(), Box<dyn Error>> {
    let mut jobs = Vec::new();
    for class in classes {
        for shot in 0..shots.len() {
            for episode in 0..episodes {
                let clean = &class.clean[shot * EPISODES + episode];
                let problem = ClassProblem::new(clean, &class.noisy)?;
                jobs.push(Job { problem, seed: (shot * 10 + episode) as u64 });
            }
        }
    }
    cuda.take_phases();
    let start = Instant::now();
    let relevance = cuda.relevance(method, &jobs, &|_, _| ())?;
    let total = start.elapsed();
    let n: usize = jobs.iter().map(|job| job.problem.noisy.features().len() + job.problem.clean.len()).sum();
    let mean: f64 = relevance.iter().flat_map(|r| r.noisy()).map(|&r| f64::from(r)).sum::<f64>() / n as f64;
    let name = method.name();
    let n_shots = shots.len();
    println!(
        "\n{name}, {n_shots} shots × {episodes} episodes: {} jobs, {n} rows, mean {mean:.4}",
        jobs.len()
    );
    let is_trained = matches!(method, Method::Gcn(_) | Method::Mlp(_));
    report(total, cuda.take_phases(), classes, if is_trained { n } else { 0 });
    Ok(())
}

/// `n_trained`: rows that networks were trained on.
fn report(total: Duration, phases: Phases, classes: &[Class], n_trained: usize) {
    let sizes = || classes.iter().map(|class| class.noisy.features().len() as f64);
    let row = DIM as f64 * 4.0;
    let uploaded = sizes().sum::<f64>() * row;
    let products = sizes().map(|z| 2.0 * z * z * DIM as f64).sum::<f64>();
    let trained = n_trained as f64 * row * 2.0 * 100.0; // two passes over X an iteration
    let flops = n_trained as f64 * 2.0 * 2.0 * 16.0 * DIM as f64 * 100.0;
    let line = |name: &str, time: Duration, rate: String| {
        if time > Duration::from_millis(1) {
            println!("  {name:<28} {:>8.2} s   {rate}", time.as_secs_f64());
        }
    };
    let per = |amount: f64, time: Duration| amount / time.as_secs_f64().max(1e-9);
    line("upload", phases.upload, format!("{:.1} GB/s", per(uploaded, phases.upload) / 1e9));
    line(
        "search and noisy graph",
        phases.search,
        format!("{:.0} TFLOP/s of products", per(products, phases.search) / 1e12),
    );
    line("insertion and X = Ã V", phases.insertion, String::new());
    let rates = format!(
        "{:.2} TB/s of X, {:.1} TFLOP/s",
        per(trained, phases.training) / 1e12,
        per(flops, phases.training) / 1e12
    );
    line("training and results", phases.training, if n_trained > 0 { rates } else { String::new() });
    line("all", total, String::new());
}

/// The search by itself, at the sizes of the anchors; compared with the CPU's whole result, or with some of its rows.
fn search_alone(cuda: &Cuda, spectrum: Spectrum) -> Result<(), Box<dyn Error>> {
    println!(
        "\nsearch alone, rows with {}, top 50, d = 512, with upload and results' way back",
        spectrum.name
    );
    for n in [1_000, 10_000, 30_000, 100_000, 300_000, LARGEST] {
        let features = rows(n, Stream::new(1), Stream::new(2), spectrum);
        cuda.neighbours(&features, 50)?;
        let start = Instant::now();
        let found = cuda.neighbours(&features, 50)?;
        let time = start.elapsed().as_secs_f64();
        let verdict = if n <= 100_000 {
            let start = Instant::now();
            let equal = found == Neighbours::exact(&features, 50);
            format!("equal to the CPU's ({:.2} s): {equal}", start.elapsed().as_secs_f64())
        } else {
            format!("recall on 64 rows: {}", recall(&features, &found))
        };
        let rate = 2.0 * (n as f64).powi(2) * DIM as f64 / time / 1e12;
        println!("  N = {n:>7}   {time:>8.4} s   {rate:>4.0} TFLOP/s   {verdict}");
    }
    Ok(())
}

/// Prototypes and a cosine classifier of all classes, every candidate counting a half.
fn classifiers(cuda: &Cuda, classes: &[Class]) -> Result<(), Box<dyn Error>> {
    let half = vec![0.5; LARGEST];
    let weighted: Vec<WeightedClass> = classes
        .iter()
        .map(|class| {
            let noisy = class.noisy.features();
            WeightedClass::new(&class.clean[0], noisy, &half[..noisy.len()])
        })
        .collect::<Result<_, _>>()?;
    let start = Instant::now();
    cuda.prototypes(&weighted, DIM, 10.0)?;
    println!("\nprototypes of all classes: {:.2} s", start.elapsed().as_secs_f64());
    for epochs in [1, 3] {
        let settings = Cosine { batch_size: 4096, epochs, ..Cosine::default() };
        let start = Instant::now();
        cuda.train_cosine(&settings, &weighted, DIM, 0)?;
        println!("cosine classifier, {epochs} epochs of 4096: {:.2} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// One class by itself with one clean example, everything included, as an impatient person would see it.
fn classes_alone(cuda: &Cuda) -> Result<(), Box<dyn Error>> {
    println!("\none class, k = 1: upload, search, graph, 100 iterations, results");
    for n in [1_000, 10_000, 30_000, 100_000, 300_000, LARGEST] {
        let pool = NoisyPool::new(rows(n, Stream::new(1), Stream::new(2), FLAT));
        let clean = rows(1, Stream::new(3), Stream::new(2), FLAT);
        let jobs = [Job { problem: ClassProblem::new(&clean, &pool)?, seed: 0 }];
        cuda.relevance(&Method::gcn(), &jobs, &|_, _| ())?;
        cuda.take_phases();
        let start = Instant::now();
        cuda.relevance(&Method::gcn(), &jobs, &|_, _| ())?;
        let all = start.elapsed().as_secs_f64();
        let phases = cuda.take_phases();
        let [upload, search, insertion, training] =
            [phases.upload, phases.search, phases.insertion, phases.training].map(|time| time.as_secs_f64());
        println!("  N = {n:>7}   {upload:.4} + {search:.4} + {insertion:.4} + {training:.4} = {all:.4} s");
    }
    Ok(())
}

/// The share of true neighbours found, by all similarities of a few rows in `f64`.
fn recall(features: &Features, found: &Neighbours) -> f64 {
    let n = features.len();
    let hits: usize = (0..64usize)
        .into_par_iter()
        .map(|i| {
            let row = i * (n / 64);
            let similarity = |j: usize| -> f64 {
                let pairs = features.row(row).iter().zip(features.row(j));
                pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
            };
            let mut all: Vec<f64> = (0..n).filter(|&j| j != row).map(similarity).collect();
            let (_, &mut fiftieth, _) = all.select_nth_unstable_by(49, |a, b| b.total_cmp(a));
            found.of(row).0.iter().filter(|&&j| similarity(j as usize) >= fiftieth - 1e-6).count()
        })
        .sum();
    hits as f64 / (64.0 * 50.0)
}
