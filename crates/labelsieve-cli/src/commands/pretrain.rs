//! `labelsieve pretrain`: a backbone from the images of base classes.

use anyhow::Result;
use clap::Args;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::table::percent;
use labelsieve_jobs::device::Devices;
use labelsieve_networks::Architecture;
use labelsieve_report::TrainingCurves;

use crate::arguments::JsonArguments;
use crate::given::Given;
use crate::options::ObjectiveName;
use crate::options::PretrainOptions;
use crate::printer::Printer;

/// Train a backbone on base classes, with a cosine classifier or by episodes
#[derive(Args)]
pub struct Pretrain {
    #[command(flatten)]
    options: PretrainOptions,

    #[command(flatten)]
    json: JsonArguments,
}

impl Pretrain {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        match self.options.objective {
            ObjectiveName::Cosine => {
                let needs = "it needs --objective prototypical";
                given.refuse(&["ways", "shots", "queries", "distance"], "--objective cosine", needs)?;
            }
            ObjectiveName::Prototypical => {
                let why = "an episode is a batch: --ways times --shots and --queries";
                given.refuse(&["batch_size"], "--objective prototypical", why)?;
            }
        }
        match self.options.architecture {
            Architecture::ConvNet128 => {
                given.refuse(&["stem"], "--architecture convnet128", "only residual networks have a stem")
            }
            Architecture::EfficientNetLite0 => {
                let chosen = "--architecture efficientnet-lite0";
                given.refuse(&["stem"], chosen, "only residual networks have a stem")
            }
            Architecture::ResNet10 | Architecture::ResNet18 | Architecture::ResNet50 => Ok(()),
        }
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let trained = self.options.job().run(&Devices, &TrainingCurves, printer)?;
        if self.json.json {
            return printer.json("pretrain", &trained);
        }
        let right = match trained.accuracy {
            Some(accuracy) => format!(", {} % validation accuracy", percent(accuracy)),
            None => String::new(),
        };
        printer.note(&format!(
            "network written to `{}`{right}; curves in `{}`",
            self.options.output.display(),
            trained.curves.each_ref().map(|curve| curve.display().to_string()).join("` and `")
        ));
        Ok(())
    }
}
