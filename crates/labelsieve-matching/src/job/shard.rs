//! The candidates of one shard of the texts: a part of a run that many machines share.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use labelsieve_files::work::digest::Digest;
use labelsieve_files::work::parts::{MatchDetail, PartDone, find_complete};
use labelsieve_files::work::{Error, Result};
use labelsieve_files::{DataError, Part, PartOf, Shard, is_stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::search::Found;
use super::{LeakCheck, Match, Matched, write_json};
use crate::names::{CandidateStatistics, ClassList};
use crate::text::TextSource;

/// What a part says beyond its rows.
#[derive(Serialize, Deserialize)]
struct Detail {
    #[serde(flatten)]
    read: MatchDetail,
    /// For each class in file order.
    n_candidates: Vec<u64>,
}

/// What the outputs of a shard are parts of.
pub(super) struct Parts {
    pub(super) candidates: Part,
    downloads: Option<Part>,
}

impl Parts {
    /// Writes into the files what they are parts of, now that all rows are known.
    pub(super) fn describe(&self, found: &mut Found) -> Result<()> {
        let n_candidates = found.counts.clone();
        let detail = serde_json::to_value(Detail { read: found.detail(), n_candidates })?;
        found.writer.add_metadata(Part { detail, ..self.candidates.clone() }.metadata());
        if let (Some(part), Some(list)) = (&self.downloads, &mut found.list) {
            list.add_metadata(Part { detail: list.detail(), ..part.clone() }.metadata());
        }
        Ok(())
    }
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

    /// What the outputs are parts of; their details come with their rows.
    pub(super) fn parts(&self, shard: Shard, classes: &ClassList, source: &TextSource) -> Result<Parts> {
        self.refuse_streams(source.paths().chain(self.leaks.iter().flat_map(LeakCheck::paths)))?;
        let run = self.run_digest(classes, source)?;
        let part =
            |command, run| Part { command, run, index: shard.index, of: shard.of, detail: Value::Null };
        let downloads = self.download_list.as_ref().map(|list| {
            let column = list.url_column.as_deref().unwrap_or_default();
            let run = Digest::default().text("download-list").text(&run).text(column).finish();
            part(PartOf::DownloadList, run)
        });
        Ok(Parts { candidates: part(PartOf::Match, run), downloads })
    }

    /// What is known of the parts if they are there already, all of them.
    pub(super) fn complete_parts(
        &self,
        parts: Option<&Parts>,
        classes: &ClassList,
    ) -> Result<Option<Matched>> {
        let Some(parts) = parts else { return Ok(None) };
        let Some(found) = find_complete(&parts.candidates, &self.output)? else { return Ok(None) };
        let photos = match (&parts.downloads, &self.download_list) {
            (Some(part), Some(list)) => match find_complete(part, &list.path)? {
                Some(found) => Some(serde_json::from_value(found.detail)?),
                None => return Ok(None),
            },
            _ => None,
        };
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
        let part = Some(PartDone::new(&found, true));
        Ok(Some(Matched { photos, ..Matched::new(statistics, read, part) }))
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
        texts(&mut digest, &self.keep);
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
