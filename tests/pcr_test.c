/* pcr_test.c -- polynomially coded regression: A' A x from any 2 ceil(n/r) - 1
 * answers (SPEC-A part C, NUMERICS 3.4 and 3.6).
 *
 * Facts are those of the companion table of the specification (facts.json),
 * quoted by their names.
 */
#include "rig.h"

#include "run/run.h"

#include <lapacke.h>
#include <stdio.h>

/* ---- answers of all seats -------------------------------------------------- */

typedef struct herd {
    kofn_plan *plan;
    const kofn_layout *L;
    kf_code *code;
    size_t n, d;
    kofn_matrix A, x;
    double *f;    /* n x d: what each seat answers        */
    double *want; /* A' A x, rounded from long double     */
} herd;

/* Terms of want are long double, so that it is as good as exact. */
static double *exact(const kofn_matrix *A, const kofn_matrix *x)
{
    double *a = as_doubles(A), *v = as_doubles(x);
    long double *y = numbers(A->cols, sizeof *y);
    double *out = numbers(A->cols, sizeof *out);

    for (size_t i = 0; i < A->rows; i++) {
        const double *row = a + i * A->cols;
        long double t = 0;

        for (size_t j = 0; j < A->cols; j++)
            t += (long double)row[j] * v[j];
        for (size_t j = 0; j < A->cols; j++)
            y[j] += t * row[j];
    }
    for (size_t j = 0; j < A->cols; j++)
        out[j] = (double)y[j];
    kf_free(a);
    kf_free(v);
    kf_free(y);
    return out;
}

/* Computed as workers do. */
static void ask_all(herd *h)
{
    kf_resident res;
    size_t *seat = numbers(h->n, sizeof *seat);
    kofn_block **block = numbers(h->n, sizeof(kofn_block *));

    for (size_t i = 0; i < h->n; i++)
        seat[i] = i;
    assert_ok(kf_resident_dense(&res, h->plan, &h->A));
    assert_ok(kf_encode(&res, h->code, seat, h->n, block));
    for (size_t i = 0; i < h->n; i++) {
        kofn_msg m = {.how = KOFN_TWICE, .hi = h->d};
        double *f;

        assert_ok(kf_parcel_new(&m.in, h->d, 1, h->A.dtype));
        assert_ok(kf_parcel_new(&m.result, h->d, 1, h->A.dtype));
        memcpy(m.in->m.data, h->x.data, h->d * kf_dtype_size(h->A.dtype));
        assert_ok(kofn_work(block[i], &m, NULL, NULL));
        f = as_doubles(&m.result->m);
        memcpy(h->f + i * h->d, f, h->d * sizeof *f);
        kf_free(f);
        kofn_parcel_drop(m.in);
        kofn_parcel_drop(m.result);
        kofn_block_drop(block[i]);
    }
    kf_resident_free(&res);
    kf_free(block);
    kf_free(seat);
}

/* With these inputs, which it takes over. */
static void herd_with(herd *h, const kofn_scheme *own, const char *spec,
                      size_t n, kofn_matrix A, kofn_matrix x)
{
    kofn_problem pb = {KOFN_GRAM, A.rows, A.cols, 1, A.dtype, false};

    *h = (herd){.n = n, .d = A.cols, .A = A, .x = x};
    assert_ok(own ? kofn_plan_new_for(&h->plan, &pb, own, spec, n, 1)
                  : kofn_plan_new(&h->plan, &pb, spec, n, 1));
    h->L = &h->plan->layout;
    assert_ok(kf_code_new(&h->code, h->plan));
    h->f = numbers(n * h->d, sizeof *h->f);
    h->want = exact(&A, &x);
    ask_all(h);
}

static void herd_up(herd *h, const char *spec, size_t n, size_t m, size_t d,
                    kofn_dtype dtype)
{
    herd_with(h, NULL, spec, n, random_matrix(m, d, dtype, 1),
              random_matrix(d, 1, dtype, 2));
}

static void herd_down(herd *h)
{
    kf_code_free(h->code);
    kofn_plan_free(h->plan);
    kf_free(h->A.data);
    kf_free(h->x.data);
    kf_free(h->f);
    kf_free(h->want);
}

/* ||sum a_j f_j - A' A x|| / ||A' A x|| */
static double error_of(const herd *h, const kf_decoder *d)
{
    double *y = numbers(h->d, sizeof *y), e;

    assert_true(d->wants == 1 && (d->mixed == 1 || d->copy[0] >= 0));
    for (size_t k = 0; k < d->results; k++) {
        double a = d->mixed ? d->D[k] : d->copy[0] == (int32_t)k;

        for (size_t j = 0; j < h->d; j++)
            y[j] += a * h->f[d->seat[k] * h->d + j];
    }
    if (h->A.dtype == KOFN_F32)
        for (size_t j = 0; j < h->d; j++)
            y[j] = (double)(float)y[j];
    e = relative_error(y, h->want, h->d);
    kf_free(y);
    return e;
}

