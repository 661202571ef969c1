//! Parts of a run: the candidates of one shard of the texts.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use labelsieve_files::work::digest::Digest;
use labelsieve_files::work::parts::{MatchDetail, PartDone, find_complete};
use labelsieve_files::work::{Error, Result, option, words};
use labelsieve_files::{DataError, Part, PartOf, Shard, is_stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::search::SearchResult;
use super::{LeakCheck, Match, MatchResult, write_json};
use crate::names::{CandidateStatistics, ClassList};
use crate::text::TextSource;

/// The description of a part of the candidates.
#[derive(Serialize, Deserialize)]
struct Detail {
    #[serde(flatten)]
    read: MatchDetail,
    /// The number of candidates of each class, in file order.
    n_candidates: Vec<u64>,
}

/// The descriptions of the outputs of a shard.
pub(super) struct Parts {
    pub(super) candidates: Part,
    downloads: Option<Part>,
}

impl Parts {
    /// Adds the descriptions to the files, after the last row.
    pub(super) fn describe(&self, found: &mut SearchResult) -> Result<()> {
        let n_candidates = found.counts.clone();
        let detail = serde_json::to_value(Detail { read: found.detail(), n_candidates })?;
        let (key, value) = Part { detail, ..self.candidates.clone() }.metadata();
        found.writer.add_metadata(key, value);
        if let (Some(part), Some(list)) = (&self.downloads, &mut found.list) {
            let (key, value) = Part { detail: list.detail(), ..part.clone() }.metadata();
            list.add_metadata(key, value);
        }
        Ok(())
    }
}

impl Match {
    /// Refuses streams, which cannot be cut: each shard would have to read all of it.
    pub(super) fn refuse_streams<P: AsRef<Path>>(&self, paths: impl Iterator<Item = P>) -> Result<()> {
        let mut paths = paths.filter(|path| self.shard.is_some() && is_stream(path));
        match paths.next() {
            None => Ok(()),
            Some(path) => Err(Error::input(
                words![
                    option("shard"),
                    format!(" needs files, but `{}` is a stream", path.as_ref().display())
                ],
                "write it to a file first, so that each shard can read its part",
            )),
        }
    }

    /// The descriptions of the outputs; details are added after the last row.
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

    /// The result of an earlier run, if it completed all outputs.
    pub(super) fn complete_parts(
        &self,
        parts: Option<&Parts>,
        classes: &ClassList,
    ) -> Result<Option<MatchResult>> {
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
        Ok(Some(MatchResult { photos, ..MatchResult::new(statistics, read, part) }))
    }

    /// A digest of everything that determines the candidates of all shards, independent of folders and times.
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

/// Adds the size of a file and 16 samples of its contents, from the first to the last byte: terabytes of texts should not be
/// read twice. A small file is read as a whole.
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
