//! `results.json`: every number of a run, for other programs.

use std::io::Write;
use std::path::Path;

use labelsieve_files::work::Result;
use labelsieve_files::{AtomicFile, DataError};
use serde_json::{Value, json};

use super::candidates::CandidateSet;
use super::measure::Outcome;
use crate::protocol::Source;

/// Everything measured for one backbone and one set of candidates.
pub fn json(outcome: &Outcome, backbone: &str, candidates: &CandidateSet, shots: &[usize]) -> Value {
    let (noise, noise_by_class) = candidates.noise();
    let rows: Vec<Value> = outcome
        .rows
        .iter()
        .map(|row| json!({ "name": row.name, "is_bound": row.is_bound, "by_shot": row.cells }))
        .collect();
    let methods: serde_json::Map<String, Value> = outcome
        .sources
        .iter()
        .map(|row| (row.name.to_owned(), row.sources.iter().map(Source::json).collect()))
        .collect();
    json!({
        "backbone": backbone,
        "candidates": candidates.name,
        "noise": noise,
        "noise_by_class": noise_by_class,
        "shots": shots,
        "rows": rows,
        "methods": methods,
        "chosen": outcome.tuned.as_ref().map(|tuned| json!({
            "gcn_lambda": tuned.gcn_lambda,
            "mlp_lambda": tuned.mlp_lambda,
            "beta": tuned.beta,
            "cosine": outcome.cosine,
            "fine_tuning": outcome.schedules,
        })),
        "systems": outcome.systems,
        "separation": outcome.separation,
    })
}

/// Writes the results.
pub fn write(path: &Path, results: &[Value]) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    serde_json::to_writer_pretty(&mut file, results)
        .map_err(std::io::Error::from)
        .and_then(|()| file.write_all(b"\n"))
        .map_err(DataError::io("write", path))?;
    Ok(file.commit()?)
}
