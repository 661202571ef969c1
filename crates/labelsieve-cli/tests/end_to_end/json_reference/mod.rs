//! `docs/json.md` is generated: the fields from the structs that commands serialise, the examples from files.
//!
//! | part | source |
//! |---|---|
//! | introduction | `tests/json_reference/intro.md` |
//! | a section per command | [`COMMANDS`], with the struct of each answer and an example in `tests/json_reference/examples` |
//! | benchmarks | `tests/json_reference/bench.md`, by hand: their answers are not structs all the way down |
//!
//! `LABELSIEVE_WRITE_GOLDEN=1` writes the page anew.

mod page;
mod structs;

use std::path::{Path, PathBuf};

use self::page::section;
use self::structs::Structs;
use crate::golden::diff::diff;

/// A command with `--json`.
struct Command {
    name: &'static str,
    /// Usually one; more where options decide what is answered.
    answers: &'static [Answer],
}

/// The answer of a command.
struct Answer {
    /// A line above the table that says when this is the answer; often empty.
    when: &'static str,
    /// The folder below `crates` that defines the struct.
    crate_name: &'static str,
    /// The struct.
    type_name: &'static str,
    /// Files in `tests/json_reference/examples` without their ending.
    examples: &'static [&'static str],
}

/// The answer that a command always gives.
const fn answer(
    crate_name: &'static str,
    type_name: &'static str,
    examples: &'static [&'static str],
) -> Answer {
    Answer { when: "", crate_name, type_name, examples }
}

/// Every command with an answer, in the order of the page.
const COMMANDS: &[Command] = &[
    Command { name: "run", answers: &[answer("labelsieve-jobs", "RunSummary", &["run"])] },
    Command { name: "match", answers: &[answer("labelsieve-matching", "MatchResult", &["match"])] },
    Command { name: "classes", answers: &[answer("labelsieve-matching", "ClassesSummary", &["classes"])] },
    Command {
        name: "decisions import",
        answers: &[answer("labelsieve-review", "ImportSummary", &["decisions-import"])],
    },
    Command {
        name: "decisions show",
        answers: &[answer("labelsieve-cli", "ShownDecisions", &["decisions-show"])],
    },
    Command { name: "pretrain", answers: &[answer("labelsieve-networks", "PretrainSummary", &["pretrain"])] },
    Command { name: "embed", answers: &[answer("labelsieve-networks", "EmbedSummary", &["embed"])] },
    Command {
        name: "embed-text",
        answers: &[answer("labelsieve-networks", "EmbedTextSummary", &["embed-text"])],
    },
    Command {
        name: "score",
        answers: &[
            answer("labelsieve-jobs", "ScoreSummary", &["score"]),
            Answer {
                when: "With `--dry-run`, an estimate instead:",
                ..answer("labelsieve-jobs", "Estimate", &["score-dry-run"])
            },
        ],
    },
    Command { name: "plan", answers: &[answer("labelsieve-jobs", "PlanSummary", &["plan"])] },
    Command { name: "merge", answers: &[answer("labelsieve-jobs", "MergeSummary", &["merge"])] },
    Command { name: "train", answers: &[answer("labelsieve-jobs", "TrainSummary", &["train"])] },
    Command { name: "finetune", answers: &[answer("labelsieve-networks", "FineTuneSummary", &["finetune"])] },
    Command {
        name: "labelsieve-bench train-attention",
        answers: &[answer("labelsieve-bench", "TrainingSummary", &["train-attention"])],
    },
    Command {
        name: "labelsieve-bench train-episodes",
        answers: &[answer("labelsieve-bench", "TrainingSummary", &["train-episodes"])],
    },
    Command { name: "predict", answers: &[answer("labelsieve-jobs", "PredictSummary", &["predict"])] },
    Command {
        name: "evaluate",
        answers: &[Answer {
            when: "The fields about accuracy come with `--model`, `relevance` with ground truth or decisions:",
            ..answer("labelsieve-jobs", "Report", &["evaluate-model", "evaluate-relevance"])
        }],
    },
    Command {
        name: "report",
        answers: &[
            answer("labelsieve-cli", "PageCounts", &["report"]),
            Answer { when: "With `--figures` alone:", ..answer("labelsieve-cli", "FigureCount", &[]) },
        ],
    },
    Command { name: "review", answers: &[answer("labelsieve-cli", "ReviewAnswer", &["review"])] },
    Command { name: "demo", answers: &[answer("labelsieve-cli", "DemoAnswer", &["demo"])] },
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file in `tests/json_reference`.
fn part(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/json_reference").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_page_is_what_the_structs_say() {
    let structs = Structs::read(&root().join("crates"));
    let mut page = part("intro.md");
    for command in COMMANDS {
        page += &format!("\n{}", section(command, &structs));
    }
    page += &format!("\n{}", part("bench.md"));
    let path = root().join("docs/json.md");
    if std::env::var_os("LABELSIEVE_WRITE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(&path, &page).expect("disk space");
    }
    let written = std::fs::read_to_string(&path).expect("a page");
    assert!(
        written == page,
        "docs/json.md differs from the structs (-written, +generated; LABELSIEVE_WRITE_GOLDEN=1 writes it anew):\n\n{}",
        diff(&written, &page)
    );
}
