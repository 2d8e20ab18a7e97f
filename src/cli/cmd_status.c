/* cmd_status.c -- kofn status and kofn drain, which ask a running coordinator.
 *
 * Owns the answer until it is printed. */
#include "plan_from.h"

#include <string.h>

#define PATIENCE (10 * KOFN_SECOND)

static const char *const states[] = {"free", "busy", "draining"};

/* What the coordinator says. */
typedef struct answer {
    json_t *jobs, *workers;
} answer;

static void add_job(void *ud, const kofn_fleet_job *j)
{
    answer *to = ud;

    json_array_append_new(
        to->jobs,
        json_pack("{ss ss ss sI so sI sI so so so}", "name", j->name, "scheme",
                  j->scheme, "unit", j->unit, "at", (json_int_t)j->at, "of",
                  j->of ? json_integer((json_int_t)j->of) : json_null(), "live",
                  (json_int_t)j->live, "workers", (json_int_t)j->workers,
                  "seconds", cli_number(j->seconds), "sent_bytes",
                  cli_number(j->sent), "received_bytes",
                  cli_number(j->received)));
}

static void add(void *ud, const kofn_fleet_worker *w)
{
    answer *to = ud;

    json_array_append_new(
        to->workers,
        json_pack("{ss ss sI ss sI sI so so so}", "name", w->name, "host",
                  w->host, "process", (json_int_t)w->process, "state",
                  states[w->state], "memory", (json_int_t)w->memory, "results",
                  (json_int_t)w->tasks, "seconds", cli_number(w->computed),
                  "bytes", cli_number(w->bytes), "slow",
                  w->slow ? cli_number(w->slow) : json_null()));
}

int cli_ask(const cli_args *a, const char *address, const char *drain,
            const cli_asked *to)
{
    const cli_transport *at = cli_transport_of(address);
    kofn_net_options z = cli_net_options(a, (size_t)1 << 20);
    kofn_time patience = a->job.patience ? a->job.patience : PATIENCE;
    kofn_transport *t;
    kofn_status st;

    if (!at || !at->address)
        return cli_say(EXIT_USAGE,
                       "%s is no address; give tcp://HOST:PORT or ipc://PATH, "
                       "as the coordinator says at its start",
                       address);
    st = kofn_net_connect(&t, address, &z);
    if (st) /* keys are the only files it reads */
        return st == KOFN_IO ? cli_fail_input(st) : cli_fail(st);
    st = drain ? kofn_fleet_ask(t, drain, patience, NULL, NULL)
               : kofn_fleet_ask_jobs(t, patience, to->job, to->worker, to->ud);
    if (st == KOFN_UNSUITED)
        return cli_say(EXIT_USAGE, "%s", kofn_errmsg());
    return cli_fail(st);
}

/* Prints a job: its name, where it is, and what it has sent and received. */
static void print_job(const json_t *j)
{
    const char *name = json_string_value(json_object_get(j, "name"));
    const json_t *of = json_object_get(j, "of");
    char last[32] = "";

    if (json_is_integer(of))
        snprintf(last, sizeof last, " of %lld",
                 (long long)json_integer_value(of));
    printf(
        "%s  %s  %s %lld%s  %lld of %lld workers live  %.0f s  %.4g MB sent, "
        "%.4g MB received\n",
        *name ? name : "a job", json_string_value(json_object_get(j, "scheme")),
        json_string_value(json_object_get(j, "unit")),
        (long long)json_integer_value(json_object_get(j, "at")), last,
        (long long)json_integer_value(json_object_get(j, "live")),
        (long long)json_integer_value(json_object_get(j, "workers")),
        json_number_value(json_object_get(j, "seconds")),
        json_number_value(json_object_get(j, "sent_bytes")) * 1e-6,
        json_number_value(json_object_get(j, "received_bytes")) * 1e-6);
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
    answer all = {json_array(), json_array()};
    json_t *x;
    size_t i;
    int code =
        cli_ask(a, a->operand[0], NULL, &(cli_asked){add_job, add, &all});

    if (!code && a->json) {
        cli_print_json(
            json_pack("{sO sO}", "jobs", all.jobs, "workers", all.workers));
    } else if (!code) {
        json_array_foreach(all.jobs, i, x) print_job(x);
        printf("%-24s %-9s %9s %10s  %s\n", "worker", "state", "results",
               "seconds", "for the same work");
        json_array_foreach(all.workers, i, x) print_row(x);
    }
    json_decref(all.jobs);
    json_decref(all.workers);
    return code;
}

int cmd_drain(cli_args *a)
{
    if (!*a->operand[1])
        return cli_say(EXIT_USAGE, "give the name of a worker, as kofn status "
                                   "prints it");
    TRY_CODE(cli_ask(a, a->operand[0], a->operand[1], NULL));
    if (!a->quiet)
        fprintf(stderr, "%s finishes its tasks and leaves\n", a->operand[1]);
    return EXIT_EXACT;
}
