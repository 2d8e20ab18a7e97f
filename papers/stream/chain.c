/* chain.c -- the mean time of a round of a stream, in closed form and by exact
 * Markov chains.
 *
 * "Coded Sequential Matrix Multiplication For Straggler Mitigation" (Krishnan,
 * Hosseini, Khisti), sections 4 and 5; math/stream_model.md 2 to 6.
 *
 * The state of a chain is the number of marked workers in each of the last
 * rounds. No more of the past matters, for DIP or IDIP: a product of age a has
 * the results of the last a rounds. And the marks within the window decide
 * whether a round may end. */
#include "stream/stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORKERS 1000
#define MOST_THRESHOLD 1000000
#define MOST_STATES ((size_t)1 << 20)
#define MOST_WORK 2e8 /* limit of a search: states times workers */
#define MOST_STEPS 100000
#define SETTLED                                                                \
    1e-14 /* change of the distribution by one step at which it counts as      \
             settled */

/* ---- binomial probabilities ---------------------------------------------- */

/* Returns p[i] = P{Bin(n, q) = i}, i = 0..n, by the ratio of neighbours from
 * the most probable value, so that nothing overflows. */
static double *binomials(size_t n, double q)
{
    double *p = calloc(n + 1, sizeof *p), sum = 0;
    size_t mode = smaller(n, (size_t)((double)(n + 1) * q));

    if (!p)
        return NULL;
    p[mode] = 1;
    for (size_t i = mode; i < n && q < 1; i++)
        p[i + 1] = p[i] * (double)(n - i) / (double)(i + 1) * (q / (1 - q));
    for (size_t i = mode; i > 0 && q > 0; i--)
        p[i - 1] = p[i] * (double)i / (double)(n - i + 1) * ((1 - q) / q);
    for (size_t i = 0; i <= n; i++)
        sum += p[i];
    for (size_t i = 0; i <= n; i++)
        p[i] /= sum;
    return p;
}

/* Returns P{Bin(n, q) > most}, or with `below` P{.. <= most}; NaN if memory
 * runs out. */
static double tail(size_t n, double q, size_t most, bool below)
{
    double *p = binomials(n, q), sum = 0;

    if (!p)
        return (double)NAN;
    for (size_t i = 0; i <= n; i++)
        sum += (i <= most) == below ? p[i] : 0;
    free(p);
    return sum;
}

/* ---- checks ---------------------------------------------------------------
 */

static kofn_status check_depth(size_t workers, size_t depth)
{
    size_t states = 1;

    for (size_t i = 0; i < depth; i++)
        if (__builtin_mul_overflow(states, workers, &states) ||
            states > MOST_STATES)
            return papers_fail(
                KOFN_UNSUITED,
                "%zu workers and %zu rounds to remember have more "
                "than %zu states; give fewer of them, or no limit "
                "to the delay of dip",
                workers, depth, MOST_STATES);
    return KOFN_OK;
}

/* Refuses a number that is not from 1 to `most`. more: explains the limit. */
static kofn_status out_of(const char *name, size_t value, size_t most,
                          const char *more)
{
    return value >= 1 && value <= most
               ? KOFN_OK
               : papers_fail(KOFN_INVAL, "%s = %zu: give 1 to %zu%s", name,
                             value, most, more);
}

/* Fills in omitted parameters. */
static kofn_status complete(const rhat_params *q, rhat_scheme *s)
{
    bool once = s->kind == RHAT_ONCE;
    size_t P = q->workers;

    PAPERS_TRY(out_of("workers", P, MOST_WORKERS, ""));
    if (s->kind == RHAT_IDIP) {
        PAPERS_TRY(out_of("idip: W", s->W, MOST_THRESHOLD, ""));
        if (s->N >= P * s->W)
            return papers_fail(
                KOFN_INVAL,
                "idip: N = %zu: with %zu workers and W = %zu give at "
                "most %zu",
                s->N, P, s->W, P * s->W - 1);
        s->threshold = P * s->W - s->N;
    }
    if (s->kind == RHAT_DIP && !s->lambda)
        s->lambda = P;
    if (!s->parts)
        s->parts = s->threshold;
    PAPERS_TRY(out_of(once ? "threshold" : "dip: threshold", s->threshold,
                      once                  ? P
                      : s->kind == RHAT_DIP ? MOST_THRESHOLD
                                            : SIZE_MAX,
                      ""));
    if (s->kind == RHAT_DIP)
        PAPERS_TRY(
            out_of("dip: lambda", s->lambda, P, ", the number of workers"));
    if (once || (s->kind == RHAT_DIP && s->T == RHAT_ENDLESS))
        return KOFN_OK;
    return check_depth(P, s->kind == RHAT_DIP ? s->T : s->W - 1);
}

