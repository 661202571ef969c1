// Training of the two-layer network for many cells at once: a few launches an iteration, whatever their number.
//
// A cell is one job. The cells of one pool form a group and share its rows: X of a noisy row is the same in every cell, except
// where a clean row changed the row's edges. Such rows and the clean ones are a cell's own rows, with an X of their own.
// The products with X over the shared rows are therefore wide: eight cells, 128 columns of Θ₁, at a time.
//
//   forward      H = X Θ₁ + b₁, R = dropout [H]+, s = R Θ₂        one pass over X
//   probability  p = σ(Ã s + b₂), D⁻¹ ∂L/∂a                       one sparse product
//   gather       ∂s = Ãᵀ ∂a                                       one sparse product
//   backward     G = Xᵀ (∂s where R > 0)                          one pass over X
//   adam         ∂Θ₁ = G Θ₂ and what follows from it; moves the parameters
//
// R is never stored: with G₀ = Σ ∂s over the rows where a unit is active, ∂Θ₂ = Rᵀ ∂s = Θ₁ᵀ G + b₁ G₀.
//
// Products with X go to the tensor cores. Every number is the sum of two halves, a high and a low one, 22 bits together, and
// low times low is left out, so products are as exact as those of f32. Powers of two keep the halves in range.
//
// A cell gets the same bits alone as beside others: a number of a product depends on its row and column alone, sums are cut by
// sizes alone, and nothing is added atomically.

#define TILE 256  // rows of a tile of the sparse products
#define ROWS 128  // rows that a block of `forward` takes, columns of X that one of `backward` does
#define SLICE 32  // columns of X that lie together, high halves before low ones; rows that `backward` fetches at a time
#define CHUNK 8   // cells that a block takes
#define MAX_CELLS 32
#define OWN 0x80000000u // in the job of a tile: the cell's own rows
#define NOBODY 0xffffffffu
#define X_SCALE 16384.0f
#define FORWARD_STAGES(wide) ((wide) ? 3 : 4)
#define BACKWARD_STAGES 4

// Laid out as `Cell` in cells.rs.
struct Cell {
    float* parameters;     // Θ₁ᵀ (16×width), b₁ (16), Θ₂ (16), b₂; then Adam's two moments of each
    ushort* theta;         // Θ₁ in halves: width/32 × 16 units × (32 high, 32 low)
    float* partial;        // per slab of rows: G (16×width), G₀ (16)
    double* bias_partial;  // per tile: ∂b₂
    float* probability;    // p of the noisy rows
    const float* loss_weights; // what each row adds to the loss, clean rows first; null: all clean and all noisy ones alike
    const ushort* x;           // own rows: clean ones, then noisy ones whose edges are not the group's
    const uint* rows;          // which each is: a noisy row, or n_noisy + a clean one
    const ulong64* row_keys;   // what each is, which decides on its dropout
    const uint* offsets;       // null: Ã = I
    const uint* columns;
    const float* weights;
    const float* inverse_degree;
    ushort* active;            // bit u: R > 0 in unit u
    uint* gradients;           // ∂s in halves
    ulong64 weight_key, dropout_key;
    float shared_scale, own_scale; // of ∂s in halves: powers of two
    float clean_weight, noisy_weight; // in the loss: positive where p should be 1, negative where 0
    uint group, slot;
    uint n_own, n_clean, n_shared_slabs, n_slabs, n_shared_tiles, n_tiles;
};

// Laid out as `Group` in cells.rs. A number of every cell for each row lies at row × slots + slot.
struct Group {
    const ushort* x;
    const ulong64* row_keys;
    const uint* offsets; // null: Ã = I
    const uint* columns;
    const float* weights;
    const float* inverse_degree;
    const uint* touched;         // bit s: the row is among the own rows of the cell in slot s
    float* support;              // s; clean rows behind the noisy ones
    float* gradient_over_degree; // D⁻¹ ∂L/∂a, likewise
    ushort* active;
    uint* gradients;
    uint n, dim, width, slots, n_chunks, slab;
    uint cells[MAX_CELLS]; // in each slot
};

struct Tile { uint job, index; };

__device__ __forceinline__ uint n_parameters(uint width) { return width * HIDDEN + 2 * HIDDEN + 1; }

// ---- Halves ----

__device__ __forceinline__ uint in_halves(float x) {
    ushort high = to_half(x);
    return high | (uint)to_half(x - from_half(high)) << 16;
}

// Units are stored so that the lane that gets the sums of a row gets four units whose dropout is one random number.
__device__ __forceinline__ void store_theta(ushort* theta, uint unit, uint column, float x) {
    uint place = unit % 4 / 2 * 8 + unit / 4 * 2 + unit % 2;
    ushort* at = theta + (size_t)(column / SLICE * HIDDEN + place) * 2 * SLICE + column % SLICE;
    uint halves = in_halves(x);
    at[0] = (ushort)halves;
    at[SLICE] = (ushort)(halves >> 16);
}

__device__ __forceinline__ uint shared_address(const void* shared) { return (uint)__cvta_generic_to_shared(shared); }

// Copies 16 bytes of which the first `bytes` are real and the rest is filled with zeros.
__device__ __forceinline__ void copy_async(uint shared, const void* global, uint bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes));
}
__device__ __forceinline__ void copies_end() { asm volatile("cp.async.commit_group;"); }

