//! The data of the paper's figures, and the relevance shown in galleries.

use std::collections::{HashMap, HashSet};

use labelsieve::graph::closest_clean;
use labelsieve_files::work::Result;
use labelsieve_files::{RelevanceRow, RelevanceWriter, TruthRow, TruthWriter};
use labelsieve_networks::image_files::{
    EncodedImage, ImageColumns, ImageSource, ThumbnailRow, ThumbnailWriter,
};
use labelsieve_report::{
    Axis, ClassRelevance, Figure, FigureKind, LineSeries, Point, PoolSize, RunDirectory,
};

use super::config::PhotoColumns;
use super::half::Half;
use super::measure::Outcome;
use super::tables::Heading;
use crate::protocol::{Task, TuningResult, class_gains};

/// Every figure of one backbone and one set of candidates.
pub fn figures(outcome: &Outcome, report: &Half, shots: &[usize], heading: &Heading) -> Vec<Figure> {
    let figure = |id: &str, title: &str, caption: &str, data: FigureKind| Figure {
        id: format!("{id}-{}", heading.id),
        title: format!("{}: {title}", heading.title),
        caption: format!("{caption} {}", heading.caption).trim().to_owned(),
        command: Some(heading.command.clone()),
        data,
    };
    let k = shots[0];
    let lambda = outcome.tuned.as_ref().map(|tuned| {
        figure(
            "lambda",
            "accuracy against λ",
            "GCN with prototypes on the tuning classes; one curve per number of clean examples.",
            lambda_curves(tuned, shots),
        )
    });
    let others = [
        figure(
            "pools",
            "candidates and their gain",
            &format!("Gain in top-1 of GCN with prototypes over clean examples alone at k = {k}."),
            pool_sizes(outcome, report),
        ),
        figure(
            "cumulative",
            "cumulative relevance",
            &format!("Share of a class's candidates up to a relevance, GCN at k = {k}, first episode."),
            FigureKind::CumulativeRelevance { classes: class_relevance(outcome, report, k) },
        ),
        figure(
            "separation",
            "relevance of relevant and irrelevant candidates",
            &format!("GCN at k = {k}, first episode, all reported classes."),
            separation(outcome, report, k),
        ),
    ];
    lambda.into_iter().chain(others).collect()
}

fn lambda_curves(tuned: &TuningResult, shots: &[usize]) -> FigureKind {
    let series = shots.iter().zip(&tuned.gcn_lambda).map(|(k, trials)| {
        let mut points: Vec<Point> = trials
            .iter()
            .map(|trial| Point { x: f64::from(trial.setting), y: 100.0 * trial.score, half_width: None })
            .collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        LineSeries { name: format!("k = {k}"), points }
    });
    FigureKind::Lines { x: Axis::log("λ"), y: Axis::linear("accuracy (%)"), series: series.collect() }
}

fn pool_sizes(outcome: &Outcome, report: &Half) -> FigureKind {
    let gains = match (outcome.row("gcn"), outcome.row("clean only")) {
        (Some(with), Some(without)) => class_gains(&with.cells[0], &without.cells[0]),
        _ => Vec::new(),
    };
    let class = |(class, candidates): (usize, usize)| PoolSize {
        class: report.name(class).to_owned(),
        candidates,
        gain: gains.get(class).map(|gain| 100.0 * gain),
    };
    let classes = report.pool_sizes().into_iter().enumerate().map(class).collect();
    FigureKind::PoolSizes { classes, gain_label: "gain in top-1 accuracy (points)".to_owned() }
}

/// Candidates of a class with the relevance that gcn gave them in the first episode, clean examples left out.
fn scored<'a>(
    outcome: &'a Outcome,
    report: &'a Half,
    k: usize,
    class: usize,
) -> impl Iterator<Item = (usize, f32)> + use<'a> {
    let removed = report.removed(class, 0, k);
    let relevance = outcome.relevance[class].iter().copied().enumerate();
    relevance.filter(move |(place, _)| removed.binary_search(place).is_err())
}