/* ---- sets ------------------------------------------------------------------------ */

static size_t members(unsigned set, size_t n, uint32_t *seats)
{
    size_t k = 0;

    for (uint32_t i = 0; i < n; i++)
        if (set >> i & 1)
            seats[k++] = i;
    return k;
}

static void random_set(kf_rng *r, uint32_t *set, size_t k, size_t n)
{
    for (size_t i = 0, taken = 0; taken < k; i++)
        if (kf_rng_below(r, n - i) < k - taken)
            set[taken++] = (uint32_t)i;
}

/* A window of k of n seats from `at` on. */
static void window(uint32_t *set, size_t k, size_t n, size_t at)
{
    for (size_t i = 0, j = 0; i < n; i++)
        if ((i + n - at) % n < k)
            set[j++] = (uint32_t)i;
}

/* Where a seat stands, from its row of G: the middle entries are the cosine
 * and sine of its angle; on the line the second is its point. */
static double place_of(const herd *h, uint32_t seat)
{
    bool line = strstr(h->plan->spec, "lagrange");
    size_t mid = h->L->symbols / 2;
    double c = 0, z = 0, x = 0;
    const kf_seat *s;

    assert_ok(kf_code_seat(h->code, seat, &s));
    for (size_t e = 0; e < s->G[0].n; e++) {
        c = s->G[0].col[e] == mid - 1 ? s->G[0].val[e] : c;
        z = s->G[0].col[e] == mid + 1 ? s->G[0].val[e] : z;
        x = s->G[0].col[e] == 1 ? s->G[0].val[e] : x;
    }
    return line ? x : atan2(z, c);
}

/* The k seats that are neighbours there, from the at-th on. */
static void arc(const herd *h, uint32_t *set, size_t k, size_t at)
{
    double place[256];

    for (size_t i = 0; i < h->n; i++)
        place[i] = place_of(h, (uint32_t)i);
    for (size_t i = 0, j = 0; i < h->n; i++) {
        size_t rank = 0;

        for (size_t q = 0; q < h->n; q++)
            rank += place[q] < place[i];
        if ((rank + h->n - at) % h->n < k)
            set[j++] = (uint32_t)i;
    }
}

/* ---- T16: every survivor set -------------------------------------------------------- */

static size_t blocks_of(size_t n, size_t r)
{
    return (n + r - 1) / r;
}

/* By the ranks of G and of G with W below it. */
static bool determined(const herd *h, const uint32_t *set, size_t k)
{
    size_t K = h->L->symbols, rank[2];

    for (size_t with = 0; with < 2; with++) {
        size_t rows = k + with, low = kf_min(rows, K);
        double *G = numbers(rows * K, 8), *sv = numbers(low, 8), none;

        for (size_t i = 0; i < k; i++) {
            const kf_seat *s;

            assert_ok(kf_code_seat(h->code, set[i], &s));
            for (size_t e = 0; e < s->G[0].n; e++)
                G[i * K + s->G[0].col[e]] = s->G[0].val[e];
        }
        if (with)
            memcpy(G + k * K, h->L->W, K * sizeof *G);
        assert_int_equal(LAPACKE_dgesdd(LAPACK_ROW_MAJOR, 'N',
                                        (lapack_int)rows, (lapack_int)K, G,
                                        (lapack_int)K, sv, &none,
                                        (lapack_int)rows, &none,
                                        (lapack_int)K), 0);
        rank[with] = 0;
        while (rank[with] < low && sv[rank[with]] > 1e-10 * sv[0])
            rank[with]++;
        kf_free(G);
        kf_free(sv);
    }
    return rank[0] == rank[1];
}

/* A set of K decodes; one of fewer decodes if it determines the sum, which a
 * code that is not systematic does not try. */
static void try_set(const herd *h, const uint32_t *set, size_t k)
{
    bool can = k >= h->L->threshold ||
               (k >= h->L->enough && determined(h, set, k));
    kf_decoder *d;
    kofn_status st = kf_decoder_new(&d, h->code, set, k, false);

    if (st != (can ? KOFN_OK : KOFN_TOOFEW))
        fail_msg("%s, %zu seats from %u: %s (%s)", h->plan->spec, k, set[0],
                 kofn_strerror(st), kofn_errmsg());
    if (!can)
        return;
    assert_at_most(error_of(h, d), d->predicted);
    assert_at_most(error_of(h, d), h->A.dtype == KOFN_F64 ? 1e-11 : 1e-3);
    kf_decoder_free(d);
}

