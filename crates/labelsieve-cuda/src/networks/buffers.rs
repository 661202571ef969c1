//! Assignment of images to shared buffers: decided once per network, in bytes per image, and allocated once per batch size.

use super::schedule::{Normalise, Operation, Schedule};
use crate::error::{Error, Result};

/// Buffers, each of which holds one image or gradient at a time. Their sizes are bytes per image of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Buffers {
    pub sizes: Vec<usize>,
    free: Vec<usize>,
}

impl Buffers {
    /// An exclusive buffer.
    fn own(&mut self, size: usize) -> usize {
        self.sizes.push(size);
        self.sizes.len() - 1
    }

    /// The smallest free buffer that is large enough; else the largest, made larger; else a new one.
    fn take(&mut self, size: usize) -> usize {
        let fits = self.free.iter().filter(|&&r| self.sizes[r] >= size).min_by_key(|&&r| (self.sizes[r], r));
        let chosen = fits.or_else(|| self.free.iter().max_by_key(|&&r| (self.sizes[r], r))).copied();
        let Some(buffer) = chosen else { return self.own(size) };
        self.free.retain(|&r| r != buffer);
        self.sizes[buffer] = self.sizes[buffer].max(size);
        buffer
    }

    fn give_back(&mut self, buffer: usize) {
        self.free.push(buffer);
    }
}

/// Memory for features alone: an image's buffer is free again after its last reader.
#[derive(Debug)]
pub(super) struct Embedding {
    pub buffers: Buffers,
    /// The buffer of each image.
    pub images: Vec<usize>,
}

impl Embedding {
    pub fn new(schedule: &Schedule, element: usize) -> Embedding {
        let mut readers = vec![0; schedule.images.len()];
        readers[schedule.last] += 1;
        schedule.work.iter().flat_map(inputs).for_each(|image| readers[image] += 1);
        let mut buffers = Buffers::default();
        let mut images = vec![usize::MAX; schedule.images.len()];
        images[0] = buffers.take(schedule.images[0].len() * element);
        for work in &schedule.work {
            let output = output(work);
            images[output] = buffers.take(schedule.images[output].len() * element);
            for image in inputs(work) {
                readers[image] -= 1;
                if readers[image] == 0 {
                    buffers.give_back(images[image]);
                }
            }
        }
        Embedding { buffers, images }
    }
}

/// The buffers of gradients that the backward pass of one [`Operation`] reads and writes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Backward {
    Convolution {
        /// Of the output.
        gradients: usize,
        /// Of the input; none for the first layer.
        input: Option<usize>,
    },
    Normalise {
        /// Of the output.
        gradients: usize,
        /// More of them, to be added: the output was read twice.
        second: Option<usize>,
        /// Whether `gradients` must hold the sum behind the ReLU afterwards: the shortcut reads it.
        keep: bool,
        /// Of the input.
        input: usize,
    },
}

/// The winners of a joined max-pool, for the backward pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Winners {
    /// One byte per number.
    pub places: usize,
    pub values: usize,
}

/// Memory for learning: every image is kept for the backward pass; gradients share buffers.
#[derive(Debug)]
pub(super) struct Learning {
    pub buffers: Buffers,
    pub images: Vec<usize>,
    /// For each operation.
    pub winners: Vec<Option<Winners>>,
    /// The first buffer of the gradients of the last image.
    pub last: usize,
    /// For each operation.
    pub backward: Vec<Backward>,
}

impl Learning {
    pub fn new(schedule: &Schedule, element: usize) -> Result<Learning> {
        let mut buffers = Buffers::default();
        let bytes = |image: usize| schedule.images[image].len() * element;
        let images = (0..schedule.images.len()).map(|image| buffers.own(bytes(image))).collect();
        let mut remember = |work: &Operation| match work {
            Operation::Normalise(Normalise { pool: Some(_), to, .. }) => {
                Some(Winners { places: buffers.own(to.len()), values: buffers.own(to.len() * element) })
            }
            _ => None,
        };
        let winners = schedule.work.iter().map(&mut remember).collect();
        let mut gradients: Vec<Vec<usize>> = vec![Vec::new(); schedule.images.len()];
        let last = buffers.take(bytes(schedule.last));
        gradients[schedule.last].push(last);
        let mut backward = Vec::new();
        for work in schedule.work.iter().rev() {
            let mine = std::mem::take(&mut gradients[output(work)]);
            let (first, second) = match mine[..] {
                [first] => (first, None),
                [first, second] => (first, Some(second)),
                _ => {
                    let readers = mine.len();
                    return Err(Error::Failed(format!("a layer with {readers} readers is not supported")));
                }
            };
            match work {
                Operation::Convolution(convolution) => {
                    if second.is_some() {
                        return Err(Error::Failed(
                            "a convolution with two readers is not supported".to_owned(),
                        ));
                    }
                    let input = (convolution.input != 0).then(|| buffers.take(bytes(convolution.input)));
                    gradients[convolution.input].extend(input);
                    backward.push(Backward::Convolution { gradients: first, input });
                    buffers.give_back(first);
                }
                Operation::Normalise(normalise) => {
                    let input = buffers.take(bytes(normalise.input));
                    gradients[normalise.input].push(input);
                    let keep = second.is_some() || normalise.add.is_some();
                    backward.push(Backward::Normalise { gradients: first, second, keep, input });
                    second.into_iter().for_each(|buffer| buffers.give_back(buffer));
                    match normalise.add {
                        Some(add) => gradients[add].push(first), // the shortcut's gradients are the same numbers
                        None => buffers.give_back(first),
                    }
                }
            }
        }
        backward.reverse();
        Ok(Learning { buffers, images, winners, last, backward })
    }
}

