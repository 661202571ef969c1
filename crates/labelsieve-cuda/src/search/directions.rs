//! The leading directions of rows, and rows along them.
//!
//! Features of real images fill few of their dimensions. Orthonormal directions P that hold most of them are found by
//! subspace iteration on the second moments of a sample. A row x becomes Px and the length r of the rest, |x − PᵀPx|; then
//!
//! ```text
//! x·y ≤ Px·Py + r s
//! ```
//!
//! whatever the directions are: bad ones only leave a long rest.
#![expect(unsafe_code, reason = "cuBLAS is a C library; the block says what makes it sound")]

use cudarc::cublas::result::gemm_ex;
use cudarc::cublas::sys as blas;
use cudarc::driver::{CudaSlice, LaunchConfig};

use crate::error::Result;
use crate::gpu::{Gpu, at, blocks, launch, warp_per_row};
use crate::kernels::CHOLESKY_SHARED;
use crate::rows::Rows;

/// Rows that the directions are made from.
const SAMPLE: usize = 8192;
/// Steps of subspace iteration. Four leave 1.03 times as much outside as the best directions would, on features of two networks.
const ROUNDS: usize = 4;
/// (Σλ)² / Σλ² of the second moments: so many directions of equal weight would hold all. Features of two networks have 15
/// and 48. From here on, what the leading ones leave is too long to say anything.
const MAX_SPREAD: f32 = 100.0;
/// Coordinates are summed over so many numbers at a time, because the error of a sum grows with its length.
const SUMMED: usize = 64;
/// Rows whose coordinates are made at a time.
const AT_ONCE: usize = 65_536;

/// Orthonormal directions, one a row. The first p of them are good directions too.
pub(super) struct Directions {
    values: CudaSlice<f32>,
    pub count: usize,
    dim: usize,
    /// ‖PPᵀ − I‖.
    deviation: f32,
}

/// Rows along directions, in 16-bit floats: p coordinates and the length of the rest, `width` = p + 1 numbers.
pub(super) struct Leads {
    pub values: CudaSlice<u16>,
    pub width: usize,
    /// How much more than the product of two leads their rows' similarity can be.
    pub margin: f32,
}

/// A matrix as cuBLAS sees it: column by column, `stride` apart.
#[derive(Clone, Copy)]
struct Matrix {
    address: u64,
    stride: usize,
}

/// How a product is made.
#[derive(Clone, Copy)]
enum Arithmetic {
    /// In `f32` throughout, whatever the environment allows.
    True,
    /// With factors cut to 11 bits.
    Fast,
}

/// A factor of a product.
#[derive(Clone, Copy)]
enum Factor {
    Plain(Matrix),
    Transposed(Matrix),
}
use Factor::{Plain, Transposed};

/// How far from orthonormal directions may be for the bounds to hold; it comes to 10⁻⁵ or so.
const LARGEST_DEVIATION: f32 = 0.02;

impl Directions {
    /// Memory that finding and using them takes, rows along them not counted.
    pub fn bytes(dim: usize) -> usize {
        const MAX_WIDTH: usize = 128;
        4 * (dim * dim + MAX_WIDTH * (3 * dim + 2 * MAX_WIDTH + AT_ONCE))
    }

    /// The leading directions of `rows`, 127 at most; none where the rows fill too many.
    pub fn new(gpu: &Gpu, rows: &Rows) -> Result<Option<Directions>> {
        let moments = second_moments(gpu, rows)?;
        if spread(gpu, &moments, rows.dim)? > MAX_SPREAD {
            return Ok(None);
        }
        let directions = Directions::from_moments(gpu, &moments, rows.dim)?;
        Ok((directions.deviation < LARGEST_DEVIATION).then_some(directions))
    }

    /// The leading directions of rows with these second moments.
    pub fn from_moments(gpu: &Gpu, moments: &CudaSlice<f32>, dim: usize) -> Result<Directions> {
        let count = if dim < 256 { 63 } else { 127 };
        let n = count * dim;
        let products = gpu.buffer(n)?;
        let mut directions = Directions { values: gpu.buffer(n)?, count, dim, deviation: 0.0 };
        launch!(
            gpu.stream,
            gpu.kernels.random_signs,
            blocks(n.div_ceil(256), 256),
            at(&directions.values),
            n as u32
        );
        for _ in 0..ROUNDS {
            let all = Plain(Matrix::new(moments, dim));
            let some = Plain(directions.matrix());
            product(gpu, Arithmetic::True, all, some, (dim, count, dim), 0.0, Matrix::new(&products, dim))?;
            directions.orthonormalise(gpu, &products)?;
        }
        let once_more = std::mem::replace(&mut directions.values, gpu.buffer(n)?);
        directions.orthonormalise(gpu, &once_more)?;
        directions.deviation = directions.measure_deviation(gpu)?;
        Ok(directions)
    }

