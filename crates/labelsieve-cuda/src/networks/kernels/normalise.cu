// Batch normalisation with the addition and the activation behind it, forwards and backwards. Sums are made in two stages,
// always in the same order: the same calls give the same bits. An activation is the range that it keeps values in: its ends
// stop the gradient.
//
// Of every normalisation a table keeps four numbers per channel, a row each:
//   factor = γ / σ, offset = β - mean · factor, mean, 1 / σ.

__device__ __forceinline__ void fill_table(float* table, uint channels, uint c, float scale, float shift, float mean,
                                           float variance, float epsilon) {
    float inverse = 1.0f / sqrtf(variance + epsilon), factor = scale * inverse;
    table[c] = factor;
    table[channels + c] = shift - mean * factor;
    table[2 * channels + c] = mean;
    table[3 * channels + c] = inverse;
}

// Σ x and Σ x².
extern "C" __global__ void __launch_bounds__(THREADS) value_sums(Spread s, const element* x, float* partial) {
    uint c = SPREAD_CHANNEL(s);
    float sum[8] = {}, square[8] = {};
    FOR_MY_PIXELS(s, pixel) {
        float v[8];
        load8(x + (size_t)pixel * s.channels + c, v);
        #pragma unroll
        for (uint i = 0; i < 8; i++) {
            sum[i] += v[i];
            square[i] = fmaf(v[i], v[i], square[i]);
        }
    }
    block_sums(s, sum, square, partial);
}

// The table of a batch, and the running statistics: a tenth of the way to the batch's, with the unbiased variance.
extern "C" __global__ void __launch_bounds__(THREADS) batch_table(const float* partial, uint n_partial, uint channels,
                                                                  uint n_pixels, float epsilon, const float* scale,
                                                                  const float* shift, float* running_mean, float* running_variance,
                                                                  float* table) {
    double sum, square;
    if (!total_sums(partial, n_partial, channels, &sum, &square)) return;
    uint c = blockIdx.x * 8 + threadIdx.x;
    double mean = sum / n_pixels, variance = square / n_pixels - mean * mean;
    if (variance < 0.0) variance = 0.0; // rounding
    fill_table(table, channels, c, scale[c], shift[c], (float)mean, (float)variance, epsilon);
    double unbiased = n_pixels > 1 ? variance * n_pixels / (n_pixels - 1) : variance;
    running_mean[c] = 0.9f * running_mean[c] + 0.1f * (float)mean;
    running_variance[c] = 0.9f * running_variance[c] + 0.1f * (float)unbiased;
}

// The table of the running statistics.
extern "C" __global__ void __launch_bounds__(THREADS) running_table(uint channels, float epsilon, const float* scale,
                                                                    const float* shift,
                                                                    const float* running_mean,
                                                                    const float* running_variance, float* table) {
    uint c = blockIdx.x * THREADS + threadIdx.x;
    if (c < channels) fill_table(table, channels, c, scale[c], shift[c], running_mean[c], running_variance[c], epsilon);
}

// y = x · factor + offset, plus `add` unless null, kept in [low, high].
extern "C" __global__ void __launch_bounds__(THREADS) normalise(Spread s, const element* x, const float* table,
                                                                const element* add, float low, float high, element* y) {
    uint c = SPREAD_CHANNEL(s);
    float factor[8], offset[8];
    channel8(table + c, factor);
    channel8(table + s.channels + c, offset);
    FOR_MY_PIXELS(s, pixel) {
        size_t at = (size_t)pixel * s.channels + c;
        float v[8], other[8] = {};
        load8(x + at, v);
        if (add != nullptr) load8(add + at, other);
        #pragma unroll
        for (uint i = 0; i < 8; i++) {
            v[i] = fminf(fmaxf(fmaf(v[i], factor[i], offset[i]) + other[i], low), high);
        }
        store8(y + at, v);
    }
}

