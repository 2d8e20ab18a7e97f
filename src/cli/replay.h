/* replay.h -- a journal in memory against a fresh coordinator, and the trace
 * and the record of that run.
 *
 * The journal is borrowed and stays unchanged; what the replay makes is freed
 * before it returns. */
#ifndef KOFN_REPLAY_H
#define KOFN_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct replay_result {
    size_t events, line; /* line of the first difference or fault; 0: none */
    unsigned rounds;
    bool cut; /* the last line is not whole and was left out */
    char error[600];
} replay_result;

/* The output that a replay is to give. */
typedef struct replay_show {
    FILE *steps; /* every event and what came of it; NULL: nothing */
    bool state;  /* ... and where the products then stand          */
    const char *trace, *record; /* files of what the run would have written to
                                   such; NULL: none.  Neither is written where
                                   the replay fails                        */
} replay_show;

/* The values that `replay` returns, and the command exits with. */
enum { SAME = 0, DIFFERENT = 1, NOT_A_JOURNAL = 2 };

/* Are all decisions the same?  `show` may be NULL. */
int replay(const char *text, size_t length, const char *name,
           const replay_show *show, replay_result *r);

#endif
