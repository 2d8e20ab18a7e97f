/* page.c -- the report of a run: a page of HTML with the fate and the time of
 * every worker in every round (docs/operate.md).
 *
 * A cell is what a worker did in a round: four bits of fate and twelve bits of
 * time.  A third byte has the share of the work, in rounds that gave workers
 * unequal work.  Cells are kept until the end and then written, compressed,
 * into a page that share/report has.  That page does all that people see.
 *
 * Owns the cells, the marks and the file.  It sees moments, of a running job or
 * of a journal.  Names of workers and the figures are those of the job, or
 * those that the journal has of it.  A journal without a last line has no
 * figures but those that follow from its lines, and the page says so. */
#include "page.h"
#include "job.h"
#include "sentence.h"

#include "base/report.h"
#include "code/operation.h"
#include "io/io.h"
#include "io/pack.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

/* Fates, by severity: a page shows the most severe one of many cells.
 * docs/journal.md and share/report/report.js have the same numbers. */
enum {
    ABSENT,
    IDLE,
    USED,
    PARTLY,
    LATE,
    CANCELLED,
    UNFINISHED,
    FAILED,
    LOST,
    WRONG,
    EXCLUDED /* asked for nothing, because it was wrong too often */
};

/* Times are kept as logarithms: OCTAVE steps double a time.  0 is no time. */
#define OCTAVE 95
#define CODES 4095
#define FATE_BITS 4
/* Of a page: steps of one byte, and the most of them that double a time.  More
 * would be a larger file with digits that nobody sees. */
#define STEPS 254
#define FINEST 24

/* A worker's share of the round that is being reported. */
typedef struct share {
    kofn_time from, to;
    uint64_t work; /* strips */
    unsigned seen; /* a bit for each outcome of its tasks */
} share;

typedef struct column {
    unsigned round;
    kofn_status status;
    kofn_time from, to;
    uint64_t most; /* strips of the worker with the most work */
    size_t workers;
    uint16_t *cell;
    unsigned char *work; /* 255: `most`; NULL: all have that */
} column;

typedef struct mark {
    kofn_time at;
    uint32_t worker, column, kind; /* a kf_moment_type */
} mark;

typedef struct caption {
    char *name, *text;
} caption;

/* What is known of a journal that is drawn. */
typedef struct page_journal {
    kofn_report total;          /* of a journal, if it has a verdict */
    char verdict[KOFN_VERDICT]; /* of a journal; "": it has none */
    kf_telling telling;         /* of a journal */
} page_journal;

/* The workers that are here. */
typedef struct page_here {
    bool *is; /* by worker */
    size_t count, cap;
} page_here;

typedef struct page {
    kf_observer base;
    kf_out out;
    const kofn_job *job; /* NULL: of a journal */
    const kofn_core *core;
    const kofn_plan *plan;
    char *port;
    share *share;
    size_t shares, share_cap;
    column *column;
    size_t columns, column_cap;
    mark *mark;
    size_t marks, mark_cap;
    caption *caption;
    size_t captions, caption_cap;
    size_t workers;       /* most workers of a column */
    kofn_time spent[2];   /* encoding, decoding */
    unsigned least, most; /* codes of times */
    bool uneven;
    page_journal of;
    page_here here;
} page;

/* ---- moments ------------------------------------------------------------- */

/* Makes room for this worker, which is not here if it is new. */
static kofn_status know(page *x, uint32_t worker)
{
    size_t n = (size_t)worker + 1;

    if (n <= x->here.count)
        return KOFN_OK;
    TRY(kf_reach(&x->here.is, &x->here.cap, n, sizeof *x->here.is));
    x->here.count = n;
    return KOFN_OK;
}

static kofn_status note_task(page *x, const kf_moment *m)
{
    const kf_slot *t = m->task;
    share *s;

    TRY(know(x, m->worker));
    while (x->shares <= m->worker) {
        TRY(kf_grow(&x->share, &x->share_cap, x->shares, sizeof *x->share));
        x->share[x->shares++] = (share){.seen = 0};
    }
    s = &x->share[m->worker];
    if (!s->seen)
        *s = (share){.from = m->from, .to = m->to};
    s->from = m->from < s->from ? m->from : s->from;
    s->to = m->to > s->to ? m->to : s->to;
    s->work += t->hi > t->lo ? t->hi - t->lo : 1;
    s->seen |= 1u << t->outcome;
    return KOFN_OK;
}

