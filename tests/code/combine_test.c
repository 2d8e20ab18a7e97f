/* combine_test.c -- the dot-product engine, at every SIMD level of this
 * machine, against sums in long double and against its documented properties.
 */
#define _DEFAULT_SOURCE
#include "support.h"

#include "base/base.h"
#include "base/rng.h"
#include "code/combine.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const levels[] = {"plain", "avx2", "avx512"};
#define LEVELS (sizeof levels / sizeof levels[0])

#define GAP 80 /* checked bytes before and after a destination */
#define MARK 0xa5

static kf_rng rng;

static size_t size_of(kofn_dtype dtype)
{
    return dtype == KOFN_F32 ? sizeof(float) : sizeof(double);
}

static double element(const void *p, size_t t, kofn_dtype dtype)
{
    float narrow;
    double x;

    if (dtype == KOFN_F64) {
        memcpy(&x, (const char *)p + t * sizeof x, sizeof x);
        return x;
    }
    memcpy(&narrow, (const char *)p + t * sizeof narrow, sizeof narrow);
    return (double)narrow;
}

static void set_element(void *p, size_t t, kofn_dtype dtype, double x)
{
    float narrow = (float)x;

    if (dtype == KOFN_F64)
        memcpy((char *)p + t * sizeof x, &x, sizeof x);
    else
        memcpy((char *)p + t * sizeof narrow, &narrow, sizeof narrow);
}

/* ---- problems ------------------------------------------------------------ */

typedef struct problem {
    size_t m, k, ldd, len, size;
    kofn_dtype dtype;
    double *D;
    const void **src;
    void **dst;
    char *sources, *outputs;
    size_t output_bytes;
} problem;

/* Places everything a random number of `unit` bytes off any alignment. The
 * gaps between rows of D hold NaN. */
static problem make(size_t m, size_t k, size_t len, kofn_dtype dtype,
                    size_t unit)
{
    size_t size = size_of(dtype), room = len * size + 2 * GAP + 64, at = 0;
    problem p = {.m = m,
                 .k = k,
                 .ldd = k + kf_rng_below(&rng, 4),
                 .len = len,
                 .size = size,
                 .dtype = dtype,
                 .output_bytes = m * room};

    p.D = kf_new(m * p.ldd + 1, sizeof *p.D);
    p.src = kf_new(k, sizeof *p.src);
    p.dst = kf_new(m, sizeof *p.dst);
    p.sources = kf_new(k, room);
    p.outputs = kf_new(m, room);
    assert_true(p.D && p.src && p.dst && p.sources && p.outputs);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < p.ldd; j++)
            p.D[i * p.ldd + j] =
                j < k ? 2 * kf_rng_uniform(&rng) - 1 : (double)NAN;
    for (size_t j = 0; j < k; j++) {
        char *s = p.sources + j * room + unit * kf_rng_below(&rng, 64 / unit);

        p.src[j] = s;
        for (size_t t = 0; t < len; t++)
            set_element(s, t, dtype, 2 * kf_rng_uniform(&rng) - 1);
    }
    for (size_t i = 0; i < m; i++, at += room)
        p.dst[i] = p.outputs + at + GAP + unit * kf_rng_below(&rng, 64 / unit);
    return p;
}

static void drop(problem *p)
{
    kf_free(p->D);
    kf_free(p->src);
    kf_free(p->dst);
    kf_free(p->sources);
    kf_free(p->outputs);
}

/* Checks an output against the header's bound. */
static void check_output(const problem *p, size_t i)
{
    for (size_t t = 0; t < p->len; t++) {
        double got = element(p->dst[i], t, p->dtype);
        long double sum = 0, slack = 0;

        for (size_t j = 0; j < p->k; j++) {
            double c = p->D[i * p->ldd + j];

            if (c != 0) {
                long double x = element(p->src[j], t, p->dtype);

                sum += c * x;
                slack += fabsl(c * x) * (long double)(p->k + 1) * 0x1p-53L;
            }
        }
        if (p->dtype == KOFN_F32) {
            float narrow = fabsf((float)got);

            slack += (nextafterf(narrow, INFINITY) - narrow) / 2;
        }
        if (!(fabsl(got - sum) <= slack))
            fail_msg("%s float%zu %zux%zu, len %zu: output %zu[%zu] = %.17g is "
                     "off by %Lg, not %Lg",
                     kf_combine_level(), 8 * p->size, p->m, p->k, p->len, i, t,
                     got, fabsl(got - sum), slack);
    }
}

