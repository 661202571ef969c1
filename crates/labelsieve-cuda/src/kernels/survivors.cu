// From the survivors of a row to its neighbours.

#define CAPACITY 512
#define PER_LANE (CAPACITY / 32)

struct Lists { uint* ids; uint* counts; };

// `dot` of one row and four others at once, the same bits.
__device__ __forceinline__ void dot4(const float* a, const float* (&b)[4], uint dim, float (&sums)[4]) {
    #pragma unroll
    for (uint s = 0; s < 4; s++) sums[s] = 0.0f;
    #pragma unroll 4
    for (uint c = lane_id(); c < dim; c += 32) {
        float own = a[c];
        #pragma unroll
        for (uint s = 0; s < 4; s++) sums[s] = __fadd_rn(sums[s], __fmul_rn(own, b[s][c]));
    }
    #pragma unroll
    for (uint s = 0; s < 4; s++) {
        #pragma unroll
        for (uint width = 16; width > 0; width /= 2)
            sums[s] = __fadd_rn(sums[s], __shfl_down_sync(EVERY_LANE, sums[s], width));
        sums[s] = __fadd_rn(__shfl_sync(EVERY_LANE, sums[s], 0), 0.0f); // -0.0 becomes 0.0
    }
}

// The product of two rows along the directions.
__device__ __forceinline__ float lead_product(const uint4* a, const uint4* b, uint words) {
    float sum = 0.0f;
    for (uint w = 0; w < words; w++) {
        uint4 u = a[w], v = b[w];
        uint us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
        #pragma unroll
        for (uint i = 0; i < 4; i++) {
            sum = fmaf(from_half((ushort)us[i]), from_half((ushort)vs[i]), sum);
            sum = fmaf(from_half((ushort)(us[i] >> 16)), from_half((ushort)(vs[i] >> 16)), sum);
        }
    }
    return sum;
}

// The `nth` largest of CAPACITY keys; keys of empty slots are 0.
template <typename Key>
__device__ __forceinline__ uint nth_largest(Key key, uint nth) {
    uint keys[PER_LANE], found = 0;
    #pragma unroll
    for (uint t = 0; t < PER_LANE; t++) keys[t] = key(t * 32 + lane_id());
    for (int bit = 31; bit >= 0; bit--) {
        uint guess = found | (1u << bit), count = 0;
        #pragma unroll
        for (uint t = 0; t < PER_LANE; t++) count += keys[t] >= guess;
        if (__reduce_add_sync(EVERY_LANE, count) >= nth) found = guess;
    }
    return found;
}

// Measures those of 32 survivors that `votes` names, four at a time, and appends them to `keys`.
__device__ __forceinline__ uint measure(const float* own, const float* rows, uint dim, uint stride, const uint* survivors,
                                        uint votes, volatile ulong64* keys, uint measured) {
    while (votes != 0) {
        uint chosen[4], n_chosen = 0;
        const float* others[4];
        #pragma unroll
        for (uint s = 0; s < 4; s++) {
            if (votes != 0) {
                chosen[s] = survivors[__ffs(votes) - 1];
                votes &= votes - 1;
                n_chosen++;
            } else {
                chosen[s] = chosen[0];
            }
            others[s] = rows + (size_t)chosen[s] * stride;
        }
        float exact[4];
        dot4(own, others, dim, exact);
        #pragma unroll
        for (uint s = 0; s < 4; s++)
            if (s < n_chosen && lane_id() == 0) keys[measured + s] = list_key(exact[s], chosen[s]);
        measured += n_chosen;
    }
    return measured;
}

// Rows whose floor did not hold, and a floor to try next.
struct Again { uint* ids; float* floors; uint* count; };

// Measures the survivors of a row that may still be among its `width` nearest, best bounds first, and writes these, best
// first, if they prove the floor right; else notes the row for another try (`again`, with a floor) or for the full search
// (`rest`). A score and what it bounds differ by at most `margin`. One warp a row.
extern "C" __global__ void __launch_bounds__(256) rank_survivors(
    Lists lists, const uint* ids, const float* floors, uint n, const ushort* leads, uint lead_width, float margin,
    uint width, const float* rows, uint dim, uint stride, const float* spares, Again again, Again rest, uint* indices,
    float* similarities) {
    __shared__ ulong64 all_keys[8][CAPACITY];
    __shared__ uint all_bounds[8][CAPACITY]; // 0: measured, or empty
    uint place = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (place >= n) return;
    volatile ulong64* keys = all_keys[threadIdx.x / 32];
    volatile uint* bounds = all_bounds[threadIdx.x / 32];
    const uint* survivors = lists.ids + (size_t)place * CAPACITY;
    uint row = ids[place], found = lists.counts[place], count = min(found, CAPACITY), words = lead_width / 8;
    const float* own = rows + (size_t)row * stride;
    const uint4* own_lead = (const uint4*)leads + (size_t)row * words;

    for (uint slot = lane_id(); slot < CAPACITY; slot += 32) {
        uint bound = 0;
        if (slot < count)
            bound = rising(lead_product(own_lead, (const uint4*)leads + (size_t)survivors[slot] * words, words));
        bounds[slot] = bound;
    }

    // First as many as are wanted, then as many again, then the rest: each step raises the floor of the next.
    uint measured = 0, least = 0;
    for (uint round = 0; round < 3; round++) {
        __syncwarp();
        uint reach = least;
        if (round < 2) reach = max(reach, nth_largest([&](uint slot) { return bounds[slot]; }, width));
        #pragma unroll 1
        for (uint base = 0; base < count; base += 32) {
            uint bound = bounds[base + lane_id()];
            bool chosen = bound != 0 && bound >= reach;
            uint votes = __ballot_sync(EVERY_LANE, chosen);
            if (chosen) bounds[base + lane_id()] = 0;
            measured = measure(own, rows, dim, stride, survivors + base, votes, keys, measured);
        }
        __syncwarp();
        if (round == 2 || measured < width) continue;
        auto similarity = [&](uint slot) { return slot < measured ? (uint)(keys[slot] >> 32) : 0; };
        least = rising(from_rising(nth_largest(similarity, width)) - margin);
    }

    uint size = 2;
    while (size < measured) size *= 2;
    for (uint slot = measured + lane_id(); slot < size; slot += 32) keys[slot] = 0;
    __syncwarp();
    sort_falling(keys, size, lane_id(), 32, [] { __syncwarp(); });
    float last = measured >= width ? key_similarity(keys[width - 1]) : -INFINITY;
    if (found <= CAPACITY && measured >= width && last >= __fadd_ru(floors[place], margin)) {
        for (uint slot = lane_id(); slot < width; slot += 32) {
            indices[(size_t)row * width + slot] = key_index(keys[slot]);
            similarities[(size_t)row * width + slot] = key_similarity(keys[slot]);
        }
    } else if (lane_id() == 0) {
        Again to = again.ids != 0 ? again : rest;
        uint slot = atomicAdd(to.count, 1);
        to.ids[slot] = row;
        // `width` measured rows are a proof, minus a little for rounding.
        to.floors[slot] = (measured >= width ? last : spares[row]) - margin - 1e-6f;
    }
}
