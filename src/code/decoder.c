/* decoder.c -- from a survivor set to the numbers that decode it.
 *
 * Rows of G with a single entry 1 hand over their symbol as it is.  Only the
 * symbols no survivor holds plainly have to be solved for, with the rows that
 * are left: for a systematic code that has lost m blocks a system of the size
 * of m, whatever k is.  With K the known and U the unknown symbols,
 *
 *     G_QU x_U = y_Q - G_QK x_K,
 *
 * solved for all unit vectors y at once, so that decoding is one multiply of
 * D with the results, and the noise it makes is known before any data moves.
 * More results than unknowns are used together by least squares.
 */
#include "code.h"

#include <math.h>

/* Upper bound of error / (u * noise) over all measurements: 12 in double and
 * 3 in single precision, for sums of up to LONG_SUM terms; the rounding of
 * longer ones grows with the square root.  docs/numerics.md tells how they
 * were found. */
#define BOUND_F64 12
#define BOUND_F32 3
#define LONG_SUM 1024

/* The survivors' rows sorted into what is known and what is asked. */
typedef struct sift {
    size_t symbols, results, unknown, rows;
    const kf_row **row;  /* per result                              */
    int32_t *from;       /* per symbol: result that is it, or -1    */
    uint32_t *place;     /* per symbol not known: its column in P   */
    uint32_t *use;       /* results that make the system            */
} sift;

static void sift_free(sift *s)
{
    kf_free(s->row);
    kf_free(s->from);
    kf_free(s->place);
    kf_free(s->use);
}

static bool is_unit(const kf_row *r)
{
    return r->n == 1 && r->val[0] == 1;
}

static kofn_status sift_rows(sift *s, kf_code *c, const uint32_t *seats,
                             size_t n)
{
    const kofn_layout *L = &c->plan->layout;

    s->symbols = L->symbols;
    s->results = n * L->lanes;
    s->row = kf_new(s->results, sizeof *s->row);
    s->from = kf_new(s->symbols, sizeof *s->from);
    s->place = kf_new(s->symbols, sizeof *s->place);
    s->use = kf_new(s->results, sizeof *s->use);
    if (!s->row || !s->from || !s->place || !s->use)
        return KOFN_NOMEM;
    for (size_t i = 0; i < s->symbols; i++)
        s->from[i] = -1;
    for (size_t i = 0; i < n; i++) {
        const kf_seat *seat;

        TRY(kf_code_seat(c, seats[i], &seat));
        for (size_t l = 0; l < L->lanes; l++) {
            size_t r = i * L->lanes + l;

            s->row[r] = &seat->G[l];
            if (is_unit(s->row[r]) && s->from[s->row[r]->col[0]] < 0)
                s->from[s->row[r]->col[0]] = (int32_t)r;
        }
    }
    for (size_t i = 0; i < s->symbols; i++)
        if (s->from[i] < 0)
            s->place[i] = (uint32_t)s->unknown++;
    return KOFN_OK;
}

/* Results that say something about an unknown symbol. */
static void choose_rows(sift *s)
{
    for (size_t r = 0; r < s->results; r++)
        for (size_t e = 0; e < s->row[r]->n; e++)
            if (s->from[s->row[r]->col[e]] < 0) {
                s->use[s->rows++] = (uint32_t)r;
                break;
            }
}

/* P = G_QU and B = [G_QK, -I] with a column for every result. */
static void fill_system(const sift *s, double *P, double *B)
{
    for (size_t q = 0; q < s->rows; q++) {
        const kf_row *g = s->row[s->use[q]];

        for (size_t e = 0; e < g->n; e++) {
            int32_t from = s->from[g->col[e]];

            if (from < 0)
                P[q * s->unknown + s->place[g->col[e]]] = g->val[e];
            else
                B[q * s->results + (size_t)from] += g->val[e];
        }
        B[q * s->results + s->use[q]] -= 1;
    }
}

static double norm1(const double *P, size_t rows, size_t cols, size_t ld)
{
    double top = 0;

    for (size_t j = 0; j < cols; j++) {
        double sum = 0;

        for (size_t i = 0; i < rows; i++)
            sum += fabs(P[i * ld + j]);
        top = fmax(top, sum);
    }
    return top;
}

static void set_identity(size_t n, double *I, double one)
{
    memset(I, 0, n * n * sizeof *I);
    for (size_t i = 0; i < n; i++)
        I[i * n + i] = one;
}

static kofn_status invert(size_t n, const double *P, double *W)
{
    double *T = kofn_layout_table(n, n);
    kofn_status st = KOFN_NOMEM;

    if (T) {
        memcpy(T, P, n * n * sizeof *T);
        set_identity(n, W, 1);
        st = kf_solve(n, T, n, n, W, n);
    }
    kf_free(T);
    return st;
}

