//! Options of `embed-text`.

use std::path::PathBuf;

use clap::Args;
use labelsieve_files::Precision;
use labelsieve_networks::embed_text::{EmbedText, TEMPLATE};

/// A text tower and the names it embeds.
#[derive(Args, Clone, Debug)]
pub struct EmbedTextOptions {
    /// Folder of the model whose image tower embeds the photos: config.json, model.safetensors, tokenizer.json
    #[arg(long, value_name = "FOLDER")]
    pub model: PathBuf,

    /// Classes and their names: .toml, .csv, or .txt with one WordNet synset per line; - for standard input
    #[arg(long, value_name = "FILE")]
    pub classes: PathBuf,

    /// Text that each name is put into, at {name}; repeatable, all are averaged
    #[arg(long = "template", value_name = "TEXT", default_value = TEMPLATE)]
    pub templates: Vec<String>,

    /// Precision of stored features
    #[arg(long, value_enum, default_value = "f32")]
    pub dtype: Precision,

    /// Output file: .parquet (with ids and classes), .npz or .npy
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

impl EmbedTextOptions {
    /// The job that they describe.
    pub fn job(&self) -> EmbedText {
        EmbedText {
            model: self.model.clone(),
            classes: self.classes.clone(),
            templates: self.templates.clone(),
            precision: self.dtype,
            output: self.output.clone(),
        }
    }
}
