/* suspect_test.c -- verdicts compared with the truth. In every trial no
 * correct node is named, and an error that passes is below the stated floor. */
#include "suspect_rig.h"

/* ---- up to the limit ----------------------------------------------------- */

typedef struct tally {
    size_t trials, sorted;
} tally;

/* Returns the only column in which a node is wrong; SIZE_MAX if there are
 * more. */
static size_t only_column(const cell *c, size_t node)
{
    size_t n = 0, column = SIZE_MAX;

    for (size_t k = 0; k < c->columns; k++)
        for (size_t l = 0; l < c->f->components; l++) {
            size_t at = (node * c->f->components + l) * c->columns + k;

            if (c->Y[at] == c->honest[at] || column == k)
                continue;
            column = k;
            n++;
        }
    return n == 1 ? column : SIZE_MAX;
}

/* True if the evidence suffices: for each wrong node there is a combination of
 * columns in which no other is wrong, except nodes wrong in the same column
 * only. The number of wrong nodes and of the other explanation together may
 * not exceed the spare results (docs/math/errors.md 2.3). */
static bool suffices(const cell *c, size_t t)
{
    size_t over = c->n - c->f->k, column[MOST_NODES], met[MOST_NODES] = {0};

    if (2 * t <= over)
        return true;
    for (size_t i = 0; i < c->n; i++)
        column[i] = c->lied[i] ? only_column(c, i) : SIZE_MAX;
    for (size_t i = 0; i < c->n; i++) {
        for (size_t j = 0; j < c->n; j++)
            met[i] += column[i] != SIZE_MAX && column[i] == column[j];
        if (met[i] + t > over)
            return false;
    }
    return true;
}

/* Loses some nodes and makes t wrong. They are located if the evidence
 * suffices, except for some cases with one spare result. */
static void try_liars(const code_case *f, size_t t, way w, kf_rng *r,
                      tally *within, tally *edge)
{
    size_t spare = f->nodes - f->k - 1 - t;
    size_t lost = kf_rng_below(r, 2) * kf_rng_below(r, spare + 1);
    tally *to = t > 0 && lost == spare ? edge : within;
    bool sorted;
    cell c;

    some_lie(&c, f, t, lost, w, r);
    ask(&c, c.n - f->k - 1);
    sorted = judge(&c, way_names[w]);
    if (suffices(&c, t)) {
        if (!sorted && to == within)
            fail_msg("%s less %zu: %zu lies %s were not sorted out",
                     f->plan->spec, lost, t, way_names[w]);
        to->trials++;
        to->sorted += sorted;
    }
    cell_free(&c);
}

static void up_to_the_limit(void **state)
{
    tally all = {0}, edges = {0};

    (void)state;
    for (size_t z = 0; z < SIZES; z++) {
        size_t P = sizes[z][0], K = sizes[z][1];
        tally within = {0}, edge = {0};

        for (size_t family = 0; family < FAMILIES; family++) {
            code_case f;

            fleet_of(&f, family, P, K);
            for (size_t t = 0; t + K + 1 <= P; t++)
                for (size_t i = 0; i < effort(2 * WAYS); i++) {
                    kf_rng r = kf_rng_stream(10 * z + family, KF_FOR_SAMPLE,
                                             (uint32_t)t, (uint32_t)i);

                    try_liars(&f, t, (way)(i % WAYS), &r, &within, &edge);
                }
            fleet_down(&f);
        }
        print_message("    (%zu,%zu) t <= P-K-2: %zu of %zu, t = P-K-1: %zu of "
                      "%zu\n",
                      P, K, within.sorted, within.trials, edge.sorted,
                      edge.trials);
        all.trials += within.trials;
        edges.trials += edge.trials;
        edges.sorted += edge.sorted;
    }
    print_message("    all %zu and %zu of %zu\n", all.trials, edges.sorted,
                  edges.trials);
    assert_true((double)edges.sorted >= 0.99 * (double)edges.trials);
}

/* ---- beyond it ----------------------------------------------------------- */

/* Errors in all entries, in more nodes than can be located: the check must
 * fail. */
static void beyond_the_limit(void **state)
{
    (void)state;
    for (size_t z = 0; z < SIZES; z++)
        for (size_t family = 0; family < FAMILIES; family++) {
            size_t P = sizes[z][0], K = sizes[z][1];
            code_case f;

            fleet_of(&f, family, P, K);
            for (size_t t = P - K; t <= P; t++)
                for (size_t i = 0; i < effort(1); i++) {
                    kf_rng r =
                        kf_rng_stream(100 + 10 * z + family, KF_FOR_SAMPLE,
                                      (uint32_t)t, (uint32_t)i);
                    cell c;

                    some_lie(&c, &f, t, 0, i % 2 ? MIXED : DENSE, &r);
                    ask(&c, P - K - 1);
                    if (judge(&c, "too many"))
                        fail_msg("%s: %zu liars made a verdict", f.plan->spec,
                                 t);
                    cell_free(&c);
                }
            fleet_down(&f);
        }
}

