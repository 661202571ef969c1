//! The measured cells, kept in a journal so that a killed run resumes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use labelsieve_files::Journal;
use labelsieve_files::work::{Context, Monitor, Result, resume};
use labelsieve_jobs::device::OpenDevice;
use serde_json::json;

use super::Relevance;
use super::cell::Cell;
use super::methods::Contender;
use super::trial::SetContext;
use crate::output;
use crate::sets::KnownSet;

/// The measured cells of a set.
pub struct Cells {
    journal: Journal,
    done: HashMap<String, Cell>,
}

/// A cell still to be measured.
struct OpenCell<'a> {
    draw: usize,
    k: usize,
    contender: &'a Contender,
}

impl Cells {
    pub fn open(
        bench: &Relevance,
        set: &KnownSet,
        opened: &OpenDevice,
        monitor: &dyn Monitor,
    ) -> Result<Cells> {
        // Further sets, methods, shots and draws add cells without changing any.
        let key =
            resume::Key::new(&output::full_name("relevance"), bench, &[])?.with(&json!({ "set": set.name }));
        let files: Vec<&Path> = set.made_from.iter().map(PathBuf::as_path).collect();
        let key = key.on_device(opened.kind()).with_files(&files)?;
        let path = bench.output.join(format!("cells-{}.journal", set.name));
        let (journal, records) =
            resume::open(&path, &key, resume::RecordUnits { unit: "cells", total: None }, monitor)?;
        let read = |(key, payload): (String, Vec<u8>)| Some((key, serde_json::from_slice(&payload).ok()?));
        Ok(Cells { journal, done: records.into_iter().filter_map(read).collect() })
    }

    /// Measures the missing cells.
    pub fn measure(
        &mut self,
        bench: &Relevance,
        set: &KnownSet,
        contenders: &[Contender],
        shots: &[usize],
        opened: &OpenDevice,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let mut open: Vec<OpenCell> = Vec::new();
        for draw in 0..bench.draws {
            for &k in shots {
                let is_open = |contender: &&Contender| {
                    bench.again.contains(contender) || !self.done.contains_key(&bench.key(k, draw, contender))
                };
                open.extend(contenders.iter().filter(is_open).map(|contender| OpenCell {
                    draw,
                    k,
                    contender,
                }));
            }
        }
        if open.is_empty() {
            return Ok(());
        }
        let progress = monitor.progress(open.len() as u64, "cells");
        progress.set_message(&set.name);
        let context = SetContext::new(opened.engine(), set, bench.seed)?;
        for of_trial in open.chunk_by(|a, b| (a.draw, a.k) == (b.draw, b.k)) {
            let OpenCell { draw, k, .. } = of_trial[0];
            let trial = context.trial(draw, k)?;
            for OpenCell { contender, .. } in of_trial {
                let cell = Cell::measure(&context, &trial, &contender.source, &bench.classifiers)?;
                let key = bench.key(k, draw, contender);
                self.journal.append(&key, &serde_json::to_vec(&cell)?)?;
                self.done.insert(key, cell);
                progress.inc(1);
            }
        }
        progress.finish();
        Ok(())
    }

    pub fn get(&self, key: &str) -> Result<Cell> {
        self.done.get(key).cloned().context("a cell is missing from the run's journal")
    }
}
