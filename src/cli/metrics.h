/* metrics.h -- figures for --metrics-listen, in the text format of Prometheus
 * (0.0.4).
 *
 * The process has one place that answers. The functions are called on the
 * thread of the command, and none of them waits for a client. */
#ifndef KOFN_CLI_METRICS_H
#define KOFN_CLI_METRICS_H

#include "cli.h"

#include <kofn/transport.h>

/* ---- metrics_listen.c ---------------------------------------------------- */

/* Opens the address of --metrics-listen; does nothing without it. Returns 0, or
 * the exit code after a message. */
int cli_metrics_open(const cli_args *a);
/* True if a new text is wanted: once a second. */
bool cli_metrics_due(void);
/* Takes over the text, which malloc allocated, for all later requests. */
void cli_metrics_put(char *text);
void cli_metrics_close(void);

/* ---- metrics.c ----------------------------------------------------------- */

/* Put the figures of a job on the port of this name, or of a worker, if they
 * are due. */
void cli_metrics_of_job(const kofn_job *job, const char *port);
void cli_metrics_of_worker(const kofn_serve_counts *counts);

#endif
