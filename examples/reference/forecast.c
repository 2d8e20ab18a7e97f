/* forecast.c -- which code a job should take, before anything runs. */
#include "example.h"

#include <kofn/forecast.h>

#include <stdio.h>

#define WORKERS 8

int main(void)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 400, 100, 20, KOFN_F64, false);
    kofn_faults faults = KOFN_FAULTS_INIT(.straggle = 0.1, .factor = 5);
    kofn_forecast_options opt = KOFN_FORECAST_OPTIONS_INIT;
    kofn_costs costs = KOFN_COSTS_INIT;
    kofn_forecast one = KOFN_FORECAST_INIT, *all;
    size_t count;

    must(kofn_costs_measure(&costs, &pb, WORKERS));
    opt.costs = &costs;
    opt.faults = &faults;
    opt.rounds = 20;
    must(kofn_forecast_job(&one, &pb, "elastic:k=6", WORKERS, &opt));
    printf("elastic:k=6 survives %zu lost workers\n", one.survives);
    must(kofn_forecast_all(&all, &count, &pb, WORKERS, &opt));
    for (size_t i = 1; i < count; i++)
        printf("%s: %.3g s\n", all[i].spec, all[i].total);
    kofn_free(all);
    return 0;
}
