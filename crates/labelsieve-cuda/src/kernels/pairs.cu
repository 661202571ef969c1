// All pairs of rows along the leading directions; who reaches the floor goes to the row's list, and nothing else is written.

#define CAPACITY 512
#define TILE_ROWS 256   // of a block: 32 a warp
#define TILE_COLUMNS 32 // that a warp multiplies at a time: more blocks share a processor than with 64
#define LOADED 128      // columns in shared memory at a time, twice: blocks wait for their slowest warp as rarely as that
#define SEGMENT 16384   // columns that a block walks through
#define HELD 1024       // survivors that a block holds back, to deliver many at once

__device__ __forceinline__ void load_async(uint to, const void* from, bool exists) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exists ? 16 : 0));
}

__device__ __forceinline__ void load_fragments(uint (&b)[4], uint from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(from) : "memory");
}

// d = a b + c: 16 rows by 8 columns by 16 numbers.
__device__ __forceinline__ void multiply_add(
    float (&d)[4], const uint (&a)[4], uint b0, uint b1, float c0, float c1, float c2, float c3) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%10, %11, %12, %13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c0), "f"(c1), "f"(c2), "f"(c3));
}

// Rows (one side) and columns (the other): K numbers each in 16-bit floats, what they are called, and their floors.
struct Side { const ushort* leads; const uint* ids; const float* floors; ulong64 n; };
struct Lists { uint* ids; uint* counts; };

__device__ __forceinline__ void append(Lists lists, uint row, uint id) {
    uint place = atomicAdd(&lists.counts[row], 1);
    if (place < CAPACITY) lists.ids[(size_t)row * CAPACITY + place] = id;
}

// A pair that survives for its row does so for its column too if it reaches that one's floor.
__device__ __forceinline__ void deliver(
    const Side& rows, const Side& columns, Lists lists, bool mirrored, uint row, uint column, float score) {
    append(lists, row, columns.ids[column]);
    if (mirrored && score >= columns.floors[column]) append(lists, column, rows.ids[row]);
}

