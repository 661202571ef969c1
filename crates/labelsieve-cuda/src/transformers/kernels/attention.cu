// Attention where cuDNN has none: softmax(Q Kᵀ) V in f32, tile by tile, with the largest score and the sum so far.

#define KEYS 32
#define QUERIES 16 // of a block, two a warp
#define MAX_HEAD 128
#define PARTS (MAX_HEAD / 32)

struct Attention {
    uint tokens, queries, heads, head;
    uint query_sequence, query_stride, stride; // numbers from one to the next
    uint is_causal;
};

// Blocks: tiles of queries × heads × sequences. A lane scores one key of a tile and owns every 32nd number of the result.
extern "C" __global__ void __launch_bounds__(THREADS) attend(Attention a, const element* queries, const element* keys,
                                                             const element* values, element* out) {
    __shared__ float q[QUERIES][MAX_HEAD], k[KEYS][MAX_HEAD + 1], v[KEYS][MAX_HEAD];
    uint warp = threadIdx.x / 32, lane = lane_id(), first = blockIdx.x * QUERIES;
    size_t sequence = blockIdx.z, head = blockIdx.y * a.head;
    for (uint i = threadIdx.x; i < QUERIES * a.head; i += THREADS) {
        uint row = i / a.head, c = i % a.head;
        bool is_there = first + row < a.queries;
        size_t from = sequence * a.query_sequence + (size_t)(first + row) * a.query_stride + head + c;
        q[row][c] = is_there ? to_float(queries[from]) : 0.0f;
    }
    float largest[2] = {-INFINITY, -INFINITY}, total[2] = {}, sum[2][PARTS] = {};
    for (uint start = 0; start < a.tokens; start += KEYS) {
        __syncthreads(); // the tile before has been read
        for (uint i = threadIdx.x; i < KEYS * a.head; i += THREADS) {
            uint row = i / a.head, c = i % a.head;
            bool is_there = start + row < a.tokens;
            size_t from = (sequence * a.tokens + start + row) * a.stride + head + c;
            k[row][c] = is_there ? to_float(keys[from]) : 0.0f;
            v[row][c] = is_there ? to_float(values[from]) : 0.0f;
        }
        __syncthreads();
        float score[2] = {};
        for (uint c = 0; c < a.head; c++) {
            score[0] = fmaf(q[2 * warp][c], k[lane][c], score[0]);
            score[1] = fmaf(q[2 * warp + 1][c], k[lane][c], score[1]);
        }
        #pragma unroll
        for (uint i = 0; i < 2; i++) {
            uint query = first + 2 * warp + i;
            bool is_seen = start + lane < a.tokens && !(a.is_causal && start + lane > query);
            float highest = fmaxf(largest[i], warp_max(is_seen ? score[i] : -INFINITY));
            float share = is_seen ? expf(score[i] - highest) : 0.0f;
            float kept = total[i] > 0.0f ? expf(largest[i] - highest) : 0.0f;
            largest[i] = highest;
            total[i] = total[i] * kept + warp_sum(share);
            #pragma unroll
            for (uint part = 0; part < PARTS; part++) sum[i][part] *= kept;
            for (uint j = 0; j < KEYS; j++) {
                float of = __shfl_sync(EVERY_LANE, share, j);
                #pragma unroll
                for (uint part = 0; part < PARTS; part++)
                    if (lane + 32 * part < a.head) sum[i][part] = fmaf(of, v[j][lane + 32 * part], sum[i][part]);
            }
        }
    }
    #pragma unroll
    for (uint i = 0; i < 2; i++) {
        uint query = first + 2 * warp + i;
        if (query >= a.queries) continue;
        element* to = out + (sequence * a.queries + query) * a.heads * a.head + head;
        #pragma unroll
        for (uint part = 0; part < PARTS; part++)
            if (lane + 32 * part < a.head) to[lane + 32 * part] = to_element(sum[i][part] / total[i]);
    }
}

// Rotates queries and keys of the last tokens of every sequence, two numbers half a head apart at a time. A row of `rotation` has
// the cosines, then the sines; `stride` numbers lie between two. One thread a pair.
extern "C" __global__ void __launch_bounds__(THREADS) rotate_heads(uint n_rows, uint tokens, uint n_rotated, uint heads, uint head,
                                                                   uint stride, const element* rotation, element* rows) {
    size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    uint half = head / 2;
    if (at >= (size_t)n_rows * 2 * heads * half) return;
    uint i = at % half, part = at / half % (2 * heads);
    size_t row = at / half / (2 * heads);
    uint token = row % tokens, n_before = tokens - n_rotated;
    if (token < n_before) return;
    const element* angle = rotation + (size_t)(token - n_before) * stride;
    float cosine = to_float(angle[i]), sine = to_float(angle[half + i]);
    element* x = rows + row * 3 * heads * head + part * head + i;
    float first = to_float(x[0]), second = to_float(x[half]);
    x[0] = to_element(first * cosine - second * sine);
    x[half] = to_element(second * cosine + first * sine);
}
