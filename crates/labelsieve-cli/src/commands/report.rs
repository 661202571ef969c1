//! `labelsieve report`: what a run found, as one HTML file and as figures.

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::work::Monitor;

use crate::arguments::JsonArguments;
use crate::given::Given;
use crate::options::ReportOptions;
use crate::printer::Printer;
use crate::report::WrittenReport;

/// Write an HTML report of a run or a relevance file
#[derive(Args)]
#[command(override_usage = "labelsieve report [OPTIONS] --output <FILE> <RUN>\n       \
                            labelsieve report [OPTIONS] --figures <DIR> <RUN>")]
pub struct Report {
    #[command(flatten)]
    options: ReportOptions,

    #[command(flatten)]
    json: JsonArguments,
}

impl Report {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        match &self.options.output {
            Some(_) => Ok(()),
            None => {
                let of_page = ["title", "images", "per_class", "decisions"];
                given.refuse(
                    &of_page,
                    "report without --output",
                    "--figures writes no pictures, no heading and no decisions",
                )
            }
        }
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let written = self.options.write_report(printer)?;
        if self.json.json {
            return printer.json("report", &written);
        }
        if let (WrittenReport::Page(page), Some(output)) = (&written, &self.options.output) {
            printer.note(&format!(
                "`{}`: {}, {}, {}, {} shown, {} of them with a picture and {} with a caption; {:.1} MB",
                output.display(),
                counted(page.n_tables, "table"),
                counted(page.n_figures, "figure"),
                counted(page.n_classes, "class"),
                counted(page.n_examples, "example"),
                page.n_pictures,
                page.n_captions,
                page.n_bytes as f64 / 1e6
            ));
        }
        Ok(())
    }
}
