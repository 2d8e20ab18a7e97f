/* plan.c -- schemes, and what a plan costs. */
#include "example.h"

#include <kofn/scheme.h>

#include <string.h>

static void list_schemes(void)
{
    const kofn_scheme *s;

    for (size_t i = 0; (s = kofn_scheme_at(i)); i++)
        printf("%s: %s\n", s->name, s->summary);
    expect(!strcmp(kofn_scheme_find("mds")->name, "mds"), "the scheme mds");
    expect(!kofn_scheme_find("no such"), "there is none of this name");
}

static void describe(void)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 1024, 50, 1, KOFN_F64, false);
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_plan *plan;

    must(kofn_plan_new(&plan, &pb, "mds:k=4", 6, 1));
    must(kofn_plan_describe(plan, true, &info));
    printf("%s: any %zu of %zu workers suffice; each stores %g of A; errors "
           "grow by a factor of %.2g\n",
           info.spec, info.threshold, info.workers, info.storage, info.noise50);
    expect(info.threshold == 4 && info.block_rows == 256, "A in 4 blocks");
    kofn_plan_free(plan);
}

/* Makes one plan for A x and for B A. */
static void serve_both(void)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 60, 20, 1, KOFN_F64, false);
    kofn_plan *plan;

    must(kofn_plan_new(&plan, &pb, "elastic:k=2", 4, 1));
    must(kofn_plan_serve_left(plan, 1));
    expect(kofn_plan_serve_left(plan, 1) == KOFN_STATE, "only once");
    kofn_plan_free(plan);
}

/* Finds the k of elastic with which any 2 of 6 workers may be lost. */
static void tolerate_two(void)
{
    char spec[64];

    must(kofn_scheme_tolerate("elastic", 6, 2, spec, sizeof spec));
    expect(strcmp(spec, "elastic:k=4") == 0, "any 4 of 6 suffice");
}

int main(void)
{
    list_schemes();
    describe();
    serve_both();
    tolerate_two();
    return 0;
}
