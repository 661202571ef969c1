//! `labelsieve-bench pretrain`: a backbone trained on episodes of base classes, as a prototypical network (Snell, Swersky and
//! Zemel, NIPS 2017).

use anyhow::Result;
use clap::{Args, ValueEnum};
use labelsieve_cli::arguments::{BackboneArguments, JsonArguments};
use labelsieve_cli::{Given, Printer};
use labelsieve_networks::training::Objective;
use labelsieve_networks::{Distance, Prototypical};

/// Train a backbone as a prototypical network, on episodes of a few base classes
#[derive(Args)]
pub struct Pretrain {
    #[command(flatten)]
    backbone: BackboneArguments,

    /// Classes per episode [default: 20]
    #[arg(long, value_name = "N")]
    ways: Option<usize>,

    /// Examples per class that form its prototype [default: 5]
    #[arg(long, value_name = "K")]
    shots: Option<usize>,

    /// Examples to classify per class [default: 15]
    #[arg(long, value_name = "N")]
    queries: Option<usize>,

    /// Distance between examples and prototypes [default: euclidean]
    #[arg(long, value_enum)]
    distance: Option<DistanceName>,

    #[command(flatten)]
    json: JsonArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DistanceName {
    /// Squared Euclidean distance
    Euclidean,
    /// Cosine, times 10
    Cosine,
}

impl Pretrain {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        self.backbone.check_options(given)
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let usual = Prototypical::default();
        let rule = Prototypical {
            ways: self.ways.unwrap_or(usual.ways),
            shots: self.shots.unwrap_or(usual.shots),
            queries: self.queries.unwrap_or(usual.queries),
            distance: match self.distance {
                Some(DistanceName::Cosine) => Distance::Cosine,
                Some(DistanceName::Euclidean) | None => Distance::Euclidean,
            },
        };
        let job = self.backbone.job(Objective::Prototypical(rule), None);
        self.backbone.train(&job, self.json, printer)
    }
}
