//! The images of novel classes, found by the ids of a relevance file.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use labelsieve::classifier::{WeightedClass, prototypes};
use labelsieve::{Decision, Features};
use labelsieve_files::inputs::copies::Copies;
use labelsieve_files::inputs::decisions::{DecisionCounts, Decisions, in_force};
use labelsieve_files::work::{Context, Error, Monitor, Result, command, option, words};
use labelsieve_files::{RelevanceTable, counted, is_text_id, read_relevance};

use crate::image_files::ImageSource;
use crate::images::{Dataset, DatasetOptions, Encoded, OnDamage, Storage};
use crate::opening::image_input::{check_damage, encoded, is_bad_file, warn_of_skipped};
use crate::opening::network::OpenedNetwork;
use crate::training::{Examples, MIN_RELEVANCE};
use crate::{Learner, dataset_features};

/// Images of the novel classes, and of the base classes if they are trained too.
pub struct TrainingSources {
    /// Those of the novel classes.
    pub novel: ImageSource,
    /// Those of the base classes.
    pub base: Option<ImageSource>,
    /// How images that cannot be read are handled.
    pub on_damage: OnDamage,
}

/// The novel classes in memory.
pub struct NovelClasses {
    /// Their names, in order.
    pub names: Vec<String>,
    /// Decisions about the candidates, if the files contain any.
    pub decisions: Option<DecisionCounts>,
    /// Images of the examples and, with labels of their own, of base classes.
    images: Arc<Dataset>,
    examples: Vec<Example>,
}

/// One example of the relevance file that has an image.
struct Example {
    row: usize,
    class: u32,
    relevance: f32,
    /// Given as clean, or accepted.
    is_clean: bool,
}

/// The features of one class.
#[derive(Clone, Default)]
struct ClassRows {
    clean: Vec<f32>,
    noisy: Vec<f32>,
    /// The relevance of each noisy row.
    relevance: Vec<f32>,
}

/// The label of images whose class is in the relevance file.
const NOVEL: &str = "";

impl NovelClasses {
    /// Decodes the images that the relevance file names, and those of the base classes.
    pub fn load(
        relevance: &Path,
        decisions: Option<&Decisions>,
        sources: &TrainingSources,
        opened: &OpenedNetwork,
        monitor: &dyn Monitor,
    ) -> Result<NovelClasses> {
        let table = read_relevance(relevance)?;
        let clean = (0..table.ids.len()).filter(|&i| table.is_clean[i]);
        let mut names: Vec<String> = clean.map(|i| table.classes.get(i).to_owned()).collect();
        names.sort();
        names.dedup();
        if names.is_empty() {
            return Err(Error::input(
                format!("`{}` contains no clean examples", relevance.display()),
                words![
                    "pass a relevance file from ",
                    command("score"),
                    ", which includes the clean examples"
                ],
            ));
        }
        let decided = in_force(decisions, &table, monitor)?;
        let decisions = decided.as_ref().map_or(&[][..], |(decisions, _)| decisions);
        let images = decode(&table, sources, opened, monitor)?;
        let (mut examples, by_id) =
            examples(&table, decisions, &names, &rows_by_id(&images, opened)?, monitor)?;
        let by_content = leave_out_clean_pictures(&mut examples, &|row| images.image(row).pixels());
        Copies { by_id, by_content }.say("images", monitor);
        let decisions = decided.map(|(_, counts)| counts);
        Ok(NovelClasses { names, decisions, images: Arc::new(images), examples })
    }

