/* own_test.c -- workers with a user function that multiplies
 * (kofn_serve_options.multiply). */
#include "fleet.h"
#include "operands_rig.h"
#include "pair_rig.h"
#include "sgd.h"
#include "trials.h"

#include "base/clock.h"
#include "data/kernel.h"

/* ---- a function that multiplies ------------------------------------------ */

#define KEPT 32

/* The function multiplies with copies of the components that it makes at the
 * first call. So a result is right only if it was notified of every change. */
typedef struct own {
    double by; /* factor of the product; 1: right */
    kofn_status says;
    const char *why;          /* the reason that it gives, or NULL */
    size_t calls, left, once; /* once: calls with operands that do not stay */
    size_t copies;
    uint64_t version;
    struct {
        const void *of;
        char *numbers;
    } kept[KEPT];
    size_t count;
    /* Called before it multiplies, or NULL. */
    void (*before)(struct own *o, const kofn_factors *f);
    void *ud;
} own;

static void forget(own *o)
{
    for (size_t i = 0; i < o->count; i++)
        kf_free(o->kept[i].numbers);
    o->count = 0;
}

static char *copy_of(own *o, const kofn_factors *f)
{
    size_t bytes = ((f->whole.rows - 1) * f->whole.ld + f->whole.cols) *
                   kf_dtype_size(f->whole.dtype);

    if (f->version != o->version || f->version == 0)
        forget(o);
    o->version = f->version;
    o->once += f->version == 0;
    for (size_t i = 0; i < o->count; i++)
        if (o->kept[i].of == f->whole.data)
            return o->kept[i].numbers;
    assert_true(o->count < KEPT);
    o->kept[o->count].of = f->whole.data;
    o->kept[o->count].numbers = numbers(bytes, 1);
    memcpy(o->kept[o->count].numbers, f->whole.data, bytes);
    o->copies++;
    return o->kept[o->count++].numbers;
}

/* Checks the statements about the factors. */
static void check_factors(const kofn_factors *f, const kofn_matrix *out)
{
    const kofn_matrix *stays = f->left ? &f->B : &f->A;

    assert_true(f->A.rows && f->A.cols && f->B.cols);
    assert_int_equal(f->A.cols, f->B.rows);
    assert_int_equal(f->A.dtype, f->B.dtype);
    assert_true(f->A.ld >= f->A.cols && f->B.ld >= f->B.cols);
    assert_int_equal(out->rows, f->A.rows);
    assert_int_equal(out->cols, f->B.cols);
    assert_int_equal(out->ld, out->cols);
    assert_int_equal(out->dtype, f->A.dtype);
    assert_int_equal(f->whole.dtype, f->A.dtype);
    assert_true(f->row + stays->rows <= f->whole.rows);
    assert_true(f->col + stays->cols <= f->whole.cols);
    assert_ptr_equal(stays->data, kf_at(&f->whole, f->row, f->col));
    assert_int_equal(stays->ld, f->whole.ld);
}

/* Multiplies by the definition. */
static void put_product(const kofn_matrix *a, const kofn_matrix *b, double by,
                        kofn_matrix *out)
{
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < b->cols; j++) {
            double sum = 0;

            for (size_t k = 0; k < a->cols; k++)
                sum += kf_mat_entry(a, i, k) * kf_mat_entry(b, k, j);
            if (out->dtype == KOFN_F64)
                *(double *)kf_at(out, i, j) = by * sum;
            else
                *(float *)kf_at(out, i, j) = (float)(by * sum);
        }
}

static kofn_status multiply(void *ctx, const kofn_factors *f, kofn_matrix *out)
{
    own *o = ctx;
    kofn_matrix whole = f->whole, a = f->A, b = f->B;

    check_factors(f, out);
    o->calls++;
    o->left += f->left;
    if (o->before)
        o->before(o, f);
    if (o->says)
        return o->why ? kofn_say(o->says, "%s", o->why) : o->says;
    whole.data = copy_of(o, f);
    *(f->left ? &b.data : &a.data) = kf_at(&whole, f->row, f->col);
    put_product(&a, &b, o->by, out);
    return KOFN_OK;
}

