/* history.c -- --history: a line of CSV for each iteration or step.
 *
 * Owns the file from history_open to history_close.  A failure to write is
 * kept and told at the end; it must not end a run. */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the line of this number ends; -1: it is not there, or not whole. */
static long end_of_line(FILE *f, unsigned number)
{
    char line[400];

    while (fgets(line, sizeof line, f))
        if (strtoul(line, NULL, 10) == number && line[0] >= '0' &&
            line[0] <= '9' && strchr(line, '\n'))
            return ftell(f);
    return -1;
}

/* After the line of this number: what comes behind it is done again. */
static int cut_after(const history *h, FILE *f, unsigned number)
{
    long end = end_of_line(f, number);

    if (end < 0)
        return cli_say(EXIT_USAGE,
                       "--history %s: it has no line of iteration "
                       "%u, after which this goes on; give another file",
                       h->path, number);
    return ftruncate(fileno(f), (off_t)end) == 0
               ? 0
               : cli_say(EXIT_FAILED, "--history %s: %s", h->path,
                         strerror(errno));
}

int history_open(history *h, const char *path, unsigned done,
                 const char *heading)
{
    FILE *was = path && done ? fopen(path, "r+") : NULL;
    int code = 0;

    *h = (history){.path = path};
    if (!path)
        return 0;
    if (was) {
        code = done == HISTORY_GOES_ON ? 0 : cut_after(h, was, done);
        fclose(was);
    }
    if (code)
        return code;
    h->f = fopen(path, was ? "a" : "w");
    if (!h->f)
        return cli_say(EXIT_FAILED, "--history %s: %s", path, strerror(errno));
    setvbuf(h->f, NULL, _IOLBF, 0); /* whole lines, to be watched */
    if (!was)
        fprintf(h->f, "%s\n", heading);
    return 0;
}

void history_keep(history *h)
{
    /* of a pipe or a terminal there is nothing to keep */
    if (h->f && (fflush(h->f) || (fsync(fileno(h->f)) && errno != EINVAL &&
                                  errno != EROFS && errno != ENOTSUP)))
        h->spoiled = errno;
}

void history_line(history *h, const char *fmt, ...)
{
    va_list ap;

    if (!h->f)
        return;
    va_start(ap, fmt);
    if (vfprintf(h->f, fmt, ap) < 0 || fputc('\n', h->f) < 0)
        h->spoiled = errno;
    va_end(ap);
}

int history_close(history *h, int code)
{
    if (h->f && fclose(h->f) != 0 && !h->spoiled)
        h->spoiled = errno;
    h->f = NULL;
    return code || !h->spoiled ? code
                               : cli_say(EXIT_FAILED, "--history %s: %s",
                                         h->path, strerror(h->spoiled));
}