/* The same for m > n rows by least squares, W = (P'P)^-1 P'. */
static kofn_status invert_tall(size_t m, size_t n, const double *P, double *W)
{
    double *T = kofn_layout_table(m, n), *X = kofn_layout_table(m, m);
    kofn_status st = KOFN_NOMEM;

    if (T && X) {
        memcpy(T, P, m * n * sizeof *T);
        set_identity(m, X, 1);
        st = kf_least_squares(m, n, T, n, m, X, m);
        memcpy(W, X, n * m * sizeof *W);
    }
    kf_free(T);
    kf_free(X);
    return st;
}

/* W + (I - W P) W.  Elimination solves P W = I column by column, so that
 * P W - I is small; but what decoding multiplies with the answer is W P - I,
 * which may be larger by the condition of P.  This brings it down to the
 * rounding of one product. */
static kofn_status polish(size_t m, size_t n, const double *P, double *W)
{
    double *N = kofn_layout_table(n, m), *E = kofn_layout_table(n, n);
    kofn_status st = KOFN_NOMEM;

    if (N && E) {
        set_identity(n, E, -1);
        for (size_t i = 0; i < n * m; i++)
            N[i] = -W[i];
        kf_subtract_product(n, m, n, N, m, P, n, E, n); /* W P - I */
        for (size_t i = 0; i < n * m; i++)
            N[i] = W[i];
        kf_subtract_product(n, n, m, E, n, N, m, W, m);
        st = KOFN_OK;
    }
    kf_free(N);
    kf_free(E);
    return st;
}

/* D = W [-G_QK, I]: unknown x results. */
static kofn_status solve_unknown(const sift *s, double **out,
                                 double *condition)
{
    double *P = kofn_layout_table(s->rows, s->unknown);
    double *W = kofn_layout_table(s->unknown, s->rows);
    double *B = kofn_layout_table(s->rows, s->results);
    double *D = kofn_layout_table(s->unknown, s->results);
    kofn_status st = KOFN_NOMEM;

    if (P && W && B && D) {
        fill_system(s, P, B);
        st = s->rows == s->unknown
                 ? invert(s->unknown, P, W)
                 : invert_tall(s->rows, s->unknown, P, W);
        if (!st)
            st = polish(s->rows, s->unknown, P, W);
    }
    if (!st) {
        kf_subtract_product(s->unknown, s->rows, s->results, W, s->rows, B,
                            s->results, D, s->results);
        *condition = norm1(P, s->rows, s->unknown, s->unknown) *
                     norm1(W, s->unknown, s->rows, s->rows);
    }
    kf_free(P);
    kf_free(W);
    kf_free(B);
    if (st) {
        kf_free(D);
        D = NULL;
    }
    *out = D;
    return st;
}

/* ---- wants --------------------------------------------------------------- */

/* Wants that are symbols: copied where known, else their row of X. */
static void wants_are_symbols(kf_decoder *d, const sift *s, double *X)
{
    for (size_t w = 0; w < d->wants; w++)
        d->copy[w] = s->from[w] >= 0 ? s->from[w] : X ? KF_MIXED : KF_LOST;
    d->D = X;
    d->mixed = X ? s->unknown : 0;
}

/* ||R^-1 diag(row norms)||_F / sqrt(wants), R the survivors' rows: how much
 * the workers' own rounding is amplified.  Invariant to the scale of rows,
 * which a condition number is not. */
static double noise_of(const kf_decoder *d, const sift *s)
{
    double sum = 0;

    for (size_t w = 0; w < d->wants; w++)
        sum += d->copy[w] >= 0;
    for (size_t r = 0; r < d->results; r++) {
        double norm = 0, column = 0;

        for (size_t e = 0; e < s->row[r]->n; e++)
            norm += s->row[r]->val[e] * s->row[r]->val[e];
        for (size_t i = 0; i < d->mixed; i++)
            column += d->D[i * d->results + r] * d->D[i * d->results + r];
        sum += column * norm;
    }
    return sqrt(sum / (double)d->wants);
}

/* A worker sums the columns of A (of a sparse A few of them), decoding the
 * results; in double always, so that it shows in double only. */
static double growth(const kf_decoder *d, const kofn_problem *pb)
{
    double terms = pb->sparse ? 1 : (double)pb->n;

    if (pb->dtype == KOFN_F64)
        terms = fmax(terms, (double)d->results);
    return terms > LONG_SUM ? sqrt(terms / LONG_SUM) : 1;
}

static void judge(kf_decoder *d, const sift *s, const kofn_problem *pb)
{
    double c =
        pb->dtype == KOFN_F64 ? BOUND_F64 * 0x1p-52 : BOUND_F32 * 0x1p-23;

    d->noise = noise_of(d, s);
    d->predicted = c * growth(d, pb) * d->noise;
    d->whole = true;
    for (size_t w = 0; w < d->wants; w++)
        d->whole &= d->copy[w] != KF_LOST;
}

/* ---- building ------------------------------------------------------------ */

static kofn_status too_few(const kf_code *c, const sift *s, size_t n)
{
    return kf_fail(KOFN_TOOFEW,
                   "%zu results leave %zu of %zu blocks unknown; any %zu "
                   "are enough", n,
                   (s->unknown + c->plan->layout.lanes - 1) /
                       c->plan->layout.lanes,
                   s->symbols / c->plan->layout.lanes,
                   c->plan->layout.enough);
}