/* Gives each member of the fleet such a function. */
static void give_functions(fleet *f, own *o, size_t n)
{
    f->serve.multiply = multiply;
    for (size_t i = 0; i < n; i++) {
        o[i] = (own){.by = 1};
        f->own[i] = &o[i];
    }
}

static void open_own(rig *r, fleet *f, own *o, const rig_kind *k)
{
    rig_inputs(r, k);
    fleet_init(f, NULL);
    f->serve.f = rig_part;
    f->serve.ctx = r;
    give_functions(f, o, k->workers);
    f->serve.staged = true;
}

static void place_own(rig *r, fleet *f, const rig_kind *k)
{
    assert_ok(
        kofn_open(&r->job, r->plan, fleet_port(f, k->workers, NULL), k->opt));
    assert_ok(rig_place(r));
}

static void close_own(rig *r, fleet *f, own *o)
{
    size_t n = f->members;

    kofn_close(r->job);
    r->job = NULL;
    fleet_down(f);
    for (size_t i = 0; i < n; i++)
        forget(&o[i]);
    rig_down(r);
}

/* ---- jobs ---------------------------------------------------------------- */

static size_t calls_of(const own *o, size_t n)
{
    size_t calls = 0;

    for (size_t i = 0; i < n; i++)
        calls += o[i].calls;
    return calls;
}

/* Checks that all answers are multiples by `by`, so the products are, too. */
static void run_own(const trial *t, double by)
{
    bool dense = !t->kind.sparse && t->kind.op != KOFN_SUM;
    double times = t->kind.op == KOFN_GRAM ? by * by : by;
    own o[FLEET_MOST];
    fleet f;
    rig r;

    open_own(&r, &f, o, &t->kind);
    for (size_t i = 0; i < t->kind.workers; i++)
        o[i].by = by;
    place_own(&r, &f, &t->kind);
    for (uint64_t round = 0; round < 2; round++) {
        rig_next(&r, 11 + round);
        for (size_t i = 0; dense && i < r.y.rows * r.y.cols; i++)
            r.want[i] *= times;
        assert_ok(rig_round(&r, NULL));
        if (!(rig_error(&r) <= times * t->most))
            fail_msg("%s, trial %d: error %g", t->kind.spec, (int)(t - trials),
                     rig_error(&r));
    }
    close_own(&r, &f, o);
    assert_true(dense == (calls_of(o, t->kind.workers) > 0));
}

static void every_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < TRIALS; i++) {
        run_own(&trials[i], 1);
        run_own(&trials[i], 2);
    }
}

/* Multiplies from the left too, on the same blocks. */
static void both_sides(void **state)
{
    const rig_kind k = {
        .spec = "elastic:k=3", .workers = 5, .m = 201, .n = 40, .p = 3};
    own o[5];
    size_t left = 0;
    double *want;
    fleet f;
    rig r;

    (void)state;
    open_own(&r, &f, o, &k);
    assert_ok(kofn_plan_serve_left(r.plan, 3));
    place_own(&r, &f, &k);
    assert_ok(rig_round(&r, NULL));
    assert_at_most(rig_error(&r), 1e-12);
    for (uint64_t seed = 0; seed < 2; seed++) {
        kofn_matrix x = random_matrix(3, 201, KOFN_F64, 5 + seed);
        kofn_matrix y = random_matrix(3, 40, KOFN_F64, 6);

        want = plain_product(&x, &r.A);
        assert_ok(kofn_put_at(r.job, 0, true, &x, &y, NULL));
        assert_ok(kofn_take(r.job, 0, KOFN_NEVER, NULL));
        for (size_t i = 0; i < 3 * 40; i++)
            assert_at_most(fabs(((double *)y.data)[i] - want[i]), 1e-10);
        kf_free(want);
        kf_free(x.data);
        kf_free(y.data);
    }
    close_own(&r, &f, o);
    for (size_t i = 0; i < 5; i++)
        left += o[i].left;
    assert_true(left > 0 && left < calls_of(o, 5));
}

