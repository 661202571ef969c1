//! The paper's release on disk: features by data set, backbone and part; splits and episodes.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use labelsieve::Features;
use labelsieve::classifier::{Cosine, WeightedClass, prototype};
use labelsieve_files::inputs::tables::{labels_of, load, rows_by_class};
use labelsieve_files::work::{Error, Result, option, resume, words};
use labelsieve_files::{ExampleTable, TableColumns};
use serde::Serialize;

use super::legacy_numpy::LegacyNumpyRandom;
use super::splits::{CategorySplits, EpisodeSplits, read_class_ids};
use crate::protocol::Task;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
pub enum Dataset {
    /// Low-Shot ImageNet
    Imagenet,
    /// Low-Shot Places365
    Places365,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
pub enum Backbone {
    /// ResNet-10, 512 features
    Resnet10,
    /// ResNet-50, reduced to 256 features by PCA
    Resnet50pca,
}

/// Classes for tuning, or for the reported figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Val,
    Test,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Phase::Val => "val",
            Phase::Test => "test",
        }
    }
}

/// A folder of released features and a folder of splits.
pub struct Release {
    pub dataset: Dataset,
    pub backbone: Backbone,
    features: PathBuf,
    splits: PathBuf,
}

/// One phase of the benchmark, opened.
pub struct Part {
    pub phase: Phase,
    /// The prefix of its records in a journal.
    journal_name: String,
    /// Released class ids of the novel classes, in order.
    pub novel: Vec<usize>,
    /// Released class ids of the base classes; none for Places365.
    pub base: Vec<usize>,
    /// Labelled photos that clean examples come from.
    train: ExampleTable,
    train_rows: RowsOf,
    /// Test photos.
    test: ExampleTable,
    test_rows: RowsOf,
    /// Candidates.
    noisy: ExampleTable,
    noisy_rows: RowsOf,
    episodes: Episodes,
}

/// Rows of a table by released class id.
struct RowsOf(std::collections::HashMap<usize, Vec<usize>>);

enum Episodes {
    /// `mapped_splits_{1..5}.npy`.
    Listed(Vec<EpisodeSplits>),
    /// Drawn with numpy's legacy generator.
    Drawn,
}

impl Release {
    pub fn new(features: &Path, splits: &Path, dataset: Dataset, backbone: Backbone) -> Release {
        Release { dataset, backbone, features: features.to_path_buf(), splits: splits.to_path_buf() }
    }

    /// The files of a phase: labelled photos, test photos, candidates.
    pub fn files(&self, phase: Phase) -> [PathBuf; 3] {
        let dataset = match self.dataset {
            Dataset::Imagenet => "imagenet",
            Dataset::Places365 => "places365",
        };
        let backbone = match self.backbone {
            Backbone::Resnet10 => "resnet10",
            Backbone::Resnet50pca => "resnet50pca",
        };
        let phase = phase.name();
        [
            format!("{dataset}_train_{backbone}.npz"),
            format!("{dataset}_val_{backbone}.npz"),
            format!("yfcc_{dataset}_{backbone}_{phase}.npz"),
        ]
        .map(|name| self.features.join(name))
    }

    /// The files that say which classes are novel, and which of their photos are clean.
    pub fn split_files(&self) -> Vec<PathBuf> {
        let names = match self.dataset {
            Dataset::Imagenet => {
                let episodes = (1..=5).map(|episode| format!("mapped_splits_{episode}.npy"));
                std::iter::once(CATEGORY_SPLITS.to_owned()).chain(episodes).collect()
            }
            Dataset::Places365 => vec![novel_classes_file(Phase::Test)],
        };
        names.iter().map(|name| self.splits.join(name)).collect()
    }

    /// Opens a phase.
    pub fn open(&self, phase: Phase) -> Result<Part> {
        let [train, test, noisy] =
            self.files(phase).map(|path| ExampleTable::open(path, &TableColumns::default()));
        let train = train?;
        let test = test?;
        let noisy = noisy?;
        let journal_name = match phase {
            Phase::Test => phase.name().to_owned(),
            // The stamp is part of the name, not of the resume key: candidates of validation classes may arrive later
            // or change, and the work on the test classes must survive that.
            Phase::Val => format!("{} ({})", phase.name(), resume::stamp(&noisy.path)?),
        };
        let (novel, base, episodes) = match self.dataset {
            Dataset::Imagenet => {
                let splits = CategorySplits::load(self.splits.join(CATEGORY_SPLITS))?;
                let (novel, base) = match phase {
                    Phase::Val => (splits.novel_classes_1, splits.base_classes_1),
                    Phase::Test => (splits.novel_classes_2, splits.base_classes_2),
                };
                let listed = (1..=5).map(|e| EpisodeSplits::load_episode(&self.splits, e));
                (novel, base, Episodes::Listed(listed.collect::<labelsieve_files::Result<_>>()?))
            }
            Dataset::Places365 => {
                let path = self.splits.join(novel_classes_file(phase));
                (read_class_ids(path)?, Vec::new(), Episodes::Drawn)
            }
        };
        for table in [&test, &noisy] {
            if table.features.cols() != train.features.cols() {
                return Err(Error::input(
                    format!(
                        "`{}` has {} columns, but `{}` has {}",
                        table.path.display(),
                        table.features.cols(),
                        train.path.display(),
                        train.features.cols()
                    ),
                    "all files of a benchmark must come from the same backbone",
                ));
            }
        }
        Ok(Part {
            phase,
            journal_name,
            novel,
            base,
            train_rows: RowsOf::new(&train)?,
            test_rows: RowsOf::new(&test)?,
            noisy_rows: RowsOf::new(&noisy)?,
            train,
            test,
            noisy,
            episodes,
        })
    }
}

