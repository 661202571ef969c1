//! Pickles of a part: `image_data` with `class_dict`, or `data` with `labels` and `catname2label`.

use std::collections::BTreeMap;
use std::path::Path;

use labelsieve_files::{DataError, Result};

use super::pickle::{Array, Value, parse};
use super::{MiniImage, MiniPhoto};

/// Passes the photos of a pickle to `each`.
pub(super) fn photos(path: &Path, each: &mut dyn FnMut(MiniPhoto) -> Result<()>) -> Result<()> {
    let bytes = std::fs::read(path).map_err(DataError::io("read", path))?;
    let Value::Dict(pairs) = parse(path, &bytes)? else {
        return Err(DataError::malformed(path, "pickle", "a dictionary", "something else"));
    };
    let entry = |name: &str| {
        pairs.iter().find(|(key, _)| key.text().as_deref() == Some(name)).map(|(_, value)| value)
    };
    let images = match entry("image_data").or(entry("data")) {
        Some(Value::Array(array)) if array.dtype == "u1" && array.shape.len() == 4 && array.shape[3] == 3 => {
            array
        }
        Some(_) => {
            let expected = "an array of bytes, photos × height × width × 3";
            return Err(DataError::malformed(path, "photos", expected, "something else"));
        }
        None => return Err(DataError::malformed(path, "pickle", "`image_data` or `data`", "neither")),
    };
    let classes = match (entry("class_dict"), entry("labels")) {
        (Some(classes), _) => by_class(path, classes)?,
        (None, Some(labels)) => by_label(path, labels, entry("catname2label"))?,
        (None, None) => {
            return Err(DataError::malformed(path, "pickle", "`class_dict` or `labels`", "neither"));
        }
    };
    for (class, rows) in classes {
        for row in rows {
            let image = pixels(path, images, &class, row)?;
            each(MiniPhoto { id: format!("{class}-{row}"), class: class.clone(), image })?;
        }
    }
    Ok(())
}

/// `class_dict`: the rows of each class.
fn by_class(path: &Path, classes: &Value) -> Result<BTreeMap<String, Vec<i64>>> {
    let wrong = || DataError::malformed(path, "`class_dict`", "lists of rows by class", "something else");
    let Value::Dict(pairs) = classes else { return Err(wrong()) };
    pairs
        .iter()
        .map(|(name, rows)| Some((name.text()?, rows.ints()?)))
        .collect::<Option<_>>()
        .ok_or_else(wrong)
}

/// `labels`: the class of each row, by number; `catname2label` has the names.
fn by_label(path: &Path, labels: &Value, names: Option<&Value>) -> Result<BTreeMap<String, Vec<i64>>> {
    let labels =
        labels.ints().ok_or_else(|| DataError::malformed(path, "`labels`", "integers", "something else"))?;
    let mut name_of: BTreeMap<i64, String> = BTreeMap::new();
    if let Some(Value::Dict(pairs)) = names {
        name_of.extend(pairs.iter().filter_map(|(name, label)| match label {
            Value::Int(label) => Some((*label, name.text()?)),
            _ => None,
        }));
    }
    let mut classes: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (row, label) in labels.iter().enumerate() {
        let name = name_of.get(label).cloned().unwrap_or_else(|| label.to_string());
        classes.entry(name).or_default().push(row as i64);
    }
    Ok(classes)
}

fn pixels(path: &Path, images: &Array, class: &str, row: i64) -> Result<MiniImage> {
    let n = images.shape[0];
    let height = images.shape[1];
    let width = images.shape[2];
    let Some(place) = usize::try_from(row).ok().filter(|&row| row < n) else {
        let expected = format!("rows below {n}");
        return Err(DataError::malformed(path, format!("class `{class}`"), expected, row.to_string()));
    };
    let size = height * width * 3;
    Ok(MiniImage::Pixels { height, width, rgb: images.data[place * size..(place + 1) * size].to_vec() })
}
