//! Shards that many machines search, merged into what one would have found.

use super::*;

/// Texts of every kind, with enough rows for several blocks and many shards.
const TEXTS: &str = "--text a.csv b.tsv c.jsonl d.csv.zst e.parquet --text-column title";

fn folder_of_texts() -> Folder {
    let folder = Folder::new();
    let title = |i: usize| match i % 5 {
        0 => "a church",
        1 => "the crane",
        2 => "Church Street",
        3 => "a crane\nabove a church",
        _ => "nothing",
    };
    let mut csv = String::from("\u{feff}id,title\r\n");
    (0..30_000).for_each(|i| csv += &format!("a{i},\"{}, {i}\"\r\n", title(i)));
    csv += "bad\n\na-last,crane";
    folder.write("a.csv", &csv);
    let line = |i: usize| title(i).replace('\n', " ");
    let tsv: String = (0..20_000).map(|i| format!("b{i}\t{}\n", line(i))).collect();
    folder.write("b.tsv", format!("id\ttitle\n{tsv}bad\n"));
    let json: String =
        (0..5000).map(|i| format!("{{\"id\":\"c{i}\",\"title\":\"{}\"}}\n", line(i))).collect();
    folder.write("c.jsonl", json);
    folder.write("d.csv.zst", zstd::encode_all(csv.replace("\na", "\nd").as_bytes(), 1).unwrap());
    let rows: Vec<(String, &str)> = (0..5000).map(|i| (format!("e{i}"), title(i))).collect();
    folder.write("e.parquet", parquet(&rows, 700));
    folder
}

fn parquet(rows: &[(String, &str)], group_rows: usize) -> Vec<u8> {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    let ids: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|(id, _)| id)));
    let titles: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|(_, title)| title)));
    let batch = RecordBatch::try_from_iter([("id", ids), ("title", titles)]).unwrap();
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .build();
    let mut bytes = Vec::new();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

impl Folder {
    fn shard(&self, index: usize, of: usize, more: &str) -> Output {
        let name = format!("part-{index}-of-{of}.parquet");
        self.run(&format!("match --classes classes.toml --shard {index}/{of} -o {name} {more}"))
    }

    fn shards(&self, of: usize, more: &str) -> Vec<String> {
        let part = |index| {
            let output = self.shard(index, of, more);
            assert!(output.status.success(), "{}", error_of(&output));
            format!("part-{index}-of-{of}.parquet")
        };
        (0..of).map(part).collect()
    }

    fn merge_error(&self, parts: &str) -> String {
        let output = self.run(&format!("merge {parts} -o merged.parquet"));
        assert!(!output.status.success(), "merged {parts}");
        assert!(!self.path("merged.parquet").exists());
        error_of(&output)
    }
}

#[test]
fn merged_shards_are_the_file_of_a_single_run_byte_for_byte() {
    let folder = folder_of_texts();
    let whole = folder.candidates(TEXTS);
    assert!(whole.len() > 40_000 && whole.iter().any(|row| row.starts_with("a-last ")));
    for of in [1, 3, 8] {
        let mut parts = folder.shards(of, TEXTS);
        parts.reverse();
        let output = folder.run(&format!("merge {} -o merged.parquet", parts.join(" ")));
        assert!(output.status.success(), "{}", error_of(&output));
        let [merged, single] =
            ["merged.parquet", "out.parquet"].map(|name| std::fs::read(folder.path(name)).unwrap());
        assert!(merged == single, "{of} shards");
    }
}

#[test]
fn more_shards_than_rows_leave_empty_parts_that_say_so() {
    let folder = Folder::new();
    folder.write("a.csv", "id,title\n7,a church\n8,nothing\n9,\"a\ncrane\"\n");
    folder.candidates("--text a.csv");
    let parts = folder.shards(50, "--text a.csv");
    let n_rows: Vec<usize> = parts.iter().map(|part| rows_of(&folder.path(part)).len()).collect();
    assert_eq!((n_rows.iter().sum::<usize>(), n_rows.iter().max()), (2, Some(&1)));
    let output = folder.run(&format!("merge {} -o merged.parquet", parts.join(" ")));
    assert!(output.status.success(), "{}", error_of(&output));
    let [merged, single] =
        ["merged.parquet", "out.parquet"].map(|name| std::fs::read(folder.path(name)).unwrap());
    assert!(merged == single);
    let output = folder.run("match --classes classes.toml --shard 0/50 --text a.csv -o again.parquet");
    assert!(error_of(&output).contains("0 candidates written to `again.parquet`"), "{}", error_of(&output));
}

