/* fuzz_mesh.c -- fuzzes a mesh node and its data with notes from others. Notes
 * have any kind, iterate and body length. The transport checks bodies or does
 * not.
 *
 * fuzz-iterations: 20000 */
#include "drawn_peers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROWS 12

static kofn_status halve(void *ud, uint64_t t, kofn_matrix *product,
                         kofn_matrix *v, double scalar[KOFN_SCALARS],
                         bool *final)
{
    double *to = v->data;
    const double *from = product->data;

    (void)ud;
    for (size_t i = 0; i < v->rows; i++)
        to[i] = from[i] / 2;
    scalar[0] = (double)t;
    *final = t >= 6;
    return KOFN_OK;
}

/* Runs one node. Some have two products, and some accept an iterate of a single
 * other node. */
static void run(drawn_peers *s, const kofn_plan *plan)
{
    static double numbers_of_A[ROWS * ROWS], start[ROWS];
    const kofn_matrix A = {numbers_of_A, ROWS, ROWS, ROWS, KOFN_F64};
    const kofn_matrix v = {start, ROWS, 1, 1, KOFN_F64};
    kofn_peer_options o = {.size = sizeof o,
                           .nodes = 3,
                           .incarnation = 1,
                           .give_up = 60 * KOFN_SECOND};
    const kofn_mesh_product product[] = {{.plan = plan}, {.plan = plan}};
    const kofn_operand operand = {.dense = &A};
    /* bits of a number that is also drawn for something else */
    unsigned more = s->d.left ? s->d.data[0] / 2 : 0;
    const kofn_program program = {.size = sizeof program,
                                  .product = product,
                                  .products = more / 4 % 4 == 3 ? 2 : 1,
                                  .operand = &operand,
                                  .operands = 1,
                                  .output = halve,
                                  .digest = 9};
    kofn_status st = KOFN_OK;

    s->base.whole = more / 16 % 2; /* as a connection with keys */
    o.confirm = more % 4 == 3 ? 1 : 0;
    o.seat = next(&s->d, 2) ? 0 : KOFN_NO_SEAT;
    o.decoding =
        next(&s->d, 2) ? KOFN_DECODE_REPLICATED : KOFN_DECODE_DISTRIBUTED;
    for (size_t i = 0; i < ROWS * ROWS; i++)
        numbers_of_A[i] = (double)(i % 7) - 3;
    start[0] = 1;
    MUST(kf_host_new(&s->host, &s->base, &program, &o, &v,
                     (kf_timer){peers_clock, s}) == KOFN_OK);
    while (s->d.left && !st) {
        bool worked;

        st = kf_host_pass(s->host, &worked);
    }
    MUST(!st || *kofn_errmsg());
    kf_host_free(s->host);
    MUST(s->out == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static kofn_plan *plan;
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, ROWS, ROWS, 1, KOFN_F64, false);
    drawn_peers s = {.base = drawn_transport, .d = {data, size}};
    size_t before;

    watch_memory();
    if (!plan)
        MUST(kofn_plan_new(&plan, &pb, "mds:k=2,basis=gauss_sys", 4, 1) ==
             KOFN_OK);
    before = held;
    most = held + ((size_t)16 << 20);
    run(&s, plan);
    MUST(held == before);
    most = SIZE_MAX;
    return 0;
}
