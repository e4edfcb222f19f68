/* Products of rows with packed matrices, in float and in 8 bits.
 *
 * Every output is summed over the inputs in their order, whatever the number of rows.
 */
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

/* Threads that run the same function, each over its share. They meet where one needs what another has made: that
 * happens every few microseconds, so they wait awake, and give way only where somebody else wants the processor. */
typedef struct {
    atomic_int arrived, turn;
} Meeting;

typedef struct {
    int64_t index, size;
    Meeting *meeting;
} Team;

enum { PATIENCE = 1 << 12 };

static void meet(const Team *team)
{
    Meeting *m = team->meeting;
    const int turn = atomic_load(&m->turn);
    if (atomic_fetch_add(&m->arrived, 1) + 1 == team->size) {
        atomic_store(&m->arrived, 0);
        atomic_store(&m->turn, turn + 1);
        return;
    }
    for (int waited = 0; atomic_load(&m->turn) == turn; waited++)
        if (waited > PATIENCE) sched_yield();
}

/* Where this thread's share of n things begins; it ends where the next one's begins. */
static inline int64_t share(const Team *team, int64_t n, int64_t next) { return n * (team->index + next) / team->size; }

/* LANES outputs stand side by side in a packed matrix; a pass over the inputs fills BLOCKS of them for up to ROWS
 * rows, as many as the registers hold. */
#if defined(__AVX512F__)
enum { LANES = 16, BLOCKS = 4, ROWS = 6 };
#elif defined(__AVX2__)
enum { LANES = 8, BLOCKS = 2, ROWS = 6 };
#else
enum { LANES = 4, BLOCKS = 2, ROWS = 6 };
#endif

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));
typedef float few __attribute__((vector_size(16)));

/* Half of the lanes added to the other half, again and again. */
static inline float sum_of_lanes(lanes all)
{
    few parts[LANES / 4];
    memcpy(parts, &all, sizeof parts);
    for (int n = LANES / 8; n; n /= 2)
        for (int j = 0; j < n; j++) parts[j] += parts[j + n];
    return (parts[0][0] + parts[0][2]) + (parts[0][1] + parts[0][3]);
}

/* Packed (out / LANES, in, LANES) in float, or (out / LANES, in / 4, LANES, 4) in 8 bits, raised by 128 each. */
typedef struct {
    int64_t n_in, n_out, bits;
    const void *weights;
    const float *scales, *bias; /* one for each output; no scales in float, a bias or none */
} Matrix;

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

/* One input of each row times its weights, added to the sums. */
static inline __attribute__((always_inline)) void add_input(
    lanes sums[ROWS][BLOCKS], const float *w, const float *x, int64_t k, int64_t i, const int n_rows)
{
    lanes part[BLOCKS];
    for (int b = 0; b < BLOCKS; b++) part[b] = *(const lanes *)(w + (b * k + i) * LANES);
    for (int r = 0; r < n_rows; r++) {
        const float factor = x[r * k + i];
        for (int b = 0; b < BLOCKS; b++) sums[r][b] += part[b] * factor;
    }
}

/* Where many rows share the weights, their sums take as long as the weights that come next take to arrive from
 * memory. So a tile fetches a piece of those, AT_ONCE lines for so many inputs, and the places it will write to. In
 * 8 bits it is a line for each four inputs; few rows neither gain nor lose by it there. */
enum { LINE = 64, INPUTS = 4, AT_ONCE = 2, MANY = 3 * ROWS };

/* Where the tile of this number fetches its piece of the next group of outputs, or once that is here, what is here;
 * both in bytes. */
static inline const char *ahead_of(const Matrix *m, int64_t whole, int64_t piece, int64_t group, int64_t tile)
{
    const int64_t at = tile * piece;
    return (const char *)m->weights + group * whole + (at < whole ? whole + at : 0);
}

static inline __attribute__((always_inline)) void fetch_outputs(const Matrix *m, float *y, int64_t n0, const int n_rows)
{
    for (int r = 0; r < n_rows; r++)
        for (int b = 0; b < BLOCKS; b++) __builtin_prefetch(y + r * m->n_out + n0 + b * LANES, 1);
}

