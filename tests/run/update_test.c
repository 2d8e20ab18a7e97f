/* update_test.c -- operands that change at the workers, and are read from
 * them. */
#include "update_rig.h"

#include "run/job.h"

#include <stdio.h>

static const char *const specs[] = {
    "elastic:k=3",
    "elastic:k=3,cut=columns",
    "gpd:m=2,n=2,p=1",
    "polydot:m=2,n=1,p=1",
    "matdot:n=2",
    "polynomial:m=2,p=1,basis=circle",
    "gpd:m=2,n=2,p=1,basis=monomial",
};

static const char *const one_sided[] = {
    "elastic:k=4,groups=2", "mds:k=3",      "uncoded",
    "replication:k=4",      "product:m2=4", "polynomial:m=2,p=2",
};

/* ---- updates ------------------------------------------------------------- */

/* Checks that the caller's matrices are unchanged, although blocks were views
 * of them. */
static void placed_are_never_written(held *h, double *const *before)
{
    for (size_t o = 0; o < OPERANDS; o++) {
        double *x = as_doubles(&h->A[o]);

        assert_memory_equal(x, before[o],
                            h->A[o].rows * h->A[o].cols * sizeof *x);
        kf_free(x);
    }
}

static void some_steps(held h, size_t way, double most)
{
    double *before[OPERANDS];
    twin t;

    h.workers = 8;
    held_up(&h, NULL);
    twin_up(&t, &h);
    for (size_t o = 0; o < OPERANDS; o++) {
        before[o] = as_doubles(&h.A[o]);
        assert_at_most(fetched(&h, &t, o), most);
    }
    for (uint64_t step = 0; step < 5; step++)
        for (size_t o = 0; o < OPERANDS; o++)
            change(&h, &t, o, &ways[way], 10 * step + o);
    placed_are_never_written(&h, before);
    now(&h, &t);
    for (size_t o = 0; o < OPERANDS; o++) {
        assert_at_most(fetched(&h, &t, o), most);
        held_right(&h, o, most);
        if (!h.one_sided)
            held_left(&h, o, most);
    }
    for (size_t o = 0; o < OPERANDS; o++)
        kf_free(before[o]);
    twin_down(&t);
    held_down(&h);
}

static void updates(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        for (size_t way = 0; way < WAYS; way++)
            some_steps((held){.spec = specs[s]}, way, 1e-10);
}

static void one_sided_codes(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof one_sided / sizeof *one_sided; s++)
        some_steps((held){.spec = one_sided[s], .one_sided = true}, s % WAYS,
                   1e-10);
}

static void float32(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs - 1; s++)
        some_steps((held){.spec = specs[s], .dtype = KOFN_F32}, s % WAYS, 1e-4);
}

static void on_threads(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        some_steps((held){.spec = specs[s], .threads = true}, s % WAYS, 1e-10);
}

/* An update sends half of U and a V for all to each live worker. */
static void traffic(void **state)
{
    held h = {.spec = "gpd:m=2,n=1,p=1", .workers = 8};
    size_t each = (held_wide[1] + 1) / 2 + held_wide[0];
    uint64_t sent[3];
    twin t;

    (void)state;
    held_up(&h, NULL);
    twin_up(&t, &h);
    for (size_t i = 0; i < 3; i++) { /* by the end of a product */
        if (i == 2)
            change(&h, &t, 0, &ways[0], 2); /* of three rows */
        now(&h, &t);
        held_right(&h, 0, 1e-10);
        sent[i] = all_of(&h).sent;
    }
    assert_int_equal(sent[2] - sent[1] - (sent[1] - sent[0]),
                     8 * 3 * each * sizeof(double));
    twin_down(&t);
    held_down(&h);
}

/* ---- workers that join later --------------------------------------------- */

