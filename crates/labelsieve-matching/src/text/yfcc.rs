//! The metadata of YFCC100M: tab-separated, percent-encoded, 25 fields or, in an older layout, 23.

use super::keep::KeepColumn;
use super::rows::{BadRow, RowSink, Tally, numbered_lines};
use crate::names::TextEncoding;

/// The fields that hold text; their distance from the title is the same in both layouts.
pub(super) const TEXT_FIELDS: [&str; 4] = ["title", "description", "user_tags", "machine_tags"];
/// The first of them is the photo's own title; machine tags are codes rather than words.
pub(super) const DEFAULT_TEXT_FIELDS: [&str; 3] = ["title", "description", "user_tags"];

/// All fields of the full layout, by their usual names; names without underscores (`downloadurl`, as in the dataset's database)
/// are accepted as well.
const FIELDS: [(&str, TextEncoding); MAX_FIELDS] = {
    use TextEncoding::{Percent, Plain};
    [
        ("line_number", Plain),
        ("photo_id", Plain),
        ("hash", Plain),
        ("user_id", Plain),
        ("user_nickname", Percent),
        ("date_taken", Plain),
        ("date_uploaded", Plain),
        ("capture_device", Percent),
        ("title", Percent),
        ("description", Percent),
        ("user_tags", Percent),
        ("machine_tags", Percent),
        ("longitude", Plain),
        ("latitude", Plain),
        ("accuracy", Plain),
        ("page_url", Plain),
        ("download_url", Plain),
        ("license_name", Percent),
        ("license_url", Plain),
        ("server_id", Plain),
        ("farm_id", Plain),
        ("secret", Plain),
        ("original_secret", Plain),
        ("extension", Plain),
        ("marker", Plain),
    ]
};

/// The fields to read of each line.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    /// Positions in [`TEXT_FIELDS`].
    pub(super) texts: Vec<usize>,
    /// For each column to keep, its position in the full layout.
    pub(super) keep: Vec<Option<usize>>,
}

/// The position of a field in the full layout.
pub(super) fn field(name: &str) -> Option<usize> {
    let is_it = |field: &str| field == name || field.replace('_', "") == name;
    FIELDS.iter().position(|(field, _)| is_it(field))
}

/// The names of all fields, in the spelling of `keep`.
pub(super) fn names_like(keep: &[KeepColumn]) -> Vec<String> {
    let spelled = |column: &KeepColumn| match column {
        KeepColumn::Named(name) | KeepColumn::Url(Some(name)) => Some((field(name)?, name.clone())),
        KeepColumn::Url(None) | KeepColumn::FirstText => None,
    };
    let mut names: Vec<String> = FIELDS.iter().map(|(name, _)| name.to_string()).collect();
    keep.iter().filter_map(spelled).for_each(|(field, name)| names[field] = name);
    names
}

/// The positions of the fields that are read.
struct Layout {
    id: usize,
    title: usize,
    marker: usize,
}

const FULL: Layout = Layout { id: 1, title: 8, marker: 24 };
/// Without the line number and the hash.
const SHORT: Layout = Layout { id: 0, title: 6, marker: 22 };
const MAX_FIELDS: usize = 25;

