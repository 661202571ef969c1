//! The `match` command from files to files.

#[path = "match_text/folders.rs"]
mod folders;
#[path = "match_text/keeping.rs"]
mod keeping;
#[path = "match_text/losses.rs"]
mod losses;
#[path = "match_text/pipes.rs"]
mod pipes;
#[path = "match_text/shards.rs"]
mod shards;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use labelsieve_matching::read_candidates;
use tempfile::TempDir;

const CLASSES: &str = r#"
[[class]]
id = "n1"
names = ["church", "church building"]
exclude = ["Church Street"]

[[class]]
id = "n2"
display_name = "crane"

[[class]]
id = "n3"
names = ["unheard of"]
"#;

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.write("classes.toml", CLASSES);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    fn run(&self, arguments: &str) -> Output {
        self.run_with_threads(arguments, 2)
    }

    fn run_with_threads(&self, arguments: &str, n_threads: usize) -> Output {
        Command::new(env!("CARGO_BIN_EXE_labelsieve"))
            .args(arguments.split(' '))
            .env("RAYON_NUM_THREADS", n_threads.to_string())
            .current_dir(self.0.path())
            .output()
            .unwrap()
    }

    /// Runs `match` with the usual output and returns its candidates as `id class name`.
    fn candidates(&self, arguments: &str) -> Vec<String> {
        let output = self.run(&format!("match --classes classes.toml -o out.parquet {arguments}"));
        assert!(output.status.success(), "{}", error_of(&output));
        rows_of(&self.path("out.parquet"))
    }

    fn error(&self, arguments: &str) -> String {
        let output = self.run(&format!("match --classes classes.toml -o out.parquet {arguments}"));
        assert!(!output.status.success());
        assert!(!self.path("out.parquet").exists(), "a failed run leaves no output");
        error_of(&output)
    }
}

fn rows_of(path: &Path) -> Vec<String> {
    let table = read_candidates(path).unwrap();
    let row = |i: usize| format!("{} {} {}", &table.ids[i], table.classes.get(i), &table.matched_names[i]);
    (0..table.ids.len()).map(row).collect()
}

