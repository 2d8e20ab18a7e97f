/* gradient_test.c -- sums of gradients: every survivor set of small codes, the
 * invariants of gradient coding (SPEC-B D.8), worked examples, what the
 * schemes refuse, and what they send on real rounds. */
#include "gradient_rig.h"

#include "schemes/gradient.h"

#include <lapacke.h>

#define LENGTH 241 /* a prime: nothing divides it */
/* Sanitizers look at memory, and there is nothing new in more. */
#define LARGEST (SLOWED > 1 ? (size_t)5 : 8)

/* ---- when the sum is there (SPEC-B D.5.4) -------------------------------- */

typedef struct code_kind {
    size_t n, d, units; /* units: pieces of a vector, before any field */
    bool grouped;
} code_kind;

/* Where the group of a seat begins and ends (SPEC-B D.7.1). */
static void group_of_seat(const code_kind *k, size_t seat, size_t *from,
                          size_t *to)
{
    size_t groups = k->grouped ? k->n / k->d : 1;
    size_t h = seat / k->d < groups ? seat / k->d : groups - 1;

    *from = k->grouped ? h * k->d : 0;
    *to = h + 1 == groups ? k->n : *from + k->d;
}

/* Worker i has sent turns 0..count[i]-1. */
static bool decodable(const code_kind *k, const size_t *count)
{
    for (size_t from = 0, to; from < k->n; from = to) {
        size_t sum = 0, most = 0, begin;

        group_of_seat(k, from, &begin, &to);
        assert_int_equal(begin, from);
        for (size_t i = from; i < to; i++)
            most = count[i] > most ? count[i] : most;
        for (size_t t = 0; t < most; t++) {
            size_t sent = 0;

            for (size_t i = from; i < to; i++)
                sent += count[i] > t;
            if (sent + k->d > to - from)
                sum += sent + k->d - (to - from);
        }
        if (sum < k->units)
            return false;
    }
    return true;
}

static double error_after(fleet *f, const size_t *count)
{
    uint32_t *answers = numbers(f->n * f->L->turns, sizeof *answers);
    size_t n = 0;
    double e;

    for (size_t i = 0; i < f->n; i++)
        for (size_t t = 0; t < count[i]; t++)
            answers[n++] = (uint32_t)(i * f->L->turns + t);
    e = fleet_error(f, answers, n);
    kf_free(answers);
    return e;
}

/* The sum, as exactly as the decoder expects, up to four times that since the
 * vectors are short, and no worse than `worst`; or a refusal. */
static void try_counts(fleet *f, const char *spec, const size_t *count,
                       bool whole, double worst)
{
    double e = error_after(f, count);
    char text[200] = "";

    if (whole ? e >= 0 && e <= 4 * f->predicted && e <= worst : e < 0)
        return;
    for (size_t i = 0; i < f->n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %zu",
                 count[i]);
    fail_msg("%s on %zu workers who sent%s: error %g, predicted %g; should%s "
             "decode", spec, f->n, text, e, f->predicted, whole ? "" : " not");
}

/* ---- all survivor sets ---------------------------------------------------- */

/* One message each: all sets. */
static void all_sets(const char *spec, const code_kind *k, double worst)
{
    fleet f;
    size_t count[8];

    fleet_up(&f, spec, k->n, LENGTH, KOFN_F64);
    for (unsigned set = 0; set < 1u << k->n; set++) {
        for (size_t i = 0; i < k->n; i++)
            count[i] = set >> i & 1;
        try_counts(&f, spec, count, decodable(k, count), worst);
    }
    fleet_down(&f);
}

/* The default and its kin, and what was published. */
static double worst_of(size_t construction)
{
    return construction < 3 ? 1e-13 : 1e-9;
}

static void gc_by_all_sets(void **state)
{
    static const char *const how[] = {"dual",   "dft",        "quaternion",
                                      "cyclic", "polynomial"};
    char spec[100];

    (void)state;
    for (size_t n = 1; n <= LARGEST; n++)
        for (size_t d = 1; d <= n; d++)
            for (size_t c = 0; c < sizeof how / sizeof *how; c++) {
                snprintf(spec, sizeof spec, "gc:d=%zu,construction=%s", d,
                         how[c]);
                all_sets(spec, &(code_kind){n, d, 1, false}, worst_of(c));
            }
}

static void cgc_by_all_sets(void **state)
{
    static const char *const how[] = {"dual", "dft", "quaternion",
                                      "vandermonde", "random"};
    char spec[100];

    (void)state;
    for (size_t n = 1; n <= LARGEST; n++)
        for (size_t d = 1; d <= n; d++)
            for (size_t m = 1; m <= d; m++)
                for (size_t c = 0; c < sizeof how / sizeof *how; c++) {
                    snprintf(spec, sizeof spec, "cgc:d=%zu,m=%zu,construction=%s",
                             d, m, how[c]);
                    all_sets(spec, &(code_kind){n, d, m, false}, worst_of(c));
                    if (c < 3) {
                        snprintf(spec, sizeof spec,
                                 "g-cgc:d=%zu,m=%zu,construction=%s", d, m,
                                 how[c]);
                        all_sets(spec, &(code_kind){n, d, m, true}, worst_of(c));
                    }
                }
}

