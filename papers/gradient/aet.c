/* aet.c -- the mean time of an iteration of gradient descent if stragglers are
 * restarted, for every gradient scheme.
 *
 * Model and sums are those of "Adaptive Gradient Coding" (Cao, Yan, Tang, Han,
 * 2020), equations 81 to 84 and 90; math/gradients.md 10. Lengths and groups
 * follow D.2, D.4 and D.7. A worker fails through epoch i with probability
 * p^(i+1), independently of the others. So every quantity here is a binomial
 * probability. */
#include "show.h"

#include <string.h>

#define GROUPED (AET_G_CGC | AET_G_AGC)
#define ADAPTIVE (AET_AGC | AET_G_AGC)

/* Remaining probability at which the sum over epochs stops. */
#define LEFT_OVER 1e-15

/* ---- binomial probabilities ---------------------------------------------- */

typedef struct binomial {
    double at, above; /* P{X = k}, P{X > k} */
} binomial;

static void count_weight(binomial *b, double *below, double w, size_t v,
                         size_t k)
{
    if (v == k)
        b->at = w;
    *(v > k ? &b->above : below) += w;
}

/* Returns the probabilities of X ~ Bin(n, q). Weights relative to the most
 * probable value follow from the ratio of neighbours and are divided by their
 * sum. No factorial is formed, so nothing overflows or cancels for any n.
 * Negligible weights are left out. */
static binomial binomial_at(size_t n, double q, size_t k)
{
    const double tiny = 1e-60;
    double odds = q / (1 - q), below = 0, sum, w = 1;
    size_t mode = smaller(n, (size_t)((double)(n + 1) * q));
    binomial b = {0, 0};

    count_weight(&b, &below, 1, mode, k);
    for (size_t v = mode; v < n && w > tiny; v++) {
        w *= (double)(n - v) / (double)(v + 1) * odds;
        count_weight(&b, &below, w, v + 1, k);
    }
    w = 1;
    for (size_t v = mode; v > 0 && w > tiny; v--) {
        w *= (double)v / (double)(n - v + 1) / odds;
        count_weight(&b, &below, w, v - 1, k);
    }
    sum = b.above + below;
    return (binomial){b.at / sum, b.above / sum};
}

/* ---- schemes ------------------------------------------------------------- */

const char *aet_name(aet_scheme scheme, char *out, size_t size)
{
    static const char *const names[] = {"uncoded", "GC",  "CGC",
                                        "G-CGC",   "AGC", "G-AGC"};
    size_t i = 0;

    while (i < 6 && (unsigned)scheme.kind != 1u << i)
        i++;
    if (scheme.kind == AET_CGC || scheme.kind == AET_G_CGC)
        snprintf(out, size, "%s(%zu)", names[i], scheme.s);
    else
        snprintf(out, size, "%s", i < 6 ? names[i] : "?");
    return out;
}

/* Returns the stragglers that a group tolerates. */
static size_t tolerance(const aet_params *q, aet_scheme scheme)
{
    switch (scheme.kind) {
    case AET_UNCODED:
        return 0;
    case AET_CGC:
    case AET_G_CGC:
        return scheme.s;
    default:
        return q->d - 1;
    }
}

/* Returns C_s; s is at most the tolerance. */
static double length_with(const aet_params *q, aet_scheme scheme, size_t s)
{
    if (scheme.kind == AET_UNCODED)
        return 1;
    if (!(scheme.kind & ADAPTIVE))
        s = tolerance(q, scheme);
    if (scheme.kind & ADAPTIVE && q->lam)
        return (double)ceil_div(q->lam, q->d - s) / (double)q->lam;
    return 1 / (double)(q->d - s);
}

/* Equation 66: groups of d workers; the last group takes the remainder. */
size_t aet_groups(const aet_params *q, aet_scheme scheme)
{
    if (!(scheme.kind & GROUPED) || q->d == 0)
        return 1;
    return larger(1, q->n / q->d);
}

size_t aet_group_size(const aet_params *q, aet_scheme scheme, size_t h)
{
    size_t groups = aet_groups(q, scheme);

    if (h >= groups)
        return 0;
    return h + 1 < groups ? q->d : q->n - (groups - 1) * q->d;
}

/* ---- lengths of messages ------------------------------------------------- */

size_t aet_lengths(const aet_params *q, aet_scheme scheme, double *c)
{
    size_t most = tolerance(q, scheme);

    for (size_t s = 0; s <= most; s++)
        c[s] = length_with(q, scheme, s);
    return most + 1;
}

