//! The networks that come with the program.

use std::path::Path;

/// A network that comes with the program.
#[derive(Debug)]
pub struct BuiltIn {
    /// What `--model` calls it.
    pub name: &'static str,
    /// Its file, as `labelsieve pretrain` wrote it.
    pub file: &'static [u8],
}

/// ResNet-10, trained on 64×64 photos of 76 classes (`models/README.md`).
pub static TINY_RESNET10: BuiltIn =
    BuiltIn { name: "tiny-resnet10", file: include_bytes!("../../networks/tiny-resnet10.safetensors") };

impl BuiltIn {
    /// All of them, the usual one first.
    pub fn all() -> [&'static BuiltIn; 1] {
        [&TINY_RESNET10]
    }

    /// The one that is used when none is chosen.
    pub fn usual() -> &'static BuiltIn {
        BuiltIn::all()[0]
    }

    /// The one of this name. A file of the same name has to be given with a folder: `./NAME`.
    pub fn named(model: &Path) -> Option<&'static BuiltIn> {
        BuiltIn::all().into_iter().find(|network| model.as_os_str() == network.name)
    }
}