/* Answers that are sums of whole parts: every part must be in one of them. */
static void plain_by_all_sets(void **state)
{
    static const char *const spec[] = {
        "uncoded",     "replication:k=2",
        "replication", "gc:d=2,construction=fractional",
        "bcc:r=2",     "gc:d=4,construction=fractional",
        "bcc:r=4"};

    (void)state;
    for (size_t s = 0; s < sizeof spec / sizeof *spec; s++) {
        fleet f;
        size_t count[8];

        fleet_up(&f, spec[s], 8, LENGTH, KOFN_F64);
        for (unsigned set = 0; set < 256; set++) {
            unsigned held = 0;

            for (size_t i = 0; i < 8; i++) {
                const kf_seat *rows;

                count[i] = set >> i & 1;
                assert_ok(kf_code_seat(f.code, i, &rows));
                for (size_t e = 0; count[i] && e < rows->E0[0].n; e++)
                    held |= 1u << rows->E0[0].col[e];
            }
            try_counts(&f, spec[s], count, held == (1u << f.plan->parts) - 1,
                       1e-15);
        }
        fleet_down(&f);
    }
}

/* Turn by turn: with s missing lam/(d-s) turns of the others, rounded up, are
 * enough and one turn less is not (Theorem 1); with d missing nothing is. */
static void all_sets_of_turns(const char *spec, const code_kind *k,
                              double worst)
{
    fleet f;
    size_t count[8];

    fleet_up(&f, spec, k->n, LENGTH, KOFN_F64);
    for (unsigned set = 0; set < 1u << k->n; set++) {
        size_t s = 0, turns;

        for (size_t i = 0; i < k->n; i++)
            s += !(set >> i & 1);
        turns = s < k->d ? (k->units + k->d - s - 1) / (k->d - s) : f.L->turns;
        for (size_t less = 0; less < 2 && less < turns; less++) {
            for (size_t i = 0; i < k->n; i++)
                count[i] = set >> i & 1 ? turns - less : 0;
            if (!k->grouped)
                assert_int_equal(decodable(k, count), s < k->d && !less);
            try_counts(&f, spec, count, decodable(k, count), worst);
        }
    }
    fleet_down(&f);
}

static const char *const forms[] = {"sequential", "staircase", "decoupled"};

static void agc_by_all_sets(void **state)
{
    static const size_t lcm[] = {0, 1, 2, 6, 12};
    char spec[100];

    (void)state;
    for (size_t n = 1; n <= LARGEST; n++)
        for (size_t d = 1; d <= n && d <= 4; d++)
            for (size_t c = 0; c < 3; c++)
                for (size_t g = 0; g < 2; g++) {
                    /* the staircase loses digits as it grows: SPEC-B D.6.2 */
                    size_t lam = c == 0  ? lcm[d]
                                 : c == 1 ? (d < 3 ? lcm[d] : 4)
                                          : lcm[d] + 1;

                    snprintf(spec, sizeof spec, "%s:d=%zu,lam=%zu,form=%s",
                             g ? "g-agc" : "agc", d, lam, forms[c]);
                    all_sets_of_turns(spec, &(code_kind){n, d, lam, g == 1},
                                      c == 0 ? 1e-13 : 1e-9);
                }
}

/* What a decoder that knows the turns only as full rounds would use: n - s
 * workers who have sent lam/(d-s) turns. */
static bool in_full_rounds(const code_kind *k, const size_t *count)
{
    for (size_t from = 0, to; from < k->n; from = to) {
        bool found = false;
        size_t begin;

        group_of_seat(k, from, &begin, &to);
        for (size_t s = 0; s < k->d; s++) {
            size_t sent = 0;

            for (size_t i = from; i < to; i++)
                sent += count[i] * (k->d - s) >= k->units;
            found |= sent + s >= to - from;
        }
        if (!found)
            return false;
    }
    return true;
}

/* Workers that are merely slow: turns that are mixed at random use whatever
 * has come; sequential ones at least what makes full rounds, and what they
 * make of the rest is never wrong. */
static void any_progress(void **state)
{
    kf_rng r = kf_rng_stream(41, KF_FOR_SAMPLE, 0, 0);
    static const size_t lcm[] = {0, 1, 2, 6, 12};
    size_t must = 0, may = 0;
    char spec[100];

    (void)state;
    for (size_t trial = 0; trial < 60; trial++) {
        size_t d = 1 + kf_rng_below(&r, 4), n = d + kf_rng_below(&r, 9 - d);
        size_t form = trial % 3, lam = form == 2 ? 5 + trial % 4 : lcm[d];
        code_kind k = {n, d, lam, trial % 2 == 1};
        size_t count[8];
        fleet f;

        snprintf(spec, sizeof spec, "%s:d=%zu,lam=%zu,form=%s",
                 k.grouped ? "g-agc" : "agc", d, lam, forms[form]);
        fleet_up(&f, spec, n, LENGTH, KOFN_F64);
        for (size_t p = 0; p < often(100); p++) {
            bool rule;

            for (size_t i = 0; i < n; i++)
                count[i] = kf_rng_below(&r, lam + 1);
            rule = decodable(&k, count);
            if (form == 0 && rule && !in_full_rounds(&k, count)) {
                double e = error_after(&f, count);

                assert_true(e <= 1e-12);
                may++;
                must += e >= 0;
                continue;
            }
            try_counts(&f, spec, count, rule, 1e-5);
        }
        fleet_down(&f);
    }
    print_message("sequential turns: %zu of %zu sets beyond full rounds\n",
                  must, may);
}

/* ---- worked examples ------------------------------------------------------ */

