//! Nothing is lost without a word: quotes, encodings, damaged files, and runs that find nothing.

use crate::{Folder, error_of, rows_of};

const MATCH: &str = "match --classes classes.toml -o out.parquet";

/// A Parquet file of `n` rows in groups of 10,000.
fn parquet(n: usize) -> Vec<u8> {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::properties::WriterProperties;
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(10_000))
        .set_dictionary_enabled(false)
        .set_compression(Compression::SNAPPY)
        .build();
    let ids = (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
    let titles = (0..n).map(|i| format!("{i} crane {}", i * i)).collect::<Vec<_>>();
    let column = |values: Vec<String>| Arc::new(StringArray::from(values)) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("id", column(ids)), ("title", column(titles))]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn an_unclosed_quote_is_an_error_that_says_where_it_opened_and_what_it_swallowed() {
    let folder = Folder::new();
    folder.write("a.csv", "id,title\n1,crane\n2,\"crane\n3,crane\n4,crane\n");
    for strict in ["", " --strict"] {
        let message = folder.error(&format!("--text a.csv{strict}"));
        let expected = "`a.csv`: line 3: expected a closing quote for the one that opens here, found the end of the \
                        file: 3 lines (25 bytes) not read";
        assert!(message.contains(expected), "{message}");
        assert!(message.contains("hint: close the quote"), "{message}");
    }
    // In a file of several blocks the line is still that of the file.
    let rows: String = (0..200_000).map(|i| format!("{i},crane\n")).collect();
    folder.write("a.csv", format!("id,title\n{rows}x,\"crane\n{rows}"));
    let message = folder.error("--text a.csv");
    assert!(message.contains("`a.csv`: line 200002: expected a closing quote"), "{message}");
    assert!(message.contains("200001 lines"), "{message}");
}

#[test]
fn lines_swallowed_up_to_the_next_quote_are_counted() {
    let folder = Folder::new();
    folder.write("a.csv", "id,title\n1,crane\n2,\"crane\n3,crane\n4,\"crane\"\n5,crane\n");
    let output = folder.run(&format!("{MATCH} --text a.csv"));
    let message = error_of(&output);
    let warning = "warning: 1 malformed rows skipped, with 2 lines after unclosed quotes; the first:";
    assert!(message.contains(warning), "{message}");
    assert!(message.contains("a.csv:3: expected a closing quote before a comma or a line end"), "{message}");
    assert_eq!(rows_of(&folder.path("out.parquet")), ["1 n2 crane", "5 n2 crane"]);
    std::fs::remove_file(folder.path("out.parquet")).unwrap();
    assert!(folder.error("--text a.csv --strict").contains("`a.csv`: line 3: expected a closing quote"));
}

