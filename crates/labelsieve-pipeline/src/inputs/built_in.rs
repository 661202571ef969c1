//! The network that comes with the program.

/// What it is called: ResNet-10, trained on 64×64 photos of 76 classes (`models/README.md`).
pub const NETWORK_NAME: &str = "tiny-resnet10";

/// Its file, as `labelsieve pretrain` wrote it.
pub const NETWORK: &[u8] = include_bytes!("../../networks/tiny-resnet10.safetensors");
