//! Attention on the CPU: a block of queries at a time, so that memory is not quadratic in the tokens.

use labelsieve_numerics::level::Level;
use rayon::prelude::*;

use super::functions::{exponentials, rotate, scale};
use super::product::{Factors, Panels, Part, Target};
use super::tile::Store;
use super::{BufferPool, Scratch};
use crate::transformer::config::Mask;

/// Queries per block: their scores for all tokens stay in the second-level cache for common image sizes.
const QUERIES: usize = 288;

/// The buffers of one thread.
pub(super) struct AttentionScratch {
    keys: Panels,
    values: Panels,
    scores: Vec<f32>,
    sums: Vec<f32>,
    answers: Vec<f32>,
}

impl AttentionScratch {
    pub(super) fn new(level: Level) -> AttentionScratch {
        let panels = || Panels::empty(level);
        AttentionScratch { keys: panels(), values: panels(), scores: vec![], sums: vec![], answers: vec![] }
    }
}

/// The dimensions of an attention.
#[derive(Clone, Copy)]
pub(super) struct AttentionShape {
    /// Rows of a sequence.
    pub tokens: usize,
    /// Queries per sequence, from its first row on.
    pub queries: usize,
    pub heads: usize,
    /// Numbers per head.
    pub head: usize,
}

/// Rotates queries and keys of the last tokens of every sequence; rows of 3 × `heads` × `head` numbers.
pub(super) fn rotate_rows(level: Level, shape: AttentionShape, rotations: &[f32], qkv: &mut [f32]) {
    let AttentionShape { tokens, heads, head, .. } = shape;
    let stride = 3 * heads * head;
    let n_before = tokens - rotations.len() / head;
    qkv.par_chunks_mut(stride).enumerate().for_each(|(row, values)| {
        let Some(place) = (row % tokens).checked_sub(n_before) else { return };
        let rotation = &rotations[place * head..][..head];
        for part in values[..2 * heads * head].chunks_exact_mut(head) {
            rotate(level, part, rotation);
        }
    });
}

/// The location of queries, keys and values: slices of rows and their strides.
#[derive(Clone, Copy)]
pub(super) struct AttentionInputs<'a> {
    /// Queries of all sequences, or of one that all share.
    pub queries: &'a [f32],
    pub query_stride: usize,
    /// Whether all sequences share the queries.
    pub shared: bool,
    /// Rows with keys and values.
    pub rows: &'a [f32],
    pub stride: usize,
    /// Where keys and values are in them.
    pub keys: usize,
    pub values: usize,
}

