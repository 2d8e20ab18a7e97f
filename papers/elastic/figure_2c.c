/* figure_2c.c -- linear regression on machines that fail: Figure 2c of "Coded
 * Elastic Computing" (Yang, Interlandi, Grover, Kar, Amizadeh, Weimer, 2018);
 * math/elastic.md 11, 17, 18.
 *
 * 20 machines fail with chance 0.05 per iteration. A replacement is ready ten
 * iterations later. Steepest descent searches the step on a grid. The coded
 * run is kofn's own, on the simulator, with the failures as events. The other
 * runs use the whole matrix, and differ in the residuals of a gradient:
 *
 *   noiseless     all residuals; the reference
 *   replication   those of partitions with a live replica
 *   ignore        those of live partitions
 *   forget        those of partitions that never failed
 *   distr-bgd     a lost partition's last gradient, as a first-order Taylor
 *                 model of its loss (Narayanamurthy, Weimer, Mahajan, Condie,
 *                 Sellamanickam, Keerthi, 2013) */
#include "elastic/elastic.h"

#include <stdlib.h>
#include <string.h>

#define MACHINES 20
#define ENOUGH 10 /* L */
#define FAILURE 0.05
#define ABSENCE 10 /* iterations until a replacement is ready */
#define GRID 14
#define ITERATIONS 60
#define REALISATIONS 5

typedef enum descent_kind {
    DESCENT_NOISELESS,   /* no failures */
    DESCENT_CODED,       /* coded elastic computing, by kofn */
    DESCENT_REPLICATION, /* every partition on two machines */
    DESCENT_TAYLOR,      /* Distr-BGD: lost parts by their last gradient */
    DESCENT_IGNORE,      /* without the lost parts until they are back */
    DESCENT_FORGET       /* lost partitions stay lost */
} descent_kind;

#define KINDS 6
static const char *const kind_names[KINDS] = {
    "noiseless", "coded", "replication", "distr-bgd", "ignore", "forget"};

typedef struct descent_result {
    /* Test error after each iteration. */
    double mse[KINDS][REALISATIONS][ITERATIONS];
    double mean[KINDS][ITERATIONS];
    size_t paused[REALISATIONS]; /* iterations with too few live machines */
    size_t left[REALISATIONS], joined[REALISATIONS]; /* counted by kofn */
    /* Distr-BGD: iterations from the tenth on that end below noiseless. */
    size_t ahead[REALISATIONS];
    double overlap; /* coded relative to noiseless at the end, minus 1 */
    double worst;   /* largest relative error of a coded product */
    bool coded_overlaps, ignoring_worst, taylor_differs;
} descent_result;

/* ---- data ---------------------------------------------------------------- */

typedef struct planted {
    size_t m, d;
    double *X, *y, *X_test, *y_test;
    double step; /* the longest step of the line search */
} planted;

/* Makes points and labels. Feature k is scaled by (1+k)^-1/2. Labels follow
 * from these rows, with noise of variance 1. Then rows are scaled to mean
 * length 1. */
static void plant(const planted *p, double *X, double *y, const double *w,
                  uint64_t seed, uint64_t which)
{
    double sum = 0;

    for (size_t k = 0; k < p->d; k++)
        sum += 1 / (1 + (double)k);
    for (size_t i = 0; i < p->m; i++) {
        dice d = dice_for(seed, which, i);

        y[i] = dice_normal(&d);
        for (size_t k = 0; k < p->d; k++) {
            double x = X[i * p->d + k] / sqrt(1 + (double)k);

            y[i] += x * w[k];
            X[i * p->d + k] = x / sqrt(sum);
        }
    }
}

static kofn_status times(const planted *p, const double *X, const double *w,
                         double *out)
{
    kofn_matrix A = as_matrix(X, p->m, p->d), in = as_matrix(w, p->d, 1);
    kofn_matrix y = as_matrix(out, p->m, 1);

    return kofn_product_plain(KOFN_DENSE(&A), &in, &y);
}

