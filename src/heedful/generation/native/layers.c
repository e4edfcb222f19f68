/* The layers of a Transformer over rows of tokens, on a CPU, for generation.
 *
 * A row is one token of one sequence. Every number of a row is computed in an order that depends on nothing else
 * in the batch, so that an answer is the same, bit for bit, alone and in company.
 *
 * Shapes: R rows, D model width, H heads, G key/value heads, K head width, N outputs, C slots, Q columns.
 */
#include <math.h>
#include <omp.h>

#include "products.h"

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