/* Copies stand for the blocks until the blocks change, and no longer. */
static void changed_blocks(void **state)
{
    const sgd c = {0.05, 0.1, 0.9, false};
    const held kind = {.spec = "elastic:k=3", .workers = 5, .dtype = KOFN_F64};
    own o[5];
    size_t copies = 0;
    held h = kind;
    fleet f;

    (void)state;
    fleet_init(&f, NULL);
    give_functions(&f, o, 5);
    h.port = fleet_port(&f, 5, NULL);
    held_up(&h, NULL);
    for (unsigned step = 1; step < 4; step++) {
        assert_ok(kofn_step(h.job, step));
        for (size_t at = 0; at < OPERANDS; at++) {
            size_t m = h.A[at].rows, n = h.A[at].cols;
            kofn_matrix U = random_matrix(2, m, KOFN_F64, 70 + step);
            kofn_matrix V = random_matrix(2, n, KOFN_F64, 80 + step);

            assert_ok(sgd_update(h.job, at, &c, &U, &V));
            assert_ok(kofn_fetch(h.job, at, 0, &h.is[at], NULL));
            held_right(&h, at, 1e-12);
            held_left(&h, at, 1e-12);
            held_right(&h, at, 1e-12);
            kf_free(U.data);
            kf_free(V.data);
        }
    }
    held_down(&h);
    fleet_down(&f);
    for (size_t i = 0; i < 5; i++) {
        copies += o[i].copies;
        assert_true(o[i].calls == 0 || o[i].copies < o[i].calls);
        forget(&o[i]);
    }
    assert_true(copies > 3 * OPERANDS); /* some were copied again */
}

/* The operand comes with its task, so copies are not worth keeping. The
 * function is informed of this. */
static void streams(void **state)
{
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_STREAM, 30, 20, 30, KOFN_F32, false);
    kofn_options opt = KOFN_OPTIONS_INIT;
    size_t once = 0;
    kofn_plan *plan;
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_job *job;
    own o[4];
    fleet f;

    (void)state;
    opt.below = KOFN_BELOW_PAUSE;
    opt.patience = 60 * KOFN_SECOND;
    fleet_init(&f, NULL);
    give_functions(&f, o, 4);
    assert_ok(kofn_plan_new(&plan, &pb, "dip", 4, 7));
    assert_ok(kofn_open(&job, plan, fleet_port(&f, 4, NULL), &opt));
    for (uint64_t i = 0; i < 4; i++) {
        pair a = make_pair(30, 20, 30, KOFN_F32, 10 * i);

        assert_ok(kofn_put_pair(job, &a.X, &a.Y, &a.out, &a.number));
        assert_ok(kofn_take(job, a.number, KOFN_NEVER, &rep));
        assert_true(error_of(&a) <= rep.predicted);
        free_pair(&a);
    }
    kofn_close(job);
    kofn_plan_free(plan);
    fleet_down(&f);
    for (size_t i = 0; i < 4; i++) {
        once += o[i].once;
        assert_int_equal(o[i].once, o[i].calls);
        forget(&o[i]);
    }
    assert_true(once > 0);
}

/* ---- it fails, is wrong, and is late ------------------------------------- */

/* A status that the function may not return counts as a failure. */
static void failing(void **state)
{
    const kofn_status says[] = {KOFN_IO, KOFN_AGAIN, KOFN_NOMEM, KOFN_PARTIAL};

    (void)state;
    for (size_t s = 0; s < sizeof says / sizeof *says; s++) {
        const rig_kind k = {
            .spec = "mds:k=3", .workers = 5, .m = 61, .n = 40, .p = 2};
        own o[5];
        fleet f;
        rig r;

        open_own(&r, &f, o, &k);
        o[1].says = says[s];
        place_own(&r, &f, &k);
        for (uint64_t round = 0; round < 5; round++) {
            rig_next(&r, 11 + round);
            assert_ok(rig_round(&r, NULL));
            assert_at_most(rig_error(&r), 1e-12);
        }
        close_own(&r, &f, o);
    }
}

