/* fleet_bench.c -- whole products A B by every scheme, under the same faults.
 *
 * The simulator's measured clock counts the processor time that a worker's
 * task really took, as if each worker had its own machine. So it does for the
 * coordinator. Messages take no time, so the bytes sent are shown as well. A
 * round is all of it, from coding the input to the last row of the answer.
 *
 * Every worker stores a quarter of A; uncoded has four workers. On the others'
 * number of workers, uncoded stores less. A round of these four workers
 * without faults follows every measured round. The figure is the ratio of the
 * two: its median over ROUNDS rounds. With stragglers, which do not occur in
 * every round, it is the mean over twice the rounds. There are five cases:
 *
 *     fair        no faults.
 *     slow        worker 1 is five times slower.
 *     straggle    every worker is, in a tenth of its rounds.
 *     compare     no faults; results are compared (errors=probabilistic).
 *     liars       the same, and results of workers 1 and 2 are wrong.
 *
 * Every answer is compared with a plain BLAS product. If one is wrong, the
 * table shows that instead of a time.
 *
 *     fleet_bench [ROUNDS] */
#include "bench.h"

#include <cblas.h>
#include <math.h>

#define ROWS 2000
#define INNER 2000
#define COLS 200
#define WORKERS 12
#define WARM 3     /* rounds that do not count */
#define RIGHT 1e-9 /* relative error; the default tolerance */

static int rounds = 4;
static double *A, *B, *C, *plain;

typedef struct entry {
    const char *spec;
    size_t workers;
    double late;
    bool blind; /* has no spare answers to compare */
} entry;

static const entry entries[] = {
    {"uncoded", 4, 0, true},
    {"uncoded", WORKERS, 0, true},
    {"replication:k=4", WORKERS, 0, false},
    {"mds:k=4", WORKERS, 0, false},
    {"elastic:k=4", WORKERS, 0, false},
    {"elastic:k=4", WORKERS, 1.5, false},
    {"elastic:k=4,deal=speed", WORKERS, 0, false},
    {"product:m=4,m2=6,p=1,p2=2", WORKERS, 0, false},
    {"polynomial:m=4,p=1", WORKERS, 0, false},
    {"polynomial:m=4,p=2", WORKERS, 0, false},
    {"matdot:n=4", WORKERS, 0, false},
    {"polydot:m=2,n=2,p=1", WORKERS, 0, false},
    {"gpd:m=2,n=2,p=1", WORKERS, 0, false},
    {"gpd:m=2,n=2,p=2", WORKERS, 0, false},
};

static double *random_numbers(size_t n, uint32_t seed)
{
    double *x = need(n * sizeof *x);

    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        x[i] = (double)(seed >> 8) * 0x1p-23 - 1;
    }
    return x;
}

/* ---- a fleet and its rounds ---------------------------------------------- */

typedef struct fleet {
    const char *spec;
    kofn_plan *plan;
    kofn_job *job;
    int right, wrong, refused;
} fleet;

static void fleet_up(fleet *f, const entry *e, const kofn_faults *faults,
                     kofn_options *o)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, ROWS, INNER, COLS, KOFN_F64, false);
    kofn_matrix a = {A, ROWS, INNER, INNER, KOFN_F64};
    kofn_port *port;

    *f = (fleet){.spec = e->spec};
    o->late = e->late > 0 ? e->late : -1; /* never */
    check(kofn_plan_new(&f->plan, &pb, e->spec, e->workers, 1), e->spec);
    check(kofn_port_sim(&port, e->workers, faults), e->spec);
    check(kofn_open(&f->job, f->plan, port, o), e->spec);
    check(kofn_place(f->job, &a), e->spec);
}

static void fleet_down(fleet *f)
{
    kofn_close(f->job);
    kofn_plan_free(f->plan);
}

static double error(void)
{
    double off = 0, all = 0;

    for (size_t i = 0; i < ROWS * COLS; i++) {
        off += (C[i] - plain[i]) * (C[i] - plain[i]);
        all += plain[i] * plain[i];
    }
    return sqrt(off / all);
}

