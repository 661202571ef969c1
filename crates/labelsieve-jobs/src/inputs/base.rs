//! Base classes: known classes without candidates here, which may have brought candidates of those that have some.

use std::path::Path;

use labelsieve::Features;
use labelsieve::relevance::class_direction;
use labelsieve_files::inputs::left_out::listed;
use labelsieve_files::inputs::same_network::Origin;
use labelsieve_files::inputs::tables::{Table, labels_of, load, rows_by_class};
use labelsieve_files::work::{Context, Error, Monitor, Result, option, words};
use labelsieve_files::{DataError, SavedClassifier, TableColumns, TensorsOf, counted};
use labelsieve_networks::opening::network::{NetworkPart, open_network};
use labelsieve_networks::opening::network_fingerprint::network_fingerprint;

/// The base classes of a file.
pub struct BaseClasses {
    /// Their names.
    pub names: Vec<String>,
    /// The direction of each.
    pub directions: Features,
    /// The network whose features they live among, where the file says so.
    network: Option<String>,
}

impl BaseClasses {
    /// Reads the class weights of a network or a classifier (`.safetensors`), or the mean direction of every class in a table of
    /// features.
    pub fn open(path: &Path, columns: &TableColumns, monitor: &dyn Monitor) -> Result<BaseClasses> {
        let base = match path.extension().and_then(|ending| ending.to_str()) {
            Some("safetensors") => of_weights(path)?,
            _ => of_table(path, columns, monitor)?,
        };
        if base.names.is_empty() {
            Err(Error::input(format!("`{}` contains no classes", path.display()), HINT))
        } else {
            Ok(base)
        }
    }

    /// The network as the file records it.
    pub fn origin<'a>(&'a self, path: &'a Path) -> Origin<'a> {
        Origin::new(path, self.network.as_ref())
    }

    /// Rejects base classes that live in another space than the `dim` columns of the clean examples in `clean`.
    pub fn check_width(&self, path: &Path, clean: &Path, dim: usize) -> Result<()> {
        if self.directions.dim() == dim {
            return Ok(());
        }
        Err(Error::input(
            format!(
                "the base classes in `{}` have {} columns, but the clean examples in `{}` have {dim}",
                path.display(),
                self.directions.dim(),
                clean.display(),
            ),
            "use base classes of the network that made the features",
        ))
    }

    /// Without those that are classes of the run themselves, by name.
    pub fn without(self, classes: &[&str], monitor: &dyn Monitor) -> BaseClasses {
        let (kept, known): (Vec<usize>, Vec<usize>) =
            (0..self.names.len()).partition(|&base| !classes.contains(&self.names[base].as_str()));
        if known.is_empty() {
            return self;
        }
        let names = listed(known.iter().map(|&base| format!("`{}`", self.names[base])), known.len());
        monitor.note(&format!(
            "leaving out {} with clean examples here: {names}",
            counted(known.len(), "base class")
        ));
        if kept.is_empty() {
            monitor.warning("no base classes left: they have no effect");
        }
        BaseClasses {
            names: kept.iter().map(|&base| self.names[base].clone()).collect(),
            directions: self.directions.select(&kept),
            network: self.network,
        }
    }
}

const HINT: &str =
    "give a network or a classifier with class weights (.safetensors), or features with classes";

fn of_weights(path: &Path) -> Result<BaseClasses> {
    match SavedClassifier::load(path) {
        Ok(saved) => {
            let directions = Features::new(saved.weight, saved.dim).with_context(|| cannot_use(path))?;
            Ok(BaseClasses { names: saved.classes, directions, network: saved.network })
        }
        Err(DataError::OtherTensors { found: TensorsOf::Network, .. }) => {
            let opened = open_network(path, NetworkPart::Classifier, None)?;
            if opened.pca.is_some() {
                return Err(Error::input(
                    format!("the class weights in `{}` are for features before its PCA", path.display()),
                    words!["embed photos of the base classes and give their features as ", option("base")],
                ));
            }
            if opened.centre.is_some() {
                return Err(Error::input(
                    format!(
                        "the class weights in `{}` are for features before they are centred",
                        path.display()
                    ),
                    words!["embed photos of the base classes and give their features as ", option("base")],
                ));
            }
            let weights = opened.snapshot.class_weights(&opened.network)?.to_vec();
            let directions =
                Features::new(weights, opened.network.dim()).with_context(|| cannot_use(path))?;
            let network = Some(network_fingerprint(&opened)?.text(None));
            Ok(BaseClasses { names: opened.metadata.classes, directions, network })
        }
        Err(error) => Err(error.into()),
    }
}