/* ---- a chain ------------------------------------------------------------- */

/* A round in one state. */
typedef struct situation {
    double load; /* mini-tasks of each worker */
    size_t most; /* slow workers without which the round can end */
} situation;

typedef struct chain {
    const rhat_params *q;
    const rhat_scheme *s;
    bool early;
    size_t depth, states;
    const double *slow; /* slow[i]: P{i workers are slow} */
    double *now, *then; /* distributions over the states */
    situation *at;      /* each state */
} chain;

/* Returns the duration of a round with i slow workers: 1 if it can end without
 * them. All slow workers take the same time, and one within the patience mu is
 * not marked. */
static double duration(const rhat_params *q, size_t i, size_t most)
{
    if (i == 0)
        return 1;
    return i > most || i == q->workers || q->alpha <= 1 + q->mu ? q->alpha
                                                                : 1 + q->mu;
}

static size_t marks(const rhat_params *q, size_t i, size_t most)
{
    return i > most || i == q->workers || q->alpha <= 1 + q->mu ? 0 : i;
}

/* Computes the results of a product of age 0..depth into got[]. */
static void results(const chain *c, size_t state, size_t *got)
{
    got[0] = 0;
    for (size_t a = 0; a < c->depth; a++) {
        got[a + 1] = got[a] + c->q->workers - state % c->q->workers;
        state /= c->q->workers;
    }
}

static situation of_dip(const chain *c, const size_t *got)
{
    const rhat_scheme *s = c->s;
    size_t open = 0, due, more, need;

    for (size_t a = 0; a < c->depth; a++)
        open += got[a] < s->threshold;
    due = got[c->depth];
    need = due < s->threshold ? s->threshold - due : 0;
    more = ceil_div(need, s->lambda);
    return (situation){(double)(open + more),
                       more ? c->q->workers - ceil_div(need, more)
                            : c->q->workers};
}

static situation of_idip(const chain *c, const size_t *got)
{
    const rhat_scheme *s = c->s;
    size_t open = 0, marked = c->depth * c->q->workers - got[c->depth];

    for (size_t a = 0; a <= c->depth; a++)
        open += !c->early || got[a] < s->threshold;
    return (situation){(double)open, marked < s->N ? s->N - marked : 0};
}

static kofn_status look_at_states(chain *c)
{
    size_t *got = calloc(c->depth + 1, sizeof *got);

    if (!got)
        return KOFN_NOMEM;
    for (size_t i = 0; i < c->states; i++) {
        results(c, i, got);
        c->at[i] = c->s->kind == RHAT_DIP ? of_dip(c, got) : of_idip(c, got);
    }
    free(got);
    return KOFN_OK;
}

/* Does one round. Returns how much the distribution changed. */
static double step(chain *c)
{
    size_t P = c->q->workers, older = c->states / (c->depth ? P : 1);
    double *swap = c->now, change = 0;

    memset(c->then, 0, c->states * sizeof *c->then);
    for (size_t s = 0; s < c->states; s++)
        for (size_t i = 0; i <= P && c->now[s] > 0; i++) {
            size_t m = marks(c->q, i, c->at[s].most);
            size_t next = c->depth ? m + P * (s % older) : 0;

            c->then[next] += c->now[s] * c->slow[i];
        }
    for (size_t s = 0; s < c->states; s++)
        change += fabs(c->then[s] - c->now[s]);
    c->now = c->then;
    c->then = swap;
    return change;
}

/* Computes the means of load times duration, and of load. */
static void mean(const chain *c, double *time, double *load)
{
    *time = *load = 0;
    for (size_t s = 0; s < c->states; s++) {
        double spent = 0;

        for (size_t i = 0; i <= c->q->workers; i++)
            spent += c->slow[i] * duration(c->q, i, c->at[s].most);
        *time += c->now[s] * c->at[s].load * spent;
        *load += c->now[s] * c->at[s].load;
    }
}

/* Starts without marks; after `depth` rounds the start no longer matters. */
static kofn_status run_chain(chain *c, double *time, double *load)
{
    kofn_status st = KOFN_OK;

    c->states = 1;
    for (size_t i = 0; i < c->depth; i++)
        c->states *= c->q->workers;
    c->now = calloc(c->states, sizeof *c->now);
    c->then = calloc(c->states, sizeof *c->then);
    c->at = calloc(c->states, sizeof *c->at);
    if (!c->now || !c->then || !c->at)
        st = KOFN_NOMEM;
    if (!st)
        st = look_at_states(c);
    if (!st) {
        c->now[0] = 1;
        for (size_t i = 0; i < MOST_STEPS && step(c) > SETTLED; i++)
            ;
        mean(c, time, load);
    }
    free(c->now);
    free(c->then);
    free(c->at);
    return st;
}

