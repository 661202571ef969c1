// Graph assembly: the reciprocal graph of the noisy rows once per pool, then each choice of clean rows inserted into it.

// Edges among the noisy rows alone. `last` of row j is the final entry of its list; i is among j's neighbours exactly if
// it does not come after that. With `columns` null only counts; else fills, columns ascending. One warp a row.
extern "C" __global__ void mutual_edges(const uint* indices, const float* similarities, uint n, uint width, uint* counts,
                                        const uint* offsets, uint* columns, float* weights) {
    extern __shared__ uint all_columns[];
    uint* mine = all_columns + (threadIdx.x / 32) * width;
    uint row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    size_t start = (size_t)row * width;
    uint count = 0;
    for (uint base = 0; base < width; base += 32) {
        uint p = base + lane_id();
        bool kept = false;
        uint j = 0;
        if (p < width) {
            j = indices[start + p];
            float similarity = similarities[start + p];
            size_t last = (size_t)j * width + width - 1;
            kept = similarity > 0.0f && !precedes(similarities[last], indices[last], similarity, row);
            mine[p] = kept ? j : 0xffffffffu;
        }
        count += __popc(__ballot_sync(EVERY_LANE, kept));
    }
    if (columns == nullptr) {
        if (lane_id() == 0) counts[row] = count;
        return;
    }
    __syncwarp();
    for (uint p = lane_id(); p < width; p += 32) {
        uint j = mine[p];
        if (j == 0xffffffffu) continue;
        uint rank = 0;
        for (uint q = 0; q < width; q++) rank += mine[q] < j;
        columns[offsets[row] + rank] = j;
        weights[offsets[row] + rank] = similarities[start + p];
    }
}

// Where each row's edges begin: the running sum of `counts`. One block of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024) running_sum(const uint* counts, uint n, uint* offsets) {
    __shared__ uint warp_sums[32];
    __shared__ uint total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    const uint EACH = 8;
    for (uint base = 0; base < n; base += 1024 * EACH) {
        uint first = base + threadIdx.x * EACH, values[EACH], sum = 0;
        #pragma unroll
        for (uint e = 0; e < EACH; e++) {
            values[e] = sum;
            sum += first + e < n ? counts[first + e] : 0;
        }
        uint upto = sum;
        for (uint step = 1; step < 32; step *= 2) {
            uint other = __shfl_up_sync(EVERY_LANE, upto, step);
            if (lane_id() >= step) upto += other;
        }
        if (lane_id() == 31) warp_sums[threadIdx.x / 32] = upto;
        __syncthreads();
        if (threadIdx.x < 32) {
            uint sums = warp_sums[threadIdx.x];
            for (uint step = 1; step < 32; step *= 2) {
                uint other = __shfl_up_sync(EVERY_LANE, sums, step);
                if (lane_id() >= step) sums += other;
            }
            warp_sums[threadIdx.x] = sums;
        }
        __syncthreads();
        uint before = total + upto - sum + (threadIdx.x >= 32 ? warp_sums[threadIdx.x / 32 - 1] : 0);
        #pragma unroll
        for (uint e = 0; e < EACH; e++)
            if (first + e < n) offsets[first + e] = before + values[e];
        __syncthreads();
        if (threadIdx.x == 0) total += warp_sums[31];
        __syncthreads();
    }
    if (threadIdx.x == 0) offsets[n] = total;
}

// k×n similarities of all rows, clean first, to the clean ones. One warp a row.
extern "C" __global__ void clean_similarities(const float* clean, const float* noisy, uint k, uint n, uint dim, uint stride,
                                              float* similarities) {
    uint row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    const float* values = row < k ? clean + (size_t)row * stride : noisy + (size_t)(row - k) * stride;
    for (uint c = 0; c < k; c++) {
        float similarity = dot(values, clean + (size_t)c * stride, dim);
        if (lane_id() == 0) similarities[(size_t)c * n + row] = similarity;
    }
}