/* n x parts x pieces from kf_dual_row, rows turn n + seat. */
static double *encoding_of(const kf_dual *u)
{
    size_t wide = u->n * u->units;
    double *E = numbers(u->turns * u->n * wide, sizeof *E);

    for (size_t t = 0; t < u->turns; t++)
        for (size_t i = 0; i < u->n; i++)
            kf_dual_row(u, i, t, 0, wide, E + (t * u->n + i) * wide);
    return E;
}

static void linked_up(kf_dual *u, size_t n, size_t d, size_t lam,
                      const double *V)
{
    *u = (kf_dual){.n = n, .d = d, .units = lam, .turns = lam, .field = 1,
                   .linked = true};
    assert_ok(kf_dual_new(u, false));
    assert_ok(kf_dual_of(u, V));
    assert_ok(kf_dual_encode(u));
}

static void assert_close(const double *a, const double *b, size_t n,
                         double room)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= room))
            fail_msg("entry %zu: %.17g, not %.17g", i, a[i], b[i]);
}

/* SPEC-B D.7A, D.fixture.agc.n3d2lam2. */
static void adaptive_by_hand(void **state)
{
    static const double V[] = {1, 0, 1, 0, 0, 1, 1, 0, 1, -1, 1,  0,
                               0, 1, 1, 1, 1, 0, -1, 1, 2, 1, 0, 1};
    static const double want[] = {1,  -1, 0,  1, 0, 0, /* round 0 */
                                  0,  0,  -1, 2, -1, 1,
                                  1,  -2, 0,  0, 0,  -1,
                                  -1, -1, -3, 1, 0,  0, /* round 1 */
                                  0,  0,  0,  -2, 3, -1,
                                  1,  0,  0,  0, 3,  0};
    static const double g[] = {1, 2, 3, 5, -4, 7};
    static const double message[] = {4, 18, -10, -7, -29, -11};
    kf_dual u;
    double *E;

    (void)state;
    linked_up(&u, 3, 2, 2, V);
    E = encoding_of(&u);
    assert_close(E, want, 36, 1e-14);
    for (unsigned set = 1; set < 8; set++) { /* who answers */
        size_t here = (size_t)__builtin_popcount(set), turns = here == 3 ? 1 : 2;
        uint32_t answer[6];
        double D[12] = {0}, sum[2] = {0};
        size_t n = 0;
        kofn_status st;

        for (uint32_t i = 0; i < 3; i++)
            for (uint32_t t = 0; t < turns && set >> i & 1; t++)
                answer[n++] = i * 2 + t;
        st = kf_dual_decode(&u, answer, n, 0, D, n);
        assert_int_equal(st, here >= 2 ? KOFN_OK : KOFN_TOOFEW);
        for (size_t a = 0; a < n; a++)
            for (size_t z = 0; z < 2; z++)
                sum[z] += D[z * n + a] *
                          message[answer[a] % 2 * 3 + answer[a] / 2];
        if (st == KOFN_OK)
            assert_close(sum, (double[]){0, 14}, 2, 1e-12);
    }
    for (size_t r = 0; r < 6; r++) /* the messages are E g */
        assert_close(&(double){cblas_ddot(6, E + r * 6, 1, g, 1)}, message + r,
                     1, 1e-12);
    kf_free(E);
    kf_dual_free(&u);
}

/* SPEC-B D.6.5: powers of points that are all distinct, and yet singular; not
 * so with one point moved. */
static void powers_may_be_singular(void **state)
{
    static const uint32_t answer[] = {0, 1, 2, 3}; /* of seats 0 and 1 */

    (void)state;
    for (int moved = 0; moved < 2; moved++) {
        double x[] = {2, 4, 3, 7, 14 + moved, 5}, V[24] = {0}, D[8] = {0};
        kf_dual u;

        for (size_t r = 0; r < 6; r++)
            for (size_t c = 0; c < (r < 3 ? 3 : 4); c++)
                V[r * 4 + c] = pow(x[r], (double)c);
        linked_up(&u, 3, 2, 2, V);
        assert_int_equal(kf_dual_decode(&u, answer, 4, 0, D, 4),
                         moved ? KOFN_OK : KOFN_TOOFEW);
        kf_dual_free(&u);
    }
}

/* SPEC-B D.4, D.fixture.cgc.n4d3m2; the scheme has the same points. */
static void vandermonde_by_hand(void **state)
{
    static const double x[] = {-1.5, -1, 1, 1.5};
    static const double want[] = {-0.5, 1.25, -2.5, 1.25, -3, 0, 0, 0,
                                  0, 0, -2, 0, -2.5, -1.25, 0.5, -1.25,
                                  2, 0, 0, 0, -0.5, -1.25, 2.5, -1.25,
                                  2.5, 1.25, 0.5, 1.25, 0, 0, 3, 0};
    double E[32] = {0};
    fleet f;

    (void)state;
    assert_ok(kf_paper_polynomial(4, 3, 2, x, E));
    assert_close(E, want, 32, 1e-14);
    fleet_plan(&f, "cgc:d=3,m=2,construction=vandermonde", 4, 8, KOFN_F64);
    for (size_t i = 0; i < 4; i++) {
        double row[8] = {0};
        const kf_seat *rows;

        assert_ok(kf_code_seat(f.code, i, &rows));
        for (size_t e = 0; e < rows->G[0].n; e++)
            row[rows->G[0].col[e]] = rows->G[0].val[e];
        assert_close(row, want + 8 * i, 8, 1e-14);
    }
    fleet_down(&f);
}

/* SPEC-B D.3, D.fixture.gc.n3s1: the example everybody gives.  Its first row
 * is printed at half the scale. */
