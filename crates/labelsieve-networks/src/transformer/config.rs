//! What a transformer is made of, whatever its family calls it.

/// One vision transformer: sizes and kinds, no numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Vit {
    /// Height and width of the images that its positions were learned for.
    pub size: (usize, usize),
    /// Pixels along a side of a patch.
    pub patch: usize,
    /// What every block looks like.
    pub block: BlockShape,
    /// Blocks, one after the other.
    pub depth: usize,
    /// How a token knows where it is.
    pub positions: Positions,
    /// How tokens become one feature.
    pub pooling: Pooling,
    /// Numbers per feature.
    pub dim: usize,
}

/// A block: attention and a small network, each behind a normalisation and beside a shortcut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockShape {
    /// Numbers per token.
    pub width: usize,
    /// Attention heads; each has `width / heads` numbers.
    pub heads: usize,
    /// Numbers between the two layers of the small network.
    pub mlp_width: usize,
    /// What happens between them.
    pub mlp: Mlp,
    /// What normalisations add to a variance.
    pub eps: f32,
}

/// What happens between the two layers of the small network of a block.
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

/// How a token knows where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Positions {
    /// A learned row per position is added.
    Learned {
        /// Rows and columns of patches that there are positions for.
        grid: (usize, usize),
        /// Positions for tokens before the patches, which come first in the table.
        n_before: usize,
        /// How the grid becomes one of another size.
        resize: GridResize,
    },
    /// Queries and keys of patches are rotated by angles that follow their place (DINOv3).
    Rotary {
        /// The base of the frequencies.
        theta: f32,
    },
}

/// How positions for one grid of patches become those for another: as the family's own code does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridResize {
    /// Bicubic, at the points themselves (`transformers`).
    Bicubic,
    /// Bicubic, over all points when shrinking (`timm`, OpenCLIP, DINOv2 with registers).
    BicubicAntialias,
    /// Linear in both directions, over all points when shrinking (SigLIP 2).
    BilinearAntialias,
}

/// How tokens become one feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The first so many tokens, averaged: 1 is the class token, 2 are class and distillation token.
    First(usize),
    /// The average of the patches.
    Mean,
    /// Attention from one learned query (SigLIP).
    Attention,
}

/// Which tokens a token may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// All of its sequence.
    None,
    /// Itself and those before it: text towers of CLIP.
    Causal,
}