// The `width` nearest of every clean row, best first, and the last of them. One block of 256 threads a clean row.
extern "C" __global__ void __launch_bounds__(256) clean_neighbours(const float* similarities, uint n, uint width,
                                                                   uint* indices, float* nearest, float* last_similarity,
                                                                   uint* last_index) {
    const uint STEP = 1024, CAPACITY = 2 * STEP;
    __shared__ ulong64 keys[CAPACITY];
    __shared__ uint filled;
    uint c = blockIdx.x;
    ulong64 floor = 0;
    if (threadIdx.x == 0) filled = 0;
    __syncthreads();
    for (uint base = 0; base < n; base += STEP) {
        #pragma unroll
        for (uint i = base + threadIdx.x; i < base + STEP; i += 256) {
            ulong64 key = i < n && i != c ? list_key(similarities[(size_t)c * n + i], i) : 0;
            if (key > floor) keys[atomicAdd(&filled, 1)] = key; // in any order: they are sorted below
        }
        __syncthreads();
        uint count = filled;
        if (count > CAPACITY - STEP || base + STEP >= n) {
            uint size = 2;
            while (size < count) size *= 2;
            for (uint slot = count + threadIdx.x; slot < size; slot += 256) keys[slot] = 0;
            __syncthreads();
            sort_falling(keys, size, threadIdx.x, 256, [] { __syncthreads(); });
            if (count >= width) floor = keys[width - 1];
            if (threadIdx.x == 0) filled = min(count, width);
        }
        __syncthreads();
    }
    for (uint slot = threadIdx.x; slot < width; slot += 256) {
        indices[(size_t)c * width + slot] = key_index(keys[slot]);
        nearest[(size_t)c * width + slot] = key_similarity(keys[slot]);
    }
    if (threadIdx.x == 0) {
        last_similarity[c] = key_similarity(keys[width - 1]);
        last_index[c] = key_index(keys[width - 1]);
    }
}

