//! `--method` and its settings, as every command spells them.

use anyhow::Result;
use clap::{Args, ValueEnum};
use labelsieve::Method;
use labelsieve::relevance::{Auto, Beta, Gcn, LabelPropagation, Linear, Mlp, Similarity};

use crate::options::Given;

/// The heading of these options.
const RELEVANCE: &str = "Relevance";

/// How relevance is scored.
#[derive(Args, Clone, Debug)]
pub struct MethodArguments {
    /// Method for scoring relevance
    #[arg(long, value_enum, default_value = "gcn", help_heading = RELEVANCE)]
    pub method: MethodName,

    /// Weight λ of the candidates in the loss of gcn and mlp; smaller values keep more of them
    /// [default: the paper's choice for the number of clean examples]
    #[arg(long, value_name = "λ", allow_negative_numbers = true, help_heading = RELEVANCE)]
    pub lambda: Option<f32>,

    /// Relevance of every candidate with `--method beta`
    #[arg(long, value_name = "β", allow_negative_numbers = true, default_value_t = 1.0, help_heading = RELEVANCE)]
    pub beta: f32,

    /// Neighbours per example in the graph of gcn and label-propagation
    #[arg(long, value_name = "N", default_value_t = labelsieve::graph::NEIGHBOURS, help_heading = RELEVANCE)]
    pub neighbours: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// What suits the class: gcn and mixture together
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
}

impl MethodArguments {
    /// Refuses settings of other methods.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        let unused: &[&str] = match self.method {
            MethodName::Auto => &["beta", "neighbours"],
            MethodName::Gcn => &["beta"],
            MethodName::Mlp => &["beta", "neighbours"],
            MethodName::LabelPropagation => &["lambda", "beta"],
            MethodName::Similarity | MethodName::Linear => &["lambda", "beta", "neighbours"],
            MethodName::Beta => &["lambda", "neighbours"],
        };
        let name = self.method.to_possible_value();
        let name = name.as_ref().map_or("", |value| value.get_name());
        given.refuse(unused, &format!("--method {name}"), "remove it, or choose a method that uses it")
    }

    pub fn method(&self) -> Method {
        let (lambda, neighbours) = (self.lambda, self.neighbours);
        match self.method {
            MethodName::Auto => Method::Auto(Auto { lambda, neighbours: None }),
            MethodName::Gcn => Method::Gcn(Gcn { lambda, neighbours, ..Gcn::default() }),
            MethodName::Mlp => Method::Mlp(Mlp { lambda, ..Mlp::default() }),
            MethodName::LabelPropagation => {
                Method::LabelPropagation(LabelPropagation { neighbours, ..LabelPropagation::default() })
            }
            MethodName::Similarity => Method::Similarity(Similarity {}),
            MethodName::Linear => Method::Linear(Linear::default()),
            MethodName::Beta => Method::Beta(Beta { beta: self.beta }),
        }
    }
}
