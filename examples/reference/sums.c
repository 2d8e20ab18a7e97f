/* sums.c -- sums of a function over parts, and of a formula over rows. */
#include "example.h"

#include <string.h>

#define ROWS 90
#define COLS 5

static double X[ROWS * COLS], labels[ROWS], x[COLS], sum[COLS];

/* Computes x^part for each number x. */
static kofn_status power_of(void *ctx, size_t part, size_t parts,
                            const kofn_matrix *in, kofn_matrix *out)
{
    const double *from = in->data;
    double *to = out->data;

    (void)ctx;
    if (parts == 0)
        return kofn_say(KOFN_INVAL, "there are no parts");
    for (int i = 0; i < COLS; i++)
        to[i] = pow(from[i], (double)part);
    return KOFN_OK;
}

/* Adds up powers of x, with one sum in three checked. */
static void add_powers(const kofn_plan *plan, size_t parts)
{
    kofn_matrix in = matrix(x, COLS, 1), out = matrix(sum, COLS, 1);
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_job *job;

    opt.errors = KOFN_ERRORS_DETECT;
    opt.audit = 3;
    job = open_job(plan, 6, &opt);
    must(kofn_place_parts(job, power_of, NULL));
    must(kofn_parts_work(job, 100.0 * (double)parts));
    expect(kofn_audited(job) == 3, "the option of the job");
    must(kofn_round(job, &in, &out, NULL));
    must(kofn_audit(job, 1)); /* the last one is checked in any case */
    must(kofn_round(job, &in, &out, NULL));
    expect(!*kofn_job_failure(job), "no part failed");
    for (int i = 0; i < COLS; i++)
        expect(fabs(sum[i] - (1 - pow(x[i], (double)parts)) / (1 - x[i])) <
                   1e-9,
               "the geometric series");
    kofn_close(job);
}

/* Computes the sum of y_r x_r over the rows x_r of a part. */
static kofn_status weigh(const double arg[KOFN_FORMULA_ARGS],
                         const kofn_rows *part, const kofn_matrix *in,
                         kofn_matrix *out)
{
    const double *row = part->X.data;
    double *to = out->data;

    (void)in;
    memset(to, 0, COLS * sizeof *to);
    for (size_t r = 0; r < part->X.rows; r++)
        for (size_t j = 0; j < COLS; j++)
            to[j] += arg[0] * part->y[r] * row[r * part->X.ld + j];
    return KOFN_OK;
}

static void add_rows(const kofn_plan *plan)
{
    const kofn_formula weighed = {"weigh", weigh};
    const double arg[KOFN_FORMULA_ARGS] = {2};
    kofn_matrix points = matrix(X, ROWS, COLS), in = matrix(x, COLS, 1);
    kofn_matrix out = matrix(sum, COLS, 1);
    kofn_job *job = open_job(plan, 6, NULL);

    must(kofn_place_rows(job, &weighed, arg, &points, labels));
    must(kofn_round(job, &in, &out, NULL));
    for (int j = 0; j < COLS; j++) {
        double plain = 0;

        for (int r = 0; r < ROWS; r++)
            plain += 2 * labels[r] * X[r * COLS + j];
        expect(fabs(sum[j] - plain) < 1e-9, "the sum over all rows");
    }
    kofn_close(job);
}

static void list_formulas(void)
{
    for (const kofn_formula *f = kofn_formulas; f->name; f++)
        printf("every worker knows the formula %s\n", f->name);
}

int main(void)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_SUM, COLS, COLS, 1, KOFN_F64, false);
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_plan *plan;

    fill(X, ROWS * COLS, 1);
    fill(labels, ROWS, 2);
    fill(x, COLS, 0.3);
    for (int i = 0; i < COLS; i++)
        x[i] /= 2;
    must(kofn_plan_new(&plan, &pb, "gc:d=3", 6, 1));
    must(kofn_plan_describe(plan, false, &info));
    add_powers(plan, info.parts);
    add_rows(plan);
    list_formulas();
    kofn_plan_free(plan);
    return 0;
}
