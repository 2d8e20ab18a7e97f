/* tell.h -- scenarios 5 and 6 of streams: the exit code, after a message where it is
 * not 0; into the list where there is one. */
#ifndef PAPERS_STREAM_TELL_H
#define PAPERS_STREAM_TELL_H

#include "show.h"

int stream_rates(const papers_args *a, json_t *list);
int stream_nets(const papers_args *a, json_t *list);

#endif
