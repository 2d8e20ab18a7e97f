/* product_numerics_test.c -- the measured accuracy of coded products.
 *
 * There are three kinds of survivor sets: bad ones (neighbours in angle are
 * lost), usual ones (neighbours in number, as in a rack; random ones), and
 * those found by an adversary that maximises the noise. No error may exceed
 * its prediction or the figures of docs/numerics.md. */
#include "product_rig.h"

#define MOST 200 /* seats */

/* Dot products of 64, as in the tables compared with. */
static const sides blocks = {6, 64, 7};

/* Returns the number of searches, samples or trials; a fraction under
 * sanitizers. */
static size_t effort(double n)
{
    return (size_t)ceil(n * test_scale() / EVERY);
}

/* ---- sets and results -----------------------------------------------------
 */

typedef struct tally {
    double error[2]; /* f64, f32: worst */
    double ratio[2]; /* worst error / predicted */
    double slack;    /* largest predicted / error if the noise is large */
    double noise;
    size_t sets, refused; /* refused by the guard of float32 */
} tally;

typedef struct pair {
    product_case f[2];
    size_t n, k;
} pair;

static void pair_of(pair *p, kofn_op op, const char *spec, size_t n, sides s)
{
    for (int t = 0; t < 2; t++)
        case_up(&p->f[t], op, spec, n, n, s, t ? KOFN_F32 : KOFN_F64, 1);
    p->n = n;
    p->k = p->f[0].L->enough;
    assert_true(n <= MOST);
}

static void pair_up(pair *p, kofn_op op, const char *spec, size_t n)
{
    pair_of(p, op, spec, n, blocks);
}

static void pair_down(pair *p)
{
    case_down(&p->f[0]);
    case_down(&p->f[1]);
}

/* A larger prediction says only that nothing is left of the answer. */
#define HOPELESS 1e-2

static void count(tally *t, int type, double e, const kofn_decoder *d)
{
    if (d->predicted > HOPELESS)
        return;
    assert_at_most(e, d->predicted);
    t->error[type] = fmax(t->error[type], e);
    t->ratio[type] = fmax(t->ratio[type], e / d->predicted);
    if (d->noise > 100)
        t->slack = fmax(t->slack, d->predicted / e);
}

static double try_set(pair *p, const uint32_t *set, size_t k, tally *t)
{
    double noise = 0;

    t->sets++;
    for (int type = 0; type < 2; type++) {
        kofn_decoder *d;
        kofn_status st = kf_decoder_new(&d, p->f[type].code, set, k, false);

        if (st == KOFN_TOOFEW && k < p->f[type].plan->layout.threshold) {
            t->refused +=
                type ==
                1; /* not every set of this size suffices, and it says so */
            continue;
        }
        assert_ok(st);
        count(t, type, error_of(&p->f[type], d), d);
        t->refused += type == 1 && d->predicted > 1e-4;
        noise = d->noise;
        kf_decoder_free(d);
    }
    t->noise = fmax(t->noise, noise);
    return noise;
}

static void merge(tally *all, const tally *t)
{
    for (int type = 0; type < 2; type++) {
        all->error[type] = fmax(all->error[type], t->error[type]);
        all->ratio[type] = fmax(all->ratio[type], t->ratio[type]);
    }
    all->slack = fmax(all->slack, t->slack);
    all->noise = fmax(all->noise, t->noise);
    all->sets += t->sets;
    all->refused += t->refused;
}

static void say(const char *what, const tally *t)
{
    print_message("    %-34s %6zu sets: noise %.1e  f64 %.1e  f32 %.1e  of "
                  "predicted %.2f %.2f, predicted at most %.0f times",
                  what, t->sets, t->noise, t->error[0], t->error[1],
                  t->ratio[0], t->ratio[1], t->slack);
    if (t->refused)
        print_message("  (f32 guard: no to %zu)", t->refused);
    print_message("\n");
}

/* ---- an adversary -------------------------------------------------------- */