__device__ __forceinline__ void load_matrices(uint (&to)[4], uint shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(shared));
}
__device__ __forceinline__ void load_transposed(uint (&to)[4], uint shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(shared));
}

// Tensor cores cut off what does not fit an f32 instead of rounding it, so sums of more than 16 products are made outside of them:
// left inside, relevances differed from the CPU's by up to 4·10⁻³ after 100 iterations.
__device__ __forceinline__ void multiply(float (&sums)[4], const uint (&a)[4], uint b_0, uint b_1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
                 : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_0), "r"(b_1), "f"(0.0f));
}
__device__ __forceinline__ void multiply_add(float (&sums)[4], const uint (&a)[4], uint b_0, uint b_1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_0), "r"(b_1));
}

// A row of SLICE columns takes 128 bytes of shared memory; its eight words of 16 bytes are shuffled so that the same word of
// eight rows lies in different banks.
__device__ __forceinline__ uint word_in_row(uint row, uint word) { return (word ^ (row & 7)) * 16; }

// The rows a narrow block works on: those of a group with a single cell, or a cell's own.
struct Rows {
    const ushort* x;
    const uint* names; // null: each is itself
    const uint* touched;
    const ulong64* row_keys;
    ushort* active;
    uint* gradients;
    uint n, slots;
};

__device__ __forceinline__ Rows shared_rows(const Group& group) {
    return {group.x, nullptr, group.touched, group.row_keys, group.active, group.gradients, group.n, group.slots};
}
__device__ __forceinline__ Rows own_rows(const Cell& cell) {
    return {cell.x, cell.rows, nullptr, cell.row_keys, cell.active, cell.gradients, cell.n_own, 1};
}

// What each row is: `row_key` of labelsieve::random. Four threads a row, a chain each.
extern "C" __global__ void __launch_bounds__(256) find_row_keys(const float* rows, uint n, uint dim, uint stride, ulong64* keys) {
    const float STEPS = 64.0f, ROUND = 12582912.0f;
    uint row = (blockIdx.x * 256 + threadIdx.x) / 4, chain = threadIdx.x % 4;
    ulong64 state = mix(chain + 1);
    for (uint c = chain; c < dim && row < n; c += 4) {
        ulong64 product = (state ^ __float_as_uint(rows[(size_t)row * stride + c] * STEPS + ROUND)) * GOLDEN;
        state = product ^ (product >> 32);
    }
    ulong64 key = dim;
    #pragma unroll
    for (uint other = 0; other < 4; other++) key = mix((key + GOLDEN) ^ __shfl_sync(EVERY_LANE, state, other, 4));
    if (row < n && chain == 0) keys[row] = key;
}

// ---- Forward ----

extern "C" __global__ void initial_parameters(const Tile* tiles, const Group* groups, const Cell* cells, float theta_scale) {
    const Cell& cell = cells[tiles[blockIdx.x].job];
    const Group& group = groups[cell.group];
    uint width = group.width, count = n_parameters(width), i = tiles[blockIdx.x].index * blockDim.x + threadIdx.x;
    if (i >= count) return;
    bool first_layer = i < width * HIDDEN;
    uint column = first_layer ? i % width : group.dim, unit = first_layer ? i / width : i - width * HIDDEN;
    ulong64 position = column * HIDDEN + unit; // in Θ₁ (d×16), b₁, Θ₂, b₂
    float uniform = (float)(random_bits(cell.weight_key, position) >> 40) / 16777216.0f;
    float bound = position < (group.dim + 1) * HIDDEN ? 0.25f : 1.0f; // 1/√16, then 1/√1
    float value = first_layer && column >= group.dim ? 0.0f : bound * (2.0f * uniform - 1.0f);
    cell.parameters[i] = value;
    cell.parameters[count + i] = 0.0f;
    cell.parameters[2 * count + i] = 0.0f;
    if (first_layer) store_theta(cell.theta, unit, column, value * theta_scale);
}

// Starts copying a slice of X and of Θ₁; past the last one it only keeps the count of copies.
template <bool WIDE>
__device__ __forceinline__ void fetch_forward(const Rows& rows, uint first_row, uint n_slices, uint slice,
                                              const ushort* const* thetas, uint stage) {
    if (slice < n_slices) {
        #pragma unroll
        for (uint t = 0; t < 4; t++) {
            uint piece = t * 256 + threadIdx.x, r = piece / 8, word = piece % 8, row = first_row + r;
            const ushort* from = rows.x + (row < rows.n ? ((size_t)row * n_slices + slice) * 64 + word * 8 : 0);
            copy_async(stage + r * 128 + word_in_row(r, word), from, row < rows.n ? 16 : 0);
        }
        #pragma unroll
        for (uint t = 0; t < (WIDE ? 4 : 1); t++) {
            uint piece = t * 256 + threadIdx.x, r = piece / 8, word = piece % 8;
            if (!WIDE && piece >= 128) break;
            const ushort* theta = thetas[r / HIDDEN];
            if (theta != nullptr)
                copy_async(stage + ROWS * 128 + r * 128 + word_in_row(r, word),
                           theta + (size_t)(slice * HIDDEN + r % HIDDEN) * 64 + word * 8, 16);
        }
    }
    copies_end();
}

