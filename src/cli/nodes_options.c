/* nodes_options.c -- options that do not go with --masterless.
 *
 * Owns nothing. */
#include "nodes.h"

#define MOST_NODES 1024

/* ---- before anything is read --------------------------------------------- */

static bool has_nodes(const cli_transport *t)
{
    return t->nodes;
}

int masterless_check(const cli_args *a)
{
    if (!has_nodes(cli_transport_of(a->port)))
        return cli_say(EXIT_USAGE,
                       "--masterless does not run on %s; give --port %s",
                       a->port, cli_transport_forms(has_nodes));
    if (a->metrics_listen)
        return cli_say(EXIT_USAGE,
                       "--metrics-listen is for a coordinator and its workers; "
                       "leave it out with --masterless");
    return 0;
}

/* ---- what cannot be had of a mesh ---------------------------------------- */

int nodes_check_options(const cli_args *a)
{
    const kofn_faults *w = &a->faults;
    const char *what = a->job.journal                       ? "journal"
                       : a->job.metrics                     ? "metrics"
                       : a->job.trace                       ? "trace"
                       : a->job.record                      ? "record"
                       : a->job.report                      ? "report"
                       : a->pattern_text                    ? "pattern"
                       : a->show                            ? "show"
                       : a->job.in_flight                   ? "in-flight"
                       : a->job.late != 0                   ? "late"
                       : a->job.lease != 0                  ? "lease"
                       : a->job.below == KOFN_BELOW_DEGRADE ? "below degrade"
                                                            : NULL;

    if (what)
        return cli_say(EXIT_USAGE, "--%s does not go with --masterless", what);
    if (kofn_faults_not_of_nodes(w))
        return cli_say(
            EXIT_USAGE,
            "--faults %s=: a mesh supports only fault= and where=; put slow, "
            "leaving and joining nodes into --events",
            kofn_faults_not_of_nodes(w));
    if (w->fault > 0 && !w->where)
        return cli_say(EXIT_USAGE,
                       "--faults %s: say where, as where=product+update",
                       a->faults_text);
    if (w->fault > 0 && a->job.errors == KOFN_ERRORS_NONE)
        return cli_say(EXIT_USAGE,
                       "--faults fault=%g needs --errors: without it a result "
                       "with mistakes in it would be taken for one without",
                       w->fault);
    if (a->workers > MOST_NODES)
        return cli_say(EXIT_USAGE, "--workers %zu: a mesh has at most %d nodes",
                       a->workers, MOST_NODES);
    if (a->resume && !a->checkpoint)
        return cli_say(
            EXIT_USAGE,
            "--resume needs --checkpoint DIR, the folder to resume from");
    if (a->job.errors != KOFN_ERRORS_NONE &&
        (kofn_decoding)a->decode == KOFN_DECODE_DISTRIBUTED)
        return cli_say(EXIT_USAGE,
                       "--errors does not go with --decode distributed: what "
                       "others decode cannot be compared; use replicated");
    return 0;
}
