/* gradient.c -- an iteration of gradient descent on 20 workers that
 * straggle, under nine gradient codes, run by run.
 *
 * "Adaptive Gradient Coding" (Cao, Yan, Tang, Han, 2020), equations 91 and 92
 * with the measurements of its Tables IV and V; math/gradients.md 11, 12.
 * Stragglers are drawn and counted here, and the closed form (aet.c) adds up
 * probabilities: neither knows of the other.
 *
 * Every scheme meets the same workers: what is drawn is how many epochs on end
 * a worker straggles.
 */
#include "gradient/gradient.h"

#include <stdlib.h>
#include <string.h>

#define WORKERS 20
#define SUBSETS 3 /* d */
#define PIECES 6  /* lambda */

typedef struct measurement {
    aet_kind kind; /* with groups or without */
    size_t s;
    double compute, code[SUBSETS], code_later;
} measurement;

#define ALL(x)                                                                 \
    {                                                                          \
        x, x, x                                                                \
    }

/* Seconds of Tables IV and V, encoding and decoding, by the number of stragglers. */
static const measurement measured[] = {
    {AET_UNCODED, 0, 0.82, ALL(0.15 + 0.47), 0.15 + 0.47},
    {AET_CGC, 0, 2.45, ALL(0.33 + 0.79), 0.33 + 0.79},
    {AET_CGC, 1, 2.45, ALL(0.43 + 0.95), 0.43 + 0.95},
    {AET_CGC, 2, 2.45, ALL(0.44 + 1.58), 0.44 + 1.58},
    {AET_AGC, 0, 2.45, {0.37 + 0.63, 0.47 + 0.87, 0.92 + 1.67}, 0.32 + 0.65},
};

typedef struct contender {
    agc_costs cost;
    bool adaptive;
    size_t tolerance, groups, first[WORKERS + 1]; /* worker of each group */
} contender;

static void enter(contender *c, aet_scheme scheme)
{
    const aet_params q = {.n = WORKERS, .d = SUBSETS, .lam = PIECES};
    bool adaptive = scheme.kind & (AET_AGC | AET_G_AGC);
    aet_kind kind = scheme.kind == AET_G_CGC   ? AET_CGC
                    : scheme.kind == AET_G_AGC ? AET_AGC
                                               : scheme.kind;
    const measurement *m = measured;

    while (m->kind != kind || m->s != scheme.s)
        m++;
    *c = (contender){
        .cost = {.compute = m->compute, .code_again = ALL(m->code_later)},
        .adaptive = adaptive,
        .groups = aet_groups(&q, scheme)};
    memcpy(c->cost.code, m->code, sizeof m->code);
    c->tolerance = aet_lengths(&q, scheme, c->cost.length) - 1;
    for (size_t h = 0; h < c->groups; h++)
        c->first[h + 1] = c->first[h] + aet_group_size(&q, scheme, h);
}

/* ---- one iteration ------------------------------------------------------- */

/* Of the workers of group h those that straggle in epoch i, and did in all
 * before. */
static size_t stragglers(const contender *c, size_t h, const size_t *failures,
                         size_t i)
{
    size_t count = 0;

    for (size_t w = c->first[h]; w < c->first[h + 1]; w++)
        count += failures[w] > i;
    return count;
}

/* The epoch in which all have decoded, and the most stragglers in it in a
 * group that was still running. */
static size_t last_epoch(const contender *c, const size_t *failures,
                         size_t *most)
{
    size_t last = 0;

    *most = 0;
    for (size_t h = 0; h < c->groups; h++) {
        size_t i = 0, s;

        while ((s = stragglers(c, h, failures, i)) > c->tolerance)
            i++;
        if (i > last || (i == last && s > *most))
            *most = s;
        if (i > last)
            last = i;
    }
    return last;
}

/* ---- many of them -------------------------------------------------------- */

typedef struct tally {
    double mean, squares, epochs, length; /* squares about the mean */
} tally;

static void count(tally *t, contender *c, const size_t *failures, size_t done)
{
    size_t most, i = last_epoch(c, failures, &most);
    size_t s = c->adaptive ? most : c->tolerance;
    double x = agc_seconds(&c->cost, i, s), off = x - t->mean;

    t->mean += off / (double)(done + 1);
    t->squares += off * (x - t->mean);
    t->epochs += (double)(i + 1);
    t->length += c->cost.length[s];
}

static bool draw(double p, uint64_t seed, size_t iteration, size_t *failures)
{
    dice d = dice_for(seed, 3, iteration);
    size_t first = 0;

    for (size_t w = 0; w < WORKERS; w++) {
        failures[w] = 0;
        while (dice_uniform(&d) < p)
            failures[w]++;
        first += failures[w] > 0;
    }
    return first <= 1;
}

static void conclude(gradient_row *r, const tally *t, double iterations)
{
    r->mean = t->mean;
    r->error = sqrt(t->squares / (iterations - 1) / iterations);
    r->epochs = t->epochs / iterations;
    r->length = t->length / iterations;
    r->within = fabs(r->mean - r->formula) <= 3 * r->error;
}

/* Rows in the order of the published table. */
static kofn_status contenders(gradient_result *out, contender *c)
{
    agc_row table[AGC_ROWS];
    kofn_status st = agc_table(table);
    size_t n = 0;

    for (size_t i = 0; i < AGC_ROWS && !st; i++) {
        gradient_row *r = &out->row[n];

        if (table[i].p != out->p)
            continue;
        r->scheme = table[i].scheme;
        aet_name(r->scheme, r->name, sizeof r->name);
        r->formula = table[i].straight;
        r->printed = table[i].printed;
        enter(&c[n++], r->scheme);
    }
    return st;
}

static bool same_order(const gradient_row *r)
{
    for (size_t i = 0; i < GRADIENT_SCHEMES; i++)
        for (size_t j = 0; j < GRADIENT_SCHEMES; j++)
            if (r[i].formula < r[j].formula - 0.01 && !(r[i].mean < r[j].mean))
                return false;
    return true;
}

kofn_status gradient_run(size_t scenario, size_t iterations, uint64_t seed,
                         gradient_result *out)
{
    contender c[GRADIENT_SCHEMES];
    tally t[GRADIENT_SCHEMES] = {{0, 0, 0, 0}};
    size_t failures[WORKERS], few = 0;
    kofn_status st;

    memset(out, 0, sizeof *out);
    out->p = scenario == 1 ? 0.05 : 0.10;
    out->iterations = iterations;
    st = contenders(out, c);
    for (size_t it = 0; it < iterations && !st; it++) {
        few += draw(out->p, seed, it, failures);
        for (size_t k = 0; k < GRADIENT_SCHEMES; k++)
            count(&t[k], &c[k], failures, it);
    }
    if (st)
        return st;
    for (size_t k = 0; k < GRADIENT_SCHEMES; k++)
        conclude(&out->row[k], &t[k], (double)iterations);
    out->ordered = same_order(out->row);
    out->at_most_one = (double)few / (double)iterations;
    out->at_most_one_formula =
        pow(1 - out->p, WORKERS - 1) * (1 + (WORKERS - 1) * out->p);
    return KOFN_OK;
}
