/* caption.c -- what only the command knows of a run, for its report: the
 * command line, the measured error, and a signal that ended it. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define PLAIN                                                                  \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"           \
    "_-+=:,./@%"

/* Appends a word as a shell reads it; returns the new end. */
static char *append(char *to, const char *word)
{
    if (*word && strspn(word, PLAIN) == strlen(word))
        return stpcpy(to, word);
    *to++ = '\'';
    for (; *word; word++)
        if (*word == '\'')
            to = stpcpy(to, "'\\''");
        else
            *to++ = *word;
    return stpcpy(to, "'");
}

char *cli_command_line(const cli_args *a)
{
    size_t room = sizeof "kofn";
    char *line, *end;

    for (char *const *w = a->words; *w; w++)
        room += 4 * strlen(*w) + 3; /* a quote becomes four characters */
    line = malloc(room);
    if (!line)
        return NULL;
    end = stpcpy(line, "kofn");
    for (char *const *w = a->words; *w; w++)
        end = append(stpcpy(end, " "), *w);
    return line;
}

kofn_status cli_caption(kofn_job *job, const cli_args *a, double error)
{
    char *line, text[32];
    kofn_status st;

    if (!job || !a->job.report)
        return KOFN_OK;
    line = cli_command_line(a);
    st = line ? kofn_caption(job, "command", line) : KOFN_NOMEM;
    free(line);
    if (!st && cli_caught())
        st = kofn_caption(job, "ended", "then a signal ended it");
    if (st || error < 0)
        return st;
    snprintf(text, sizeof text, "%.3g", error);
    return kofn_caption(job, "measured error", text);
}
