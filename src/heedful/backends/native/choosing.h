/* What comes after the logits: their logprobs, and the largest of a row. Every row by itself. */
#include "attention.h"

/* In place. */
static void log_softmax(float *x, int64_t n)
{
    float largest = -INFINITY, sum;
    lanes parts = {0};
    int64_t i = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t j = 0; j < n; j++) largest = x[j] > largest ? x[j] : largest;
    for (; i + LANES <= n; i += LANES) {
        float some[LANES];
        for (int j = 0; j < LANES; j++) some[j] = exponential(x[i + j] - largest); /* NaN stays NaN */
        parts += *(const lanes *)some;
    }
    for (sum = sum_of_lanes(parts); i < n; i++) sum += exponential(x[i] - largest);
    const float rest = logf(sum);
    for (int64_t j = 0; j < n; j++) x[j] = (x[j] - largest) - rest; /* exact where it is near 0 */
}

/* NaN is larger than any number, so that it is seen. */
static inline int is_larger(float a, float b) { return a > b || (a != a && b == b); }

enum { STRETCH = 256 };

/* The k largest, in order, and where they are; of equal ones the first. */
static void top(const float *x, int64_t n, int64_t k, float *values, int64_t *places)
{
    int64_t held = 0;
    for (int64_t first = 0; first < n; first += STRETCH) {
        const int64_t end = n - first < STRETCH ? n : first + STRETCH;
        if (held == k) { /* most stretches have none, and that is soon seen */
            const float least = values[k - 1];
            int found = 0;
#pragma omp simd reduction(| : found)
            for (int64_t i = first; i < end; i++) found |= !(x[i] <= least);
            if (!found) continue;
        }
        for (int64_t i = first; i < end; i++) {
            if (held == k && !is_larger(x[i], values[k - 1])) continue;
            int64_t at = held < k ? held++ : k - 1;
            for (; at && is_larger(x[i], values[at - 1]); at--) values[at] = values[at - 1], places[at] = places[at - 1];
            values[at] = x[i], places[at] = i;
        }
    }
}
