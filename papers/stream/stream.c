/* stream.c -- streams of products whose rounds are played out by the rules, over
 * patterns of who is slow.
 *
 * "Coded Sequential Matrix Multiplication For Straggler Mitigation" (Krishnan,
 * Hosseini, Khisti), Figure 1 and Table 1; math/stream_model.md 2 and 7.  What a
 * product has is counted here product by product; the chains (rhat.c) know
 * of marks only.
 */
#include "stream/stream.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- one stream ---------------------------------------------------------- */

typedef struct stream_state {
    const stream_setup *x;
    size_t threshold, delay; /* SIZE_MAX: none */
    double parts;
    size_t *got;          /* per product                                  */
    uint8_t *marks;       /* of the last `window` rounds, a row a round   */
    size_t window, first; /* the oldest product that is not over */
} stream_state;

static bool is_bursty(const stream_setup *x)
{
    return x->scheme.kind == RHAT_IDIP && x->eps > 0;
}

static size_t threshold_of(const stream_setup *x)
{
    const rhat_scheme *s = &x->scheme;

    if (is_bursty(x))
        return x->workers * (s->W - 1 + x->B) - x->B * x->eps;
    return s->kind == RHAT_IDIP ? x->workers * s->W - s->N : s->threshold;
}

static size_t delay_of(const stream_setup *x)
{
    const rhat_scheme *s = &x->scheme;

    return s->kind == RHAT_ONCE  ? 0
           : s->kind == RHAT_DIP ? s->T
           : is_bursty(x)        ? s->W + x->B - 2
                                 : s->W - 1;
}

static bool slow(const stream_setup *x, size_t t, size_t w)
{
    const kofn_matrix *a = x->pattern;

    return ((const double *)a->data)[t % a->rows * a->ld + w] > 1;
}

static double size_of(const stream_setup *x, size_t i)
{
    return x->sizes ? x->size[i / x->models % x->sizes] : 1;
}

/* Mini-tasks of each worker for product i in round t. */
static size_t tasks(const stream_state *s, size_t i, size_t t)
{
    const rhat_scheme *c = &s->x->scheme;
    bool over = s->got[i] >= s->threshold;

    if (c->kind != RHAT_DIP || t - i < s->delay)
        return !over || (c->kind == RHAT_IDIP && c->late);
    return over ? 0 : (s->threshold - s->got[i] + c->lambda - 1) / c->lambda;
}

/* At most N marks in the window that ends now, or at most eps workers that have
 * marks within B rounds. */
static bool admits(const stream_state *s, size_t t)
{
    const stream_setup *x = s->x;
    size_t marks = 0, workers = 0;

    for (size_t w = 0; w < x->workers; w++) {
        size_t last = SIZE_MAX, span = 0;

        for (size_t back = 0; back < s->window && back <= t; back++) {
            bool on = back == 0
                          ? slow(x, t, w)
                          : s->marks[(t - back) % s->window * x->workers + w];

            marks += on;
            if (on && last == SIZE_MAX)
                last = back;
            if (on)
                span = back - last + 1;
        }
        workers += span > 0;
        if (is_bursty(x) && span > x->B)
            return false;
    }
    return is_bursty(x) ? workers <= x->eps : marks <= x->scheme.N;
}

/* Can the round not end without the slow? */
static bool waits(const stream_state *s, size_t t, size_t in)
{
    const stream_setup *x = s->x;
    size_t due = t - s->delay;

    if (in == 0)
        return true;
    switch (x->scheme.kind) {
    case RHAT_ONCE:
        return in < s->threshold;
    case RHAT_IDIP:
        return !admits(s, t);
    case RHAT_DIP:
        break;
    }
    return t >= s->delay && due < x->products && s->got[due] < s->threshold &&
           s->got[due] + in * tasks(s, due, t) < s->threshold;
}

static void keep_marks(const stream_state *s, size_t t, bool none)
{
    const stream_setup *x = s->x;

    for (size_t w = 0; w < x->workers && s->window; w++)
        s->marks[t % s->window * x->workers + w] = !none && slow(x, t, w);
}

