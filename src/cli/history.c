/* history.c -- --history: writes a line of CSV for each iteration or step.
 *
 * Owns the file from history_open to history_close. A failed write is
 * remembered and reported at the end; it must not end a run. */
#include "cli.h"

#include "base/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns the end of this line in the file; -1 if it is missing or incomplete.
 */
static long end_of_line(FILE *f, unsigned number)
{
    char line[1000];

    while (fgets(line, sizeof line, f))
        if (strtoul(line, NULL, 10) == number && line[0] >= '0' &&
            line[0] <= '9' && strchr(line, '\n'))
            return ftell(f);
    return -1;
}

/* Cuts the file after this line; later steps will be done again. */
static int cut_after(const history *h, FILE *f, unsigned number)
{
    long end = end_of_line(f, number);

    if (end < 0)
        return cli_say(
            EXIT_USAGE,
            "--history %s: it has no line of iteration %u, and this run "
            "resumes after that one; give another file",
            h->path, number);
    return ftruncate(fileno(f), (off_t)end) == 0
               ? 0
               : cli_say(EXIT_FAILED, "--history %s: %s", h->path,
                         strerror(errno));
}

/* ---- the fields of a report ---------------------------------------------- */

#define COUNT(x) fprintf(f, ",%llu", (unsigned long long)(x));
#define SECONDS(x) fprintf(f, ",%.9g", 1e-9 * (double)(x));
#define NUMBER(x) fprintf(f, ",%.9g", x);
#define LIST(x)

static void write_report(FILE *f, const kofn_report *rep)
{
#define X(field, adds, kind, ...) kind(rep->field)
    KF_REPORT_MAP(X)
#undef X
}

static void write_keys(FILE *f)
{
#define X(field, adds, kind, key, ...) fputs(*"" key ? "," key : "", f);
    KF_REPORT_MAP(X)
#undef X
}

/* ---- lines --------------------------------------------------------------- */

int history_open(history *h, const char *path, unsigned done,
                 const char *heading, bool reports)
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
    setvbuf(h->f, NULL, _IOLBF,
            0); /* whole lines, so that readers can follow */
    if (!was) {
        fputs(heading, h->f);
        if (reports)
            write_keys(h->f);
        fputc('\n', h->f);
    }
    return 0;
}

void history_keep(history *h)
{
    /* pipes and terminals cannot be synchronised */
    if (h->f && (fflush(h->f) || (fsync(fileno(h->f)) && errno != EINVAL &&
                                  errno != EROFS && errno != ENOTSUP)))
        h->spoiled = errno;
}

void history_line(history *h, const kofn_report *rep, const char *fmt, ...)
{
    va_list ap;

    if (!h->f)
        return;
    va_start(ap, fmt);
    vfprintf(h->f, fmt, ap);
    va_end(ap);
    if (rep)
        write_report(h->f, rep);
    if (fputc('\n', h->f) < 0 || ferror(h->f))
        h->spoiled = errno;
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
