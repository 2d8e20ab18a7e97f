/* replay.h -- a journal in memory against a fresh coordinator. */
#ifndef KOFN_REPLAY_H
#define KOFN_REPLAY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct replay_result {
    size_t events, line; /* line of the first difference or fault; 0: none */
    unsigned rounds;
    bool cut; /* the last line is not whole and was left out */
    char error[600];
} replay_result;

/* An exit code: 0 all decisions are the same, 1 they differ, 2 not a journal. */
int replay(const char *text, size_t length, const char *name,
           replay_result *r);

#endif
