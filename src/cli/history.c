/* history.c -- --history: a line of CSV for each iteration or step. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* After the line of this number: what comes behind it is done again. */
static int reopen(history *h, unsigned number)
{
    unsigned at = 0;
    char line[400];

    while (at != number && fgets(line, sizeof line, h->f))
        at = (unsigned)strtoul(line, NULL, 10);
    if (at != number)
        return cli_say(EXIT_USAGE,
                       "--history %s: it has no line of iteration "
                       "%u, after which this goes on; give another file",
                       h->path, number);
    if (fflush(h->f) || ftruncate(fileno(h->f), (off_t)ftell(h->f)) != 0)
        return cli_say(EXIT_FAILED, "--history %s: %s", h->path,
                       strerror(errno));
    fseek(h->f, 0, SEEK_END);
    return 0;
}

int history_open(history *h, const char *path, unsigned done,
                 const char *heading)
{
    *h = (history){.path = path};
    if (!path)
        return 0;
    h->f = done ? fopen(path, "r+") : NULL;
    if (h->f)
        return reopen(h, done);
    h->f = fopen(path, "w");
    if (!h->f)
        return cli_say(EXIT_FAILED, "--history %s: %s", path, strerror(errno));
    setvbuf(h->f, NULL, _IOLBF, 0); /* whole lines, to be watched */
    fprintf(h->f, "%s\n", heading);
    return 0;
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
