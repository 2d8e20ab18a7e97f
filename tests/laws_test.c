/* laws_test.c -- what every scheme in kofn_scheme_at() must obey, over a grid
 * of the parameters it declares (DESIGN section 10).  A new scheme is put to
 * all of it without a line here. */
#include "fleet.h"
#include "walk.h"

#include "cli/replay.c" /* part of the command, not of the library */
#include "run/run.h"

#include <unistd.h>

/* ---- the grid
 * ------------------------------------------------------------------ */

typedef struct point {
    const kofn_scheme *scheme;
    size_t workers;
    char args[200];
    kofn_problem problem;
} point;

/* Values of a parameter worth trying with so many workers. */
static size_t values_of(const kofn_param *q, size_t workers, long *v)
{
    long n = (long)workers;
    const long tries[] = {1, 2, 3, n / 2, n / 2 + 1, n - 1, n};
    size_t count = 0;

    if (q->choices) {
        v[count++] = 0;
        for (const char *c = q->choices; *c; c++)
            if (*c == '|') {
                v[count] = (long)count;
                count++;
            }
        return count;
    }
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        if (tries[i] >= q->min && tries[i] <= q->max)
            v[count++] = tries[i];
    return count;
}

static void put_arg(char *args, size_t size, const kofn_param *q, long value)
{
    size_t n = strlen(args);
    const char *word = q->choices;

    n += (size_t)snprintf(args + n, size - n, "%s%s=", n ? "," : "", q->name);
    for (long c = 0; word && c < value; c++)
        word += strcspn(word, "|") + 1;
    if (word)
        snprintf(args + n, size - n, "%.*s", (int)strcspn(word, "|"), word);
    else
        snprintf(args + n, size - n, "%ld", value);
}

/* About half of the parameters are given, with random ones of their values. */
static void random_args(point *at, kf_rng *r)
{
    at->args[0] = 0;
    for (const kofn_param *q = at->scheme->params; q->name; q++) {
        long v[32];
        size_t n = values_of(q, at->workers, v);

        if (n && kf_rng_below(r, 5) < (q->choices ? 3 : 2))
            put_arg(at->args, sizeof at->args, q, v[kf_rng_below(r, n)]);
    }
}

/* One of the operations that the scheme serves. */
static kofn_op random_op(const kofn_scheme *s, size_t wide, kf_rng *r)
{
    static const kofn_op ops[] = {KOFN_MATVEC, KOFN_MATMUL, KOFN_MATMUL,
                                  KOFN_LEFT, KOFN_GRAM, KOFN_SUM};

    for (;;) {
        kofn_op op = ops[kf_rng_below(r, sizeof ops / sizeof *ops)];

        /* wide inputs are wanted, where there are some */
        if (s->ops & op &&
            (op != KOFN_MATVEC || wide < 4 || !(s->ops & KOFN_MATMUL)))
            return op;
    }
}

static void random_problem(point *at, size_t wide, kf_rng *r)
{
    kofn_op op = random_op(at->scheme, wide, r);
    bool wider = op == KOFN_MATMUL || op == KOFN_LEFT;

    at->problem = (kofn_problem){op, op == KOFN_SUM ? 37 : 1, 37,
                                 wider ? wide : 1, KOFN_F64, false};
    switch (kf_rng_below(r, 4)) {
    case 0:
        at->problem.dtype = KOFN_F32;
        break;
    case 1:
        at->problem.sparse = op & (KOFN_MATVEC | KOFN_MATMUL);
        break;
    }
}

/* A plan with a few strips a block, some of them beyond the last row of A;
 * NULL when the parameters do not go together. */
static kofn_plan *plan_at(point *at, kf_rng *r)
{
    kofn_plan *p;
    kofn_status st = kofn_plan_new_for(&p, &at->problem, at->scheme, at->args,
                                       at->workers, 3);
    size_t whole;

    if (st) {
        assert_true(st == KOFN_INVAL || st == KOFN_UNSUITED);
        assert_true(*kofn_errmsg());
        assert_null(p);
        return NULL;
    }
    if (at->problem.op == KOFN_SUM) /* its length is that of x */
        return p;
    whole = p->layout.groups * p->layout.cut[0].rows;
    kofn_plan_free(p);
    at->problem.m = 1 + (size_t)kf_rng_below(r, 5 * whole);
    assert_ok(kofn_plan_new_for(&p, &at->problem, at->scheme, at->args,
                                at->workers, 3));
    return p;
}

typedef void law(const point *at, const kofn_plan *p, kf_rng *r);

static const point *where;