// R and s of a row from its sums; four lanes share it, each with four units.
__device__ __forceinline__ void activate(const Rows& rows, float* support, uint slots, uint slot, uint row, const float (&h)[4],
                                         const float (&bias)[4], const float (&theta_2)[4], ulong64 key, uint threshold,
                                         float scale) {
    uint quarter = lane_id() % 4;
    bool real = row < rows.n;
    ulong64 bits = threshold == 0 || !real ? 0 : random_bits(key, rows.row_keys[row] + quarter);
    float sum = 0.0f;
    uint active = 0;
    #pragma unroll
    for (uint b = 0; b < 4; b++) {
        float factor = threshold == 0 ? 1.0f : ((uint)(bits >> (16 * b)) & 0xffff) >= threshold ? scale : 0.0f;
        float hidden = fmaxf(h[b] + bias[b], 0.0f) * factor;
        sum = fmaf(hidden, theta_2[b], sum);
        if (hidden > 0.0f) active |= 1u << (4 * quarter + b);
    }
    #pragma unroll
    for (uint step = 1; step < 4; step *= 2) {
        sum += __shfl_xor_sync(EVERY_LANE, sum, step);
        active |= __shfl_xor_sync(EVERY_LANE, active, step);
    }
    if (!real || quarter != 0) return;
    if (rows.touched != nullptr && (rows.touched[row] >> slot & 1)) return;
    uint name = rows.names == nullptr ? row : rows.names[row];
    support[(size_t)name * slots + slot] = sum;
    rows.active[rows.slots == 1 ? row : (size_t)row * rows.slots + slot] = (ushort)active;
}

// 256 threads: 128 rows times the units of the cells with these numbers. Wide, four warps share the rows and two the cells;
// narrow, eight warps share the rows and there is one cell.
template <bool WIDE>
__device__ __forceinline__ void forward_block(const Rows& rows, const Group& group, const Cell* cells, const uint* numbers,
                                              uint first_row, uint iteration, uint threshold, float scale, float unscale) {
    const uint STAGES = FORWARD_STAGES(WIDE), M_TILES = WIDE ? 2 : 1, CELLS = WIDE ? 4 : 1;
    const uint STAGE = ROWS * 128 + (WIDE ? CHUNK : 1) * HIDDEN * 128;
    extern __shared__ __align__(128) unsigned char buffers[];
    __shared__ const ushort* thetas[CHUNK];
    if (threadIdx.x < (WIDE ? CHUNK : 1))
        thetas[threadIdx.x] = numbers[threadIdx.x] == NOBODY ? nullptr : cells[numbers[threadIdx.x]].theta;
    __syncthreads();
    uint warp = threadIdx.x / 32, lane = lane_id();
    uint warp_m = WIDE ? warp % 4 : warp, warp_n = WIDE ? warp / 4 : 0;
    uint n_slices = group.width / SLICE, base = shared_address(buffers);
    float sums[M_TILES][CELLS][2][4] = {};
    for (uint slice = 0; slice < STAGES - 1; slice++)
        fetch_forward<WIDE>(rows, first_row, n_slices, slice, thetas, base + slice * STAGE);
    // Where this lane's row of each 8×8 matrix is.
    uint a_row = warp_m * 16 * M_TILES + lane / 8 % 2 * 8 + lane % 8, a_word = lane / 16;
    uint b_row = lane / 16 * 8 + lane % 8, b_word = lane / 8 % 2;
    for (uint slice = 0; slice < n_slices; slice++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads(); // this slice is there, and nobody reads the one before it any more
        fetch_forward<WIDE>(rows, first_row, n_slices, slice + STAGES - 1, thetas,
                            base + (slice + STAGES - 1) % STAGES * STAGE);
        uint x = base + slice % STAGES * STAGE, theta = x + ROWS * 128;
        #pragma unroll
        for (uint step = 0; step < 2; step++) {
            uint a[2][M_TILES][4]; // high, low
            #pragma unroll
            for (uint part = 0; part < 2; part++)
                #pragma unroll
                for (uint m = 0; m < M_TILES; m++)
                    load_matrices(a[part][m], x + (a_row + 16 * m) * 128 + word_in_row(a_row, part * 4 + step * 2 + a_word));
            #pragma unroll
            for (uint i = 0; i < CELLS; i++) {
                uint place = WIDE ? i % 2 * 4 + warp_n * 2 + i / 2 : 0;
                if (WIDE && thetas[place] == nullptr) continue;
                uint b[2][4], of_cell = theta + (place * HIDDEN + b_row) * 128;
                #pragma unroll
                for (uint part = 0; part < 2; part++)
                    load_matrices(b[part], of_cell + word_in_row(b_row, part * 4 + step * 2 + b_word));
                float now[M_TILES][2][4];
                #pragma unroll
                for (uint product = 0; product < 3; product++) // the small ones first: low·high, high·low, high·high
                    #pragma unroll
                    for (uint m = 0; m < M_TILES; m++)
                        #pragma unroll
                        for (uint n = 0; n < 2; n++) {
                            if (product == 0) multiply(now[m][n], a[1][m], b[0][2 * n], b[0][2 * n + 1]);
                            else multiply_add(now[m][n], a[0][m], b[2 - product][2 * n], b[2 - product][2 * n + 1]);
                        }
                #pragma unroll
                for (uint m = 0; m < M_TILES; m++)
                    #pragma unroll
                    for (uint e = 0; e < 8; e++) sums[m][i][e / 4][e % 4] += now[m][e / 4][e % 4];
            }
        }
    }
    #pragma unroll
    for (uint i = 0; i < CELLS; i++) {
        uint place = WIDE ? i % 2 * 4 + warp_n * 2 + i / 2 : 0;
        if (numbers[place] == NOBODY) continue;
        const Cell& cell = cells[numbers[place]];
        const float* small = cell.parameters + group.width * HIDDEN + lane % 4 * 4;
        float bias[4], theta_2[4];
        #pragma unroll
        for (uint b = 0; b < 4; b++) {
            bias[b] = small[b];
            theta_2[b] = small[HIDDEN + b];
        }
        ulong64 key = branch(cell.dropout_key, iteration);
        uint slot = cell.slot;
        #pragma unroll
        for (uint m = 0; m < M_TILES; m++)
            #pragma unroll
            for (uint half = 0; half < 2; half++) {
                uint row = first_row + (warp_m * M_TILES + m) * 16 + half * 8 + lane / 4;
                float h[4];
                #pragma unroll
                for (uint b = 0; b < 4; b++) h[b] = sums[m][i][b / 2][half * 2 + b % 2] * unscale;
                activate(rows, group.support, group.slots, slot, row, h, bias, theta_2, key, threshold, scale);
            }
    }
}

