//! How precise the rules are on real titles: product names against the sellers' own product types.

use std::collections::BTreeSet;
use std::path::PathBuf;

use labelsieve_matching::names::{ClassEntry, ClassList, MatchRule, Matcher, Searcher, TextEncoding};
use labelsieve_matching::text::{KeptValues, OnBadRow, RowSink, TextColumns, TextSource, scan};

/// `LABELSIEVE_DATA`, or `../shared/data` beside the workspace.
fn fashion() -> Option<TextSource> {
    let workspace = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let folder = std::env::var_os("LABELSIEVE_DATA").map_or(workspace.join("../shared/data"), PathBuf::from);
    let path = folder.join("fashion.parquet");
    if !path.exists() {
        eprintln!("skipped: no `{}`; set LABELSIEVE_DATA to the folder of photo sets", path.display());
        return None;
    }
    let texts = ["title", "article_type", "role", "split"].map(String::from).to_vec();
    Some(TextSource::open(&[path], &TextColumns { texts, ..TextColumns::default() }).unwrap())
}

/// Collects rows of title, type, role and split.
#[derive(Default)]
struct Rows {
    current: [String; 4],
    rows: Vec<[String; 4]>,
}

impl RowSink for Rows {
    fn text(&mut self, column: usize, text: &str, _: TextEncoding) {
        self.current[column] = text.to_string();
    }

    fn end_row(&mut self, _: &str, _: &KeptValues<'_>) {
        self.rows.push(std::mem::take(&mut self.current));
    }

    fn forget_row(&mut self) {
        self.current = Default::default();
    }
}

fn read(source: &TextSource) -> Vec<[String; 4]> {
    let mut rows = Vec::new();
    let finish = |sink: &mut Rows| std::mem::take(&mut sink.rows);
    scan(source, OnBadRow::Stop, Rows::default, finish, |block, _| {
        rows.extend(block);
        Ok(())
    })
    .unwrap();
    rows
}

/// Per class: candidates, and how many of them are of the class.
fn counts(rows: &[[String; 4]], rule: MatchRule) -> Vec<(u32, u32)> {
    let novel: BTreeSet<&str> =
        rows.iter().filter(|row| row[2] == "novel").map(|row| row[1].as_str()).collect();
    let class = |name: &&str| ClassEntry {
        id: name.to_string(),
        display_name: name.to_string(),
        names: vec![name.to_string()],
        exclude: vec![],
    };
    let classes = ClassList::new(novel.iter().map(class).collect()).unwrap();
    let matcher = Matcher::new(&classes, rule).unwrap();
    let mut searcher: Searcher = matcher.searcher();
    let mut counts = vec![(0, 0); novel.len()];
    for [title, article_type, role, _] in rows.iter().filter(|row| row[3] == "train") {
        searcher.push(0, title, TextEncoding::Plain);
        searcher.take_found(|hit| {
            let is_of_class = *role == "novel" && *article_type == classes.classes()[hit.class].id;
            counts[hit.class].0 += 1;
            counts[hit.class].1 += u32::from(is_of_class);
        });
    }
    counts
}

/// Candidates, relevant ones among them, and the mean precision of the classes that have any, in percent.
fn check(rule: MatchRule, expected: (u32, u32, u32)) {
    let Some(source) = fashion() else { return };
    let counts = counts(&read(&source), rule);
    let (n, n_relevant) = counts.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    let precisions: Vec<f64> = counts
        .iter()
        .filter(|count| count.0 > 0)
        .map(|count| f64::from(count.1) / f64::from(count.0))
        .collect();
    let mean = 100.0 * precisions.iter().sum::<f64>() / precisions.len() as f64;
    assert_eq!((n, n_relevant, mean.round() as u32), expected, "{rule:?}");
}

#[test]
fn whole_phrases_are_precise_but_find_few() {
    check(MatchRule::Phrase, (3176, 2632, 90)); // 83 % of the candidates are right
}

#[test]
fn plurals_find_three_times_as_many_and_every_t_shirt_among_the_shirts() {
    check(MatchRule::Plural, (10286, 5981, 85)); // 58 %
}

#[test]
fn any_word_finds_all_shoes_for_formal_shoes() {
    check(MatchRule::AnyWord, (14544, 6214, 65)); // 43 %
}

#[test]
fn substrings_find_rings_in_earrings() {
    check(MatchRule::Substring, (4089, 2642, 83)); // 65 %
}
