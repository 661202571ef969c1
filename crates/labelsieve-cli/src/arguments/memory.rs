//! A limit of memory.

use std::path::PathBuf;

use labelsieve_files::work::byte_size::ByteSize;
use labelsieve_jobs::memory::MemoryLimit;

/// `--memory` and `--scratch`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct MemoryArguments {
    /// Memory that the run may take, e.g. 4GiB, pages of scratch files included: a class that needs more is scored out of core,
    /// with the same result (CPU only) [default: no limit]
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,

    /// Folder for scratch files, which vanish with the process [default: that of the output]
    #[arg(long, value_name = "DIR", requires = "memory")]
    scratch: Option<PathBuf>,
}

impl MemoryArguments {
    /// The limit for a job.
    pub fn limit(&self) -> Option<MemoryLimit> {
        self.memory.map(|size| MemoryLimit { bytes: size.0, scratch: self.scratch.clone() })
    }
}
