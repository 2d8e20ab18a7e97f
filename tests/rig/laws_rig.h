/* laws_rig.h -- makes a grid of the parameters that every scheme in
 * kofn_scheme_at() declares, for laws that all schemes must obey. A new scheme
 * is tested without a new line here. */
#ifndef KF_TEST_LAWS_RIG_H
#define KF_TEST_LAWS_RIG_H

#include "rig.h"

#include "code/code.h"
#include "code/operation.h"

#include <stdio.h>

typedef struct point {
    const kofn_scheme *scheme;
    size_t workers;
    char args[200];
    kofn_problem problem;
} point;

/* Lists the values of a parameter to try with this number of workers. */
static inline size_t values_of(const kofn_param *q, size_t workers, long *v)
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

static inline void put_arg(char *args, size_t size, const kofn_param *q,
                           long value)
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

/* Sets about half of the parameters to random values of their lists. */
static inline void random_args(point *at, kf_rng *r)
{
    at->args[0] = 0;
    for (const kofn_param *q = at->scheme->params; q->name; q++) {
        long v[32];
        size_t n = values_of(q, at->workers, v);

        if (n && kf_rng_below(r, 5) < (q->choices ? 3 : 2))
            put_arg(at->args, sizeof at->args, q, v[kf_rng_below(r, n)]);
    }
}

/* Returns one of the operations of the scheme. */
static inline kofn_op random_op(const kofn_scheme *s, size_t wide, kf_rng *r)
{
    static const kofn_op ops[] = {KOFN_MATVEC, KOFN_MATMUL, KOFN_MATMUL,
                                  KOFN_LEFT,   KOFN_GRAM,   KOFN_SUM,
                                  KOFN_STREAM};

    for (;;) {
        kofn_op op = ops[kf_rng_below(r, sizeof ops / sizeof *ops)];

        /* wide inputs are preferred, if the scheme has them */
        if (s->ops & op &&
            (op != KOFN_MATVEC || wide < 4 || !(s->ops & KOFN_MATMUL)))
            return op;
    }
}

static inline void random_problem(point *at, size_t wide, kf_rng *r)
{
    kofn_op op = random_op(at->scheme, wide, r);
    bool wider = op & (KOFN_MATMUL | KOFN_LEFT | KOFN_STREAM);

    at->problem = (kofn_problem)KOFN_PROBLEM_INIT(
        op, op == KOFN_SUM ? 37 : 1, 37, wider ? wide : 1, KOFN_F64, false);
    switch (kf_rng_below(r, 4)) {
    case 0:
        at->problem.dtype = KOFN_F32;
        break;
    case 1:
        at->problem.sparse = kf_operation_of(op)->sparse;
        break;
    }
}

#define MOST_SEATS 62 /* laws have room for that number and two more */

/* Makes a plan with a few strips a block, some of them beyond the last row of
 * A. Returns NULL if the parameters do not fit together. */
static inline kofn_plan *plan_at(point *at, kf_rng *r)
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
    if (p->layout.seats > MOST_SEATS) { /* rows of a product of a stream */
        kofn_plan_free(p);
        return NULL;
    }
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

/* True if the scheme's sums are inexact by design. */
static inline bool leaves_out(const kofn_scheme *s)
{
    return strcmp(s->name, "ignore") == 0 || strcmp(s->name, "distr-bgd") == 0;
}

/* Tests the law with `each` accepted plans of every scheme and number of
 * workers. Plans with many submessages take more work, so they count for
 * several. The input has `wide` columns if it is a matrix. */
static inline void over_the_grid(law *f, size_t each, size_t wide,
                                 uint32_t name)
{
    static const size_t sizes[] = {1, 2, 3, 5, 6, 8, 12};
    const kofn_scheme *s;
    size_t plans = 0;

    for (size_t i = 0; (s = kofn_scheme_at(i)); i++)
        for (size_t w = 0; w < sizeof sizes / sizeof *sizes && !leaves_out(s);
             w++) {
            kf_rng r =
                kf_rng_stream(name, KF_FOR_DATA, (uint32_t)i, (uint32_t)w);
            size_t met = 0, most = each, heavy;

            /* sanitizers meet the same code in all of these */
            if (SLOWED > 1 && !(s->ops & (KOFN_MATVEC | KOFN_MATMUL)))
                most = kf_max(1, each / 4);
            for (size_t k = 0; k < 300 * each && met < most; k++) {
                point at = {.scheme = s, .workers = sizes[w]};
                kofn_plan *p;

                random_args(&at, &r);
                random_problem(&at, wide, &r);
                where = &at;
                p = plan_at(&at, &r);
                if (!p)
                    continue;
                heavy = p->layout.submessages / 8; /* solved together */
                met += 1 + heavy * heavy;
                plans++;
                f(&at, p, &r);
                kofn_plan_free(p);
            }
            assert_true(met >= most);
        }
    print_message("%zu plans\n", plans);
}

static inline void job_inputs(rig *x, const point *at, rig_kind *kind)
{
    *kind = (rig_kind){.workers = at->workers,
                       .m = at->problem.m,
                       .n = at->problem.n,
                       .p = at->problem.p,
                       .dtype = at->problem.dtype,
                       .sparse = at->problem.sparse,
                       .op = at->problem.op};
    if (kind->op == KOFN_SUM) /* rows of A are divided among the parts */
        kind->m = 53;
    rig_inputs(x, kind);
}

/* Compares the answer with the plain product, within the rounding that the
 * code allows. The prediction holds for many numbers, and four times it for
 * few. */
static inline void check_answer(const rig *x, const kofn_report *rep)
{
    double room = x->y.dtype == KOFN_F64 ? 1e-12 : 1e-5;

    /* errors below the floor may pass, and are amplified like rounding */
    room = fmax(room, 4 * rep->predicted) +
           10 * sqrt((double)x->A.cols) * rep->floor * rep->noise;
    if (!(rig_error(x) <= room))
        print_message("error %.2e predicted %.2e floor %.2e noise %.2e\n",
                      rig_error(x), rep->predicted, rep->floor, rep->noise);
    check(rig_error(x) <= room);
}

#endif