const CATEGORY_SPLITS: &str = "imagenet_lowshot_category_splits.json";

fn novel_classes_file(phase: Phase) -> String {
    format!("places365_novel_classes_{}_phase.npy", phase.name())
}

impl RowsOf {
    fn new(table: &ExampleTable) -> Result<RowsOf> {
        let by_name = rows_by_class(labels_of(table, "`labels_all`")?);
        let numbered = by_name.into_iter().map(|(name, rows)| match name.parse() {
            Ok(id) => Ok((id, rows)),
            Err(_) => Err(Error::input(
                format!("`{}`: class `{name}` is not a number", table.path.display()),
                "classes in the release are numbered from 0",
            )),
        });
        Ok(RowsOf(numbered.collect::<Result<_>>()?))
    }

    fn get(&self, class: usize) -> &[usize] {
        self.0.get(&class).map_or(&[], Vec::as_slice)
    }
}

impl Task for Part {
    fn journal_name(&self) -> &str {
        &self.journal_name
    }

    fn title(&self) -> &str {
        match self.phase {
            Phase::Val => "val classes",
            Phase::Test => "test classes",
        }
    }

    fn dim(&self) -> usize {
        self.train.features.cols()
    }

    fn pool_sizes(&self) -> Vec<usize> {
        self.novel.iter().map(|&class| self.noisy_rows.get(class).len()).collect()
    }

    fn pool(&self, class: usize) -> Result<Features> {
        load(&self.noisy, self.noisy_rows.get(self.novel[class]))
    }

    fn clean(&self, episode: usize, k: usize) -> Result<Vec<Features>> {
        let mut drawn = match &self.episodes {
            // The release counts episodes from 1.
            Episodes::Drawn => Some(LegacyNumpyRandom::new(episode as u32 + 1)),
            Episodes::Listed(_) => None,
        };
        self.novel
            .iter()
            .map(|&class| {
                let own = self.train_rows.get(class);
                let rows: Vec<usize> = match (&self.episodes, &mut drawn) {
                    (Episodes::Listed(splits), _) => {
                        let listed = splits.get(episode).and_then(|split| split.clean_rows(class, k));
                        listed.map(<[usize]>::to_vec).unwrap_or_default()
                    }
                    (Episodes::Drawn, Some(random)) if own.len() >= k => {
                        random.choice_without_replacement(own.len(), k).into_iter().map(|i| own[i]).collect()
                    }
                    _ => Vec::new(),
                };
                self.check_clean(class, k, &rows)?;
                load(&self.train, &rows)
            })
            .collect()
    }

    /// The first photos of each base class; all photos of a thousand classes would not fit in memory.
    fn base_sets(&self) -> Result<Vec<Features>> {
        const MAX_EXAMPLES: usize = 200;
        let set = |&class: &usize| {
            let rows = self.train_rows.get(class);
            load(&self.train, &rows[..rows.len().min(MAX_EXAMPLES)])
        };
        self.base.iter().map(set).collect()
    }

    fn novel_test(&self) -> Result<(Features, Vec<usize>)> {
        self.test_of(&self.novel)
    }

    fn base_test(&self) -> Result<Option<(Features, Vec<usize>)>> {
        if self.base.is_empty() { Ok(None) } else { self.test_of(&self.base).map(Some) }
    }

    /// The release holds no classifier of the base classes: their prototypes stand for W_B.
    fn base_weights(&self) -> Result<Vec<f32>> {
        let nothing = Features::empty(self.dim());
        let mut rows = Vec::with_capacity(self.base.len() * self.dim());
        for &class in &self.base {
            let examples = load(&self.train, self.train_rows.get(class))?;
            rows.extend(prototype(&WeightedClass::new(&examples, &nothing, &[])?));
        }
        Ok(rows)
    }

    fn scale(&self) -> f32 {
        Cosine::default().scale
    }
}

impl Part {
    /// The bytes that the tables hold in memory, before any rows are read.
    pub fn bytes_in_memory(&self) -> u64 {
        [&self.train, &self.test, &self.noisy].iter().map(|table| table.features.bytes_in_memory()).sum()
    }

    fn check_clean(&self, class: usize, k: usize, rows: &[usize]) -> Result<()> {
        let path = self.train.path.display();
        let labels = labels_of(&self.train, "`labels_all`")?;
        if rows.len() != k {
            return Err(Error::input(
                format!(
                    "class {class} has {} labelled photos in `{path}`, too few for {k} shots",
                    rows.len()
                ),
                words!["lower ", option("shots")],
            ));
        }
        let wrong = rows.iter().find(|&&row| row >= self.train.len() || labels.get(row) != class.to_string());
        match wrong {
            None => Ok(()),
            Some(row) => Err(Error::input(
                format!("the splits assign row {row} of `{path}` to class {class}, but its label differs"),
                "splits and features must belong to the same release",
            )),
        }
    }

    /// Test photos of these classes and their positions among them.
    fn test_of(&self, classes: &[usize]) -> Result<(Features, Vec<usize>)> {
        let rows = |&class: &usize| self.test_rows.get(class);
        let all: Vec<usize> = classes.iter().flat_map(rows).copied().collect();
        let labels = classes
            .iter()
            .enumerate()
            .flat_map(|(c, class)| std::iter::repeat_n(c, rows(class).len()))
            .collect();
        if all.is_empty() {
            return Err(Error::input(
                format!("`{}` has no test photos of the classes of the split", self.test.path.display()),
                "splits and features must belong to the same release",
            ));
        }
        Ok((load(&self.test, &all)?, labels))
    }
}
