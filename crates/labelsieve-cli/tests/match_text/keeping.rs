//! Columns that are kept with candidates, and the list of photos to download.

use labelsieve_matching::text::{KeepColumn, KeptValues, OnBadRow, RowSink, TextColumns, TextSource, scan};

use super::*;

impl Folder {
    /// The rows of a table, with what they hold in some columns: `id a b`, `-` for null.
    fn table(&self, name: &str, id: &str, columns: &[&str]) -> Vec<String> {
        struct Kept {
            n: usize,
            rows: Vec<String>,
        }
        impl RowSink for Kept {
            fn text(&mut self, _: usize, _: &str, _: labelsieve_matching::names::TextEncoding) {}
            fn end_row(&mut self, id: &str, kept: &KeptValues<'_>) {
                let values = (0..self.n).map(|at| format!(" {}", kept(at).unwrap_or("-".into())));
                self.rows.push(format!("{id}{}", values.collect::<String>()));
            }
            fn forget_row(&mut self) {}
        }
        let keep = columns.iter().map(|column| KeepColumn::Named(column.to_string())).collect();
        let texts = vec![id.to_owned()];
        let id = Some(id.to_owned());
        let wanted = TextColumns { id, texts, keep, ..TextColumns::default() };
        let source = TextSource::open(&[self.path(name)], &wanted).unwrap();
        let mut rows = Vec::new();
        let new = || Kept { n: columns.len(), rows: Vec::new() };
        scan(
            &source,
            OnBadRow::Stop,
            new,
            |kept| std::mem::take(&mut kept.rows),
            |block, _| {
                rows.extend(block);
                Ok(())
            },
        )
        .unwrap();
        rows
    }
}

/// A line of YFCC100M with an address.
fn photo(n_fields: usize, id: u64, title: &str, url: &str) -> String {
    let line = yfcc_line(n_fields, id, title, "", 0);
    let mut fields: Vec<&str> = line.split('\t').collect();
    fields[if n_fields == 25 { 16 } else { 14 }] = url;
    fields.join("\t")
}

#[test]
fn columns_of_every_format_go_along_and_are_null_where_a_file_has_none() {
    let folder = Folder::new();
    folder.write("a.csv", "id,title,url,year\n1,a church,http://a/1,1999\n2,a crane,,\n3,no,http://a/3,7\n");
    folder.write(
        "b.jsonl",
        "{\"id\":4,\"title\":\"crane\",\"year\":2001,\"tags\":[\"x\",\"y\"],\"ok\":true}\n",
    );
    folder.write("c", photo(25, 5, "the+crane", "http://c/5+6"));
    let texts = "--text a.csv b.jsonl c --text-column title";
    folder.candidates(&format!("{texts} --keep url,year,tags,ok,downloadurl"));
    assert_eq!(
        folder.table("out.parquet", "id", &["class", "url", "year", "tags", "ok", "downloadurl"]),
        [
            "1 n1 http://a/1 1999 - - -",
            "2 n2 - - - - -",
            "4 n2 - 2001 [\"x\",\"y\"] true -",
            "5 n2 - - - - http://c/5+6",
        ]
    );
    folder.candidates("--text c --keep title,photo_id");
    assert_eq!(folder.table("out.parquet", "id", &["title", "photo_id"]), ["5 the crane 5"]);
}

#[test]
fn a_column_that_no_file_has_and_names_that_collide_are_refused() {
    let folder = Folder::new();
    folder.write("a.csv", "id,title,url\n1,a church,http://a/1\n");
    folder.write("b.csv", "id,title,year\n1,a church,1999\n");
    let error = folder.error("--text a.csv b.csv --keep urls");
    assert!(error.contains("expected `urls`, found id, title, url, year"), "{error}");
    assert!(error.contains("did you mean `--keep url`?"), "{error}");
    let error = folder.error("--text a.csv --keep url,field");
    assert!(error.contains("--keep `field`: candidate files already have this column"), "{error}");
    let error = folder.error("--text a.csv --keep url,url");
    assert!(error.contains("--keep `url` is given twice"), "{error}");
}

