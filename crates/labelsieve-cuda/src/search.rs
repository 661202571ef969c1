//! Exact neighbours, without an N×N matrix, as on the CPU: a fast product screens, exact similarities decide.
//!
//! Rows rounded to 16-bit floats are multiplied tile by tile on the tensor cores. How far a score may be off is known in
//! advance: rounding moves row i by eᵢ = ‖vᵢ − v̂ᵢ‖, and |a·b − â·b̂| ≤ ‖a‖·‖b − b̂‖ + ‖a − â‖·‖b̂‖; the sums round, and so
//! do the scores themselves. What a row cannot exclude is measured with the CPU's own `dot`. Two streams take turns with
//! blocks of rows, so that selection on one hides behind the products on the other.
#![expect(unsafe_code, reason = "cuBLAS is a C library; the block says what makes it sound")]

use cudarc::cublas::{result::gemm_ex, sys as blas};
use cudarc::driver::{CudaSlice, CudaStream};

use crate::error::Result;
use crate::gpu::{Gpu, at, launch, warp_per_row};
use crate::rows::Rows;

/// The most neighbours a row can ask for; candidates beyond twice that many are measured early.
pub(crate) const MOST_NEIGHBOURS: usize = 256;

/// Candidate slots per row, as in `screen.cu`.
const CAPACITY: usize = 512;

/// Rows and columns of a tile. Measured on an H200 at N = 620,142: 4096 × 2048 takes 1.42 s, this 1.31 s, more gains nothing.
const TILE_ROWS: usize = 8192;
const TILE_COLUMNS: usize = 4096;

/// For each row its `width` nearest others, best first.
pub(crate) struct Lists {
    pub indices: CudaSlice<u32>,
    pub similarities: CudaSlice<f32>,
    pub width: usize,
}

/// Rows in 16-bit floats and what that costs in exactness.
struct Screen {
    halves: CudaSlice<u16>,
    stride: usize,
    /// Twice the largest error of a score.
    margin: f32,
}

/// One block of rows at work.
struct Block<'a> {
    stream: &'a CudaStream,
    scores: CudaSlice<u16>,
    candidates: CudaSlice<u64>,
    counts: CudaSlice<u32>,
    floors: CudaSlice<f32>,
}

/// The `count` nearest other rows of each row.
pub(crate) fn nearest(gpu: &Gpu, rows: &Rows, count: usize) -> Result<Lists> {
    let width = count.min(rows.n.saturating_sub(1));
    let lists =
        Lists { indices: gpu.buffer(rows.n * width)?, similarities: gpu.buffer(rows.n * width)?, width };
    if width == 0 {
        return Ok(lists);
    }
    let screen = Screen::new(gpu, rows)?;
    let (tile_rows, tile_columns) = (TILE_ROWS.min(rows.n), TILE_COLUMNS.min(rows.n.next_multiple_of(8)));
    let blocks = [Block::new(gpu, 0, tile_rows, tile_columns)?, Block::new(gpu, 1, tile_rows, tile_columns)?];
    let ready = gpu.stream.record_event(None)?;
    blocks.iter().try_for_each(|block| block.stream.wait(&ready))?;
    for (b, first_row) in (0..rows.n).step_by(tile_rows).enumerate() {
        let n_rows = tile_rows.min(rows.n - first_row);
        for first_column in (0..rows.n).step_by(tile_columns) {
            let n_columns = tile_columns.min(rows.n - first_column);
            multiply(
                gpu,
                b % 2,
                &screen,
                (first_row, n_rows),
                (first_column, n_columns),
                &blocks[b % 2],
                tile_columns,
            )?;
            let block = &blocks[b % 2];
            launch!(
                block.stream,
                gpu.kernels.select_candidates,
                warp_per_row(n_rows),
                at(&block.scores),
                tile_columns as u32,
                n_rows as u32,
                n_columns as u32,
                first_row as u32,
                first_column as u32,
                width as u32,
                screen.margin,
                at(&block.candidates),
                at(&block.counts),
                at(&block.floors),
                rows.address(),
                rows.dim as u32,
                rows.stride as u32,
            );
        }
        let block = &blocks[b % 2];
        launch!(
            block.stream,
            gpu.kernels.rank_candidates,
            warp_per_row(n_rows),
            at(&block.candidates),
            at(&block.counts),
            n_rows as u32,
            first_row as u32,
            width as u32,
            screen.margin,
            rows.address(),
            rows.dim as u32,
            rows.stride as u32,
            at(&lists.indices),
            at(&lists.similarities),
        );
    }
    for block in &blocks {
        gpu.stream.wait(&block.stream.record_event(None)?)?;
    }
    Ok(lists)
}