/* Computes 16 / (the largest eigenvalue of X'X / m) by power iteration. */
static kofn_status longest_step(planted *p)
{
    double *v = calloc(p->d, sizeof *v), *u = calloc(p->m, sizeof *u);
    double norm = 0;
    kofn_status st = v && u ? KOFN_OK : KOFN_NOMEM;

    for (size_t k = 0; k < p->d && !st; k++)
        v[k] = 1 / sqrt((double)p->d);
    for (int step = 0; step < 50 && !st; step++) {
        st = times(p, p->X, v, u);
        transposed_product(p->X, p->m, p->d, u, v);
        norm = 0;
        for (size_t k = 0; k < p->d; k++)
            norm += v[k] * v[k];
        norm = sqrt(norm);
        for (size_t k = 0; k < p->d; k++)
            v[k] /= norm;
    }
    p->step = 16 * (double)p->m / norm;
    free(v);
    free(u);
    return st;
}

/* Makes the problem. Free p->X, also after a failure. */
static kofn_status planted_new(planted *p, uint64_t seed)
{
    size_t numbers = (2 * p->m + 1) * p->d + 2 * p->m;
    double *w;

    p->X = malloc(numbers * sizeof *p->X);
    if (!p->X)
        return KOFN_NOMEM;
    p->X_test = dice_matrix(seed, 21, p->m, p->d, p->X);
    w = dice_matrix(seed, 22, p->m, p->d, p->X_test);
    p->y = dice_matrix(seed, 20, p->d, 1, w);
    p->y_test = p->y + p->m;
    plant(p, p->X, p->y, w, seed, 23);
    plant(p, p->X_test, p->y_test, w, seed, 24);
    return longest_step(p);
}

/* ---- failures ------------------------------------------------------------ */

typedef struct trace {
    bool live[ITERATIONS][MACHINES];
} trace;

static void draw_failures(trace *t, uint64_t seed, size_t realisation)
{
    bool gone[MACHINES] = {false};
    size_t back[MACHINES];

    for (size_t it = 0; it < ITERATIONS; it++)
        for (size_t s = 0; s < MACHINES; s++) {
            dice d = dice_for(seed, 30 + realisation, it * MACHINES + s);

            if (gone[s]) {
                gone[s] = it < back[s];
            } else if (dice_uniform(&d) < FAILURE) {
                gone[s] = true;
                back[s] = it + ABSENCE;
            }
            t->live[it][s] = !gone[s];
        }
}

static size_t count_live(const bool *live)
{
    size_t n = 0;

    for (size_t s = 0; s < MACHINES; s++)
        n += live[s];
    return n;
}

/* Writes the run as events for kofn: three rounds per iteration, none while
 * too few machines are live. Returns the number of events. */
static size_t events_of(const trace *t, kofn_fault_event *out)
{
    uint32_t name[MACHINES], next = MACHINES;
    bool live[MACHINES];
    size_t count = 0;
    unsigned round = 1;

    for (uint32_t s = 0; s < MACHINES; s++) {
        name[s] = s;
        live[s] = true;
    }
    for (size_t it = 0; it < ITERATIONS; it++) {
        if (count_live(t->live[it]) < ENOUGH)
            continue;
        for (size_t s = 0; s < MACHINES; s++)
            if (!live[s] && t->live[it][s]) {
                out[count++] =
                    (kofn_fault_event){round, 0, KOFN_FAULT_EVENT_JOIN, 0, 0};
                name[s] = next++;
            }
        for (size_t s = 0; s < MACHINES; s++)
            if (live[s] && !t->live[it][s])
                out[count++] = (kofn_fault_event){
                    round, 0, KOFN_FAULT_EVENT_LEAVE, name[s], 0};
        memcpy(live, t->live[it], sizeof live);
        round += 3;
    }
    return count;
}

/* ---- one run ------------------------------------------------------------- */