static size_t all_sets(const char *spec, size_t n, size_t c, kofn_dtype dtype)
{
    uint32_t set[8];
    herd h;

    herd_up(&h, spec, n, 5 * c + 2, 9, dtype);
    assert_int_equal(h.L->symbols, 2 * c - 1);
    assert_int_equal(h.L->threshold, 2 * c - 1);
    for (unsigned s = 1; s < 1u << n; s++)
        try_set(&h, set, members(s, n, set));
    herd_down(&h);
    return (1u << n) - 1;
}

static void every_survivor_set(void **state)
{
    static const char *const form[] = {
        "pcr:r=%zu", "pcr:r=%zu,systematic=1", "pcr:r=%zu,basis=lagrange",
        "pcr:r=%zu,basis=lagrange,systematic=1",
        "pcr:r=%zu,layout=paper", "pcr:r=%zu,layout=paper,systematic=1",
        "pcr:r=%zu,layout=paper,basis=lagrange"};
    size_t sets = 0;
    char spec[80];

    (void)state;
    for (size_t n = 2; n <= (SLOWED == 1 ? 8 : 6); n++)
        for (size_t r = 2; r <= n; r++)
            for (size_t f = 0; f < sizeof form / sizeof *form; f++) {
                snprintf(spec, sizeof spec, form[f], r);
                sets += all_sets(spec, n, blocks_of(n, r),
                                 (r + f) % 2 ? KOFN_F64 : KOFN_F32);
            }
    print_message("%zu survivor sets\n", sets);
}

/* ---- the systematic variant ------------------------------------------------------------ */

static size_t plain_seats(const herd *h, uint32_t *set)
{
    size_t k = 0;

    for (uint32_t i = 0; i < h->n; i++) {
        const kf_seat *s;

        assert_ok(kf_code_seat(h->code, i, &s));
        if (s->E0[0].n == 1 && s->E0[0].val[0] == 1)
            set[k++] = i;
    }
    return k;
}

/* c seats store plain blocks, each another, and their answers are added. */
static void plain_blocks_add_up(void **state)
{
    static const size_t sizes[][2] = {{6, 3}, {7, 2}, {40, 10}, {100, 10},
                                      {11, 3}, {13, 4}, {9, 8}, {50, 2}};
    static const char *const basis[] = {"circle", "lagrange"};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t b = 0; b < 2; b++) {
            size_t n = sizes[i][0], c = blocks_of(n, sizes[i][1]);
            uint32_t set[100], held[100] = {0};
            kf_decoder *d;
            char spec[80];
            herd h;

            snprintf(spec, sizeof spec, "pcr:r=%zu,systematic=1,basis=%s",
                     sizes[i][1], basis[b]);
            herd_up(&h, spec, n, 7 * c - 1, 5, KOFN_F64);
            assert_int_equal(h.L->enough, c);
            assert_int_equal(plain_seats(&h, set), c);
            assert_ok(kf_decoder_new(&d, h.code, set, c, false));
            for (size_t k = 0; k < c; k++) {
                const kf_seat *s;

                assert_ok(kf_code_seat(h.code, set[k], &s));
                assert_int_equal(held[s->E0[0].col[0]]++, 0);
                assert_at_most(fabs(d->D[k] - 1), 4e-15 * (double)c);
            }
            assert_at_most(error_of(&h, d), 1e-14);
            kf_decoder_free(d);
            herd_down(&h);
        }
}

/* So do any seats that stand evenly round the circle: every tenth or every
 * eighth of 40 angles. */
static void even_sets_are_enough(void **state)
{
    herd h;
    size_t found = 0;

    (void)state;
    herd_up(&h, "pcr:r=10,systematic=1", 40, 61, 4, KOFN_F64);
    for (size_t q = 4; q <= 5; q++)
        for (size_t at = 0; at < 40 / q; at++) {
            uint32_t set[5];
            kf_decoder *d;

            for (size_t k = 0; k < q; k++)
                set[k] = (uint32_t)(at + k * (40 / q));
            assert_ok(kf_decoder_new(&d, h.code, set, q, false));
            for (size_t k = 0; k < q; k++)
                assert_at_most(fabs(d->D[k] - 4 / (double)q), 1e-13);
            assert_at_most(error_of(&h, d), 1e-13);
            kf_decoder_free(d);
            found++;
        }
    assert_int_equal(found, 18);
    herd_down(&h);
}

/* ---- weights ------------------------------------------------------------------------------ */

