/* replay.h -- replays a journal against a fresh coordinator, and writes the
 * trace, the record and the report of that run.
 *
 * The journal is borrowed and stays unchanged. The replay frees all it made
 * before it returns. */
#ifndef KOFN_REPLAY_H
#define KOFN_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct replay_result {
    size_t events, line; /* events replayed; line of the first difference or
                            fault, 0: none */
    unsigned rounds;
    char scheme[300]; /* of the first operand */
    size_t workers;
    /* The first workers that left or were evicted, and the rounds that had
     * begun by then. */
    struct {
        size_t worker, rounds;
    } lost[1000];
    size_t losts, begun;
    bool cut; /* the last line is incomplete and was ignored */
    char error[600];
} replay_result;

/* Outputs of a replay. */
typedef struct replay_show {
    FILE *steps; /* every event and its actions; NULL: nothing */
    bool state;  /* also the state of the products after each event */
    /* Files to write about the run; NULL: none.  Nothing is written if the
     * replay fails. */
    const char *trace, *record, *report;
} replay_show;

/* Results of `replay`, which are also the exit codes of the command. */
enum { SAME = 0, DIFFERENT = 1, NOT_A_JOURNAL = 2 };

/* Compares all decisions of the journal with those of a fresh coordinator.
 * `show` may be NULL. */
int replay(const char *text, size_t length, const char *name,
           const replay_show *show, replay_result *r);

#endif
