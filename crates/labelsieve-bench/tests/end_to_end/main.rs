//! The binary from the outside: files in, files out, exit codes and messages. Helpers are those of the product's tests.
#![cfg(unix)] // pipes, links and signals are everywhere here

/// The program that is tested.
const BINARY: &str = env!("CARGO_BIN_EXE_labelsieve-bench");

#[path = "../../../labelsieve-cli/tests/end_to_end/common.rs"]
mod common;
#[path = "../../../labelsieve-cli/tests/end_to_end/damage.rs"]
mod damage;
#[path = "../../../labelsieve-cli/tests/end_to_end/documents.rs"]
mod documents;
#[path = "../../../labelsieve-cli/tests/end_to_end/examples.rs"]
#[expect(dead_code, reason = "tests of the product use the rest")]
mod examples;
#[path = "../../../labelsieve-cli/tests/end_to_end/json_page.rs"]
#[expect(dead_code, reason = "tests of the product use the rest")]
mod json_page;
#[path = "../../../labelsieve-cli/tests/end_to_end/pictures.rs"]
#[expect(dead_code, reason = "tests of the product use the rest")]
mod pictures;
#[path = "../../../labelsieve-cli/tests/end_to_end/stopping.rs"]
mod stopping;

mod class;
mod golden;
mod help;
mod json;
mod networks;
mod paper;
mod photo_runs;
mod photos;
mod product;
mod release;
mod relevance;
mod resume;
mod review;
mod systems;
