//! The binary from the outside: files in, files out, exit codes and messages.
//!
//! One test program for all, so that helpers are linked once and none of them looks unused. `labelsieve-bench` shares `common`, `damage`,
//! `documents`, `examples`, `json_page`, `pictures` and `stopping`.
#![cfg(unix)] // `sh`, pipes, links, limits and signals are everywhere here

/// The program that is tested.
const BINARY: &str = env!("CARGO_BIN_EXE_labelsieve");

mod common;
mod damage;
mod documents;
mod examples;
mod json_page;
mod pictures;
mod stopping;

mod approximate;
mod bad_files;
mod bad_hub_folder;
mod bad_output;
mod bad_settings;
mod class_text;
mod classifiers;
mod decisions;
mod decisions_import;
mod demo_folder;
mod embed;
mod errors;
mod evaluate_images;
mod evaluation;
mod files;
mod files_checked;
mod formats;
mod golden;
mod hub_folder;
mod interruption;
mod joins;
mod json;
mod json_reference;
mod levels;
mod memory;
mod networks;
mod onnx;
mod outputs;
mod paper_map;
mod parts;
mod pipeline;
mod probability;
mod report;
mod report_images;
mod resume;
mod review;
mod roworder;
mod run_command;
mod shell_files;
mod slurm;
mod terminal;
mod unused_options;
