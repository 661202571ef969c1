// Training of the two-layer network for many classes at once: five launches an iteration, whatever their number.
//
// The rows of all classes are cut into tiles of TILE rows that never straddle two classes. A block does one tile, so a
// class's sums are made in the same order whichever classes train beside it. Nothing is added atomically.
//
//   forward      H = X Θ₁ + b₁, R = dropout [H]+, s = R Θ₂        one pass over X
//   probability  p = σ(Ã s + b₂), D⁻¹ ∂L/∂a                       one sparse product
//   gather       ∂s = Ãᵀ ∂a                                       one sparse product
//   backward     ∂H = ∂s Θ₂ᵀ where R > 0; ∂Θ₁ = Xᵀ ∂H, …          one pass over X
//   adam         sums the tiles' shares and moves the parameters

#define TILE 256
#define CHUNK 32 // columns of X in shared memory at a time
#define STAGES 2 // chunks in shared memory: one at work, the others on their way
#define CHUNK_VECTORS (CHUNK / 4)
#define PADDED_VECTORS (CHUNK_VECTORS + 1) // keeps 8 consecutive rows in different banks

// Laid out as `Job` in training.rs.
struct Job {
    const float* x;
    const uint* offsets; // null: Ã = I
    const uint* columns;
    const float* weights;
    const float* inverse_degree;
    float* hidden;            // R, n×16
    float* support;           // s
    float* probability;       // p
    float* gradient_over_degree; // D⁻¹ ∂L/∂a
    float* support_gradient;     // ∂s
    float* parameters;        // Θ₁ (d×16), b₁ (16), Θ₂ (16), b₂; then Adam's two moments of each
    float* partial;           // per tile: ∂Θ₁ (stride×16), ∂b₁, ∂Θ₂
    double* bias_partial;     // per tile: ∂b₂
    const ulong64* row_keys;  // what each row is, which decides on its dropout
    const float* loss_weights; // what each row adds to the loss: positive where it should be 1, negative where 0
    ulong64 weight_key, dropout_key;
    uint n, n_clean, dim, stride, n_tiles, unused;
};

struct Tile { uint job, index; };

__device__ __forceinline__ uint n_parameters(const Job& job) { return job.dim * HIDDEN + 2 * HIDDEN + 1; }

extern "C" __global__ void initial_parameters(const Tile* tiles, const Job* jobs) {
    const Job& job = jobs[tiles[blockIdx.x].job];
    uint count = n_parameters(job), per_block = blockDim.x;
    uint i = tiles[blockIdx.x].index * per_block + threadIdx.x;
    if (i >= count) return;
    float uniform = (float)(random_bits(job.weight_key, i) >> 40) / 16777216.0f;
    float bound = i < (job.dim + 1) * HIDDEN ? 0.25f : 1.0f; // 1/√16, then 1/√1
    job.parameters[i] = bound * (2.0f * uniform - 1.0f);
    job.parameters[count + i] = 0.0f;
    job.parameters[2 * count + i] = 0.0f;
}

__device__ __forceinline__ void copy_async(float4* shared, const float* global, bool real) {
    uint address = (uint)__cvta_generic_to_shared(shared);
    int bytes = real ? 16 : 0; // the rest is filled with zeros
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global), "r"(bytes));
}

// Starts copying a chunk; past the last one it only keeps the count of copies.
__device__ __forceinline__ void fetch_chunk(const Job& job, uint first_row, uint chunk, float4* x, float4* theta) {
    if (chunk * CHUNK < job.stride) {
        #pragma unroll
        for (uint t = 0; t < TILE * CHUNK_VECTORS / 128; t++) {
            uint piece = t * 128 + threadIdx.x;
            uint r = piece / CHUNK_VECTORS, v = piece % CHUNK_VECTORS;
            uint row = first_row + r, column = chunk * CHUNK + v * 4;
            bool real = row < job.n && column < job.stride;
            copy_async(x + r * PADDED_VECTORS + v, real ? job.x + (size_t)row * job.stride + column : job.x, real);
        }
        uint row = chunk * CHUNK + threadIdx.x / 4;
        bool real = row < job.dim;
        if (threadIdx.x < CHUNK * HIDDEN / 4)
            copy_async(theta + threadIdx.x, job.parameters + (real ? row * HIDDEN + threadIdx.x % 4 * 4 : 0), real);
    }
    asm volatile("cp.async.commit_group;");
}

