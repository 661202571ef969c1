//! The leading eigenvectors of a symmetric matrix, in double precision.
//!
//! ```text
//! A ──Householder──► tridiagonal T ──bisection──► eigenvalues ──inverse iteration──► eigenvectors of T ──► of A
//! ```
//!
//! Only the first step is cubic, and it walks over the matrix once per column: a covariance of 2048×2048 takes seconds.
//! Every sum has a fixed order, so the result depends neither on the number of threads nor on the vector instructions.
//!
//! Why not a library? Measured on two cores with some other work on them (release, `faer` 0.24 with `std` and `linalg` on one
//! thread, `nalgebra` 0.34 with `std`; residuals of all three are below 10⁻¹⁴ of the largest eigenvalue):
//!
//! | | this file | `faer` | `nalgebra` |
//! |---|---|---|---|
//! | 64 eigenvectors of 256×256 | 22 ms | 7 ms | 15 ms |
//! | 256 of 512×512 | 0.24 s | 0.03 s | 0.11 s |
//! | 256 of 2048×2048 | 3.1 s | 1.9 s | 8.5 s |
//! | crates added to the workspace | 0 | 23 | 6 |
//! | CPU time added to a first build | 0 | 124 s | 30 s |
//!
//! A PCA is fitted once per network, after an embedding that takes minutes. `faer` would save a second or two there and cost
//! two minutes of compiling in every checkout; it also chooses its instructions itself, so its last bits may differ between
//! machines. `nalgebra` is cheap to build, but the slowest where the time counts.

use labelsieve_numerics::random::Stream;
use rayon::prelude::*;

/// Eigenvalues in descending order with their eigenvectors, one after the other.
pub(crate) struct Eigen {
    pub(crate) values: Vec<f64>,
    pub(crate) vectors: Vec<Vec<f64>>,
}

/// The `count` largest eigenvalues of the symmetric n×n matrix `a` (fewer when it is smaller). `a` is used up. Vectors
/// have unit length and are orthogonal, whatever eigenvalues coincide.
pub(crate) fn leading(a: Vec<f64>, n: usize, count: usize) -> Eigen {
    let (tridiagonal, reflections) = tridiagonalise(a, n);
    let values: Vec<f64> =
        (0..count.min(n)).into_par_iter().map(|rank| tridiagonal.eigenvalue(n - 1 - rank)).collect();
    let mut vectors: Vec<Vec<f64>> = Vec::with_capacity(values.len());
    for (rank, &value) in values.iter().enumerate() {
        let vector = tridiagonal.eigenvector(value, &vectors, Stream::new(rank as u64));
        vectors.push(vector);
    }
    vectors.par_iter_mut().for_each(|vector| reflections.iter().rev().for_each(|r| r.apply(vector)));
    Eigen { values, vectors }
}

/// I - factor · v vᵀ on the coordinates from `start` on.
struct Reflection {
    start: usize,
    factor: f64,
    v: Vec<f64>,
}

impl Reflection {
    fn apply(&self, x: &mut [f64]) {
        let x = &mut x[self.start..];
        add_scaled(x, -self.factor * dot(x, &self.v), &self.v);
    }
}

struct Tridiagonal {
    diagonal: Vec<f64>,
    /// Beside the diagonal, one number less.
    beside: Vec<f64>,
}

/// Householder's method. The change A - v wᵀ - w vᵀ of a step is made in the same pass over the rows as the product with
/// the next step's v, which halves the memory that is walked over.
fn tridiagonalise(mut a: Vec<f64>, n: usize) -> (Tridiagonal, Vec<Reflection>) {
    let mut diagonal = Vec::with_capacity(n);
    let mut beside = Vec::with_capacity(n);
    let mut reflections: Vec<Reflection> = Vec::with_capacity(n);
    let mut v = vec![0.0; n];
    let mut w = vec![0.0; n]; // the change still to be made to rows and columns k..
    for k in 0..n {
        let row = &mut a[k * n + k..(k + 1) * n];
        subtract_both(row, v[0], &w, w[0], &v);
        diagonal.push(row[0]);
        let next = reflection(&mut row[1..], k + 1);
        let Some((reflection, corner)) = next else { break };
        beside.push(corner);
        let products: Vec<f64> = a[(k + 1) * n..]
            .par_chunks_mut(n)
            .enumerate()
            .map(|(i, row)| {
                let row = &mut row[k + 1..];
                subtract_both(row, v[i + 1], &w[1..], w[i + 1], &v[1..]);
                dot(row, &reflection.v)
            })
            .collect();
        let half = 0.5 * reflection.factor * reflection.factor * dot(&products, &reflection.v);
        w = products.iter().zip(&reflection.v).map(|(p, v)| reflection.factor * p - half * v).collect();
        v.clone_from(&reflection.v);
        reflections.push(reflection);
    }
    (Tridiagonal { diagonal, beside }, reflections)
}

