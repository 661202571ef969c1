//! General matrix products on one thread, by the kernels of the `gemm` crates, chosen by level.
//!
//! By default these crates detect the machine themselves. They also split sums by the sizes of its caches, so that products of more
//! than 64 rows or columns may differ in their last bits between machines, even of one level.

use gemm_common::Parallelism;

use crate::level::Level;

/// The positions of a matrix in a slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// The distance between rows.
    pub row_stride: usize,
    /// The distance between columns.
    pub column_stride: usize,
}

impl Layout {
    /// Row by row, without gaps.
    pub fn by_rows(rows: usize, columns: usize) -> Layout {
        Layout { rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// The layout of the transposed matrix.
    pub fn transposed(self) -> Layout {
        Layout {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }

    /// The first `columns` columns.
    pub fn with_columns(self, columns: usize) -> Layout {
        Layout { columns, ..self }
    }

    /// The length of the slice that the matrix needs.
    fn len(self) -> usize {
        if self.rows == 0 || self.columns == 0 {
            return 0;
        }
        (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride + 1
    }

    /// Whether no two elements share a position.
    fn is_injective(self) -> bool {
        if self.rows <= 1 && self.columns <= 1 || self.rows == 0 || self.columns == 0 {
            return true;
        }
        if self.column_stride <= self.row_stride {
            self.column_stride > 0 && self.row_stride >= self.columns * self.column_stride
        } else {
            self.row_stride > 0 && self.column_stride >= self.rows * self.row_stride
        }
    }
}

/// Whether a product replaces the contents of its output or is added to them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sum {
    /// Replace the contents.
    Replace,
    /// Add to the contents.
    Add,
}

/// Numbers that can be multiplied: `f32` and `f64`.
pub trait Number: Copy + private::Kernels {}

impl Number for f32 {}
impl Number for f64 {}

/// A matrix in a slice.
#[derive(Clone, Copy)]
pub struct MatrixRef<'a, T> {
    /// The slice.
    pub values: &'a [T],
    /// The positions in it.
    pub layout: Layout,
}

impl<'a, T> From<(&'a [T], Layout)> for MatrixRef<'a, T> {
    fn from((values, layout): (&'a [T], Layout)) -> MatrixRef<'a, T> {
        MatrixRef { values, layout }
    }
}

/// A matrix to be written to a slice.
pub struct MatrixMut<'a, T> {
    /// The slice.
    pub values: &'a mut [T],
    /// The positions in it.
    pub layout: Layout,
}

impl<'a, T> From<(&'a mut [T], Layout)> for MatrixMut<'a, T> {
    fn from((values, layout): (&'a mut [T], Layout)) -> MatrixMut<'a, T> {
        MatrixMut { values, layout }
    }
}

impl<'a, T> From<(&'a mut Vec<T>, Layout)> for MatrixMut<'a, T> {
    fn from((values, layout): (&'a mut Vec<T>, Layout)) -> MatrixMut<'a, T> {
        MatrixMut { values, layout }
    }
}

/// `out = a · b`, or `out += a · b`, by the instructions of `level`.
pub fn multiply<'a, T: Number + 'a>(
    level: Level,
    a: impl Into<MatrixRef<'a, T>>,
    b: impl Into<MatrixRef<'a, T>>,
    sum: Sum,
    out: impl Into<MatrixMut<'a, T>>,
) {
    let a = a.into();
    let b = b.into();
    let out = out.into();
    let m = a.layout.rows;
    let k = a.layout.columns;
    let n = b.layout.columns;
    assert!(b.layout.rows == k && out.layout.rows == m && out.layout.columns == n, "shapes disagree");
    assert!(
        a.values.len() >= a.layout.len() && b.values.len() >= b.layout.len(),
        "a factor leaves its slice"
    );
    assert!(
        out.values.len() >= out.layout.len() && out.layout.is_injective(),
        "the product leaves its slice"
    );
    let arguments = private::Arguments {
        sizes: (m, n, k),
        out: out.values.as_mut_ptr(),
        out_strides: strides(out.layout),
        sum,
        a: a.values.as_ptr(),
        a_strides: strides(a.layout),
        b: b.values.as_ptr(),
        b_strides: strides(b.layout),
    };
    // SAFETY: all three matrices lie inside their slices, as just checked, and `out` is borrowed mutably, so it overlaps
    // neither factor; the machine has the instructions of every `Level` there is.
    unsafe { T::gemm(level, &arguments) }
}

/// The strides of columns and rows.
fn strides(layout: Layout) -> (isize, isize) {
    (layout.column_stride as isize, layout.row_stride as isize)
}

mod private {
    #[cfg(target_arch = "x86_64")]
    use gemm_common::simd::{MixedSimd, Scalar, V3, V4};

    use super::{Level, Parallelism, Sum};
    #[cfg(target_arch = "x86_64")]
    use crate::level::Instructions;

    /// The arguments of the `gemm` crates.
    pub struct Arguments<T> {
        pub sizes: (usize, usize, usize),
        pub out: *mut T,
        pub out_strides: (isize, isize),
        pub sum: Sum,
        pub a: *const T,
        pub a_strides: (isize, isize),
        pub b: *const T,
        pub b_strides: (isize, isize),
    }

    /// The kernels for one kind of numbers.
    pub trait Kernels: Sized {
        /// # Safety
        /// Strides and sizes walk over valid memory, and `out` overlaps neither factor.
        unsafe fn gemm(level: Level, arguments: &Arguments<Self>);
    }

    /// Calls the kernels of one module, `$lanes` numbers to a register, as the crate itself would.
    #[cfg(target_arch = "x86_64")]
    macro_rules! call {
        ($arguments:expr, $type:ty, $simd:expr, $lanes:expr, $kernels:path) => {{
            use $kernels as kernels;
            let Arguments { sizes: (m, n, k), out, out_strides, sum, a, a_strides, b, b_strides } =
                *$arguments;
            gemm_common::gemm::gemm_basic_generic::<
                _,
                $type,
                { $lanes },
                { kernels::MR_DIV_N * $lanes },
                { kernels::NR },
                { kernels::MR_DIV_N },
                { kernels::H_M },
                { kernels::H_N },
            >(
                $simd,
                m,
                n,
                k,
                out,
                out_strides.0,
                out_strides.1,
                sum == Sum::Add,
                a,
                a_strides.0,
                a_strides.1,
                b,
                b_strides.0,
                b_strides.1,
                1.0,
                1.0,
                false,
                false,
                false,
                |a, b, c| a * b + c,
                &kernels::UKR,
                &kernels::H_UKR,
                false,
                Parallelism::None,
            )
        }};
    }

    macro_rules! kernels {
        ($type:ident, $crate_name:ident, $avx2:expr, $avx512:expr) => {
            impl Kernels for $type {
                #[cfg(target_arch = "x86_64")]
                unsafe fn gemm(level: Level, arguments: &Arguments<$type>) {
                    type Wide = $type;
                    // SAFETY: as the caller guarantees; the tokens prove that the machine has the instructions.
                    unsafe {
                        if level.instructions() == Instructions::Avx512
                            && let Some(simd) = <V4 as MixedSimd<Wide, Wide, Wide, Wide>>::try_new()
                        {
                            return call!(
                                arguments,
                                $type,
                                simd,
                                $avx512,
                                $crate_name::microkernel::avx512f::$type
                            );
                        }
                        if level.instructions() >= Instructions::Avx2
                            && let Some(simd) = <V3 as MixedSimd<Wide, Wide, Wide, Wide>>::try_new()
                        {
                            return call!(
                                arguments,
                                $type,
                                simd,
                                $avx2,
                                $crate_name::microkernel::fma::$type
                            );
                        }
                        call!(arguments, $type, Scalar, 1, $crate_name::microkernel::scalar::$type)
                    }
                }

                #[cfg(not(target_arch = "x86_64"))]
                unsafe fn gemm(_one: Level, arguments: &Arguments<$type>) {
                    let Arguments { sizes: (m, n, k), out, out_strides, sum, a, a_strides, b, b_strides } =
                        *arguments;
                    // SAFETY: as the caller guarantees.
                    unsafe {
                        $crate_name::gemm::$type::get_gemm_fn()(
                            m,
                            n,
                            k,
                            out,
                            out_strides.0,
                            out_strides.1,
                            sum == Sum::Add,
                            a,
                            a_strides.0,
                            a_strides.1,
                            b,
                            b_strides.0,
                            b_strides.1,
                            1.0,
                            1.0,
                            false,
                            false,
                            false,
                            Parallelism::None,
                        )
                    }
                }
            }
        };
    }

    kernels!(f32, gemm_f32, 8, 16);
    kernels!(f64, gemm_f64, 4, 8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    /// The three loops of the definition, in double precision.
    fn naive(a: &[f64], b: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
        let cell = |i: usize, j: usize| (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
        (0..m * n).map(|at| cell(at / n, at % n)).collect()
    }

    fn transpose<T: Copy>(values: &[T], rows: usize, columns: usize) -> Vec<T> {
        (0..values.len()).map(|at| values[at % rows * columns + at / rows]).collect()
    }

    #[test]
    fn products_of_every_shape_and_layout_equal_the_three_loops_at_every_level() {
        let stream = Stream::new(3);
        let shapes = [
            (1, 1, 1),
            (1, 40, 1),
            (5, 2, 7),
            (1, 33, 20),
            (20, 33, 1),
            (13, 64, 17),
            (70, 130, 65),
            (129, 600, 90),
        ];
        for (m, k, n) in shapes {
            let draw = |label: u64, count: usize| -> Vec<f32> {
                (0..count).map(|i| stream.branch(label).normal(i as u64)).collect()
            };
            let a = draw(0, m * k);
            let b = draw(1, k * n);
            let before = draw(2, m * n);
            let wide = |values: &[f32]| -> Vec<f64> { values.iter().map(|&v| f64::from(v)).collect() };
            let expected = naive(&wide(&a), &wide(&b), m, k, n);
            let sides = [
                (a.clone(), Layout::by_rows(m, k)),
                (transpose(&a, m, k), Layout::by_rows(k, m).transposed()),
            ];
            let others = [
                (b.clone(), Layout::by_rows(k, n)),
                (transpose(&b, k, n), Layout::by_rows(n, k).transposed()),
            ];
            for level in Level::available() {
                for ((a, a_layout), (b, b_layout)) in
                    sides.iter().flat_map(|a| others.iter().map(move |b| (a, b)))
                {
                    for sum in [Sum::Replace, Sum::Add] {
                        let there = if sum == Sum::Add { 1.0 } else { 0.0 };
                        let mut out = before.clone();
                        let into = MatrixMut { values: &mut out, layout: Layout::by_rows(m, n) };
                        let left = MatrixRef { values: a, layout: *a_layout };
                        let right = MatrixRef { values: b, layout: *b_layout };
                        multiply(level, left, right, sum, into);
                        let mut double = wide(&before);
                        let into = MatrixMut { values: &mut double, layout: Layout::by_rows(m, n) };
                        let left = MatrixRef { values: &wide(a), layout: *a_layout };
                        let right = MatrixRef { values: &wide(b), layout: *b_layout };
                        multiply(level, left, right, sum, into);
                        for i in 0..m * n {
                            let expected = expected[i] + there * f64::from(before[i]);
                            let near = 1e-5 * (k as f64).sqrt() * 4.0;
                            assert!((f64::from(out[i]) - expected).abs() < near, "{level}, {m}×{k}×{n}");
                            assert!((double[i] - expected).abs() < 1e-10, "{level}, {m}×{k}×{n}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_product_into_a_part_of_a_matrix_leaves_the_rest_alone() {
        for level in Level::available() {
            let a = [1.0, 2.0, 3.0, 4.0];
            let b = [5.0, 6.0, 7.0, 8.0];
            let square = Layout::by_rows(2, 2);
            let mut out = [-1.0f64; 8];
            let part = Layout { row_stride: 4, ..square };
            let left = MatrixRef { values: &a, layout: square };
            let right = MatrixRef { values: &b, layout: square };
            let into = MatrixMut { values: &mut out[1..], layout: part };
            multiply(level, left, right, Sum::Replace, into);
            assert_eq!(out, [-1.0, 19.0, 22.0, -1.0, -1.0, 43.0, 50.0, -1.0], "{level}");
        }
    }

    #[test]
    fn sums_of_nothing_are_zero_and_products_of_no_rows_are_none() {
        let mut out = [1f32; 6];
        multiply(
            Level::current(),
            MatrixRef { values: &[], layout: Layout::by_rows(2, 0) },
            MatrixRef { values: &[], layout: Layout::by_rows(0, 3) },
            Sum::Replace,
            (&mut out[..], Layout::by_rows(2, 3)),
        );
        assert_eq!(out, [0.0; 6]);
        multiply(
            Level::current(),
            MatrixRef { values: &[1f32; 4], layout: Layout::by_rows(2, 2) },
            MatrixRef { values: &[], layout: Layout::by_rows(2, 0) },
            Sum::Add,
            MatrixMut { values: &mut [], layout: Layout::by_rows(2, 0) },
        );
    }

    #[test]
    #[should_panic(expected = "leaves its slice")]
    fn a_matrix_that_leaves_its_slice_is_refused() {
        let square = Layout::by_rows(2, 2);
        multiply(
            Level::PLAIN,
            MatrixRef { values: &[0f32; 3], layout: square },
            MatrixRef { values: &[0f32; 4], layout: square },
            Sum::Replace,
            MatrixMut { values: &mut [0f32; 4], layout: square },
        );
    }
}