/* ---- end of an iteration, and stragglers at the end -----------------------
 */

/* The workers in the sums: at most two sizes of groups. */
typedef struct fleet {
    struct part {
        size_t size, groups;
        double before;  /* P{tau_h < i} of one such group */
        double decoded; /* P{tau_h = i, X_h <= s}, for s in turn */
    } part[2];
    size_t parts, tolerance;
    double p;
} fleet;

static fleet fleet_of(const aet_params *q, aet_scheme scheme)
{
    size_t groups = aet_groups(q, scheme);
    fleet f = {.tolerance = tolerance(q, scheme), .p = q->p};

    if (groups > 1)
        f.part[f.parts++] = (struct part){.size = q->d, .groups = groups - 1};
    f.part[f.parts++] = (struct part){
        .size = aet_group_size(q, scheme, groups - 1), .groups = 1};
    return f;
}

/* Returns P{tau >= i}, if a worker failed through epoch i - 1 with probability
 * `failing`. Late in the sum it is far below 1, so it is not computed as 1 -
 * (1 - it). */
static double still_running(const fleet *f, double failing)
{
    double log_done = 0;

    for (size_t k = 0; k < f->parts; k++) {
        const struct part *h = &f->part[k];

        log_done += (double)h->groups *
                    log1p(-binomial_at(h->size, failing, f->tolerance).above);
    }
    return -expm1(log_done);
}

/* Returns F(N, S, i, s) of equation 81, summed: s of the N workers fail
 * through epoch i. Of the others, more than S - s failed through epoch i - 1,
 * which kept the group running. Before epoch 0 every worker counts as failed.
 */
static double ends_with(size_t N, size_t S, double failing, double p, size_t s)
{
    double through = failing * p;
    double only_now = failing * (1 - p) / (1 - through);

    return binomial_at(N, through, s).at *
           binomial_at(N - s, only_now, S - s).above;
}

/* Returns P{tau = i, M <= s} for s = 0, 1, .. in turn (equation 90): the
 * probability that every group ended before or ends now with at most s, minus
 * that of all having ended before. */
static double all_within(fleet *f, double failing, size_t s)
{
    double gone = 1, within = 1, gain = 0;

    for (size_t k = 0; k < f->parts; k++) {
        struct part *h = &f->part[k];

        if (s == 0) {
            h->before = 1 - binomial_at(h->size, failing, f->tolerance).above;
            h->decoded = 0;
        }
        h->decoded += ends_with(h->size, f->tolerance, failing, f->p, s);
        gone *= pow(h->before, (double)h->groups);
        within *= pow(h->before + h->decoded, (double)h->groups);
        gain += (double)h->groups * log1p(h->decoded / h->before);
    }
    /* Near the end the difference of the products would be rounding. */
    return gone < 0.5 ? within - gone : gone * expm1(gain);
}

typedef struct average {
    const aet_params *q;
    aet_scheme scheme;
    aet_time time;
    void *ctx;
    aet_result sum;
} average;

static void add(average *a, size_t i, size_t s, double probability)
{
    a->sum.time += probability * a->time(a->ctx, i, s);
    a->sum.epochs += probability * (double)(i + 1);
    a->sum.length += probability * length_with(a->q, a->scheme, s);
    a->sum.mass += probability;
}

/* Adds epoch i, with `failing` = p^i. If messages have one length, the final
 * number of stragglers does not matter. */
static void add_epoch(average *a, fleet *f, size_t i, double failing,
                      double ending)
{
    double before = 0, now;

    if (!(a->scheme.kind & ADAPTIVE)) {
        add(a, i, f->tolerance, ending);
        return;
    }
    for (size_t s = 0; s <= f->tolerance; s++) {
        now = all_within(f, failing, s);
        add(a, i, s, now - before);
        before = now;
    }
}

kofn_status aet_with(const aet_params *q, aet_scheme scheme, aet_time time,
                     void *ctx, aet_result *res)
{
    average a = {.q = q, .scheme = scheme, .time = time, .ctx = ctx};
    double left = 1, next;
    fleet f;

    f = fleet_of(q, scheme);
    for (size_t i = 0; left > LEFT_OVER; i++) {
        next = still_running(&f, pow(q->p, (double)(i + 1)));
        add_epoch(&a, &f, i, pow(q->p, (double)i), left - next);
        left = next;
    }
    if (!isfinite(a.sum.time))
        return papers_fail(KOFN_NONFINITE,
                           "the average time is %g: an epoch takes "
                           "too long for a number",
                           a.sum.time);
    *res = a.sum;
    return KOFN_OK;
}

