/* numerics_adversary_test.c -- the noise of survivor sets: sought by an
 * adversary, and followed into the tail of random losses (docs/numerics.md). */
#include "numerics_rig.h"

/* The noise of a systematic quaternion code, computed directly in quaternions:
 * a fast adversary, and a second opinion on kf_decoder_new.
 *
 * With U the lost blocks, Q the remaining parity seats, W = P_QU^-1 and H = P
 * P*, the decoder has rows [-W P_QK, W], and since W P_QU = I
 *
 *     ||W P_QK||^2 = tr(W H_QQ W*) - |U|. */
typedef struct quat {
    double a, b, c, d;
} quat;

typedef struct prey {
    size_t n, k, r;
    quat *P, *H; /* r x k, r x r */
    quat *M, *W; /* scratch, r x r */
} prey;

static quat times(quat p, quat q)
{
    return (quat){p.a * q.a - p.b * q.b - p.c * q.c - p.d * q.d,
                  p.a * q.b + p.b * q.a + p.c * q.d - p.d * q.c,
                  p.a * q.c - p.b * q.d + p.c * q.a + p.d * q.b,
                  p.a * q.d + p.b * q.c - p.c * q.b + p.d * q.a};
}

static quat bar(quat q)
{
    return (quat){q.a, -q.b, -q.c, -q.d};
}

static double dot(quat p, quat q)
{
    return p.a * q.a + p.b * q.b + p.c * q.c + p.d * q.d;
}

static void add(quat *to, double f, quat q)
{
    to->a += f * q.a;
    to->b += f * q.b;
    to->c += f * q.c;
    to->d += f * q.d;
}

static quat over_norm(quat q)
{
    double s = 1 / dot(q, q);

    return (quat){q.a * s, q.b * s, q.c * s, q.d * s};
}

static void prey_up(prey *h, size_t n, size_t k, uint64_t seed)
{
    double *rows = kf_new(16 * k, sizeof *rows);

    *h = (prey){.n = n, .k = k, .r = n - k};
    h->P = kf_new(h->r * k, sizeof *h->P);
    h->H = kf_zero(h->r * h->r, sizeof *h->H);
    h->M = kf_new(h->r * h->r, sizeof *h->M);
    h->W = kf_new(h->r * h->r, sizeof *h->W);
    assert_true(rows && h->P && h->H && h->M && h->W);
    for (size_t i = 0; i < h->r; i++) {
        kf_basis_rows(&(kf_family){KF_BASIS_QUATERNION, n, k, 0, seed, NULL},
                      k + i, rows);
        /* the first column of L(q) is q */
        for (size_t j = 0; j < k; j++)
            h->P[i * k + j] = (quat){rows[4 * j], rows[4 * k + 4 * j],
                                     rows[8 * k + 4 * j], rows[12 * k + 4 * j]};
    }
    for (size_t i = 0; i < h->r; i++)
        for (size_t l = 0; l < h->r; l++)
            for (size_t j = 0; j < k; j++)
                add(&h->H[i * h->r + l], 1,
                    times(h->P[i * k + j], bar(h->P[l * k + j])));
    kf_free(rows);
}

static void prey_down(prey *h)
{
    kf_free(h->P);
    kf_free(h->H);
    kf_free(h->M);
    kf_free(h->W);
}

static void swap(quat *a, quat *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        quat t = a[i];

        a[i] = b[i];
        b[i] = t;
    }
}

/* Computes W = M^-1 by Gauss-Jordan elimination; false if singular. */
static bool invert(quat *M, quat *W, size_t m)
{
    memset(W, 0, m * m * sizeof *W);
    for (size_t i = 0; i < m; i++)
        W[i * m + i].a = 1;
    for (size_t j = 0; j < m; j++) {
        size_t best = j;
        quat pivot;

        for (size_t i = j + 1; i < m; i++)
            if (dot(M[i * m + j], M[i * m + j]) >
                dot(M[best * m + j], M[best * m + j]))
                best = i;
        if (!(dot(M[best * m + j], M[best * m + j]) > 0))
            return false;
        swap(M + j * m, M + best * m, m);
        swap(W + j * m, W + best * m, m);
        pivot = over_norm(bar(M[j * m + j]));
        for (size_t c = 0; c < m; c++) {
            M[j * m + c] = times(pivot, M[j * m + c]);
            W[j * m + c] = times(pivot, W[j * m + c]);
        }
        for (size_t i = 0; i < m; i++) {
            quat f = M[i * m + j];

            for (size_t c = j; i != j && c < m; c++)
                add(&M[i * m + c], -1, times(f, M[j * m + c]));
            for (size_t c = 0; i != j && c < m; c++)
                add(&W[i * m + c], -1, times(f, W[j * m + c]));
        }
    }
    return true;
}

