//! The candidates of one shard of the texts: a part of a run that many machines share.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use labelsieve::matching::{CandidateStatistics, ClassList};
use labelsieve_data::text::TextSource;
use labelsieve_data::{DataError, Part, PartOf, Shard, is_stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{LeakCheck, Match, Matched, write_json};
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::parts::{MatchDetail, PartDone, find_complete};

/// What a part says beyond its rows.
#[derive(Serialize, Deserialize)]
struct Detail {
    #[serde(flatten)]
    read: MatchDetail,
    /// For each class in file order.
    n_candidates: Vec<u64>,
}

/// The part as it is when all rows are known.
pub(super) fn finished(part: &Part, read: MatchDetail, n_candidates: &[u64]) -> Result<Part> {
    let detail = serde_json::to_value(Detail { read, n_candidates: n_candidates.to_vec() })?;
    Ok(Part { detail, ..part.clone() })
}

impl Match {
    /// A stream cannot be cut: each shard would have to read all of it.
    pub(super) fn refuse_streams<P: AsRef<Path>>(&self, paths: impl Iterator<Item = P>) -> Result<()> {
        let mut paths = paths.filter(|path| self.shard.is_some() && is_stream(path));
        match paths.next() {
            None => Ok(()),
            Some(path) => Err(Error::input(
                format!("--shard needs files, but `{}` is a stream", path.as_ref().display()),
                "write it to a file first, which every shard then reads a part of",
            )),
        }
    }

    /// What the output is a part of; its detail comes with its rows.
    pub(super) fn part(&self, shard: Shard, classes: &ClassList, source: &TextSource) -> Result<Part> {
        self.refuse_streams(source.paths().chain(self.leaks.iter().flat_map(LeakCheck::paths)))?;
        let run = self.run_digest(classes, source)?;
        Ok(Part { command: PartOf::Match, run, index: shard.index, of: shard.of, detail: Value::Null })
    }

    /// What is known of the part if it is there already.
    pub(super) fn complete_part(&self, part: Option<&Part>, classes: &ClassList) -> Result<Option<Matched>> {
        let Some(part) = part else { return Ok(None) };
        let Some(found) = find_complete(part, &self.output)? else { return Ok(None) };
        let Detail { read, n_candidates } = serde_json::from_value(found.detail.clone())?;
        if n_candidates.len() != classes.classes().len() {
            let expected = format!("{} classes", classes.classes().len());
            let found = n_candidates.len().to_string();
            return Err(DataError::malformed(&self.output, "metadata", expected, found).into());
        }
        let statistics = CandidateStatistics::new(classes, &n_candidates);
        if let Some(path) = &self.stats {
            write_json(path, &statistics)?;
        }
        Ok(Some(Matched::new(statistics, read, Some(PartDone::new(&found, true)))))
    }

    /// A digest of everything that decides the candidates of all shards, but for where files lie and when they were written.
    fn run_digest(&self, classes: &ClassList, source: &TextSource) -> Result<String> {
        let mut digest = Digest::default().text("match").text(env!("CARGO_PKG_VERSION"));
        self.provenance().iter().for_each(|(_, value)| digest.add_text(value));
        let texts = |digest: &mut Digest, texts: &[String]| {
            digest.add_number(texts.len() as u64);
            texts.iter().for_each(|text| digest.add_text(text));
        };
        for class in classes.classes() {
            digest.add_text(&class.id);
            texts(&mut digest, &class.names);
            texts(&mut digest, &class.exclude);
        }
        digest.add_text(&format!("{:?}", self.columns));
        if let Some(leaks) = &self.leaks {
            digest.add_text(&format!("{:?} {:?}", leaks.near_duplicate, leaks.fate));
            leaks.paths().try_for_each(|path| add_path(&mut digest, path))?;
        }
        source.paths().try_for_each(|path| add_path(&mut digest, path))?;
        Ok(digest.finish())
    }
}

/// Adds the name and the contents of a file, or of all files in a folder.
fn add_path(digest: &mut Digest, path: &Path) -> Result<()> {
    digest.add_text(&path.file_name().unwrap_or_default().to_string_lossy());
    if !path.is_dir() {
        return add_contents(digest, path).map_err(|cause| DataError::io("read", path)(cause).into());
    }
    let entries = std::fs::read_dir(path).and_then(|entries| entries.collect::<std::io::Result<Vec<_>>>());
    let mut entries = entries.map_err(DataError::io("read", path))?;
    entries.sort_by_key(|entry| entry.file_name());
    digest.add_number(entries.len() as u64);
    entries.iter().try_for_each(|entry| add_path(digest, &entry.path()))
}

/// Adds the size of a file and 16 samples of its contents, from the first to the last byte: texts of a terabyte are not read
/// twice. A smaller file is read as a whole.
fn add_contents(digest: &mut Digest, path: &Path) -> std::io::Result<()> {
    const N_SAMPLES: u64 = 16;
    const SAMPLE_BYTES: u64 = 1 << 16;
    let mut file = File::open(path)?;
    let n_bytes = file.metadata()?.len();
    let mut contents = Vec::new();
    if n_bytes <= N_SAMPLES * SAMPLE_BYTES {
        file.read_to_end(&mut contents)?;
    } else {
        for sample in 0..N_SAMPLES {
            let last = n_bytes - SAMPLE_BYTES;
            let start = (u128::from(last) * u128::from(sample) / u128::from(N_SAMPLES - 1)) as u64;
            file.seek(SeekFrom::Start(start))?;
            (&mut file).take(SAMPLE_BYTES).read_to_end(&mut contents)?;
        }
    }
    digest.add_number(n_bytes);
    digest.add_text(&format!("{:x?}", Sha256::digest(&contents)));
    Ok(())
}
