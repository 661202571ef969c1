//! The accuracy that candidates add, with and without relevance.

use std::collections::HashMap;

use anyhow::{Context, Result};
use labelsieve::classifier::{Cosine, WeightedClass, prototypes};
use labelsieve::evaluation::{Accuracy, accuracy};
use labelsieve::{Classifier, Features};
use labelsieve_files::inputs::tables::{labels_of, load, rows_by_class, rows_by_id};
use labelsieve_files::work::table::{layout, percent};
use labelsieve_files::{ExampleTable, TableColumns, read_relevance};
use labelsieve_jobs::inputs::classifier::load_classifier;
use labelsieve_report::{Cell, ResultTable, TableColumn, TableRow};

use super::folder::Folder;
use super::sample::Sample;
use crate::answers::DemoRow;

/// The accuracy of each way, in the order of the table.
pub struct Comparison {
    ways: Vec<(&'static str, Accuracy)>,
}

/// One class: its clean rows, its candidates' rows, their relevance and whether they are relevant.
struct Class {
    name: String,
    clean: Features,
    noisy: Features,
    relevance: Vec<f32>,
    truth: Vec<f32>,
}

/// How much each candidate of a class counts.
type Weigh = fn(&Class) -> Vec<f32>;

const TRAINED: &str = "all, by probability (discriminant)";
const ORACLE: &str = "all relevant ones, by ground truth (prototypes)";

impl Comparison {
    /// Tests prototypes of clean icons alone, of all icons alike, of icons by relevance and by truth, the paper's cosine
    /// classifier, and the classifier that `train` wrote.
    pub fn measure(folder: &Folder, sample: &Sample, seed: u64) -> Result<Comparison> {
        let test = open(folder, "test.parquet")?;
        let classes = read_classes(folder, sample)?;
        let rows: Vec<usize> = (0..test.len()).collect();
        let features = load(&test, &rows)?;
        let labels = labels_of(&test, "")?;
        let number: HashMap<&str, usize> =
            classes.iter().enumerate().map(|(i, class)| (class.name.as_str(), i)).collect();
        let truth: Vec<usize> = rows.iter().map(|&row| number[labels.get(row)]).collect();
        let test = |classifier: &dyn Classifier| accuracy(classifier, &features, &truth);

        let mut ways = Vec::new();
        let by: [(&'static str, Weigh); 4] = [
            ("clean icons only (prototypes)", |class| vec![0.0; class.noisy.len()]),
            ("all, weighted equally (prototypes)", |class| vec![1.0; class.noisy.len()]),
            ("all, by relevance (prototypes)", |class| class.relevance.clone()),
            (ORACLE, |class| class.truth.clone()),
        ];
        for (name, weigh) in by {
            let weights: Vec<Vec<f32>> = classes.iter().map(weigh).collect();
            let weighted = classes
                .iter()
                .zip(&weights)
                .map(|(class, weights)| WeightedClass::new(&class.clean, &class.noisy, weights))
                .collect::<labelsieve::Result<Vec<_>>>()?;
            let matrix = prototypes(&weighted, features.dim(), Cosine::default().scale)?;
            ways.push((name, test(&matrix)?));
        }
        let weighted = classes
            .iter()
            .map(|class| WeightedClass::new(&class.clean, &class.noisy, &class.relevance))
            .collect::<labelsieve::Result<Vec<_>>>()?;
        let cosine = Cosine::default().train(&weighted, features.dim(), seed)?;
        ways.insert(3, ("all, by relevance (cosine classifier)", test(&cosine)?));
        let trained = load_classifier(&folder.path("model.safetensors"))?;
        ways.insert(4, (TRAINED, test(trained.classifier.as_ref())?));
        Ok(Comparison { ways })
    }

    /// As a table of the report.
    pub fn table(&self) -> ResultTable {
        let row = |(name, found): &(&'static str, Accuracy)| TableRow {
            reference: *name == ORACLE,
            ..TableRow::new(*name, vec![Cell::number(100.0 * found.top_1), Cell::number(100.0 * found.top_5)])
        };
        ResultTable {
            id: "accuracy".to_owned(),
            title: "What the candidates bring".to_owned(),
            caption: "Accuracy on the icons held out, in per cent. The last row knows the truth: a ceiling, not a method."
                .to_owned(),
            command: Some("labelsieve demo".to_owned()),
            columns: vec![TableColumn::new("top-1 %"), TableColumn::new("top-5 %")],
            rows: self.ways.iter().map(row).collect(),
        }
    }

    /// For other programs.
    pub fn rows(&self) -> Vec<DemoRow> {
        let row = |&(trained_on, ref found): &(&'static str, Accuracy)| DemoRow {
            trained_on,
            top_1: found.top_1,
            top_5: found.top_5,
        };
        self.ways.iter().map(row).collect()
    }

    /// As a table of the terminal.
    pub fn text(&self) -> String {
        let row = |(name, found): &(&str, Accuracy)| {
            vec![(*name).to_owned(), percent(found.top_1), percent(found.top_5)]
        };
        let rows: Vec<Vec<String>> = self.ways.iter().map(row).collect();
        layout(&["trained on", "top-1 %", "top-5 %"], &rows).join("\n")
    }
}

fn open(folder: &Folder, name: &str) -> Result<ExampleTable> {
    Ok(ExampleTable::open(folder.path(name), &TableColumns::default())?)
}

fn read_classes(folder: &Folder, sample: &Sample) -> Result<Vec<Class>> {
    let clean = open(folder, "clean.parquet")?;
    let pool = open(folder, "pool.parquet")?;
    let relevance = read_relevance(folder.path("relevance.parquet"))?;
    let by_id = rows_by_id(&pool)?;
    let truth = sample.truth();
    let mut classes = Vec::new();
    for (name, rows) in rows_by_class(labels_of(&clean, "")?) {
        let mut class = Class {
            clean: load(&clean, &rows)?,
            noisy: load(&pool, &[])?,
            relevance: vec![],
            truth: vec![],
            name,
        };
        let mut chosen = Vec::new();
        for i in (0..relevance.ids.len()).filter(|&i| !relevance.is_clean[i]) {
            if relevance.classes.get(i) == class.name {
                let id = &relevance.ids[i];
                chosen.push(by_id.get(id).with_context(|| format!("`{id}` has no features"))?);
                class.relevance.push(relevance.relevance[i]);
                let relevant = truth.get(&(id.to_owned(), class.name.as_str())).copied().unwrap_or(false);
                class.truth.push(f32::from(u8::from(relevant)));
            }
        }
        class.noisy = load(&pool, &chosen)?;
        classes.push(class);
    }
    Ok(classes)
}
