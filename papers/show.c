/* show.c -- messages, and the display of results: published next to computed.
 */
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

/* Prints o on stdout and frees it. */
static void print_json(json_t *o)
{
    char *text = json_dumps(o, JSON_REAL_PRECISION(17));

    puts(text ? text
              : "{\"status\": \"failed\", \"error\": \"out of memory\"}");
    free(text);
    json_decref(o);
    printed = true;
}

void papers_print_failure(const papers_args *a)
{
    if (!a->json || printed)
        return;
    for (char *p = said; *p; p++) /* a name may not be UTF-8 */
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    print_json(papers_pack("status:s command:s error:s", "failed",
                           a->paper->name, said));
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

double papers_scale(const papers_args *a, double usual)
{
    return a->scale > 0 ? a->scale : usual;
}

size_t papers_runs(const papers_args *a, size_t usual)
{
    double runs = papers_scale(a, 1) * (double)usual;

    return runs < 1 ? 1 : (size_t)(runs + 0.5);
}

/* ---- JSON ---------------------------------------------------------------- */

/* Returns the value for a letter of the format. */
static json_t *value_of(char kind, va_list *ap)
{
    switch (kind) {
    case 'f': {
        double x = va_arg(*ap, double);

        return isfinite(x) ? json_real(x) : json_null();
    }
    case 'z':
        return json_integer((json_int_t)va_arg(*ap, size_t));
    case 'i':
        return json_integer(va_arg(*ap, int));
    case 'b':
        return json_boolean(va_arg(*ap, int));
    case 's':
        return json_string(va_arg(*ap, const char *));
    case 'p':
        return papers_sizes(va_arg(*ap, const size_t *), 2);
    case 'o':
        return va_arg(*ap, json_t *);
    default:
        return json_object();
    }
}

static json_t *pack(const char *p, va_list *ap)
{
    json_t *open[4] = {json_object()};
    size_t depth = 0;

    for (p += strspn(p, " "); *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, ":");
        char name[40];
        json_t *value;

        if (*p == '}') {
            depth--;
            p++;
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        value = value_of(p[n + 1], ap);
        json_object_set_new(open[depth], name, value);
        if (p[n + 1] == '{')
            open[++depth] = value;
        p += n + 2;
    }
    return open[0];
}

json_t *papers_pack(const char *fields, ...)
{
    json_t *o;
    va_list ap;

    va_start(ap, fields);
    o = pack(fields, &ap);
    va_end(ap);
    return o;
}

void papers_add(json_t *list, const char *fields, ...)
{
    va_list ap;

    va_start(ap, fields);
    json_array_append_new(list, pack(fields, &ap));
    va_end(ap);
}

json_t *papers_json(const papers_args *a)
{
    const char *name = a->paper->name;

    return papers_pack("status:s command:s experiment:s seed:z", "ok", name,
                       name, (size_t)a->seed);
}

json_t *papers_reals(const double *x, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_real(x[i]));
    return list;
}

json_t *papers_sizes(const size_t *x, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer((json_int_t)x[i]));
    return list;
}

json_t *papers_band_json(double value, double low, double high)
{
    return papers_pack("value:f low:f high:f ok:b", value, low, high,
                       papers_within(value, low, high));
}

/* ---- reading JSON ---------------------------------------------------------
 */

json_t *papers_at(const json_t *o, const char *path)
{
    json_t *at = NULL;

    while (*path) {
        size_t n = strcspn(path, ".");
        char name[40];

        snprintf(name, sizeof name, "%.*s", (int)n, path);
        at = json_is_array(o) ? json_array_get(o, strtoul(name, NULL, 10))
                              : json_object_get(o, name);
        o = at;
        path += n + (path[n] == '.');
    }
    return at;
}

double papers_real(const json_t *o, const char *path)
{
    const json_t *x = papers_at(o, path);

    return json_is_number(x) ? json_number_value(x) : HUGE_VAL;
}

bool papers_true(const json_t *o, const char *path)
{
    return json_is_true(papers_at(o, path));
}

/* Prints one value; the format may have its letter. */
static void print_value(const json_t *x, double factor, const char *format)
{
    bool real = *format && strchr("efg", format[strlen(format) - 1]);
    char f[100];

    snprintf(f, sizeof f, "%%%s%s", format,
             real                 ? ""
             : json_is_integer(x) ? JSON_INTEGER_FORMAT
             : json_is_real(x)    ? "g"
                                  : "s");
    if (real || json_is_real(x))
        printf(f, json_is_number(x) ? factor * json_number_value(x) : HUGE_VAL);
    else if (json_is_integer(x))
        printf(f, json_integer_value(x));
    else
        printf(f, json_is_boolean(x)  ? papers_mark(json_is_true(x))
                  : json_is_string(x) ? json_string_value(x)
                                      : "-");
}

