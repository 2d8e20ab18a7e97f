/* replay.c -- see replay.h.
 *
 * Owns the coordinator that it drives, the journal's plans and the observers.
 * Checks every word of a journal before using it. Writes nothing that was not
 * asked for. */
#include "replay.h"
#include "steps.h"

#include "base/report.h"

#include <kofn/core.h>

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Event names in the order of their numbers, from 1. */
#define EVENTS                                                                         \
    "joined|stored|leaving|left|begin|result|failed|alarm|verdict|moved|unresponsive|" \
    "cancel|void|judged"
/* Names of the coordinator's notes about its own work, in the same order. */
#define OWN "storing|sent|over|finished|encode|mix|decode|check"
enum { STORING, SENT, OVER, FINISHED };

typedef struct player {
    const char *name, *at, *end;
    kofn_plan **plan; /* one per operand */
    size_t plans;
    kofn_core *core;
    replay_show show;
    replay_result *r;
    uint32_t *bad;         /* wrong workers of a verdict */
    kofn_drawing *drawing; /* NULL unless a file is wanted */
    char foreign[80];      /* message if another version wrote the journal */
} player;

__attribute__((format(printf, 3, 4))) static int stop(player *p, int code,
                                                      const char *fmt, ...)
{
    size_t n = (size_t)snprintf(p->r->error, sizeof p->r->error,
                                "%.160s, line %zu: ", p->name, p->r->line);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->r->error + n, sizeof p->r->error - n, fmt, ap);
    va_end(ap);
    return code;
}

/* ---- fields -------------------------------------------------------------- */

static bool whole(const json_t *o, const char *key, json_int_t min,
                  json_int_t max, json_int_t *out)
{
    const json_t *x = json_object_get(o, key);

    if (!json_is_integer(x))
        return false;
    *out = json_integer_value(x);
    return *out >= min && *out <= max;
}

static bool real(const json_t *o, const char *key, double *out)
{
    const json_t *x = json_object_get(o, key);

    *out = json_number_value(x);
    return json_is_number(x);
}

/* Finds the index of the field's word in "a|b|c". */
static bool word(const json_t *o, const char *key, const char *choices,
                 int *out)
{
    const char *x = json_string_value(json_object_get(o, key));

    for (*out = 0; x && *choices; ++*out) {
        size_t n = strcspn(choices, "|");

        if (strlen(x) == n && !memcmp(choices, x, n))
            return true;
        choices += n + (choices[n] == '|');
    }
    return false;
}

static bool unsigned_text(const json_t *o, const char *key, int base,
                          uint64_t *out)
{
    const char *x = json_string_value(json_object_get(o, key));
    char *end;

    if (!x || !*x || strspn(x, "0123456789abcdef") != strlen(x))
        return false;
    errno = 0;
    *out = strtoull(x, &end, base);
    return !*end && !errno;
}

/* ---- the header ---------------------------------------------------------- */

/* Limits: a forged journal must not ask for more than a real coordinator
 * would. */
#define MAX_SIZE ((json_int_t)1 << 40)
#define MAX_WORKERS 100000

static bool read_option(const json_t *o, const kofn_option *w, void *at)
{
    bool is_time =
        w->kind == KOFN_OPTION_SECONDS || w->kind == KOFN_OPTION_TERM;
    json_int_t most = is_time ? INT64_MAX : (json_int_t)w->most, n = 0;
    const json_t *x = json_object_get(o, w->name);
    int place = 0;
    bool ok = true;

    switch (w->kind) {
    case KOFN_OPTION_FLAG:
        *(bool *)at = json_is_true(x);
        return json_is_boolean(x);
    case KOFN_OPTION_CHOICE:
        ok = word(o, w->name, w->value, &place);
        *(unsigned *)at = (unsigned)place;
        return ok;
    case KOFN_OPTION_REAL:
    case KOFN_OPTION_FACTOR:
        return real(o, w->name, at);
    case KOFN_OPTION_UNSIGNED:
        ok = whole(o, w->name, 0, most, &n);
        *(unsigned *)at = (unsigned)n;
        return ok;
    case KOFN_OPTION_SIZE:
        ok = whole(o, w->name, 0, most, &n);
        *(size_t *)at = (size_t)n;
        return ok;
    case KOFN_OPTION_SECONDS:
    case KOFN_OPTION_TERM:
        ok = whole(o, w->name, 0, most, &n);
        *(kofn_time *)at = n;
        return ok;
    case KOFN_OPTION_FILE:
        break;
    }
    return false;
}

