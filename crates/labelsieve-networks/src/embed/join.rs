//! Joins features that were made in parts into the file that a single run would have written.

use std::path::PathBuf;

use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_files::work::{Error, Monitor, Result, SeenKeys};
use labelsieve_files::{DataError, FeatureLayout, FeaturePart, FeatureRows, FeatureWriter};
use serde::Serialize;

use super::{id_twice, nothing_embedded};

/// Joins files of features.
#[derive(Clone, Debug)]
pub struct JoinFeatures {
    /// Outputs of [`Embed`](super::Embed) (.parquet), in the order of the images.
    pub parts: Vec<PathBuf>,
    /// The file to write, .parquet.
    pub output: PathBuf,
}

/// A summary of the joined file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct JoinedFeatures {
    /// Rows of all parts.
    pub n_images: usize,
    /// Numbers per row.
    pub dim: usize,
}

impl JoinFeatures {
    /// Checks that all parts were made by the same network with the same settings and that ids are unique, and writes the rows.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<JoinedFeatures> {
        OutputKind::Features.target(&self.output)?;
        Files::default().reads(&self.parts).writes([&self.output]).check()?;
        let parts = self.parts.iter().map(|path| FeaturePart::open(path));
        let parts = parts.collect::<labelsieve_files::Result<Vec<FeaturePart>>>()?;
        let n_rows: usize = parts.iter().map(|part| part.n_rows).sum();
        let Some(first) = parts.first().filter(|_| n_rows > 0) else {
            return Err(nothing_embedded(0, None));
        };
        if let Some(other) = parts.iter().find(|part| part.kind != first.kind) {
            return Err(different(first, other));
        }
        let all_have_classes = parts.iter().all(|part| part.has_classes || part.n_rows == 0);
        let kind = &first.kind;
        let layout = FeatureLayout {
            n_rows,
            n_with_class: if all_have_classes { n_rows } else { 0 },
            dim: kind.dim,
            precision: kind.precision,
            network: kind.network.as_deref(),
        };
        let mut writer = FeatureWriter::create(&self.output, layout, &kind.settings)?;
        let mut seen = SeenKeys::default();
        let progress = monitor.progress(n_rows as u64, "images");
        for part in parts.iter().filter(|part| part.n_rows > 0) {
            monitor.watch().check()?;
            let rows = part.read()?;
            if let Some(id) = rows.ids.iter().find(|id| !seen.is_new(id)) {
                return Err(id_twice(id));
            }
            writer.add(FeatureRows { ids: &rows.ids, labels: &rows.labels, values: &rows.values })?;
            progress.inc(part.n_rows as u64);
        }
        writer.finish()?;
        Ok(JoinedFeatures { n_images: n_rows, dim: kind.dim })
    }
}

fn different(first: &FeaturePart, other: &FeaturePart) -> Error {
    let expected = format!("{:?}, as `{}`", first.kind, first.path.display());
    DataError::malformed(&other.path, "features", expected, format!("{:?}", other.kind)).into()
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::path::Path;

    use labelsieve_files::Precision;

    use super::*;
    use labelsieve_files::work::Silent;

    const WIDTH: usize = 3;

    /// Rows `from..to` of a run whose every class is known where `classes` says so.
    fn write(path: &Path, rows: Range<usize>, classes: Option<&str>, precision: Precision) {
        let ids: Vec<String> = rows.clone().map(|row| format!("{row}.jpg")).collect();
        let labels = vec![classes.map(str::to_owned); ids.len()];
        let values: Vec<f32> =
            (rows.start * WIDTH..rows.end * WIDTH).map(|value| value as f32 / 8.0).collect();
        let n_with_class = if classes.is_some() { ids.len() } else { 0 };
        let layout =
            FeatureLayout { n_rows: ids.len(), n_with_class, dim: WIDTH, precision, network: Some("n 1") };
        let mut writer = FeatureWriter::create(path, layout, r#"{"command":"embed"}"#).unwrap();
        writer.add(FeatureRows { ids: &ids, labels: &labels, values: &values }).unwrap();
        writer.finish().unwrap();
    }

    fn join(parts: &[&Path], output: &Path) -> Result<JoinedFeatures> {
        let parts = parts.iter().map(|path| path.to_path_buf()).collect();
        JoinFeatures { parts, output: output.to_path_buf() }.run(&Silent::default())
    }

    #[test]
    fn joined_parts_are_the_bytes_of_one_run() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for precision in [Precision::F32, Precision::F16] {
            for classes in [Some("owl"), None] {
                write(&at("whole.parquet"), 0..40_000, classes, precision); // groups are cut inside of parts
                write(&at("a.parquet"), 0..17_000, classes, precision);
                write(&at("b.parquet"), 17_000..17_000, classes, precision);
                write(&at("c.parquet"), 17_000..40_000, classes, precision);
                let parts = [at("a.parquet"), at("b.parquet"), at("c.parquet")];
                let parts = parts.each_ref().map(|path| path.as_path());
                let joined = join(&parts, &at("joined.parquet")).unwrap();
                assert_eq!(joined, JoinedFeatures { n_images: 40_000, dim: WIDTH });
                let read = |name: &str| std::fs::read(at(name)).unwrap();
                assert!(read("joined.parquet") == read("whole.parquet"), "{precision:?} {classes:?}");
            }
        }
    }

    #[test]
    fn parts_that_do_not_belong_together_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write(&at("a.parquet"), 0..2, None, Precision::F32);
        write(&at("half.parquet"), 2..4, None, Precision::F16);
        write(&at("again.parquet"), 1..3, None, Precision::F32);
        write(&at("none.parquet"), 0..0, None, Precision::F32);
        let error = |parts: &[&str]| {
            let parts: Vec<PathBuf> = parts.iter().map(|name| at(name)).collect();
            let parts: Vec<&Path> = parts.iter().map(PathBuf::as_path).collect();
            let error = join(&parts, &at("joined.parquet")).unwrap_err().to_string();
            assert!(!at("joined.parquet").exists());
            error
        };
        let found = error(&["a.parquet", "half.parquet"]);
        assert!(found.contains("half.parquet`: features: expected") && found.contains("F16"), "{found}");
        assert!(error(&["a.parquet", "again.parquet"]).contains("two images have the same id `1.jpg`"));
        assert!(error(&["none.parquet"]).contains("no readable images"));
    }
}
