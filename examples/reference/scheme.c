/* scheme.c -- a scheme of your own: A is cut into n / c blocks, each at c
 * workers, and one of them suffices. */
#include "example.h"

#include <kofn/scheme.h>

static const kofn_param params[] = {
    {"c", KOFN_AUTO, 1, 100, "copies of each block", NULL}, {0}};

/* Sets the sizes.  W is the identity here, which NULL would mean too. */
static kofn_status layout(kofn_layout *L)
{
    size_t n = L->workers;
    long c = kofn_arg(L, "c");

    if (c == KOFN_AUTO)
        kofn_arg_choose(L, "c", c = 2);
    if (n % (size_t)c)
        return kofn_say(KOFN_INVAL,
                        "copies: %zu workers are no multiple of %ld", n, c);
    L->seats = L->max_seats = n;
    L->cut[0].rows = L->symbols = L->wants = n / (size_t)c;
    L->grid_rows = L->cut[0].rows;
    L->enough = L->cut[0].rows;
    L->threshold = n - (size_t)c + 1;
    L->W = kofn_layout_table(L->wants, L->symbols);
    if (!L->W)
        return KOFN_NOMEM;
    for (size_t i = 0; i < L->wants; i++)
        L->W[i * L->symbols + i] = 1;
    return KOFN_OK;
}

/* Writes the block of a seat, and its results. */
static kofn_status seat(const kofn_layout *L, size_t i, double *E0, double *E1,
                        double *G)
{
    (void)E1;
    E0[i % L->symbols] = G[i % L->symbols] = 1;
    return KOFN_OK;
}

/* Deals all strips to every live worker, as without this function. */
static kofn_status deal(const kofn_layout *L, const kofn_live *live, size_t n,
                        size_t cover, size_t span, kofn_deals *out)
{
    kofn_status st = KOFN_OK;

    (void)L, (void)live, (void)cover;
    for (size_t who = 0; who < n && !st; who++)
        st = kofn_deals_add(out, who, 0, span);
    return st;
}

static const kofn_scheme copies = {
    .size = sizeof(kofn_scheme),
    .name = "copies",
    .summary = "each block at several workers",
    .cite = "",
    .ops = KOFN_MATVEC | KOFN_MATMUL,
    .params = params,
    .layout = layout,
    .seat = seat,
    .deal = deal,
};

static double X[60 * 5], w[5], y[60];

/* Computes a product while one of the copies is missing. */
static void use(const kofn_plan *plan)
{
    kofn_matrix A = matrix(X, 60, 5), in = matrix(w, 5, 1);
    kofn_matrix out = matrix(y, 60, 1);
    kofn_fault_event gone = {
        .round = 1, .kind = KOFN_FAULT_EVENT_LEAVE, .worker = 2};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_job *job;

    opt.events = &gone;
    opt.event_count = 1;
    job = open_job(plan, 6, &opt);
    must(kofn_place(job, &A));
    must(kofn_round(job, &in, &out, NULL));
    expect(is_product(&A, &in, &out), "A x");
    kofn_close(job);
}

int main(void)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 60, 5, 1, KOFN_F64, false);
    kofn_plan *plan;

    fill(X, 60 * 5, 1);
    fill(w, 5, 2);
    must(kofn_plan_new_for(&plan, &pb, &copies, "c=2", 6, 1));
    use(plan);
    kofn_plan_free(plan);
    must(kofn_scheme_add(&copies)); /* plans then know it by its name */
    must(kofn_plan_new(&plan, &pb, "copies:c=3", 6, 1));
    use(plan);
    kofn_plan_free(plan);
    return 0;
}
