/* train_bench.c -- the cost of training on coded weights.
 *
 * 1. A step of a network of three layers, each as wide as the points, by eight
 * workers that are threads. It is compared with a step of the same passes by
 * plain BLAS on the same number of cores, also in processor time of the
 * process. 2. A worker's time for an update of its block, against the product
 * in it alone; and the coordinator's time to send it. 3. A step in which a
 * worker leaves, and one that waits until a joiner's blocks are rebuilt from
 * those of others: how much longer it takes. For the latter, also relative to
 * copying the bytes that are sent.
 *
 * The compared values are measured in turn. Prints medians; ratios are taken
 * turn by turn.
 *
 *     train_bench [REPETITIONS [WIDTH [BATCH]]] */
#include "bench.h"

#include <unistd.h>

#include "data/data.h"
#include "learn/coded.h"
#include "mat/mat.h"

#define LAYERS 3
#define WORKERS 8

static int reps = 5;
static size_t width = 2048, batch = 256;

static double all_cpu(void)
{
    return 1e-9 * (double)kf_read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

/* ---- a network and its points -------------------------------------------- */

typedef struct school {
    kofn_net *net; /* of the plain steps, which change it */
    double *x, *y;
    size_t widths[LAYERS + 1];
} school;

static const kofn_change change = {sizeof change, 0, {{1}}, {-1e-3}};

static void school_up(school *s)
{
    kofn_net_shape shape = {.size = sizeof shape,
                            .layers = LAYERS,
                            .widths = s->widths,
                            .activation = KOFN_TANH};

    for (size_t l = 0; l <= LAYERS; l++)
        s->widths[l] = width;
    check(kofn_net_new(&s->net, &shape, 1), "network");
    s->x = numbers(batch * width);
    s->y = need(batch * sizeof *s->y);
    for (size_t i = 0; i < batch; i++)
        s->y[i] = (double)(i * 7 % width);
}

static void school_down(school *s)
{
    kofn_net_free(s->net);
    free(s->x);
    free(s->y);
}

static void put_points(const school *s, kf_passes *p)
{
    kf_passes_begin(p);
    for (size_t i = 0; i < batch; i++)
        kf_passes_put(p, s->x + i * width, s->y + i);
}

/* ---- a plain step -------------------------------------------------------- */

/* Weights change while the gradient is computed: nothing else reads them in
 * this step. */
static kofn_status multiply(void *ud, kf_pass pass, size_t layer,
                            const kofn_matrix *a, const kofn_matrix *b,
                            kofn_matrix *out)
{
    (void)ud;
    if (pass == KF_PASS_GRADIENT)
        return KOFN_OK;
    return kf_multiplier_plain.multiply(NULL, pass, layer, a, b, out);
}

static void plain_step(const school *s, kf_passes *p)
{
    const kf_multiplier by = {multiply, NULL};
    double cost = 0, right = 0;

    put_points(s, p);
    check(kf_passes_forward(p, &by), "forward");
    kf_passes_cost(p, 1 / (double)batch, &cost, &right);
    check(kf_passes_back(p, 1 / (double)batch, NULL, &by, s->net->W), "back");
    for (size_t l = 0; l < LAYERS; l++)
        kf_mat_add_transposed(&p->D[l], &p->X[l], change.add[0], 1,
                              &s->net->W[l]);
}

/* ---- coded steps --------------------------------------------------------- */

typedef struct course {
    kofn_plan *plan[LAYERS];
    kofn_job *job;
    kf_coded coded;
    kofn_report sum; /* of a step */
} course;

static void course_up(course *c, const school *s, const char *spec,
                      const kofn_options *opt)
{
    kofn_port *port;

    check(kf_coded_plans(s->net, batch, spec, WORKERS, 1, c->plan), spec);
    check(kofn_port_threads(&port, WORKERS, NULL), "threads");
    check(kofn_open_all(&c->job, (const kofn_plan *const *)c->plan, LAYERS,
                        port, opt),
          "job");
    for (size_t l = 0; l < LAYERS; l++)
        check(kofn_place_at(c->job, l, KOFN_DENSE(&s->net->W[l])), "weights");
    check(kf_coded_new(&c->coded, s->net, true, batch, c->job), "memory");
    c->coded.sum = &c->sum;
}

static void course_down(course *c)
{
    kofn_close(c->job);
    kf_coded_free(&c->coded);
    for (size_t l = 0; l < LAYERS; l++)
        kofn_plan_free(c->plan[l]);
}

static double coded_step(course *c, const school *s, unsigned number)
{
    double t = now(), cost, right;

    c->sum = (kofn_report)KOFN_REPORT_INIT;
    check(kofn_step(c->job, number), "step");
    put_points(s, &c->coded.p);
    check(kf_coded_step(&c->coded, &change, &cost, &right), "coded step");
    return now() - t;
}

/* ---- 1: steps ------------------------------------------------------------ */

/* Waits until no worker is busy: nothing waits for the last update. */
static void settle(void)
{
    const struct timespec moment = {0, 5000000};

    for (int idle = 0; idle < 10;) {
        double cpu = all_cpu();

        nanosleep(&moment, NULL);
        idle = all_cpu() - cpu < 1e-3 ? idle + 1 : 0;
    }
}

/* Measures two steps, from the end of a step before them to the end of the
 * second. The update of the step before counts, the second's does not. */
static void two_steps(course *c, const school *s, unsigned first, double *took,
                      double *cpu)
{
    double from, start;

    coded_step(c, s, first);
    from = all_cpu();
    start = now();
    coded_step(c, s, first + 1);
    coded_step(c, s, first + 2);
    *took = (now() - start) / 2;
    *cpu = (all_cpu() - from) / 2;
    settle();
}

static void one_plain_step(const school *s, kf_passes *p, double *took,
                           double *cpu)
{
    double from, start;

    blas_threads((int)sysconf(_SC_NPROCESSORS_ONLN));
    plain_step(s, p);
    from = all_cpu();
    start = now();
    plain_step(s, p);
    *took = now() - start;
    *cpu = all_cpu() - from;
    blas_threads(1);
}

static void compare(const school *s, const char *spec, kofn_errors errors)
{
    double plain[MOST], coded[MOST], plain_cpu[MOST], coded_cpu[MOST];
    const char *with = errors ? ", checked" : "";
    kofn_options opt = KOFN_OPTIONS_INIT;
    kf_passes p;
    course c;

    opt.errors = errors;
    opt.late = -1;
    check(kf_passes_new(&p, s->net, true, batch), "memory");
    course_up(&c, s, spec, &opt);
    for (int i = 0; i < reps; i++) {
        two_steps(&c, s, (unsigned)(3 * i + 1), &coded[i], &coded_cpu[i]);
        one_plain_step(s, &p, &plain[i], &plain_cpu[i]);
    }
    printf("  %-16s of %d%-9s %7.1f ms  plain %7.1f ms  ratio %.2f  of "
           "processor time %.2f",
           spec, WORKERS, with, 1e3 * turn_median(coded, reps),
           1e3 * turn_median(plain, reps), turn_ratio(coded, plain, reps),
           turn_ratio(coded_cpu, plain_cpu, reps));
    printf("  (coordinator: encoding %.1f ms, decoding %.1f ms)\n",
           1e-6 * (double)c.sum.encoding, 1e-6 * (double)c.sum.decoding);
    fflush(stdout);
    figure(turn_ratio(coded, plain, reps), "", "less",
           "step of %s of %d%s, %zu x %zu", spec, WORKERS, with, width, batch);
    figure(turn_ratio(coded_cpu, plain_cpu, reps), "", "less",
           "processor time of a step of %s of %d%s, %zu x %zu", spec, WORKERS,
           with, width, batch);
    course_down(&c);
    kf_passes_free(&p);
}

/* ---- 2: updates ---------------------------------------------------------- */

/* A seat's block, and the update it receives. */
typedef struct seat {
    kofn_plan *plan;
    kf_code *code;
    kofn_matrix A;
    kf_resident resident;
    kf_block *block;
    kf_msg m;
} seat;

static kf_buffer *buffer(size_t rows, size_t cols)
{
    kf_buffer *p;

    check(kf_buffer_new(&p, rows, cols, KOFN_F64), "memory");
    for (size_t i = 0; i < rows * cols; i++)
        ((double *)p->m.data)[i] = (double)(i % 101) * 1e-3;
    return p;
}

static void seat_up(seat *s, const char *spec)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATMUL, width, width + 1, batch,
                                        KOFN_F64, false);
    const size_t last = WORKERS - 1;

    *s = (seat){.A = {numbers(width * (width + 1)), width, width + 1, width + 1,
                      KOFN_F64}};
    check(kofn_plan_new(&s->plan, &pb, spec, WORKERS, 1), "plan");
    check(kf_code_new(&s->code, s->plan), "code");
    check(kf_resident_dense(&s->resident, s->plan, &s->A), "cut");
    check(kf_data_encode(&s->resident, s->code, &last, 1, &s->block), "encode");
    s->m = (kf_msg){.type = KF_MSG_UPDATE,
                    .in = buffer(batch, s->block->components * s->block->rows),
                    .with = buffer(batch, s->block->cols)};
    check(kf_states_change_new(&s->m.change, &change), "memory");
    check(kf_block_change(s->block, &s->m),
          "update"); /* from here on the block is the seat's own */
}