/* Reads the options. Those that decisions depend on are the first rows of the
 * table. */
static bool read_options(const json_t *o, kofn_core_options *opt)
{
    json_int_t late_least, open;
    size_t i = 0;

#define X(type, name, ...)                                                     \
    if (!read_option(o, kofn_option_at(i++), &opt->name))                      \
        return false;
    KOFN_OPTIONS_OF_CORE(X)
#undef X
    if (!whole(o, "late_least", 0, INT64_MAX, &late_least) ||
        !whole(o, "open", 0, MAX_WORKERS, &open))
        return false;
    opt->late_least = late_least;
    opt->open = (unsigned)open;
    return true;
}

/* Checks that the journal has this format. Journals of the first format have
 * no version. */
static int check_version(player *p, const json_t *o)
{
    const char *kofn = json_string_value(json_object_get(o, "kofn"));
    json_int_t version = 1;

    if (!kofn)
        return stop(p, NOT_A_JOURNAL, "not the first line of a kofn journal");
    if (json_object_get(o, "journal") &&
        !whole(o, "journal", 1, UINT32_MAX, &version))
        return stop(p, NOT_A_JOURNAL, "\"journal\" is not a version");
    if (version != KOFN_JOURNAL_VERSION)
        return stop(p, NOT_A_JOURNAL,
                    "kofn %.20s wrote this journal, in "
                    "version %" PRId64 " of the format, and this kofn, %s, "
                    "reads version %d",
                    kofn, (int64_t)version, KOFN_VERSION, KOFN_JOURNAL_VERSION);
    if (strcmp(kofn, KOFN_VERSION) != 0)
        snprintf(p->foreign, sizeof p->foreign,
                 "; kofn %.20s wrote this journal, and this is %s", kofn,
                 KOFN_VERSION);
    return SAME;
}

static int lacks(player *p)
{
    return stop(p, NOT_A_JOURNAL,
                "the header lacks a field or one is out "
                "of range; see docs/journal.md%s",
                p->foreign);
}

/* Reads the plan of an operand. All plans have the same number of workers and
 * the same type. */
static int read_plan(player *p, const json_t *o, size_t workers,
                     kofn_dtype type)
{
    kofn_plan **plan = &p->plan[p->plans];
    json_int_t op, m, n, cols, left;
    const char *spec = json_string_value(json_object_get(o, "scheme"));
    kofn_problem pb;
    uint64_t seed;

    if (!spec || !unsigned_text(o, "seed", 10, &seed) ||
        !whole(o, "op", 1, INT_MAX, &op) || !whole(o, "m", 1, MAX_SIZE, &m) ||
        !whole(o, "n", 1, MAX_SIZE, &n) || !whole(o, "p", 1, MAX_SIZE, &cols) ||
        !json_is_boolean(json_object_get(o, "sparse")) ||
        !whole(o, "left", 0, MAX_SIZE, &left))
        return lacks(p);
    pb = (kofn_problem)KOFN_PROBLEM_INIT(
        (kofn_op)op, (size_t)m, (size_t)n, (size_t)cols, type,
        json_is_true(json_object_get(o, "sparse")));
    if (kofn_plan_new(plan, &pb, spec, workers, seed))
        return stop(p, NOT_A_JOURNAL, "%s", kofn_errmsg());
    if (p->plans++ == 0) {
        snprintf(p->r->scheme, sizeof p->r->scheme, "%s", spec);
        p->r->workers = workers;
    }
    if (left && kofn_plan_serve_left(*plan, (size_t)left))
        return stop(p, NOT_A_JOURNAL, "%s", kofn_errmsg());
    return SAME;
}

/* Reports the library's message about a file that could not be written. */
static int cannot_write(player *p)
{
    snprintf(p->r->error, sizeof p->r->error, "%s", kofn_errmsg());
    return DIFFERENT;
}

