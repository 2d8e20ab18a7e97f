/* put_test.c -- several products in flight on one job. Each has its own
 * answer, status and report, in whatever order they are taken. */
#include "put_rig.h"
#include "sites_rig.h"

#include "ports/post.h"

/* Computes products on all ports. One in `cancels` is cancelled, with tasks
 * outstanding; 0: none. The others complete, and the totals have the whole
 * cost. */
static void fly_everywhere(uint32_t cancels, kf_rng *rng)
{
    for (int site = 0; site < SITES; site++)
        for (size_t t = 0; t < FEW_TRIALS; t++) {
            kofn_report sum = KOFN_REPORT_INIT;
            rig r;

            up(&r, &trials[t].kind, site);
            fly(&r, 20, 2 + kf_rng_below(rng, 7), trials[t].most, cancels, rng,
                &sum);
            assert_true(sum.sent > 0);
            down(&r, site);
        }
}

static void every_kind(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 40, 0);

    (void)state;
    fly_everywhere(0, &rng);
}

/* Computes further products until a wrong answer was compared. On a loaded
 * machine the faulty worker may be late for all of the first twenty. */
static void fly_until_wrong(const rig *r, kofn_report *sum)
{
    for (uint32_t next = 21; sum->corrupt == 0 && next < 1000; next++) {
        kofn_report rep = KOFN_REPORT_INIT;
        flight f = {.open = 0};

        put(&f, r, next);
        take(&f, r, 0, 1e-9, &rep);
        kofn_job_totals(r->job, sum);
    }
}

/* A slow, a leaving and a faulty worker affect all open products. */
static void faults_in_flight(void **state)
{
    kf_rng rng = kf_rng_stream(2, KF_FOR_DATA, 41, 0);
    kofn_options o;
    rig_kind k = troubled(&o);

    (void)state;
    for (int site = 0; site < SITES; site++)
        for (size_t most = 2; most <= 8; most += 3) {
            kofn_report sum = KOFN_REPORT_INIT;
            rig r;

            up(&r, &k, site);
            fly(&r, 20, most, 1e-9, 0, &rng, &sum);
            fly_until_wrong(&r, &sum);
            assert_true(sum.corrupt > 0);
            assert_int_equal(sum.left, 2);
            assert_true(sum.located[2] > 0);
            only_the_faulty(&sum);
            down(&r, site);
        }
}

/* Workers answer with the input of the requested product, for both uses of a
 * plan, whatever they were sent since.  Products have any width. */
static void both_sides(void **state)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 120, 36, 3, KOFN_F64, false);
    kf_rng rng = kf_rng_stream(3, KF_FOR_DATA, 42, 0);

    (void)state;
    for (int site = 0; site < SITES; site++) {
        rig r = {.op = KOFN_MATMUL}, left, one[8];
        rig_kind k = {.spec = NULL, .workers = 6};
        uint32_t number[8];
        size_t open;

        r.A = random_matrix(120, 36, KOFN_F64, 1);
        r.x = random_matrix(36, 3, KOFN_F64, 2);
        r.y = random_matrix(120, 3, KOFN_F64, 3);
        left = r;
        left.op = KOFN_LEFT;
        left.x = random_matrix(2, 120, KOFN_F64, 4);
        left.y = random_matrix(2, 36, KOFN_F64, 5);
        assert_ok(kofn_plan_new(&r.plan, &pb, "elastic:k=3", 6, 7));
        assert_ok(kofn_plan_serve_left(r.plan, 2));
        assert_ok(kofn_open(&r.job, r.plan, port_at(site, &r, &k), NULL));
        assert_ok(kofn_place(r.job, &r.A));
        for (uint32_t round = 0; round < 4; round++) {
            for (open = 0; open < 8; open++) {
                bool l = kf_rng_below(&rng, 2);

                set_width(l ? &left : &r, 1 + kf_rng_below(&rng, 9));
                one[open] = rig_beside(l ? &left : &r, 100 + open);
                assert_ok(kofn_put_at(r.job, 0, l, &one[open].x, &one[open].y,
                                      &number[open]));
            }
            while (open > 0) {
                size_t i = kf_rng_below(&rng, open--);

                assert_ok(kofn_take(r.job, number[i], KOFN_NEVER, NULL));
                assert_true(rig_error(&one[i]) < 1e-10);
                rig_put_away(&one[i]);
                one[i] = one[open];
                number[i] = number[open];
            }
        }
        kf_free(left.x.data);
        kf_free(left.y.data);
        down(&r, site);
    }
}