#[test]
fn missing_double_foreign_and_truncated_parts_are_refused() {
    let folder = folder_of_texts();
    let parts = folder.shards(3, TEXTS);
    let [first, second, third] = [0, 1, 2].map(|i| parts[i].as_str());
    let error = folder.merge_error(&format!("{first} {third}"));
    assert!(error.contains("1 part of 3 is missing: 1"), "{error}");
    let error = folder.merge_error(&format!("{first} {second} {second} {third}"));
    assert!(error.contains(second), "{error}");
    let plural = folder
        .run(&format!("match --classes classes.toml --shard 1/3 -o plural.parquet --rule plural {TEXTS}"));
    assert!(plural.status.success());
    let error = folder.merge_error(&format!("{first} plural.parquet {third}"));
    assert!(error.contains("plural.parquet"), "{error}");
    let bytes = std::fs::read(folder.path(second)).unwrap();
    folder.write("cut.parquet", &bytes[..bytes.len() - 1000]);
    let error = folder.merge_error(&format!("{first} cut.parquet {third}"));
    assert!(error.contains("cut.parquet"), "{error}");
}

#[test]
fn a_text_that_changed_between_two_shards_makes_a_foreign_part() {
    let folder = folder_of_texts();
    let first = folder.shard(0, 2, TEXTS);
    assert!(first.status.success());
    let changed = std::fs::read_to_string(folder.path("b.tsv")).unwrap().replacen("church", "chapel", 1);
    folder.write("b.tsv", changed);
    assert!(folder.shard(1, 2, TEXTS).status.success());
    let error = folder.merge_error("part-0-of-2.parquet part-1-of-2.parquet");
    assert!(error.contains("part-1-of-2.parquet"), "{error}");
}

#[test]
fn a_part_that_is_there_is_not_made_again_and_never_replaced_by_another() {
    let folder = folder_of_texts();
    assert!(folder.shard(0, 2, TEXTS).status.success());
    let written = std::fs::metadata(folder.path("part-0-of-2.parquet")).unwrap().modified().unwrap();
    let again = folder.shard(0, 2, &format!("{TEXTS} --stats stats.json"));
    assert!(again.status.success(), "{}", error_of(&again));
    assert!(error_of(&again).contains("`part-0-of-2.parquet` is already complete"), "{}", error_of(&again));
    assert_eq!(std::fs::metadata(folder.path("part-0-of-2.parquet")).unwrap().modified().unwrap(), written);
    let stats = std::fs::read_to_string(folder.path("stats.json")).unwrap();
    let n_rows = rows_of(&folder.path("part-0-of-2.parquet")).len();
    assert!(stats.contains(&format!("\"n_candidates\": {n_rows}")), "{stats}");
    let other = folder.shard(0, 2, &format!("{TEXTS} --rule plural"));
    assert!(!other.status.success());
    assert!(error_of(&other).contains("is a part of another run"), "{}", error_of(&other));
    std::fs::copy(folder.path("part-0-of-2.parquet"), folder.path("part-1-of-2.parquet")).unwrap();
    let other = folder.shard(1, 2, TEXTS);
    assert!(error_of(&other).contains("is part 0 of 2, not part 1 of 2"), "{}", error_of(&other));
}

#[test]
fn where_the_files_lie_is_no_part_of_the_run() {
    let folder = folder_of_texts();
    assert!(folder.shard(0, 2, TEXTS).status.success());
    std::fs::create_dir(folder.path("elsewhere")).unwrap();
    for name in ["a.csv", "b.tsv", "c.jsonl", "d.csv.zst", "e.parquet", "classes.toml"] {
        std::fs::copy(folder.path(name), folder.path("elsewhere").join(name)).unwrap();
    }
    let texts = TEXTS.replace(" a.csv", " elsewhere/a.csv").replace(" b.tsv", " elsewhere/b.tsv");
    let output = folder
        .run(&format!("match --classes elsewhere/classes.toml --shard 1/2 -o part-1-of-2.parquet {texts}"));
    assert!(output.status.success(), "{}", error_of(&output));
    let output = folder.run("merge part-0-of-2.parquet part-1-of-2.parquet -o merged.parquet");
    assert!(output.status.success(), "{}", error_of(&output));
}

#[test]
fn streams_and_other_endings_are_refused_with_a_way_out() {
    let folder = folder_of_texts();
    let error = folder.error("--text - --shard 0/2");
    assert!(
        error.contains("--shard needs files, but `-` is a stream\nhint: write it to a file first"),
        "{error}"
    );
    let output = folder.run("match --classes classes.toml --text a.csv --shard 0/2 -o out.csv");
    assert!(error_of(&output).contains("the extension must be .parquet"), "{}", error_of(&output));
    let error = folder.error("--text a.csv --shard 2/2");
    assert!(error.contains("shards count from 0: the last of 2 is 1/2"), "{error}");
}

#[test]
fn malformed_rows_of_a_shard_are_named_by_line_or_byte() {
    let folder = folder_of_texts();
    let output = folder.shard(1, 2, "--text a.csv");
    assert!(error_of(&output).contains("a.csv:36002: expected 2 fields"), "{}", error_of(&output));
    let output = folder.run("match --classes classes.toml --text b.tsv --shard 1/2 -o b.parquet");
    let n_bytes = std::fs::metadata(folder.path("b.tsv")).unwrap().len();
    let place = format!("b.tsv: byte {}: expected 2 fields", n_bytes - 4);
    assert!(error_of(&output).contains(&place), "{}", error_of(&output));
}