static double noise_of(pair *p, const uint32_t *set, size_t k)
{
    double noise = HUGE_VAL;
    kofn_decoder *d;

    assert_ok(kf_decoder_new(&d, p->f[0].code, set, k, false));
    noise = d->noise;
    kf_decoder_free(d);
    return noise;
}

/* Replaces one seat of a set. */
static void swapped(const uint32_t *set, size_t k, size_t n, kf_rng *r,
                    uint32_t *out)
{
    bool in[MOST] = {false};
    size_t take, drop = (size_t)kf_rng_below(r, k), j = 0;

    for (size_t i = 0; i < k; i++)
        in[set[i]] = true;
    do {
        take = (size_t)kf_rng_below(r, n);
    } while (in[take]);
    in[set[drop]] = false;
    in[take] = true;
    for (size_t i = 0; i < n; i++)
        if (in[i])
            out[j++] = (uint32_t)i;
}

/* Swaps seats while that increases the noise, for `steps` trials. */
static void search(pair *p, uint32_t *set, size_t k, size_t steps, kf_rng *r)
{
    double best = noise_of(p, set, k);
    uint32_t next[MOST];

    for (size_t s = 0; s < steps && k < p->n; s++) {
        double noise;

        swapped(set, k, p->n, r, next);
        noise = noise_of(p, next, k);
        if (noise > best) {
            best = noise;
            memcpy(set, next, k * sizeof *set);
        }
    }
}

/* ---- the circle ---------------------------------------------------------- */