static void cyclic_by_hand(void **state)
{
    static const double H[] = {-2, 1, 1}, scale[] = {0.5, 1, 1};
    static const double printed[] = {0.5, 1, 0, 0, 1, -1, 0.5, 0, 1};
    static const struct {
        size_t i, j;
        double a, b;
    } decode[] = {{0, 1, 2, -1}, {0, 2, 1, 1}, {1, 2, 1, 2}};
    double E[9] = {0};

    (void)state;
    assert_ok(kf_paper_null(3, 2, H, E));
    for (size_t e = 0; e < 9; e++)
        E[e] *= scale[e / 3];
    assert_close(E, printed, 9, 1e-15);
    for (size_t k = 0; k < 3; k++)
        for (size_t c = 0; c < 3; c++)
            assert_close(&(double){decode[k].a * E[decode[k].i * 3 + c] +
                                   decode[k].b * E[decode[k].j * 3 + c]},
                         &(double){1}, 1, 1e-15);
}

/* SPEC-B D.decodable: n = 4, d = 3, lam = 6. */
static void progress_by_hand(void **state)
{
    static const struct {
        size_t count[4];
        bool whole;
    } t[] = {{{2, 2, 2, 2}, true},  {{3, 3, 3, 0}, true},
             {{6, 6, 0, 0}, true},  {{6, 5, 0, 0}, false},
             {{4, 4, 2, 0}, true},  {{4, 3, 2, 1}, true},
             {{4, 4, 3, 1}, true},  {{2, 2, 2, 1}, false},
             {{1, 1, 1, 1}, false}, {{6, 0, 0, 0}, false}};

    (void)state;
    for (size_t form = 1; form < 3; form++) {
        char spec[100];
        fleet f;

        snprintf(spec, sizeof spec, "agc:d=3,lam=6,form=%s", forms[form]);
        fleet_up(&f, spec, 4, LENGTH, KOFN_F64);
        for (size_t k = 0; k < sizeof t / sizeof *t; k++)
            try_counts(&f, spec, t[k].count, t[k].whole, 1e-6);
        fleet_down(&f);
    }
}

/* ---- invariants (SPEC-B D.8) ---------------------------------------------- */

/* S as D.5.1 defines it, by LAPACK; V S and the dual give the same E. */
static void S_gives_E(size_t n, size_t d, size_t lam)
{
    size_t rest = n - d, L = lam + rest * lam, wide = n * lam;
    kf_dual u = {.n = n, .d = d, .units = lam, .turns = lam};
    double *V = kf_gaussian_V(&u, n + 10 * d), *E, *mine, size = 0;
    double *S = numbers(L * wide, sizeof *S), *C = numbers(rest * rest + 1, 8);
    double *B = numbers(rest * lam + 1, 8);

    assert_non_null(V);
    linked_up(&u, n, d, lam, V);
    mine = encoding_of(&u);
    for (size_t j = 0; j < n; j++) {
        for (size_t z = 0; z < lam; z++)
            S[z * wide + j * lam + z] = 1;
        for (size_t t = 0; t < lam && rest; t++) {
            int pivot[8];

            for (size_t q = 0; q < rest; q++) {
                const double *row = V + (t * n + (j + 1 + q) % n) * L;
                size_t from = lam + rest * t;

                memcpy(C + q * rest, row + from, rest * sizeof *C);
                for (size_t z = 0; z < lam; z++) {
                    double *b = B + q * lam + z;

                    *b = 0;
                    for (size_t c = 0; c < from; c++)
                        *b -= row[c] * S[c * wide + j * lam + z];
                }
            }
            assert_int_equal(LAPACKE_dgesv(LAPACK_ROW_MAJOR, (int)rest,
                                           (int)lam, C, (int)rest, pivot, B,
                                           (int)lam),
                             0);
            for (size_t q = 0; q < rest; q++)
                for (size_t z = 0; z < lam; z++)
                    S[(lam + rest * t + q) * wide + j * lam + z] =
                        B[q * lam + z];
        }
    }
    E = numbers(n * lam * wide, sizeof *E);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)(n * lam),
                (int)wide, (int)L, 1, V, (int)L, S, (int)wide, 0, E, (int)wide);
    for (size_t e = 0; e < n * lam * wide; e++)
        size = fmax(size, fabs(E[e]));
    assert_close(mine, E, n * lam * wide, 1e-9 * size);
    kf_free(V);
    kf_free(S);
    kf_free(C);
    kf_free(B);
    kf_free(E);
    kf_free(mine);
    kf_dual_free(&u);
}

static void duals_are_the_papers(void **state)
{
    (void)state;
    for (size_t n = 2; n <= 7; n++)
        for (size_t d = 1; d <= n && d <= 4; d++)
            for (size_t lam = 1; lam <= 4; lam++)
                S_gives_E(n, d, lam);
}

/* Nobody mixes what it does not compute, everybody computes as many parts as
 * it should, and each part is with as many workers. */
