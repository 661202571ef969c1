//! The class and episode splits that the paper's release uses.

use std::collections::HashSet;
use std::path::Path;

use labelsieve_files::{ArrayFile, DataError, Result, read_ints};
use serde::Deserialize;

/// `imagenet_lowshot_category_splits.json`: class ids, as positions in the sorted list of WordNet ids.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CategorySplits {
    /// All base classes.
    pub base_classes: Vec<usize>,
    /// The base classes of the validation phase.
    pub base_classes_1: Vec<usize>,
    /// The base classes of the test phase.
    pub base_classes_2: Vec<usize>,
    /// The novel classes of the validation phase.
    pub novel_classes_1: Vec<usize>,
    /// The novel classes of the test phase.
    pub novel_classes_2: Vec<usize>,
}

impl CategorySplits {
    /// Reads the file; a class may be in each list once, and never both base and novel.
    pub fn load(path: impl AsRef<Path>) -> Result<CategorySplits> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(DataError::io("read", path))?;
        CategorySplits::parse(path, &bytes)
    }

    fn parse(path: &Path, json: &[u8]) -> Result<CategorySplits> {
        let splits: CategorySplits = serde_json::from_slice(json)
            .map_err(|error| DataError::undecodable(path, "category split", error))?;
        let base = distinct(path, "base_classes", &splits.base_classes)?;
        for (name, list) in
            [("base_classes_1", &splits.base_classes_1), ("base_classes_2", &splits.base_classes_2)]
        {
            if let Some(class) = distinct(path, name, list)?.difference(&base).next() {
                return Err(DataError::malformed(path, name, "classes of `base_classes`", class.to_string()));
            }
        }
        for (name, list) in
            [("novel_classes_1", &splits.novel_classes_1), ("novel_classes_2", &splits.novel_classes_2)]
        {
            if let Some(class) = distinct(path, name, list)?.intersection(&base).next() {
                return Err(DataError::malformed(path, name, "no base class", class.to_string()));
            }
        }
        Ok(splits)
    }
}

/// `mapped_splits_{episode}.npy`: for every class, rows of the training file; the first k are its clean examples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpisodeSplits {
    n_classes: usize,
    n_per_class: usize,
    rows: Vec<usize>,
}

impl EpisodeSplits {
    /// Reads one episode's file: integers of shape (classes, examples).
    pub fn load(path: impl AsRef<Path>) -> Result<EpisodeSplits> {
        let array = ArrayFile::open(path)?;
        let ([n_classes, n_per_class], false) = (&array.header().shape[..], array.header().fortran) else {
            return Err(array.wrong_shape("(classes, examples) in C order"));
        };
        let n_classes = *n_classes;
        let n_per_class = *n_per_class;
        let rows = non_negative(array.path(), "row number", array.read_flat_ints()?)?;
        Ok(EpisodeSplits { n_classes, n_per_class, rows })
    }

    /// Reads `mapped_splits_{episode}.npy` from the release's folder; episodes count from 1.
    pub fn load_episode(folder: impl AsRef<Path>, episode: usize) -> Result<EpisodeSplits> {
        EpisodeSplits::load(folder.as_ref().join(format!("mapped_splits_{episode}.npy")))
    }

    /// The number of classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// The largest number of clean examples per class.
    pub fn n_per_class(&self) -> usize {
        self.n_per_class
    }

    /// The rows of the `k` clean examples of a class; `None` when the file has no such class or fewer examples.
    pub fn clean_rows(&self, class: usize, k: usize) -> Option<&[usize]> {
        let row = self.rows.chunks_exact(self.n_per_class.max(1)).nth(class)?;
        row.get(..k)
    }
}

/// Reads class ids, e.g. `places365_novel_classes_test_phase.npy`; none may occur twice.
pub fn read_class_ids(path: impl AsRef<Path>) -> Result<Vec<usize>> {
    let path = path.as_ref();
    let classes = non_negative(path, "class id", read_ints(path)?)?;
    distinct(path, "class ids", &classes)?;
    Ok(classes)
}

