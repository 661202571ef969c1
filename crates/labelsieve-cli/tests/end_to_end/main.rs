//! The binary from the outside: files in, files out, exit codes and messages.
//!
//! One test program for all, so that helpers are linked once and none of them looks unused.
#![cfg(unix)] // `sh`, pipes, links, limits and signals are everywhere here

mod common;
mod examples;

mod approximate;
mod bad_files;
mod bad_hub_folder;
mod bad_output;
mod bad_settings;
mod bench_class;
mod bench_paper;
mod bench_photos;
mod bench_relevance;
mod bench_review;
mod class_text;
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
mod release;
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