static void holders(void **state)
{
    static const struct {
        const char *spec;
        size_t n, each;
    } t[] = {{"gc:d=3", 7, 3},
             {"gc:d=3,construction=fractional", 9, 3},
             {"cgc:d=4,m=2", 9, 4},
             {"cgc:d=4,m=2,construction=random", 9, 4},
             {"cgc:d=4,m=2,construction=vandermonde", 9, 4},
             {"agc:d=3", 7, 3},
             {"agc:d=3,form=staircase", 6, 3},
             {"agc:d=3,form=decoupled", 7, 3},
             {"uncoded", 5, 1}};

    (void)state;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        size_t with[9] = {0};
        fleet f;

        fleet_plan(&f, t[k].spec, t[k].n, LENGTH, KOFN_F64);
        for (size_t a = 0; a < t[k].n * f.L->turns; a++) {
            bool mine[9] = {false};
            const kf_seat *rows;

            assert_ok(kf_code_seat(f.code, a, &rows));
            assert_int_equal(rows->E0[0].n, t[k].each);
            for (size_t e = 0; e < rows->E0[0].n; e++) {
                mine[rows->E0[0].col[e]] = true;
                with[rows->E0[0].col[e]] += a % f.L->turns == 0;
            }
            for (size_t l = 0; l < f.L->lanes; l++)
                for (size_t e = 0; e < rows->G[l].n; e++)
                    assert_true(mine[rows->G[l].col[e] / f.L->wants]);
        }
        for (size_t j = 0; j < t[k].n; j++)
            assert_int_equal(with[j], t[k].each);
        fleet_down(&f);
    }
}

/* SPEC-B D.7.1, D.groups: who shares parts with whom. */
static void groups_share(void **state)
{
    static const struct {
        size_t n, d, sizes[7];
    } t[] = {{7, 2, {2, 2, 3}},
             {11, 3, {3, 3, 5}},
             {20, 3, {3, 3, 3, 3, 3, 5}},
             {20, 4, {4, 4, 4, 4, 4}},
             {5, 3, {5}}};

    (void)state;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        for (size_t s = 0; s < 2; s++) {
            char spec[50];
            fleet f;
            size_t from = 0;

            snprintf(spec, sizeof spec, "%s:d=%zu", s ? "g-cgc" : "g-agc",
                     t[k].d);
            fleet_plan(&f, spec, t[k].n, LENGTH, KOFN_F64);
            for (size_t h = 0; t[k].sizes[h]; from += t[k].sizes[h++])
                for (size_t i = from; i < from + t[k].sizes[h]; i++) {
                    const kf_seat *rows;

                    assert_ok(kf_code_seat(f.code, i * f.L->turns, &rows));
                    assert_int_equal(rows->E0[0].n, t[k].d);
                    for (size_t e = 0; e < t[k].d; e++)
                        assert_int_equal(
                            rows->E0[0].col[e] >= from &&
                                rows->E0[0].col[e] < from + t[k].sizes[h],
                            1);
                }
            assert_int_equal(from, t[k].n);
            fleet_down(&f);
        }
}

static void same_rows(const char *one, const char *other, size_t n)
{
    fleet a, b;

    fleet_plan(&a, one, n, LENGTH, KOFN_F64);
    fleet_plan(&b, other, n, LENGTH, KOFN_F64);
    assert_int_equal(a.L->symbols, b.L->symbols);
    for (size_t i = 0; i < n * a.L->turns; i++) {
        const kf_seat *x, *y;

        assert_ok(kf_code_seat(a.code, i, &x));
        assert_ok(kf_code_seat(b.code, i, &y));
        for (size_t l = 0; l < a.L->lanes; l++) {
            assert_int_equal(x->G[l].n, y->G[l].n);
            assert_memory_equal(x->G[l].col, y->G[l].col, x->G[l].n * 4);
            assert_close(x->G[l].val, y->G[l].val, x->G[l].n, 0);
        }
    }
    fleet_down(&a);
    fleet_down(&b);
}

/* One piece is gradient coding; groups that are one are none. */
static void special_cases(void **state)
{
    (void)state;
    same_rows("gc:d=4", "cgc:d=4,m=1", 9);
    same_rows("gc:d=2,construction=quaternion",
              "cgc:d=2,s=1,construction=quaternion", 7);
    same_rows("cgc:d=4,m=2", "g-cgc:d=4,m=2", 7);
    same_rows("agc:d=4", "g-agc:d=4", 7);
    same_rows("agc:d=3,form=decoupled", "g-agc:d=3,form=decoupled", 5);
}

/* In a group of d any lam answers decode, not only the first ones; and
 * floor(n/d) (d-1) stragglers in all may be survived (Theorem 4). */
static void whole_groups(void **state)
{
    kf_rng r = kf_rng_stream(42, KF_FOR_SAMPLE, 0, 0);
    size_t count[8];
    fleet f;

    (void)state;
    fleet_up(&f, "g-agc:d=3,lam=5,form=decoupled", 3, LENGTH, KOFN_F64);
    for (size_t trial = 0; trial < often(300); trial++) {
        uint32_t answer[5];
        size_t n = 0;
        double e;

        for (uint32_t a = 0; n < 5; a++)
            if (kf_rng_below(&r, 15 - a) < 5 - n)
                answer[n++] = a;
        e = fleet_error(&f, answer, 5);
        assert_true(e >= 0 && e <= 1e-9);
        assert_true(fleet_error(&f, answer, 4) < 0);
    }
    fleet_down(&f);
    for (size_t n = 1; n <= LARGEST; n++)
        for (size_t d = 1; d <= n && d <= 4; d++) {
            char spec[50];

            snprintf(spec, sizeof spec, "g-agc:d=%zu", d);
            fleet_up(&f, spec, n, LENGTH, KOFN_F64);
            for (size_t i = 0; i < n; i++) /* the first d - 1 of each group */
                count[i] = i % d < d - 1 && i / d < n / d ? 0 : f.L->turns;
            try_counts(&f, spec, count, true, 1e-12);
            fleet_down(&f);
        }
}