/* All of n present: the mean, 1/n each (NUMERICS 3.2).  More than K: LAPACK's
 * minimum norm, for all rows have the same rounding. */
static void weights_have_minimum_norm(void **state)
{
    kf_rng r = kf_rng_stream(4, KF_FOR_SAMPLE, 0, 0);
    uint32_t set[40];
    kf_decoder *d;
    herd h;

    (void)state;
    herd_up(&h, "pcr:r=10", 40, 50, 3, KOFN_F64);
    window(set, 40, 40, 0);
    assert_ok(kf_decoder_new(&d, h.code, set, 40, false));
    for (size_t k = 0; k < 40; k++)
        assert_at_most(fabs(d->D[k] - 0.025), 1e-15);
    kf_decoder_free(d);
    for (size_t k = 7; k < 40; k += 3) {
        double F[7 * 40] = {0}, b[40] = {0}, sv[7];
        lapack_int rank;

        random_set(&r, set, k, 40);
        for (size_t i = 0; i < k; i++) {
            const kf_seat *s;

            assert_ok(kf_code_seat(h.code, set[i], &s));
            for (size_t e = 0; e < s->G[0].n; e++)
                F[s->G[0].col[e] * k + i] = s->G[0].val[e];
        }
        b[3] = 1;
        assert_int_equal(LAPACKE_dgelsd(LAPACK_ROW_MAJOR, 7, (lapack_int)k, 1,
                                        F, (lapack_int)k, b, 1, sv, 1e-14,
                                        &rank), 0);
        assert_int_equal(rank, 7);
        assert_ok(kf_decoder_new(&d, h.code, set, k, false));
        assert_at_most(relative_error(d->D, b, k), 1e-15 * sv[0] / sv[6] * 20);
        kf_decoder_free(d);
    }
    herd_down(&h);
}

/* The paper's example: blocks at 0, -1, ..., workers at 0, 1, 2, ...; symbols
 * are the coefficients of powers. */
static const kofn_param no_params[] = {{0}};

static kofn_status example_layout(kofn_layout *L)
{
    L->seats = L->max_seats = kofn_arg_workers(L);
    L->enough = L->symbols = 3;
    L->cut[0].rows = 2;
    L->wants = 1;
    L->W = kofn_layout_table(1, 3);
    if (!L->W)
        return KOFN_NOMEM;
    for (size_t e = 0; e < 3; e++)
        L->W[e] = pow(0, (double)e) + pow(-1, (double)e);
    return KOFN_OK;
}

static kofn_status example_seat(const kofn_layout *L, size_t i, double *E0,
                                double *E1, double *G)
{
    (void)L, (void)E1;
    E0[0] = (double)i + 1;
    E0[1] = -(double)i;
    for (size_t e = 0; e < 3; e++)
        G[e] = pow((double)i, (double)e);
    return KOFN_OK;
}

static const kofn_scheme example = {
    .name = "example",
    .ops = KOFN_GRAM,
    .params = no_params,
    .layout = example_layout,
    .seat = example_seat,
};

