/* What comes after the logits: their logprobs, and the largest of a row. Every row by itself. */
#include "attention.h"

static void log_softmax(const float *x, int64_t n, float *y)
{
    float largest = -INFINITY;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < n; i++) largest = x[i] > largest ? x[i] : largest;
    for (int64_t i = 0; i < n; i++) y[i] = exponential(x[i] - largest); /* NaN stays NaN */
    const float rest = logf(sum_of(y, n));
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - largest) - rest; /* exact where it is near 0 */
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