fn distinct(path: &Path, place: &str, classes: &[usize]) -> Result<HashSet<usize>> {
    let mut seen = HashSet::new();
    match classes.iter().find(|class| !seen.insert(**class)) {
        Some(class) => Err(DataError::malformed(path, place, "distinct classes", format!("{class} twice"))),
        None => Ok(seen),
    }
}

fn non_negative(path: &Path, what: &str, values: Vec<i64>) -> Result<Vec<usize>> {
    let convert = |(at, value): (usize, i64)| {
        usize::try_from(value).map_err(|_| {
            DataError::malformed(
                path,
                format!("element {at}"),
                format!("a non-negative {what}"),
                value.to_string(),
            )
        })
    };
    values.into_iter().enumerate().map(convert).collect()
}

#[cfg(test)]
mod tests {
    use labelsieve_files::write_npy_i64;
    use proptest::prelude::*;

    use super::*;

    fn parse(json: &str) -> Result<CategorySplits> {
        CategorySplits::parse(Path::new("s.json"), json.as_bytes())
    }

    fn json(base: &str, base_1: &str, novel_1: &str) -> String {
        format!(
            r#"{{"base_classes":{base},"base_classes_1":{base_1},"base_classes_2":[],"novel_classes_1":{novel_1},
            "novel_classes_2":[]}}"#
        )
    }

    #[test]
    fn lists_that_contradict_each_other_are_refused() {
        assert_eq!(parse(&json("[1, 2]", "[1]", "[3]")).unwrap().base_classes, [1, 2]);
        for (text, message) in [
            (json("[1, 1]", "[]", "[]"), "`s.json`: base_classes: expected distinct classes, found 1 twice"),
            (
                json("[1]", "[2]", "[]"),
                "`s.json`: base_classes_1: expected classes of `base_classes`, found 2",
            ),
            (json("[1]", "[]", "[1]"), "`s.json`: novel_classes_1: expected no base class, found 1"),
            (json("[-1]", "[]", "[]"), "`s.json` is not a readable category split file: invalid value"),
            ("{}".into(), "`s.json` is not a readable category split file: missing field `base_classes`"),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    proptest! {
        #[test]
        fn damaged_bytes_never_panic_and_errors_name_the_file(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            keep in 0usize..100,
        ) {
            let sound = json("[1, 2]", "[1]", "[3]");
            for damaged in [&bytes[..], &[&sound.as_bytes()[..keep], &bytes].concat()] {
                if let Err(error) = CategorySplits::parse(Path::new("s.json"), damaged) {
                    prop_assert!(error.to_string().contains("s.json"), "{error}");
                }
            }
        }
    }

    #[test]
    fn an_episode_gives_the_first_k_rows_of_a_class() {
        let file = tempfile::NamedTempFile::new().unwrap();
        write_npy_i64(&file, &[2, 3], &[10, 11, 12, 20, 21, 22]).unwrap();
        let episode = EpisodeSplits::load(file.path()).unwrap();
        assert_eq!((episode.n_classes(), episode.n_per_class()), (2, 3));
        assert_eq!(episode.clean_rows(1, 2), Some(&[20, 21][..]));
        assert_eq!(episode.clean_rows(1, 4), None);
        assert_eq!(episode.clean_rows(2, 1), None);
    }

    #[test]
    fn episodes_of_another_shape_and_negative_rows_are_refused() {
        let check = |shape: &[usize], values: &[i64], message: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            write_npy_i64(&file, shape, values).unwrap();
            let error = EpisodeSplits::load(file.path()).unwrap_err().to_string();
            assert!(error.ends_with(message), "{error}");
        };
        check(&[2], &[1, 2], "npy shape: expected (classes, examples) in C order, found [2]");
        check(&[1, 2], &[1, -2], "element 1: expected a non-negative row number, found -2");
    }
}
