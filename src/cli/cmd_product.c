/* cmd_product.c -- kofn matvec, kofn matmul.
 *
 * Owns the operands and the answer while the command runs. The product is one
 * round of a session. The answer is written after it was judged.
 *
 * Complex matrices are real ones of twice the columns (kofn_complex_input). */
#include "busy.h"
#include "cli.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>

typedef struct product {
    kofn_file *A, *B;
    kofn_matrix dense, in, out; /* dense: A, if it is dense */
    kofn_matrix owned[2];       /* memory of converted `dense` and `in` */
    kofn_matrix expanded;       /* memory of the input of a complex A */
    bool is_complex;            /* the result has complex numbers */
    kofn_sparse S; /* transpose of a sparse B; no rows: B is dense */
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

/* Opens an operand. */
static int open_file(kofn_file **f, const char *path)
{
    kofn_status st;

    cli_busy("reading", path);
    st = kofn_file_open(f, path, KOFN_FILE_READ | KOFN_FILE_COMPLEX);
    cli_busy_end();
    return cli_fail_input(st);
}

/* Returns the number of real columns of a column of the file. */
static size_t width(const kofn_file *f)
{
    return f->is_complex ? 2 : 1;
}

/* Checks that the operands have shapes that can be multiplied.  Turns a row
 * that is to be a vector. */
static int check_shapes(product *p, const cli_args *a, bool vector,
                        const kofn_problem *pb)
{
    size_t w = width(p->B), n = pb->n / width(p->A);

    if (vector && p->in.rows == 1)
        p->in = (kofn_matrix){p->in.data, p->in.cols / w, w, w, p->in.dtype};
    if (vector && p->in.cols != w)
        return cli_say(EXIT_USAGE,
                       "%s is %zu x %zu, not a vector; use kofn matmul",
                       a->operand[1], p->in.rows, p->in.cols / w);
    if (p->in.rows != n)
        return cli_say(EXIT_USAGE,
                       "%s is %zu x %zu and %s %zu x %zu: the "
                       "inner sizes do not agree",
                       a->operand[0], pb->m, n, a->operand[1], p->in.rows,
                       p->in.cols / w);
    return 0;
}

/* Makes the input of a complex A. */
static int expand(product *p)
{
    kofn_matrix *to = &p->expanded;
    size_t cols = p->in.cols / width(p->B);

    TRY_CODE(cli_room(to, 2 * p->in.rows, 2 * cols, "the complex input"));
    to->dtype = p->in.dtype;
    TRY_CODE(cli_fail(kofn_complex_input(&p->in, p->B->is_complex, to)));
    p->in = *to;
    return 0;
}

/* Prepares A B with a sparse B as the transpose of B' A', so that the sparse
 * matrix lies with the workers. */
static int swap(product *p, const cli_args *a, kofn_problem *pb)
{
    const kofn_matrix *A = p->A->matrix.dense;
    const kofn_sparse *B = p->B->matrix.sparse;

    if (!A || p->is_complex || a->command->bit == IN_MATVEC)
        return cli_say(EXIT_USAGE,
                       "%s: the second operand may be sparse in kofn matmul "
                       "only, if both are real and the first is dense; write "
                       "it as an array",
                       a->operand[1]);
    if (A->cols != B->rows)
        return cli_say(EXIT_USAGE,
                       "%s is %zu x %zu and %s %zu x %zu: the "
                       "inner sizes do not agree",
                       a->operand[0], A->rows, A->cols, a->operand[1], B->rows,
                       B->cols);
    TRY_CODE(cli_transposed(A, &p->owned[1]));
    TRY_CODE(cli_sparse_transposed(B, &p->S));
    p->in = p->owned[1];
    *pb = (kofn_problem)KOFN_PROBLEM_INIT(KOFN_MATMUL, B->cols, B->rows,
                                          A->rows, KOFN_F64, true);
    return 0;
}

static int load(product *p, const cli_args *a, bool vector, kofn_problem *pb)
{
    const kofn_matrix *A;
    const kofn_sparse *S;

    TRY_CODE(open_file(&p->A, a->operand[0]));
    TRY_CODE(open_file(&p->B, a->operand[1]));
    A = p->A->matrix.dense;
    S = p->A->matrix.sparse;
    p->is_complex = p->A->is_complex || p->B->is_complex;
    if (!p->B->matrix.dense)
        return swap(p, a, pb);
    p->in = *p->B->matrix.dense;
    if (A)
        p->dense = *A;
    *pb = (kofn_problem)KOFN_PROBLEM_INIT(
        vector && !p->is_complex ? KOFN_MATVEC : KOFN_MATMUL,
        A ? A->rows : S->rows, A ? A->cols : S->cols, p->in.cols, KOFN_F64,
        S != NULL);
    TRY_CODE(check_shapes(p, a, vector, pb));
    TRY_CODE(agree(p, pb));
    if (p->A->is_complex)
        TRY_CODE(expand(p));
    pb->p = p->in.cols;
    return p->is_complex ? cli_check_complex(a) : 0;
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

/* Returns the operand that lies with the workers. */
static kofn_operand operand(const product *p)
{
    const kofn_sparse *S = p->S.rows ? &p->S : p->A->matrix.sparse;

    return S ? KOFN_SPARSE(S) : KOFN_DENSE(&p->dense);
}

static int verify(session *s, const product *p)
{
    const cli_factors f = {.A = operand(p), .B = &p->in};
    double since = kf_clock_seconds();

    TRY_CODE(cli_verify_product(&f, &p->out, &s->found));
    cli_spent(CLI_VERIFYING, since);
    return cli_check_error(&s->found);
}

/* Writes the result. */
static int write_result(const product *p, const cli_args *a)
{
    unsigned dims = a->command->bit == IN_MATVEC ? p->B->dims : 2;
    kofn_matrix out;
    int code;

    if (p->is_complex)
        return cli_write_complex(a, &p->out, dims);
    if (!p->S.rows)
        return cli_write(a, KOFN_DENSE(&p->out), dims);
    TRY_CODE(cli_transposed(&p->out, &out));
    code = cli_write(a, KOFN_DENSE(&out), dims);
    free(out.data);
    return code;
}

static int run(session *s, product *p, const cli_args *a)
{
    bool vector = a->command->bit == IN_MATVEC;
    kofn_problem pb;
    int code, wrote;

    TRY_CODE(load(p, a, vector, &pb));
    TRY_CODE(session_open(s, a, &pb, a->rounds, NULL));
    s->figures = json_pack("{s:b}", "complex", p->is_complex);
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
    wrote = write_result(p, a);
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
    free(p.expanded.data);
    cli_sparse_free(&p.S);
    free(p.out.data);
    return code;
}
