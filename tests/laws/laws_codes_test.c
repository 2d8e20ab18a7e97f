/* laws_codes_test.c -- laws of every scheme's code and deal, over a grid of
 * the parameters it declares: laws 1, 2, 3, 7 and 8. */
#include "laws_rig.h"
#include "scripted_core.h"
#include "sets.h"

#include "data/kernel.h"
#include "run/run.h"

/* ---- sets of seats ------------------------------------------------------- */

static double binomial(size_t n, size_t k)
{
    double c = 1;

    for (size_t i = 0; i < k; i++)
        c = c * (double)(n - i) / (double)(i + 1);
    return c;
}

/* ---- law 2: enough ------------------------------------------------------- */

/* Any `enough` seats decode everything; one fewer never do. */
static void try_set(kf_code *code, const uint32_t *set, size_t k, bool enough)
{
    kofn_decoder *d;
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
        random_set(r, set, k, n);
        try_set(code, set, k, enough);
    }
    for (size_t at = 0; at < n; at++) {
        window(set, k, n, at);
        try_set(code, set, k, enough);
    }
}

/* True if decoding needs all equations. (Some mixtures of symbols need fewer
 * by symmetry: the middle coefficient of a parabola follows from its values at
 * x and -x.) */
static bool tight(const kofn_plan *p)
{
    return !p->layout.W &&
           (p->layout.enough - 1) * p->layout.components < p->layout.symbols;
}

static void any_enough_decode(const point *at, const kofn_plan *p, kf_rng *r)
{
    const kofn_layout *L = &p->layout;
    size_t fresh = L->max_seats > L->seats ? 2 : 0;
    kf_code *code;

    (void)at;
    if (L->submessages >
        1) /* answers of a seat come in order: see the rounds */
        return;
    assert_ok(kf_code_new(&code, p));
    check(L->enough >= 1 && L->enough <= L->threshold &&
          L->threshold <= L->seats);
    try_sets(code, L->seats, L->threshold, true, r);
    if (tight(p))
        try_sets(code, L->seats, L->enough - 1, false, r);
    /* including rows for joining workers */
    for (size_t i = 0; fresh && i < 30; i++) {
        uint32_t set[64];

        random_set(r, set, L->threshold, L->seats + fresh);
        try_set(code, set, L->threshold, true);
    }
    kf_code_free(code);
}

static void enough(void **state)
{
    (void)state;
    over_the_grid(any_enough_decode, often(60), 3, 2);
}

/* ---- laws 1 and 7: meaning and noise ------------------------------------- */

/* Every seat's results for one round, computed as workers do. */
typedef struct harvest {
    const kofn_plan *p;
    rig r;
    kf_code *code;
    kf_resident resident;
    kf_messages messages;
    size_t seats; /* seats of the plan, including fresh ones */
    kf_block **block;
    kf_buffer **buffer;
    kofn_matrix *result; /* the results as matrices */
} harvest;

/* Computes the answer of one seat as a worker does. */
static void harvest_one(harvest *h, size_t i)
{
    const kf_kernel *k = kf_kernel_for(h->p);
    kf_msg m = {.how = k->how,
                .hi = h->p->span,
                .in = kf_messages_take(&h->messages, i)};
    size_t cols = k->left ? h->block[i]->cols : m.in->m.cols;

    assert_ok(kf_buffer_new(&m.result, h->p->layout.components * h->p->span,
                            cols, h->r.x.dtype));
    assert_ok(kf_work_do(h->block[i], &m, NULL, NULL));
    kf_buffer_drop(m.in);
    h->buffer[i] = m.result;
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
    h->block = numbers(h->seats, sizeof(kf_block *));
    h->buffer = numbers(h->seats, sizeof(kf_buffer *));
    h->result = numbers(h->seats, sizeof *h->result);
    for (size_t i = 0; i < h->seats; i++)
        seat[i] = i;
    assert_ok(kf_data_encode(&h->resident, h->code, seat, h->seats, h->block));
    assert_ok(kf_messages_begin(&h->messages, p, &h->r.x, 1));
    assert_ok(kf_messages_encode(&h->messages, h->code, seat, h->seats));
    for (size_t i = 0; i < h->seats; i++)
        harvest_one(h, i);
    kf_free(seat);
}

static void harvest_down(harvest *h)
{
    for (size_t i = 0; i < h->seats; i++) {
        kf_block_drop(h->block[i]);
        kf_buffer_drop(h->buffer[i]);
    }
    kf_free(h->block);
    kf_free(h->buffer);
    kf_free(h->result);
    kf_messages_free(&h->messages);
    kf_resident_free(&h->resident);
    kf_code_free(h->code);
    rig_down(&h->r);
}

