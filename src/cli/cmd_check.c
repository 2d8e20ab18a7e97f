/* cmd_check.c -- kofn check: is C = A B?
 *
 * Owns the three files and the result while the command runs.
 * kofn_check_product compares; this file computes nothing. */
#include "busy.h"
#include "cli.h"

#include <kofn/check.h>

/* The number of wrong rows, columns or entries that are printed. */
#define SHOWN 20

typedef struct claim {
    kofn_file *file[3]; /* A, B and C */
    kofn_findings *found;
    kofn_status status;
} claim;

static int load(claim *c, const cli_args *a)
{
    for (int k = 0; k < 3; k++) {
        kofn_status st;

        cli_busy("reading", a->operand[k]);
        st = kofn_file_open(&c->file[k], a->operand[k],
                            k < 2 ? KOFN_FILE_READ : KOFN_FILE_COPY);
        cli_busy_end();
        if (st)
            return cli_fail_input(st);
    }
    for (int k = 1; k < 3; k++)
        if (!c->file[k]->matrix.dense)
            return input_refuse_sparse(a->operand[k]);
    return 0;
}

static int check(claim *c, const cli_args *a)
{
    const kofn_operand A = {c->file[0]->matrix.dense,
                            c->file[0]->matrix.sparse};
    const kofn_matrix *B = c->file[1]->matrix.dense;
    const kofn_matrix *C = c->file[2]->matrix.dense;

    cli_busy("checking", a->operand[2]);
    c->status = (c->file[2]->half
                     ? kofn_check_product_half
                     : kofn_check_product)(A, B, C, a->tolerance, &c->found);
    cli_busy_end();
    return c->found ? 0 : cli_fail(c->status);
}

static int write(claim *c, const cli_args *a)
{
    kofn_matrix C = *c->file[2]->matrix.dense;

    if (!a->output)
        return 0;
    if (kofn_correct(c->found, &C))
        return cli_say(EXIT_CORRUPT, "%s: %s", a->operand[2], kofn_errmsg());
    return cli_write(a, KOFN_DENSE(&C), c->file[2]->dims);
}

/* ---- what was found ------------------------------------------------------ */

static void show_lines(const char *what, const size_t *at, size_t n)
{
    printf("%s", what);
    for (size_t k = 0; k < n && k < SHOWN; k++)
        printf(" %zu", at[k]);
    if (n > SHOWN)
        printf(" and %zu more", n - SHOWN);
    putchar('\n');
}

static void show(const claim *c)
{
    const kofn_findings *f = c->found;

    for (size_t k = 0; k < f->entries && k < SHOWN; k++)
        printf("[%zu, %zu] is %.9g and should be %.9g\n", f->entry[k].row,
               f->entry[k].col, f->entry[k].was, f->entry[k].is);
    if (f->entries > SHOWN)
        printf("and %zu more\n", f->entries - SHOWN);
    if (f->rows)
        show_lines("wrong rows:", f->row, f->rows);
    if (f->cols)
        show_lines("wrong columns:", f->col, f->cols);
    fprintf(stderr,
            "%s; entries off by less than %.2g of the norm of a row of A times "
            "that of a column of B may have been missed\n",
            c->status ? "C is not A B" : "C is A B", f->floor);
}

static json_t *entries_json(const kofn_findings *f)
{
    json_t *list = json_array();

    for (size_t k = 0; k < f->entries; k++)
        json_array_append_new(list,
                              json_pack("{s:I, s:I, s:o, s:o}", "row",
                                        (json_int_t)f->entry[k].row, "column",
                                        (json_int_t)f->entry[k].col, "was",
                                        cli_number(f->entry[k].was), "is",
                                        cli_number(f->entry[k].is)));
    return list;
}

static void report(const claim *c, const cli_args *a)
{
    const kofn_findings *f = c->found;
    json_t *o;

    if (!a->json) {
        if (!a->quiet)
            show(c);
        return;
    }
    o = json_pack("{s:s, s:s, s:b, s:f, s:b, s:o, s:o, s:o}", "status",
                  c->status ? "failed" : "ok", "command", "check", "equal",
                  !c->status, "floor", f->floor, "complete", f->complete,
                  "wrong", entries_json(f), "wrong_rows",
                  cli_list(f->row, f->rows), "wrong_columns",
                  cli_list(f->col, f->cols));
    if (c->status)
        json_object_set_new(o, "error", cli_error_json());
    cli_print_json(o);
}

static int run(claim *c, const cli_args *a)
{
    int code = 0, wrote;

    TRY_CODE(cli_check_names(a));
    TRY_CODE(cli_check_output(a, false));
    TRY_CODE(load(c, a));
    TRY_CODE(check(c, a));
    if (c->status)
        code = cli_say(EXIT_CORRUPT, "%s", kofn_errmsg());
    wrote = write(c, a);
    report(c, a);
    return wrote ? wrote : code;
}

int cmd_check(cli_args *a)
{
    claim c = {.found = NULL};
    int code = run(&c, a);

    kofn_findings_free(c.found);
    for (int k = 0; k < 3; k++)
        kofn_file_free(c.file[k]);
    return code;
}