typedef struct descent {
    const planted *p;
    descent_kind kind;
    const trace *t;
    kofn_job *job;              /* coded only */
    double *w, *g;              /* d          */
    double *margin, *z, *along; /* m: X w, residuals, X g */
    double *plain;              /* m or d: the plain value of a coded product */
    double worst;               /* largest relative error of one */
    size_t r, products;         /* realisation */
    bool lost[MACHINES];
} descent;

/* Returns the first row of partition q of `parts`. The first m mod parts have
 * one row more. */
static size_t cut(size_t m, size_t parts, size_t q)
{
    size_t more = m % parts;

    return q * (m / parts) + (q < more ? q : more);
}

/* The line search amplifies rounding about tenfold in a few iterations, until
 * equal runs diverge (math/elastic.md 11). Where they end is then chance. So
 * that this does not look like an effect of coding, every coded realisation
 * has its own code. All noiseless realisations but the first have errors as
 * well: a factor of 1 + 2e-15 N(0,1) on each twentieth of a product, as large
 * as the errors of coded products. */
#define JITTER 2e-15

static void jitter(descent *s, double *out)
{
    dice d = dice_for(s->r, 40, s->products++);

    for (size_t q = 0; q < MACHINES && s->r > 0; q++) {
        double factor = 1 + JITTER * dice_normal(&d);

        for (size_t i = cut(s->p->m, MACHINES, q);
             i < cut(s->p->m, MACHINES, q + 1); i++)
            out[i] *= factor;
    }
}

static kofn_status forward(descent *s, const double *x, double *out)
{
    kofn_matrix in = as_matrix(x, s->p->d, 1), y = as_matrix(out, s->p->m, 1);
    kofn_status st = times(s->p, s->p->X, x, s->job ? s->plain : out);

    if (s->kind == DESCENT_NOISELESS)
        jitter(s, out);
    if (!s->job || st)
        return st;
    st = kofn_round(s->job, &in, &y, NULL);
    s->worst = fmax(s->worst, papers_distance(out, s->plain, s->p->m));
    return st;
}

static kofn_status backward(descent *s, const double *z, double *out)
{
    kofn_matrix in = as_matrix(z, 1, s->p->m), g = as_matrix(out, 1, s->p->d);
    kofn_status st;

    transposed_product(s->p->X, s->p->m, s->p->d, z, s->job ? s->plain : out);
    if (!s->job)
        return KOFN_OK;
    st = kofn_put_at(s->job, 0, true, &in, &g, NULL);
    if (!st)
        st = kofn_take(s->job, 0, KOFN_NEVER, NULL);
    s->worst = fmax(s->worst, papers_distance(out, s->plain, s->p->d));
    return st;
}

/* True if partition q is available. There are MACHINES partitions; replication
 * has half the number, each on two machines. */
static bool at_hand(const descent *s, const bool *live, size_t q)
{
    switch (s->kind) {
    case DESCENT_REPLICATION:
        return live[q] || live[q + MACHINES / 2];
    case DESCENT_TAYLOR:
    case DESCENT_IGNORE:
        return live[q];
    case DESCENT_FORGET:
        return !s->lost[q];
    default:
        return true;
    }
}

/* Loss along -g minus the loss at 0: -eta slope + eta^2/2 bend. */
typedef struct parabola {
    double slope, bend;
} parabola;

static size_t partitions(const descent *s)
{
    return s->kind == DESCENT_REPLICATION ? MACHINES / 2 : MACHINES;
}

/* Computes the residuals for the gradient; the others are 0. */
static size_t residuals(descent *s, const bool *live)
{
    size_t parts = partitions(s), rows = 0;

    for (size_t q = 0; q < parts; q++) {
        size_t from = cut(s->p->m, parts, q), to = cut(s->p->m, parts, q + 1);
        bool here;

        s->lost[q] |= !live[q];
        here = at_hand(s, live, q);
        for (size_t i = from; i < to; i++) {
            if (here)
                s->z[i] = s->margin[i] - s->p->y[i];
            else if (s->kind != DESCENT_TAYLOR)
                s->z[i] = 0;
        }
        rows += here || s->kind == DESCENT_TAYLOR ? to - from : 0;
    }
    return rows;
}