    /// The prototypes (eq. 5) of the classes in the network's own features, K×d: where W starts.
    pub fn prototypes(
        &self,
        learner: &mut dyn Learner,
        opened: &OpenedNetwork,
        monitor: &dyn Monitor,
    ) -> Result<Vec<f32>> {
        let dim = opened.network.dim();
        let progress = monitor.progress(self.examples.len() as u64, "images");
        progress.set_message("prototypes");
        let rows: Vec<usize> = self.examples.iter().map(|example| example.row).collect();
        let look = (opened.metadata.image_size, opened.view);
        let features = dataset_features(learner, &self.images, &rows, look, |n| progress.inc(n as u64))?;
        progress.finish();

        let mut sets = vec![ClassRows::default(); self.names.len()];
        for (example, feature) in self.examples.iter().zip(features.chunks_exact(dim)) {
            let rows = &mut sets[example.class as usize];
            if example.is_clean {
                rows.clean.extend_from_slice(feature);
            } else {
                rows.noisy.extend_from_slice(feature);
                rows.relevance.push(example.relevance);
            }
        }
        let sets = sets
            .into_iter()
            .map(|rows| {
                let rows = if rows.clean.is_empty() { most_relevant_first(&rows) } else { rows };
                Ok((Features::new(rows.clean, dim)?, Features::new(rows.noisy, dim)?, rows.relevance))
            })
            .collect::<Result<Vec<_>>>()?;
        let weighted = sets
            .iter()
            .map(|(clean, noisy, relevance)| WeightedClass::new(clean, noisy, relevance))
            .collect::<labelsieve::Result<Vec<_>>>()?;
        let weights = prototypes(&weighted, dim, opened.scale).context("cannot make prototypes")?;
        Ok(weights.weights().block(0..self.names.len()).to_vec())
    }

    /// All examples: those of the first `n_base` base classes with weight 1, then the novel ones.
    pub fn with_base(self, n_base: usize) -> Examples {
        let labels = self.images.labels().iter().copied().enumerate();
        let base: Vec<_> =
            labels.filter(|(_, c)| (*c as usize) < n_base).map(|(row, c)| (row, c, 1.0)).collect();
        let novel = self.examples.iter().map(|e| (e.row, e.class + n_base as u32, e.relevance));
        let n_classes = n_base + self.names.len();
        Examples::weighted(self.images, n_classes, base.into_iter().chain(novel))
    }
}

/// For a class with a text and no clean image: its most relevant candidate becomes the clean example, with weight 1, and the
/// others are weighted in proportion. The direction of the mean stays the same.
fn most_relevant_first(rows: &ClassRows) -> ClassRows {
    let ClassRows { noisy, relevance, .. } = rows;
    let Some(most) = (0..relevance.len()).max_by(|&a, &b| relevance[a].total_cmp(&relevance[b])) else {
        return ClassRows::default();
    };
    let dim = noisy.len() / relevance.len();
    let (before, from) = noisy.split_at(most * dim);
    let (clean, after) = from.split_at(dim);
    let others = relevance.iter().enumerate().filter(|(i, _)| *i != most);
    ClassRows {
        clean: clean.to_vec(),
        noisy: [before, after].concat(),
        relevance: others.map(|(_, r)| r / relevance[most]).collect(),
    }
}

fn decode(
    table: &RelevanceTable,
    sources: &TrainingSources,
    opened: &OpenedNetwork,
    monitor: &dyn Monitor,
) -> Result<Dataset> {
    let wanted: HashSet<&str> = table.ids.iter().collect();
    let lengths = [&sources.novel].into_iter().chain(&sources.base).filter_map(ImageSource::len_hint);
    let progress = monitor.progress(lengths.sum::<usize>() as u64, "images");
    progress.set_message("decoding");
    let novel = sources
        .novel
        .images()?
        .map(encoded)
        .inspect(|_| progress.inc(1))
        .filter(|image| wanted.contains(image.id.as_str()) || is_bad_file(image))
        // Their classes come from the relevance file; a dataset needs some label.
        .map(|image| Encoded { label: Some(NOVEL.to_owned()), ..image });
    let base = sources.base.as_ref().map(ImageSource::images).transpose()?;
    let base = base.into_iter().flatten().map(encoded).inspect(|_| progress.inc(1));
    let input = opened.network.input();
    let options = DatasetOptions {
        storage: Storage::ShorterSide(input.height.max(input.width) * 8 / 7),
        size: (input.height, input.width),
        on_damage: sources.on_damage,
        classes: Some(opened.metadata.classes.iter().cloned().chain([NOVEL.to_owned()]).collect()),
        ..DatasetOptions::default()
    };
    let images = Dataset::decode(novel.chain(base), &options);
    progress.finish();
    check_damage(sources.on_damage, images.skipped())?;
    warn_of_skipped(images.skipped(), monitor);
    Ok(images)
}