static kofn_status by_chain(const rhat_params *q, const rhat_scheme *s,
                            const double *slow, bool early, double *rhat,
                            double *load)
{
    chain c = {.q = q,
               .s = s,
               .early = early,
               .depth = s->kind == RHAT_DIP ? s->T : s->W - 1,
               .slow = slow};
    double parts = (double)s->parts;

    PAPERS_TRY(run_chain(&c, rhat, load));
    *rhat /= parts;
    *load /= parts;
    return KOFN_OK;
}

/* ---- single products ------------------------------------------------------
 */

static void once(const rhat_params *q, const rhat_scheme *s, const double *slow,
                 rhat_result *r)
{
    size_t spare = q->workers - s->threshold;
    double waited = 0;

    for (size_t i = spare + 1; i <= q->workers; i++)
        waited += slow[i];
    r->load = r->mean_load = 1 / (double)s->parts;
    r->rhat = (q->alpha * waited + 1 - waited) * r->load;
    r->slots = 1;
    r->delay = 0;
}

/* ---- DIP ----------------------------------------------------------------- */

/* Computes f(threshold): the expected rounds until `threshold` results are
 * there. k of them come in a round with chance came[k]. Rounds without results
 * count. */
static kofn_status rounds_to(size_t threshold, size_t workers,
                             const double *came, double *f)
{
    double *to = calloc(threshold + 1, sizeof *to);

    *f = HUGE_VAL;
    if (!to)
        return KOFN_NOMEM;
    if (!(came[0] < 1)) { /* nothing ever comes */
        free(to);
        return KOFN_OK;
    }
    for (size_t b = 1; b <= threshold; b++) {
        double more = 1;

        for (size_t k = 1; k <= smaller(workers, b); k++)
            more += came[k] * to[b - k];
        to[b] = more / (1 - came[0]);
    }
    *f = to[threshold];
    free(to);
    return KOFN_OK;
}

/* Computes it twice: a round in which all are slow counts as all in time, or
 * as none. */
static kofn_status expected_rounds(const rhat_params *q, const rhat_scheme *s,
                                   const double *slow, rhat_result *r)
{
    size_t P = q->workers;
    double *came = calloc(P + 1, sizeof *came);
    kofn_status st = came ? KOFN_OK : KOFN_NOMEM;

    for (size_t k = 0; k <= P && !st; k++)
        came[k] = slow[P - k];
    if (!st)
        st = rounds_to(s->threshold, P, came, &r->f_binomial);
    if (!st) {
        came[P] += came[0];
        came[0] = 0;
        st = rounds_to(s->threshold, P, came, &r->f_tie);
    }
    free(came);
    return st;
}

/* By Little's law, the mean number of open products is the mean number of
 * rounds of a product, whatever the rounds' length. */
static void without_deadline(const rhat_params *q, const rhat_scheme *s,
                             const double *slow, rhat_result *r)
{
    double spent = 0, f = r->f_tie;

    if (q->alpha <= 1 + q->mu) /* no worker is ever marked */
        f = (double)ceil_div(s->threshold, q->workers);
    for (size_t i = 0; i <= q->workers; i++)
        spent += slow[i] * duration(q, i, q->workers);
    r->mean_load = f / (double)s->parts;
    r->rhat = r->mean_load * spent;
    r->slots = r->delay = RHAT_ENDLESS;
    r->load = HUGE_VAL;
}

static kofn_status dip(const rhat_params *q, const rhat_scheme *s,
                       const double *slow, rhat_result *r)
{
    PAPERS_TRY(expected_rounds(q, s, slow, r));
    if (s->T == RHAT_ENDLESS) {
        without_deadline(q, s, slow, r);
        return KOFN_OK;
    }
    r->delay = s->T;
    r->slots = s->T + ceil_div(s->threshold, s->lambda);
    r->load = (double)r->slots / (double)s->parts;
    return by_chain(q, s, slow, false, &r->rhat, &r->mean_load);
}

/* ---- IDIP ---------------------------------------------------------------- */

/* Computes the bounds. The round waits only if a window has more than N marks.
 * The corrected bound adds the rounds in which all are slow: they end
 * together, even if the window has no more than N marks. */
static void bounds(const rhat_params *q, const rhat_scheme *s, rhat_result *r)
{
    size_t P = q->workers, others = P * (s->W - 1);
    double waited = tail(P * s->W, q->delta, s->N, false);
    double parts = (double)P - (double)s->N / (double)s->W;

    r->bound_printed = (q->alpha * waited + 1 - waited) / parts;
    if (s->N >= P)
        waited += pow(q->delta, (double)P) *
                  tail(others, q->delta, smaller(s->N - P, others), true);
    r->bound_corrected = (q->alpha * waited + 1 - waited) / parts;
}

