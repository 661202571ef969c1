//! Vision transformers, and the blocks that text towers share with them.
//!
//! ```text
//! pixels ──patches──► linear ──sequences──► tokens ──[norm]──► blocks ──norm──► pooling ──[linear]──► feature
//!
//! block:  x += output(attention(qkv(norm(x))));  x += second(f(first(norm(x))))
//! ```
//!
//! [`families`] reads the configuration of a folder into a [`Vit`] and the [`Names`] of its tensors; `weights.rs` reads the
//! tensors, and `walk.rs` runs them on any device that has the [`Operations`]. [`Cpu`] is the one in this crate.

mod config;
mod cpu;
pub mod families;
mod operations;
mod positions;
mod tensors;
mod text;
mod walk;
mod weights;

pub use config::{Activation, BlockShape, GridResize, Mask, Mlp, Pooling, Positions, Vit};
pub use cpu::{Cpu, PackedLinear, Rows};
pub use operations::{Attention, BlockBuffers, BlockLayers, MlpLayers, Operations};
pub use tensors::{Linear, LinearName, Norm, Tensors, read, read_norm, read_rows};
pub use text::{Text, TextNames, TextPooling, TextTower};
pub use walk::{Encoder, Sequences, VisionTransformer};
pub use weights::{BlockNames, Names, Normalisation, PatchLayout, PoolNames};
