/* support.h -- has what all tests share: cmocka, numeric assertions, inputs. */
#ifndef KF_TEST_SUPPORT_H
#define KF_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <kofn.h>

/* Fails with the library's message unless the call gives KOFN_OK. */
#define assert_ok(call)                                                        \
    do {                                                                       \
        kofn_status assert_ok_status_ = (call);                                \
        if (assert_ok_status_ != KOFN_OK)                                      \
            fail_msg("%s: %s (%s)", #call, kofn_strerror(assert_ok_status_),   \
                     kofn_errmsg());                                           \
    } while (0)

/* Fails unless the call gives `want` and leaves a message. */
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

/* Returns ||a - b||_F / ||b||_F. */
double relative_error(const double *a, const double *b, size_t n);

/* Lets the n-th allocation from now on fail, and all after it, until it is
 * called with n = 0. */
void fail_allocation(long n);
/* Returns the number of allocations since the last call of fail_allocation. */
long allocations(void);
/* Returns the number of blocks that are allocated and not freed. */
long allocated(void);
/* Counts the library's allocations from now on, so that they can fail. */
void count_allocations(void);

/* Defines the tests of one file. main.c calls it with the arguments behind its
 * name. */
#define TEST_FILE(name)                                                        \
    int name(int argc, char **argv);                                           \
    int name(int argc __attribute__((unused)),                                 \
             char **argv __attribute__((unused)))

/* A row of a table of tests: a sentence that says what holds, with its
 * parameters, and the function that tests it. KOFN_TEST_FILTER selects by the
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

/* Returns KOFN_TEST_SCALE, or 1. The long tests multiply their work by it. */
double test_scale(void);

/* A divisor for counts: sanitizers and valgrind are ten to fifty times slower.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOWED 4
#else
#define SLOWED 1
#endif

/* The number of ports: threads, then the simulator. ThreadSanitizer has
 * nothing to find in the simulator. */
#if defined(__SANITIZE_THREAD__)
#define PORTS 1
#else
#define PORTS 2
#endif

/* Fails unless a random condition occurred, if the test ran often enough. The
 * plain build asks for it by day, all builds at night. */
#define assert_happened(condition)                                             \
    do {                                                                       \
        if (test_scale() / SLOWED >= 0.25)                                     \
            assert_true(condition);                                            \
    } while (0)

/* Runs a round of a left product of operand 0. */
static inline kofn_status rig_left(kofn_job *job, const kofn_matrix *in,
                                   kofn_matrix *out)
{
    kofn_status st = kofn_put_at(job, 0, true, in, out, NULL);

    return st ? st : kofn_take(job, 0, KOFN_NEVER, NULL);
}

/* Returns the number of strips of a job's rounds. */
static inline size_t rig_strips(const kofn_job *job)
{
    kofn_progress now = KOFN_PROGRESS_INIT;

    assert_ok(kofn_job_progress(job, &now));
    return now.strips;
}

#endif
