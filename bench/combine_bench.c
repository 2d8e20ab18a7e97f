/* combine_bench.c -- the dot-product engine against the machine's limits.
 *
 * Bound by memory: the figure is bytes moved per second; each source is read
 * once, each output written once. It is divided by the best of three plain
 * ways to move the same bytes between the same addresses: memcpy, a scaling
 * loop, a triad. Both sides count the bytes a program asks for. Lines that are
 * read only to be written count for neither.
 *
 * With many sources nearly all of that is reading. A core reads less per
 * second than it copies, because stores around the cache do not wait. `read`
 * is the speed of plain sums of one stream.
 *
 * Bound by arithmetic: operations per second in the second-level cache, over
 * DGEMM of the same shape on one core, and over DGEMM of a large one.
 *
 * The compared values are measured in turn, in processor time of this thread,
 * and ratios are taken turn by turn. Prints their median, least and greatest.
 * A turn bound by memory runs the engine three times, once after each plain
 * way. The best of each side counts, and each run begins with caches full of
 * other, clean data.
 *
 *     combine_bench [--memory | --compute] [REPETITIONS] */
#include "bench.h"

#include "code/combine.h"

#include <cblas.h>

#define MIB ((size_t)1 << 20)
#define WASH (128 * MIB) /* far more than the caches hold */

static int reps = 7;

static void fill(void *p, size_t n, kofn_dtype dtype)
{
    for (size_t i = 0; i < n; i++) {
        double x = (double)(i * 2654435761u % 4093) / 2048 - 1;

        if (dtype == KOFN_F32)
            ((float *)p)[i] = (float)x;
        else
            ((double *)p)[i] = x;
    }
}

/* ---- bound by memory ----------------------------------------------------- */

typedef double wide __attribute__((vector_size(64)));

static void scale(wide *restrict to, const wide *restrict from, size_t n,
                  double c)
{
    for (size_t i = 0; i < n; i++)
        to[i] = c * from[i];
}

static void triad(wide *restrict to, const wide *restrict a,
                  const wide *restrict b, size_t n, double c)
{
    for (size_t i = 0; i < n; i++)
        to[i] = a[i] + c * b[i];
}

static double sum(const wide *a, size_t n)
{
    wide s[4] = {{0}};
    double total = 0;

    for (size_t i = 0; i + 4 <= n; i += 4)
        for (size_t j = 0; j < 4; j++)
            s[j] += a[i + j];
    for (size_t j = 0; j < 4; j++)
        total += s[j][0] + s[j][7];
    return total;
}

static volatile double sink, one = 1;

static void wash(void)
{
    static wide *other;

    if (!other) {
        other = need(WASH);
        memset(other, 0, WASH);
    }
    sink = sum(other, WASH / sizeof *other);
}

/* Returns the seconds of one of four ways to move about `bytes`. Sets *moved
 * to the bytes it moved. */
static double run_plain(int way, char *arena, size_t bytes, size_t *moved)
{
    size_t half = bytes / 2 / 64, third = bytes / 3 / 64;
    wide *w = (void *)arena;
    double t;

    *moved = half * 128;
    wash();
    t = cpu_now();
    switch (way) {
    case 0:
        memcpy(w + half, w, half * 64);
        break;
    case 1:
        scale(w + half, w, half, one);
        break;
    case 2:
        *moved = third * 192;
        triad(w + 2 * third, w, w + third, third, one / 2);
        break;
    default:
        *moved = bytes / 64 * 64;
        sink = sum(w, bytes / 64);
    }
    return cpu_now() - t;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

typedef struct turn {
    double combine, plain, read; /* bytes per second */
} turn;

static turn memory_turn(size_t m, size_t k, const void *const *src,
                        void *const *dst, size_t bytes, kofn_dtype dtype,
                        char *arena)
{
    size_t size = dtype == KOFN_F32 ? 4 : 8, all = (m + k) * bytes, moved;
    double D[64], t;
    turn best = {0};

    fill(D, 64, KOFN_F64);
    for (int way = 0; way < 3; way++) {
        t = run_plain(way, arena, all, &moved);
        best.plain = larger(best.plain, (double)moved / t);
        wash();
        t = cpu_now();
        kf_combine(&(kf_combination){m, k, D, k, src, dst}, bytes / size,
                   dtype);
        best.combine = larger(best.combine, (double)all / (cpu_now() - t));
    }
    t = run_plain(3, arena, all, &moved);
    best.read = (double)moved / t;
    return best;
}

static void memory_case(size_t m, size_t k, size_t bytes, kofn_dtype dtype)
{
    double ratio[MOST], speed[MOST], plain[MOST], read[MOST], mid;
    size_t size = dtype == KOFN_F32 ? 4 : 8;
    char *arena = need((m + k) * bytes);
    const void *src[16];
    void *dst[4];

    fill(arena, (m + k) * bytes / size, dtype);
    for (size_t j = 0; j < k; j++)
        src[j] = arena + j * bytes;
    for (size_t i = 0; i < m; i++)
        dst[i] = arena + (k + i) * bytes;
    memory_turn(m, k, src, dst, bytes, dtype, arena);
    for (int r = 0; r < reps; r++) {
        turn t = memory_turn(m, k, src, dst, bytes, dtype, arena);

        speed[r] = t.combine;
        plain[r] = t.plain;
        read[r] = t.read;
        ratio[r] = t.combine / t.plain;
    }
    free(arena);
    mid = median(ratio, reps);
    figure(mid, "", "more", "memory m %zu, k %zu, %zu MiB, float%zu", m, k,
           bytes / MIB, size * 8);
    printf("%4zu %4zu %7zu   float%zu %9.1f %9.1f %9.1f %8.2f "
           " %.2f..%.2f\n",
           m, k, bytes / MIB, size * 8, median(speed, reps) * 1e-9,
           median(plain, reps) * 1e-9, median(read, reps) * 1e-9, mid, ratio[0],
           ratio[reps - 1]);
    fflush(stdout);
}

static void memory_cases(void)
{
    printf("bound by memory: GB/s\n   m    k     MiB   type     combine "
           "    plain      read    ratio  min..max\n");
    for (int type = 0; type < 2; type++)
        for (size_t k = 3; k <= 16; k = k == 3 ? 8 : 2 * k)
            for (size_t m = 1; m <= 4; m++)
                memory_case(m, k, 8 * MIB, type ? KOFN_F32 : KOFN_F64);
}

/* ---- bound by arithmetic ------------------------------------------------- */

static void gemm(const double *D, const double *S, double *C, size_t m,
                 size_t n, size_t k)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n,
                (int)k, 1, D, (int)k, S, (int)n, 0, C, (int)n);
}

