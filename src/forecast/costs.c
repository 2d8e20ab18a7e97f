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
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define ROOM ((size_t)64 << 20)  /* bytes of a sample */
#define LEAST (KOFN_SECOND / 10) /* of one measurement */
#define TIMES 1000               /* most repetitions, and ... */
#define LEAST_TIMES 3            /* ... least */
#define THREADS 64
#define A_CORE 4  /* threads of a core that take turns, as workers do */
#define SOURCES 8 /* of a combination, and ... */
#define OUTPUTS 4 /* ... what it makes of them */
#define FEW 5     /* measurements of combinations */

/* Products of blocks that a thread makes one after the other, as the workers of
 * a core do. */
typedef struct sample {
    kofn_matrix A, B, C; /* A: all blocks, below each other */
    size_t rows;         /* of a block */
    size_t factors;      /* times that a block is a factor of a product */
    bool alone;
    const kf_kernel *kernel;
    double took;  /* seconds for one, by the clock */
    double used;  /* processor time for one */
    double share; /* of a core that the thread had */
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

/* Multiplies again and again.  Keeps the median of the times by the clock, and
 * the mean processor time. */
static void *repeat(void *ud)
{
    sample *s = ud;
    kofn_time took[TIMES], begin, last, used;
    size_t n = 0;

    multiply(s, 0); /* warm */
    used = kf_cpu_time();
    begin = last = kf_clock();
    while (n < TIMES && (n < LEAST_TIMES || last - begin < LEAST)) {
        kofn_time before = last;

        multiply(s, n);
        last = kf_clock();
        took[n++] = last - before;
        if (!s->alone)
            sched_yield(); /* a worker's task begins after those of others */
    }
    used = kf_cpu_time() - used;
    qsort(took, n, sizeof *took, by_time);
    s->took = 1e-9 * (double)took[n / 2];
    s->used = 1e-9 * (double)used / (double)n;
    s->share = (double)used / (double)(last > begin ? last - begin : 1);
    return NULL;
}

/* Sets the shapes of the blocks of a thread's workers, within ROOM bytes.
 * Blocks are half as large again as parts of A, as those of usual codes are. */
static kofn_status shape(sample *s, const kofn_problem *pb, size_t workers,
                         size_t threads)
{
    const kf_operation *op = kf_operation_of(pb->op);
    bool sum = op->factors == 0;
    size_t room = ROOM / (threads > 1 ? A_CORE : 1) / kf_dtype_size(pb->dtype);
    size_t blocks, cols, p;

    cols = kf_max(1, kf_min(sum ? 1024 : pb->n, room));
    s->kernel = kf_kernel_of(op->whole ? KF_HOW_GRAM : KF_HOW_ROWS);
    s->factors = kf_max(1, op->factors);
    s->alone = threads == 1;
    s->rows = kf_ceil_div(s->alone ? pb->m : pb->m + pb->m / 2, workers);
    s->rows = kf_max(1, kf_min(s->rows, room / cols));
    blocks = kf_min(kf_ceil_div(workers, threads), room / cols / s->rows);
    p = sum ? 1 : pb->p;
    p = kf_max(1, kf_min(p, room / kf_max(s->rows, cols)));
    TRY(fill(&s->A, s->rows * kf_max(1, blocks), cols, pb->dtype));
    TRY(fill(&s->B, cols, p, pb->dtype));
    return fill(&s->C, op->whole ? cols : s->rows, p, pb->dtype);
}

/* Returns by how much 1e9 multiply-adds are more than a product has. */
static double giga(const sample *s)
{
    return 1e9 / ((double)s->factors * (double)s->rows * (double)s->A.cols *
                  (double)s->B.cols);
}

/* Repeats the product on that number of threads at the same time. */
static kofn_status run(sample *s, const kofn_problem *pb, size_t workers,
                       size_t threads)
{
    pthread_t thread[THREADS];
    size_t begun = 0;
    kofn_status st = KOFN_OK;

    for (size_t i = 0; i < threads && !st; i++)
        st = shape(&s[i], pb, workers, threads);
    while (!st && begun + 1 < threads &&
           !pthread_create(&thread[begun], NULL, repeat, &s[begun]))
        begun++;
    if (!st)
        repeat(&s[begun]);
    for (size_t i = 0; i < begun; i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 0; i <= begun && !st; i++)
        st = s[i].status;
    return st;
}

static void release(sample *s)
{
    kf_free(s->A.data);
    kf_free(s->B.data);
    kf_free(s->C.data);
}

/* Measures the product of one machine, which BLAS divides among its cores. */
static kofn_status plain(double *cost, const kofn_problem *pb)
{
    sample s = {.status = KOFN_OK};
    kofn_status st = run(&s, pb, 1, 1);

    *cost = s.took * giga(&s);
    release(&s);
    return st;
}

/* Measures the products of workers, several on each core.  Other programs may
 * have a part of the cores: then the cost is higher by that. */
static kofn_status work(double *cost, const kofn_problem *pb, size_t workers,
                        size_t cores)
{
    size_t threads = kf_min(kf_min(A_CORE * cores, workers), THREADS);
    sample *s = kf_zero(threads, sizeof *s);
    double used = 0, share = 0;
    size_t ran = 0;
    kofn_status st = s ? run(s, pb, workers, threads) : KOFN_NOMEM;

    for (size_t i = 0; s && i < threads; i++) {
        if (!st && s[i].share > 0) { /* the thread could be made */
            used += s[i].used * giga(&s[i]);
            share += s[i].share;
            ran++;
        }
        release(&s[i]);
    }
    kf_free(s);
    if (ran > 0)
        *cost =
            used / (double)ran * fmax(1, (double)kf_min(cores, ran) / share);
    return st;
}

/* Measures workers with the whole input, and with half of it. */
static kofn_status works(kofn_costs *c, const kofn_problem *pb, size_t workers)
{
    kofn_problem half = *pb;
    double cost = 0;

    TRY(work(&c->work, pb, workers, c->cores));
    if (pb->p < 2 || kf_operation_of(pb->op)->factors == 0)
        return KOFN_OK;
    half.p = pb->p / 2;
    TRY(work(&cost, &half, workers, c->cores));
    c->narrow = fmax(1, cost / c->work);
    return KOFN_OK;
}

/* Measures encoding, decoding and copying: medians of a few times. */
static kofn_status combinations(kofn_costs *c, kofn_dtype dtype)
{
    size_t len = ROOM / kf_dtype_size(dtype) / (SOURCES + OUTPUTS);
    kofn_time combined[FEW], copied[FEW];
    double D[OUTPUTS * SOURCES];
    const void *src[SOURCES];
    void *dst[OUTPUTS];
    kofn_matrix all;

    TRY(fill(&all, SOURCES + OUTPUTS, len, dtype));
    for (size_t i = 0; i < SOURCES * OUTPUTS; i++)
        D[i] = 1 + (double)i;
    for (size_t i = 0; i < SOURCES; i++)
        src[i] = kf_at(&all, i, 0);
    for (size_t i = 0; i < OUTPUTS; i++)
        dst[i] = kf_at(&all, SOURCES + i, 0);
    for (size_t i = 0; i < FEW; i++) {
        kofn_time begin = kf_clock(), middle;

        kf_combine(&(kf_combination){OUTPUTS, SOURCES, D, SOURCES, src, dst},
                   len, dtype);
        middle = kf_clock();
        memcpy(dst[0], src[0], len * kf_dtype_size(dtype));
        combined[i] = middle - begin;
        copied[i] = kf_clock() - middle;
    }
    qsort(combined, FEW, sizeof *combined, by_time);
    qsort(copied, FEW, sizeof *copied, by_time);
    c->combine = (double)combined[FEW / 2] / ((double)len * SOURCES * OUTPUTS);
    c->copy =
        (double)copied[FEW / 2] / ((double)len * (double)kf_dtype_size(dtype));
    kf_free(all.data);
    return KOFN_OK;
}

/* Measures messages by a job in which they are all that takes time.  The
 * coordinator takes turns on the cores with workers, so its time counts as part
 * of their tasks. */
static kofn_status messages(kofn_costs *c, size_t workers)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 4 * workers, 2, 1, KOFN_F64, false);
    kofn_matrix A = {NULL}, x = {NULL}, y = {NULL};
    kofn_plan *plan = NULL;
    kofn_port *port = NULL;
    kofn_job *job = NULL;
    kofn_time begin = 0, used = 0;
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
        if (n == 0) {
            begin = kf_clock();
            used = kf_read_clock(CLOCK_PROCESS_CPUTIME_ID);
        }
    }
    if (!st && n > 1) {
        double tasks = (double)(n - 1) * (double)workers;

        c->message = (double)(kf_clock() - begin) * 1e-9 / (2 * tasks);
        used = kf_read_clock(CLOCK_PROCESS_CPUTIME_ID) - used;
        c->task = (double)used * 1e-9 / tasks;
    }
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
    TRY(plain(&c.plain, pb));
    threads = kf_blas_single();
    st = works(&c, pb, workers);
    kf_blas_restore(threads);
    TRY(st);
    TRY(combinations(&c, pb->dtype));
    TRY(messages(&c, kf_min(workers, THREADS)));
    kf_give(out, &c, sizeof c);
    return KOFN_OK;
}