/// The row of each image of the novel classes. An id is the path below a folder, so two folders may contain the same one.
fn rows_by_id<'a>(images: &'a Dataset, opened: &OpenedNetwork) -> Result<HashMap<&'a str, usize>> {
    let novel = opened.metadata.classes.len() as u32;
    let mut rows = HashMap::new();
    for (row, id) in images.ids().iter().enumerate().filter(|(row, _)| images.labels()[*row] == novel) {
        if rows.insert(id.as_str(), row).is_some() {
            return Err(Error::input(
                format!("two images have the same id `{id}`"),
                "put all images in one folder and embed that, or give them unique ids",
            ));
        }
    }
    Ok(rows)
}

/// The rows of the relevance file that have an image, and how many candidates were left out because they are clean examples of
/// their class. Clean examples other than class texts must have an image, and every class at least one. Accepted candidates
/// count as clean; rejected ones are left out.
fn examples(
    table: &RelevanceTable,
    decisions: &[Option<Decision>],
    names: &[String],
    rows: &HashMap<&str, usize>,
    monitor: &dyn Monitor,
) -> Result<(Vec<Example>, usize)> {
    let number: HashMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
    let mut examples = Vec::new();
    let mut missing = 0;
    let mut by_id = 0;
    let clean: HashSet<(&str, &str)> = (0..table.ids.len())
        .filter(|&i| table.is_clean[i])
        .map(|i| (&table.ids[i], table.classes.get(i)))
        .collect();
    for (i, id) in table.ids.iter().enumerate() {
        let class = table.classes.get(i);
        let is_clean = table.is_clean[i];
        if !is_clean && clean.contains(&(id, class)) {
            by_id += 1; // one image, by its id: it counts once, as clean
            continue;
        }
        let decision = decisions.get(i).copied().flatten();
        if decision == Some(Decision::Reject) {
            continue;
        }
        match (rows.get(id), number.get(class)) {
            (Some(&row), Some(&class)) => {
                let is_clean = is_clean || decision == Some(Decision::Accept);
                let relevance = if is_clean { 1.0 } else { table.relevance[i] };
                examples.push(Example { row, class, relevance, is_clean });
            }
            (None, _) if is_clean && is_text_id(id) => (), // there is nothing to look at
            (None, _) if is_clean => {
                return Err(Error::input(
                    format!("the clean example `{id}` of class `{class}` is not among the images"),
                    words![
                        "the ids in ",
                        option("images"),
                        " must match those of the features; ",
                        command("embed"),
                        " keeps them"
                    ],
                ));
            }
            _ => missing += 1,
        }
    }
    if missing > 0 {
        monitor.warning(&format!(
            "skipped {} without a readable image or a class",
            counted(missing, "candidate")
        ));
    }
    check_classes(&examples, names)?;
    Ok((examples, by_id))
}

/// Every class needs an image of enough relevance.
fn check_classes(examples: &[Example], names: &[String]) -> Result<()> {
    let counting = examples.iter().filter(|example| example.relevance >= MIN_RELEVANCE);
    let seen: HashSet<u32> = counting.map(|example| example.class).collect();
    if let Some((_, unseen)) = (0..).zip(names).find(|(class, _)| !seen.contains(class)) {
        return Err(Error::input(
            format!("class `{unseen}` has no training images"),
            format!("add clean images, or candidates with relevance >= {MIN_RELEVANCE}"),
        ));
    }
    Ok(())
}

/// Removes candidates with the same pixels as a clean example of their class. Returns how many.
fn leave_out_clean_pictures<'a>(examples: &mut Vec<Example>, pixels: &dyn Fn(usize) -> &'a [u8]) -> usize {
    let mut clean: HashMap<u32, HashSet<&[u8]>> = HashMap::new();
    for example in examples.iter().filter(|example| example.is_clean) {
        clean.entry(example.class).or_default().insert(pixels(example.row));
    }
    let before = examples.len();
    examples.retain(|example| {
        example.is_clean
            || !clean.get(&example.class).is_some_and(|clean| clean.contains(pixels(example.row)))
    });
    before - examples.len()
}