static kofn_status build(kf_decoder *d, sift *s, kf_code *c, bool partial)
{
    double *X = NULL;

    TRY(sift_rows(s, c, d->seat, d->seats));
    d->results = s->results;
    choose_rows(s);
    if (s->unknown > 0 && !partial) {
        if (s->rows < s->unknown)
            return too_few(c, s, d->seats);
        TRY(solve_unknown(s, &X, &d->condition));
    }
    wants_are_symbols(d, s, X);
    judge(d, s, &c->plan->layout.problem);
    return KOFN_OK;
}

kofn_status kf_decoder_new(kf_decoder **out, kf_code *c, const uint32_t *seats,
                           size_t n, bool partial)
{
    kf_decoder *d = kf_zero(1, sizeof *d);
    sift s = {0};
    kofn_status st = KOFN_NOMEM;

    *out = NULL;
    if (!d)
        return KOFN_NOMEM;
    d->seats = n;
    d->wants = c->plan->layout.wants;
    d->condition = 1;
    d->seat = kf_new(n, sizeof *d->seat);
    d->copy = kf_new(d->wants, sizeof *d->copy);
    if (d->seat && d->copy) {
        memcpy(d->seat, seats, n * sizeof *seats);
        st = build(d, &s, c, partial);
    }
    sift_free(&s);
    if (st) {
        kf_decoder_free(d);
        return st;
    }
    *out = d;
    return KOFN_OK;
}

void kf_decoder_free(kf_decoder *d)
{
    if (!d)
        return;
    kf_free(d->seat);
    kf_free(d->copy);
    kf_free(d->D);
    kf_free(d);
}

/* ---- cache --------------------------------------------------------------- */

/* Survivor sets recur from round to round; a system is solved once for each.
 * Entries sit in a hash table by set, in a list by last use. */
typedef struct entry {
    struct entry *next, *newer, *older;
    uint64_t hash;
    kf_decoder *decoder;
    size_t bytes;
    bool partial;
} entry;

#define BUCKETS 1024

struct kf_cache {
    kf_code *code;
    size_t budget, bytes;
    entry *bucket[BUCKETS], *newest, *oldest;
};

kofn_status kf_cache_new(kf_cache **out, kf_code *c, size_t budget)
{
    kf_cache *cache = kf_zero(1, sizeof *cache);

    *out = cache;
    if (!cache)
        return KOFN_NOMEM;
    cache->code = c;
    cache->budget = budget;
    return KOFN_OK;
}

static uint64_t hash_set(const uint32_t *seats, size_t n)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < n; i++)
        h = (h ^ seats[i]) * UINT64_C(1099511628211);
    return h;
}

static void unlink_use(kf_cache *cache, entry *e)
{
    *(e->newer ? &e->newer->older : &cache->newest) = e->older;
    *(e->older ? &e->older->newer : &cache->oldest) = e->newer;
}

static void link_newest(kf_cache *cache, entry *e)
{
    e->newer = NULL;
    e->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = e;
    cache->newest = e;
}

static entry *lookup(kf_cache *cache, uint64_t h, const uint32_t *seats,
                     size_t n, bool partial)
{
    entry *e = cache->bucket[h % BUCKETS];

    while (e && (e->hash != h || e->partial != partial ||
                 e->decoder->seats != n ||
                 memcmp(e->decoder->seat, seats, n * sizeof *seats) != 0))
        e = e->next;
    return e;
}

kofn_status kf_cache_get(kf_cache *cache, const uint32_t *seats, size_t n,
                         bool partial, const kf_decoder **out)
{
    uint64_t h = hash_set(seats, n);
    entry *e = lookup(cache, h, seats, n, partial);
    kofn_status st;

    *out = NULL;
    if (e) {
        unlink_use(cache, e);
    } else {
        e = kf_zero(1, sizeof *e);
        if (!e)
            return KOFN_NOMEM;
        st = kf_decoder_new(&e->decoder, cache->code, seats, n, partial);
        if (st) {
            kf_free(e);
            return st;
        }
        e->hash = h;
        e->partial = partial;
        e->bytes = sizeof *e + e->decoder->mixed * e->decoder->results * 8 +
                   n * 4 + e->decoder->wants * 4;
        e->next = cache->bucket[h % BUCKETS];
        cache->bucket[h % BUCKETS] = e;
        cache->bytes += e->bytes;
    }
    link_newest(cache, e);
    *out = e->decoder;
    return KOFN_OK;
}

static void drop_oldest(kf_cache *cache)
{
    entry *e = cache->oldest, **at = &cache->bucket[e->hash % BUCKETS];

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    unlink_use(cache, e);
    cache->bytes -= e->bytes;
    kf_decoder_free(e->decoder);
    kf_free(e);
}

void kf_cache_trim(kf_cache *cache)
{
    while (cache->bytes > cache->budget && cache->oldest)
        drop_oldest(cache);
}

void kf_cache_free(kf_cache *cache)
{
    if (!cache)
        return;
    while (cache->oldest)
        drop_oldest(cache);
    kf_free(cache);
}
