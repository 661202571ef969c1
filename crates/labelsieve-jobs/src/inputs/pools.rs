//! From tables on disk to the examples of each class.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use labelsieve_files::inputs::copies::{Copies, comparable_ids};
use labelsieve_files::inputs::left_out::{SkippedCandidates, counts};
use labelsieve_files::inputs::same_network::{MixedNetworks, Origin};
use labelsieve_files::inputs::tables::{Table, check_id, labels_of, rows_by_class, rows_by_id};
use labelsieve_files::work::near_name::nearest;
use labelsieve_files::work::{Error, Monitor, Result, resume};
use labelsieve_files::{ExampleTable, Ids, Labels, Matrix, TableColumns};
use labelsieve_matching::{CandidateTable, read_candidates};
use serde::Serialize;

use super::base::BaseClasses;
use super::scope::Scope;
use super::{class_text, swapped};

/// The clean examples and the candidates of every class.
pub struct Pools {
    /// The clean examples of all classes.
    pub clean: ExampleTable,
    /// The noisy examples of all classes.
    pub pool: ExampleTable,
    /// In the order of the clean file's classes.
    pub classes: Vec<ClassRows>,
    /// Base classes, none of which is among them.
    pub base: Option<BaseClasses>,
    /// Candidates that nothing can be said about.
    pub left_out: SkippedCandidates,
    /// Which classes are scored here; the others are known by their clean examples alone.
    pub scope: Scope,
    matched_names: Option<CandidateTable>,
}

/// How much of a run the tables of noisy examples and candidates hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// Perhaps the rows of some classes alone: what is missing may be elsewhere.
    Part,
}

/// The rows of one class.
pub struct ClassRows {
    /// Its name.
    pub name: String,
    /// Rows of the clean table.
    pub clean: Vec<usize>,
    /// Rows of the noisy table.
    pub pool: Vec<usize>,
    /// Candidates that were taken out because they are clean examples of the class, by id.
    n_copies: usize,
    /// With a candidate file, which of its rows each noisy example comes from.
    candidates: Option<Vec<usize>>,
}

impl ClassRows {
    /// A text may mention a class by several names; the example is still one candidate, found by the first of them.
    fn keep_first_of_each(&mut self) {
        let mut seen = HashSet::with_capacity(self.pool.len());
        self.retain(|row| seen.insert(row));
    }

    /// Keeps the noisy examples whose rows `keep` likes.
    fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let kept: Vec<bool> = self.pool.iter().map(|&row| keep(row)).collect();
        let filter = |rows: &mut Vec<usize>| {
            let mut kept = kept.iter();
            rows.retain(|_| kept.next().is_none_or(|kept| *kept));
        };
        filter(&mut self.pool);
        self.candidates.as_mut().map(filter);
    }
}

/// Which files hold the examples.
#[derive(Clone, Debug, Serialize)]
pub struct PoolFiles {
    /// Clean examples with their classes; may be missing where there are texts.
    #[serde(serialize_with = "resume::debug")]
    pub clean: Option<Table>,
    /// Features of class names, each of which is one more clean example of its class.
    #[serde(serialize_with = "resume::debug")]
    pub class_text: Option<PathBuf>,
    /// Noisy examples.
    #[serde(serialize_with = "resume::debug")]
    pub pool: Table,
    /// Which noisy examples are candidates of which class; else the noisy table's own labels say so.
    #[serde(serialize_with = "resume::debug")]
    pub candidates: Option<PathBuf>,
    /// Base classes to compare candidates with: class weights, or features with classes.
    #[serde(serialize_with = "resume::debug")]
    pub base: Option<PathBuf>,
    /// Whether features of two networks may be used together. It decides whether there is a result, not which.
    #[serde(skip)]
    pub mixed: MixedNetworks,
}