__device__ __forceinline__ void add_product(float (&sums)[HIDDEN], float a, const float4* theta) {
    #pragma unroll
    for (uint q = 0; q < 4; q++) {
        float4 t = theta[q];
        sums[4 * q] = fmaf(a, t.x, sums[4 * q]);
        sums[4 * q + 1] = fmaf(a, t.y, sums[4 * q + 1]);
        sums[4 * q + 2] = fmaf(a, t.z, sums[4 * q + 2]);
        sums[4 * q + 3] = fmaf(a, t.w, sums[4 * q + 3]);
    }
}

// R and s of one row from X Θ₁.
__device__ __forceinline__ void activate(const Job& job, uint row, float (&h)[HIDDEN], ulong64 key, uint threshold,
                                         float scale) {
    const float* bias = job.parameters + job.dim * HIDDEN;
    const float* theta_2 = bias + HIDDEN;
    ulong64 row_key = threshold == 0 ? 0 : job.row_keys[row];
    float terms[HIDDEN];
    #pragma unroll
    for (uint q = 0; q < 4; q++) {
        ulong64 bits = threshold == 0 ? 0 : random_bits(key, row_key + q);
        #pragma unroll
        for (uint b = 0; b < 4; b++) {
            uint u = 4 * q + b;
            float factor = threshold == 0 ? 1.0f : ((uint)(bits >> (16 * b)) & 0xffff) >= threshold ? scale : 0.0f;
            h[u] = fmaxf(h[u] + bias[u], 0.0f) * factor;
            terms[u] = h[u] * theta_2[u];
        }
    }
    float4* out = (float4*)(job.hidden + (size_t)row * HIDDEN);
    #pragma unroll
    for (uint q = 0; q < 4; q++) out[q] = make_float4(h[4 * q], h[4 * q + 1], h[4 * q + 2], h[4 * q + 3]);
    #pragma unroll
    for (uint u = 0; u < 8; u++) terms[u] += terms[u + 8]; // in halves, as on the CPU
    #pragma unroll
    for (uint u = 0; u < 4; u++) terms[u] += terms[u + 4];
    job.support[row] = (terms[0] + terms[2]) + (terms[1] + terms[3]);
}

// 128 threads; each owns rows t and t + 128 of the tile.
extern "C" __global__ void __launch_bounds__(128) forward(const Tile* tiles, const Job* jobs, uint iteration, uint threshold,
                                                          float scale) {
    extern __shared__ float4 buffers[];
    const uint X_VECTORS = TILE * PADDED_VECTORS, BUFFER = X_VECTORS + CHUNK * HIDDEN / 4;
    const Job job = jobs[tiles[blockIdx.x].job];
    uint first_row = tiles[blockIdx.x].index * TILE;
    uint n_chunks = (job.stride + CHUNK - 1) / CHUNK;
    float low[HIDDEN] = {}, high[HIDDEN] = {};
    for (uint chunk = 0; chunk < STAGES - 1; chunk++)
        fetch_chunk(job, first_row, chunk, buffers + chunk * BUFFER, buffers + chunk * BUFFER + X_VECTORS);
    for (uint chunk = 0; chunk < n_chunks; chunk++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads(); // this chunk is there, and nobody reads the one before it any more
        float4* next = buffers + (chunk + STAGES - 1) % STAGES * BUFFER;
        fetch_chunk(job, first_row, chunk + STAGES - 1, next, next + X_VECTORS);
        const float4* x = buffers + chunk % STAGES * BUFFER;
        const float4* theta = x + X_VECTORS;
        #pragma unroll
        for (uint v = 0; v < CHUNK_VECTORS; v++) {
            float4 a = x[threadIdx.x * PADDED_VECTORS + v];
            float4 b = x[(threadIdx.x + 128) * PADDED_VECTORS + v];
            add_product(low, a.x, theta + 16 * v);
            add_product(high, b.x, theta + 16 * v);
            add_product(low, a.y, theta + 16 * v + 4);
            add_product(high, b.y, theta + 16 * v + 4);
            add_product(low, a.z, theta + 16 * v + 8);
            add_product(high, b.z, theta + 16 * v + 8);
            add_product(low, a.w, theta + 16 * v + 12);
            add_product(high, b.w, theta + 16 * v + 12);
        }
    }
    ulong64 key = branch(job.dropout_key, iteration);
    uint row = first_row + threadIdx.x;
    if (row < job.n) activate(job, row, low, key, threshold, scale);
    if (row + 128 < job.n) activate(job, row + 128, high, key, threshold, scale);
}

