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
__device__ void add_up(const uint* counts, uint n, uint* offsets) {
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

extern "C" __global__ void __launch_bounds__(1024) running_sum(const uint* counts, uint n, uint* offsets) {
    add_up(counts, n, offsets);
}

// Clean rows and the pool they are put into. Laid out as `Insertion` in graph.rs. Kernels that take several have them along y.
struct Insertion {
    const float* noisy;
    const uint* list_indices; // lists of the noisy rows among themselves
    const float* list_nearest;
    const uint* noisy_offsets; // the graph of the noisy rows
    const uint* noisy_columns;
    const float* noisy_weights;
    const ulong64* noisy_keys;
    const float* clean;
    const ulong64* clean_keys;
    float* to_clean;     // k×n
    uint* clean_indices; // lists of the clean rows
    float* clean_nearest;
    float* last_similarity; // of each row's list
    uint* last_index;
    uint* counts; // edges of each row
    uint* offsets;
    // If only the rows with other edges than in the graph of the noisy rows are wanted, else null:
    uint* changed; // 1 for them and for clean rows
    uint* places;
    uint* touched; // bit `slot` for them
    uint* rows;
    uint* row_offsets;
    ulong64* row_keys;
    uint* columns;
    float* weights;
    uint k, n, width, list_width, dim, stride, slot, unused;
};

// Where the edges of each row begin (x = 0) and which place each changed row gets (x = 1).
extern "C" __global__ void __launch_bounds__(1024) insertion_sums(const Insertion* all) {
    const Insertion& in = all[blockIdx.y];
    if (blockIdx.x == 0) add_up(in.counts, in.n, in.offsets);
    else add_up(in.changed, in.n, in.places);
}

// The last of both sums.
extern "C" __global__ void insertion_totals(const Insertion* all, uint n_all, uint* totals) {
    uint i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_all) return;
    totals[2 * i] = all[i].places[all[i].n];
    totals[2 * i + 1] = all[i].offsets[all[i].n];
}

// k×n similarities of all rows, clean first, to the clean ones. One warp a row.
extern "C" __global__ void clean_similarities(const Insertion* all) {
    const Insertion& in = all[blockIdx.y];
    uint row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, k = in.k, n = in.n, dim = in.dim, stride = in.stride;
    if (row >= n) return;
    const float* clean = in.clean;
    const float* values = row < k ? clean + (size_t)row * stride : in.noisy + (size_t)(row - k) * stride;
    float* similarities = in.to_clean;
    for (uint c = 0; c < k; c++) {
        float similarity = dot(values, clean + (size_t)c * stride, dim);
        if (lane_id() == 0) similarities[(size_t)c * n + row] = similarity;
    }
}

// The `width` nearest of every clean row, best first, and the last of them. One block of 256 threads a clean row.
extern "C" __global__ void __launch_bounds__(256) clean_neighbours(const Insertion* all) {
    const uint STEP = 1024, CAPACITY = 2 * STEP;
    __shared__ ulong64 keys[CAPACITY];
    __shared__ uint filled;
    const Insertion& in = all[blockIdx.y];
    const float* similarities = in.to_clean;
    uint c = blockIdx.x, n = in.n, width = in.width;
    if (c >= in.k) return;
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
        in.clean_indices[(size_t)c * width + slot] = key_index(keys[slot]);
        in.clean_nearest[(size_t)c * width + slot] = key_similarity(keys[slot]);
    }
    if (threadIdx.x == 0) {
        in.last_similarity[c] = key_similarity(keys[width - 1]);
        in.last_index[c] = key_index(keys[width - 1]);
    }
}

// The last neighbour of each noisy row once the clean rows have pushed in: the entry of rank width - 1 in the merger of
// its sorted list (`list_width` entries) with k clean rows. Clean rows have the lower indices and so win ties.
extern "C" __global__ void last_neighbours(const Insertion* all) {
    const Insertion& in = all[blockIdx.y];
    const uint* indices = in.list_indices;
    const float* nearest = in.list_nearest;
    const float* to_clean = in.to_clean;
    uint k = in.k, n = in.n, width = in.width, list_width = in.list_width;
    uint row = k + (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n) return;
    size_t start = (size_t)(row - k) * list_width;
    for (uint p = lane_id(); p < list_width; p += 32) {
        float similarity = nearest[start + p];
        uint rank = p;
        for (uint c = 0; c < k; c++) rank += to_clean[(size_t)c * n + row] >= similarity;
        if (rank == width - 1) {
            in.last_similarity[row] = similarity;
            in.last_index[row] = k + indices[start + p];
        }
    }
    for (uint c = lane_id(); c < k; c += 32) {
        float similarity = to_clean[(size_t)c * n + row];
        uint rank = 0;
        for (uint other = 0; other < k; other++) rank += precedes(to_clean[(size_t)other * n + row], other, similarity, c);
        for (uint p = 0; p < list_width && rank < width; p++) rank += nearest[start + p] > similarity;
        if (rank == width - 1) {
            in.last_similarity[row] = similarity;
            in.last_index[row] = c;
        }
    }
}

__device__ __forceinline__ bool is_neighbour_of(const Insertion& in, uint row, float similarity, uint candidate) {
    return !precedes(in.last_similarity[row], in.last_index[row], similarity, candidate);
}

// The name of row `j` in the edges: itself, or where only changed rows are wanted, noisy rows before clean ones.
__device__ __forceinline__ uint name_of(const Insertion& in, uint j) {
    return in.changed == nullptr ? j : j < in.k ? in.n - in.k + j : j - in.k;
}