/* Checks that all outputs are right and nothing else was written. */
static void check(const problem *p)
{
    const char *at = p->outputs;

    for (size_t i = 0; i <= p->m; i++) {
        const char *end = i < p->m ? p->dst[i] : p->outputs + p->output_bytes;

        for (; at < end; at++)
            if ((unsigned char)*at != MARK)
                fail_msg("%s float%zu %zux%zu, len %zu: written at %td from "
                         "output %zu",
                         kf_combine_level(), 8 * p->size, p->m, p->k, p->len,
                         at - end, i);
        at = end + p->len * p->size;
        if (i < p->m)
            check_output(p, i);
    }
}

static void run_and_check(const problem *p)
{
    memset(p->outputs, MARK, p->output_bytes);
    kf_combine(&(kf_combination){p->m, p->k, p->D, p->ldd, p->src, p->dst},
               p->len, p->dtype);
    check(p);
}

static void all_levels(size_t m, size_t k, size_t len, bool any_byte)
{
    for (kofn_dtype dtype = KOFN_F64; dtype <= KOFN_F32; dtype++) {
        problem p = make(m, k, len, dtype, any_byte ? 1 : size_of(dtype));

        for (size_t l = 0; l < LEVELS; l++)
            if (kf_combine_use(levels[l]))
                run_and_check(&p);
        drop(&p);
    }
}

/* Calls f for each level and type. */
static void for_each_level(void (*f)(kofn_dtype dtype))
{
    for (size_t l = 0; l < LEVELS; l++) {
        if (kf_combine_use(levels[l])) {
            f(KOFN_F64);
            f(KOFN_F32);
        }
    }
}

/* ---- numbers ------------------------------------------------------------- */

static void every_length(void **state)
{
    const size_t ms[] = {1, 2, 3, 4, 5, 6, 7, 13}, ks[] = {0, 1, 2, 5};

    (void)state;
    for (size_t a = 0; a < sizeof ms / sizeof ms[0]; a++)
        for (size_t b = 0; b < sizeof ks / sizeof ks[0]; b++)
            for (size_t len = 0; len <= 200; len++)
                all_levels(ms[a], ks[b], len, false);
}

static void small_shapes(void **state)
{
    (void)state;
    for (size_t m = 1; m <= 9; m++)
        for (size_t k = 1; k <= 45; k += k < 16 ? 1 : 3)
            all_levels(m, k, 40 + kf_rng_below(&rng, 60), false);
}

static void large_shapes(void **state)
{
    const size_t shape[][3] = {{1, 1, 100000}, {4, 16, 20000}, {32, 32, 1500},
                               {64, 300, 200}, {7, 1000, 150}, {1, 30, 9000},
                               {2, 30, 5000},  {6, 70, 3000},  {300, 7, 200},
                               {270, 270, 70}, {257, 300, 33}};

    (void)state;
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
        all_levels(shape[i][0], shape[i][1], shape[i][2], false);
}

/* Random shapes; KOFN_TEST_SCALE sets their number. */
static void random_shapes(void **state)
{
    (void)state;
    for (int trial = 0; trial < (int)(30 * test_scale()); trial++)
        all_levels(1 + kf_rng_below(&rng, 40), kf_rng_below(&rng, 80),
                   kf_rng_below(&rng, 600), trial % 2);
}

