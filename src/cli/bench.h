/* bench.h -- kofn bench: what its experiments share. */
#ifndef KOFN_BENCH_H
#define KOFN_BENCH_H

#include "cli.h"
#include "experiments/experiment.h"

int bench_pcr(const cli_args *a);
int bench_elastic(const cli_args *a);
int bench_gradient(const cli_args *a);
int bench_stream(const cli_args *a);
int bench_dnn(const cli_args *a);

/* Scenarios 5 and 6 of it: the exit code, after a message where it is not 0. */
int bench_rates(const cli_args *a, json_t *list);
int bench_nets(const cli_args *a, json_t *list);
/* What is in the folder of --mnist; likewise.  Freed with nets_points_free. */
int bench_mnist(const cli_args *a, nets_points *p);

/* Exit code, after a message. */
int bench_fail(kofn_status st);
/* How a figure compares with what is expected of it. */
const char *bench_mark(bool ok);
/* A character as high as `share` of a line, or a digit where there are none. */
void bench_bar(double share);
/* {"status": "ok", "command": "bench", "experiment": name, "seed": ..} */
json_t *bench_json(const cli_args *a, const char *name);
json_t *bench_reals(const double *x, size_t n);
/* {"value", "low", "high", "ok"} */
json_t *bench_band_json(double value, double low, double high);
bool bench_within(double value, double low, double high);
/* How many runs --scale makes of the usual number. */
size_t bench_runs(const cli_args *a, size_t usual);

#endif