#[test]
fn each_photo_is_listed_once_as_img2dataset_reads_it() {
    let folder = Folder::new();
    folder.write(
        "a.csv",
        "id,title,link\n1,church and crane,http://a/1\n2,no,http://a/2\n3,\"a crane,\nhere\", \n1,church,http://b/1\n",
    );
    folder.write("b.csv", "id,title,link\n4,crane,http://a/4\n");
    let texts = "--text a.csv b.csv";
    let error = folder.error(&format!("{texts} --download-list urls.parquet"));
    assert!(error.contains("expected a URL under url, URL, image_url, downloadurl"), "{error}");
    assert!(error.contains("hint: choose one of these columns with --url-column"), "{error}");
    let error = folder.error(&format!("{texts} --download-list urls.parquet --url-column links"));
    assert!(error.contains("hint: did you mean `--url-column link`?"), "{error}");
    let list = format!("{texts} --url-column link --download-list");
    let rows = ["1 http://a/1 church and crane 1", "4 http://a/4 crane 4"];
    for name in ["urls.parquet", "urls.csv"] {
        folder.candidates(&format!("{list} {name}"));
        assert_eq!(folder.table(name, "key", &["url", "caption", "id"]), rows, "{name}");
    }
    let output = folder.run(&format!("match --classes classes.toml {list} urls.csv -o again.parquet"));
    let message = error_of(&output);
    assert!(message.contains("1 row with candidates but without a URL, not listed: `3`"), "{message}");
    assert!(message.contains("2 photos to download written to `urls.csv`"), "{message}");
    let output = folder.run(&format!("match --classes classes.toml {list} urls.parquet -o again.parquet"));
    assert!(error_of(&output).contains("hint: img2dataset --url_list urls.parquet --input_format parquet"));
    let output = folder.run(&format!("match --classes classes.toml {list} a.csv -o again.parquet"));
    let message = error_of(&output);
    assert!(message.contains("the output `a.csv` would replace the input `a.csv`"), "{message}");
}

#[test]
fn addresses_of_yfcc_are_known_in_both_layouts() {
    let folder = Folder::new();
    folder
        .write("a", photo(25, 1, "a+crane", "http://a/1.jpg") + &photo(23, 2, "crane%21", "http://a/2.jpg"));
    folder.candidates("--text a --download-list urls.parquet");
    assert_eq!(
        folder.table("urls.parquet", "key", &["url", "caption"]),
        ["1 http://a/1.jpg a crane", "2 http://a/2.jpg crane!"]
    );
}

#[test]
fn lists_of_shards_merge_to_that_of_a_single_run_with_each_photo_once() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},\"a crane, {i}\",http://a/{i}\n", i * 7919 % 3000);
    folder.write("a.csv", format!("id,title,url\n{}", (0..5000).map(row).collect::<String>()));
    folder.candidates("--text a.csv --keep url --download-list urls.parquet");
    let shard = |i: usize| {
        let more = format!("--text a.csv --keep url --download-list urls-{i}.parquet");
        folder.run(&format!("match --classes classes.toml --shard {i}/3 -o part-{i}.parquet {more}"))
    };
    for i in 0..3 {
        let output = shard(i);
        assert!(output.status.success(), "{}", error_of(&output));
    }
    std::fs::remove_file(folder.path("urls-1.parquet")).unwrap();
    assert!(!error_of(&shard(1)).contains("already complete"));
    assert!(error_of(&shard(1)).contains("already complete"));
    for (parts, whole) in [("part", "out.parquet"), ("urls", "urls.parquet")] {
        let output =
            folder.run(&format!("merge {parts}-0.parquet {parts}-1.parquet {parts}-2.parquet -o m.parquet"));
        assert!(output.status.success(), "{}", error_of(&output));
        let [merged, single] = ["m.parquet", whole].map(|name| std::fs::read(folder.path(name)).unwrap());
        assert!(merged == single, "{parts}");
    }
    assert_eq!(folder.table("urls.parquet", "key", &[]).len(), 3000);
    let output = folder.run("merge part-0.parquet urls-1.parquet part-2.parquet -o n.parquet");
    assert!(!output.status.success());
}