#define check(condition)                                                       \
    do {                                                                       \
        if (!(condition))                                                      \
            fail_msg("%s:%s on %zu workers, %zu x %zu x %zu, %s%s, "           \
                     "line %d: %s (%s)",                                       \
                     where->scheme->name, where->args, where->workers,         \
                     where->problem.m, where->problem.n, where->problem.p,     \
                     where->problem.dtype ? "f32" : "f64",                     \
                     where->problem.sparse ? " sparse" : "", __LINE__,         \
                     #condition, kofn_errmsg());                               \
    } while (0)

/* Its sums are not exact, and mean it. */
static bool leaves_out(const kofn_scheme *s)
{
    return strcmp(s->name, "ignore") == 0 || strcmp(s->name, "distr-bgd") == 0;
}

/* `each` accepted plans of every scheme with every number of workers; `wide`
 * columns of input where it is a matrix. */
static void over_the_grid(law *f, size_t each, size_t wide, uint32_t name)
{
    static const size_t fleets[] = {1, 2, 3, 5, 6, 8, 12};
    const kofn_scheme *s;
    size_t plans = 0;

    for (size_t i = 0; (s = kofn_scheme_at(i)); i++)
        for (size_t w = 0; w < sizeof fleets / sizeof *fleets &&
                           !leaves_out(s);
             w++) {
            kf_rng r =
                kf_rng_stream(name, KF_FOR_DATA, (uint32_t)i, (uint32_t)w);
            size_t met = 0, most = each;

            /* sanitizers meet the same code in all of these */
            if (SLOWED > 1 && !(s->ops & (KOFN_MATVEC | KOFN_MATMUL)))
                most = kf_max(1, each / 4);
            for (size_t k = 0; k < 30 * each && met < most; k++) {
                point at = {.scheme = s, .workers = fleets[w]};
                kofn_plan *p;

                random_args(&at, &r);
                random_problem(&at, wide, &r);
                where = &at;
                p = plan_at(&at, &r);
                if (!p)
                    continue;
                met++;
                plans++;
                f(&at, p, &r);
                kofn_plan_free(p);
            }
            assert_true(met == most);
        }
    print_message("%zu plans\n", plans);
}

/* ---- sets of seats
 * ---------------------------------------------------------------- */

static double binomial(size_t n, size_t k)
{
    double c = 1;

    for (size_t i = 0; i < k; i++)
        c = c * (double)(n - i) / (double)(i + 1);
    return c;
}

static void first_set(uint32_t *set, size_t k)
{
    for (size_t i = 0; i < k; i++)
        set[i] = (uint32_t)i;
}

/* In lexicographic order; false after the last. */
static bool next_set(uint32_t *set, size_t k, size_t n)
{
    size_t i = k;

    while (i > 0 && set[i - 1] == n - k + i - 1)
        i--;
    if (i == 0)
        return false;
    set[i - 1]++;
    for (; i < k; i++)
        set[i] = set[i - 1] + 1;
    return true;
}

static void random_set(uint32_t *set, size_t k, size_t n, kf_rng *r)
{
    for (size_t i = 0, taken = 0; taken < k; i++)
        if (kf_rng_below(r, n - i) < k - taken)
            set[taken++] = (uint32_t)i;
}

/* Seats at, at + 1, ... round the circle of n. */
static void window(uint32_t *set, size_t k, size_t n, size_t at)
{
    size_t wrapped = at + k > n ? at + k - n : 0, j = 0;

    for (size_t i = 0; i < wrapped; i++)
        set[j++] = (uint32_t)i;
    for (size_t i = at; j < k; i++)
        set[j++] = (uint32_t)i;
}

/* ---- law 2: enough
 * ------------------------------------------------------------------ */

/* Any `enough` seats decode everything, one fewer never do. */
static void try_set(kf_code *code, const uint32_t *set, size_t k, bool enough)
{
    kf_decoder *d;
    kofn_status st = kf_decoder_new(&d, code, set, k, false);

    if (!enough) {
        check(st == KOFN_TOOFEW || st == KOFN_UNSTABLE);
        check(!d);
        return;
    }
    check(st == KOFN_OK);
    check(d->whole && d->seats == k && d->noise > 0);
    for (size_t i = 0; i < d->mixed * d->results; i++)
        check(isfinite(d->D[i]));
    kf_decoder_free(d);
}

static void try_sets(kf_code *code, size_t n, size_t k, bool enough, kf_rng *r)
{
    uint32_t set[64];

    first_set(set, k);
    if (binomial(n, k) <= 1000) {
        do {
            try_set(code, set, k, enough);
        } while (k && next_set(set, k, n));
        return;
    }
    for (size_t i = 0; i < 100; i++) {
        random_set(set, k, n, r);
        try_set(code, set, k, enough);
    }
    for (size_t at = 0; at < n; at++) {
        window(set, k, n, at);
        try_set(code, set, k, enough);
    }
}

/* So many equations are not enough by their number alone.  (Of wants that
 * are mixtures of symbols some can be had of fewer by symmetry: the middle
 * coefficient of a parabola from its values at x and -x.) */
static bool tight(const kofn_plan *p)
{
    return !p->layout.W && (p->layout.enough - 1) * p->layout.lanes < p->layout.symbols;
}

static void any_enough_decode(const point *at, const kofn_plan *p, kf_rng *r)
{
    const kofn_layout *L = &p->layout;
    size_t fresh = L->max_seats > L->seats ? 2 : 0;
    kf_code *code;

    (void)at;
    if (L->turns > 1) /* answers of a seat come in order: see the rounds */
        return;
    assert_ok(kf_code_new(&code, p));
    check(L->enough >= 1 && L->enough <= L->threshold &&
          L->threshold <= L->seats);
    try_sets(code, L->seats, L->threshold, true, r);
    if (tight(p))
        try_sets(code, L->seats, L->enough - 1, false, r);
    /* with rows that joiners would have */
    for (size_t i = 0; fresh && i < 30; i++) {
        uint32_t set[64];

        random_set(set, L->threshold, L->seats + fresh, r);
        try_set(code, set, L->threshold, true);
    }
    kf_code_free(code);
}

static void enough(void **state)
{
    (void)state;
    over_the_grid(any_enough_decode, often(60), 3, 2);
}

/* ---- laws 1 and 7: meaning and noise
 * -------------------------------------------------- */

/* Every seat's results for one round, computed as workers do. */
typedef struct harvest {
    const kofn_plan *p;
    rig r;
    kf_code *code;
    kf_resident resident;
    kf_messages messages;
    size_t seats; /* of the plan, fresh ones included */
    kofn_block **block;
    kofn_parcel **parcel;
    kofn_matrix *result; /* what is in them */
} harvest;

/* The answer of one seat, computed as a worker does. */
static void harvest_one(harvest *h, size_t i, bool left)
{
    kofn_msg m = {.how = left ? KOFN_LEFT_ROWS : KOFN_ROWS,
                  .hi = h->p->span,
                  .in = kf_messages_take(&h->messages, i)};
    size_t cols = left ? h->block[i]->cols : m.in->m.cols;

    assert_ok(kf_parcel_new(&m.result, h->p->layout.lanes * h->p->span, cols,
                            h->r.x.dtype));
    assert_ok(kofn_work(h->block[i], &m, NULL, NULL));
    kofn_parcel_drop(m.in);
    h->parcel[i] = m.result;
    h->result[i] = m.result->m;
}

static void harvest_up(harvest *h, const point *at, const kofn_plan *p)
{
    const kofn_layout *L = &p->layout;
    rig_kind kind = {.m = at->problem.m,
                     .n = at->problem.n,
                     .p = at->problem.p,
                     .dtype = at->problem.dtype,
                     .sparse = at->problem.sparse,
                     .op = at->problem.op};
    size_t *seat;

    *h = (harvest){.p = p};
    rig_inputs(&h->r, &kind);
    assert_ok(kf_code_new(&h->code, p));
    assert_ok(at->problem.sparse
                  ? kf_resident_sparse(&h->resident, p, &h->r.sparse)
                  : kf_resident_dense(&h->resident, p, &h->r.A));
    h->seats = L->groups * (L->seats + (L->max_seats > L->seats ? 2 : 0));
    seat = numbers(h->seats, sizeof *seat);
    h->block = numbers(h->seats, sizeof(kofn_block *));
    h->parcel = numbers(h->seats, sizeof(kofn_parcel *));
    h->result = numbers(h->seats, sizeof *h->result);
    for (size_t i = 0; i < h->seats; i++)
        seat[i] = i;
    assert_ok(kf_encode(&h->resident, h->code, seat, h->seats, h->block));
    assert_ok(kf_messages_begin(&h->messages, p, &h->r.x));
    assert_ok(kf_messages_encode(&h->messages, h->code, seat, h->seats));
    for (size_t i = 0; i < h->seats; i++)
        harvest_one(h, i, kind.op == KOFN_LEFT);
    kf_free(seat);
}

static void harvest_down(harvest *h)
{
    for (size_t i = 0; i < h->seats; i++) {
        kofn_block_drop(h->block[i]);
        kofn_parcel_drop(h->parcel[i]);
    }
    kf_free(h->block);
    kf_free(h->parcel);
    kf_free(h->result);
    kf_messages_free(&h->messages);
    kf_resident_free(&h->resident);
    kf_code_free(h->code);
    rig_down(&h->r);
}

/* Honest results of all seats of a group obey G: the least-squares symbols
 * explain them to rounding. */
static void results_obey_G(harvest *h, size_t group)
{
    const kofn_layout *L = &h->p->layout;
    size_t seats = h->seats / L->groups, rows = seats * L->lanes;
    size_t wide = h->p->span * h->result[0].cols, n = L->symbols;
    double *G = numbers(rows * n, 8), *P = numbers(rows * n, 8);
    double *R = numbers(rows * wide, 8), *B = numbers(rows * wide, 8);
    double misfit = 0, size = 0;

    for (size_t i = 0; i < seats; i++) {
        double *values = as_doubles(&h->result[i * L->groups + group]);
        const kf_seat *seat;

        assert_ok(kf_code_seat(h->code, i, &seat));
        for (size_t l = 0; l < L->lanes; l++) {
            const kf_row *g = &seat->G[l];
            size_t q = i * L->lanes + l;
            double norm = 0;

            for (size_t e = 0; e < g->n; e++)
                norm += g->val[e] * g->val[e];
            norm = norm > 0 ? norm : 1; /* complex 1 has no imaginary part */
            for (size_t e = 0; e < g->n; e++)
                G[q * n + g->col[e]] = g->val[e] / sqrt(norm);
            for (size_t c = 0; c < wide; c++)
                R[q * wide + c] = values[l * wide + c] / sqrt(norm);
        }
        kf_free(values);
    }
    memcpy(P, G, rows * n * 8);
    memcpy(B, R, rows * wide * 8);
    check(kf_least_squares(rows, n, P, n, wide, B, wide) == KOFN_OK);
    for (size_t q = 0; q < rows; q++)
        for (size_t c = 0; c < wide; c++) {
            double sum = -R[q * wide + c];

            for (size_t s = 0; s < n; s++)
                sum += G[q * n + s] * B[s * wide + c];
            misfit += sum * sum;
            size += R[q * wide + c] * R[q * wide + c];
        }
    check(sqrt(misfit) <=
          (h->r.x.dtype == KOFN_F64 ? 1e-14 : 2e-6) * sqrt(size));
    kf_free(G);
    kf_free(P);
    kf_free(R);
    kf_free(B);
}

/* Rows of the output that belong to a group. */
static void band(const harvest *h, size_t group, size_t *from, size_t *to)
{
    size_t rows = h->p->layout.grid_rows * h->p->span;

    *from = kf_min(group * rows, h->r.y.rows);
    *to = kf_min((group + 1) * rows, h->r.y.rows);
}

/* Decode from these seats: the plain product, within what was predicted. */
static void decode_is_the_product(harvest *h, size_t group, const uint32_t *set,
                                  size_t k)
{
    size_t groups = h->p->layout.groups, from, to, cols = h->r.y.cols;
    kf_source source[64];
    kf_scratch scratch = {0};
    kf_decoder *d;
    double *y, error;

    check(kf_decoder_new(&d, h->code, set, k, false) == KOFN_OK);
    for (size_t i = 0; i < k; i++)
        source[i] =
            (kf_source){&h->result[set[i] * groups + group], 0, h->p->span};
    rig_spoil(&h->r);
    check(kf_decode(h->p, d, source, group, 0, h->p->span, &h->r.y, &scratch) ==
          KOFN_OK);
    band(h, group, &from, &to);
    y = as_doubles(&h->r.y);
    error = relative_error(y + from * cols, h->r.want + from * cols,
                           (to - from) * cols);
    check(error <= d->predicted);
    for (size_t i = 0; i < h->r.y.rows * cols; i++)
        check((i >= from * cols && i < to * cols) || isnan(y[i]));
    kf_free(y);
    kf_scratch_free(&scratch);
    kf_decoder_free(d);
}

static void results_mean_what_G_says(const point *at, const kofn_plan *p,
                                     kf_rng *r)
{
    const kofn_layout *L = &p->layout;
    harvest h;
    size_t seats;

    if (L->adjoint || L->whole) /* answers are sums: see the rounds */
        return;
    harvest_up(&h, at, p);
    seats = h.seats / L->groups;
    for (size_t g = 0; g < L->groups; g++) {
        size_t from, to;

        band(&h, g, &from, &to);
        if (from == to)
            continue;
        results_obey_G(&h, g);
        for (size_t i = 0; i < 12; i++) {
            size_t k = L->threshold;
            uint32_t set[64];

            if (i % 3 == 2)
                k += kf_rng_below(r, seats - k + 1);
            random_set(set, k, seats, r);
            decode_is_the_product(&h, g, set, k);
        }
    }
    harvest_down(&h);
}

static void meaning_and_noise(void **state)
{
    (void)state;
    over_the_grid(results_mean_what_G_says, often(60), 40, 1);
}

/* ---- laws 3 and 8: deal and liveness
 * -------------------------------------------------- */

/* I2: each strip has `enough` different seats, and just as many where the
 * scheme deals; I3: then shares differ by one strip at most, and their sum is
 * `enough` blocks. */
static void the_deal_covers(const walk *w, size_t group, bool equal)
{
    const kofn_layout *L = &w->plan->layout;
    size_t span = w->plan->span, n = walk_alive(w, group), total = 0;
    uint8_t *users = numbers(span * WALKERS, 1);

    for (size_t i = 0; i < w->tasks; i++) {
        const walk_task *t = &w->task[i];

        /* strips beyond the last are the first ones, where answers are sums */
        check(t->lo < span && t->hi <= (L->adjoint ? 2 : 1) * span);
        for (size_t s = t->lo; s < t->hi && t->seat % L->groups == group; s++)
            check(++users[s % span * WALKERS + t->worker] == 1);
    }
    for (size_t s = 0; s < span; s++) {
        size_t count = 0;

        for (size_t i = 0; i < w->workers; i++)
            count += users[s * WALKERS + i];
        check(w->plan->scheme->deal ? count == L->enough : count == n);
        total += count;
    }
    check(!w->plan->scheme->deal || total == L->enough * span);
    for (uint32_t i = 0; equal && i < w->workers; i++) {
        size_t load = walk_load(w, i, 0);

        check(w->gone[i] || w->seat[i] % L->groups != group ||
              load == L->enough * span / n ||
              load == kf_ceil_div(L->enough * span, n));
    }
    kf_free(users);
}

static void same_deal(const walk *a, const walk *b)
{
    check(a->tasks == b->tasks);
    for (size_t i = 0; i < a->tasks; i++)
        check(a->task[i].seat == b->task[i].seat &&
              a->task[i].lo == b->task[i].lo && a->task[i].hi == b->task[i].hi);
}

/* I6: another core that came to the same live set by another way. */
static void deals_alike(const walk *w, const kofn_core_options *o,
                        const uint32_t *left, size_t lost)
{
    walk v;

    walk_up(&v, w->plan, o);
    for (size_t i = lost; i-- > 0;)
        walk_leave(&v, left[i]);
    walk_begin(&v);
    same_deal(w, &v);
    walk_down(&v);
}

/* Rounds with ever smaller live sets, where workers tell their time with
 * speeds of all kinds. */
static void deals_cover(const point *at, const kofn_plan *p, kf_rng *r)
{
    kofn_core_options o = {.pieces = 1 + (unsigned)kf_rng_below(r, 4),
                           .tolerance = 1e300};
    bool speeds = kf_rng_below(r, 2);
    uint32_t left[WALKERS];
    size_t lost = 0;
    walk w;

    (void)at;
    if (p->layout.turns > 1)
        return;
    walk_up(&w, p, &o);
    for (int round = 0; round < 4; round++) {
        walk_begin(&w);
        for (size_t g = 0; g < p->layout.groups; g++)
            the_deal_covers(&w, g, p->scheme->deal && (!speeds || round == 0));
        if (!speeds)
            deals_alike(&w, &o, left, lost);
        for (size_t i = 0; i < w.tasks && w.running; i++)
            if (w.task[i].out)
                walk_answer(&w, i,
                            speeds ? 1 + (kofn_time)kf_rng_below(r, 9) : 0);
        check(!w.running && w.ended == KOFN_OK);
        left[lost] = walk_spare(&w, r);
        if (left[lost] != UINT32_MAX)
            walk_leave(&w, left[lost++]);
    }
    walk_down(&w);
}

static void deal(void **state)
{
    (void)state;
    over_the_grid(deals_cover, often(120), 3, 3);
}

/* While `enough` of each group are there and answer in the end, rounds end. */
static void rounds_end(const point *at, const kofn_plan *p, kf_rng *r)
{
    kofn_core_options o = {.pieces = 1 + (unsigned)kf_rng_below(r, 4),
                           .in_flight = (kofn_in_flight)kf_rng_below(r, 3),
                           .tolerance = 1e300};
    walk w;

    (void)at;
    walk_up(&w, p, &o);
    for (int round = 0; round < 6; round++) {
        walk_begin(&w);
        while (w.running) {
            size_t n = 0, pick = SIZE_MAX;
            uint32_t gone =
                kf_rng_below(r, 12) ? UINT32_MAX : walk_spare(&w, r);

            if (gone != UINT32_MAX)
                walk_leave(&w, gone);
            for (size_t i = 0; i < w.tasks; i++)
                if (w.task[i].out && kf_rng_below(r, ++n) == 0)
                    pick = i;
            check(pick != SIZE_MAX || !w.running); /* waits for nothing */
            if (w.running)
                walk_answer(&w, pick, 0);
        }
        check(w.ended == KOFN_OK);
    }
    walk_down(&w);
}

static void liveness(void **state)
{
    (void)state;
    over_the_grid(rounds_end, often(120), 3, 8);
}

/* ---- law 4: order
 * ------------------------------------------------------------------------ */

/* A port that computes at once and answers in random order, some things twice
 * and some in the name of another, and lets cancelled work come all the same.
 */
typedef struct shuffled {
    kofn_port base;
    kf_rng r;
    kofn_block *block[64];
    kofn_msg *box;
    size_t count, cap;
    kofn_time time;
} shuffled;

static kofn_status put(shuffled *s, kofn_msg m)
{
    TRY(kf_grow(&s->box, &s->cap, s->count, sizeof *s->box));
    s->box[s->count++] = m;
    return KOFN_OK;
}

/* The same from the same worker, or nonsense from another. */
static kofn_status put_copy(shuffled *s, kofn_msg m, uint32_t worker)
{
    kofn_parcel *p;

    TRY(kf_parcel_new(&p, m.result->m.rows, m.result->m.cols,
                      m.result->m.dtype));
    if (worker == m.worker)
        memcpy(p->m.data, m.result->m.data,
               p->m.rows * p->m.cols * kf_dtype_size(p->m.dtype));
    else
        memset(p->m.data, 0xff,
               p->m.rows * p->m.cols * kf_dtype_size(p->m.dtype));
    m.result = p;
    m.worker = worker;
    return put(s, m);
}

static kofn_status shuffled_send(kofn_port *base, kofn_msg *m)
{
    shuffled *s = (shuffled *)base;

    switch (m->type) {
    case KOFN_MSG_STORE:
        s->block[m->worker] = m->block;
        return put(s, (kofn_msg){.type = KOFN_MSG_STORED, .worker = m->worker});
    case KOFN_MSG_WORK:
        assert_ok(kofn_work(s->block[m->worker], m, NULL, NULL));
        kofn_parcel_drop(m->in);
        m->in = NULL;
        m->type = KOFN_MSG_RESULT;
        if (kf_rng_below(&s->r, 8) == 0)
            TRY(put_copy(s, *m, m->worker));
        if (kf_rng_below(&s->r, 8) == 0)
            TRY(put_copy(s, *m, m->worker + 1));
        return put(s, *m);
    default:
        return KOFN_OK;
    }
}

static kofn_status shuffled_wait(kofn_port *base, kofn_time until,
                                 kofn_time atmost, kofn_msg *m)
{
    shuffled *s = (shuffled *)base;
    size_t i;

    (void)atmost;
    if (s->count == 0) {
        s->time = until;
        return until == KOFN_NEVER ? KOFN_LATE : KOFN_AGAIN;
    }
    i = (size_t)kf_rng_below(&s->r, s->count);
    *m = s->box[i];
    s->box[i] = s->box[--s->count];
    s->time += 1000;
    return KOFN_OK;
}

static kofn_time shuffled_now(kofn_port *base)
{
    return ((shuffled *)base)->time;
}

static void shuffled_close(kofn_port *base)
{
    shuffled *s = (shuffled *)base;

    for (size_t i = 0; i < s->count; i++)
        kofn_parcel_drop(s->box[i].result);
    for (size_t i = 0; i < 64; i++)
        kofn_block_drop(s->block[i]);
    kf_free(s->box);
    kf_free(s);
}

static kofn_port *shuffled_new(size_t workers, uint64_t seed)
{
    shuffled *s = numbers(1, sizeof *s);

    s->base = (kofn_port){.name = "shuffled",
                          .simulated = true,
                          .workers = workers,
                          .send = shuffled_send,
                          .wait = shuffled_wait,
                          .now = shuffled_now,
                          .close = shuffled_close};
    s->r = kf_rng_stream(seed, KF_FOR_DATA, 4, 4);
    for (size_t i = 0; i < workers; i++)
        assert_ok(
            put(s, (kofn_msg){.type = KOFN_MSG_HELLO, .worker = (uint32_t)i}));
    return &s->base;
}

static void job_inputs(rig *x, const point *at, rig_kind *kind)
{
    *kind = (rig_kind){.workers = at->workers,
                       .m = at->problem.m,
                       .n = at->problem.n,
                       .p = at->problem.p,
                       .dtype = at->problem.dtype,
                       .sparse = at->problem.sparse,
                       .op = at->problem.op};
    if (kind->op == KOFN_SUM) /* rows of A are shared out among the parts */
        kind->m = 53;
    rig_inputs(x, kind);
}

/* The plain product, as far as rounding and the code allow.  What is predicted
 * holds for many numbers; four times that for few. */
static void check_answer(const rig *x, const kofn_report *rep)
{
    double room = x->y.dtype == KOFN_F64 ? 1e-12 : 1e-5;

    /* lies below the floor may have passed, and are amplified like rounding */
    room = fmax(room, 4 * rep->predicted) +
           10 * sqrt((double)x->A.cols) * rep->floor * rep->noise;
    if (!(rig_error(x) <= room))
        print_message("error %.2e predicted %.2e floor %.2e noise %.2e\n",
                      rig_error(x), rep->predicted, rep->floor, rep->noise);
    check(rig_error(x) <= room);
}

static void place(rig *x, const point *at)
{
    (void)at;
    check(rig_place(x) == KOFN_OK);
}

static void order_does_not_matter(const point *at, const kofn_plan *p,
                                  kf_rng *r)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind kind;
    rig x;

    job_inputs(&x, at, &kind);
    o.pieces = 1 + (unsigned)kf_rng_below(r, 4);
    o.late = kf_rng_below(r, 2) ? 1.5 : 0;
    assert_ok(
        kofn_open(&x.job, p, shuffled_new(at->workers, kf_rng_u64(r)), &o));
    place(&x, at);
    for (uint64_t round = 0; round < 5; round++) {
        kofn_report rep;
        kofn_status st;

        rig_next(&x, round + 50);
        st = rig_round(&x, &rep);
        check(st == KOFN_OK || st == KOFN_UNSTABLE);
        if (!st)
            check_answer(&x, &rep);
    }
    rig_down(&x);
}