/* ---- inputs that are sent again ------------------------------------------ */

static kofn_status full(kofn_transport *t, kofn_peer peer, const void *head,
                        size_t head_bytes, const kofn_lent *body, bool urgent)
{
    (void)t, (void)peer, (void)head, (void)head_bytes;
    (void)body, (void)urgent;
    return KOFN_AGAIN;
}

/* The input of a cancelled letter is not lost if a later letter brings it too.
 * The worker will have it, and the inputs before it. */
static void repeated_input(void **state)
{
    static const uint64_t inputs[] = {1, 2, 3, 1};
    kofn_transport t = {.send = full};
    double body = 1;
    kf_outbox b = {0};
    uint64_t lost;

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        kf_head h = {.type = KF_WIRE_WORK, .task = i, .input = inputs[i]};

        assert_int_equal(
            kf_post(&b, &t, 0, &h,
                    &(kofn_lent){.data = &body, .bytes = sizeof body}),
            KOFN_AGAIN);
    }
    assert_true(kf_post_take_back(&b, 0, &lost));
    assert_int_equal(lost, 0);
    assert_true(kf_post_take_back(&b, 1, &lost));
    assert_int_equal(lost, 2);
    kf_outbox_free(&b);
}

/* A later letter may rely on the input of a cancelled one. It then gets the
 * input from the next letter that brings it, or brings the input itself. The
 * letter cannot be cancelled if other inputs would then come in another order.
 */
static void needed_input(void **state)
{
    static const struct {
        uint64_t input[4]; /* + 10: without its numbers */
        bool may;
        size_t brings; /* the letter that brings it afterwards */
    } line[] = {
        {{1, 11, 2, 12}, true, 0},
        {{1, 2, 1, 11}, true, 1},
        {{1, 2, 11, 12}, false, 0},
    };
    kofn_transport t = {.send = full};
    double body = 1;

    (void)state;
    for (size_t k = 0; k < sizeof line / sizeof *line; k++) {
        kf_outbox b = {0};
        uint64_t lost = 0;

        for (uint32_t i = 0; i < 4; i++) {
            uint64_t input = line[k].input[i];
            kf_head h = {.type = KF_WIRE_WORK, .task = i, .input = input % 10};

            assert_int_equal(
                kf_post(&b, &t, 0, &h,
                        &(kofn_lent){.data = &body,
                                     .bytes = input > 10 ? 0 : sizeof body}),
                KOFN_AGAIN);
        }
        assert_int_equal(kf_post_take_back(&b, 0, &lost), line[k].may);
        assert_int_equal(lost, 0);
        assert_int_equal(b.count, line[k].may ? 3 : 4);
        if (line[k].may) {
            const kf_letter *l = &b.letter[b.first + line[k].brings];

            assert_int_equal(l->input, 1);
            assert_int_equal(l->body.bytes, sizeof body);
        }
        kf_outbox_free(&b);
    }
}

/* ---- the order of products ----------------------------------------------- */

static const rig_kind small = {
    .spec = "elastic:k=3", .workers = 5, .m = 60, .n = 8, .p = 1, .sim = true};

static void most_open(void **state)
{
    flight f = {.open = 0};
    uint32_t number;
    kofn_report rep = KOFN_REPORT_INIT;
    rig r;

    (void)state;
    rig_up(&r, &small);
    for (uint32_t i = 1; i <= KOFN_OPEN_MOST; i++)
        put(&f, &r, i);
    assert_status(KOFN_STATE, kofn_put(r.job, &r.x, &r.y, &number));
    assert_non_null(strstr(kofn_errmsg(), "kofn_take"));
    assert_status(KOFN_STATE, kofn_round(r.job, &r.x, &r.y, NULL));
    take(&f, &r, 3, 1e-11, &rep); /* taking one makes room, complete or not */
    put(&f, &r, KOFN_OPEN_MOST + 1);
    while (f.open)
        take(&f, &r, f.open / 2, 1e-11, &rep);
    rig_down(&r);
}

