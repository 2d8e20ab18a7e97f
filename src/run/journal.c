/* journal.c -- writes every event of a run, in order: enough to run the
 * coordinator again.  The format is JSON lines, see docs/journal.md.
 *
 * Of actions only a digest is written.  A replay that gives other actions is
 * found at the first event that leads to them.
 *
 * Owns the file until kf_journal_close.  It decides nothing.  A failure to
 * write fails the step. */
#include "run.h"

#include "base/number.h"
#include "base/options.h"
#include "base/report.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

struct kf_journal {
    FILE *file;
    char *path;
    uint64_t digest;
    kofn_status failed;
    bool round_over, finished;
};

static uint64_t mix(uint64_t h, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        h = kf_fnv(h, x >> (8 * i) & 255);
    return h;
}

static uint64_t bits(double x)
{
    uint64_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

/* Digests order and content of actions, down to the coefficients of
 * decoders. */
uint64_t kofn_action_digest(uint64_t h, const kofn_action *a)
{
    const uint64_t own[] = {(uint64_t)a->type,
                            a->worker,
                            a->product,
                            a->task,
                            a->seat,
                            a->group,
                            a->row,
                            a->lo,
                            a->hi,
                            (uint64_t)(int64_t)a->status,
                            bits(a->noise),
                            a->most};

    h = h ? h : KF_FNV;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        h = mix(h, own[i]);
    for (size_t i = 0; i < a->count; i++)
        h = mix(h, a->tasks[i]);
    for (size_t i = 0;
         a->decoder && i < a->decoder->mixed * a->decoder->results; i++)
        h = mix(h, bits(a->decoder->D[i]));
    return h;
}

/* Writes an option on which decisions rest, as its row of the table says. */
static void write_option(FILE *f, const kofn_option *w, const void *at)
{
    const char *words = w->value;

    fprintf(f, ",\"%s\":", w->name);
    switch (w->kind) {
    case KOFN_OPTION_FLAG:
        fputs(*(const bool *)at ? "true" : "false", f);
        break;
    case KOFN_OPTION_CHOICE:
        for (unsigned c = *(const unsigned *)at; c > 0; c--)
            words += strcspn(words, "|") + 1;
        fprintf(f, "\"%.*s\"", (int)strcspn(words, "|"), words);
        break;
    case KOFN_OPTION_UNSIGNED:
        fprintf(f, "%u", *(const unsigned *)at);
        break;
    case KOFN_OPTION_SIZE:
        fprintf(f, "%zu", *(const size_t *)at);
        break;
    case KOFN_OPTION_REAL:
    case KOFN_OPTION_FACTOR:
        kf_fformat(f, "%.17g", *(const double *)at);
        break;
    case KOFN_OPTION_SECONDS:
    case KOFN_OPTION_TERM:
        fprintf(f, "%" PRId64, *(const kofn_time *)at);
        break;
    case KOFN_OPTION_FILE: /* no decision rests on it */
        break;
    }
}

/* Writes the operation, shape and scheme of an operand. */
static void write_plan(FILE *f, const kofn_plan *p)
{
    const kofn_problem *pb = &p->layout.problem;

    fprintf(f,
            "\"scheme\":\"%s\",\"seed\":\"%" PRIu64
            "\",\"op\":%d,\"m\":%zu,\"n\":%zu,\"p\":%zu,"
            "\"sparse\":%s,\"left\":%zu",
            p->spec, p->layout.seed, (int)pb->op, pb->m, pb->n, pb->p,
            pb->sparse ? "true" : "false",
            p->left ? p->left->layout.problem.p : 0);
}

static void header(FILE *f, const char *port, const kofn_plan *const *plan,
                   size_t operands, const kofn_core_options *o)
{
    fprintf(f,
            "{\"kofn\":\"%s\",\"journal\":%d,\"port\":\"%s\",\"workers\":%zu,"
            "\"dtype\":\"%s\",\"open\":%u,\"late_least\":%" PRId64 ",",
            KOFN_VERSION, KOFN_JOURNAL_VERSION, port, plan[0]->workers,
            plan[0]->layout.problem.dtype == KOFN_F64 ? "f64" : "f32", o->open,
            o->late_least);
    write_plan(f, plan[0]);
#define X(type, name, ...)                                                     \
    write_option(f, kofn_option_at(KF_OPTION_##name), &o->name);
    KOFN_OPTIONS_OF_CORE(X)
#undef X
    for (size_t i = 1; i < operands; i++) {
        fputs(i == 1 ? ",\"operands\":[{" : "},{", f);
        write_plan(f, plan[i]);
    }
    fputs(operands > 1 ? "}]}\n" : "}\n", f);
}

static kofn_status bad(kf_journal *j)
{
    if (!j->failed)
        j->failed =
            kf_fail(KOFN_IO, "journal %s: %s", j->path, strerror(errno));
    return j->failed;
}

kofn_status kf_journal_open(kf_journal **out, const char *path,
                            const char *port, const kofn_plan *const *plan,
                            size_t operands, const kofn_core_options *opt)
{
    kf_journal *j = kf_zero(1, sizeof *j);
    kofn_status st;

    *out = NULL;
    if (!j)
        return KOFN_NOMEM;
    j->path = kf_strdup(path);
    j->file = j->path ? fopen(path, "w") : NULL;
    if (j->file)
        header(j->file, port, plan, operands, opt);
    if (j->file && fflush(j->file) == 0) {
        *out = j;
        return KOFN_OK;
    }
    st = j->path ? bad(j) : KOFN_NOMEM;
    kf_journal_close(j);
    return st;
}

static const char *const names[] = {
    "",      "joined",       "stored", "leaving", "left",
    "begin", "result",       "failed", "alarm",   "verdict",
    "moved", "unresponsive", "cancel", "void",    "judged",
};

static void verdict(FILE *f, const kofn_event *ev)
{
    fprintf(f, ",\"s\":\"%s\",\"bad\":[",
            ev->status == KOFN_OK      ? "ok"
            : ev->status == KOFN_AGAIN ? "again"
                                       : "corrupt");
    for (size_t i = 0; i < ev->bad_count; i++)
        fprintf(f, "%s%u", i ? "," : "", ev->bad[i]);
    fputc(']', f);
    if (ev->doubted)
        fprintf(f, ",\"doubted\":%zu", ev->doubted);
}

/* Writes a string of JSON.  What is not printable ASCII becomes a question
 * mark. */
static void quoted(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', f);
        fputc(*text >= ' ' && *text < 127 ? *text : '?', f);
    }
    fputc('"', f);
}

void kf_journal_event(kf_journal *j, const kofn_event *ev, const char *name)
{
    bool begins = ev->type == KOFN_EV_BEGIN;
    bool answers = ev->type == KOFN_EV_RESULT || ev->type == KOFN_EV_FAILED;
    bool judges = ev->type == KOFN_EV_VERDICT;
    bool cancels = ev->type == KOFN_EV_CANCEL;

    assert((size_t)ev->type < sizeof names / sizeof *names);
    fprintf(j->file, "{\"t\":%" PRId64 ",\"ev\":\"%s\"", ev->now,
            names[ev->type]);
    if (!begins && !judges && !cancels && ev->type != KOFN_EV_ALARM)
        fprintf(j->file, ",\"w\":%u", ev->worker);
    if (ev->principal)
        fprintf(j->file, ",\"p\":%u", ev->principal);
    if (begins || answers || judges || cancels)
        fprintf(j->file, ",\"n\":%u", ev->product);
    if (answers || judges)
        fprintf(j->file, ",\"k\":%u", ev->task);
    if (answers)
        fprintf(j->file, ",\"r\":%u", ev->row);
    if (ev->type == KOFN_EV_RESULT)
        fprintf(j->file, ",\"d\":%" PRId64, ev->took);
    if (begins && ev->use)
        fprintf(j->file, ",\"use\":%u", ev->use);
    if (begins && ev->hi)
        fprintf(j->file, ",\"lo\":%zu,\"hi\":%zu", ev->lo, ev->hi);
    if (begins && ev->late_too)
        fputs(",\"late_too\":true", j->file);
    if (begins && ev->alike)
        fputs(",\"alike\":true", j->file);
    if (begins && ev->all)
        fputs(",\"all\":true", j->file);
    if (begins && ev->m)
        fprintf(j->file, ",\"shape\":[%zu,%zu,%zu]", ev->m, ev->n, ev->p);
    if (judges)
        verdict(j->file, ev);
    if (*name) {
        fputs(",\"name\":", j->file);
        quoted(j->file, name);
    }
    j->digest = 0;
}

/* Digests an action.  At the end of a round the journal is flushed, or the
 * failure reported. */
void kf_journal_action(kf_journal *j, const kofn_action *a)
{
    j->round_over |= a->type == KOFN_DO_DELIVER || a->type == KOFN_DO_END;
    j->digest = kofn_action_digest(j->digest, a);
}

void kf_journal_step(kf_journal *j)
{
    if (j->digest)
        fprintf(j->file, ",\"h\":\"%016" PRIx64 "\"", j->digest);
    fputs("}\n", j->file);
}

void kf_journal_note(kf_journal *j, const kofn_note *n)
{
    bool over = !strcmp(n->own, "over"), sent = !strcmp(n->own, "sent");

    if (j->finished) /* later notes belong to no run */
        return;
    j->finished = !strcmp(n->own, "finished");
    fprintf(j->file, "{\"t\":%" PRId64 ",\"own\":\"%s\"", n->now, n->own);
    if (over)
        fprintf(j->file,
                ",\"since\":%" PRId64 ",\"n\":%u,\"round\":%u,\"s\":%d",
                n->since, n->product, n->round, (int)n->status);
    else if (sent)
        fprintf(j->file, ",\"n\":%u,\"k\":%u", n->product, n->task);
    else if (!strcmp(n->own, "storing"))
        fprintf(j->file, ",\"w\":%u", n->worker);
    else if (!j->finished)
        fprintf(j->file, ",\"since\":%" PRId64, n->since);
    fputs("}\n", j->file);
}

static void write_number(FILE *f, const char *before, const char *key, double x)
{
    fprintf(f, "%s\"%s\":", before, key);
    if (x - x == 0)
        kf_fformat(f, "%.17g", x);
    else
        fputs("null", f);
}

#define COUNT(key, n) write_number(j->file, ",", key, (double)(n));
#define SECONDS(key, t) write_number(j->file, ",", key, (double)(t)*1e-9);
#define NUMBER(key, x) write_number(j->file, ",", key, x);
#define LIST(key, list)

void kf_journal_finish(kf_journal *j, kofn_time now, const kofn_report *total,
                       const char *text)
{
    if (j->finished)
        return;
    j->finished = true;
    fprintf(j->file, "{\"t\":%" PRId64 ",\"own\":\"finished\"", now);
    write_number(j->file, ",\"report\":{", "workers", (double)total->workers);
#define X(field, adds, kind, key, ...) kind(key, total->field)
    KF_REPORT_MAP(X)
#undef X
    fputs("},\"verdict\":", j->file);
    quoted(j->file, text);
    fputs("}\n", j->file);
}

kofn_status kf_journal_check(kf_journal *j)
{
    if (j->round_over && fflush(j->file))
        return bad(j);
    j->round_over = false;
    return ferror(j->file) ? bad(j) : KOFN_OK;
}

kofn_status kf_journal_close(kf_journal *j)
{
    kofn_status st;

    if (!j)
        return KOFN_OK;
    st = j->file && ferror(j->file) ? bad(j) : KOFN_OK;
    if (j->file && fclose(j->file) && !st)
        st = bad(j);
    kf_free(j->path);
    kf_free(j);
    return st;
}
