//! Reads the values under `tests/golden`, which independent Python made (`make_golden.py` there says how).

use labelsieve::Features;
use serde_json::Value;

/// A golden file by name.
pub(crate) fn read(name: &str) -> Value {
    let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The numbers of a list of any depth, in order.
pub(crate) fn numbers(value: &Value) -> Vec<f32> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap() as f32],
    }
}

/// A whole number.
pub(crate) fn count(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

/// A matrix of rows as features.
pub(crate) fn features(value: &Value) -> Features {
    let dim = value[0].as_array().unwrap().len();
    Features::new(numbers(value), dim).unwrap()
}

/// Fails unless the two agree everywhere to `tolerance`.
#[track_caller]
pub(crate) fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= tolerance, "at {i}: found {found}, expected {expected}");
    }
}