static void invalid_takes(void **state)
{
    uint32_t a, b;
    rig r;

    (void)state;
    rig_up(&r, &small);
    assert_status(KOFN_STATE, kofn_take(r.job, 1, KOFN_NEVER, NULL));
    assert_status(KOFN_STATE, kofn_take(r.job, 0, KOFN_NEVER, NULL));
    assert_ok(kofn_put(r.job, &r.x, &r.y, &a));
    assert_status(KOFN_STATE, kofn_take(r.job, a + 1, KOFN_NEVER, NULL));
    assert_ok(kofn_take(r.job, a, KOFN_NEVER, NULL));
    assert_status(KOFN_STATE, kofn_take(r.job, a, KOFN_NEVER, NULL));
    /* a product of a wrong shape is not counted */
    assert_status(KOFN_SHAPE, kofn_put(r.job, &r.y, &r.y, &b));
    assert_status(KOFN_STATE, kofn_put_at(r.job, 0, true, &r.x, &r.y, &b));
    assert_ok(kofn_put(r.job, &r.x, &r.y, &b));
    assert_int_equal(b, a + 1);
    assert_ok(kofn_take(r.job, b, KOFN_NEVER, NULL));
    rig_down(&r);
}

/* A round is a product like the others. */
static void rounds_among_products(void **state)
{
    (void)state;
    for (int site = 0; site < SITES; site++) {
        flight f = {.open = 0};
        kofn_report rep = KOFN_REPORT_INIT;
        uint32_t number;
        rig r;

        up(&r, &small, site);
        put(&f, &r, 1);
        put(&f, &r, 2);
        assert_ok(rig_round(&r, &rep));
        assert_true(rig_error(&r) < 1e-11);
        assert_ok(kofn_put(r.job, &r.x, &r.y, &number));
        assert_int_equal(number, 4);
        put(&f, &r, 5);
        take(&f, &r, 2, 1e-11, &rep);
        assert_ok(kofn_take(r.job, number, KOFN_NEVER, &rep));
        assert_true(rig_error(&r) < 1e-11);
        assert_status(KOFN_STATE, kofn_take(r.job, number, KOFN_NEVER, &rep));
        while (f.open)
            take(&f, &r, 0, 1e-11, &rep);
        down(&r, site);
    }
}

/* Workers compute the oldest product first, but do not wait for its end. The
 * simulator has its own clock. */
static void overlap(void **state)
{
    kofn_faults w = KOFN_FAULTS_INIT(.work = 1, .latency = 1e-3);
    rig_kind k = small;
    kofn_time alone, together;
    kofn_report rep = KOFN_REPORT_INIT;
    flight f = {.open = 0};
    rig r;

    (void)state;
    k.faults = &w;
    rig_up(&r, &k);
    for (int i = 0; i < 8; i++)
        assert_ok(rig_round(&r, &rep));
    kofn_job_totals(r.job, &rep);
    alone = rep.took;
    rig_down(&r);
    rig_up(&r, &k);
    assert_ok(rig_round(&r, &rep));
    for (uint32_t i = 2; i < 10; i++)
        put(&f, &r, i);
    take(&f, &r, 7, 1e-11, &rep); /* the newest: all before it are complete */
    together = rep.took;
    while (f.open) {
        assert_ok(kofn_take(r.job, f.number[0], 0, &rep));
        assert_true(rep.took <= together);
        rig_put_away(&f.one[0]);
        f.one[0] = f.one[--f.open];
        f.number[0] = f.number[f.open];
    }
    rig_down(&r);
    assert_true(together < alone / 2);
}

/* ---- cancelled products -------------------------------------------------- */

static void cancellations(void **state)
{
    kf_rng rng = kf_rng_stream(5, KF_FOR_DATA, 44, 0);

    (void)state;
    fly_everywhere(4, &rng);
}

