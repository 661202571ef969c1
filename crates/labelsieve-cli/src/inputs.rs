//! From tables on disk to the examples of each class.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use labelsieve::Features;
use labelsieve_data::{
    CandidateTable, DataError, ExampleTable, Ids, Labels, Matrix, TableColumns, read_candidates,
};

use crate::hint::user_error;

/// Names of columns, for Parquet files that do not use the usual ones.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Columns of Parquet files")]
pub struct Columns {
    /// Column of embeddings [default: embedding, features, vector or the only list of numbers]
    #[arg(long, value_name = "NAME")]
    embedding_column: Option<String>,

    /// Column of class names [default: class or label]
    #[arg(long, value_name = "NAME")]
    label_column: Option<String>,

    /// Column of ids [default: id, key, uid or image_path; else row numbers]
    #[arg(long, value_name = "NAME")]
    pub id_column: Option<String>,
}

impl Columns {
    /// Opens a table; `labels` is a separate file of labels, for `.npy` features.
    pub fn open(&self, path: &Path, labels: Option<&Path>) -> Result<ExampleTable> {
        let columns = TableColumns {
            embedding: self.embedding_column.clone(),
            label: self.label_column.clone(),
            id: self.id_column.clone(),
            labels: labels.map(Path::to_path_buf),
        };
        Ok(ExampleTable::open(path, &columns)?)
    }
}

/// The clean examples and the candidates of every class.
pub struct Pools {
    pub clean: ExampleTable,
    pub noisy: ExampleTable,
    /// In the order of the clean file's classes.
    pub classes: Vec<ClassRows>,
    /// Candidates of classes without clean examples, which nothing can be said about.
    pub n_orphans: usize,
    matched_names: Option<CandidateTable>,
}

/// The rows of one class.
pub struct ClassRows {
    pub name: String,
    pub clean: Vec<usize>,
    pub noisy: Vec<usize>,
    /// With a candidate file, which of its rows each noisy example comes from.
    candidates: Option<Vec<usize>>,
}

impl ClassRows {
    /// A text may mention a class by several names; the example is still one candidate, found by the first of them.
    fn keep_first_of_each(&mut self) {
        let Some(candidates) = self.candidates.take() else { return };
        let mut seen = HashSet::with_capacity(self.noisy.len());
        let pairs = self.noisy.drain(..).zip(candidates).filter(|(row, _)| seen.insert(*row));
        let (noisy, candidates) = pairs.unzip();
        self.noisy = noisy;
        self.candidates = Some(candidates);
    }
}

/// Which files hold the examples.
#[derive(clap::Args, Clone, Debug)]
pub struct PoolFiles {
    /// Clean examples with their classes: .npz, .npy, .parquet or a clip-retrieval folder
    #[arg(long, value_name = "FILE")]
    pub clean: PathBuf,

    /// Noisy examples: the same formats
    #[arg(long, value_name = "FILE")]
    pub noisy: PathBuf,

    /// Classes of the clean examples, for .npy: integers in .npy, or text with one class per line
    #[arg(long, value_name = "FILE")]
    pub clean_labels: Option<PathBuf>,

    /// Noisy classes of the noisy examples, for .npy
    #[arg(long, value_name = "FILE")]
    pub noisy_labels: Option<PathBuf>,
}

impl PoolFiles {
    /// All files that decide the result.
    pub fn paths(&self) -> Vec<&Path> {
        let labels = [&self.clean_labels, &self.noisy_labels].into_iter().flatten();
        [&self.clean, &self.noisy].into_iter().chain(labels).map(PathBuf::as_path).collect()
    }

    /// Opens both tables and checks that they share a space.
    pub fn open(&self, columns: &Columns) -> Result<(ExampleTable, ExampleTable)> {
        let clean = columns.open(&self.clean, self.clean_labels.as_deref())?;
        let mut noisy = columns.open(&self.noisy, self.noisy_labels.as_deref())?;
        if clean.is_empty() {
            return Err(user_error(
                format!("`{}` holds no examples", clean.path.display()),
                "every class needs at least one clean example",
            ));
        }
        if noisy.is_empty() {
            // A list column without rows does not say how long its lists would be.
            noisy.features = Matrix::in_memory(&noisy.path, clean.features.cols(), Vec::new());
        }
        if noisy.features.cols() != clean.features.cols() {
            return Err(user_error(
                format!(
                    "`{}` has {} columns, but the clean examples in `{}` have {}",
                    noisy.path.display(),
                    noisy.features.cols(),
                    clean.path.display(),
                    clean.features.cols()
                ),
                "extract both with the same backbone",
            ));
        }
        Ok((clean, noisy))
    }
}

impl Pools {
    /// Joins clean and noisy examples by class: by the noisy table's own labels, or through a candidate file by id.
    pub fn open(files: &PoolFiles, columns: &Columns, candidates: Option<&Path>) -> Result<Pools> {
        let (clean, noisy) = files.open(columns)?;
        let clean_rows = rows_by_class(labels_of(&clean, "--clean-labels")?);
        let mut classes: Vec<ClassRows> = clean_rows
            .into_iter()
            .map(|(name, clean)| ClassRows { name, clean, noisy: Vec::new(), candidates: None })
            .collect();
        let table = candidates.map(read_candidates).transpose()?;
        let n_orphans = match &table {
            Some(table) => add_candidates(&mut classes, &noisy, table)?,
            None => add_labelled(&mut classes, labels_of(&noisy, "--noisy-labels or --candidates")?),
        };
        if !noisy.is_empty() && classes.iter().all(|class| class.noisy.is_empty()) {
            let quoted = |name: Option<&str>| name.map_or("none".to_owned(), |name| format!("`{name}`"));
            let noisy_class = match &table {
                Some(table) => table.classes.names.first(),
                None => noisy.labels.as_ref().and_then(|labels| labels.names.first()),
            };
            return Err(user_error(
                format!(
                    "`{}` and `{}` have no class in common: one has {}, the other {}",
                    clean.path.display(),
                    noisy.path.display(),
                    quoted(classes.first().map(|class| class.name.as_str())),
                    quoted(noisy_class.map(String::as_str))
                ),
                "class names must be spelled alike in both files",
            ));
        }
        Ok(Pools { clean, noisy, classes, n_orphans, matched_names: table })
    }

