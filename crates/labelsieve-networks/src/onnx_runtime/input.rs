//! The input of a network: its layout and type, and images in that form.

use std::path::Path;

use half::f16;
use ort::session::SessionInputValue;
use ort::value::{Outlet, Tensor, TensorElementType, ValueType};
use rayon::prelude::*;

use crate::Batch;
use crate::onnx_runtime::error::{Error, Result};
use crate::transformer::Normalisation;

/// The input of a network. Sizes are `None` where the file leaves them open.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// The order of its dimensions.
    pub layout: Layout,
    /// The type of its numbers.
    pub element: Element,
    /// Images per run.
    pub batch: Option<usize>,
    /// Pixels from top to bottom.
    pub height: Option<usize>,
    /// Pixels from left to right.
    pub width: Option<usize>,
}

/// The order of dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Images, channels, rows, columns: PyTorch's.
    Nchw,
    /// Images, rows, columns, channels: TensorFlow's.
    Nhwc,
}

/// The type of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// 32 bits, normalised.
    F32,
    /// 16 bits, normalised.
    F16,
    /// Pixels as they are: such a network normalises them itself.
    U8,
}

impl Input {
    /// The input among `inputs`, which must be the only one and take images in colour.
    pub(crate) fn of(path: &Path, inputs: &[Outlet]) -> Result<Input> {
        let wrong = |what: String, expected: &str, found: String| Error::Shape {
            path: path.to_path_buf(),
            what,
            expected: expected.to_owned(),
            found,
        };
        let [input] = inputs else {
            let names: Vec<String> = inputs.iter().map(described).collect();
            let found = match inputs.len() {
                0 => "none".to_owned(),
                n => format!("{n}: {}", names.join(", ")),
            };
            return Err(wrong("inputs".to_owned(), "one, a batch of images", found));
        };
        let what = || format!("input `{}`", input.name());
        let unfit = |expected: &str| wrong(what(), expected, described(input));
        let images = "images as 4 dimensions, N×3×H×W or N×H×W×3";
        let ValueType::Tensor { ty, shape, dimension_symbols } = input.dtype() else {
            return Err(unfit(images));
        };
        let element = match ty {
            TensorElementType::Float32 => Element::F32,
            TensorElementType::Float16 => Element::F16,
            TensorElementType::Uint8 => Element::U8,
            _ => return Err(unfit("numbers of type f32, f16 or u8")),
        };
        let &[batch, a, b, c] = &shape[..] else { return Err(unfit(images)) };
        let is_channels = |place: usize| dimension_symbols[place].to_lowercase().contains("channel");
        let layout = match (a, c) {
            (3, _) => Layout::Nchw,
            (_, 3) => Layout::Nhwc,
            // Open sizes may have names; without any it is PyTorch's order.
            (_, ..=0) if is_channels(3) => Layout::Nhwc,
            (..=0, _) => Layout::Nchw,
            _ => return Err(unfit("3 channels")),
        };
        let (height, width) = match layout {
            Layout::Nchw => (b, c),
            Layout::Nhwc => (a, b),
        };
        let known = |size: i64| usize::try_from(size).ok().filter(|&size| size > 0);
        Ok(Input {
            name: input.name().to_owned(),
            layout,
            element,
            batch: known(batch),
            height: known(height),
            width: known(width),
        })
    }

    /// `images` as this input takes them, filled up with black ones to `n`.
    pub(crate) fn values(
        &self,
        images: &Batch,
        n: usize,
        normalisation: &Normalisation,
    ) -> ort::Result<SessionInputValue<'static>> {
        let (height, width) = images.size();
        let shape = match self.layout {
            Layout::Nchw => [n, 3, height, width],
            Layout::Nhwc => [n, height, width, 3],
        };
        let table = table(normalisation);
        Ok(match self.element {
            Element::F32 => {
                Tensor::from_array((shape, self.arranged(images, n, |c, v| table[c][v as usize])))?.into()
            }
            Element::F16 => {
                let value = |c: usize, v: u8| f16::from_f32(table[c][v as usize]);
                Tensor::from_array((shape, self.arranged(images, n, value)))?.into()
            }
            Element::U8 => Tensor::from_array((shape, self.arranged(images, n, |_, v| v)))?.into(),
        })
    }

    /// Pixels in the order of the layout, each through `value` with its channel.
    fn arranged<T: Copy + Default + Send>(
        &self,
        images: &Batch,
        n: usize,
        value: impl Fn(usize, u8) -> T + Sync,
    ) -> Vec<T> {
        let (height, width) = images.size();
        let plane = height * width;
        let mut out = vec![T::default(); n * 3 * plane];
        let pairs = out.par_chunks_exact_mut(3 * plane).zip(images.pixels().par_chunks_exact(3 * plane));
        pairs.for_each(|(out, pixels)| match self.layout {
            Layout::Nchw => out.chunks_exact_mut(plane).enumerate().for_each(|(c, out)| {
                let channel = pixels.iter().skip(c).step_by(3);
                out.iter_mut().zip(channel).for_each(|(out, &pixel)| *out = value(c, pixel));
            }),
            Layout::Nhwc => out.iter_mut().zip(pixels).enumerate().for_each(|(i, (out, &pixel))| {
                *out = value(i % 3, pixel);
            }),
        });
        out
    }
}

