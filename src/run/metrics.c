/* metrics.c -- figures of a running job, written to a file for a collector in
 * the text format of Prometheus (0.0.4), see docs/operate.md.
 *
 * The file is replaced at once as a whole, at most once a second of real time
 * and at the end.  Figures that --json has too are the same here.
 *
 * Owns its copy of the figures and the path.  A failure to write the file is
 * reported at the end.  It never changes the job. */
#include "job.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/report.h"
#include "io/out.h"

#include <assert.h>
#include <inttypes.h>

typedef struct metrics {
    kf_observer base;
    const kofn_job *job;
    char *path;
    kofn_time due; /* real time of the next writing */
    uint64_t outcome[KF_OUTCOMES];
    kofn_time round_time;
    unsigned rounds; /* delivered rounds */
} metrics;

/* ---- the format ---------------------------------------------------------- */

/* Writes the lines before a family's samples. */
static kofn_status family(kf_out *o, const char *name, const char *type,
                          const char *help)
{
    TRY(kf_out_text(o, "# HELP %s %s\n", name, help));
    return kf_out_text(o, "# TYPE %s %s\n", name, type);
}

static kofn_status gauge(kf_out *o, const char *name, const char *help,
                         double value)
{
    TRY(family(o, name, "gauge", help));
    if (value - value == 0)
        return kf_out_text(o, "%s %.17g\n", name, value);
    return kf_out_text(o, "%s %s\n", name, value > 0 ? "+Inf" : "NaN");
}

static kofn_status counter(kf_out *o, const char *name, const char *help,
                           uint64_t value)
{
    TRY(family(o, name, "counter", help));
    return kf_out_text(o, "%s %" PRIu64 "\n", name, value);
}

static kofn_status seconds(kf_out *o, const char *name, const char *help,
                           kofn_time value)
{
    TRY(family(o, name, "counter", help));
    return kf_out_text(o, "%s %.9f\n", name, (double)value * 1e-9);
}

static kofn_status quoted(kf_out *o, const char *text)
{
    for (; *text; text++) {
        char pair[2] = {'\\', *text == '\n' ? 'n' : *text};
        bool escape = *text == '\n' || *text == '"' || *text == '\\';

        TRY(kf_out_put(o, escape ? pair : pair + 1, escape ? 2 : 1));
    }
    return KOFN_OK;
}

/* ---- families ------------------------------------------------------------ */

static kofn_status put_job(kf_out *o, const kofn_job *j)
{
    TRY(family(o, "kofn_job_info", "gauge",
               "Version, port and scheme of the "
               "job."));
    TRY(kf_out_text(
        o, "kofn_job_info{version=\"" KOFN_VERSION "\",port=\"%s\",scheme=\"",
        j->port->name));
    TRY(quoted(o, j->plan->spec));
    TRY(kf_out_text(o, "\"} 1\n"));
    return gauge(o, "kofn_clock_seconds",
                 "Time on the port's clock; simulated on a simulated port.",
                 (double)kf_job_now(j) * 1e-9);
}

static kofn_status put_workers(kf_out *o, const kofn_job *j,
                               const kofn_progress *p)
{
    static const struct {
        kofn_worker_state is;
        const char *name;
    } state[] = {{KOFN_WORKER_LIVE, "live"},
                 {KOFN_WORKER_STORING, "storing"},
                 {KOFN_WORKER_STANDBY, "standby"},
                 {KOFN_WORKER_LEAVING, "leaving"},
                 {KOFN_WORKER_QUARANTINED, "quarantined"},
                 {KOFN_WORKER_GONE, "gone"},
                 {KOFN_WORKER_UNRESPONSIVE, "unresponsive"}};
    size_t count[KOFN_WORKER_STATES] = {0};

    for (uint32_t i = 0; i < kf_core_known(j->core); i++)
        count[kf_core_worker(j->core, i)]++;
    TRY(family(o, "kofn_workers", "gauge", "Workers by state."));
    for (size_t k = 0; k < sizeof state / sizeof *state; k++)
        TRY(kf_out_text(o, "kofn_workers{state=\"%s\"} %zu\n", state[k].name,
                        count[state[k].is]));
    TRY(counter(o, "kofn_workers_joined_total",
                "Workers that joined after the start.", p->joined));
    return counter(o, "kofn_workers_lost_total", "Workers that left.", p->left);
}