    /// The name by which a candidate was found, where a candidate file says so.
    pub fn matched_name(&self, class: &ClassRows, i: usize) -> Option<&str> {
        let rows = class.candidates.as_ref()?;
        Some(&self.matched_names.as_ref()?.matched_names[rows[i]])
    }
}

/// Reads rows of a table as features.
pub fn load(table: &ExampleTable, rows: &[usize]) -> Result<Features> {
    let dim = table.features.cols().max(1);
    let mut data = vec![0f32; rows.len() * dim];
    table.features.read_rows(rows, &mut data)?;
    Features::new(data, dim).with_context(|| format!("cannot use `{}`", table.path.display()))
}

/// The labels of a table, or how to give them.
pub fn labels_of<'a>(table: &'a ExampleTable, option: &str) -> Result<&'a Labels> {
    table.labels.as_ref().ok_or_else(|| {
        user_error(
            format!("`{}` holds no classes", table.path.display()),
            format!(
                "give them with {option}, as an array `labels_all` in .npz, or as a column `class` in Parquet"
            ),
        )
    })
}

/// The rows of each class, in the order of its names.
pub fn rows_by_class(labels: &Labels) -> Vec<(String, Vec<usize>)> {
    let mut rows: Vec<(String, Vec<usize>)> =
        labels.names.iter().map(|name| (name.clone(), Vec::new())).collect();
    for (row, &code) in labels.codes.iter().enumerate() {
        rows[code as usize].1.push(row);
    }
    rows
}

/// Where each id of a table is. Two rows of one name would make every join by id a guess.
pub fn rows_by_id(table: &ExampleTable) -> Result<RowsById<'_>> {
    let Ids::Given(ids) = &table.ids else { return Ok(RowsById::Numbers(table.len())) };
    let mut rows = HashMap::with_capacity(ids.len());
    for (row, id) in ids.iter().enumerate() {
        if let Some(first) = rows.insert(id.as_str(), row) {
            let place = format!("row {row}");
            let found = format!("`{id}`, which is row {first} too");
            return Err(DataError::malformed(&table.path, place, "an id of its own", found).into());
        }
    }
    Ok(RowsById::Names(rows))
}

/// A lookup from ids to rows.
pub enum RowsById<'a> {
    Numbers(usize),
    Names(HashMap<&'a str, usize>),
}

impl RowsById<'_> {
    pub fn get(&self, id: &str) -> Option<usize> {
        match self {
            RowsById::Numbers(n) => id.parse().ok().filter(|row| row < n),
            RowsById::Names(rows) => rows.get(id).copied(),
        }
    }
}

/// Adds the noisy rows by the table's own labels; returns how many belong to no class with clean examples.
fn add_labelled(classes: &mut [ClassRows], labels: &Labels) -> usize {
    let position: HashMap<&str, usize> =
        labels.names.iter().enumerate().map(|(code, name)| (name.as_str(), code)).collect();
    let mut class_of_code = vec![None; labels.names.len()];
    for (c, class) in classes.iter().enumerate() {
        if let Some(&code) = position.get(class.name.as_str()) {
            class_of_code[code] = Some(c);
        }
    }
    let mut n_orphans = 0;
    for (row, &code) in labels.codes.iter().enumerate() {
        match class_of_code[code as usize] {
            Some(c) => classes[c].noisy.push(row),
            None => n_orphans += 1,
        }
    }
    n_orphans
}

/// Adds the noisy rows that a candidate file names; an example may be a candidate of several classes.
fn add_candidates(classes: &mut [ClassRows], noisy: &ExampleTable, table: &CandidateTable) -> Result<usize> {
    let by_id = rows_by_id(noisy)?;
    let position: HashMap<String, usize> =
        classes.iter().enumerate().map(|(c, class)| (class.name.clone(), c)).collect();
    classes.iter_mut().for_each(|class| class.candidates = Some(Vec::new()));
    let (mut n_orphans, mut n_unknown) = (0, 0);
    for (candidate, id) in table.ids.iter().enumerate() {
        let Some(row) = by_id.get(id) else {
            n_unknown += 1;
            continue;
        };
        match position.get(table.classes.get(candidate)) {
            Some(&c) => {
                classes[c].noisy.push(row);
                classes[c].candidates.get_or_insert_default().push(candidate);
            }
            None => n_orphans += 1,
        }
    }
    classes.iter_mut().for_each(ClassRows::keep_first_of_each);
    if n_unknown == table.ids.len() && n_unknown > 0 {
        let id = &table.ids[0];
        return Err(user_error(
            format!(
                "none of the {n_unknown} candidates in `{}` has features in `{}`: e.g. `{id}`",
                table.path.display(),
                noisy.path.display()
            ),
            "the ids of both files must be the same; choose the column with --id-column",
        ));
    }
    Ok(n_orphans + n_unknown)
}