static void order(void **state)
{
    (void)state;
    over_the_grid(order_does_not_matter, often(60), 3, 4);
}

/* ---- laws 5 and 9: weather and replay
 * -------------------------------------------------------- */

#define HAPPENINGS 24
#define ROUNDS 5

/* Workers are only sent away while they are there. */
static size_t random_happenings(kofn_happening *h, size_t workers, kf_rng *r)
{
    static const double at[] = {0, 0.1, 0.25, 0.5, 0.75, 0.9, 1};
    bool gone[64] = {false};
    size_t n = 0, there = workers;

    for (unsigned round = 1; round <= ROUNDS; round++)
        for (size_t f = 0; f < 7 && n < HAPPENINGS; f++) {
            kofn_event_kind kind = (kofn_event_kind)(1 + kf_rng_below(r, 4));
            uint32_t who = (uint32_t)kf_rng_below(r, there);

            if (kf_rng_below(r, 2) || (gone[who] && kind != KOFN_EVENT_JOIN))
                continue;
            h[n++] = (kofn_happening){round, at[f], kind, who,
                                      1 + (double)kf_rng_below(r, 9)};
            gone[who] |= kind == KOFN_EVENT_LEAVE;
            there += kind == KOFN_EVENT_JOIN;
        }
    return n;
}

