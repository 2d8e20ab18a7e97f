/* plan_from.h -- kofn plan with the workers of a run or of a fleet. */
#ifndef KOFN_CLI_PLAN_FROM_H
#define KOFN_CLI_PLAN_FROM_H

#include "cli.h"

#include <kofn/fleet.h>
#include <kofn/forecast.h>

/* Take workers, rounds and slowness from --journal, or workers, slowness and
 * memory from --fleet, unless options say otherwise. Return 0, or the exit code
 * after a message. */
int plan_from_journal(cli_args *a, char scheme[CLI_SPEC]);
int plan_from_fleet(cli_args *a);
/* Writes what the code of the run cost and gained, in a sentence. */
void plan_run_text(const char *scheme, const kofn_forecast *was,
                   const kofn_forecast *uncoded, const kofn_forecast *best,
                   char *out, size_t room);

/* Functions that get the answer of a coordinator; NULL: it is not asked for. */
typedef struct cli_asked {
    void (*job)(void *ud, const kofn_fleet_job *j);
    void (*worker)(void *ud, const kofn_fleet_worker *w);
    void *ud;
} cli_asked;

/* Asks the coordinator at this address, or drains the worker of that name
 * (cmd_status.c). Returns 0, or the exit code after a message. */
int cli_ask(const cli_args *a, const char *address, const char *drain,
            const cli_asked *to);

#endif
