//! Writes a run directory with everything a report can show: drawn pictures, invented numbers, awkward names.
//!
//! `cargo run -p labelsieve-report --example sample_run -- DIR [CANDIDATES_PER_CLASS]`
//!
//! The browser test opens the report of it. Nothing in it is a result.

use std::io::Cursor;

use image::{ImageFormat, Rgb, RgbImage};
use labelsieve_files::*;
use labelsieve_networks::image_files::*;
use labelsieve_report::*;

/// Class names that a web page might stumble over, and ordinary ones.
const CLASSES: [&str; 8] = [
    "apple",
    "bat",
    "black widow",
    "crane",
    "Église Saint-Étienne de la Très-Grande-Paroisse-du-Haut",
    "jaguar",
    "mouse",
    "<script>alert('owned')</script>",
];
const METHODS: [(&str, f64, f64); 6] = [
    ("clean only", 45.3, 32.5),
    ("β = 1", 56.1, 2.6),
    ("label propagation", 62.6, 15.1),
    ("MLP", 63.6, 14.0),
    ("GCN", 67.8, 10.4),
    ("GCN, cosine", 73.2, 7.5),
];
const SHOTS: [f64; 5] = [1.0, 2.0, 5.0, 10.0, 20.0];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| "sample-run".into());
    let per_class: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(90);
    let mut info = RunInfo::new("A sample run: invented numbers, drawn pictures");
    info.description = "Eight ambiguous words, a few clean pictures of each, and candidates of which some mean something \
                        else. Everything here is generated to show what a report looks like; nothing in it is a result."
        .into();
    info.simulated_noise = true;
    info.commands = vec!["cargo run -p labelsieve-report --example sample_run -- sample-run".into()];
    info.notes = vec!["A note: </script><img src=x onerror=alert(1)> is text like any other.".into()];
    let info = info.setting("method", "gcn").setting("λ", 0.05).setting("k", 2).setting("seed", 0);
    let run = RunDirectory::create(folder, info)?;
    run.write_tables(&[table("top-1", 0.6), table("top-5", 1.0)])?;
    run.write_figures(&figures(per_class))?;
    write_examples(&run, per_class)
}

fn table(measure: &str, factor: f64) -> ResultTable {
    let row = |(n, (name, base, gain)): (usize, (&str, f64, f64))| TableRow {
        group: Some(if n == 0 { "few clean examples" } else { "few clean, many noisy" }.into()),
        ..TableRow::new(
            name,
            SHOTS.map(|k| Cell::mean(factor * accuracy(base, gain, k), 0.9 / k.sqrt())).to_vec(),
        )
    };
    let mut rows: Vec<TableRow> = METHODS.into_iter().enumerate().map(row).collect();
    rows.push(TableRow {
        reference: true,
        ..TableRow::new("oracle", SHOTS.map(|k| Cell::number(factor * accuracy(82.0, 5.0, k))).to_vec())
    });
    ResultTable {
        id: measure.into(),
        title: format!("{} accuracy on novel classes (%)", measure.replace("top", "Top")),
        caption:
            "Mean and 95 % interval over five episodes; the best of each column is bold, the oracle apart."
                .into(),
        command: Some("labelsieve-bench photos configs/sample.toml".into()),
        columns: SHOTS
            .map(|k| TableColumn::new(format!("k = {k}")).in_group("clean examples per class"))
            .to_vec(),
        rows,
    }
}

fn accuracy(base: f64, gain: f64, k: f64) -> f64 {
    base + gain * k.ln() / 20f64.ln()
}

fn figures(per_class: usize) -> Vec<Figure> {
    let lambdas = [0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0];
    let curve = |(n, k): (usize, f64)| {
        let best: f64 = [0.01f64, 0.05, 0.5, 1.0, 5.0][n];
        let points = lambdas.map(|x: f64| Point {
            x,
            y: accuracy(67.0, 11.0, k) - 1.1 * (x / best).ln().powi(2) / (1.0 + n as f64),
            half_width: Some(1.2 / k.sqrt()),
        });
        LineSeries { name: format!("k = {k}"), points: points.to_vec() }
    };
    let bars = METHODS.map(|(name, base, gain)| BarSeries {
        name: name.into(),
        values: SHOTS.map(|k| Some(accuracy(base, gain, k))).to_vec(),
        half_widths: SHOTS.map(|k| Some(1.4 / k.sqrt())).to_vec(),
    });
    let sizes = (0..120).map(|n| PoolSize {
        class: format!("class {n}"),
        candidates: if n < 4 { 0 } else { (1.09f64.powi(n) * per_class as f64 / 40.0) as usize },
        gain: Some(f64::from(n) / 6.0 - 3.0 + 2.0 * f64::from(n).sin()),
    });
    let figure = |id: &str, title: &str, caption: &str, data| Figure {
        id: id.into(),
        title: title.into(),
        caption: caption.into(),
        command: None,
        data,
    };
    vec![
        figure(
            "lambda",
            "Accuracy against λ",
            "Larger λ throws more candidates away. The more clean examples there are, the larger the best λ.",
            FigureKind::Lines {
                x: Axis::log("λ"),
                y: Axis::linear("top-5 accuracy (%)"),
                series: SHOTS.into_iter().enumerate().map(curve).collect(),
            },
        ),
        figure(
            "methods",
            "Methods by number of clean examples",
            "The fewer clean examples, the more the candidates help.",
            FigureKind::Bars {
                groups: SHOTS.map(|k| format!("k = {k}")).to_vec(),
                x_label: "clean examples per class".into(),
                y: Axis::linear("top-5 accuracy (%)"),
                series: bars.to_vec(),
            },
        ),
        figure(
            "sizes-and-gain",
            "Candidates, classes and gain by size",
            "Curve: candidates of each class on a logarithmic scale. Bars: classes by number of candidates, and what they \
             gained on average.",
            FigureKind::PoolSizes {
                classes: sizes.collect(),
                gain_label: "gain in accuracy (points)".into(),
            },
        ),
    ]
}