fn error_of(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn yfcc_line(n_fields: usize, id: u64, title: &str, tags: &str, marker: u8) -> String {
    let (id_at, title_at) = if n_fields == 25 { (1, 8) } else { (0, 6) };
    let mut fields = vec![String::from("x"); n_fields];
    fields[id_at] = id.to_string();
    fields[title_at] = title.into();
    fields[title_at + 1] = String::new();
    fields[title_at + 2] = tags.into();
    fields[n_fields - 1] = marker.to_string();
    fields.join("\t") + "\n"
}

#[test]
fn yfcc_lines_of_both_layouts_become_candidates() {
    let folder = Folder::new();
    let text = yfcc_line(25, 1, "The+Church+Building%21", "crane", 0)
        + &yfcc_line(25, 2, "church", "", 1)
        + &yfcc_line(23, 3, "%3Cb%3ECHURCH%3C%2Fb%3E+on+Church+Street", "", 0)
        + &yfcc_line(23, 4, "nothing", "construction,crane", 0);
    folder.write("yfcc100m_dataset-0", &text);
    let expected = ["1 n1 church", "1 n2 crane", "4 n2 crane"];
    assert_eq!(folder.candidates("--text yfcc100m_dataset-0"), expected);
    assert_eq!(folder.candidates("--text yfcc100m_dataset-0 --text-column title"), ["1 n1 church"]);
    folder.write("y.tsv.zst", zstd::encode_all(text.as_bytes(), 1).unwrap());
    assert_eq!(folder.candidates("--text y.tsv.zst"), expected);
}

#[test]
fn an_output_never_replaces_one_of_its_inputs() {
    let folder = Folder::new();
    folder.write("a.csv", "id,title\n7,a church\n");
    let output = folder.run("match --classes classes.toml --text a.csv -o a.csv");
    assert!(!output.status.success());
    assert!(
        error_of(&output).contains("the output `a.csv` would replace the input"),
        "{}",
        error_of(&output)
    );
    assert!(std::fs::read_to_string(folder.path("a.csv")).unwrap().starts_with("id"));
}

#[test]
fn every_format_gives_the_same_candidates() {
    let folder = Folder::new();
    folder.write("a.csv", "id,title\n7,\"a church,\nwith crane\"\n8,Cranes\n");
    folder.write("a.tsv", "id\ttitle\n7\ta church with crane\n8\tCranes\n");
    folder
        .write("a.jsonl", "{\"id\":7,\"title\":\"a church with crane\"}\n{\"id\":8,\"title\":\"Cranes\"}\n");
    for name in ["a.csv", "a.tsv", "a.jsonl"] {
        let candidates = folder.candidates(&format!("--text {name} --text-column title --id-column id"));
        assert_eq!(candidates, ["7 n1 church", "7 n2 crane"], "{name}");
        let plural = folder.candidates(&format!("--text {name} --rule plural"));
        assert_eq!(plural, ["7 n1 church", "7 n2 crane", "8 n2 crane"], "{name}");
    }
}

#[test]
fn globs_and_several_files_are_read_in_order() {
    let folder = Folder::new();
    for (name, id) in [("b-2.csv", 2), ("b-1.csv", 1), ("a.csv", 3)] {
        folder.write(name, format!("id,title\n{id},crane\n"));
    }
    assert_eq!(folder.candidates("--text a.csv b-*.csv"), ["3 n2 crane", "1 n2 crane", "2 n2 crane"]);
    assert!(
        Folder::new()
            .error("--text no-*.csv")
            .contains("`no-*.csv`: pattern: expected at least one file, found none")
    );
}

#[test]
fn the_output_does_not_depend_on_the_number_of_threads() {
    let folder = Folder::new();
    let row = |i: usize| {
        format!("{i},{}\n", ["church", "a crane", "church crane", "neither one"][i * i % 4].repeat(1 + i % 9))
    };
    let text: String = (0..200_000).map(row).collect();
    folder.write("t.csv", String::from("id,title\n") + &text);
    let mut outputs = Vec::new();
    for n_threads in [1, 2, 5] {
        let output =
            folder.run_with_threads("match --classes classes.toml --text t.csv -o out.parquet", n_threads);
        assert!(output.status.success(), "{}", error_of(&output));
        outputs.push((std::fs::read(folder.path("out.parquet")).unwrap(), output.stdout, output.stderr));
    }
    assert!(outputs[0] == outputs[1] && outputs[1] == outputs[2]);
}

#[test]
fn malformed_rows_are_counted_and_shown_or_stop_a_strict_run() {
    let folder = Folder::new();
    folder.write("a.csv", "id,title\n1,crane\nbroken\n2,crane\n,church\n");
    let output = folder.run("match --classes classes.toml --text a.csv -o out.parquet");
    let message = error_of(&output);
    assert!(message.contains("warning: 2 malformed rows skipped; the first:"), "{message}");
    assert!(message.contains("a.csv:3: expected 2 fields, as in the header, found 1"), "{message}");
    assert!(message.contains("a.csv:5: expected an id, found an empty field"), "{message}");
    assert_eq!(rows_of(&folder.path("out.parquet")), ["1 n2 crane", "2 n2 crane"]);
    std::fs::remove_file(folder.path("out.parquet")).unwrap();
    let message = folder.error("--text a.csv --strict");
    assert_eq!(message, "error: `a.csv`: line 3: expected 2 fields, as in the header, found 1\n");
}

#[test]
fn files_that_cannot_be_read_are_named_with_what_is_wrong() {
    let folder = Folder::new();
    folder.write("a.csv", "id,title\n1,crane\n");
    folder.write("b.csv", "key,words\n1,crane\n");
    folder.write("c.parquet", "no Parquet");
    folder.write("d.txt", "some words\n");
    let check = |arguments: &str, expected: &str| {
        let error = folder.error(arguments);
        assert!(error.contains(expected), "{error}");
    };
    check("--text b.csv", "`b.csv`: columns: expected a text under title, description");
    check("--text c.parquet", "`c.parquet`: expected a Parquet file, found a text file");
    check(
        "--text d.txt",
        "`d.txt`: unknown format; expected .csv, .tsv, .jsonl, .parquet, or lines of 23 or 25",
    );
    check("--text missing.csv", "cannot open `missing.csv`");
    let whole = zstd::encode_all(&b"id,title\n1,crane\n"[..], 1).unwrap();
    folder.write("e.csv.zst", &whole[..whole.len() - 3]);
    check("--text e.csv.zst", "expected more zstd data, found the end of the file");
}

#[test]
fn the_statistics_go_to_stdout_and_to_a_file() {
    let folder = Folder::new();
    folder.write("a.csv", "id,title\n1,crane\n2,crane church\n3,two cranes\n");
    let output = folder.run("match --classes classes.toml --text a.csv -o out.parquet --stats stats.json");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("3 candidates for 3 classes"), "{text}");
    assert!(text.contains("\nthe rule `plural` would find 4 (+33 %)\n"), "{text}");
    assert!(text.ends_with("without candidates: unheard of\n"), "{text}");
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path("stats.json")).unwrap()).unwrap();
    assert_eq!(json["classes"][0]["id"], "n2");
    assert_eq!(
        (&json["n_candidates_plural"], &json["classes"][0]["n_candidates_plural"]),
        (&4.into(), &3.into())
    );
    assert_eq!(json["groups"][0]["n_classes"], 1);
}

