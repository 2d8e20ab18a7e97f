/* cmd_schemes.c -- kofn schemes: the codes there are, and their costs.
 *
 * Owns only the plan that it describes, and frees each before the next. It
 * starts no worker. */
#include "schemes.h"

#include <math.h>
#include <string.h>

/* Without --workers, the figures are for the first number of workers, from
 * eight on, that the scheme supports. */
#define MOST_WORKERS 1024

const kofn_scheme *cli_scheme_of(const char *spec)
{
    char name[64];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(spec, ":"), spec);
    return kofn_scheme_find(name);
}

/* Returns a problem that the scheme serves: a product of matrices if it can. */
static kofn_problem problem_for(const cli_args *a, const kofn_scheme *s)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, a->rows, 1000, 1000, KOFN_F64, false);

    if (s && !(s->ops & KOFN_MATMUL)) {
        pb.op = (kofn_op)(s->ops & ~(s->ops - 1));
        pb.p = pb.op == KOFN_STREAM ? 1000 : 1;
    }
    return pb;
}

static kofn_status describe(const cli_args *a, const char *spec,
                            kofn_plan **plan, kofn_plan_info *info)
{
    kofn_problem pb = problem_for(a, cli_scheme_of(spec));
    kofn_status st = kofn_plan_new(plan, &pb, spec, a->workers, a->seed);

    for (size_t n = a->workers + 1;
         st == KOFN_INVAL && !a->workers_given && n <= MOST_WORKERS; n++)
        st = kofn_plan_new(plan, &pb, spec, n, a->seed);
    if (st == KOFN_INVAL && !a->workers_given) /* once more, for its message */
        st = kofn_plan_new(plan, &pb, spec, a->workers, a->seed);
    return st ? st : kofn_plan_describe(*plan, true, info);
}