/// The reflection that turns `x` into a multiple of the first axis, and that multiple; none for an empty `x`.
fn reflection(x: &mut [f64], start: usize) -> Option<(Reflection, f64)> {
    let &first = x.first()?;
    let largest = x.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let mut v = vec![0.0; x.len()];
    if largest == 0.0 || x.len() == 1 {
        return Some((Reflection { start, factor: 0.0, v }, first));
    }
    v.iter_mut().zip(&*x).for_each(|(v, x)| *v = x / largest); // squares neither overflow nor vanish
    let length = dot(&v, &v).sqrt().copysign(v[0]);
    v[0] += length;
    let factor = 2.0 / dot(&v, &v);
    Some((Reflection { start, factor, v }, -length * largest))
}

impl Tridiagonal {
    /// The eigenvalue of this rank, from 0 for the smallest, by bisection: slow but certain.
    fn eigenvalue(&self, rank: usize) -> f64 {
        let radius = self.norm();
        let mut low = -radius;
        let mut high = radius;
        loop {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high || high - low <= f64::EPSILON * radius {
                return middle;
            }
            if self.count_below(middle) > rank { high = middle } else { low = middle }
        }
    }

    /// How many eigenvalues are smaller than `x`: the negative pivots of T - x I (Sylvester's law of inertia).
    fn count_below(&self, x: f64) -> usize {
        let tiny = f64::MIN_POSITIVE.max(f64::EPSILON * f64::EPSILON * self.norm());
        let mut count = 0;
        let mut pivot = 1.0;
        for (i, d) in self.diagonal.iter().enumerate() {
            let beside = if i == 0 { 0.0 } else { self.beside[i - 1] };
            pivot = d - x - beside * beside / pivot;
            if pivot.abs() < tiny {
                pivot = -tiny;
            }
            count += usize::from(pivot < 0.0);
        }
        count
    }

    /// Inverse iteration: (T - value I)⁻¹ blows up whatever lies along the eigenvector. What is known already is taken
    /// out after each round, so equal eigenvalues get different vectors.
    fn eigenvector(&self, value: f64, known: &[Vec<f64>], stream: Stream) -> Vec<f64> {
        const ROUNDS: usize = 4;
        let factors = self.factorise(value);
        let mut x: Vec<f64> = (0..self.diagonal.len()).map(|i| f64::from(stream.normal(i as u64))).collect();
        for _ in 0..ROUNDS {
            factors.solve(&mut x);
            scale_to_unit(&mut x);
            for _ in 0..2 {
                for other in known {
                    let along = dot(&x, other);
                    add_scaled(&mut x, -along, other);
                }
                scale_to_unit(&mut x);
            }
        }
        x
    }

    /// T - value I = P L U, with pivots that are never zero.
    fn factorise(&self, value: f64) -> Factors {
        let n = self.diagonal.len();
        let tiny = (f64::EPSILON * self.norm()).max(1e-290);
        let not_zero = |pivot: f64| if pivot.abs() < tiny { tiny.copysign(pivot) } else { pivot };
        let mut rows: Vec<[f64; 3]> = Vec::with_capacity(n);
        let mut steps = Vec::with_capacity(n);
        let mut row = [self.diagonal[0] - value, self.beside.first().copied().unwrap_or(0.0), 0.0];
        for i in 1..n {
            let mut below =
                [self.beside[i - 1], self.diagonal[i] - value, self.beside.get(i).copied().unwrap_or(0.0)];
            let swapped = below[0].abs() > row[0].abs();
            if swapped {
                std::mem::swap(&mut row, &mut below);
            }
            row[0] = not_zero(row[0]);
            let multiple = below[0] / row[0];
            rows.push(row);
            steps.push((swapped, multiple));
            row = [below[1] - multiple * row[1], below[2] - multiple * row[2], 0.0];
        }
        row[0] = not_zero(row[0]);
        rows.push(row);
        Factors { rows, steps }
    }

    /// A bound on every eigenvalue (Gershgorin).
    fn norm(&self) -> f64 {
        let beside = |i: usize| self.beside.get(i).map_or(0.0, |value| value.abs());
        let row = |i: usize| self.diagonal[i].abs() + beside(i) + if i > 0 { beside(i - 1) } else { 0.0 };
        (0..self.diagonal.len()).map(row).fold(0.0, f64::max)
    }
}

