//! The photos of a benchmark: their classes, roles and splits.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use labelsieve::evaluation::alternate_halves;
use labelsieve_files::work::near_name::nearest;
use labelsieve_files::work::{Error, Result};
use labelsieve_files::{DataError, read_text_columns};

use super::config::PhotoColumns;

/// All photos. A photo is identified by its position here.
pub struct PhotoSet {
    pub files: Vec<PathBuf>,
    pub ids: Vec<String>,
    /// The titles; empty without a column of titles.
    pub titles: Vec<String>,
    /// The class as the file spells it, whatever its role.
    pub class: Vec<String>,
    /// Training photos of any role, which candidates come from.
    pub train: Vec<usize>,
    /// In alphabetical order.
    pub base: Vec<ClassPhotos>,
    /// In alphabetical order.
    pub novel: Vec<ClassPhotos>,
}

/// The photos of one class.
pub struct ClassPhotos {
    /// The class as the file spells it.
    pub class: String,
    /// The display name, unique among the classes.
    pub display: String,
    /// Names to match with titles.
    pub names: Vec<String>,
    /// Whether the roles assign it to tuning, so that it is not reported.
    pub tunes: bool,
    pub train: Vec<usize>,
    pub test: Vec<usize>,
}

impl PhotoSet {
    /// Reads everything but the images.
    pub fn read(columns: &PhotoColumns, data: &Path) -> Result<PhotoSet> {
        let files: Vec<PathBuf> = columns.files.iter().map(|file| data.join(file)).collect();
        let mut photos = PhotoSet {
            files: files.clone(),
            ids: Vec::new(),
            titles: Vec::new(),
            class: Vec::new(),
            train: Vec::new(),
            base: Vec::new(),
            novel: Vec::new(),
        };
        let mut base = BTreeMap::new();
        let mut novel = BTreeMap::new();
        for file in &files {
            photos.read_file(file, columns, &mut base, &mut novel)?;
        }
        photos.base = base.into_values().collect();
        photos.novel = novel.into_values().collect();
        photos.check(columns)?;
        distinct_names(&mut photos.base);
        distinct_names(&mut photos.novel);
        Ok(photos)
    }

    fn read_file(
        &mut self,
        file: &Path,
        columns: &PhotoColumns,
        base: &mut BTreeMap<String, ClassPhotos>,
        novel: &mut BTreeMap<String, ClassPhotos>,
    ) -> Result<()> {
        let class_names = columns.names.as_deref().unwrap_or(&columns.class);
        let title = columns.title.as_deref().unwrap_or(&columns.id);
        let names = [&columns.id, &columns.class, &columns.role, &columns.split].map(String::as_str);
        let names: Vec<&str> = names.into_iter().chain([class_names, title]).collect();
        let read = read_text_columns(file, &names).map_err(in_configuration)?;
        let [ids, classes, roles, splits, names, titles] = &read[..] else {
            unreachable!("as many columns as names")
        };
        for row in 0..ids.len() {
            let photo = self.ids.len();
            self.ids.push(ids[row].clone());
            self.class.push(classes[row].clone());
            if columns.title.is_some() {
                self.titles.push(titles[row].clone());
            }
            let is_train = match &splits[row] {
                split if *split == columns.train => true,
                split if *split == columns.test => false,
                split => {
                    let place = format!("column `{}`, row {row}", columns.split);
                    let expected = format!("`{}` or `{}`", columns.train, columns.test);
                    return Err(DataError::malformed(file, place, expected, format!("`{split}`")).into());
                }
            };
            if is_train {
                self.train.push(photo);
            }
            let (of_role, tunes) = match &roles[row] {
                role if *role == columns.base => (&mut *base, false),
                role if *role == columns.novel => (&mut *novel, false),
                role if columns.tuning.as_ref() == Some(role) => (&mut *novel, true),
                _ => continue,
            };
            let class = of_role.entry(classes[row].clone()).or_insert_with(|| ClassPhotos {
                class: classes[row].clone(),
                display: String::new(),
                tunes,
                names: names[row].split(',').map(|name| name.trim().replace('_', " ")).collect(),
                train: Vec::new(),
                test: Vec::new(),
            });
            if is_train { class.train.push(photo) } else { class.test.push(photo) }
        }
        Ok(())
    }