/* Where the workers are. */
typedef enum place_of { SIMULATED, ON_THREADS, AWAY } place_of;

static kofn_weather random_weather(place_of port, kf_rng *r)
{
    bool sim = port == SIMULATED;
    double fast = sim ? 1e4 : 20; /* rounds last that much less */
    kofn_weather w = {.seed = kf_rng_u64(r)};

    if (kf_rng_below(r, 2))
        w.spread = 0.5;
    if (kf_rng_below(r, 2))
        w.straggle = 0.3;
    if (kf_rng_below(r, 3) == 0)
        w.delay = sim ? 1e-5 : 1e-3;
    if (kf_rng_below(r, 3) == 0)
        w.leave = fast;
    if (kf_rng_below(r, 3) == 0 && port != AWAY)
        w.join = fast;
    if (sim && kf_rng_below(r, 2)) {
        w.latency = 1e-6;
        w.bandwidth = 1e9;
    }
    return w;
}

/* With somebody to spare, errors are looked for now and then. */
static kofn_errors random_errors(const kofn_plan *p, kf_rng *r)
{
    const kofn_layout *L = &p->layout;

    if (L->adjoint || L->whole || p->workers / L->groups <= L->enough)
        return KOFN_ERRORS_NONE;
    return (kofn_errors)kf_rng_below(r, 4);
}

