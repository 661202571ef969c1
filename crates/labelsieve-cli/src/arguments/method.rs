//! `--method` and its settings, as every command spells them.

use anyhow::Result;
use clap::{Args, ValueEnum};
use labelsieve::Method;
use labelsieve::graph::NEIGHBOURS;
use labelsieve::relevance::{Auto, Beta, Gcn, LabelPropagation, Linear, Mixture, Mlp, Similarity};

use crate::given::Given;

/// The heading of these options.
const RELEVANCE: &str = "Relevance";

/// The method if none is chosen.
pub const DEFAULT_METHOD: &str = "auto";

/// How relevance is scored.
#[derive(Args, Clone, Debug)]
pub struct MethodArguments {
    /// Method for scoring relevance
    #[arg(long, value_enum, default_value = DEFAULT_METHOD, help_heading = RELEVANCE)]
    pub method: MethodName,

    /// Weight λ of the candidates in the loss of auto, gcn and mlp; smaller values keep more of them
    /// [default: the paper's choice for the number of clean examples]
    #[arg(long, value_name = "λ", allow_negative_numbers = true, help_heading = RELEVANCE)]
    pub lambda: Option<f32>,

    /// Relevance of every candidate with `--method beta`
    #[arg(long, value_name = "β", allow_negative_numbers = true, default_value_t = 1.0, help_heading = RELEVANCE)]
    pub beta: f32,

    /// Neighbours per example in the graph of auto, gcn, label-propagation and mixture
    /// [default: 50; auto: by the number of candidates]
    #[arg(long, value_name = "N", help_heading = RELEVANCE)]
    pub neighbours: Option<usize>,
}

/// The methods by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// The method that suits the class: gcn and mixture together
    Auto,
    /// Graph convolutional network, the paper's method
    Gcn,
    /// The same network without the graph
    Mlp,
    /// Label propagation on the same graph
    LabelPropagation,
    /// Cosine similarity to the clean examples
    Similarity,
    /// Logistic regression against other classes
    Linear,
    /// The same relevance for every candidate
    Beta,
    /// The probability that a candidate comes from its class, and from none of the others and the base classes
    Mixture,
}

impl MethodName {
    /// As it is typed.
    pub fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }
}

impl MethodArguments {
    /// Refuses settings of other methods.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        let unused: &[&str] = match self.method {
            MethodName::Auto => &["beta"],
            MethodName::Gcn => &["beta", "base"],
            MethodName::Mlp => &["beta", "neighbours", "base"],
            MethodName::LabelPropagation => &["lambda", "beta", "base"],
            MethodName::Similarity | MethodName::Linear => &["lambda", "beta", "neighbours", "base"],
            MethodName::Beta => &["lambda", "neighbours", "base"],
            MethodName::Mixture => &["lambda", "beta"],
        };
        let who = format!("--method {}", self.method.name());
        given.refuse(unused, &who, "remove it, or choose a method that uses it")
    }

    /// The method with its settings.
    pub fn method(&self) -> Method {
        let lambda = self.lambda;
        let neighbours = self.neighbours.unwrap_or(NEIGHBOURS);
        match self.method {
            MethodName::Auto => Method::Auto(Auto { lambda, neighbours: self.neighbours }),
            MethodName::Gcn => Method::Gcn(Gcn { lambda, neighbours, ..Gcn::default() }),
            MethodName::Mlp => Method::Mlp(Mlp { lambda, ..Mlp::default() }),
            MethodName::LabelPropagation => {
                Method::LabelPropagation(LabelPropagation { neighbours, ..LabelPropagation::default() })
            }
            MethodName::Similarity => Method::Similarity(Similarity {}),
            MethodName::Linear => Method::Linear(Linear::default()),
            MethodName::Beta => Method::Beta(Beta { beta: self.beta }),
            MethodName::Mixture => Method::Mixture(Mixture { neighbours, ..Mixture::default() }),
        }
    }
}