static kofn_status idip(const rhat_params *q, const rhat_scheme *s,
                        const double *slow, rhat_result *r)
{
    double fixed, open;

    bounds(q, s, r);
    if (isnan(r->bound_corrected))
        return KOFN_NOMEM;
    PAPERS_TRY(by_chain(q, s, slow, false, &r->exact_fixed_load, &fixed));
    PAPERS_TRY(by_chain(q, s, slow, true, &r->exact_early_finish, &open));
    r->rhat = s->late ? r->exact_fixed_load : r->exact_early_finish;
    r->mean_load = s->late ? fixed : open;
    r->delay = s->W - 1;
    r->slots = s->W;
    r->load = (double)s->W / (double)s->parts;
    return KOFN_OK;
}

/* ---- one scheme, and the best ---------------------------------------------
 */

kofn_status rhat_of(const rhat_params *q, const rhat_scheme *scheme,
                    rhat_result *out)
{
    rhat_scheme s = *scheme;
    rhat_result r = {0};
    double *slow;
    kofn_status st = KOFN_OK;

    PAPERS_TRY(complete(q, &s));
    slow = binomials(q->workers, q->delta);
    if (!slow)
        return KOFN_NOMEM;
    r.threshold = s.threshold;
    if (s.kind == RHAT_ONCE)
        once(q, &s, slow, &r);
    else
        st = s.kind == RHAT_DIP ? dip(q, &s, slow, &r) : idip(q, &s, slow, &r);
    free(slow);
    if (!st)
        *out = r;
    return st;
}

typedef struct search {
    const rhat_params *q;
    rhat_scheme best;
    rhat_result least;
    bool found;
} search;

/* Among schemes that are equal to rounding, keeps the first. */
static kofn_status consider(search *x, rhat_scheme s)
{
    rhat_result r;

    PAPERS_TRY(rhat_of(x->q, &s, &r));
    if (x->found && !(r.rhat < x->least.rhat * (1 - 1e-12)))
        return KOFN_OK;
    x->best = s;
    x->best.threshold = r.threshold;
    x->least = r;
    x->found = true;
    return KOFN_OK;
}

static kofn_status search_dip(search *x, size_t T)
{
    size_t P = x->q->workers;
    bool endless = T == RHAT_ENDLESS;
    size_t last = endless ? 10 * P - 1 : (T + 1) * P;

    for (size_t beta = P; beta <= last; beta++)
        for (size_t lambda = 1; lambda <= (endless ? 1 : P); lambda++)
            PAPERS_TRY(consider(x, (rhat_scheme){.kind = RHAT_DIP,
                                                 .threshold = beta,
                                                 .T = T,
                                                 .lambda = lambda}));
    return KOFN_OK;
}

/* Adds up the work of a search, states times workers, over its chains. */
static kofn_status check_work(const rhat_params *q, rhat_kind kind, size_t T)
{
    double P = (double)q->workers, tries;

    if (kind == RHAT_ONCE || T == RHAT_ENDLESS)
        return KOFN_OK;
    tries =
        kind == RHAT_DIP ? ((double)T * P + 1) * P : 2 * P * ((double)T + 1);
    if (tries * pow(P, (double)T + 1) > MOST_WORK)
        return papers_fail(
            KOFN_UNSUITED,
            "%zu workers and a delay of %zu have too many "
            "parameters to try them all; give fewer of them, or a "
            "scheme",
            q->workers, T);
    return KOFN_OK;
}

kofn_status rhat_best(const rhat_params *q, rhat_kind kind, size_t T,
                      rhat_scheme *best, rhat_result *out)
{
    search x = {.q = q};

    PAPERS_TRY(out_of("workers", q->workers, MOST_WORKERS, ""));
    PAPERS_TRY(check_work(q, kind, T));
    if (kind == RHAT_ONCE)
        for (size_t S = q->workers > 1; S < q->workers; S++)
            PAPERS_TRY(consider(
                &x, (rhat_scheme){.kind = kind, .threshold = q->workers - S}));
    else if (kind == RHAT_DIP)
        PAPERS_TRY(search_dip(&x, T));
    else
        for (size_t N = 0; N < q->workers * (T + 1); N++)
            PAPERS_TRY(
                consider(&x, (rhat_scheme){.kind = kind, .N = N, .W = T + 1}));
    *best = x.best;
    if (out)
        *out = x.least;
    return KOFN_OK;
}