static inline __attribute__((always_inline)) void block_float(
    const Matrix *m, const float *x, float *y, int64_t n0, const char *ahead, const int n_rows)
{
    const int64_t k = m->n_in;
    const float *w = (const float *)m->weights + n0 * k;
    int64_t i = 0;
    lanes sums[ROWS][BLOCKS];
    for (int r = 0; r < n_rows; r++)
        for (int b = 0; b < BLOCKS; b++) sums[r][b] = (lanes){0};
    if (ahead) {
        fetch_outputs(m, y, n0, n_rows);
        for (; i + INPUTS <= k; i += INPUTS, ahead += AT_ONCE * LINE) {
            for (int line = 0; line < AT_ONCE; line++) __builtin_prefetch(ahead + line * LINE);
            for (int j = 0; j < INPUTS; j++) add_input(sums, w, x, k, i + j, n_rows);
        }
    }
    for (; i < k; i++) add_input(sums, w, x, k, i, n_rows);
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
    const char *ahead, const int n_rows)
{
    const int64_t k = (m->n_in + 3) / 4 * 4;
    const uint8_t *w = (const uint8_t *)m->weights + n0 * k;
    counts sums[ROWS][BLOCKS];
    for (int r = 0; r < n_rows; r++)
        for (int b = 0; b < BLOCKS; b++) sums[r][b] = (counts){0};
    fetch_outputs(m, y, n0, n_rows);
    for (int64_t i = 0; i < k; i += 4, ahead += LINE) {
        __builtin_prefetch(ahead);
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

/* Quantize a row by its largest value, so that rows are independent of each other. */
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
    *step = largest / 127.0f; /* NaN stays NaN, and inf becomes NaN: inf · 0 */
    *total = 0;
    if (!(largest > 1e-36f && largest < INFINITY)) { /* no number of levels; what is as small counts as 0 */
        memset(q, 0, padded);
        return;
    }
    const float levels = 127.0f / largest;
    int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        const int32_t level = (int32_t)rintf(x[i] * levels);
        q[i] = (int8_t)level;
        sum += level;
    }
    for (int64_t i = n; i < padded; i++) q[i] = 0;
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

/* Room for the rows of a product in 8 bits. */
typedef struct {
    int8_t *levels;
    float *steps;
    int32_t *totals;
} Small;

/* y (R, N) = x (R, in) times the matrix, and its bias. */
static void product(const Team *team, const Matrix *m, const float *x, int64_t rows, float *y, const Small *small)
{
    const int64_t group = LANES * BLOCKS, n_groups = (m->n_out + group - 1) / group, k = (m->n_in + 3) / 4 * 4;
    if (m->bits == 8) {
        for (int64_t r = share(team, rows, 0); r < share(team, rows, 1); r++)
            to_int8(x + r * m->n_in, m->n_in, small->levels + r * k, small->steps + r, small->totals + r);
        meet(team);
    }
    for (int64_t i = share(team, n_groups, 0); i < share(team, n_groups, 1); i++)
        for (int64_t tile = 0, r = 0; r < rows; tile++, r += ROWS) {
            const int n_rows = rows - r < ROWS ? (int)(rows - r) : ROWS;
            float *out = y + r * m->n_out;
            if (m->bits == 8) {
                const char *ahead = ahead_of(m, group * k, k / 4 * LINE, i, tile);
                const int8_t *levels = small->levels + r * k;
                EVERY_SIZE(block_int8, m, levels, small->steps + r, small->totals + r, out, i * group, ahead)
            } else {
                const int64_t whole = group * m->n_in * 4, piece = m->n_in / INPUTS * AT_ONCE * LINE;
                const char *ahead = rows > MANY ? ahead_of(m, whole, piece, i, tile) : NULL;
                EVERY_SIZE(block_float, m, x + r * m->n_in, out, i * group, ahead)
            }
        }
    meet(team);
}