impl Screen {
    fn new(gpu: &Gpu, rows: &Rows) -> Result<Screen> {
        let stride = rows.dim.next_multiple_of(8);
        let halves = gpu.buffer(rows.n * stride)?;
        let largest_move = gpu.zeros::<u32>(1)?;
        launch!(
            gpu.stream,
            gpu.kernels.round_rows,
            warp_per_row(rows.n),
            rows.address(),
            rows.n as u32,
            rows.dim as u32,
            rows.stride as u32,
            at(&halves),
            stride as u32,
            at(&largest_move),
        );
        let largest_move = f32::from_bits(gpu.read(&largest_move, 1)?[0]);
        Ok(Screen { halves, stride, margin: 2.0 * error_bound(largest_move, rows.dim) })
    }
}

/// The largest error of a score when rounding moves no row by more than `largest_move`.
///
/// Lengths are at most 1 + 2⁻⁸ after rounding. Tensor cores cut off where `f32` sums round, so their sums are allowed twice
/// the error of ordinary ones, beside those of the exact `dot`. A score of at most 1 + 2⁻⁸ rounds to 16 bits within 2⁻¹¹.
fn error_bound(largest_move: f32, dim: usize) -> f32 {
    let sums = (dim + 8) as f32 * f32::EPSILON * 4.0;
    2.0 * 1.005 * largest_move + sums + 1.005 * 2f32.powi(-11)
}

impl<'a> Block<'a> {
    fn new(gpu: &'a Gpu, which: usize, tile_rows: usize, tile_columns: usize) -> Result<Block<'a>> {
        Ok(Block {
            stream: &gpu.search[which].0,
            scores: gpu.buffer(tile_rows * tile_columns)?,
            candidates: gpu.buffer(tile_rows * CAPACITY)?,
            counts: gpu.buffer(tile_rows)?,
            floors: gpu.buffer(tile_rows)?,
        })
    }
}

/// Scores of `rows` × `columns`, row by row, `tile_columns` apart.
fn multiply(
    gpu: &Gpu,
    which: usize,
    screen: &Screen,
    (first_row, n_rows): (usize, usize),
    (first_column, n_columns): (usize, usize),
    block: &Block,
    tile_columns: usize,
) -> Result<()> {
    let (one, zero) = (1f32, 0f32);
    let halves = at(&screen.halves);
    let row = |i: usize| (halves + (i * screen.stride * 2) as u64) as *const _;
    let half = blas::cudaDataType::CUDA_R_16F;
    // SAFETY: cuBLAS counts columns first, so our row-major blocks are its transposed ones; both lie inside `halves`, and
    // n_rows × tile_columns scores fit the block's buffer. The scalars are read before the call returns.
    unsafe {
        gemm_ex(
            *gpu.search[which].1.handle(),
            blas::cublasOperation_t::CUBLAS_OP_T,
            blas::cublasOperation_t::CUBLAS_OP_N,
            n_columns as i32,
            n_rows as i32,
            screen.stride as i32,
            (&raw const one).cast(),
            row(first_column),
            half,
            screen.stride as i32,
            row(first_row),
            half,
            screen.stride as i32,
            (&raw const zero).cast(),
            at(&block.scores) as *mut _,
            half,
            tile_columns as i32,
            blas::cublasComputeType_t::CUBLAS_COMPUTE_32F,
            blas::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT_TENSOR_OP,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_rounded_unit_rows_stays_below_a_thousandth_or_so() {
        // Each number of a unit row of 512 moves by at most 2⁻¹² of itself, so the row by at most 2⁻¹².
        assert!(error_bound(2f32.powi(-12), 512) < 1.3e-3);
    }
}
