// Convolutions of each channel by itself, forwards and backwards. They multiply too little for tensor cores to help, and zeros
// may stand on one side of an image only, which libraries do not offer everywhere. Weights are f32: row by row, column by
// column, channel by channel. Threads take eight channels at a time.

struct Depthwise {
    uint n_images, height, width, channels, out_height, out_width, kernel, stride, top, left;
};

// One thread for eight channels of an output pixel.
extern "C" __global__ void __launch_bounds__(THREADS) depthwise(Depthwise d, const element* x, const float* weights,
                                                                element* y) {
    uint groups = d.channels / 8;
    size_t index = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (index >= (size_t)d.n_images * d.out_height * d.out_width * groups) return;
    uint c = index % groups * 8;
    size_t rest = index / groups;
    uint ox = rest % d.out_width;
    rest /= d.out_width;
    uint oy = rest % d.out_height;
    size_t image = rest / d.out_height;
    float sum[8] = {}, v[8], w[8];
    for (uint ky = 0; ky < d.kernel; ky++) {
        uint iy = oy * d.stride + ky - d.top; // wraps far beyond the height above the image
        if (iy >= d.height) continue;
        for (uint kx = 0; kx < d.kernel; kx++) {
            uint ix = ox * d.stride + kx - d.left;
            if (ix >= d.width) continue;
            load8(x + ((image * d.height + iy) * d.width + ix) * d.channels + c, v);
            channel8(weights + (size_t)(ky * d.kernel + kx) * d.channels + c, w);
            #pragma unroll
            for (uint i = 0; i < 8; i++) sum[i] = fmaf(v[i], w[i], sum[i]);
        }
    }
    store8(y + index * 8, sum);
}

// Gradients of the input: each pixel gathers from the outputs that read it. One thread for eight channels of a pixel.
extern "C" __global__ void __launch_bounds__(THREADS) depthwise_input_gradients(Depthwise d, const element* g,
                                                                                const float* weights, element* out) {
    uint groups = d.channels / 8;
    size_t index = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (index >= (size_t)d.n_images * d.height * d.width * groups) return;
    uint c = index % groups * 8;
    size_t rest = index / groups;
    uint px = rest % d.width + d.left;
    rest /= d.width;
    uint py = rest % d.height + d.top;
    size_t image = rest / d.height;
    float sum[8] = {}, v[8], w[8];
    for (uint ky = 0; ky < d.kernel && ky <= py; ky++) {
        uint oy = (py - ky) / d.stride;
        if ((py - ky) % d.stride != 0 || oy >= d.out_height) continue;
        for (uint kx = 0; kx < d.kernel && kx <= px; kx++) {
            uint ox = (px - kx) / d.stride;
            if ((px - kx) % d.stride != 0 || ox >= d.out_width) continue;
            load8(g + ((image * d.out_height + oy) * d.out_width + ox) * d.channels + c, v);
            channel8(weights + (size_t)(ky * d.kernel + kx) * d.channels + c, w);
            #pragma unroll
            for (uint i = 0; i < 8; i++) sum[i] = fmaf(v[i], w[i], sum[i]);
        }
    }
    store8(out + index * 8, sum);
}

// Adds x · g of one tap, where its place lies inside the image.
__device__ __forceinline__ void add_tap(const Depthwise& d, uint tap, const element* x, size_t image, uint oy, uint ox, uint c,
                                        const float* g, float* sum) {
    if (tap >= d.kernel * d.kernel) return;
    uint iy = oy * d.stride + tap / d.kernel - d.top, ix = ox * d.stride + tap % d.kernel - d.left;
    if (iy >= d.height || ix >= d.width) return;
    float v[8];
    load8(x + ((image * d.height + iy) * d.width + ix) * d.channels + c, v);
    #pragma unroll
    for (uint i = 0; i < 8; i++) sum[i] = fmaf(v[i], g[i], sum[i]);
}

// Σ x · g of two taps, `tap` and the next. The spread is that of the output's pixels.
extern "C" __global__ void __launch_bounds__(THREADS) depthwise_tap_sums(Spread s, Depthwise d, uint tap, const element* g,
                                                                         const element* x, float* partial) {
    uint c = SPREAD_CHANNEL(s);
    float first[8] = {}, second[8] = {};
    FOR_MY_PIXELS(s, pixel) {
        uint ox = pixel % d.out_width, oy = pixel / d.out_width % d.out_height;
        size_t image = pixel / d.out_width / d.out_height;
        float gradient[8];
        load8(g + (size_t)pixel * s.channels + c, gradient);
        add_tap(d, tap, x, image, oy, ox, c, gradient, first);
        add_tap(d, tap + 1, x, image, oy, ox, c, gradient, second);
    }
    block_sums(s, first, second, partial);
}

// The gradients of the weights of two taps, a row each; of one where there is no second.
extern "C" __global__ void __launch_bounds__(THREADS) depthwise_tap_totals(const float* partial, uint n_partial, uint channels,
                                                                           uint has_second, float* gradients) {
    double first, second;
    if (!total_sums(partial, n_partial, channels, &first, &second)) return;
    uint c = blockIdx.x * 8 + threadIdx.x;
    gradients[c] = (float)first;
    if (has_second) gradients[channels + c] = (float)second;
}
