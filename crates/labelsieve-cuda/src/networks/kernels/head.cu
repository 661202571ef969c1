// The cosine classifier around its matrix products, and the step of gradient descent.

template <typename Value, typename Combine>
__device__ __forceinline__ Value block_reduce(Value value, Value* scratch, Combine combine) {
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (uint width = blockDim.x / 2; width > 0; width /= 2) {
        if (threadIdx.x < width) scratch[threadIdx.x] = combine(scratch[threadIdx.x], scratch[threadIdx.x + width]);
        __syncthreads();
    }
    Value result = scratch[0];
    __syncthreads();
    return result;
}

struct Plus {
    template <typename T>
    __device__ T operator()(T a, T b) const { return a + b; }
};

struct Larger {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Rows of unit length, and the lengths, which are at least 10⁻¹²; a zero row stays zero. One row a block.
extern "C" __global__ void __launch_bounds__(128) unit_rows(const float* rows, uint dim, float* unit, float* lengths) {
    __shared__ float scratch[128];
    size_t start = (size_t)blockIdx.x * dim;
    float square = 0.0f;
    for (uint c = threadIdx.x; c < dim; c += 128) square = fmaf(rows[start + c], rows[start + c], square);
    float length = fmaxf(sqrtf(block_reduce(square, scratch, Plus())), 1e-12f);
    for (uint c = threadIdx.x; c < dim; c += 128) unit[start + c] = rows[start + c] / length;
    if (threadIdx.x == 0) lengths[blockIdx.x] = length;
}

// Gradients of rows out of gradients of their unit rows, in place. One row a block.
extern "C" __global__ void __launch_bounds__(128) row_gradients(float* gradients, const float* unit, const float* lengths,
                                                                uint dim) {
    __shared__ float scratch[128];
    size_t start = (size_t)blockIdx.x * dim;
    float along = 0.0f;
    for (uint c = threadIdx.x; c < dim; c += 128) along = fmaf(gradients[start + c], unit[start + c], along);
    along = block_reduce(along, scratch, Plus());
    float length = lengths[blockIdx.x];
    for (uint c = threadIdx.x; c < dim; c += 128)
        gradients[start + c] = (gradients[start + c] - along * unit[start + c]) / length;
}

// The data that the host sends with the images of a step.
struct Sgd {
    float rate, momentum, decay;
    uint learns_scale, split;
};

// The contribution of an image to the loss and to the gradient of the scale, and whether its class had the largest cosine: of equal ones,
// the first.
struct Outcome {
    float loss, scale_gradient;
    uint correct;
};

// Cosines become gradients of the loss. Classes below `split` compete among themselves, and so do the others. One image a block.
extern "C" __global__ void __launch_bounds__(128) class_gradients(float* cosines, uint n_classes, const uint* classes,
                                                                  const float* weights, const Sgd* sgd, const float* scale,
                                                                  Outcome* outcomes) {
    __shared__ float scratch[128];
    float* row = cosines + (size_t)blockIdx.x * n_classes;
    uint own = classes[blockIdx.x], split = min(sgd->split, n_classes);
    uint from = own < split ? 0 : split, to = own < split ? split : n_classes;
    float s = *scale, weight = weights[blockIdx.x], own_cosine = row[own], most = -INFINITY, better = 0.0f;
    for (uint c = from + threadIdx.x; c < to; c += 128) {
        most = fmaxf(most, row[c]);
        if (c < own ? !(row[c] < own_cosine) : !(row[c] <= own_cosine)) better = 1.0f;
    }
    most = block_reduce(most, scratch, Larger());
    better = block_reduce(better, scratch, Larger());
    float total = 0.0f;
    for (uint c = from + threadIdx.x; c < to; c += 128) total += expf(s * (row[c] - most));
    total = block_reduce(total, scratch, Plus());
    float along = 0.0f;
    for (uint c = threadIdx.x; c < n_classes; c += 128) {
        float cosine = row[c], gradient = 0.0f;
        if (c >= from && c < to) gradient = weight * (expf(s * (cosine - most)) / total - (c == own ? 1.0f : 0.0f));
        along = fmaf(gradient, cosine, along);
        row[c] = s * gradient;
    }
    along = block_reduce(along, scratch, Plus());
    if (threadIdx.x == 0) {
        Outcome outcome = {weight * (logf(total) + s * (most - own_cosine)), along, better == 0.0f ? 1u : 0u};
        outcomes[blockIdx.x] = outcome;
    }
}

// The totals of all steps since the last read.
struct Sums {
    double loss;
    ulong64 correct, images, steps;
};

// Adds the outcomes of a step to the sums; the gradient of the scale goes to its place. One block.
extern "C" __global__ void __launch_bounds__(THREADS) count_step(const Outcome* outcomes, uint n_images, Sums* sums,
                                                                 float* scale_gradient) {
    __shared__ double scratch[THREADS];
    double loss = 0.0, gradient = 0.0, correct = 0.0;
    for (uint i = threadIdx.x; i < n_images; i += THREADS) {
        loss += outcomes[i].loss;
        gradient += outcomes[i].scale_gradient;
        correct += outcomes[i].correct;
    }
    loss = block_reduce(loss, scratch, Plus());
    gradient = block_reduce(gradient, scratch, Plus());
    correct = block_reduce(correct, scratch, Plus());
    if (threadIdx.x != 0) return;
    *scale_gradient = (float)gradient;
    sums->loss += loss;
    sums->correct += (ulong64)correct;
    sums->images += n_images;
    sums->steps += 1;
}

// A piece of the parameters that one block updates.
struct Piece {
    uint start, length, kind;
};

#define CONVOLUTION 0
#define PLAIN 1
#define SCALE 2

// g ← ∂L/∂θ + decay θ;  v ← momentum v + g;  θ ← θ - rate (g + momentum v). The weights of convolutions are also rounded for
// the tensor cores; without `sgd` that is all that happens. One piece a block.
extern "C" __global__ void __launch_bounds__(THREADS) descend(const Piece* pieces, const Sgd* sgd, float* values,
                                                              float* momenta, const float* gradients,
                                                              const element* weight_gradients, element* weights) {
    Piece piece = pieces[blockIdx.x];
    for (uint i = piece.start + threadIdx.x; i < piece.start + piece.length; i += THREADS) {
        float value = values[i];
        if (sgd != nullptr && (piece.kind != SCALE || sgd->learns_scale)) {
            float g = piece.kind == CONVOLUTION ? to_float(weight_gradients[i]) : gradients[i];
            if (piece.kind != SCALE) g = fmaf(sgd->decay, value, g);
            float v = fmaf(sgd->momentum, momenta[i], g);
            value -= sgd->rate * fmaf(sgd->momentum, v, g);
            momenta[i] = v;
            values[i] = value;
        }
        if (piece.kind == CONVOLUTION) weights[i] = to_element(value);
    }
}
