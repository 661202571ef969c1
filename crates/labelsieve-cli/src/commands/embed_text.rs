//! `labelsieve embed-text`: class names to features.

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::work::Monitor;

use crate::arguments::JsonArguments;
use crate::options::EmbedTextOptions;
use crate::printer::Printer;

/// Compute features of class names with the text tower of CLIP, SigLIP or OpenCLIP, for `score --class-text`
#[derive(Args)]
pub struct EmbedText {
    #[command(flatten)]
    options: EmbedTextOptions,

    #[command(flatten)]
    json: JsonArguments,
}

impl EmbedText {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let summary = self.options.job().run(printer)?;
        if self.json.json {
            return printer.json("embed-text", &summary);
        }
        printer.note(&format!(
            "{} from {}, {} features each, written to `{}`",
            counted(summary.n_classes, "class"),
            counted(summary.n_texts, "text"),
            summary.dim,
            self.options.output.display()
        ));
        Ok(())
    }
}
