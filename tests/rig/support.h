/* support.h -- what tests share: cmocka, numeric assertions, inputs. */
#ifndef KF_TEST_SUPPORT_H
#define KF_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <kofn.h>

/* Fail with the library's message unless the call gives KOFN_OK. */
#define assert_ok(call)                                                        \
    do {                                                                       \
        kofn_status assert_ok_status_ = (call);                                \
        if (assert_ok_status_ != KOFN_OK)                                      \
            fail_msg("%s: %s (%s)", #call, kofn_strerror(assert_ok_status_),   \
                     kofn_errmsg());                                           \
    } while (0)

/* Fail unless the call gives `want` and leaves a message. */
#define assert_status(want, call)                                              \
    do {                                                                       \
        kofn_status assert_got_ = (call);                                      \
        if (assert_got_ != (want))                                             \
            fail_msg("%s: %s, not %s (%s)", #call, kofn_strerror(assert_got_), \
                     kofn_strerror(want), kofn_errmsg());                      \
    } while (0)

#define assert_at_most(value, bound)                                           \
    do {                                                                       \
        double assert_v_ = (value), assert_b_ = (bound);                       \
        if (!(assert_v_ <= assert_b_))                                         \
            fail_msg("%s = %g exceeds %g", #value, assert_v_, assert_b_);      \
    } while (0)

/* ||a - b||_F / ||b||_F. */
double relative_error(const double *a, const double *b, size_t n);

/* The n-th allocation from now on fails, and all after it, until n = 0. */
void fail_allocation(long n);
/* Allocations made since fail_allocation was last called. */
long allocations(void);
/* Blocks allocated and not yet freed. */
long allocated(void);
/* Route the library's allocations through the counter above. */
void count_allocations(void);

/* The tests of one file, as main.c calls them with the arguments behind their
 * name. */
#define TEST_FILE(name)                                                        \
    int name(int argc, char **argv);                                           \
    int name(int argc __attribute__((unused)),                                 \
             char **argv __attribute__((unused)))

/* A row of a table of tests: a sentence that says what holds, with its
 * parameters, and the function that tests it.  KOFN_TEST_FILTER selects by the
 * sentence. */
#define TEST(f, sentence)                                                      \
    {                                                                          \
        sentence, f, NULL, NULL, NULL                                          \
    }
/* The same, with functions before and after it; each may be NULL. */
#define TEST_AROUND(f, sentence, before, after)                                \
    {                                                                          \
        sentence, f, before, after, NULL                                       \
    }

/* 1, or what KOFN_TEST_SCALE says: the long tests do this many times more. */
double test_scale(void);

/* Sanitizers and valgrind take ten to fifty times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOWED 4
#else
#define SLOWED 1
#endif

/* Threads, and then the simulator, which has none for ThreadSanitizer. */
#if defined(__SANITIZE_THREAD__)
#define PORTS 1
#else
#define PORTS 2
#endif

/* What goes by chance must have happened, where it was tried often enough to be
 * asked for: by day in the plain build, at night in all. */
#define assert_happened(condition)                                             \
    do {                                                                       \
        if (test_scale() / SLOWED >= 0.25)                                     \
            assert_true(condition);                                            \
    } while (0)

/* A round of a left product, of operand 0. */
static inline kofn_status rig_left(kofn_job *job, const kofn_matrix *in,
                                   kofn_matrix *out)
{
    kofn_status st = kofn_put_at(job, 0, true, in, out, NULL);

    return st ? st : kofn_take(job, 0, KOFN_NEVER, NULL);
}

/* How many strips its rounds have. */
static inline size_t rig_strips(const kofn_job *job)
{
    kofn_progress now = KOFN_PROGRESS_INIT;

    assert_ok(kofn_job_progress(job, &now));
    return now.strips;
}

#endif
