//! Options that several commands share, each spelled once, and what they mean to the pipeline.

mod backbone;
mod device;
mod images;
mod memory;
mod method;
mod tables;
mod training;

pub use backbone::BackboneArguments;
pub use device::DeviceArguments;
pub use images::{ImageArguments, ImageChoice, on_damage};
pub use memory::MemoryArguments;
pub use method::{DEFAULT_METHOD, MethodArguments, MethodName};
pub use tables::{ColumnArguments, MixedArguments, PoolArguments, ScoredArguments};
pub use training::TrainingArguments;

/// The heading of options that every command has, or nearly every one. It comes last in `--help`, and
/// `display_order` keeps its options in one order in all commands.
pub const COMMON: &str = "Common options";

/// `--seed`.
#[derive(clap::Args, Clone, Copy, Debug, serde::Serialize)]
pub struct SeedArguments {
    /// Random seed; the same seed gives the same result
    #[arg(long, default_value_t = 0, value_name = "N", help_heading = COMMON, display_order = 1001)]
    pub seed: u64,
}

/// `--json`.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct JsonArguments {
    /// Print the result as JSON
    #[arg(long, help_heading = COMMON, display_order = 1002)]
    pub json: bool,
}
