//! Digests of the inputs and settings of a run, independent of paths, times and the machine.

use sha2::{Digest as _, Sha256};

/// A SHA-256 under construction. Every piece is prefixed by its length, so that `ab`, `c` differs from `a`, `bc`.
#[derive(Clone, Default)]
pub struct Digest(Sha256);

impl Digest {
    /// The digest with a text added.
    pub fn text(mut self, text: &str) -> Digest {
        self.add_text(text);
        self
    }

    /// The digest with a number added.
    pub fn number(mut self, number: u64) -> Digest {
        self.add_number(number);
        self
    }

    /// Adds a text.
    pub fn add_text(&mut self, text: &str) {
        self.add_number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    /// Adds a number.
    pub fn add_number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    /// Adds the bits of numbers.
    pub fn add_floats(&mut self, values: &[f32]) {
        self.add_number(values.len() as u64);
        for part in values.chunks(1 << 12) {
            let bytes: Vec<u8> = part.iter().flat_map(|value| value.to_le_bytes()).collect();
            self.0.update(bytes);
        }
    }

    /// The digest in hexadecimal digits.
    pub fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_run_into_each_other() {
        let digest = |pieces: &[&str]| {
            pieces.iter().fold(Digest::default(), |digest, piece| digest.text(piece)).finish()
        };
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        assert_ne!(digest(&["ab"]), digest(&["ab", ""]));
        assert_eq!(digest(&["ab", "c"]), digest(&["ab", "c"]));
        // python3 -c 'import hashlib; print(hashlib.sha256(bytes([1,0,0,0,0,0,0,0])).hexdigest())'
        let one = "7c9fa136d4413fa6173637e883b6998d32e1d675f88cddff9dcbcf331820f4b8";
        assert_eq!(Digest::default().number(1).finish(), one);
    }
}