static int draw(player *p, const json_t *o, const kofn_core_options *opt)
{
    kofn_drawing_options d = KOFN_DRAWING_OPTIONS_INIT;

    d.port = json_string_value(json_object_get(o, "port"));
    d.trace = p->show.trace;
    d.record = p->show.record;
    d.report = p->show.report;
    d.label = p->name;
    d.in_flight = opt->in_flight;
    if (!d.port || d.port[strcspn(d.port, "\"\\\n")])
        return lacks(p);
    if (!d.trace && !d.record && !d.report)
        return SAME;
    return kofn_drawing_new(&p->drawing, p->core, p->plan[0], &d)
               ? cannot_write(p)
               : SAME;
}

static int read_header(player *p, const json_t *o)
{
    const json_t *more = json_object_get(o, "operands");
    int type, code = check_version(p, o);
    kofn_core_options opt = KOFN_CORE_OPTIONS_INIT;
    json_int_t workers;

    if (code)
        return code;
    if (!whole(o, "workers", 1, MAX_WORKERS, &workers) ||
        !word(o, "dtype", "f64|f32", &type) || !read_options(o, &opt) ||
        (more && !json_is_array(more)))
        return lacks(p);
    p->plan = calloc(json_array_size(more) + 1, sizeof(kofn_plan *));
    if (!p->plan)
        return stop(p, DIFFERENT, "out of memory");
    for (size_t i = 0; !code && i < json_array_size(more) + 1; i++)
        code = read_plan(p, i ? json_array_get(more, i - 1) : o,
                         (size_t)workers, type ? KOFN_F32 : KOFN_F64);
    if (!code && kofn_core_new_all(&p->core, (const kofn_plan *const *)p->plan,
                                   p->plans, &opt))
        code = stop(p, NOT_A_JOURNAL, "%s", kofn_errmsg());
    return code ? code : draw(p, o, &opt);
}

/* ---- events -------------------------------------------------------------- */

static int read_verdict(player *p, const json_t *o, kofn_event *ev)
{
    static const kofn_status meaning[] = {KOFN_OK, KOFN_AGAIN, KOFN_CORRUPT};
    const json_t *bad = json_object_get(o, "bad");
    json_int_t doubted = 0;
    int status;

    if (!word(o, "s", "ok|again|corrupt", &status) || !json_is_array(bad))
        return stop(p, NOT_A_JOURNAL, "not a verdict");
    ev->status = meaning[status];
    ev->bad_count = json_array_size(bad);
    free(p->bad);
    p->bad = calloc(ev->bad_count + 1, sizeof *p->bad);
    if (!p->bad)
        return stop(p, DIFFERENT, "out of memory");
    for (size_t i = 0; i < ev->bad_count; i++) {
        json_int_t x = json_integer_value(json_array_get(bad, i));

        if (x < 0 || x > UINT32_MAX)
            return stop(p, NOT_A_JOURNAL, "\"bad\" holds %" PRId64, (int64_t)x);
        p->bad[i] = (uint32_t)x;
    }
    ev->bad = p->bad;
    if (json_object_get(o, "doubted") &&
        !whole(o, "doubted", 1, (json_int_t)ev->bad_count, &doubted))
        return stop(p, NOT_A_JOURNAL, "\"doubted\" is not a part of \"bad\"");
    ev->doubted = (size_t)doubted;
    return SAME;
}

/* Reads the worker of an event, and its principal. */
static int read_worker(player *p, const json_t *o, kofn_event *ev)
{
    json_int_t w = 0, who = 0;

    if (ev->type != KOFN_EV_BEGIN && ev->type != KOFN_EV_CANCEL &&
        ev->type != KOFN_EV_ALARM && ev->type != KOFN_EV_VERDICT &&
        !whole(o, "w", 0, 2 * MAX_WORKERS, &w))
        return stop(p, NOT_A_JOURNAL, "\"w\" is not a worker's number");
    if (json_object_get(o, "p") && !whole(o, "p", 1, 2 * MAX_WORKERS, &who))
        return stop(p, NOT_A_JOURNAL, "\"p\" is not a principal's number");
    ev->worker = (uint32_t)w;
    ev->principal = (uint32_t)who;
    return SAME;
}

