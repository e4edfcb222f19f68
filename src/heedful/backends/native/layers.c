/* The layers of a Transformer over rows of tokens, on a CPU, for generation.
 *
 * A row is one token of one sequence. Every number of a row is computed in an order that depends on nothing else
 * in the batch, so that an answer is the same, bit for bit, in every batch.
 *
 * Shapes: R rows, D model width, H heads, G key/value heads, K head width, N outputs, C slots, Q columns.
 */
#include <omp.h>

#include "attention.h"

typedef struct {
    int64_t kind; /* 0 none, 1 layer, 2 root mean square */
    const float *weight, *bias;
    float eps;
} Norm;

typedef struct {
    Matrix qkv, out, cross_query, cross_out, up_proj, down_proj; /* cross_query.n_in = 0: no memory is read */
    Norm norms[3];                                            /* of attention, cross-attention, feed-forward */
} Layer;

typedef struct {
    int64_t n_layers, d_model, n_heads, n_kv_heads, d_head;
    int64_t norm_first, activation, gated, n_turned, paired;
    float scale, cross_scale;
    const Layer *layers;
    Norm entry, last;
} Stack;

/* The rows to run, and where their keys and values are. */
typedef struct {
    int64_t n_rows, n_slots, n_beams;
    const int32_t *sequence, *slot; /* of each row: whose token it is, and where its key goes */
    const int32_t *first, *end;     /* of each row: the slots it sees */
    const int32_t *origin;          /* (C, sequences): the column that holds a sequence's key of a slot */
    int64_t n_sequences;
    float *const *keys, *const *values; /* of each layer: (Q, G, C, K) */
    const float *bias;           /* (R, H, bias_width) added to the scores, or none */
    int64_t bias_width, longest; /* no row sees more slots, or source tokens, than the longest */
    const float *cosines, *sines; /* (R, n_turned / 2) */
    const float *const *memory;   /* of each layer: (2 G, tokens, K), the keys and the values of the sources */
    int64_t n_memory;             /* so many tokens */
    const int64_t *source, *n_source; /* of each sentence: its first token there, and how many */
} Rows;

/* ---- parts ---- */

static void normalize(const Norm *norm, const float *x, int64_t n, float *y)
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

static inline float sigmoid(float x)
{
    const float e = exponential(-fabsf(x));
    return x >= 0 ? 1.0f / (1.0f + e) : e / (1.0f + e);
}

/* A separate loop for each kind, which the compiler can vectorize. A row is cut into pieces where its threads are
 * many, at the same places in every batch: a number at the end of a loop may be computed in another way. */
enum { PIECE = 256 };