/* ---- mean execution time --------------------------------------------------
 */

typedef struct plain_time {
    const aet_params *q;
    aet_scheme scheme;
} plain_time;

/* Equation 82: failed epochs take t_cp + t_cm with every scheme. The last one
 * takes what the scheme needs. */
static double time_of(void *ctx, size_t i, size_t s)
{
    const plain_time *t = ctx;
    const aet_params *q = t->q;
    bool uncoded = t->scheme.kind == AET_UNCODED;
    double own = uncoded ? q->t_cp / (double)q->d : q->t_cp;

    return (double)i * (q->t_cp + q->t_cm) + own +
           length_with(q, t->scheme, s) * q->t_cm;
}

kofn_status aet_of(const aet_params *q, aet_scheme scheme, aet_result *res)
{
    plain_time t = {q, scheme};

    return aet_with(q, scheme, time_of, &t, res);
}

/* ---- the best scheme ------------------------------------------------------
 */

static kofn_status consider(const aet_params *q, aet_scheme scheme,
                            aet_scheme *best, aet_result *least)
{
    aet_result r;

    PAPERS_TRY(aet_of(q, scheme, &r));
    /* Equal schemes with different names differ by rounding. */
    if (best->kind && !(r.time < least->time * (1 - 1e-12)))
        return KOFN_OK;
    *best = scheme;
    *least = r;
    return KOFN_OK;
}

kofn_status aet_best(const aet_params *q, unsigned among, aet_scheme *best,
                     aet_result *res)
{
    aet_scheme found = {0, 0};
    aet_result least = {0};

    for (unsigned k = 1; k <= AET_G_AGC; k <<= 1) {
        bool tunable = k & (AET_CGC | AET_G_CGC);

        for (size_t s = 0; s < (tunable ? q->d : 1); s++)
            if (!among || among & k)
                PAPERS_TRY(
                    consider(q, (aet_scheme){(aet_kind)k, s}, &found, &least));
    }
    *best = found;
    if (res)
        *res = least;
    return KOFN_OK;
}

/* ---- kofn-papers aet ----------------------------------------------------- */

static aet_scheme at(aet_kind kind, size_t s)
{
    return (aet_scheme){kind, s};
}

/* Returns scheme i in the order of the report: uncoded, the adaptive ones,
 * then CGC(s) and G-CGC(s) alternately. */
static aet_scheme nth(size_t i)
{
    static const aet_kind first[] = {AET_UNCODED, AET_AGC, AET_G_AGC};

    if (i < 3)
        return at(first[i], 0);
    return at(i % 2 == 1 ? AET_CGC : AET_G_CGC, (i - 3) / 2);
}

static kofn_status line(const aet_params *q, aet_scheme scheme, json_t *o)
{
    aet_result r;
    char name[32];

    PAPERS_TRY(aet_of(q, scheme, &r));
    aet_name(scheme, name, sizeof name);
    if (o)
        json_object_set_new(o, name, json_real(r.time));
    else
        printf("%-10s %12.6g %12.6g %12.6g\n", name, r.time, r.epochs,
               r.length);
    return KOFN_OK;
}

/* Finds the best scheme. An adaptive code needs a message that stops the
 * workers; without it only the others are considered. */
static kofn_status least(const aet_params *q)
{
    const unsigned fixed = AET_UNCODED | AET_CGC | AET_G_CGC;
    aet_scheme all, plain;
    char name[32], other[32];

    PAPERS_TRY(aet_best(q, 0, &all, NULL));
    PAPERS_TRY(aet_best(q, fixed, &plain, NULL));
    printf("least: %s; with messages of one length: %s\n",
           aet_name(all, name, sizeof name),
           aet_name(plain, other, sizeof other));
    return KOFN_OK;
}

int papers_aet(const papers_args *a)
{
    const aet_params *q = &a->aet;
    kofn_status st = KOFN_OK;
    json_t *o;

    if (q->d > q->n)
        return papers_say(PAPERS_USAGE,
                          "--d %zu: a worker computes 1 to --n %zu "
                          "subsets",
                          q->d, q->n);
    o = a->json ? json_object() : NULL;
    if (!o)
        printf("%-10s %12s %12s %12s\n", "scheme", "AET", "epochs", "length");
    for (size_t i = 0; !st && i < 3 + 2 * q->d; i++)
        st = line(q, nth(i), o);
    if (!st && !o)
        st = least(q);
    if (!st)
        return papers_ending(a, o);
    json_decref(o);
    return papers_ended(st);
}
