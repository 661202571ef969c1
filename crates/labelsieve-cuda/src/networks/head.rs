//! The cosine classifier on top: its loss and the gradients of everything in it, all in `f32`.
#![expect(unsafe_code, reason = "queues kernels; the macro says what makes it sound")]

use cudarc::driver::CudaSlice;
use labelsieve_networks::{Network, Role, ScaleRule, Sgd, Tally, Targets};

use super::layout::Layout;
use super::passes::Parameters;
use super::queue::{Queue, Side};
use crate::error::Result;
use crate::gpu::{at, blocks, launch};

/// The classifier's own memory.
pub(super) struct Head {
    dim: usize,
    n_classes: usize,
    /// Where W and s are among the parameters.
    weights: usize,
    scale: usize,
    /// Ŵ and the lengths of W's rows.
    unit_weights: CudaSlice<f32>,
    weight_lengths: CudaSlice<f32>,
    sums: CudaSlice<u64>,
    batch: Batch,
}

/// Memory for up to `capacity` images.
struct Batch {
    capacity: usize,
    features: CudaSlice<f32>,
    unit: CudaSlice<f32>,
    lengths: CudaSlice<f32>,
    gradients: CudaSlice<f32>,
    cosines: CudaSlice<f32>,
    outcomes: CudaSlice<f32>,
}

impl Batch {
    fn new(queue: &Queue, capacity: usize, dim: usize, n_classes: usize) -> Result<Batch> {
        Ok(Batch {
            capacity,
            features: queue.zeros(capacity * dim)?,
            unit: queue.zeros(capacity * dim)?,
            lengths: queue.zeros(capacity)?,
            gradients: queue.zeros(capacity * dim)?,
            cosines: queue.zeros(capacity * n_classes)?,
            outcomes: queue.zeros(3 * capacity)?,
        })
    }
}

/// Classes, weights and settings of a step as `head.cu` reads them, in bytes, and where the parts start.
pub(super) struct Request {
    pub bytes: Vec<u8>,
    weights: usize,
    sgd: usize,
}

impl Request {
    pub fn new(targets: Targets, sgd: &Sgd) -> Request {
        let mut bytes: Vec<u8> = targets.classes.iter().flat_map(|class| class.to_ne_bytes()).collect();
        let weights = bytes.len();
        bytes.extend(targets.weights.iter().flat_map(|weight| weight.to_ne_bytes()));
        let start = bytes.len();
        bytes.extend([sgd.rate, sgd.momentum, sgd.decay].iter().flat_map(|number| number.to_ne_bytes()));
        bytes.extend(u32::from(sgd.scale == ScaleRule::Learned).to_ne_bytes());
        bytes.extend((targets.split as u32).to_ne_bytes());
        Request { bytes, weights, sgd: start }
    }

    /// The address of the settings when the bytes are at `start`.
    pub fn sgd(&self, start: u64) -> u64 {
        start + self.sgd as u64
    }
}

impl Head {
    pub fn new(queue: &Queue, network: &Network, layout: &Layout, n_classes: usize) -> Result<Head> {
        let dim = network.dim();
        let start = |role| if n_classes > 0 { layout.start(None, role) } else { 0 };
        Ok(Head {
            dim,
            n_classes,
            weights: start(Role::ClassWeights),
            scale: start(Role::ClassScale),
            unit_weights: queue.zeros(n_classes * dim)?,
            weight_lengths: queue.zeros(n_classes)?,
            sums: queue.zeros(4)?,
            batch: Batch::new(queue, 0, dim, n_classes)?,
        })
    }

    /// Makes sure that `n_images` fit.
    pub fn fit(&mut self, queue: &Queue, n_images: usize) -> Result<()> {
        if n_images > self.batch.capacity {
            self.batch = Batch::new(queue, n_images, self.dim, self.n_classes)?;
        }
        Ok(())
    }

    /// The address of the features.
    pub fn features(&self) -> u64 {
        at(&self.batch.features)
    }

    /// The features of `n_images`, on the host.
    pub fn read_features(&self, queue: &Queue, n_images: usize) -> Result<Vec<f32>> {
        queue.read(&self.batch.features, n_images * self.dim)
    }

    /// Puts gradients of the features that were computed on the host where those of the classifier would be, and returns the
    /// address.
    pub fn write_gradients(&mut self, queue: &Queue, gradients: &[f32]) -> Result<u64> {
        let mut place = self.batch.gradients.slice_mut(..gradients.len());
        queue.stream.memcpy_htod(gradients, &mut place)?;
        Ok(at(&self.batch.gradients))
    }

    /// **Eq. (6) to (8)**: adds the loss of the features to the sums and computes the gradients of W, s and the features.
    ///
    /// ```text
    /// L = - Σ_i u_i ln softmax(s Ŵᵀ ĝ(x_i))_{c_i}
    /// ```
    ///
    /// `request` lies at address `request_at`. Returns the address of the gradients of the features.
    pub fn gradients(
        &self,
        queue: &Queue,
        parameters: &Parameters,
        request: &Request,
        request_at: u64,
        n_images: usize,
    ) -> Result<u64> {
        let Queue { stream, kernels, .. } = queue;
        let n = n_images;
        let k = self.n_classes;
        let dim = self.dim;
        let batch = &self.batch;
        let weights = at(&parameters.values) + 4 * self.weights as u64;
        let weight_gradients = at(&parameters.gradients) + 4 * self.weights as u64;
        let scale = at(&parameters.values) + 4 * self.scale as u64;
        let scale_gradient = at(&parameters.gradients) + 4 * self.scale as u64;
        let unit = at(&batch.unit);
        let lengths = at(&batch.lengths);
        let unit_weights = at(&self.unit_weights);
        let weight_lengths = at(&self.weight_lengths);
        let cosines = at(&batch.cosines);
        let outcomes = at(&batch.outcomes);
        let gradients = at(&batch.gradients);
        let columns = dim as u32;
        launch!(stream, kernels.unit_rows, blocks(n, 128), at(&batch.features), columns, unit, lengths);
        launch!(stream, kernels.unit_rows, blocks(k, 128), weights, columns, unit_weights, weight_lengths);
        queue.product((unit, Side::Along), (unit_weights, Side::Across), cosines, (n, k, dim))?;
        launch!(
            stream,
            kernels.class_gradients,
            blocks(n, 128),
            cosines,
            k as u32,
            request_at,
            request_at + request.weights as u64,
            request.sgd(request_at),
            scale,
            outcomes,
        );
        launch!(
            stream,
            kernels.count_step,
            blocks(1, 256),
            outcomes,
            n as u32,
            at(&self.sums),
            scale_gradient
        );
        queue.product((cosines, Side::Along), (unit_weights, Side::Along), gradients, (n, dim, k))?;
        queue.product((cosines, Side::Across), (unit, Side::Along), weight_gradients, (k, dim, n))?;
        launch!(stream, kernels.row_gradients, blocks(n, 128), gradients, unit, lengths, columns);
        launch!(
            stream,
            kernels.row_gradients,
            blocks(k, 128),
            weight_gradients,
            unit_weights,
            weight_lengths,
            columns
        );
        Ok(gradients)
    }

    /// What steps added up to since the last call.
    pub fn tally(&mut self, queue: &Queue) -> Result<Tally> {
        let sums = queue.read(&self.sums, 4)?;
        queue.stream.memset_zeros(&mut self.sums)?;
        Ok(Tally { loss: f64::from_bits(sums[0]), correct: sums[1], images: sums[2], steps: sums[3] })
    }
}
