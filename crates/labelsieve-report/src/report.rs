//! What a report is made of, and where it goes.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use labelsieve_data::{
    AtomicFile, DataError, Figure, Result, ResultTable, RunDirectory, RunInfo, read_relevance, read_truth,
};

use crate::automatic;
use crate::classes::{Classes, sections};
use crate::figures::{Layout, describe, draw};
use crate::html;
use crate::pictures::{self, Pictures};
use crate::svg::STANDALONE_START;
use crate::thumbnails::Thumbnails;

/// The sources of a report: a run directory, or a relevance file, perhaps with truth and pictures.
#[derive(Clone, Debug)]
pub struct Report {
    info: RunInfo,
    tables: Vec<ResultTable>,
    figures: Vec<Figure>,
    relevance: Option<PathBuf>,
    truth: Option<PathBuf>,
    pictures: Pictures,
    per_class: usize,
}

/// The progress of [`Report::write`] with the part that takes long: finding and shrinking pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Pictures found so far.
    pub found: usize,
    /// Pictures wanted in all; some may not exist.
    pub wanted: usize,
}

/// What a report holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Tables.
    pub tables: usize,
    /// Figures.
    pub figures: usize,
    /// Classes with a gallery.
    pub classes: usize,
    /// Examples shown in galleries.
    pub examples: usize,
    /// Examples shown with a picture.
    pub pictures: usize,
    /// Examples shown with a caption.
    pub captions: usize,
    /// Pictures that could not be read: the example and the reason.
    pub unreadable: Vec<(String, String)>,
    /// Examples shown without a picture because none was found; empty if no source of pictures was given.
    pub missing: Vec<String>,
    /// How many of these are clean.
    pub n_missing_clean: usize,
    /// Examples with pictures in several places, of which one is shown.
    pub ambiguous: Vec<String>,
}

impl Report {
    /// The report of a run directory.
    pub fn of_run(run: &RunDirectory) -> Result<Report> {
        let there = |path: PathBuf| path.exists().then_some(path);
        Ok(Report {
            info: run.info().clone(),
            tables: run.tables()?,
            figures: run.figures()?,
            relevance: there(run.relevance_path()),
            truth: there(run.truth_path()),
            pictures: Pictures {
                images: there(run.thumbnails_path()).into_iter().collect(),
                ..Pictures::default()
            },
            per_class: 60,
        })
    }

    /// The report of a relevance file, as `labelsieve clean` writes it.
    pub fn of_relevance(path: impl Into<PathBuf>) -> Result<Report> {
        let path = path.into();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut info = RunInfo::new(format!("Relevance of {name}"));
        for (key, value) in read_relevance(&path)?.metadata {
            match serde_json::from_str::<serde_json::Value>(&value) {
                Ok(settings @ serde_json::Value::Object(_)) => info = with_settings(info, "", &settings),
                _ => info = info.setting(key, value),
            }
        }
        Ok(Report {
            info,
            tables: Vec::new(),
            figures: Vec::new(),
            relevance: Some(path),
            truth: None,
            pictures: Pictures::default(),
            per_class: 60,
        })
    }

    /// Takes the truth from this file.
    pub fn with_truth(self, path: impl Into<PathBuf>) -> Report {
        Report { truth: Some(path.into()), ..self }
    }

    /// Takes pictures, and the captions beside them, from this folder or file.
    pub fn with_images(self, path: impl Into<PathBuf>) -> Report {
        self.with_pictures(Pictures { images: vec![path.into()], ..Pictures::default() })
    }

    /// Takes pictures and captions from here.
    pub fn with_pictures(self, pictures: Pictures) -> Report {
        Report { pictures, ..self }
    }

    /// Sets the heading.
    pub fn with_title(mut self, title: impl Into<String>) -> Report {
        self.info.title = title.into();
        self
    }

    /// Shows at most this many candidates of each class: half from the top of the ranking, a quarter from the middle, a
    /// quarter from the bottom. The default is 60.
    pub fn with_candidates_per_class(self, per_class: usize) -> Report {
        Report { per_class, ..self }
    }

    /// Writes one HTML file that needs nothing else.
    pub fn write(&self, path: impl AsRef<Path>, progress: &mut dyn FnMut(Progress)) -> Result<Summary> {
        let path = path.as_ref();
        let mut file = AtomicFile::create(path)?;
        let classes = self.classes()?;
        let figures = self.figures_with(classes.as_ref());
        let mut tables: Vec<&ResultTable> = self.tables.iter().collect();
        let class_table = classes.as_ref().map(automatic::class_table);
        tables
            .extend(class_table.iter().filter(|table| self.tables.iter().all(|given| given.id != table.id)));
        let thumbnails = match &classes {
            Some(classes) => self.thumbnails(classes, progress)?,
            None => Thumbnails::default(),
        };
        let mut summary = Summary { tables: tables.len(), figures: figures.len(), ..Summary::default() };
        let page =
            html::Page { info: &self.info, tables: &tables, figures: &figures, classes: classes.as_ref() };
        let written = |result: std::io::Result<()>| result.map_err(DataError::io("write", path));
        written(page.write_start(&mut file))?;
        if let (Some(classes), Some(relevance)) = (&classes, &self.relevance) {
            let shown = self.shown(classes);
            self.count_missing(classes, &shown, &thumbnails, &mut summary);
            let reasons = classes.reasons(relevance, shown)?;
            let galleries = html::Galleries {
                classes,
                reasons: &reasons,
                thumbnails: &thumbnails,
                per_class: self.per_class,
            };
            for (number, class) in classes.classes.iter().enumerate() {
                let counts = galleries.write(&mut file, number, class);
                let (examples, pictures) = counts.map_err(DataError::io("write", path))?;
                summary.examples += examples;
                summary.pictures += pictures;
            }
            summary.classes = classes.classes.len();
        }
        written(page.write_end(&mut file))?;
        file.commit()?;
        summary.unreadable = thumbnails.unreadable;
        summary.ambiguous = thumbnails.ambiguous.into_iter().collect();
        Ok(summary)
    }

