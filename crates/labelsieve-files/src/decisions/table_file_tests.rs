use labelsieve::Decision;

use super::*;

fn read(name: &str, text: impl AsRef<[u8]>) -> Result<Vec<DecisionRow>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    read_decisions(&path).map(|table| table.rows)
}

#[test]
fn a_table_by_hand_needs_three_columns_in_any_order() {
    let rows = read("d.csv", "\u{feff}decision,class,notes,id\n Accept,owl,x,1\nundecided,owl,,2\n,owl,,3\n");
    let rows = rows.unwrap();
    let decisions: Vec<_> = rows.iter().map(|row| (row.id.as_str(), row.decision)).collect();
    assert_eq!(decisions, [("1", Some(Decision::Accept)), ("2", None), ("3", None)]);
    assert!(rows.iter().all(|row| row.class == "owl" && row.by.is_empty() && row.at.is_empty()));
    let rows = read("d.tsv", "id\tclass\tdecision\tby\n\"a\\tb\towl\tunsure\tann\n").unwrap();
    assert_eq!((rows[0].id.as_str(), rows[0].by.as_str()), ("\"a\tb", "ann"));
}

#[test]
fn an_unknown_decision_is_named_with_its_row_and_what_works() {
    let error = read("d.csv", "id,class,decision\n1,owl,accept\n2,owl,maybe\n").unwrap_err().to_string();
    let expected =
        "column `decision`, row 1: expected `accept`, `reject`, `unsure` or `undecided`, found `maybe`";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn a_missing_column_and_another_ending_are_named() {
    let error = read("d.csv", "id,decision\n1,accept\n").unwrap_err().to_string();
    assert!(error.ends_with("expected a column `class`, found the columns id, decision"), "{error}");
    let error = read("d.txt", "id,class,decision\n").unwrap_err().to_string();
    assert!(error.ends_with("expected .parquet, .csv or .tsv, found `.txt`"), "{error}");
    assert!(read("d.csv", "").is_err());
    assert!(read("d.parquet", "").is_err());
    assert!(read_decisions("/no/such/file.csv").is_err());
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in proptest::collection::vec(proptest::sample::select(b",\t\"\n\r1aowl\xff".to_vec()), 0..60),
        noise in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
    ) {
        for (name, header) in [("d.csv", "id,class,decision\n"), ("d.tsv", "id\tclass\tdecision\n"), ("d.parquet", "PAR1")] {
            let _ = read(name, [header.as_bytes(), &bytes].concat());
            let _ = read(name, &noise);
        }
    }

    #[test]
    fn damaged_parquet_is_read_or_refused(at in 0_usize..4000, byte in proptest::prelude::any::<u8>()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.parquet");
        let [id, class, by, text] = ["a", "owl", "ann", ""].map(str::to_owned);
        let row = DecisionRow { id, class, decision: Some(Decision::Accept), by, at: text };
        write_table(&path, &vec![row; 10]).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = read("d.parquet", bytes);
    }
}