/* ---- what is sent on real rounds ------------------------------------------ */

typedef struct sent {
    uint64_t scalars;
    unsigned messages;
    kofn_status st;
    double error;
} sent;

/* A round in step, the first `gone` of every `stride` workers having left. */
static sent round_without(const char *spec, size_t n, size_t p, size_t gone,
                          size_t stride)
{
    kofn_happening leave[32];
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = spec, .workers = n, .m = 2 * n + 1, .n = p, .p = 1,
                  .op = KOFN_SUM, .sim = true, .opt = &o};
    kofn_report rep = {0};
    rig x;
    sent s;

    o.events = leave;
    for (uint32_t i = 0; i < n; i++)
        if (i % stride < gone)
            leave[o.event_count++] =
                (kofn_happening){1, 0, KOFN_EVENT_LEAVE, i, 0};
    rig_up(&x, &k);
    s.st = rig_round(&x, &rep);
    s.scalars = rep.scalars;
    s.messages = rep.messages;
    s.error = s.st ? -1 : rig_error(&x);
    rig_down(&x);
    return s;
}

/* n - s workers send C_s p numbers each: SPEC-B D.9, D.12.3. */
static void lengths_are_the_closed_forms(void **state)
{
    static const struct {
        const char *spec;
        size_t d, m; /* m: pieces; 0: as s makes it */
    } t[] = {{"uncoded", 1, 1},
             {"gc:d=4", 4, 1},
             {"gc:d=3,construction=cyclic", 3, 1},
             {"cgc:d=4,m=3", 4, 3},
             {"cgc:d=4,m=2", 4, 2},
             {"cgc:d=4,m=2,construction=random", 4, 2},
             {"cgc:d=7,m=4", 7, 4},
             {"agc:d=1", 1, 0},
             {"agc:d=2", 2, 0},
             {"agc:d=3", 3, 0},
             {"agc:d=4", 4, 0},
             {"agc:d=5", 5, 0},
             {"agc:d=6", 6, 0},
             {"agc:d=3,form=staircase", 3, 0},
             {"agc:d=4,form=decoupled", 4, 0}};
    const size_t n = 11, p = 960; /* divisible by all there is */

    (void)state;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        for (size_t s = 0; s <= t[k].d && t[k].d <= LARGEST - 1; s++) {
            sent a = round_without(t[k].spec, n, p, s, n);
            size_t pieces = t[k].m ? t[k].m : t[k].d - s;

            if (s + (t[k].m ? t[k].m : 1) > t[k].d) {
                assert_int_equal(a.st, KOFN_TOOFEW);
                continue;
            }
            assert_int_equal(a.st, KOFN_OK);
            assert_at_most(a.error, 1e-9);
            /* of all who are there C_s p; cgc and gc stop at n - S answers */
            assert_int_equal(a.scalars, (t[k].m ? n - (t[k].d - t[k].m) : n - s) *
                                            p / pieces);
        }
}

/* lam/(d-s) rounded up, for any lam; p need not be divisible. */
static void rounds_of_any_lam(void **state)
{
    static const size_t lam[] = {1, 3, 4, 10};
    const size_t n = 9, p = 101;

    (void)state;
    for (size_t d = 2; d <= 5; d++)
        for (size_t k = 0; k < sizeof lam / sizeof *lam; k++)
            for (size_t s = 0; s < d; s++) {
                char spec[60];
                sent a;
                /* the code is over complex numbers: pieces of pieces */
                size_t q = (p + 2 * lam[k] - 1) / (2 * lam[k]) * 2;
                size_t r = (lam[k] + d - s - 1) / (d - s);

                snprintf(spec, sizeof spec,
                         "agc:d=%zu,lam=%zu,form=decoupled,draws=1", d, lam[k]);
                a = round_without(spec, n, p, s, n);
                assert_int_equal(a.st, KOFN_OK);
                assert_at_most(a.error, 1e-7);
                assert_true(a.scalars <= (n - s) * r * q);
                assert_true(a.scalars > (n - s) * (r - 1) * q);
                if (lam[k] % (d - s) == 0) /* nobody sends in vain */
                    assert_int_equal(a.scalars, (n - s) * r * q);
            }
}

/* Groups stop by the worst of them (Theorem 3), and fail as soon as one has
 * d stragglers. */
static void groups_stop_by_the_worst(void **state)
{
    const size_t n = 12, d = 3, p = 960;

    (void)state;
    for (size_t s = 0; s <= d; s++) {
        sent a = round_without("g-agc:d=3", n, p, s, d);

        assert_int_equal(a.st, s < d ? KOFN_OK : KOFN_TOOFEW);
        if (s < d)
            assert_int_equal(a.scalars, (n - n / d * s) * p / (d - s));
        if (s >= d)
            continue;
        /* in the first group only */
        a = round_without("g-agc:d=3", n, p, s, n);
        assert_int_equal(a.st, KOFN_OK);
        assert_true(a.scalars <= (n - s) * p / (d - s));
    }
    for (size_t m = 1; m <= d; m++) {
        char spec[40];

        snprintf(spec, sizeof spec, "g-cgc:d=3,m=%zu", m);
        for (size_t s = 0; s <= d; s++)
            assert_int_equal(round_without(spec, n, p, s, d).st,
                             s + m <= d ? KOFN_OK : KOFN_TOOFEW);
    }
}

/* The same on threads, where workers are not in step: never less than any
 * code must send (Theorem 1), never more than everything. */
