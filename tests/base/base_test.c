/* base_test.c -- messages, sizes, allocation, random streams, the heap,
 * reports. */
#include "support.h"

#include "base/base.h"
#include "base/entropy.h"
#include "base/heap.h"
#include "base/report.h"
#include "base/rng.h"

#include <stdio.h>
#include <unistd.h>

#define ROOM 5000 /* numbers */

static void messages(void **state)
{
    (void)state;
    assert_int_equal(kf_fail(KOFN_SHAPE, "k = %d", 7), KOFN_SHAPE);
    assert_string_equal(kofn_errmsg(), "k = 7");
    kf_fail_in(KOFN_SHAPE, "file %s", "a.npy");
    assert_string_equal(kofn_errmsg(), "file a.npy: k = 7");
    assert_string_equal(kofn_strerror(KOFN_TOOFEW),
                        "too few workers are left to decode");
    assert_string_equal(kofn_strerror((kofn_status)99), "unknown status");
}

static void overflow_is_no_memory(void **state)
{
    (void)state;
    assert_null(kf_new(SIZE_MAX / 2, 4));
    assert_non_null(strstr(kofn_errmsg(), "do not fit in memory"));
    void *p = kf_new(0, 8);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 64, 0);
    kf_free(p);
    kf_free(NULL);
}

static void growth(void **state)
{
    int *a = NULL;
    size_t cap = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_ok(kf_grow(&a, &cap, (size_t)i, sizeof *a));
        a[i] = i;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(a[i], i);
    kf_free(a);
}

/* True if the mapping of p has this flag in /proc/self/smaps. */
static bool has_flag(const void *p, const char *flag)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    bool inside = false, has = false;

    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        unsigned long lo, hi;

        if (sscanf(line, "%lx-%lx ", &lo, &hi) == 2)
            inside = lo <= (uintptr_t)p && (uintptr_t)p < hi;
        if (inside && strncmp(line, "VmFlags:", 8) == 0)
            has = strstr(line, flag);
    }
    fclose(f);
    return has;
}

/* Kernels without huge pages have no such file. */
static void huge_pages(void **state)
{
    char *large = kf_new(16, 1 << 20), *small = kf_new(2, 1 << 20);

    (void)state;
    assert_non_null(large);
    assert_non_null(small);
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0) {
        assert_true(has_flag(large + (8 << 20), " hg"));
        assert_false(has_flag(small + (1 << 20), " hg"));
    }
    kf_free(large);
    kf_free(small);
}

/* The first vector of Random123's known-answer file for philox4x32-10 with
 * counter and key all zero: 6627e8d5 e169c58d bc57ac4c 9b00dbd8. */
static void philox(void **state)
{
    kf_rng r = kf_rng_stream(0, (kf_purpose)0, 0, 0);

    (void)state;
    assert_int_equal(kf_rng_u32(&r), 0x6627e8d5);
    assert_int_equal(kf_rng_u32(&r), 0xe169c58d);
    assert_int_equal(kf_rng_u32(&r), 0xbc57ac4c);
    assert_int_equal(kf_rng_u32(&r), 0x9b00dbd8);
}

static void random_streams(void **state)
{
    kf_rng a = kf_rng_stream(5, KF_FOR_CODE, 1, 2);
    kf_rng b = kf_rng_stream(5, KF_FOR_CODE, 1, 2);
    kf_rng c = kf_rng_stream(5, KF_FOR_CODE, 2, 1);
    double mean = 0, square = 0, expo = 0;
    int same = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint64_t x = kf_rng_u64(&a);
        assert_true(x == kf_rng_u64(&b));
        same += x == kf_rng_u64(&c);
    }
    assert_int_equal(same, 0);
    for (int i = 0; i < 100000; i++) {
        double z = kf_rng_normal(&a);
        mean += z / 1e5;
        square += z * z / 1e5;
        expo += kf_rng_exponential(&c) / 1e5;
        assert_true(kf_rng_below(&b, 7) < 7);
    }
    /* five standard errors */
    assert_at_most(fabs(mean), 5 / sqrt(1e5));
    assert_at_most(fabs(square - 1), 5 * sqrt(2 / 1e5));
    assert_at_most(fabs(expo - 1), 5 / sqrt(1e5));
}

