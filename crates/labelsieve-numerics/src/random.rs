//! Random numbers by position: the n-th number of a stream is a pure function of the stream's key and n.
//!
//! There is no state, so threads (and other devices) draw the same numbers in any order.

use std::hash::Hasher;

use crate::fnv::Fnv1a;

/// A stream of random numbers, addressed by position.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    key: u64,
}

impl Stream {
    /// The stream of a user's seed.
    pub fn new(seed: u64) -> Stream {
        Stream { key: mix(seed.wrapping_add(GOLDEN)) }
    }

    /// An independent stream, e.g. one per class, per iteration or per purpose.
    pub fn branch(self, label: u64) -> Stream {
        Stream { key: mix(self.key ^ mix(label.wrapping_add(GOLDEN))) }
    }

    /// The stream of a named item such as a class; it does not depend on the other classes.
    pub fn named(self, name: &str) -> Stream {
        let mut hash = Fnv1a::default();
        hash.write(name.as_bytes());
        self.branch(hash.finish())
    }

    /// The key of the stream, for engines that draw its numbers on another device.
    pub fn key(self) -> u64 {
        self.key
    }

    /// 64 random bits at `position`.
    #[inline(always)]
    pub fn bits(self, position: u64) -> u64 {
        mix(self.key.wrapping_add(position.wrapping_mul(GOLDEN)))
    }

    /// Uniform in [0, 1), with 24 random bits.
    pub fn uniform(self, position: u64) -> f32 {
        (self.bits(position) >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(self, position: u64) -> f32 {
        let bits = self.bits(position);
        let radius = ((bits >> 32) as f64 + 1.0) / 4_294_967_297.0; // in (0, 1)
        let angle = (bits & 0xffff_ffff) as f64 / 4_294_967_296.0;
        ((-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()) as f32
    }

    /// Uniform in 0..n, for n > 0.
    pub fn below(self, position: u64, n: usize) -> usize {
        ((u128::from(self.bits(position)) * n as u128) >> 64) as usize
    }

    /// `count` different numbers of 0..n (all of them when there are fewer), in random order.
    pub fn choose(self, n: usize, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        let count = count.min(n);
        for i in 0..count {
            order.swap(i, i + self.below(i as u64, n - i));
        }
        order.truncate(count);
        order
    }
}

/// A key of the contents of a unit row, independent of its position and the same on every machine. Numbers are rounded to
/// steps of 1/64, so that a normalisation that rounds a last bit differently hardly ever changes the key (one in thousands of
/// rows of 512 numbers), while rows that differ by a step anywhere share one with probability 2⁻⁶⁴.
pub fn row_key(row: &[f32]) -> u64 {
    const STEPS: f32 = 64.0;
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³: in a sum with it, the last bits are the nearest whole number
    const LANES: usize = 4; // chains of multiplications that do not wait for each other
    let take = |key: u64, value: f32| {
        let product = (key ^ u64::from((value * STEPS + ROUND).to_bits())).wrapping_mul(GOLDEN);
        product ^ (product >> 32)
    };
    let mut lanes: [u64; LANES] = [1, 2, 3, 4].map(mix);
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = take(*lane, value);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane = take(*lane, value);
    }
    lanes.iter().fold(row.len() as u64, |key, &lane| mix(key.wrapping_add(GOLDEN) ^ lane))
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): flips each output bit with probability one half when one
/// input bit flips.
#[inline(always)]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_and_normal_have_their_moments() {
        let stream = Stream::new(7);
        let n = 200_000u64;
        let mean = |f: &dyn Fn(u64) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
        assert!((mean(&|i| f64::from(stream.uniform(i))) - 0.5).abs() < 0.005);
        assert!(mean(&|i| f64::from(stream.normal(i))).abs() < 0.01);
        assert!((mean(&|i| f64::from(stream.normal(i)).powi(2)) - 1.0).abs() < 0.02);
    }

    #[test]
    fn neighbouring_seeds_and_branches_share_no_numbers() {
        let a = Stream::new(0);
        for b in [Stream::new(1), a.branch(0), a.branch(1)] {
            assert!((0..100).all(|i| a.bits(i) != b.bits(i)));
        }
    }

    #[test]
    fn equal_rows_have_one_key_and_other_rows_have_others() {
        let row: Vec<f32> = (0..37).map(|i| 0.2 * Stream::new(3).normal(i)).collect();
        let key = row_key(&row);
        assert_eq!(key, row_key(&row.clone()));
        for i in 0..row.len() {
            let mut changed = row.clone();
            changed[i] += 1.0 / 64.0;
            let flipped = (key ^ row_key(&changed)).count_ones();
            assert!((8..=56).contains(&flipped), "column {i}: {flipped} bits of the key changed");
            changed = row.clone();
            changed.swap(i, (i + 4) % row.len());
            assert_ne!(key, row_key(&changed), "columns {i} and {} swapped", (i + 4) % row.len());
        }
        assert_eq!(row_key(&[0.0, 1.0]), row_key(&[-0.0, 1.0]));
        assert_ne!(row_key(&[0.0]), row_key(&[0.0, 0.0]));
        // Written down: a key must be the same on every machine.
        assert_eq!(row_key(&[0.6, 0.8, 0.0, -1.0, 0.25]), 8_957_718_189_731_142_520);
    }

    #[test]
    fn rows_that_were_normalised_otherwise_hardly_ever_get_another_key() {
        let stream = Stream::new(5);
        let dim = 512;
        let rows: Vec<f32> = (0..1000 * dim).map(|i| stream.normal(i as u64)).collect();
        let twice = |values: &[f32], factor: f32| {
            let scaled: Vec<f32> = values.iter().map(|value| factor * value).collect();
            let length = scaled.iter().map(|value| value * value).sum::<f32>().sqrt();
            row_key(&scaled.iter().map(|value| value / length).collect::<Vec<_>>())
        };
        let other = rows.chunks(dim).filter(|row| twice(row, 1.0) != twice(row, 3.0)).count();
        assert!(other <= 5, "{other} of 1000 rows");
    }

    #[test]
    fn choose_gives_different_numbers_and_each_equally_often() {
        let mut counts = [0; 10];
        for seed in 0..3000 {
            let chosen = Stream::new(seed).choose(10, 3);
            assert!(chosen[0] != chosen[1] && chosen[1] != chosen[2] && chosen[0] != chosen[2]);
            chosen.iter().for_each(|&i| counts[i] += 1);
        }
        assert!(counts.iter().all(|&c| (c - 900i32).abs() < 120), "{counts:?}");
        assert_eq!(Stream::new(0).choose(3, 9).len(), 3);
    }
}