// The last neighbour of each noisy row once the clean rows have pushed in: the entry of rank width - 1 in the merger of
// its sorted list (`list_width` entries) with k clean rows. Clean rows have the lower indices and so win ties.
extern "C" __global__ void last_neighbours(const uint* indices, const float* nearest, uint list_width,
                                           const float* to_clean, uint k, uint n, uint width, float* last_similarity,
                                           uint* last_index) {
    uint row = k + (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    size_t start = (size_t)(row - k) * list_width;
    for (uint p = lane_id(); p < list_width; p += 32) {
        float similarity = nearest[start + p];
        uint rank = p;
        for (uint c = 0; c < k; c++) rank += to_clean[(size_t)c * n + row] >= similarity;
        if (rank == width - 1) {
            last_similarity[row] = similarity;
            last_index[row] = k + indices[start + p];
        }
    }
    for (uint c = lane_id(); c < k; c += 32) {
        float similarity = to_clean[(size_t)c * n + row];
        uint rank = 0;
        for (uint other = 0; other < k; other++) rank += precedes(to_clean[(size_t)other * n + row], other, similarity, c);
        for (uint p = 0; p < list_width && rank < width; p++) rank += nearest[start + p] > similarity;
        if (rank == width - 1) {
            last_similarity[row] = similarity;
            last_index[row] = c;
        }
    }
}

struct Insertion {
    const uint* noisy_offsets; // the graph of the noisy rows
    const uint* noisy_columns;
    const float* noisy_weights;
    const uint* clean_indices; // lists of the clean rows
    const float* clean_nearest;
    const float* to_clean; // k×n
    const float* last_similarity;
    const uint* last_index;
    uint k, n, width;
};

__device__ __forceinline__ bool is_neighbour_of(const Insertion& in, uint row, float similarity, uint candidate) {
    return !precedes(in.last_similarity[row], in.last_index[row], similarity, candidate);
}

// Edges of the whole class, clean rows first. Counts or fills as `mutual_edges` does. One warp a row.
extern "C" __global__ void class_edges(Insertion in, uint* counts, const uint* offsets, uint* columns, float* weights) {
    extern __shared__ uint all_columns[];
    uint* mine = all_columns + (threadIdx.x / 32) * in.width;
    uint row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= in.n) return;
    uint at = columns == nullptr ? 0 : offsets[row];
    uint count = 0;
    if (row < in.k) {
        size_t start = (size_t)row * in.width;
        for (uint base = 0; base < in.width; base += 32) {
            uint p = base + lane_id();
            bool kept = false;
            if (p < in.width) {
                uint j = in.clean_indices[start + p];
                float similarity = in.clean_nearest[start + p];
                kept = similarity > 0.0f && is_neighbour_of(in, j, similarity, row);
                mine[p] = kept ? j : 0xffffffffu;
            }
            count += __popc(__ballot_sync(EVERY_LANE, kept));
        }
        __syncwarp();
        for (uint p = lane_id(); p < in.width && columns != nullptr; p += 32) {
            if (mine[p] == 0xffffffffu) continue;
            uint rank = 0;
            for (uint q = 0; q < in.width; q++) rank += mine[q] < mine[p];
            columns[at + rank] = mine[p];
            weights[at + rank] = in.clean_nearest[start + p];
        }
    } else {
        for (uint base = 0; base < in.k; base += 32) {
            uint c = base + lane_id();
            float similarity = c < in.k ? in.to_clean[(size_t)c * in.n + row] : 0.0f;
            bool kept = similarity > 0.0f && is_neighbour_of(in, row, similarity, c) && is_neighbour_of(in, c, similarity, row);
            uint votes = __ballot_sync(EVERY_LANE, kept);
            if (kept && columns != nullptr) {
                columns[at + count + __popc(votes & lanes_below())] = c;
                weights[at + count + __popc(votes & lanes_below())] = similarity;
            }
            count += __popc(votes);
        }
        uint from = in.noisy_offsets[row - in.k], to = in.noisy_offsets[row - in.k + 1];
        for (uint base = from; base < to; base += 32) {
            uint e = base + lane_id();
            uint j = e < to ? in.k + in.noisy_columns[e] : row;
            float similarity = e < to ? in.noisy_weights[e] : 0.0f;
            bool kept = e < to && is_neighbour_of(in, row, similarity, j) && is_neighbour_of(in, j, similarity, row);
            uint votes = __ballot_sync(EVERY_LANE, kept);
            if (kept && columns != nullptr) {
                columns[at + count + __popc(votes & lanes_below())] = j;
                weights[at + count + __popc(votes & lanes_below())] = similarity;
            }
            count += __popc(votes);
        }
    }
    if (columns == nullptr && lane_id() == 0) counts[row] = count;
}

// X = Ã V and the diagonal of D⁻¹, in the CPU's order of operations. `offsets` null: Ã = I. One row per threadIdx.y;
// the threads along x share its columns, four each.
extern "C" __global__ void propagate_features(const float* clean, const float* noisy, uint k, uint n, uint stride,
                                              const uint* offsets, const uint* columns, const float* weights, float* x,
                                              float* inverse_degree) {
    uint row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= n) return;
    uint from = offsets == nullptr ? 0 : offsets[row], to = offsets == nullptr ? 0 : offsets[row + 1];
    for (uint c = threadIdx.x * 4; c < stride; c += blockDim.x * 4) {
        const float* own = row < k ? clean + (size_t)row * stride : noisy + (size_t)(row - k) * stride;
        float4 sum = *(const float4*)(own + c);
        float degree = 0.0f;
        #pragma unroll 4
        for (uint e = from; e < to; e++) {
            uint j = columns[e];
            float weight = weights[e];
            const float* other = j < k ? clean + (size_t)j * stride : noisy + (size_t)(j - k) * stride;
            float4 value = *(const float4*)(other + c);
            degree += weight;
            sum.x += weight * value.x;
            sum.y += weight * value.y;
            sum.z += weight * value.z;
            sum.w += weight * value.w;
        }
        float inverse = 1.0f / (1.0f + degree);
        if (offsets != nullptr) {
            sum.x *= inverse;
            sum.y *= inverse;
            sum.z *= inverse;
            sum.w *= inverse;
        }
        *(float4*)(x + (size_t)row * stride + c) = sum;
        if (c == 0) inverse_degree[row] = inverse;
    }
}
