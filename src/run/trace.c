/* trace.c -- draws a run: the JSON of Chrome's trace viewer, which Perfetto
 * opens (docs/operate.md).
 *
 * There is one track for the rounds (more if products overlap), one for the
 * coordinator's own work, and one per worker.  A worker does its tasks one
 * after the other, but is given several at a time.  So a task is drawn from the
 * latest of three times.  These are when it was sent, when the task before it
 * was over, and when the worker's own time for it began, if that is known.
 *
 * In streams the track for the rounds has the rounds of the stream, and
 * products have tracks of their own.  A used task has the name and the colour
 * of its product.
 *
 * Slices are written as rounds end and are not kept, so that a long run needs
 * memory only for its workers.  The file gets its name at the end.
 *
 * Owns the file and the lines that are not written.  It sees moments alone, of
 * a running job or of a journal.  A failure is reported at the end. */
#include "task_outcomes.h"

#include "code/operation.h"

#include "base/base.h"
#include "io/out.h"

#include <inttypes.h>
#include <stdio.h>

enum { ROUNDS, COORDINATOR, FIRST_WORKER }; /* tracks */
#define MORE_ROUNDS 1000000000 /* numbered after those of the workers */

typedef struct track {
    kofn_time since; /* when a block was sent to the worker */
    bool storing;    /* a block was sent to it */
    bool named;
} track;

typedef struct trace {
    kf_observer base;
    kf_out out;
    bool stream;
    kofn_time over[KOFN_OPEN_MOST + 1]; /* per track of rounds: end of the last
                                           one */
    size_t tracks;
    track *worker;
    size_t workers;
    bool more; /* an entry was written: a comma is due */
} trace;

/* The name and colour of a task by its outcome.  Perfetto gives each name a
 * colour; Chrome uses cname. */
static const struct {
    const char *name, *colour;
} look[KF_OUTCOMES] = {
    [KF_OUTCOME_OUT] = {"unfinished", "grey"},
    [KF_OUTCOME_CAME] = {"wasted", "yellow"},
    [KF_OUTCOME_USED] = {"work", "good"},
    [KF_OUTCOME_WRONG] = {"wrong", "terrible"},
    [KF_OUTCOME_CANCELLED] = {"cancelled", "thread_state_sleeping"},
    [KF_OUTCOME_FAILED] = {"failed", "bad"},
    [KF_OUTCOME_LOST] = {"lost", "black"},
};

/* Colours for the products of a stream, in turn: more than can be open. */
static const char *const colours[] = {"thread_state_running",
                                      "rail_response",
                                      "rail_animation",
                                      "rail_load",
                                      "startup",
                                      "heap_dump_stack_frame",
                                      "cq_build_passed",
                                      "vsync_highlight_color",
                                      "generic_work",
                                      "thread_state_iowait",
                                      "rail_idle",
                                      "light_memory_dump",
                                      "detailed_memory_dump",
                                      "background_memory_dump",
                                      "cq_build_running",
                                      "thread_state_runnable",
                                      "thread_state_unknown"};

/* ---- entries ------------------------------------------------------------- */

static kofn_status text(trace *x, const char *s)
{
    return kf_out_put(&x->out, s, strlen(s));
}

/* Begins an entry with phase and track; the caller adds the rest. */
static kofn_status entry(trace *x, char phase, uint64_t thread)
{
    const char *before = x->more ? ",\n" : "";

    x->more = true;
    return kf_out_text(&x->out, "%s{\"ph\":\"%c\",\"pid\":1,\"tid\":%" PRIu64,
                       before, phase, thread);
}

/* Writes microseconds, with three decimals. */
static kofn_status when(trace *x, const char *key, kofn_time t)
{
    return kf_out_text(&x->out, ",\"%s\":%" PRId64 ".%03d", key, t / 1000,
                       (int)(t % 1000));
}

/* Begins an entry with this name and time. */
static kofn_status named(trace *x, char phase, uint64_t thread,
                         const char *name, kofn_time at)
{
    TRY(entry(x, phase, thread));
    TRY(kf_out_text(&x->out, ",\"name\":\"%s\"", name));
    return when(x, "ts", at);
}