/* Correct results pass. One column, one entry or one node wrong is detected.
 * Names are given only if asked for. */
static void detection(void **state)
{
    size_t seen = 0;

    (void)state;
    for (size_t i = 0; i < effort(300); i++) {
        kf_rng r = kf_rng_stream(7, KF_FOR_SAMPLE, (uint32_t)i, 0);
        const size_t *z = sizes[kf_rng_below(&r, SIZES)];
        size_t lies;
        code_case f;
        cell c;

        fleet_of(&f, kf_rng_below(&r, FAMILIES), z[0], z[1]);
        lies = kf_rng_below(&r, 2) * kf_rng_below(&r, z[0] + 1);
        some_lie(&c, &f, lies, kf_rng_below(&r, z[0] - z[1]), ENTRY, &r);
        ask(&c, 0);
        if (judge(&c, "detection") != (lies == 0))
            fail_msg("%s: %zu wrong entries, and the verdict is %s",
                     f.plan->spec, lies, kofn_strerror(c.st));
        seen += lies > 0;
        cell_free(&c);
        fleet_down(&f);
    }
    assert_happened(seen > 0);
}

/* ---- conspiracies ---------------------------------------------------------
 */

/* Adds an error to the results of a node in one column. */
static void add_to(cell *c, size_t node, size_t column, const double *lie_of)
{
    for (size_t l = 0; l < c->f->components; l++)
        c->Y[(node * c->f->components + l) * c->columns + column] += lie_of[l];
}

/* Adds the same numbers to all wrong nodes, in all columns or in one. */
static void the_same(cell *c, kf_rng *r)
{
    bool one = kf_rng_below(r, 2) == 0;
    size_t only = kf_rng_below(r, c->columns);

    for (size_t k = 0; k < c->columns; k++) {
        double x[4];

        for (size_t l = 0; l < 4; l++)
            x[l] = 0.1 * kf_rng_normal(r);
        for (size_t i = 0; i < c->n && (!one || k == only); i++)
            if (c->lied[i])
                add_to(c, i, k, x);
    }
}

/* Computes a word that is zero at K-1 given nodes and nowhere else. */
static void shortest_word(cell *c, const size_t *unseen, double *word,
                          kf_rng *r)
{
    const code_case *f = c->f;
    size_t rows = (f->k - 1) * f->components, m = f->symbols;
    double *A = kofn_layout_table(rows, m), *S = kf_new(rows + 1, sizeof *S);
    double *V = kf_new(m * m, sizeof *V), *x = kf_zero(m, sizeof *x);
    double *junk = kf_new(rows + 1, sizeof *junk),
           *row = kf_new(m, sizeof *row);
    double none;

    assert_true(A && S && V && x && junk && row);
    for (size_t i = 0; i < rows; i++)
        weighted_row(f, c->seat[unseen[i / f->components]], i % f->components,
                     A + i * m);
    assert_int_equal(LAPACKE_dgesvd(LAPACK_ROW_MAJOR, 'N', 'A',
                                    (lapack_int)rows, (lapack_int)m, A,
                                    (lapack_int)m, S, &none, 1, V,
                                    (lapack_int)m, junk),
                     0);
    for (size_t j = rows; j < m; j++) {
        double a = kf_rng_normal(r);

        for (size_t s = 0; s < m; s++)
            x[s] += a * V[j * m + s];
    }
    for (size_t i = 0; i < c->rows; i++) {
        weighted_row(f, c->seat[i / f->components], i % f->components, row);
        word[i] = cblas_ddot((int)m, row, 1, x, 1);
    }
    kf_free(A);
    kf_free(S);
    kf_free(V);
    kf_free(x);
    kf_free(junk);
    kf_free(row);
}

/* Moves the wrong results towards another word of the code, which differs from
 * the truth in the least possible number of nodes. */
static void another_word(cell *c, kf_rng *r)
{
    size_t unseen[MOST_NODES], n = 0, asked = 0;
    double *word = kf_new(c->rows, sizeof *word);

    assert_non_null(word);
    for (size_t i = 0, left = 0; i < c->n; i++)
        left += !c->lied[i], asked = left;
    for (size_t i = 0; i < c->n; i++)
        if (!c->lied[i] && kf_rng_below(r, asked--) < c->f->k - 1 - n)
            unseen[n++] = i;
    shortest_word(c, unseen, word, r);
    for (size_t k = 0; k < c->columns; k++)
        for (size_t i = 0; i < c->n; i++)
            if (c->lied[i]) {
                double x[4], a = 0.3;

                for (size_t l = 0; l < c->f->components; l++)
                    x[l] = a * word[i * c->f->components + l];
                add_to(c, i, k, x);
            }
    kf_free(word);
}

