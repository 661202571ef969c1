// Exact neighbours from approximate products: who may be among the nearest, and then who is.
//
// Tiles of similarities come in 16-bit floats, off by at most E. A warp owns a row. It keeps every candidate whose score
// is within `margin` = 2E of its `width`-th best so far; below that, `width` rows are certainly better.

#define CAPACITY 512
#define PER_LANE (CAPACITY / 32)

struct Candidate { float score; uint index; };

// Rounds rows to 16-bit floats, `half_stride` apart and padded with zeros, and notes how far each row moved. One warp a row.
extern "C" __global__ void round_rows(const float* rows, uint n, uint dim, uint stride, ushort* halves, uint half_stride,
                                      uint* largest_move) {
    uint row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    float square = 0.0f;
    for (uint c = lane_id(); c < half_stride; c += 32) {
        float value = c < dim ? rows[(size_t)row * stride + c] : 0.0f;
        ushort half = to_half(value);
        float moved = value - from_half(half);
        square = fmaf(moved, moved, square);
        halves[(size_t)row * half_stride + c] = half;
    }
    for (uint width = 16; width > 0; width /= 2) square += __shfl_down_sync(EVERY_LANE, square, width);
    // Lengths are not negative, so their bits order as they do.
    if (lane_id() == 0) atomicMax(largest_move, __float_as_uint(sqrtf(square)));
}

// The `width`-th largest of the warp's keys; keys of empty slots are 0.
template <typename Key>
__device__ __forceinline__ Key nth_largest(const Key (&keys)[PER_LANE], uint width) {
    Key found = 0;
    for (int bit = 8 * sizeof(Key) - 1; bit >= 0; bit--) {
        Key guess = found | ((Key)1 << bit);
        uint count = 0;
        #pragma unroll
        for (uint t = 0; t < PER_LANE; t++) count += keys[t] >= guess;
        if (__reduce_add_sync(EVERY_LANE, count) >= width) found = guess;
    }
    return found;
}

// Keeps the slots for which `kept` holds, in order.
template <typename Keep>
__device__ __forceinline__ uint compact(Candidate* slots, uint count, Keep keep) {
    uint left = 0;
    for (uint base = 0; base < count; base += 32) {
        uint slot = base + lane_id();
        Candidate candidate = slot < count ? slots[slot] : Candidate{0.0f, 0};
        bool kept = slot < count && keep(candidate);
        uint votes = __ballot_sync(EVERY_LANE, kept);
        __syncwarp();
        if (kept) slots[left + __popc(votes & lanes_below())] = candidate;
        left += __popc(votes);
        __syncwarp();
    }
    return left;
}

// Raises the floor of a full row. Where the screen cannot tell enough candidates apart (duplicates, say), exact
// similarities do.
__device__ __noinline__ uint make_room(Candidate* slots, uint count, float* floor, uint width, float margin,
                                       const float* rows, uint row, uint dim, uint stride) {
    __syncwarp();
    uint keys[PER_LANE];
    #pragma unroll
    for (uint t = 0; t < PER_LANE; t++) {
        uint slot = t * 32 + lane_id();
        keys[t] = slot < count ? rising(slots[slot].score) : 0;
    }
    float least = from_rising(nth_largest(keys, width)) - margin;
    count = compact(slots, count, [&](Candidate c) { return c.score >= least; });
    if (count > CAPACITY * 3 / 4) {
        for (uint slot = 0; slot < count; slot++) {
            float exact = dot(rows + (size_t)row * stride, rows + (size_t)slots[slot].index * stride, dim);
            if (lane_id() == 0) slots[slot].score = exact;
        }
        __syncwarp();
        ulong64 exact_keys[PER_LANE];
        #pragma unroll
        for (uint t = 0; t < PER_LANE; t++) {
            uint slot = t * 32 + lane_id();
            exact_keys[t] = slot < count ? list_key(slots[slot].score, slots[slot].index) : 0;
        }
        ulong64 last = nth_largest(exact_keys, width);
        least = key_similarity(last) - margin;
        count = compact(slots, count, [&](Candidate c) { return list_key(c.score, c.index) >= last; });
    }
    *floor = least;
    return count;
}

__device__ __forceinline__ uint max_halves(uint a, uint b) {
    uint most;
    asm("max.f16x2 %0, %1, %2;" : "=r"(most) : "r"(a), "r"(b));
    return most;
}

__device__ __forceinline__ float larger_half(uint pair) {
    return fmaxf(from_half((ushort)pair), from_half((ushort)(pair >> 16)));
}

// The row that stands at `place`: `ids` names some, in order; without it, it is all of them.
__device__ __forceinline__ uint row_at(const uint* ids, uint place) { return ids != 0 ? ids[place] : place; }