static unsigned fate_of(unsigned seen)
{
    bool used = seen & 1u << KF_OUTCOME_USED;
    bool cancelled = seen & 1u << KF_OUTCOME_CANCELLED;

    return seen & 1u << KF_OUTCOME_WRONG    ? WRONG
           : seen & 1u << KF_OUTCOME_LOST   ? LOST
           : seen & 1u << KF_OUTCOME_FAILED ? FAILED
           : seen & 1u << KF_OUTCOME_OUT    ? UNFINISHED
           : used && cancelled              ? PARTLY
           : used                           ? USED
           : cancelled                      ? CANCELLED
                                            : LATE;
}

static unsigned code_of(kofn_time took)
{
    double code;

    if (took <= 0)
        return 0;
    code = 1 + nearbyint(OCTAVE * log2((double)took));
    return code < CODES ? (unsigned)code : CODES;
}

/* Returns the cell of a worker that was asked for something. */
static uint16_t cell_of(page *x, const share *s)
{
    unsigned code = code_of(s->to - s->from);

    if (code && (!x->least || code < x->least))
        x->least = code;
    x->most = code > x->most ? code : x->most;
    return (uint16_t)(code << FATE_BITS | fate_of(s->seen));
}

/* Keeps the share of each worker in the work, unless all have the same. */
static kofn_status note_work(page *x, column *c)
{
    uint64_t least = UINT64_MAX;

    for (size_t w = 0; w < x->shares; w++)
        if (x->share[w].seen) {
            c->most = c->most > x->share[w].work ? c->most : x->share[w].work;
            least = least < x->share[w].work ? least : x->share[w].work;
        }
    if (!c->most || least == c->most)
        return KOFN_OK;
    TRY_ZERO(c->work, c->workers);
    x->uneven = true;
    for (size_t w = 0; w < x->shares; w++)
        if (x->share[w].seen)
            c->work[w] = (unsigned char)kf_max(
                1, (size_t)nearbyint(255 * (double)x->share[w].work /
                                     (double)c->most));
    return KOFN_OK;
}

/* Returns the fate of a worker that was asked for nothing. */
static uint16_t unasked(const page *x, size_t w)
{
    return !x->here.is[w] ? ABSENT
           : kf_core_worker(x->core, (uint32_t)w) == KOFN_WORKER_QUARANTINED
               ? EXCLUDED
               : IDLE;
}

static kofn_status note_round(page *x, const kf_moment *m)
{
    column *c;
    size_t n = x->here.count;

    TRY(kf_grow(&x->column, &x->column_cap, x->columns, sizeof *c));
    c = &x->column[x->columns++];
    *c = (column){.round = m->round,
                  .status = m->status,
                  .from = m->from,
                  .to = m->to,
                  .workers = n};
    assert(n >= x->shares);
    TRY_NEW(c->cell, n);
    for (size_t w = 0; w < n; w++)
        c->cell[w] = w < x->shares && x->share[w].seen
                         ? cell_of(x, &x->share[w])
                         : unasked(x, w);
    TRY(note_work(x, c));
    x->workers = kf_max(x->workers, n);
    x->shares = 0;
    return KOFN_OK;
}

/* Records that a worker has joined or left.  The first workers are expected,
 * so that their joining is no news. */
static kofn_status note_worker(page *x, const kf_moment *m)
{
    bool joined = m->type == KF_JOINED;

    TRY(know(x, m->worker));
    x->here.is[m->worker] = joined;
    if (joined && !x->columns && m->worker < x->plan->workers)
        return KOFN_OK;
    TRY(kf_grow(&x->mark, &x->mark_cap, x->marks, sizeof *x->mark));
    x->mark[x->marks++] = (mark){.at = m->from,
                                 .worker = m->worker,
                                 .column = (uint32_t)x->columns,
                                 .kind = m->type};
    return KOFN_OK;
}

static void note_spent(page *x, const kf_moment *m)
{
    bool decoding = !strcmp(m->what, "decode") || !strcmp(m->what, "check");

    x->spent[decoding] += m->to - m->from;
}

static kofn_status see(kf_observer *base, const kf_moment *m)
{
    page *x = (page *)base;

    if (base->failed)
        return KOFN_OK;
    if (!x->job)
        TRY(kf_telling_see(&x->of.telling, m));
    switch (m->type) {
    case KF_TASK:
        return note_task(x, m);
    case KF_ROUND:
        return note_round(x, m);
    case KF_JOINED:
    case KF_LEFT:
        return note_worker(x, m);
    case KF_SPENT:
        note_spent(x, m);
        break;
    case KF_PASS:
    case KF_STORED:
    case KF_LEAVING:
    case KF_LISTS:
    case KF_STORING:
        break;
    }
    return KOFN_OK;
}

