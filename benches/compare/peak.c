/* The peak speed of some threads: f32 multiply-adds, products of 16-bit integers, and reading memory.
 *
 *     cc -O3 -mavx2 -mfma -pthread peak.c -o peak && ./peak 2
 *
 * Prints one JSON object: operations (multiplications and additions) and bytes per second, best of three of 0.2 s each.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __x86_64__
#include <immintrin.h>
#define REGISTER "+x"
#else
#include <arm_neon.h>
#define REGISTER "+w"
#endif

#define CHAINS 12 /* enough to hide the latency of one instruction, few enough for the registers */
#define ROUNDS 1024
#define READ_BYTES ((size_t)128 << 20) /* per thread: beyond the usual caches */

#if defined(__AVX512BW__)
typedef __m512 Floats;
typedef __m512i Ints;
#define FMA _mm512_fmadd_ps
#define MADD(a, b, c) _mm512_add_epi32(a, _mm512_madd_epi16(b, c))
#elif defined(__AVX2__)
typedef __m256 Floats;
typedef __m256i Ints;
#define FMA _mm256_fmadd_ps
#define MADD(a, b, c) _mm256_add_epi32(a, _mm256_madd_epi16(b, c))
#elif defined(__x86_64__)
typedef __m128 Floats;
typedef __m128i Ints;
#define FMA(b, c, a) _mm_add_ps(a, _mm_mul_ps(b, c))
#define MADD(a, b, c) _mm_add_epi32(a, _mm_madd_epi16(b, c))
#else
typedef float32x4_t Floats;
typedef int32x4_t Ints;
#define FMA(b, c, a) vfmaq_f32(a, b, c)
#define MADD(a, b, c) vmlal_s16(a, vget_low_s16(vreinterpretq_s16_s32(b)), vget_low_s16(vreinterpretq_s16_s32(c)))
#endif

/* CPU time, which excludes other programs. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Each returns the operations or bytes of one call. The empty asm "changes" an operand, so that nothing is worked out ahead. */
static double floats(void *unused) {
    (void)unused;
    Floats sums[CHAINS], x, y, total;
    memset(sums, 0, sizeof sums);
    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    for (int i = 0; i < ROUNDS; i++) {
        __asm__ volatile("" : REGISTER(x), REGISTER(y));
        for (int c = 0; c < CHAINS; c++) sums[c] = FMA(x, y, sums[c]);
    }
    total = sums[0];
    for (int c = 1; c < CHAINS; c++) total = FMA(sums[c], y, total);
    __asm__ volatile("" : REGISTER(total));
    return 2.0 * ROUNDS * CHAINS * sizeof(Floats) / sizeof(float);
}

static double ints(void *unused) {
    (void)unused;
    Ints sums[CHAINS], x, y;
    memset(sums, 0, sizeof sums);
    memset(&x, 1, sizeof x);
    memset(&y, 1, sizeof y);
    for (int i = 0; i < ROUNDS; i++) {
        for (int c = 0; c < CHAINS; c++) {
            __asm__ volatile("" : REGISTER(x));
            sums[c] = MADD(sums[c], x, y);
        }
    }
    for (int c = 0; c < CHAINS; c++) __asm__ volatile("" : REGISTER(sums[c]));
#ifdef __x86_64__
    return 2.0 * ROUNDS * CHAINS * sizeof(Ints) / sizeof(int16_t);
#else
    return 2.0 * ROUNDS * CHAINS * 4; /* four products an instruction */
#endif
}

static double reading(void *memory) {
    const uint64_t *words = memory;
    uint64_t sum = 0;
    for (size_t i = 0; i < READ_BYTES / sizeof *words; i++) sum += words[i];
    __asm__ volatile("" : "+r"(sum));
    return READ_BYTES;
}

typedef struct {
    double (*work)(void *);
    pthread_barrier_t *start;
    double rate;
} Task;

static void *thread(void *argument) {
    Task *task = argument;
    void *memory = task->work == reading ? malloc(READ_BYTES) : NULL;
    if (memory) memset(memory, 1, READ_BYTES);
    pthread_barrier_wait(task->start);
    double done = 0, start = now(), end;
    do {
        done += task->work(memory);
        end = now();
    } while (end - start < 0.2);
    task->rate = done / (end - start);
    free(memory);
    return NULL;
}

static double best(double (*work)(void *), int n_threads) {
    double best = 0;
    for (int round = 0; round < 3; round++) {
        pthread_t threads[256];
        Task tasks[256];
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, n_threads);
        for (int t = 0; t < n_threads; t++) {
            tasks[t] = (Task){work, &start, 0};
            if (pthread_create(&threads[t], NULL, thread, &tasks[t])) exit(1);
        }
        double rate = 0;
        for (int t = 0; t < n_threads; t++) {
            pthread_join(threads[t], NULL);
            rate += tasks[t].rate;
        }
        if (rate > best) best = rate;
    }
    return best;
}

int main(int n_arguments, char **arguments) {
    int n_threads = n_arguments > 1 ? atoi(arguments[1]) : 2;
    if (n_threads < 1 || n_threads > 256) return fprintf(stderr, "error: 1 to 256 threads\n"), 1;
    printf("{\"threads\": %d, \"f32_gflops\": %.1f, \"i16_gops\": %.1f, \"read_gb_per_s\": %.1f}\n", n_threads,
           best(floats, n_threads) / 1e9, best(ints, n_threads) / 1e9, best(reading, n_threads) / 1e9);
}
