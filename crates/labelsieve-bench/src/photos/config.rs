//! The configuration of a photo benchmark (TOML): files, columns, base and novel classes, the source of candidates, backbones.

use std::path::{Path, PathBuf};

use labelsieve_files::DataError;
use labelsieve_files::work::{Error, Result};
use labelsieve_matching::names::MatchRule;
use labelsieve_networks::opening::built_in::BuiltIn;
use serde::{Deserialize, Serialize};

use crate::protocol::Score;

/// A whole configuration file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The heading of the report.
    pub title: String,
    /// A paragraph about the data.
    #[serde(default)]
    pub description: String,
    pub photos: PhotoColumns,
    pub candidates: CandidateSource,
    #[serde(default)]
    pub clean: CleanRule,
    #[serde(default)]
    pub protocol: Protocol,
    /// The networks to compare.
    #[serde(default, rename = "backbone")]
    pub backbones: Vec<Backbone>,
}

/// The photos and the meaning of their columns.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PhotoColumns {
    /// Parquet files, in the folder of the data.
    pub files: Vec<PathBuf>,
    /// Column of ids.
    pub id: String,
    /// Column of encoded images.
    pub image: String,
    /// Column of classes.
    pub class: String,
    /// Column of the names of a class, separated by commas; by default the class itself.
    #[serde(default)]
    pub names: Option<String>,
    /// Column of titles, shown beside photos and matched with names.
    #[serde(default)]
    pub title: Option<String>,
    /// Column that distinguishes base from novel classes.
    pub role: String,
    /// Its value for base classes.
    pub base: String,
    /// Its value for novel classes.
    pub novel: String,
    /// Its value for classes to choose settings on; by default half of the novel classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<String>,
    /// Column that distinguishes training from test photos.
    pub split: String,
    /// Its value for training photos.
    pub train: String,
    /// Its value for test photos.
    pub test: String,
}

/// The source of the candidates of the novel classes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateSource {
    /// A Parquet file with `class`, `id` and `relevant`.
    #[serde(default)]
    pub pool: Option<PathBuf>,
    /// Rules that match names with the titles of training photos.
    #[serde(default)]
    pub rules: Vec<MatchRule>,
    /// Whether the noise is simulated, i.e. wrong candidates were added on purpose.
    #[serde(default)]
    pub simulated: bool,
}

/// The photos that clean examples are drawn from.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CleanRule {
    /// Number of training photos of a class to draw from, the first in file order; by default all of them.
    #[serde(default)]
    pub first: Option<usize>,
}

/// The cells and trials to measure.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Protocol {
    /// Numbers of clean examples.
    pub shots: Vec<usize>,
    pub episodes: usize,
    /// The accuracy by which settings are chosen.
    pub tune_by: TuneBy,
    /// Few-way trials and the classes, clean and test examples of each.
    pub trials: usize,
    pub ways: usize,
    pub trial_shots: Vec<usize>,
    pub queries: usize,
}

impl Default for Protocol {
    fn default() -> Protocol {
        Protocol {
            shots: vec![1, 2, 5, 10, 20],
            episodes: 5,
            tune_by: TuneBy::Top1,
            trials: 600,
            ways: 5,
            trial_shots: vec![1, 5],
            queries: 15,
        }
    }
}

/// Larger numbers are typos: the clean examples of all episodes and the results of all trials are in memory at once.
const MAX_EPISODES: usize = 1_000;
const MAX_TRIALS: usize = 1_000_000;
const MAX_WAYS: usize = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum TuneBy {
    #[serde(rename = "top-1")]
    Top1,
    #[serde(rename = "top-5")]
    Top5,
}

impl TuneBy {
    /// The score of a cell.
    pub fn score(self) -> Score {
        match self {
            TuneBy::Top1 => |reached| reached.novel_top_1,
            TuneBy::Top5 => |reached| reached.novel_top_5,
        }
    }
}

/// A network, or features made with one.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Backbone {
    /// Short name, used in tables and file names.
    pub name: String,
    /// Network file, relative to the configuration: photos are embedded with it, and its classifier is W_B.
    #[serde(default)]
    pub network: Option<PathBuf>,
    /// Features of all photos by id, where they exist already.
    #[serde(default)]
    pub features: Option<PathBuf>,
    /// A command that makes `features`; with it, runs skip the backbone while the features are missing.
    #[serde(default)]
    pub made_by: Option<String>,
    /// Classifier of the base classes, W_B, if the network file holds none.
    #[serde(default)]
    pub base_classifier: Option<PathBuf>,
    /// A note for readers, e.g. which novel classes it may have been trained on.
    #[serde(default)]
    pub note: String,
}

