//! Where the files of a review are.

use std::path::{Path, PathBuf};

use labelsieve_files::inputs::same_network::MixedNetworks;
use labelsieve_files::inputs::tables::Table;
use labelsieve_files::work::{Error, Result, command, words};
use labelsieve_jobs::inputs::pools::PoolFiles;
use labelsieve_jobs::run::RunSources;
use labelsieve_report::RunDirectory;

/// The default folder of `labelsieve demo`.
pub const DEMO: &str = "labelsieve-demo";

/// The files of a review that its source implies.
pub struct Sources {
    pub relevance: PathBuf,
    pub files: Option<PoolFiles>,
    pub images: Vec<PathBuf>,
    pub texts: Vec<PathBuf>,
    pub output: Option<PathBuf>,
    pub title: String,
}

impl Sources {
    /// A relevance file, and nothing else.
    pub fn of_file(relevance: &Path) -> Sources {
        let title = relevance.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Sources {
            relevance: relevance.to_path_buf(),
            files: None,
            images: vec![],
            texts: vec![],
            output: None,
            title,
        }
    }

    /// A folder of `run` or `demo`, or a run directory.
    pub fn of_folder(folder: &Path) -> Result<Sources> {
        let relevance = folder.join("relevance.parquet");
        if !relevance.is_file() {
            return Err(Error::input(
                format!("`{}` has no relevance.parquet", folder.display()),
                words![
                    "give the folder that ",
                    command("run"),
                    " or ",
                    command("demo"),
                    " wrote, or a relevance file"
                ],
            ));
        }
        let there = |name: &str| Some(folder.join(name)).filter(|path| path.exists());
        let of_run = RunSources::read(folder)?;
        let files = there("clean.parquet").zip(there("pool.parquet")).map(|(clean, noisy)| PoolFiles {
            clean: Some(Table::new(clean)),
            class_text: None,
            pool: Table::new(noisy),
            candidates: there("candidates.parquet"),
            base: match &of_run {
                Some(sources) => sources.base.clone(),
                None => there("DEMO.txt").and_then(|_| there("network.safetensors")), // as the demo scores them
            },
            mixed: MixedNetworks::Refuse,
        });
        let name = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let run =
            RunDirectory::open(folder).ok().map(|run| (run.info().title.clone(), run.thumbnails_path()));
        let (title, thumbnails) = run.unzip();
        let of_demo = ["images/clean", "images/pool"].into_iter().filter_map(there).collect();
        let (images, texts) = match (of_run, thumbnails.filter(|path| path.exists())) {
            (Some(sources), _) => (sources.images, sources.texts),
            (None, Some(thumbnails)) => (vec![thumbnails], vec![]),
            (None, None) => (of_demo, vec![]),
        };
        Ok(Sources {
            relevance,
            files,
            images,
            texts,
            output: Some(folder.join("decisions.parquet")),
            title: title.unwrap_or(name),
        })
    }

    /// The folder of the demo.
    pub fn of_demo() -> Result<Sources> {
        let title = "Icons for 32 ambiguous words".to_owned();
        Ok(Sources { title, ..Sources::of_folder(Path::new(DEMO))? })
    }
}
