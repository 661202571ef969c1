//! Refusing features of different networks: their columns are not comparable, even if the widths agree.

use std::collections::BTreeMap;
use std::path::Path;

use crate::work::{Error, Result, option, words};
use crate::{ExampleTable, NETWORK_KEY, RelevanceTable};

/// Whether features of different networks may be used together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MixedNetworks {
    /// Refuse them.
    #[default]
    Refuse,
    /// Use them as they are.
    Accept,
}

/// A file, and the network that its features come from.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    /// The file.
    pub path: &'a Path,
    /// The fingerprint of the network, where the file has one.
    pub network: Option<&'a str>,
}

impl<'a> Origin<'a> {
    /// A file and its network.
    pub fn new(path: &'a Path, network: Option<&'a String>) -> Origin<'a> {
        Origin { path, network: network.map(String::as_str) }
    }
}

impl<'a> From<&'a ExampleTable> for Origin<'a> {
    fn from(table: &'a ExampleTable) -> Origin<'a> {
        Origin::new(&table.path, table.network.as_ref())
    }
}

impl<'a> From<&'a RelevanceTable> for Origin<'a> {
    fn from(table: &'a RelevanceTable) -> Origin<'a> {
        Origin::new(&table.path, table.metadata.get(NETWORK_KEY))
    }
}

impl MixedNetworks {
    /// Refuses files of different networks. Files of unknown origin are compatible with all.
    pub fn check(self, files: &[Origin]) -> Result<()> {
        let named = || files.iter().filter_map(|file| Some((file.path, file.network?)));
        let Some((path, network)) = named().next() else { return Ok(()) };
        match named().find(|(_, other)| *other != network) {
            Some((other_path, other)) if self == MixedNetworks::Refuse => Err(Error::input(
                format!(
                    "`{}` was made with network {other}, but `{}` with {network}",
                    other_path.display(),
                    path.display()
                ),
                words!["embed all images with one network, or pass ", option("allow_mixed")],
            )),
            _ => Ok(()),
        }
    }
}

/// The network that all these files share, if they do; results computed from them record it.
pub fn common_network(files: &[Origin]) -> Option<String> {
    let mut names: Vec<&str> = files.iter().filter_map(|file| file.network).collect();
    names.dedup();
    match names[..] {
        [only] => Some(only.to_owned()),
        _ => None,
    }
}

/// The metadata of a Parquet file with this network.
pub fn network_metadata(network: Option<String>) -> BTreeMap<String, String> {
    network.map(|network| (NETWORK_KEY.to_owned(), network)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(path: &'a str, network: Option<&'a str>) -> Origin<'a> {
        Origin { path: Path::new(path), network }
    }

    #[test]
    fn files_without_a_network_go_with_all_and_others_must_agree() {
        let strict = MixedNetworks::default();
        let agreeing = [of("a", None), of("b", Some("x 1")), of("c", None), of("d", Some("x 1"))];
        strict.check(&agreeing).unwrap();
        assert_eq!(common_network(&agreeing).as_deref(), Some("x 1"));
        let mixed = [of("a", None), of("b", Some("x 1")), of("c", Some("x 2"))];
        let error = strict.check(&mixed).unwrap_err().to_string();
        assert_eq!(error, "`c` was made with network x 2, but `b` with x 1");
        MixedNetworks::Accept.check(&mixed).unwrap();
        assert_eq!(common_network(&mixed), None);
        assert_eq!(common_network(&[]), None);
    }
}