static void seat_down(seat *s)
{
    kf_buffer_drop(s->m.in);
    kf_buffer_drop(s->m.with);
    kf_buffer_drop(s->m.change);
    kf_block_drop(s->block);
    kf_resident_free(&s->resident);
    kf_code_free(s->code);
    kofn_plan_free(s->plan);
    free(s->A.data);
}

static void update(const char *spec)
{
    double ours[MOST], plain[MOST];
    seat s;
    kofn_matrix C;

    seat_up(&s, spec);
    C = (kofn_matrix){NULL, s.m.in->m.cols, s.m.with->m.cols, s.m.with->m.cols,
                      KOFN_F64};
    C.data = numbers(C.rows * C.cols);
    for (int i = 0; i < reps; i++) {
        double t = cpu_now();

        check(kf_block_change(s.block, &s.m), "update");
        ours[i] = cpu_now() - t;
        t = cpu_now();
        kf_mat_multiply_transposed(&s.m.in->m, true, &s.m.with->m, false, &C);
        plain[i] = cpu_now() - t;
    }
    printf("  %-16s %5zu x %-5zu  update %6.2f ms  product %6.2f ms  ratio "
           "%.2f\n",
           spec, C.rows, C.cols, 1e3 * turn_median(ours, reps),
           1e3 * turn_median(plain, reps), turn_ratio(ours, plain, reps));
    figure(turn_ratio(ours, plain, reps), "", "less",
           "update of a block of %s of %d, %zu x %zu", spec, WORKERS, width,
           batch);
    free(C.data);
    seat_down(&s);
}