/* Returns the parabola. A lost partition's Taylor model is a straight line and
 * adds no bend. */
static parabola look_ahead(const descent *s, const bool *live, size_t rows)
{
    size_t parts = partitions(s);
    parabola f = {0, 0};

    for (size_t q = 0; q < parts; q++) {
        bool here = at_hand(s, live, q);

        for (size_t i = cut(s->p->m, parts, q); i < cut(s->p->m, parts, q + 1);
             i++) {
            f.slope += s->z[i] * s->along[i];
            f.bend += here ? s->along[i] * s->along[i] : 0;
        }
    }
    f.slope /= (double)rows;
    f.bend /= (double)rows;
    return f;
}

/* Returns the best step of the grid; the shortest one if none decreases the
 * loss. */
static double search(const parabola *f, double longest)
{
    double eta = longest, best = 0, at = ldexp(longest, 1 - GRID);

    for (int k = 0; k < GRID; k++, eta /= 2) {
        double loss = eta * (eta / 2 * f->bend - f->slope);

        if (loss < best) {
            best = loss;
            at = eta;
        }
    }
    return at;
}

static kofn_status step(descent *s, const bool *live)
{
    size_t rows;
    parabola f;
    double eta;

    PAPERS_TRY(forward(s, s->w, s->margin));
    rows = residuals(s, live);
    if (rows == 0)
        return KOFN_OK;
    PAPERS_TRY(backward(s, s->z, s->g));
    for (size_t k = 0; k < s->p->d; k++)
        s->g[k] /= (double)rows;
    PAPERS_TRY(forward(s, s->g, s->along));
    f = look_ahead(s, live, rows);
    eta = search(&f, s->p->step);
    for (size_t k = 0; k < s->p->d; k++)
        s->w[k] -= eta * s->g[k];
    return KOFN_OK;
}

static kofn_status test_error(const planted *p, const double *w, double *room,
                              double *out)
{
    kofn_status st = times(p, p->X_test, w, room);

    *out = 0;
    for (size_t i = 0; i < p->m; i++) {
        double off = room[i] - p->y_test[i];

        *out += off * off / (double)p->m;
    }
    return st;
}

static kofn_status iterate_all(descent *s, double *mse)
{
    for (size_t it = 0; it < ITERATIONS; it++) {
        const bool *live = s->t->live[it];

        if (s->kind != DESCENT_CODED || count_live(live) >= ENOUGH)
            PAPERS_TRY(step(s, live));
        PAPERS_TRY(test_error(s->p, s->w, s->along, &mse[it]));
    }
    return KOFN_OK;
}

/* Runs one descent; writes the test error after each iteration. */
static kofn_status descend(descent *s, double *mse)
{
    const planted *p = s->p;
    size_t wide = larger(p->m, p->d);
    double *room = calloc(2 * p->d + 3 * p->m + wide, sizeof *room);
    kofn_status st;

    if (!room)
        return KOFN_NOMEM;
    s->w = room;
    s->g = s->w + p->d;
    s->margin = s->g + p->d;
    s->z = s->margin + p->m;
    s->along = s->z + p->m;
    s->plain = s->along + p->m;
    st = iterate_all(s, mse);
    free(room);
    return st;
}

static kofn_status descend_coded(const planted *p, const trace *t, size_t r,
                                 descent_result *out)
{
    kofn_fault_event events[2 * MACHINES * ITERATIONS];
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_matrix A = as_matrix(p->X, p->m, p->d);
    kofn_report all = KOFN_REPORT_INIT;
    fleet f = {.k = ENOUGH, .n = MACHINES, .seed = r + 1};
    descent s = {.p = p, .kind = DESCENT_CODED, .t = t, .r = r};
    kofn_status st;

    opt.events = events;
    opt.event_count = events_of(t, events);
    opt.below = KOFN_BELOW_PAUSE; /* until a replacement has its block */
    opt.pieces = 1;
    st = fleet_open(&f, &A, &opt, NULL);
    s.job = f.job;
    if (!st)
        st = descend(&s, out->mse[DESCENT_CODED][r]);
    out->worst = fmax(out->worst, s.worst);
    if (!st)
        kofn_job_totals(f.job, &all);
    out->left[r] = all.left;
    out->joined[r] = all.joined;
    fleet_close(&f);
    return st;
}