// Σ_j a_ij x_j over the row's edges by 8 lanes; all of them get the sum.
__device__ __forceinline__ float edge_sum(const Job& job, uint row, const float* x) {
    float sum = 0.0f;
    if (job.offsets != nullptr && row < job.n)
        for (uint e = job.offsets[row] + threadIdx.x % 8; e < job.offsets[row + 1]; e += 8)
            sum = fmaf(job.weights[e], x[job.columns[e]], sum);
    #pragma unroll
    for (uint step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(EVERY_LANE, sum, step);
    return sum;
}

// 256 threads, 8 to a row.
extern "C" __global__ void __launch_bounds__(256) probability(const Tile* tiles, const Job* jobs) {
    const float EPSILON = 1e-6f;
    __shared__ double sums[32];
    const Job job = jobs[tiles[blockIdx.x].job];
    uint tile = tiles[blockIdx.x].index;
    float bias = job.parameters[n_parameters(job) - 1];
    double sum = 0.0;
    for (uint r = threadIdx.x / 8; r < TILE; r += 32) {
        uint row = tile * TILE + r;
        float flow = edge_sum(job, row, job.support);
        if (row >= job.n || threadIdx.x % 8 != 0) continue;
        float inverse = job.offsets == nullptr ? 1.0f : job.inverse_degree[row];
        float a = inverse * (job.support[row] + flow) + bias;
        float p = 1.0f / (1.0f + expf(-a));
        float weight = job.loss_weights[row];
        float toward_target = signbit(weight) ? 1.0f - p : p; // by the sign bit: a weight may be -0
        float gradient = -weight * (p * (1.0f - p)) / (toward_target + EPSILON);
        job.probability[row] = p;
        job.gradient_over_degree[row] = gradient * inverse;
        sum += gradient;
    }
    if (threadIdx.x % 8 == 0) sums[threadIdx.x / 8] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (uint g = 1; g < 32; g++) sum += sums[g];
        job.bias_partial[tile] = sum;
    }
}

// 256 threads, 8 to a row.
extern "C" __global__ void __launch_bounds__(256) gather(const Tile* tiles, const Job* jobs) {
    const Job job = jobs[tiles[blockIdx.x].job];
    for (uint r = threadIdx.x / 8; r < TILE; r += 32) {
        uint row = tiles[blockIdx.x].index * TILE + r;
        float flow = edge_sum(job, row, job.gradient_over_degree);
        if (row < job.n && threadIdx.x % 8 == 0) job.support_gradient[row] = job.gradient_over_degree[row] + flow;
    }
}

__device__ __forceinline__ void add_outer(float (&sums)[4][HIDDEN], float4 x, const float* gradients) {
    #pragma unroll
    for (uint q = 0; q < 4; q++) {
        float4 s = ((const float4*)gradients)[q];
        #pragma unroll
        for (uint c = 0; c < 4; c++) {
            float a = c == 0 ? x.x : c == 1 ? x.y : c == 2 ? x.z : x.w;
            sums[c][4 * q] = fmaf(a, s.x, sums[c][4 * q]);
            sums[c][4 * q + 1] = fmaf(a, s.y, sums[c][4 * q + 1]);
            sums[c][4 * q + 2] = fmaf(a, s.z, sums[c][4 * q + 2]);
            sums[c][4 * q + 3] = fmaf(a, s.w, sums[c][4 * q + 3]);
        }
    }
}