// Offers one tile, `n_rows` from `first_row` on by `n_columns` from `first_column` on, to its rows. Columns are every
// `column_step`-th row. One warp a row.
extern "C" __global__ void __launch_bounds__(256, 3) select_candidates(
    const ushort* scores, uint tile_stride, uint n_rows, uint n_columns, const uint* ids, uint first_row,
    uint first_column, uint column_step, uint width, float margin, Candidate* candidates, uint* counts, float* floors,
    const float* rows, uint dim, uint stride) {
    const uint STEPS = 4; // loads in flight
    uint tile_row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (tile_row >= n_rows) return;
    uint row = row_at(ids, first_row + tile_row);
    const uint4* row_scores = (const uint4*)(scores + (size_t)tile_row * tile_stride);
    Candidate* slots = candidates + (size_t)tile_row * CAPACITY;
    uint count = first_column == 0 ? 0 : counts[tile_row];
    float floor = first_column == 0 ? -INFINITY : floors[tile_row];
    uint n_vectors = (n_columns + 7) / 8;

    for (uint base = 0; base < n_vectors; base += 32 * STEPS) {
        uint4 vectors[STEPS];
        #pragma unroll
        for (uint s = 0; s < STEPS; s++) {
            uint v = base + s * 32 + lane_id();
            vectors[s] = v < n_vectors ? row_scores[v] : make_uint4(0xfc00fc00, 0xfc00fc00, 0xfc00fc00, 0xfc00fc00);
        }
        // Most stretches of a thousand scores hold nothing of interest: one vote says so.
        uint most[STEPS];
        #pragma unroll
        for (uint s = 0; s < STEPS; s++)
            most[s] = max_halves(max_halves(vectors[s].x, vectors[s].y), max_halves(vectors[s].z, vectors[s].w));
        uint of_all = max_halves(max_halves(most[0], most[1]), max_halves(most[2], most[3]));
        if (!__any_sync(EVERY_LANE, larger_half(of_all) >= floor)) continue;
        #pragma unroll
        for (uint s = 0; s < STEPS; s++) {
            if (!__any_sync(EVERY_LANE, larger_half(most[s]) >= floor)) continue;
            uint4 v = vectors[s];
            #pragma unroll 1
            for (uint e = 0; e < 8; e++) {
                float score = from_half((ushort)v.x);
                v = e % 2 == 0 ? make_uint4(v.x >> 16, v.y, v.z, v.w) : make_uint4(v.y, v.z, v.w, 0);
                uint column = (base + s * 32 + lane_id()) * 8 + e;
                uint other = (first_column + column) * column_step;
                bool possible = column < n_columns && other != row;
                uint votes = __ballot_sync(EVERY_LANE, possible && score >= floor);
                if (votes == 0) continue;
                if (count + __popc(votes) > CAPACITY) {
                    count = make_room(slots, count, &floor, width, margin, rows, row, dim, stride);
                    votes = __ballot_sync(EVERY_LANE, possible && score >= floor);
                }
                if (votes >> lane_id() & 1)
                    slots[count + __popc(votes & lanes_below())] = Candidate{score, other};
                count += __popc(votes);
            }
        }
    }
    if (lane_id() == 0) {
        counts[tile_row] = count;
        floors[tile_row] = floor;
    }
}

// Measures what is left exactly and writes the `width` nearest, best first. One warp a row, 4 KiB of shared memory each.
extern "C" __global__ void __launch_bounds__(256) rank_candidates(
    const Candidate* candidates, const uint* counts, uint n_rows, const uint* ids, uint first_row, uint width, float margin,
    const float* rows, uint dim, uint stride, uint* indices, float* similarities) {
    __shared__ ulong64 all_keys[8][CAPACITY];
    uint tile_row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (tile_row >= n_rows) return;
    volatile ulong64* keys = all_keys[threadIdx.x / 32];
    uint row = row_at(ids, first_row + tile_row);
    const Candidate* slots = candidates + (size_t)tile_row * CAPACITY;
    uint count = counts[tile_row];

    float least = -INFINITY;
    if (count > width) {
        uint scores[PER_LANE];
        #pragma unroll
        for (uint t = 0; t < PER_LANE; t++) {
            uint slot = t * 32 + lane_id();
            scores[t] = slot < count ? rising(slots[slot].score) : 0;
        }
        least = from_rising(nth_largest(scores, width)) - margin;
    }
    uint left = 0;
    for (uint slot = 0; slot < count; slot++) {
        Candidate candidate = slots[slot];
        if (candidate.score < least) continue;
        float exact = dot(rows + (size_t)row * stride, rows + (size_t)candidate.index * stride, dim);
        if (lane_id() == 0) keys[left] = list_key(exact, candidate.index);
        left++;
    }
    uint size = 2;
    while (size < left) size *= 2;
    for (uint slot = left + lane_id(); slot < size; slot += 32) keys[slot] = 0;
    __syncwarp();
    sort_falling(keys, size, lane_id(), 32, [] { __syncwarp(); });
    for (uint slot = lane_id(); slot < width; slot += 32) {
        indices[(size_t)row * width + slot] = key_index(keys[slot]);
        similarities[(size_t)row * width + slot] = key_similarity(keys[slot]);
    }
}