/* ---- all runs -------------------------------------------------------------
 */

static kofn_status realise(const planted *p, uint64_t seed, size_t r,
                           descent_result *out)
{
    kofn_status st;
    trace t;

    draw_failures(&t, seed, r);
    for (size_t it = 0; it < ITERATIONS; it++)
        out->paused[r] += count_live(t.live[it]) < ENOUGH;
    st = descend_coded(p, &t, r, out);
    for (descent_kind k = 0; k <= DESCENT_FORGET && !st; k++)
        if (k != DESCENT_CODED)
            st = descend(&(descent){.p = p, .kind = k, .t = &t, .r = r},
                         out->mse[k][r]);
    return st;
}

/* Checks the claims of Figure 2c. */
static void judge(descent_result *r)
{
    const size_t end = ITERATIONS - 1, settled = 10;
    const double *clean = r->mean[DESCENT_NOISELESS];
    size_t most = 0, least = ITERATIONS;

    r->overlap = r->mean[DESCENT_CODED][end] / clean[end] - 1;
    r->coded_overlaps = fabs(r->overlap) <= 0.05;
    r->ignoring_worst = true;
    for (descent_kind k = 0; k < DESCENT_FORGET; k++)
        for (size_t i = 0; i < REALISATIONS; i++)
            r->ignoring_worst &=
                r->mse[k][i][end] < r->mse[DESCENT_FORGET][i][end];
    for (descent_kind k = 0; k < DESCENT_IGNORE; k++)
        r->ignoring_worst &= r->mean[k][end] < r->mean[DESCENT_IGNORE][end];
    for (size_t i = 0; i < REALISATIONS; i++) {
        for (size_t it = settled; it <= end; it++)
            r->ahead[i] += r->mse[DESCENT_TAYLOR][i][it] < clean[it];
        most = larger(most, r->ahead[i]);
        least = smaller(least, r->ahead[i]);
    }
    r->taylor_differs = most > least && least <= end - settled;
}

static void average_all(descent_result *r)
{
    for (size_t k = 0; k < KINDS; k++)
        for (size_t it = 0; it < ITERATIONS; it++)
            for (size_t i = 0; i < REALISATIONS; i++)
                r->mean[k][it] += r->mse[k][i][it] / REALISATIONS;
}

/* Returns one curve per kind. */
static json_t *curves_json(const descent_result *r)
{
    json_t *curves = json_object();

    for (size_t c = 0; c < KINDS; c++) {
        json_t *each = json_array();

        for (size_t i = 0; i < REALISATIONS; i++)
            json_array_append_new(each, papers_reals(r->mse[c][i], ITERATIONS));
        json_object_set_new(curves, kind_names[c],
                            papers_pack("mean:o realisations:o",
                                        papers_reals(r->mean[c], ITERATIONS),
                                        each));
    }
    return curves;
}