fn write_examples(run: &RunDirectory, per_class: usize) -> Result<()> {
    let columns = OptionalColumns { probability: true, ..OptionalColumns::default() };
    let mut relevance = RelevanceWriter::create_with(run.relevance_path(), columns, &[])?;
    let mut truth = TruthWriter::create(run.truth_path())?;
    let mut thumbnails = ThumbnailWriter::create(run.thumbnails_path())?;
    for (number, class) in CLASSES.into_iter().enumerate() {
        let mut random = Random(number as u64 + 1);
        for example in 0..per_class + 3 {
            let is_clean = example < 3;
            let is_relevant = is_clean || random.next() < 0.35 + 0.05 * number as f64;
            let id = format!("{number}-{example:05}");
            let score = if is_relevant { 0.45 + 0.55 * random.next() } else { 0.75 * random.next().powi(2) };
            relevance.write(&[RelevanceRow {
                id: id.clone(),
                class: class.into(),
                relevance: if is_clean { 1.0 } else { score as f32 },
                probability: Some(if is_clean { 1.0 } else { likely(score) as f32 }),
                is_clean,
                matched_name: (!is_clean).then(|| class.to_lowercase()),
                best_clean: (!is_clean).then(|| format!("{number}-{:05}", example % 3)),
                best_clean_similarity: (!is_clean).then_some(score as f32),
                reciprocal_neighbours: (!is_clean).then_some((50.0 * score) as u32),
            }])?;
            if !is_clean {
                truth.write(&[TruthRow { id: id.clone(), class: class.into(), relevant: is_relevant }])?;
            }
            let shape = if is_relevant { number } else { number + 1 + example % 3 };
            let title = format!("{class} number {example}");
            thumbnails.write(&[ThumbnailRow { id, image: draw(shape, &mut random), title: Some(title) }])?;
        }
    }
    relevance.finish()?;
    truth.finish()?;
    thumbnails.finish()
}

/// A little too sure of itself, as probabilities are.
fn likely(score: f64) -> f64 {
    1.0 / (1.0 + (-9.0 * (score - 0.5)).exp())
}

/// A shape on a ground, both of random shades, as a JPEG of 64 pixels a side.
fn draw(shape: usize, random: &mut Random) -> Vec<u8> {
    let shade =
        |random: &mut Random, low: f64| [0; 3].map(|_| (low + (255.0 - low) * random.next() * 0.6) as u8);
    let ground = shade(random, 110.0);
    let colour = shade(random, 10.0);
    let (x0, y0, size) =
        (24.0 + 16.0 * random.next(), 24.0 + 16.0 * random.next(), 12.0 + 10.0 * random.next());
    let picture = RgbImage::from_fn(64, 64, |x, y| {
        let dx = (f64::from(x) - x0) / size;
        let dy = (f64::from(y) - y0) / size;
        let inside = match shape % 6 {
            0 => dx.hypot(dy) < 1.0,
            1 => dx.abs().max(dy.abs()) < 0.9,
            2 => dx.abs() + dy.abs() < 1.2,
            3 => dy < 0.9 && dx.abs() < 0.5 * (dy + 1.1),
            4 => (0.5..1.0).contains(&dx.hypot(dy)),
            _ => dx.abs().min(dy.abs()) < 0.35 && dx.abs().max(dy.abs()) < 1.1,
        };
        let fade = 1.0 - 0.25 * f64::from(y) / 64.0;
        if inside { Rgb(colour) } else { Rgb(ground.map(|value| (f64::from(value) * fade) as u8)) }
    });
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, ImageFormat::Jpeg).expect("memory is always writable");
    bytes.into_inner()
}

/// Numbers from 0 to 1, the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}
