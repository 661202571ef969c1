//! `labelsieve embed-text`: class names to features.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use labelsieve_files::work::Monitor;
use labelsieve_files::{Precision, counted};
use labelsieve_networks::embed_text::{EmbedText as Job, TEMPLATE};

use crate::arguments::JsonArguments;
use crate::printer::Printer;

/// Compute features of class names with the text tower of CLIP, SigLIP or OpenCLIP, for `score --class-text`
#[derive(Args)]
pub struct EmbedText {
    /// Folder of the model whose image tower embeds the photos: config.json, model.safetensors, tokenizer.json
    #[arg(long, value_name = "FOLDER")]
    model: PathBuf,

    /// Classes and their names: .toml, .csv, or .txt with one WordNet synset per line; - for standard input
    #[arg(long, value_name = "FILE")]
    classes: PathBuf,

    /// Text that each name is put into, at {name}; repeatable, all are averaged
    #[arg(long = "template", value_name = "TEXT", default_value = TEMPLATE)]
    templates: Vec<String>,

    /// Precision of stored features
    #[arg(long, value_enum, default_value = "f32")]
    dtype: Precision,

    /// Output file: .parquet (with ids and classes), .npz or .npy
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    json: JsonArguments,
}

impl EmbedText {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let job = Job {
            model: self.model.clone(),
            classes: self.classes.clone(),
            templates: self.templates.clone(),
            precision: self.dtype,
            output: self.output.clone(),
        };
        let summary = job.run(printer)?;
        if self.json.json {
            return printer.json("embed-text", &summary);
        }
        printer.note(&format!(
            "{} from {}, {} features each, written to `{}`",
            counted(summary.n_classes, "class"),
            counted(summary.n_texts, "text"),
            summary.dim,
            self.output.display()
        ));
        Ok(())
    }
}