struct Factors {
    /// U: the diagonal and the two numbers behind it.
    rows: Vec<[f64; 3]>,
    /// L with the exchanges of rows.
    steps: Vec<(bool, f64)>,
}

impl Factors {
    fn solve(&self, x: &mut [f64]) {
        for (i, &(swapped, multiple)) in self.steps.iter().enumerate() {
            if swapped {
                x.swap(i, i + 1);
            }
            x[i + 1] -= multiple * x[i];
        }
        for i in (0..self.rows.len()).rev() {
            let [pivot, next, after] = self.rows[i];
            let behind = |j: usize| x.get(j).copied().unwrap_or(0.0);
            x[i] = (x[i] - next * behind(i + 1) - after * behind(i + 2)) / pivot;
            if x[i].abs() > 1e150 {
                x.iter_mut().for_each(|value| *value *= 1e-150); // only the direction counts
            }
        }
    }
}

fn scale_to_unit(x: &mut [f64]) {
    let largest = x.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    if largest > 0.0 {
        x.iter_mut().for_each(|value| *value /= largest);
        let length = dot(x, x).sqrt();
        x.iter_mut().for_each(|value| *value /= length);
    }
}

/// Eight sums side by side, which the compiler turns into vector instructions.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

fn add_scaled(x: &mut [f64], factor: f64, y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += factor * y);
}

/// `x -= a · b + c · d` for vectors b and d.
fn subtract_both(x: &mut [f64], a: f64, b: &[f64], c: f64, d: &[f64]) {
    x.iter_mut().zip(b.iter().zip(d)).for_each(|(x, (b, d))| *x -= a * b + c * d);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every vector is an eigenvector of its value, they are orthonormal, and the values descend.
    #[track_caller]
    fn check(a: &[f64], n: usize, count: usize) -> Vec<f64> {
        let eigen = leading(a.to_vec(), n, count);
        let size = a.iter().fold(1e-300, |most: f64, value| most.max(value.abs())) * n as f64;
        for (i, vector) in eigen.vectors.iter().enumerate() {
            for (row, &x) in a.chunks(n).zip(vector) {
                assert!((dot(row, vector) - eigen.values[i] * x).abs() < 1e-12 * size, "vector {i} of {a:?}");
            }
            for (j, other) in eigen.vectors[..=i].iter().enumerate() {
                let expected = if i == j { 1.0 } else { 0.0 };
                assert!((dot(vector, other) - expected).abs() < 1e-12, "{i} · {j}");
            }
        }
        assert!(eigen.values.windows(2).all(|pair| pair[0] >= pair[1] - 1e-13 * size));
        eigen.values
    }

    #[test]
    fn two_by_two_by_hand() {
        let values = check(&[2.0, 1.0, 1.0, 2.0], 2, 2);
        assert!((values[0] - 3.0).abs() < 1e-14 && (values[1] - 1.0).abs() < 1e-14, "{values:?}");
    }

    #[test]
    fn equal_eigenvalues_get_orthogonal_vectors() {
        let diagonal = |values: &[f64]| -> Vec<f64> {
            let n = values.len();
            (0..n * n).map(|i| if i % n == i / n { values[i / n] } else { 0.0 }).collect()
        };
        check(&diagonal(&[1.0; 6]), 6, 6);
        check(&diagonal(&[0.0; 4]), 4, 4);
        check(&diagonal(&[3.0, 1.0, 3.0, 1.0, 3.0]), 5, 5);
        check(&diagonal(&[7.0]), 1, 3);
        check(&[1.0; 49], 7, 7); // rank one
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let a: Vec<f64> = symmetric(33, 5);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let one = pool.install(|| leading(a.clone(), 33, 9));
        let many = leading(a, 33, 9);
        assert_eq!((one.values, one.vectors), (many.values, many.vectors));
    }

    fn symmetric(n: usize, seed: u64) -> Vec<f64> {
        let stream = Stream::new(seed);
        (0..n * n)
            .map(|i| f64::from(stream.normal((i / n).min(i % n) as u64 * 1000 + (i / n).max(i % n) as u64)))
            .collect()
    }

    proptest! {
        #[test]
        fn random_matrices_of_any_scale(n in 1usize..24, seed: u64, exponent in -60i32..60) {
            let a: Vec<f64> = symmetric(n, seed).iter().map(|x| x * 10f64.powi(exponent)).collect();
            let values = check(&a, n, n);
            let trace: f64 = (0..n).map(|i| a[i * n + i]).sum();
            prop_assert!((values.iter().sum::<f64>() - trace).abs() <= 1e-12 * n as f64 * 10f64.powi(exponent + 1));
        }
    }
}