// Σ g and Σ g (x - mean) of the gradients g behind the activation. `second`, unless null, is added to g; the mask comes from the
// output `y` where there was an addition, else from x. With `keep`, g is replaced by the sum behind the mask.
extern "C" __global__ void __launch_bounds__(THREADS) gradient_sums(Spread s, element* g, const element* second,
                                                                    const element* x, const element* y, const float* table,
                                                                    float low, float high, uint keep, float* partial) {
    uint c = SPREAD_CHANNEL(s);
    float factor[8], offset[8], mean[8];
    channel8(table + c, factor);
    channel8(table + s.channels + c, offset);
    channel8(table + 2 * s.channels + c, mean);
    float sum[8] = {}, product[8] = {};
    FOR_MY_PIXELS(s, pixel) {
        size_t at = (size_t)pixel * s.channels + c;
        float gradient[8], v[8], other[8] = {};
        load8(g + at, gradient);
        load8(x + at, v);
        if (second != nullptr) load8(second + at, other);
        #pragma unroll
        for (uint i = 0; i < 8; i++) gradient[i] += other[i];
        if (low == 0.0f) {
            if (y != nullptr) load8(y + at, other);
            #pragma unroll
            for (uint i = 0; i < 8; i++) {
                float out = y != nullptr ? other[i] : fmaf(v[i], factor[i], offset[i]);
                if (!(out > low && out < high)) gradient[i] = 0.0f;
            }
        }
        if (keep) store8(g + at, gradient);
        #pragma unroll
        for (uint i = 0; i < 8; i++) {
            sum[i] += gradient[i];
            product[i] = fmaf(gradient[i], v[i] - mean[i], product[i]);
        }
    }
    block_sums(s, sum, product, partial);
}

// Gradients of γ and β, and per channel what `input_gradients` needs, a row each: γ / σ, mean g, mean (g x̂) / σ.
extern "C" __global__ void __launch_bounds__(THREADS) gradient_table(const float* partial, uint n_partial, uint channels,
                                                                     uint n_pixels, const float* table, float* scale_gradients,
                                                                     float* shift_gradients, float* gradients) {
    double sum, product;
    if (!total_sums(partial, n_partial, channels, &sum, &product)) return;
    uint c = blockIdx.x * 8 + threadIdx.x;
    double inverse = table[3 * channels + c], along = product * inverse;
    scale_gradients[c] = (float)along;
    shift_gradients[c] = (float)sum;
    gradients[c] = table[c];
    gradients[channels + c] = (float)(sum / n_pixels);
    gradients[2 * channels + c] = (float)(along / n_pixels * inverse);
}

struct Gradients {
    float factor[8], mean_gradient[8], along[8], mean[8];
};

__device__ __forceinline__ void load_gradients(Gradients& k, const float* table, const float* gradients, uint channels, uint c) {
    channel8(gradients + c, k.factor);
    channel8(gradients + channels + c, k.mean_gradient);
    channel8(gradients + 2 * channels + c, k.along);
    channel8(table + 2 * channels + c, k.mean);
}

// γ / σ · (g - mean g - x̂ · mean (g x̂)).
__device__ __forceinline__ float input_gradient(const Gradients& k, uint i, float g, float x) {
    return k.factor[i] * (g - k.mean_gradient[i] - (x - k.mean[i]) * k.along[i]);
}

// Gradients of the input x. Unless `low` is minus infinity, g still has to be masked by the output, which x gives.
extern "C" __global__ void __launch_bounds__(THREADS) input_gradients(Spread s, const element* g, const element* x,
                                                                      const float* table, const float* gradients, float low,
                                                                      float high, element* out) {
    uint c = SPREAD_CHANNEL(s);
    float factor[8], offset[8];
    channel8(table + c, factor);
    channel8(table + s.channels + c, offset);
    Gradients k;
    load_gradients(k, table, gradients, s.channels, c);
    FOR_MY_PIXELS(s, pixel) {
        size_t at = (size_t)pixel * s.channels + c;
        float gradient[8], v[8];
        load8(g + at, gradient);
        load8(x + at, v);
        #pragma unroll
        for (uint i = 0; i < 8; i++) {
            float y = fmaf(v[i], factor[i], offset[i]);
            if (low == 0.0f && !(y > low && y < high)) gradient[i] = 0.0f;
            gradient[i] = input_gradient(k, i, gradient[i], v[i]);
        }
        store8(out + at, gradient);
    }
}

// Images of height × width, and windows over them.
struct Windows {
    uint n_images, height, width, channels, out_height, out_width, kernel, stride, padding;
};

