//! The concatenated shards are all rows, for any files and any number of shards.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use labelsieve_files::{Result, Shard};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::rows::tests::Notes;
use super::{OnBadRow, Position, ScanSummary, TextColumns, TextSource, scan};

/// The result of reading all files or shards.
#[derive(Debug, Default, PartialEq)]
struct ScanResult {
    rows: Vec<String>,
    n_rows: u64,
    n_skipped: u64,
    n_bad: u64,
    n_swallowed: u64,
    n_damaged: usize,
    /// The first malformed rows by the byte at which they begin, or the row of a Parquet file.
    first_bad: Vec<(PathBuf, u64, String)>,
}

/// Files with their uncompressed texts.
struct Files {
    paths: Vec<PathBuf>,
    texts: HashMap<PathBuf, Vec<u8>>,
}

impl Files {
    fn read(&self, shard: Option<Shard>) -> Result<ScanResult> {
        let columns = TextColumns { texts: vec!["title".into()], ..TextColumns::default() };
        let source = TextSource::open(&self.paths, &columns)?;
        let source = match shard {
            Some(shard) => source.cut(shard),
            None => source,
        };
        let mut rows = Vec::new();
        let take = |notes: &mut Notes| std::mem::take(&mut notes.rows);
        let n_bytes = source.n_bytes().unwrap();
        let summary = scan(&source, OnBadRow::Skip, Notes::default, take, |block, progress| {
            assert!(progress.n_bytes <= n_bytes, "{} of {n_bytes}", progress.n_bytes);
            rows.extend(block);
            Ok(())
        })?;
        Ok(self.seen(rows, summary))
    }

    fn seen(&self, rows: Vec<String>, summary: ScanSummary) -> ScanResult {
        let place = |path: &Path, position: Position| match position {
            Position::Byte(at) | Position::Row(at) => at,
            Position::Line(line) => {
                let mut starts = memchr::memchr_iter(b'\n', &self.texts[path]).map(|at| at as u64 + 1);
                if line == 1 { 0 } else { starts.nth(line as usize - 2).unwrap() }
            }
        };
        let bad = summary.first_bad.into_iter();
        ScanResult {
            rows,
            n_rows: summary.n_rows,
            n_skipped: summary.n_skipped,
            n_bad: summary.n_bad,
            n_swallowed: summary.n_swallowed,
            n_damaged: summary.damaged.len(),
            first_bad: bad.map(|(path, bad)| (path.clone(), place(&path, bad.position), bad.found)).collect(),
        }
    }

    /// Reads all shards one after the other.
    fn read_shards(&self, of: usize) -> Result<ScanResult> {
        let mut all = ScanResult::default();
        for index in 0..of {
            let seen = self.read(Some(Shard { index, of }))?;
            all.rows.extend(seen.rows);
            all.n_rows += seen.n_rows;
            all.n_skipped += seen.n_skipped;
            all.n_bad += seen.n_bad;
            all.n_swallowed += seen.n_swallowed;
            all.n_damaged += seen.n_damaged;
            all.first_bad.extend(seen.first_bad);
        }
        all.first_bad.truncate(5);
        Ok(all)
    }
}

fn write_parquet(path: &Path, titles: &[String], group_rows: usize) {
    let ids: ArrayRef = Arc::new(StringArray::from_iter(
        (0..titles.len()).map(|row| (row % 5 != 4).then(|| format!("p{row}"))),
    ));
    let titles: ArrayRef = Arc::new(StringArray::from(titles.to_vec()));
    let batch =
        RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("title", titles, true)]).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// One file: its kind, a byte order mark or not, and pieces of text.
type Recipe = (&'static str, bool, Vec<&'static str>);

fn recipe() -> impl Strategy<Value = Recipe> {
    let pieces = select(vec![
        "1,a",
        "2,\"b\"",
        "3,\"c\nd\"",
        "4,\"say \"\"x\"\"\r\ny\"",
        ",\"",
        "\"",
        "\n",
        "\n",
        "\n",
        "\r\n",
        "\r",
        "\n\n",
        "5\tf",
        "6\t\"g",
        "\t",
        ",",
        "{\"id\":7,\"title\":\"h\"}",
        "{\"id\":",
        "é",
        "8,i\n",
        "9\tj\n",
        "0\t1\t2\t3\t4\t5\ttitle\t7\t8\t9\t10\t11\t12\t13\t14\t15\t16\t17\t18\t19\t20\t21\t0\n",
        "0\t1\t2\t3\t4\t5\tfilm\t7\t8\t9\t10\t11\t12\t13\t14\t15\t16\t17\t18\t19\t20\t21\t1\n",
    ]);
    let kind = select(vec!["csv", "csv", "tsv", "jsonl", "yfcc", "csv.zst", "tsv.gz", "parquet"]);
    (kind, proptest::bool::weighted(0.2), vec(pieces, 0..30))
}