    fn matrix(&self) -> Matrix {
        Matrix::new(&self.values, self.dim)
    }

    /// Orthonormal directions that span what the rows of `from` do, by Cholesky's factors of their products.
    fn orthonormalise(&mut self, gpu: &Gpu, from: &CudaSlice<f32>) -> Result<()> {
        let p = self.count;
        let dim = self.dim;
        let products = gpu.buffer(p * p)?;
        let inverse_diagonal = gpu.buffer::<f32>(p)?;
        let rows = Matrix::new(from, dim);
        product(
            gpu,
            Arithmetic::True,
            Transposed(rows),
            Plain(rows),
            (p, p, dim),
            0.0,
            Matrix::new(&products, p),
        )?;
        let shape = LaunchConfig { shared_mem_bytes: CHOLESKY_SHARED, ..blocks(1, 1024) };
        launch!(gpu.stream, gpu.kernels.cholesky, shape, at(&products), p as u32, at(&inverse_diagonal));
        launch!(
            gpu.stream,
            gpu.kernels.forward_substitution,
            blocks(dim.div_ceil(32), 32),
            at(&products),
            at(&inverse_diagonal),
            p as u32,
            at(from),
            at(&self.values),
            dim as u32,
        );
        Ok(())
    }

    fn measure_deviation(&self, gpu: &Gpu) -> Result<f32> {
        let square = gpu.zeros::<f64>(1)?;
        launch!(
            gpu.stream,
            gpu.kernels.deviation,
            warp_per_row(self.count * self.count),
            at(&self.values),
            self.count as u32,
            self.dim as u32,
            at(&square),
        );
        Ok((gpu.read(&square, 1)?[0].sqrt() * 1.000_001) as f32)
    }

    /// Coordinates of every `step`-th row from `first` on, `n` of them, row by row, `width` apart.
    pub fn coordinates(
        &self,
        gpu: &Gpu,
        rows: &Rows,
        (first, n, step): (usize, usize, usize),
        (p, width): (usize, usize),
        out: &CudaSlice<f32>,
    ) -> Result<()> {
        for start in (0..self.dim).step_by(SUMMED) {
            let directions = self.matrix().without_rows(start);
            let rows = Matrix { address: rows.address(), stride: rows.stride * step };
            let rows = Matrix { address: rows.address + (first * rows.stride * 4) as u64, ..rows };
            let shape = (p, n, SUMMED.min(self.dim - start));
            let before = if start == 0 { 0.0 } else { 1.0 };
            product(
                gpu,
                Arithmetic::True,
                Transposed(directions),
                Plain(rows.without_rows(start)),
                shape,
                before,
                Matrix::new(out, width),
            )?;
        }
        Ok(())
    }

    /// Coordinates as in [`Directions::coordinates`], but direction by direction; not for bounds.
    pub fn turned_coordinates(
        &self,
        gpu: &Gpu,
        rows: &Rows,
        (n, step): (usize, usize),
        out: &CudaSlice<f32>,
    ) -> Result<()> {
        let rows = Matrix { address: rows.address(), stride: rows.stride * step };
        let shape = (n, self.count, self.dim);
        product(
            gpu,
            Arithmetic::Fast,
            Transposed(rows),
            Plain(self.matrix()),
            shape,
            0.0,
            Matrix::new(out, n),
        )
    }
}

impl Leads {
    /// `rows` along the first `p` directions.
    pub fn new(gpu: &Gpu, rows: &Rows, directions: &Directions, p: usize) -> Result<Leads> {
        let width = p + 1;
        let errors = Errors::new(directions, p);
        let values = gpu.buffer(rows.n * width)?;
        let largest_move = gpu.zeros::<u32>(1)?;
        let coordinates = gpu.buffer(rows.n.min(AT_ONCE) * width)?;
        for first in (0..rows.n).step_by(AT_ONCE) {
            let n = AT_ONCE.min(rows.n - first);
            directions.coordinates(gpu, rows, (first, n, 1), (p, width), &coordinates)?;
            launch!(
                gpu.stream,
                gpu.kernels.lead_rows,
                warp_per_row(n),
                at(&coordinates),
                rows.address() + (first * rows.stride * 4) as u64,
                n as u32,
                rows.dim as u32,
                rows.stride as u32,
                p as u32,
                width as u32,
                errors.rest,
                at(&values) + (first * width * 2) as u64,
                at(&largest_move),
            );
        }
        let largest_move = f32::from_bits(gpu.read(&largest_move, 1)?[0]);
        Ok(Leads { values, width, margin: errors.margin(largest_move) })
    }
}