/* ---- the figures --------------------------------------------------------- */

static kofn_status text(page *x, const char *s)
{
    return kf_out_put(&x->out, s, strlen(s));
}

/* Writes a string of JSON that cannot end a script of HTML. */
static kofn_status quoted(page *x, const char *s)
{
    TRY(text(x, "\""));
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if (c < 32 || c == 127 || strchr("\"\\<>&'", c))
            TRY(kf_out_text(&x->out, "\\u%04x", c));
        else
            TRY(kf_out_put(&x->out, s, 1));
    }
    return text(x, "\"");
}

static kofn_status number(page *x, double value)
{
    return value - value == 0 ? kf_out_text(&x->out, "%.17g", value)
                              : text(x, "null");
}

static kofn_status figure(page *x, const char *key, const char *kind,
                          double value, const char *what)
{
    TRY(kf_out_text(&x->out, "[\"%s\",\"%s\",", key, kind));
    TRY(number(x, value));
    TRY(text(x, ","));
    TRY(quoted(x, what));
    return text(x, "],\n");
}

#define COUNT(key, n, what) TRY(figure(x, key, "count", (double)(n), what));
#define SECONDS(key, t, what)                                                  \
    TRY(figure(x, key, "seconds", (double)(t)*1e-9, what));
#define NUMBER(key, n, what) TRY(figure(x, key, "number", n, what));
#define LIST(key, list, what)

static kofn_status put_report(page *x, const kofn_report *r)
{
#define X(field, adds, kind, key, metric, what) kind(key, r->field, what)
    KF_REPORT_MAP(X)
#undef X
    return KOFN_OK;
}

/* Writes the figures that follow from a journal. */
static kofn_status put_sums(page *x)
{
    kofn_time took = 0, waited;

    for (size_t i = 0; i < x->columns; i++)
        took += x->column[i].to - x->column[i].from;
    waited = took - x->spent[0] - x->spent[1];
    COUNT("rounds", x->columns, "products that were computed")
    SECONDS("seconds", took, "of all rounds")
    SECONDS("encode_seconds", x->spent[0], "spent on encoding")
    SECONDS("wait_seconds", waited > 0 ? waited : 0, "spent on waiting")
    SECONDS("decode_seconds", x->spent[1], "spent on decoding and checking")
    return KOFN_OK;
}

static kofn_status put_figures(page *x)
{
    kofn_report r = KOFN_REPORT_INIT;

    TRY(text(x, "\"figures\":[\n"));
    if (x->job)
        TRY(kofn_job_totals(x->job, &r));
    if (x->job || *x->of.verdict)
        TRY(put_report(x, x->job ? &r : &x->of.total));
    else
        TRY(put_sums(x));
    return text(x, "[]],\n");
}

/* Returns the name of a worker; "" if it has none. */
static const char *name_of(const page *x, size_t worker)
{
    return x->job ? kofn_job_name(x->job, worker)
                  : kf_telling_name_of(&x->of.telling, worker);
}

/* Writes the sentence, and whether the figures are all there. */
static kofn_status put_verdict(page *x)
{
    bool whole = x->job || *x->of.verdict;

    if (x->job)
        TRY(kofn_job_verdict(x->job, x->of.verdict, sizeof x->of.verdict));
    else if (!whole)
        kf_telling_write(&x->of.telling, x->of.verdict, sizeof x->of.verdict);
    TRY(text(x, "\"verdict\":"));
    TRY(quoted(x, x->of.verdict));
    return kf_out_text(&x->out, ",\"whole\":%s,\n", whole ? "true" : "false");
}

static kofn_status put_names(page *x)
{
    TRY(text(x, "\"names\":["));
    for (size_t i = 0; i < x->workers; i++) {
        TRY(text(x, i ? "," : ""));
        TRY(quoted(x, name_of(x, i)));
    }
    TRY(text(x, "],\n\"captions\":["));
    for (size_t i = 0; i < x->captions; i++) {
        TRY(text(x, i ? ",[" : "["));
        TRY(quoted(x, x->caption[i].name));
        TRY(text(x, ","));
        TRY(quoted(x, x->caption[i].text));
        TRY(text(x, "]"));
    }
    return text(x, "]");
}