/* One call, and calls for pieces of random length, give the same bits. */
static void check_pieces(kofn_dtype dtype)
{
    for (int trial = 0; trial < 20; trial++) {
        problem p = make(1 + kf_rng_below(&rng, 9), kf_rng_below(&rng, 60),
                         1 + kf_rng_below(&rng, 2000), dtype, size_of(dtype));
        const void **src = kf_new(p.k, sizeof *src);
        void **dst = kf_new(p.m, sizeof *dst);
        char *keep = kf_new(p.output_bytes, 1);

        assert_true(src && dst && keep);
        memset(p.outputs, MARK, p.output_bytes);
        kf_combine(&(kf_combination){p.m, p.k, p.D, p.ldd, p.src, p.dst}, p.len,
                   dtype);
        memcpy(keep, p.outputs, p.output_bytes);
        memset(p.outputs, MARK, p.output_bytes);
        for (size_t t = 0, n; t < p.len; t += n) {
            n = kf_min(p.len - t, 1 + kf_rng_below(&rng, 300));
            for (size_t j = 0; j < p.k; j++)
                src[j] = (const char *)p.src[j] + t * p.size;
            for (size_t i = 0; i < p.m; i++)
                dst[i] = (char *)p.dst[i] + t * p.size;
            if (trial % 2)
                kf_combine_part(&(kf_combine_tile){.m = p.m,
                                                   .k = p.k,
                                                   .ldd = p.ldd,
                                                   .D = p.D,
                                                   .len = n,
                                                   .dtype = dtype,
                                                   .far = trial % 4 == 1},
                                src, dst);
            else
                kf_combine(&(kf_combination){p.m, p.k, p.D, p.ldd, src, dst}, n,
                           dtype);
        }
        kf_combine_done();
        assert_memory_equal(keep, p.outputs, p.output_bytes);
        kf_free(src);
        kf_free(dst);
        kf_free(keep);
        drop(&p);
    }
}

static void pieces_change_no_bit(void **state)
{
    (void)state;
    for_each_level(check_pieces);
}

/* The output is so long that it goes around the cache; sources share memory.
 * Compared with the same in pieces, which are checked above. */
static void check_far(size_t m, size_t k, size_t len, kofn_dtype dtype)
{
    size_t size = size_of(dtype), room = len * size + 2 * GAP, piece = 10007;
    char *in = kf_new(len + k, size), *out = kf_new(m, room);
    char *want = kf_new(m, piece * size);
    const void *src[64], *s[64];
    void *dst[8], *w[8];
    double D[64 * 8];

    assert_true(in && out && want && (m + k) * len * size > 32 << 20);
    for (size_t i = 0; i < m * k; i++)
        D[i] = 2 * kf_rng_uniform(&rng) - 1;
    for (size_t t = 0; t < len + k; t++)
        set_element(in, t, dtype, (double)(t * 2654435761u % 8191) / 4096 - 1);
    for (size_t j = 0; j < k; j++)
        src[j] = in + (j * 7 % k) * size;
    for (size_t i = 0; i < m; i++) { /* some have the same alignment */
        dst[i] = out + i * room + (i % 3) * size + 24;
        w[i] = want + i * piece * size;
    }
    memset(out, MARK, m * room);
    kf_combine(&(kf_combination){m, k, D, k, src, dst}, len, dtype);
    for (size_t t = 0; t < len; t += piece) {
        size_t n = kf_min(piece, len - t);

        for (size_t j = 0; j < k; j++)
            s[j] = (const char *)src[j] + t * size;
        kf_combine(&(kf_combination){m, k, D, k, s, w}, n, dtype);
        for (size_t i = 0; i < m; i++)
            assert_memory_equal((char *)dst[i] + t * size, w[i], n * size);
    }
    for (size_t i = 0; i < m; i++) {
        const char *end = (char *)dst[i] + len * size;

        for (size_t b = 1; b <= 24; b++)
            assert_int_equal(((unsigned char *)dst[i])[-(ptrdiff_t)b], MARK);
        for (size_t b = 0; b < 100; b++)
            assert_int_equal((unsigned char)end[b], MARK);
    }
    kf_free(in);
    kf_free(out);
    kf_free(want);
}

static void far(kofn_dtype dtype)
{
    size_t len = (32 << 20) / size_of(dtype);

    check_far(1, 13, len / 14 + 1001, dtype);
    check_far(5, 3, len / 8 + 77, dtype);
    check_far(8, 2, len / 10 + 1, dtype);
}

static void around_the_cache(void **state)
{
    (void)state;
    for_each_level(far);
}

/* ---- touched memory -------------------------------------------------------
 */