/* Returns the seconds of a round, and checks its answer. */
static double one_round(fleet *f, kofn_report *rep)
{
    kofn_matrix in = {B, INNER, COLS, COLS, KOFN_F64};
    kofn_matrix out = {C, ROWS, COLS, COLS, KOFN_F64};
    kofn_status st;

    memset(C, 0xff, ROWS * COLS * sizeof *C); /* NaN */
    st = kofn_round(f->job, &in, &out, rep);
    if (st != KOFN_OK && st != KOFN_CORRUPT && st != KOFN_TOOFEW &&
        st != KOFN_UNSTABLE)
        check(st, f->spec);
    if (st)
        f->refused++;
    else if (error() <= RIGHT)
        f->right++;
    else
        f->wrong++;
    return (double)rep->took * 1e-9;
}

/* ---- series of rounds, each followed by one of the reference --------------
 */

static fleet reference; /* four workers, uncoded, no faults */
static double alone[20000];
static int alones;

typedef struct series {
    double ratio[2 * MOST], encoding[2 * MOST], decoding[2 * MOST];
    int n, right, wrong, refused;
} series;

static void run(fleet *f, series *s, int n)
{
    fleet before = *f;

    for (s->n = 0; s->n < n; s->n++) {
        kofn_report rep = KOFN_REPORT_INIT, ref = rep;
        double t = one_round(f, &rep), u = one_round(&reference, &ref);

        s->ratio[s->n] = t / u;
        s->encoding[s->n] = (double)rep.encoding * 1e-9 / t;
        s->decoding[s->n] = (double)rep.decoding * 1e-9 / t;
        if (alones < (int)(sizeof alone / sizeof *alone))
            alone[alones++] = u;
    }
    s->right = f->right - before.right;
    s->wrong = f->wrong - before.wrong;
    s->refused = f->refused - before.refused;
}

/* Runs rounds until buffers are reused. */
static void warm_up(fleet *f)
{
    kofn_report rep = KOFN_REPORT_INIT;

    for (int i = 0; i < WARM; i++)
        one_round(f, &rep);
}

static double mean(const double *x, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum / n;
}

/* Prints the ratio, or that answers were wrong. */
static void put(double ratio, const series *s)
{
    if (s->right == s->n)
        printf(" %8.2f", ratio);
    else if (s->wrong)
        printf(" %2d WRONG", s->wrong);
    else
        printf(" %8s", "refused");
}

static void note(double ratio, const series *s, const char *faults,
                 const char *scheme, size_t workers)
{
    if (s->right == s->n)
        figure(ratio, "", "less", "%s, %s of %zu", faults, scheme, workers);
}

/* ---- kinds of faults ------------------------------------------------ */

/* Measures without faults, then with worker 1 at a fifth of its speed. */
static void fair_and_slow(const entry *e, series *fair, series *slow)
{
    const kofn_faults w =
        KOFN_FAULTS_INIT(.clock = KOFN_CLOCK_MEASURED, .seed = 1);
    kofn_fault_event slows = {(unsigned)rounds + WARM + 1, 0,
                              KOFN_FAULT_EVENT_SLOW, 1, 5};
    kofn_options o = KOFN_OPTIONS_INIT;
    fleet f;

    o.events = &slows;
    o.event_count = 1;
    fleet_up(&f, e, &w, &o);
    warm_up(&f);
    run(&f, fair, rounds);
    run(&f, slow, rounds);
    fleet_down(&f);
}

static void stragglers(const entry *e, series *s)
{
    const kofn_faults w =
        KOFN_FAULTS_INIT(.clock = KOFN_CLOCK_MEASURED, .straggle = 0.1,
                         .factor = 5, .seed = 1);
    kofn_options o = KOFN_OPTIONS_INIT;
    fleet f;

    fleet_up(&f, e, &w, &o);
    warm_up(&f);
    run(&f, s, 2 * rounds);
    fleet_down(&f);
}

/* Measures with comparison, first without and then with wrong results of
 * workers 1 and 2, which are never evicted. */
static void liars(const entry *e, series *watched, series *lied)
{
    const kofn_faults w =
        KOFN_FAULTS_INIT(.clock = KOFN_CLOCK_MEASURED, .seed = 1);
    unsigned from = (unsigned)rounds + WARM + 1;
    kofn_fault_event lies[] = {{from, 0, KOFN_FAULT_EVENT_CORRUPT, 1, 0},
                               {from, 0, KOFN_FAULT_EVENT_CORRUPT, 2, 0}};
    kofn_options o = KOFN_OPTIONS_INIT;
    fleet f;

    o.errors = e->blind ? KOFN_ERRORS_NONE : KOFN_ERRORS_PROBABILISTIC;
    o.quarantine = 1000000;
    o.events = lies;
    o.event_count = 2;
    fleet_up(&f, e, &w, &o);
    warm_up(&f);
    run(&f, watched, rounds);
    run(&f, lied, rounds);
    fleet_down(&f);
}