// Normalisation, activation and max-pool in one: the normalised image in between is never written. Keeps, unless null, which place
// of its window won (the first of the largest; 255 where the activation lets no gradient through) and the x there. One thread for
// eight channels of a window.
extern "C" __global__ void __launch_bounds__(THREADS) normalise_pool(Windows w, const element* x, const float* table,
                                                                     float low, float high, element* y, unsigned char* winners,
                                                                     element* winning_x) {
    uint groups = w.channels / 8;
    size_t index = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (index >= (size_t)w.n_images * w.out_height * w.out_width * groups) return;
    uint c = index % groups * 8;
    size_t rest = index / groups;
    uint ox = rest % w.out_width;
    rest /= w.out_width;
    uint oy = rest % w.out_height;
    size_t image = rest / w.out_height;
    float factor[8], offset[8], best[8], best_x[8];
    uint winner[8];
    channel8(table + c, factor);
    channel8(table + w.channels + c, offset);
    #pragma unroll
    for (uint i = 0; i < 8; i++) best[i] = -INFINITY, best_x[i] = 0.0f, winner[i] = 0;
    for (uint ky = 0; ky < w.kernel; ky++) {
        uint iy = oy * w.stride + ky - w.padding; // wraps far beyond the height above the image
        if (iy >= w.height) continue;
        for (uint kx = 0; kx < w.kernel; kx++) {
            uint ix = ox * w.stride + kx - w.padding;
            if (ix >= w.width) continue;
            float v[8];
            load8(x + ((image * w.height + iy) * w.width + ix) * w.channels + c, v);
            #pragma unroll
            for (uint i = 0; i < 8; i++) {
                float out = fmaf(v[i], factor[i], offset[i]);
                if (out > best[i]) best[i] = out, best_x[i] = v[i], winner[i] = ky * w.kernel + kx;
            }
        }
    }
    if (winners != nullptr) {
        uint words[2] = {};
        #pragma unroll
        for (uint i = 0; i < 8; i++) {
            uint which = low == 0.0f && !(best[i] > low && best[i] < high) ? 255 : winner[i];
            words[i / 4] |= which << 8 * (i % 4);
        }
        *(uint2*)(winners + index * 8) = make_uint2(words[0], words[1]);
        store8(winning_x + index * 8, best_x);
    }
    #pragma unroll
    for (uint i = 0; i < 8; i++) best[i] = fminf(fmaxf(best[i], low), high);
    store8(y + index * 8, best);
}

// Gradients of the input of `normalise_pool`: each pixel gathers from the windows that it won. One thread for eight channels
// of a pixel.
extern "C" __global__ void __launch_bounds__(THREADS) pool_input_gradients(Windows w, const element* g,
                                                                           const unsigned char* winners, const element* x,
                                                                           const float* table, const float* gradients,
                                                                           element* out) {
    uint groups = w.channels / 8;
    size_t index = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (index >= (size_t)w.n_images * w.height * w.width * groups) return;
    uint c = index % groups * 8;
    size_t rest = index / groups;
    uint px = rest % w.width + w.padding;
    rest /= w.width;
    uint py = rest % w.height + w.padding;
    size_t image = rest / w.height;
    float sum[8] = {}, v[8];
    uint from_y = py < w.kernel ? 0 : (py - w.kernel) / w.stride + 1, to_y = min(py / w.stride + 1, w.out_height);
    uint from_x = px < w.kernel ? 0 : (px - w.kernel) / w.stride + 1, to_x = min(px / w.stride + 1, w.out_width);
    for (uint oy = from_y; oy < to_y; oy++) {
        for (uint ox = from_x; ox < to_x; ox++) {
            uint mine = (py - oy * w.stride) * w.kernel + px - ox * w.stride;
            size_t at = ((image * w.out_height + oy) * w.out_width + ox) * w.channels + c;
            uint2 who = *(const uint2*)(winners + at);
            load8(g + at, v);
            #pragma unroll
            for (uint i = 0; i < 8; i++) {
                uint winner = (i < 4 ? who.x >> 8 * i : who.y >> 8 * (i - 4)) & 255;
                if (winner == mine) sum[i] += v[i];
            }
        }
    }
    Gradients k;
    load_gradients(k, table, gradients, w.channels, c);
    load8(x + index * 8, v);
    #pragma unroll
    for (uint i = 0; i < 8; i++) sum[i] = input_gradient(k, i, sum[i], v[i]);
    store8(out + index * 8, sum);
}