/// The normalised number of each of the 256 values of a channel.
fn table(normalisation: &Normalisation) -> [[f32; 256]; 3] {
    let Normalisation { scale, mean, deviation } = normalisation;
    std::array::from_fn(|c| {
        std::array::from_fn(|pixel| ((pixel as f64 * scale - mean[c]) / deviation[c]) as f32)
    })
}

/// A name with what it holds, e.g. `pixel_values` (f32, N×3×224×224).
pub(crate) fn described(outlet: &Outlet) -> String {
    let ValueType::Tensor { ty, shape, dimension_symbols } = outlet.dtype() else {
        return format!("`{}` (no tensor)", outlet.name());
    };
    let size = |(place, &size): (usize, &i64)| match (size, dimension_symbols.get(place)) {
        (1.., _) => size.to_string(),
        (_, Some(symbol)) if !symbol.is_empty() => symbol.clone(),
        _ => "?".to_owned(),
    };
    let shape: Vec<String> = shape.iter().enumerate().map(size).collect();
    format!("`{}` ({ty}, {})", outlet.name(), shape.join("×"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ort::value::{Shape, SymbolicDimensions};

    fn outlet(name: &str, ty: TensorElementType, shape: [i64; 4], symbols: [&str; 4]) -> Outlet {
        let dimension_symbols = SymbolicDimensions::new(symbols.map(str::to_owned));
        Outlet::new(name, ValueType::Tensor { ty, shape: Shape::new(shape), dimension_symbols })
    }

    fn input(shape: [i64; 4], symbols: [&str; 4]) -> Result<Input> {
        Input::of(Path::new("x.onnx"), &[outlet("x", TensorElementType::Float32, shape, symbols)])
    }

    #[test]
    fn the_layout_is_read_off_the_shape_or_the_names_of_its_dimensions() {
        let none = [""; 4];
        let found = input([-1, 3, 224, 160], none).unwrap();
        assert_eq!((found.layout, found.batch), (Layout::Nchw, None));
        assert_eq!((found.height, found.width), (Some(224), Some(160)));
        let found = input([8, 96, -1, 3], none).unwrap();
        assert_eq!((found.layout, found.batch), (Layout::Nhwc, Some(8)));
        assert_eq!((found.height, found.width), (Some(96), None));
        assert_eq!(input([-1, -1, -1, -1], none).unwrap().layout, Layout::Nchw);
        let names = ["batch", "height", "width", "num_channels"];
        assert_eq!(input([-1, -1, -1, -1], names).unwrap().layout, Layout::Nhwc);
        let error = input([-1, 1, 28, 28], none).unwrap_err().to_string();
        assert_eq!(error, "`x.onnx`: input `x`: expected 3 channels, found `x` (f32, ?×1×28×28)");
    }

    #[test]
    fn several_inputs_and_texts_are_refused_by_name() {
        let ids = outlet("input_ids", TensorElementType::Int64, [-1, 77, 1, 1], ["batch", "", "", ""]);
        let pixels = outlet("pixel_values", TensorElementType::Float32, [-1, 3, 8, 8], [""; 4]);
        let both = [ids, pixels];
        let error = Input::of(Path::new("x.onnx"), &both).unwrap_err().to_string();
        let found = "2: `input_ids` (i64, batch×77×1×1), `pixel_values` (f32, ?×3×8×8)";
        assert_eq!(error, format!("`x.onnx`: inputs: expected one, a batch of images, found {found}"));
        let error = Input::of(Path::new("x.onnx"), &both[..1]).unwrap_err().to_string();
        assert!(error.contains("expected numbers of type f32, f16 or u8"), "{error}");
    }

    #[test]
    fn pixels_go_where_the_layout_has_them() {
        let images = Batch::new(1, 2, vec![1, 2, 3, 4, 5, 6]).unwrap();
        let plain = |_: usize, pixel: u8| pixel;
        let arranged = |layout: Layout| {
            let input = Input { layout, ..input([-1, 3, 1, 2], [""; 4]).unwrap() };
            input.arranged(&images, 2, plain)
        };
        assert_eq!(arranged(Layout::Nchw), [1, 4, 2, 5, 3, 6, 0, 0, 0, 0, 0, 0]);
        assert_eq!(arranged(Layout::Nhwc), [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0]);
    }
}