/* ---- a line -------------------------------------------------------------- */

static void label(const entry *e, char *text, size_t size)
{
    if (e->late > 0)
        snprintf(text, size, "%s, late %.1f", e->spec, e->late);
    else
        snprintf(text, size, "%s", e->spec);
}

static void line(const entry *e)
{
    series fair, slow, straggle, compare, lied;
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    char text[64];
    fleet f;

    fleet_up(&f, e, NULL, &o);
    check(kofn_plan_describe(f.plan, false, &info), e->spec);
    fleet_down(&f);
    fair_and_slow(e, &fair, &slow);
    stragglers(e, &straggle);
    liars(e, &compare, &lied);
    label(e, text, sizeof text);
    printf("%-25s %7zu %7zu %5.2f %5.1f %5.2f", text, e->workers,
           info.threshold, info.load, info.upload * (double)e->workers,
           info.answer * (double)info.threshold);
    printf(" %5.0f%% %6.0f%%", 100 * median(fair.encoding, fair.n),
           100 * median(fair.decoding, fair.n));
    put(median(fair.ratio, fair.n), &fair);
    put(median(slow.ratio, slow.n), &slow);
    put(mean(straggle.ratio, straggle.n), &straggle);
    if (e->blind)
        printf(" %8s", "-");
    else
        put(median(compare.ratio, compare.n), &compare);
    put(median(lied.ratio, lied.n), &lied);
    printf("\n");
    note(median(fair.ratio, fair.n), &fair, "fair", text, e->workers);
    note(median(slow.ratio, slow.n), &slow, "slow", text, e->workers);
    if (!e->blind)
        note(median(compare.ratio, compare.n), &compare, "compare", text,
             e->workers);
}

static void table(void)
{
    kofn_machine m = KOFN_MACHINE_INIT;

    kofn_machine_info(&m);
    printf("%d x %d times %d x %d, simulated fleets on the measured clock; "
           "kernels %s, %s\n",
           ROWS, INNER, INNER, COLS, m.simd, m.blas);
    printf("%-25s %7s %7s %5s %5s %5s %6s %7s   time of a round: 1 is 4 "
           "workers uncoded, no faults\n",
           "", "", "", "", "", "", "part of", "a round");
    printf("%-25s %7s %7s %5s %5s %5s %6s %7s %8s %8s %8s %8s %8s\n", "",
           "workers", "answers", "work", "sent", "back", "coding", "decod'g",
           "fair", "slow", "straggle", "compare", "liars");
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        line(&entries[i]);
}

int main(int argc, char **argv)
{
    const kofn_faults fine =
        KOFN_FAULTS_INIT(.clock = KOFN_CLOCK_MEASURED, .seed = 1);
    kofn_options o = KOFN_OPTIONS_INIT;
    double typical;

    if (argc > 1)
        rounds = atoi(argv[1]);
    if (rounds < 1 || rounds > MOST) {
        fprintf(stderr, "usage: fleet_bench [ROUNDS in 1..%d]\n", MOST);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    A = random_numbers(ROWS * INNER, 1);
    B = random_numbers(INNER * COLS, 2);
    C = random_numbers(ROWS * COLS, 3);
    plain = random_numbers(ROWS * COLS, 4);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, ROWS, COLS, INNER, 1,
                A, INNER, B, COLS, 0, plain, COLS);
    fleet_up(&reference, &entries[0], &fine, &o);
    warm_up(&reference);
    table();
    typical = median(alone, alones);
    printf("a round of the 4 workers: %.1f ms, %.1f..%.1f nine times out of "
           "ten\n",
           1e3 * typical, 1e3 * alone[alones / 20],
           1e3 * alone[alones - 1 - alones / 20]);
    fleet_down(&reference);
    free(A);
    free(B);
    free(C);
    free(plain);
    return 0;
}
