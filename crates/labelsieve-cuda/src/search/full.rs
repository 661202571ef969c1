//! All similarities, screened in 16-bit floats.
//!
//! Rows rounded to 16-bit floats are multiplied tile by tile on the tensor cores. How far a score may be off is known in
//! advance: rounding moves row i by eᵢ = ‖vᵢ − v̂ᵢ‖, and |a·b − â·b̂| ≤ ‖a‖·‖b − b̂‖ + ‖a − â‖·‖b̂‖; the sums round, and so
//! do the scores themselves. What a row cannot exclude is measured with the CPU's own `dot`. Two streams take turns with
//! blocks of rows, so that selection on one hides behind the products on the other.
#![expect(unsafe_code, reason = "cuBLAS is a C library; the block says what makes it sound")]

use cudarc::cublas::result::gemm_ex;
use cudarc::cublas::sys as blas;
use cudarc::driver::{CudaSlice, CudaStream};

use super::{CAPACITY, Lists};
use crate::error::Result;
use crate::gpu::{Gpu, at, blocks, launch, warp_per_row};
use crate::rows::Rows;

/// Rows and columns of a tile. Measured on an H200 at N = 620,142: 4096 × 2048 takes 1.42 s, this 1.31 s, more gains nothing.
const TILE_ROWS: usize = 8192;
const TILE_COLUMNS: usize = 4096;

/// Rows in 16-bit floats and what that costs in exactness.
pub(super) struct Screen {
    halves: CudaSlice<u16>,
    stride: usize,
    /// Twice the largest error of a score.
    margin: f32,
}

/// Rows by their numbers.
#[derive(Clone, Copy)]
pub(super) struct Chosen<'a> {
    pub ids: &'a CudaSlice<u32>,
    pub n: usize,
}

/// The neighbours of all rows, or of those chosen.
pub(super) fn search(
    gpu: &Gpu,
    rows: &Rows,
    screen: &Screen,
    chosen: Option<Chosen>,
    lists: &Lists,
) -> Result<()> {
    let width = lists.width;
    let margin = screen.margin;
    let pass = Pass { gpu, rows, screen, chosen, n_columns: rows.n, column_step: 1, width, margin };
    pass.run(|block, first_row, n_rows| {
        launch!(
            block.stream,
            gpu.kernels.rank_candidates,
            warp_per_row(n_rows),
            at(&block.candidates),
            at(&block.counts),
            n_rows as u32,
            pass.ids(),
            first_row as u32,
            width as u32,
            margin,
            rows.address(),
            rows.dim as u32,
            rows.stride as u32,
            at(&lists.indices),
            at(&lists.similarities),
        );
        Ok(())
    })
}

/// Rows against every `column_step`-th row.
pub(super) struct Pass<'a> {
    pub gpu: &'a Gpu,
    pub rows: &'a Rows,
    pub screen: &'a Screen,
    /// All rows if none.
    pub chosen: Option<Chosen<'a>>,
    pub n_columns: usize,
    pub column_step: usize,
    /// How many of the best are kept, and whatever scores at most `margin` less.
    pub width: usize,
    pub margin: f32,
}

/// One block of rows at work.
pub(super) struct Block<'a> {
    pub stream: &'a CudaStream,
    pub candidates: CudaSlice<u64>,
    pub counts: CudaSlice<u32>,
    scores: CudaSlice<u16>,
    floors: CudaSlice<f32>,
    /// The chosen rows, one after the other.
    gathered: CudaSlice<u16>,
}

