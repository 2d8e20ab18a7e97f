/* costs.c -- measures what this machine's operations cost.
 *
 * Owns its matrices, threads and a small job during a call. */
#include "dry.h"

#include "base/clock.h"
#include "code/combine.h"
#include "code/operation.h"
#include "data/kernel.h"
#include "mat/mat.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define ROOM ((size_t)64 << 20)  /* bytes of a sample */
#define LEAST (KOFN_SECOND / 10) /* of one measurement */
#define TIMES 1000               /* most repetitions, and ... */
#define LEAST_TIMES 3            /* ... least */
#define THREADS 64
#define SOURCES 8 /* of a combination, and ... */
#define OUTPUTS 4 /* ... what it makes of them */

/* Products of blocks that a thread makes one after the other, as the workers of
 * a core do. */
typedef struct sample {
    kofn_matrix A, B, C; /* A: all blocks, below each other */
    size_t rows;         /* of a block */
    const kf_kernel *kernel;
    kofn_time took; /* for one */
    kofn_status status;
} sample;

static kofn_status fill(kofn_matrix *m, size_t rows, size_t cols,
                        kofn_dtype dtype)
{
    void *data = kf_new(rows * cols, kf_dtype_size(dtype));

    if (!data)
        return KOFN_NOMEM;
    *m = (kofn_matrix){data, rows, cols, cols, dtype};
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            kf_mat_put(m, i, j, 1 + (double)((i + j) % 7) / 8);
    return KOFN_OK;
}

/* Multiplies block i by the kernel of workers. */
static void multiply(sample *s, size_t i)
{
    size_t blocks = s->A.rows / s->rows;
    kofn_matrix A = s->A;
    kf_block b = {.components = 1,
                  .rows = s->rows,
                  .cols = A.cols,
                  .dtype = A.dtype,
                  .component = &A};
    kf_work w = {.in = &s->B, .out = &s->C, .hi = s->rows};

    A.data = kf_at(&s->A, i % blocks * s->rows, 0);
    A.rows = s->rows;
    if (!s->status)
        s->status = s->kernel->dense(&b, &w);
}

static int by_time(const void *a, const void *b)
{
    kofn_time x = *(const kofn_time *)a, y = *(const kofn_time *)b;

    return (x > y) - (x < y);
}

/* Multiplies again and again, and keeps the median time. */
static void *repeat(void *ud)
{
    sample *s = ud;
    kofn_time took[TIMES], begin = kf_clock(), last = begin;
    size_t n = 0;

    multiply(s, 0); /* warm */
    while (n < TIMES && (n < LEAST_TIMES || last - begin < LEAST)) {
        kofn_time before = kf_clock();

        multiply(s, n);
        last = kf_clock();
        took[n++] = last - before;
    }
    qsort(took, n, sizeof *took, by_time);
    s->took = took[n / 2];
    return NULL;
}

/* Sets the shapes of the blocks of a thread's workers, as far as there is
 * room. */
static kofn_status shape(sample *s, const kofn_problem *pb, size_t workers,
                         size_t threads)
{
    const kf_operation *op = kf_operation_of(pb->op);
    bool sum = op->factors == 0;
    size_t each = kf_dtype_size(pb->dtype), blocks, cols, p;

    cols = kf_max(1, kf_min(sum ? 1024 : pb->n, ROOM / each));
    s->kernel = kf_kernel_of(op->whole ? KF_HOW_GRAM : KF_HOW_ROWS);
    s->rows = kf_min(kf_ceil_div(pb->m, workers), ROOM / each / cols);
    s->rows = kf_max(1, s->rows);
    blocks =
        kf_min(kf_ceil_div(workers, threads), ROOM / each / cols / s->rows);
    p = sum ? 1 : pb->p;
    p = kf_max(1, kf_min(p, ROOM / each / kf_max(s->rows, cols)));
    TRY(fill(&s->A, s->rows * kf_max(1, blocks), cols, pb->dtype));
    TRY(fill(&s->B, cols, p, pb->dtype));
    return fill(&s->C, op->whole ? cols : s->rows, p, pb->dtype);
}

static double per_giga(const sample *s)
{
    return (double)s->took /
           ((double)s->rows * (double)s->A.cols * (double)s->B.cols);
}

/* Repeats the product on that number of threads at the same time. *cost is the
 * mean of seconds for 1e9 multiply-adds of a thread. */