/* The portable random numbers of SPEC-A 0.3. */
static double uniform(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    double u = uniform(state), v = uniform(state);

    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

static void example_up(herd *h)
{
    kofn_matrix A = {numbers(36, 8), 12, 3, 3, KOFN_F64};
    kofn_matrix x = {numbers(3, 8), 3, 1, 1, KOFN_F64};
    uint64_t s = 42;

    for (size_t i = 0; i < 36; i++)
        ((double *)A.data)[i] = normal(&s);
    memcpy(x.data, (double[]){1, 0.5, -1}, 24);
    herd_with(h, &example, NULL, 6, A, x);
}

/* Facts pcr.weights.ex.*, pcr.worked. */
static void the_papers_example(void **state)
{
    static const struct {
        uint32_t set[3];
        double a[3];
    } fact[] = {
        {{0, 1, 2}, {4, -3, 1}},
        {{1, 3, 5}, {4.875, -4.25, 1.375}},
        {{3, 4, 5}, {25, -39, 16}},
    };
    static const double f[6][3] = {
        {2.788713041030605, 4.539144171281125, -4.959600829110565},
        {18.831356677795277, 29.72158705720079, -30.377131117058774},
        {50.28392164624482, 84.48072597193874, -84.14053683647626},
        {97.14640794637921, 168.81656091549502, -166.24981798736306},
        {159.41881557819852, 282.7290918878695, -276.7049745697192},
        {237.10114454170252, 426.2183188890623, -415.5060065835445}};
    static const double want[3] = {4.944703776981402, 13.472541485460884,
                                   -12.847546801742215};
    uint32_t set[6];
    herd h;

    (void)state;
    example_up(&h);
    assert_at_most(relative_error(h.f, f[0], 18), 1e-14);
    assert_at_most(relative_error(h.want, want, 3), 1e-14);
    for (size_t i = 0; i < 3; i++) {
        kf_decoder *d;

        assert_ok(kf_decoder_new(&d, h.code, fact[i].set, 3, false));
        assert_at_most(relative_error(d->D, fact[i].a, 3), 1e-13);
        kf_decoder_free(d);
    }
    for (unsigned s = 1; s < 64; s++) {
        size_t k = members(s, 6, set);
        kf_decoder *d;

        assert_int_equal(kf_decoder_new(&d, h.code, set, k, false),
                         k < 3 ? KOFN_TOOFEW : KOFN_OK);
        if (k >= 3)
            assert_at_most(error_of(&h, d), 1e-12);
        kf_decoder_free(d);
    }
    herd_down(&h);
}

/* ---- thresholds ------------------------------------------------------------------------------ */

static const kofn_problem gram = {KOFN_GRAM, 100, 10, 1, KOFN_F64, false};

static size_t threshold(size_t n, size_t r)
{
    kofn_plan_info info;
    kofn_plan *plan;
    char spec[40];

    snprintf(spec, sizeof spec, "pcr:r=%zu", r);
    assert_ok(kofn_plan_new(&plan, &gram, spec, n, 1));
    assert_ok(kofn_plan_describe(plan, false, &info));
    assert_at_most(fabs(info.storage * (double)blocks_of(n, r) - 1), 1e-15);
    assert_int_equal(info.block_rows, blocks_of(100, blocks_of(n, r)));
    assert_true(info.upload == 1 && info.answer == 1);
    kofn_plan_free(plan);
    return info.threshold;
}

/* Facts thr.n40_r10, thr.n6_r3, pcr.worse_than_gc. */
static void thresholds(void **state)
{
    static const size_t worse[][2] = {
        {3, 2}, {4, 3}, {5, 2}, {5, 4}, {6, 5}, {7, 2}, {7, 6}, {8, 7},
        {9, 2}, {9, 8}, {10, 9}, {11, 2}, {11, 10}, {12, 11}};
    size_t found = 0;

    (void)state;
    assert_int_equal(threshold(40, 10), 7);
    assert_int_equal(threshold(6, 3), 3);
    assert_int_equal(threshold(1, 1), 1);
    for (size_t n = 2; n <= 12; n++)
        for (size_t r = 2; r <= n; r++) {
            size_t K = threshold(n, r);

            assert_true(K == 2 * blocks_of(n, r) - 1 && K <= n);
            if (K > n - r + 1) {
                assert_true(worse[found][0] == n && worse[found][1] == r);
                found++;
            }
        }
    assert_int_equal(found, sizeof worse / sizeof *worse);
}

static size_t rows_stored(const char *spec, size_t n, size_t m, double *storage)
{
    kofn_problem pb = {KOFN_GRAM, m, 3, 1, KOFN_F64, false};
    kofn_plan_info info;
    kofn_plan *plan;

    assert_ok(kofn_plan_new(&plan, &pb, spec, n, 1));
    assert_ok(kofn_plan_describe(plan, false, &info));
    kofn_plan_free(plan);
    assert_true(info.upload == 1 && info.answer == 1);
    *storage = info.storage;
    return info.block_rows;
}

/* C2: both have the same threshold; cutting into blocks at once is never more
 * rows, and less where r does not divide n: 7 instead of 8. */
static void both_layouts(void **state)
{
    double storage;

    (void)state;
    assert_int_equal(rows_stored("pcr:r=2", 7, 28, &storage), 7);
    assert_true(storage == 0.25);
    assert_int_equal(rows_stored("pcr:r=2,layout=paper", 7, 28, &storage), 8);
    assert_true(storage == 2.0 / 7);
    for (size_t n = 2; n <= 12; n++)
        for (size_t r = 2; r <= n; r++)
            for (size_t m = 1; m < 40; m += 3) {
                char spec[40];
                size_t super, rows;

                snprintf(spec, sizeof spec, "pcr:r=%zu", r);
                super = rows_stored(spec, n, m, &storage);
                strcat(spec, ",layout=paper");
                rows = rows_stored(spec, n, m, &storage);
                assert_int_equal(super, blocks_of(m, blocks_of(n, r)));
                assert_int_equal(rows, r * blocks_of(m, n));
                assert_true(super <= rows);
            }
}

/* ---- accuracy ----------------------------------------------------------------------------------- */

typedef struct tally {
    double error; /* where something was predicted to be left of the answer */
    size_t hopeless;
} tally;

static void measure(const herd *h, const uint32_t *set, size_t k, tally *t)
{
    kf_decoder *d;
    kofn_status st = kf_decoder_new(&d, h->code, set, k, false);

    if (st || d->predicted > 1e-2) {
        assert_true(st == KOFN_OK || st == KOFN_UNSTABLE);
        t->hopeless++;
    } else {
        assert_at_most(error_of(h, d), d->predicted);
        t->error = fmax(t->error, error_of(h, d));
    }
    kf_decoder_free(d);
}

/* NUMERICS 3.4: the worst loss of N - K, neighbours in angle, with one digit
 * and of one draw; those of neighbours in number stay with rounding. */
static void circle_table(void **state)
{
    static const size_t lost[] = {1, 2, 3, 4, 5, 6, 8, 10};
    static const struct {
        size_t c;
        double error[8];
    } table[] = {
        {3, {3e-16, 7e-16, 7e-16, 3e-15, 4e-15, 7e-15, 2e-14, 3e-14}},
        {5, {5e-16, 1e-15, 4e-15, 1e-14, 4e-14, 7e-14, 2e-13, 6e-13}},
        {10, {6e-16, 4e-15, 2e-14, 1e-13, 5e-13, 1e-12, 9e-12, 6e-11}},
        {20, {9e-16, 1e-14, 1e-13, 1e-12, 5e-12, 6e-11, 1e-9, 1e-8}},
        {30, {2e-15, 3e-14, 6e-13, 7e-12, 5e-11, 5e-10, 2e-8, 5e-7}},
        {50, {2e-15, 8e-14, 2e-12, 4e-11, 5e-10, 7e-9, 5e-7, 5e-5}},
    };

    (void)state;
    for (size_t i = 0; i < (SLOWED == 1 ? 6 : 3); i++)
        for (size_t s = 0; s < 8; s++) {
            size_t c = table[i].c, K = 2 * c - 1, n = K + lost[s];
            size_t r = (n + c - 1) / c;
            tally arcs = {0}, racks = {0};
            uint32_t set[128];
            char spec[40];
            herd h;

            if (blocks_of(n, r) != c) /* no r gives so many blocks */
                continue;
            snprintf(spec, sizeof spec, "pcr:r=%zu", r);
            herd_up(&h, spec, n, 8 * c, 24, KOFN_F64);
            for (size_t at = 0; at < 4; at++) {
                arc(&h, set, K, at * n / 4);
                measure(&h, set, K, &arcs);
                window(set, K, n, at * n / 4);
                measure(&h, set, K, &racks);
            }
            assert_int_equal(arcs.hopeless + racks.hopeless, 0);
            assert_at_most(arcs.error, 2 * table[i].error[s] + 2e-15);
            assert_at_most(racks.error, 2.4e-14);
            herd_down(&h);
        }
}

/* How many answers of a random order it takes until the guard is content. */
static double answers_needed(const herd *h, uint32_t trial, double tolerance,
                             tally *t)
{
    kf_rng r = kf_rng_stream(trial, KF_FOR_SAMPLE, 9, 0);
    bool in[256] = {false};
    uint32_t set[256];
    size_t k = 0, n;

    for (; k < h->n; k++) {
        size_t next = (size_t)kf_rng_below(&r, h->n);
        kf_decoder *d;

        while (in[next])
            next = (next + 1) % h->n;
        in[next] = true;
        n = 0;
        for (uint32_t i = 0; i < h->n; i++)
            if (in[i])
                set[n++] = i;
        if (n < h->L->symbols ||
            kf_decoder_new(&d, h->code, set, n, false) != KOFN_OK)
            continue;
        if (d->predicted <= tolerance) {
            t->error = fmax(t->error, error_of(h, d));
            kf_decoder_free(d);
            return (double)n;
        }
        kf_decoder_free(d);
    }
    return HUGE_VAL;
}

typedef struct figures {
    size_t n, r;
    const char *more;
    double arc, rack, random; /* worst error found, with K answers */
    double mean;              /* answers until 1e-9 is predicted */
} figures;

/* NUMERICS 3.6, and what the guard makes of it: of a hundred workers some sets
 * of 19 are of no use, but hardly ever do 20 not do. */
static void many_workers(void **state)
{
    static const figures table[] = {
        {40, 10, "", 1e-10, 3e-14, 1e-10, 7.01},
        {40, 10, ",systematic=1", 1e-10, 3e-14, 1e-10, 7.01},
        {40, 10, ",basis=lagrange", 1e-4, 3e-14, 1e-4, 7.1},
        {100, 10, "", 1, 1e-14, 1e-4, 19.2},
        {100, 10, ",systematic=1", 1, 1e-14, 1e-4, 19.2},
        {100, 10, ",basis=lagrange", 1, 1e-11, 1e-2, 20},
    };
    size_t trials = often(200);

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const figures *t = &table[i];
        size_t K = 2 * blocks_of(t->n, t->r) - 1;
        tally arcs = {0}, racks = {0}, random = {0}, guarded = {0};
        kf_rng r = kf_rng_stream(i, KF_FOR_SAMPLE, 8, 0);
        double answers = 0;
        uint32_t set[128];
        char spec[80];
        herd h;

        snprintf(spec, sizeof spec, "pcr:r=%zu%s", t->r, t->more);
        herd_up(&h, spec, t->n, 120, 24, KOFN_F64);
        for (size_t at = 0; at < t->n; at++) {
            window(set, K, t->n, at);
            measure(&h, set, K, &racks);
            arc(&h, set, K, at);
            measure(&h, set, K, &arcs);
        }
        for (size_t q = 0; q < trials; q++) {
            random_set(&r, set, K, t->n);
            measure(&h, set, K, &random);
            answers += answers_needed(&h, (uint32_t)q, 1e-9, &guarded);
        }
        answers /= (double)trials;
        print_message("    %-36s n=%zu: arc %.1e  rack %.1e  random %.1e; "
                      "%.2f answers to 1e-9, then %.1e; %zu of %zu arcs "
                      "hopeless\n", spec, t->n,
                      arcs.error, racks.error, random.error, answers,
                      guarded.error, arcs.hopeless, t->n);
        assert_at_most(arcs.error, t->arc);
        assert_at_most(racks.error, t->rack);
        assert_at_most(random.error, t->random);
        assert_at_most(answers, t->mean);
        assert_at_most(guarded.error, 1e-9);
        herd_down(&h);
    }
}

