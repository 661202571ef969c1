//! The command that makes the relevance of a session permanent.

use std::ffi::OsStr;
use std::path::Path;

use labelsieve::Method;
use labelsieve::graph::NEIGHBOURS;
use labelsieve::relevance::{Gcn, LabelPropagation, Linear, Mixture, Mlp};
use labelsieve_files::inputs::same_network::MixedNetworks;
use labelsieve_files::work::shell_word::shell_word;
use labelsieve_jobs::inputs::pools::PoolFiles;

/// `labelsieve clean` with the decisions, as a shell reads it; none for settings that it has no options for, which relevance
/// files written from Python may have.
pub(super) fn clean(
    files: &PoolFiles,
    method: &Method,
    seed: u64,
    decisions: &Path,
    relevance: &Path,
) -> Option<String> {
    if !has_options(method) {
        return None;
    }
    let mut words = vec!["labelsieve".to_owned(), "clean".to_owned()];
    let mut option = |name: &str, value: &OsStr| words.extend([name.to_owned(), shell_word(value)]);
    let clean = files.clean.as_ref();
    let paths = [
        ("--clean", clean.map(|table| &table.path)),
        ("--class-text", files.class_text.as_ref()),
        ("--noisy", Some(&files.pool.path)),
        ("--clean-labels", clean.and_then(|table| table.columns.labels.as_ref())),
        ("--noisy-labels", files.pool.columns.labels.as_ref()),
        ("--candidates", files.candidates.as_ref()),
        ("--base", files.base.as_ref()),
    ];
    for (name, path) in paths.into_iter().filter_map(|(name, path)| Some((name, path?))) {
        option(name, path.as_os_str());
    }
    let columns = &files.pool.columns;
    let columns = [
        ("--embedding-column", &columns.embedding),
        ("--label-column", &columns.label),
        ("--id-column", &columns.id),
    ];
    // A column that only the pictures have is none of `clean`, which refuses options without effect.
    let can_name = |column: &str| {
        let tables = clean.map(|table| &table.path).into_iter().chain([&files.pool.path]);
        tables.into_iter().any(|path| match path.extension().and_then(OsStr::to_str) {
            _ if path.is_dir() => column != "--embedding-column",
            ending => !matches!(ending, Some("npz" | "npy")),
        })
    };
    for (name, column) in columns.into_iter().filter(|(name, _)| can_name(name)) {
        if let Some(column) = column {
            option(name, column.as_ref());
        }
    }
    if files.mixed == MixedNetworks::Accept {
        words.push("--allow-mixed".to_owned());
    }
    let mut option = |name: &str, value: &OsStr| words.extend([name.to_owned(), shell_word(value)]);
    if method.name() != "auto" {
        option("--method", method.name().as_ref());
    }
    if let Some(lambda) = lambda(method) {
        option("--lambda", lambda.to_string().as_ref());
    }
    if let Method::Beta(model) = method {
        option("--beta", model.beta.to_string().as_ref());
    }
    if let Some(neighbours) = neighbours(method) {
        option("--neighbours", neighbours.to_string().as_ref());
    }
    if seed != 0 {
        option("--seed", seed.to_string().as_ref());
    }
    option("--decisions", decisions.as_os_str());
    option("-o", reviewed(relevance).as_os_str());
    Some(words.join(" "))
}

/// Whether `labelsieve clean` has options for all settings of a method that differ from its defaults.
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
fn reviewed(relevance: &Path) -> std::path::PathBuf {
    let stem = relevance.file_stem().unwrap_or(OsStr::new("relevance")).to_string_lossy();
    relevance.with_file_name(format!("{stem}-reviewed.parquet"))
}

#[cfg(test)]
mod tests {
    use labelsieve::relevance::{Auto, Training};

    use super::*;
    use labelsieve_files::inputs::tables::Table;

    #[test]
    fn only_what_differs_from_the_defaults_is_spelled_out() {
        let files = PoolFiles {
            clean: Some(Table::new("c.npz")),
            class_text: None,
            pool: Table::new("my pool.parquet"),
            candidates: None,
            base: None,
            mixed: MixedNetworks::Refuse,
        };
        let with = |files: &PoolFiles, method: &Method, seed| {
            clean(files, method, seed, Path::new("d.parquet"), Path::new("out/relevance.parquet"))
        };
        let command = |method: &Method, seed| with(&files, method, seed).unwrap();
        assert_eq!(
            command(&Method::Auto(Auto::default()), 0),
            "labelsieve clean --clean c.npz --noisy 'my pool.parquet' --decisions d.parquet -o \
             out/relevance-reviewed.parquet"
        );
        let mlp = Method::Mlp(Mlp { lambda: Some(0.5), ..Mlp::default() });
        assert!(command(&mlp, 7).contains("--method mlp --lambda 0.5 --seed 7 --decisions"));
        let gcn = Method::Gcn(Gcn { neighbours: 10, ..Gcn::default() });
        assert!(command(&gcn, 0).contains(" --method gcn --neighbours 10 --decisions"));
        let auto = Method::Auto(Auto { neighbours: Some(50), ..Auto::default() });
        let with_base = PoolFiles { base: Some("b.npz".into()), ..files.clone() };
        let said = with(&with_base, &auto, 0).unwrap();
        assert!(said.contains(" --base b.npz ") && said.contains(" --neighbours 50 --decisions"), "{said}");
        let mixed = PoolFiles { mixed: MixedNetworks::Accept, ..files.clone() };
        assert!(
            with(&mixed, &Method::Auto(Auto::default()), 0).unwrap().contains(" --allow-mixed --decisions")
        );
        let texts = PoolFiles { clean: None, class_text: Some("t.parquet".into()), ..files.clone() };
        let command = with(&texts, &Method::Auto(Auto::default()), 0).unwrap();
        assert!(command.starts_with("labelsieve clean --class-text t.parquet --noisy 'my pool"), "{command}");
    }

    #[test]
    fn columns_are_named_where_there_are_some() {
        let command = |clean: &str, noisy: &str| {
            let mut files = PoolFiles {
                clean: Some(Table::new(clean)),
                class_text: None,
                pool: Table::new(noisy),
                candidates: None,
                base: None,
                mixed: MixedNetworks::Refuse,
            };
            files.pool.columns.id = Some("uid".to_owned());
            super::clean(
                &files,
                &Method::Auto(Auto::default()),
                0,
                Path::new("d.csv"),
                Path::new("r.parquet"),
            )
            .unwrap()
        };
        assert!(command("c.npz", "n.parquet").contains(" --id-column uid --decisions"));
        assert!(!command("c.npz", "n.npy").contains("--id-column"));
    }

    #[test]
    fn settings_without_an_option_give_no_command() {
        let files = PoolFiles {
            clean: Some(Table::new("c.npz")),
            class_text: None,
            pool: Table::new("n.npz"),
            candidates: None,
            base: None,
            mixed: MixedNetworks::Refuse,
        };
        let short = Training { iterations: 7, ..Training::default() };
        for method in [
            Method::Gcn(Gcn { training: short, ..Gcn::default() }),
            Method::Mlp(Mlp { training: short, ..Mlp::default() }),
            Method::LabelPropagation(LabelPropagation { alpha: 0.1, ..LabelPropagation::default() }),
            Method::Linear(Linear { decay: 0.5, ..Linear::default() }),
            Method::Mixture(Mixture { rounds: 3, ..Mixture::default() }),
        ] {
            assert_eq!(clean(&files, &method, 0, Path::new("d.csv"), Path::new("r.parquet")), None);
        }
    }
}
