/* cmd_bench.c -- kofn bench: published experiments in simulated time.
 *
 * experiment_*.c simulate, bench_*.c show; here is what these share, and which
 * of them is asked for.  Every figure shown is computed in the run, but for
 * those said to be published. */
#include "bench.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>

/* ---- shared -------------------------------------------------------------- */

int bench_fail(kofn_status st)
{
    if (st == KOFN_NOMEM)
        return cli_say(EXIT_FAILED, "out of memory; give a smaller --scale");
    return cli_fail(st);
}

const char *bench_mark(bool ok)
{
    return ok ? "ok" : "off";
}

void bench_bar(double share)
{
    static const char *const bar[] = {" ", "▁", "▂", "▃", "▄",
                                      "▅", "▆", "▇", "█"};
    int eighths = share > 0 ? (int)(share * 8 + 0.999) : 0;

    if (eighths > 8)
        eighths = 8;
    if (strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
        fputs(bar[eighths], stdout);
    else
        putchar(eighths ? '0' + eighths : ' ');
}

json_t *bench_json(const cli_args *a, const char *name)
{
    return json_pack("{s:s, s:s, s:s, s:I}", "status", "ok", "command", "bench",
                     "experiment", name, "seed", (json_int_t)a->seed);
}

json_t *bench_reals(const double *x, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_real(x[i]));
    return list;
}

bool bench_within(double value, double low, double high)
{
    return value >= low && value <= high;
}

json_t *bench_band_json(double value, double low, double high)
{
    return json_pack("{s:f, s:f, s:f, s:b}", "value", value, "low", low, "high",
                     high, "ok", bench_within(value, low, high));
}

size_t bench_runs(const cli_args *a, size_t usual)
{
    double runs = a->scale > 0 ? a->scale * (double)usual : (double)usual;

    return runs < 1 ? 1 : (size_t)(runs + 0.5);
}

/* ---- the command --------------------------------------------------------- */

static const struct experiment {
    const char *name;
    size_t scenarios;
    double most_scale;
    bool stale; /* takes --stale */
    int (*run)(const cli_args *a);
} experiments[] = {
    {"pcr", PCR_SCENARIOS, 1000, true, bench_pcr},
    {"elastic", 3, 1, false, bench_elastic},
    {"gradient", GRADIENT_SCENARIOS, 1000, false, bench_gradient},
    {"stream", STREAM_SCENARIOS, 1000, false, bench_stream},
    {"dnn", DNN_SCENARIOS, 1, false, bench_dnn},
};

static bool takes_mnist(const struct experiment *e, size_t scenario)
{
    return (e->run == bench_stream && scenario == 6) ||
           (e->run == bench_dnn && scenario != 1);
}

int cmd_bench(cli_args *a)
{
    const struct experiment *e = experiments, *end = experiments + 5;

    while (e < end && strcmp(e->name, a->operand[0]) != 0)
        e++;
    if (e == end)
        return cli_say(EXIT_USAGE,
                       "no experiment \"%s\"; there are pcr, "
                       "elastic, gradient, stream, dnn",
                       a->operand[0]);
    if (a->scenario > e->scenarios)
        return cli_say(EXIT_USAGE, "--scenario %zu: %s has 1 to %zu",
                       a->scenario, e->name, e->scenarios);
    if (a->scale > e->most_scale)
        return cli_say(EXIT_USAGE, "--scale %g: %s takes at most %g, %s",
                       a->scale, e->name, e->most_scale,
                       e->most_scale > 1     ? "a thousand times as many runs"
                       : e->run == bench_dnn ? "all seeds and steps"
                                             : "the published size");
    if (a->mnist && !takes_mnist(e, a->scenario))
        return cli_say(EXIT_USAGE, "--mnist: goes with stream --scenario 6, "
                                   "and with dnn but for --scenario 1");
    if (a->stale && !e->stale)
        return cli_say(EXIT_USAGE, "--stale: goes with pcr only");
    setlocale(LC_CTYPE, ""); /* for the terminal's character set */
    return e->run(a);
}