static kofn_status slice(trace *x, uint64_t thread, const char *name,
                         kofn_time from, kofn_time to)
{
    TRY(named(x, 'X', thread, name, from));
    return when(x, "dur", to - from);
}

static kofn_status name_track(trace *x, uint64_t thread, const char *name)
{
    TRY(entry(x, 'M', thread));
    TRY(kf_out_text(&x->out,
                    ",\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}",
                    name));
    TRY(entry(x, 'M', thread));
    return kf_out_text(&x->out,
                       ",\"name\":\"thread_sort_index\",\"args\":{"
                       "\"sort_index\":%" PRIu64 "}}",
                       thread);
}

static kofn_status track_of(trace *x, uint32_t worker, track **out)
{
    char name[32];

    TRY(kf_reach(&x->worker, &x->workers, (size_t)worker + 1,
                 sizeof *x->worker));
    *out = &x->worker[worker];
    if ((*out)->named)
        return KOFN_OK;
    (*out)->named = true;
    snprintf(name, sizeof name, "worker %u", worker);
    return name_track(x, FIRST_WORKER + (uint64_t)worker, name);
}

/* ---- moments ------------------------------------------------------------- */

static kofn_status put_task(trace *x, const kf_moment *m)
{
    const kf_slot *t = m->task;
    const char *name = look[t->outcome].name, *colour = look[t->outcome].colour;
    char own[32];
    track *l;
    kofn_time from = m->from;

    if (x->stream && t->outcome == KF_OUTCOME_USED) {
        snprintf(own, sizeof own, "product %u", m->round);
        name = own;
        colour = colours[m->round % (sizeof colours / sizeof *colours)];
    }
    TRY(track_of(x, m->worker, &l));
    if (t->took > 0 && m->to - t->took > from)
        from = m->to - t->took;
    from = from < m->to ? from : m->to;
    TRY(slice(x, FIRST_WORKER + (uint64_t)m->worker, name, from, m->to));
    TRY(kf_out_text(&x->out, ",\"cat\":\"%s\",\"cname\":\"%s\"",
                    look[t->outcome].name, colour));
    return kf_out_text(
        &x->out,
        ",\"args\":{\"round\":%u,\"task\":%u,"
        "\"group\":%zu,\"row\":%u,\"strips\":\"%zu-%zu\",\"sent\":%" PRId64
        ",\"took\":%" PRId64 "}}",
        m->round, t->task, t->group, t->row, t->lo, t->hi - (t->hi > t->lo),
        t->sent, t->took);
}

/* Chooses a track for a round.  Slices of one track do not overlap, so
 * overlapping products need more tracks. */
static kofn_status track_of_round(trace *x, const kf_moment *m,
                                  uint64_t *thread)
{
    size_t i = x->stream; /* track 0 has the rounds of the stream */

    while (i < x->tracks && x->over[i] > m->from)
        i++;
    i = i < KOFN_OPEN_MOST ? i : KOFN_OPEN_MOST - 1;
    *thread = i ? MORE_ROUNDS + i : ROUNDS;
    x->over[i] = m->to;
    if (i < x->tracks)
        return KOFN_OK;
    x->tracks = i + 1;
    return i ? name_track(x, *thread, x->stream ? "products" : "rounds")
             : KOFN_OK;
}

static kofn_status put_round(trace *x, const kf_moment *m)
{
    char name[32];
    uint64_t thread;

    TRY(track_of_round(x, m, &thread));
    snprintf(name, sizeof name, "%s %u", x->stream ? "product" : "round",
             m->round);
    TRY(slice(x, thread, name, m->from, m->to));
    return kf_out_text(&x->out,
                       ",\"cat\":\"round\",\"args\":{\"status\":\"%s\"}}",
                       kofn_strerror(m->status));
}

