// The leading directions of a set of rows, and the rows along them.
//
// P holds p orthonormal directions. A row x becomes Px and r, the length of what is left, |x − PᵀPx|. Then
// x·y ≤ Px·Py + r s: one product of p + 1 numbers bounds a similarity from above.

#define MAX_DIRECTIONS 128

// Random signs, to start from.
extern "C" __global__ void random_signs(float* values, uint count) {
    uint i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] = mix(i + GOLDEN) >> 63 ? 1.0f : -1.0f;
}

// The trace of a matrix and the sum of its squares, by one block of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024) trace_and_square(const float* matrix, uint dim, float* out) {
    __shared__ float traces[32], squares[32];
    float trace = 0.0f, square = 0.0f;
    for (uint i = threadIdx.x; i < dim; i += 1024) trace += matrix[(size_t)i * dim + i];
    for (uint i = threadIdx.x; i < dim * dim; i += 1024) square = fmaf(matrix[i], matrix[i], square);
    trace = warp_sum(trace);
    square = warp_sum(square);
    if (lane_id() == 0) {
        traces[threadIdx.x / 32] = trace;
        squares[threadIdx.x / 32] = square;
    }
    __syncthreads();
    if (threadIdx.x >= 32) return;
    trace = warp_sum(traces[threadIdx.x]);
    square = warp_sum(squares[threadIdx.x]);
    if (threadIdx.x == 0) {
        out[0] = trace;
        out[1] = square;
    }
}

// Cholesky's L of a p×p matrix, in its place, and 1 / Lᵢᵢ, by one block of 1024 threads. p is odd, so that columns lie in all
// banks. A direction that the earlier ones span is given up: its column of L and 1 / Lᵢᵢ are 0.
extern "C" __global__ void __launch_bounds__(1024) cholesky(float* matrix, uint p, float* inverse_diagonal) {
    extern __shared__ float l[]; // p × p, columns not yet divided by their pivot's root
    __shared__ float lengths[MAX_DIRECTIONS], inverses[MAX_DIRECTIONS];
    uint row = threadIdx.x % 128, part = threadIdx.x / 128;
    for (uint i = threadIdx.x; i < p * p; i += 1024) l[i] = matrix[i];
    __syncthreads();
    if (threadIdx.x < p) lengths[threadIdx.x] = l[threadIdx.x * p + threadIdx.x];
    for (uint k = 0; k < p; k++) {
        __syncthreads();
        float pivot = l[k * p + k];
        float inverse = pivot > 1e-5f * lengths[k] ? 1.0f / pivot : 0.0f;
        if (threadIdx.x == 0) inverses[k] = sqrtf(inverse);
        if (row >= p) continue;
        float own = l[row * p + k] * inverse;
        for (uint j = k + 1 + part; j <= row; j += 8) l[row * p + j] -= own * l[j * p + k];
    }
    __syncthreads();
    for (uint i = threadIdx.x; i < p * p; i += 1024) matrix[i] = l[i] * inverses[i % p];
    if (threadIdx.x < p) inverse_diagonal[threadIdx.x] = inverses[threadIdx.x];
}

// Solves L Q = Z: p rows of `dim` numbers. One thread a column.
extern "C" __global__ void forward_substitution(
    const float* l, const float* inverse_diagonal, uint p, const float* z, float* q, uint dim) {
    uint column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= dim) return;
    for (uint k = 0; k < p; k++) {
        float sums[4] = {};
        uint j = 0;
        for (; j + 4 <= k; j += 4) {
            #pragma unroll
            for (uint s = 0; s < 4; s++) sums[s] = fmaf(l[k * p + j + s], q[(j + s) * dim + column], sums[s]);
        }
        for (; j < k; j++) sums[0] = fmaf(l[k * p + j], q[j * dim + column], sums[0]);
        float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        q[k * dim + column] = (z[k * dim + column] - sum) * inverse_diagonal[k];
    }
}

// Adds up the squares of PPᵀ − I over all pairs of directions; directions that are 0 want 0. One warp a pair.
extern "C" __global__ void deviation(const float* directions, uint p, uint dim, double* square) {
    uint pair = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    uint i = pair / p, j = pair % p;
    if (i >= p || j > i) return;
    double sum = 0.0;
    for (uint c = lane_id(); c < dim; c += 32)
        sum = fma((double)directions[i * dim + c], (double)directions[j * dim + c], sum);
    #pragma unroll
    for (uint width = 16; width > 0; width /= 2) sum += __shfl_down_sync(EVERY_LANE, sum, width);
    if (lane_id() != 0) return;
    if (i == j && sum > 0.0) sum -= 1.0;
    atomicAdd(square, (i == j ? 1.0 : 2.0) * sum * sum);
}

// Rounds `n` rows of p coordinates, `width` apart, to 16-bit floats and puts beside them the length of the rest, rounded
// up: its square is off by at most `slack`. One warp a row.
extern "C" __global__ void lead_rows(const float* coordinates, const float* rows, uint n, uint dim, uint stride, uint p,
                                     uint width, float slack, ushort* leads, uint* largest_move) {
    uint row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    float length = 0.0f, along = 0.0f, moved = 0.0f;
    for (uint c = lane_id(); c < dim; c += 32) {
        float value = rows[(size_t)row * stride + c];
        length = fmaf(value, value, length);
    }
    for (uint c = lane_id(); c < p; c += 32) {
        float value = coordinates[(size_t)row * width + c];
        ushort half = to_half(value);
        float move = value - from_half(half);
        along = fmaf(value, value, along);
        moved = fmaf(move, move, moved);
        leads[(size_t)row * width + c] = half;
    }
    float rest = sqrtf(fmaxf(warp_sum(length) - warp_sum(along), 0.0f) + slack) * 1.000001f;
    moved = warp_sum(moved);
    if (lane_id() != 0) return;
    ushort half = to_half(rest);
    leads[(size_t)row * width + p] = from_half(half) < rest ? half + 1 : half;
    atomicMax(largest_move, __float_as_uint(sqrtf(moved))); // lengths are not negative, so their bits order as they do
}

// Copies the rows `ids` of 16-byte `words` each.
extern "C" __global__ void gather_rows(const uint4* rows, const uint* ids, uint n, uint words, uint4* out) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (size_t)n * words) out[i] = rows[(size_t)ids[i / words] * words + i % words];
}
