/* The layers of a Transformer over rows of tokens, on a CPU, for generation.
 *
 * A row is one token of one sequence. Every number of a row is computed in an order that depends on nothing else
 * in the batch, so that an answer is the same, bit for bit, alone and in company.
 *
 * Shapes: R rows, D model width, H heads, G key/value heads, K head width, N outputs, C slots, Q columns.
 */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

/* LANES outputs stand side by side in a packed matrix; a pass over the inputs fills BLOCKS of them for up to ROWS
 * rows, as many as the registers hold. */
#if defined(__AVX512F__)
enum { LANES = 16, BLOCKS = 4, ROWS = 6 };
#elif defined(__AVX2__)
enum { LANES = 8, BLOCKS = 2, ROWS = 6 };
#else
enum { LANES = 4, BLOCKS = 2, ROWS = 6 };
#endif

enum { WORTH = 1 << 14 }; /* below so many small steps of work, waking other threads takes longer */

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));

/* Packed (out / LANES, in, LANES) in float, or (out / LANES, in / 4, LANES, 4) in 8 bits, raised by 128 each. */
typedef struct {
    int64_t n_in, n_out, bits;
    const void *weights;
    const float *scales, *bias; /* one for each output; no scales in float, a bias or none */
} Matrix;

typedef struct {
    int64_t kind; /* 0 none, 1 layer, 2 root mean square */
    const float *weight, *bias;
    float eps;
} Norm;

typedef struct {
    Matrix inward, out, cross_query, cross_out, wide, narrow; /* cross_query.n_in = 0: no memory is read */
    Norm norms[3];                                            /* of attention, cross-attention, feed-forward */
} Layer;

typedef struct {
    int64_t n_layers, d_model, n_heads, n_kv_heads, d_head;
    int64_t norm_first, activation, gated, n_turned, paired;
    float scale, cross_scale;
    const Layer *layers;
    Norm entry, last;
} Stack;

/* Which rows run, and where their keys and values are. */
typedef struct {
    int64_t n_rows, n_columns, n_beams;
    const int32_t *sequence, *slot; /* of each row: whose token it is, and where its key goes */
    const int32_t *first, *end;     /* of each row: the slots it sees */
    const int32_t *origin;          /* (C, sequences): the column that holds a sequence's key of a slot */
    int64_t n_sequences;
    float *const *keys, *const *values; /* of each layer: (C, Q, G, K) */
    const float *bias;                  /* (H, C) added to the scores, of each row where bias_step is not 0 */
    int64_t bias_step, bias_width, longest; /* no row sees more slots, or source tokens, than the longest */
    const float *cosines, *sines; /* (R, n_turned / 2) */
    const float *const *memory;   /* of each layer: (tokens, 2 G K), the keys and the values of the sources */
    const int64_t *source, *n_source; /* of each sentence: its first token there, and how many */
} Rows;

/* ---- products ---- */

/* The outputs of one row that stand side by side, and their bias; a matrix may end within them. */
static inline __attribute__((always_inline)) void write_lanes(const Matrix *m, lanes sums, float *y, int64_t n)
{
    const int64_t left = m->n_out - n;
    if (left >= LANES) {
        *(lanes *)(y + n) = m->bias ? sums + *(const lanes *)(m->bias + n) : sums;
        return;
    }
    for (int64_t j = 0; j < left; j++) y[n + j] = sums[j] + (m->bias ? m->bias[n + j] : 0.0f);
}

static inline __attribute__((always_inline)) void block_float(
    const Matrix *m, const float *x, float *y, int64_t n0, const int n_rows)
{
    const int64_t k = m->n_in;
    const float *w = (const float *)m->weights + n0 * k;
    lanes sums[ROWS][BLOCKS];
    for (int r = 0; r < n_rows; r++)
        for (int b = 0; b < BLOCKS; b++) sums[r][b] = (lanes){0};
    for (int64_t i = 0; i < k; i++) {
        lanes part[BLOCKS];
        for (int b = 0; b < BLOCKS; b++) part[b] = *(const lanes *)(w + (b * k + i) * LANES);
        for (int r = 0; r < n_rows; r++) {
            const float factor = x[r * k + i];
            for (int b = 0; b < BLOCKS; b++) sums[r][b] += part[b] * factor;
        }
    }
    for (int r = 0; r < n_rows; r++)
        for (int b = 0; b < BLOCKS; b++) write_lanes(m, sums[r][b], y + r * m->n_out, n0 + b * LANES);
}