/* Up to half of the spare results may conspire in any way. */
static void conspiracies(void **state)
{
    size_t trials = 0;

    (void)state;
    for (size_t z = 0; z < SIZES; z++)
        for (size_t family = 0; family < FAMILIES; family++) {
            size_t P = sizes[z][0], K = sizes[z][1];
            code_case f;

            fleet_of(&f, family, P, K);
            for (size_t t = 1; t <= (P - K) / 2; t++)
                for (size_t i = 0; i < effort(2); i++, trials++) {
                    kf_rng r =
                        kf_rng_stream(200 + 10 * z + family, KF_FOR_SAMPLE,
                                      (uint32_t)t, (uint32_t)i);
                    cell c;

                    survive(&c, &f, 0, &r);
                    fill(&c, 1 + kf_rng_below(&r, 32), &r);
                    choose_liars(&c, t, &r);
                    if (i % 2)
                        the_same(&c, &r);
                    else
                        another_word(&c, &r);
                    ask(&c, (P - K) / 2);
                    if (!judge(&c, "conspiracy"))
                        fail_msg("%s: %zu wrong nodes (%s) were not located",
                                 f.plan->spec, t,
                                 i % 2 ? "say the same" : "agree on a word");
                    cell_free(&c);
                }
            fleet_down(&f);
        }
    print_message("    %zu conspiracies found out\n", trials);
}

/* Results that are right for another input: zeros, or another round's. */
static void another_input(cell *c, bool zeros, kf_rng *r)
{
    cell other = {.f = c->f, .n = c->n, .rows = c->rows};
    size_t each = c->f->components * c->columns;

    memcpy(other.seat, c->seat, sizeof other.seat);
    fill(&other, c->columns, r);
    if (zeros)
        memset(other.Y, 0, c->rows * c->columns * sizeof *other.Y);
    for (size_t i = 0; i < c->n; i++)
        if (c->lied[i])
            memcpy(c->Y + i * each, other.Y + i * each, each * sizeof *c->Y);
    cell_free(&other);
}

/* The same error in all, times a factor of each node. */
static void in_proportion(cell *c, kf_rng *r)
{
    double x[256];

    for (size_t k = 0; k < c->columns; k++)
        x[k] = kf_rng_normal(r);
    for (size_t i = 0; i < c->n; i++)
        for (size_t l = 0; l < c->f->components && c->lied[i]; l++) {
            double a = 0.1 * kf_rng_normal(r);

            for (size_t k = 0; k < c->columns; k++)
                c->Y[(i * c->f->components + l) * c->columns + k] += a * x[k];
        }
}

/* Beyond half of the spare results, dependent errors need not be located. But
 * no verdict may be wrong while K + 1 nodes are correct. */
static void no_wrong_verdict(void **state)
{
    size_t sorted = 0;

    (void)state;
    for (size_t i = 0; i < effort(100); i++) {
        kf_rng r = kf_rng_stream(9, KF_FOR_SAMPLE, (uint32_t)i, 0);
        const size_t *z = sizes[kf_rng_below(&r, SIZES)];
        size_t spare = z[0] - z[1], half = spare / 2;
        code_case f;
        cell c;

        fleet_of(&f, kf_rng_below(&r, FAMILIES), z[0], z[1]);
        survive(&c, &f, 0, &r);
        fill(&c, 1 + kf_rng_below(&r, 64), &r);
        choose_liars(&c, half + 1 + kf_rng_below(&r, spare - 1 - half), &r);
        if (i % 3 < 2)
            another_input(&c, i % 3, &r);
        else
            in_proportion(&c, &r);
        ask(&c, spare - 1);
        sorted += judge(&c, i % 3 < 2 ? "another input" : "in proportion");
        cell_free(&c);
        fleet_down(&f);
    }
    print_message("    %zu of %zu sorted out all the same\n", sorted,
                  effort(100));
}

TEST_FILE(suspect_test)
{
    const struct CMUnitTest tests[] = {
        TEST(up_to_the_limit,
             "errors: wrong nodes are located up to the limit"),
        TEST(beyond_the_limit, "errors: beyond the limit the check fails"),
        TEST(detection,
             "errors: one wrong entry is detected, correct results pass"),
        TEST(conspiracies,
             "errors: conspiracies up to half of the spare are located"),
        TEST(no_wrong_verdict,
             "errors: beyond half of the spare no verdict is wrong"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
