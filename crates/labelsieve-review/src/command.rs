//! The command that makes the relevance of a session permanent: its options and their values. How it is typed is for the front
//! end to say ([`Review::spell`](crate::Review::spell)).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use labelsieve::Method;
use labelsieve::graph::NEIGHBOURS;
use labelsieve::relevance::{Gcn, LabelPropagation, Linear, Mixture, Mlp};
use labelsieve_files::inputs::same_network::MixedNetworks;
use labelsieve_files::work::{JobCommand, JobOption, command, option};
use labelsieve_jobs::inputs::pools::PoolFiles;

/// The run of `score` that uses the decisions of a session.
pub(super) struct ScoreRun<'a> {
    pub(super) files: &'a PoolFiles,
    pub(super) method: &'a Method,
    pub(super) seed: u64,
    pub(super) decisions: &'a Path,
    /// The relevance file under review, beside which the new one is written.
    pub(super) relevance: &'a Path,
}

impl ScoreRun<'_> {
    /// Its command; none for settings without options, which relevance files written from Python may have.
    pub(super) fn command(&self) -> Option<JobCommand> {
        if !has_options(self.method) {
            return None;
        }
        let options = [self.files(), self.columns(), self.settings()].concat();
        let command = options.into_iter().fold(command("score"), JobCommand::with);
        let decisions = option("decisions").set_to(self.decisions.display());
        let output = option("output").set_to(reviewed(self.relevance).display());
        Some(command.with(decisions).with(output))
    }

    fn files(&self) -> Vec<JobOption> {
        let files = self.files;
        let clean = files.clean.as_ref();
        let paths = [
            ("clean", clean.map(|table| &table.path)),
            ("class_text", files.class_text.as_ref()),
            ("pool", Some(&files.pool.path)),
            ("clean_labels", clean.and_then(|table| table.columns.labels.as_ref())),
            ("pool_labels", files.pool.columns.labels.as_ref()),
            ("candidates", files.candidates.as_ref()),
            ("base", files.base.as_ref()),
        ];
        let given = paths.into_iter().filter_map(|(name, path)| Some((name, path?)));
        given.map(|(name, path)| option(name).set_to(path.display())).collect()
    }

    /// Columns by name, where a table has named columns: `score` rejects options without effect.
    fn columns(&self) -> Vec<JobOption> {
        let columns = &self.files.pool.columns;
        let mut options = Vec::new();
        if let Some(name) = &columns.embedding
            && self.any_table(|path| has_columns(path) && !path.is_dir())
        {
            options.push(option("embedding_column").set_to(name));
        }
        for (field, name) in [("label_column", &columns.label), ("id_column", &columns.id)] {
            if let Some(name) = name
                && self.any_table(has_columns)
            {
                options.push(option(field).set_to(name));
            }
        }
        if self.files.mixed == MixedNetworks::Accept {
            options.push(option("allow_mixed"));
        }
        options
    }

    fn any_table(&self, is_suitable: impl Fn(&Path) -> bool) -> bool {
        let clean = self.files.clean.as_ref().map(|table| &table.path);
        clean.into_iter().chain([&self.files.pool.path]).any(|path| is_suitable(path))
    }

    /// Settings that differ from the defaults.
    fn settings(&self) -> Vec<JobOption> {
        let mut options = Vec::new();
        if self.method.name() != "auto" {
            options.push(option("method").set_to(self.method.name()));
        }
        if let Some(lambda) = lambda(self.method) {
            options.push(option("lambda").set_to(lambda));
        }
        if let Method::Beta(model) = self.method {
            options.push(option("beta").set_to(model.beta));
        }
        if let Some(neighbours) = neighbours(self.method) {
            options.push(option("neighbours").set_to(neighbours));
        }
        if self.seed != 0 {
            options.push(option("seed").set_to(self.seed));
        }
        options
    }
}

fn has_columns(path: &Path) -> bool {
    path.is_dir() || !matches!(path.extension().and_then(OsStr::to_str), Some("npz" | "npy"))
}

/// Whether `score` has options for all settings of a method that differ from its defaults.
fn has_options(method: &Method) -> bool {
    *method
        == match method {
            Method::Gcn(Gcn { lambda, neighbours, .. }) => {
                Method::Gcn(Gcn { lambda: *lambda, neighbours: *neighbours, ..Gcn::default() })
            }
            Method::Mlp(Mlp { lambda, .. }) => Method::Mlp(Mlp { lambda: *lambda, ..Mlp::default() }),
            Method::LabelPropagation(LabelPropagation { neighbours, .. }) => {
                Method::LabelPropagation(LabelPropagation {
                    neighbours: *neighbours,
                    ..LabelPropagation::default()
                })
            }
            Method::Linear(_) => Method::Linear(Linear::default()),
            Method::Mixture(Mixture { neighbours, .. }) => {
                Method::Mixture(Mixture { neighbours: *neighbours, ..Mixture::default() })
            }
            Method::Similarity(_) | Method::Beta(_) | Method::Auto(_) => return true,
        }
}

/// Whether a method has a λ to choose.
pub(super) fn has_lambda(method: &Method) -> bool {
    matches!(method, Method::Gcn(_) | Method::Mlp(_) | Method::Auto(_))
}

