// Sums over all pixels, in two stages and always in the same order.

// Adds the sixteen sums of all threads that share channels; thread 0 of each group ends with the total.
__device__ __forceinline__ void block_sums(const Spread& s, float* first, float* second, float* partial) {
    __shared__ float scratch[16][THREADS];
    #pragma unroll
    for (uint i = 0; i < 8; i++) {
        scratch[i][threadIdx.x] = first[i];
        scratch[8 + i][threadIdx.x] = second[i];
    }
    __syncthreads();
    for (uint width = THREADS / 2; width >= s.lanes; width /= 2) {
        if (threadIdx.x < width) {
            #pragma unroll
            for (uint i = 0; i < 16; i++) scratch[i][threadIdx.x] += scratch[i][threadIdx.x + width];
        }
        __syncthreads();
    }
    if (threadIdx.x < s.lanes) {
        float* out = partial + (size_t)blockIdx.x * 2 * s.channels + SPREAD_CHANNEL(s);
        #pragma unroll
        for (uint i = 0; i < 8; i++) {
            out[i] = scratch[i][threadIdx.x];
            out[s.channels + i] = scratch[8 + i][threadIdx.x];
        }
    }
}

// The two totals of one channel out of all partial sums, in f64. Blocks of 256: 8 channels × 32; true where they end up.
__device__ __forceinline__ bool total_sums(const float* partial, uint n_partial, uint channels, double* first,
                                           double* second) {
    __shared__ double scratch[2][THREADS];
    uint channel = blockIdx.x * 8 + threadIdx.x % 8;
    double a = 0.0, b = 0.0;
    for (uint i = threadIdx.x / 8; i < n_partial; i += 32) {
        a += partial[(size_t)i * 2 * channels + channel];
        b += partial[((size_t)i * 2 + 1) * channels + channel];
    }
    scratch[0][threadIdx.x] = a;
    scratch[1][threadIdx.x] = b;
    __syncthreads();
    for (uint width = THREADS / 2; width >= 8; width /= 2) {
        if (threadIdx.x < width) {
            scratch[0][threadIdx.x] += scratch[0][threadIdx.x + width];
            scratch[1][threadIdx.x] += scratch[1][threadIdx.x + width];
        }
        __syncthreads();
    }
    *first = scratch[0][threadIdx.x];
    *second = scratch[1][threadIdx.x];
    return threadIdx.x < 8;
}