impl Pass<'_> {
    /// Collects candidates block by block and hands each block to `finish`, with its first row and how many it has.
    pub fn run(&self, finish: impl Fn(&Block, usize, usize) -> Result<()>) -> Result<()> {
        let gpu = self.gpu;
        let n = self.chosen.map_or(self.rows.n, |chosen| chosen.n);
        let tile_rows = TILE_ROWS.min(n);
        let tile_columns = TILE_COLUMNS.min(self.n_columns.next_multiple_of(8));
        let new_block = |which| self.new_block(which, tile_rows, tile_columns);
        let blocks = [new_block(0)?, new_block(1)?];
        let ready = gpu.stream.record_event(None)?;
        blocks.iter().try_for_each(|block| block.stream.wait(&ready))?;
        for (b, first_row) in (0..n).step_by(tile_rows).enumerate() {
            let block = &blocks[b % 2];
            let n_rows = tile_rows.min(n - first_row);
            let halves = self.halves(block, first_row, n_rows)?;
            for first_column in (0..self.n_columns).step_by(tile_columns) {
                let columns = (first_column, tile_columns.min(self.n_columns - first_column));
                self.multiply(b % 2, halves, n_rows, columns, block, tile_columns)?;
                self.select(block, (first_row, n_rows), columns, tile_columns)?;
            }
            finish(block, first_row, n_rows)?;
        }
        for block in &blocks {
            gpu.stream.wait(&block.stream.record_event(None)?)?;
        }
        Ok(())
    }

    /// The address of the chosen rows' numbers, or 0.
    fn ids(&self) -> u64 {
        self.chosen.map_or(0, |chosen| at(chosen.ids))
    }

    fn new_block(&self, which: usize, tile_rows: usize, tile_columns: usize) -> Result<Block<'_>> {
        let gpu = self.gpu;
        Ok(Block {
            stream: &gpu.search[which].0,
            candidates: gpu.buffer(tile_rows * CAPACITY)?,
            counts: gpu.buffer(tile_rows)?,
            scores: gpu.buffer(tile_rows * tile_columns)?,
            floors: gpu.buffer(tile_rows)?,
            gathered: gpu.buffer(self.chosen.map_or(0, |_| tile_rows * self.screen.stride))?,
        })
    }

    /// The address of a block's rows in 16-bit floats.
    fn halves(&self, block: &Block, first_row: usize, n_rows: usize) -> Result<u64> {
        let stride = self.screen.stride;
        let Some(chosen) = self.chosen else {
            return Ok(at(&self.screen.halves) + (first_row * stride * 2) as u64);
        };
        let words = stride / 8;
        launch!(
            block.stream,
            self.gpu.kernels.gather_rows,
            blocks((n_rows * words).div_ceil(256), 256),
            at(&self.screen.halves),
            at(chosen.ids) + (first_row * 4) as u64,
            n_rows as u32,
            words as u32,
            at(&block.gathered),
        );
        Ok(at(&block.gathered))
    }

    fn select(
        &self,
        block: &Block,
        (first_row, n_rows): (usize, usize),
        (first_column, n_columns): (usize, usize),
        tile_columns: usize,
    ) -> Result<()> {
        launch!(
            block.stream,
            self.gpu.kernels.select_candidates,
            warp_per_row(n_rows),
            at(&block.scores),
            tile_columns as u32,
            n_rows as u32,
            n_columns as u32,
            self.ids(),
            first_row as u32,
            first_column as u32,
            self.column_step as u32,
            self.width as u32,
            self.margin,
            at(&block.candidates),
            at(&block.counts),
            at(&block.floors),
            self.rows.address(),
            self.rows.dim as u32,
            self.rows.stride as u32,
        );
        Ok(())
    }

    /// Scores of the `n_rows` rows at `halves` with columns, row by row, `tile_columns` apart.
    fn multiply(
        &self,
        which: usize,
        halves: u64,
        n_rows: usize,
        (first_column, n_columns): (usize, usize),
        block: &Block,
        tile_columns: usize,
    ) -> Result<()> {
        let one = 1f32;
        let zero = 0f32;
        let stride = self.screen.stride;
        let half = blas::cudaDataType::CUDA_R_16F;
        let columns = at(&self.screen.halves) + (first_column * self.column_step * stride * 2) as u64;
        // SAFETY: cuBLAS counts columns first, so our row-major blocks are its transposed ones; both lie inside their
        // buffers, and n_rows × tile_columns scores fit the block's. The scalars are read before the call returns.
        unsafe {
            gemm_ex(
                *self.gpu.search[which].1.handle(),
                blas::cublasOperation_t::CUBLAS_OP_T,
                blas::cublasOperation_t::CUBLAS_OP_N,
                n_columns as i32,
                n_rows as i32,
                stride as i32,
                (&raw const one).cast(),
                columns as *const _,
                half,
                (stride * self.column_step) as i32,
                halves as *const _,
                half,
                stride as i32,
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
}

impl Screen {
    pub fn new(gpu: &Gpu, rows: &Rows) -> Result<Screen> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_rounded_unit_rows_stays_below_a_thousandth_or_so() {
        // Each number of a unit row of 512 moves by at most 2⁻¹² of itself, so the row by at most 2⁻¹².
        assert!(error_bound(2f32.powi(-12), 512) < 1.3e-3);
    }
}