/* Draws a round of a stream that is just over. */
static kofn_status put_lists(trace *x, const kf_moment *m)
{
    kofn_time from = m->to - m->lists->took;
    char name[32];

    from = from > x->over[0] ? from : x->over[0];
    x->over[0] = m->to;
    snprintf(name, sizeof name, "round %u", m->lists->round);
    TRY(slice(x, ROUNDS, name, from, m->to));
    return kf_out_text(&x->out,
                       ",\"cat\":\"round\",\"args\":{\"open\":%zu,"
                       "\"slots\":%zu}}",
                       m->lists->open, m->lists->slots);
}

static kofn_status put_instant(trace *x, const kf_moment *m, const char *name)
{
    TRY(named(x, 'i', FIRST_WORKER + (uint64_t)m->worker, name, m->from));
    return text(x, ",\"s\":\"t\",\"cat\":\"worker\"}");
}

static kofn_status put_worker(trace *x, const kf_moment *m)
{
    track *l;
    bool stored;

    TRY(track_of(x, m->worker, &l));
    if (m->type == KF_JOINED)
        return put_instant(x, m, "joined");
    if (m->type == KF_LEAVING)
        return put_instant(x, m, "leaving");
    stored = l->storing && m->type != KF_STORING;
    l->storing = m->type == KF_STORING;
    l->since = l->storing ? m->from : l->since;
    if (stored) {
        TRY(slice(x, FIRST_WORKER + (uint64_t)m->worker, "store", l->since,
                  m->to));
        TRY(text(x, ",\"cat\":\"store\"}"));
    }
    return m->type == KF_LEFT ? put_instant(x, m, "left") : KOFN_OK;
}

static kofn_status put(trace *x, const kf_moment *m)
{
    switch (m->type) {
    case KF_LISTS:
        return put_lists(x, m);
    case KF_SPENT:
        TRY(slice(x, COORDINATOR, m->what, m->from, m->to));
        return kf_out_text(&x->out, ",\"cat\":\"%s\"}", m->what);
    case KF_TASK:
        return put_task(x, m);
    case KF_ROUND:
        return put_round(x, m);
    case KF_JOINED:
    case KF_STORING:
    case KF_STORED:
    case KF_LEAVING:
    case KF_LEFT:
        return put_worker(x, m);
    case KF_PASS:
        break;
    }
    return KOFN_OK;
}

/* ---- an observer --------------------------------------------------------- */

/* Writes nothing after a failure, because half a drawing is of no use. */
static kofn_status see(kf_observer *base, const kf_moment *m)
{
    return base->failed ? KOFN_OK : put((trace *)base, m);
}

static kofn_status end(kf_observer *base, bool keep)
{
    trace *x = (trace *)base;
    kofn_status st = base->failed;

    if (!st && keep)
        st = text(x, "\n]}\n");
    st = kf_out_close(&x->out, keep ? st : KOFN_STATE);
    kf_free(x->worker);
    kf_free(x);
    return keep ? st : KOFN_OK;
}

static kofn_status begin(trace *x, const kofn_plan *plan, const char *port)
{
    TRY(kf_out_text(&x->out,
                    "{\"displayTimeUnit\":\"ns\",\"otherData\":{"
                    "\"kofn\":\"" KOFN_VERSION "\",\"port\":\"%s\","
                    "\"scheme\":\"",
                    port));
    TRY(text(x, plan->spec));
    TRY(text(x, "\"},\n\"traceEvents\":[\n"));
    TRY(entry(x, 'M', 0));
    TRY(text(x, ",\"name\":\"process_name\",\"args\":{\"name\":\"kofn\"}}"));
    TRY(name_track(x, ROUNDS, "rounds"));
    return name_track(x, COORDINATOR, "coordinator");
}

kofn_status kf_trace_new(kf_observer **list, const kofn_plan *plan,
                         const char *port, const char *path)
{
    trace *x = kf_zero(1, sizeof *x);
    kofn_status st;

    if (!x)
        return KOFN_NOMEM;
    x->base =
        (kf_observer){.next = *list, .name = "trace", .see = see, .end = end};
    x->stream = plan->op->stream;
    st = kf_out_open(&x->out, path);
    if (st) {
        kf_free(x);
        return st;
    }
    st = begin(x, plan, port);
    if (st)
        end(&x->base, false);
    else
        *list = &x->base;
    return st;
}
