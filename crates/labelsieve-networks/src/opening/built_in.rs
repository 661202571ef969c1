//! The built-in network.

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

/// Networks in `models` of the repository, which are given as files.
pub const IN_REPOSITORY: [&str; 4] =
    ["fashion-convnet128", "fashion-resnet10", "tiny-convnet128", "tiny-resnet10"];

impl BuiltIn {
    /// The default.
    pub fn usual() -> &'static BuiltIn {
        &EFFICIENTNET_LITE0
    }

    /// The network of this name. For a file of the same name, pass `./NAME`.
    pub fn named(model: &Path) -> Option<&'static BuiltIn> {
        Some(BuiltIn::usual()).filter(|network| model.as_os_str() == network.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opening::network::{NetworkPart, open_network};
    use labelsieve_files::work::Error;

    #[test]
    fn the_built_in_network_opens_by_its_name() {
        let opened = open_network(Path::new("efficientnet-lite0"), NetworkPart::Features, None).unwrap();
        assert!(opened.centre.is_some());
        assert_eq!(BuiltIn::usual().name, "efficientnet-lite0");
        assert!(BuiltIn::named(Path::new("./efficientnet-lite0")).is_none(), "a path is a path");
    }

    #[test]
    fn networks_of_the_repository_are_files() {
        for name in IN_REPOSITORY {
            let path = format!("{}/../../models/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
            open_network(Path::new(&path), NetworkPart::Features, None).unwrap();
        }
    }

    #[test]
    fn a_misspelt_name_gets_the_near_one() {
        let refused = |name: &str| match open_network(Path::new(name), NetworkPart::Features, None).err() {
            Some(Error::Input { message, hint }) => (message.to_string(), hint.to_string()),
            Some(error) => (error.to_string(), String::new()),
            None => panic!("{name} was opened"),
        };
        let (message, near) = refused("eficientnet_lite0");
        assert_eq!(message, "there is no network `eficientnet_lite0`");
        assert_eq!(near, "did you mean `efficientnet-lite0`? it is the only built-in network");
        for name in ["tiny-resnet10", "tiny_resnet10"] {
            let (message, near) = refused(name);
            assert_eq!(message, format!("the network `{name}` is not built in"));
            assert_eq!(near, "pass its file: `models/tiny-resnet10.safetensors` of the repository");
        }
        let (message, list) = refused("clip");
        assert_eq!(message, "there is no file, folder or built-in network `clip`");
        assert!(list.starts_with("the built-in network is `efficientnet-lite0`; "), "{list}");
        assert!(refused("no/such.safetensors").0.starts_with("cannot read `no/such.safetensors`"));
    }
}
