//! Files with numbers that no writer of ours lets through.

use std::path::Path;

use crate::common::bytes;
use crate::pictures::write;

/// Writes `X-NAME`, which is `NAME` with `value` as the first number of a tensor, and without its checksum.
pub fn poison(folder: &Path, name: &str, tensor: &str, value: f32) {
    let whole = bytes(folder, name);
    let length = u64::from_le_bytes(*whole.first_chunk().expect("a length")) as usize;
    let header: serde_json::Value = serde_json::from_slice(&whole[8..8 + length]).expect("a header");
    let start = header[tensor]["data_offsets"][0].as_u64().expect("an offset") as usize;
    let place = whole.windows(8).position(|window| window == b"checksum").expect("a checksum");
    let mut changed = whole.clone();
    changed[place..place + 8].copy_from_slice(b"removed!");
    changed[8 + length + start..][..4].copy_from_slice(&value.to_le_bytes());
    write(folder, &format!("X-{name}"), &changed);
}