static kofn_options random_options(const kofn_plan *p, kf_rng *r)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    bool plain = p->mixes_parts && !p->layout.adjoint;

    o.in_flight = (kofn_in_flight)kf_rng_below(r, 3);
    o.errors = random_errors(p, r);
    plain &= o.errors == KOFN_ERRORS_NONE;
    o.below = (kofn_below)kf_rng_below(r, plain ? 3 : 2);
    o.patience = KOFN_SECOND / 100;
    o.late = kf_rng_below(r, 2) ? 2 : 0;
    o.pieces = 1 + (unsigned)kf_rng_below(r, 5);
    return o;
}

/* What is there is right, the rest is NaN: whole rows of it, except where
 * blocks are of columns. */
static void check_partial(const rig *x)
{
    size_t cols = x->y.cols;
    double *y = as_doubles(&x->y);

    for (size_t i = 0; i < x->y.rows; i++) {
        size_t nans = 0;

        for (size_t j = 0; j < cols; j++)
            nans += isnan(y[i * cols + j]) ? 1 : 0;
        check(x->op == KOFN_LEFT || nans == 0 || nans == cols);
        for (size_t j = 0; j < cols; j++)
            check(isnan(y[i * cols + j]) ||
                  fabs(y[i * cols + j] - x->want[i * cols + j]) <=
                  (x->y.dtype == KOFN_F64 ? 1e-8 : 1e-2));
    }
    kf_free(y);
}