static size_t gcd(size_t a, size_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* math/numerics.md 3.2: seat j is at place tau j mod n, tau about 0.618 n. The
 * places are right if their neighbours are the worst losses. */
static size_t step_of(size_t n)
{
    size_t near = (size_t)(0.6180339887498949 * (double)n + 0.5), d = 0;

    while (gcd(near + d, n) != 1 && gcd(near - d, n) != 1)
        d++;
    return gcd(near + d, n) == 1 ? near + d : near - d;
}

/* Loses the seats at places at .. at + n-k-1. */
static void without_arc(uint32_t *set, size_t k, size_t n, size_t at)
{
    size_t tau = step_of(n), j = 0;

    for (size_t i = 0; i < n; i++)
        if ((tau * i % n + n - at) % n >= n - k)
            set[j++] = (uint32_t)i;
    assert_int_equal(j, k);
}

static const size_t spare[] = {1, 2, 3, 4, 5, 6, 8, 10};
#define SPARES (sizeof spare / sizeof *spare)

/* math/numerics.md 3.4: worst errors for this number of workers beyond K; 0:
 * no figure. */
typedef struct figures {
    const char *spec;
    size_t K;
    double f64[SPARES], f32[SPARES];
} figures;

static const figures tables[] = {
    {"matdot:n=3",
     5,
     {3e-16, 7e-16, 7e-16, 3e-15, 4e-15, 7e-15, 2e-14, 3e-14},
     {0}},
    {"matdot:n=5",
     9,
     {5e-16, 1e-15, 4e-15, 1e-14, 4e-14, 7e-14, 2e-13, 6e-13},
     {6e-8, 2e-7, 7e-7, 2e-6, 5e-6, 1e-5, 5e-5, 1e-4}},
    {"matdot:n=10",
     19,
     {6e-16, 4e-15, 2e-14, 1e-13, 5e-13, 1e-12, 9e-12, 6e-11},
     {0}},
    {"matdot:n=20",
     39,
     {9e-16, 1e-14, 1e-13, 1e-12, 5e-12, 6e-11, 1e-9, 1e-8},
     {7e-8, 7e-7, 9e-6, 1e-4, 7e-4, 4e-3, 1e-1, 1}},
    {"matdot:n=30",
     59,
     {2e-15, 3e-14, 6e-13, 7e-12, 5e-11, 5e-10, 2e-8, 5e-7},
     {0}},
    {"matdot:n=50",
     99,
     {2e-15, 8e-14, 2e-12, 4e-11, 5e-10, 7e-9, 5e-7, 5e-5},
     {4e-8, 3e-6, 7e-5, 2e-3, 2e-2, 3e-1, 0, 0}},
    {"gpd:m=2,n=2,p=2",
     9,
     {7e-16, 2e-15, 4e-15, 1e-14, 3e-14, 5e-14, 2e-13, 5e-13},
     {0}},
    {"gpd:m=3,n=3,p=3",
     29,
     {1e-15, 7e-15, 5e-14, 3e-13, 2e-12, 8e-12, 9e-11, 8e-10},
     {0}},
    {"gpd:m=4,n=4,p=4",
     67,
     {2e-15, 3e-14, 4e-13, 6e-12, 6e-11, 5e-10, 2e-8, 8e-7},
     {0}},
    {"gpd:m=5,n=3,p=5",
     77,
     {2e-15, 3e-14, 6e-13, 1e-11, 1e-10, 1e-9, 7e-8, 4e-6},
     {0}},
    {"polynomial:m=8,p=8,basis=circle",
     64,
     {2e-15, 3e-14, 4e-13, 5e-12, 5e-11, 3e-10, 1e-8, 5e-7},
     {0}},
};

/* Tries the worst, the usual and the sought losses of one code. */
static void circle_sets(pair *p, tally *arcs, tally *windows, tally *others)
{
    size_t k = p->k, n = p->n;
    size_t some = effort(fmin(1e5 / (double)(k * k) + 4, 200));
    kf_rng r = kf_rng_stream(n, KF_FOR_SAMPLE, 3, 0);
    uint32_t set[MOST];

    for (size_t i = 0; i < 4; i++) {
        without_arc(set, k, n, i * n / 4);
        try_set(p, set, k, arcs);
    }
    for (size_t i = 0; i < some && i < n; i++) {
        without_window(set, k, n, i * n / kf_min(some, n));
        try_set(p, set, k, windows);
    }
    for (size_t i = 0; i < some; i++) {
        random_set(&r, set, k, n);
        try_set(p, set, k, others);
    }
    search(p, set, k, some * 8, &r);
    try_set(p, set, k, others);
}

/* Twice a figure of the table, which has one digit and comes from one draw of
 * operands. Twice again, because the order of summation is unknown: one number
 * after another rounds 64 products, with the other roundings, sqrt((64/2 +
 * 3.5) / (log2 64 + 3)) = 2 times as much as by halves (docs/numerics.md). And
 * two units for the rounding of the result. */
static double at_most(double figure, int type)
{
    return 2 * 2 * figure + (type ? 2e-7 : 2e-15);
}

static void circle_code(const figures *t, tally *all, tally *racks)
{
    print_message("    %-34s", t->spec);
    for (size_t s = 0; s < SPARES; s++) {
        tally arcs = {0}, windows = {0}, others = {0};
        bool sure = spare[s] <= 4 || (t->K <= 59 && spare[s] <= 6) ||
                    (t->K <= 19 && spare[s] <= 10);
        pair p;

        pair_up(&p, KOFN_MATMUL, t->spec, t->K + spare[s]);
        assert_int_equal(p.k, t->K);
        circle_sets(&p, &arcs, &windows, &others);
        /* Neighbours in angle are the worst case. */
        assert_at_most(windows.noise, arcs.noise * (1 + 1e-6));
        assert_at_most(others.noise, arcs.noise * (1 + 1e-6));
        merge(&arcs, &others);
        merge(&arcs, &windows);
        print_message(" %.1e", arcs.error[0]);
        assert_at_most(arcs.error[0], at_most(t->f64[s], 0));
        if (t->f32[s] > 0)
            assert_at_most(arcs.error[1], at_most(t->f32[s], 1));
        assert_at_most(arcs.error[0], sure ? 1e-9 : 1); /* docs/numerics.md */
        merge(all, &arcs);
        merge(racks, &windows);
        pair_down(&p);
    }
}

static void circle_codes(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof tables / sizeof *tables; c++) {
        tally all = {0}, racks = {0};

        circle_code(&tables[c], &all, &racks);
        print_message("\n");
        say("  all", &all);
        say("  racks alone", &racks);
        /* neighbours in number are far apart in angle: math/numerics.md 3.2 */
        assert_at_most(racks.error[0], 2.4e-14);
        assert_at_most(all.slack, 30);
    }
}

