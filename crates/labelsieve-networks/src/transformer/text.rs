//! Text towers: tokens in, one feature per text out, with the blocks that image towers have.

use super::config::{BlockShape, Mask};
use super::operations::Operations;
use super::tensors::{LinearName, Tensors, read_norm, read_rows};
use super::walk::{Encoder, Sequences};
use super::weights::BlockNames;
use crate::error::{Error, Result};

/// Texts per forward pass.
const AT_ONCE: usize = 32;

/// One text tower: sizes and kinds, no numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// The shape of every block.
    pub block: BlockShape,
    /// Blocks, one after the other.
    pub depth: usize,
    /// Tokens that there are.
    pub vocabulary: usize,
    /// Maximum number of tokens of a text.
    pub context: usize,
    /// The tokens that a token attends to.
    pub mask: Mask,
    /// The token that becomes the feature.
    pub pooling: TextPooling,
    /// Numbers per feature.
    pub dim: usize,
}

/// The token of a text that becomes its feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPooling {
    /// The first of this kind: the end of the text.
    First(u32),
    /// The first of the largest number, which the end of a text has in CLIP's own vocabulary.
    Largest,
    /// The last. Such towers pad every text to the full length.
    Last,
}

/// The tensor names of a text tower.
pub struct TextNames {
    /// A row per token.
    pub tokens: String,
    /// A row per position.
    pub positions: String,
    /// The parts of a block.
    pub block: Box<dyn Fn(usize) -> BlockNames>,
    /// The normalisation after the last block.
    pub norm: String,
    /// A last linear layer.
    pub projection: Option<LinearName>,
}

/// A text tower with its weights on a device.
pub struct TextTower<O: Operations> {
    operations: O,
    text: Text,
    tokens: Vec<f32>,
    positions: Vec<f32>,
    encoder: Encoder<O>,
    norm: O::Norm,
    projection: Option<O::Linear>,
}

impl<O: Operations> TextTower<O> {
    /// Reads a tower.
    pub fn read(
        operations: O,
        text: &Text,
        names: &TextNames,
        tensors: &dyn Tensors,
    ) -> Result<TextTower<O>> {
        let BlockShape { width, eps, .. } = text.block;
        let projection = names.projection.as_ref().map(|name| {
            let linear = name.read(tensors, width, text.dim)?;
            operations.linear_weights(linear)
        });
        Ok(TextTower {
            text: text.clone(),
            tokens: read_rows(tensors, &names.tokens, text.vocabulary, width)?,
            positions: read_rows(tensors, &names.positions, text.context, width)?,
            encoder: Encoder::read(&operations, &text.block, text.depth, &*names.block, tensors)?,
            norm: operations.norm_weights(read_norm(tensors, &names.norm, width, eps)?)?,
            projection: projection.transpose()?,
            operations,
        })
    }

    /// Its configuration.
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// N×d features of texts as tokens, not yet of unit length.
    pub fn features(&mut self, texts: &[Vec<u32>]) -> Result<Vec<f32>> {
        texts.iter().try_for_each(|tokens| self.check(tokens))?;
        let mut features = Vec::with_capacity(texts.len() * self.text.dim);
        for part in texts.chunks(AT_ONCE) {
            features.extend(self.part_features(part)?);
        }
        Ok(features)
    }

    fn check(&self, tokens: &[u32]) -> Result<()> {
        let Text { vocabulary, context, pooling, .. } = self.text;
        let wrong = |what: &str, expected: String, found: String| {
            Err(Error::Shape { what: what.to_owned(), expected, found })
        };
        let least = if pooling == TextPooling::Last { context } else { 1 };
        if !(least..=context).contains(&tokens.len()) {
            return wrong("tokens of a text", format!("{least} to {context}"), tokens.len().to_string());
        }
        if let Some(token) = tokens.iter().find(|&&token| token as usize >= vocabulary) {
            return wrong("token", format!("a number below {vocabulary}"), token.to_string());
        }
        match pooling {
            TextPooling::First(end) if !tokens.contains(&end) => wrong(
                "tokens of a text",
                format!("token {end}, the end of a text, among them"),
                format!("{tokens:?}"),
            ),
            _ => Ok(()),
        }
    }

    /// Shorter texts are padded at the end, which is safe: where lengths differ, attention is causal.
    fn part_features(&mut self, texts: &[Vec<u32>]) -> Result<Vec<f32>> {
        let width = self.text.block.width;
        let length = texts.iter().map(Vec::len).max().unwrap_or(0);
        let mut values = Vec::with_capacity(texts.len() * length * width);
        for tokens in texts {
            let filled = tokens.iter().copied().chain(std::iter::repeat(0)).take(length);
            for (token, position) in filled.zip(self.positions.chunks_exact(width)) {
                let row = &self.tokens[token as usize * width..][..width];
                values.extend(row.iter().zip(position).map(|(token, position)| token + position));
            }
        }
        let operations = &mut self.operations;
        let mut rows = O::Rows::default();
        operations.upload(&values, width, &mut rows)?;
        let sequences = Sequences { tokens: length, mask: self.text.mask, rotation: None };
        self.encoder.run(operations, &sequences, &mut rows)?;
        let all = operations.download(&rows)?;
        let pooled = texts.iter().enumerate().flat_map(|(at, tokens)| {
            let row = at * length + self.text.pooling.place(tokens);
            &all[row * width..][..width]
        });
        let pooled: Vec<f32> = pooled.copied().collect();
        operations.upload(&pooled, width, &mut rows)?;
        operations.normalise(&self.norm, &mut rows)?;
        match &self.projection {
            None => operations.download(&rows),
            Some(projection) => {
                let mut out = O::Rows::default();
                operations.linear(None, projection, &rows, &mut out)?;
                operations.download(&out)
            }
        }
    }
}

impl TextPooling {
    /// Where in a text the feature is.
    fn place(self, tokens: &[u32]) -> usize {
        let first = |wanted: u32| tokens.iter().position(|&token| token == wanted).unwrap_or(0);
        match self {
            TextPooling::First(end) => first(end),
            TextPooling::Largest => first(tokens.iter().copied().max().unwrap_or(0)),
            TextPooling::Last => tokens.len().saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_feature_is_where_the_tower_looks_for_it() {
        let tokens = [7, 3, 9, 2, 9, 2];
        assert_eq!(TextPooling::First(2).place(&tokens), 3);
        assert_eq!(TextPooling::Largest.place(&tokens), 2);
        assert_eq!(TextPooling::Last.place(&tokens), 5);
    }
}