/// Whether a line has this format, for files without a known extension.
pub(super) fn is_yfcc(line: &[u8]) -> bool {
    read_line(line).is_ok_and(|line| line.id.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Reads every line of `block`.
pub(super) fn read_block(block: &[u8], columns: &Fields, sink: &mut impl RowSink, tally: &mut Tally) {
    for (number, line) in numbered_lines(block) {
        match read_line(line).and_then(|line| push_row(&line, columns, sink)) {
            Ok(MediaKind::Photo) => tally.n_rows += 1,
            Ok(MediaKind::Video) => tally.n_skipped += 1,
            Err(fault) => {
                sink.forget_row();
                tally.add_bad(match fault {
                    LineFault::Encoding => BadRow::in_other_encoding(number, line),
                    LineFault::Line(expected, found) => BadRow::new(number, expected, found),
                });
            }
        }
    }
}

enum MediaKind {
    Photo,
    Video,
}

/// The reason why a line is malformed.
enum LineFault {
    /// The expected and the actual value.
    Line(&'static str, String),
    Encoding,
}

/// A parsed line.
struct Line<'a> {
    id: &'a str,
    marker: &'a [u8],
    texts: [&'a [u8]; 4],
    fields: [&'a [u8]; MAX_FIELDS],
    is_full: bool,
}

impl Line<'_> {
    /// A field of the full layout; `None` if the line lacks it.
    fn get(&self, field: usize) -> Option<&[u8]> {
        let at = match (self.is_full, field) {
            (true, _) => field,
            (false, 0 | 2) => return None,
            (false, 1) => 0,
            (false, _) => field - 2,
        };
        Some(self.fields[at]).filter(|value| !value.is_empty())
    }
}

fn read_line(line: &[u8]) -> Result<Line<'_>, LineFault> {
    let mut fields = [&b""[..]; MAX_FIELDS];
    let mut n_fields = 0;
    let mut start = 0;
    for end in memchr::memchr_iter(b'\t', line).chain([line.len()]) {
        if n_fields < MAX_FIELDS {
            fields[n_fields] = &line[start..end];
        }
        n_fields += 1;
        start = end + 1;
    }
    let layout = match n_fields {
        25 => FULL,
        23 => SHORT,
        n => return Err(LineFault::Line("23 or 25 tab-separated fields", n.to_string())),
    };
    let id = std::str::from_utf8(fields[layout.id]).map_err(|_| LineFault::Encoding)?;
    if id.is_empty() {
        return Err(LineFault::Line("a photo id", "an empty field".to_string()));
    }
    let texts = [0, 1, 2, 3].map(|distance| fields[layout.title + distance]);
    Ok(Line { id, marker: fields[layout.marker], texts, fields, is_full: n_fields == MAX_FIELDS })
}

fn push_row(line: &Line, columns: &Fields, sink: &mut impl RowSink) -> Result<MediaKind, LineFault> {
    match line.marker {
        b"0" => {}
        b"1" => return Ok(MediaKind::Video),
        other => {
            let found = format!("`{}`", other.escape_ascii());
            return Err(LineFault::Line("marker 0 (photo) or 1 (video)", found));
        }
    }
    for (column, &field) in columns.texts.iter().enumerate() {
        let text = std::str::from_utf8(line.texts[field]).map_err(|_| LineFault::Encoding)?;
        let is_tag_list = field >= 2;
        if is_tag_list {
            // Each tag is a text of its own: the tags `black` and `bear` do not contain `black bear`.
            text.split(',')
                .filter(|tag| !tag.is_empty())
                .for_each(|tag| sink.text(column, tag, TextEncoding::Percent));
        } else {
            sink.text(column, text, TextEncoding::Percent);
        }
    }
    sink.end_row(line.id, &|column| {
        let field = columns.keep[column]?;
        let value = String::from_utf8_lossy(line.get(field)?);
        Some(FIELDS[field].1.decode(&value).into_owned())
    });
    Ok(MediaKind::Photo)
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::Notes;
    use super::*;

    fn line(n_fields: usize, title: &str, marker: &str) -> String {
        let layout = if n_fields == 25 { FULL } else { SHORT };
        let mut fields = vec!["x".to_string(); n_fields];
        fields[layout.id] = "42".into();
        fields[layout.title] = title.into();
        fields[layout.title + 1] = "about+it".into();
        fields[layout.title + 2] = "black,bear".into();
        fields[layout.marker] = marker.into();
        fields.join("\t") + "\n"
    }

    fn read(text: &[u8]) -> (Vec<String>, Tally) {
        let mut notes = Notes::default();
        let mut tally = Tally::default();
        let fields = Fields { texts: vec![0, 2], keep: Vec::new() };
        read_block(text, &fields, &mut notes, &mut tally);
        (notes.rows, tally)
    }

    #[test]
    fn both_layouts_give_the_same_rows() {
        for n_fields in [23, 25] {
            let (rows, tally) = read(line(n_fields, "A+caf%C3%A9", "0").as_bytes());
            assert_eq!(rows, ["42: 0=%A+caf%C3%A9 1=%black 1=%bear"]);
            assert_eq!((tally.n_rows, tally.n_bad), (1, 0));
        }
    }

    #[test]
    fn any_field_can_be_kept_of_both_layouts() {
        let keep: Vec<KeepColumn> =
            ["photoid", "title", "download_url", "hash"].map(|name| KeepColumn::Named(name.into())).into();
        let names = names_like(&keep);
        let at = |column: &KeepColumn| field(column.find(&names, &[]).unwrap());
        let fields = Fields { texts: vec![2], keep: keep.iter().map(at).collect() };
        for (n_fields, hash) in [(25, "x"), (23, "-")] {
            let mut notes = Notes::keeping(4);
            let text = line(n_fields, "A+caf%C3%A9", "0");
            read_block(text.as_bytes(), &fields, &mut notes, &mut Tally::default());
            assert_eq!(notes.rows.len(), 1);
            let kept = format!(" | 42 | A café | x | {hash}");
            assert!(notes.rows[0].ends_with(&kept), "{}", notes.rows[0]);
        }
        assert_eq!(field("downloadurl"), field("download_url"));
        assert_eq!(field("no"), None);
    }

    #[test]
    fn videos_are_skipped_and_broken_lines_reported() {
        let text = line(25, "one", "0") + &line(25, "film", "1") + "\n1\t2\n" + &line(23, "two", "7");
        let (rows, tally) = read(text.as_bytes());
        assert_eq!(rows.len(), 1);
        assert_eq!((tally.n_skipped, tally.n_bad), (1, 2));
        assert_eq!(tally.first_bad[0], BadRow::new(4, "23 or 25 tab-separated fields", "2"));
        assert_eq!(tally.first_bad[1], BadRow::new(5, "marker 0 (photo) or 1 (video)", "`7`"));
    }

    #[test]
    fn bytes_that_are_not_utf_8_make_the_line_malformed() {
        let text = line(25, "caf\u{1}", "0").into_bytes();
        let text: Vec<u8> = text.iter().map(|&byte| if byte == 1 { 0xff } else { byte }).collect();
        let (rows, tally) = read(&text);
        assert_eq!(rows, [""; 0]);
        assert_eq!(tally.first_bad, [BadRow::in_other_encoding(1, b"caf\xff")]);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_counted(bytes in proptest::collection::vec(
            proptest::sample::select(b"\t\t\t\n\r01a,%\xff".to_vec()), 0..400)) {
            let (rows, tally) = read(&bytes);
            let n_lines = numbered_lines(&bytes).count() as u64;
            proptest::prop_assert_eq!(tally.n_rows + tally.n_skipped + tally.n_bad, n_lines);
            proptest::prop_assert_eq!(rows.len() as u64, tally.n_rows);
        }
    }
}
