//! Captions of the images in a tar: `KEY.txt`, or a key of `KEY.json`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use labelsieve_files::{DataError, Result};
use labelsieve_matching::text::CAPTION_NAMES;
use serde_json::Value;

use super::tars::{example_id, split_name};

/// Longer texts are not captions.
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// The captions of the examples for which `wanted` is true. `texts` are keys of the JSON files (by default common ones, and the
/// text file); `id` is a key of the JSON files too. Examples have the ids that `embed` gives them. A truncated tar yields the
/// captions before its end.
pub fn read_tar_captions(
    tar: &Path,
    id: Option<&str>,
    texts: &[String],
    wanted: &dyn Fn(&str) -> bool,
) -> Result<HashMap<String, String>> {
    let file = File::open(tar).map_err(DataError::io("open", tar))?;
    let mut archive = tar::Archive::new(BufReader::new(file));
    let mut captions = HashMap::new();
    let entries = archive.entries_with_seek().map_err(DataError::io("read", tar))?;
    for entry in entries.map_while(std::result::Result::ok) {
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let (key, ending) = split_name(&name);
        if !["txt", "json"].contains(&ending) || entry.size() > MAX_TEXT_BYTES {
            continue;
        }
        if ending == "txt" && !wanted(key) {
            continue;
        }
        let mut bytes = Vec::new();
        if entry.take(MAX_TEXT_BYTES).read_to_end(&mut bytes).is_err() {
            break;
        }
        let found = match ending {
            "txt" if id.is_none() && texts.is_empty() => {
                Some((key.to_owned(), String::from_utf8_lossy(&bytes).trim().to_owned()))
            }
            "json" => of_json(&bytes, key, id, texts),
            _ => None,
        };
        if let Some((id, caption)) = found.filter(|(id, caption)| wanted(id) && !caption.is_empty()) {
            captions.entry(id).or_insert(caption);
        }
    }
    Ok(captions)
}

fn of_json(bytes: &[u8], key: &str, id: Option<&str>, texts: &[String]) -> Option<(String, String)> {
    let json: Value = serde_json::from_slice(bytes).ok()?;
    let value = |name: &str| match json.get(name)? {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let id = example_id(&json, id).unwrap_or_else(|| key.to_owned());
    let caption = match texts {
        [] => CAPTION_NAMES.into_iter().find_map(value),
        texts => texts.iter().find_map(|name| value(name)),
    };
    Some((id, caption?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, files: &[(&str, &str)]) {
        let mut builder = tar::Builder::new(File::create(path).unwrap());
        for (name, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        builder.finish().unwrap();
    }

    #[test]
    fn captions_come_from_text_files_and_json() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.tar");
        let json = r#"{"caption": "an owl", "note": "at night", "uid": 7}"#;
        write(&path, &[("a.jpg", "x"), ("a.txt", " a cat\n"), ("b.json", json), ("c.txt", "no")]);
        let read = |id: Option<&str>, texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
            let mut found: Vec<_> =
                read_tar_captions(&path, id, &texts, &|id| id != "c").unwrap().into_iter().collect();
            found.sort();
            found
        };
        let pair = |id: &str, text: &str| (id.to_owned(), text.to_owned());
        assert_eq!(read(None, &[]), [pair("a", "a cat"), pair("b", "an owl")]);
        assert_eq!(read(None, &["note"]), [pair("b", "at night")]);
        assert_eq!(read(Some("uid"), &[]), [pair("7", "an owl")]);
        let json = r#"{"caption": "an owl", "id": "photo 7", "key": "000", "status": "success"}"#;
        write(&path, &[("000.jpg", "x"), ("000.txt", "an owl"), ("000.json", json)]);
        let found = read_tar_captions(&path, None, &[], &|id| id == "photo 7").unwrap();
        assert_eq!(found.get("photo 7").map(String::as_str), Some("an owl"));
    }
}
