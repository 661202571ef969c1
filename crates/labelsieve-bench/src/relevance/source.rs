//! The sets to measure: photo sets of configurations, the icons, and generated sets.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use labelsieve_files::work::{Error, Monitor, Result, option, words};

use super::Relevance;
use crate::photos::prepare::data_folder;
use crate::sets::{KnownSet, generated, icons, photos};

/// `NAME=FILE`.
#[derive(Clone, Debug)]
pub struct NamedFile {
    name: String,
    path: PathBuf,
}

impl FromStr for NamedFile {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedFile, String> {
        let (name, path) = text.split_once('=').ok_or("expected CONFIG=FILE, e.g. tiny=features.parquet")?;
        Ok(NamedFile { name: name.to_owned(), path: path.into() })
    }
}

const ICONS: &str = "icons";
/// The name of the bundled network in configurations.
const BUILT_IN: &str = "built-in";

impl Relevance {
    /// Reads the requested sets.
    pub(super) fn read_sets(&self, monitor: &dyn Monitor) -> Result<Vec<KnownSet>> {
        let stems = self.stems();
        let mut sets = Vec::new();
        for (config, stem) in self.configs.iter().zip(&stems).filter(|(_, stem)| self.wants_some_of(stem)) {
            let data = data_folder(config, self.data.as_deref());
            let source = photos::Source {
                config,
                data: &data,
                backbone: self.backbone.as_deref(),
                features: self.features_of(stem),
                folder: &self.output.join(stem),
                device: self.device,
            };
            sets.extend(photos::read(&source, monitor)?.into_iter().filter(|set| self.wants(&set.name)));
        }
        if self.wants(ICONS) {
            let network = match self.backbone.as_deref() {
                Some(BUILT_IN) => icons::Network::BuiltIn,
                None => icons::Network::Own,
                Some(_) if !self.configs.is_empty() => icons::Network::Own, // the name belongs to one of the configurations
                Some(other) => {
                    return Err(Error::input(
                        format!("backbone `{other}`: expected {BUILT_IN}, or one of a configuration"),
                        words!["leave out ", option("backbone"), " for the icons' own network"],
                    ));
                }
            };
            let folder = self.output.join(ICONS);
            let features = self.features_of(ICONS);
            sets.push(icons::read(&folder, network, features, self.device, monitor)?);
        }
        for name in generated::names().filter(|name| self.wants(name)) {
            sets.extend(generated::generate(&name, self.seed).transpose()?);
        }
        let unknown = self.sets.iter().find(|asked| !sets.iter().any(|set| is_of(&set.name, asked)));
        unknown.map_or(Ok(sets), |name| Err(unknown_set(name, &stems)))
    }

    /// The precomputed features of a set.
    fn features_of(&self, set: &str) -> Option<&Path> {
        self.features.iter().find(|features| features.name == set).map(|features| features.path.as_path())
    }

    fn stems(&self) -> Vec<String> {
        self.configs.iter().map(|config| stem(config)).collect()
    }

    fn wants(&self, set: &str) -> bool {
        self.sets.is_empty() || self.sets.iter().any(|asked| is_of(set, asked))
    }

    /// Whether a set of this configuration may be requested, decided before reading it.
    fn wants_some_of(&self, stem: &str) -> bool {
        self.wants(stem) || self.sets.iter().any(|asked| is_of(asked, stem))
    }

    /// Rejects unknown and ambiguous names before reading any set. Configurations name their sets, so their names must differ
    /// from each other and from the built-in sets.
    pub(super) fn check_names(&self) -> Result<()> {
        let stems = self.stems();
        for (i, name) in stems.iter().enumerate() {
            if stems[..i].contains(name) || [ICONS, generated::NAME].contains(&name.as_str()) {
                return Err(Error::input(
                    format!("two sets are named `{name}`"),
                    "sets are named after the files of their configurations; rename one",
                ));
            }
        }
        let has_features = |name: &String| stems.contains(name) || name == ICONS;
        if let Some(features) = self.features.iter().find(|features| !has_features(&features.name)) {
            return Err(Error::input(
                words![option("features"), format!(": unknown configuration `{}`", features.name)],
                format!("expected one of {}", [stems, vec![ICONS.to_owned()]].concat().join(", ")),
            ));
        }
        let built_in = || generated::names().chain([ICONS.to_owned()]);
        let may_be = |asked: &String| {
            built_in().any(|set| is_of(&set, asked))
                || stems.iter().any(|stem| is_of(asked, stem) || is_of(stem, asked))
        };
        self.sets.iter().find(|asked| !may_be(asked)).map_or(Ok(()), |name| Err(unknown_set(name, &stems)))
    }
}

fn unknown_set(name: &str, stems: &[String]) -> Error {
    let known: Vec<String> =
        stems.iter().cloned().chain([ICONS.to_owned()]).chain(generated::names()).collect();
    Error::input(
        words![option("sets"), format!(": unknown set `{name}`")],
        format!("expected one of {}; photo sets need their configuration", known.join(", ")),
    )
}

/// Whether `asked` is the set or a group that it belongs to, as `fashion` is the group of `fashion-phrase`.
fn is_of(set: &str, asked: &str) -> bool {
    set.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn stem(config: &Path) -> String {
    config.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_names_its_sets_and_a_prefix_that_is_no_group_does_not() {
        assert!(is_of("fashion-any-word", "fashion") && is_of("icons", "icons"));
        assert!(!is_of("fashion-any-word", "fash") && !is_of("fashion", "fashion-any-word"));
    }
}
