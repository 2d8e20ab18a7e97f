/* show.c -- messages, and how results are shown: published beside computed. */
#include "show.h"

#include <ctype.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static char said[500];
static bool printed;

/* ---- messages ------------------------------------------------------------ */

int papers_say(int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(said, sizeof said, fmt, ap);
    va_end(ap);
    for (char *p = said; *p; p++)
        if (iscntrl((unsigned char)*p))
            *p = '?';
    fprintf(stderr, "kofn-papers: %s\n", said);
    return code;
}

int papers_ended(kofn_status st)
{
    if (st == KOFN_NOMEM)
        return papers_say(1, "out of memory; ask for less, as by a smaller "
                             "--scale");
    return papers_say(st == KOFN_INVAL || st == KOFN_SHAPE ||
                              st == KOFN_NOSCHEME || st == KOFN_UNSUITED ||
                              st == KOFN_FORMAT || st == KOFN_NONFINITE
                          ? PAPERS_USAGE
                          : 1,
                      "%s", kofn_errmsg());
}

void papers_print_failure(const papers_args *a)
{
    if (!a->json || printed)
        return;
    for (char *p = said; *p; p++) /* a name that is not UTF-8 */
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    papers_print_json(json_pack("{s:s, s:s, s:s}", "status", "failed",
                                "command", a->paper->name, "error", said));
}

/* ---- text ---------------------------------------------------------------- */

const char *papers_mark(bool ok)
{
    return ok ? "ok" : "off";
}

void papers_bar(double share)
{
    static const char *const bar[] = {" ", "▁", "▂", "▃", "▄",
                                      "▅", "▆", "▇", "█"};
    int eighths = share > 0 ? (int)(share * 8 + 0.999) : 0;

    if (eighths > 8)
        eighths = 8;
    if (strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
        fputs(bar[eighths], stdout);
    else
        putchar(eighths ? '0' + eighths : ' ');
}

bool papers_within(double value, double low, double high)
{
    return value >= low && value <= high;
}

size_t papers_runs(const papers_args *a, size_t usual)
{
    double runs = a->scale > 0 ? a->scale * (double)usual : (double)usual;

    return runs < 1 ? 1 : (size_t)(runs + 0.5);
}

/* ---- JSON ---------------------------------------------------------------- */

void papers_print_json(json_t *o)
{
    char *text = json_dumps(o, JSON_REAL_PRECISION(17));

    puts(text ? text
              : "{\"status\": \"failed\", \"error\": \"out of memory\"}");
    free(text);
    json_decref(o);
    printed = true;
}

json_t *papers_json(const papers_args *a)
{
    return json_pack("{s:s, s:s, s:s, s:I}", "status", "ok", "command",
                     a->paper->name, "experiment", a->paper->name, "seed",
                     (json_int_t)a->seed);
}

int papers_scenarios(const papers_args *a, size_t last, size_t iterations,
                     int (*one)(const papers_args *, size_t, json_t *))
{
    size_t first = a->scenario ? a->scenario : 1;
    json_t *list = a->json ? json_array() : NULL;
    int code = 0;

    last = a->scenario ? a->scenario : last;
    for (size_t k = first; k <= last && !code; k++) {
        if (k > first && !list)
            putchar('\n');
        code = one(a, k, list);
        fflush(stdout);
    }
    if (!code && list) {
        json_t *o = papers_json(a);

        if (iterations)
            json_object_set_new(o, "iterations",
                                json_integer((json_int_t)iterations));
        json_object_set_new(o, "scenarios", json_incref(list));
        papers_print_json(o);
    }
    json_decref(list);
    return code;
}

json_t *papers_reals(const double *x, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_real(x[i]));
    return list;
}

json_t *papers_pair(const size_t x[2])
{
    return json_pack("[I, I]", (json_int_t)x[0], (json_int_t)x[1]);
}

json_t *papers_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *papers_band_json(double value, double low, double high)
{
    return json_pack("{s:f, s:f, s:f, s:b}", "value", value, "low", low, "high",
                     high, "ok", papers_within(value, low, high));
}

/* ---- input --------------------------------------------------------------- */

int papers_mnist(const papers_args *a, images *p)
{
    kofn_status st = images_read(p, a->mnist);

    return st == KOFN_NOMEM ? papers_ended(st)
           : st ? papers_say(PAPERS_USAGE, "--mnist %s: %s", a->mnist,
                             kofn_errmsg())
                : 0;
}