    /// Writes every figure as an SVG file into `folder`, and returns their paths.
    pub fn write_figures(&self, folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
        let folder = folder.as_ref();
        std::fs::create_dir_all(folder).map_err(DataError::io("write", folder))?;
        let classes = self.classes()?;
        let figures = self.figures_with(classes.as_ref());
        let path_of = |figure: &Figure| folder.join(format!("{}.svg", figure.id));
        if let Some(path) = figures.iter().map(path_of).find(|path| path.exists() && !is_own_figure(path)) {
            return Err(DataError::malformed(
                path,
                "output",
                "a new file or a figure made by labelsieve",
                "some other file",
            ));
        }
        let mut paths = Vec::new();
        for figure in figures {
            let path = path_of(&figure);
            let noise = if self.info.simulated_noise { " (simulated noise)" } else { "" };
            let title = format!("{}{noise}", figure.title);
            write_figure(&Figure { title, ..figure }, &path)?;
            paths.push(path);
        }
        Ok(paths)
    }

    fn classes(&self) -> Result<Option<Classes>> {
        let Some(relevance) = &self.relevance else { return Ok(None) };
        let truth = self.truth.as_ref().map(read_truth).transpose()?;
        let mut classes = Classes::new(read_relevance(relevance)?, truth)?;
        classes.rename(&self.info.class_names);
        Ok(Some(classes))
    }

    /// The figures of the run, and those that follow from relevance unless the run has its own with the same ids.
    fn figures_with(&self, classes: Option<&Classes>) -> Vec<Figure> {
        let mut figures = self.figures.clone();
        let given: HashSet<&str> = self.figures.iter().map(|figure| figure.id.as_str()).collect();
        let more = classes.map(automatic::figures).unwrap_or_default();
        figures.extend(more.into_iter().filter(|figure| !given.contains(figure.id.as_str())));
        figures
    }

    /// Rows of the relevance table that galleries show.
    fn shown(&self, classes: &Classes) -> Vec<usize> {
        let rows = classes.classes.iter().flat_map(|class| {
            let ranks = sections(class.ranked.len(), self.per_class).into_iter().flat_map(|s| s.ranks);
            class.clean.iter().take(self.per_class).copied().chain(ranks.map(|rank| class.ranked[rank]))
        });
        rows.collect()
    }

    /// Counts the examples that have captions, and those that should have pictures.
    fn count_missing(&self, classes: &Classes, shown: &[usize], found: &Thumbnails, summary: &mut Summary) {
        let unreadable: HashSet<&str> = found.unreadable.iter().map(|(id, _)| id.as_str()).collect();
        let mut seen = HashSet::new();
        for &row in shown {
            let id = &classes.table.ids[row];
            summary.captions += usize::from(found.captions.contains_key(id));
            let is_missing = !found.by_id.contains_key(id) && !unreadable.contains(id);
            if is_missing && !self.pictures.images.is_empty() && seen.insert(id) {
                summary.missing.push(id.to_owned());
                summary.n_missing_clean += usize::from(classes.table.is_clean[row]);
            }
        }
    }

    fn thumbnails(&self, classes: &Classes, progress: &mut dyn FnMut(Progress)) -> Result<Thumbnails> {
        let ids: HashSet<&str> = self.shown(classes).into_iter().map(|row| &classes.table.ids[row]).collect();
        let wanted = ids.len();
        progress(Progress { found: 0, wanted });
        pictures::load(&self.pictures, &ids, &mut |found| progress(Progress { found, wanted }))
    }
}

/// Whether a file is a figure that [`write_figure`] wrote, which may be replaced by a new one.
pub fn is_own_figure(path: impl AsRef<Path>) -> bool {
    let mut start = vec![0; STANDALONE_START.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == STANDALONE_START.as_bytes()
}

/// Writes one figure as an SVG file.
pub fn write_figure(figure: &Figure, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let svg = draw(figure, Layout::Wide).standalone(&figure.title, &describe(figure));
    let mut file = AtomicFile::create(path)?;
    file.write_all(svg.as_bytes()).map_err(DataError::io("write", path))?;
    file.commit()
}

/// Adds the values of a JSON object under their dotted names, as `labelsieve clean` stores them.
fn with_settings(info: RunInfo, prefix: &str, value: &serde_json::Value) -> RunInfo {
    match value {
        serde_json::Value::Object(parts) => parts.iter().fold(info, |info, (name, part)| {
            let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            with_settings(info, &name, part)
        }),
        serde_json::Value::Null => info,
        serde_json::Value::String(text) => info.setting(prefix, text),
        // They were single precision: 0.1, not 0.10000000149011612.
        serde_json::Value::Number(number) if number.is_f64() => {
            info.setting(prefix, number.as_f64().unwrap_or_default() as f32)
        }
        other => info.setting(prefix, other),
    }
}

/// Writes the report of a run directory to one HTML file.
pub fn write(run: &RunDirectory, path: impl AsRef<Path>) -> Result<Summary> {
    Report::of_run(run)?.write(path, &mut |_| ())
}
