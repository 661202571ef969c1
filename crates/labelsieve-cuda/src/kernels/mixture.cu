// A mixture of a class and others: see relevance/mixture.rs. Densities e_ij lie row by row, `stride` apart, with zeros in the padding.

// Per block: the sum of all products and of their squares.
extern "C" __global__ void __launch_bounds__(256) mixture_moments(const float* products, uint n, uint n_others, uint stride, double* moments) {
    __shared__ double sums[256], squares[256];
    double sum = 0.0, square = 0.0;
    for (uint row = blockIdx.x; row < n; row += gridDim.x)
        for (uint j = threadIdx.x; j < n_others; j += 256) {
            double product = products[(size_t)row * stride + j];
            sum += product;
            square += product * product;
        }
    sums[threadIdx.x] = sum;
    squares[threadIdx.x] = square;
    __syncthreads();
    for (uint width = 128; width > 0; width /= 2) {
        if (threadIdx.x < width) {
            sums[threadIdx.x] += sums[threadIdx.x + width];
            squares[threadIdx.x] += squares[threadIdx.x + width];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        moments[2 * blockIdx.x] = sums[0];
        moments[2 * blockIdx.x + 1] = squares[0];
    }
}

// Products become e^(tau (product - largest)); the largest is kept. A warp a row.
extern "C" __global__ void mixture_densities(float* products, uint n, uint n_others, uint stride, float tau, float* nearest) {
    uint row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    float* of_row = products + (size_t)row * stride;
    float most = -INFINITY;
    for (uint j = lane_id(); j < n_others; j += 32) most = fmaxf(most, of_row[j]);
    #pragma unroll
    for (uint step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(EVERY_LANE, most, step));
    for (uint j = lane_id(); j < n_others; j += 32) of_row[j] = expf(tau * (of_row[j] - most));
    if (lane_id() == 0) nearest[row] = most;
}

// The posterior r of the own class, and (1 - r) over what the others add up to. `decided` is negative where nobody decided. A warp a row.
extern "C" __global__ void mixture_expect(const float* rows, uint n, uint dim, uint row_stride, const float* densities,
                                          uint n_others, uint stride, const float* nearest, const float* decided,
                                          const float* shares, const float* direction, float own, float tau,
                                          float* posterior, float* elsewhere) {
    uint row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    float others = dot(densities + (size_t)row * stride, shares, n_others);
    float ahead = tau * (dot(rows + (size_t)row * row_stride, direction, dim) - nearest[row]);
    float r = 1.0f / (1.0f + others / own * expf(-ahead));
    if (decided[row] >= 0.0f) r = decided[row];
    if (lane_id() == 0) {
        posterior[row] = r;
        elsewhere[row] = (1.0f - r) / others;
    }
}
