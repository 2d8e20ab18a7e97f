/* pattern.c -- --pattern and kofn gen pattern: which workers are slow in which
 * round.
 *
 * Owns the pattern until it is handed to the port or written. kofn_pattern_new
 * draws it. */
#include "cli.h"

#include <string.h>

#define ROUNDS                                                                 \
    10000 /* rounds of a pattern if the command does not know its number of    \
             rounds */
#define MOST ((size_t)1 << 22) /* most factors drawn for a run */

static int make(const cli_args *a, const char *what, size_t workers,
                size_t rounds, double factor, kofn_matrix *out)
{
    return cli_fail_input(
        kofn_pattern_new(out, what, workers, rounds, factor, a->seed));
}

/* Returns the number of rounds to draw. A pattern repeats at its end, so a
 * part suffices if rounds are many or unknown. */
static size_t rounds_of(const cli_args *a)
{
    size_t rounds = a->command->bit & IN_PRODUCT ? a->rounds : ROUNDS;
    size_t most = MOST / a->workers;

    return rounds < most ? rounds : most > 0 ? most : 1;
}

/* True if the text is a model that one worker cannot draw alone, and not a
 * file. */
static bool is_model(const char *text)
{
    return strchr(text, '=') || !strcmp(text, "lambda") ||
           !strcmp(text, "lambda:") || !strcmp(text, "spot") ||
           !strcmp(text, "spot:");
}

int cli_make_pattern(cli_args *a)
{
    double factor = a->faults.factor > 0 ? a->faults.factor : 5;
    bool alone = a->command->bit & IN_WORKER;

    if (!a->pattern_text)
        return 0;
    if (alone && is_model(a->pattern_text))
        return cli_say(EXIT_USAGE,
                       "--pattern %s: one worker does not know of the others; "
                       "make a file for all of them: kofn gen pattern",
                       a->pattern_text);
    if (a->faults.straggle > 0)
        return cli_say(
            EXIT_USAGE,
            "--pattern and --faults straggle both choose the slow workers; "
            "give one of them");
    TRY_CODE(make(a, a->pattern_text, alone ? 1 : a->workers, rounds_of(a),
                  factor > 1 ? factor : 5, &a->pattern));
    a->faults.pattern = &a->pattern;
    return 0;
}

/* Runs kofn gen pattern WHAT ROUNDS WORKERS. */
int cli_gen_pattern(const cli_args *a, size_t rounds, size_t workers)
{
    kofn_matrix m;
    int code;

    TRY_CODE(make(a, a->operand[1], workers, rounds, a->factor, &m));
    code = cli_write(a, KOFN_DENSE(&m), 2);
    kofn_free(m.data);
    return code;
}
