// Floors: what a row's neighbours will reach, guessed from a sample, and rows in the order of their floors.

#define CAPACITY 512

// The score that `goal` of all rows reach, by a line through the best 32 scores of a sample over the logarithm of their
// rank among all: `ratio` of these to a sampled one. `spare` is the same for `spare_goal`. One warp a row.
extern "C" __global__ void __launch_bounds__(256) guess_floors(
    const ulong64* candidates, const uint* counts, uint n_rows, uint first_row, float ratio, float goal, float spare_goal,
    float* floors, float* spares) {
    __shared__ ulong64 all_keys[8][CAPACITY];
    uint tile_row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (tile_row >= n_rows) return;
    volatile ulong64* keys = all_keys[threadIdx.x / 32];
    const ulong64* slots = candidates + (size_t)tile_row * CAPACITY;
    uint count = counts[tile_row], size = 32;
    while (size < count) size *= 2;
    for (uint slot = lane_id(); slot < size; slot += 32) {
        ulong64 candidate = slot < count ? slots[slot] : 0; // the score is the low word
        keys[slot] = slot < count ? list_key(__uint_as_float((uint)candidate), (uint)(candidate >> 32)) : 0;
    }
    __syncwarp();
    sort_falling(keys, size, lane_id(), 32, [] { __syncwarp(); });
    bool exists = lane_id() < count;
    float score = exists ? key_similarity(keys[lane_id()]) : 0.0f;
    float weight = exists ? 1.0f / (lane_id() + 1) : 0.0f;
    float rank = logf((lane_id() + 0.6f) * ratio);
    float total = warp_sum(weight);
    float mean_rank = warp_sum(weight * rank) / total, mean_score = warp_sum(weight * score) / total;
    float spread = warp_sum(weight * (rank - mean_rank) * (rank - mean_rank));
    float slope = warp_sum(weight * (rank - mean_rank) * (score - mean_score)) / fmaxf(spread, 1e-9f);
    if (lane_id() != 0) return;
    floors[first_row + tile_row] = mean_score + slope * (logf(goal) - mean_rank);
    spares[first_row + tile_row] = mean_score + slope * (logf(spare_goal) - mean_rank);
}

// How many of the sample's rows survive with 63, 95 and 127 directions: `probes` (n_probes × width) against `sample`
// (p × n_sample, a direction a row). One block a probe.
extern "C" __global__ void __launch_bounds__(256) count_survivors(
    const float* probes, uint width, uint p, const float* sample, uint n_sample, const float* floors, float margin,
    uint* counts) {
    const float* probe = probes + (size_t)blockIdx.x * width;
    float floor = floors[blockIdx.x] - margin;
    uint found[3] = {};
    for (uint column = threadIdx.x; column < n_sample; column += 256) {
        float product = 0.0f, own = 0.0f, other = 0.0f;
        for (uint k = 0; k < p; k++) {
            float a = probe[k], b = sample[(size_t)k * n_sample + column];
            product = fmaf(a, b, product);
            own = fmaf(a, a, own);
            other = fmaf(b, b, other);
            if (k % 32 == 30 && k >= 62) {
                float rest = sqrtf(fmaxf(1.0f - own, 0.0f) * fmaxf(1.0f - other, 0.0f));
                if (product + rest >= floor) found[k / 32 - 1]++;
            }
        }
    }
    #pragma unroll
    for (uint s = 0; s < 3; s++) {
        uint sum = __reduce_add_sync(EVERY_LANE, found[s]);
        if (lane_id() == 0) atomicAdd(&counts[s], sum);
    }
}

// Rows are ordered by floor, lowest first, in steps of 2⁻¹²: exact order is not worth a sort.
#define STEPS 8192

__device__ __forceinline__ uint step_of(float floor) {
    return (uint)fminf(fmaxf((floor + 1.0f) * (STEPS / 2), 0.0f), STEPS - 1.0f);
}

// Values below -1 are reached by all rows.
__device__ __forceinline__ float start_of(uint step) {
    return step == 0 ? -INFINITY : (float)step / (STEPS / 2) - 1.0f;
}

extern "C" __global__ void count_steps(const float* floors, uint n, float margin, uint* counts) {
    uint row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) atomicAdd(&counts[step_of(floors[row] - margin)], 1);
}

// Where each step begins, in the place of its count. One block of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024) start_steps(uint* counts) {
    const uint EACH = STEPS / 1024;
    __shared__ uint sums[1024];
    uint own[EACH], sum = 0;
    #pragma unroll
    for (uint s = 0; s < EACH; s++) {
        own[s] = sum;
        sum += counts[threadIdx.x * EACH + s];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (uint width = 1; width < 1024; width *= 2) {
        uint before = threadIdx.x >= width ? sums[threadIdx.x - width] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
    uint start = sums[threadIdx.x] - sum;
    #pragma unroll
    for (uint s = 0; s < EACH; s++) counts[threadIdx.x * EACH + s] = start + own[s];
}

extern "C" __global__ void order_rows(
    const float* floors, uint n, float margin, uint* starts, uint* ids, float* ordered_floors) {
    uint row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    uint step = step_of(floors[row] - margin);
    uint place = atomicAdd(&starts[step], 1);
    ids[place] = row;
    ordered_floors[place] = start_of(step);
}
