//! The few loops where the time goes, written for the machine's vector units.
//!
//! Everything here is a plain function of slices. [`dot`] defines the similarity of two rows for the whole crate:
//! faster products only *screen*, and whatever they let through is measured again with [`dot`].

mod bfloat;
mod product;
mod screen;

pub(crate) use product::{add_transposed_product, product, product_with_transposed};
pub(crate) use screen::{Hit, ROW_STEP, Screen, Tile, rounding_bound};

/// Compiles the loops inside `work` for the best vector instructions of this machine (found once, at run time).
/// Mark what `work` calls `#[inline(always)]`, or it stays as it was.
#[inline(always)]
pub(crate) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// The inner product a·b: *the* similarity of this crate.
///
/// Products and sums are rounded one by one in a fixed order that does not depend on the machine, so the same two rows
/// give the same bits wherever and whenever they meet, and `dot(a, b) == dot(b, a)`. The reciprocal test of the graph
/// rests on that.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 32;
    let mut lanes = [0f32; LANES];
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for l in 0..LANES {
            lanes[l] += a[l] * b[l];
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane += a * b;
    }
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] += lanes[l + width];
        }
        width /= 2;
    }
    lanes[0] + 0.0 // -0.0 becomes 0.0: ties must look like ties
}

/// `out += weight * row`, element by element.
#[inline(always)]
pub(crate) fn add_scaled(out: &mut [f32], weight: f32, row: &[f32]) {
    for (o, r) in out.iter_mut().zip(row) {
        *o += weight * r;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn dot_agrees_with_double_precision_at_every_length() {
        let stream = Stream::new(3);
        for n in 0..200u64 {
            let a: Vec<f32> = (0..n).map(|i| stream.branch(n).normal(i)).collect();
            let b: Vec<f32> = (0..n).map(|i| stream.branch(n + 1000).normal(i)).collect();
            let exact: f64 = a.iter().zip(&b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            assert!((f64::from(dot(&a, &b)) - exact).abs() < 1e-4, "length {n}");
        }
    }

    #[test]
    fn dot_gives_the_same_bits_with_and_without_vector_units() {
        let stream = Stream::new(4);
        let a: Vec<f32> = (0..515).map(|i| stream.normal(i)).collect();
        let b: Vec<f32> = (0..515).map(|i| stream.normal(i + 1000)).collect();
        assert_eq!(dot(&a, &b).to_bits(), vectorized(|| dot(&b, &a)).to_bits());
    }

    #[test]
    fn a_negative_zero_never_comes_out() {
        assert_eq!(dot(&[-1.0, 0.0], &[0.0, 1.0]).to_bits(), 0.0f32.to_bits());
    }
}
