//! The contents of a review: classes, their examples, captions and pictures. Nothing here changes during a session.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use labelsieve::relevance::Auto;
use labelsieve::{Decision, Method};
use labelsieve_files::work::{Context, Error, Monitor, Result, command, option, words};
use labelsieve_files::{RelevanceTable, Texts, is_text_id, read_relevance, read_relevance_reasons};
use labelsieve_networks::image_files::{PictureFiles, PictureSources};

/// Everything that a relevance file and the pictures say.
pub(super) struct Contents {
    /// The names of all examples, by number.
    pub(super) ids: Texts,
    /// Numbers of examples in the order of their names, to find one by its name.
    by_id: Vec<u32>,
    /// Their captions.
    pub(super) captions: Vec<Option<String>>,
    /// Their pictures.
    pub(super) pictures: PictureFiles,
    /// In the order of their names.
    pub(super) classes: Vec<Class>,
    /// How the relevance was scored.
    pub(super) settings: Settings,
}

/// One class.
pub(super) struct Class {
    pub(super) name: String,
    /// Numbers of its clean examples.
    pub(super) clean: Vec<u32>,
    /// Number of the example in each row.
    pub(super) candidates: Vec<u32>,
    /// The relevance in the file.
    pub(super) relevance: Vec<f32>,
    /// The probability in the file, where it has one.
    pub(super) probability: Vec<Option<f32>>,
    /// The decisions that the relevance was made with.
    pub(super) decisions: Vec<Option<Decision>>,
    /// The class names that were found in texts.
    pub(super) names: Vec<String>,
    /// Which of them belongs to each row, or -1.
    pub(super) matched: Vec<i32>,
    /// The clean example most like each row, and how like.
    pub(super) best_clean: Vec<Option<(u32, f32)>>,
    pub(super) reciprocal_neighbours: Vec<Option<u32>>,
    /// The row of each example.
    pub(super) rows: HashMap<u32, u32>,
}

/// How a relevance file was made.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) method: Method,
    pub(super) seed: u64,
    /// The file of the base classes that candidates were compared with.
    pub(super) base: Option<String>,
    /// Whether the file says so itself.
    pub(super) is_given: bool,
}

impl Settings {
    fn of(table: &RelevanceTable) -> Result<Settings> {
        let Some(text) = table.metadata.get("labelsieve") else {
            let method = Method::Auto(Auto::default());
            return Ok(Settings { method, seed: 0, base: None, is_given: false });
        };
        let refused = || format!("`{}`: the settings in its metadata", table.path.display());
        let json: serde_json::Value = serde_json::from_str(text).with_context(refused)?;
        let method = serde_json::from_value(json["method"].clone()).with_context(refused)?;
        let is_used = json["base"]["n_classes"] != 0;
        let base = json["base"]["file"].as_str().filter(|_| is_used).map(str::to_owned);
        Ok(Settings { method, seed: json["seed"].as_u64().unwrap_or(0), base, is_given: true })
    }
}

impl Contents {
    /// Reads the relevance file, and finds the pictures and captions of its examples.
    pub(super) fn open(
        relevance: &Path,
        pictures: &PictureSources,
        monitor: &dyn Monitor,
    ) -> Result<Contents> {
        let table = read_relevance(relevance)?;
        if table.ids.is_empty() {
            return Err(Error::input(
                format!("`{}` contains no examples", relevance.display()),
                words!["relevance files are written by ", command("score")],
            ));
        }
        let settings = Settings::of(&table)?;
        let (ids, examples) = number_examples(&table);
        let classes = read_classes(relevance, &table, &examples)?;
        let names: Vec<&str> = ids.iter().collect();
        let wanted: HashSet<&str> = names.iter().copied().collect();
        let found = pictures.find(&wanted)?;
        let files = PictureFiles::locate(&found, &names)?;
        let mut found_captions = if pictures.images.is_empty() && pictures.texts.is_empty() {
            HashMap::new()
        } else {
            pictures.captions(&wanted, &found)?
        };
        let captions = names.iter().map(|id| found_captions.remove(*id)).collect();
        let is_missing = |(example, id): &(usize, &&str)| !files.has(*example) && !is_text_id(id);
        let missing = names.iter().enumerate().filter(is_missing).count();
        if missing > 0 && !pictures.images.is_empty() {
            let first = names.iter().enumerate().find(is_missing);
            let first = first.map_or("", |(_, id)| *id);
            monitor
                .warning(&format!("no pictures for {missing} of {} examples, e.g. `{first}`", names.len()));
            monitor
                .hint(&words!["pass the folders of clean examples and candidates with ", option("images")]);
        }
        let mut by_id: Vec<u32> = (0..names.len() as u32).collect();
        by_id.sort_unstable_by_key(|&example| names[example as usize]);
        Ok(Contents { captions, pictures: files, classes, settings, by_id, ids })
    }