/* ---- jobs -------------------------------------------------------------------------------------------- */

/* K messages of d numbers are what the master receives (C8). */
static void it_receives_K_answers(void **state)
{
    static const struct {
        const char *spec;
        size_t n, K;
    } code[] = {{"pcr:r=10", 40, 7},
                {"pcr:r=3", 6, 3},
                {"pcr:r=2,basis=lagrange", 9, 9},
                {"pcr:r=2,layout=paper", 7, 7},
                {"pcr:r=5", 5, 1}};
    const kofn_weather weather = {.straggle = 0.3, .spread = 0.3, .seed = 4};

    (void)state;
    for (size_t c = 0; c < sizeof code / sizeof *code; c++)
        for (int sim = 0; sim < 2; sim++) {
            rig_kind k = {.spec = code[c].spec,
                          .workers = code[c].n,
                          .m = 97,
                          .n = 23,
                          .p = 1,
                          .op = KOFN_GRAM,
                          .sim = sim,
                          .weather = sim ? &weather : NULL};
            kofn_report rep;
            rig r;

            rig_up(&r, &k);
            for (uint64_t round = 0; round < 5; round++) {
                assert_ok(rig_round(&r, &rep));
                assert_at_most(rig_error(&r), 1e-11);
                assert_int_equal(rep.messages, code[c].K);
                assert_true(rep.scalars == code[c].K * 23);
                rig_next(&r, 50 + round);
            }
            rig_down(&r);
        }
}

