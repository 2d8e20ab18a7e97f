/* states_test.c -- steps of any linear optimizer, whose states are with the
 * blocks of the workers. */
#include "update_rig.h"

#include "run/job.h"

#define ALL (KOFN_CHANGE_STATES + 1)

/* The states of operand 0 on one machine. */
typedef struct machine {
    size_t m, n, states;
    long double *of[ALL];
} machine;

static void machine_up(machine *on, const kofn_matrix *A)
{
    *on = (machine){.m = A->rows, .n = A->cols};
    for (size_t s = 0; s < ALL; s++)
        on->of[s] = numbers(on->m * on->n, sizeof *on->of[s]);
    for (size_t i = 0; i < on->m * on->n; i++)
        on->of[0][i] = kf_mat_entry(A, i / on->n, i % on->n);
}

static void machine_down(machine *on)
{
    for (size_t s = 0; s < ALL; s++)
        kf_free(on->of[s]);
}

/* Applies the change as the header defines it. */
static void machine_step(machine *on, const kofn_change *c,
                         const kofn_matrix *U, const kofn_matrix *V)
{
    for (size_t i = 0; i < on->m * on->n; i++) {
        long double G = 0, was[ALL];

        for (size_t k = 0; k < U->rows; k++)
            G += (long double)kf_mat_entry(U, k, i / on->n) *
                 (long double)kf_mat_entry(V, k, i % on->n);
        for (size_t s = 0; s < ALL; s++)
            was[s] = on->of[s][i];
        for (size_t s = 0; s < ALL; s++) {
            on->of[s][i] = s > c->states ? 0 : c->add[s] * G;
            for (size_t t = 0; t < ALL && s <= c->states; t++)
                on->of[s][i] += c->keep[s][t] * was[t];
        }
    }
    on->states = c->states;
}

static double sym(kf_rng *g)
{
    return 2 * kf_rng_uniform(g) - 1;
}

/* Draws a step that depends on all states.  Some rows are those of a state
 * that stays, and some gain nothing. */
static kofn_change draw(kf_rng *g, size_t states)
{
    kofn_change c = {.size = sizeof c, .states = states};

    for (size_t s = 0; s < ALL; s++) {
        size_t kind = kf_rng_below(g, 3);

        c.add[s] = kf_rng_below(g, 3) ? sym(g) : 0;
        for (size_t t = 0; t < ALL; t++)
            c.keep[s][t] = kind == 0 ? (s == t)
                           : kind == 1 && s != t
                               ? 0
                               : (s == t) * 0.5 + 0.3 * sym(g);
    }
    return c;
}

/* Checks all states, and a product. */
static void all_right(held *h, const machine *on, double most)
{
    for (size_t s = 0; s < ALL; s++) {
        kofn_matrix is = random_matrix(on->m, on->n, h->dtype, 1);
        double size = 0, error = 0;

        held_spoil(&is);
        assert_ok(kofn_fetch(h->job, 0, s, &is, NULL));
        for (size_t i = 0; i < on->m * on->n; i++) {
            double x = (double)on->of[s][i],
                   got = kf_mat_entry(&is, i / on->n, i % on->n);

            assert_true(s <= on->states || got == 0);
            size += x * x;
            error += (got - x) * (got - x);
            if (s == 0)
                kf_mat_put(&h->is[0], i / on->n, i % on->n, x);
        }
        assert_at_most(sqrt(error), most * (1 + sqrt(size)));
        kf_free(is.data);
    }
    held_right(h, 0, most);
}

#define CHANGES 8

/* Every step, a worker leaves and another joins.  At the end no worker is left
 * that had its block when the operand was placed. */
static size_t replace_each(kofn_fault_event come[2 * CHANGES])
{
    for (uint32_t i = 0; i < CHANGES; i++) {
        come[2 * i] =
            (kofn_fault_event){i + 2, 0, KOFN_FAULT_EVENT_LEAVE, i, 0};
        come[2 * i + 1] =
            (kofn_fault_event){i + 2, 0, KOFN_FAULT_EVENT_JOIN, i, 0};
    }
    return (size_t)2 * CHANGES;
}

static void steps_of_all_kinds(held h, bool errors, bool joiners)
{
    static const size_t states[CHANGES] = {0, 1, 3, 3, 2, 0, 3, 3};
    kofn_fault_event come[2 * CHANGES];
    kofn_options opt = KOFN_OPTIONS_INIT;
    kf_rng g = kf_rng_stream(5, 0, 0, 0);
    double most = h.dtype == KOFN_F32 ? 1e-4 : 1e-9;
    machine on;

    h.workers = CHANGES;
    opt.late = -1;
    opt.events = come;
    opt.event_count = joiners ? replace_each(come) : 0;
    opt.errors = errors ? KOFN_ERRORS_ADVERSARIAL : KOFN_ERRORS_NONE;
    held_up(&h, &opt);
    machine_up(&on, &h.A[0]);
    for (unsigned step = 0; step < CHANGES + 2; step++) {
        const kofn_change c = draw(&g, step < CHANGES ? states[step] : 3);
        kofn_matrix U = random_matrix(3, on.m, h.dtype, 2 * step);
        kofn_matrix V = random_matrix(3, on.n, h.dtype, 2 * step + 1);

        assert_ok(kofn_step(h.job, step + 1));
        if (!joiners || step > CHANGES)
            all_right(&h, &on, most);
        else
            assert_ok(kofn_put_at(h.job, 0, false, &h.in[0], &h.out[0], NULL));
        if (joiners && step <= CHANGES)
            assert_ok(kofn_take(h.job, 0, KOFN_NEVER, NULL));
        assert_ok(kofn_update(h.job, 0, &c, &U, &V));
        machine_step(&on, &c, &U, &V);
        kf_free(U.data);
        kf_free(V.data);
    }
    all_right(&h, &on, most);
    if (errors)
        assert_ok(kofn_scrub(h.job, NULL));
    assert_int_equal(all_of(&h).corrupt, 0);
    assert_int_equal(all_of(&h).joined, opt.event_count / 2);
    machine_down(&on);
    held_down(&h);
}

