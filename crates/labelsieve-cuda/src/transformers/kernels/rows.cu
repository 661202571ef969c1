// Rows of numbers, one per token, as transformers have them. A row has `columns` numbers, a multiple of eight unless it says
// otherwise; sums are f32.

// y = (x - mean) / √(variance + ε) · weight + bias, a warp per row. y may be x.
extern "C" __global__ void __launch_bounds__(THREADS) normalise_rows(uint n_rows, uint columns, const element* x,
                                                                     const float* weight, const float* bias, float epsilon,
                                                                     element* y) {
    uint row = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    if (row >= n_rows) return;
    x += (size_t)row * columns;
    y += (size_t)row * columns;
    float v[8], w[8], b[8], sum = 0.0f, squares = 0.0f;
    for (uint c = lane_id() * 8; c < columns; c += 256) {
        load8(x + c, v);
        #pragma unroll
        for (uint i = 0; i < 8; i++) sum += v[i];
    }
    float mean = warp_sum(sum) / columns;
    for (uint c = lane_id() * 8; c < columns; c += 256) { // from the cache
        load8(x + c, v);
        #pragma unroll
        for (uint i = 0; i < 8; i++) squares = fmaf(v[i] - mean, v[i] - mean, squares);
    }
    float inverse = 1.0f / sqrtf(warp_sum(squares) / columns + epsilon);
    for (uint c = lane_id() * 8; c < columns; c += 256) {
        load8(x + c, v);
        channel8(weight + c, w);
        channel8(bias + c, b);
        #pragma unroll
        for (uint i = 0; i < 8; i++) v[i] = fmaf((v[i] - mean) * inverse, w[i], b[i]);
        store8(y + c, v);
    }
}

// The numbers of `Activation`.
#define GELU 0
#define GELU_TANH 1
#define QUICK_GELU 2
#define SILU 3

__device__ __forceinline__ float activation(float x, uint kind) {
    switch (kind) {
        case GELU: return 0.5f * x * (1.0f + erff(x * 0.70710678f));
        case GELU_TANH: return 0.5f * x * (1.0f + tanhf(0.79788456f * fmaf(0.044715f * x * x, x, x)));
        case QUICK_GELU: return x / (1.0f + expf(-1.702f * x));
        default: return x / (1.0f + expf(-x));
    }
}

// x = f(x), eight numbers a thread.
extern "C" __global__ void __launch_bounds__(THREADS) activate(ulong64 n, uint kind, element* x) {
    size_t at = ((size_t)blockIdx.x * THREADS + threadIdx.x) * 8;
    if (at >= n) return;
    float v[8];
    load8(x + at, v);
    #pragma unroll
    for (uint i = 0; i < 8; i++) v[i] = activation(v[i], kind);
    store8(x + at, v);
}

// y = f(gate) · a, where a row of x has `columns` gates and then as many numbers a. Eight numbers a thread.
extern "C" __global__ void __launch_bounds__(THREADS) gate_rows(uint n_rows, uint columns, uint kind, const element* x,
                                                                element* y) {
    size_t at = ((size_t)blockIdx.x * THREADS + threadIdx.x) * 8;
    if (at >= (size_t)n_rows * columns) return;
    const element* from = x + at / columns * 2 * columns + at % columns;
    float gate[8], v[8];
    load8(from, gate);
    load8(from + columns, v);
    #pragma unroll
    for (uint i = 0; i < 8; i++) v[i] *= activation(gate[i], kind);
    store8(y + at, v);
}

struct Patches {
    uint n_images, height, width, patch, rows, columns, stride;
};

// One row per patch: its pixels row by row, three channels each, zeros up to `stride`. Eight numbers a thread.
extern "C" __global__ void __launch_bounds__(THREADS) patch_rows(Patches p, const unsigned char* pixels, element* out) {
    size_t at = ((size_t)blockIdx.x * THREADS + threadIdx.x) * 8;
    if (at >= (size_t)p.n_images * p.rows * p.columns * p.stride) return;
    uint first = at % p.stride, line = 3 * p.patch;
    size_t patch = at / p.stride;
    uint column = patch % p.columns, row = patch / p.columns % p.rows;
    size_t image = patch / p.columns / p.rows;
    const unsigned char* corner = pixels + ((image * p.height + row * p.patch) * p.width + column * p.patch) * 3;
    uint y = first / line, x = first % line;
    float v[8] = {};
    #pragma unroll
    for (uint i = 0; i < 8; i++) {
        if (y < p.patch) v[i] = corner[y * p.width * 3 + x];
        if (++x == line) x = 0, y++;
    }
    store8(out + at, v);
}

// One sequence per image: the rows of `before`, then its patches plus their positions. Eight numbers a thread.
extern "C" __global__ void __launch_bounds__(THREADS) sequence_rows(uint n_images, uint n_before, uint n_patches, uint columns,
                                                                    const element* before, const element* patches,
                                                                    const element* positions, element* out) {
    size_t at = ((size_t)blockIdx.x * THREADS + threadIdx.x) * 8;
    uint tokens = n_before + n_patches;
    if (at >= (size_t)n_images * tokens * columns) return;
    uint c = at % columns, token = at / columns % tokens;
    size_t image = at / columns / tokens;
    float v[8], position[8];
    if (token < n_before) {
        load8(before + token * columns + c, v);
    } else {
        load8(patches + (image * n_patches + token - n_before) * columns + c, v);
        load8(positions + (token - n_before) * columns + c, position);
        #pragma unroll
        for (uint i = 0; i < 8; i++) v[i] += position[i];
    }
    store8(out + at, v);
}

// The first `count` rows of every sequence. Eight numbers a thread.
extern "C" __global__ void __launch_bounds__(THREADS) first_rows(uint n_sequences, uint tokens, uint count, uint columns,
                                                                 const element* x, element* y) {
    size_t at = ((size_t)blockIdx.x * THREADS + threadIdx.x) * 8;
    if (at >= (size_t)n_sequences * count * columns) return;
    size_t row = at / columns;
    float v[8];
    load8(x + (row / count * tokens + row % count) * columns + at % columns, v);
    store8(y + at, v);
}

// The mean of the rows of every sequence but the first `skipped`. Eight numbers a thread.
extern "C" __global__ void __launch_bounds__(THREADS) mean_rows(uint n_sequences, uint tokens, uint skipped, uint columns,
                                                                const element* x, element* y) {
    size_t at = ((size_t)blockIdx.x * THREADS + threadIdx.x) * 8;
    if (at >= (size_t)n_sequences * columns) return;
    const element* from = x + at / columns * tokens * columns + at % columns;
    float sum[8] = {}, v[8];
    for (uint token = skipped; token < tokens; token++) {
        load8(from + (size_t)token * columns, v);
        #pragma unroll
        for (uint i = 0; i < 8; i++) sum[i] += v[i];
    }
    #pragma unroll
    for (uint i = 0; i < 8; i++) sum[i] /= tokens - skipped;
    store8(y + at, sum);
}