    pub(super) fn id(&self, example: u32) -> &str {
        &self.ids[example as usize]
    }

    /// The number of the example of this name.
    pub(super) fn example(&self, id: &str) -> Option<u32> {
        let at = self.by_id.binary_search_by(|&example| self.id(example).cmp(id)).ok()?;
        Some(self.by_id[at])
    }

    pub(super) fn caption(&self, example: u32) -> Option<&str> {
        self.captions[example as usize].as_deref()
    }
}

/// Numbers for ids: an example may be a candidate of several classes, and is one example all the same.
fn number_examples(table: &RelevanceTable) -> (Texts, Vec<u32>) {
    let mut known: HashMap<&str, u32> = HashMap::with_capacity(table.ids.len());
    let mut ids = Texts::default();
    let mut number = |id| {
        *known.entry(id).or_insert_with(|| {
            ids.push(id);
            ids.len() as u32 - 1
        })
    };
    let numbers = table.ids.iter().map(&mut number).collect();
    (ids, numbers)
}

fn read_classes(path: &Path, table: &RelevanceTable, examples: &[u32]) -> Result<Vec<Class>> {
    let by_id: HashMap<&str, u32> = table.ids.iter().zip(examples.iter().copied()).collect();
    let new = |name: &String| Class {
        name: name.clone(),
        clean: Vec::new(),
        candidates: Vec::new(),
        relevance: Vec::new(),
        probability: Vec::new(),
        decisions: Vec::new(),
        names: Vec::new(),
        matched: Vec::new(),
        best_clean: Vec::new(),
        reciprocal_neighbours: Vec::new(),
        rows: HashMap::new(),
    };
    let mut classes: Vec<Class> = table.classes.names.iter().map(new).collect();
    let candidates: Vec<usize> = (0..table.ids.len()).filter(|&row| !table.is_clean[row]).collect();
    let mut reasons = read_relevance_reasons(path, &candidates)?.into_iter();
    for (row, &example) in examples.iter().enumerate() {
        let class = &mut classes[table.classes.codes[row] as usize];
        if table.is_clean[row] {
            class.clean.push(example);
            continue;
        }
        let reasons = reasons.next().unwrap_or_default();
        let number = class.candidates.len() as u32;
        if class.rows.insert(example, number).is_some() {
            return Err(Error::input(
                format!(
                    "`{}`: row {row}: `{}` is a candidate of `{}` twice",
                    path.display(),
                    &table.ids[row],
                    class.name
                ),
                "decisions are kept by id and class, so each candidate of a class needs an id of its own",
            ));
        }
        class.candidates.push(example);
        class.relevance.push(table.relevance[row]);
        class.probability.push(table.probability.as_ref().and_then(|probability| probability[row]));
        class.decisions.push(table.decisions.as_ref().and_then(|decisions| decisions[row]));
        let name = reasons.matched_name.map(|name| {
            class.names.iter().position(|known| *known == name).unwrap_or_else(|| {
                class.names.push(name);
                class.names.len() - 1
            })
        });
        class.matched.push(name.map_or(-1, |name| name as i32));
        let best = reasons.best_clean.and_then(|id| by_id.get(id.as_str()).copied());
        class.best_clean.push(best.zip(reasons.best_clean_similarity));
        class.reciprocal_neighbours.push(reasons.reciprocal_neighbours);
    }
    Ok(classes)
}