/* A product that has not begun was never sent to workers. */
static void cancelled_early(void **state)
{
    flight f = {.open = 0};
    kofn_report rep = KOFN_REPORT_INIT;
    rig r;

    (void)state;
    rig_up(&r, &small);
    put(&f, &r, 1); /* no worker has a block at this time */
    put(&f, &r, 2);
    cancel(&f, &r, 0);
    take(&f, &r, 0, 1e-11, &rep);
    kofn_job_totals(r.job, &rep);
    assert_int_equal(rep.rounds, 1);
    rig_down(&r);
}

static void invalid_cancels(void **state)
{
    uint32_t a;
    rig r;

    (void)state;
    rig_up(&r, &small);
    assert_status(KOFN_STATE, kofn_cancel(r.job, 1));
    assert_ok(kofn_put(r.job, &r.x, &r.y, &a));
    assert_status(KOFN_STATE, kofn_cancel(r.job, a + 1));
    assert_ok(kofn_cancel(r.job, a));
    assert_status(KOFN_STATE, kofn_cancel(r.job, a));
    assert_status(KOFN_STATE, kofn_take(r.job, a, KOFN_NEVER, NULL));
    assert_non_null(strstr(kofn_errmsg(), "taken or cancelled"));
    assert_ok(rig_round(&r, NULL));
    assert_status(KOFN_STATE, kofn_cancel(r.job, a + 1));
    assert_non_null(strstr(kofn_errmsg(), "taken or cancelled"));
    assert_true(rig_error(&r) < 1e-11);
    rig_down(&r);
}

/* ---- failures ------------------------------------------------------------ */

static kofn_status square(void *ctx, size_t part, size_t parts,
                          const kofn_matrix *in, kofn_matrix *out)
{
    double x = *(const double *)in->data;

    (void)ctx;
    (void)part;
    (void)parts;
    *(double *)out->data = x > 1 ? NAN : x * x;
    return KOFN_OK;
}

static void one_fails(void **state)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_SUM, 1, 1, 1, KOFN_F64, false);
    double in[5] = {0.5, 2, 0.25, 3, 1}, out[5];
    uint32_t number[5];
    kofn_plan *p;
    kofn_port *port;
    kofn_job *j;

    (void)state;
    assert_ok(kofn_plan_new(&p, &pb, "gc:d=2", 4, 1));
    assert_ok(kofn_port_threads(&port, 4, NULL));
    assert_ok(kofn_open(&j, p, port, NULL));
    assert_ok(kofn_place_parts(j, square, NULL));
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < 5; i++) {
            kofn_matrix x = {&in[i], 1, 1, 1, KOFN_F64};
            kofn_matrix y = {&out[i], 1, 1, 1, KOFN_F64};

            assert_ok(kofn_put(j, &x, &y, &number[i]));
        }
        for (size_t i = 5; i-- > 0;) {
            kofn_status st = kofn_take(j, number[i], KOFN_NEVER, NULL);

            assert_int_equal(st, in[i] > 1 ? KOFN_NONFINITE : KOFN_OK);
            if (st)
                assert_non_null(strstr(kofn_errmsg(), "NaN"));
            else
                assert_true(fabs(out[i] - 4 * in[i] * in[i]) < 1e-9);
        }
        in[1] = in[3] = 0.75; /* in the memory of the failed inputs */
    }
    kofn_close(j);
    kofn_plan_free(p);
}

static kofn_status half_done(void *ctx, size_t part, size_t parts,
                             const kofn_matrix *in, kofn_matrix *out)
{
    (void)parts;
    (void)in;
    *(double *)out->data = 1;
    return part == 1 ? *(kofn_status *)ctx : KOFN_OK;
}