typedef int32_t counts __attribute__((vector_size(4 * LANES), aligned(4)));

/* Four weights of each lane times four inputs, added up. */
static inline __attribute__((always_inline)) counts multiply_add(counts sum, counts weights, int32_t inputs)
{
#ifdef __AVX512VNNI__
    return (counts)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)weights, _mm512_set1_epi32(inputs));
#elif defined(__AVX2__) && !defined(__AVX512F__)
    /* Bytes 0 and 2, then 1 and 3, as pairs of 16 bits: exact, where the one-step product of bytes saturates. */
    const __m256i low = _mm256_set1_epi32(0x00ff00ff);
    const int32_t even = ((int8_t)inputs & 0xffff) | (int32_t)((uint32_t)(int8_t)(inputs >> 16) << 16);
    const int32_t odd = ((int8_t)(inputs >> 8) & 0xffff) | (int32_t)((uint32_t)(int8_t)(inputs >> 24) << 16);
    const __m256i w = (__m256i)weights;
    const __m256i a = _mm256_madd_epi16(_mm256_and_si256(w, low), _mm256_set1_epi32(even));
    const __m256i b = _mm256_madd_epi16(_mm256_and_si256(_mm256_srli_epi32(w, 8), low), _mm256_set1_epi32(odd));
    return (counts)_mm256_add_epi32((__m256i)sum, _mm256_add_epi32(a, b));
#else
    for (int shift = 0; shift < 32; shift += 8)
        sum += ((weights >> shift) & 255) * (int32_t)(int8_t)(inputs >> shift);
    return sum;
#endif
}

static inline __attribute__((always_inline)) void block_int8(
    const Matrix *m, const int8_t *x, const float *steps, const int32_t *totals, float *y, int64_t n0,
    const int n_rows)
{
    const int64_t k = (m->n_in + 3) / 4 * 4;
    const uint8_t *w = (const uint8_t *)m->weights + n0 * k;
    counts sums[ROWS][BLOCKS];
    for (int r = 0; r < n_rows; r++)
        for (int b = 0; b < BLOCKS; b++) sums[r][b] = (counts){0};
    for (int64_t i = 0; i < k; i += 4) {
        counts part[BLOCKS];
        for (int b = 0; b < BLOCKS; b++) part[b] = *(const counts *)(w + (b * k + i) * LANES);
        for (int r = 0; r < n_rows; r++) {
            int32_t four;
            memcpy(&four, x + r * k + i, 4);
            for (int b = 0; b < BLOCKS; b++) sums[r][b] = multiply_add(sums[r][b], part[b], four);
        }
    }
    for (int r = 0; r < n_rows; r++)
        for (int b = 0; b < BLOCKS; b++) {
            const int64_t n = n0 + b * LANES;
            const lanes exact = __builtin_convertvector(sums[r][b] - 128 * totals[r], lanes);
            write_lanes(m, exact * *(const lanes *)(m->scales + n) * steps[r], y + r * m->n_out, n);
        }
}

/* Each row by its own largest value, so that no row knows another. */
static void to_int8(const float *x, int64_t n, int8_t *q, float *step, int32_t *total)
{
    const int64_t padded = (n + 3) / 4 * 4;
    int32_t most = 0; /* a float without its sign is ordered as an integer is, and NaN above all */
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, x + i, 4);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    float largest;
    memcpy(&largest, &most, 4);
    const float levels = largest > 0.0f ? 127.0f / largest : 0.0f;
    int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        const int32_t level = (int32_t)rintf(x[i] * levels);
        q[i] = (int8_t)level;
        sum += level;
    }
    for (int64_t i = n; i < padded; i++) q[i] = 0;
    *step = largest / 127.0f; /* NaN stays NaN */
    *total = sum;
}

/* The number of rows as a constant, so that the sums stay in registers. */
#define EVERY_SIZE(block, ...)                     \
    switch (n_rows) {                              \
    case 1: block(__VA_ARGS__, 1); break;          \
    case 2: block(__VA_ARGS__, 2); break;          \
    case 3: block(__VA_ARGS__, 3); break;          \
    case 4: block(__VA_ARGS__, 4); break;          \
    case 5: block(__VA_ARGS__, 5); break;          \
    default: block(__VA_ARGS__, ROWS);             \
    }