static void linear_optimizers(void **state)
{
    static const char *const spec[] = {"gpd:m=2,n=1,p=1", "matdot:n=2",
                                       "elastic:k=3,cut=columns"};

    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (size_t kind = 0; kind < 8; kind++)
            steps_of_all_kinds((held){.spec = spec[s],
                                      .dtype = kind & 1 ? KOFN_F32 : KOFN_F64},
                               kind & 2 && s < 2, kind & 4);
}

/* The running mean of the weights, as it is used for predictions: A is trained
 * with momentum, and state 2 is the mean. */
static void running_mean(void **state)
{
    held h = {.spec = "gpd:m=2,n=2,p=1", .workers = 6};
    kofn_change c = KOFN_CHANGE_INIT;
    kofn_matrix mean;
    double A[ALL] = {0};

    (void)state;
    held_up(&h, NULL);
    mean = random_matrix(h.A[0].rows, h.A[0].cols, KOFN_F64, 1);
    A[0] = kf_mat_entry(&h.A[0], 1, 2);
    assert_ok(kofn_change_sgd(&c, 0.1, 0, 0.9, false));
    c.states = 2;
    for (size_t t = 0; t < 2; t++)
        c.keep[2][t] = 0.25 * c.keep[0][t];
    c.keep[2][2] = 0.75;
    c.add[2] = 0.25 * c.add[0];
    for (uint64_t step = 0; step < 5; step++) {
        kofn_matrix U = random_matrix(2, h.A[0].rows, KOFN_F64, 2 * step);
        kofn_matrix V = random_matrix(2, h.A[0].cols, KOFN_F64, 2 * step + 1);

        assert_ok(kofn_update(h.job, 0, &c, &U, &V));
        A[1] = 0.9 * A[1];
        for (size_t k = 0; k < 2; k++)
            A[1] += kf_mat_entry(&U, k, 1) * kf_mat_entry(&V, k, 2);
        A[0] -= 0.1 * A[1];
        A[2] = 0.75 * A[2] + 0.25 * A[0];
        kf_free(U.data);
        kf_free(V.data);
    }
    assert_ok(kofn_fetch(h.job, 0, 2, &mean, NULL));
    assert_at_most(fabs(kf_mat_entry(&mean, 1, 2) - A[2]), 1e-12);
    kf_free(mean.data);
    held_down(&h);
}

static void refused(held *h, kofn_status st, const kofn_change *c,
                    const char *says)
{
    assert_status(st, kofn_update(h->job, 0, c, NULL, NULL));
    assert_non_null(strstr(kofn_errmsg(), says));
    held_right(h, 0, 1e-10); /* the operand is unchanged */
}

static void refusals(void **state)
{
    held h = {.spec = "elastic:k=3", .workers = 5};
    kofn_change c = KOFN_CHANGE_INIT;

    (void)state;
    held_up(&h, NULL);
    c.size = 3;
    refused(&h, KOFN_INVAL, &c, "KOFN_CHANGE_INIT");
    assert_status(KOFN_INVAL, kofn_change_sgd(&c, 1, 0, 0, false));
    c = (kofn_change)KOFN_CHANGE_INIT;
    c.states = KOFN_CHANGE_STATES + 1;
    refused(&h, KOFN_INVAL, &c, "4 optimizer states; at most 3");
    c.states = 1;
    c.keep[1][3] = INFINITY;
    refused(&h, KOFN_NONFINITE, &c, "give finite numbers");
    c.keep[1][3] = 0;
    c.add[1] = NAN;
    refused(&h, KOFN_NONFINITE, &c, "give finite numbers");
    assert_status(KOFN_INVAL,
                  kofn_fetch(h.job, 0, KOFN_CHANGE_STATES + 1, &h.is[0], NULL));
    assert_non_null(strstr(kofn_errmsg(), "1 to 3 are optimizer states"));
    held_down(&h);
}

TEST_FILE(states_test)
{
    const struct CMUnitTest tests[] = {
        TEST(linear_optimizers,
             "states: operands and optimizer states are right, with joiners"),
        TEST(refusals, "states: wrong changes and states are refused"),
        TEST(running_mean, "states: a running mean of the weights is one"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