static void round_over(stream_state *s, size_t t, size_t in, stream_played *out)
{
    const stream_setup *x = s->x;
    size_t last = t < x->products ? t : x->products - 1;

    for (size_t i = s->first; i <= last; i++) {
        size_t had = s->got[i];

        s->got[i] += in * tasks(s, i, t);
        if (had < s->threshold && s->got[i] >= s->threshold &&
            t - i > out->delay)
            out->delay = t - i;
    }
    while (s->first <= last &&
           (s->got[s->first] >= s->threshold || t - s->first >= s->delay)) {
        bool carried = x->scheme.kind == RHAT_IDIP && x->scheme.late;

        if (carried && t - s->first < s->delay)
            break;
        out->missed += s->got[s->first++] < s->threshold;
    }
}

static void play_round(stream_state *s, size_t t, stream_played *out)
{
    const stream_setup *x = s->x;
    size_t in = 0, slots = 0;
    double load = 0, longer = 1;
    bool waited, patient = x->alpha <= 1 + x->mu;

    for (size_t w = 0; w < x->workers; w++)
        in += !slow(x, t, w);
    for (size_t i = s->first; i <= t && i < x->products; i++) {
        slots += tasks(s, i, t);
        load += (double)tasks(s, i, t) * size_of(x, i) / s->parts;
    }
    waited = waits(s, t, in) || patient;
    if (in < x->workers)
        longer = waited                        ? x->alpha
                 : x->scheme.kind != RHAT_ONCE ? 1 + x->mu
                                               : 1;
    keep_marks(s, t, waited);
    out->waits += waited && !patient && in > 0 && in < x->workers && slots > 0;
    out->slots = slots > out->slots ? slots : out->slots;
    out->time += load * longer;
    if (x->took && t < x->rounds_kept)
        x->took[t] = load * longer * s->parts;
    round_over(s, t, waited ? x->workers : in, out);
}

kofn_status stream_play(const stream_setup *x, stream_played *out)
{
    stream_state s = {.x = x,
                      .threshold = threshold_of(x),
                      .delay = delay_of(x),
                      .window = x->scheme.kind == RHAT_IDIP ? x->scheme.W : 0};
    kofn_status st = KOFN_OK;

    *out = (stream_played){.time = 0};
    s.parts = (double)(x->scheme.parts ? x->scheme.parts : s.threshold);
    s.got = calloc(x->products, sizeof *s.got);
    s.marks = calloc(s.window + 1, x->workers);
    if (!s.got || !s.marks)
        st = KOFN_NOMEM;
    for (size_t t = 0; !st && s.first < x->products; t++)
        play_round(&s, t, out);
    free(s.got);
    free(s.marks);
    return st;
}

/* ---- Figure 1 ------------------------------------------------------------ */

const char *const figure1_names[FIGURE1_CURVES] = {
    "uncoded", "polynomial", "idip", "dip", "dip, T = inf"};

/* The minimum of the printed bound: what the figure shows of IDIP. */
static kofn_status least_bound(const rhat_params *q, size_t T, figure1_curve *c)
{
    c->model = HUGE_VAL;
    for (size_t N = 1; N < q->workers * (T + 1); N++) {
        rhat_scheme s = {.kind = RHAT_IDIP, .N = N, .W = T + 1, .late = true};
        rhat_result r;

        PAPERS_TRY(rhat_of(q, &s, &r));
        if (r.bound_printed >= c->model)
            continue;
        c->model = r.bound_printed;
        c->corrected = r.bound_corrected;
        c->exact = r.exact_fixed_load;
        c->scheme = s;
    }
    return KOFN_OK;
}

static kofn_status curve(const rhat_params *q, size_t T, size_t k,
                         figure1_curve *c)
{
    rhat_result r;
    kofn_status st;

    if (k == 2)
        return least_bound(q, T, c);
    c->scheme = (rhat_scheme){.kind = RHAT_ONCE, .threshold = q->workers};
    st = k == 0 ? rhat_of(q, &c->scheme, &r)
                : rhat_best(q, k == 1 ? RHAT_ONCE : RHAT_DIP,
                            k == 4 ? RHAT_ENDLESS : T, &c->scheme, &r);
    c->model = c->corrected = c->exact = r.rhat;
    return st;
}

static kofn_status simulate(const rhat_params *q, size_t rounds,
                            const kofn_matrix *pattern, figure1_curve *c)
{
    stream_setup x = {.scheme = c->scheme,
                      .workers = q->workers,
                      .alpha = q->alpha,
                      .pattern = pattern,
                      .products = rounds};
    stream_played p;
    kofn_status st = stream_play(&x, &p);

    c->simulated = p.time / (double)rounds;
    c->within = fabs(c->simulated / c->exact - 1) <= FIGURE1_BAND;
    return st;
}

