//! Detecting duplicate keys.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

/// A set of keys, stored as digests: a hundred million of them take some gigabytes less than their texts.
#[derive(Default)]
pub struct SeenKeys {
    digests: HashSet<[u8; 16]>,
}

impl SeenKeys {
    /// Adds a key; returns whether it is new.
    pub fn is_new(&mut self, key: &str) -> bool {
        let mut digest = [0; 16];
        digest.copy_from_slice(&Sha256::digest(key.as_bytes())[..16]);
        self.digests.insert(digest)
    }
}
