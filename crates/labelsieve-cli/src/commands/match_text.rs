//! `labelsieve match`: from class names to candidates.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::shell_word::shell_word;

use crate::arguments::JsonArguments;
use crate::given::Given;
use crate::options::MatchOptions;
use crate::printer::{Printer, refuse_json_beside};

/// Find the candidates of each class: examples whose texts contain one of its names
#[derive(Args)]
pub struct Match {
    #[command(flatten)]
    options: MatchOptions,

    #[command(flatten)]
    json: JsonArguments,
}

/// The command that downloads a list; ids survive it in a column of their own.
fn how_to_download(list: &Path) -> String {
    let ending = list.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    format!(
        "img2dataset --url_list {} --input_format {ending} --url_col url --caption_col caption \
         --save_additional_columns '[\"id\"]' --output_format webdataset --output_folder photos",
        shell_word(list)
    )
}

impl Match {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        if !self.options.leaks.guard_features.is_empty() {
            return Ok(());
        }
        given.refuse(&["near_duplicate"], "match without --guard-features", "give --guard-features")
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        refuse_json_beside(self.json, &self.options.output)?;
        let matched = self.options.job().run(printer)?;
        if let (Some(list), None) = (&self.options.download_list, &matched.part) {
            printer.hint(&how_to_download(list).into());
        }
        if self.json.json {
            return printer.json("match", &matched);
        }
        let statistics = matched.statistics.to_string();
        let statistics = statistics.trim_end();
        if self.options.output == Path::new("-") {
            printer.note(statistics);
            return Ok(());
        }
        let n = matched.statistics.n_candidates;
        let output = self.options.output.display();
        match matched.part {
            Some(part) if part.was_complete => {}
            _ => printer.note(&format!("{} written to `{output}`", counted(n as usize, "candidate"))),
        }
        printer.data(statistics)
    }
}