#[test]
fn what_the_plural_would_find_is_estimated_in_large_inputs() {
    let folder = Folder::new();
    let filler = "x".repeat(400);
    let row = |i: usize| format!("{i}\t{} {filler}\n", ["crane", "cranes", "church", "none"][i % 4]);
    let text: String = (0..240_000).map(row).collect();
    folder.write("a.tsv", format!("id\ttitle\n{text}"));
    let output = folder.run("match --classes classes.toml --text a.tsv -o out.parquet");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let message = error_of(&output);
    let estimate = text.split("the rule `plural` would find ").nth(1).unwrap().split(' ').next().unwrap();
    let estimate: i64 = estimate.parse().unwrap();
    assert!((estimate - 180_000).abs() < 1_000, "{text}");
    assert!(message.contains("the count for the rule `plural` is estimated from "), "{message}");
}

#[test]
fn shared_names_are_warned_about_and_both_classes_get_the_example() {
    let folder = Folder::new();
    folder.write("classes.csv", "id,names\nbird,crane\nmachine,Crane\n");
    folder.write("a.csv", "id,title\n1,a crane\n");
    let output = folder.run("match --classes classes.csv --text a.csv -o out.parquet");
    assert!(
        error_of(&output).contains("warning: `crane` names 2 classes: bird, machine"),
        "{}",
        error_of(&output)
    );
    assert_eq!(rows_of(&folder.path("out.parquet")), ["1 bird crane", "1 machine Crane"]);
}

#[test]
fn copies_of_guarded_examples_are_flagged_or_dropped() {
    let folder = Folder::new();
    folder.write("a.csv", "id,title\n0,crane\n1,crane\n2,church crane\n");
    let npy = |name: &str, values: &[f32]| {
        let file = std::fs::File::create(folder.path(name)).unwrap();
        labelsieve_files::write_npy_f32(file, &[values.len() / 2, 2], values).unwrap();
    };
    npy("pool.npy", &[1.0, 0.0, 0.0, 1.0, 0.6, 0.8]);
    npy("test.npy", &[2.0, 0.0, 0.59, 0.81]);
    let guard = "--text a.csv --features pool.npy --guard-features test.npy";
    assert_eq!(folder.candidates(guard).len(), 4);
    let message = error_of(&folder.run(&format!("match --classes classes.toml -o out.parquet {guard}")));
    assert!(message.contains("3 candidates are copies of guarded examples: flagged"), "{message}");
    assert_eq!(folder.candidates(&format!("{guard} --drop-leaks")), ["1 n2 crane"]);
    let strict = folder.candidates(&format!("{guard} --drop-leaks --near-duplicate 1"));
    assert_eq!(strict, ["1 n2 crane", "2 n1 church", "2 n2 crane"]);
    folder.write("b.csv", "id,title\nelsewhere,crane\n");
    let unknown = guard.replace("a.csv", "b.csv");
    let message = error_of(&folder.run(&format!("match --classes classes.toml -o out.parquet {unknown}")));
    assert!(message.contains("1 candidate without features in `pool.npy`, not compared"), "{message}");
}

#[test]
fn synset_lists_become_class_files() {
    let folder = Folder::new();
    folder.write("synsets.txt", "n03028079 church, church_building\n");
    let output = folder.run("classes synsets.txt -o made.toml");
    assert!(output.status.success(), "{}", error_of(&output));
    let text = std::fs::read_to_string(folder.path("made.toml")).unwrap();
    assert!(text.contains("names = [\"church\", \"church building\"]"), "{text}");
}