impl PoolFiles {
    /// All files that decide the result.
    pub fn paths(&self) -> Vec<&Path> {
        let tables = self.clean.iter().flat_map(Table::paths).chain(self.class_text.as_deref());
        let tables = tables.chain(self.pool.paths());
        tables.chain(self.candidates.as_deref()).chain(self.base.as_deref()).collect()
    }

    /// The file that clean examples come from first of all.
    pub fn clean_path(&self) -> &Path {
        let clean = self.clean.as_ref().map(|table| table.path.as_path());
        clean.or(self.class_text.as_deref()).unwrap_or(Path::new(""))
    }

    /// Opens all tables and checks that they share a space and that every example has an id of its own. Texts of classes are
    /// the last of the clean examples.
    pub fn open(&self, monitor: &dyn Monitor) -> Result<(ExampleTable, ExampleTable)> {
        let photos = self.clean.as_ref().map(|table| table.open(monitor)).transpose()?;
        let texts = self.class_text.as_deref().map(class_text::open).transpose()?;
        let mut noisy = self.pool.open(monitor)?;
        let tables: Vec<Origin> = photos.iter().chain(&texts).chain([&noisy]).map(Origin::from).collect();
        self.mixed.check(&tables)?;
        photos.iter().chain(&texts).try_for_each(check_clean_ids)?;
        let clean = class_text::behind(photos, texts)?;
        if noisy.is_empty() {
            // A list column without rows does not say how long its lists would be.
            noisy.features = Matrix::in_memory(&noisy.path, clean.features.cols(), Vec::new());
        }
        if noisy.features.cols() != clean.features.cols() {
            return Err(Error::input(
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
        rows_by_id(&noisy)?; // what `train` will look them up with, better refused before the work
        Ok((clean, noisy))
    }
}

impl Pools {
    /// Joins clean and noisy examples by class: by the noisy table's own labels, or through a candidate file by id. Clean
    /// examples that are candidates of their own class, by id, are taken out of its pool.
    pub fn open(files: &PoolFiles, monitor: &dyn Monitor) -> Result<Pools> {
        Pools::open_extent(files, Extent::Whole, monitor)
    }

    /// The same for tables that may hold the candidates of some classes alone.
    pub fn open_extent(files: &PoolFiles, extent: Extent, monitor: &dyn Monitor) -> Result<Pools> {
        let (clean, noisy) = files.open(monitor)?;
        let table = files.candidates.as_deref().map(read_candidates).transpose()?;
        if extent == Extent::Whole {
            swapped::check(&clean, &noisy, table.as_ref())?;
        }
        let clean_rows = rows_by_class(labels_of(&clean, "--clean-labels")?);
        let mut classes: Vec<ClassRows> = clean_rows
            .into_iter()
            .map(|(name, clean)| ClassRows { name, clean, pool: Vec::new(), n_copies: 0, candidates: None })
            .collect();
        let left_out = match &table {
            Some(table) => add_candidates(&mut classes, &noisy, table)?,
            None => add_labelled(&mut classes, labels_of(&noisy, "--noisy-labels or --candidates")?),
        };
        let is_lost = extent == Extent::Whole && !noisy.is_empty();
        if is_lost && classes.iter().all(|class| class.pool.is_empty()) {
            let source = table.as_ref().map_or(&noisy.path, |table| &table.path);
            return Err(nothing_left(&classes, &left_out, (&clean.path, source, &noisy.path)));
        }
        leave_out_clean(&mut classes, &clean, &noisy);
        let base =
            files.base.as_deref().map(|path| open_base(path, files, (&clean, &noisy), &classes, monitor));
        let scope = Scope::whole(classes.len());
        Ok(Pools {
            base: base.transpose()?,
            clean,
            pool: noisy,
            classes,
            left_out,
            scope,
            matched_names: table,
        })
    }

    /// Keeps the candidates of the classes in `scope` alone.
    pub fn restrict_to(&mut self, scope: Scope) {
        for (_, class) in self.classes.iter_mut().enumerate().filter(|(c, _)| !scope.contains(*c)) {
            class.pool = Vec::new();
            class.candidates = class.candidates.as_ref().map(|_| Vec::new());
            class.n_copies = 0;
            self.left_out.forget_features_of(&class.name);
        }
        if !scope.tells_of_strays() {
            self.left_out.without_clean.clear();
        }
        self.scope = scope;
    }

    /// The classes that are scored here, with their positions among all.
    pub fn in_scope(&self) -> impl Iterator<Item = (usize, &ClassRows)> {
        self.scope.classes().iter().map(|&c| (c, &self.classes[c]))
    }

    /// Candidates that were taken out because they are clean examples of their class, by id.
    pub fn copies(&self) -> Copies {
        Copies { by_id: self.classes.iter().map(|class| class.n_copies).sum(), by_content: 0 }
    }

    /// How many base classes there are.
    pub fn n_base(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.names.len())
    }

    /// The names of all classes.
    pub fn names(&self) -> Vec<&str> {
        self.classes.iter().map(|class| class.name.as_str()).collect()
    }

    /// Names the classes that lose candidates.
    pub fn warn_of_left_out(&self, monitor: &dyn Monitor) {
        let known: Vec<&str> = self.classes.iter().map(|class| class.name.as_str()).collect();
        self.left_out.warn(&known, &self.clean.path, &self.pool.path, monitor);
    }

    /// The name by which a candidate was found, where a candidate file says so.
    pub fn matched_name(&self, class: &ClassRows, i: usize) -> Option<&str> {
        let rows = class.candidates.as_ref()?;
        Some(&self.matched_names.as_ref()?.matched_names[rows[i]])
    }
}

/// Base classes of the same network as the examples, and of other names.
fn open_base(
    path: &Path,
    files: &PoolFiles,
    (clean, noisy): (&ExampleTable, &ExampleTable),
    classes: &[ClassRows],
    monitor: &dyn Monitor,
) -> Result<BaseClasses> {
    let columns = files.clean.as_ref().map_or_else(TableColumns::default, |table| table.columns.clone());
    let base = BaseClasses::open(path, &columns, monitor)?;
    base.check_width(path, (&clean.path, clean.features.cols()))?;
    files.mixed.check(&[clean.into(), noisy.into(), base.origin(path)])?;
    let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    Ok(base.without(&names, monitor))
}

/// A clean example may be one of several classes, but of each only once.
fn check_clean_ids(table: &ExampleTable) -> Result<()> {
    let Ids::Given(ids) = &table.ids else { return Ok(()) };
    let mut rows = HashMap::with_capacity(ids.len());
    for (row, id) in ids.iter().enumerate() {
        let class = table.labels.as_ref().map_or("", |labels| labels.get(row));
        check_id(table, row, id, rows.insert((id.as_str(), class), row))?;
    }
    Ok(())
}

/// Adds the noisy rows by the table's own labels; returns those of no class with clean examples.
fn add_labelled(classes: &mut [ClassRows], labels: &Labels) -> SkippedCandidates {
    let position: HashMap<&str, usize> =
        labels.names.iter().enumerate().map(|(code, name)| (name.as_str(), code)).collect();
    let mut class_of_code = vec![None; labels.names.len()];
    for (c, class) in classes.iter().enumerate() {
        if let Some(&code) = position.get(class.name.as_str()) {
            class_of_code[code] = Some(c);
        }
    }
    let mut orphans = Vec::new();
    for (row, &code) in labels.codes.iter().enumerate() {
        match class_of_code[code as usize] {
            Some(c) => classes[c].pool.push(row),
            None => orphans.push(labels.get(row)),
        }
    }
    SkippedCandidates { without_clean: counts(orphans.into_iter()), ..SkippedCandidates::default() }
}

/// Adds the noisy rows that a candidate file names; an example may be a candidate of several classes.
fn add_candidates(
    classes: &mut [ClassRows],
    noisy: &ExampleTable,
    table: &CandidateTable,
) -> Result<SkippedCandidates> {
    let by_id = rows_by_id(noisy)?;
    let position: HashMap<String, usize> =
        classes.iter().enumerate().map(|(c, class)| (class.name.clone(), c)).collect();
    classes.iter_mut().for_each(|class| class.candidates = Some(Vec::new()));
    let (mut orphans, mut unknown) = (Vec::new(), Vec::new());
    for (candidate, id) in table.ids.iter().enumerate() {
        let class = table.classes.get(candidate);
        match (position.get(class), by_id.get(id)) {
            (None, _) => orphans.push(class),
            (Some(_), None) => unknown.push(candidate),
            (Some(&c), Some(row)) => {
                classes[c].pool.push(row);
                classes[c].candidates.get_or_insert_default().push(candidate);
            }
        }
    }
    classes.iter_mut().for_each(ClassRows::keep_first_of_each);
    Ok(SkippedCandidates {
        without_clean: counts(orphans.into_iter()),
        without_features: counts(unknown.iter().map(|&candidate| table.classes.get(candidate))),
        first_without_features: first_of_each(&unknown, table),
    })
}

/// The error when no candidate is left: which file has what, `source` being the one that says who is a candidate.
fn nothing_left(
    classes: &[ClassRows],
    left_out: &SkippedCandidates,
    (clean, source, features): (&Path, &Path, &Path),
) -> Error {
    let (clean, source, features) = (clean.display(), source.display(), features.display());
    let known: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    let Some(other) = left_out.without_clean.keys().next() else {
        return match left_out.example_without_features() {
            Some(id) => Error::input(
                format!("no candidate in `{source}` has features in `{features}`: e.g. `{id}`"),
                "the ids of both files must be the same; choose the column with --id-column",
            ),
            None => Error::input(
                format!("`{source}` contains no candidates"),
                "`labelsieve match` finds them; its statistics say which classes have any",
            ),
        };
    };
    if !left_out.without_features.is_empty() {
        let without_features: usize = left_out.without_features.values().sum();
        return Error::input(
            format!(
                "no candidate in `{source}` is left: {} of classes without a clean example in `{clean}`, \
                 {without_features} without features in `{features}`",
                left_out.n_candidates() - without_features,
            ),
            "class names and ids must match in all files",
        );
    }
    let names = left_out.without_clean.keys().take(100); // enough for a suggestion, soon enough for a user
    let near = names.into_iter().find_map(|name| Some((name, nearest(name, known.iter().copied())?)));
    let (here, there) = match near {
        Some((name, meant)) => (meant, name.as_str()),
        None => (known.first().copied().unwrap_or("none"), other.as_str()),
    };
    Error::input(
        format!("`{clean}` and `{source}` have no class in common: one has `{here}`, the other `{there}`"),
        match near {
            Some(_) => {
                format!("class names must match in both files: is `{there}` meant to be `{here}`?")
            }
            None => "class names must match in both files".to_owned(),
        },
    )
}

/// The first of these rows of a candidate file for each class.
fn first_of_each(rows: &[usize], table: &CandidateTable) -> BTreeMap<String, (usize, String)> {
    let mut first = BTreeMap::new();
    for &row in rows {
        let class = table.classes.get(row);
        if !first.contains_key(class) {
            first.insert(class.to_owned(), (row, table.ids[row].to_owned()));
        }
    }
    first
}

/// Takes clean examples out of the pool of their own class, where ids say that they are the same.
fn leave_out_clean(classes: &mut [ClassRows], clean: &ExampleTable, noisy: &ExampleTable) {
    for class in classes {
        let Some(ids) = comparable_ids(clean, noisy, &class.clean) else { break };
        let before = class.pool.len();
        class.retain(|row| !ids.contains(noisy.ids.get(row).as_ref()));
        class.n_copies = before - class.pool.len();
    }
}