// A tile is 128 rows and a chunk of the cells.
extern "C" __global__ void __launch_bounds__(256, 2) forward_wide(const Tile* tiles, const Group* groups, const Cell* cells,
                                                                  uint iteration, uint threshold, float scale,
                                                                  float unscale) {
    const Group& group = groups[tiles[blockIdx.x].job];
    uint row_tile = tiles[blockIdx.x].index / group.n_chunks, chunk = tiles[blockIdx.x].index % group.n_chunks;
    forward_block<true>(shared_rows(group), group, cells, group.cells + chunk * CHUNK, row_tile * ROWS, iteration, threshold,
                        scale, unscale);
}

// A tile is 128 rows of a cell: its own, or those of its group if it is alone there.
extern "C" __global__ void __launch_bounds__(256, 3) forward_narrow(const Tile* tiles, const Group* groups, const Cell* cells,
                                                                    uint iteration, uint threshold, float scale,
                                                                    float unscale) {
    Tile tile = tiles[blockIdx.x];
    uint number = tile.job & ~OWN;
    const Group& group = groups[cells[number].group];
    Rows rows = tile.job & OWN ? own_rows(cells[number]) : shared_rows(group);
    forward_block<false>(rows, group, cells, &number, tile.index * ROWS, iteration, threshold, scale, unscale);
}

// ---- Sparse products ----

// What an edge sum reads: the numbers of one slot.
struct Edges {
    const uint* offsets;
    const uint* columns;
    const float* weights;
};