/* Correct results of all seats of a group obey G: the least-squares symbols
 * explain them to rounding. */
static void results_obey_G(harvest *h, size_t group)
{
    const kofn_layout *L = &h->p->layout;
    size_t seats = h->seats / L->groups, rows = seats * L->components;
    size_t wide = h->p->span * h->result[0].cols, n = L->symbols;
    double *G = numbers(rows * n, 8), *P = numbers(rows * n, 8);
    double *R = numbers(rows * wide, 8), *B = numbers(rows * wide, 8);
    double misfit = 0, size = 0;

    for (size_t i = 0; i < seats; i++) {
        double *values = as_doubles(&h->result[i * L->groups + group]);
        const kf_seat *seat;

        assert_ok(kf_code_seat(h->code, i, &seat));
        for (size_t l = 0; l < L->components; l++) {
            const kf_row *g = &seat->G[l];
            size_t q = i * L->components + l;
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
    check(kf_code_least_squares(&(kf_system){rows, n, P, n, wide, B, wide}) ==
          KOFN_OK);
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

/* Finds the rows of the output that belong to a group. */
static void band(const harvest *h, size_t group, size_t *from, size_t *to)
{
    size_t rows = h->p->layout.grid_rows * h->p->span;

    *from = kf_min(group * rows, h->r.y.rows);
    *to = kf_min((group + 1) * rows, h->r.y.rows);
}

/* Returns the error of these rows, as rig_error does for all; a single row is
 * one number. */
static double error_of(const harvest *h, const double *y, size_t from,
                       size_t to)
{
    size_t cols = h->r.y.cols, at = from * cols, n = (to - from) * cols;
    double share = (double)(to - from) / (double)h->r.y.rows, top = 0,
           bottom = 0;

    for (size_t i = at; i < at + n; i++) {
        top += (y[i] - h->r.want[i]) * (y[i] - h->r.want[i]);
        bottom += h->r.want[i] * h->r.want[i];
    }
    if (top == 0)
        return 0;
    return sqrt(top) / fmax(sqrt(bottom), rig_typical(&h->r) * sqrt(share));
}

/* Decodes from these seats: the plain product, within the prediction. */
static void decode_is_the_product(harvest *h, size_t group, const uint32_t *set,
                                  size_t k)
{
    size_t groups = h->p->layout.groups, from, to, cols = h->r.y.cols;
    kf_source source[64];
    kf_scratch scratch = {0};
    kofn_decoder *d;
    double *y;

    check(kf_decoder_new(&d, h->code, set, k, false) == KOFN_OK);
    for (size_t i = 0; i < k; i++)
        source[i] =
            (kf_source){&h->result[set[i] * groups + group], 0, h->p->span};
    rig_spoil(&h->r);
    check(kf_decode(h->p, d, source, (kf_band){group, 0, h->p->span}, &h->r.y,
                    &scratch) == KOFN_OK);
    band(h, group, &from, &to);
    y = as_doubles(&h->r.y);
    check(error_of(h, y, from, to) <= d->predicted);
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
            random_set(r, set, k, seats);
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

/* ---- laws 3 and 8: deal and liveness ------------------------------------- */

/* I2: each strip has `enough` different seats, and exactly that number if the
 * scheme deals. I3: then shares differ by at most one strip, and their sum is
 * `enough` blocks. */
static void the_deal_covers(const scripted_core *w, size_t group, bool equal)
{
    const kofn_layout *L = &w->plan->layout;
    size_t span = w->plan->span, n = script_alive(w, group), total = 0;
    uint8_t *users = numbers(span * SCRIPT_WORKERS, 1);

    for (size_t i = 0; i < w->tasks; i++) {
        const script_task *t = &w->task[i];

        /* strips beyond the last are the first ones, if answers are sums */
        check(t->lo < span && t->hi <= (L->adjoint ? 2 : 1) * span);
        for (size_t s = t->lo; s < t->hi && t->seat % L->groups == group; s++)
            check(++users[s % span * SCRIPT_WORKERS + t->worker] == 1);
    }
    for (size_t s = 0; s < span; s++) {
        size_t count = 0;

        for (size_t i = 0; i < w->workers; i++)
            count += users[s * SCRIPT_WORKERS + i];
        check(w->plan->scheme->deal ? count == L->enough : count == n);
        total += count;
    }
    check(!w->plan->scheme->deal || total == L->enough * span);
    for (uint32_t i = 0; equal && i < w->workers; i++) {
        size_t load = script_load(w, i, 0);

        check(w->gone[i] || w->seat[i] % L->groups != group ||
              load == L->enough * span / n ||
              load == kf_ceil_div(L->enough * span, n));
    }
    kf_free(users);
}

static void same_deal(const scripted_core *a, const scripted_core *b)
{
    check(a->tasks == b->tasks);
    for (size_t i = 0; i < a->tasks; i++)
        check(a->task[i].seat == b->task[i].seat &&
              a->task[i].lo == b->task[i].lo && a->task[i].hi == b->task[i].hi);
}

/* I6: another core reaches the same live set by another way. */
static void deals_alike(const scripted_core *w, const kofn_core_options *o,
                        const uint32_t *left, size_t lost)
{
    scripted_core v;

    script_up(&v, w->plan, o);
    for (size_t i = lost; i-- > 0;)
        script_leave(&v, left[i]);
    script_begin(&v);
    same_deal(w, &v);
    script_down(&v);
}

/* Runs rounds with ever smaller live sets. Workers report times of all speeds.
 */
static void deals_cover(const point *at, const kofn_plan *p, kf_rng *r)
{
    kofn_core_options o = {.size = sizeof o,
                           .pieces = 1 + (unsigned)kf_rng_below(r, 4),
                           .max_error = 1e300};
    bool speeds = kf_rng_below(r, 2);
    uint32_t left[SCRIPT_WORKERS];
    size_t lost = 0;
    scripted_core w;

    (void)at;
    if (p->layout.submessages > 1 || p->op->stream)
        return; /* lists of streams: stream_test.c */
    script_up(&w, p, &o);
    for (int round = 0; round < 4; round++) {
        script_begin(&w);
        for (size_t g = 0; g < p->layout.groups; g++)
            the_deal_covers(&w, g, p->scheme->deal && (!speeds || round == 0));
        if (!speeds)
            deals_alike(&w, &o, left, lost);
        for (size_t i = 0; i < w.tasks && w.running; i++)
            if (w.task[i].out)
                script_answer(&w, i,
                              speeds ? 1 + (kofn_time)kf_rng_below(r, 9) : 0);
        check(!w.running && w.ended == KOFN_OK);
        left[lost] = script_spare(&w, r);
        if (left[lost] != UINT32_MAX)
            script_leave(&w, left[lost++]);
    }
    script_down(&w);
}

static void deal(void **state)
{
    (void)state;
    over_the_grid(deals_cover, often(120), 3, 3);
}

/* Rounds end as long as `enough` workers of each group are there and finally
 * answer. */
static void rounds_end(const point *at, const kofn_plan *p, kf_rng *r)
{
    kofn_core_options o = {.size = sizeof o,
                           .pieces = 1 + (unsigned)kf_rng_below(r, 4),
                           .in_flight = (kofn_in_flight)kf_rng_below(r, 3),
                           .max_error = 1e300};
    scripted_core w;

    (void)at;
    if (p->op->stream)
        return;
    script_up(&w, p, &o);
    for (int round = 0; round < 6; round++) {
        script_begin(&w);
        while (w.running) {
            size_t n = 0, pick = SIZE_MAX;
            uint32_t gone =
                kf_rng_below(r, 12) ? UINT32_MAX : script_spare(&w, r);

            if (gone != UINT32_MAX)
                script_leave(&w, gone);
            for (size_t i = 0; i < w.tasks; i++)
                if (w.task[i].out && kf_rng_below(r, ++n) == 0)
                    pick = i;
            check(pick != SIZE_MAX || !w.running); /* waits for nothing */
            if (w.running)
                script_answer(&w, pick, 0);
        }
        check(w.ended == KOFN_OK);
    }
    script_down(&w);
}

static void liveness(void **state)
{
    (void)state;
    over_the_grid(rounds_end, often(120), 3, 8);
}

TEST_FILE(laws_codes_test)
{
    const struct CMUnitTest tests[] = {
        TEST(meaning_and_noise,
             "laws 1 and 7: results obey G, and decode within the prediction"),
        TEST(enough,
             "law 2: any `enough` seats decode everything, one fewer never do"),
        TEST(deal,
             "law 3: a deal covers each strip often enough, in equal shares"),
        TEST(liveness,
             "law 8: rounds end while `enough` workers of each group answer"),
    };

    if (argc > 1) /* only tests with that sentence, with asterisks */
        cmocka_set_test_filter(argv[1]);
    rig_begin();
    return cmocka_run_group_tests_name("laws_codes", tests, NULL, NULL);
}
