// Bytes become numbers; the last image becomes a row of features, and gradients go the other way.

#define IMAGE_CHANNELS 8

struct Colours {
    float factor[3], offset[3];
};

// An image of height × width, with rows and columns of zeros around it, `top` and `left` of them before it.
struct Frame {
    uint height, width, out_height, out_width, top, left;
};

// Red, green and blue, then zeros up to eight channels: tensor cores want whole words. One thread a pixel of the output.
extern "C" __global__ void __launch_bounds__(THREADS) normalise_images(const unsigned char* pixels, uint n_pixels, Frame frame,
                                                                       Colours colours, element* out) {
    uint pixel = blockIdx.x * THREADS + threadIdx.x;
    if (pixel >= n_pixels) return;
    uint x = pixel % frame.out_width - frame.left; // wraps far beyond the width to the left of the image
    uint y = pixel / frame.out_width % frame.out_height - frame.top;
    size_t image = pixel / frame.out_width / frame.out_height;
    float v[IMAGE_CHANNELS] = {};
    if (x < frame.width && y < frame.height) {
        const unsigned char* from = pixels + ((image * frame.height + y) * frame.width + x) * 3;
        #pragma unroll
        for (uint c = 0; c < 3; c++) v[c] = fmaf((float)from[c], colours.factor[c], colours.offset[c]);
    }
    store8(out + (size_t)pixel * IMAGE_CHANNELS, v);
}

// The mean over `places` pixels of every image. One thread for eight channels of an image.
extern "C" __global__ void __launch_bounds__(THREADS) mean_features(const element* x, uint n_images, uint places,
                                                                    uint channels, float* features) {
    uint groups = channels / 8, index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= n_images * groups) return;
    uint image = index / groups, c = index % groups * 8;
    float sum[8] = {}, v[8];
    #pragma unroll 4
    for (uint p = 0; p < places; p++) {
        load8(x + ((size_t)image * places + p) * channels + c, v);
        #pragma unroll
        for (uint i = 0; i < 8; i++) sum[i] += v[i];
    }
    #pragma unroll
    for (uint i = 0; i < 8; i++) features[(size_t)image * channels + c + i] = sum[i] / (float)places;
}

// Every pixel gets its share of the gradient of the mean. One thread for eight channels of a pixel.
extern "C" __global__ void __launch_bounds__(THREADS) spread_mean_gradients(const float* gradients, uint n_images, uint places,
                                                                            uint channels, element* out) {
    uint groups = channels / 8;
    size_t index = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (index >= (size_t)n_images * places * groups) return;
    uint c = index % groups * 8, image = index / groups / places;
    float v[8];
    channel8(gradients + (size_t)image * channels + c, v);
    #pragma unroll
    for (uint i = 0; i < 8; i++) v[i] /= (float)places;
    store8(out + index * 8, v);
}

// Channel by channel instead of pixel by pixel. One thread a number.
extern "C" __global__ void __launch_bounds__(THREADS) flatten_features(const element* x, uint n_images, uint places,
                                                                       uint channels, float* features) {
    size_t index = (size_t)blockIdx.x * THREADS + threadIdx.x, size = (size_t)places * channels;
    if (index >= n_images * size) return;
    size_t image = index / size;
    uint within = index % size, c = within / places, p = within % places;
    features[index] = to_float(x[image * size + (size_t)p * channels + c]);
}

// The way back.
extern "C" __global__ void __launch_bounds__(THREADS) unflatten_gradients(const float* gradients, uint n_images, uint places,
                                                                          uint channels, element* out) {
    size_t index = (size_t)blockIdx.x * THREADS + threadIdx.x, size = (size_t)places * channels;
    if (index >= n_images * size) return;
    size_t image = index / size;
    uint within = index % size, p = within / channels, c = within % channels;
    out[index] = to_element(gradients[image * size + (size_t)c * places + p]);
}
