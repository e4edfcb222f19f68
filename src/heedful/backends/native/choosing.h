/* Log-probabilities and the largest values of a row of logits. Rows are independent of each other. */
#include "attention.h"

/* Replace a row of logits by its log-probabilities. */
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

/* NaN counts as larger than any number, so that it is noticed. */
static inline int is_larger(float a, float b) { return a > b || (a != a && b == b); }

enum { STRETCH = 256 };

/* Find the k largest values, in order, and their places; of equal values, the first. */
static void top(const float *x, int64_t n, int64_t k, float *values, int64_t *places)
{
    int64_t count = 0;
    for (int64_t first = 0; first < n; first += STRETCH) {
        const int64_t end = n - first < STRETCH ? n : first + STRETCH;
        if (count == k) { /* most stretches have none of the largest; this test is fast */
            const float least = values[k - 1];
            int any_larger = 0;
#pragma omp simd reduction(| : any_larger)
            for (int64_t i = first; i < end; i++) any_larger |= !(x[i] <= least);
            if (!any_larger) continue;
        }
        for (int64_t i = first; i < end; i++) {
            if (count == k && !is_larger(x[i], values[k - 1])) continue;
            int64_t at = count < k ? count++ : k - 1;
            for (; at && is_larger(x[i], values[at - 1]); at--) values[at] = values[at - 1], places[at] = places[at - 1];
            values[at] = x[i], places[at] = i;
        }
    }
}
