//! What a run found, for people: figures as SVG, and one HTML file with ranked galleries, tables and figures that needs
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

mod automatic;
mod classes;
mod decided;
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
