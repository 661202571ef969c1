// Conjugate gradients for (I − α D^-½ A D^-½) r = y, many classes at once: three launches an iteration. Tiles as in
// network.cu. Sums over a class are made by every block for itself from the tiles' shares, always in the same order.

#define TILE 256

// Laid out as `Flow` in label_propagation.rs.
struct Flow {
    const uint* offsets;
    const uint* columns;
    const float* weights;
    float* scale;     // D^-½
    float* solution;  // r
    float* residual;
    float* direction;
    float* image;     // the matrix times the direction
    double* along;    // per tile: direction · image
    double* square;   // per tile: residual · residual
    double* squares;  // residual · residual of the class, now and next by parity of the iteration
    const float* seeds; // y
    double goal;      // the square of a residual that is small enough
    uint n, n_clean, n_tiles, unused;
};

struct Tile { uint job, index; };

// Sum of `values` by all 256 threads; everyone gets it.
__device__ __forceinline__ double class_sum(const double* values, uint count) {
    __shared__ double sums[256];
    double sum = 0.0;
    for (uint t = threadIdx.x; t < count; t += 256) sum += values[t];
    __syncthreads();
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (uint width = 128; width > 0; width /= 2) {
        if (threadIdx.x < width) sums[threadIdx.x] += sums[threadIdx.x + width];
        __syncthreads();
    }
    return sums[0];
}

// Σ of the block's `share`s, written once.
__device__ __forceinline__ void tile_sum(double share, double* out) {
    __shared__ double sums[256];
    sums[threadIdx.x] = share;
    __syncthreads();
    for (uint width = 128; width > 0; width /= 2) {
        if (threadIdx.x < width) sums[threadIdx.x] += sums[threadIdx.x + width];
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = sums[0];
}

// D^-½ and r = y.
extern "C" __global__ void __launch_bounds__(256) flow_scale(const Tile* tiles, const Flow* flows) {
    const Flow flow = flows[tiles[blockIdx.x].job];
    uint row = tiles[blockIdx.x].index * TILE + threadIdx.x;
    if (row >= flow.n) return;
    float degree = 0.0f;
    for (uint e = flow.offsets[row]; e < flow.offsets[row + 1]; e++) degree += flow.weights[e];
    flow.scale[row] = degree > 0.0f ? 1.0f / sqrtf(degree) : 0.0f;
    flow.solution[row] = flow.seeds[row];
}

// (x − α D^-½ A D^-½ x) of one row by 8 lanes.
__device__ __forceinline__ float apply(const Flow& flow, const float* x, uint row, float alpha) {
    float sum = 0.0f;
    if (row < flow.n)
        for (uint e = flow.offsets[row] + threadIdx.x % 8; e < flow.offsets[row + 1]; e += 8) {
            uint j = flow.columns[e];
            sum = fmaf(flow.weights[e], x[j] * flow.scale[j], sum);
        }
    #pragma unroll
    for (uint step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(EVERY_LANE, sum, step);
    return row < flow.n ? x[row] - alpha * flow.scale[row] * sum : 0.0f;
}

// The first residual, y − M y, which is also the first direction.
extern "C" __global__ void __launch_bounds__(256) flow_start(const Tile* tiles, const Flow* flows, float alpha) {
    const Flow flow = flows[tiles[blockIdx.x].job];
    uint tile = tiles[blockIdx.x].index;
    double share = 0.0;
    for (uint r = threadIdx.x / 8; r < TILE; r += 32) {
        uint row = tile * TILE + r;
        float image = apply(flow, flow.solution, row, alpha);
        if (row >= flow.n || threadIdx.x % 8 != 0) continue;
        float residual = flow.solution[row] - image;
        flow.residual[row] = residual;
        flow.direction[row] = residual;
        share += (double)residual * (double)residual;
    }
    tile_sum(share, flow.square + tile);
}

// Σ of the first shares. One block a class.
extern "C" __global__ void __launch_bounds__(256) flow_first_square(const Flow* flows) {
    const Flow flow = flows[blockIdx.x];
    double square = class_sum(flow.square, flow.n_tiles);
    if (threadIdx.x == 0) flow.squares[0] = square;
}

__device__ __forceinline__ bool has_converged(const Flow& flow, double square) {
    return square <= flow.goal;
}

extern "C" __global__ void __launch_bounds__(256) flow_apply(const Tile* tiles, const Flow* flows, float alpha, uint parity) {
    const Flow flow = flows[tiles[blockIdx.x].job];
    if (has_converged(flow, flow.squares[parity])) return;
    uint tile = tiles[blockIdx.x].index;
    double share = 0.0;
    for (uint r = threadIdx.x / 8; r < TILE; r += 32) {
        uint row = tile * TILE + r;
        float image = apply(flow, flow.direction, row, alpha);
        if (row >= flow.n || threadIdx.x % 8 != 0) continue;
        flow.image[row] = image;
        share += (double)flow.direction[row] * (double)image;
    }
    tile_sum(share, flow.along + tile);
}

extern "C" __global__ void __launch_bounds__(256) flow_step(const Tile* tiles, const Flow* flows, uint parity) {
    const Flow flow = flows[tiles[blockIdx.x].job];
    double square = flow.squares[parity];
    if (has_converged(flow, square)) return;
    float step = (float)(square / class_sum(flow.along, flow.n_tiles));
    uint tile = tiles[blockIdx.x].index, row = tile * TILE + threadIdx.x;
    double share = 0.0;
    if (row < flow.n) {
        flow.solution[row] += step * flow.direction[row];
        float residual = flow.residual[row] - step * flow.image[row];
        flow.residual[row] = residual;
        share = (double)residual * (double)residual;
    }
    tile_sum(share, flow.square + tile);
}

extern "C" __global__ void __launch_bounds__(256) flow_turn(const Tile* tiles, const Flow* flows, uint parity) {
    const Flow flow = flows[tiles[blockIdx.x].job];
    double square = flow.squares[parity];
    uint tile = tiles[blockIdx.x].index, row = tile * TILE + threadIdx.x;
    if (has_converged(flow, square)) {
        if (tile == 0 && threadIdx.x == 0) flow.squares[1 - parity] = square;
        return;
    }
    double next = class_sum(flow.square, flow.n_tiles);
    float turn = (float)(next / square);
    if (row < flow.n) flow.direction[row] = flow.residual[row] + turn * flow.direction[row];
    if (tile == 0 && threadIdx.x == 0) flow.squares[1 - parity] = next;
}