/* ---- 3: leaves and joins ------------------------------------------------- */

/* Measures copying `bytes`, as threads do for messages. */
static void copying(uint64_t bytes, double *took, double *cpu)
{
    static volatile char seen; /* keeps the copy from being optimised away */
    const size_t piece = (size_t)64 << 20;
    char *from = need(piece), *to = need(piece);

    memset(from, 1, piece);
    memset(to, 1, piece);
    *cpu = cpu_now();
    *took = now();
    for (uint64_t done = 0; done < bytes; done += piece)
        memcpy(to, from, bytes - done < piece ? bytes - done : piece);
    *took = now() - *took;
    *cpu = cpu_now() - *cpu;
    seen = to[bytes % piece];
    (void)seen;
    free(from);
    free(to);
}

#define EVERY 4 /* steps between two events */
#define MANY 3
#define FEW 8

static void say(kofn_fault_event *h, size_t *n, unsigned step, double fraction,
                kofn_fault_event_kind kind, uint32_t worker)
{
    h[(*n)++] = (kofn_fault_event){step, fraction, kind, worker, 0};
}

/* In every fourth step a worker leaves, when half of a product has come, and
 * another joins before the next step. Or `many` leave before the step before
 * that. Then the rest are too few for a product but enough to determine the
 * weights; and `many` join. */
static size_t happen(kofn_fault_event *h, size_t many)
{
    size_t n = 0;
    uint32_t next = 0;

    for (unsigned r = 1; r <= (unsigned)reps; r++) {
        for (size_t i = 0; i < many; i++)
            say(h, &n, EVERY * r, many > 1 ? 0 : 0.5, KOFN_FAULT_EVENT_LEAVE,
                next++);
        for (size_t i = 0; i < many; i++)
            say(h, &n, EVERY * r + (many == 1), 0, KOFN_FAULT_EVENT_JOIN, 0);
    }
    return n;
}

typedef struct course_of_events {
    double step; /* of steps without an event */
    double longer[MOST],
        cpu[MOST];     /* how much longer a step with one was ... */
    double more[MOST]; /* ... and how many bytes more were moved */
} course_of_events;