// Σ_j a_ij x_j over the row's edges by 8 lanes, a strand each; all of them get the sum.
__device__ __forceinline__ float edge_sum(const Edges& edges, bool real, uint row, const float* x, uint slots, uint slot) {
    float sum = 0.0f;
    if (edges.offsets != nullptr && real)
        for (uint e = edges.offsets[row] + threadIdx.x % 8; e < edges.offsets[row + 1]; e += 8)
            sum = fmaf(edges.weights[e], x[(size_t)edges.columns[e] * slots + slot], sum);
    #pragma unroll
    for (uint step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(EVERY_LANE, sum, step);
    return sum;
}

// The same for every slot at once, a lane each, with the same strands. `slots` lanes share a row; all of a warp call it.
__device__ __forceinline__ float edge_sums(const Edges& edges, bool real, uint row, const float* x, uint slots, uint slot) {
    float strands[8] = {};
    if (edges.offsets == nullptr) return 0.0f;
    uint from = real ? edges.offsets[row] : 0, to = real ? edges.offsets[row + 1] : 0;
    for (uint base = from; __any_sync(EVERY_LANE, base < to); base += slots) {
        uint e = base + slot, count = base < to ? min(slots, to - base) : 0;
        uint column = e < to ? edges.columns[e] : 0;
        float weight = e < to ? edges.weights[e] : 0.0f;
        for (uint first = 0; __any_sync(EVERY_LANE, first < count); first += 8) {
            #pragma unroll
            for (uint s = 0; s < 8; s++) {
                uint j = __shfl_sync(EVERY_LANE, column, first + s, slots);
                float a = __shfl_sync(EVERY_LANE, weight, first + s, slots);
                if (first + s < count) strands[s] = fmaf(a, x[(size_t)j * slots + slot], strands[s]);
            }
        }
    }
    return ((strands[0] + strands[4]) + (strands[2] + strands[6])) + ((strands[1] + strands[5]) + (strands[3] + strands[7]));
}

// From Ã s of a row to p, or to the gradient of the loss.
__device__ __forceinline__ float row_probability(const Group& group, const Cell& cell, uint name, float inverse, float flow,
                                                 float bias, uint last) {
    const float EPSILON = 1e-6f;
    size_t at = (size_t)name * group.slots + cell.slot;
    float a = inverse * (group.support[at] + flow) + bias;
    float p = 1.0f / (1.0f + expf(-a));
    if (last) {
        if (name < group.n) cell.probability[name] = p;
        return 0.0f;
    }
    bool noisy = name < group.n;
    float weight = noisy ? cell.noisy_weight : cell.clean_weight;
    if (cell.loss_weights != nullptr) weight = cell.loss_weights[noisy ? cell.n_clean + name : name - group.n];
    float toward_target = signbit(weight) ? 1.0f - p : p; // by the sign bit: a weight may be -0
    float gradient = -weight * (p * (1.0f - p)) / (toward_target + EPSILON);
    group.gradient_over_degree[at] = gradient * inverse;
    return gradient;
}

// Goes through the rows of a tile, 256 threads in 32 strands of rows. `each` is called once for each row and cell and gives what to
// sum; `total` gets the sum of the tile for each cell.
template <typename Row, typename Sum>
__device__ __forceinline__ void sparse_block(Tile tile, const Group* groups, const Cell* cells, bool forwards, Row each, Sum total) {
    __shared__ double sums[32][MAX_CELLS];
    bool own = tile.job & OWN;
    const Group& group = own ? groups[cells[tile.job & ~OWN].group] : groups[tile.job];
    uint slots = group.slots;
    const float* x = forwards ? group.support : group.gradient_over_degree;
    bool by_slot = !own && slots > 1;
    uint number = own ? tile.job & ~OWN : group.cells[by_slot ? threadIdx.x % slots : 0];
    const Cell& cell = cells[number == NOBODY ? 0 : number];
    Edges edges = own ? Edges{cell.offsets, cell.columns, cell.weights} : Edges{group.offsets, group.columns, group.weights};
    const float* inverses = own ? cell.inverse_degree : group.inverse_degree;
    uint n = own ? cell.n_own : group.n, lanes = by_slot ? slots : 8, lane = threadIdx.x % lanes;
    for (uint strand = threadIdx.x / lanes; strand < 32; strand += 256 / lanes) {
        double sum = 0.0;
        for (uint r = strand; r < TILE; r += 32) {
            uint row = tile.index * TILE + r;
            bool real = row < n;
            float flow = by_slot ? edge_sums(edges, real, row, x, slots, lane) : edge_sum(edges, real, row, x, slots, cell.slot);
            if (!real || number == NOBODY || (!by_slot && lane != 0)) continue;
            bool elsewhere = !own && group.touched[row] >> (by_slot ? lane : 0) & 1;
            float inverse = edges.offsets == nullptr ? 1.0f : inverses[row];
            sum += each(group, cell, own ? cell.rows[row] : row, row, inverse, flow, own, elsewhere);
        }
        if (by_slot || lane == 0) sums[strand][by_slot ? lane : 0] = sum;
    }
    __syncthreads();
    if (threadIdx.x >= (by_slot ? slots : 1) || number == NOBODY) return;
    double sum = sums[0][threadIdx.x];
    for (uint g = 1; g < 32; g++) sum += sums[g][threadIdx.x];
    total(cell, (own ? cell.n_shared_tiles : 0) + tile.index, sum);
}

extern "C" __global__ void __launch_bounds__(256, 4) probability(const Tile* tiles, const Group* groups, const Cell* cells,
                                                              uint last) {
    auto each = [last](const Group& group, const Cell& cell, uint name, uint, float inverse, float flow, bool, bool elsewhere) {
        float bias = cell.parameters[n_parameters(group.width) - 1];
        return elsewhere ? 0.0f : row_probability(group, cell, name, inverse, flow, bias, last);
    };
    sparse_block(tiles[blockIdx.x], groups, cells, true, each,
                 [](const Cell& cell, uint tile, double sum) { cell.bias_partial[tile] = sum; });
}

extern "C" __global__ void __launch_bounds__(256, 4) gather(const Tile* tiles, const Group* groups, const Cell* cells) {
    auto each = [](const Group& group, const Cell& cell, uint name, uint row, float, float flow, bool own, bool elsewhere) {
        float gradient = group.gradient_over_degree[(size_t)name * group.slots + cell.slot] + flow;
        if (own)
            cell.gradients[row] = in_halves(gradient * cell.own_scale);
        else
            group.gradients[(size_t)row * group.slots + cell.slot] = elsewhere ? 0 : in_halves(gradient * cell.shared_scale);
        return 0.0f;
    };
    sparse_block(tiles[blockIdx.x], groups, cells, false, each, [](const Cell&, uint, double) {});
}

// ---- Backward ----

// Starts copying SLICE rows: four slices of X, ∂s and which units are active.
template <bool WIDE>
__device__ __forceinline__ void fetch_backward(const Rows& rows, uint chunk, uint n_slices, uint first_slice, uint first_row,
                                               uint end, uint stage) {
    if (first_row < end) {
        #pragma unroll
        for (uint t = 0; t < 4; t++) {
            uint piece = t * 256 + threadIdx.x, r = piece / 32, slice = piece / 8 % 4, word = piece % 8;
            bool real = first_row + r < end && first_slice + slice < n_slices;
            size_t at = real ? ((size_t)(first_row + r) * n_slices + first_slice + slice) * 64 + word * 8 : 0;
            copy_async(stage + r * 512 + slice * 128 + word_in_row(r, word), rows.x + at, real ? 16 : 0);
        }
        uint gradients = stage + SLICE * 512, active = gradients + SLICE * (WIDE ? CHUNK : 1) * 4;
        if (WIDE) {
            uint r = threadIdx.x / 2 % 32, word = threadIdx.x % 2;
            bool real = first_row + r < end;
            size_t at = real ? (size_t)(first_row + r) * rows.slots + chunk * CHUNK : 0;
            if (threadIdx.x < 64)
                copy_async(gradients + r * 32 + word * 16, rows.gradients + at + word * 4, real ? 16 : 0);
            else if (threadIdx.x < 128 && word == 0)
                copy_async(active + r * 16, rows.active + at, real ? 16 : 0);
        } else if (threadIdx.x < 12) {
            bool first = threadIdx.x < 8; // ∂s, four rows a word; then active units, eight rows a word
            uint word = first ? threadIdx.x : threadIdx.x - 8, each = first ? 4 : 8, row = first_row + word * each;
            uint bytes = row < end ? min(16u, (end - row) * (16 / each)) : 0;
            const void* from = first ? (const void*)(rows.gradients + (bytes > 0 ? row : 0))
                                     : (const void*)(rows.active + (bytes > 0 ? row : 0));
            copy_async((first ? gradients : active) + word * 16, from, bytes);
        }
    }
    copies_end();
}

// Adds the products of SLICE rows in shared memory for the first N cells of the warp.
template <bool WIDE, uint N, uint M_TILES, uint CELLS>
__device__ __forceinline__ void add_products(float (&sums)[M_TILES][CELLS][2][4], float (&ones)[CELLS][2][2], uint x,
                                             const uint* gradients, const ushort* active, uint warp_m, uint warp_n, bool counts) {
    const uint ACROSS = WIDE ? CHUNK : 1, ONE = 0x3c003c00u, ONES[4] = {ONE, ONE, ONE, ONE};
    uint lane = lane_id(), quarter = lane % 4, a_row = lane / 16 * 8 + lane % 8, a_word = lane / 8 % 2;
    #pragma unroll 1 // more would not fit the registers
    for (uint step = 0; step < 2; step++) {
        uint b[N][2][2][2]; // high, low; units; rows
        #pragma unroll
        for (uint k = 0; k < 2; k++) {
            uint at = (step * 16 + k * 8 + quarter * 2) * ACROSS + warp_n * CELLS, g[2][CELLS], units[CELLS];
            if (WIDE) { // both cells at once
                uint2 g_0 = *(const uint2*)(gradients + at), g_1 = *(const uint2*)(gradients + at + ACROSS);
                uint u_0 = *(const uint*)(active + at), u_1 = *(const uint*)(active + at + ACROSS);
                g[0][0] = g_0.x, g[0][CELLS - 1] = g_0.y, g[1][0] = g_1.x, g[1][CELLS - 1] = g_1.y;
                units[0] = __byte_perm(u_0, u_1, 0x5410), units[CELLS - 1] = __byte_perm(u_0, u_1, 0x7632);
            } else {
                g[0][0] = gradients[at], g[1][0] = gradients[at + 1];
                units[0] = active[at] | (uint)active[at + 1] << 16;
            }
            #pragma unroll
            for (uint i = 0; i < N; i++) {
                uint high = __byte_perm(g[0][i], g[1][i], 0x5410), low = __byte_perm(g[0][i], g[1][i], 0x7632);
                #pragma unroll
                for (uint n = 0; n < 2; n++) {
                    uint mask = (units[i] >> (n * 8 + lane / 4) & 0x00010001u) * 0xffffu;
                    b[i][0][n][k] = high & mask;
                    b[i][1][n][k] = low & mask;
                }
            }
        }
        #pragma unroll
        for (uint m = 0; m < M_TILES; m++) {
            uint column = (warp_m * M_TILES + m) * 16, row = step * 16 + a_row;
            uint at = x + row * 512 + column / SLICE * 128, word = column % SLICE / 8 + a_word;
            uint a[2][4];
            load_transposed(a[0], at + word_in_row(row, word));
            load_transposed(a[1], at + word_in_row(row, 4 + word));
            #pragma unroll
            for (uint i = 0; i < N; i++) {
                float now[2][4];
                #pragma unroll
                for (uint product = 0; product < 3; product++) // as in `forward_block`
                    #pragma unroll
                    for (uint n = 0; n < 2; n++) {
                        if (product == 0) multiply(now[n], a[1], b[i][0][n][0], b[i][0][n][1]);
                        else multiply_add(now[n], a[0], b[i][2 - product][n][0], b[i][2 - product][n][1]);
                    }
                #pragma unroll
                for (uint e = 0; e < 8; e++) sums[m][i][e / 4][e % 4] += now[e / 4][e % 4];
            }
        }
        if (counts) {
            #pragma unroll
            for (uint i = 0; i < N; i++)
                #pragma unroll
                for (uint n = 0; n < 2; n++) {
                    float now[4]; // all rows alike
                    multiply(now, ONES, b[i][1][n][0], b[i][1][n][1]);
                    multiply_add(now, ONES, b[i][0][n][0], b[i][0][n][1]);
                    ones[i][n][0] += now[0];
                    ones[i][n][1] += now[1];
                }
        }
    }
}

// 256 threads: 128 columns of X times the units of the cells, over the rows of a slab. Wide, two warps share the columns and
// four the cells; narrow, eight warps share the columns and there is one cell.
template <bool WIDE>
__device__ __forceinline__ void backward_block(const Rows& rows, const Group& group, const Cell* cells, const uint* numbers,
                                               uint chunk, uint block, uint first_row, uint end, uint slab, bool own) {
    const uint STAGES = BACKWARD_STAGES, M_TILES = WIDE ? 4 : 1, CELLS = WIDE ? 2 : 1, ACROSS = WIDE ? CHUNK : 1;
    const uint STAGE = SLICE * (512 + ACROSS * 6);
    extern __shared__ __align__(128) unsigned char buffers[];
    uint warp = threadIdx.x / 32, lane = lane_id(), quarter = lane % 4;
    // Of the warps w and w + 4, which share a scheduler, one has the cells that a chunk fills first.
    uint warp_m = WIDE ? warp / 2 % 2 : warp, warp_n = WIDE ? warp % 2 + warp / 4 * 2 : 0;
    uint n_slices = group.width / SLICE, base = shared_address(buffers), n_steps = (end - first_row + SLICE - 1) / SLICE;
    uint n_there = 0; // a chunk fills the first place of every pair before the second
    #pragma unroll
    for (uint i = 0; i < CELLS; i++) n_there += numbers[warp_n * CELLS + i] != NOBODY;
    float sums[M_TILES][CELLS][2][4] = {}, ones[CELLS][2][2] = {};
    const bool counts = block == 0 && warp_m == 0;
    for (uint s = 0; s < STAGES - 1; s++)
        fetch_backward<WIDE>(rows, chunk, n_slices, block * 4, first_row + s * SLICE, end, base + s * STAGE);
    for (uint s = 0; s < n_steps; s++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads(); // these rows are there, and nobody reads the ones before them any more
        fetch_backward<WIDE>(rows, chunk, n_slices, block * 4, first_row + (s + STAGES - 1) * SLICE, end,
                             base + (s + STAGES - 1) % STAGES * STAGE);
        unsigned char* stage = buffers + s % STAGES * STAGE;
        const uint* gradients = (const uint*)(stage + SLICE * 512);
        const ushort* active = (const ushort*)(gradients + SLICE * ACROSS);
        uint x = base + s % STAGES * STAGE;
        if (!WIDE || n_there == 2) add_products<WIDE, CELLS>(sums, ones, x, gradients, active, warp_m, warp_n, counts);
        else if (n_there == 1) add_products<WIDE, 1>(sums, ones, x, gradients, active, warp_m, warp_n, counts);
    }
    #pragma unroll
    for (uint i = 0; i < CELLS; i++) {
        if (i >= n_there) continue;
        const Cell& cell = cells[numbers[warp_n * CELLS + i]];
        size_t number = slab + (own ? cell.n_shared_slabs : 0);
        float* partial = cell.partial + number * (group.width * HIDDEN + HIDDEN);
        #pragma unroll
        for (uint n = 0; n < 2; n++) {
            uint unit = n * 8 + quarter * 2;
            #pragma unroll
            for (uint m = 0; m < M_TILES; m++) {
                uint column = block * ROWS + (warp_m * M_TILES + m) * 16 + lane / 4;
                if (column >= group.width) continue; // as a whole: it is a multiple of 32
                float* at = partial + unit * group.width + column;
                at[0] = sums[m][i][n][0];
                at[group.width] = sums[m][i][n][1];
                at[8] = sums[m][i][n][2];
                at[group.width + 8] = sums[m][i][n][3];
            }
            if (counts && lane < 4) {
                partial[group.width * HIDDEN + unit] = ones[i][n][0];
                partial[group.width * HIDDEN + unit + 1] = ones[i][n][1];
            }
        }
    }
}

// A tile is a slab of rows, 128 columns of X and a chunk of the cells.
extern "C" __global__ void __launch_bounds__(256, 2) backward_wide(const Tile* tiles, const Group* groups, const Cell* cells) {
    const Group& group = groups[tiles[blockIdx.x].job];
    uint index = tiles[blockIdx.x].index, n_blocks = (group.width + ROWS - 1) / ROWS;
    uint chunk = index % group.n_chunks, block = index / group.n_chunks % n_blocks, slab = index / group.n_chunks / n_blocks;
    uint first = slab * group.slab;
    backward_block<true>(shared_rows(group), group, cells, group.cells + chunk * CHUNK, chunk, block, first,
                         min(group.n, first + group.slab), slab, false);
}

// A tile is a slab of rows of a cell, its own or those of its group, and 128 columns of X.
extern "C" __global__ void __launch_bounds__(256, 3) backward_narrow(const Tile* tiles, const Group* groups,
                                                                     const Cell* cells, uint own_slab) {
    Tile tile = tiles[blockIdx.x];
    uint number = tile.job & ~OWN;
    bool own = tile.job & OWN;
    const Group& group = groups[cells[number].group];
    Rows rows = own ? own_rows(cells[number]) : shared_rows(group);
    uint n_blocks = (group.width + ROWS - 1) / ROWS, slab = tile.index / n_blocks, size = own ? own_slab : group.slab;
    backward_block<false>(rows, group, cells, &number, 0, tile.index % n_blocks, slab * size, min(rows.n, (slab + 1) * size),
                          slab, own);
}

// ---- Adam ----

struct Step { float rate, root, weight_decay; };

// Moves parameter `i` of `count` and gives its new value.
__device__ __forceinline__ float move(float* parameters, uint count, uint i, float gradient, const Step& step) {
    const float BETA_1 = 0.9f, BETA_2 = 0.999f, EPSILON = 1e-8f;
    float value = parameters[i];
    gradient = gradient + step.weight_decay * value;
    float mean = BETA_1 * parameters[count + i] + (1.0f - BETA_1) * gradient;
    float square = BETA_2 * parameters[2 * count + i] + (1.0f - BETA_2) * gradient * gradient;
    value -= step.rate * mean / (sqrtf(square) / step.root + EPSILON);
    parameters[i] = value;
    parameters[count + i] = mean;
    parameters[2 * count + i] = square;
    return value;
}

// The sum over all 512 threads, for thread 0.
__device__ __forceinline__ double block_sum(double x, double* warps) {
    #pragma unroll
    for (uint step = 16; step > 0; step /= 2) x += __shfl_down_sync(EVERY_LANE, x, step);
    if (lane_id() == 0) warps[threadIdx.x / 32] = x;
    __syncthreads();
    double sum = 0.0;
    if (threadIdx.x == 0)
        for (uint w = 0; w < 16; w++) sum += warps[w];
    __syncthreads();
    return sum;
}

// A block of 512 threads does a unit of a cell; that of unit 0 does b₂ too. `scale`: of dropout.
extern "C" __global__ void __launch_bounds__(512) adam(const Group* groups, const Cell* cells, float rate, float root,
                                                       float weight_decay, float scale, float theta_scale) {
    const Step step = {rate, root, weight_decay};
    __shared__ float4 slices[4][128];
    __shared__ double warps[16];
    const Cell cell = cells[blockIdx.x / HIDDEN];
    uint unit = blockIdx.x % HIDDEN, width = groups[cell.group].width, count = n_parameters(width);
    uint slice = threadIdx.x / 128, lane = threadIdx.x % 128;
    size_t size = width * HIDDEN + HIDDEN;
    float bias = cell.parameters[width * HIDDEN + unit], theta_2 = cell.parameters[width * HIDDEN + HIDDEN + unit];
    float of_shared = 1.0f / (X_SCALE * cell.shared_scale), of_own = 1.0f / (X_SCALE * cell.own_scale);
    double product = 0.0; // Θ₁ᵀ G
    for (uint base = 0; base < width / 4; base += 128) {
        uint v = base + lane;
        float4 sum = make_float4(0, 0, 0, 0);
        if (v < width / 4) {
            const float* partial = cell.partial + unit * width + v * 4;
            #pragma unroll 8
            for (uint s = slice; s < cell.n_slabs; s += 4) {
                float4 term = *(const float4*)(partial + s * size);
                float factor = s < cell.n_shared_slabs ? of_shared : of_own;
                sum.x = fmaf(term.x, factor, sum.x);
                sum.y = fmaf(term.y, factor, sum.y);
                sum.z = fmaf(term.z, factor, sum.z);
                sum.w = fmaf(term.w, factor, sum.w);
            }
        }
        slices[slice][lane] = sum;
        __syncthreads();
        // A thread takes one column now: 512 of them are there.
        uint column = base * 4 + threadIdx.x;
        if (column < width) {
            const float* sums = (const float*)slices;
            float gradient = ((sums[threadIdx.x] + sums[512 + threadIdx.x]) + sums[1024 + threadIdx.x]) + sums[1536 + threadIdx.x];
            product += (double)cell.parameters[unit * width + column] * (double)gradient;
            float value = move(cell.parameters, count, unit * width + column, gradient * theta_2 * scale, step);
            store_theta(cell.theta, unit, column, value * theta_scale);
        }
        __syncthreads();
    }
    double flow = 0.0, bias_2 = 0.0; // G₀, ∂b₂
    for (uint s = threadIdx.x; s < cell.n_slabs; s += 512)
        flow += (double)cell.partial[s * size + width * HIDDEN + unit]
                / (s < cell.n_shared_slabs ? cell.shared_scale : cell.own_scale);
    for (uint t = threadIdx.x; unit == 0 && t < cell.n_tiles; t += 512) bias_2 += cell.bias_partial[t];
    product = block_sum(product, warps);
    flow = block_sum(flow, warps);
    bias_2 = block_sum(bias_2, warps);
    if (threadIdx.x != 0) return;
    move(cell.parameters, count, width * HIDDEN + unit, (float)flow * theta_2 * scale, step);
    move(cell.parameters, count, width * HIDDEN + HIDDEN + unit, (float)(scale * (product + bias * flow)), step);
    if (unit == 0) move(cell.parameters, count, count - 1, (float)bias_2, step);
}