static kofn_status point(figure1_point *p, const rhat_params *q, size_t T,
                         size_t rounds, uint64_t seed)
{
    kofn_matrix pattern;
    char text[40];
    kofn_status st;

    p->delta = q->delta;
    p->ordered = true;
    snprintf(text, sizeof text, "iid:p=%.2f", q->delta);
    st = kofn_pattern_new(&pattern, text, q->workers, rounds, q->alpha, seed);
    for (size_t k = 0; k < FIGURE1_CURVES && !st; k++) {
        figure1_curve *c = &p->curve[k];

        st = curve(q, T, k, c);
        if (!st)
            st = simulate(q, rounds, &pattern, c);
        if (k > 0)
            p->ordered &= p->curve[k - 1].corrected > c->corrected &&
                          p->curve[k - 1].model > c->model;
    }
    kofn_free(pattern.data);
    return st;
}

kofn_status figure1_run(size_t panel, size_t rounds, uint64_t seed,
                        figure1_result *out)
{
    rhat_params q = {panel == 1 ? 4 : 6, panel == 1 ? 5 : 10, 0, 0};
    kofn_status st = KOFN_OK;

    *out = (figure1_result){.workers = q.workers,
                            .alpha = q.alpha,
                            .T = panel == 1 ? 3 : 4,
                            .rounds = rounds};
    for (size_t i = 0; i < FIGURE1_POINTS && !st; i++) {
        q.delta = 0.05 * (double)(i + 1);
        st = point(&out->point[i], &q, out->T, rounds, seed + 100 * panel + i);
    }
    return st;
}

/* ---- Table 1 ------------------------------------------------------------- */

/* Products of an iteration of a network 784-3000-3000-10 with batches of 1024,
 * forward and backward. */
static const double network[] = {1024.0 * 784 * 3000,  1024.0 * 3000 * 3000,
                                 1024.0 * 3000 * 10,   3000.0 * 1024 * 10,
                                 1024.0 * 10 * 3000,   3000.0 * 1024 * 3000,
                                 1024.0 * 3000 * 3000, 784.0 * 1024 * 3000};

#define PER_ITERATION (sizeof network / sizeof *network)
#define MODELS 5
#define ITERATIONS 250

#define NONE ((double)NAN)

/* Who is slow, what was published, and the parameters of DIP and IDIP. */
static const struct {
    const char *pattern, *title;
    double printed[3], band;
    size_t beta, lambda, N, W, B, eps;
} patterns[] = {
    {"iid:p=0.3", "i.i.d.", {1.97, .63, .76}, .02, 6, 1, 10, 4, 0, 0},
    {"fritchman:a=0.2,b=0.5,M=2",
     "F1",
     {1.19, .68, .58},
     .03,
     4,
     2,
     0,
     3,
     2,
     2},
    {"fritchman:a=0.05,b=1,M=2",
     "F2",
     {1.19, .68, .58},
     .03,
     4,
     2,
     0,
     3,
     2,
     2}};

/* What the rules come to, by polynomial: uncoded, DIP, IDIP. */
static const struct {
    size_t who;
    double mu, expected[3];
} table[TABLE1_ROWS] = {
    {0, 0, {1.51, .636, .636}}, {0, .25, {1.51, .752, .751}},
    {1, 0, {1.20, NONE, .998}}, {1, .25, {1.20, .75, 1.03}},
    {2, 0, {NONE, NONE, NONE}}, {2, .25, {NONE, .71, .69}}};

#define WHO(row) (&patterns[table[row].who])

const char *const table1_names[TABLE1_SCHEMES] = {"polynomial", "uncoded",
                                                  "dip", "idip"};

stream_setup table1_entrant(size_t row, size_t k)
{
    stream_setup x = {.workers = 4,
                      .alpha = 5,
                      .mu = table[row].mu,
                      .products = PER_ITERATION * MODELS * ITERATIONS,
                      .size = network,
                      .sizes = PER_ITERATION,
                      .models = MODELS};

    if (k < 2)
        x.scheme =
            (rhat_scheme){.kind = RHAT_ONCE, .threshold = k == 0 ? 2 : 4};
    else if (k == 2)
        x.scheme = (rhat_scheme){.kind = RHAT_DIP,
                                 .threshold = WHO(row)->beta,
                                 .T = 3,
                                 .lambda = WHO(row)->lambda};
    else
        x.scheme = (rhat_scheme){
            .kind = RHAT_IDIP, .N = WHO(row)->N, .W = WHO(row)->W};
    x.B = WHO(row)->B;
    x.eps = WHO(row)->eps;
    return x;
}