    fn check(&self, columns: &PhotoColumns) -> Result<()> {
        let file = self.files.first().map_or(Path::new(""), PathBuf::as_path);
        let mut seen = HashMap::with_capacity(self.ids.len());
        for (photo, id) in self.ids.iter().enumerate() {
            if let Some(first) = seen.insert(id, photo) {
                let place = format!("column `{}`, photo {photo}", columns.id);
                let found = format!("`{id}`, also the id of photo {first}");
                return Err(DataError::malformed(file, place, "a unique id", found).into());
            }
        }
        if self.novel.len() < 4 {
            let place = format!("column `{}`", columns.role);
            let expected =
                format!("at least 4 classes of role `{}`, two to tune and two to report", columns.novel);
            return Err(DataError::malformed(file, place, expected, self.novel.len().to_string()).into());
        }
        let both = self.novel.iter().find(|novel| self.base.iter().any(|base| base.class == novel.class));
        if let Some(both) = both {
            return Err(Error::input(
                format!("class `{}` in `{}` is both base and novel", both.class, file.display()),
                "a class has one role",
            ));
        }
        for class in self.base.iter().chain(&self.novel) {
            if class.train.is_empty() || class.test.is_empty() {
                return Err(Error::input(
                    format!("class `{}` in `{}` lacks training or test photos", class.class, file.display()),
                    format!("column `{}` separates them", columns.split),
                ));
            }
        }
        Ok(())
    }

    /// The novel classes to choose settings on, and those to report: by their roles, or those at even and odd positions.
    pub fn halves(&self) -> (Vec<usize>, Vec<usize>) {
        if self.novel.iter().any(|class| class.tunes) {
            (0..self.novel.len()).partition(|&class| self.novel[class].tunes)
        } else {
            alternate_halves(self.novel.len())
        }
    }

    /// The novel classes to report without tuning.
    pub fn reported_untuned(&self) -> Vec<usize> {
        (0..self.novel.len()).filter(|&class| !self.novel[class].tunes).collect()
    }

    /// Removes the photos for which `keeps` is false; returns their number.
    pub fn leave_out(&mut self, keeps: &[bool]) -> Result<usize> {
        let n_without = keeps.iter().filter(|keep| !**keep).count();
        self.train.retain(|&photo| keeps[photo]);
        for class in self.base.iter_mut().chain(&mut self.novel) {
            class.train.retain(|&photo| keeps[photo]);
            class.test.retain(|&photo| keeps[photo]);
            if class.train.is_empty() || class.test.is_empty() {
                return Err(Error::input(
                    format!("no training or no test photo of class `{}` has features", class.class),
                    "embed all photos of the set",
                ));
            }
        }
        Ok(n_without)
    }

    /// The position of each id.
    pub fn by_id(&self) -> HashMap<&str, usize> {
        self.ids.iter().enumerate().map(|(photo, id)| (id.as_str(), photo)).collect()
    }
}

/// Sets the display names: the first name of each class, with the class appended where two share it.
fn distinct_names(classes: &mut [ClassPhotos]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    classes.iter().for_each(|class| *counts.entry(class.names[0].clone()).or_default() += 1);
    for class in classes {
        class.display = match counts[&class.names[0]] {
            1 => class.names[0].clone(),
            _ => format!("{} ({})", class.names[0], class.class),
        };
    }
}

/// Adapts the hint of a missing column: its name comes from the configuration, not from an option.
fn in_configuration(error: DataError) -> Error {
    let DataError::MissingColumn { asked: Some(asked), present, .. } = &error else { return error.into() };
    let meant = nearest(asked, present.iter().map(String::as_str));
    let meant = meant.map_or(String::new(), |meant| format!("did you mean `{meant}`? "));
    Error::input(error.to_string(), format!("{meant}the configuration names the columns"))
}
