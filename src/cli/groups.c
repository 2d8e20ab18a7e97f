/* groups.c -- where an option stands in help: its group, the commands whose
 * --help shows it, and those that have it under --set.
 *
 * A command lists at most 30 options by name. What is rarely used is
 * under --set. Its usual spelling, --NAME VALUE, is accepted as well. */
#include "cli.h"
#include "help.h"

#include <string.h>

/* Commands without a coded job, which have few options. */
#define SMALL ~(unsigned)(IN_JOB | IN_WORKER | IN_PLAN)
#define LEARN (IN_REGRESS | IN_TRAIN)
#define LOOPS (IN_ITERATE | LEARN)

typedef struct place {
    const char *name;
    cli_group group;
    unsigned front; /* commands whose --help shows it */
    unsigned rare;  /* commands that have it under --set */
} place;

static const place places[] = {
    {"output", CLI_RESULT, ~0u, 0},
    {"verify", CLI_RESULT, ~0u, 0},
    {"json", CLI_RESULT, ~0u, 0},
    {"over", CLI_WORK, ~0u, 0},
    {"fleet", CLI_WORK, ~0u, 0},
    {"csv", CLI_RESULT, ~0u, 0},
    {"svg", CLI_RESULT, ~0u, 0},
    {"quiet", CLI_RESULT, ~(unsigned)IN_JOB, 0},
    {"help", CLI_RESULT, ~0u, 0},
    {"help-all", CLI_RESULT, 0, 0},
    {"set", CLI_RESULT, 0, 0},
    {"top", CLI_RESULT, ~0u, 0},
    {"ids", CLI_RESULT, 0, 0},
    {"show", CLI_RESULT, 0, IN_RUN},
    {"shares", CLI_RESULT, ~0u, 0},
    {"labels", CLI_RESULT, ~0u, 0},
    {"all", CLI_RESULT, ~0u, 0},
    {"dtype", CLI_RESULT, ~0u, IN_TRAIN},

    {"rounds", CLI_WORK, ~0u, 0},
    {"damping", CLI_WORK, ~0u, 0},
    {"personalize", CLI_WORK, 0, 0},
    {"sinks", CLI_WORK, 0, IN_PAGERANK},
    {"start", CLI_WORK, 0, IN_PAGERANK | IN_REGRESS},
    {"weights", CLI_WORK, 0, IN_PAGERANK},
    {"undirected", CLI_WORK, 0, IN_PAGERANK},
    {"directed", CLI_WORK, 0, IN_PAGERANK},
    {"keep-isolated", CLI_WORK, 0, IN_PAGERANK},
    {"tol", CLI_WORK, ~(unsigned)IN_PAGERANK, 0},
    {"max-iter", CLI_WORK, 0, 0},
    {"loss", CLI_WORK, ~(unsigned)IN_TRAIN, 0},
    {"l2", CLI_WORK, 0, IN_TRAIN},
    {"kernel", CLI_WORK, IN_PREDICT, 0},
    {"optimizer", CLI_WORK, 0, 0},
    {"line-search", CLI_WORK, 0, IN_REGRESS},
    {"step", CLI_WORK, SMALL, 0},
    {"iterations", CLI_WORK, 0, 0},
    {"batches", CLI_WORK, 0, IN_REGRESS},
    {"no-intercept", CLI_WORK, 0, 0},
    {"scale", CLI_WORK, 0, 0},
    {"hidden", CLI_WORK, 0, 0},
    {"layers", CLI_WORK, ~0u, 0},
    {"activation", CLI_WORK, 0, 0},
    {"output-activation", CLI_WORK, 0, IN_TRAIN},
    {"momentum", CLI_WORK, 0, 0},
    {"nesterov", CLI_WORK, 0, IN_TRAIN},
    {"batch", CLI_WORK, IN_PLAN, 0},
    {"epochs", CLI_WORK, ~0u, 0},
    {"scrub", CLI_WORK, 0, IN_TRAIN},
    {"autoencoder", CLI_WORK, 0, IN_TRAIN},
    {"sparsity", CLI_WORK, 0, IN_TRAIN},
    {"sparsity-weight", CLI_WORK, 0, IN_TRAIN},
    {"unit", CLI_WORK, 0, IN_TRAIN},
    {"columns", CLI_WORK, ~0u, 0},
    {"points", CLI_WORK, ~0u, 0},
    {"label", CLI_WORK, SMALL, LEARN},
    {"test", CLI_WORK, IN_TRAIN, 0},
    {"tolerance", CLI_WORK, ~0u, 0},
    {"rows", CLI_WORK, ~0u, 0},
    {"factor", CLI_WORK, ~0u, 0},
    {"mu", CLI_WORK, ~0u, 0},
    {"state", CLI_WORK, ~0u, 0},

    {"workers", CLI_WORKERS, ~0u, 0},
    {"port", CLI_WORKERS, ~0u, 0},
    {"worker", CLI_WORKERS, ~0u, 0},
    {"name", CLI_WORKERS, ~0u, 0},
    {"keys", CLI_WORKERS, ~0u, 0},
    {"insecure", CLI_WORKERS, ~(unsigned)IN_JOB, LEARN},
    {"tls-ca", CLI_WORKERS, SMALL, IN_JOB},
    {"tls-cert", CLI_WORKERS, SMALL, IN_JOB},
    {"tls-key", CLI_WORKERS, SMALL, IN_JOB},
    {"min-workers", CLI_WORKERS, 0, IN_JOB},
    {"workers-per-principal", CLI_WORKERS, 0, IN_JOB},
    {"start-within", CLI_WORKERS, 0, IN_JOB},
    {"patience", CLI_WORKERS, SMALL, LOOPS},
    {"grace", CLI_WORKERS, ~0u, 0},
    {"memory", CLI_WORKERS, ~0u, 0},
    {"data-path", CLI_WORKERS, ~0u, 0},
    {"once", CLI_WORKERS, ~0u, 0},
    {"with-parent", CLI_WORKERS, 0, 0},
    {"preempt-file", CLI_WORKERS, 0, 0},
    {"preempt-command", CLI_WORKERS, ~0u, 0},
    {"masterless", CLI_WORKERS, IN_ITERATE, 0},
    {"reach", CLI_WORKERS, 0, LEARN},
    {"decode", CLI_WORKERS, 0, LOOPS},
    {"confirm", CLI_WORKERS, 0, IN_ITERATE},

    {"scheme", CLI_CODE, ~0u, 0},
    {"tolerate", CLI_CODE, ~0u, 0},
    {"errors", CLI_CODE, ~0u, 0},
    {"faulty", CLI_CODE, ~0u, 0},
    {"deadline", CLI_CODE, ~0u, 0},
    {"seed", CLI_CODE, SMALL, 0},
    {"below", CLI_CODE, 0, LOOPS},
    {"late", CLI_CODE, 0, LOOPS},
    {"in-flight", CLI_CODE, 0, IN_JOB},
    {"lease", CLI_CODE, 0, IN_JOB},
    {"pieces", CLI_CODE, 0, IN_JOB},
    {"max-error", CLI_CODE, 0, IN_JOB},
    {"quarantine", CLI_CODE, 0, IN_JOB},
    {"audit", CLI_CODE, 0, IN_JOB},
    {"beyond", CLI_CODE, 0, IN_JOB},

    {"faults", CLI_TRIALS, ~(unsigned)IN_WORKER, 0},
    {"events", CLI_TRIALS, 0, 0},
    {"pattern", CLI_TRIALS, 0, LOOPS},
    {"record", CLI_TRIALS, SMALL, LOOPS},
    {"staged", CLI_TRIALS, 0, 0},

    {"checkpoint", CLI_RECORDS, ~0u, 0},
    {"resume", CLI_RECORDS, 0, 0},
    {"every", CLI_RECORDS, 0, IN_TRAIN},
    {"history", CLI_RECORDS, 0, 0},
    {"journal", CLI_RECORDS, 0, 0},
    {"trace", CLI_RECORDS, 0, LEARN | IN_PAGERANK},
    {"metrics", CLI_RECORDS, 0, LEARN},
    {"metrics-listen", CLI_RECORDS, 0, LOOPS},
    {"log", CLI_RECORDS, IN_WORKER, LEARN},
    {"log-level", CLI_RECORDS, 0, IN_JOB},
};

/* Returns an option's place. One that has none here is under --set. */
static const place *place_of(const cli_option *o)
{
    static const place other = {NULL, CLI_CODE, 0, ~0u};
    size_t i = 0, n = sizeof places / sizeof *places;

    while (i < n && strcmp(places[i].name, o->name) != 0)
        i++;
    return i < n ? &places[i] : &other;
}

const char *cli_group_title(cli_group g)
{
    static const char *const title[] = {
        "Result", "Problem", "Workers", "Code", "Faults and trials", "Records"};

    return title[g];
}

cli_group cli_group_of(const cli_option *o)
{
    return place_of(o)->group;
}

bool cli_is_in_front(const cli_option *o, const cli_command *c)
{
    const place *p = place_of(o);

    return p->front & c->bit && !(p->rare & c->bit);
}

bool cli_is_rare(const cli_option *o, const cli_command *c)
{
    return place_of(o)->rare & c->bit;
}