/* Reads the shape of a stream's product. */
static int read_shape(player *p, const json_t *o, kofn_event *ev)
{
    const json_t *shape = json_object_get(o, "shape");
    size_t *side[] = {&ev->m, &ev->n, &ev->p};

    if (shape && json_array_size(shape) != 3)
        return stop(p, NOT_A_JOURNAL, "\"shape\" is not that of a product");
    for (size_t i = 0; shape && i < 3; i++) {
        const json_t *x = json_array_get(shape, i);

        if (!json_is_integer(x) || json_integer_value(x) < 1 ||
            json_integer_value(x) > MAX_SIZE)
            return stop(p, NOT_A_JOURNAL, "\"shape\" is not that of a product");
        *side[i] = (size_t)json_integer_value(x);
    }
    return SAME;
}

static int read_begin(player *p, const json_t *o, kofn_event *ev)
{
    json_int_t use = 0, lo = 0, hi = 0;

    if (json_object_get(o, "use") && !whole(o, "use", 1, UINT32_MAX, &use))
        return stop(p, NOT_A_JOURNAL, "\"use\" is not the number of a use");
    if (json_object_get(o, "hi") && (!whole(o, "lo", 0, MAX_SIZE, &lo) ||
                                     !whole(o, "hi", 1, MAX_SIZE, &hi)))
        return stop(p, NOT_A_JOURNAL, "\"lo\" and \"hi\" are not strips");
    ev->use = (uint32_t)use;
    ev->all = json_is_true(json_object_get(o, "all"));
    ev->late_too = json_is_true(json_object_get(o, "late_too"));
    ev->alike = json_is_true(json_object_get(o, "alike"));
    ev->lo = (size_t)lo;
    ev->hi = (size_t)hi;
    return read_shape(p, o, ev);
}

/* Reads a task of a product with the row that answers it, or a check. */
static int read_task(player *p, const json_t *o, kofn_event *ev)
{
    bool answer = ev->type != KOFN_EV_VERDICT;
    json_int_t k, r = 0, d = 0;

    if (!whole(o, "k", 0, UINT32_MAX, &k))
        return stop(p, NOT_A_JOURNAL, "\"k\" is not a task's number");
    if (answer && !whole(o, "r", 0, UINT32_MAX, &r))
        return stop(p, NOT_A_JOURNAL, "\"r\" is not the number of a row");
    if (ev->type == KOFN_EV_RESULT && !whole(o, "d", 0, INT64_MAX, &d))
        return stop(p, NOT_A_JOURNAL, "\"d\" is not a duration");
    ev->task = (uint32_t)k;
    ev->row = (uint32_t)r;
    ev->took = d;
    return answer ? SAME : read_verdict(p, o, ev);
}

static int read_event(player *p, const json_t *o, kofn_event *ev)
{
    bool of_product;
    json_int_t t, n = 0;
    int type, code;

    if (!whole(o, "t", 0, INT64_MAX, &t) || !word(o, "ev", EVENTS, &type))
        return stop(p, NOT_A_JOURNAL, "not an event of a kofn journal");
    ev->type = (kofn_event_type)(type + 1);
    ev->now = t;
    of_product = ev->type == KOFN_EV_BEGIN || ev->type == KOFN_EV_RESULT ||
                 ev->type == KOFN_EV_FAILED || ev->type == KOFN_EV_VERDICT ||
                 ev->type == KOFN_EV_CANCEL;
    if (of_product && !whole(o, "n", ev->type != KOFN_EV_BEGIN, UINT32_MAX, &n))
        return stop(p, NOT_A_JOURNAL, "\"n\" is not a product's number");
    ev->product = (uint32_t)n;
    code = read_worker(p, o, ev);
    if (code || !of_product || ev->type == KOFN_EV_CANCEL)
        return code;
    return ev->type == KOFN_EV_BEGIN ? read_begin(p, o, ev)
                                     : read_task(p, o, ev);
}

