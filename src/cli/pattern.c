/* pattern.c -- --pattern, and kofn gen pattern: who is slow in which round.
 *
 * Owns the pattern that it makes until it is handed to the port or written.
 * It draws nothing itself: kofn_pattern_new does. */
#include "cli.h"

#include <string.h>

#define ROUNDS 10000           /* of commands that do not know their number */
#define MOST ((size_t)1 << 22) /* factors that are drawn for a run */

static int make(const cli_args *a, const char *what, size_t workers,
                size_t rounds, double factor, kofn_matrix *out)
{
    return cli_fail_input(
        kofn_pattern_new(out, what, workers, rounds, factor, a->seed));
}

/* A pattern begins again at its end: where rounds are many, or not known, some
 * of them are enough. */
static size_t rounds_of(const cli_args *a)
{
    size_t rounds = a->command->bit & IN_PRODUCT ? a->rounds : ROUNDS;
    size_t most = MOST / a->workers;

    return rounds < most ? rounds : most > 0 ? most : 1;
}

int cli_make_pattern(cli_args *a)
{
    double factor = a->faults.factor > 0 ? a->faults.factor : 5;
    bool alone = a->command->bit & IN_WORKER;

    if (!a->pattern_text)
        return 0;
    if (alone && strchr(a->pattern_text, '='))
        return cli_say(EXIT_USAGE,
                       "--pattern %s: one worker does not know of the others; "
                       "make a file for all of them: kofn gen pattern",
                       a->pattern_text);
    if (a->faults.straggle > 0)
        return cli_say(EXIT_USAGE, "--pattern and --faults straggle both say "
                                   "who is slow; give one of them");
    TRY_CODE(make(a, a->pattern_text, alone ? 1 : a->workers, rounds_of(a),
                  factor > 1 ? factor : 5, &a->pattern));
    a->faults.pattern = &a->pattern;
    return 0;
}

/* kofn gen pattern WHAT ROUNDS WORKERS */
int cli_gen_pattern(const cli_args *a, size_t rounds, size_t workers)
{
    kofn_matrix m;
    int code;

    TRY_CODE(make(a, a->operand[1], workers, rounds, a->factor, &m));
    code = cli_write(a, KOFN_DENSE(&m), 2);
    kofn_free(m.data);
    return code;
}
