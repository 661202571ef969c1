//! Every kind of figure, with ordinary, empty and hostile data.

use labelsieve::evaluation::Calibration;
use proptest::prelude::*;

use super::*;
use crate::{Axis, BarSeries, ClassRelevance, LineSeries, Point, PoolSize, ReliabilitySeries};

fn figure(data: FigureKind) -> Figure {
    Figure { id: "f".into(), title: "A figure".into(), caption: String::new(), command: None, data }
}

fn lines(points: Vec<Point>) -> FigureKind {
    let series = ["k = 1", "<script>alert('k')</script>", "k & more"]
        .map(|name| LineSeries { name: name.into(), points: points.clone() })
        .to_vec();
    FigureKind::Lines { x: Axis::log("λ"), y: Axis::linear("top-5 accuracy (%)"), series }
}

fn bars(values: Vec<Option<f64>>) -> FigureKind {
    let groups = (0..values.len()).map(|group| format!("a group of name {group}")).collect();
    let series = vec![BarSeries { name: "GCN".into(), half_widths: values.clone(), values }];
    FigureKind::Bars { groups, x_label: "k".into(), y: Axis::linear("%"), series }
}

fn cumulative(n_classes: usize, relevance: Vec<f32>) -> FigureKind {
    let relevant = relevance.iter().map(|&value| value > 0.5).collect();
    let class = ClassRelevance { class: "owl\u{0}<b>".into(), relevance, relevant };
    FigureKind::CumulativeRelevance { classes: vec![class; n_classes] }
}

fn sizes(candidates: &[usize]) -> FigureKind {
    let class = |&candidates: &usize| PoolSize {
        class: "owl".into(),
        candidates,
        gain: Some(candidates as f64 - 7.0),
    };
    FigureKind::PoolSizes { classes: candidates.iter().map(class).collect(), gain_label: "gain".into() }
}

fn probabilities(names: &[&str], probability: &[f32]) -> FigureKind {
    let relevant: Vec<bool> = probability.iter().map(|&p| p > 0.5).collect();
    let mut calibration = Calibration::default();
    calibration.add(probability, &relevant);
    let bins = calibration.reliability().map_or(Vec::new(), |found| found.bins);
    let series = |name: &&str| ReliabilitySeries { name: (*name).into(), bins: bins.clone() };
    FigureKind::Reliability { series: names.iter().map(series).collect() }
}

/// Draws a figure every way; it must be XML, and all its numbers must be numbers.
fn check(data: FigureKind) -> String {
    let figure = figure(data);
    let files = [Layout::Wide, Layout::Narrow].map(|layout| {
        let file = draw(&figure, layout).standalone(&figure.title, &describe(&figure));
        let document = roxmltree::Document::parse(&file).unwrap_or_else(|error| panic!("{error}: {file}"));
        for node in document.descendants() {
            for attribute in node
                .attributes()
                .filter(|a| ["x", "y", "d", "width", "height", "x1", "y2"].contains(&a.name()))
            {
                let value = attribute.value();
                assert!(!value.contains("NaN") && !value.contains("inf"), "{node:?}");
                assert!(
                    !["width", "height"].contains(&attribute.name()) || !value.starts_with('-'),
                    "{node:?}"
                );
            }
        }
        assert!(document.descendants().all(|node| node.tag_name().name() != "script"));
        file
    });
    let [wide, _narrow] = files;
    wide
}

#[test]
fn every_kind_of_figure_is_well_formed() {
    let point = |x, y| Point { x, y, half_width: Some(0.5) };
    let drawn = check(lines(vec![point(0.01, 50.0), point(1.0, 60.0), point(0.1, 40.0)]));
    assert_eq!(drawn.matches("class=\"line").count(), 3, "a curve per series");
    assert!(drawn.contains("&lt;script&gt;alert(") && drawn.contains("top-5 accuracy (%)"));
    let drawn = check(bars(vec![Some(3.0), None, Some(-2.0)]));
    assert_eq!(drawn.matches("<rect class=\"fill").count(), 2, "no bar without a value");
    check(cumulative(3, vec![0.1, 0.9, 0.9]));
    let drawn = check(cumulative(40, vec![0.1, 0.9, 0.9]));
    assert_eq!(drawn.matches("class=\"thin").count(), 40, "many classes share a panel");
    let drawn = check(FigureKind::Separation { relevant: vec![0.9, 0.4], irrelevant: vec![0.6, 0.1] });
    assert!(drawn.contains("AUC 0.750"));
    // One of 0.25 that is wrong, three of 0.75 that are right: each is off by 0.25.
    let drawn = check(probabilities(&["<all>"], &[0.25, 0.75, 0.75, 0.75]));
    assert!(drawn.contains("&lt;all&gt; (4 candidates, expected error 0.250)"), "{drawn}");
    assert_eq!(drawn.matches("<rect class=\"fill").count(), 2, "a bar per bin with candidates");
    let drawn = check(probabilities(&["a", "b"], &[0.25, 0.75]));
    assert_eq!(
        drawn.matches("class=\"line").count() - 2,
        2,
        "a curve per series, and its part of the legend"
    );
    check(sizes(&[0, 3, 12, 700, 620_142]));
}

#[test]
fn figures_without_data_say_so() {
    let separation = FigureKind::Separation { relevant: vec![], irrelevant: vec![] };
    let kinds = [
        lines(vec![]),
        bars(vec![]),
        bars(vec![None]),
        cumulative(0, vec![]),
        cumulative(2, vec![]),
        separation,
        probabilities(&["all"], &[]),
        probabilities(&[], &[0.5]),
        sizes(&[]),
    ];
    for data in kinds {
        assert!(check(data).contains("no data"));
    }
    assert!(
        check(FigureKind::Separation { relevant: vec![0.5], irrelevant: vec![] })
            .contains("needs both groups")
    );
    check(sizes(&[0, 0]));
}

#[test]
fn a_curve_is_joined_in_the_order_of_x() {
    let point = |x, y| Point { x, y, half_width: None };
    let drawn = check(FigureKind::Lines {
        x: Axis::linear("x"),
        y: Axis::linear("y"),
        series: vec![LineSeries {
            name: "s".into(),
            points: vec![point(2.0, 0.0), point(0.0, 0.0), point(1.0, 0.0)],
        }],
    });
    let path = drawn.split("<path class=\"line").nth(1).and_then(|rest| rest.split("d=\"").nth(1)).unwrap();
    let xs: Vec<f64> = path
        .split('"')
        .next()
        .unwrap()
        .split(['M', 'L'])
        .skip(1)
        .map(|pair| pair.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(xs.len() == 3 && xs.is_sorted(), "{xs:?}");
}

proptest! {
    #[test]
    fn any_finite_numbers_can_be_drawn(
        numbers in prop::collection::vec((1e-12f64..1e12, -1e12f64..1e12, 0f64..1e6), 1..30),
        counts in prop::collection::vec(0usize..1_000_000_000, 1..50),
        relevance in prop::collection::vec(0f32..=1.0, 1..50),
    ) {
        check(lines(numbers.iter().map(|&(x, y, h)| Point { x, y, half_width: Some(h) }).collect()));
        check(bars(numbers.iter().map(|&(_, y, _)| Some(y)).collect()));
        check(sizes(&counts));
        check(cumulative(2, relevance.clone()));
        check(probabilities(&["a"], &relevance));
        check(probabilities(&["a", "b"], &relevance));
        check(FigureKind::Separation { relevant: relevance, irrelevant: vec![0.5] });
    }
}
