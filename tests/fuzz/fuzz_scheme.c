/* fuzz_scheme.c -- fuzzes scheme strings. An accepted string makes a plan, and
 * the plan's printed string makes the same plan. fuzz-iterations: 100000 */
#include <kofn/scheme.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool rule)
{
    if (!rule)
        abort();
}

static void same_again(const kofn_problem *pb, const kofn_plan_info *info)
{
    kofn_plan *again;
    kofn_plan_info second = KOFN_PLAN_INFO_INIT;

    must(kofn_plan_new(&again, pb, info->spec, info->workers, 1) == KOFN_OK);
    must(kofn_plan_describe(again, false, &second) == KOFN_OK);
    must(strcmp(info->spec, second.spec) == 0);
    must(info->threshold == second.threshold);
    kofn_plan_free(again);
}

/* The first byte chooses workers and operand, the rest is the string. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const kofn_op ops[] = {KOFN_MATVEC, KOFN_MATVEC, KOFN_MATMUL,
                                  KOFN_LEFT,   KOFN_GRAM,   KOFN_SUM};
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 100, 7, 1, KOFN_F64, false);
    kofn_plan *plan;
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_status st;
    char text[200];

    if (size < 1 || size > sizeof text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    pb.op = ops[data[0] % 6];
    pb.p = pb.op == KOFN_MATMUL || pb.op == KOFN_LEFT ? 5 : 1;
    pb.sparse = data[0] % 6 == 1;
    st = kofn_plan_new(&plan, &pb, text, (size_t)data[0] / 6 + 1, 1);
    must(st <= KOFN_OK);
    must(st == KOFN_OK || *kofn_errmsg());
    if (st)
        return 0;
    must(kofn_plan_describe(plan, false, &info) == KOFN_OK);
    must(info.threshold >= 1 && info.threshold <= info.workers);
    must(info.storage > 0 && info.storage <= 4); /* complex numbers */
    must(info.load > 0 && info.load <= 4);
    same_again(&pb, &info);
    kofn_plan_free(plan);
    return 0;
}
