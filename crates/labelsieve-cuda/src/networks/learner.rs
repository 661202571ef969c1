//! A network on a GPU.
#![expect(unsafe_code, reason = "declares what a kernel reads; queues kernels")]

use cudarc::driver::{CudaSlice, DeviceRepr};
use labelsieve_networks::{
    Batch, Embedder, FeatureObjective, Learner, Network, Result as VisionResult, Sgd, Snapshot, Tally,
    Targets, check_no_classifier,
};

use super::buffers::{Embedding, Learning};
use super::head::{Head, Request};
use super::layout::{Layout, Piece};
use super::passes::{Parameters, Pass, Tables};
use super::queue::{Arena, Convolutions, Queue, threads};
use super::schedule::Schedule;
use super::staging::Staging;
use crate::error::{Error, Result};
use crate::gpu::{at, blocks, launch};

/// The factors and offsets that normalise the bytes of an image. Laid out as in `image.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Colours {
    factor: [f32; 3],
    offset: [f32; 3],
}

// SAFETY: `repr(C)`, and the kernel declares the same fields.
unsafe impl DeviceRepr for Colours {}

/// An image and the zeros around it. Laid out as in `image.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Frame {
    height: u32,
    width: u32,
    out_height: u32,
    out_width: u32,
    top: u32,
    left: u32,
}

// SAFETY: `repr(C)`, and the kernel declares the same fields.
unsafe impl DeviceRepr for Frame {}

/// A network with its classifier. Fields are dropped in this order: memory, then the stream it returns to.
pub(super) struct CudaLearner {
    network: Network,
    n_classes: usize,
    colours: Colours,
    layout: Layout,
    schedule: Schedule,
    embedding: (Embedding, Arena),
    learning: (Learning, Arena),
    parameters: Parameters,
    pieces: CudaSlice<Piece>,
    tables: Tables,
    /// Whether the tables of the running statistics match the current parameters.
    tables_are_current: bool,
    head: Head,
    /// The totals of steps on a loss of the features; those of other steps are counted on the device.
    on_features: Tally,
    staging: Staging,
    convolutions: Convolutions,
    queue: Queue,
}

impl CudaLearner {
    pub fn new(queue: Queue, network: &Network, snapshot: &Snapshot) -> VisionResult<CudaLearner> {
        snapshot.tensors(network)?; // refuses numbers of another network
        Ok(CudaLearner::checked(queue, network, snapshot)?)
    }

    fn checked(queue: Queue, network: &Network, snapshot: &Snapshot) -> Result<CudaLearner> {
        let layout = Layout::new(network, snapshot.n_classes);
        let schedule = Schedule::new(network, &layout)?;
        let element = queue.precision.size();
        let parameters = Parameters {
            values: queue.copy(&layout.to_device(&snapshot.values))?,
            momenta: queue.copy(&layout.to_device(&snapshot.momentum))?,
            gradients: queue.zeros(layout.len)?,
            weights: queue.zeros(layout.len * element)?,
            weight_gradients: queue.zeros(layout.len * element)?,
        };
        let mean = network.mean;
        let deviation = network.deviation;
        let colours = Colours {
            factor: [0, 1, 2].map(|c| 1.0 / (255.0 * deviation[c])),
            offset: [0, 1, 2].map(|c| -mean[c] / deviation[c]),
        };
        let learner = CudaLearner {
            network: network.clone(),
            n_classes: snapshot.n_classes,
            colours,
            embedding: (Embedding::new(&schedule, element), Arena::empty()),
            learning: (Learning::new(&schedule, element)?, Arena::empty()),
            parameters,
            pieces: queue.copy(&layout.pieces())?,
            tables: Tables::new(&queue, &schedule)?,
            tables_are_current: false,
            head: Head::new(&queue, network, &layout, snapshot.n_classes)?,
            on_features: Tally::default(),
            staging: Staging::new(&queue.stream)?,
            convolutions: Convolutions::new(&queue)?,
            layout,
            schedule,
            queue,
        };
        learner.descend(0)?; // rounds the weights
        Ok(learner)
    }

    /// Updates all parameters with the settings at this address; with 0, only rounds the weights of convolutions.
    fn descend(&self, sgd: u64) -> Result<()> {
        let parameters = &self.parameters;
        launch!(
            self.queue.stream,
            self.queue.kernels.descend,
            blocks(self.pieces.len(), 256),
            at(&self.pieces),
            sgd,
            at(&parameters.values),
            at(&parameters.momenta),
            at(&parameters.gradients),
            at(&parameters.weight_gradients),
            at(&parameters.weights),
        );
        Ok(())
    }

    /// Queues the conversion of bytes to the numbers of images.
    fn normalise_pixels(&self, pixels: u64, n_images: usize, to: u64) -> Result<()> {
        let from = self.network.input();
        let framed = self.schedule.images[0];
        let n_pixels = n_images * framed.height * framed.width;
        let frame = Frame {
            height: from.height as u32,
            width: from.width as u32,
            out_height: framed.height as u32,
            out_width: framed.width as u32,
            top: self.schedule.frame.top as u32,
            left: self.schedule.frame.left as u32,
        };
        let kernel = &self.queue.kernels.normalise_images;
        let shape = threads(n_pixels);
        launch!(self.queue.stream, kernel, shape, pixels, n_pixels as u32, frame, self.colours, to);
        Ok(())
    }