// Blocks (x: rows, y: segments of columns). `mirrored`: both sides are the same, ordered by floor, lowest first; only pairs
// with the column behind the row are looked at, so that who misses the row's floor misses the column's too.
template <uint K>
__device__ __forceinline__ void screen_pairs(const Side& rows, const Side& columns, Lists lists, bool mirrored) {
    const uint K_STEPS = K / 16, N_TILES = TILE_COLUMNS / 8;
    const uint STRIDE = K / 8 + 1; // 16-byte words of a column, and one such that eight columns lie in all banks
    extern __shared__ uint4 tiles[]; // 2 × LOADED columns
    __shared__ uint2 held[HELD];
    __shared__ uint n_held, deliver_now[2];
    uint first_row = blockIdx.x * TILE_ROWS, n_columns = (uint)columns.n;
    uint first_column = blockIdx.y * SEGMENT, end = min(first_column + SEGMENT, n_columns);
    if (mirrored) first_column = max(first_column, first_row);
    if (first_column >= end) return;
    if (threadIdx.x == 0) n_held = 0;
    uint warp_row = first_row + threadIdx.x / 32 * 32, group = lane_id() / 4, quad = lane_id() % 4;

    uint a[2][K_STEPS][4];
    float floors[2][2];
    #pragma unroll
    for (uint m = 0; m < 2; m++) {
        #pragma unroll
        for (uint h = 0; h < 2; h++) {
            uint row = warp_row + m * 16 + h * 8 + group;
            bool exists = row < rows.n;
            const uint* lead = (const uint*)(rows.leads + (size_t)(exists ? row : 0) * K);
            floors[m][h] = exists ? rows.floors[row] : INFINITY;
            #pragma unroll
            for (uint k = 0; k < K_STEPS; k++) {
                a[m][k][h] = exists ? lead[k * 8 + quad] : 0;
                a[m][k][h + 2] = exists ? lead[k * 8 + quad + 4] : 0;
            }
        }
    }

    uint n_loads = (end - first_column + LOADED - 1) / LOADED;
    auto load = [&](uint which) {
        for (uint i = threadIdx.x; i < LOADED * (K / 8); i += 256) {
            uint column = i / (K / 8), word = i % (K / 8), from = first_column + which * LOADED + column;
            bool exists = from < n_columns;
            const uint4* lead = (const uint4*)(columns.leads + (size_t)(exists ? from : 0) * K) + word;
            uint4* to = tiles + (which % 2 * LOADED + column) * STRIDE + word;
            load_async((uint)__cvta_generic_to_shared(to), lead, exists);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    auto deliver_held = [&]() {
        uint count = min(n_held, HELD);
        for (uint i = threadIdx.x; i < count; i += 256)
            deliver(rows, columns, lists, mirrored, first_row + (held[i].x >> 24), first_column + (held[i].x & 0xffffff),
                    __uint_as_float(held[i].y));
    };
    load(0);
    for (uint step = 0; step < n_loads * (LOADED / TILE_COLUMNS); step++) {
        if (step % (LOADED / TILE_COLUMNS) == 0) {
            uint which = step / (LOADED / TILE_COLUMNS);
            asm volatile("cp.async.wait_group 0;" ::: "memory");
            if (threadIdx.x == 0) deliver_now[which % 2] = n_held > HELD / 2;
            __syncthreads();
            if (deliver_now[which % 2]) {
                deliver_held();
                __syncthreads();
                if (threadIdx.x == 0) n_held = 0;
                __syncthreads();
            }
            if (which + 1 < n_loads) load(which + 1);
        }

        float scores[2][N_TILES][4];
        uint first = step % (2 * LOADED / TILE_COLUMNS) * TILE_COLUMNS + lane_id() % 8;
        uint tile = (uint)__cvta_generic_to_shared(tiles + first * STRIDE + lane_id() / 8);
        #pragma unroll
        for (uint k = 0; k < K_STEPS; k += 2) {
            #pragma unroll
            for (uint t = 0; t < N_TILES; t++) {
                uint b[4];
                load_fragments(b, tile + 16 * (t * 8 * STRIDE + k * 2));
                #pragma unroll
                for (uint m = 0; m < 2; m++) {
                    float (&s)[4] = scores[m][t];
                    if (k == 0) multiply_add(s, a[m][k], b[0], b[1], 0.0f, 0.0f, 0.0f, 0.0f);
                    else multiply_add(s, a[m][k], b[0], b[1], s[0], s[1], s[2], s[3]);
                    multiply_add(s, a[m][k + 1], b[2], b[3], s[0], s[1], s[2], s[3]);
                }
            }
        }

        #pragma unroll
        for (uint m = 0; m < 2; m++) {
            #pragma unroll
            for (uint h = 0; h < 2; h++) {
                float most[N_TILES];
                #pragma unroll
                for (uint t = 0; t < N_TILES; t++) most[t] = fmaxf(scores[m][t][2 * h], scores[m][t][2 * h + 1]);
                #pragma unroll
                for (uint width = N_TILES / 2; width > 0; width /= 2) {
                    #pragma unroll
                    for (uint t = 0; t < width; t++) most[t] = fmaxf(most[t], most[t + width]);
                }
                if (most[0] < floors[m][h]) continue;
                uint survivors = 0;
                #pragma unroll
                for (uint e = 0; e < 2 * N_TILES; e++)
                    survivors |= (scores[m][e / 2][2 * h + e % 2] >= floors[m][h] ? 1u : 0u) << e;
                while (survivors != 0) {
                    uint which = __ffs(survivors) - 1;
                    survivors &= survivors - 1;
                    float score = 0.0f;
                    #pragma unroll
                    for (uint e = 0; e < 2 * N_TILES; e++) score = which == e ? scores[m][e / 2][2 * h + e % 2] : score;
                    uint row = warp_row + m * 16 + h * 8 + group;
                    uint offset = step * TILE_COLUMNS + which / 2 * 8 + quad * 2 + which % 2;
                    uint column = first_column + offset;
                    if (column >= n_columns) continue;
                    if (mirrored ? column <= row : columns.ids[column] == rows.ids[row]) continue;
                    uint place = atomicAdd(&n_held, 1);
                    if (place < HELD) held[place] = make_uint2((row - first_row) << 24 | offset, __float_as_uint(score));
                    else deliver(rows, columns, lists, mirrored, row, column, score);
                }
            }
        }
    }
    __syncthreads();
    deliver_held();
}

#define SCREEN_PAIRS(K, BLOCKS)                                                              \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS) screen_pairs_##K(              \
        Side rows, Side columns, Lists lists, uint mirrored) {                              \
        screen_pairs<K>(rows, columns, lists, mirrored != 0);                               \
    }
SCREEN_PAIRS(64, 3)
SCREEN_PAIRS(96, 2)
SCREEN_PAIRS(128, 2)