static kofn_status put_round(kf_out *o, const metrics *x,
                             const kofn_progress *p)
{
    TRY(gauge(o, "kofn_round", "The current round, or the last one.",
              p->round));
    TRY(gauge(o, "kofn_round_done_ratio",
              "The share of its strips that has come.", p->done));
    TRY(gauge(o, "kofn_strips_outstanding", "Strips that workers owe.",
              (double)p->outstanding));
    TRY(gauge(o, "kofn_workers_awaited", "Workers with outstanding tasks.",
              (double)p->awaited));
    TRY(family(o, "kofn_round_seconds", "summary",
               "Delivered rounds and their duration."));
    return kf_out_text(o,
                       "kofn_round_seconds_count %u\n"
                       "kofn_round_seconds_sum %.9f\n",
                       x->rounds, (double)x->round_time * 1e-9);
}

static kofn_status put_tasks(kf_out *o, const metrics *x)
{
    static const char *const name[KF_OUTCOMES] = {
        [KF_OUTCOME_OUT] = "unfinished",      [KF_OUTCOME_CAME] = "wasted",
        [KF_OUTCOME_USED] = "used",           [KF_OUTCOME_WRONG] = "wrong",
        [KF_OUTCOME_CANCELLED] = "cancelled", [KF_OUTCOME_FAILED] = "failed",
        [KF_OUTCOME_LOST] = "lost",
    };

    TRY(family(o, "kofn_tasks_total", "counter",
               "Tasks of rounds that are over, by outcome."));
    for (size_t k = 0; k < KF_OUTCOMES; k++)
        TRY(kf_out_text(o, "kofn_tasks_total{outcome=\"%s\"} %" PRIu64 "\n",
                        name[k], x->outcome[k]));
    return KOFN_OK;
}

#define COUNT(...) counter(__VA_ARGS__)
#define SECONDS(...) seconds(__VA_ARGS__)
#define NUMBER(...) gauge(__VA_ARGS__)
#define LIST(...) KOFN_OK

static kofn_status put_all(kf_out *o, const metrics *x, const kofn_job *j)
{
    kofn_progress p = KOFN_PROGRESS_INIT;
    kofn_report t = KOFN_REPORT_INIT;

    kofn_job_progress(j, &p);
    kf_job_sum(j, &t);
    TRY(put_job(o, j));
    TRY(put_workers(o, j, &p));
    TRY(put_round(o, x, &p));
    TRY(put_tasks(o, x));
#define X(field, adds, kind, key, metric, text)                                \
    if (*("" metric))                                                          \
        TRY(kind(o, metric, text, t.field));
    KF_REPORT_MAP(X)
#undef X
    return KOFN_OK;
}

static kofn_status write_file(metrics *x)
{
    kf_out o;

    TRY(kf_out_open(&o, x->path));
    o.loose = true;
    return kf_out_close(&o, put_all(&o, x, x->job));
}

/* ---- an observer --------------------------------------------------------- */

static kofn_status see(kf_observer *base, const kf_moment *m)
{
    metrics *x = (metrics *)base;
    kofn_time now;

    if (m->type == KF_TASK) {
        assert(m->task);
        x->outcome[m->task->outcome]++;
        return KOFN_OK;
    }
    if (m->type == KF_ROUND && m->status >= 0 && m->status != KOFN_AGAIN) {
        x->rounds++;
        x->round_time += m->to - m->from;
    }
    now = kf_clock();
    if (now < x->due)
        return KOFN_OK;
    x->due = now + KOFN_SECOND;
    return write_file(x);
}

static kofn_status end(kf_observer *base, bool keep)
{
    metrics *x = (metrics *)base;
    kofn_status st = keep ? write_file(x) : KOFN_OK;

    kf_free(x->path);
    kf_free(x);
    return st;
}

kofn_status kf_metrics_new(kf_observer **list, const kofn_job *j,
                           const char *path)
{
    metrics *x = kf_zero(1, sizeof *x);
    kofn_status st = KOFN_NOMEM;

    if (!x)
        return st;
    x->base =
        (kf_observer){.next = *list, .name = "metrics", .see = see, .end = end};
    x->job = j;
    x->path = kf_strdup(path);
    if (x->path)
        st = write_file(x);
    x->due = kf_clock() + KOFN_SECOND;
    if (st)
        end(&x->base, false);
    else
        *list = &x->base;
    return st;
}
