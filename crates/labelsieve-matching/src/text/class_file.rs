//! Class files: TOML for people, CSV for spreadsheets, and WordNet synset lists.

use std::io::Write;
use std::path::Path;

use labelsieve_files::storage::encoding::utf8;
use labelsieve_files::storage::input::{is_stream, read};
use labelsieve_files::{AtomicFile, DataError, Result};
use serde::{Deserialize, Serialize};

use super::line_blocks::unclosed_quote;
use super::synset_list;
use crate::names::{ClassEntry, ClassList, NamesError};

/// `[[class]]` tables.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClassFile {
    #[serde(default)]
    class: Vec<ClassRow>,
}

/// A class in the file. The display name defaults to the first name, the names to the display name.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClassRow {
    id: String,
    #[serde(default)]
    display_name: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    exclude: Vec<String>,
}

impl From<ClassRow> for ClassEntry {
    fn from(row: ClassRow) -> ClassEntry {
        let ClassRow { id, mut display_name, mut names, exclude } = row;
        if display_name.is_empty() {
            display_name = names.first().unwrap_or(&id).clone();
        } else if names.is_empty() {
            names.push(display_name.clone());
        }
        ClassEntry { id, display_name, names, exclude }
    }
}

/// Reads `.toml`, `.csv` or, from `.txt`, a list of synsets. A pipe, or `-` for standard input, may contain any of them; a
/// folder has one subfolder per class.
pub fn read_class_file(path: impl AsRef<Path>) -> Result<ClassList> {
    let path = path.as_ref();
    if path.is_dir() {
        return checked(path, classes_of_folder(path)?);
    }
    let text = utf8(path, read(path)?)?;
    let extension = path.extension().and_then(|extension| extension.to_str());
    let classes = match extension {
        Some("toml") => parse_toml(path, &text)?,
        Some("csv") => parse_csv(path, &text)?,
        Some("txt") => synset_list::parse(&text),
        _ if is_stream(path) => parse_by_content(path, &text)?,
        other => {
            let found = other.map_or("none".to_owned(), |extension| format!("`.{extension}`"));
            return Err(DataError::malformed(path, "ending", ".toml, .csv or .txt (synsets)", found));
        }
    };
    checked(path, classes)
}

fn checked(path: &Path, classes: Vec<ClassEntry>) -> Result<ClassList> {
    ClassList::new(classes).map_err(|error| match error {
        NamesError::Class { place, expected, found } => DataError::malformed(path, place, expected, found),
        other => DataError::undecodable(path, "class", other),
    })
}

/// Writes the TOML form, whole or not at all.
pub fn write_class_file(path: impl AsRef<Path>, classes: &ClassList) -> Result<()> {
    let path = path.as_ref();
    let row = |class: &ClassEntry| {
        let ClassEntry { id, display_name, names, exclude } = class.clone();
        ClassRow { id, display_name, names, exclude }
    };
    let file = ClassFile { class: classes.classes().iter().map(row).collect() };
    let text = toml::to_string(&file).map_err(|error| DataError::undecodable(path, "TOML", error))?;
    let mut file = AtomicFile::create(path)?;
    file.write_all(text.as_bytes()).map_err(DataError::io("write", path))?;
    file.commit()
}

/// One class per subfolder, in alphabetical order. Underscores and hyphens in the name of a folder stand for spaces in texts.
fn classes_of_folder(path: &Path) -> Result<Vec<ClassEntry>> {
    let mut classes = Vec::new();
    for entry in std::fs::read_dir(path).map_err(DataError::io("read", path))? {
        let folder = entry.map_err(DataError::io("read", path))?.path();
        let Some(id) = folder.file_name().filter(|_| folder.is_dir()) else { continue };
        let Some(id) = id.to_str() else {
            return Err(DataError::malformed(path, "folders", "names in UTF-8", format!("{id:?}")));
        };
        if !id.starts_with('.') {
            let words: Vec<&str> = id.split(['_', '-', ' ']).filter(|word| !word.is_empty()).collect();
            let name = if words.is_empty() { id.to_owned() } else { words.join(" ") };
            let id = id.to_owned();
            let names = vec![name.clone()];
            let exclude = Vec::new();
            classes.push(ClassEntry { id, display_name: name, names, exclude });
        }
    }
    if classes.is_empty() {
        return Err(DataError::malformed(path, "folders", "one per class", "none"));
    }
    classes.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(classes)
}

/// Parses a stream, which has no extension, by its content.
fn parse_by_content(path: &Path, text: &str) -> Result<Vec<ClassEntry>> {
    let is_data = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let first = text.lines().map(str::trim).find(is_data).unwrap_or_default();
    let is_header = first.split(',').any(|name| name.trim().trim_matches('"') == "id");
    if first.starts_with("[[") || first.starts_with("class") && first.contains('=') {
        parse_toml(path, text)
    } else if is_header {
        parse_csv(path, text)
    } else {
        Ok(synset_list::parse(text))
    }
}

fn parse_toml(path: &Path, text: &str) -> Result<Vec<ClassEntry>> {
    let file: ClassFile = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        DataError::malformed(
            path,
            format!("line {line}"),
            "[[class]] with id, display_name, names, exclude",
            error.message(),
        )
    })?;
    Ok(file.class.into_iter().map(ClassEntry::from).collect())
}

