//! Generated examples with known truth, written in every format that the commands read.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use labelsieve::Features;
use labelsieve::synthetic::{Recipe, SyntheticTask};
use labelsieve_files::{NpzWriter, write_npy_f32, write_npy_i64};
use parquet::arrow::ArrowWriter;

/// Small enough for a debug build, large enough that cleaning helps.
pub const RECIPE: Recipe = Recipe {
    dim: 16,
    n_classes: 6,
    n_clean: 3,
    largest_pool: 120,
    noise_ratio: 0.6,
    noise: labelsieve::synthetic::Noise::Clusters(3),
    n_test: 12,
};

/// Rows with a class each.
#[derive(Clone)]
pub struct Examples {
    pub dim: usize,
    pub features: Vec<f32>,
    pub classes: Vec<usize>,
}

/// The three files of a task: `C.npz`, `N.npz` and `T.npz`, as the paper's release lays them out.
pub fn write_task(folder: &Path) -> SyntheticTask {
    let task = RECIPE.generate(0);
    clean_of(&task).npz(folder.join("C.npz"));
    noisy_of(&task).npz(folder.join("N.npz"));
    test_of(&task).npz(folder.join("T.npz"));
    task
}

/// A folder with [`write_task`] in it.
pub fn task_folder() -> (tempfile::TempDir, SyntheticTask) {
    let folder = tempfile::tempdir().expect("a folder");
    let task = write_task(folder.path());
    (folder, task)
}

pub fn clean_of(task: &SyntheticTask) -> Examples {
    Examples::by_class(task.classes.iter().map(|class| &class.clean))
}

pub fn noisy_of(task: &SyntheticTask) -> Examples {
    Examples::by_class(task.classes.iter().map(|class| &class.noisy))
}

pub fn test_of(task: &SyntheticTask) -> Examples {
    let features = task.test.block(0..task.test.len()).to_vec();
    Examples { dim: task.test.dim(), features, classes: task.test_labels.clone() }
}

impl Examples {
    pub fn new(dim: usize, features: &[f32], classes: &[usize]) -> Examples {
        Examples { dim, features: features.to_vec(), classes: classes.to_vec() }
    }

    /// The n-th set is class n.
    pub fn by_class<'a>(sets: impl Iterator<Item = &'a Features>) -> Examples {
        let mut all = Examples { dim: 0, features: Vec::new(), classes: Vec::new() };
        for (class, set) in sets.enumerate() {
            all.dim = set.dim();
            all.features.extend(set.block(0..set.len()));
            all.classes.extend(std::iter::repeat_n(class, set.len()));
        }
        all
    }

    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// The same with one number changed.
    pub fn with(mut self, row: usize, column: usize, value: f32) -> Examples {
        self.features[row * self.dim + column] = value;
        self
    }

    /// The examples of classes that `keep` likes.
    pub fn only(&self, keep: impl Fn(usize) -> bool) -> Examples {
        let mut rest = Examples { dim: self.dim, features: Vec::new(), classes: Vec::new() };
        for (row, &class) in self.features.chunks(self.dim).zip(&self.classes).filter(|(_, c)| keep(**c)) {
            rest.features.extend(row);
            rest.classes.push(class);
        }
        rest
    }

    pub fn npz(&self, path: PathBuf) {
        self.npz_with_labels(path, &self.labels());
    }

    /// With labels of our choice, in number too.
    pub fn npz_with_labels(&self, path: PathBuf, labels: &[i64]) {
        let writer = NpzWriter::create(path).expect("a writable folder");
        let writer = writer.f32("features_all", &[self.len(), self.dim], &self.features).expect("disk space");
        writer.i64("labels_all", &[labels.len()], labels).expect("disk space").finish().expect("disk space");
    }

    pub fn npy(&self, path: PathBuf) {
        let file = File::create(path).expect("a writable folder");
        write_npy_f32(file, &[self.len(), self.dim], &self.features).expect("disk space");
    }

    pub fn labels_npy(&self, path: PathBuf) {
        write_npy_i64(File::create(path).expect("a writable folder"), &[self.len()], &self.labels())
            .expect("disk space");
    }

    /// With ids `{prefix}{row}` and classes called by [`class_name`].
    pub fn parquet(&self, path: PathBuf, prefix: &str) {
        let mut embedding = FixedSizeListBuilder::new(Float32Builder::new(), self.dim as i32);
        for row in self.features.chunks(self.dim) {
            embedding.values().append_slice(row);
            embedding.append(true);
        }
        let ids = StringArray::from_iter_values((0..self.len()).map(|row| format!("{prefix}{row}")));
        let classes = StringArray::from_iter_values(self.classes.iter().map(|&class| class_name(class)));
        write_parquet(
            path,
            [
                ("id", Arc::new(ids) as ArrayRef),
                ("class", Arc::new(classes)),
                ("embedding", Arc::new(embedding.finish())),
            ],
        );
    }

    /// As clip-retrieval writes it, in two parts; images are called `{prefix}{row}.jpg` and have no class.
    pub fn clip_retrieval(&self, folder: &Path, prefix: &str) {
        for name in ["img_emb", "metadata"] {
            std::fs::create_dir_all(folder.join(name)).expect("a writable folder");
        }
        let half = self.len() / 2;
        for (part, rows) in [(0, 0..half), (1, half..self.len())] {
            let features = &self.features[rows.start * self.dim..rows.end * self.dim];
            let file = File::create(folder.join(format!("img_emb/img_emb_{part:04}.npy"))).expect("a folder");
            write_npy_f32(file, &[rows.len(), self.dim], features).expect("disk space");
            let paths: Vec<String> = rows.clone().map(|row| format!("{prefix}{row}.jpg")).collect();
            let captions = vec!["a photo"; paths.len()];
            write_parquet(
                folder.join(format!("metadata/metadata_{part:04}.parquet")),
                [
                    ("image_path", Arc::new(StringArray::from(paths)) as ArrayRef),
                    ("caption", Arc::new(StringArray::from(captions))),
                ],
            );
        }
    }

    fn labels(&self) -> Vec<i64> {
        self.classes.iter().map(|&class| class as i64).collect()
    }
}

/// Names whose alphabetical order is that of the numbers.
pub fn class_name(class: usize) -> String {
    format!("{} owl", ["barn", "eagle", "fish", "hawk", "pygmy", "snowy"][class])
}

/// Which candidates of a task are relevant, by row number.
pub fn write_truth(task: &SyntheticTask, path: PathBuf) {
    let truth: Vec<bool> = task.classes.iter().flat_map(|class| class.truth.iter().copied()).collect();
    let ids: Vec<String> = (0..truth.len()).map(|row| row.to_string()).collect();
    let classes: Vec<String> = noisy_of(task).classes.iter().map(usize::to_string).collect();
    write_parquet(
        path,
        [
            ("id", Arc::new(StringArray::from(ids)) as ArrayRef),
            ("class", Arc::new(StringArray::from(classes))),
            ("relevant", Arc::new(BooleanArray::from(truth))),
        ],
    );
}

pub fn write_parquet<'a>(path: PathBuf, columns: impl IntoIterator<Item = (&'a str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let file = File::create(path).expect("a writable folder");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a schema");
    writer.write(&batch).expect("disk space");
    writer.close().expect("disk space");
}

/// All columns of a Parquet file, in batches.
pub fn read_parquet(path: PathBuf) -> Vec<RecordBatch> {
    let file = File::open(path).expect("a file");
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file);
    reader.expect("Parquet").build().expect("columns").map(|batch| batch.expect("rows")).collect()
}
