//! The built-in networks.

use std::path::Path;

/// A built-in network.
#[derive(Debug)]
pub struct BuiltIn {
    /// Its name, given in place of a path.
    pub name: &'static str,
    /// Its file.
    pub file: &'static [u8],
}

/// EfficientNet-Lite0, trained on ImageNet-1k by others (`models/README.md`).
pub static EFFICIENTNET_LITE0: BuiltIn =
    BuiltIn { name: labelsieve_efficientnet::NAME, file: labelsieve_efficientnet::NETWORK };

/// ResNet-10, trained on 64×64 photos of 76 classes (`models/README.md`).
pub static TINY_RESNET10: BuiltIn =
    BuiltIn { name: "tiny-resnet10", file: include_bytes!("../../networks/tiny-resnet10.safetensors") };

impl BuiltIn {
    /// All of them, the default first.
    pub fn all() -> [&'static BuiltIn; 2] {
        [&EFFICIENTNET_LITE0, &TINY_RESNET10]
    }

    /// The default.
    pub fn usual() -> &'static BuiltIn {
        BuiltIn::all()[0]
    }

    /// The network of this name. For a file of the same name, pass `./NAME`.
    pub fn named(model: &Path) -> Option<&'static BuiltIn> {
        BuiltIn::all().into_iter().find(|network| model.as_os_str() == network.name)
    }

    /// The names of all, for people.
    pub fn names() -> String {
        BuiltIn::all().map(|network| network.name).join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opening::network::{Wanted, open_network};
    use labelsieve_files::work::Error;

    #[test]
    fn every_built_in_network_opens_by_its_name() {
        for network in BuiltIn::all() {
            let opened = open_network(Path::new(network.name), Wanted::Features, None).unwrap();
            assert_eq!(opened.centre.is_some(), network.name == "efficientnet-lite0", "{}", network.name);
        }
        assert_eq!(BuiltIn::usual().name, "efficientnet-lite0");
        assert!(BuiltIn::named(Path::new("./tiny-resnet10")).is_none(), "a path is a path");
    }

    #[test]
    fn a_misspelt_name_gets_the_near_one_and_the_list() {
        let hint = |name: &str| match open_network(Path::new(name), Wanted::Features, None).err() {
            Some(Error::Input { message, hint }) => (message.to_string(), hint.to_string()),
            Some(error) => (error.to_string(), String::new()),
            None => panic!("{name} was opened"),
        };
        let (message, near) = hint("eficientnet_lite0");
        assert_eq!(message, "there is no network `eficientnet_lite0`");
        assert_eq!(
            near,
            "did you mean `efficientnet-lite0`? built-in networks: efficientnet-lite0, tiny-resnet10"
        );
        let (message, list) = hint("clip");
        assert_eq!(message, "there is no file, folder or built-in network `clip`");
        assert!(list.starts_with("built-in networks: efficientnet-lite0, tiny-resnet10; "), "{list}");
        assert!(hint("no/such.safetensors").0.starts_with("cannot read `no/such.safetensors`"));
    }
}