    fn embed(&mut self, images: &Batch) -> Result<Vec<f32>> {
        let n_images = images.len();
        self.queue.stream.context().bind_to_thread()?;
        let plan = &self.embedding.0;
        let arena = &mut self.embedding.1;
        arena.fit(&self.queue, &plan.buffers, n_images)?;
        self.head.fit(&self.queue, n_images)?;
        let parcel = self.staging.send(&self.queue.stream, images.pixels(), &[])?;
        let first = self.embedding.1.buffer(self.embedding.0.images[0]);
        self.normalise_pixels(parcel.pixels, n_images, first)?;
        self.staging.done(&self.queue.stream, parcel)?;
        let mut pass = Pass {
            queue: &self.queue,
            schedule: &self.schedule,
            convolutions: &mut self.convolutions,
            parameters: &self.parameters,
            tables: &self.tables,
            arena: &self.embedding.1,
            images: &self.embedding.0.images,
            n_images,
        };
        if !self.tables_are_current {
            pass.running_tables()?;
            self.tables_are_current = true;
        }
        pass.forward(None)?;
        pass.read_features(self.head.features())?;
        self.head.read_features(&self.queue, n_images)
    }

    /// A step of gradient descent. With an `objective`, the loss is computed on the host from the features.
    fn learn(
        &mut self,
        images: &Batch,
        request: &Request,
        objective: Option<&dyn FeatureObjective>,
    ) -> Result<VisionResult<()>> {
        let n_images = images.len();
        self.queue.stream.context().bind_to_thread()?;
        let plan = &self.learning.0;
        let arena = &mut self.learning.1;
        arena.fit(&self.queue, &plan.buffers, n_images)?;
        self.head.fit(&self.queue, n_images)?;
        let parcel = self.staging.send(&self.queue.stream, images.pixels(), &request.bytes)?;
        let first = self.learning.1.buffer(self.learning.0.images[0]);
        self.normalise_pixels(parcel.pixels, n_images, first)?;
        let plan = &self.learning.0;
        let arena = &self.learning.1;
        let mut pass = Pass {
            queue: &self.queue,
            schedule: &self.schedule,
            convolutions: &mut self.convolutions,
            parameters: &self.parameters,
            tables: &self.tables,
            arena,
            images: &plan.images,
            n_images,
        };
        self.tables_are_current = false;
        pass.forward(Some(&plan.winners))?;
        pass.read_features(self.head.features())?;
        let gradients = match objective {
            None => self.head.gradients(&self.queue, &self.parameters, request, parcel.rest, n_images)?,
            Some(objective) => {
                let features = self.head.read_features(&self.queue, n_images)?;
                let loss = match objective.loss(&features, self.network.dim()) {
                    Ok(loss) => loss,
                    Err(error) => {
                        self.staging.done(&self.queue.stream, parcel)?;
                        return Ok(Err(error));
                    }
                };
                self.on_features.loss += loss.loss;
                self.on_features.correct += loss.correct;
                self.on_features.images += loss.counted;
                self.on_features.steps += 1;
                self.head.write_gradients(&self.queue, &loss.by_features)?
            }
        };
        pass.spread_gradients(gradients, plan.last)?;
        pass.backward(&plan.backward, &plan.winners)?;
        self.descend(request.sgd(parcel.rest))?;
        self.staging.done(&self.queue.stream, parcel)?;
        Ok(Ok(()))
    }

    /// Turns a lack of memory into an error that names the batch.
    fn explained<T>(result: Result<T>, images: &Batch) -> VisionResult<T> {
        let (height, width) = images.size();
        Ok(result.map_err(|error| match error {
            Error::OutOfMemory => Error::BatchTooLarge { images: images.len(), height, width },
            error => error,
        })?)
    }
}

impl Embedder for CudaLearner {
    fn dim(&self) -> usize {
        self.network.dim()
    }

    fn features(&mut self, images: &Batch) -> VisionResult<Vec<f32>> {
        images.check(&self.network)?;
        if images.is_empty() {
            return Ok(Vec::new());
        }
        let features = self.embed(images);
        CudaLearner::explained(features, images)
    }
}

impl Learner for CudaLearner {
    fn step(&mut self, images: &Batch, targets: Targets, sgd: &Sgd) -> VisionResult<()> {
        images.check(&self.network)?;
        targets.check(images.len(), self.n_classes)?;
        if images.is_empty() {
            return Ok(());
        }
        let done = self.learn(images, &Request::new(targets, sgd), None);
        CudaLearner::explained(done, images)?
    }

    fn step_on_features(
        &mut self,
        images: &Batch,
        objective: &dyn FeatureObjective,
        sgd: &Sgd,
    ) -> VisionResult<()> {
        images.check(&self.network)?;
        check_no_classifier(self.n_classes)?;
        if images.is_empty() {
            return Ok(());
        }
        let request = Request::new(Targets { classes: &[], weights: &[], split: 0 }, sgd);
        let done = self.learn(images, &request, Some(objective));
        CudaLearner::explained(done, images)?
    }

    fn tally(&mut self) -> VisionResult<Tally> {
        let on_features = std::mem::take(&mut self.on_features);
        let others = self.head.tally(&self.queue)?;
        Ok(Tally {
            loss: on_features.loss + others.loss,
            correct: on_features.correct + others.correct,
            images: on_features.images + others.images,
            steps: on_features.steps + others.steps,
        })
    }

    fn snapshot(&mut self) -> VisionResult<Snapshot> {
        let read = |values| Ok::<_, Error>(self.layout.to_host(&self.queue.read(values, self.layout.len)?));
        let values = read(&self.parameters.values)?;
        let momentum = read(&self.parameters.momenta)?;
        Ok(Snapshot { n_classes: self.n_classes, values, momentum })
    }
}