#[cfg(test)]
mod tests {
    use labelsieve_files::Labels;

    use super::*;
    use labelsieve_files::work::Silent;

    #[test]
    fn a_clean_example_that_is_a_candidate_of_its_class_counts_once() {
        let classes: Labels = ["owl", "owl", "owl", "cat", "cat", "owl"].iter().collect();
        let table = RelevanceTable {
            path: "R.parquet".into(),
            ids: ["a", "a", "b", "c", "a", "d"].into_iter().collect(),
            classes,
            relevance: vec![1.0, 0.9, 0.8, 1.0, 0.7, 0.6],
            probability: None,
            is_clean: vec![true, false, false, true, false, false],
            decisions: None,
            metadata: Default::default(),
        };
        let rows: HashMap<&str, usize> = ["a", "b", "c", "d"].into_iter().zip(0..).collect();
        let names = ["cat".to_owned(), "owl".to_owned()];
        let (mut found, by_id) = examples(&table, &[], &names, &rows, &Silent::default()).unwrap();
        assert_eq!(by_id, 1);
        let pixels = ["same", "other", "third", "same"].map(str::as_bytes);
        assert_eq!(leave_out_clean_pictures(&mut found, &|row| pixels[row]), 1, "d shows what a shows");
        let kept: Vec<(usize, u32, bool)> = found.iter().map(|e| (e.row, e.class, e.is_clean)).collect();
        // a is clean as owl and stays a candidate of cat.
        assert_eq!(kept, [(0, 1, true), (1, 1, false), (2, 0, true), (0, 0, false)]);
        let mut decisions = [None; 6];
        (decisions[2], decisions[4]) = (Some(Decision::Accept), Some(Decision::Reject));
        let (found, _) = examples(&table, &decisions, &names, &rows, &Silent::default()).unwrap();
        let kept: Vec<(usize, u32, bool)> = found.iter().map(|e| (e.row, e.class, e.is_clean)).collect();
        assert_eq!(kept, [(0, 1, true), (1, 1, true), (2, 0, true), (3, 1, false)]);
        assert_eq!(found[1].relevance, 1.0);
    }

    #[test]
    fn the_text_of_a_class_needs_no_image_but_the_class_does() {
        let table = |classes: [&str; 3]| RelevanceTable {
            path: "R.parquet".into(),
            ids: ["text:owl", "text:cat", "a"].into_iter().collect(),
            classes: classes.iter().collect(),
            relevance: vec![1.0, 1.0, 0.8],
            probability: None,
            is_clean: vec![true, true, false],
            decisions: None,
            metadata: Default::default(),
        };
        let rows = HashMap::from([("a", 0)]);
        let found = |table: &RelevanceTable, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            examples(table, &[], &names, &rows, &Silent::default())
        };
        let (kept, _) = found(&table(["owl", "owl", "owl"]), &["owl"]).unwrap();
        assert_eq!((kept.len(), kept[0].relevance, kept[0].is_clean), (1, 0.8, false));
        let error = found(&table(["owl", "cat", "owl"]), &["cat", "owl"]).err().unwrap().to_string();
        assert_eq!(error, "class `cat` has no training images");
        let doubtful = RelevanceTable { relevance: vec![1.0, 1.0, 0.09], ..table(["owl", "owl", "owl"]) };
        let error = found(&doubtful, &["owl"]).err().unwrap().to_string();
        assert_eq!(error, "class `owl` has no training images");
    }

    #[test]
    fn without_a_clean_image_the_mean_points_where_the_candidates_do() {
        let candidates = ClassRows {
            clean: vec![],
            noisy: vec![1.0, 0.0, 0.0, 1.0, 0.6, 0.8],
            relevance: vec![0.25, 0.5, 0.125],
        };
        let ClassRows { clean, noisy, relevance } = most_relevant_first(&candidates);
        assert_eq!((clean, noisy), (vec![0.0, 1.0], vec![1.0, 0.0, 0.6, 0.8]));
        assert_eq!(relevance, [0.5, 0.25], "half and a quarter of the most relevant one");
    }
}
