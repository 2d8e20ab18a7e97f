/* job.c -- a kofn job with a plan for a stream, and the times of its rounds. */
#include "stream/stream.h"

static void add_round(void *ud, const kofn_stream_round *round)
{
    stream_job *s = ud;

    s->took += (double)round->took * 1e-9;
}

kofn_status stream_job_open(stream_job *s, const kofn_problem *pb,
                            const char *spec, double mu, kofn_port *port)
{
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_status st;

    *s = (stream_job){.plan = NULL};
    opt.mu = mu;
    opt.late =
        -1; /* as published: no other worker takes over the work of slow ones */
    st = kofn_plan_new(&s->plan, pb, spec, 4, 1);
    if (st) {
        kofn_port_close(port);
        return st;
    }
    st = kofn_open(&s->job, s->plan, port, &opt);
    if (!st)
        kofn_on_round(s->job, add_round, s);
    return st;
}

void stream_job_close(stream_job *s)
{
    kofn_close(s->job);
    kofn_plan_free(s->plan);
    s->job = NULL;
    s->plan = NULL;
}
