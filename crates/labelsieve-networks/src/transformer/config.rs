//! The configuration of a transformer, independent of its family.

/// One vision transformer: sizes and kinds, no numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Vit {
    /// Height and width of the images that its positions were learned for.
    pub size: (usize, usize),
    /// Pixels along a side of a patch.
    pub patch: usize,
    /// The shape of every block.
    pub block: BlockShape,
    /// Blocks, one after the other.
    pub depth: usize,
    /// The position encoding.
    pub positions: Positions,
    /// How tokens are pooled into one feature.
    pub pooling: Pooling,
    /// Numbers per feature.
    pub dim: usize,
}

/// A block: attention and an MLP, each with a normalisation before it and a shortcut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockShape {
    /// Numbers per token.
    pub width: usize,
    /// Attention heads; each has `width / heads` numbers.
    pub heads: usize,
    /// Hidden width of the MLP.
    pub mlp_width: usize,
    /// The function between them.
    pub mlp: Mlp,
    /// Added to the variances of normalisations.
    pub eps: f32,
}

/// The function between the two layers of an MLP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mlp {
    /// f(a).
    Plain(Activation),
    /// f(gate) · a, where the first layer gives the gates and then as many numbers a (SwiGLU with [`Activation::Silu`]).
    Gated(Activation),
}

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// x Φ(x), with the distribution function of the normal distribution.
    Gelu,
    /// The same with its approximation by tanh.
    GeluTanh,
    /// x σ(1.702 x).
    QuickGelu,
    /// x σ(x).
    Silu,
}

/// The position encoding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Positions {
    /// A learned row per position is added.
    Learned {
        /// Rows and columns of patches that there are positions for.
        grid: (usize, usize),
        /// Positions for tokens before the patches, which come first in the table.
        n_before: usize,
        /// How the grid is resized.
        resize: GridResize,
    },
    /// Queries and keys of patches are rotated by angles that follow their place (DINOv3).
    Rotary {
        /// The base of the frequencies.
        theta: f32,
    },
}

/// How positions are resized to another grid of patches: as in the family's own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridResize {
    /// Bicubic, at the points themselves (`transformers`).
    Bicubic,
    /// Bicubic, over all points when shrinking (`timm`, OpenCLIP, DINOv2 with registers).
    BicubicAntialias,
    /// Linear in both directions, over all points when shrinking (SigLIP 2).
    BilinearAntialias,
}

/// How tokens are pooled into one feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The first so many tokens, averaged: 1 is the class token, 2 are class and distillation token.
    First(usize),
    /// The average of the patches.
    Mean,
    /// Attention from one learned query (SigLIP).
    Attention,
}

/// The tokens that a token attends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// All of its sequence.
    None,
    /// Itself and those before it: text towers of CLIP.
    Causal,
}