/* Left products by v = u^m have the exponents of products by u = v^n. */
static void left_products(void **state)
{
    static const figures left[] = {
        {"gpd:m=2,n=2,p=2,sub=vum",
         9,
         {7e-16, 2e-15, 4e-15, 1e-14, 3e-14, 5e-14, 2e-13, 5e-13},
         {0}},
        {"gpd:m=3,n=3,p=3,sub=vum",
         29,
         {1e-15, 7e-15, 5e-14, 3e-13, 2e-12, 8e-12, 9e-11, 8e-10},
         {0}},
    };

    (void)state;
    for (size_t c = 0; c < 2; c++)
        for (size_t s = 0; s < SPARES; s++) {
            tally arcs = {0}, windows = {0}, others = {0};
            pair p;

            pair_up(&p, KOFN_LEFT, left[c].spec, left[c].K + spare[s]);
            assert_int_equal(p.k, left[c].K);
            circle_sets(&p, &arcs, &windows, &others);
            assert_at_most(windows.noise, arcs.noise * (1 + 1e-6));
            assert_at_most(arcs.error[0], at_most(left[c].f64[s], 0));
            pair_down(&p);
        }
}

/* ---- Khatri-Rao: quaternions x reals ------------------------------------- */

static void khatri_rao_code(const char *spec, size_t n, tally *random,
                            tally *racks, tally *sought)
{
    kf_rng r = kf_rng_stream(n, KF_FOR_SAMPLE, 4, 0);
    uint32_t set[MOST], worst[MOST];
    size_t k, searches = effort(3);
    double most = 0;
    pair p;

    pair_up(&p, KOFN_MATMUL, spec, n);
    k = p.k;
    for (size_t i = 0; i < effort(100); i++) {
        double noise;

        random_set(&r, set, k, n);
        noise = try_set(&p, set, k, random);
        if (noise > most) {
            most = noise;
            memcpy(worst, set, sizeof worst);
        }
    }
    for (size_t i = 0; i < n; i += EVERY) {
        without_window(set, k, n, i);
        try_set(&p, set, k, racks);
    }
    for (size_t i = 0; i < searches; i++) {
        if (i == 0)
            memcpy(set, worst, sizeof set);
        else
            random_set(&r, set, k, n);
        search(&p, set, k, effort(120), &r);
        try_set(&p, set, k, sought);
    }
    pair_down(&p);
}

/* math/numerics.md 3.1 and 7.4. */
static void khatri_rao(void **state)
{
    static const struct {
        const char *spec;
        size_t n;
    } codes[] = {{"polynomial:m=2,p=2", 8},    {"polynomial:m=3,p=3", 12},
                 {"polynomial:m=4,p=4", 24},   {"polynomial:m=6,p=6", 44},
                 {"polynomial:m=6,p=6", 64},   {"polynomial:m=8,p=8", 72},
                 {"polynomial:m=8,p=8", 96},   {"polynomial:m=4,p=16", 72},
                 {"polynomial:m=16,p=4", 72},  {"polynomial:m=10,p=10", 108},
                 {"polynomial:m=10,p=10", 128}};
    tally random = {0}, racks = {0}, sought = {0};

    (void)state;
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
        khatri_rao_code(codes[c].spec, codes[c].n, &random, &racks, &sought);
    say("quaternion x real, random", &random);
    say("quaternion x real, racks", &racks);
    say("quaternion x real, sought", &sought);
    assert_at_most(random.error[0], 1e-12);
    assert_at_most(random.error[1], 1e-4);
    assert_at_most(racks.error[0], 1e-12);
    assert_at_most(sought.error[0], 1e-10);
    /* the prediction for a noise of 2e4, which no search has exceeded */
    assert_at_most(sought.error[1], 6e-8 * 2e4 * sqrt(6.5 + 0.8 * 64));
    assert_at_most(sought.slack, 60);
}

