/* Attention of one query of one head over its visible keys and values.
 *
 * Sums go by lanes, so that their order depends only on the length, not on where the numbers are in memory.
 */
#include "products.h"

/* e^x for x <= 0, within two units in the last place: 2^n · e^r with |r| <= ln 2 / 2. */
static inline float exponential(float x)
{
    const float bounded = x > -87.0f ? x : -87.0f; /* also in place of NaN, which is no exponent */
    const float n = rintf(bounded * 1.44269504f);
    x = x < -87.0f ? -87.0f : x;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    union { int32_t bits; float value; } power = {((int32_t)n + 127) << 23};
    return p * power.value;
}

/* Where the keys and the values of a row are: of key/value head g in slot t at g · head + t · slot, and in the
 * column that `columns` has for slot t at t · sequences, where there are columns. */
typedef struct {
    const float *keys, *values;
    int64_t first, end, head, slot, column, sequences;
    const int32_t *columns;
} Seen;

static inline int64_t place(const Seen *seen, int64_t t)
{
    return t * seen->slot + (seen->columns ? seen->columns[t * seen->sequences] * seen->column : 0);
}

static inline float sum_of(const float *x, int64_t n)
{
    lanes parts = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) parts += *(const lanes *)(x + i);
    float sum = sum_of_lanes(parts);
    for (; i < n; i++) sum += x[i];
    return sum;
}

static inline float dot_product(const float *a, const float *b, const int64_t n)
{
    lanes parts = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) parts += *(const lanes *)(a + i) * *(const lanes *)(b + i);
    float sum = sum_of_lanes(parts);
    for (; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* n lanes of the values, whose sums the registers hold, mixed by the scores. */
static inline __attribute__((always_inline)) void mix(
    const Seen *seen, const float *values, const float *scores, float sum, float *mixed, const int n)
{
    lanes sums[BLOCKS];
    for (int b = 0; b < n; b++) sums[b] = (lanes){0};
    for (int64_t t = seen->first; t < seen->end; t++) {
        const float *value = values + place(seen, t), part = scores[t - seen->first];
        for (int b = 0; b < n; b++) sums[b] += *(const lanes *)(value + b * LANES) * part;
    }
    for (int b = 0; b < n; b++) *(lanes *)(mixed + b * LANES) = sums[b] / sum;
}

/* One head: softmax(q k · scale + bias) v. */
static inline __attribute__((always_inline)) void attend_as_wide(
    const Seen *seen, int64_t head, const float *query, const int64_t width, float scale, const float *bias,
    float *scores, float *mixed)
{
    const int64_t n = seen->end - seen->first;
    const float *keys = seen->keys + head * seen->head, *values = seen->values + head * seen->head;
    float largest = -INFINITY;
    for (int64_t t = 0; t < n; t++) {
        const int64_t at = place(seen, seen->first + t);
        for (int64_t i = 0; i < width; i += 16) __builtin_prefetch(values + at + i); /* they come next, from afar */
        scores[t] = dot_product(query, keys + at, width) * scale + (bias ? bias[seen->first + t] : 0.0f);
    }
#pragma omp simd reduction(max : largest)
    for (int64_t t = 0; t < n; t++) largest = scores[t] > largest ? scores[t] : largest;
    for (int64_t t = 0; t < n; t++) scores[t] = exponential(scores[t] - largest); /* NaN stays NaN */
    const float sum = sum_of(scores, n);
    int64_t i = 0;
    for (; i + BLOCKS * LANES <= width; i += BLOCKS * LANES) mix(seen, values + i, scores, sum, mixed + i, BLOCKS);
    for (; i + LANES <= width; i += LANES) mix(seen, values + i, scores, sum, mixed + i, 1);
    if (i < width && width >= LANES) { /* the last lanes, some of them again */
        i = width - LANES;
        mix(seen, values + i, scores, sum, mixed + i, 1);
        return;
    }
    for (; i < width; i++) {
        float total = 0.0f;
        for (int64_t t = 0; t < n; t++) total += scores[t] * values[place(seen, seen->first + t) + i];
        mixed[i] = total / sum;
    }
}

/* The most common width is a constant, so that the query stays in registers. */
static void attend(const Seen *seen, int64_t head, const float *query, int64_t width, float scale, const float *bias,
                   float *scores, float *mixed)
{
    if (width == 64) attend_as_wide(seen, head, query, 64, scale, bias, scores, mixed);
    else attend_as_wide(seen, head, query, width, scale, bias, scores, mixed);
}