/// What rounding does to bounds by p directions.
///
/// With G = PPᵀ, x = Pᵀx₁ + u and x₁ = Px, Pu is (I − G)x₁ and x·y is x₁·y₁ + (Pu)·y₁ + u·v, so directions that deviate
/// by δ add at most δ, and |u|² ≤ |x|² − |x₁|² + δ.
struct Errors {
    /// Of the square of the rest's length.
    rest: f32,
    /// Of a product, before coordinates are rounded to 16 bits.
    product: f32,
}

impl Errors {
    fn new(directions: &Directions, p: usize) -> Errors {
        let dim = directions.dim;
        // Each coordinate is a sum of SUMMED products and then of dim / SUMMED such sums, off by at most half of this.
        let coordinates = (SUMMED + dim.div_ceil(SUMMED) + 2) as f32 * f32::EPSILON * (p as f32).sqrt();
        // Squares, products on tensor cores, which cut off where others round, and the exact `dot`.
        let sums = (dim.div_ceil(32) + p + 32) as f32 * f32::EPSILON * 4.0;
        Errors {
            rest: 2.1 * coordinates + 1.1 * directions.deviation + sums,
            product: 2.1 * coordinates + 1.1 * directions.deviation + sums,
        }
    }

    /// Of a product of leads of which none moved by more than `largest_move` when its coordinates were rounded.
    fn margin(&self, largest_move: f32) -> f32 {
        2.0 * 1.01 * largest_move + self.product
    }
}

/// XᵀX of a sample of the rows, every so many.
pub(super) fn second_moments(gpu: &Gpu, rows: &Rows) -> Result<CudaSlice<f32>> {
    let dim = rows.dim;
    let n = rows.n.min(SAMPLE);
    let moments = gpu.buffer(dim * dim)?;
    let sample = Matrix { address: rows.address(), stride: rows.stride * (rows.n / n) };
    product(
        gpu,
        Arithmetic::Fast,
        Plain(sample),
        Transposed(sample),
        (dim, dim, n),
        0.0,
        Matrix::new(&moments, dim),
    )?;
    Ok(moments)
}

/// See [`MAX_SPREAD`]; infinite for rows of zeros.
fn spread(gpu: &Gpu, moments: &CudaSlice<f32>, dim: usize) -> Result<f32> {
    let sums = gpu.buffer::<f32>(2)?;
    launch!(gpu.stream, gpu.kernels.trace_and_square, blocks(1, 1024), at(moments), dim as u32, at(&sums));
    let sums = gpu.read(&sums, 2)?;
    Ok(if sums[1] > 0.0 { sums[0] * sums[0] / sums[1] } else { f32::INFINITY })
}

impl Matrix {
    fn new(values: &CudaSlice<f32>, stride: usize) -> Matrix {
        Matrix { address: at(values), stride }
    }

    /// Without its first `n` rows.
    fn without_rows(self, n: usize) -> Matrix {
        Matrix { address: self.address + (n * 4) as u64, ..self }
    }
}

/// c = a b + `before` c, where c is m × n and a has k columns.
fn product(
    gpu: &Gpu,
    arithmetic: Arithmetic,
    a: Factor,
    b: Factor,
    (m, n, k): (usize, usize, usize),
    before: f32,
    c: Matrix,
) -> Result<()> {
    use blas::cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T};
    let parts = |factor| match factor {
        Plain(matrix) => (CUBLAS_OP_N, matrix),
        Transposed(matrix) => (CUBLAS_OP_T, matrix),
    };
    let (turn_a, a) = parts(a);
    let (turn_b, b) = parts(b);
    let one = 1f32;
    let float = blas::cudaDataType::CUDA_R_32F;
    let compute = match arithmetic {
        Arithmetic::True => blas::cublasComputeType_t::CUBLAS_COMPUTE_32F_PEDANTIC,
        Arithmetic::Fast => blas::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
    };
    // SAFETY: the matrices lie inside their buffers, `stride` apart. The scalars are read before the call returns.
    unsafe {
        gemm_ex(
            *gpu.blas.handle(),
            turn_a,
            turn_b,
            m as i32,
            n as i32,
            k as i32,
            (&raw const one).cast(),
            a.address as *const _,
            float,
            a.stride as i32,
            b.address as *const _,
            float,
            b.stride as i32,
            (&raw const before).cast(),
            c.address as *mut _,
            float,
            c.stride as i32,
            compute,
            blas::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
        )?;
    }
    Ok(())
}
