/* rules.c -- rules of options beyond a range: numbers, names of ports, faults,
 * and options that need or exclude each other.
 *
 * Owns nothing. A broken rule gives a message and an exit code. */
#include "masterless.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ------------------------------------------------------------- */

bool cli_whole(const char *text, size_t max, size_t *out)
{
    unsigned long long x;
    unsigned long long scale = 1;
    char *end;

    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    x = strtoull(text, &end, 10);
    if (*end == 'k')
        scale = 1000;
    else if (*end == 'M')
        scale = 1000000;
    else if (*end == 'G')
        scale = 1000000000;
    if (errno || end[scale > 1] || x > max / scale)
        return false;
    *out = (size_t)(x * scale);
    return true;
}

/* ---- one option ---------------------------------------------------------- */

int cli_check_port_name(cli_args *a, const cli_option *o, const char *text)
{
    (void)a;
    if (cli_transport_of(text))
        return 0;
    return cli_say(EXIT_USAGE, "--%s %s: give %s", o->name, text,
                   cli_transport_forms(NULL));
}

/* Appends the addresses of each --reach. */
int cli_add_reach(cli_args *a, const cli_option *o, const char *text)
{
    size_t n = a->reached ? strlen(a->reached) : 0;
    char *all = realloc(a->reached, n + strlen(text) + 2);

    if (!all)
        return cli_say(EXIT_FAILED, "out of memory for --%s", o->name);
    sprintf(all + n, "%s%s", n ? "," : "", text);
    a->reach = a->reached = all;
    return 0;
}

int cli_read_faults(cli_args *a, const cli_option *o, const char *text)
{
    size_t n = strlen(a->faults_given), room = sizeof a->faults_given - n;

    if (kofn_faults_parse(&a->faults, text))
        return cli_say(EXIT_USAGE, "--%s", kofn_errmsg());
    if (strlen(text) + 2 > room)
        return cli_say(EXIT_USAGE,
                       "--%s: more than %zu characters in all; say each fault "
                       "once",
                       o->name, sizeof a->faults_given - 2);
    snprintf(a->faults_given + n, room, "%s%s", n ? "," : "", text);
    return 0;
}

/* ---- several of them ----------------------------------------------------- */

/* Checks that certificates of another CA come as three files and replace
 * --keys. */
static int check_certificates(const cli_args *a)
{
    const char *const file[] = {a->tls_ca, a->tls_cert, a->tls_key};
    static const char *const name[] = {"tls-ca", "tls-cert", "tls-key"};
    const char *given = NULL, *missing = NULL; /* the first of each */

    for (int i = 2; i >= 0; i--) {
        given = file[i] ? name[i] : given;
        missing = file[i] ? missing : name[i];
    }
    if (!given)
        return 0;
    if (missing)
        return cli_say(EXIT_USAGE,
                       "--%s is given and --%s is not; give --tls-ca, "
                       "--tls-cert and --tls-key together",
                       given, missing);
    if (a->keys)
        return cli_say(EXIT_USAGE,
                       "--keys %s and --tls-ca %s are different keys; give one "
                       "of the two",
                       a->keys, a->tls_ca);
    if (a->insecure)
        return cli_say(EXIT_USAGE,
                       "--insecure goes without keys, and --tls-ca %s gives "
                       "some; give one of the two",
                       a->tls_ca);
    return 0;
}

static bool is_address(const cli_transport *t)
{
    return t->address;
}

/* Returns the first given option that needs a port with an address, or NULL. */
static const char *needs_address(const cli_args *a)
{
    return a->least                            ? "min-workers"
           : a->keys                           ? "keys"
           : a->tls_ca                         ? "tls-ca"
           : a->insecure && !a->metrics_listen ? "insecure"
           : a->per_principal_given            ? "workers-per-principal"
                                               : NULL;
}

/* Checks options that need each other, and sets defaults that depend on the
 * port. */
static int check_port(cli_args *a)
{
    const cli_transport *port = cli_transport_of(a->port);
    const char *lonely = needs_address(a);

    if (lonely && !port->address)
        return cli_say(
            EXIT_USAGE,
            "--%s needs workers that connect to an address; give --port %s as "
            "well",
            lonely, cli_transport_forms(is_address));
    if (a->least > a->workers)
        return cli_say(
            EXIT_USAGE,
            "--min-workers %zu exceeds --workers %zu; give a larger --workers",
            a->least, a->workers);
    if (port->address && !a->below_given)
        a->job.below = KOFN_BELOW_PAUSE; /* more workers may come at any time */
    if (a->job.errors != KOFN_ERRORS_NONE && !a->per_principal_given)
        a->job.workers_per_principal = 1;
    if (!a->masterless && (a->reach || a->decode || a->confirm))
        return cli_say(EXIT_USAGE, "--%s is for --masterless",
                       a->reach    ? "reach"
                       : a->decode ? "decode"
                                   : "confirm");
    if (!a->masterless && a->faults.fault > 0)
        return cli_say(
            EXIT_USAGE,
            "--faults fault=%g is for nodes of --masterless; workers "
            "have corrupt=, flip= and miss=",
            a->faults.fault);
    if (a->reach && !port->address)
        return cli_say(EXIT_USAGE,
                       "--reach needs an address to listen at; give --port "
                       "tcp://HOST:PORT");
    return a->masterless ? masterless_check(a) : 0;
}

int cli_check_together(const cli_command *c, cli_args *a)
{
    int code = check_certificates(a);

    return !code && c->bit & IN_JOB ? check_port(a) : code;
}
