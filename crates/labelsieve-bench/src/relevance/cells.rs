//! What has been measured, cell by cell, and kept over a kill.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use labelsieve_files::Journal;
use labelsieve_files::work::{Context, Monitor, Result, resume};
use labelsieve_jobs::device::OpenDevice;
use serde_json::json;

use super::Relevance;
use super::cell::Cell;
use super::methods::Contender;
use super::trial::Ground;
use crate::sets::KnownSet;

/// What has been measured on a set.
pub struct Cells {
    journal: Journal,
    done: HashMap<String, Cell>,
}

impl Cells {
    pub fn open(
        bench: &Relevance,
        set: &KnownSet,
        opened: &OpenDevice,
        monitor: &dyn Monitor,
    ) -> Result<Cells> {
        // Further sets, methods, shots and draws add cells; they change none.
        let key = resume::Key::new("bench relevance", bench, &[])?.with(&json!({ "set": set.name }));
        let files: Vec<&Path> = set.made_from.iter().map(PathBuf::as_path).collect();
        let key = key.on_device(opened.kind()).with_files(&files)?;
        let path = bench.output.join(format!("cells-{}.journal", set.name));
        let (journal, records) =
            resume::open(&path, &key, resume::RecordUnits { unit: "cells", total: None }, monitor)?;
        let read = |(key, payload): (String, Vec<u8>)| Some((key, serde_json::from_slice(&payload).ok()?));
        Ok(Cells { journal, done: records.into_iter().filter_map(read).collect() })
    }

    /// Measures what is still to be measured.
    pub fn measure(
        &mut self,
        bench: &Relevance,
        set: &KnownSet,
        contenders: &[Contender],
        shots: &[usize],
        opened: &OpenDevice,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let mut open: Vec<(usize, usize, &Contender)> = Vec::new();
        for draw in 0..bench.draws {
            for &k in shots {
                let is_open = |contender: &&Contender| {
                    bench.again.contains(contender) || !self.done.contains_key(&bench.key(k, draw, contender))
                };
                open.extend(contenders.iter().filter(is_open).map(|contender| (draw, k, contender)));
            }
        }
        if open.is_empty() {
            return Ok(());
        }
        let progress = monitor.progress(open.len() as u64, "cells");
        progress.set_message(&set.name);
        let ground = Ground::new(opened.engine(), set, bench.seed)?;
        for of_trial in open.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (draw, k, _) = of_trial[0];
            let trial = ground.trial(draw, k)?;
            for (_, _, contender) in of_trial {
                let cell = Cell::measure(&ground, &trial, &contender.source)?;
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
        self.done.get(key).cloned().context("a cell missing from the run's journal")
    }
}
