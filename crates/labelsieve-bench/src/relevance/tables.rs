//! The tables of a set.

use labelsieve::evaluation::Interval;
use labelsieve_files::work::table::{layout, percent};

use super::summary::{Difference, Measurement, Row};

/// The results: a line per method, with top-1, top-5, AUC and calibration error for each number of clean examples.
pub fn results(rows: &[Row]) -> Vec<String> {
    let mut shots: Vec<usize> = rows.iter().map(|row| row.shots).collect();
    shots.dedup();
    let mut header = vec!["method".to_owned()];
    for k in &shots {
        header.extend([
            format!("k = {k}: top-1 %"),
            "top-5 %".to_owned(),
            "AUC".to_owned(),
            "ECE".to_owned(),
        ]);
    }
    let n_methods = rows.len() / shots.len().max(1);
    let lines: Vec<Vec<String>> = (0..n_methods)
        .map(|method| {
            let of_method = || rows.iter().skip(method).step_by(n_methods);
            let name = of_method().next().map(|row| row.method.clone());
            name.into_iter().chain(of_method().flat_map(cells)).collect()
        })
        .collect();
    layout(&header.iter().map(String::as_str).collect::<Vec<_>>(), &lines)
}

fn cells(row: &Row) -> [String; 4] {
    [
        accuracy(&row.top_1),
        percent(row.top_5.interval.mean),
        optional(row.auc.as_ref().map(|auc| format!("{:.3}", auc.interval.mean))),
        optional(row.calibration_error.map(|error| format!("{:.3}", error.mean))),
    ]
}

/// The comparison of methods: a line per number of clean examples and method.
pub fn comparison(rows: &[Row]) -> Vec<String> {
    let header =
        ["method", "k", "of the way %", "top-1 to gcn", "top-1 to the best single method", "time / gcn"];
    let line = |row: &Row| {
        vec![
            row.method.clone(),
            row.shots.to_string(),
            optional(row.of_the_way.map(|share| format!("{:.0}", 100.0 * share))),
            optional(row.top_1.to_gcn.map(difference)),
            optional(
                row.top_1
                    .to_best
                    .as_ref()
                    .map(|to: &Difference| format!("{} ({})", difference(to.interval), to.method)),
            ),
            optional(row.times_gcn.map(|times| format!("{times:.2}"))),
        ]
    };
    layout(&header, &rows.iter().map(line).collect::<Vec<_>>())
}

/// The classifiers: a line per method, number of clean examples and classifier.
pub fn classifiers(rows: &[Row]) -> Vec<String> {
    let header = ["weights by", "k", "classifier", "top-1 %", "to cosine", "ECE"];
    let lines = rows.iter().flat_map(|row| {
        row.classifiers.iter().map(|found| {
            let half = found.top_1.half_width.map_or(String::new(), |half| format!(" ± {}", percent(half)));
            vec![
                row.method.clone(),
                row.shots.to_string(),
                found.classifier.clone(),
                format!("{}{half}", percent(found.top_1.mean)),
                optional(found.to_cosine.map(difference)),
                optional(found.calibration_error.map(|error| format!("{:.3}", error.mean))),
            ]
        })
    });
    layout(&header, &lines.collect::<Vec<_>>())
}

fn optional(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// An accuracy with its interval, marked if it is significantly below that of the best simple method.
fn accuracy(measurement: &Measurement) -> String {
    let half = measurement.interval.half_width.map_or(String::new(), |half| format!(" ± {}", percent(half)));
    let mark = if measurement.below_simple { " ↓" } else { "" };
    format!("{}{half}{mark}", percent(measurement.interval.mean))
}

fn difference(interval: Interval) -> String {
    let half = interval.half_width.map_or(String::new(), |half| format!(" ± {:.1}", 100.0 * half));
    format!("{:+.1}{half}", 100.0 * interval.mean)
}