/// λ, where a method has one and it was chosen.
pub(super) fn lambda(method: &Method) -> Option<f32> {
    match method {
        Method::Gcn(model) => model.lambda,
        Method::Mlp(model) => model.lambda,
        Method::Auto(model) => model.lambda,
        _ => None,
    }
}

/// Neighbours per example, where a method has them and they were chosen.
fn neighbours(method: &Method) -> Option<usize> {
    match method {
        Method::Gcn(Gcn { neighbours, .. })
        | Method::LabelPropagation(LabelPropagation { neighbours, .. })
        | Method::Mixture(Mixture { neighbours, .. }) => {
            Some(*neighbours).filter(|count| *count != NEIGHBOURS)
        }
        Method::Auto(auto) => auto.neighbours,
        _ => None,
    }
}

/// Beside the relevance file: `relevance.parquet` becomes `relevance-reviewed.parquet`.
fn reviewed(relevance: &Path) -> PathBuf {
    let stem = relevance.file_stem().unwrap_or(OsStr::new("relevance")).to_string_lossy();
    relevance.with_file_name(format!("{stem}-reviewed.parquet"))
}

#[cfg(test)]
mod tests {
    use labelsieve::relevance::{Auto, Training};

    use super::*;
    use labelsieve_files::inputs::tables::Table;

    fn files(clean: &str, pool: &str) -> PoolFiles {
        PoolFiles {
            clean: Some(Table::new(clean)),
            class_text: None,
            pool: Table::new(pool),
            candidates: None,
            base: None,
            mixed: MixedNetworks::Refuse,
        }
    }

    fn run<'a>(files: &'a PoolFiles, method: &'a Method, seed: u64) -> ScoreRun<'a> {
        ScoreRun {
            files,
            method,
            seed,
            decisions: Path::new("d.parquet"),
            relevance: Path::new("out/relevance.parquet"),
        }
    }

    #[track_caller]
    fn check(run: &ScoreRun, expected: &[(&str, &str)]) {
        let command = run.command().expect("a command");
        let options: Vec<(&str, &str)> = command
            .options
            .iter()
            .map(|option| (option.name, option.value.as_deref().unwrap_or_default()))
            .collect();
        let end = [("decisions", "d.parquet"), ("output", "out/relevance-reviewed.parquet")];
        assert_eq!(command.name, "score");
        assert_eq!(options, [expected, &end].concat());
    }

    #[test]
    fn only_what_differs_from_the_defaults_is_spelled_out() {
        let plain = files("c.npz", "my pool.parquet");
        let tables = [("clean", "c.npz"), ("pool", "my pool.parquet")];
        let auto = Method::Auto(Auto::default());
        check(&run(&plain, &auto, 0), &tables);
        let mlp = Method::Mlp(Mlp { lambda: Some(0.5), ..Mlp::default() });
        let settings = [("method", "mlp"), ("lambda", "0.5"), ("seed", "7")];
        check(&run(&plain, &mlp, 7), &[&tables[..], &settings].concat());
        let gcn = Method::Gcn(Gcn { neighbours: 10, ..Gcn::default() });
        check(&run(&plain, &gcn, 0), &[&tables[..], &[("method", "gcn"), ("neighbours", "10")]].concat());
        let wide = Method::Auto(Auto { neighbours: Some(50), ..Auto::default() });
        let with_base = PoolFiles { base: Some("b.npz".into()), ..plain.clone() };
        check(
            &run(&with_base, &wide, 0),
            &[&tables[..], &[("base", "b.npz"), ("neighbours", "50")]].concat(),
        );
        let mixed = PoolFiles { mixed: MixedNetworks::Accept, ..plain.clone() };
        check(&run(&mixed, &auto, 0), &[&tables[..], &[("allow_mixed", "")]].concat());
        let texts = PoolFiles { clean: None, class_text: Some("t.parquet".into()), ..plain };
        check(&run(&texts, &auto, 0), &[("class_text", "t.parquet"), ("pool", "my pool.parquet")]);
    }

    #[test]
    fn columns_are_named_where_there_are_some() {
        let auto = Method::Auto(Auto::default());
        let with_id = |pool: &str| {
            let mut files = files("c.npz", pool);
            files.pool.columns.id = Some("uid".to_owned());
            files
        };
        let parquet = [("clean", "c.npz"), ("pool", "n.parquet"), ("id_column", "uid")];
        check(&run(&with_id("n.parquet"), &auto, 0), &parquet);
        check(&run(&with_id("n.npy"), &auto, 0), &[("clean", "c.npz"), ("pool", "n.npy")]);
    }

    #[test]
    fn settings_without_an_option_give_no_command() {
        let files = files("c.npz", "n.npz");
        let short = Training { iterations: 7, ..Training::default() };
        for method in [
            Method::Gcn(Gcn { training: short, ..Gcn::default() }),
            Method::Mlp(Mlp { training: short, ..Mlp::default() }),
            Method::LabelPropagation(LabelPropagation { alpha: 0.1, ..LabelPropagation::default() }),
            Method::Linear(Linear { decay: 0.5, ..Linear::default() }),
            Method::Mixture(Mixture { rounds: 3, ..Mixture::default() }),
        ] {
            assert_eq!(run(&files, &method, 0).command(), None);
        }
    }
}