static kofn_status run(const papers_args *a, size_t k, json_t *list)
{
    double scale = papers_scale(a, 0.06), start = 0;
    planted p = {.m = scaled_size(scale, 10000, 1),
                 .d = scaled_size(scale, 3352, 1)};
    descent_result *r = calloc(1, sizeof *r);
    kofn_status st = r ? planted_new(&p, a->seed) : KOFN_NOMEM;

    for (size_t i = 0; i < p.m && !st; i++)
        start += p.y_test[i] * p.y_test[i] / (double)p.m;
    for (size_t i = 0; i < REALISATIONS && !st; i++)
        st = realise(&p, a->seed, i, r);
    if (!st) {
        average_all(r);
        judge(r);
        papers_add(list,
                   "scenario:z size:p start:f test_mse:o left:o joined:o "
                   "paused:o distr_bgd_ahead:o coded_by_noiseless:f "
                   "rel_error:f orderings:{coded_overlaps:b ignoring_worst:b "
                   "distr_bgd_differs:b}",
                   k, (size_t[]){p.m, p.d}, start, curves_json(r),
                   papers_sizes(r->left, REALISATIONS),
                   papers_sizes(r->joined, REALISATIONS),
                   papers_sizes(r->paused, REALISATIONS),
                   papers_sizes(r->ahead, REALISATIONS), r->overlap, r->worst,
                   r->coded_overlaps, r->ignoring_worst, r->taylor_differs);
    }
    free(p.X);
    free(r);
    return st;
}

/* ---- output ---------------------------------------------------------------
 */

static double entry(json_t *list, size_t i)
{
    return json_number_value(json_array_get(list, i));
}

static void tell_curve(const char *name, json_t *curve, double low, double high)
{
    const size_t end = ITERATIONS - 1;
    json_t *mean = papers_at(curve, "mean"), *one;
    double best = HUGE_VAL, worst = 0;

    printf("%-12s", name);
    for (size_t it = 9; it <= end; it += 25)
        printf(" %6.3f", entry(mean, it));
    for (size_t i = 0;
         (one = json_array_get(papers_at(curve, "realisations"), i)); i++) {
        best = fmin(best, entry(one, end));
        worst = fmax(worst, entry(one, end));
    }
    printf("  %5.3f..%5.3f  ", best, worst);
    for (size_t it = 1; it < ITERATIONS; it += 2)
        papers_bar((entry(mean, it) - low) / (high - low) + 0.01);
    putchar('\n');
}

static void tell(json_t *o)
{
    json_t *curves = papers_at(o, "test_mse"), *curve, *x;
    double low = HUGE_VAL, high = 0;
    const char *name;

    json_object_foreach(
        curves, name,
        curve) for (size_t i = 0;
                    (x = json_array_get(papers_at(curve, "mean"), i)); i++)
    {
        low = fmin(low, json_number_value(x));
        if (i > 4)
            high = fmax(high, json_number_value(x));
    }
    papers_print(o, "3: regression on 20 machines that fail, X {size.0} x "
                    "{size.1}: test error after 10, 35,\n   60 iterations, ");
    printf("mean of %d realisations, and their range in the end (Fig. 2c)\n",
           REALISATIONS);
    json_object_foreach(curves, name, curve) tell_curve(name, curve, low, high);
    papers_print(
        o, "coded overlaps noiseless {orderings.coded_overlaps} "
           "({coded_by_noiseless*100:+.2f} %); ignoring is worst, forgetting "
           "most {orderings.ignoring_worst}\ndistr-bgd differs "
           "{orderings.distr_bgd_differs}: ahead of noiseless in");
    papers_each(papers_at(o, "distr_bgd_ahead"), " {.}");
    printf(" of the last 50\ncoded waited for a tenth machine in");
    papers_each(papers_at(o, "paused"), " {.}");
    papers_print(o, " iterations; products off {rel_error:.1e}\n");
}

static void draw(json_t *o, plot *p)
{
    json_t *curve;
    const char *name;
    size_t colour = 0;

    plot_titles(p, "iteration", "test error, mean of five realisations",
                "Coded elastic computing, Fig. 2c: regression on machines that "
                "fail");
    json_object_foreach(papers_at(o, "test_mse"), name, curve)
    {
        plot_curve(p, strcmp(name, "coded") == 0 ? PLOT_DASHED : PLOT_LINE,
                   colour++, "%s", name);
        for (size_t i = 0; i < ITERATIONS; i++)
            plot_point(p, (double)(i + 1), entry(papers_at(curve, "mean"), i));
    }
}

const papers_scenario elastic_figure_2c = {run, tell, draw};
