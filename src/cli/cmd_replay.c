/* cmd_replay.c -- kofn replay, which repeats a run from its journal, and
 * kofn trace, which writes the run's trace.
 *
 * docs/journal.md has the format. A journal comes from a file, so every line
 * is checked before it is used. */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"

int cli_read_text(const char *path, char **text, size_t *n)
{
    FILE *f = fopen(path, "rb");
    size_t cap = 1 << 16;
    char *more;
    int code;

    *text = NULL;
    *n = 0;
    if (!f)
        return cli_say(EXIT_USAGE, "%s: %s", path, strerror(errno));
    do {
        more = realloc(*text, cap *= 2);
        if (!more)
            break;
        *text = more;
        *n += fread(*text + *n, 1, cap - *n, f);
    } while (*n == cap);
    code = !more       ? cli_say(EXIT_FAILED, "%s: out of memory", path)
           : ferror(f) ? cli_say(EXIT_USAGE, "%s: %s", path, strerror(errno))
                       : 0;
    fclose(f);
    return code;
}

static void report_json(const cli_args *a, const replay_result *r, int code)
{
    json_t *o = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:b}", "status", code ? "failed" : "ok",
        "command", a->command->name, "events", (json_int_t)r->events, "rounds",
        (json_int_t)r->rounds, "line", (json_int_t)r->line, "cut", r->cut);

    if (code)
        json_object_set_new(o, "error", cli_error_json());
    cli_print_json(o);
}

static int play(const cli_args *a, const replay_show *show)
{
    const char *path = a->operand[0];
    replay_result r = {0};
    size_t n;
    char *text;
    int code = cli_read_text(path, &text, &n);

    if (!code)
        code = replay(text, n, path, show, &r);
    free(text);
    fflush(stdout); /* print the steps before the fault */
    if (code && *r.error)
        cli_say(code, "%s", r.error);
    if (a->json)
        report_json(a, &r, code);
    else if (!code && !a->quiet)
        printf("%s: %zu events, %u rounds: every decision is the same%s\n",
               path, r.events, r.rounds,
               r.cut ? " (the last line is cut off and left out)" : "");
    return code;
}

int cmd_replay(cli_args *a)
{
    if (a->step && a->json)
        return cli_say(EXIT_USAGE, "--step is for people to read; leave out "
                                   "--json");
    if (a->state && !a->step)
        return cli_say(EXIT_USAGE, "--state is shown with --step");
    return play(
        a, &(replay_show){.steps = a->step ? stdout : NULL, .state = a->state});
}

int cmd_trace(cli_args *a)
{
    TRY_CODE(cli_check_names(a));
    if (!a->output && !a->job.record)
        return cli_say(EXIT_USAGE,
                       "say what is to be made of %s: a drawing, --output "
                       "FILE, or a pattern, --record FILE",
                       a->operand[0]);
    return play(a, &(replay_show){.trace = a->output, .record = a->job.record});
}
