//! The candidates of the novel classes: from a pool file, or by matching class names with titles.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use labelsieve_files::work::{Error, Monitor, Result};
use labelsieve_files::{DataError, TruthRow, TruthWriter, read_truth};
use labelsieve_matching::names::{ClassEntry, ClassList, MatchRule, Matcher, TextEncoding};

use super::config::CandidateSource;
use super::photo_set::PhotoSet;

/// The candidates of every novel class, by one rule.
pub struct CandidateSet {
    /// `pool`, or the rule.
    pub name: String,
    /// One per novel class.
    pub pools: Vec<Pool>,
}

/// The candidates of one class; the vectors have one entry per candidate.
#[derive(Default)]
pub struct Pool {
    pub photos: Vec<usize>,
    pub relevant: Vec<bool>,
    /// The name found in the title of each; empty for pool files.
    pub matched: Vec<String>,
}

impl CandidateSet {
    /// All sets of the configuration.
    pub fn all(
        source: &CandidateSource,
        photos: &PhotoSet,
        data: &Path,
        monitor: &dyn Monitor,
    ) -> Result<Vec<CandidateSet>> {
        match &source.pool {
            Some(file) => Ok(vec![from_file(&data.join(file), photos)?]),
            None => source.rules.iter().map(|&rule| from_titles(rule, photos, monitor)).collect(),
        }
    }

    /// The irrelevant share of all candidates, and its mean over the classes that have candidates.
    pub fn noise(&self) -> (f64, f64) {
        self.noise_of(0..self.pools.len())
    }

    /// The same for some of the novel classes.
    pub fn noise_of(&self, classes: impl IntoIterator<Item = usize>) -> (f64, f64) {
        let shares: Vec<(usize, usize)> = classes
            .into_iter()
            .map(|class| &self.pools[class].relevant)
            .map(|relevant| (relevant.iter().filter(|relevant| !**relevant).count(), relevant.len()))
            .collect();
        let share = |(wrong, n): &(usize, usize)| *wrong as f64 / *n as f64;
        let (wrong, n) = shares.iter().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        let filled: Vec<f64> = shares.iter().filter(|(_, n)| *n > 0).map(share).collect();
        (
            share(&(wrong, n.max(1))),
            filled.iter().fold(0.0, |sum, share| sum + share) / filled.len().max(1) as f64,
        )
    }

    /// Removes the photos for which `keeps` is false.
    pub fn leave_out(&mut self, keeps: &[bool]) {
        for pool in &mut self.pools {
            let kept: Vec<bool> = pool.photos.iter().map(|&photo| keeps[photo]).collect();
            retain(&mut pool.photos, &kept);
            retain(&mut pool.relevant, &kept);
            retain(&mut pool.matched, &kept);
        }
    }

    /// All candidates.
    pub fn len(&self) -> usize {
        self.pools.iter().map(|pool| pool.photos.len()).sum()
    }

    /// Writes the candidates of every class with their ground truth.
    pub fn write(&self, photos: &PhotoSet, path: &Path) -> Result<()> {
        let mut writer = TruthWriter::create(path)?;
        for (class, pool) in photos.novel.iter().zip(&self.pools) {
            let rows: Vec<TruthRow> = pool
                .photos
                .iter()
                .zip(&pool.relevant)
                .map(|(&photo, &relevant)| TruthRow {
                    id: photos.ids[photo].clone(),
                    class: class.class.clone(),
                    relevant,
                })
                .collect();
            writer.write(&rows)?;
        }
        Ok(writer.finish()?)
    }
}

/// Keeps the items at the positions where `kept` is true.
fn retain<T>(items: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    items.retain(|_| kept.next().copied().unwrap_or(false));
}

/// The candidates listed in a file, with their ground truth.
fn from_file(path: &Path, photos: &PhotoSet) -> Result<CandidateSet> {
    let table = read_truth(path)?;
    let by_id = photos.by_id();
    let position: HashMap<&str, usize> =
        photos.novel.iter().enumerate().map(|(c, class)| (class.class.as_str(), c)).collect();
    let test: HashSet<usize> =
        photos.novel.iter().chain(&photos.base).flat_map(|class| &class.test).copied().collect();
    let mut pools: Vec<Pool> = photos.novel.iter().map(|_| Pool::default()).collect();
    let mut seen = HashSet::new();
    for (row, id) in table.ids.iter().enumerate() {
        let bad = |place: &str, expected: &str, found: String| {
            let place = format!("column `{place}`, row {row}");
            Error::from(DataError::malformed(path, place, expected, found))
        };
        let class = table.classes.get(row);
        let &c = position.get(class).ok_or_else(|| bad("class", "a novel class", format!("`{class}`")))?;
        let &photo = by_id.get(id).ok_or_else(|| bad("id", "the id of a photo", format!("`{id}`")))?;
        if test.contains(&photo) {
            return Err(bad("id", "a training photo", format!("`{id}`, a test photo")));
        }
        if !seen.insert((c, photo)) {
            return Err(bad("id", "distinct photos per class", format!("`{id}` twice")));
        }
        pools[c].photos.push(photo);
        pools[c].relevant.push(table.relevant[row]);
    }
    Ok(CandidateSet { name: "pool".to_owned(), pools })
}

/// Training photos of any role whose titles contain a name of a novel class. Relevant are the photos of that class.
fn from_titles(rule: MatchRule, photos: &PhotoSet, monitor: &dyn Monitor) -> Result<CandidateSet> {
    let entry = |class: &super::photo_set::ClassPhotos| ClassEntry {
        id: class.class.clone(),
        display_name: class.display.clone(),
        names: class.names.clone(),
        exclude: Vec::new(),
    };
    let classes = ClassList::new(photos.novel.iter().map(entry).collect())?;
    let matcher = Matcher::new(&classes, rule)?;
    let mut searcher = matcher.searcher();
    let mut pools: Vec<Pool> = photos.novel.iter().map(|_| Pool::default()).collect();
    let own: Vec<HashSet<usize>> =
        photos.novel.iter().map(|class| class.train.iter().copied().collect()).collect();
    for &photo in &photos.train {
        searcher.push(0, &photos.titles[photo], TextEncoding::Plain);
        searcher.take_found(|hit| {
            let pool = &mut pools[hit.class];
            pool.photos.push(photo);
            pool.relevant.push(own[hit.class].contains(&photo));
            pool.matched.push(classes.classes()[hit.class].names[hit.name].clone());
        });
    }
    let empty: Vec<&str> = photos
        .novel
        .iter()
        .zip(&pools)
        .filter(|(_, pool)| pool.photos.is_empty())
        .map(|(class, _)| class.display.as_str())
        .collect();
    if !empty.is_empty() {
        monitor.note(&format!("rule {rule}: no candidates for {}", empty.join(", ")));
    }
    Ok(CandidateSet { name: rule.to_string(), pools })
}