/// Parses CSV with a header `id,display_name,names,exclude`, of which only `id` is required; names in a cell are separated by
/// `|`.
fn parse_csv(path: &Path, text: &str) -> Result<Vec<ClassEntry>> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let malformed = |error: csv::Error| {
        let line = error.position().map_or(1, |position| position.line());
        DataError::malformed(
            path,
            format!("line {line}"),
            "as many fields as in the header",
            error.to_string(),
        )
    };
    let header = reader.headers().map_err(malformed)?.clone();
    for name in &header {
        if !["id", "display_name", "names", "exclude"].contains(&name) {
            let expected = "the columns id, display_name, names and exclude";
            return Err(DataError::malformed(path, "line 1", expected, format!("`{name}`")));
        }
    }
    if let Some(line) = unclosed_quote(text) {
        let expected = "a closing quote for the one that opens here";
        return Err(DataError::malformed(path, format!("line {line}"), expected, "the end of the file"));
    }
    let mut classes = Vec::new();
    for record in reader.records() {
        let record = record.map_err(malformed)?;
        let cell =
            |name| header.iter().position(|column| column == name).and_then(|column| record.get(column));
        let list = |name| {
            let names = cell(name).unwrap_or("").split('|').map(str::trim);
            names.filter(|name| !name.is_empty()).map(String::from).collect()
        };
        let id = cell("id").unwrap_or("").into();
        let display_name = cell("display_name").unwrap_or("").into();
        classes.push(ClassRow { id, display_name, names: list("names"), exclude: list("exclude") }.into());
    }
    Ok(classes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &[u8]) -> Result<ClassList> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        read_class_file(&path)
    }

    fn check_error(name: &str, text: &[u8], expected: &str) {
        let error = read(name, text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    fn churches() -> ClassList {
        let class = |id: &str, display_name: &str, names: &[&str], exclude: &[&str]| ClassEntry {
            id: id.into(),
            display_name: display_name.into(),
            names: names.iter().map(|name| name.to_string()).collect(),
            exclude: exclude.iter().map(|name| name.to_string()).collect(),
        };
        ClassList::new(vec![
            class("n1", "church", &["church", "church building"], &["Church Street"]),
            class("n2", "crane", &["crane"], &[]),
        ])
        .unwrap()
    }

    #[test]
    fn toml_csv_and_synsets_give_the_same_classes() {
        let toml = r#"
            [[class]]
            id = "n1"
            names = ["church", "church building"]
            exclude = ["Church Street"]
            [[class]]
            id = "n2"
            display_name = "crane"
        "#;
        assert_eq!(read("c.toml", toml.as_bytes()).unwrap(), churches());
        let csv =
            "id,names,exclude,display_name\nn1,church | church building,Church Street,church\nn2,,,crane\n";
        assert_eq!(read("c.csv", csv.as_bytes()).unwrap(), churches());
        let synsets = read("c.txt", b"n00000001 church, church building\n").unwrap();
        assert_eq!(synsets.classes()[0].names, churches().classes()[0].names);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        write_class_file(&path, &churches()).unwrap();
        assert_eq!(read_class_file(&path).unwrap(), churches());
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        check_error(
            "c.toml",
            b"[[class]]\nid = \"a\"\nname = \"b\"\n",
            "c.toml`: line 3: expected [[class]] with id",
        );
        check_error("c.toml", b"[[class]]\nid = 3\n", "line 2");
        check_error(
            "c.csv",
            b"id,names\na,b,c\n",
            "c.csv`: line 2: expected as many fields as in the header",
        );
        check_error(
            "c.csv",
            b"id,title\n",
            "line 1: expected the columns id, display_name, names and exclude, found `title`",
        );
        check_error("c.txt", b"", "c.txt`: classes: expected at least one, found none");
        check_error(
            "c.toml",
            b"[[class]]\nid = \"a\"\n",
            "class `a`: expected at least one name, found none",
        );
        check_error("c.xlsx", b"", "expected .toml, .csv or .txt");
        check_error(
            "c.toml",
            b"\nid = \"\xff",
            "line 2: expected text in UTF-8, found what looks like ISO-8859-1",
        );
        check_error(
            "c.csv",
            b"id,names\na,\"cat\nb,dog\n",
            "line 2: expected a closing quote for the one that opens here, found the end of the file",
        );
    }

    #[test]
    fn a_stream_is_parsed_by_its_content() {
        let check = |text: &str, expected: &[&str]| {
            let classes = parse_by_content(Path::new("-"), text).unwrap();
            let ids: Vec<&str> = classes.iter().map(|class| class.id.as_str()).collect();
            assert_eq!(ids, expected, "{text}");
        };
        check("# mine\n[[class]]\nid = \"a\"\nnames = [\"b\"]\n", &["a"]);
        check("names,id\ncat,a\n", &["a"]);
        check("n03028079 church, church building\n", &["n03028079"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String) {
            for name in ["c.toml", "c.csv", "c.txt"] {
                let _ = read(name, text.as_bytes());
            }
        }
    }

    #[test]
    fn a_folder_per_class_names_the_classes() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["barn_owl", "Cat", ".git", "ice-cream"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("notes.txt"), "").unwrap();
        let classes = read_class_file(folder.path()).unwrap();
        let found: Vec<(&str, &str)> =
            classes.classes().iter().map(|class| (class.id.as_str(), class.names[0].as_str())).collect();
        assert_eq!(found, [("Cat", "Cat"), ("barn_owl", "barn owl"), ("ice-cream", "ice cream")]);
        let empty = tempfile::tempdir().unwrap();
        let error = read_class_file(empty.path()).unwrap_err().to_string();
        assert!(error.ends_with(": folders: expected one per class, found none"), "{error}");
    }
}