void table1_spec(size_t row, size_t k, char *spec, size_t size)
{
    const stream_setup x = table1_entrant(row, k);
    const rhat_scheme *s = &x.scheme;

    if (k < 2)
        snprintf(spec, size, k == 0 ? "polynomial:m=2,p=1" : "uncoded");
    else if (k == 2)
        snprintf(spec, size, "dip:m=2,p=%zu,T=%zu,lambda=%zu", s->threshold / 2,
                 s->T, s->lambda);
    else if (x.eps)
        snprintf(spec, size, "idip:m=2,p=%zu,model=bursty,B=%zu,W=%zu,eps=%zu",
                 threshold_of(&x) / 2, x.B, s->W, x.eps);
    else
        snprintf(spec, size, "idip:m=2,p=%zu,N=%zu,W=%zu", threshold_of(&x) / 2,
                 s->N, s->W);
}

void table1_about(size_t row, nets_row *out)
{
    out->title = WHO(row)->title;
    out->pattern = WHO(row)->pattern;
    out->mu = table[row].mu;
    for (size_t k = 0; k < 3; k++)
        out->printed[k] = WHO(row)->printed[k];
}

static kofn_status run_row(size_t row, uint64_t seed, table1_row *out)
{
    kofn_matrix pattern;
    stream_setup x = table1_entrant(row, 0);
    kofn_status st = kofn_pattern_new(&pattern, WHO(row)->pattern, x.workers,
                                      x.products + 4, x.alpha, seed);

    for (size_t k = 0; k < TABLE1_SCHEMES && !st; k++) {
        stream_played p;

        x = table1_entrant(row, k);
        x.pattern = &pattern;
        st = stream_play(&x, &p);
        out->time[k] += p.time;
        out->missed += p.missed;
    }
    kofn_free(pattern.data);
    return st;
}

kofn_status table1_run(size_t runs, uint64_t seed, table1_result *out)
{
    kofn_status st = KOFN_OK;

    *out = (table1_result){.runs = runs};
    for (size_t i = 0; i < PER_ITERATION; i++)
        out->multiply_adds += network[i];
    out->products = PER_ITERATION * MODELS * ITERATIONS;
    for (size_t i = 0; i < TABLE1_ROWS && !st; i++) {
        table1_row *r = &out->row[i];

        *r = (table1_row){.title = WHO(i)->title,
                          .pattern = WHO(i)->pattern,
                          .mu = table[i].mu,
                          .band = WHO(i)->band};
        for (size_t run = 0; run < runs && !st; run++)
            st = run_row(i, seed + run, r);
        for (size_t k = 0; k < 3; k++) {
            r->ratio[k] = r->time[k + 1] / r->time[0];
            r->printed[k] = WHO(i)->printed[k];
            r->expected[k] = table[i].expected[k];
            r->within[k] = isnan(r->expected[k]) ||
                           fabs(r->ratio[k] / r->expected[k] - 1) <= r->band;
        }
    }
    return st;
}

/* ---- the largest load ---------------------------------------------------- */

kofn_status stream_worst_load(size_t seeds, uint64_t seed, worst_load *out)
{
    static const char *const styles[] = {"max", "uniform", "onoff", "sticky"};
    kofn_status st = KOFN_OK;

    *out = (worst_load){.bound = 4.0 / 6};
    for (size_t n = 0; n < 4 * seeds && !st; n++) {
        stream_setup x = {.workers = 4, .alpha = 5, .products = 400};
        kofn_matrix pattern;
        stream_played p;
        char text[60];

        snprintf(text, sizeof text, "arbitrary:N=10,W=4,style=%s",
                 styles[n % 4]);
        st = kofn_pattern_new(&pattern, text, 4, 404, 5, seed + n);
        for (int k = 0; k < 2 && !st; k++) {
            double load;

            x.pattern = &pattern;
            x.scheme =
                k ? (rhat_scheme){.kind = RHAT_IDIP, .N = 10, .W = 4}
                  : (rhat_scheme){
                        .kind = RHAT_DIP, .threshold = 6, .T = 3, .lambda = 4};
            st = stream_play(&x, &p);
            load = (double)p.slots / 6;
            *(k ? &out->idip : &out->dip) =
                fmax(load, k ? out->idip : out->dip);
            out->missed += p.missed;
            out->waits += p.waits;
        }
        kofn_free(pattern.data);
    }
    return st;
}