/* Returns how many codes make one step of a byte. */
static double step_of(const page *x)
{
    double fits = (double)(x->most - x->least) / (STEPS - 1);

    return fits > (double)OCTAVE / FINEST ? fits : (double)OCTAVE / FINEST;
}

static kofn_status put_head(page *x)
{
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;

    TRY(kofn_plan_describe(x->plan, false, &info));
    TRY(text(x, "\n<script type=\"application/json\" class=\"run\">\n"
                "{\"format\":2,\"kofn\":\"" KOFN_VERSION "\",\"port\":"));
    TRY(quoted(x, x->port));
    TRY(text(x, ",\"scheme\":"));
    TRY(quoted(x, info.scheme));
    TRY(text(x, ",\"spec\":"));
    TRY(quoted(x, info.spec));
    TRY(kf_out_text(&x->out,
                    ",\"seats\":%zu,\"threshold\":%zu,\"stream\":%s,\n"
                    "\"workers\":%zu,\"rounds\":%zu,\"marks\":%zu,"
                    "\"uneven\":%s,",
                    info.workers, info.threshold,
                    x->plan->op->stream ? "true" : "false", x->workers,
                    x->columns, x->marks, x->uneven ? "true" : "false"));
    TRY(text(x, "\"least\":"));
    TRY(number(x, 1e-9 * exp2(((double)x->least - 1) / OCTAVE)));
    TRY(text(x, ",\"ratio\":"));
    TRY(number(x, exp2(step_of(x) / OCTAVE)));
    TRY(text(x, ",\n"));
    TRY(put_figures(x));
    TRY(put_verdict(x));
    TRY(put_names(x));
    return text(x, "}</script>\n");
}

/* ---- the cells ----------------------------------------------------------- */

static kofn_status put_bits(kf_pack *p, uint64_t bits, size_t size)
{
    unsigned char byte[8];

    for (size_t i = 0; i < size; i++)
        byte[i] = (unsigned char)(bits >> 8 * i);
    return kf_pack_put(p, byte, size);
}

static kofn_status put_time(kf_pack *p, kofn_time t)
{
    double seconds = (double)t * 1e-9;
    uint64_t bits;

    memcpy(&bits, &seconds, sizeof bits);
    return put_bits(p, bits, sizeof bits);
}

static kofn_status put_rounds(const page *x, kf_pack *p)
{
    for (size_t i = 0; i < x->columns; i++)
        TRY(put_time(p, x->column[i].from));
    for (size_t i = 0; i < x->columns; i++)
        TRY(put_time(p, x->column[i].to));
    for (size_t i = 0; i < x->marks; i++)
        TRY(put_time(p, x->mark[i].at));
    for (size_t i = 0; i < x->columns; i++)
        TRY(put_bits(p, x->column[i].round, 4));
    for (size_t i = 0; i < x->columns; i++)
        TRY(put_bits(p, (uint64_t)(int64_t)x->column[i].status, 4));
    for (size_t i = 0; i < x->columns; i++)
        TRY(put_bits(p, kf_min(x->column[i].most, UINT32_MAX), 4));
    for (size_t i = 0; i < x->marks; i++)
        TRY(put_bits(p, x->mark[i].worker, 4));
    for (size_t i = 0; i < x->marks; i++)
        TRY(put_bits(p, x->mark[i].column, 4));
    for (size_t i = 0; i < x->marks; i++)
        TRY(put_bits(p, x->mark[i].kind == KF_JOINED, 4));
    return KOFN_OK;
}

/* What a plane has of each cell. */
enum { FATES, TIMES, WORK };

static unsigned char byte_of(const page *x, const column *c, size_t w,
                             int plane)
{
    unsigned code;

    if (w >= c->workers)
        return 0;
    if (plane == FATES)
        return c->cell[w] & ((1 << FATE_BITS) - 1);
    if (plane == WORK)
        return c->work                                       ? c->work[w]
               : c->cell[w] > IDLE && c->cell[w] != EXCLUDED ? 255
                                                             : 0;
    code = c->cell[w] >> FATE_BITS;
    return (unsigned char)(code ? 1 + nearbyint((code - x->least) / step_of(x))
                                : 0);
}