/* A status other than KOFN_OK means failure, whatever its sign. */
static void function_status(void **state)
{
    static const kofn_status says[] = {KOFN_PARTIAL, KOFN_AGAIN, KOFN_IO};
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_SUM, 1, 1, 1, KOFN_F64, false);
    double in = 0.5, out;
    kofn_matrix x = {&in, 1, 1, 1, KOFN_F64}, y = {&out, 1, 1, 1, KOFN_F64};

    (void)state;
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        kofn_status said = says[i];
        kofn_plan *p;
        kofn_port *port;
        kofn_job *j;

        assert_ok(kofn_plan_new(&p, &pb, "uncoded", 3, 1));
        assert_ok(kofn_port_threads(&port, 3, NULL));
        assert_ok(kofn_open(&j, p, port, NULL));
        assert_ok(kofn_place_parts(j, half_done, &said));
        assert_int_equal(kofn_round(j, &x, &y, NULL), KOFN_TOOFEW);
        kofn_close(j);
        kofn_plan_free(p);
    }
}

static void too_few_for_all(void **state)
{
    static const kofn_fault_event events[] = {
        {1, 0.1, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {1, 0.1, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {1, 0.1, KOFN_FAULT_EVENT_LEAVE, 2, 0},
        {4, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {4, 0, KOFN_FAULT_EVENT_JOIN, 0, 0}};
    kofn_options o = with_events(events, 5);
    rig_kind k = small;
    flight f = {.open = 0};
    kofn_report rep = KOFN_REPORT_INIT;
    rig r;

    (void)state;
    k.opt = &o;
    rig_up(&r, &k);
    for (uint32_t i = 1; i <= 4; i++)
        put(&f, &r, i);
    for (size_t i = 0; i < 3; i++) {
        assert_status(KOFN_TOOFEW,
                      kofn_take(r.job, f.number[i], KOFN_NEVER, &rep));
        assert_non_null(strstr(kofn_errmsg(), "start more workers"));
        rig_put_away(&f.one[i]);
    }
    f.one[0] = f.one[3];
    f.number[0] = f.number[3];
    f.open = 1;
    take(&f, &r, 0, 1e-11, &rep);
    assert_int_equal(rep.joined, 2);
    rig_down(&r);
}

/* ---- the end ------------------------------------------------------------- */

/* Nothing is written into outputs after the close. */
static void close_open(void **state)
{
    kf_rng rng = kf_rng_stream(4, KF_FOR_DATA, 43, 0);

    (void)state;
    for (int site = 0; site < SITES; site++)
        for (size_t i = 0; i < 12; i++) {
            flight f = {.open = 0};
            uint32_t puts = 1 + (uint32_t)kf_rng_below(&rng, 6);
            rig r;

            up(&r, &small, site);
            for (uint32_t n = 1; n <= puts; n++)
                put(&f, &r, n);
            if (i % 3 == 1)
                kofn_take(r.job, puts, KOFN_SECOND / 1000, NULL);
            if (i % 3 == 2)
                assert_ok(kofn_take(r.job, 1, KOFN_NEVER, NULL));
            down(&r, site);
            while (f.open > 0)
                rig_put_away(&f.one[--f.open]);
        }
}

TEST_FILE(put_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kind,
             "put: products in flight are right (each code and port)"),
        TEST(
            faults_in_flight,
            "put: products in flight are right (slow, leaving, faulty worker)"),
        TEST(both_sides, "put: left and right products in flight are right"),
        TEST(repeated_input,
             "put: a cancelled input is kept if a later letter brings it"),
        TEST(needed_input,
             "put: a cancelled input moves to the next letter that needs it"),
        TEST(most_open,
             "put: one product too many is refused until one is taken"),
        TEST(invalid_takes, "put: unknown and taken products cannot be taken"),
        TEST(rounds_among_products, "put: a round may run among products"),
        TEST(overlap, "put: products overlap and complete in order"),
        TEST(cancellations,
             "put: products are right while others are cancelled"),
        TEST(cancelled_early,
             "put: a product may be cancelled before it begins"),
        TEST(invalid_cancels,
             "put: unknown and taken products cannot be cancelled"),
        TEST(one_fails, "put: one product fails, and the others do not"),
        TEST(function_status,
             "put: any other status of a function than KOFN_OK is a failure"),
        TEST(too_few_for_all,
             "put: products fail with too few workers, later ones are right"),
        TEST(close_open, "put: a job closes with products in flight"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("put", tests, NULL, NULL);
}