static void heap_order(void **state)
{
    kf_heap h = {0};
    kf_rng r = kf_rng_stream(1, KF_FOR_DATA, 0, 0);
    kf_heap_entry last = {0};

    (void)state;
    for (uint32_t i = 0; i < 500; i++)
        assert_ok(kf_heap_push(
            &h, (kf_heap_entry){.time = (kofn_time)kf_rng_below(&r, 20),
                                .task = i}));
    for (int i = 0; i < 500; i++) {
        kf_heap_entry e = kf_heap_pop(&h);
        if (i) {
            assert_true(e.time >= last.time);
            if (e.time == last.time)
                assert_true(e.task > last.task);
        }
        last = e;
    }
    assert_int_equal(h.count, 0);
    kf_free(h.entry);
}

/* Floors, errors and may_lie take the worst round, live workers the last one.
 */
static void reports_add_up(void **state)
{
    kofn_report sum = KOFN_REPORT_INIT;
    const kofn_report one = {.rounds = 1,
                             .took = 5,
                             .sent = 10,
                             .noise = 3,
                             .floor = 1e-9,
                             .liars = 2,
                             .live = 7},
                      two = {.rounds = 1,
                             .took = 6,
                             .sent = 1,
                             .noise = 2,
                             .floor = 1e-8,
                             .liars = 4,
                             .live = 6};

    (void)state;
    kf_report_add(&sum, &one);
    assert_int_equal(sum.liars, 2);
    kf_report_add(&sum, &two);
    assert_int_equal(sum.rounds, 2);
    assert_int_equal(sum.took, 11);
    assert_int_equal(sum.sent, 11);
    assert_true(sum.noise == 3);
    assert_true(sum.floor == 1e-8);
    assert_int_equal(sum.liars, 2);
    assert_int_equal(sum.live, 6);
    kf_report_add(&sum, &(kofn_report){.rounds = 1, .liars = 0});
    assert_int_equal(sum.liars, 0);
}

/* A struct of a caller that was compiled before it grew, or after; and one
 * that was not initialised. */
static void structs_of_other_sizes(void **state)
{
    typedef struct grown {
        size_t size;
        int a, b;
        double c;
    } grown;
    struct {
        grown now;
        double later;
    } longer = {{sizeof longer, 4, 5, 6}, 7};
    grown all = {sizeof all, 1, 2, 3}, shorter = {offsetof(grown, b), 8, 9, 10},
          none = {0};

    (void)state;
    assert_ok(kf_given(&all, sizeof all, NULL, "GROWN_INIT"));
    assert_true(all.a == 1 && all.b == 2 && all.c == 3);
    assert_ok(kf_given(&all, sizeof all, &shorter, "GROWN_INIT"));
    assert_true(all.a == 8 && all.b == 2 && all.c == 3);
    assert_int_equal(all.size, sizeof all);
    assert_ok(kf_given(&all, sizeof all, &longer, "GROWN_INIT"));
    assert_true(all.a == 4 && all.b == 5 && all.c == 6);
    assert_int_equal(all.size, sizeof all);
    assert_status(KOFN_INVAL, kf_given(&all, sizeof all, &none, "GROWN_INIT"));
    assert_non_null(strstr(kofn_errmsg(), "GROWN_INIT"));
    assert_true(all.a == 4);
}

/* A number is drawn once, and numbers differ; long requests are filled to the
 * end. */
static void numbers_of_the_system(void **state)
{
    uint64_t a = 0, b = 0, was;
    uint64_t *many = kf_zero(ROOM, sizeof *many);

    (void)state;
    assert_non_null(many);
    assert_ok(kf_entropy_number(&a));
    assert_ok(kf_entropy_number(&b));
    assert_true(a != 0 && b != 0 && a != b);
    was = a;
    assert_ok(kf_entropy_number(&a));
    assert_true(a == was);
    assert_ok(kf_entropy(many, ROOM * sizeof *many));
    assert_true(many[0] != 0 && many[ROOM - 1] != 0);
    kf_free(many);
}

TEST_FILE(base_test)
{
    const struct CMUnitTest tests[] = {
        TEST(messages, "base: a failure keeps its message until the next one"),
        TEST(overflow_is_no_memory,
             "base: a size that overflows fails like missing memory"),
        TEST(growth, "base: an array grows and keeps its elements"),
        TEST(huge_pages,
             "base: allocations of 4 MiB and more ask for huge pages"),
        TEST(philox, "base: philox4x32-10 gives Random123's known answer"),
        TEST(
            random_streams,
            "base: random streams repeat and are independent (mean, variance)"),
        TEST(numbers_of_the_system,
             "base: numbers of the system are drawn once, and differ"),
        TEST(heap_order,
             "base: the heap orders by time and breaks ties by arrival"),
        TEST(reports_add_up, "base: reports of rounds add up"),
        TEST(structs_of_other_sizes,
             "base: structs of older and newer callers work; raw ones fail"),
    };

    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