static void run_events(const school *s, const char *spec, size_t many,
                       course_of_events *e)
{
    kofn_fault_event *h = need((size_t)reps * 2 * many * sizeof *h);
    double took[EVERY * MOST], cpu[EVERY * MOST], moved[EVERY * MOST];
    kofn_options opt = KOFN_OPTIONS_INIT;
    course c;

    opt.events = h;
    opt.event_count = happen(h, many);
    opt.below = KOFN_BELOW_PAUSE;
    opt.late = -1;
    course_up(&c, s, spec, &opt);
    for (int i = 0; i < EVERY * reps; i++) {
        double from = all_cpu();

        took[i] = coded_step(&c, s, (unsigned)i + 1);
        settle();
        cpu[i] = all_cpu() - from;
        moved[i] = (double)(c.sum.sent + c.sum.received);
    }
    for (int r = 0; r < reps; r++) { /* compared with the step before it */
        int at = EVERY * (r + 1) - 1;

        e->longer[r] = took[at] - took[at - 1];
        e->cpu[r] = cpu[at] - cpu[at - 1];
        e->more[r] = moved[at] - moved[at - 1];
    }
    e->step = median(took, EVERY * reps);
    course_down(&c);
    free(h);
}

static void leave(const school *s, const char *spec)
{
    course_of_events e;

    run_events(s, spec, 1, &e);
    printf("  %-16s one leaves in a step: %+.0f ms, of %.0f\n", spec,
           1e3 * turn_median(e.longer, reps), 1e3 * e.step);
}

/* Batches have few points, so that steps are short. */
static void rebuild(const school *s, const char *spec)
{
    course_of_events e;
    double copy[MOST], copy_cpu[MOST];

    run_events(s, spec, MANY, &e);
    for (int r = 0; r < reps; r++)
        copying((uint64_t)e.more[r], &copy[r], &copy_cpu[r]);
    printf("  %-16s %d come for %d: %+.0f ms, processor time %.0f ms, for %.0f "
           "MB; ratio to copying them %.1f, of processor time %.2f\n",
           spec, MANY, MANY, 1e3 * turn_median(e.longer, reps),
           1e3 * turn_median(e.cpu, reps), 1e-6 * turn_median(e.more, reps),
           turn_ratio(e.longer, copy, reps), turn_ratio(e.cpu, copy_cpu, reps));
    /* it may vanish in the noise of steps */
    if (turn_ratio(e.longer, copy, reps) > 0)
        figure(turn_ratio(e.longer, copy, reps), "", "less",
               "making blocks of others' of %s of %d, %zu", spec, WORKERS,
               width);
    if (turn_ratio(e.cpu, copy_cpu, reps) > 0)
        figure(turn_ratio(e.cpu, copy_cpu, reps), "", "less",
               "processor time of making blocks of others' of %s of %d, %zu",
               spec, WORKERS, width);
}

int main(int argc, char **argv)
{
    static const char *const specs[] = {"elastic:k=6", "gpd:m=2,n=2,p=1"};
    school s;

    if (argc > 1)
        reps = atoi(argv[1]);
    if (argc > 2)
        width = (size_t)strtoull(argv[2], NULL, 10);
    if (argc > 3)
        batch = (size_t)strtoull(argv[3], NULL, 10);
    if (argc > 4 || reps < 1 || reps > MOST || width < 8 || width > 20000 ||
        batch < 1 || batch > 20000) {
        fprintf(stderr, "usage: train_bench [REPETITIONS [WIDTH [BATCH]]]\n");
        return 2;
    }
    keep_memory();
    school_up(&s);
    printf("three layers of %zu, batches of %zu, float64, medians of %d\n",
           width, batch, reps);
    printf("1. steps\n");
    compare(&s, specs[0], KOFN_ERRORS_NONE);
    compare(&s, specs[1], KOFN_ERRORS_NONE);
    compare(&s, specs[1], KOFN_ERRORS_PROBABILISTIC);
    kf_blas_single();
    printf("2. updates, one thread\n");
    update(specs[0]);
    update(specs[1]);
    printf("3. workers that leave and join\n");
    leave(&s, specs[0]);
    leave(&s, specs[1]);
    batch = FEW;
    rebuild(&s, specs[1]);
    school_down(&s);
    return 0;
}
