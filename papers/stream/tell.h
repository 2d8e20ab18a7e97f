/* tell.h -- scenarios 5 and 6 of streams, as papers_scenario has them. */
#ifndef PAPERS_STREAM_TELL_H
#define PAPERS_STREAM_TELL_H

#include "show.h"
#include "stream/stream.h"

#include <kofn/transport.h>

kofn_status run_rates(const papers_args *a, size_t k, json_t *list);
void tell_rates(json_t *o);
kofn_status run_nets(const papers_args *a, size_t k, json_t *list);
void tell_nets(json_t *o);

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
