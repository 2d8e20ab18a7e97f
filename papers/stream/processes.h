/* processes.h -- where the workers of streams that are computed are. */
#ifndef PAPERS_STREAM_PROCESSES_H
#define PAPERS_STREAM_PROCESSES_H

#include "stream/stream.h"

#include <kofn/transport.h>

/* The first argument of this program as a worker; address and pattern follow. */
#define PROCESSES_WORKER "worker-of-kofn-papers"
/* That worker's whole life; the exit code. */
int processes_serve(const char *address, const char *pattern);

/* As rates_port has them. */
kofn_status processes_open(void *ud, const kofn_problem *pb,
                           const kofn_weather *weather, kofn_port **out);
void processes_close(void *ud);

#endif
