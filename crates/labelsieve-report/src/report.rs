//! The sources of a report, and the order in which it is written.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use labelsieve_files::{
    AtomicFile, DataError, Result, is_text_id, read_decisions, read_relevance, read_truth,
};

use crate::classes::Classes;
use crate::figures::{Layout, describe, draw};
use crate::html;
use crate::pictures::{self, Pictures};
use crate::svg::STANDALONE_START;
use crate::thumbnails::Thumbnails;
use crate::{Figure, ResultTable, RunDirectory, RunInfo, automatic, settings};

/// Candidates of a class that have a picture, unless told otherwise.
const PER_CLASS: usize = 60;

/// The sources of a report: a run directory, or a relevance file, perhaps with truth and pictures.
#[derive(Clone, Debug)]
pub struct Report {
    info: RunInfo,
    tables: Vec<ResultTable>,
    figures: Vec<Figure>,
    relevance: Option<PathBuf>,
    truth: Option<PathBuf>,
    decisions: Option<PathBuf>,
    pictures: Pictures,
    per_class: usize,
    review: Option<String>,
}

/// The progress of [`Report::write`] with the part that takes long: finding and shrinking pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Pictures found so far.
    pub found: usize,
    /// Pictures wanted in all; some may not exist.
    pub wanted: usize,
}