static void threads_send_between_the_bounds(void **state)
{
    const size_t n = 6, p = 960;

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        kofn_happening leave[3];
        kofn_options o = KOFN_OPTIONS_INIT;
        rig_kind k = {.spec = "agc:d=3", .workers = n, .m = 30, .n = p, .p = 1,
                      .op = KOFN_SUM, .opt = &o};
        rig x;

        o.events = leave;
        for (uint32_t i = 0; i < s; i++)
            leave[o.event_count++] =
                (kofn_happening){1, 0, KOFN_EVENT_LEAVE, 2 * i, 0};
        rig_up(&x, &k);
        for (uint64_t round = 0; round < 10; round++) {
            kofn_report rep;

            rig_next(&x, round);
            assert_ok(rig_round(&x, &rep));
            assert_at_most(rig_error(&x), 1e-12);
            assert_true(rep.scalars >= p && rep.scalars <= (n - s) * p);
        }
        rig_down(&x);
    }
}

/* ---- refusals --------------------------------------------------------------- */

static void refused(const char *spec, size_t n, size_t p, const char *say)
{
    kofn_problem pb = {KOFN_SUM, p, 1, 1, KOFN_F64, false};
    kofn_plan *plan = (kofn_plan *)&pb;
    kofn_status st = kofn_plan_new(&plan, &pb, spec, n, 1);

    if (st != KOFN_INVAL || !strstr(kofn_errmsg(), say))
        fail_msg("%s on %zu workers, vectors of %zu: %s (%s), not \"%s\"", spec,
                 n, p, kofn_strerror(st), kofn_errmsg(), say);
    assert_null(plan);
}

static void plans_are_refused(void **state)
{
    (void)state;
    refused("gc:d=0", 8, 100, "d");
    refused("gc:d=9", 8, 100, "d = 9");
    refused("gc:d=3,construction=fractional", 8, 100, "d = 2");
    refused("cgc:d=0", 8, 100, "d");
    refused("cgc:d=9", 8, 100, "d = 9");
    refused("cgc:d=3,m=0", 8, 100, "m");
    refused("cgc:d=3,m=4", 8, 100, "4");
    refused("cgc:d=3,s=3", 8, 100, "3");
    refused("cgc:d=4,s=3,m=2", 8, 100, "2");
    refused("g-cgc:d=9", 8, 100, "d = 9");
    refused("cgc:d=4,m=3", 8, 2, "2 numbers");
    refused("agc:d=0", 8, 100, "d");
    refused("agc:d=9", 8, 100, "d = 9");
    refused("agc:d=3,lam=0", 8, 100, "lam");
    refused("agc:d=3,lam=4", 8, 100, "lam = 4");
    refused("agc:d=3,lam=101,form=decoupled", 8, 100, "100 numbers");
    refused("agc:d=3,form=sideways", 8, 100, "sideways");
    refused("g-agc:d=9", 8, 100, "d = 9");
    refused("bcc:r=9", 8, 100, "r = 9");
    refused("ignore:wait=9", 8, 100, "wait = 9");
    refused("replication:k=9", 8, 100, "k = 9");
}

/* The same answers twice, or of nobody, or too few: no decoder, and the next
 * question is answered as if nothing had been. */
static void sets_are_refused(void **state)
{
    static const char *const spec[] = {"gc:d=3", "cgc:d=4,m=2", "agc:d=3",
                                       "gc:d=3,construction=cyclic",
                                       "agc:d=3,form=staircase"};

    (void)state;
    for (size_t k = 0; k < sizeof spec / sizeof *spec; k++) {
        uint32_t answer[60];
        kf_decoder *d;
        fleet f;
        size_t n = 0;

        fleet_up(&f, spec[k], 6, LENGTH, KOFN_F64);
        assert_status(KOFN_TOOFEW, kf_decoder_new(&d, f.code, answer, 0, false));
        assert_null(d);
        for (uint32_t a = 0; a < 2 * f.L->turns; a++)
            answer[n++] = a;
        assert_status(KOFN_TOOFEW, kf_decoder_new(&d, f.code, answer, n, false));
        assert_null(d);
        for (uint32_t a = 0; a < 6 * f.L->turns; a++)
            answer[a] = a;
        assert_at_most(fabs(fleet_error(&f, answer, 6 * f.L->turns)), 1e-9);
        fleet_down(&f);
    }
}

/* A round that cannot be had is refused; with somebody back the next is not. */
static void rounds_are_refused(void **state)
{
    static const char *const spec[] = {"gc:d=2", "cgc:d=3,m=2", "agc:d=2",
                                       "g-cgc:d=2,m=1", "g-agc:d=2", "uncoded",
                                       "bcc:r=2", "replication:k=2"};

    (void)state;
    for (size_t k = 0; k < sizeof spec / sizeof *spec; k++) {
        kofn_happening events[12];
        kofn_options o = KOFN_OPTIONS_INIT;
        rig_kind kind = {.spec = spec[k], .workers = 4, .m = 30, .n = 60,
                         .p = 1, .op = KOFN_SUM, .sim = true, .opt = &o};
        rig x;

        o.events = events;
        for (uint32_t i = 0; i < 4; i++)
            events[i] = (kofn_happening){2, 0, KOFN_EVENT_LEAVE, i, 0};
        for (uint32_t i = 4; i < 8; i++)
            events[i] = (kofn_happening){3, 0, KOFN_EVENT_JOIN, 0, 0};
        o.event_count = 8;
        rig_up(&x, &kind);
        for (int round = 1; round <= 3; round++) {
            kofn_report rep;

            rig_next(&x, (uint64_t)round);
            if (round == 2) {
                assert_status(KOFN_TOOFEW, rig_round(&x, &rep));
                for (size_t i = 0; i < x.y.rows; i++)
                    assert_true(isnan(((double *)x.y.data)[i]));
                continue;
            }
            assert_ok(rig_round(&x, &rep));
            assert_at_most(rig_error(&x), 1e-12);
        }
        rig_down(&x);
    }
}

