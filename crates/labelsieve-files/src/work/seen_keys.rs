//! Which keys were seen before.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

/// Keys of photos that were seen, as digests: a hundred million of them take some gigabytes less than their texts.
#[derive(Default)]
pub struct SeenKeys {
    digests: HashSet<[u8; 16]>,
}

impl SeenKeys {
    /// Whether this key is seen for the first time.
    pub fn is_new(&mut self, key: &str) -> bool {
        let mut digest = [0; 16];
        digest.copy_from_slice(&Sha256::digest(key.as_bytes())[..16]);
        self.digests.insert(digest)
    }
}