static size_t page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Returns one page between two inaccessible ones. */
static char *put_up(void)
{
    char *p =
        mmap(NULL, 3 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + page(), page(), PROT_READ | PROT_WRITE), 0);
    return p + page();
}

static void take_down(char *p)
{
    munmap(p - page(), 3 * page());
}

static void check_fenced(kofn_dtype dtype)
{
    enum { M = 7, K = 3 };
    double D[M * K];
    char *in = put_up(), *out[M];
    const void *src[K];
    void *dst[M];

    for (size_t i = 0; i < M * K; i++)
        D[i] = 1 + (double)i;
    for (size_t i = 0; i < M; i++)
        out[i] = put_up();
    for (size_t m = 1; m <= M; m++) {
        for (size_t len = 1; len < 80; len++) {
            size_t rest = page() - len * size_of(dtype);

            for (size_t j = 0; j < K; j++)
                src[j] = in + (j % 2 ? rest : 0);
            for (size_t i = 0; i < m; i++)
                dst[i] = out[i] + ((len + i) % 2 ? rest : 0);
            kf_combine(&(kf_combination){m, K, D, K, src, dst}, len, dtype);
        }
    }
    take_down(in);
    for (size_t i = 0; i < M; i++)
        take_down(out[i]);
}

static void touches_nothing_else(void **state)
{
    (void)state;
    for_each_level(check_fenced);
}

/* Sources without a coefficient are inaccessible; then all are. */
static void check_unread(kofn_dtype dtype)
{
    const size_t ks[] = {4, 40, 300};
    char *wall = put_up();

    for (size_t a = 0; a < 3; a++) {
        problem p = make(9, ks[a], 100, dtype, size_of(dtype));

        for (size_t j = 0; j < p.k; j++) {
            if (j % 5 != 1 && (j <= 10 || j >= 50) && j + 1 != p.k)
                continue;
            for (size_t i = 0; i < p.m; i++)
                p.D[i * p.ldd + j] = i % 2 ? 0.0 : -0.0;
            p.src[j] = wall - 64;
        }
        run_and_check(&p);
        memset(p.D, 0, p.m * p.ldd * sizeof *p.D);
        for (size_t j = 0; j < p.k; j++)
            p.src[j] = wall - 64;
        run_and_check(&p);
        drop(&p);
    }
    take_down(wall);
}

static void zero_columns_are_not_read(void **state)
{
    (void)state;
    for_each_level(check_unread);
}

/* A source that one row uses is read by all rows: 0 * inf is NaN. */
static void check_special(kofn_dtype dtype)
{
    const double nan = (double)NAN, inf = (double)INFINITY;
    const double D[] = {1, 0, 2, 0, 0, 1, inf, 0, -1, 0, 0, nan};
    double big = dtype == KOFN_F32 ? (double)3e38f : 1.7e308;
    char in[4][100 * sizeof(double)], out[3][100 * sizeof(double)];
    const void *src[] = {in[0], in[1], in[2], in[3]};
    void *dst[] = {out[0], out[1], out[2]};

    for (size_t j = 0; j < 4; j++)
        for (size_t t = 0; t < 100; t++)
            set_element(in[j], t, dtype, 1);
    set_element(in[0], 17, dtype, inf);
    set_element(in[1], 18, dtype, nan);
    set_element(in[0], 99, dtype, big);
    set_element(in[2], 99, dtype, big);
    kf_combine(&(kf_combination){3, 4, D, 4, src, dst}, 100, dtype);
    for (size_t t = 0; t < 100; t++) {
        double x = element(out[0], t, dtype), y = element(out[1], t, dtype);

        if (t == 17)
            assert_true(x == inf && isnan(y));
        else if (t == 18)
            assert_true(isnan(x) && isnan(y));
        else
            assert_true(x == (t == 99 ? inf : 3) && y == inf);
        assert_true(isnan(element(out[2], t, dtype)));
    }
}

static void infinities_and_nan_go_through(void **state)
{
    (void)state;
    for_each_level(check_special);
}

/* ---- the call ------------------------------------------------------------ */