/// Softmax(Q Kᵀ) V for every sequence and head; `queries` rows of `heads` × `head` numbers out per sequence.
pub(super) fn attend(
    level: Level,
    scratch: &BufferPool<Scratch>,
    shape: AttentionShape,
    mask: Mask,
    sources: AttentionInputs,
    out: &mut [f32],
) {
    let AttentionShape { tokens, queries, heads, head } = shape;
    let width = heads * head;
    // Few sequences are cut into more pieces, so that all threads have one.
    let sequences = (out.len() / (queries * width).max(1)).max(1);
    let pieces = queries.div_ceil(QUERIES).max((2 * rayon::current_num_threads()).div_ceil(sequences));
    let piece = queries.div_ceil(pieces).max(1);
    let pieces = queries.div_ceil(piece);
    let work: Vec<(usize, &mut [f32])> = out
        .chunks_exact_mut(queries * width)
        .enumerate()
        .flat_map(|(sequence, out)| {
            let all = out.chunks_mut(piece * width).enumerate();
            all.map(move |(at, out)| (sequence * pieces + at, out))
        })
        .collect();
    work.into_par_iter().with_max_len(1).for_each(|(place, out)| {
        let sequence = place / pieces;
        let first = place % pieces * piece;
        let mut scratch = scratch.take();
        let AttentionScratch { keys, values, scores, sums, answers } = &mut scratch.attention;
        let n = out.len() / width;
        for at in 0..heads {
            let part = |start: usize, stride| Part { first: start + at * head, width: head, stride };
            let key_rows = &sources.rows[sequence * tokens * sources.stride..][..tokens * sources.stride];
            let from = if sources.shared { first } else { sequence * tokens + first };
            let query_rows = &sources.queries[from * sources.query_stride..];
            keys.fill_by_output(level, key_rows, part(sources.keys, sources.stride), tokens);
            let stride = keys.padded();
            scores.resize(n * stride, 0.0);
            let rows = Factors { values: query_rows, part: part(0, sources.query_stride), rows: n };
            let target = Target { values: &mut scores[..n * stride], stride, store: Store::Replace };
            keys.multiply(level, rows, keys.whole(), None, target);
            values.fill_by_input(key_rows, part(sources.values, sources.stride), tokens);
            let answer_stride = values.padded();
            answers.resize(n * answer_stride, 0.0);
            sums.resize(n, 0.0);
            for (i, row) in scores.chunks_exact_mut(stride).take(n).enumerate() {
                let seen = match mask {
                    Mask::None => tokens,
                    Mask::Causal => first + i + 1,
                };
                let (seen, unseen) = row[..tokens].split_at_mut(seen);
                exponentials(level, seen, &mut sums[i]);
                unseen.fill(0.0);
            }
            let rows = Factors { values: scores, part: Part { first: 0, width: tokens, stride }, rows: n };
            let target = Target { values: answers, stride: answer_stride, store: Store::Replace };
            values.multiply(level, rows, values.whole(), None, target);
            let rows = out.chunks_exact_mut(width).zip(answers.chunks_exact(answer_stride)).zip(&*sums);
            for ((row, answer), sum) in rows {
                let row = &mut row[at * head..][..head];
                row.copy_from_slice(&answer[..head]);
                scale(level, row, 1.0 / sum);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use labelsieve_numerics::random::Stream;

    use super::*;

    /// The definition, in double precision.
    fn naive(shape: AttentionShape, mask: Mask, qkv: &[f32]) -> Vec<f64> {
        let AttentionShape { tokens, queries, heads, head } = shape;
        let width = heads * head;
        let mut out = vec![];
        let at = |row: usize, part: usize, i: usize| f64::from(qkv[row * 3 * width + part * width + i]);
        for sequence in 0..qkv.len() / (3 * width * tokens) {
            for q in 0..queries {
                let seen = if mask == Mask::Causal { q + 1 } else { tokens };
                for i in 0..width {
                    let numbers = i / head * head..(i / head + 1) * head;
                    let row = |t: usize| sequence * tokens + t;
                    let score = |t: usize| -> f64 {
                        numbers.clone().map(|n| at(row(q), 0, n) * at(row(t), 1, n)).sum::<f64>().exp()
                    };
                    let total: f64 = (0..seen).map(score).sum();
                    out.push((0..seen).map(|t| score(t) / total * at(row(t), 2, i)).sum());
                }
            }
        }
        out
    }

    #[test]
    fn attention_is_what_the_definition_says_at_every_level() {
        let stream = Stream::new(9);
        for (sequences, tokens, queries, heads, head) in
            [(1, 1, 1, 1, 4), (3, 5, 5, 2, 8), (2, 40, 40, 3, 12), (2, 33, 1, 2, 16), (1, 300, 300, 1, 8)]
        {
            let shape = AttentionShape { tokens, queries, heads, head };
            let width = heads * head;
            let qkv: Vec<f32> =
                (0..sequences * tokens * 3 * width).map(|i| 0.5 * stream.normal(i as u64)).collect();
            for mask in [Mask::None, Mask::Causal] {
                let expected = naive(shape, mask, &qkv);
                for level in Level::available() {
                    let sources = AttentionInputs {
                        queries: &qkv,
                        query_stride: 3 * width,
                        shared: false,
                        rows: &qkv,
                        stride: 3 * width,
                        keys: width,
                        values: 2 * width,
                    };
                    let scratch = BufferPool::new(move || Scratch::new(level));
                    let mut out = vec![0.0; sequences * queries * width];
                    attend(level, &scratch, shape, mask, sources, &mut out);
                    for (found, expected) in out.iter().zip(&expected) {
                        assert!(
                            (f64::from(*found) - expected).abs() < 1e-5,
                            "{level}: {found}, not {expected}"
                        );
                    }
                }
            }
        }
    }
}