/* y (R, N) = x (R, in) times the matrix, and its bias. */
static void product(const Matrix *m, const float *x, int64_t rows, float *y, int8_t *small, float *steps, int32_t *totals)
{
    const int64_t step = LANES * BLOCKS, k = (m->n_in + 3) / 4 * 4;
    if (m->bits == 8) {
#pragma omp parallel for schedule(static) if (rows * k > WORTH)
        for (int64_t r = 0; r < rows; r++)
            to_int8(x + r * m->n_in, m->n_in, small + r * k, steps + r, totals + r);
    }
#pragma omp parallel for schedule(static)
    for (int64_t n0 = 0; n0 < m->n_out; n0 += step)
        for (int64_t r = 0; r < rows; r += ROWS) {
            const int n_rows = rows - r < ROWS ? (int)(rows - r) : ROWS;
            if (m->bits == 8) {
                EVERY_SIZE(block_int8, m, small + r * k, steps + r, totals + r, y + r * m->n_out, n0)
            } else {
                EVERY_SIZE(block_float, m, x + r * m->n_in, y + r * m->n_out, n0)
            }
        }
}

/* ---- parts ---- */

static void normalise(const Norm *norm, const float *x, int64_t n, float *y)
{
    float mean = 0.0f, square = 0.0f;
    if (norm->kind == 1) {
#pragma omp simd reduction(+ : mean)
        for (int64_t i = 0; i < n; i++) mean += x[i];
        mean /= n;
    }
#pragma omp simd reduction(+ : square)
    for (int64_t i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean);
    const float size = 1.0f / sqrtf(square / n + norm->eps);
    for (int64_t i = 0; i < n; i++) {
        const float scaled = (x[i] - mean) * size;
        y[i] = scaled * (norm->weight ? norm->weight[i] : 1.0f) + (norm->bias ? norm->bias[i] : 0.0f);
    }
}

