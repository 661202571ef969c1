//! Positions of patches: learned ones for another grid, and the angles of rotary ones.

use super::config::GridResize;

/// Learned positions for `from` rows and columns of patches, as if they had been learned for `to`; `width` numbers each.
pub fn resize_grid(
    positions: &[f32],
    width: usize,
    from: (usize, usize),
    to: (usize, usize),
    how: GridResize,
) -> Vec<f32> {
    if from == to {
        return positions.to_vec();
    }
    let rows = weights(from.0, to.0, how);
    let columns = weights(from.1, to.1, how);
    let mut out = vec![0.0; to.0 * to.1 * width];
    let mut sums = vec![0f64; width];
    for (cell, out) in out.chunks_exact_mut(width).enumerate() {
        sums.fill(0.0);
        for &(y, by_row) in &rows[cell / to.1] {
            for &(x, by_column) in &columns[cell % to.1] {
                let from = &positions[(y * from.1 + x) * width..][..width];
                sums.iter_mut().zip(from).for_each(|(sum, &v)| *sum += by_row * by_column * f64::from(v));
            }
        }
        out.iter_mut().zip(&sums).for_each(|(out, &sum)| *out = sum as f32);
    }
    out
}

/// For each of `to` points, which of `from` points it is made of and by which weights, as PyTorch's `interpolate` without
/// aligned corners does it. Antialiasing stretches the kernel when shrinking, and uses a = -0.5 (Pillow's) for -0.75.
fn weights(from: usize, to: usize, how: GridResize) -> Vec<Vec<(usize, f64)>> {
    let scale = from as f64 / to as f64;
    let last = from as isize - 1;
    let point = |at: usize| match how {
        GridResize::Bicubic => {
            let centre = (at as f64 + 0.5) * scale - 0.5;
            let first = centre.floor() as isize - 1;
            (first..first + 4)
                .map(|i| (i.clamp(0, last) as usize, cubic(i as f64 - centre, -0.75)))
                .collect::<Vec<_>>()
        }
        GridResize::BicubicAntialias | GridResize::BilinearAntialias => {
            let stretch = scale.max(1.0);
            let (radius, kernel): (f64, fn(f64) -> f64) = match how {
                GridResize::BilinearAntialias => (1.0, |x| (1.0 - x.abs()).max(0.0)),
                _ => (2.0, |x| cubic(x, -0.5)),
            };
            let centre = (at as f64 + 0.5) * scale;
            let first = ((centre - radius * stretch + 0.5) as isize).max(0);
            let end = ((centre + radius * stretch + 0.5) as isize).min(from as isize);
            let raw: Vec<f64> = (first..end).map(|i| kernel((i as f64 - centre + 0.5) / stretch)).collect();
            let total: f64 = raw.iter().sum();
            (first..end).zip(raw).map(|(i, weight)| (i as usize, weight / total)).collect()
        }
    };
    (0..to).map(point).collect()
}

/// Keys' cubic kernel.
fn cubic(x: f64, a: f64) -> f64 {
    let x = x.abs();
    match x {
        _ if x < 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
        _ if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
        _ => 0.0,
    }
}

/// Cosines and sines for each patch of a grid, `head` numbers in all: number i and number i + head/2 of a query or key are
/// rotated as a pair by 2π c / θ^(4 j / head), with c the patch's place in [-1, 1], vertically for the first half of the
/// pairs and horizontally for the second, and j counting within the half (DINOv3).
pub fn rotations(grid: (usize, usize), head: usize, theta: f32) -> Vec<f32> {
    let (rows, columns) = grid;
    let quarter = head / 4;
    let place = |at: usize, of: usize| 2.0 * ((at as f32 + 0.5) / of as f32) - 1.0;
    let frequency = |j: usize| 1.0 / theta.powf(j as f32 * (4.0 / head as f32));
    let mut out = Vec::with_capacity(rows * columns * head);
    for cell in 0..rows * columns {
        let y = place(cell / columns, rows);
        let x = place(cell % columns, columns);
        let angles: Vec<f32> = [y, x]
            .iter()
            .flat_map(|c| (0..quarter).map(move |j| 2.0 * std::f32::consts::PI * c * frequency(j)))
            .collect();
        out.extend(angles.iter().map(|angle| angle.cos()));
        out.extend(angles.iter().map(|angle| angle.sin()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: [&[f32]; 6] = [
        &[1.72097, 4.25845, 4.76724, 2.88067, 5.41965, 3.0886, 1.69632, 2.24619],
        &[2.81565, 4.8783, 4.91389, 2.9001, 5.86493, 4.03314, 2.53851, 2.31806],
        &[3.0, 4.5625, 4.5625, 3.0, 5.5, 3.9375, 2.76563, 2.375],
        &[
            2.28312, 3.14719, 7.67252, 2.15443, 2.06594, 5.83185, 5.83185, 2.06594, 2.15444, 7.67252,
            3.14719, 2.28312,
        ],
        &[
            2.35714, 3.20833, 7.46429, 2.42857, 2.37037, 5.57143, 5.57143, 2.37037, 2.42857, 7.46429,
            3.20833, 2.35714,
        ],
        &[
            1.90227, 2.17969, 8.16551, 1.21673, 2.98828, 7.17397, 7.17397, 2.98828, 1.21672, 8.16551,
            2.17969, 1.90227,
        ],
    ];

    fn check(how: GridResize, from: (usize, usize), to: (usize, usize), expected: &[f32]) {
        let positions: Vec<f32> = (0..from.0 * from.1).map(|i| ((i * i * 3 + i) % 11) as f32).collect();
        let found = resize_grid(&positions, 1, from, to, how);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{how:?}: {found} instead of {expected}");
        }
    }

    /// i = torch.arange(h * w)
    /// x = ((i * i * 3 + i) % 11).float().view(1, 1, h, w)
    /// F.interpolate(x, size=to, mode="bicubic", align_corners=False, antialias=…)
    #[test]
    fn grids_are_resized_as_pytorch_does() {
        check(GridResize::Bicubic, (3, 3), (2, 4), GOLDEN[0]);
        check(GridResize::BicubicAntialias, (3, 3), (2, 4), GOLDEN[1]);
        check(GridResize::BilinearAntialias, (3, 3), (2, 4), GOLDEN[2]);
        check(GridResize::BicubicAntialias, (6, 5), (4, 3), GOLDEN[3]);
        check(GridResize::BilinearAntialias, (6, 5), (4, 3), GOLDEN[4]);
        check(GridResize::Bicubic, (6, 5), (4, 3), GOLDEN[5]);
    }

    #[test]
    fn the_same_grid_keeps_its_positions() {
        let positions: Vec<f32> = (0..24).map(|i| i as f32 * 0.1).collect();
        for how in [GridResize::Bicubic, GridResize::BicubicAntialias, GridResize::BilinearAntialias] {
            assert_eq!(resize_grid(&positions, 2, (3, 4), (3, 4), how), positions);
        }
    }
}