/* Writes a plane: all rounds of worker 0, then those of worker 1, and so on. */
static kofn_status put_plane(const page *x, kf_pack *p, int plane)
{
    unsigned char *row;
    kofn_status st = KOFN_OK;

    TRY_NEW(row, kf_max(1, x->columns));
    for (size_t w = 0; !st && w < x->workers; w++) {
        for (size_t i = 0; i < x->columns; i++)
            row[i] = byte_of(x, &x->column[i], w, plane);
        st = kf_pack_put(p, row, x->columns);
    }
    kf_free(row);
    return st;
}

static kofn_status put_cells(page *x)
{
    kf_pack p;
    kofn_status st;

    TRY(text(x, "<script type=\"text/plain\" class=\"cells\">"));
    TRY(kf_pack_open(&p, &x->out));
    st = put_rounds(x, &p);
    for (int plane = FATES; !st && plane <= (x->uneven ? WORK : TIMES); plane++)
        st = put_plane(x, &p, plane);
    TRY(kf_pack_close(&p, st));
    return text(x, "</script>\n");
}

static kofn_status put_all(page *x)
{
    TRY(kf_out_put(&x->out, kf_page_head, kf_page_head_size));
    TRY(put_head(x));
    TRY(put_cells(x));
    return kf_out_put(&x->out, kf_page_tail, kf_page_tail_size);
}

/* ---- an observer --------------------------------------------------------- */

static kofn_status end(kf_observer *base, bool keep)
{
    page *x = (page *)base;
    kofn_status st = base->failed;

    if (!st && keep)
        st = put_all(x);
    st = kf_out_close(&x->out, keep ? st : KOFN_STATE);
    for (size_t i = 0; i < x->columns; i++) {
        kf_free(x->column[i].cell);
        kf_free(x->column[i].work);
    }
    for (size_t i = 0; i < x->captions; i++) {
        kf_free(x->caption[i].name);
        kf_free(x->caption[i].text);
    }
    kf_telling_free(&x->of.telling);
    kf_free(x->column);
    kf_free(x->caption);
    kf_free(x->mark);
    kf_free(x->share);
    kf_free(x->here.is);
    kf_free(x->port);
    kf_free(x);
    return keep ? st : KOFN_OK;
}

kofn_status kf_page_new(kf_observer **list, const kofn_job *j,
                        const kofn_core *core, const kofn_plan *plan,
                        const char *port, const char *path)
{
    page *x = kf_zero(1, sizeof *x);
    kofn_status st;

    if (!x)
        return KOFN_NOMEM;
    x->base =
        (kf_observer){.next = *list, .name = "report", .see = see, .end = end};
    x->job = j;
    x->core = core;
    x->of.telling.core = core;
    x->of.telling.sum.plan = plan;
    x->of.telling.sum.simulated = !strcmp(port, "sim");
    x->plan = plan;
    st = kf_out_open(&x->out, path);
    if (st) {
        kf_free(x);
        return st;
    }
    x->port = kf_strdup(port);
    if (!x->port) {
        end(&x->base, false);
        return KOFN_NOMEM;
    }
    *list = &x->base;
    return KOFN_OK;
}

/* Returns the page among the observers; NULL: there is none. */
static page *page_of(kf_observer *list)
{
    while (list && list->see != see)
        list = list->next;
    return (page *)list;
}

kofn_status kf_page_name(kf_observer *list, uint32_t worker, const char *name)
{
    page *x = page_of(list);

    return x ? kf_telling_name(&x->of.telling, worker, name) : KOFN_OK;
}

kofn_status kf_page_totals(kf_observer *list, const kofn_report *total,
                           const char *verdict)
{
    page *x = page_of(list);

    if (!x)
        return KOFN_OK;
    x->of.total = *total;
    snprintf(x->of.verdict, sizeof x->of.verdict, "%s", verdict);
    return KOFN_OK;
}

kofn_status kf_page_caption(kf_observer *list, const char *name,
                            const char *words)
{
    page *x = page_of(list);
    caption *c;

    if (!x)
        return KOFN_OK;
    TRY(kf_grow(&x->caption, &x->caption_cap, x->captions, sizeof *c));
    c = &x->caption[x->captions];
    *c = (caption){kf_strdup(name), kf_strdup(words)};
    x->captions++;
    return c->name && c->text ? KOFN_OK : KOFN_NOMEM;
}

kofn_status kofn_caption(kofn_job *j, const char *name, const char *words)
{
    if (!name || !words)
        return kf_fail(KOFN_INVAL, "the name or the words are NULL");
    return kf_page_caption(j->outcomes.observers, name, words);
}