static void replace_workers(held h, size_t way, double fraction, double most)
{
    kofn_fault_event come[2 * STEPS];
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_report all = KOFN_REPORT_INIT;
    twin t;

    h.workers = 8;
    opt.late = -1;
    opt.events = come;
    opt.event_count = replace_all(come, 2, fraction);
    held_up(&h, &opt);
    twin_up(&t, &h);
    for (unsigned step = 1; step <= STEPS + 3; step++)
        train(&h, &t, step, way, most);
    for (size_t o = 0; o < OPERANDS; o++)
        assert_at_most(fetched(&h, &t, o), most);
    kofn_job_totals(h.job, &all);
    assert_int_equal(all.left, STEPS);
    assert_int_equal(all.joined, STEPS);
    twin_down(&t);
    held_down(&h);
}

static void joiners(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        for (size_t half = 0; half < 2; half++)
            replace_workers((held){.spec = specs[s]}, (s + half) % WAYS,
                            half ? 0.5 : 0, 1e-8);
}

static void joiners_threads(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        replace_workers((held){.spec = specs[s], .threads = true}, s % WAYS,
                        s % 2 ? 0.5 : 0, 1e-8);
}

/* Messages take time by their size. Work does not overtake the change that it
 * needs. */
static void slow_messages(void **state)
{
    const kofn_faults slow =
        KOFN_FAULTS_INIT(.latency = 1, .bandwidth = 1000, .seed = 1);

    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        replace_workers((held){.spec = specs[s], .faults = &slow}, s % WAYS,
                        0.5, 1e-8);
}

/* The windows that are read for a joiner are not smaller than is worth a
 * message: 64 x 7 numbers are read at once, although products move less. */
static void small_operands(void **state)
{
    enum { ROUNDS = 6 };
    const kofn_fault_event come[] = {{2, 0, KOFN_FAULT_EVENT_LEAVE, 0, 0},
                                     {2, 0, KOFN_FAULT_EVENT_JOIN, 0, 0}};
    const kofn_options opt = with_events(come, 2);
    const rig_kind kind = {"elastic:k=3", 4,          64, 7, 1,
                           .sim = true,   .opt = &opt};
    sgd nothing = SGD_INIT;
    kf_core_view v;
    rig r;

    (void)state;
    rig_up(&r, &kind);
    assert_ok(sgd_update(r.job, 0, &nothing, NULL, NULL));
    for (size_t i = 0; i < ROUNDS; i++)
        assert_ok(rig_round(&r, NULL));
    kf_core_look(r.job->core, 0, &v);
    assert_int_equal(v.live, 4);
    assert_int_equal(v.round, ROUNDS + 1);
    rig_down(&r);
}

static void starved_products(void **state)
{
    (void)state;
    for (size_t threads = 0; threads < 2; threads++)
        for (size_t half = 0; half < 2; half++) {
            held h = {
                .spec = "gpd:m=2,n=2,p=1", .workers = 8, .threads = threads};
            kofn_fault_event come[8];
            twin t;

            trained(&h, &t, come, replace_some(come, 3, half ? 0.5 : 0, 4), 4);
            twin_down(&t);
            held_down(&h);
        }
}

/* A product is put after three workers have joined. It is cancelled after
 * `moments` moments, in which their blocks may be read. Then operands change,
 * and in the end these workers' blocks are needed. Returns false if the
 * product was complete before. */
static bool cancelled_after(size_t moments)
{
    held h = {.spec = "gpd:m=2,n=2,p=1", .workers = 8};
    kofn_fault_event come[8];
    kofn_status st = KOFN_AGAIN;
    uint32_t number;
    twin t;

    replace_some(come, 3, 0, 3);
    for (uint32_t i = 0; i < 2; i++)
        come[6 + i] =
            (kofn_fault_event){8, 0, KOFN_FAULT_EVENT_LEAVE, 3 + i, 0};
    trained(&h, &t, come, 8, 2);
    assert_ok(kofn_step(h.job, 3));
    assert_ok(kofn_put(h.job, &h.in[0], &h.out[0], &number));
    for (size_t i = 0; st == KOFN_AGAIN && i < moments; i++)
        st = kofn_take(h.job, number, 1000, NULL);
    if (st == KOFN_AGAIN)
        assert_ok(kofn_cancel(h.job, number));
    else
        assert_ok(st);
    for (size_t o = 0; o < OPERANDS; o++)
        change(&h, &t, o, &ways[3], o);
    for (unsigned step = 4; step <= 9; step++)
        train(&h, &t, step, 3, 1e-8);
    twin_down(&t);
    held_down(&h);
    return st == KOFN_AGAIN;
}

