/* processes.c -- four workers that are processes of this machine. Each runs
 * this program again, over a socket in their own folder. */
#define _GNU_SOURCE
#include "stream/stream.h"

#include <kofn/io.h>
#include <kofn/net.h>
#include <kofn/transport.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 4
#define SILENCE (10 * KOFN_SECOND) /* for loaded machines */

typedef struct crew {
    char folder[64], socket[80], address[90], pattern[80];
    pid_t parent, child[WORKERS];
    size_t children, ended;
} crew;

static crew ours;

/* ---- a worker ------------------------------------------------------------ */

int processes_serve(const char *address, const char *file)
{
    kofn_net_options net = {
        .size = sizeof net, .body_max = (size_t)1 << 40, .silence = SILENCE};
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kofn_faults faults = KOFN_FAULTS_INIT(.seed = 1);
    kofn_transport *t;
    kofn_matrix pattern = {.data = NULL};
    kofn_status st = kofn_pattern_new(&pattern, file, 1, 1, 5, 1);

    faults.pattern = &pattern;
    o.faults = &faults;
    o.staged = true;
    if (!st)
        st = kofn_net_connect(&t, address, &net);
    if (!st)
        st = kofn_serve(t, &o);
    kofn_free(pattern.data);
    return st && st != KOFN_AGAIN;
}

static void become_worker(const crew *c)
{
    setenv("OPENBLAS_NUM_THREADS", "1", 1); /* one process per core */
    setenv("BLIS_NUM_THREADS", "1", 1);
    setenv("MKL_NUM_THREADS", "1", 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a worker ends with its parent, ... */
    if (getppid() == c->parent)       /* ... which may have ended already */
        execl("/proc/self/exe", "kofn-papers", PROCESSES_WORKER, c->address,
              c->pattern, (char *)NULL);
    _exit(127);
}

/* ---- the processes --------------------------------------------------------
 */

static size_t count_ended(void *ud)
{
    crew *c = ud;
    size_t left = 0;

    for (size_t i = 0; i < c->children; i++)
        if (waitpid(c->child[i], NULL, WNOHANG) == 0)
            c->child[left++] = c->child[i];
    c->ended += c->children - left;
    c->children = left;
    return c->ended;
}

static kofn_status start(crew *c)
{
    while (c->children < WORKERS) {
        pid_t pid = fork();

        if (pid < 0)
            return papers_fail(KOFN_TRANSPORT,
                               "worker %zu could not be started: %s",
                               c->children, strerror(errno));
        if (pid == 0)
            become_worker(c);
        c->child[c->children++] = pid;
    }
    return KOFN_OK;
}

static kofn_status make_folder(crew *c)
{
    *c = (crew){.parent = getpid()};
    PAPERS_TRY(papers_folder_make(c->folder, sizeof c->folder));
    snprintf(c->socket, sizeof c->socket, "%s/socket", c->folder);
    snprintf(c->address, sizeof c->address, "ipc://%s", c->socket);
    snprintf(c->pattern, sizeof c->pattern, "%s/pattern.npy", c->folder);
    return KOFN_OK;
}

kofn_status processes_open(const kofn_problem *pb, const kofn_faults *faults,
                           kofn_port **out)
{
    kofn_net_options net = {.size = sizeof net, .silence = SILENCE};
    kofn_away_options away = KOFN_AWAY_OPTIONS_INIT;
    kofn_transport *t;
    kofn_status st = make_folder(&ours);

    net.body_max = ((size_t)256 << 20) + 9 * pb->m * pb->p;
    away.workers = WORKERS;
    away.name = "processes";
    away.alone = true;
    away.ended = count_ended;
    away.ud = &ours;
    if (!st)
        st = kofn_write(ours.pattern, KOFN_DENSE(faults->pattern), 2);
    if (!st)
        st = kofn_net_listen(&t, ours.address, &net);
    if (!st)
        st = kofn_port_away(out, t, &away);
    if (!st) {
        st = start(&ours);
        if (st)
            kofn_port_close(*out);
    }
    if (st)
        processes_close();
    return st;
}

/* Waits for the workers. Dismissed ones end within a second or so. */
void processes_close(void)
{
    crew *c = &ours;

    for (int i = 0; i < 200 && c->children; i++) {
        count_ended(c);
        if (c->children)
            usleep(10000);
    }
    for (size_t i = 0; i < c->children; i++) {
        kill(c->child[i], SIGKILL);
        waitpid(c->child[i], NULL, 0);
    }
    c->children = 0;
    papers_folder_remove(c->folder);
}
