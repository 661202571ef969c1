//! Fingerprints of networks: two networks with the same one make the same features.

use half::f16;
use labelsieve_files::work::Result;
use sha2::{Digest, Sha256};

use crate::opening::network::{CENTRE_TENSOR, OpenedNetwork};
use crate::{Pca, weights};

/// Hexadecimal digits of the digest that are kept: enough to tell any two networks apart.
const DIGITS: usize = 16;

/// The name of a network and a digest of all that determines its features: weights, size and view of images, channel
/// statistics, the centre. A fine-tuned network is a different network.
#[derive(Clone)]
pub struct Fingerprint {
    name: String,
    digest: Sha256,
}

impl Fingerprint {
    /// Starts a fingerprint with the name of the network.
    pub fn new(name: &str) -> Fingerprint {
        Fingerprint { name: name.to_owned(), digest: Sha256::new() }
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.digest.update(bytes);
    }

    /// Adds a tensor. A matrix is rounded to 16 bits, so that a network saved in 16 and in 32 bits has one fingerprint: its
    /// features agree to three digits. Further training changes more than that.
    pub fn add_tensor(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        self.add(format!("{name} {shape:?}\n").as_bytes());
        match shape.len() {
            0 | 1 => self.add_exactly(values),
            _ => {
                let halves = |part: &[f32]| {
                    part.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect::<Vec<u8>>()
                };
                values.chunks(1 << 16).for_each(|part| self.add(&halves(part)));
            }
        }
    }

    fn add_exactly(&mut self, values: &[f32]) {
        values.iter().for_each(|value| self.add(&value.to_le_bytes()));
    }

    /// Name and digest of the network, and of the PCA that its features went through, as a text.
    pub fn text(&self, pca: Option<&Pca>) -> String {
        let mut all = self.clone();
        if let Some(pca) = pca {
            for (name, _, values) in pca.tensors() {
                all.add(format!("{name}\n").as_bytes());
                all.add_exactly(&values);
            }
            all.name.push_str(&format!("+pca{}", pca.width()));
        }
        let hex: String = all.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{} {}", all.name, &hex[..DIGITS])
    }
}

/// The fingerprint of a network of this project, without its classifier.
pub fn network_fingerprint(opened: &OpenedNetwork) -> Result<Fingerprint> {
    let metadata = &opened.metadata;
    let mut fingerprint = Fingerprint::new(&metadata.architecture);
    let looks = format!(
        "{} {} {:?} {:?} {:?} {:?}\n",
        metadata.architecture,
        serde_json::json!(opened.view),
        metadata.image_size,
        opened.network.mean.map(f32::to_bits),
        opened.network.deviation.map(f32::to_bits),
        opened.network.dim(),
    );
    fingerprint.add(looks.as_bytes());
    let tensors = weights::to_tensors(&opened.network, &opened.snapshot)?;
    for (name, shape, values) in tensors.iter().filter(|(name, _, _)| !name.starts_with("classifier.")) {
        fingerprint.add_tensor(name, shape, values);
    }
    if let Some(centre) = &opened.centre {
        fingerprint.add_tensor(CENTRE_TENSOR, &[centre.len()], centre);
    }
    Ok(fingerprint)
}
