//! SVG to pixels.

use std::panic::{AssertUnwindSafe, catch_unwind};

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{ImageHrefResolver, Options, Tree};

use crate::{IconError, Result};

/// The largest side of a picture.
pub(crate) const MAX_SIDE: u32 = 4096;

/// Longer texts are not icons. The limit also bounds the recursion of the parser on nested elements.
const MAX_BYTES: usize = 1 << 20;
const MAX_DEPTH: usize = 200;

/// The value of `currentColor`: most icons inherit their colour from the page.
const INK: &str = "svg { color: #222222 }";

/// A square picture, rows from the top, three bytes a pixel: red, green, blue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Pixels a side.
    pub size: u32,
    /// `size * size * 3` bytes.
    pub rgb: Vec<u8>,
}

/// Draws an SVG document on white, as large as fits and centred, in dark grey where it leaves the colour open.
///
/// Text, embedded pictures and references to files are not drawn.
pub fn draw(svg: &str, size: u32) -> Result<Picture> {
    if !(1..=MAX_SIDE).contains(&size) {
        return Err(IconError::Size { found: size });
    }
    check_bounds(svg)?;
    // Unwind safety: the tree and the pixels that a panic leaves behind are dropped here.
    catch_unwind(AssertUnwindSafe(|| draw_unguarded(svg, size)))
        .unwrap_or_else(|_| Err(IconError::Svg("file is corrupt".to_owned())))
}

fn check_bounds(svg: &str) -> Result<()> {
    if svg.len() > MAX_BYTES {
        let message = format!("expected at most {MAX_BYTES} bytes, found {}", svg.len());
        return Err(IconError::Svg(message));
    }
    let depth = nesting(svg);
    if depth > MAX_DEPTH {
        let message = format!("expected elements nested at most {MAX_DEPTH} deep, found {depth}");
        return Err(IconError::Svg(message));
    }
    Ok(())
}

/// An upper bound of how deep elements are nested, without parsing them: a tag that opens goes one deeper, one that closes comes back.
fn nesting(svg: &str) -> usize {
    let bytes = svg.as_bytes();
    let mut depth = 0_usize;
    let mut deepest = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        match (byte, bytes.get(i + 1)) {
            (b'<', Some(b'/')) => depth = depth.saturating_sub(1),
            (b'<', Some(b'!' | b'?')) => {}
            (b'<', _) => depth += 1,
            (b'/', Some(b'>')) => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn draw_unguarded(svg: &str, size: u32) -> Result<Picture> {
    let nothing =
        ImageHrefResolver { resolve_data: Box::new(|_, _, _| None), resolve_string: Box::new(|_, _| None) };
    let options =
        Options { style_sheet: Some(INK.to_owned()), image_href_resolver: nothing, ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| IconError::Svg(error.to_string()))?;

    let side = size as f32;
    let width = tree.size().width();
    let height = tree.size().height();
    let scale = side / width.max(height);
    let place = Transform::from_scale(scale, scale)
        .post_translate((side - width * scale) / 2.0, (side - height * scale) / 2.0);
    let mut pixels = Pixmap::new(size, size).ok_or(IconError::Size { found: size })?;
    pixels.fill(Color::WHITE);
    resvg::render(&tree, place, &mut pixels.as_mut());

    // On opaque white, premultiplied colours are the colours themselves.
    let rgb = pixels.data().chunks_exact(4).flat_map(|rgba| [rgba[0], rgba[1], rgba[2]]).collect();
    let mut picture = Picture { size, rgb };
    picture.clear_margins((side - width * scale) / 2.0, (side - height * scale) / 2.0);
    Ok(picture)
}

impl Picture {
    /// Whitens what lies outside the view box: the library draws it, a browser would not.
    fn clear_margins(&mut self, left: f32, top: f32) {
        let left = left as usize;
        let top = top as usize;
        let side = self.size as usize;
        for (i, pixel) in self.rgb.chunks_exact_mut(3).enumerate() {
            let x = i % side;
            let y = i / side;
            if x < left || x >= side - left || y < top || y >= side - top {
                pixel.fill(255);
            }
        }
    }

    /// The picture as a PNG file.
    pub fn to_png(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.size, self.size);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().expect("memory takes every write");
        writer.write_image_data(&self.rgb).expect("as many bytes as the header says");
        drop(writer);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path fill="currentColor" d="M0 0h4v8H0z"/></svg>"#;

    fn pixel(picture: &Picture, x: u32, y: u32) -> [u8; 3] {
        let at = 3 * (y * picture.size + x) as usize;
        picture.rgb[at..at + 3].try_into().unwrap()
    }

    #[test]
    fn an_open_colour_is_dark_grey_and_the_ground_is_white() {
        let picture = draw(HALF, 16).unwrap();
        assert_eq!((pixel(&picture, 3, 8), pixel(&picture, 12, 8)), ([0x22; 3], [255; 3]));
    }

    #[test]
    fn colours_of_the_drawing_stay() {
        let picture = draw(&HALF.replace("currentColor", "#ff8000"), 16).unwrap();
        assert_eq!(pixel(&picture, 3, 8), [255, 128, 0]);
    }

    #[test]
    fn a_flat_drawing_is_centred() {
        let picture = draw(&HALF.replace("0 0 8 8", "0 0 8 4").replace("h4", "h8"), 16).unwrap();
        let column: Vec<_> = (0..16).map(|y| pixel(&picture, 8, y)[0]).collect();
        assert_eq!(column, [[255; 4], [0x22; 4], [0x22; 4], [255; 4]].concat());
    }

    #[test]
    fn the_same_drawing_gives_the_same_bytes() {
        assert_eq!(draw(HALF, 48).unwrap().to_png(), draw(HALF, 48).unwrap().to_png());
    }

    #[test]
    fn garbage_is_an_error_and_not_a_panic() {
        let nested = format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{}", "<g>".repeat(100_000));
        let huge = format!("<svg>{}</svg>", " ".repeat(MAX_BYTES));
        for text in ["", "apple", "<svg", "<html/>", &HALF[..60], &nested, &huge] {
            assert!(matches!(draw(text, 16), Err(IconError::Svg(_))), "{}", &text[..text.len().min(60)]);
        }
    }

    #[test]
    fn a_drawing_without_extent_is_an_error() {
        assert!(draw(&HALF.replace("viewBox", r#"width="0" viewBox"#), 16).is_err());
    }

    #[test]
    fn files_are_not_read() {
        let link = HALF.replace("<path", r#"<image href="/etc/hostname" width="8" height="8"/><path"#);
        assert_eq!(draw(&link, 16).unwrap(), draw(HALF, 16).unwrap());
    }

    #[test]
    fn pictures_of_no_pixels_or_too_many_are_refused() {
        for size in [0, MAX_SIDE + 1] {
            assert!(matches!(draw(HALF, size), Err(IconError::Size { found }) if found == size));
        }
    }
}
