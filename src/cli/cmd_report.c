/* cmd_report.c -- kofn report: a page about one run, or several beside each
 * other, from their journals.
 *
 * The page of a run has a section with its data. The data of further runs is
 * put behind that of the first. Owns the pages until they are joined. */
#define _GNU_SOURCE
#include "cli.h"

#include "replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BEGIN "<!--runs-->\n"
#define END "<!--end-->"

/* Writes the page of one journal. */
static int page_of(const char *journal, const char *path, replay_result *r)
{
    size_t n;
    char *text;
    int code;

    TRY_CODE(cli_read_text(journal, &text, &n));
    code = replay(text, n, journal, &(replay_show){.report = path}, r);
    free(text);
    return code && *r->error ? cli_say(code, "%s", r->error) : code;
}

/* Appends the data of a page to that which was collected. */
static int collect(const char *path, char **runs, size_t *length)
{
    char *text, *from, *to, *more;
    size_t n;
    int code = cli_read_text(path, &text, &n);

    TRY_CODE(code);
    from = memmem(text, n, BEGIN, strlen(BEGIN));
    to =
        from ? memmem(from, n - (size_t)(from - text), END, strlen(END)) : NULL;
    if (to) {
        from += strlen(BEGIN);
        more = realloc(*runs, *length + (size_t)(to - from));
        if (more) {
            memcpy(more + *length, from, (size_t)(to - from));
            *length += (size_t)(to - from);
            *runs = more;
        }
        code = more ? 0 : cli_say(EXIT_FAILED, "out of memory");
    } else {
        code = cli_say(EXIT_FAILED, "%s is no page of a run", path);
    }
    free(text);
    return code;
}

/* Makes the page of a further journal, and collects its data. */
static int further(const char *journal, char **runs, size_t *length)
{
    char path[] = "/tmp/kofn-page-XXXXXX.html";
    replay_result r = {0};
    int file = mkstemps(path, 5), code;

    if (file < 0)
        return cli_say(EXIT_FAILED, "no temporary file: %s", strerror(errno));
    close(file);
    code = page_of(journal, path, &r);
    if (!code)
        code = collect(path, runs, length);
    unlink(path);
    return code;
}

/* Puts the data behind that of the page, which is written anew. */
static int join(const char *path, const char *runs, size_t length)
{
    char *text, *at;
    size_t n;
    FILE *f;
    bool bad;

    TRY_CODE(cli_read_text(path, &text, &n));
    at = memmem(text, n, END, strlen(END));
    f = at ? fopen(path, "wb") : NULL;
    if (!f) {
        free(text);
        return cli_say(EXIT_FAILED, "cannot write %s", path);
    }
    fwrite(text, 1, (size_t)(at - text), f);
    fwrite(runs, 1, length, f);
    fwrite(at, 1, n - (size_t)(at - text), f);
    bad = ferror(f);
    bad |= fclose(f) != 0;
    free(text);
    return bad ? cli_say(EXIT_FAILED, "cannot write %s: %s", path,
                         strerror(errno))
               : 0;
}

static void say(const cli_args *a, const replay_result *r, int code)
{
    json_t *o;

    if (!a->json) {
        if (!code && !a->quiet)
            printf("%s: the page of %d run%s\n", a->output, a->operands,
                   a->operands == 1 ? "" : "s");
        return;
    }
    o = json_pack("{s:s, s:s, s:i, s:I, s:I, s:b}", "status",
                  code ? "failed" : "ok", "command", a->command->name, "runs",
                  a->operands, "events", (json_int_t)r->events, "rounds",
                  (json_int_t)r->rounds, "cut", r->cut);
    if (code)
        json_object_set_new(o, "error", cli_error_json());
    cli_print_json(o);
}

int cmd_report(cli_args *a)
{
    char *runs = NULL;
    size_t length = 0;
    replay_result r = {0};
    int code = 0;

    TRY_CODE(cli_check_names(a));
    if (!a->output)
        return cli_say(EXIT_USAGE, "name the page: --output FILE.html");
    for (int i = 1; i < a->operands && !code; i++)
        code = further(a->operand[i], &runs, &length);
    if (!code)
        code = page_of(a->operand[0], a->output, &r);
    if (!code && length)
        code = join(a->output, runs, length);
    free(runs);
    say(a, &r, code);
    return code;
}