/// The contents of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Tables.
    pub tables: usize,
    /// Figures.
    pub figures: usize,
    /// Classes with a gallery.
    pub classes: usize,
    /// Examples in galleries: all of them.
    pub examples: usize,
    /// Examples with a picture.
    pub pictures: usize,
    /// Examples with a caption.
    pub captions: usize,
    /// Examples with a link to the file of their picture.
    pub links: usize,
    /// Candidates that people decided about.
    pub decisions: usize,
    /// Decisions about examples that are not candidates here, as id and class.
    pub foreign_decisions: Vec<(String, String)>,
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
        let mut info = run.info().clone();
        if let Some(relevance) = there(run.relevance_path()) {
            info = settings::add_spelled_out(info, &read_relevance(relevance)?);
        }
        Ok(Report {
            info,
            tables: run.tables()?,
            figures: run.figures()?,
            relevance: there(run.relevance_path()),
            truth: there(run.truth_path()),
            decisions: None,
            pictures: Pictures {
                images: there(run.thumbnails_path()).into_iter().collect(),
                ..Pictures::default()
            },
            per_class: PER_CLASS,
            review: None,
        })
    }

    /// The report of a relevance file.
    pub fn of_relevance(path: impl Into<PathBuf>) -> Result<Report> {
        let path = path.into();
        let info = settings::add_all(RunInfo::new(title_of(&path)), &read_relevance(&path)?);
        Ok(Report {
            info,
            tables: Vec::new(),
            figures: Vec::new(),
            relevance: Some(path),
            truth: None,
            decisions: None,
            pictures: Pictures::default(),
            per_class: PER_CLASS,
            review: None,
        })
    }

    /// Takes the truth from this file.
    pub fn with_truth(self, path: impl Into<PathBuf>) -> Report {
        Report { truth: Some(path.into()), ..self }
    }

    /// Marks what people decided about candidates, as this file has it.
    pub fn with_decisions(self, path: impl Into<PathBuf>) -> Report {
        Report { decisions: Some(path.into()), ..self }
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

    /// Shows pictures of at most this many candidates of each class: half from the top of the ranking, a quarter from
    /// the middle, a quarter from the bottom. The others are listed. The default is 60.
    pub fn with_candidates_per_class(self, per_class: usize) -> Report {
        Report { per_class, ..self }
    }

    /// Shows this command beside the galleries: the one that opens these candidates for review.
    pub fn with_review_command(self, command: impl Into<String>) -> Report {
        Report { review: Some(command.into()), ..self }
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
        let reasons = match (&classes, &self.relevance) {
            (Some(classes), Some(relevance)) => classes.reasons(relevance)?,
            _ => Vec::new(),
        };
        let originals = html::Originals::new(path, &thumbnails.files, &self.pictures.images);
        let sources = classes.as_ref().map(|classes| html::Sources {
            classes,
            reasons: &reasons,
            thumbnails: &thumbnails,
            originals: &originals,
            per_class: self.per_class,
        });
        let galleries =
            sources.as_ref().map(|sources| html::Galleries { sources, intro: self.intro(sources) });
        let page = html::Page { info: &self.info, tables: &tables, figures: &figures, galleries };
        let mut write = || -> std::io::Result<()> {
            page.write_start(&mut file)?;
            if let Some(sources) = &sources {
                write_classes(&mut file, sources, &mut summary)?;
            }
            page.write_end(&mut file)
        };
        write().map_err(DataError::io("write", path))?;
        file.commit()?;
        if let Some(classes) = &classes {
            self.count_missing(classes, &thumbnails, &mut summary);
            summary.classes = classes.classes.len();
            summary.decisions = classes.decided.count_all().total();
            summary.foreign_decisions = classes.decided.foreign.clone();
        }
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
        let decisions = self.decisions.as_ref().map(read_decisions).transpose()?;
        let mut classes = Classes::new(read_relevance(relevance)?, truth, decisions)?;
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

    /// The facts for the text before the first class.
    fn intro(&self, sources: &html::Sources<'_>) -> html::Intro<'_> {
        let ids = &sources.classes.table.ids;
        let has_picture = |row: &usize| sources.thumbnails.by_id.contains_key(&ids[*row]);
        let candidates = sources.classes.classes.iter().flat_map(|class| class.shown(self.per_class));
        html::Intro {
            n_pictured: candidates.filter(has_picture).count(),
            has_links: !sources.thumbnails.files.is_empty(),
            review: self.review.as_deref(),
        }
    }

    /// Rows of the relevance table that galleries show with pictures.
    fn pictured(&self, classes: &Classes) -> Vec<usize> {
        let rows = classes.classes.iter().flat_map(|class| {
            class.clean.iter().take(self.per_class).copied().chain(class.shown(self.per_class))
        });
        rows.collect()
    }

    /// Counts the examples that have captions, and those that should have pictures.
    fn count_missing(&self, classes: &Classes, found: &Thumbnails, summary: &mut Summary) {
        let ids = &classes.table.ids;
        summary.captions = (0..ids.len()).filter(|&row| found.captions.contains_key(&ids[row])).count();
        let unreadable: HashSet<&str> = found.unreadable.iter().map(|(id, _)| id.as_str()).collect();
        let mut seen = HashSet::new();
        for row in self.pictured(classes) {
            let id = &ids[row];
            let is_text = classes.table.is_clean[row] && is_text_id(id);
            let is_missing = !found.by_id.contains_key(id) && !unreadable.contains(id) && !is_text;
            if is_missing && !self.pictures.images.is_empty() && seen.insert(id) {
                summary.missing.push(id.to_owned());
                summary.n_missing_clean += usize::from(classes.table.is_clean[row]);
            }
        }
    }

    fn thumbnails(&self, classes: &Classes, progress: &mut dyn FnMut(Progress)) -> Result<Thumbnails> {
        let id = |row: usize| &classes.table.ids[row];
        let all: HashSet<&str> = (0..classes.table.ids.len()).map(id).collect();
        let pictured: HashSet<&str> = self.pictured(classes).into_iter().map(id).collect();
        let wanted = pictured.len();
        progress(Progress { found: 0, wanted });
        pictures::load(&self.pictures, &all, &pictured, &mut |found| progress(Progress { found, wanted }))
    }
}

/// Writes the galleries, and adds what they show to the summary.
fn write_classes(
    file: &mut AtomicFile,
    sources: &html::Sources<'_>,
    summary: &mut Summary,
) -> std::io::Result<()> {
    for (number, class) in sources.classes.classes.iter().enumerate() {
        let counts = html::write_class(file, sources, number, class)?;
        summary.examples += counts.examples;
        summary.pictures += counts.pictures;
        summary.links += counts.links;
    }
    Ok(())
}

/// `Relevance of owls` for `owls.parquet`, `owls/relevance.parquet` and `owls/relevance-reviewed.parquet`.
fn title_of(relevance: &Path) -> String {
    let stem = relevance.file_stem().unwrap_or_default().to_string_lossy();
    let begins_with_relevance =
        stem.split(['-', '_', '.', ' ']).next().is_some_and(|first| first.eq_ignore_ascii_case("relevance"));
    let name = if begins_with_relevance {
        relevance.parent().and_then(Path::file_name).map(|name| name.to_string_lossy())
    } else {
        Some(stem)
    };
    name.map_or_else(|| "Relevance".to_owned(), |name| format!("Relevance of {name}"))
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

/// Writes the report of a run directory to one HTML file.
pub fn write(run: &RunDirectory, path: impl AsRef<Path>) -> Result<Summary> {
    Report::of_run(run)?.write(path, &mut |_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_never_says_relevance_of_relevance() {
        let title = |path: &str| title_of(Path::new(path));
        assert_eq!(title("out/owls.parquet"), "Relevance of owls");
        assert_eq!(title("owls/relevance.parquet"), "Relevance of owls");
        assert_eq!(title("owls/relevance-reviewed.parquet"), "Relevance of owls");
        assert_eq!(title("relevance-reviewed.parquet"), "Relevance");
        assert_eq!(title("relevance.csv"), "Relevance");
        assert_eq!(title("../relevance.parquet"), "Relevance");
    }
}
