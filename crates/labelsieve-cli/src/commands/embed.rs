//! `labelsieve embed`: images to features.

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::work::Monitor;
use labelsieve_jobs::device::Devices;
use labelsieve_networks::embed::EmbedSummary;

use crate::arguments::JsonArguments;
use crate::options::EmbedOptions;
use crate::printer::Printer;

/// Compute features of images (unit length)
#[derive(Args)]
pub struct Embed {
    #[command(flatten)]
    options: EmbedOptions,

    #[command(flatten)]
    json: JsonArguments,
}

impl Embed {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let summary = self.options.job().run(&Devices, printer)?;
        if self.json.json {
            return printer.json("embed", &summary);
        }
        self.tell(&summary, printer);
        Ok(())
    }

    fn tell(&self, summary: &EmbedSummary, printer: &Printer) {
        let EmbedSummary { n_images, dim, n_skipped, n_damaged_files, n_with_class, .. } = *summary;
        if let (Some(kept), Some(pca)) = (summary.variance_kept, &self.options.pca_output) {
            let share = 100.0 * kept;
            let pca = pca.display();
            printer
                .note(&format!("PCA of width {dim} keeps {share:.1} % of the variance; written to `{pca}`"));
        }
        let images = counted(n_images, "image");
        printer
            .note(&format!("{images}, {dim} features each, written to `{}`", self.options.output.display()));
        if let Some(table) = &summary.ids_table {
            let table = table.display();
            printer
                .note(&format!("ids and classes written to `{table}` (a .parquet output would hold both)"));
        }
        if n_with_class > 0 && n_with_class < n_images {
            printer.warning(&format!("only {n_with_class} of {n_images} images have a class"));
        }
        printer.detail(&format!("{:.0} images per second", summary.images_per_second));
        let Some(list) = summary.skipped_list.as_ref().map(|list| list.display()) else { return };
        if n_skipped > 0 {
            let n_read = n_images + n_skipped;
            printer.warning(&format!("{n_skipped} of {n_read} images were skipped; `{list}` says why"));
        }
        if n_damaged_files > 0 {
            let files = if n_damaged_files == 1 { "file was" } else { "files were" };
            printer.warning(&format!("{n_damaged_files} damaged {files} not read completely; see `{list}`"));
        }
    }
}