/* The job fails because the other workers do not suffice. Control characters
 * of the reason have no effect. */
static void failure_reason(void **state)
{
    static const char *const why[] = {"no room\non the \033[2JGPU\n", NULL};
    static const char *const all[] = {
        "no room\non the ?[2JGPU\n",
        "the worker's own way to multiply 8 x 40 by 40 x 2 says -10 (a file "
        "could not be read or written)"};
    static const char *const last[] = {"failed: on the ?[2JGPU",
                                       "failed: the worker's own way"};

    (void)state;
    for (int s = 0; s < 2; s++) {
        const rig_kind k = {
            .spec = "uncoded", .workers = 2, .m = 61, .n = 40, .p = 2};
        uint32_t next;
        own o[2];
        fleet f;
        rig r;

        open_own(&r, &f, o, &k);
        o[1].why = why[s];
        place_own(&r, &f, &k);
        rig_next(&r, 11);
        assert_ok(rig_round(&r, NULL));
        assert_string_equal(kofn_job_failure(r.job), "");
        o[1].says = KOFN_IO;
        assert_int_equal(rig_round(&r, NULL), KOFN_TOOFEW);
        assert_non_null(strstr(kofn_errmsg(), last[s]));
        assert_string_equal(kofn_job_failure(r.job), all[s]);
        /* until the next is taken, which has no failure */
        o[1].says = KOFN_OK;
        assert_ok(rig_put(&r, &next));
        assert_string_equal(kofn_job_failure(r.job), all[s]);
        assert_ok(kofn_take(r.job, next, KOFN_NEVER, NULL));
        assert_string_equal(kofn_job_failure(r.job), "");
        close_own(&r, &f, o);
    }
}

static void wrong_function(void **state)
{
    kofn_options opt = KOFN_OPTIONS_INIT;
    rig_kind k = {
        .spec = "mds:k=3", .workers = 6, .m = 61, .n = 40, .p = 2, .opt = &opt};
    size_t located = 0;
    kofn_report rep = KOFN_REPORT_INIT;
    own o[6];
    fleet f;
    rig r;

    (void)state;
    opt.errors = KOFN_ERRORS_PROBABILISTIC;
    opt.late = -1;
    open_own(&r, &f, o, &k);
    o[1].by = 1 + 1e-6;
    place_own(&r, &f, &k);
    for (uint64_t round = 0; round < 10000 && !located; round++) {
        rig_next(&r, 11 + round); /* late answers are not compared */
        assert_ok(rig_round(&r, &rep));
        assert_at_most(rig_error(&r), 1e-12);
        for (size_t w = 0; w < rep.workers; w++)
            if (rep.located[w] > 0) {
                assert_int_equal(w, atomic_load(&f.member[1]->number));
                located++;
            }
    }
    assert_true(located);
    close_own(&r, &f, o);
}

typedef struct late {
    atomic_bool begun, over; /* of the first product */
    atomic_size_t fresh,
        stale; /* calls for later products, and calls for the cancelled task */
    double first;
    size_t row; /* first row of the first task's strips */
} late;

/* Waits until the product was decoded from other answers. Then waits until the
 * worker has looked for a cancellation. */
static void take_long(own *o, const kofn_factors *f)
{
    const struct timespec nap = {.tv_nsec = KOFN_SECOND / 1000};
    late *l = o->ud;
    double x = *(const double *)f->B.data;

    if (o->calls > 1) {
        if (x != l->first)
            atomic_fetch_add(&l->fresh, 1);
        else if (f->row == l->row)
            atomic_fetch_add(&l->stale, 1);
        return;
    }
    l->first = x;
    l->row = f->row;
    atomic_store(&l->begun, true);
    while (!atomic_load(&l->over))
        nanosleep(&nap, NULL);
    nanosleep(&nap, NULL);
    nanosleep(&nap, NULL);
}

