/* record.c -- records how slow each worker was in each round, as a pattern that
 * kofn_faults can repeat.  A factor is the ratio of two times: of the worker's
 * tasks in the round, and of the first worker to complete all of its tasks.
 * The time runs from when the first task was sent until the last result came.
 *
 * The factor is infinite if the worker had not completed its tasks by the end
 * of the round.  It is 1 if the worker was asked for nothing, and for all
 * workers if none completed its tasks.  The table is kept until the end: eight
 * bytes per worker and round.
 *
 * Owns the table until it is written at the end.  It sees moments alone, of a
 * running job or of a journal. */
#include "task_outcomes.h"

#include "code/operation.h"

#include "base/base.h"
#include "io/io.h"

#include <assert.h>
#include <math.h>

/* A worker's share of the round that is being reported. */
typedef struct share {
    kofn_time from, to;
    bool asked, owes;
} share;

typedef struct line {
    double *factor;
    size_t workers;
} line;

typedef struct record {
    kf_observer base;
    char *path;
    bool stream;
    share *share;
    size_t shares, share_cap;
    line *line;
    size_t lines, line_cap;
} record;

static kofn_status note_task(record *x, uint32_t worker, share task)
{
    share *s;

    while (x->shares <= worker) {
        TRY(kf_grow(&x->share, &x->share_cap, x->shares, sizeof *x->share));
        x->share[x->shares++] = (share){.asked = false};
    }
    s = &x->share[worker];
    if (!s->asked)
        *s = task;
    s->from = task.from < s->from ? task.from : s->from;
    s->to = task.to > s->to ? task.to : s->to;
    s->owes |= task.owes;
    return KOFN_OK;
}

/* Returns the time of the first worker that completed all of its tasks; 0 if
 * none did. */
static kofn_time first_of(const record *x)
{
    kofn_time first = 0;

    for (size_t i = 0; i < x->shares; i++) {
        const share *s = &x->share[i];
        kofn_time took = s->to - s->from;

        if (s->asked && !s->owes && took > 0 && (!first || took < first))
            first = took;
    }
    return first;
}

static double factor_of(const share *s, kofn_time first)
{
    double f = (double)(s->to - s->from) / (double)first;

    if (!s->asked || first == 0)
        return 1;
    return s->owes ? HUGE_VAL : f > 1 ? f : 1;
}

static kofn_status note_round(record *x, unsigned round)
{
    kofn_time first = first_of(x);
    line *l;

    assert(round > 0);
    while (x->lines < round) {
        TRY(kf_grow(&x->line, &x->line_cap, x->lines, sizeof *x->line));
        x->line[x->lines++] = (line){NULL, 0};
    }
    l = &x->line[round - 1];
    TRY_NEW(l->factor, x->shares);
    l->workers = x->shares;
    for (size_t i = 0; i < x->shares; i++)
        l->factor[i] = factor_of(&x->share[i], first);
    return KOFN_OK;
}

/* Records a round of a stream.  A marked worker owes results; the factor of a
 * worker without a list is 1. */
static kofn_status note_lists(record *x, const kofn_stream_round *r)
{
    x->shares = 0;
    for (uint32_t w = 0; w < r->workers; w++)
        TRY(note_task(x, w,
                      (share){.to = r->times[w],
                              .asked = r->mark[w] || r->times[w] != KOFN_NEVER,
                              .owes = r->mark[w]}));
    return note_round(x, r->round);
}

static kofn_status see(kf_observer *base, const kf_moment *m)
{
    record *x = (record *)base;
    const kf_slot *t = m->task;
    kofn_status st = KOFN_OK;

    if (m->type == KF_LISTS && !base->failed)
        st = note_lists(x, m->lists);
    if (x->stream || base->failed)
        return st;
    if (m->type == KF_TASK)
        return note_task(x, m->worker,
                         (share){t->sent, m->to, true,
                                 t->outcome != KF_OUTCOME_CAME &&
                                     t->outcome != KF_OUTCOME_USED &&
                                     t->outcome != KF_OUTCOME_WRONG});
    if (m->type != KF_ROUND)
        return st;
    if (m->status != KOFN_AGAIN)
        st = note_round(x, m->round);
    x->shares = 0;
    return st;
}

/* Writes the table.  Rounds that failed before any worker was asked have
 * factors of 1. */
static kofn_status write_all(const record *x)
{
    kofn_matrix a = {NULL, x->lines, 0, 0, KOFN_F64};
    double *out;
    kofn_status st;

    for (size_t t = 0; t < x->lines; t++)
        a.cols = kf_max(a.cols, x->line[t].workers);
    if (a.cols == 0)
        return kf_fail(KOFN_STATE, "%s: there was no round to record", x->path);
    a.ld = a.cols;
    out = a.data = kf_new(a.rows, a.cols * sizeof *out);
    if (!out)
        return KOFN_NOMEM;
    for (size_t t = 0; t < a.rows; t++)
        for (size_t w = 0; w < a.cols; w++)
            out[t * a.cols + w] =
                w < x->line[t].workers ? x->line[t].factor[w] : 1;
    st = kofn_write(x->path, KOFN_DENSE(&a), 2);
    kf_free(out);
    return st;
}

static kofn_status end(kf_observer *base, bool keep)
{
    record *x = (record *)base;
    kofn_status st = keep && !base->failed ? write_all(x) : KOFN_OK;

    for (size_t t = 0; t < x->lines; t++)
        kf_free(x->line[t].factor);
    kf_free(x->line);
    kf_free(x->share);
    kf_free(x->path);
    kf_free(x);
    return st;
}

kofn_status kf_record_new(kf_observer **list, const kofn_plan *plan,
                          const char *path)
{
    record *x;

    if (!kf_io_has_suffix(path, ".npy") && !kf_io_has_suffix(path, ".csv"))
        return kf_fail(KOFN_INVAL, "record = %s: name it .npy or .csv", path);
    TRY_ZERO(x, 1);
    x->base =
        (kf_observer){.next = *list, .name = "record", .see = see, .end = end};
    x->stream = plan->op->stream;
    x->path = kf_strdup(path);
    if (!x->path) {
        kf_free(x);
        return KOFN_NOMEM;
    }
    *list = &x->base;
    return KOFN_OK;
}