static void stable_blocks(void **state)
{
    size_t moments = 0;

    (void)state;
    while (cancelled_after(moments))
        moments++;
    assert_true(moments > 3);
}

/* Before each product the four oldest of ten workers are replaced. Left
 * products need six workers, so no further one may be lost. The others have
 * their blocks by then. */
static void fast_replacement(void **state)
{
    held h = {.spec = "gpd:m=2,n=2,p=1", .workers = 10};
    kofn_fault_event come[4 * 8];
    size_t n = 0;
    twin t;

    (void)state;
    for (unsigned step = 3; step <= 6; step++) {
        n += replace_some(come + n, step, 0, 4);
        for (size_t i = 0; i < 4; i++)
            come[n - 8 + i].worker += 4 * (step - 3);
    }
    trained(&h, &t, come, n, 2);
    now(&h, &t);
    for (unsigned step = 3; step <= 6; step++) {
        assert_ok(kofn_step(h.job, step));
        held_right(&h, step % OPERANDS, 1e-8);
    }
    for (size_t o = 0; o < OPERANDS; o++)
        assert_at_most(fetched(&h, &t, o), 1e-8);
    twin_down(&t);
    held_down(&h);
}

/* Too few workers are left to determine the operands. */
static void lost_operand(void **state)
{
    (void)state;
    for (size_t threads = 0; threads < 2; threads++) {
        held h = {.spec = "elastic:k=3", .workers = 5, .threads = threads};
        kofn_options opt = KOFN_OPTIONS_INIT;
        kofn_fault_event come[8];
        twin t;

        opt.below = KOFN_BELOW_PAUSE;
        opt.events = come;
        opt.event_count = replace_some(come, 3, 0, 3);
        held_up(&h, &opt);
        twin_up(&t, &h);
        for (unsigned step = 1; step <= 2; step++)
            train(&h, &t, step, 1, 1e-8);
        assert_ok(kofn_step(h.job, 3));
        assert_ok(kofn_put_at(h.job, 0, false, &h.in[0], &h.out[0], NULL));
        assert_status(KOFN_TOOFEW, kofn_take(h.job, 0, KOFN_NEVER, NULL));
        assert_non_null(strstr(kofn_errmsg(), "operand 0 has changed"));
        twin_down(&t);
        held_down(&h);
    }
}

/* The last worker with an operand leaves before another has its block, which
 * is requested then. No later message would show the loss. */