static kofn_status products(double *cost, const kofn_problem *pb,
                            size_t workers, size_t threads)
{
    sample *s = kf_zero(threads, sizeof *s);
    pthread_t thread[THREADS];
    size_t begun = 0;
    kofn_status st = s ? KOFN_OK : KOFN_NOMEM;

    *cost = 0;
    for (size_t i = 0; i < threads && !st; i++)
        st = shape(&s[i], pb, workers, threads);
    while (!st && begun + 1 < threads &&
           !pthread_create(&thread[begun], NULL, repeat, &s[begun]))
        begun++;
    if (!st)
        repeat(&s[begun]);
    for (size_t i = 0; i < begun; i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 0; i <= begun && !st; i++) {
        st = s[i].status;
        *cost += per_giga(&s[i]) / (double)(begun + 1);
    }
    for (size_t i = 0; s && i < threads; i++) {
        kf_free(s[i].A.data);
        kf_free(s[i].B.data);
        kf_free(s[i].C.data);
    }
    kf_free(s);
    return st;
}

/* Measures encoding, decoding and copying. */
static kofn_status combinations(kofn_costs *c, kofn_dtype dtype)
{
    size_t len = ROOM / kf_dtype_size(dtype) / (SOURCES + OUTPUTS);
    double D[OUTPUTS * SOURCES];
    const void *src[SOURCES];
    void *dst[OUTPUTS];
    kofn_matrix all;
    kofn_time begin;

    TRY(fill(&all, SOURCES + OUTPUTS, len, dtype));
    for (size_t i = 0; i < SOURCES * OUTPUTS; i++)
        D[i] = 1 + (double)i;
    for (size_t i = 0; i < SOURCES; i++)
        src[i] = kf_at(&all, i, 0);
    for (size_t i = 0; i < OUTPUTS; i++)
        dst[i] = kf_at(&all, SOURCES + i, 0);
    begin = kf_clock();
    kf_combine(&(kf_combination){OUTPUTS, SOURCES, D, SOURCES, src, dst}, len,
               dtype);
    c->combine =
        (double)(kf_clock() - begin) / ((double)len * SOURCES * OUTPUTS);
    begin = kf_clock();
    memcpy(dst[0], src[0], len * kf_dtype_size(dtype));
    c->copy = (double)(kf_clock() - begin) /
              ((double)len * (double)kf_dtype_size(dtype));
    kf_free(all.data);
    return KOFN_OK;
}

/* Measures messages by a job in which they are all that takes time. */
static kofn_status messages(kofn_costs *c, size_t workers)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 4 * workers, 2, 1, KOFN_F64, false);
    kofn_matrix A = {NULL}, x = {NULL}, y = {NULL};
    kofn_plan *plan = NULL;
    kofn_port *port = NULL;
    kofn_job *job = NULL;
    kofn_time begin = 0;
    int n = 0;
    kofn_status st = fill(&A, pb.m, pb.n, KOFN_F64);

    st = st ? st : fill(&x, pb.n, 1, KOFN_F64);
    st = st ? st : fill(&y, pb.m, 1, KOFN_F64);
    st = st ? st : kofn_plan_new(&plan, &pb, "uncoded", workers, 1);
    st = st ? st : kofn_port_threads(&port, workers, NULL);
    st = st ? st : kofn_open(&job, plan, port, NULL);
    st = st ? st : kofn_place(job, &A);
    for (; !st && n < TIMES && (n == 0 || kf_clock() - begin < LEAST); n++) {
        st = kofn_round(job, &x, &y, NULL);
        if (n == 0)
            begin = kf_clock();
    }
    if (!st && n > 1)
        c->message = (double)(kf_clock() - begin) * 1e-9 / (n - 1) /
                     (2 * (double)workers);
    kofn_close(job);
    kofn_plan_free(plan);
    kf_free(A.data);
    kf_free(x.data);
    kf_free(y.data);
    return st;
}

kofn_status kofn_costs_measure(kofn_costs *out, const kofn_problem *pb,
                               size_t workers)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    kofn_costs c = KOFN_COSTS_INIT;
    int threads;
    kofn_status st;

    TRY(kf_begun(out, "KOFN_COSTS_INIT"));
    TRY(kf_dry_check(pb, workers));
    c.cores = cores > 0 ? (size_t)cores : 1;
    TRY(products(&c.plain, pb, 1, 1));
    threads = kf_blas_single();
    st = products(&c.work, pb, workers,
                  kf_min(kf_min(c.cores, workers), THREADS));
    kf_blas_restore(threads);
    TRY(st);
    TRY(combinations(&c, pb->dtype));
    TRY(messages(&c, kf_min(workers, THREADS)));
    kf_give(out, &c, sizeof c);
    return KOFN_OK;
}