static char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *text;

    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    text = numbers(*n + 1, 1);
    assert_int_equal(fread(text, 1, *n, f), *n);
    fclose(f);
    return text;
}

static int replay_edited(const char *text, size_t n, size_t at, size_t cut,
                         const char *instead)
{
    char *copy = numbers(n + strlen(instead) + 1, 1);
    replay_result res;
    int code;

    memcpy(copy, text, at);
    memcpy(copy + at, instead, strlen(instead));
    memcpy(copy + at + strlen(instead), text + at + cut, n - at - cut);
    code = replay(copy, n - cut + strlen(instead), "edited", &res);
    check(code == SAME || (res.line > 0 && *res.error));
    kf_free(copy);
    return code;
}

/* One field of a line whose event made the core act, changed. */
static void spoil_line(const char *text, size_t n, const char *line,
                       size_t length, kf_rng *r)
{
    static const char *const keys[] = {"\"h\":\"",
                                       "\"w\":", "\"k\":", "\"ev\":\""};
    static const char *const instead[] = {"0123456789abcdef", "190000",
                                          "4000000000", "nonsense"};
    size_t f = (size_t)kf_rng_below(r, 4), key = strlen(keys[f]), at, cut;
    char field[400];
    const char *found;

    assert_true(length < sizeof field);
    memcpy(field, line, length);
    field[length] = 0;
    found = strstr(field, keys[f]);
    if (!found)
        return;
    at = (size_t)(line - text) + (size_t)(found - field) + key;
    cut = strcspn(found + key, "\",}");
    check(replay_edited(text, n, at, cut, instead[f]) != SAME);
}