/* Of 7 workers and c = 4 only those with plain blocks stay: 4 answers do,
 * where 7 are needed in general. */
static void the_plain_ones_suffice(void **state)
{
    static const kofn_happening gone[] = {{1, 0, KOFN_EVENT_LEAVE, 1, 0},
                                          {1, 0, KOFN_EVENT_LEAVE, 3, 0},
                                          {2, 0.3, KOFN_EVENT_LEAVE, 5, 0},
                                          {4, 0, KOFN_EVENT_LEAVE, 2, 0}};
    kofn_options opt = KOFN_OPTIONS_INIT;

    (void)state;
    opt.events = gone;
    opt.event_count = 4;
    for (int sim = 0; sim < 2; sim++) {
        rig_kind k = {.spec = "pcr:r=2,systematic=1",
                      .workers = 7,
                      .m = 31,
                      .n = 8,
                      .p = 1,
                      .op = KOFN_GRAM,
                      .sim = sim,
                      .opt = &opt};
        kofn_report rep;
        rig r;

        rig_up(&r, &k);
        for (int round = 1; round <= 3; round++) {
            assert_ok(rig_round(&r, &rep));
            assert_at_most(rig_error(&r), 1e-13);
            /* in round 2 worker 5 may answer before it goes */
            assert_true(rep.messages <= (round <= 2 ? 5 : 4));
        }
        assert_int_equal(rep.messages, 4);
        /* one of the plain ones goes, and what it held is not to be had */
        assert_status(KOFN_TOOFEW, rig_round(&r, &rep));
        rig_down(&r);
    }
}

