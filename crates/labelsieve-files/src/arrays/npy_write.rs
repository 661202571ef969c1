//! Writing `.npy` files.

use std::io::Write;

use crate::arrays::npy::{Dtype, MAGIC};

/// Writes a C-ordered `.npy` of `f32`.
///
/// # Panics
/// When `shape` does not multiply to the number of values.
pub fn write_npy_f32(writer: impl Write, shape: &[usize], values: &[f32]) -> std::io::Result<()> {
    write_npy(writer, Dtype::F32, shape, values, |value| value.to_le_bytes())
}

/// Writes a C-ordered `.npy` of `f16`.
///
/// # Panics
/// When `shape` does not multiply to the number of values.
pub fn write_npy_f16(writer: impl Write, shape: &[usize], values: &[half::f16]) -> std::io::Result<()> {
    write_npy(writer, Dtype::F16, shape, values, |value| value.to_le_bytes())
}

/// Writes a C-ordered `.npy` of `i64`.
///
/// # Panics
/// When `shape` does not multiply to the number of values.
pub fn write_npy_i64(writer: impl Write, shape: &[usize], values: &[i64]) -> std::io::Result<()> {
    write_npy(writer, Dtype::I64, shape, values, |value| value.to_le_bytes())
}

/// Writes a C-ordered `.npy` of bytes.
///
/// # Panics
/// When `shape` does not multiply to the number of values.
pub fn write_npy_u8(writer: impl Write, shape: &[usize], values: &[u8]) -> std::io::Result<()> {
    write_npy(writer, Dtype::U8, shape, values, |value| [value])
}

/// Everything before the elements.
pub fn npy_head(dtype: Dtype, shape: &[usize]) -> Vec<u8> {
    let axes: String = shape.iter().map(|axis| format!("{axis}, ")).collect();
    let axes = if shape.len() == 1 { axes.trim_end() } else { axes.trim_end_matches(", ") };
    let mut dictionary = format!("{{'descr': '<{dtype}', 'fortran_order': False, 'shape': ({axes}), }}");
    let unpadded = MAGIC.len() + 4 + dictionary.len() + 1;
    dictionary.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    dictionary.push('\n');
    let length = (dictionary.len() as u16).to_le_bytes();
    [MAGIC, &[1, 0], &length, dictionary.as_bytes()].concat()
}

fn write_npy<T: Copy, const SIZE: usize>(
    mut writer: impl Write,
    dtype: Dtype,
    shape: &[usize],
    values: &[T],
    encode: impl Fn(T) -> [u8; SIZE],
) -> std::io::Result<()> {
    assert_eq!(shape.iter().product::<usize>(), values.len(), "shape {shape:?} and number of values differ");
    writer.write_all(&npy_head(dtype, shape))?;
    for chunk in values.chunks(16 << 10) {
        let bytes: Vec<u8> = chunk.iter().flat_map(|&value| encode(value)).collect();
        writer.write_all(&bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::arrays::npy::NpyHeader;

    #[test]
    fn what_is_written_is_aligned_and_read_back() {
        for shape in [vec![], vec![3], vec![2, 3], vec![0, 7]] {
            let values = vec![7i64; shape.iter().product()];
            let mut bytes = Vec::new();
            write_npy_i64(&mut bytes, &shape, &values).unwrap();
            let header = NpyHeader::parse(Path::new("a.npy"), &bytes, bytes.len() as u64).unwrap();
            assert_eq!((header.dtype, header.shape), (Dtype::I64, shape));
            assert_eq!(header.data_offset % 64, 0);
        }
    }

    #[test]
    fn the_bytes_are_those_of_numpy() {
        // >>> f = io.BytesIO(); np.save(f, np.array([1.5, -2], dtype='f4')); f.getvalue()
        let mut bytes = Vec::new();
        write_npy_f32(&mut bytes, &[2], &[1.5, -2.0]).unwrap();
        let mut expected =
            b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".to_vec();
        expected.resize(127, b' ');
        expected.extend(b"\n\x00\x00\xc0?\x00\x00\x00\xc0");
        assert_eq!(bytes, expected);
    }
}
