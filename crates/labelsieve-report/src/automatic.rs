//! Tables and figures that follow from relevance and truth alone.

use labelsieve::evaluation::{Calibration, Reliability};
use labelsieve_files::DecisionCounts;

use crate::classes::Classes;
use crate::{
    Best, Cell, Figure, FigureKind, PoolSize, ReliabilitySeries, ResultTable, TableColumn, TableRow,
};

/// The figures of any run that has relevance: cumulative relevance, relevant against irrelevant and probabilities against the
/// truth where that is known, sizes of the pools where there are several.
pub(crate) fn figures(classes: &Classes) -> Vec<Figure> {
    let figure = |id: &str, title: &str, caption: &str, data| Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        command: None,
        data,
    };
    let mut figures = vec![figure(
        "cumulative-relevance",
        "Cumulative relevance",
        "The share of a class's candidates (vertical) whose relevance is at most x (horizontal). A curve that rises on the \
         left means that most candidates are irrelevant; one that rises on the right, that most are relevant.",
        FigureKind::CumulativeRelevance { classes: classes.relevance() },
    )];
    let known = classes.by_truth();
    if known.n_known() > 0 {
        figures.push(figure(
            "relevance-and-truth",
            "Relevance against ground truth",
            "Histograms: how relevance is distributed over candidates that belong to their class and over those that do not, each \
             group as 100 %. Curve: lowering the threshold keeps more of both groups; the area under the curve (AUC) is \
             the probability that a relevant candidate scores above an irrelevant one.",
            FigureKind::Separation { relevant: known.relevant, irrelevant: known.irrelevant },
        ));
    }
    let (probability, truth) = classes.known_probabilities();
    let mut calibration = Calibration::default();
    calibration.add(&probability, &truth);
    if let Some(Reliability { bins, .. }) = calibration.reliability() {
        figures.push(figure(
            "reliability",
            "Probability against ground truth",
            "Candidates by their probability (horizontal), and the share of them that belongs to its class (vertical). On the \
             diagonal, probabilities are calibrated; below it, they are too high. The expected error is the mean \
             distance from the diagonal over candidates. Bars count the candidates.",
            FigureKind::Reliability { series: vec![ReliabilitySeries { name: "all classes".to_owned(), bins }] },
        ));
    }
    if classes.classes.len() > 2 {
        let sizes = classes.classes.iter().map(|class| PoolSize {
            class: class.name.clone(),
            candidates: class.ranked.len(),
            gain: None,
        });
        figures.push(figure(
            "pool-sizes",
            "Candidates per class",
            "Curve: candidates of each class, largest first, on a logarithmic scale. Bars: number of classes by size.",
            FigureKind::PoolSizes { classes: sizes.collect(), gain_label: String::new() },
        ));
    }
    figures
}

const NOISE_CAPTION: &str = " Noise is the share of candidates that do not belong to their class.";
const ADVICE_CAPTION: &str = " Candidates with at least the advised probability (keep ≥) are kept; right is the share of these expected to belong to the class.";

/// One row per class.
pub(crate) fn class_table(classes: &Classes) -> ResultTable {
    let with_truth = classes.truth.iter().any(Option::is_some);
    let column = |name: &str, decimals| TableColumn { best: Best::None, decimals, ..TableColumn::new(name) };
    let mut columns =
        vec![column("clean", 0), column("candidates", 0), column("mean relevance", 2), column("weight", 1)];
    if with_truth {
        columns.extend([column("noise %", 0), column("AUC", 3)]);
    }
    let with_advice = classes.table.probability.is_some();
    if with_advice {
        columns.extend([column("keep ≥", 2), column("kept", 0), column("right %", 0)]);
    }
    let with_decisions = !classes.decided.is_empty();
    if with_decisions {
        columns.extend(DecisionCounts::default().named().map(|(name, _)| column(name, 0)));
    }
    let cell = |value: Option<f64>| value.map_or(Cell::Empty, Cell::number);
    let rows = classes.classes.iter().map(|class| {
        let numbers = classes.numbers(class);
        let mut cells = vec![
            Cell::number(numbers.n_clean as f64),
            Cell::number(numbers.n_candidates as f64),
            cell(numbers.mean),
            Cell::number(numbers.weight),
        ];
        if with_truth {
            cells.extend([cell(numbers.noise.map(|noise| 100.0 * noise)), cell(numbers.auc)]);
        }
        if with_advice {
            let advice = numbers.advice;
            cells.extend([
                cell(advice.map(|advice| advice.threshold)),
                cell(advice.map(|advice| advice.n_kept as f64)),
                cell(advice.and_then(|advice| advice.share_right).map(|share| 100.0 * share)),
            ]);
        }
        if with_decisions {
            cells.extend(numbers.decided.named().map(|(_, n)| Cell::number(n as f64)));
        }
        TableRow::new(class.name.clone(), cells)
    });
    let truth = if with_truth { NOISE_CAPTION } else { "" };
    let advice = if with_advice { ADVICE_CAPTION } else { "" };
    ResultTable {
        id: "all-classes".into(),
        title: "All classes".into(),
        caption: format!(
            "Weight is the sum of the candidates' relevance: how much they count in training.{truth}{advice}"
        ),
        command: None,
        columns,
        rows: rows.collect(),
    }
}