static void nothing_to_do(void **state)
{
    double x[3] = {1, 2, 3}, D[2] = {5, 6};
    const void *src[] = {x};
    void *dst[] = {x + 1};

    (void)state;
    kf_combine(&(kf_combination){0, 1, D, 1, src, NULL}, 1, KOFN_F64);
    kf_combine(&(kf_combination){1, 1, D, 1, src, dst}, 0, KOFN_F64);
    kf_combine(&(kf_combination){0, 0, NULL, 0, NULL, NULL}, 0, KOFN_F32);
    assert_true(x[0] == 1 && x[1] == 2 && x[2] == 3);
    kf_combine(&(kf_combination){1, 0, NULL, 0, NULL, dst}, 2, KOFN_F64);
    assert_true(x[0] == 1 && x[1] == 0 && x[2] == 0);
}

/* ---- levels and threads -------------------------------------------------- */

/* True if a process that has used no level takes the best one up to levels[l].
 */
static bool starts_with(const char *variable, size_t l)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        const char *level;

        unsetenv("KOFN_SIMD");
        if (variable)
            setenv("KOFN_SIMD", variable, 1);
        level = kf_combine_level();
        while (!kf_combine_use(levels[l]))
            l--;
        _exit(strcmp(level, levels[l]) != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void environment_lowers_level(void **state)
{
    (void)state;
    assert_true(starts_with("plain", 0));
    assert_true(starts_with("avx2", 1));
    assert_true(starts_with("avx512", 2));
    assert_true(starts_with("nonsense", 2));
    assert_true(starts_with(NULL, 2));
}

static void level_by_name(void **state)
{
    (void)state;
    for (size_t l = 0; l < LEVELS; l++)
        if (kf_combine_use(levels[l]))
            assert_string_equal(kf_combine_level(), levels[l]);
    assert_true(kf_combine_use("plain"));
    assert_false(kf_combine_use("avx1024"));
    assert_string_equal(kf_combine_level(), "plain");
}

static void *combine_often(void *arg)
{
    const problem *p = arg;

    for (int i = 0; i < 20; i++)
        kf_combine(&(kf_combination){p->m, p->k, p->D, p->ldd, p->src, p->dst},
                   p->len, p->dtype);
    return NULL;
}

/* This is the first use in this process, so the threads choose the level. */
static void two_threads(void **state)
{
    problem p[2] = {make(70, 40, 300, KOFN_F64, 8),
                    make(5, 90, 3000, KOFN_F32, 4)};
    pthread_t thread[2];
    void *failed;

    (void)state;
    for (int i = 0; i < 2; i++) {
        memset(p[i].outputs, MARK, p[i].output_bytes);
        assert_int_equal(pthread_create(&thread[i], NULL, combine_often, &p[i]),
                         0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(thread[i], &failed), 0);
        assert_null(failed);
    }
    for (int i = 0; i < 2; i++) {
        check(&p[i]);
        drop(&p[i]);
    }
}

TEST_FILE(combine_test)
{
    const struct CMUnitTest tests[] = {
        TEST(environment_lowers_level,
             "engine: KOFN_SIMD lowers the SIMD level"), /* before any use */
        TEST(two_threads,
             "engine: two threads choose the level at the same time"), /* the
                                                                          first
                                                                          use */
        TEST(level_by_name, "engine: a level is set by its name"),
        TEST(every_length,
             "engine: every length is right (every level and type)"),
        TEST(small_shapes, "engine: every small shape is right"),
        TEST(large_shapes, "engine: large shapes are right"),
        TEST(random_shapes, "engine: random shapes are right"),
        TEST(pieces_change_no_bit,
             "engine: computing in pieces changes no bit"),
        TEST(around_the_cache,
             "engine: outputs written around the cache are right"),
        TEST(touches_nothing_else,
             "engine: no byte outside sources and outputs is touched"),
        TEST(zero_columns_are_not_read,
             "engine: sources with coefficients 0 are not read"),
        TEST(infinities_and_nan_go_through,
             "engine: infinities and NaN spread as in plain sums"),
        TEST(nothing_to_do, "engine: empty calls do nothing"),
    };

    rng = kf_rng_stream(1, KF_FOR_DATA, 7, 0);
    count_allocations();
    return cmocka_run_group_tests_name("combine", tests, NULL, NULL);
}
