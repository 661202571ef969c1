//! Turns class names into features: the text tower of CLIP, SigLIP or OpenCLIP makes a row per class, in the same space as the
//! rows that its image tower makes for photos.
//!
//! ```text
//! class file ──templates──► texts ──tokenizer.rs──► tokens ──TextTower──► rows ──mean per class──► file of features
//! ```

#[cfg(not(feature = "text"))]
mod no_tokenizer;
#[cfg(feature = "text")]
mod tokenizer;

use std::path::{Path, PathBuf};

use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_files::work::{Context, Error, Monitor, Result, option, path_text, words};
use labelsieve_files::{
    AtomicFile, DataError, FeatureFormat, FeatureLayout, FeatureRows, FeatureWriter, Precision, counted,
    text_id,
};
use labelsieve_matching::names::ClassEntry;
use labelsieve_matching::text::read_class_file;
use labelsieve_numerics::Device;
use serde::Serialize;
use serde_json::json;

#[cfg(not(feature = "text"))]
use self::no_tokenizer::TextTokenizer;
#[cfg(feature = "text")]
use self::tokenizer::TextTokenizer;
use crate::devices::CpuDevices;
use crate::opening::built_in::BuiltIn;
use crate::opening::embedder::{model_files, open_embedder};
use crate::opening::hub_folder::open_hub_tensors;
use crate::opening::onnx::OnnxOptions;
use crate::to_unit_length;
use crate::transformer::families::describe_text;
use crate::transformer::{Cpu, TextTower};

/// The placeholder for a name in a template.
const NAME: &str = "{name}";

/// The default template.
pub const TEMPLATE: &str = "a photo of a {name}.";

/// Turns class names into features of unit length, one row per class.
#[derive(Clone, Debug)]
pub struct EmbedText {
    /// The folder of a network with an image and a text tower.
    pub model: PathBuf,
    /// The classes and their names.
    pub classes: PathBuf,
    /// Texts with `{name}` in them; every name goes into each.
    pub templates: Vec<String>,
    /// Precision of stored features.
    pub precision: Precision,
    /// The file to write: `.parquet` with ids and classes, `.npz` or `.npy`.
    pub output: PathBuf,
}

/// A summary of the written features.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EmbedTextSummary {
    /// Rows that were written, one per class.
    pub n_classes: usize,
    /// Texts that they were averaged from.
    pub n_texts: usize,
    /// Numbers per row.
    pub dim: usize,
    /// Texts that were too long for the network and were cut.
    pub n_truncated: usize,
    /// The table of ids and classes beside an array.
    #[serde(serialize_with = "path_text::perhaps")]
    pub ids_table: Option<PathBuf>,
}

impl EmbedText {
    /// Embeds all names and writes a row per class.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<EmbedTextSummary> {
        OutputKind::Features.target(&self.output)?;
        FeatureFormat::of(&self.output)?;
        self.check_templates()?;
        self.check_model()?;
        let inputs = Files::default().reads(&model_files(&self.model)?).reads([&self.classes]);
        inputs.writes([&self.output]).writes_beside(&self.output, &[".ids.csv"]).check()?;
        let classes = read_class_file(&self.classes)?;
        let classes = classes.classes();

