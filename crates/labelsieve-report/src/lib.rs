//! The results of a run for readers: figures as SVG, and one HTML file with ranked galleries, tables and figures that needs
//! no network and no other file.
//!
//! ```no_run
//! use labelsieve_report::RunDirectory;
//!
//! let run = RunDirectory::open("run")?;
//! labelsieve_report::write(&run, "report.html")?;
//! # Ok::<(), labelsieve_files::DataError>(())
//! ```
//!
//! [`Report`] is the long form: it also takes a plain relevance file, pictures from elsewhere, and writes the figures as
//! files of their own. Everything that comes from files is text to be shown, never markup.
//!
//! | module | holds |
//! |---|---|
//! | `run_directory` | the format of a run: what was done, its tables and figures |
//! | `report` | the sources of a report, and the order in which it is written |
//! | `classes`, `decisions`, `settings`, `statistics` | the contents of a relevance file, ready to be shown |
//! | `automatic` | tables and figures that follow from relevance and truth alone |
//! | `pictures`, `thumbnails`, `links` | pictures of examples: found, shrunk, linked |
//! | `figures`, `svg` | a file per kind of figure, on a small SVG writer; figures are drawn for wide and for narrow screens |
//! | `html` | the page: markup, one stylesheet, and a script of one file per idea, embedded as they are |
//! | `training_curves` | accuracy and loss of a training as figures |

mod automatic;
mod classes;
mod decisions;
mod figures;
mod html;
mod links;
mod pictures;
mod report;
mod run_directory;
mod settings;
mod statistics;
mod svg;
mod thumbnails;
mod training_curves;

pub use pictures::Pictures;
pub use report::{Progress, Report, Summary, is_own_figure, write, write_figure};
pub use run_directory::{
    Axis, AxisScale, BarSeries, Best, Cell, ClassRelevance, Figure, FigureKind, LineSeries, Number, Point,
    PoolSize, ReliabilitySeries, ResultTable, RunDirectory, RunInfo, Setting, TableColumn, TableRow,
};
pub use training_curves::TrainingCurves;
