// The common start of every kernel file of the networks: the type of activations, and the distribution of work.
//
// An image is stored pixel by pixel, channels side by side. With EXACT its numbers are f32, else bf16 (the upper half of an
// f32), which tensor cores multiply. Arithmetic is f32 either way. Threads take eight channels at a time.

#define THREADS 256

#ifdef EXACT
typedef float element;

__device__ __forceinline__ void load8(const element* from, float* v) {
    float4 low = *(const float4*)from, high = *(const float4*)(from + 4);
    v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
    v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
}

__device__ __forceinline__ void store8(element* to, const float* v) {
    *(float4*)to = make_float4(v[0], v[1], v[2], v[3]);
    *(float4*)(to + 4) = make_float4(v[4], v[5], v[6], v[7]);
}

__device__ __forceinline__ float to_float(element e) { return e; }
__device__ __forceinline__ element to_element(float f) { return f; }
#else
typedef ushort element;

__device__ __forceinline__ void load8(const element* from, float* v) {
    uint4 words = *(const uint4*)from;
    uint all[4] = {words.x, words.y, words.z, words.w};
    #pragma unroll
    for (uint i = 0; i < 4; i++) {
        v[2 * i] = __uint_as_float(all[i] << 16);
        v[2 * i + 1] = __uint_as_float(all[i] & 0xffff0000u);
    }
}

__device__ __forceinline__ uint two_elements(float first, float second) {
    uint both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

__device__ __forceinline__ void store8(element* to, const float* v) {
    *(uint4*)to = make_uint4(two_elements(v[0], v[1]), two_elements(v[2], v[3]), two_elements(v[4], v[5]),
                             two_elements(v[6], v[7]));
}

__device__ __forceinline__ float to_float(element e) { return __uint_as_float((uint)e << 16); }

__device__ __forceinline__ element to_element(float f) {
    element e;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(e) : "f"(f));
    return e;
}
#endif

// Eight numbers per channel of a table.
__device__ __forceinline__ void channel8(const float* from, float* v) {
    float4 low = *(const float4*)from, high = *(const float4*)(from + 4);
    v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
    v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
}

// How pixels × channels are spread over threads: a block takes `chunk` pixels and `lanes` groups of eight channels, a
// thread the same channels of every (256 / lanes)-th pixel. `lanes` is a power of two.
struct Spread {
    uint n_pixels, channels, lanes, chunk;
};

#define SPREAD_CHANNEL(s) ((blockIdx.y * (s).lanes + (threadIdx.x & ((s).lanes - 1))) * 8)
#define FOR_MY_PIXELS(s, pixel)                                                                                       \
    _Pragma("unroll 4") for (uint pixel = blockIdx.x * (s).chunk + threadIdx.x / (s).lanes,                             \
                             pixel##_end = min((s).n_pixels, (blockIdx.x + 1) * (s).chunk);                             \
                             pixel < pixel##_end; pixel += THREADS / (s).lanes)
