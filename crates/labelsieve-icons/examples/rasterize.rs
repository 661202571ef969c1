//! `rasterize SIZE ICONS.jsonl PIXELS`: draws the `svg` of every line and writes the pixels, three bytes each, one picture
//! after the other. `tools/icons` compares drawings and makes contact sheets with it. A drawing that fails is left white
//! and named on stderr.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};

use labelsieve_icons::{IconError, draw};

#[derive(serde::Deserialize)]
struct Line {
    svg: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [size, source, target] = &arguments[..] else {
        return Err("expected SIZE ICONS.jsonl PIXELS".into());
    };
    let size: u32 = size.parse()?;
    let mut pixels = BufWriter::new(File::create(target)?);
    for (number, line) in BufReader::new(File::open(source)?).lines().enumerate() {
        let Line { svg } = serde_json::from_str(&line?)?;
        let rgb = match draw(&svg, size) {
            Ok(picture) => picture.rgb,
            Err(error @ IconError::Size { .. }) => return Err(error.into()),
            Err(error) => {
                eprintln!("line {}: {error}", number + 1);
                vec![255; (size * size * 3) as usize]
            }
        };
        pixels.write_all(&rgb)?;
    }
    Ok(pixels.flush()?)
}
