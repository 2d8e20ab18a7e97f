/* tell.h -- scenarios 5 and 6 of streams: the exit code, after a message where it is
 * not 0; into the list where there is one. */
#ifndef PAPERS_STREAM_TELL_H
#define PAPERS_STREAM_TELL_H

#include "show.h"
#include "stream/stream.h"

#include <kofn/transport.h>

int stream_rates(const papers_args *a, json_t *list);
int stream_nets(const papers_args *a, json_t *list);

/* ---- workers of 5 that are processes (processes.c) ----------------------- */

/* The first argument of this program as a worker; address and pattern follow. */
#define PROCESSES_WORKER "worker-of-kofn-papers"
/* That worker's whole life; the exit code. */
int processes_serve(const char *address, const char *pattern);

/* As rates_port has them. */
kofn_status processes_open(void *ud, const kofn_problem *pb,
                           const kofn_faults *faults, kofn_port **out);
void processes_close(void *ud);

#endif