impl Config {
    /// Reads a configuration and checks it as far as possible without the data.
    pub fn read(path: &Path) -> Result<Config> {
        let text = std::fs::read_to_string(path).map_err(DataError::io("read", path))?;
        let mut config: Config = toml::from_str(&text).map_err(|error| {
            let message = error.to_string();
            Error::input(
                format!(
                    "`{}` is not a photo benchmark configuration: {}",
                    path.display(),
                    message.trim_end()
                ),
                "`configs/tiny.toml` shows all keys",
            )
        })?;
        config.check(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for backbone in &mut config.backbones {
            for file in [&mut backbone.network, &mut backbone.features, &mut backbone.base_classifier] {
                *file = file.take().map(|file| match BuiltIn::named(&file) {
                    Some(_) => file,
                    None => folder.join(file),
                });
            }
        }
        Ok(config)
    }

    fn check(&self, path: &Path) -> Result<()> {
        let bad = |place: &str, expected: &str, found: String| {
            Err(DataError::malformed(path, place, expected, found).into())
        };
        let CandidateSource { pool, rules, .. } = &self.candidates;
        match (pool, rules.is_empty()) {
            (Some(_), false) => return bad("`candidates`", "`pool` or `rules`", "both".into()),
            (None, true) => return bad("`candidates`", "`pool` or `rules`", "neither".into()),
            (None, false) if self.photos.title.is_none() => {
                return bad("`photos.title`", "a column of titles to match names with", "none".into());
            }
            _ => (),
        }
        if self.photos.files.is_empty() {
            return bad("`photos.files`", "at least one file", "none".into());
        }
        let Protocol { shots, episodes, trials, ways, trial_shots, queries, .. } = &self.protocol;
        for (name, list) in [("`protocol.shots`", shots), ("`protocol.trial_shots`", trial_shots)] {
            if list.is_empty() || list.contains(&0) || !list.is_sorted_by(|a, b| a < b) {
                return bad(name, "ascending positive integers", format!("{list:?}"));
            }
        }
        for (name, value, range) in [
            ("`protocol.episodes`", *episodes, 1..=MAX_EPISODES),
            ("`protocol.trials`", *trials, 1..=MAX_TRIALS),
            ("`protocol.ways`", *ways, 2..=MAX_WAYS),
            ("`protocol.queries`", *queries, 1..=MAX_WAYS),
        ] {
            if !range.contains(&value) {
                return bad(name, &format!("{} to {}", range.start(), range.end()), value.to_string());
            }
        }
        self.check_backbones(path)
    }

    /// The backbone of this name; `path` is the configuration's.
    pub fn backbone(&self, name: &str, path: &Path) -> Result<&Backbone> {
        let names = || self.backbones.iter().map(|backbone| backbone.name.as_str()).collect::<Vec<_>>();
        self.backbones.iter().find(|backbone| backbone.name == name).ok_or_else(|| {
            let known = if names().is_empty() { "none".to_owned() } else { names().join(", ") };
            Error::input(format!("`{}` has no backbone `{name}`", path.display()), format!("it has {known}"))
        })
    }

    fn check_backbones(&self, path: &Path) -> Result<()> {
        let mut seen = std::collections::HashSet::new();
        for Backbone { name, network, features, .. } in &self.backbones {
            let place = format!("backbone `{name}`");
            let sound = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let (expected, found) = if name.is_empty() || !name.chars().all(sound) {
                ("a name of letters, digits, `-`, `_` and `.`", name.as_str())
            } else if !seen.insert(name) {
                ("unique names", "a second one")
            } else if network.is_none() && features.is_none() {
                ("`network` or `features`", "neither")
            } else {
                continue;
            };
            return Err(DataError::malformed(path, place, expected, found).into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = r#"
        title = "t"
        [photos]
        files = ["p.parquet"]
        id = "id"
        image = "image"
        class = "class"
        title = "title"
        role = "role"
        base = "base"
        novel = "novel"
        split = "split"
        train = "train"
        test = "test"
        [candidates]
        rules = ["phrase", "any-word"]
        [[backbone]]
        name = "b"
        features = "f.npz"
    "#;

    fn read(text: &str) -> Result<Config> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, text).unwrap();
        Config::read(&path)
    }

    #[test]
    fn a_sound_configuration_has_the_papers_protocol_and_paths_beside_it() {
        let config = read(SOUND).unwrap();
        assert_eq!((config.protocol.shots.as_slice(), config.protocol.episodes), (&[1, 2, 5, 10, 20][..], 5));
        assert_eq!(config.candidates.rules, [MatchRule::Phrase, MatchRule::AnyWord]);
        assert!(config.backbones[0].features.as_ref().unwrap().is_absolute());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (from, to, message) in [
            ("title = \"t\"", "title = \"t\"\ntitel = 1", "unknown field `titel`"),
            ("id = \"id\"", "", "missing field `id`"),
            ("\"any-word\"", "\"some-word\"", "unknown variant `some-word`"),
            (
                "rules = [\"phrase\", \"any-word\"]",
                "",
                "`candidates`: expected `pool` or `rules`, found neither",
            ),
            (
                "[candidates]",
                "[candidates]\npool = \"x\"",
                "`candidates`: expected `pool` or `rules`, found both",
            ),
            ("        title = \"title\"\n", "", "`photos.title`: expected a column of titles"),
            (
                "[candidates]",
                "[protocol]\nshots = [2, 1]\n[candidates]",
                "`protocol.shots`: expected ascending",
            ),
            ("features = \"f.npz\"", "", "backbone `b`: expected `network` or `features`, found neither"),
            ("name = \"b\"", "name = \"a/b\"", "backbone `a/b`: expected a name of letters"),
        ] {
            assert!(SOUND.contains(from), "{from}");
            let error = format!("{:#}", read(&SOUND.replacen(from, to, 1)).unwrap_err());
            assert!(error.contains(message) && error.contains("c.toml"), "{error}");
        }
    }
}
