//! A scratch space in memory, so that tests work out of core without files.

use labelsieve_numerics::{Pages, Result, Scratch};

/// Arrays in memory, for work that may take so many bytes of it.
pub(crate) struct InMemory(pub usize);

impl Scratch for InMemory {
    fn floats(&self, len: usize) -> Result<Box<dyn Pages<f32>>> {
        Ok(Box::new(vec![0f32; len]))
    }

    fn indices(&self, len: usize) -> Result<Box<dyn Pages<u32>>> {
        Ok(Box::new(vec![0u32; len]))
    }

    fn memory(&self) -> usize {
        self.0
    }
}