/* ---- many more workers than K ---------------------------------------------
 */

/* Random losses, which leave enough different angles or are refused. */
static void random_losses(const char *spec, size_t n, size_t left, double bound,
                          double share)
{
    kf_rng r = kf_rng_stream(n, KF_FOR_SAMPLE, 5, (uint32_t)left);
    size_t trials = effort(40), decoded_all = 0;
    char name[60];
    tally t = {0};
    pair p;

    pair_up(&p, KOFN_MATMUL, spec, n);
    for (size_t i = 0; i < trials; i++) {
        uint32_t set[MOST];
        kofn_status st;
        kofn_decoder *d;

        random_set(&r, set, left, n);
        st = kf_decoder_new(&d, p.f[0].code, set, left, false);
        kf_decoder_free(d);
        assert_true(st == KOFN_OK || st == KOFN_TOOFEW);
        if (st)
            continue;
        decoded_all++;
        try_set(&p, set, left, &t);
    }
    snprintf(name, sizeof name, "%s, %zu of %zu", spec, left, n);
    say(name, &t);
    assert_true((double)decoded_all >= share * (double)trials);
    assert_at_most(t.error[0], bound);
    assert_at_most(t.ratio[0], 0.55); /* 0.68 without refinement */
    pair_down(&p);
}

/* math/numerics.md 3.5; its figures (5e-15, 8e-15, 1e-15) are the worst of 60
 * sets, and some of more sets are worse. */
static void replicated_angles(void **state)
{
    (void)state;
    random_losses("matdot:n=16,angles=36", 128, 77, 5e-14, 1);
    random_losses("matdot:n=16,angles=36", 128, 64, 1e-9, 0.85);
    random_losses("matdot:n=30,angles=66", 200, 140, 8e-14, 1);
    random_losses("matdot:n=30,angles=66", 200, 120, 1e-9, 0.85);
    random_losses("matdot:n=10,angles=24", 200, 100, 1e-14, 1);
    random_losses("matdot:n=16", 128, 77, 5e-14, 1); /* angles=37 */
    random_losses("gpd:m=4,n=3,p=3", 120, 84, 1e-13, 1);
}

/* The worst case of `threshold` seats: all of the K fullest angles but one,
 * which a single worker holds. */
static void threshold_of_angles(void **state)
{
    static const char *const specs[] = {"matdot:n=10", "gpd:m=3,n=2,p=2",
                                        "polynomial:m=4,p=4,basis=circle"};
    tally t = {0};

    (void)state;
    for (size_t c = 0; c < 3; c++) {
        kf_rng r = kf_rng_stream(c, KF_FOR_SAMPLE, 6, 0);
        pair p;

        pair_up(&p, KOFN_MATMUL, specs[c], 70);
        assert_true(p.f[0].L->threshold > p.k);
        for (size_t i = 0; i < effort(60); i++) {
            uint32_t set[MOST];

            if (i < 30)
                without_window(set, p.f[0].L->threshold, 70, i);
            else
                random_set(&r, set, p.f[0].L->threshold, 70);
            try_set(&p, set, p.f[0].L->threshold, &t);
        }
        pair_down(&p);
    }
    say("70 workers, any `threshold`", &t);
    assert_at_most(t.error[0], 1e-9);
}

/* ---- product codes ------------------------------------------------------- */

