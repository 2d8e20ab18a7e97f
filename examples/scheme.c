/* scheme.c -- a coding scheme of your own, outside the library.
 *
 * One parity, as in RAID 4: A is cut into n - 1 blocks of rows. Worker i
 * stores block i, the last worker stores their sum, and any n - 1 of n
 * suffice. A scheme says only that. The library encodes, decodes, checks
 * accuracy and recovers, and the scheme runs on every port.
 *
 *     cc scheme.c $(pkg-config --cflags --libs kofn) -lm -o scheme && ./scheme
 *
 * The command and Python take it from a shared object:
 *
 *     cc -shared -fPIC scheme.c $(pkg-config --cflags --libs kofn) -lm -o
 * scheme.so kofn matvec X.npy w.npy -n 5 -s ./scheme.so
 */
#include <kofn/scheme.h>

#include <math.h>
#include <stdio.h>

static const kofn_param params[] = {{0}}; /* no parameters */

static kofn_status layout(kofn_layout *L)
{
    size_t n = L->workers;

    if (n < 2)
        return kofn_say(KOFN_INVAL, "parity: %zu worker; at least 2 are needed",
                        n);
    L->seats = L->max_seats = n;
    L->enough = n - 1;      /* any n - 1 answers decode */
    L->cut[0].rows = n - 1; /* A in n - 1 blocks of rows */
    return KOFN_OK;
}

/* Writes what seat i stores: its row of the generator matrix. */
static kofn_status seat(const kofn_layout *L, size_t i, double *E0, double *E1,
                        double *G)
{
    size_t blocks = L->cut[0].rows;

    (void)E1,
        (void)G; /* the input is sent whole; results are mixed like blocks */
    for (size_t j = 0; j < blocks; j++)
        E0[j] = i == j || i == blocks;
    return KOFN_OK;
}

static const kofn_scheme parity = {
    .size = sizeof(kofn_scheme),
    .name = "parity",
    .summary = "plain blocks and their sum",
    .cite = "Patterson, Gibson, Katz 1988",
    .ops = KOFN_MATVEC | KOFN_MATMUL,
    .params = params,
    .layout = layout,
    .seat = seat,
};

/* The schemes of this shared object. */
extern const kofn_scheme *const kofn_schemes[];
const kofn_scheme *const kofn_schemes[] = {&parity, NULL};

#define ROWS 300
#define COLS 40

int main(void)
{
    static double X[ROWS * COLS], w[COLS], y[ROWS];
    kofn_matrix A = {X, ROWS, COLS, COLS, KOFN_F64};
    kofn_matrix in = {w, COLS, 1, 1, KOFN_F64};
    kofn_matrix out = {y, ROWS, 1, 1, KOFN_F64};
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, ROWS, COLS, 1, KOFN_F64, false);
    kofn_fault_event gone = {
        .round = 1, .kind = KOFN_FAULT_EVENT_LEAVE, .worker = 2};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_plan *plan = NULL;
    kofn_port *port = NULL;
    kofn_job *job = NULL;
    double worst = 0;
    kofn_status st;

    for (int i = 0; i < ROWS * COLS; i++)
        X[i] = sin(i), w[i % COLS] = cos(i % COLS);
    opt.events = &gone; /* worker 2 disappears before the first round */
    opt.event_count = 1;
    if ((st = kofn_plan_new_for(&plan, &pb, &parity, "", 5, 1)) ||
        (st = kofn_port_threads(&port, 5, NULL)) ||
        (st = kofn_open(&job, plan, port, &opt)) ||
        (st = kofn_place(job, &A)) || (st = kofn_round(job, &in, &out, NULL)))
        fprintf(stderr, "%s: %s\n", kofn_strerror(st), kofn_errmsg());
    kofn_close(job);
    kofn_plan_free(plan);
    if (st)
        return 1;
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;

        for (int j = 0; j < COLS; j++)
            sum += X[i * COLS + j] * w[j];
        worst = fmax(worst, fabs(sum - y[i]));
    }
    printf("without worker 2 the product differs by %.0e\n", worst);
    return !(worst < 1e-11);
}