fn of_table(path: &Path, columns: &TableColumns, monitor: &dyn Monitor) -> Result<BaseClasses> {
    let columns = TableColumns { labels: None, ..columns.clone() };
    let table = Table { path: path.to_path_buf(), columns }.open(monitor)?;
    let mut names = Vec::new();
    let mut rows = Vec::new();
    let classes = if table.is_empty() {
        Vec::new()
    } else {
        rows_by_class(labels_of(&table, words![option("base"), " as .npz or .parquet"])?)
    };
    for (name, members) in classes.into_iter().filter(|(_, members)| !members.is_empty()) {
        rows.extend_from_slice(class_direction(&load(&table, &members)?).row(0));
        names.push(name);
    }
    let directions = Features::new(rows, table.features.cols().max(1)).with_context(|| cannot_use(path))?;
    Ok(BaseClasses { names, directions, network: table.network })
}

fn cannot_use(path: &Path) -> String {
    format!("cannot use `{}`", path.display())
}

#[cfg(test)]
mod tests {
    use labelsieve_files::{FeatureLayout, FeatureRows, FeatureWriter, Precision};

    use super::*;
    use labelsieve_files::work::Silent;

    fn open(path: &Path) -> Result<BaseClasses> {
        BaseClasses::open(path, &TableColumns::default(), &Silent::default())
    }

    fn classifier(path: &Path) {
        let saved = SavedClassifier {
            classes: vec!["cat".to_owned(), "dog".to_owned()],
            dim: 2,
            weight: vec![1.0, 0.0, 0.0, 2.0],
            scale: 10.0,
            backbone: None,
            network: Some("resnet10 0123".to_owned()),
            n_base: 0,
            settings: serde_json::Value::Null,
            discriminant: None,
            confidence: None,
        };
        saved.save(path).unwrap();
    }

    #[test]
    fn the_rows_of_a_classifier_are_base_classes_but_for_those_at_hand() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("classifier.safetensors");
        classifier(&path);
        let base = open(&path).unwrap();
        assert_eq!(base.names, ["cat", "dog"]);
        assert_eq!(base.directions.row(1), [0.0, 1.0], "rows have unit length");
        assert_eq!(base.origin(&path).network, Some("resnet10 0123"));
        let error = base.check_width(&path, Path::new("clean.npz"), 3).unwrap_err().to_string();
        assert!(error.ends_with("have 2 columns, but the clean examples in `clean.npz` have 3"), "{error}");
        let left = base.without(&["cat", "mouse"], &Silent::default());
        assert_eq!((left.names, left.directions.row(0)), (vec!["dog".to_owned()], &[0.0, 1.0][..]));
    }

    #[test]
    fn a_networks_classes_carry_its_fingerprint() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny-resnet10.safetensors"));
        let base = open(path).unwrap();
        assert_eq!((base.names.len(), base.directions.len()), (76, 76));
        assert!(base.origin(path).network.is_some_and(|network| network.starts_with("resnet10 ")));
    }

    #[test]
    fn features_with_classes_give_the_mean_direction_of_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("base.parquet");
        let file = |labels: &[Option<String>]| {
            let n_rows = 3;
            let n_with_class = labels.iter().flatten().count();
            let precision = Precision::F32;
            let network = Some("x 1");
            let layout = FeatureLayout { n_rows, n_with_class, dim: 2, precision, network };
            let mut writer = FeatureWriter::create(&path, layout, "{}").unwrap();
            let ids = ["a", "b", "c"].map(str::to_owned);
            let values = [1.0, 0.0, 0.0, 1.0, 0.0, -1.0];
            writer.add(FeatureRows { ids: &ids, labels, values: &values }).unwrap();
            writer.finish().unwrap();
        };
        file(&["mixed", "mixed", "down"].map(|name| Some(name.to_owned())));
        let base = open(&path).unwrap();
        let row = |name: &str| {
            base.directions.row(base.names.iter().position(|found| found == name).unwrap()).to_vec()
        };
        assert!(row("mixed").iter().all(|v| (v - 0.5f32.sqrt()).abs() < 1e-6), "{:?}", row("mixed"));
        assert_eq!(row("down"), [0.0, -1.0]);
        assert_eq!(base.origin(&path).network, Some("x 1"));
        file(&[None, None, None]);
        let error = open(&path).err().unwrap().to_string();
        assert!(error.ends_with("contains no classes"), "{error}");
    }
}
