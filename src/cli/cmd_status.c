/* cmd_status.c -- kofn status and kofn drain, which ask a running coordinator.
 *
 * Owns the answer until it is printed. */
#include "cli.h"

#include <kofn/fleet.h>

#include <string.h>

#define PATIENCE (10 * KOFN_SECOND)

static const char *const states[] = {"free", "busy", "draining"};

/* Connects, and asks. Returns the exit code. */
static int ask(const cli_args *a, const char *drain,
               void (*each)(void *, const kofn_fleet_worker *), void *ud)
{
    const cli_transport *to = cli_transport_of(a->operand[0]);
    kofn_net_options z = cli_net_options(a, (size_t)1 << 20);
    kofn_transport *t;
    kofn_status st;

    if (!to || !to->address)
        return cli_say(EXIT_USAGE,
                       "%s is no address; give tcp://HOST:PORT or ipc://PATH, "
                       "as the coordinator says at its start",
                       a->operand[0]);
    st = kofn_net_connect(&t, a->operand[0], &z);
    if (st) /* keys are the only files it reads */
        return st == KOFN_IO ? cli_fail_input(st) : cli_fail(st);
    st = kofn_fleet_ask(t, drain, a->job.patience ? a->job.patience : PATIENCE,
                        each, ud);
    if (st == KOFN_UNSUITED)
        return cli_say(EXIT_USAGE, "%s", kofn_errmsg());
    return cli_fail(st);
}

static void add(void *ud, const kofn_fleet_worker *w)
{
    json_array_append_new(
        ud, json_pack("{ss ss sI ss sI sI so so so}", "name", w->name, "host",
                      w->host, "process", (json_int_t)w->process, "state",
                      states[w->state], "memory", (json_int_t)w->memory,
                      "results", (json_int_t)w->tasks, "seconds",
                      cli_number(w->computed), "bytes", cli_number(w->bytes),
                      "slow", w->slow ? cli_number(w->slow) : json_null()));
}

static void print_row(const json_t *w)
{
    const json_t *slow = json_object_get(w, "slow");
    char times[32] = "not enough data";

    if (json_is_number(slow) && json_number_value(slow) <= 1)
        snprintf(times, sizeof times, "-");
    else if (json_is_number(slow))
        snprintf(times, sizeof times, "%.2fx slower", json_number_value(slow));
    printf("%-24s %-9s %9lld %10.3f  %s\n",
           json_string_value(json_object_get(w, "name")),
           json_string_value(json_object_get(w, "state")),
           (long long)json_integer_value(json_object_get(w, "results")),
           json_number_value(json_object_get(w, "seconds")), times);
}

int cmd_status(cli_args *a)
{
    json_t *all = json_array(), *w;
    size_t i;
    int code = ask(a, NULL, add, all);

    if (!code && a->json) {
        cli_print_json(json_pack("{sO}", "workers", all));
    } else if (!code) {
        printf("%-24s %-9s %9s %10s  %s\n", "worker", "state", "results",
               "seconds", "for the same work");
        json_array_foreach(all, i, w) print_row(w);
    }
    json_decref(all);
    return code;
}

int cmd_drain(cli_args *a)
{
    if (!*a->operand[1])
        return cli_say(EXIT_USAGE, "give the name of a worker, as kofn status "
                                   "prints it");
    TRY_CODE(ask(a, a->operand[1], NULL, NULL));
    if (!a->quiet)
        fprintf(stderr, "%s finishes its tasks and leaves\n", a->operand[1]);
    return EXIT_EXACT;
}