static double noise_without(const prey *h, const bool *lost)
{
    size_t m = 0, row = 0, *unknown, *parity;
    size_t place[2048];
    double sum;

    unknown = place;
    parity = place + 1024;
    for (size_t i = 0; i < h->k; i++)
        if (lost[i])
            unknown[m++] = i;
    for (size_t i = 0; i < h->r; i++)
        if (!lost[h->k + i])
            parity[row++] = i;
    assert_int_equal(row, m);
    for (size_t q = 0; q < m; q++)
        for (size_t u = 0; u < m; u++)
            h->M[q * m + u] = h->P[parity[q] * h->k + unknown[u]];
    if (!invert(h->M, h->W, m))
        return HUGE_VAL;
    sum = (double)h->k - 2 * (double)m;
    for (size_t i = 0; i < m; i++)
        for (size_t q = 0; q < m; q++) {
            quat wh = {0, 0, 0, 0}, w = h->W[i * m + q];

            for (size_t l = 0; l < m; l++)
                add(&wh, 1,
                    times(h->W[i * m + l], h->H[parity[l] * h->r + parity[q]]));
            sum +=
                dot(wh, w) + dot(w, w) * h->H[parity[q] * h->r + parity[q]].a;
        }
    return sqrt(sum / (double)h->k);
}

/* Swaps a lost seat with a survivor while that increases the noise. */
static double climb(const prey *h, bool *lost, kf_rng *r, size_t budget)
{
    double noise = noise_without(h, lost);
    size_t swaps = h->n * h->n, failed = 0, at = kf_rng_below(r, swaps);
    size_t stride = h->n * 7 + 1; /* visits every pair */

    for (; failed < swaps && budget; at = (at + stride) % swaps, failed++) {
        size_t out = at / h->n, in = at % h->n;
        double now;

        if (!lost[in] || lost[out])
            continue;
        lost[in] = false;
        lost[out] = true;
        budget--;
        now = noise_without(h, lost);
        if (now > noise) {
            noise = now;
            failed = 0;
        } else {
            lost[in] = true;
            lost[out] = false;
        }
    }
    return noise;
}

static void survivors(const bool *lost, size_t n, uint32_t *set)
{
    for (size_t i = 0, taken = 0; i < n; i++)
        if (!lost[i])
            set[taken++] = (uint32_t)i;
}

static void random_losses(kf_rng *r, bool *lost, size_t k, size_t n)
{
    for (size_t i = 0, taken = 0; i < n; i++) {
        lost[i] = kf_rng_below(r, n - i) >= k - taken;
        taken += !lost[i];
    }
}

/* Loses three other seats instead of some. */
static void shake(kf_rng *r, bool *lost, size_t n)
{
    for (int swaps = 0; swaps < 3;) {
        size_t a = kf_rng_below(r, n), b = kf_rng_below(r, n);

        if (lost[a] == lost[b])
            continue;
        lost[a] = !lost[a];
        lost[b] = !lost[b];
        swaps++;
    }
}

/* Starts from random sets and from near the worst, in turn. Compares both
 * opinions on the noise, then the error. */
static void hunt(pair *p, size_t n, size_t k, size_t starts, size_t budget,
                 tally *t)
{
    kf_rng r = kf_rng_stream(9, KF_FOR_SAMPLE, (uint32_t)n, (uint32_t)k);
    bool lost[1000], worst[1000];
    double top = 0;
    prey h;

    prey_up(&h, n, k, 1);
    for (size_t s = 0; s < starts; s++) {
        uint32_t set[1000];
        kofn_decoder *d;
        double noise;

        if (s % 2) {
            memcpy(lost, worst, n);
            shake(&r, lost, n);
        } else {
            random_losses(&r, lost, k, n);
        }
        noise = climb(&h, lost, &r, budget);
        if (noise > top)
            memcpy(worst, lost, n);
        top = fmax(top, noise);
        survivors(lost, n, set);
        assert_ok(kf_decoder_new(&d, p->f64.code, set, k, false));
        assert_at_most(fabs(d->noise / noise - 1), 1e-8);
        kf_decoder_free(d);
        try_set(p, set, k, t);
    }
    prey_down(&h);
}