/* Returns one core's operations per second on n x n matrices. */
static double large_gemm(size_t n)
{
    static double *a;
    double t;

    if (!a) {
        a = need(3 * n * n * sizeof *a);
        fill(a, 3 * n * n, KOFN_F64);
        gemm(a, a + n * n, a + 2 * n * n, n, n, n);
    }
    t = cpu_now();
    gemm(a, a + n * n, a + 2 * n * n, n, n, n);
    return 2 * (double)(n * n * n) / (cpu_now() - t);
}

static void compute_case(size_t m, size_t len, kofn_dtype dtype)
{
    double ratio[MOST], to_large[MOST], speed[MOST], same[MOST], mid;
    size_t k = m, size = dtype == KOFN_F32 ? 4 : 8;
    double *D = need(m * k * 8), *S = need(k * len * 8), *C = need(m * len * 8);
    char *sources = need(k * len * size), *outputs = need(m * len * size);
    double work = 2 * (double)(m * k * len);
    int times = (int)(2e8 / work) + 1;
    const void *src[128];
    void *dst[128];

    fill(D, m * k, KOFN_F64);
    fill(S, k * len, KOFN_F64);
    fill(sources, k * len, dtype);
    for (size_t j = 0; j < k; j++)
        src[j] = sources + j * len * size;
    for (size_t i = 0; i < m; i++)
        dst[i] = outputs + i * len * size;
    for (int r = -1; r < reps; r++) {
        double large = large_gemm(1024), t[3];

        t[0] = cpu_now();
        for (int i = 0; i < times; i++)
            kf_combine(&(kf_combination){m, k, D, k, src, dst}, len, dtype);
        t[1] = cpu_now();
        for (int i = 0; i < times; i++)
            gemm(D, S, C, m, len, k);
        t[2] = cpu_now();
        if (r < 0)
            continue;
        speed[r] = work * times / (t[1] - t[0]);
        same[r] = work * times / (t[2] - t[1]);
        ratio[r] = speed[r] / same[r];
        to_large[r] = speed[r] / large;
    }
    mid = median(ratio, reps);
    figure(mid, "", "more", "compute m %zu, k %zu, length %zu, float%zu", m, k,
           len, size * 8);
    printf("%4zu %4zu %7zu   float%zu %9.1f %9.1f %9.2f %8.2f "
           " %.2f..%.2f\n",
           m, k, len, size * 8, median(speed, reps) * 1e-9,
           median(same, reps) * 1e-9, median(to_large, reps), mid, ratio[0],
           ratio[reps - 1]);
    free(D), free(S), free(C), free(sources), free(outputs);
}

static void compute_cases(void)
{
    printf("bound by arithmetic, in cache: GF/s\n   m    k     len   type  "
           "   combine     DGEMM  to large    ratio  min..max\n");
    for (int type = 0; type < 2; type++)
        for (size_t m = 32; m <= 128; m *= 2)
            compute_case(m, 32000 / m / 8 * 8, type ? KOFN_F32 : KOFN_F64);
}

/* ---- the machine --------------------------------------------------------- */

int main(int argc, char **argv)
{
    bool memory = true, compute = true;
    kofn_machine m = KOFN_MACHINE_INIT;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--memory"))
            compute = false;
        else if (!strcmp(argv[i], "--compute"))
            memory = false;
        else
            reps = atoi(argv[i]);
    }
    if (reps < 1 || reps > MOST) {
        fprintf(stderr,
                "usage: combine_bench [--memory | --compute] "
                "[REPETITIONS up to %d]\n",
                MOST);
        return 2;
    }
    blas_threads(1);
    kofn_machine_info(&m);
    printf("SIMD %s, %s on one thread, median of %d\n", m.simd, m.blas, reps);
    if (memory) {
        printf("\n");
        memory_cases();
    }
    if (compute) {
        printf("\n");
        compute_cases();
    }
    return 0;
}