/* Remembers a worker that is lost. */
static void note_loss(replay_result *r, const kofn_event *ev)
{
    const size_t most = sizeof r->lost / sizeof *r->lost;

    r->begun += ev->type == KOFN_EV_BEGIN;
    if ((ev->type == KOFN_EV_LEFT || ev->type == KOFN_EV_UNRESPONSIVE) &&
        r->losts < most) {
        r->lost[r->losts].worker = ev->worker;
        r->lost[r->losts++].rounds = r->begun;
    }
}

/* Gives the name of a worker that has come to the page. */
static int read_name(player *p, const json_t *o, const kofn_event *ev)
{
    const json_t *name = json_object_get(o, "name");

    if (!name || ev->type != KOFN_EV_JOINED)
        return SAME;
    if (!json_is_string(name))
        return stop(p, NOT_A_JOURNAL, "\"name\" is not a name");
    return p->drawing && kofn_drawing_name(p->drawing, ev->worker,
                                           json_string_value(name))
               ? stop(p, DIFFERENT, "%s", kofn_errmsg())
               : SAME;
}

static int play(player *p, const json_t *o)
{
    kofn_event ev = {0};
    kofn_action a;
    uint64_t digest = 0, recorded = 0;
    int code = read_event(p, o, &ev);

    if (!code)
        code = read_name(p, o, &ev);
    if (code)
        return code;
    if (p->show.steps)
        show_event(p->show.steps, p->r->line, &ev);
    if ((p->drawing && kofn_drawing_event(p->drawing, &ev)) ||
        kofn_core_step(p->core, &ev))
        return stop(p, DIFFERENT, "%s", kofn_errmsg());
    while (kofn_core_next(p->core, &a)) {
        if (p->drawing && kofn_drawing_action(p->drawing, &a))
            return stop(p, DIFFERENT, "%s", kofn_errmsg());
        if (p->show.steps)
            show_action(p->show.steps, &a);
        digest = kofn_action_digest(digest, &a);
        p->r->rounds += a.type == KOFN_DO_DELIVER && a.status != KOFN_AGAIN;
    }
    if (p->show.steps && p->show.state)
        show_state(p->show.steps, p->core);
    if (json_object_get(o, "h") && !unsigned_text(o, "h", 16, &recorded))
        return stop(p, NOT_A_JOURNAL, "\"h\" is not a digest");
    p->r->events++;
    note_loss(p->r, &ev);
    if (digest != recorded)
        return stop(p, DIFFERENT,
                    "the coordinator decides otherwise now "
                    "(digest %016" PRIx64 ", recorded %016" PRIx64 ")%s",
                    digest, recorded, p->foreign);
    return SAME;
}

/* ---- notes of the coordinator about its own work ------------------------- */

#define MAX_ROUNDS 10000000

static int read_note(player *p, const json_t *o, kofn_note *x)
{
    json_int_t t, since, w = 0, n = 0, k = 0, round = 0, status = 0;
    int own;

    if (!whole(o, "t", 0, INT64_MAX, &t) || !word(o, "own", OWN, &own))
        return stop(p, NOT_A_JOURNAL, "not a line of a kofn journal");
    since = t;
    if ((own == STORING && !whole(o, "w", 0, 2 * MAX_WORKERS, &w)) ||
        ((own == SENT || own == OVER) && !whole(o, "n", 1, UINT32_MAX, &n)) ||
        (own == SENT && !whole(o, "k", 0, UINT32_MAX, &k)) ||
        ((own == OVER || own > FINISHED) && !whole(o, "since", 0, t, &since)) ||
        (own == OVER && (!whole(o, "round", 0, MAX_ROUNDS, &round) ||
                         !whole(o, "s", -1000, 1000, &status))))
        return stop(p, NOT_A_JOURNAL, "a field is missing or out of range");
    *x = (kofn_note){.own = json_string_value(json_object_get(o, "own")),
                     .now = t,
                     .since = since,
                     .worker = (uint32_t)w,
                     .product = (uint32_t)n,
                     .task = (uint32_t)k,
                     .round = (unsigned)round,
                     .status = (kofn_status)status};
    return SAME;
}

