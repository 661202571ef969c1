//! Rows of numbers, linear layers and normalisations in a GPU's memory.
#![expect(unsafe_code, reason = "memory comes uninitialised; the blocks say who writes it")]

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream};
use labelsieve_networks::transformer::{Linear, Norm};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::gpu::at;
use crate::networks::ActivationPrecision;

/// Rows of numbers on the device, each filled up with zeros to a multiple of eight numbers.
#[derive(Default)]
pub struct DeviceRows {
    pub(super) rows: usize,
    pub(super) columns: usize,
    buffer: Option<CudaSlice<u8>>,
}

impl DeviceRows {
    /// Numbers from one row to the next.
    pub(super) fn stride(&self) -> usize {
        self.columns.next_multiple_of(8)
    }

    /// Other rows of this size, whatever they hold.
    pub(super) fn resize(
        &mut self,
        stream: &Arc<CudaStream>,
        (rows, columns): (usize, usize),
        precision: ActivationPrecision,
    ) -> Result<()> {
        (self.rows, self.columns) = (rows, columns);
        let bytes = (rows * self.stride() * precision.size()).max(1);
        if self.buffer.as_ref().is_none_or(|buffer| buffer.len() < bytes) {
            self.buffer = None; // first give back, then ask
            // SAFETY: whoever asks for rows writes all of them before they are read.
            self.buffer = Some(unsafe { stream.alloc(bytes) }?);
        }
        Ok(())
    }

    pub(super) fn address(&self) -> u64 {
        self.buffer.as_ref().map_or(0, at)
    }

    /// Replaces them by copies.
    pub(super) fn write(
        &mut self,
        stream: &Arc<CudaStream>,
        values: &[f32],
        columns: usize,
        precision: ActivationPrecision,
    ) -> Result<()> {
        self.resize(stream, (values.len() / columns.max(1), columns), precision)?;
        let bytes = encode(values, columns, self.stride(), precision);
        if let Some(buffer) = self.buffer.as_mut().filter(|_| !bytes.is_empty()) {
            stream.memcpy_htod(&bytes, &mut buffer.slice_mut(..bytes.len()))?;
        }
        Ok(())
    }

    /// Their numbers, once everything queued is done.
    pub(super) fn read(&self, stream: &Arc<CudaStream>, precision: ActivationPrecision) -> Result<Vec<f32>> {
        let mut bytes = vec![0u8; self.rows * self.stride() * precision.size()];
        if let Some(buffer) = self.buffer.as_ref().filter(|_| !bytes.is_empty()) {
            stream.memcpy_dtoh(&buffer.slice(..bytes.len()), &mut bytes)?;
            stream.synchronize()?;
        }
        let row = |row: &[u8]| decode(&row[..self.columns * precision.size()], precision);
        Ok(bytes.chunks_exact(self.stride().max(1) * precision.size()).flat_map(row).collect())
    }
}

/// A linear layer on the device.
pub struct DeviceLinear {
    /// Numbers in and out, both filled up to multiples of eight.
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// Numbers out that count.
    pub(super) columns: usize,
    weight: CudaSlice<u8>,
    bias: CudaSlice<u8>,
}

impl DeviceLinear {
    pub(super) fn new(
        stream: &Arc<CudaStream>,
        linear: &Linear,
        precision: ActivationPrecision,
    ) -> Result<DeviceLinear> {
        let inputs = linear.inputs.next_multiple_of(8);
        let outputs = linear.outputs.next_multiple_of(8);
        let mut weight = encode(&linear.weight, linear.inputs, inputs, precision);
        weight.resize(inputs * outputs * precision.size(), 0);
        let bias = encode(&linear.bias, linear.outputs, outputs, precision);
        let weight = stream.clone_htod(&weight)?;
        let bias = stream.clone_htod(&bias)?;
        Ok(DeviceLinear { inputs, outputs, columns: linear.outputs, weight, bias })
    }

    pub(super) fn addresses(&self) -> (u64, u64) {
        (at(&self.weight), at(&self.bias))
    }
}

/// A layer normalisation on the device, in `f32`.
pub struct DeviceNorm {
    pub(super) width: usize,
    pub(super) eps: f32,
    weight: CudaSlice<f32>,
    bias: CudaSlice<f32>,
}

impl DeviceNorm {
    pub(super) fn new(stream: &Arc<CudaStream>, norm: &Norm) -> Result<DeviceNorm> {
        let width = norm.weight.len();
        if !width.is_multiple_of(8) {
            return Err(Error::Failed(format!("a width of {width} is no multiple of eight")));
        }
        let weight = stream.clone_htod(&norm.weight)?;
        let bias = stream.clone_htod(&norm.bias)?;
        Ok(DeviceNorm { width, eps: norm.eps, weight, bias })
    }

    pub(super) fn addresses(&self) -> (u64, u64) {
        (at(&self.weight), at(&self.bias))
    }
}

/// Rows of `columns` numbers as bytes, with zeros up to `stride`.
fn encode(values: &[f32], columns: usize, stride: usize, precision: ActivationPrecision) -> Vec<u8> {
    let size = precision.size();
    let mut bytes = vec![0u8; values.len() / columns.max(1) * stride * size];
    let rows = bytes.par_chunks_exact_mut((stride * size).max(1));
    rows.zip(values.par_chunks_exact(columns.max(1))).for_each(|(bytes, row)| {
        for (bytes, value) in bytes.chunks_exact_mut(size).zip(row) {
            match precision {
                ActivationPrecision::F32 => bytes.copy_from_slice(&value.to_ne_bytes()),
                ActivationPrecision::Bf16 => bytes.copy_from_slice(&bf16(*value).to_ne_bytes()),
            }
        }
    });
    bytes
}

fn decode(bytes: &[u8], precision: ActivationPrecision) -> Vec<f32> {
    match precision {
        ActivationPrecision::F32 => {
            bytes.as_chunks().0.iter().map(|&bytes| f32::from_ne_bytes(bytes)).collect()
        }
        ActivationPrecision::Bf16 => {
            let upper = |&bytes: &[u8; 2]| f32::from_bits(u32::from(u16::from_ne_bytes(bytes)) << 16);
            bytes.as_chunks().0.iter().map(upper).collect()
        }
    }
}

/// The upper half of a number, rounded to the nearest, ties to even. `value` is finite.
fn bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_the_nearest_of_16_bits() {
        for (value, expected) in [(1.0, 1.0), (-3.5, -3.5), (0.0, 0.0), (255.0, 255.0)] {
            assert_eq!(f32::from_bits(u32::from(bf16(value)) << 16), expected);
        }
        // 1 + 1/256 is half-way between 1 and 1 + 1/128: the even one is 1. 3/256 is nearer to 1/64 than to 1/128.
        assert_eq!(bf16(1.0 + 1.0 / 256.0), bf16(1.0));
        assert_eq!(bf16(1.0 + 3.0 / 256.0), bf16(1.0 + 1.0 / 64.0));
        assert_eq!(bf16(1.0 + 1.1 / 256.0), bf16(1.0 + 1.0 / 128.0));
    }

    #[test]
    fn rows_are_filled_up_with_zeros() {
        for precision in [ActivationPrecision::F32, ActivationPrecision::Bf16] {
            let bytes = encode(&[1.0, 2.0, 3.0, 4.0], 2, 8, precision);
            let mut expected = [0f32; 16];
            (expected[0], expected[1], expected[8], expected[9]) = (1.0, 2.0, 3.0, 4.0);
            assert_eq!(decode(&bytes, precision), expected);
        }
    }
}
