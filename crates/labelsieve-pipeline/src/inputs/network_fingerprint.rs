//! What tells the features of one network from those of another.

use half::f16;
use labelsieve_vision::{Pca, weights};
use sha2::{Digest, Sha256};

use crate::error::Result;
use crate::inputs::network::OpenedNetwork;

/// Hexadecimal digits of the digest that are kept: enough to tell any two networks apart.
const DIGITS: usize = 16;

/// The architecture, and a digest of all that decides a feature: weights, stem, size and view of images, channel
/// statistics, PCA. A fine-tuned network is another network.
///
/// Weights count as 16-bit files would store them, so a network saved in 16 and in 32 bits is one network: its features
/// agree to three digits. What is trained further differs in more than that.
pub fn network_fingerprint(opened: &OpenedNetwork, pca: Option<&Pca>) -> Result<String> {
    let mut digest = Sha256::new();
    let metadata = &opened.metadata;
    digest.update(format!(
        "{} {} {:?} {:?} {:?} {:?}\n",
        metadata.architecture,
        serde_json::json!(opened.view),
        metadata.image_size,
        opened.network.mean.map(f32::to_bits),
        opened.network.deviation.map(f32::to_bits),
        opened.network.dim(),
    ));
    let tensors = weights::to_tensors(&opened.network, &opened.snapshot)?;
    for (name, shape, values) in tensors.iter().filter(|(name, _, _)| !name.starts_with("classifier.")) {
        digest.update(format!("{name} {shape:?}\n"));
        match shape.len() {
            0 | 1 => values.iter().for_each(|value| digest.update(value.to_le_bytes())),
            _ => values.iter().for_each(|&value| digest.update(f16::from_f32(value).to_le_bytes())),
        }
    }
    let mut name = metadata.architecture.clone();
    if let Some(pca) = pca {
        for (name, _, values) in pca.tensors() {
            digest.update(format!("{name}\n"));
            values.iter().for_each(|value| digest.update(value.to_le_bytes()));
        }
        name.push_str(&format!("+pca{}", pca.width()));
    }
    let hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{name} {}", &hex[..DIGITS]))
}
