//! Chooses the output with the features and reads it.

use std::path::Path;

use half::f16;
use ort::session::SessionOutputs;
use ort::value::{DynValue, TensorElementType, ValueType};

use crate::onnx_runtime::error::{Error, Result};

/// The output of features, by name, and how many numbers it has for each of `n` images: the one that was asked for, or the
/// only one, or the only one with a row for each image.
pub fn choose(
    path: &Path,
    outputs: &SessionOutputs,
    n: usize,
    asked: Option<&str>,
) -> Result<(String, usize)> {
    let all: Vec<(&str, Option<usize>)> =
        outputs.iter().map(|(name, value)| (name, width(value.dtype(), n))).collect();
    let described =
        || outputs.iter().map(|(name, value)| describe(name, value.dtype())).collect::<Vec<String>>();
    let rows: Vec<&(&str, Option<usize>)> = all.iter().filter(|(_, width)| width.is_some()).collect();
    let (name, width) = match (asked, &all[..], &rows[..]) {
        (Some(asked), ..) => *all.iter().find(|(name, _)| *name == asked).ok_or_else(|| {
            Error::NoSuchOutput { path: path.to_path_buf(), name: asked.to_owned(), outputs: described() }
        })?,
        (None, [only], _) => *only,
        (None, _, [only]) => **only,
        _ => return Err(Error::WhichOutput { path: path.to_path_buf(), outputs: described() }),
    };
    let found = || outputs.get(name).map_or_else(String::new, |value| describe(name, value.dtype()));
    let width = width.ok_or_else(|| Error::Shape {
        path: path.to_path_buf(),
        what: format!("output `{name}` for {n} images"),
        expected: format!("a row of numbers for each, {n}×d"),
        found: found(),
    })?;
    Ok((name.to_owned(), width))
}

/// Numbers for each of `n` images, if there is a row of them: n×d, or n×d×1×1 as pooling leaves it.
fn width(dtype: &ValueType, n: usize) -> Option<usize> {
    let ValueType::Tensor { ty: TensorElementType::Float32 | TensorElementType::Float16, shape, .. } = dtype
    else {
        return None;
    };
    let (&images, &[width, ref rest @ ..]) = shape.split_first()? else { return None };
    let is_row =
        usize::try_from(images).is_ok_and(|images| images == n) && rest.iter().all(|&size| size == 1);
    usize::try_from(width).ok().filter(|&width| is_row && width > 0)
}

/// The numbers of an output.
pub fn read(value: &DynValue) -> ort::Result<Vec<f32>> {
    match value.dtype().tensor_type() {
        Some(TensorElementType::Float16) => {
            let (_, values) = value.try_extract_tensor::<f16>()?;
            Ok(values.iter().map(|value| value.to_f32()).collect())
        }
        _ => Ok(value.try_extract_tensor::<f32>()?.1.to_vec()),
    }
}

fn describe(name: &str, dtype: &ValueType) -> String {
    match dtype {
        ValueType::Tensor { ty, shape, .. } => {
            let shape: Vec<String> = shape.iter().map(i64::to_string).collect();
            format!("`{name}` ({ty}, {})", shape.join("×"))
        }
        _ => format!("`{name}` (no tensor)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ort::value::{Shape, SymbolicDimensions};

    #[test]
    fn a_row_for_each_image_is_what_counts_as_features() {
        let of = |ty: TensorElementType, shape: &[i64]| {
            let dimension_symbols = SymbolicDimensions::empty(shape.len());
            let shape = Shape::new(shape.iter().copied());
            width(&ValueType::Tensor { ty, shape, dimension_symbols }, 2)
        };
        assert_eq!(of(TensorElementType::Float32, &[2, 384]), Some(384));
        assert_eq!(of(TensorElementType::Float16, &[2, 512, 1, 1]), Some(512));
        assert_eq!(of(TensorElementType::Float32, &[2, 257, 384]), None); // a row for each token
        assert_eq!(of(TensorElementType::Float32, &[1, 384]), None); // the batch is gone
        assert_eq!(of(TensorElementType::Float32, &[2]), None);
        assert_eq!(of(TensorElementType::Float32, &[]), None);
        assert_eq!(of(TensorElementType::Int64, &[2, 10]), None);
    }
}
