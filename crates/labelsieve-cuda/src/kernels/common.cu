// The common start of every kernel file. No header is included: NVRTC then needs no CUDA installation beside it.

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long long ulong64;

#define EVERY_LANE 0xffffffffu
#define HIDDEN 16
#define INFINITY __int_as_float(0x7f800000)

__device__ __forceinline__ uint lane_id() { return threadIdx.x & 31; }

__device__ __forceinline__ uint lanes_below() { return (1u << lane_id()) - 1; }

__device__ __forceinline__ float from_half(ushort h) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}

__device__ __forceinline__ ushort to_half(float f) {
    ushort h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}

// The similarity of two rows: the CPU's `dot`, bit for bit. A warp is the 32 running sums, added up in halves; every
// product and every sum is rounded on its own. All lanes get the result.
__device__ __forceinline__ float dot(const float* a, const float* b, uint dim) {
    float sum = 0.0f;
    #pragma unroll 4
    for (uint c = lane_id(); c < dim; c += 32) sum = __fadd_rn(sum, __fmul_rn(a[c], b[c]));
    #pragma unroll
    for (uint width = 16; width > 0; width /= 2)
        sum = __fadd_rn(sum, __shfl_down_sync(EVERY_LANE, sum, width));
    return __fadd_rn(__shfl_sync(EVERY_LANE, sum, 0), 0.0f); // -0.0 becomes 0.0
}

// The sum over the warp, in every lane.
__device__ __forceinline__ float warp_sum(float x) {
    #pragma unroll
    for (uint width = 16; width > 0; width /= 2) x += __shfl_xor_sync(EVERY_LANE, x, width);
    return x;
}

// The order of neighbour lists: more similar first, then lower index.
__device__ __forceinline__ bool precedes(float a, uint a_index, float b, uint b_index) {
    return a > b || (a == b && a_index < b_index);
}

// A number that grows with `x`.
__device__ __forceinline__ uint rising(float x) {
    uint bits = __float_as_uint(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float from_rising(uint key) {
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

// One number for a neighbour, the larger the earlier in the list. Never 0.
__device__ __forceinline__ ulong64 list_key(float similarity, uint index) {
    return ((ulong64)rising(similarity) << 32) | (uint)~index;
}

__device__ __forceinline__ float key_similarity(ulong64 key) { return from_rising((uint)(key >> 32)); }
__device__ __forceinline__ uint key_index(ulong64 key) { return ~(uint)key; }

// Sorts `count` keys in shared memory, a power of two, largest first. `member` of `n_members` threads call it together.
template <typename Barrier>
__device__ __forceinline__ void sort_falling(
    volatile ulong64* keys, uint count, uint member, uint n_members, Barrier barrier) {
    for (uint size = 2; size <= count; size *= 2) {
        for (uint step = size / 2; step > 0; step /= 2) {
            for (uint pair = member; pair < count / 2; pair += n_members) {
                uint low = 2 * step * (pair / step) + pair % step, high = low + step;
                ulong64 a = keys[low], b = keys[high];
                bool falling = (low & size) == 0;
                if ((a < b) == falling) {
                    keys[low] = b;
                    keys[high] = a;
                }
            }
            barrier();
        }
    }
}

// The random numbers of labelsieve::random: the n-th number of a stream is a function of its key and n.
#define GOLDEN 0x9e3779b97f4a7c15ull

__device__ __forceinline__ ulong64 mix(ulong64 x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

__device__ __forceinline__ ulong64 branch(ulong64 key, ulong64 label) { return mix(key ^ mix(label + GOLDEN)); }
__device__ __forceinline__ ulong64 random_bits(ulong64 key, ulong64 position) { return mix(key + position * GOLDEN); }