// Edges of the whole class, clean rows first, or of the changed rows. Counts or fills as `mutual_edges` does. One warp a row.
extern "C" __global__ void class_edges(const Insertion* all, uint fills) {
    extern __shared__ uint all_columns[];
    const Insertion& in = all[blockIdx.y];
    uint* mine = all_columns + (threadIdx.x / 32) * in.width;
    uint row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= in.n || (fills && in.changed != nullptr && in.changed[row] == 0)) return;
    uint at = fills ? in.offsets[row] : 0;
    uint count = 0;
    bool changed = true;
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
        for (uint p = lane_id(); p < in.width && fills; p += 32) {
            if (mine[p] == 0xffffffffu) continue;
            uint rank = 0;
            for (uint q = 0; q < in.width; q++) rank += mine[q] < mine[p];
            in.columns[at + rank] = name_of(in, mine[p]);
            in.weights[at + rank] = in.clean_nearest[start + p];
        }
    } else {
        for (uint base = 0; base < in.k; base += 32) {
            uint c = base + lane_id();
            float similarity = c < in.k ? in.to_clean[(size_t)c * in.n + row] : 0.0f;
            bool kept = similarity > 0.0f && is_neighbour_of(in, row, similarity, c) && is_neighbour_of(in, c, similarity, row);
            uint votes = __ballot_sync(EVERY_LANE, kept);
            if (kept && fills) {
                in.columns[at + count + __popc(votes & lanes_below())] = name_of(in, c);
                in.weights[at + count + __popc(votes & lanes_below())] = similarity;
            }
            count += __popc(votes);
        }
        uint from = in.noisy_offsets[row - in.k], to = in.noisy_offsets[row - in.k + 1];
        changed = count > 0;
        uint before = count;
        for (uint base = from; base < to; base += 32) {
            uint e = base + lane_id();
            uint j = e < to ? in.k + in.noisy_columns[e] : row;
            float similarity = e < to ? in.noisy_weights[e] : 0.0f;
            bool kept = e < to && is_neighbour_of(in, row, similarity, j) && is_neighbour_of(in, j, similarity, row);
            uint votes = __ballot_sync(EVERY_LANE, kept);
            if (kept && fills) {
                in.columns[at + count + __popc(votes & lanes_below())] = name_of(in, j);
                in.weights[at + count + __popc(votes & lanes_below())] = similarity;
            }
            count += __popc(votes);
        }
        changed = changed || count - before < to - from;
    }
    if (lane_id() != 0) return;
    if (!fills) {
        in.counts[row] = in.changed == nullptr || changed ? count : 0;
        if (in.changed == nullptr) return;
        in.changed[row] = changed;
        if (changed && row >= in.k) atomicOr(in.touched + row - in.k, 1u << in.slot);
    } else if (in.changed != nullptr) {
        uint place = in.places[row];
        in.rows[place] = name_of(in, row);
        in.row_keys[place] = row < in.k ? in.clean_keys[row] : in.noisy_keys[row - in.k];
        in.row_offsets[place] = at;
        if (place + 1 == in.places[in.n]) in.row_offsets[place + 1] = at + count;
    }
}

// Rows of X to be made. Laid out as `Propagation` in graph.rs.
struct Propagation {
    const float* noisy;
    const float* clean;
    const uint* rows; // which; null: the noisy ones
    const uint* offsets; // null: Ã = I
    const uint* columns;
    const float* weights;
    ushort* x; // in halves, as network.cu reads them
    float* inverse_degree;
    uint n, n_noisy, stride, width;
};

__device__ __forceinline__ const float* features_of(const Propagation& of, uint row) {
    return row < of.n_noisy ? of.noisy + (size_t)row * of.stride : of.clean + (size_t)(row - of.n_noisy) * of.stride;
}

// X = Ã V in halves, times 2¹⁴, and the diagonal of D⁻¹, in the CPU's order of operations up to the halves. One row per
// threadIdx.y; the threads along x share its columns, four each.
extern "C" __global__ void propagate_features(const Propagation* all) {
    const Propagation& of = all[blockIdx.y];
    uint row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= of.n) return;
    bool alone = of.offsets == nullptr;
    uint from = alone ? 0 : of.offsets[row], to = alone ? 0 : of.offsets[row + 1];
    const float* own = features_of(of, of.rows == nullptr ? row : of.rows[row]);
    for (uint c = threadIdx.x * 4; c < of.width; c += blockDim.x * 4) {
        bool real = c < of.stride;
        float4 sum = real ? *(const float4*)(own + c) : make_float4(0, 0, 0, 0);
        float degree = 0.0f;
        #pragma unroll 4
        for (uint e = from; e < to; e++) {
            float weight = of.weights[e];
            float4 value = real ? *(const float4*)(features_of(of, of.columns[e]) + c) : make_float4(0, 0, 0, 0);
            degree += weight;
            sum.x += weight * value.x;
            sum.y += weight * value.y;
            sum.z += weight * value.z;
            sum.w += weight * value.w;
        }
        float inverse = 1.0f / (1.0f + degree);
        float factor = (alone ? 1.0f : inverse) * 16384.0f;
        float x[4] = {sum.x * factor, sum.y * factor, sum.z * factor, sum.w * factor};
        ushort high[4], low[4];
        #pragma unroll
        for (uint i = 0; i < 4; i++) {
            high[i] = to_half(x[i]);
            low[i] = to_half(x[i] - from_half(high[i]));
        }
        ushort* out = of.x + (size_t)row * of.width * 2 + c / 32 * 64 + c % 32;
        *(ushort4*)out = make_ushort4(high[0], high[1], high[2], high[3]);
        *(ushort4*)(out + 32) = make_ushort4(low[0], low[1], low[2], low[3]);
        if (c == 0 && !alone) of.inverse_degree[row] = inverse;
    }
}