/* e^x for x <= 0, within two units in the last place: 2^n · e^r with |r| <= ln 2 / 2. */
static inline float exponential(float x)
{
    x = x < -87.0f ? -87.0f : x;
    const float n = rintf(x * 1.44269504f);
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

static inline float sigmoid(float x)
{
    const float e = exponential(-fabsf(x));
    return x >= 0 ? 1.0f / (1.0f + e) : e / (1.0f + e);
}

static inline float activate(float x, int64_t kind)
{
    switch (kind) {
    case 0: return x > 0 ? x : x != x ? x : 0.0f;
    case 1: return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    case 2: return x * sigmoid(1.59576912f * (x + 0.044715f * x * x * x));
    default: return x * sigmoid(x);
    }
}

/* One query over the keys of slots first to end: softmax(q k · scale + bias) v. `key(t)` is found by `place`. */
static inline __attribute__((always_inline)) void attend(
    const float *query, int64_t width, float scale, const float *bias, int64_t first, int64_t end, float *scores,
    const float *keys, const float *values, int64_t stride, const int32_t *origin, int64_t n_sequences,
    int64_t row_size, float *mixed)
{
    float largest = -INFINITY, sum = 0.0f;
    for (int64_t t = first; t < end; t++) {
        const float *key = keys + (origin ? t * stride + origin[t * n_sequences] * row_size : t * stride);
        float dot = 0.0f;
#pragma omp simd reduction(+ : dot)
        for (int64_t i = 0; i < width; i++) dot += query[i] * key[i];
        dot = dot * scale + (bias ? bias[t] : 0.0f);
        scores[t - first] = dot;
        largest = dot > largest || dot != dot ? dot : largest;
    }
    for (int64_t t = 0; t < end - first; t++) scores[t] = exponential(scores[t] - largest);
    for (int64_t t = 0; t < end - first; t++) sum += scores[t];
    memset(mixed, 0, width * sizeof *mixed);
    for (int64_t t = first; t < end; t++) {
        const float *value = values + (origin ? t * stride + origin[t * n_sequences] * row_size : t * stride);
        const float share = scores[t - first];
#pragma omp simd
        for (int64_t i = 0; i < width; i++) mixed[i] += share * value[i];
    }
    for (int64_t i = 0; i < width; i++) mixed[i] /= sum;
}

/* Turn a head by its position: pairs (i, i + half) or (2 i, 2 i + 1). */
static void turn(float *head, int64_t n_turned, int64_t paired, const float *cosines, const float *sines)
{
    const int64_t half = n_turned / 2;
    for (int64_t i = 0; i < half; i++) {
        float *a = head + (paired ? 2 * i : i), *b = head + (paired ? 2 * i + 1 : i + half);
        const float first = *a, second = *b;
        *a = first * cosines[i] - second * sines[i];
        *b = second * cosines[i] + first * sines[i];
    }
}

/* ---- layers ---- */

typedef struct {
    float *x, *normed, *wide, *mixed, *scores, *steps;
    int32_t *totals;
    int8_t *small;
} Scratch;

static void self_attention(const Stack *s, const Layer *layer, int64_t index, const Rows *rows, const float *x, Scratch *a)
{
    const int64_t h = s->n_heads, g = s->n_kv_heads, k = s->d_head, all = (h + 2 * g) * k, row = g * k;
    float *keys = rows->keys[index], *values = rows->values[index];
    product(&layer->inward, x, rows->n_rows, a->wide, a->small, a->steps, a->totals);
    for (int64_t r = 0; r < rows->n_rows; r++) {
        float *own = a->wide + r * all;
        if (rows->cosines) {
            const int64_t at = r * (s->n_turned / 2);
            for (int64_t i = 0; i < h + g; i++)
                turn(own + i * k, s->n_turned, s->paired, rows->cosines + at, rows->sines + at);
        }
        const int64_t slot = rows->slot[r], sequence = rows->sequence[r];
        const int64_t place = (slot * rows->n_columns + rows->origin[slot * rows->n_sequences + sequence]) * row;
        memcpy(keys + place, own + h * k, row * sizeof *keys);
        memcpy(values + place, own + (h + g) * k, row * sizeof *values);
    }
#pragma omp parallel for collapse(2) schedule(static) if (rows->n_rows * h * k * rows->longest > 16 * WORTH)
    for (int64_t r = 0; r < rows->n_rows; r++)
        for (int64_t head = 0; head < h; head++) {
            const int64_t shared = head / (h / g) * k;
            const float *bias = rows->bias ? rows->bias + r * rows->bias_step + head * rows->bias_width : NULL;
            attend(a->wide + r * all + head * k, k, s->scale, bias, rows->first[r], rows->end[r],
                   a->scores + omp_get_thread_num() * rows->longest, keys + shared, values + shared,
                   rows->n_columns * row, rows->origin + rows->sequence[r], rows->n_sequences, row,
                   a->mixed + (r * h + head) * k);
        }
}

static void cross_attention(const Stack *s, const Layer *layer, int64_t index, const Rows *rows, const float *x, Scratch *a)
{
    const int64_t h = s->n_heads, g = s->n_kv_heads, k = s->d_head, stride = 2 * g * k;
    product(&layer->cross_query, x, rows->n_rows, a->wide, a->small, a->steps, a->totals);
#pragma omp parallel for collapse(2) schedule(static) if (rows->n_rows * h * k * rows->longest > 16 * WORTH)
    for (int64_t r = 0; r < rows->n_rows; r++)
        for (int64_t head = 0; head < h; head++) {
            const int64_t sentence = rows->sequence[r] / rows->n_beams;
            const float *memory = rows->memory[index] + rows->source[sentence] * stride + head / (h / g) * k;
            attend(a->wide + (r * h + head) * k, k, s->cross_scale, NULL, 0, rows->n_source[sentence],
                   a->scores + omp_get_thread_num() * rows->longest, memory, memory + g * k, stride, NULL, 0, 0,
                   a->mixed + (r * h + head) * k);
        }
}

static void feed_forward(const Stack *s, const Layer *layer, const Rows *rows, const float *x, Scratch *a)
{
    const int64_t n = layer->wide.n_out, half = n / 2;
    product(&layer->wide, x, rows->n_rows, a->wide, a->small, a->steps, a->totals);
#pragma omp parallel for schedule(static) if (rows->n_rows * n > WORTH)
    for (int64_t r = 0; r < rows->n_rows; r++) {
        float *own = a->wide + r * n;
        if (!s->gated) {
            for (int64_t i = 0; i < n; i++) own[i] = activate(own[i], s->activation);
            continue;
        }
        for (int64_t i = 0; i < half; i++) own[i] = activate(own[i], s->activation) * own[half + i];
    }
    if (s->gated)
        for (int64_t r = 1; r < rows->n_rows; r++) memmove(a->wide + r * half, a->wide + r * n, half * sizeof(float));
}

static void add(const Stack *s, const Matrix *out, const Norm *norm, const float *from, const Rows *rows, float *x, Scratch *a)
{
    const int64_t d = s->d_model;
    product(out, from, rows->n_rows, a->normed, a->small, a->steps, a->totals);
#pragma omp parallel for schedule(static) if (rows->n_rows * d > WORTH)
    for (int64_t r = 0; r < rows->n_rows; r++) {
        for (int64_t i = 0; i < d; i++) x[r * d + i] += a->normed[r * d + i];
        if (!s->norm_first) normalise(norm, x + r * d, d, x + r * d);
    }
}

static const float *before(const Stack *s, const Norm *norm, const Rows *rows, const float *x, Scratch *a)
{
    const int64_t d = s->d_model;
    if (!s->norm_first) return x;
#pragma omp parallel for schedule(static) if (rows->n_rows * d > WORTH)
    for (int64_t r = 0; r < rows->n_rows; r++) normalise(norm, x + r * d, d, a->normed + r * d);
    return a->normed;
}

/* Run every layer over x (R, D), in place. Returns 0, or 1 where there is no memory for it. */
int run_layers(const Stack *s, const Rows *rows, float *x)
{
    const int64_t n = rows->n_rows, d = s->d_model, heads = s->n_heads * s->d_head;
    int64_t widest = heads + 2 * s->n_kv_heads * s->d_head;
    for (int64_t i = 0; i < s->n_layers; i++)
        if (s->layers[i].wide.n_out > widest) widest = s->layers[i].wide.n_out;
    const int64_t deepest = (widest > d ? widest : d) + 4;
    Scratch a = {
        .normed = malloc(n * d * sizeof(float)),
        .wide = malloc(n * widest * sizeof(float)),
        .mixed = malloc(n * heads * sizeof(float)),
        .scores = malloc(omp_get_max_threads() * rows->longest * sizeof(float)),
        .steps = malloc(n * sizeof(float)),
        .totals = malloc(n * sizeof(int32_t)),
        .small = malloc(n * deepest),
    };
    const int failed = !(a.normed && a.wide && a.mixed && a.scores && a.steps && a.totals && a.small);
    if (!failed) {
        if (s->entry.kind)
            for (int64_t r = 0; r < n; r++) normalise(&s->entry, x + r * d, d, x + r * d);
        for (int64_t i = 0; i < s->n_layers; i++) {
            const Layer *layer = s->layers + i;
            self_attention(s, layer, i, rows, before(s, &layer->norms[0], rows, x, &a), &a);
            add(s, &layer->out, &layer->norms[0], a.mixed, rows, x, &a);
            if (layer->cross_query.n_in) {
                cross_attention(s, layer, i, rows, before(s, &layer->norms[1], rows, x, &a), &a);
                add(s, &layer->cross_out, &layer->norms[1], a.mixed, rows, x, &a);
            }
            feed_forward(s, layer, rows, before(s, &layer->norms[2], rows, x, &a), &a);
            add(s, &layer->narrow, &layer->norms[2], a.wide, rows, x, &a);
        }
        if (s->last.kind)
            for (int64_t r = 0; r < n; r++) normalise(&s->last, x + r * d, d, x + r * d);
    }
    free(a.normed), free(a.wide), free(a.mixed), free(a.scores), free(a.steps), free(a.totals), free(a.small);
    return failed;
}

/* How a matrix is packed here: its lanes, and how many of them a pass fills. */
void packing(int64_t *lanes_, int64_t *blocks) { *lanes_ = LANES, *blocks = BLOCKS; }

/* y (R, N) = x (R, in) times one matrix. */
int run_product(const Matrix *m, const float *x, int64_t rows, float *y)
{
    int8_t *small = malloc(rows * (m->n_in + 4));
    float *steps = malloc(rows * sizeof *steps);
    int32_t *totals = malloc(rows * sizeof *totals);
    const int failed = !(small && steps && totals);
    if (!failed) product(m, x, rows, y, small, steps, totals);
    free(small), free(steps), free(totals);
    return failed;
}