fn write(folder: &Path, recipes: &[Recipe]) -> Files {
    let mut files = Files { paths: Vec::new(), texts: HashMap::new() };
    for (number, (kind, has_mark, pieces)) in recipes.iter().enumerate() {
        let path = folder.join(format!("{number}.{kind}"));
        let start = match *kind {
            "csv" | "csv.zst" => "\n\r\nid,\"title\"\r\n",
            "tsv" | "tsv.gz" => "id\ttitle\n",
            "jsonl" => "{\"id\":1,\"title\":\"first\"}\n",
            _ => "0\t1\t2\t3\t4\t5\tfirst\t7\t8\t9\t10\t11\t12\t13\t14\t15\t16\t17\t18\t19\t20\t21\t0\n",
        };
        let mark = if *has_mark { "\u{feff}" } else { "" };
        let text = format!("{mark}{start}{}", pieces.concat()).into_bytes();
        let stored = match kind.rsplit('.').next() {
            Some("zst") => zstd::encode_all(text.as_slice(), 1).unwrap(),
            Some("gz") => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(&text).unwrap();
                encoder.finish().unwrap()
            }
            _ => text.clone(),
        };
        match *kind {
            "parquet" => {
                let titles: Vec<String> =
                    pieces.iter().map(ToString::to_string).chain(["x".into()]).collect();
                write_parquet(&path, &titles, 3);
            }
            _ => std::fs::write(&path, stored).unwrap(),
        }
        files.texts.insert(path.clone(), text);
        files.paths.push(path);
    }
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn all_shards_after_another_are_all_rows(recipes in vec(recipe(), 1..4), of in 1usize..20) {
        let folder = tempfile::tempdir().unwrap();
        let files = write(folder.path(), &recipes);
        match files.read(None) {
            Ok(whole) => prop_assert_eq!(files.read_shards(of).unwrap(), whole),
            Err(_) => prop_assert!(files.read_shards(of).is_err()),
        }
    }
}

#[test]
fn a_row_reads_the_same_whether_or_not_it_starts_a_block() {
    let folder = tempfile::tempdir().unwrap();
    let files = write(folder.path(), &[("csv", false, vec!["1,a\r\n", "2,\"b\"c\n"])]);
    let whole = files.read(None).unwrap();
    assert_eq!(whole.rows, ["1: 0=a", "2: 0=bc"]);
    assert_eq!(files.read_shards(2).unwrap(), whole);
}

#[test]
fn there_may_be_more_shards_than_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let files = write(
        folder.path(),
        &[("csv", true, vec!["1,a\n", "\n", "2,\"b\nc\""]), ("tsv", false, vec!["3\td"])],
    );
    let whole = files.read(None).unwrap();
    assert_eq!(whole.rows.len(), 3);
    for of in 1..60 {
        assert_eq!(files.read_shards(of).unwrap(), whole, "{of} shards");
    }
}

#[test]
fn long_texts_are_cut_in_the_middle_and_share_their_lines_about_equally() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let row =
        |i: u32| if i.is_multiple_of(9999) { "bad\n".into() } else { format!("{i},\"two\nlines, {i}\"\n") };
    let text = format!("id,title\n{}", (0..200_000).map(row).collect::<String>());
    std::fs::write(&path, &text).unwrap();
    let tsv = folder.path().join("b.tsv");
    let row = |i: u32| format!("{i}\ta \"title\" {i}\n");
    let lines = format!("id\ttitle\n{}", (0..200_000).map(row).collect::<String>());
    std::fs::write(&tsv, &lines).unwrap();
    let texts = [(path.clone(), text.into_bytes()), (tsv.clone(), lines.into_bytes())].into();
    let files = Files { paths: vec![path, tsv], texts };
    let whole = files.read(None).unwrap();
    assert_eq!(whole.rows.len(), 400_000 - 21);
    assert!(files.read_shards(7).unwrap() == whole);
    let n: Vec<u64> = (0..7).map(|index| files.read(Some(Shard { index, of: 7 })).unwrap().n_rows).collect();
    assert!(n.iter().max().unwrap() < &(2 * n.iter().min().unwrap()), "{n:?}");
}

#[test]
fn a_row_group_that_cannot_be_read_is_left_out_of_the_whole_and_of_its_shard() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let titles: Vec<String> = (0..4000).map(|row| format!("title {}", row * 7919 % 4001)).collect();
    write_parquet(&path, &titles, 1000);
    let footer = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let (second, _) = footer.metadata().row_group(1).column(0).byte_range();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[second as usize..][..40].fill(0xff); // the header of its first page
    std::fs::write(&path, &bytes).unwrap();
    let files = Files { paths: vec![path], texts: HashMap::new() };
    let whole = files.read(None).unwrap();
    assert_eq!(whole.n_damaged, 1);
    assert_eq!(whole.rows.len(), 3 * 800); // every fifth row has no id
    assert!(whole.rows.last().unwrap().starts_with("p3998:"), "{:?}", whole.rows.last());
    for of in 1..9 {
        assert_eq!(files.read_shards(of).unwrap(), whole, "{of} shards");
    }
}
