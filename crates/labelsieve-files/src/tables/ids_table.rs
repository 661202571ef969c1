//! The table beside an `.npz` or `.npy` with the ids of its rows: `NAME.ids.csv` with `id`, `class` and, for `.npy`,
//! `network`.
//!
//! NumPy's formats store numbers. Ids and classes that are texts are stored in a table of the same name, which is read along
//! with the features.

use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord};

use crate::{DataError, Labels, Result, write_csv};

/// The path of the table beside a file of features.
pub fn ids_table_of(features: &Path) -> PathBuf {
    let mut name = features.as_os_str().to_owned();
    name.push(".ids.csv");
    PathBuf::from(name)
}

/// The contents of the table, with one id per row of the features.
#[derive(Debug, PartialEq)]
pub struct IdsTable {
    /// The ids, in the order of the rows.
    pub ids: Vec<String>,
    /// The classes, if all are known.
    pub labels: Option<Labels>,
    /// The network that computed the features.
    pub network: Option<String>,
}

/// Writes `id`, `class` (empty where unknown) and, if given, `network` for every row.
pub fn write_ids_table(
    path: &Path,
    ids: &[String],
    labels: &[Option<String>],
    network: Option<&str>,
) -> Result<()> {
    let rows = ids.iter().zip(labels).map(|(id, label)| (id.as_str(), label.as_deref().unwrap_or("")));
    match network {
        None => write_csv(path, ["id", "class"], rows.map(|(id, class)| [id, class])),
        Some(network) => {
            write_csv(path, ["id", "class", "network"], rows.map(|(id, class)| [id, class, network]))
        }
    }
}

/// Reads the table of `features` if there is one.
pub fn read_ids_table(features: &Path) -> Result<Option<IdsTable>> {
    let path = ids_table_of(features);
    if !path.exists() {
        return Ok(None);
    }
    let failed = |error: csv::Error| DataError::undecodable(&path, "CSV", error);
    let mut reader = ReaderBuilder::new().from_path(&path).map_err(failed)?;
    let header: Vec<String> = reader.headers().map_err(failed)?.iter().map(str::to_owned).collect();
    let column = |name: &str| header.iter().position(|found| found.trim_start_matches('\u{feff}') == name);
    let Some(id) = column("id") else {
        let found = format!("the columns {}", header.join(", "));
        return Err(DataError::malformed(&path, "line 1", "a column `id`", found));
    };
    let class = column("class");
    let network = column("network");
    let mut ids = Vec::new();
    let mut classes = Vec::new();
    let mut networks = Vec::new();
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(failed)? {
        let field = |at: Option<usize>| at.and_then(|at| record.get(at)).unwrap_or("").to_owned();
        ids.push(field(Some(id)));
        classes.push(field(class));
        if let Some(row) = networks.first().filter(|first| **first != field(network)) {
            let found = format!("`{row}` and `{}`", field(network));
            return Err(DataError::malformed(&path, "column `network`", "one network for all rows", found));
        }
        networks.truncate(1);
        networks.push(field(network));
    }
    let all_known = class.is_some() && classes.iter().all(|class| !class.is_empty());
    let labels = all_known.then(|| classes.iter().collect());
    let network = networks.into_iter().next().filter(|network| !network.is_empty());
    Ok(Some(IdsTable { ids, labels, network }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_with_commas_quotes_and_line_breaks_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let features = folder.path().join("F.npy");
        let ids = ["a,b.jpg", "say \"no\".jpg", "two\nlines", "\r\n", " spaces ", "größe", "#x", ""];
        let ids = ids.map(str::to_owned);
        let labels: Vec<Option<String>> = ids.iter().map(|id| Some(format!("class of {id}"))).collect();
        for network in [None, Some("resnet10 0123456789abcdef")] {
            write_ids_table(&ids_table_of(&features), &ids, &labels, network).unwrap();
            let table = read_ids_table(&features).unwrap().unwrap();
            assert_eq!(table.ids, ids);
            assert_eq!(table.labels, Some(labels.iter().flatten().collect()));
            assert_eq!(table.network.as_deref(), network);
        }
    }

    #[test]
    fn classes_count_only_if_all_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let features = folder.path().join("F.npz");
        assert_eq!(read_ids_table(&features).unwrap(), None);
        let table = ids_table_of(&features);
        std::fs::write(&table, "id,class\na,owl\nb,\n").unwrap();
        let read = read_ids_table(&features).unwrap().unwrap();
        assert_eq!((read.ids.len(), read.labels, read.network), (2, None, None));
        std::fs::write(&table, "\u{feff}id\na\n").unwrap();
        assert_eq!(read_ids_table(&features).unwrap().unwrap().ids, ["a"]);
    }

    #[test]
    fn damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let features = folder.path().join("F.npz");
        let check = |text: &str, message: &str| {
            std::fs::write(ids_table_of(&features), text).unwrap();
            let error = read_ids_table(&features).unwrap_err().to_string();
            assert!(error.contains("F.npz.ids.csv") && error.contains(message), "{error}");
        };
        check("name,class\na,owl\n", "line 1: expected a column `id`, found the columns name, class");
        check("id,class\na,owl\nb\n", "is not a readable CSV file: ");
        check("id,network\na,x\nb,y\n", "expected one network for all rows, found `x` and `y`");
    }
}