/* ---- refusals (C16) -------------------------------------------------------------------------------------- */

static void refusals(void **state)
{
    static const struct {
        const char *spec;
        size_t n;
        kofn_status status;
        const char *says[3];
    } bad[] = {
        {"pcr:r=1", 6, KOFN_INVAL, {"r = 1 needs 11", "6 workers", "r = 2"}},
        {"pcr:r=7", 6, KOFN_INVAL, {"r = 7", "6", "r = 6 would fit"}},
        {"pcr:r=0", 6, KOFN_INVAL, {"r=0", "outside", "1.."}},
        {"pcr:r=2", 1, KOFN_INVAL, {"r = 2", "r = 1 would fit", ""}},
        {"pcr:r=2,angles=4", 6, KOFN_INVAL, {"angles = 4", "5..6", ""}},
        {"pcr:r=2,angles=7", 6, KOFN_INVAL, {"angles = 7", "5..6", ""}},
        {"pcr:r=3,angles=5,systematic=1", 6, KOFN_INVAL,
         {"angles = 5", "multiple", "2 blocks"}},
        {"pcr:r=3,basis=lagrange,angles=6", 6, KOFN_INVAL,
         {"angles = 6", "basis=circle", ""}},
        {"pcr:systematic=2", 6, KOFN_INVAL, {"systematic=2", "", ""}},
        {"pcr:basis=line", 6, KOFN_INVAL, {"circle|lagrange", "", ""}},
        {"pcr:layout=old", 6, KOFN_INVAL, {"super|paper", "", ""}},
    };
    static const kofn_op other[] = {KOFN_MATVEC, KOFN_MATMUL, KOFN_LEFT,
                                    KOFN_SUM};
    kofn_problem pb = gram;
    kofn_plan *plan;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_status(bad[i].status, kofn_plan_new(&plan, &gram, bad[i].spec,
                                                   bad[i].n, 1));
        assert_null(plan);
        for (size_t s = 0; s < 3; s++)
            if (!strstr(kofn_errmsg(), bad[i].says[s]))
                fail_msg("%s: \"%s\" is not in: %s", bad[i].spec,
                         bad[i].says[s], kofn_errmsg());
    }
    for (size_t i = 0; i < 4; i++) {
        pb.op = other[i];
        assert_status(KOFN_UNSUITED, kofn_plan_new(&plan, &pb, "pcr", 6, 1));
    }
    pb = gram;
    pb.sparse = true;
    assert_status(KOFN_UNSUITED, kofn_plan_new(&plan, &pb, "pcr", 6, 1));
}

/* Fewer than K: an error, the output as it was, and no answer after. */
static void too_few_write_nothing(void **state)
{
    static const kofn_happening gone[] = {{1, 0, KOFN_EVENT_LEAVE, 1, 0},
                                          {1, 0, KOFN_EVENT_LEAVE, 3, 0}};
    kofn_options opt = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "pcr:r=2", .workers = 6, .m = 30, .n = 8, .p = 1,
                  .op = KOFN_GRAM, .sim = true, .opt = &opt};
    double nan;
    rig r;

    (void)state;
    opt.events = gone;
    opt.event_count = 2;
    rig_up(&r, &k);
    assert_status(KOFN_TOOFEW, rig_round(&r, NULL));
    for (size_t i = 0; i < 8; i++) {
        nan = ((double *)r.y.data)[i];
        assert_true(isnan(nan));
    }
    ((double *)r.x.data)[3] = NAN;
    assert_true(kofn_round(r.job, &r.x, &r.y, NULL) < 0);
    rig_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_survivor_set),
        cmocka_unit_test(plain_blocks_add_up),
        cmocka_unit_test(even_sets_are_enough),
        cmocka_unit_test(weights_have_minimum_norm),
        cmocka_unit_test(the_papers_example),
        cmocka_unit_test(thresholds),
        cmocka_unit_test(both_layouts),
        cmocka_unit_test(circle_table),
        cmocka_unit_test(many_workers),
        cmocka_unit_test(it_receives_K_answers),
        cmocka_unit_test(the_plain_ones_suffice),
        cmocka_unit_test(refusals),
        cmocka_unit_test(too_few_write_nothing),
    };

    rig_begin();
    return cmocka_run_group_tests_name("pcr", tests, NULL, NULL);
}
