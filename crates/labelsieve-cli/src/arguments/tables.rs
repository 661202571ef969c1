//! Tables of examples on the command line.

use std::path::{Path, PathBuf};

use anyhow::Result;
use labelsieve_files::TableColumns;
use labelsieve_files::inputs::same_network::MixedNetworks;
use labelsieve_files::inputs::tables::Table;
use labelsieve_jobs::inputs::pools::PoolFiles;

use crate::given::Given;

/// The heading of [`ColumnArguments`].
const COLUMNS: &str = "Columns of Parquet files";

/// Names of columns, for Parquet files that do not use the usual ones.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct ColumnArguments {
    /// Embedding column [default: embedding, features, vector, or the only list of numbers]
    #[arg(long, value_name = "NAME", help_heading = COLUMNS)]
    pub embedding_column: Option<String>,

    /// Class column [default: class or label]
    #[arg(long, value_name = "NAME", help_heading = COLUMNS)]
    pub label_column: Option<String>,

    /// Id column [default: id, key, uid or image_path; otherwise row numbers]
    #[arg(long, value_name = "NAME", help_heading = COLUMNS)]
    pub id_column: Option<String>,
}

impl ColumnArguments {
    /// A table with these columns; `labels` is a separate file of labels, for `.npy` features.
    pub fn table(&self, path: &Path, labels: Option<&Path>) -> Table {
        let columns = TableColumns {
            embedding: self.embedding_column.clone(),
            label: self.label_column.clone(),
            id: self.id_column.clone(),
            labels: labels.map(Path::to_path_buf),
            spill: None,
        };
        Table { path: path.to_path_buf(), columns }
    }
}

/// Whether features of two networks may be used together anyway.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct MixedArguments {
    /// Accept features of different networks in one run
    #[arg(long)]
    allow_mixed: bool,
}

impl MixedArguments {
    /// The choice for a job.
    pub fn mixed(self) -> MixedNetworks {
        if self.allow_mixed { MixedNetworks::Accept } else { MixedNetworks::Refuse }
    }
}

/// The tables of the clean examples and of the candidates.
#[derive(clap::Args, Clone, Debug)]
pub struct PoolArguments {
    /// Clean examples with their classes: .npz, .npy, .parquet or a clip-retrieval folder
    #[arg(long, value_name = "FILE", required_unless_present = "class_text")]
    pub clean: Option<PathBuf>,

    /// Class texts from `labelsieve embed-text`: one more clean example of each class, or the only one
    #[arg(long, value_name = "FILE")]
    class_text: Option<PathBuf>,

    /// Candidates, in the same formats
    #[arg(long, value_name = "FILE")]
    pub pool: PathBuf,

    /// Classes of the clean examples, for .npy: integers in .npy, or text with one class per line
    #[arg(long, value_name = "FILE", requires = "clean")]
    clean_labels: Option<PathBuf>,

    /// Labels of the candidates, for .npy
    #[arg(long, value_name = "FILE")]
    pool_labels: Option<PathBuf>,

    #[command(flatten)]
    mixed: MixedArguments,

    #[command(flatten)]
    columns: ColumnArguments,
}

impl PoolArguments {
    /// The files for a job.
    pub fn files(&self, candidates: Option<&Path>) -> PoolFiles {
        PoolFiles {
            clean: self.clean.as_ref().map(|clean| self.columns.table(clean, self.clean_labels.as_deref())),
            class_text: self.class_text.clone(),
            pool: self.columns.table(&self.pool, self.pool_labels.as_deref()),
            candidates: candidates.map(Path::to_path_buf),
            base: None,
            mixed: self.mixed.mixed(),
        }
    }

    /// A further table of examples without classes, with the same columns.
    pub fn table(&self, path: &Path) -> Table {
        self.columns.table(path, None)
    }

    /// The tables whose columns can be named.
    pub fn tables(&self) -> impl Iterator<Item = &Path> {
        self.clean.as_deref().into_iter().chain([self.pool.as_path()])
    }
}

/// The inputs of `score` and `plan`.
#[derive(clap::Args, Clone, Debug)]
pub struct ScoredArguments {
    /// The examples.
    #[command(flatten)]
    pub pools: PoolArguments,

    /// Candidates of each class, from `labelsieve match` [default: the labels of the pool]
    #[arg(long, value_name = "FILE")]
    candidates: Option<PathBuf>,

    /// Base classes to compare candidates with: class weights of a network or classifier (.safetensors), or features with
    /// classes in the formats of --clean
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,

    /// Decisions about candidates (.parquet, .csv or .tsv with `id`, `class` and `decision`): accepted ones count as clean,
    /// rejected ones as known negatives
    #[arg(long, value_name = "FILE")]
    pub decisions: Option<PathBuf>,
}

impl ScoredArguments {
    /// Refuses what has no effect on these files.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        given.refuse_columns(self.pools.tables())?;
        match self.candidates {
            Some(_) => given.refuse(
                &["pool_labels"],
                "--candidates",
                "the candidates file already names the classes",
            ),
            None => Ok(()),
        }
    }

    /// The files for a job.
    pub fn files(&self) -> PoolFiles {
        PoolFiles { base: self.base.clone(), ..self.pools.files(self.candidates.as_deref()) }
    }
}
