//! Rows of unit length.

/// Rows of `dim` numbers scaled to unit length, and their lengths by `length`. A row of zeros stays zero.
pub fn unit_rows(rows: &[f32], dim: usize, length: impl Fn(&[f32]) -> f32) -> (Vec<f32>, Vec<f32>) {
    let lengths: Vec<f32> = rows.chunks_exact(dim).map(length).collect();
    let mut unit = Vec::with_capacity(rows.len());
    for (row, &length) in rows.chunks_exact(dim).zip(&lengths) {
        unit.extend(row.iter().map(|x| if length > 0.0 { x / length } else { 0.0 }));
    }
    (unit, lengths)
}