/* Reads a figure of a report. NaN is written as null; a figure that an earlier
 * kofn did not have is 0. False if it is no number. */
static bool figure(const json_t *o, const char *key, double *x)
{
    const json_t *is = json_object_get(o, key);

    *x = json_is_null(is) ? NAN : json_number_value(is);
    return !is || json_is_null(is) || json_is_number(is);
}

#define COUNT(field, key)                                                      \
    ok &= figure(o, key, &x) && x >= 0 && x < 9e15;                            \
    r->field = ok ? (__typeof__(r->field))x : 0;
#define SECONDS(field, key)                                                    \
    ok &= figure(o, key, &x) && fabs(x) < 9e9;                                 \
    r->field = ok ? llround(x * 1e9) : 0;
#define NUMBER(field, key)                                                     \
    ok &= figure(o, key, &x);                                                  \
    r->field = x;
#define LIST(field, key)

/* Reads the totals of a run, as session_put_report writes them. */
static bool read_report(const json_t *o, kofn_report *r)
{
    bool ok = true;
    double x;

#define X(field, adds, kind, key, ...) kind(field, key)
    KF_REPORT_MAP(X)
#undef X
    return ok;
}

/* Gives the totals in the last line to the page. Journals of earlier versions
 * of kofn have none. */
static int read_totals(player *p, const json_t *o)
{
    const json_t *report = json_object_get(o, "report");
    const char *verdict = json_string_value(json_object_get(o, "verdict"));
    kofn_report r = KOFN_REPORT_INIT;

    if (!report && !verdict)
        return SAME;
    if (!verdict || !json_is_object(report) || !read_report(report, &r))
        return stop(p, NOT_A_JOURNAL, "the totals lack a figure or are none");
    return p->drawing && kofn_drawing_totals(p->drawing, &r, verdict)
               ? stop(p, DIFFERENT, "%s", kofn_errmsg())
               : SAME;
}

static int note(player *p, const json_t *o)
{
    kofn_note x;
    int code = read_note(p, o, &x);

    if (!code && !strcmp(x.own, "finished"))
        code = read_totals(p, o);

    if (!code && p->show.steps)
        show_note(p->show.steps, p->r->line, &x);
    if (!code && p->drawing)
        kofn_drawing_note(p->drawing, &x);
    return code;
}

/* ---- lines --------------------------------------------------------------- */

static int play_line(player *p, size_t n)
{
    json_error_t error;
    json_t *o = json_loadb(p->at, n, JSON_REJECT_DUPLICATES, &error);
    int code;

    if (!json_is_object(o)) {
        json_decref(o);
        return stop(p, NOT_A_JOURNAL, "not a JSON object%s%.100s",
                    o ? "" : ": ", o ? "" : error.text);
    }
    code = p->r->line == 1             ? read_header(p, o)
           : json_object_get(o, "own") ? note(p, o)
                                       : play(p, o);
    json_decref(o);
    return code;
}

int replay(const char *text, size_t length, const char *name,
           const replay_show *show, replay_result *r)
{
    player p = {.name = name,
                .at = text,
                .end = text + length,
                .show = show ? *show : (replay_show){.steps = NULL},
                .r = r};
    int code = SAME;

    *r = (replay_result){0};
    while (p.at < p.end && !code) {
        const char *stop_at = memchr(p.at, '\n', (size_t)(p.end - p.at));
        size_t n = (size_t)((stop_at ? stop_at : p.end) - p.at);

        r->line++;
        r->cut = !stop_at && r->line > 1;
        if (r->cut)
            break; /* a killed run ends in the middle of a line */
        code = play_line(&p, n);
        p.at += n + (stop_at != NULL);
    }
    if (!code && r->line == 0) {
        r->line = 1;
        code = stop(&p, NOT_A_JOURNAL,
                    "the file is empty: the run ended before it had begun");
    }
    if (!code)
        r->line = 0;
    if (kofn_drawing_end(p.drawing, !code))
        code = cannot_write(&p);
    free(p.bad);
    kofn_core_free(p.core);
    for (size_t i = 0; i < p.plans; i++)
        kofn_plan_free(p.plan[i]);
    free(p.plan);
    return code;
}
