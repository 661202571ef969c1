// Sums and maxima over the lanes of a warp; every lane gets them.

__device__ __forceinline__ float warp_sum(float v) {
    #pragma unroll
    for (uint width = 16; width > 0; width /= 2) v += __shfl_xor_sync(EVERY_LANE, v, width);
    return v;
}

__device__ __forceinline__ float warp_max(float v) {
    #pragma unroll
    for (uint width = 16; width > 0; width /= 2) v = fmaxf(v, __shfl_xor_sync(EVERY_LANE, v, width));
    return v;
}