/* Waits until the slow worker has begun. A cancellation that overtakes its
 * task would have no effect, so the task must be under way. */
static void wait_for_slow(own *o, const kofn_factors *f)
{
    const struct timespec nap = {.tv_nsec = KOFN_SECOND / 1000};

    (void)f;
    while (!atomic_load(&((late *)o->ud)->begun))
        nanosleep(&nap, NULL);
}

/* A task makes one call for each component. No call follows a cancellation. */
static void cancelled(void **state)
{
    const rig_kind k = {
        .spec = "mds:k=2", .workers = 3, .m = 600, .n = 100, .p = 1};
    late l = {.first = 0};
    own o[3];
    fleet f;
    rig r;

    (void)state;
    open_own(&r, &f, o, &k);
    for (size_t i = 0; i < 3; i++) {
        o[i].before = i == 0 ? take_long : wait_for_slow;
        o[i].ud = &l;
    }
    place_own(&r, &f, &k);
    assert_ok(rig_round(&r, NULL));
    atomic_store(&l.over, true);
    for (uint64_t round = 0; round < 10000 && !atomic_load(&l.fresh); round++) {
        rig_next(&r, 11 + round);
        assert_ok(rig_round(&r, NULL));
        assert_at_most(rig_error(&r), 1e-12);
    }
    assert_true(atomic_load(&l.fresh) > 0);
    assert_int_equal(atomic_load(&l.stale), 0);
    close_own(&r, &f, o);
}

/* ---- how work is cut ----------------------------------------------------- */

typedef struct cut {
    kf_how how;
    size_t components, rows, cols; /* of the block */
    size_t in_rows, in_cols, lo, hi;
    size_t out_rows, out_cols;
} cut;

static const cut cuts[] = {
    {KF_HOW_ROWS, 1, 150, 700, 700, 1, 3, 150, 147, 1},
    {KF_HOW_ROWS, 1, 150, 700, 700, 30, 0, 149, 149, 30},
    {KF_HOW_ROWS, 4, 90, 300, 300, 8, 5, 85, 320, 8},
    {KF_HOW_LEFT_ROWS, 1, 600, 40, 1, 600, 0, 1, 1, 40},
    {KF_HOW_LEFT_ROWS, 2, 600, 40, 90, 600, 2, 80, 156, 40},
    {KF_HOW_INNER, 1, 90, 700, 700, 5, 100, 650, 90, 5},
    {KF_HOW_INNER, 2, 90, 350, 700, 1, 100, 400, 90, 1},
    {KF_HOW_LEFT_INNER, 1, 700, 30, 1, 700, 0, 700, 1, 30},
    {KF_HOW_LEFT_INNER, 2, 350, 30, 70, 700, 300, 450, 70, 30},
    {KF_HOW_GRAM, 1, 400, 90, 90, 1, 0, 400, 90, 1},
};

static double most_work, all_work;

static void check_work(own *o, const kofn_factors *f)
{
    double work = (double)f->A.rows * (double)f->A.cols * (double)f->B.cols;
    /* work below this size is not cut, because that would be slow */
    double least = 64.0 * KF_LOOK_UP_DEPTH * (double)f->B.cols;

    (void)o;
    all_work += work;
    if (work > most_work && work > least)
        fail_msg("%zu x %zu x %zu, more than %g", f->A.rows, f->A.cols,
                 f->B.cols, most_work);
}

static bool in_time(void *ud)
{
    size_t *left = ud;

    return *left == 0 || --*left == 0;
}

static void stays(void *from, void *numbers)
{
    (void)from, (void)numbers;
}

/* Compares with BLAS, within rounding, for any amount of work at a time. Also
 * stops the work between any two calls. */
