// Beside `warp_sum`; every lane gets it.

__device__ __forceinline__ float warp_max(float v) {
    #pragma unroll
    for (uint width = 16; width > 0; width /= 2) v = fmaxf(v, __shfl_xor_sync(EVERY_LANE, v, width));
    return v;
}