static void product_codes(void **state)
{
    static const struct {
        const char *spec;
        size_t n;
    } codes[] = {{"product:m=3,m2=4,p=3,p2=4", 16},
                 {"product:m=7,m2=8,p=7,p2=8", 64},
                 {"product:m=8,m2=10,p=8,p2=10", 100},
                 {"product:m=9,m2=12,p=8,p2=12", 144}};
    tally t = {0};

    (void)state;
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        kf_rng r = kf_rng_stream(c, KF_FOR_SAMPLE, 7, 0);
        size_t k;
        pair p;

        pair_up(&p, KOFN_MATMUL, codes[c].spec, codes[c].n);
        k = p.f[0].L->threshold;
        for (size_t i = 0; i < effort(20); i++) {
            uint32_t set[MOST];

            random_set(&r, set, k, p.n);
            try_set(&p, set, k, &t);
            without_window(set, k, p.n, i * p.n / effort(20));
            try_set(&p, set, k, &t);
            search(&p, set, k, effort(10), &r);
            try_set(&p, set, k, &t);
        }
        pair_down(&p);
    }
    say("product codes, any `threshold`", &t);
    assert_at_most(t.error[0], 1e-12);
    assert_at_most(t.error[1], 1e-4);
}

/* ---- long sums ----------------------------------------------------------- */

/* Rounding grows, and the prediction with it. */
static void long_sums(void **state)
{
    static const struct {
        kofn_op op;
        const char *spec;
    } codes[] = {{KOFN_MATMUL, "gpd:m=2,n=2,p=2"},
                 {KOFN_LEFT, "gpd:m=2,n=2,p=2"},
                 {KOFN_MATMUL, "polynomial:m=3,p=3"}};
    tally t = {0};

    (void)state;
    for (size_t c = 0; c < 3; c++) {
        kf_rng r = kf_rng_stream(c, KF_FOR_SAMPLE, 9, 0);
        pair p;

        pair_of(&p, codes[c].op, codes[c].spec, 14, (sides){3, 20000, 3});
        for (size_t i = 0; i < effort(10); i++) {
            uint32_t set[MOST];

            random_set(&r, set, p.k, p.n);
            try_set(&p, set, p.k, &t);
        }
        pair_down(&p);
    }
    say("sums of 20 000", &t);
}

/* ---- other bases, for comparison ------------------------------------------
 */

/* If they fail they say so. */
static void predictions_hold(void **state)
{
    static const char *const specs[] = {
        "matdot:n=5,basis=",      "matdot:n=12,basis=",
        "matdot:n=33,basis=",     "polynomial:m=4,p=4,basis=",
        "gpd:m=2,n=2,p=2,basis=", "gpd:m=3,n=3,p=3,basis="};
    static const char *const bases[] = {"complex", "chebyshev", "monomial",
                                        "vandermonde"};

    (void)state;
    for (size_t b = 0; b < 4; b++) {
        tally all = {0};

        for (size_t c = 0; c < sizeof specs / sizeof *specs; c++) {
            kf_rng r = kf_rng_stream(c, KF_FOR_SAMPLE, 8, 0);
            char s[80];
            pair p;

            if (b == 1 && c > 3)
                continue;
            snprintf(s, sizeof s, "%s%s", specs[c], bases[b]);
            pair_up(&p, KOFN_MATMUL, s, 70);
            for (size_t i = 0; i < effort(40); i++) {
                size_t k = p.k + (size_t)kf_rng_below(&r, 5);
                uint32_t set[MOST];

                random_set(&r, set, k, 70);
                try_set(&p, set, k, &all);
            }
            pair_down(&p);
        }
        say(bases[b], &all);
    }
}

TEST_FILE(product_numerics_test)
{
    const struct CMUnitTest tests[] = {
        TEST(circle_codes,
             "products: circle codes are within twice the published figures"),
        TEST(left_products, "products: left products are as accurate"),
        TEST(khatri_rao,
             "khatri-rao: errors stay within prediction and search"),
        TEST(replicated_angles, "products: repeated angles stay accurate"),
        TEST(threshold_of_angles,
             "products: the worst threshold set stays accurate"),
        TEST(product_codes, "product codes: errors stay within the figures"),
        TEST(long_sums, "products: predictions follow the length of sums"),
        TEST(predictions_hold,
             "products: other bases are within their predictions"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