fn output(work: &Operation) -> usize {
    match work {
        Operation::Convolution(convolution) => convolution.output,
        Operation::Normalise(normalise) => normalise.output,
    }
}

fn inputs(work: &Operation) -> Vec<usize> {
    match work {
        Operation::Convolution(convolution) => vec![convolution.input],
        Operation::Normalise(normalise) => std::iter::once(normalise.input).chain(normalise.add).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::networks::layout::Layout;
    use labelsieve_networks::{Architecture, Stem};

    fn schedules() -> impl Iterator<Item = Schedule> {
        Architecture::ALL.into_iter().map(|architecture| {
            let network = architecture.network(64, 96, Stem::Small).unwrap();
            Schedule::new(&network, &Layout::new(&network, 3)).unwrap()
        })
    }

    /// Plays the forward pass and checks that every input is still where it was written.
    #[test]
    fn no_image_is_overwritten_before_its_last_reader() {
        for schedule in schedules() {
            let embedding = Embedding::new(&schedule, 2);
            let mut holds = vec![None; embedding.buffers.sizes.len()];
            holds[embedding.images[0]] = Some(0);
            for work in &schedule.work {
                for image in inputs(work) {
                    assert_eq!(holds[embedding.images[image]], Some(image));
                }
                let buffer = embedding.images[output(work)];
                assert!(inputs(work).iter().all(|&image| embedding.images[image] != buffer));
                assert!(embedding.buffers.sizes[buffer] >= 2 * schedule.images[output(work)].len());
                holds[buffer] = Some(output(work));
            }
            assert_eq!(holds[embedding.images[schedule.last]], Some(schedule.last));
        }
    }

    /// Plays the backward pass with sets of contributions instead of numbers.
    #[test]
    fn gradients_arrive_whole_although_they_share_buffers() {
        for schedule in schedules() {
            let learning = Learning::new(&schedule, 2).unwrap();
            let mut readers = vec![0usize; schedule.images.len()];
            schedule.work.iter().flat_map(inputs).for_each(|image| readers[image] += 1);
            readers[schedule.last] += 1;
            // What each buffer holds: gradients of which image, from how many of its readers.
            let mut holds = vec![Vec::new(); learning.buffers.sizes.len()];
            holds[learning.last] = vec![(schedule.last, 1)];
            let get = |holds: &[Vec<(usize, usize)>], buffer: usize, image: usize| {
                holds[buffer].iter().find(|(of, _)| *of == image).expect("gradients of this image").1
            };
            for (work, backward) in schedule.work.iter().zip(&learning.backward).rev() {
                let image = output(work);
                match (work, backward) {
                    (Operation::Convolution(convolution), Backward::Convolution { gradients, input }) => {
                        assert_eq!(get(&holds, *gradients, image), readers[image]);
                        if let Some(input) = input {
                            assert_ne!(input, gradients);
                            holds[*input] = vec![(convolution.input, 1)];
                        }
                    }
                    (
                        Operation::Normalise(normalise),
                        Backward::Normalise { gradients, second, keep, input },
                    ) => {
                        let more = second.map_or(0, |second| get(&holds, second, image));
                        assert_eq!(get(&holds, *gradients, image) + more, readers[image]);
                        assert!(input != gradients && Some(*input) != *second);
                        holds[*input] = vec![(normalise.input, 1)];
                        if let Some(add) = normalise.add {
                            assert!(keep);
                            holds[*gradients] = vec![(add, 1)];
                        }
                    }
                    _ => panic!("work and its way back differ"),
                }
            }
        }
    }
}