static void lost_at_once(void **state)
{
    const kofn_fault_event come[] = {{2, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
                                     {2, 0, KOFN_FAULT_EVENT_LEAVE, 0, 0}};

    (void)state;
    for (size_t threads = 0; threads < 2; threads++) {
        held h = {.spec = "elastic:k=1", .workers = 1, .threads = threads};
        kofn_options opt = with_events(come, 2);
        twin t;

        held_up(&h, &opt);
        twin_up(&t, &h);
        train(&h, &t, 1, 0, 1e-8);
        assert_ok(kofn_step(h.job, 2));
        assert_ok(kofn_put_at(h.job, 0, false, &h.in[0], &h.out[0], NULL));
        assert_status(KOFN_TOOFEW, kofn_take(h.job, 0, KOFN_NEVER, NULL));
        assert_non_null(strstr(kofn_errmsg(), "operand 0 has changed"));
        twin_down(&t);
        held_down(&h);
    }
}

static void journals(void **state)
{
    held h = {.spec = "gpd:m=2,n=2,p=1", .workers = 8, .threads = true};
    kofn_fault_event come[2 * STEPS];
    char path[] = "/tmp/kofn-update-XXXXXX";
    int fd = mkstemp(path);
    kofn_options opt = KOFN_OPTIONS_INIT;
    twin t;

    (void)state;
    assert_true(fd >= 0);
    opt.journal = path;
    opt.events = come;
    opt.event_count = replace_all(come, 2, 0.5);
    held_up(&h, &opt);
    twin_up(&t, &h);
    for (unsigned step = 1; step <= STEPS; step++)
        train(&h, &t, step, 2, 1e-8);
    twin_down(&t);
    held_down(&h);
    held_replays(path);
    close(fd);
    unlink(path);
}

/* ---- sizes --------------------------------------------------------------- */

/* All changes go one way: a += ... u v', with positive u and v. So no estimate
 * is smaller than it may be. */
static double along(size_t i, double unit)
{
    return unit * (double)(1 + i * 7 % 5);
}

/* U' V is -u v', in an even number of rows. Every second row is `times` times
 * the first. */
static void lay_along(const kofn_matrix *A, const kofn_matrix *U,
                      const kofn_matrix *V, double unit, double times)
{
    for (size_t i = 0; i < A->rows; i++)
        for (size_t j = 0; j < A->cols; j++)
            ((double *)A->data)[i * A->ld + j] =
                along(i, unit) * along(j, unit);
    for (size_t r = 0; r < U->rows; r++) {
        double of_V = r % 2 ? times : 1;
        double of_U = of_V / (1 + times * times) * 2 / (double)U->rows;

        for (size_t i = 0; i < A->rows; i++)
            ((double *)U->data)[r * U->ld + i] = -along(i, unit) * of_U;
        for (size_t j = 0; j < A->cols; j++)
            ((double *)V->data)[r * V->ld + j] = along(j, unit) * of_V;
    }
}

/* Checks that `kept` is between `is` and `more` times `is`. */
static void is_kept(double kept, double is, double more)
{
    assert_at_most(is * (1 - 1e-12), kept);
    assert_at_most(kept, is * more * (1 + 1e-12));
}

/* Compares the sizes that are kept of operand 0 with those of its present
 * value. Those of elements count only if they are huge. */
static void sizes_are(const held *h, double elements, double norms)
{
    const kf_held *kept = &h->job->held[0];
    size_t groups = kept->plan->layout.groups;
    kf_held is = {.plan = kept->plan};

    assert_ok(kf_resident_dense(&is.resident, is.plan, &h->is[0]));
    is.resident.by = kept->resident.by;
    is_kept(kept->resident.most, kf_mat_most(&h->is[0]), elements);
    for (size_t g = 0; g < groups; g++)
        assert_ok(kf_norms_know(&is.norms, &is.resident, false, g));
    assert_ok(kf_norms_know(&is.norms, &is.resident, true, 0));
    for (size_t g = 0; g <= groups; g++) {
        const kf_parts *p = &is.resident.parts;

        for (size_t i = 0; i < (g < groups ? p->rows : p->cols); i++)
            is_kept(kept->norms.norm[g][i], is.norms.norm[g][i], norms);
    }
    kf_norms_forget(&is.norms);
    kf_resident_free(&is.resident);
}

/* The same for sizes far from 1, with blocks of A divided by a power of two,
 * and with `rows` rows. */
static void sizes_grow_with(held h, const sgd *c, double unit, size_t rows,
                            double times)
{
    double more = times > 1 ? 1.11 : 1.01; /* by sums of rows: sqrt(12 / 10) */
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_matrix U = random_matrix(rows, held_wide[1], KOFN_F64, 1);
    kofn_matrix V = random_matrix(rows, held_wide[0], KOFN_F64, 2);
    twin t;

    opt.errors = KOFN_ERRORS_ADVERSARIAL;
    h.workers = 8;
    held_open(&h, &opt);
    lay_along(&h.A[0], &U, &V, unit, times);
    for (size_t o = 0; o < OPERANDS; o++)
        assert_ok(kofn_place_at(h.job, o, KOFN_DENSE(&h.A[o])));
    assert_int_equal(h.job->held[0].resident.by<1, unit> 1);
    twin_up(&t, &h);
    for (unsigned step = 0; step < 6; step++) {
        sgd way = *c;

        way.momentum *= step != 3; /* the present momentum is forgotten */
        assert_ok(sgd_update(h.job, 0, &way, &U, &V));
        twin_step(&t, 0, &way, &U, &V);
        now(&h, &t);
        sizes_are(&h, unit > 1 ? 1 : HUGE_VAL, more);
    }
    held_spoil(&h.is[0]);
    assert_ok(kofn_fetch(h.job, 0, 0, &h.is[0], NULL));
    for (size_t i = 0; i < h.A[0].rows * h.A[0].cols; i++)
        assert_at_most(fabs(((double *)h.is[0].data)[i] / t.A[0][i] - 1), 1e-8);
    sizes_are(&h, unit > 1 ? 1 + 1e-8 : HUGE_VAL, 1);
    twin_down(&t);
    held_down(&h);
    kf_free(U.data);
    kf_free(V.data);
}

static void kept_sizes(void **state)
{
    static const sgd c[] = {
        {0.5, 0, 0, false},
        {0.5, -0.3, 0, false},
        {0.5, -0.3, 0.9, false},
        {0.5, -0.3, 0.9, true},
    };

    (void)state;
    for (size_t i = 0; i < WAYS; i++)
        for (size_t kind = 0; kind < 4; kind++) {
            bool huge = kind == 0;
            double unit = huge ? 1e150 : 1, times = kind == 2 ? 3 : 1;
            size_t rows = kind < 3 ? 2 : 70;
            sgd way = c[i];

            if (huge) /* else they would need another power of two */
                way.step = 0.02;
            sizes_grow_with((held){.spec = "gpd:m=2,n=2,p=1"}, &way, unit, rows,
                            times);
            sizes_grow_with(
                (held){.spec = "elastic:k=2,groups=2", .one_sided = true}, &way,
                unit, rows, times);
        }
}

/* Without U and V decay and momentum alone change an operand. */
static void no_factors(void **state)
{
    (void)state;
    for (size_t s = 0; s < 2; s++)
        for (size_t way = 0; way < WAYS; way++) {
            held h = {.spec = s ? "gpd:m=2,n=2,p=1" : "elastic:k=3",
                      .workers = 8,
                      .dtype = way % 2 ? KOFN_F32 : KOFN_F64};
            double most = way % 2 ? 1e-5 : 1e-12;
            twin t;

            held_up(&h, NULL);
            twin_up(&t, &h);
            for (size_t o = 0; o < OPERANDS; o++) {
                double *zeros = numbers(h.A[o].rows + h.A[o].cols, 8);
                kofn_matrix U = {zeros, 1, h.A[o].rows, h.A[o].rows, KOFN_F64};
                kofn_matrix V = {zeros, 1, h.A[o].cols, h.A[o].cols, KOFN_F64};

                change(&h, &t, o, &ways[way], o + 1);
                for (size_t i = 0; i < 2; i++) {
                    assert_ok(sgd_update(h.job, o, &ways[way], NULL, NULL));
                    twin_step(&t, o, &ways[way], &U, &V);
                }
                assert_at_most(fetched(&h, &t, o), most);
                kf_free(zeros);
            }
            twin_down(&t);
            held_down(&h);
        }
}

static void refused(held *h, kofn_status st, const sgd *c, const kofn_matrix *U,
                    const kofn_matrix *V)
{
    assert_status(st, sgd_update(h->job, 0, c, U, V));
    held_right(h, 0, 1e-10); /* the operand is unchanged */
}

static void other_products(void **state)
{
    held h = {.spec = "elastic:k=3", .workers = 5};
    uint32_t first, second;
    twin t;

    (void)state;
    held_up(&h, NULL);
    twin_up(&t, &h);
    assert_ok(kofn_put_at(h.job, 1, false, &h.in[1], &h.out[1], NULL));
    change(&h, &t, 0, &ways[0], 1);
    assert_ok(kofn_take(h.job, 0, KOFN_NEVER, NULL));
    assert_ok(kofn_put(h.job, &h.in[0], &h.out[0], &first));
    assert_ok(kofn_put(h.job, &h.in[0], &h.out[0], &second));
    assert_ok(kofn_take(h.job, second, KOFN_NEVER, NULL));
    change(&h, &t, 0, &ways[0], 2);
    assert_ok(kofn_take(h.job, first, KOFN_NEVER, NULL));
    now(&h, &t);
    held_right(&h, 0, 1e-10);
    twin_down(&t);
    held_down(&h);
}

static void refusals(void **state)
{
    held h = {.spec = "elastic:k=3", .workers = 5};
    sgd c = SGD_INIT, odd = c;
    kofn_matrix U = random_matrix(3, held_wide[1], KOFN_F64, 1), W = U;
    kofn_matrix V = random_matrix(3, held_wide[0], KOFN_F64, 2), A;

    (void)state;
    held_open(&h, NULL);
    assert_status(KOFN_STATE, sgd_update(h.job, 0, &c, &U, &V));
    for (size_t o = 0; o < OPERANDS; o++)
        assert_ok(kofn_place_at(h.job, o, KOFN_DENSE(&h.A[o])));
    assert_status(KOFN_INVAL, sgd_update(h.job, OPERANDS, &c, &U, &V));
    assert_status(KOFN_INVAL, kofn_fetch(h.job, OPERANDS, 0, &h.is[0], NULL));
    assert_status(KOFN_SHAPE, kofn_fetch(h.job, 1, 0, &h.is[0], NULL));
    refused(&h, KOFN_SHAPE, &c, &V, &U);
    W.rows = 2;
    refused(&h, KOFN_SHAPE, &c, &W, &V);
    refused(&h, KOFN_INVAL, NULL, &U, &V);
    refused(&h, KOFN_INVAL, &c, NULL, &V);
    assert_non_null(strstr(kofn_errmsg(), "give both U and V"));
    refused(&h, KOFN_INVAL, &c, &U, NULL);
    assert_non_null(strstr(kofn_errmsg(), "give both U and V"));
    odd = c;
    odd.step = NAN;
    refused(&h, KOFN_NONFINITE, &odd, &U, &V);
    assert_non_null(strstr(kofn_errmsg(), "give finite numbers"));
    odd.step = 1e305;
    refused(&h, KOFN_NONFINITE, &odd, &U, &V);
    odd.step = -1e305;
    refused(&h, KOFN_NONFINITE, &odd, &U, &V);
    for (size_t side = 0; side < 2; side++) /* their product is infinite */
        *((double *)(side ? V.data : U.data) + 5) *= 1e200;
    refused(&h, KOFN_NONFINITE, &c, &U, &V);
    for (size_t side = 0; side < 2; side++)
        *((double *)(side ? V.data : U.data) + 5) *= 1e-200;
    assert_non_null(strstr(kofn_errmsg(), "mixtures may not fit"));
    odd = c;
    odd.decay = -INFINITY;
    refused(&h, KOFN_NONFINITE, &odd, &U, &V);
    assert_non_null(strstr(kofn_errmsg(), "give finite numbers"));
    odd = c;
    odd.momentum = NAN;
    refused(&h, KOFN_NONFINITE, &odd, &U, &V);
    assert_non_null(strstr(kofn_errmsg(), "give finite numbers"));
    for (size_t side = 0; side < 2; side++) {
        double *at = (double *)(side ? V.data : U.data) + 5, was = *at;

        *at = side ? INFINITY : NAN;
        refused(&h, KOFN_NONFINITE, &c, &U, &V);
        assert_non_null(strstr(kofn_errmsg(), "is NaN or infinite"));
        *at = was;
    }
    W = U;
    W.dtype = KOFN_F32;
    refused(&h, KOFN_SHAPE, &c, &W, &V);
    W = V;
    W.dtype = KOFN_F32;
    refused(&h, KOFN_SHAPE, &c, &U, &W);
    W = V;
    W.cols--;
    refused(&h, KOFN_SHAPE, &c, &U, &W);
    W = U;
    W.cols--;
    refused(&h, KOFN_SHAPE, &c, &W, &V);
    W = U;
    W.data = NULL;
    refused(&h, KOFN_INVAL, &c, &W, &V);
    W = V;
    W.data = NULL;
    refused(&h, KOFN_INVAL, &c, &U, &W);
    assert_ok(kofn_put(h.job, &h.in[0], &h.out[0], NULL));
    assert_status(KOFN_STATE, sgd_update(h.job, 0, &c, &U, &V));
    A = random_matrix(held_wide[1], held_wide[0], KOFN_F64, 3);
    assert_ok(kofn_fetch(h.job, 0, 0, &A, NULL)); /* other calls continue */
    assert_ok(kofn_take(h.job, 0, KOFN_NEVER, NULL));
    held_down(&h);

    h = (held){.spec = "gpd:m=2,n=2,p=1,basis=complex",
               .workers = 12,
               .one_sided = true};
    held_up(&h, NULL);
    refused(&h, KOFN_UNSUITED, &c, &U, &V);
    assert_non_null(strstr(kofn_errmsg(), "blocks of scheme gpd"));
    held_down(&h);
    h = (held){.spec = "gpd:m=2,n=1,p=2,basis=complex",
               .workers = 12,
               .one_sided = true};
    held_up(&h, NULL);
    refused(&h, KOFN_UNSUITED, &c, &U, &V);
    assert_status(KOFN_UNSUITED, kofn_fetch(h.job, 0, 0, &A, NULL));
    held_down(&h);
    kf_free(A.data);
    kf_free(U.data);
    kf_free(V.data);
}

TEST_FILE(update_test)
{
    const struct CMUnitTest tests[] = {
        TEST(updates, "update: operands are right after changes (each code)"),
        TEST(one_sided_codes,
             "update: operands of one-sided codes are right after changes"),
        TEST(float32, "update: operands in float32 are right after changes"),
        TEST(on_threads, "update: operands are right after changes (threads)"),
        TEST(traffic, "update: the sent bytes are those of U and V"),
        TEST(joiners,
             "update: blocks of joiners are right after all others left"),
        TEST(joiners_threads, "update: blocks of joiners are right (threads)"),
        TEST(slow_messages,
             "update: work does not overtake changes (slow messages)"),
        TEST(small_operands,
             "update: a small operand is read for a joiner at once"),
        TEST(starved_products,
             "update: products wait for joiners' blocks, and are right"),
        TEST(stable_blocks,
             "update: cancelled products do not change blocks that are read"),
        TEST(fast_replacement,
             "update: blocks are rebuilt before the next workers leave"),
        TEST(lost_operand, "update: a lost operand is reported"),
        TEST(
            lost_at_once,
            "update: an operand that is lost with its last worker is reported"),
        TEST(journals, "update: journals of updates replay"),
        TEST(kept_sizes, "update: kept sizes are those of the changed operand"),
        TEST(other_products,
             "update: products of other operands do not prevent an update"),
        TEST(no_factors, "update: decay and momentum alone change an operand"),
        TEST(refusals,
             "update: invalid updates are refused and change nothing"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
