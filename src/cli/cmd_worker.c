/* cmd_worker.c -- kofn worker and kofn keygen.
 *
 * Owns the transport of the worker until it serves (serve.c). */
#include "cli.h"

#include <netdb.h>
#include <string.h>
#include <unistd.h>

/* Warns about an unknown host name. The name may become known when its machine
 * starts, but it may also be mistyped. */
static void tell_unknown_host(const char *address)
{
    const char *host = address + strlen("tcp://");
    size_t n = strcspn(host, ":");
    struct addrinfo *found = NULL;
    char name[256];
    int why;

    if (strncmp(address, "tcp://", 6) != 0 || *host == '[' || n >= sizeof name)
        return;
    memcpy(name, host, n);
    name[n] = 0;
    why = getaddrinfo(name, NULL, NULL, &found);
    if (why)
        fprintf(stderr, "%s: %s; retrying\n", name, gai_strerror(why));
    else
        freeaddrinfo(found);
}

/* Returns NAME@ADDRESS without the name of the expected certificate. */
static const char *without_name(const char *address)
{
    const char *at = strchr(address, '@'), *scheme = strstr(address, "://");

    return at && scheme && at < scheme ? at + 1 : address;
}

int cmd_worker(cli_args *a)
{
    const char *address = without_name(a->operand[0]);
    kofn_net_options z = cli_net_options(a, (size_t)1 << 40);
    const cli_transport *to = cli_transport_of(address);
    kofn_transport *t;
    kofn_status st;
    int why;

    if (a->with_parent)
        TRY_CODE(cli_end_with_parent(a->grace));
    if (!to || !to->address)
        return cli_say(EXIT_USAGE,
                       "%s is no address; give tcp://HOST:PORT or "
                       "ipc://PATH, as the coordinator says at its start",
                       a->operand[0]);
    z.silence = a->staged ? 10 * KOFN_SECOND /* tests run on loaded machines */
                          : to->silence;
    why = a->data_path ? cli_no_folder(a->data_path, R_OK | X_OK) : 0;
    if (why)
        return cli_say(EXIT_USAGE,
                       "--data-path %s: %s; give the folder that "
                       "has the coordinator's input files, or leave it out",
                       a->data_path, strerror(why));
    st = kofn_net_connect(&t, a->operand[0], &z);
    if (st) /* keys are the only files it reads */
        return st == KOFN_IO ? cli_fail_input(st) : cli_fail(st);
    cli_tell_blas(a);
    if (!a->quiet)
        tell_unknown_host(address);
    return cli_serve(a, t, true);
}

int cmd_keygen(cli_args *a)
{
    if (!*a->operand[0])
        return cli_say(EXIT_USAGE, "keygen \"\": give a folder");
    TRY_CODE(cli_fail(kofn_net_keygen(a->operand[0], a->worker)));
    if (!a->quiet && a->worker)
        fprintf(stderr,
                "%s/%s.crt lists it; take it away to revoke it\n"
                "worker: move the folder %s/%s there, and\n"
                "        kofn worker tcp://HOST:5555 --keys %s\n",
                a->operand[0], a->worker, a->operand[0], a->worker, a->worker);
    else if (!a->quiet)
        fprintf(
            stderr,
            "%s: keys of the coordinator and of its workers\n"
            "coordinator: kofn COMMAND ... --port tcp://0.0.0.0:5555 --keys "
            "%s\n"
            "workers: copy worker.key, worker.crt and coordinator.crt to a "
            "folder there, and\n"
            "         kofn worker tcp://HOST:5555 --keys FOLDER\n",
            a->operand[0], a->operand[0]);
    return EXIT_EXACT;
}