        let mut reader = TextReader::open(&self.model)?;
        drop(AtomicFile::create(&self.output)?);
        let network = self.network(reader.dim(), monitor)?;
        let progress = monitor.progress(classes.len() as u64, "classes");
        progress.set_message(reader.architecture);
        let mut values = Vec::new();
        let mut n_texts = 0;
        let mut cut = Vec::new();
        for class in classes {
            monitor.watch().check()?;
            let texts = self.texts_of(class);
            let (features, is_cut) = reader.features(&texts)?;
            let of_class = || format!("class `{}`", class.id);
            values.extend(average(features, reader.dim()).with_context(of_class)?);
            n_texts += texts.len();
            cut.extend(texts.into_iter().zip(is_cut).filter(|(_, is_cut)| *is_cut).map(|(text, _)| text));
            progress.inc(1);
        }
        progress.finish();
        if let Some(first) = cut.first() {
            monitor.warning(&format!(
                "truncated {} to the network's {} tokens, e.g. `{first}`",
                counted(cut.len(), "text"),
                reader.tower.text().context
            ));
        }
        let settings = json!({
            "command": "embed-text", "architecture": reader.architecture, "templates": self.templates,
        });
        let ids: Vec<String> = classes.iter().map(|class| text_id(&class.id)).collect();
        let labels: Vec<Option<String>> = classes.iter().map(|class| Some(class.id.clone())).collect();
        let layout = FeatureLayout {
            n_rows: ids.len(),
            n_with_class: ids.len(),
            dim: reader.dim(),
            precision: self.precision,
            network: Some(&network),
        };
        let mut writer = FeatureWriter::create(&self.output, layout, &settings.to_string())?;
        writer.add(FeatureRows { ids: &ids, labels: &labels, values: &values })?;
        let ids_table = writer.finish()?;
        Ok(EmbedTextSummary {
            n_classes: classes.len(),
            n_texts,
            dim: reader.dim(),
            n_truncated: cut.len(),
            ids_table,
        })
    }

    /// The fingerprint of the image tower: its features are compared with those of the texts.
    fn network(&self, dim: usize, monitor: &dyn Monitor) -> Result<String> {
        let images =
            open_embedder(&self.model, None, &OnnxOptions::default(), Device::Cpu, &CpuDevices, monitor)?;
        match images.embedder.dim() {
            found if found == dim => Ok(images.fingerprint.text(None)),
            found => Err(Error::input(
                format!(
                    "`{}`: its text tower has {dim} outputs, but its image tower has {found}",
                    self.model.display()
                ),
                "both towers must share one space; a projection may be missing",
            )),
        }
    }

    /// Rejects kinds of models that have no text tower.
    fn check_model(&self) -> Result<()> {
        let model = &self.model;
        if BuiltIn::named(model).is_some() || model.is_file() {
            return Err(Error::input(
                format!("`{}` has no text tower", model.display()),
                "pass the folder of a CLIP, SigLIP or OpenCLIP model",
            ));
        }
        std::fs::metadata(model).map_err(DataError::io("open", model))?;
        Ok(())
    }

    fn check_templates(&self) -> Result<()> {
        let bad = self.templates.iter().find(|template| !template.contains(NAME));
        match (bad, self.templates.is_empty()) {
            (None, false) => Ok(()),
            (bad, _) => Err(Error::input(
                words![
                    option("template"),
                    format!(": expected a text with {NAME} in it, found `{}`", bad.map_or("", |bad| bad)),
                ],
                format!("e.g. `{TEMPLATE}`"),
            )),
        }
    }

    /// Every name in every template.
    fn texts_of(&self, class: &ClassEntry) -> Vec<String> {
        let names = class.names.iter();
        names
            .flat_map(|name| self.templates.iter().map(move |template| template.replace(NAME, name)))
            .collect()
    }
}

/// A network that reads texts: its tokenizer and its text tower.
pub struct TextReader {
    architecture: &'static str,
    tokenizer: TextTokenizer,
    tower: TextTower<Cpu>,
}

impl TextReader {
    /// Opens the text side of a folder.
    pub fn open(model: &Path) -> Result<TextReader> {
        let in_folder = || format!("`{}`", model.display());
        let (config, tensors) = open_hub_tensors(model)?;
        let described = describe_text(&config, &tensors).with_context(in_folder)?;
        let tokenizer = TextTokenizer::open(model, &config, &described)?;
        let tower = TextTower::read(Cpu::default(), &described.text, &described.names, &tensors);
        let tower = tensors.checked(tower).with_context(in_folder)?;
        Ok(TextReader { architecture: described.architecture, tokenizer, tower })
    }

    /// Numbers per feature.
    pub fn dim(&self) -> usize {
        self.tower.text().dim
    }

    /// The tokens of each text, and whether it had to be cut.
    pub fn tokens(&self, texts: &[String]) -> Result<(Vec<Vec<u32>>, Vec<bool>)> {
        self.tokenizer.tokens(texts)
    }

    /// A row for each text, not yet of unit length, and whether it had to be cut.
    pub fn features(&mut self, texts: &[String]) -> Result<(Vec<f32>, Vec<bool>)> {
        let (tokens, is_cut) = self.tokens(texts)?;
        Ok((self.tower.features(&tokens)?, is_cut))
    }
}

/// The mean direction of rows of `dim` numbers: the sum of the unit rows, scaled to unit length.
fn average(mut rows: Vec<f32>, dim: usize) -> crate::Result<Vec<f32>> {
    if let Some(value) = rows.iter().find(|value| !value.is_finite()) {
        return Err(crate::Error::Shape {
            what: "features".to_owned(),
            expected: "finite numbers".to_owned(),
            found: format!("{value}: the network may be untrained or damaged"),
        });
    }
    let mut sum = vec![0f64; dim];
    for row in rows.chunks_exact_mut(dim) {
        to_unit_length(row);
        sum.iter_mut().zip(row.iter()).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    let mut mean: Vec<f32> = sum.into_iter().map(|sum| sum as f32).collect();
    to_unit_length(&mut mean);
    Ok(mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_class_count_alike_and_must_be_numbers() {
        let mean = average(vec![2.0, 0.0, 0.0, 0.5], 2).unwrap();
        assert!(mean.iter().all(|value| (value - 0.5f32.sqrt()).abs() < 1e-6), "{mean:?}");
        let error = average(vec![1.0, f32::NAN], 2).context("class `owl`").unwrap_err().to_string();
        assert!(error.starts_with("class `owl`: features: expected finite numbers, found NaN"), "{error}");
    }
}
