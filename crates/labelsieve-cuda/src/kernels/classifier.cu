// Similarity to one row, weighted means, and the steps of the cosine classifier between its matrix products.

// (1 + v·x) / 2, cut to [0, 1]. One warp a row.
extern "C" __global__ void similarity_to(const float* rows, uint n, uint dim, uint stride, const float* centre, float* out) {
    uint row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    float similarity = dot(rows + (size_t)row * stride, centre, dim);
    if (lane_id() == 0) out[row] = fminf(fmaxf(0.5f + 0.5f * similarity, 0.0f), 1.0f);
}

// Σ weight · row over blocks of `chunk` rows: f32 inside a chunk. One block a chunk, four columns a thread.
extern "C" __global__ void weighted_sums(const float* rows, const float* weights, uint n, uint stride, uint chunk, float* sums) {
    uint from = blockIdx.x * chunk, to = min(n, from + chunk);
    for (uint c = threadIdx.x * 4; c < stride; c += blockDim.x * 4) {
        float4 sum = make_float4(0, 0, 0, 0);
        for (uint row = from; row < to; row++) {
            float weight = weights[row];
            float4 value = *(const float4*)(rows + (size_t)row * stride + c);
            sum.x += weight * value.x;
            sum.y += weight * value.y;
            sum.z += weight * value.z;
            sum.w += weight * value.w;
        }
        *(float4*)(sums + (size_t)blockIdx.x * stride + c) = sum;
    }
}

// Adds up the chunks in f64.
extern "C" __global__ void total_sums(const float* sums, uint n_chunks, uint stride, double* totals) {
    uint c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= stride) return;
    double total = 0.0;
    for (uint chunk = 0; chunk < n_chunks; chunk++) total += sums[(size_t)chunk * stride + c];
    totals[c] = total;
}

// Copies the chosen rows one below the other. One row a block.
extern "C" __global__ void choose_rows(const float* rows, const uint* chosen, uint stride, float* out) {
    const float4* from = (const float4*)(rows + (size_t)chosen[blockIdx.x] * stride);
    float4* to = (float4*)(out + (size_t)blockIdx.x * stride);
    for (uint c = threadIdx.x; c < stride / 4; c += blockDim.x) to[c] = from[c];
}

template <typename Combine>
__device__ __forceinline__ float block_reduce(float value, float* scratch, Combine combine) {
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (uint width = blockDim.x / 2; width > 0; width /= 2) {
        if (threadIdx.x < width) scratch[threadIdx.x] = combine(scratch[threadIdx.x], scratch[threadIdx.x + width]);
        __syncthreads();
    }
    float result = scratch[0];
    __syncthreads();
    return result;
}

// Cosines become gradients of the logits: weight · s/n · (softmax(s · cosines) − one at the class). One row a block of 128.
extern "C" __global__ void __launch_bounds__(128) logit_gradients(float* cosines, uint n_classes, const uint* chosen,
                                                                  const uint* classes, const float* weights, float scale,
                                                                  float n) {
    __shared__ float scratch[128];
    float* row = cosines + (size_t)blockIdx.x * n_classes;
    uint example = chosen[blockIdx.x], own = classes[example];
    float most = -INFINITY;
    for (uint c = threadIdx.x; c < n_classes; c += 128) most = fmaxf(most, scale * row[c]);
    most = block_reduce(most, scratch, [](float a, float b) { return fmaxf(a, b); });
    float total = 0.0f;
    for (uint c = threadIdx.x; c < n_classes; c += 128) {
        float value = expf(scale * row[c] - most);
        row[c] = value;
        total += value;
    }
    total = block_reduce(total, scratch, [](float a, float b) { return a + b; });
    float weight = weights[example] * scale / n;
    for (uint c = threadIdx.x; c < n_classes; c += 128) row[c] = (row[c] / total - (c == own ? 1.0f : 0.0f)) * weight;
}

// Ŵ and the lengths of W. One class a block of 128.
extern "C" __global__ void __launch_bounds__(128) unit_rows(const float* weights, uint dim, uint stride, float* unit,
                                                            float* lengths) {
    __shared__ float scratch[128];
    const float* row = weights + (size_t)blockIdx.x * stride;
    float square = 0.0f;
    for (uint c = threadIdx.x; c < dim; c += 128) square += row[c] * row[c];
    float length = sqrtf(block_reduce(square, scratch, [](float a, float b) { return a + b; }));
    for (uint c = threadIdx.x; c < stride; c += 128)
        unit[(size_t)blockIdx.x * stride + c] = c < dim && length > 0.0f ? row[c] / length : 0.0f;
    if (threadIdx.x == 0) lengths[blockIdx.x] = length;
}

// The gradient for Ŵ becomes one for W, which takes a step with momentum. One class a block of 128.
extern "C" __global__ void __launch_bounds__(128) momentum_step(float* weights, float* velocity, const float* gradients,
                                                                const float* unit, const float* lengths, uint dim,
                                                                uint stride, float momentum, float rate) {
    __shared__ float scratch[128];
    size_t start = (size_t)blockIdx.x * stride;
    float along = 0.0f;
    for (uint c = threadIdx.x; c < dim; c += 128) along += gradients[start + c] * unit[start + c];
    along = block_reduce(along, scratch, [](float a, float b) { return a + b; });
    float length = lengths[blockIdx.x], shrink = length > 0.0f ? 1.0f / length : 0.0f;
    for (uint c = threadIdx.x; c < dim; c += 128) {
        float gradient = (gradients[start + c] - along * unit[start + c]) * shrink;
        float speed = momentum * velocity[start + c] + gradient;
        velocity[start + c] = speed;
        weights[start + c] -= rate * speed;
    }
}