// A thread owns four columns of X, and so 64 numbers of ∂Θ₁, at a time; at most 512 threads.
extern "C" __global__ void __launch_bounds__(512) backward(const Tile* tiles, const Job* jobs, float scale) {
    const uint GROUP = 4; // rows in flight
    __shared__ float gradients[TILE * HIDDEN];   // ∂H
    __shared__ float products[TILE * HIDDEN]; // ∂s R
    __shared__ float warp_sums[16][32];
    const Job job = jobs[tiles[blockIdx.x].job];
    uint tile = tiles[blockIdx.x].index, first_row = tile * TILE;
    uint n_rows = min(TILE, job.n - first_row);
    const float* theta_2 = job.parameters + job.dim * HIDDEN + HIDDEN;
    float* partial = job.partial + (size_t)tile * (job.stride * HIDDEN + 2 * HIDDEN);

    for (uint i = threadIdx.x; i < TILE * HIDDEN; i += blockDim.x) {
        uint r = i / HIDDEN, u = i % HIDDEN;
        bool real = r < n_rows;
        float hidden = real ? job.hidden[(size_t)(first_row + r) * HIDDEN + u] : 0.0f;
        float gradient = real ? job.support_gradient[first_row + r] : 0.0f;
        products[i] = gradient * hidden;
        gradients[i] = hidden > 0.0f ? gradient * theta_2[u] * scale : 0.0f;
    }
    __syncthreads();
    uint n_warps = blockDim.x / 32, warp = threadIdx.x / 32;
    const float* source = lane_id() < HIDDEN ? gradients : products;
    float sum = 0.0f;
    for (uint r = warp; r < n_rows; r += n_warps) sum += source[r * HIDDEN + lane_id() % HIDDEN];
    warp_sums[warp][lane_id()] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = 0.0f;
        for (uint w = 0; w < n_warps; w++) sum += warp_sums[w][lane_id()];
        partial[job.stride * HIDDEN + lane_id()] = sum;
    }

    for (uint c = threadIdx.x * 4; c < job.stride; c += blockDim.x * 4) {
        float sums[4][HIDDEN] = {};
        const float* x = job.x + (size_t)first_row * job.stride + c;
        float4 now[GROUP], next[GROUP];
        #pragma unroll
        for (uint g = 0; g < GROUP; g++)
            now[g] = g < n_rows ? *(const float4*)(x + (size_t)g * job.stride) : make_float4(0, 0, 0, 0);
        for (uint r = 0; r < n_rows; r += GROUP) {
            #pragma unroll
            for (uint g = 0; g < GROUP; g++) {
                uint row = r + GROUP + g;
                next[g] = row < n_rows ? *(const float4*)(x + (size_t)row * job.stride) : make_float4(0, 0, 0, 0);
            }
            #pragma unroll
            for (uint g = 0; g < GROUP; g++) add_outer(sums, now[g], gradients + (r + g) * HIDDEN);
            #pragma unroll
            for (uint g = 0; g < GROUP; g++) now[g] = next[g];
        }
        #pragma unroll
        for (uint e = 0; e < 4; e++)
            #pragma unroll
            for (uint q = 0; q < 4; q++)
                *(float4*)(partial + (c + e) * HIDDEN + 4 * q) =
                    make_float4(sums[e][4 * q], sums[e][4 * q + 1], sums[e][4 * q + 2], sums[e][4 * q + 3]);
    }
}

// How many threads share the summing of one parameter; as in training.rs.
__device__ __forceinline__ uint adam_slices(const Job& job) { return job.n_tiles >= 64 ? 16 : job.n_tiles >= 8 ? 4 : 1; }

// 256 threads: 256 / slices parameters.
extern "C" __global__ void __launch_bounds__(256) adam(const Tile* tiles, const Job* jobs, float rate, float root,
                                                       float weight_decay) {
    const float BETA_1 = 0.9f, BETA_2 = 0.999f, EPSILON = 1e-8f;
    __shared__ float sums[256];
    const Job job = jobs[tiles[blockIdx.x].job];
    uint slices = adam_slices(job), per_block = 256 / slices, count = n_parameters(job);
    uint slice = threadIdx.x / per_block, i = tiles[blockIdx.x].index * per_block + threadIdx.x % per_block;
    float gradient = 0.0f;
    if (i == count - 1) {
        double sum = 0.0;
        for (uint t = slice; t < job.n_tiles; t += slices) sum += job.bias_partial[t];
        gradient = (float)sum;
    } else if (i < count) {
        uint at = i < job.dim * HIDDEN ? i : job.stride * HIDDEN + (i - job.dim * HIDDEN);
        size_t size = job.stride * HIDDEN + 2 * HIDDEN;
        #pragma unroll 8
        for (uint t = slice; t < job.n_tiles; t += slices) gradient += job.partial[t * size + at];
    }
    sums[threadIdx.x] = gradient;
    __syncthreads();
    if (slice != 0 || i >= count) return;
    for (uint s = 1; s < slices; s++) gradient += sums[s * per_block + threadIdx.x];
    float* parameter = job.parameters + i;
    float* mean = job.parameters + count + i;
    float* square = job.parameters + 2 * count + i;
    gradient = gradient + weight_decay * *parameter;
    *mean = BETA_1 * *mean + (1.0f - BETA_1) * gradient;
    *square = BETA_2 * *square + (1.0f - BETA_2) * gradient * gradient;
    *parameter -= rate * *mean / (sqrtf(*square) / root + EPSILON);
}