#[test]
fn a_file_in_another_encoding_is_named_with_the_command_that_converts_it() {
    let folder = Folder::new();
    folder.write("l.csv", b"id,title\n1,crane \xe0 Paris\n2,l'\xe9glise\n");
    let message = folder.error("--text l.csv");
    assert!(message.contains("error: no readable rows: all 2 are malformed"), "{message}");
    assert!(message.contains("found what looks like ISO-8859-1"), "{message}");
    assert!(
        message.contains("hint: convert it: iconv -f ISO-8859-1 -t UTF-8 l.csv > l.utf8.csv"),
        "{message}"
    );
    let message = folder.error("--text l.csv --strict");
    assert!(
        message.contains("`l.csv`: line 2: expected text in UTF-8, found what looks like ISO-8859-1"),
        "{message}"
    );
    assert!(message.contains("hint: convert it: iconv"), "{message}");

    // Where other rows can be read, they are.
    folder.write("l.csv", b"id,title\n1,crane\n2,l'\xe9glise\x93\n");
    let output = folder.run(&format!("{MATCH} --text l.csv"));
    assert!(output.status.success(), "{}", error_of(&output));
    assert!(error_of(&output).contains("hint: convert it: iconv -f WINDOWS-1252"), "{}", error_of(&output));
    std::fs::remove_file(folder.path("out.parquet")).unwrap();

    let utf16: Vec<u8> = "\u{feff}id,title\n1,crane\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for name in ["u.csv", "u.tsv", "u.jsonl", "u.txt"] {
        folder.write(name, &utf16);
        let message = folder.error(&format!("--text {name}"));
        assert!(message.contains("expected text in UTF-8, found what looks like UTF-16LE"), "{message}");
        assert!(message.contains(&format!("iconv -f UTF-16LE -t UTF-8 {name} > u.utf8.")), "{message}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_any_format() {
    let folder = Folder::new();
    folder.write("a.csv", "\u{feff}\"id\",title\n7,crane\n");
    folder.write("a.jsonl", "\u{feff}{\"id\": 7, \"title\": \"crane\"}\n");
    folder.write("y.tsv", format!("\u{feff}{}", crate::yfcc_line(23, 7, "crane", "", 0)));
    for name in ["a.csv", "a.jsonl", "y.tsv"] {
        assert_eq!(folder.candidates(&format!("--text {name}")), ["7 n2 crane"], "{name}");
    }
}

#[test]
fn a_run_without_rows_or_candidates_fails_and_writes_statistics_only() {
    let folder = Folder::new();
    folder.write("a.csv", "id,title,words\n1,two cranes,x\n2,x,crane\n");
    let message = folder.error("--text a.csv --text-column title --stats stats.json");
    let expected = "no candidates: 2 rows read, but none contains `church`, `church building`, `crane` and 1 more names \
                    in title; `out.parquet` was not written";
    assert!(message.contains(expected), "{message}");
    assert!(message.contains("hint: --rule plural would find 1 candidate"), "{message}");
    assert!(folder.path("stats.json").exists());
    folder.write("b.csv", "id,title\n1,x\n");
    let message = folder.error("--text b.csv");
    assert!(
        message.contains("hint: try --rule plural or any-word, or other columns with --text-column"),
        "{message}"
    );
    folder.write("c.csv", "id,title\n");
    assert!(folder.error("--text c.csv").contains("no rows: the files are empty"));
}

#[test]
fn a_damaged_shard_is_named_with_what_was_not_read() {
    let folder = Folder::new();
    let whole = parquet(30_000);
    folder.write("s-0.parquet", &whole);
    let mut damaged = whole.clone();
    let at = whole.len() * 2 / 5; // in the titles of the second group of rows
    damaged[at..at + 4000].fill(0xa5);
    folder.write("s-1.parquet", &damaged);
    folder.write("s-2.parquet", &whole[..whole.len() / 2]); // without its footer
    folder.write("s-3.parquet", &whole);
    let output = folder.run(&format!("{MATCH} --text s-*.parquet"));
    let message = error_of(&output);
    assert!(output.status.success(), "{message}");
    assert!(message.contains("warning: `s-1.parquet` is damaged: "), "{message}");
    let n = whole.len() / 2;
    assert!(
        message.contains(&format!("warning: `s-2.parquet` is damaged: {n} of {n} bytes not read")),
        "{message}"
    );
    assert!(message.contains("; 2 of 4 files damaged"), "{message}");
    let lost = message.split("`s-1.parquet` is damaged: ").nth(1).unwrap().split(' ').next().unwrap();
    let lost: usize = lost.parse().unwrap();
    assert!(message.contains(&format!("{lost} of 30000 rows not read")), "{message}");
    assert_eq!(rows_of(&folder.path("out.parquet")).len(), 90_000 - lost);
    std::fs::remove_file(folder.path("out.parquet")).unwrap();
    assert!(folder.error("--text s-*.parquet --strict").contains("error: `s-"));
    assert!(
        folder
            .error("--text s-0.parquet s-1.parquet --strict")
            .contains(&format!("{lost} of 30000 rows not read"))
    );
    assert!(folder.error("--text s-2.parquet").contains("`s-2.parquet` is not a readable Parquet file"));
}

#[test]
fn a_damaged_compressed_shard_is_named_with_what_was_not_read() {
    let folder = Folder::new();
    let text: String = (0..300_000).map(|i: u64| format!("{i},crane {}\n", i * i % 7919)).collect();
    let whole = zstd::encode_all(format!("id,title\n{text}").as_bytes(), 1).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() * 3 / 4..].fill(0xa5);
    folder.write("s-0.csv.zst", &whole);
    folder.write("s-1.csv.zst", &damaged);
    folder.write("s-2.csv.zst", &whole[..whole.len() / 2]);
    folder.write("s-3.csv.zst", b"");
    let output = folder.run(&format!("{MATCH} --text s-*.csv.zst"));
    let message = error_of(&output);
    assert!(output.status.success(), "{message}");
    assert!(message.contains(&format!("of {} bytes not read (after ", whole.len())), "{message}");
    assert!(message.contains("warning: `s-2.csv.zst` is damaged: the rest is missing (after "), "{message}");
    assert!(message.contains("warning: `s-3.csv.zst` is damaged: "), "{message}");
    assert!(message.contains("; 3 of 4 files damaged"), "{message}");
    let n_rows = rows_of(&folder.path("out.parquet")).len();
    assert!(n_rows > 300_000 && n_rows < 900_000, "{n_rows}");
    std::fs::remove_file(folder.path("out.parquet")).unwrap();
    assert!(folder.error("--text s-0.csv.zst s-2.csv.zst --strict").contains("`s-2.csv.zst`: after "));
}