static void attack(size_t n, size_t k, size_t starts, size_t budget,
                   size_t random, tally *worst)
{
    tally t = {0};
    char spec[40], what[40];
    pair p;

    snprintf(spec, sizeof spec, "mds:k=%zu", k);
    pair_up(&p, spec, n, n, 1);
    try_windows(&p, k, n, &t);
    snprintf(what, sizeof what, "(%zu,%zu) contiguous", n, k);
    say(what, &t);
    *worst = (tally){0};
    try_random(&p, k, n, random, worst);
    snprintf(what, sizeof what, "(%zu,%zu) random", n, k);
    say(what, worst);
    hunt(&p, n, k, starts, budget, &t);
    snprintf(what, sizeof what, "(%zu,%zu) worst found", n, k);
    say(what, &t);
    worst->f64.whole = fmax(worst->f64.whole, t.f64.whole);
    worst->f64.block = fmax(worst->f64.block, t.f64.block);
    worst->f32.whole = fmax(worst->f32.whole, t.f32.whole);
    pair_down(&p);
}

static void adversary_up_to_128(void **state)
{
    static const size_t codes[][3] = {
        {64, 56, 300}, {64, 32, 40}, {128, 120, 100}};

    (void)state;
    for (size_t c = 0; c < 3; c++) {
        tally t;

        attack(codes[c][0], codes[c][1], effort((double)codes[c][2]), 20000,
               effort(200), &t);
        assert_at_most(t.f64.whole, 1e-10);
        assert_at_most(t.f32.whole, 1e-3);
    }
}

static void adversary_up_to_1000(void **state)
{
    static const size_t codes[][2] = {{256, 240}, {1000, 990}};

    (void)state;
    for (size_t c = 0; c < 2; c++) {
        tally t;

        attack(codes[c][0], codes[c][1], effort(2), 20000, effort(20), &t);
        assert_at_most(t.f64.block, 1e-9);
    }
}

/* P(noise > x median) ~ x^-4 (math/numerics.md 0): of random sets at (64,56)
 * one in 62 exceeds 3 medians and one in 15 000 exceeds 10. With real
 * coefficients it would be one in 6 and one in 19. Five standard deviations
 * are allowed. */
static int ascending(const void *a, const void *b)
{
    double x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static void tail_power(void **state)
{
    size_t sets = effort(30000), beyond3 = 0, beyond10 = 0;
    kf_rng r = kf_rng_stream(6, KF_FOR_SAMPLE, 0, 0);
    double *noise = kf_new(sets, sizeof *noise), median, expect = 0.016;
    bool lost[64];
    prey h;

    (void)state;
    assert_non_null(noise);
    prey_up(&h, 64, 56, 1);
    for (size_t i = 0; i < sets; i++) {
        random_losses(&r, lost, 56, 64);
        noise[i] = noise_without(&h, lost);
    }
    qsort(noise, sets, sizeof *noise, ascending);
    median = noise[sets / 2];
    for (size_t i = 0; i < sets; i++) {
        beyond3 += noise[i] > 3 * median;
        beyond10 += noise[i] > 10 * median;
    }
    print_message("    (64,56) %zu random sets: median noise %.1f, beyond 3 "
                  "medians %.1e, beyond 10 %.1e, worst %.1f medians\n",
                  sets, median, (double)beyond3 / (double)sets,
                  (double)beyond10 / (double)sets, noise[sets - 1] / median);
    expect *= (double)sets;
    assert_at_most((double)beyond3, expect + 5 * sqrt(expect));
    expect = 6.7e-5 * (double)sets;
    assert_at_most((double)beyond10, expect + 5 * sqrt(expect) + 1);
    prey_down(&h);
    kf_free(noise);
}

TEST_FILE(numerics_adversary_test)
{
    const struct CMUnitTest tests[] = {
        TEST(adversary_up_to_128,
             "numerics: no adversary finds large noise (up to 128 workers)"),
        TEST(adversary_up_to_1000,
             "numerics: no adversary finds large noise (up to 1000 workers)"),
        TEST(tail_power,
             "numerics: the tail of the noise falls with the fourth power"),
    };

    return cmocka_run_group_tests_name("numerics_adversary", tests, setup,
                                       NULL);
}
