/* cmd_product.c -- kofn matvec, kofn matmul.
 *
 * Owns the operands and the answer while the command runs. The product is one
 * round of a session. The answer is written after it was judged. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>

typedef struct product {
    kofn_file *A, *B;
    kofn_matrix dense, in, out; /* dense: A, if it is dense */
    kofn_matrix owned[2];       /* memory of converted `dense` and `in` */
} product;

/* Converts m to float64, in memory of *own. */
static int widen(kofn_matrix *m, kofn_matrix *owned)
{
    if (m->dtype == KOFN_F64)
        return 0;
    TRY_CODE(cli_divided(m, 1, owned));
    *m = *owned;
    return 0;
}

/* Converts both operands to the wider type, as NumPy does: float64 input is
 * never rounded. */
static int agree(product *p, kofn_problem *pb)
{
    bool wide =
        pb->sparse || p->in.dtype == KOFN_F64 || p->dense.dtype == KOFN_F64;

    pb->dtype = wide ? KOFN_F64 : KOFN_F32;
    if (wide && !pb->sparse)
        TRY_CODE(widen(&p->dense, &p->owned[0]));
    return wide ? widen(&p->in, &p->owned[1]) : 0;
}

static int load(product *p, const cli_args *a, bool vector, kofn_problem *pb)
{
    const kofn_matrix *A;
    const kofn_sparse *S;

    TRY_CODE(
        cli_fail_input(kofn_file_open(&p->A, a->operand[0], KOFN_FILE_READ)));
    TRY_CODE(
        cli_fail_input(kofn_file_open(&p->B, a->operand[1], KOFN_FILE_READ)));
    A = p->A->matrix.dense;
    S = p->A->matrix.sparse;
    if (!p->B->matrix.dense)
        return cli_say(EXIT_USAGE,
                       "%s: the second operand must be dense; "
                       "write it as an array",
                       a->operand[1]);
    p->in = *p->B->matrix.dense;
    if (A)
        p->dense = *A;
    *pb = (kofn_problem)KOFN_PROBLEM_INIT(
        vector ? KOFN_MATVEC : KOFN_MATMUL, A ? A->rows : S->rows,
        A ? A->cols : S->cols, p->in.cols, KOFN_F64, S != NULL);
    if (vector) {
        input_column(&p->in);
        pb->p = p->in.cols;
    }
    if (vector && p->in.cols != 1)
        return cli_say(EXIT_USAGE,
                       "%s is %zu x %zu, not a vector; use kofn matmul",
                       a->operand[1], p->in.rows, p->in.cols);
    if (p->in.rows != pb->n)
        return cli_say(EXIT_USAGE,
                       "%s is %zu x %zu and %s %zu x %zu: the "
                       "inner sizes do not agree",
                       a->operand[0], pb->m, pb->n, a->operand[1], p->in.rows,
                       p->in.cols);
    return agree(p, pb);
}

static int run_rounds(session *s, product *p, size_t rounds)
{
    size_t done = checkpoint_done(s->checkpoint);

    if (done)
        TRY_CODE(checkpoint_state(s->checkpoint, &p->out));
    for (size_t r = done; r < rounds; r++) {
        kofn_report rep = KOFN_REPORT_INIT;
        uint32_t number;

        s->status = kofn_put(s->job, &p->in, &p->out, &number);
        while (!s->status) {
            s->status = kofn_take(s->job, number, KOFN_SECOND / 10, &rep);
            if (s->status != KOFN_AGAIN)
                break;
            if (cli_caught())
                return 128 + cli_caught();
            session_round(s, NULL, -1);
            s->status = KOFN_OK;
        }
        if (s->status < 0)
            return cli_fail(s->status);
        session_round(s, &rep, -1);
        if (s->status == KOFN_OK) {
            cli_guard(true);
            checkpoint_save(s->checkpoint, (unsigned)r + 1, &p->out, NULL);
            cli_guard_promptly();
        }
        if (cli_caught())
            return 128 + cli_caught();
    }
    return s->status == KOFN_PARTIAL
               ? cli_say(EXIT_TOOFEW, "%s; start more workers",
                         kofn_strerror(KOFN_PARTIAL))
               : 0;
}

/* Returns the first operand as it is multiplied. */
static kofn_operand operand(const product *p)
{
    const kofn_sparse *S = p->A->matrix.sparse;

    return S ? KOFN_SPARSE(S) : KOFN_DENSE(&p->dense);
}

static int verify(session *s, const product *p)
{
    const cli_factors f = {.A = operand(p), .B = &p->in};

    TRY_CODE(cli_verify_product(&f, &p->out, &s->found));
    return cli_check_error(&s->found);
}

static int run(session *s, product *p, const cli_args *a)
{
    bool vector = a->command->bit == IN_MATVEC;
    kofn_problem pb;
    int code, wrote;

    TRY_CODE(load(p, a, vector, &pb));
    TRY_CODE(session_open(s, a, &pb, a->rounds, NULL));
    TRY_CODE(cli_room(&p->out, pb.m, pb.p, "the result"));
    p->out.dtype = pb.dtype;
    TRY_CODE(cli_fail(kofn_place_at(s->job, 0, operand(p))));
    cli_guard_promptly();
    code = run_rounds(s, p, a->rounds);
    cli_guard(false);
    if (!code && a->verify)
        code = verify(s, p);
    if (code && s->status != KOFN_PARTIAL)
        return code;
    wrote = cli_write(a, KOFN_DENSE(&p->out), vector ? p->B->dims : 2);
    return wrote ? wrote : code;
}

int cmd_product(cli_args *a)
{
    product p = {.A = NULL};
    session s = {.args = a};
    int code = session_close(&s, run(&s, &p, a));

    if (code >= 128)
        return code;
    kofn_file_free(p.A);
    kofn_file_free(p.B);
    free(p.owned[0].data);
    free(p.owned[1].data);
    free(p.out.data);
    return code;
}