static void spoil_journal(const char *text, size_t n, kf_rng *r)
{
    const char *line = text, *end;

    while ((end = memchr(line, '\n', (size_t)(text + n - line)))) {
        size_t length = (size_t)(end - line);

        if (line > text && length > 5 && strstr(line, "\"h\"") &&
            strstr(line, "\"h\"") < end && kf_rng_below(r, 12) == 0)
            spoil_line(text, n, line, length, r);
        line = end + 1;
    }
    check(replay_edited(text, n, 2, 4, "oldw") == NOT_A_JOURNAL);
    check(replay_edited(text, n, n - 1, 1, "") == SAME); /* cut off */
}

static void replays(const char *path, unsigned rounds, kf_rng *r)
{
    replay_result res;
    size_t n;
    char *text = read_all(path, &n);
    int code = replay(text, n, path, &res);

    if (code)
        fail_msg("%s:%s: %s", where->scheme->name, where->args, res.error);
    check(res.events > 0 && res.rounds == rounds);
    spoil_journal(text, n, r);
    kf_free(text);
}

/* Workers behind packets: the weather is theirs. */
static kofn_port *away(fleet *f, const rig *x, size_t workers,
                       const kofn_weather *weather)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;

    f->serve.f = rig_part;
    f->serve.ctx = (void *)(uintptr_t)x;
    f->serve.weather = weather;
    f->serve.staged = true;
    o.start = fleet_start;
    o.kill = fleet_kill;
    o.ud = f;
    return fleet_port(f, workers, &o);
}

