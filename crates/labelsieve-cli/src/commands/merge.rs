//! `labelsieve merge`: one result out of its parts.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use labelsieve_files::work::Monitor;
use labelsieve_files::{PartOf, counted};
use labelsieve_jobs::merge::MergeSummary;

use crate::arguments::JsonArguments;
use crate::options::MergeOptions;
use crate::printer::{Printer, refuse_json_beside};

/// Merge the parts of a run into the file that a single run would have written, byte for byte
#[derive(Args)]
pub struct Merge {
    #[command(flatten)]
    options: MergeOptions,

    #[command(flatten)]
    json: JsonArguments,
}

impl Merge {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        refuse_json_beside(self.json, &self.options.output)?;
        let merged = self.options.job().run(printer)?;
        if self.json.json {
            return printer.json("merge", &merged);
        }
        tell(&merged, &self.options.output, printer);
        Ok(())
    }
}

fn tell(merged: &MergeSummary, output: &Path, printer: &Printer) {
    let place =
        if output == Path::new("-") { String::new() } else { format!("; written to `{}`", output.display()) };
    let parts = counted(merged.n_parts, "part");
    let rows = match merged.command {
        PartOf::Score => "row",
        PartOf::Match => "candidate",
        PartOf::DownloadList => "photo",
    };
    match &merged.relevance {
        Some(relevance) => printer.note(&format!(
            "{parts}: {} of {}, mean relevance {:.2}{place}",
            counted(relevance.n_candidates, "candidate"),
            counted(relevance.n_classes, "class"),
            relevance.mean_relevance,
        )),
        None => printer.note(&format!("{parts}: {}{place}", counted(merged.n_rows, rows))),
    }
    if let Some(matched) =
        merged.matched.filter(|matched| matched.n_malformed > 0 || matched.n_damaged_files > 0)
    {
        printer.warning(&format!(
            "{} malformed rows and {} were left out when the parts were made",
            matched.n_malformed,
            counted(matched.n_damaged_files, "damaged file"),
        ));
    }
    if let Some(n) = merged.n_repeated.filter(|&n| n > 0) {
        printer.note(&format!("{} in several parts, listed once", counted(n, "photo")));
    }
}