static void activate(float *x, int64_t n, int64_t kind)
{
    switch (kind) {
    case 0:
        for (int64_t i = 0; i < n; i++) x[i] = x[i] < 0.0f ? 0.0f : x[i]; /* NaN stays NaN */
        break;
    case 1:
        for (int64_t i = 0; i < n; i++) x[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
        break;
    case 2:
        for (int64_t i = 0; i < n; i++) x[i] *= sigmoid(1.59576912f * (x[i] + 0.044715f * x[i] * x[i] * x[i]));
        break;
    default:
        for (int64_t i = 0; i < n; i++) x[i] *= sigmoid(x[i]);
    }
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

/* ---- layers: every thread of a team runs these, over its share of the rows or heads ---- */

typedef struct {
    float *normed, *wide, *mixed, *scores;
    Small small;
} Scratch;

typedef struct {
    const Team *team;
    const Stack *stack;
    const Rows *rows;
    const Scratch *room;
    float *x; /* (R, D) */
} Run;

static void store_keys(const Run *run, int64_t index)
{
    const Stack *s = run->stack;
    const Rows *rows = run->rows;
    const int64_t h = s->n_heads, g = s->n_kv_heads, k = s->d_head;
    for (int64_t r = share(run->team, rows->n_rows, 0); r < share(run->team, rows->n_rows, 1); r++) {
        float *row = run->room->wide + r * (h + 2 * g) * k;
        if (rows->cosines) {
            const int64_t at = r * (s->n_turned / 2);
            for (int64_t i = 0; i < h + g; i++)
                turn(row + i * k, s->n_turned, s->paired, rows->cosines + at, rows->sines + at);
        }
        const int64_t column = rows->origin[rows->slot[r] * rows->n_sequences + rows->sequence[r]];
        for (int64_t i = 0; i < g; i++) {
            const int64_t at = ((column * g + i) * rows->n_slots + rows->slot[r]) * k;
            memcpy(rows->keys[index] + at, row + (h + i) * k, k * sizeof(float));
            memcpy(rows->values[index] + at, row + (h + g + i) * k, k * sizeof(float));
        }
    }
    meet(run->team);
}

static void self_attention(const Run *run, int64_t index, const float *x)
{
    const Stack *s = run->stack;
    const Rows *rows = run->rows;
    const int64_t h = s->n_heads, g = s->n_kv_heads, k = s->d_head, n = rows->n_rows * h;
    const Scratch *room = run->room;
    product(run->team, &s->layers[index].qkv, x, rows->n_rows, room->wide, &room->small);
    store_keys(run, index);
    for (int64_t i = share(run->team, n, 0); i < share(run->team, n, 1); i++) {
        const int64_t r = i / h, head = i % h;
        const Seen seen = {
            .keys = rows->keys[index], .values = rows->values[index], .first = rows->first[r], .end = rows->end[r],
            .head = rows->n_slots * k, .slot = k, .column = g * rows->n_slots * k,
            .columns = rows->origin + rows->sequence[r], .sequences = rows->n_sequences,
        };
        attend(&seen, head / (h / g), room->wide + (r * (h + 2 * g) + head) * k, k, s->scale,
               rows->bias ? rows->bias + (r * h + head) * rows->bias_width : NULL,
               room->scores + run->team->index * rows->longest, room->mixed + i * k);
    }
    meet(run->team);
}

static void cross_attention(const Run *run, int64_t index, const float *x)
{
    const Stack *s = run->stack;
    const Rows *rows = run->rows;
    const int64_t h = s->n_heads, g = s->n_kv_heads, k = s->d_head, apart = rows->n_memory * k, n = rows->n_rows * h;
    const Scratch *room = run->room;
    product(run->team, &s->layers[index].cross_query, x, rows->n_rows, room->wide, &room->small);
    for (int64_t i = share(run->team, n, 0); i < share(run->team, n, 1); i++) {
        const int64_t sentence = rows->sequence[i / h] / rows->n_beams;
        const float *memory = rows->memory[index] + rows->source[sentence] * k;
        const Seen seen = {
            .keys = memory, .values = memory + g * apart, .end = rows->n_source[sentence], .head = apart, .slot = k,
        };
        attend(&seen, i % h / (h / g), room->wide + i * k, k, s->cross_scale, NULL,
               room->scores + run->team->index * rows->longest, room->mixed + i * k);
    }
    meet(run->team);
}

static void feed_forward(const Run *run, int64_t index, const float *x)
{
    const Stack *s = run->stack;
    const Scratch *room = run->room;
    const int64_t n_rows = run->rows->n_rows, n = s->layers[index].up_proj.n_out, half = n / 2;
    product(run->team, &s->layers[index].up_proj, x, n_rows, room->wide, &room->small);
    if (!s->gated) {
        const int64_t pieces = (n + PIECE - 1) / PIECE, all = n_rows * pieces;
        for (int64_t i = share(run->team, all, 0); i < share(run->team, all, 1); i++) {
            const int64_t first = i % pieces * PIECE, left = n - first;
            activate(room->wide + i / pieces * n + first, left < PIECE ? left : PIECE, s->activation);
        }
        meet(run->team);
        return;
    }
    for (int64_t r = share(run->team, n_rows, 0); r < share(run->team, n_rows, 1); r++) {
        float *row = room->wide + r * n;
        activate(row, half, s->activation);
        for (int64_t i = 0; i < half; i++) row[i] *= row[half + i];
    }
    meet(run->team);
    if (!run->team->index) /* close up the rows, which are half as wide now */
        for (int64_t r = 1; r < n_rows; r++) memmove(room->wide + r * half, room->wide + r * n, half * sizeof(float));
    meet(run->team);
}

/* Each row of x normalized into y. */
static void normalize_rows(const Run *run, const Norm *norm, float *y)
{
    const int64_t d = run->stack->d_model, n = run->rows->n_rows;
    for (int64_t r = share(run->team, n, 0); r < share(run->team, n, 1); r++)
        normalize(norm, run->x + r * d, d, y + r * d);
    meet(run->team);
}

/* Return the input of a sublayer: x, normalized first in a pre-norm stack. */
static const float *sublayer_input(const Run *run, const Norm *norm)
{
    if (!run->stack->norm_first) return run->x;
    normalize_rows(run, norm, run->room->normed);
    return run->room->normed;
}

/* Multiply the output of a sublayer by its last matrix and add it to x, which is normalized now or before the next one. */
static void add(const Run *run, const Matrix *out, const Norm *norm, const float *output)
{
    const int64_t d = run->stack->d_model, n = run->rows->n_rows;
    float *x = run->x, *y = run->room->normed;
    product(run->team, out, output, n, y, &run->room->small);
    for (int64_t r = share(run->team, n, 0); r < share(run->team, n, 1); r++) {
        for (int64_t i = 0; i < d; i++) x[r * d + i] += y[r * d + i];
        if (!run->stack->norm_first) normalize(norm, x + r * d, d, x + r * d);
    }
    meet(run->team);
}

static void every_layer(const Run *run)
{
    const Stack *s = run->stack;
    if (s->entry.kind) normalize_rows(run, &s->entry, run->x);
    for (int64_t i = 0; i < s->n_layers; i++) {
        const Layer *layer = s->layers + i;
        self_attention(run, i, sublayer_input(run, &layer->norms[0]));
        add(run, &layer->out, &layer->norms[0], run->room->mixed);
        if (layer->cross_query.n_in) {
            cross_attention(run, i, sublayer_input(run, &layer->norms[1]));
            add(run, &layer->cross_out, &layer->norms[1], run->room->mixed);
        }
        feed_forward(run, i, sublayer_input(run, &layer->norms[2]));
        add(run, &layer->down_proj, &layer->norms[2], run->room->wide);
    }
    if (s->last.kind) normalize_rows(run, &s->last, run->x);
}

static int allocate_small(Small *small, int64_t rows, int64_t n_in)
{
    small->levels = malloc(rows * (n_in + 4));
    small->steps = malloc(rows * sizeof(float));
    small->totals = malloc(rows * sizeof(int32_t));
    return small->levels && small->steps && small->totals;
}

static void free_small(Small *small) { free(small->levels), free(small->steps), free(small->totals); }

/* Run every layer over x (R, D), in place. Returns 0, or 1 where there is no memory for it. */
int run_layers(const Stack *s, const Rows *rows, float *x, int n_threads)
{
    const int64_t n = rows->n_rows, d = s->d_model, heads = s->n_heads * s->d_head;
    int64_t widest = heads + 2 * s->n_kv_heads * s->d_head;
    for (int64_t i = 0; i < s->n_layers; i++)
        if (s->layers[i].up_proj.n_out > widest) widest = s->layers[i].up_proj.n_out;
    Scratch room = {
        .normed = malloc(n * d * sizeof(float)),
        .wide = malloc(n * widest * sizeof(float)),
        .mixed = malloc(n * heads * sizeof(float)),
        .scores = malloc(n_threads * rows->longest * sizeof(float)),
    };
    const int enough = allocate_small(&room.small, n, widest > d ? widest : d) && room.normed && room.wide && room.mixed &&
                       room.scores;
    if (enough) {
        Meeting meeting = {0};
#pragma omp parallel num_threads(n_threads)
        {
            const Team team = {omp_get_thread_num(), omp_get_num_threads(), &meeting};
            every_layer(&(const Run){&team, s, rows, &room, x});
        }
    }
    free(room.normed), free(room.wide), free(room.mixed), free(room.scores), free_small(&room.small);
    return !enough;
}

/* How a matrix is packed here: its lanes, and how many of them a pass fills. */
void packing(int64_t *n_lanes, int64_t *n_blocks) { *n_lanes = LANES, *n_blocks = BLOCKS; }

/* y (R, N) = x (R, in) times one matrix. */
int run_product(const Matrix *m, const float *x, int64_t rows, float *y, int n_threads)
{
    Small small;
    const int enough = allocate_small(&small, rows, m->n_in);
    if (enough) {
        Meeting meeting = {0};
#pragma omp parallel num_threads(n_threads)
        {
            const Team team = {omp_get_thread_num(), omp_get_num_threads(), &meeting};
            product(&team, m, x, rows, y, &small);
        }
    }
    free_small(&small);
    return !enough;
}

/* ---- log-probabilities and the largest values of rows of logits, which are independent of each other ---- */

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

enum { FEW = 8 }; /* rows that are done before another thread is awake */

/* Logits x (R, N) become logprobs. */
void run_log_softmax(float *x, int64_t rows, int64_t n, int n_threads)
{
#pragma omp parallel for num_threads(n_threads) if (rows > FEW)
    for (int64_t r = 0; r < rows; r++) log_softmax(x + r * n, n);
}

/* Of each row of x (R, N) the k largest, in order, and their places: (R, k). */
void run_top(const float *x, int64_t rows, int64_t n, int64_t k, float *values, int64_t *places, int n_threads)
{
#pragma omp parallel for num_threads(n_threads) if (rows > FEW)
    for (int64_t r = 0; r < rows; r++) top(x + r * n, n, k, values + r * k, places + r * k);
}