static json_t *params_json(const kofn_scheme *s)
{
    json_t *list = json_array();

    for (const kofn_param *p = s->params; p->name; p++) {
        json_t *o = json_pack("{s:s, s:s}", "name", p->name, "what", p->what);

        if (p->choices) {
            PUT("choices", json_string(p->choices));
        } else {
            PUT_WHOLE("min", p->min);
            PUT_WHOLE("max", p->max);
            if (p->init != KOFN_AUTO)
                PUT_WHOLE("default", p->init);
        }
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *scheme_json(const kofn_scheme *s, const kofn_plan_info *i)
{
    json_t *o = json_object();

    PUT("name", json_string(s->name));
    PUT("summary", json_string(s->summary));
    PUT("source", json_string(s->cite));
    PUT("spec", json_string(i->spec));
    PUT_WHOLE("workers", i->workers);
    PUT_WHOLE("threshold", i->threshold);
    PUT("storage", cli_number(i->storage));
    PUT("load", cli_number(i->load));
    PUT("computation", cli_number(i->load));
    if (i->parts)
        PUT_WHOLE("parts", i->parts);
    if (i->storage == 0) {
        PUT_WHOLE("delay", i->delay);
        PUT_WHOLE("slots", i->slots);
    }
    PUT("upload", cli_number(i->upload));
    PUT("answer", cli_number(i->answer));
    PUT("noise", cli_number(i->noise50));
    PUT("noise99", cli_number(i->noise99));
    PUT("params", params_json(s));
    return o;
}

/* Writes "a/b" if x is such a fraction, else decimals. */
static void share(char *out, size_t size, double x)
{
    for (int b = 1; b <= 1000; b++) {
        double top = x * b;

        if (fabs(top - round(top)) < 1e-9 * b) {
            snprintf(out, size, b == 1 ? "%.0f" : "%.0f/%d", round(top), b);
            return;
        }
    }
    snprintf(out, size, "%.4g", x);
}

static void scheme_text(const kofn_scheme *s, const kofn_plan_info *i,
                        bool whole)
{
    char storage[24], load[24], upload[24], answer[24];

    share(storage, sizeof storage, i->storage);
    share(load, sizeof load, i->load);
    share(upload, sizeof upload, i->upload);
    share(answer, sizeof answer, i->answer);
    printf("%-12s %s\n", s->name, s->summary);
    if (whole)
        printf("%-12s %s\n", "", s->cite);
    if (i->parts)
        printf("%-12s with %zu workers: any %zu answers suffice. The data is "
               "cut\n"
               "%-12s into %zu parts. Each worker computes %s of them and "
               "sends %s of a vector.\n",
               "", i->workers, i->threshold, "", i->parts, load, answer);
    else if (i->storage == 0)
        printf("%-12s with %zu workers: any %zu answers suffice, within %zu "
               "rounds.\n"
               "%-12s A worker gets up to %zu tasks per round. For a task it "
               "receives %s of Y,\n"
               "%-12s computes %s of a product and returns %s of it.\n",
               "", i->workers, i->threshold, i->delay + 1, "", i->slots, upload,
               "", load, answer);
    else
        printf("%-12s with %zu workers: any %zu answers suffice; each worker "
               "stores %s of A.\n"
               "%-12s Per round it receives %s of B, computes %s of a "
               "product, returns %s of it.\n",
               "", i->workers, i->threshold, storage, "", upload, load, answer);
    printf("%-12s Decoding amplifies rounding %.2g times (median), %.2g times "
           "in 1 of 100 losses.\n",
           "", i->noise50, i->noise99);
    for (const kofn_param *p = s->params; p->name; p++) {
        printf("%-14s %s", "", p->name);
        if (p->choices)
            printf("=%s", p->choices);
        else
            printf("=%ld..%ld", p->min, p->max);
        printf("\n%-18s %s\n", "", p->what);
    }
}

static int one(const cli_args *a, const char *spec, json_t *list)
{
    kofn_plan *plan = NULL;
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_status st = describe(a, spec, &plan, &info);
    const kofn_scheme *s = cli_scheme_of(spec);
    int code = cli_fail(st);

    if (!code && list)
        json_array_append_new(list, scheme_json(s, &info));
    else if (!code)
        scheme_text(s, &info, a->operands == 1);
    kofn_plan_free(plan);
    return code;
}

/* ---- the ones to choose from --------------------------------------------- */

typedef struct choice {
    const char *name, *survives, *costs, *use;
} choice;

static const choice choices[] = {
    {"elastic:k=K", "n-K", "1/K; 1/n", "workers come and go"},
    {"mds:k=K", "n-K", "1/K; 1/K", "workers are slow"},
    {"polynomial:m=M,p=P", "n-MP", "1/M; 1/(MP)", "A and B are large"},
    {"matdot:n=N", "n-2N+1", "1/N; 1/N", "the product is small"},
    {"gpd:m=M,n=N,p=P", "n-MNP-N+1", "1/(MN); 1/(MNP)", "all three are large"},
    {"pcr:r=R", "n-2ceil(n/R)+1", "R/n; R/n", "least squares"},
    {"gc:d=D", "D-1", "D/n; D/n", "gradients"},
    {"agc:d=D", "D-1", "D/n; D/n", "long gradients"},
    {"dip:m=M,p=P", "slow rounds", "nothing; 1/(MP)", "a stream of products"},
    {"uncoded", "none", "1/n; 1/n", "comparison"},
};

static void table(void)
{
    printf("%-18s  %-14s  %-16s  %s\n", "scheme", "survives", "costs",
           "use it when, or for");
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        printf("%-18s  %-14s  %-16s  %s\n", choices[i].name,
               choices[i].survives, choices[i].costs, choices[i].use);
    printf("\nIt survives the loss of this number of n workers, whichever they "
           "are. Its costs are\nthe share of A that a worker stores, and the "
           "share of the work that it computes.\nkofn schemes NAME explains a "
           "scheme, and kofn schemes --all lists all of them.\n");
}

int cmd_schemes(cli_args *a)
{
    json_t *list = a->json ? json_array() : NULL;
    const kofn_scheme *s;
    char room[CLI_SPEC];
    int code = 0;

    if (a->operands == 1) {
        code = cli_own_scheme(&a->operand[0], room);
        code = code ? code : one(a, a->operand[0], list);
    } else if (!list && !a->all) {
        table();
    } else {
        for (size_t i = 0; (s = kofn_scheme_at(i)) && !code; i++) {
            if (i && !list)
                putchar('\n');
            code = one(a, s->name, list);
        }
    }
    if (list && !code) {
        cli_print_json(
            json_incref(a->operands == 1 ? json_array_get(list, 0) : list));
    }
    json_decref(list);
    return code;
}