static void cut_so(const cut *c, kofn_dtype dtype, double work)
{
    kofn_matrix block =
        random_matrix(c->components * c->rows, c->cols, dtype, 1);
    kofn_matrix in = random_matrix(c->in_rows, c->in_cols, dtype, 2);
    own o = {.by = 1, .before = check_work};
    kf_user_multiply way = {multiply, &o, 1, work};
    kf_msg m = {.type = KF_MSG_WORK, .how = c->how, .lo = c->lo, .hi = c->hi};
    double most = (dtype == KOFN_F64 ? 1e-12 : 1e-3), size, *want, *got;
    kf_buffer *of;
    kf_block *b;
    size_t calls;

    most_work = work;
    all_work = 0;
    assert_ok(kf_buffer_around(&of, &block, stays, NULL, NULL));
    assert_ok(kf_block_around(&b, of, c->components, c->rows, c->cols));
    assert_ok(kf_buffer_around(&m.in, &in, stays, NULL, NULL));
    assert_ok(kf_buffer_new(&m.result, c->out_rows, c->out_cols, dtype));
    assert_ok(kf_work_fits(b, &m, &m.in->m, &m.result->m));
    assert_ok(kf_work_do(b, &m, NULL, NULL));
    want = as_doubles(&m.result->m);
    assert_ok(kf_work_with(b, &m, &way, NULL, NULL));
    got = as_doubles(&m.result->m);
    size = rig_norm(&block) * rig_norm(&in) *
           (c->how == KF_HOW_GRAM ? rig_norm(&block) : 1);
    for (size_t i = 0; i < c->out_rows * c->out_cols; i++)
        assert_at_most(fabs(want[i] - got[i]), most * size);
    assert_true(all_work >= kf_work_size(b, &m));
    calls = o.calls;
    for (size_t stop = 1; stop <= 2 && calls > 2; stop++) {
        size_t left = stop;

        o.calls = 0;
        assert_status(KOFN_AGAIN, kf_work_with(b, &m, &way, in_time, &left));
        assert_true(o.calls < calls && o.calls <= 2 * stop);
    }
    forget(&o);
    kf_free(want);
    kf_free(got);
    kf_buffer_drop(m.in);
    kf_buffer_drop(m.result);
    kofn_free(m.why);
    kf_block_drop(b);
    kf_buffer_drop(of);
    kf_free(block.data);
    kf_free(in.data);
}

static void every_cut(void **state)
{
    const double works[] = {1, 3e3, 1e4, 2e5, 1e15};

    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        for (size_t w = 0; w < sizeof works / sizeof *works; w++) {
            cut_so(&cuts[i], KOFN_F64, works[w]);
            cut_so(&cuts[i], KOFN_F32, works[w]);
        }
}

/* A program that was compiled before the option existed gives shorter options.
 */
static void old_options(void **state)
{
    const rig_kind k = {
        .spec = "mds:k=2", .workers = 3, .m = 60, .n = 10, .p = 1};
    own o[3];
    fleet f;
    rig r;

    (void)state;
    open_own(&r, &f, o, &k);
    f.serve.size = offsetof(kofn_serve_options, multiply);
    place_own(&r, &f, &k);
    assert_ok(rig_round(&r, NULL));
    assert_at_most(rig_error(&r), 1e-12);
    close_own(&r, &f, o);
    assert_int_equal(calls_of(o, 3), 0);
}

TEST_FILE(own_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_cut,
             "multiply: work in parts is right and can be stopped (each kind)"),
        TEST(every_operation,
             "multiply: a user function computes all dense answers"),
        TEST(both_sides, "multiply: left products use the user function"),
        TEST(changed_blocks,
             "multiply: the user function learns of changed blocks"),
        TEST(streams,
             "multiply: operands of streams do not stay, and versions say so"),
        TEST(failing,
             "multiply: other workers replace a failing user function"),
        TEST(failure_reason,
             "multiply: a failure that ends a round is named with its reason"),
        TEST(wrong_function,
             "multiply: a worker with a wrong user function is named"),
        TEST(cancelled, "multiply: no call follows a cancellation"),
        TEST(old_options,
             "multiply: options of an older size have no user function"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