fn class_relevance(outcome: &Outcome, report: &Half, k: usize) -> Vec<ClassRelevance> {
    let of_class = |class: usize| {
        let kept: Vec<(usize, f32)> = scored(outcome, report, k, class).collect();
        ClassRelevance {
            class: report.name(class).to_owned(),
            relevance: kept.iter().map(|(_, relevance)| *relevance).collect(),
            relevant: kept.iter().map(|(place, _)| report.candidates(class).relevant[*place]).collect(),
        }
    };
    (0..report.classes.len()).map(of_class).collect()
}

fn separation(outcome: &Outcome, report: &Half, k: usize) -> FigureKind {
    let mut relevant = Vec::new();
    let mut irrelevant = Vec::new();
    for class in class_relevance(outcome, report, k) {
        for (relevance, is_relevant) in class.relevance.into_iter().zip(class.relevant) {
            if is_relevant { relevant.push(relevance) } else { irrelevant.push(relevance) }
        }
    }
    FigureKind::Separation { relevant, irrelevant }
}

/// Relevance, truth and pictures of all candidates of the reported classes, for the galleries of the report.
pub fn write_gallery(
    directory: &RunDirectory,
    outcome: &Outcome,
    report: &Half,
    k: usize,
    columns: &PhotoColumns,
) -> Result<()> {
    let photos = report.context.photos;
    let mut relevance = RelevanceWriter::create(directory.relevance_path(), &[])?;
    let mut truth = TruthWriter::create(directory.truth_path())?;
    let mut wanted = HashSet::new();
    for class in 0..report.classes.len() {
        let pool = report.candidates(class);
        let name = report.name(class);
        let clean = report.clean_photos(class, 0, k);
        let features = &report.context.backbone.features;
        let closest = closest_clean(&features.select(clean), &features.select(&pool.photos));
        let row = |photo: usize, relevance: f32, is_clean: bool| RelevanceRow {
            id: photos.ids[photo].clone(),
            class: name.to_owned(),
            relevance,
            probability: None,
            is_clean,
            matched_name: None,
            best_clean: None,
            best_clean_similarity: None,
            reciprocal_neighbours: None,
        };
        let mut rows: Vec<RelevanceRow> = clean.iter().map(|&photo| row(photo, 1.0, true)).collect();
        let mut truths = Vec::new();
        for (place, score) in scored(outcome, report, k, class) {
            let (best, similarity) = closest[place];
            rows.push(RelevanceRow {
                matched_name: pool.matched.get(place).cloned(),
                best_clean: Some(photos.ids[clean[best]].clone()),
                best_clean_similarity: Some(similarity),
                ..row(pool.photos[place], score, false)
            });
            let id = photos.ids[pool.photos[place]].clone();
            truths.push(TruthRow { id, class: name.to_owned(), relevant: pool.relevant[place] });
        }
        wanted.extend(clean.iter().chain(&pool.photos).copied());
        relevance.write(&rows)?;
        truth.write(&truths)?;
    }
    relevance.finish()?;
    truth.finish()?;
    write_thumbnails(directory, report, &wanted, columns)
}

fn write_thumbnails(
    directory: &RunDirectory,
    report: &Half,
    wanted: &HashSet<usize>,
    columns: &PhotoColumns,
) -> Result<()> {
    let photos = report.context.photos;
    let wanted: HashMap<&str, usize> =
        wanted.iter().map(|&photo| (photos.ids[photo].as_str(), photo)).collect();
    let image_columns = ImageColumns {
        id: Some(columns.id.clone()),
        image: Some(columns.image.clone()),
        ..ImageColumns::default()
    };
    const BLOCK_BYTES: usize = 32 << 20;
    let mut writer = ThumbnailWriter::create(directory.thumbnails_path())?;
    let mut rows = Vec::new();
    let mut n_bytes = 0;
    for image in ImageSource::open(&photos.files, &image_columns)?.images()? {
        // An unreadable image is merely missing from the gallery.
        let Ok(EncodedImage { id, bytes, .. }) = image else { continue };
        let Some(&photo) = wanted.get(id.as_str()) else { continue };
        let title = photos.titles.get(photo).unwrap_or(&photos.class[photo]).clone();
        n_bytes += bytes.len();
        rows.push(ThumbnailRow { id, image: bytes, title: Some(title) });
        if n_bytes >= BLOCK_BYTES {
            writer.write(&rows)?;
            rows.clear();
            n_bytes = 0;
        }
    }
    writer.write(&rows)?;
    Ok(writer.finish()?)
}
