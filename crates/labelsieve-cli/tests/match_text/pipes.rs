//! Texts and classes through pipes: `-`, `/dev/stdin`, named pipes and process substitution.
#![cfg(unix)]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::{Folder, error_of, rows_of};

const MATCH: &str = "match --classes classes.toml -o out.parquet";
const CSV: &str = "id,title\n7,a church\n8,Crane\n";

impl Folder {
    /// Runs `labelsieve LINE` with `bytes` on standard input.
    fn piped(&self, line: &str, bytes: &[u8]) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_labelsieve"))
            .args(line.split(' '))
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let bytes = bytes.to_vec();
        // A command that refuses its input closes the pipe early.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        output
    }

    /// Runs a line of bash in which `$LABELSIEVE` is the binary.
    fn bash(&self, line: &str) -> Output {
        Command::new("bash")
            .args(["-c", line])
            .env("LABELSIEVE", env!("CARGO_BIN_EXE_labelsieve"))
            .current_dir(self.0.path())
            .output()
            .unwrap()
    }

    fn check_piped(&self, line: &str, bytes: &[u8]) {
        let output = self.piped(&format!("{MATCH} {line}"), bytes);
        assert!(output.status.success(), "{line}: {}", error_of(&output));
        assert_eq!(rows_of(&self.path("out.parquet")), ["7 n1 church", "8 n2 crane"], "{line}");
        std::fs::remove_file(self.path("out.parquet")).unwrap();
    }
}

fn parquet() -> Vec<u8> {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    let column = |values: [&str; 2]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let columns = [("id", column(["7", "8"])), ("title", column(["a church", "Crane"]))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn standard_input_is_read_whatever_it_holds() {
    let folder = Folder::new();
    let jsonl = "{\"id\": 7, \"title\": \"a church\"}\n{\"id\": 8, \"title\": \"Crane\"}\n";
    let zst = zstd::encode_all(CSV.as_bytes(), 1).unwrap();
    let with_mark = format!("\u{feff}{CSV}");
    let tsv = CSV.replace(',', "\t");
    for name in ["/dev/stdin", "-"] {
        for bytes in
            [CSV.as_bytes(), with_mark.as_bytes(), tsv.as_bytes(), jsonl.as_bytes(), &zst, &parquet()]
        {
            folder.check_piped(&format!("--text {name}"), bytes);
        }
        folder.check_piped(&format!("--text {name} --format csv"), CSV.as_bytes());
    }
}

#[test]
fn a_long_pipe_gives_what_the_file_gives() {
    let folder = Folder::new();
    let text: String =
        (0..200_000).map(|i| format!("{i},\"a {}\n\"\n", ["church", "crane"][i % 2])).collect();
    let text = format!("id,title\n{text}");
    folder.write("t.csv", &text);
    let from_file = folder.candidates("--text t.csv");
    let output = folder.piped(&format!("{MATCH} --text -"), text.as_bytes());
    assert!(output.status.success(), "{}", error_of(&output));
    let from_pipe = rows_of(&folder.path("out.parquet"));
    assert_eq!(from_pipe.len(), 200_000);
    assert!(from_file == from_pipe);
}

#[test]
fn process_substitution_and_named_pipes_are_read_once() {
    let folder = Folder::new();
    folder.write("t.csv", CSV);
    let line =
        format!("$LABELSIEVE {MATCH} --text <(cat t.csv)").replace("classes.toml", "<(cat classes.toml)");
    let output = folder.bash(&line);
    assert!(output.status.success(), "{}", error_of(&output));
    assert_eq!(rows_of(&folder.path("out.parquet")), ["7 n1 church", "8 n2 crane"]);
    let line =
        format!("mkfifo t.pipe && (cat t.csv > t.pipe &) && timeout 60 $LABELSIEVE {MATCH} --text t.pipe");
    let output = folder.bash(&line);
    assert!(output.status.success(), "{}", error_of(&output));
    assert_eq!(rows_of(&folder.path("out.parquet")), ["7 n1 church", "8 n2 crane"]);
}

#[test]
fn classes_come_from_standard_input_and_not_together_with_the_texts() {
    let folder = Folder::new();
    folder.write("t.csv", CSV);
    let classes = std::fs::read(folder.path("classes.toml")).unwrap();
    let output = folder.piped("match --classes - --text t.csv -o out.parquet", &classes);
    assert!(output.status.success(), "{}", error_of(&output));
    assert_eq!(rows_of(&folder.path("out.parquet")).len(), 2);
    let output = folder.piped("classes - -o made.toml", b"n03028079 church, church_building\n");
    assert!(output.status.success(), "{}", error_of(&output));
    std::fs::remove_file(folder.path("out.parquet")).unwrap();
    let twice = [
        ("--classes - --text -", &classes[..]),
        ("--classes - --text /dev/stdin", &classes),
        ("--classes classes.toml --text - -", CSV.as_bytes()),
    ];
    for (names, bytes) in twice {
        let output = folder.piped(&format!("match {names} -o out.parquet"), bytes);
        let message = error_of(&output);
        assert!(!output.status.success() && !folder.path("out.parquet").exists(), "{names}");
        assert!(message.contains("can be read only once but was given twice"), "{names}: {message}");
        assert!(message.contains("hint: pass one of the two as a file"), "{names}: {message}");
    }
}

#[test]
fn a_copy_that_cannot_be_made_is_named_with_its_folder() {
    let folder = Folder::new();
    folder.write("t.parquet", parquet());
    let output = folder.bash(&format!("TMPDIR=missing $LABELSIEVE {MATCH} --text - < t.parquet"));
    let message = error_of(&output);
    assert!(!output.status.success(), "{message}");
    assert!(message.contains("cannot copy `-` to a temporary file in `missing`: "), "{message}");
    assert!(message.contains("hint: set TMPDIR to a folder with enough space"), "{message}");
}

#[test]
fn an_empty_pipe_is_an_error() {
    let folder = Folder::new();
    let message = error_of(&folder.piped(&format!("{MATCH} --text -"), b""));
    assert!(message.contains("`-`: input: expected rows of text, found an empty file"), "{message}");
}
