/* interrupted.c -- says after a signal which files have what of the run, and
 * the command that continues it.
 *
 * Owns nothing. */
#include "cli.h"
#include "log.h"

#include <stdlib.h>
#include <string.h>

/* Returns the word for one of what a checkpoint counts. */
static const char *step_of(const cli_args *a)
{
    return a->command->bit & IN_PRODUCT  ? "round"
           : a->command->bit == IN_TRAIN ? "step"
                                         : "iteration";
}

/* Says what the checkpoint has; returns whether the job can continue. */
static bool tell_checkpoint(const cli_args *a, const checkpoint *c)
{
    unsigned done = checkpoint_kept(c);

    if (a->command->bit == IN_STREAM)
        cli_say(0, "interrupted: the products that were over are in their "
                   "files, the others are lost");
    else if (!a->checkpoint)
        cli_say(0, "interrupted: nothing was kept to continue from; "
                   "--checkpoint DIR keeps it");
    else if (a->masterless)
        cli_say(0, "interrupted: the last state that was saved is in %s",
                a->checkpoint);
    else if (done)
        cli_say(0, "interrupted: the state after %s %u is in %s", step_of(a),
                done, a->checkpoint);
    else
        cli_say(0, "interrupted: no %s was over, so that %s has no state",
                step_of(a), a->checkpoint);
    return a->checkpoint && (done || a->masterless);
}

/* Says which files about the run there are, up to its end. */
static void tell_files(const cli_args *a)
{
    const struct {
        const char *option, *path;
    } file[] = {{"history", a->history},     {"journal", a->job.journal},
                {"metrics", a->job.metrics}, {"trace", a->job.trace},
                {"record", a->job.record},   {"report", a->job.report}};
    char words[600];
    size_t n = 0;

    *words = 0;
    for (size_t i = 0; i < sizeof file / sizeof *file; i++)
        if (file[i].path && n < sizeof words)
            n += (size_t)snprintf(words + n, sizeof words - n, "%s--%s %.80s",
                                  n ? ", " : "", file[i].option, file[i].path);
    if (n)
        cli_say(0, "written until then: %s", words);
}

void cli_interrupted(const cli_args *a, const checkpoint *c)
{
    bool continues = tell_checkpoint(a, c);
    char *line = continues ? cli_command_line(a) : NULL;

    tell_files(a);
    if (!line)
        return;
    cli_clean(line);
    fprintf(stderr, "to continue: %s%s\n", line, a->resume ? "" : " --resume");
    free(line);
}