/* ---- decoders as products of two matrices -------------------------------------- */

/* Every output of the two is D times the sources, added in double, up to one
 * rounding. */
static void compare_factor(const kf_decoder *d, size_t len, kofn_dtype dtype)
{
    size_t size = kf_dtype_size(dtype);
    char *from = numbers(d->results * len, size);
    char *to = numbers(d->mixed * len, size);
    const void **src = numbers(d->results, sizeof *src);
    void **dst = numbers(d->mixed, sizeof *dst);
    void *scratch = numbers(kf_factor_room(d->factor, len), 1);
    double u = dtype == KOFN_F32 ? 0x1p-24 : 0x1p-53;
    kf_rng r = kf_rng_stream(3, KF_FOR_DATA, 0, 0);

    for (size_t i = 0; i < d->results * len; i++) {
        double x = kf_rng_uniform(&r) - 0.5;

        if (dtype == KOFN_F64)
            ((double *)(void *)from)[i] = x;
        else
            ((float *)(void *)from)[i] = (float)x;
    }
    for (size_t i = 0; i < d->results; i++)
        src[i] = from + i * len * size;
    for (size_t w = 0; w < d->mixed; w++)
        dst[w] = to + w * len * size;
    kf_factor_apply(d->factor, src, dst, len, dtype, scratch);
    for (size_t w = 0; w < d->mixed; w++)
        for (size_t t = 0; t < len; t += t < 40 || t + 40 > len ? 1 : 37) {
            double want = 0, terms = 0;

            for (size_t i = 0; i < d->results; i++) {
                double x = d->D[w * d->results + i] *
                           number_at(from, i * len + t, dtype);

                want += x;
                terms += fabs(x);
            }
            assert_at_most(fabs(number_at(dst[w], t, dtype) - want),
                           1.01 * u * fabs(want) + 1e-13 * terms);
        }
    kf_free(from);
    kf_free(to);
    kf_free(src);
    kf_free(dst);
    kf_free(scratch);
}

/* Stragglers are neighbours, those of a group; `factor`: it takes fewer
 * multiplications than D as it is. */
static void products_are_the_decoder(void **state)
{
    static const struct {
        const char *spec;
        size_t n, out, turns;
        bool factor;
    } t[] = {{"gc:d=3", 20, 2, 1, false},      {"cgc:d=4,m=2", 20, 2, 1, true},
             {"cgc:d=8,m=4", 20, 1, 1, true},  {"cgc:d=8,m=4", 21, 4, 1, true},
             {"agc:d=3", 20, 0, 2, true},      {"agc:d=3", 20, 2, 6, true},
             {"agc:d=4", 20, 3, 12, true},     {"agc:d=4", 20, 1, 12, true},
             {"g-agc:d=3", 21, 0, 2, true},    {"g-agc:d=4", 40, 2, 6, true},
             {"g-agc:d=4", 4, 3, 12, false}};

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        for (kofn_dtype dtype = KOFN_F64; dtype <= KOFN_F32; dtype++) {
            uint32_t answers[400];
            bool out[40] = {false};
            kf_decoder *d;
            fleet f;

            for (size_t k = 0; k < t[i].out; k++)
                out[k] = true;
            fleet_plan(&f, t[i].spec, t[i].n, 480, dtype);
            assert_ok(kf_decoder_new(
                &d, f.code, answers,
                answers_of(&f, out, t[i].turns, answers), false));
            assert_int_equal(d->factor != NULL, t[i].factor);
            if (d->factor) {
                compare_factor(d, 77, dtype);
                compare_factor(d, 9001 / SLOWED, dtype);
            }
            kf_decoder_free(d);
            fleet_down(&f);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gc_by_all_sets),
        cmocka_unit_test(cgc_by_all_sets),
        cmocka_unit_test(plain_by_all_sets),
        cmocka_unit_test(agc_by_all_sets),
        cmocka_unit_test(any_progress),
        cmocka_unit_test(adaptive_by_hand),
        cmocka_unit_test(powers_may_be_singular),
        cmocka_unit_test(vandermonde_by_hand),
        cmocka_unit_test(cyclic_by_hand),
        cmocka_unit_test(progress_by_hand),
        cmocka_unit_test(duals_are_the_papers),
        cmocka_unit_test(products_are_the_decoder),
        cmocka_unit_test(holders),
        cmocka_unit_test(groups_share),
        cmocka_unit_test(special_cases),
        cmocka_unit_test(whole_groups),
        cmocka_unit_test(lengths_are_the_closed_forms),
        cmocka_unit_test(rounds_of_any_lam),
        cmocka_unit_test(groups_stop_by_the_worst),
        cmocka_unit_test(threads_send_between_the_bounds),
        cmocka_unit_test(plans_are_refused),
        cmocka_unit_test(sets_are_refused),
        cmocka_unit_test(rounds_are_refused),
    };

    rig_begin();
    return cmocka_run_group_tests_name("gradient", tests, NULL, NULL);
}
