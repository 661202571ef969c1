//! One row of outputs of a depthwise convolution: the inner loop. Seven pixels and one register of channels at a time.
#![expect(unsafe_code, reason = "register tiles over raw pointers, inside slices that are checked first")]

#[cfg(target_arch = "x86_64")]
use labelsieve_numerics::level::{Instructions, Level};

#[cfg(target_arch = "x86_64")]
use super::lanes::{Avx2, Avx512};
use super::lanes::{Lanes, Plain};
use crate::network::Activation;

/// Pixels of a tile: the widths of the usual images are multiples of it.
const PIXELS: usize = 7;

/// The inputs of a row of outputs.
pub(super) struct Row<'a> {
    /// From the first number that the first output reads on.
    pub input: &'a [f32],
    /// Numbers from one row of the input to the next.
    pub input_stride: usize,
    pub channels: usize,
    /// From the first row of the kernel that is used on.
    pub weights: &'a [f32],
    /// Rows of the kernel that are used.
    pub n_rows: usize,
    pub bias: Option<&'a [f32]>,
    /// Added, laid out as the output.
    pub add: Option<&'a [f32]>,
    pub activation: Activation,
}

/// Fills `output`, whole pixels of a row, with a kernel of 3 or 5 and a stride of 1 or 2.
pub(super) fn depthwise_row(level: Level, kernel: usize, stride: usize, row: &Row, output: &mut [f32]) {
    let Row { channels, n_rows, input_stride, .. } = *row;
    let width = output.len() / channels;
    assert!(channels.is_multiple_of(8) && output.len() == width * channels && n_rows <= kernel);
    if width == 0 {
        return;
    }
    let columns = (width - 1) * stride + kernel;
    assert!(n_rows == 0 || (n_rows - 1) * input_stride + columns * channels <= row.input.len());
    assert!(n_rows * kernel * channels <= row.weights.len());
    assert!(row.bias.is_none_or(|bias| bias.len() == channels));
    assert!(row.add.is_none_or(|add| add.len() == output.len()));
    // SAFETY: as just checked, and the machine has the instructions of every `Level` there is.
    unsafe {
        match (kernel, stride) {
            (3, 1) => at_level::<3, 1>(level, row, output),
            (3, 2) => at_level::<3, 2>(level, row, output),
            (5, 1) => at_level::<5, 1>(level, row, output),
            (5, 2) => at_level::<5, 2>(level, row, output),
            other => unreachable!("{other:?} was refused"),
        }
    }
}

unsafe fn at_level<const K: usize, const S: usize>(level: Level, row: &Row, output: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512<const K: usize, const S: usize>(row: &Row, output: &mut [f32]) {
        // SAFETY: as the caller guarantees.
        unsafe { whole_row::<Avx512, K, S>(row, output) }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<const K: usize, const S: usize>(row: &Row, output: &mut [f32]) {
        // SAFETY: as the caller guarantees.
        unsafe { whole_row::<Avx2, K, S>(row, output) }
    }
    // SAFETY: as the caller guarantees.
    unsafe {
        match level.instructions() {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => avx512::<K, S>(row, output),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => avx2::<K, S>(row, output),
            _ => whole_row::<Plain, K, S>(row, output),
        }
    }
}

#[inline(always)]
unsafe fn whole_row<L: Lanes, const K: usize, const S: usize>(row: &Row, output: &mut [f32]) {
    let width = output.len() / row.channels;
    let mut x = 0;
    // SAFETY: pixels stay below the width.
    unsafe {
        while x + PIXELS <= width {
            pixels::<L, K, S, PIXELS>(row, x, output.as_mut_ptr());
            x += PIXELS;
        }
        while x + 3 <= width {
            pixels::<L, K, S, 3>(row, x, output.as_mut_ptr());
            x += 3;
        }
        while x < width {
            pixels::<L, K, S, 1>(row, x, output.as_mut_ptr());
            x += 1;
        }
    }
}

/// `T` pixels from `x` on, all channels.
#[inline(always)]
unsafe fn pixels<L: Lanes, const K: usize, const S: usize, const T: usize>(
    row: &Row,
    x: usize,
    output: *mut f32,
) {
    let mut channel = 0;
    // SAFETY: channels stay below their number.
    unsafe {
        while channel + L::N <= row.channels {
            tile::<L, K, S, T, true>(row, x, channel, output);
            channel += L::N;
        }
        if channel < row.channels {
            tile::<L, K, S, T, false>(row, x, channel, output);
        }
    }
}

/// `T` pixels from `x` on, a register of channels from `channel` on, full if `WHOLE`.
#[inline(always)]
unsafe fn tile<L: Lanes, const K: usize, const S: usize, const T: usize, const WHOLE: bool>(
    row: &Row,
    x: usize,
    channel: usize,
    output: *mut f32,
) {
    let Row { channels, input_stride, .. } = *row;
    let left = channels - channel;
    // SAFETY: all offsets lie inside their slices, as `depthwise_row` checked; of a register that is not full, only as many
    // numbers as there are channels left are read and written.
    unsafe {
        let load = |from: *const f32| if WHOLE { L::load(from) } else { L::load_some(from, left) };
        let mut sums = match row.bias {
            Some(bias) => [load(bias.as_ptr().add(channel)); T],
            None => [L::zero(); T],
        };
        if let Some(add) = row.add {
            for (t, sum) in sums.iter_mut().enumerate() {
                *sum = L::add(*sum, load(add.as_ptr().add((x + t) * channels + channel)));
            }
        }
        let mut weights = row.weights.as_ptr().add(channel);
        let mut input = row.input.as_ptr().add(x * S * channels + channel);
        for n in 0..row.n_rows {
            let mut taps = [L::zero(); K];
            for (k, tap) in taps.iter_mut().enumerate() {
                *tap = load(weights.add(k * channels));
            }
            for (k, tap) in taps.into_iter().enumerate() {
                for (t, sum) in sums.iter_mut().enumerate() {
                    *sum = L::add_product(*sum, tap, load(input.add((t * S + k) * channels)));
                }
            }
            if n + 1 < row.n_rows {
                weights = weights.add(K * channels);
                input = input.add(input_stride);
            }
        }
        for (t, sum) in sums.into_iter().enumerate() {
            let value = match row.activation {
                Activation::Linear => sum,
                other => {
                    let (low, high) = other.range();
                    L::clamp(sum, low, high)
                }
            };
            let to = output.add((x + t) * channels + channel);
            if WHOLE { L::store(to, value) } else { L::store_some(to, value, left) }
        }
    }
}