/* Whatever the weather: the right answer, or a status with a message. */
static void any_weather(const point *at, const kofn_plan *p, kf_rng *r,
                        place_of where_to)
{
    kofn_happening events[HAPPENINGS];
    kofn_weather weather = random_weather(where_to, r);
    kofn_options o = random_options(p, r);
    char path[] = "laws_test.XXXXXX";
    int fd = mkstemp(path);
    unsigned delivered = 0;
    rig_kind kind;
    rig x;
    kofn_port *port;
    fleet f;
    bool broken = false;

    assert_true(fd >= 0);
    close(fd);
    o.journal = path;
    o.events = events;
    o.event_count = random_happenings(events, at->workers, r);
    if (o.errors != KOFN_ERRORS_NONE && kf_rng_below(r, 2))
        weather.corrupt = 0.1;
    job_inputs(&x, at, &kind);
    fleet_init(&f, NULL);
    if (where_to == AWAY)
        port = away(&f, &x, at->workers, &weather);
    else
        assert_ok(where_to == SIMULATED
                      ? kofn_port_sim(&port, at->workers, &weather)
                      : kofn_port_threads(&port, at->workers, &weather));
    assert_ok(kofn_open(&x.job, p, port, &o));
    place(&x, at);
    for (uint64_t round = 0; round < ROUNDS && !broken; round++) {
        kofn_report rep;
        kofn_status st;

        rig_next(&x, round + 70);
        st = rig_round(&x, &rep);
        if (st == KOFN_OK)
            check_answer(&x, &rep);
        else if (st == KOFN_PARTIAL)
            check_partial(&x);
        else
            check(st == KOFN_TOOFEW || st == KOFN_UNSTABLE ||
                  st == KOFN_LATE ||
                  (st == KOFN_CORRUPT && weather.corrupt > 0));
        check(st >= 0 || *kofn_errmsg());
        check(st != KOFN_PARTIAL || o.below == KOFN_BELOW_DEGRADE);
        broken = st == KOFN_LATE && strstr(kofn_errmsg(), "can come");
        delivered += !broken;
    }
    kofn_close(x.job);
    x.job = NULL;
    fleet_down(&f); /* before what its members read */
    rig_down(&x);
    replays(path, delivered, r);
    unlink(path);
}

static void on_the_simulator(const point *at, const kofn_plan *p, kf_rng *r)
{
    any_weather(at, p, r, SIMULATED);
}

static void on_threads(const point *at, const kofn_plan *p, kf_rng *r)
{
    any_weather(at, p, r, ON_THREADS);
}

static void behind_packets(const point *at, const kofn_plan *p, kf_rng *r)
{
    any_weather(at, p, r, AWAY);
}

static void weather_and_replay_simulated(void **state)
{
    (void)state;
    over_the_grid(on_the_simulator, often(30), 3, 5);
}

static void weather_and_replay_on_threads(void **state)
{
    (void)state;
    over_the_grid(on_threads, often(12), 3, 9);
}

static void weather_and_replay_behind_packets(void **state)
{
    (void)state;
    over_the_grid(behind_packets, often(1), 3, 10);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meaning_and_noise),
        cmocka_unit_test(enough),
        cmocka_unit_test(deal),
        cmocka_unit_test(liveness),
        cmocka_unit_test(order),
        cmocka_unit_test(weather_and_replay_simulated),
        cmocka_unit_test(weather_and_replay_on_threads),
        cmocka_unit_test(weather_and_replay_behind_packets),
    };

    if (argc > 1) /* only tests of that name, with asterisks */
        cmocka_set_test_filter(argv[1]);
    rig_begin();
    return cmocka_run_group_tests_name("laws", tests, NULL, NULL);
}