static void print_one(const char *name, const json_t *o, const char *text)
{
    for (;;) {
        size_t n = strcspn(text, "{"), m;
        char field[80], *factor, *format;

        fwrite(text, 1, n, stdout);
        if (!text[n])
            return;
        m = strcspn(text + n, "}");
        snprintf(field, sizeof field, "%.*s", (int)m - 1, text + n + 1);
        text += n + m + 1;
        format = strchr(field, ':');
        if (format)
            *format++ = 0;
        factor = strchr(field, '*');
        if (factor)
            *factor++ = 0;
        if (*field == '@')
            printf("%*s", format ? atoi(format) : 0, name);
        else
            print_value(*field == '.' ? o : papers_at(o, field),
                        factor ? strtod(factor, NULL) : 1,
                        format ? format : "");
    }
}

void papers_print(const json_t *o, const char *text)
{
    print_one("", o, text);
}

void papers_each(json_t *o, const char *text)
{
    const char *name;
    json_t *x;

    for (size_t i = 0; (x = json_array_get(o, i)); i++)
        print_one("", x, text);
    json_object_foreach(o, name, x) print_one(name, x, text);
}

void papers_each_bar(json_t *list, const char *text, const char *path,
                     size_t wide)
{
    double most = 0;
    json_t *x;

    for (size_t i = 0; (x = json_array_get(list, i)); i++)
        most = fmax(most, papers_real(x, path));
    for (size_t i = 0; (x = json_array_get(list, i)); i++) {
        print_one("", x, text);
        for (size_t k = 0; k < wide; k++)
            papers_bar((double)wide * papers_real(x, path) / most - (double)k);
        putchar('\n');
    }
}

/* ---- all scenarios ------------------------------------------------------- */

void papers_curve(plot *p, json_t *list, const char *x, const char *y, ...)
{
    char path[100];
    json_t *o;
    va_list ap;

    va_start(ap, y);
    vsnprintf(path, sizeof path, y, ap);
    va_end(ap);
    for (size_t i = 0; (o = json_array_get(list, i)); i++)
        plot_point(p, x ? papers_real(o, x) : (double)i, papers_real(o, path));
}

int papers_draw(const papers_args *a, plot *p)
{
    kofn_status st = p ? plot_write(p, a->svg) : KOFN_NOMEM;

    free(p);
    return st ? papers_ended(st) : 0;
}

/* Draws the picture of the chosen scenario, or the best-known picture of the
 * paper. */
static int draw(const papers_args *a, json_t *list)
{
    size_t k = a->scenario ? a->scenario : (size_t)(*a->paper->pictures - '0');
    plot *p = plot_new();
    json_t *o;

    for (size_t i = 0; (o = json_array_get(list, i)); i++)
        if (p && papers_real(o, "scenario") == (double)k)
            a->paper->scenario[k - 1]->draw(o, p);
    return papers_draw(a, p);
}

int papers_ending(const papers_args *a, json_t *o)
{
    if (a->json)
        print_json(o);
    else
        json_decref(o);
    return 0;
}

int papers_scenarios(const papers_args *a, size_t iterations)
{
    size_t first = a->scenario ? a->scenario : 1, told = 0;
    size_t last = a->scenario ? a->scenario : a->paper->usual;
    json_t *list = json_array(), *o = papers_json(a);
    kofn_status st = KOFN_OK;
    int code;

    for (size_t k = first; k <= last && !st; k++) {
        const papers_scenario *what = a->paper->scenario[k - 1];

        if (k > first && !a->json)
            putchar('\n');
        st = what->run(a, k, list);
        for (; told < json_array_size(list) && !a->json; told++)
            what->tell(json_array_get(list, told));
        fflush(stdout);
    }
    if (iterations)
        json_object_set_new(o, "iterations",
                            json_integer((json_int_t)iterations));
    json_object_set(o, "scenarios", list);
    code = st ? papers_ended(st) : papers_ending(a, json_incref(o));
    json_decref(o);
    if (!code && a->svg)
        code = draw(a, list);
    json_decref(list);
    return code;
}

/* ---- input --------------------------------------------------------------- */

kofn_status papers_mnist(const papers_args *a, images *p)
{
    kofn_status st = images_read(p, a->mnist);

    return st && st != KOFN_NOMEM ? papers_fail(KOFN_INVAL, "--mnist %s: %s",
                                                a->mnist, kofn_errmsg())
                                  : st;
}
