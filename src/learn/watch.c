/* watch.c -- waits for a round that the caller may stop.
 *
 * Owns nothing; the round and its output are the caller's. */
#include "watch.h"

#include "base/report.h"

#define LOOK (KOFN_SECOND / 10)

kofn_status kf_learn_wait(kofn_job *job, uint32_t number, kf_look look,
                          kofn_report *rep)
{
    kofn_status st;

    do
        st = kofn_take(job, number, look.stops ? LOOK : KOFN_NEVER, rep);
    while (st == KOFN_AGAIN && !(look.stops && look.stops(look.ud)));
    if (st == KOFN_AGAIN) /* the caller may free the output */
        (void)kofn_cancel(job, number);
    return st;
}

kofn_status kf_learn_round(kofn_job *job, bool left, const kofn_matrix *in,
                           kofn_matrix *out, kf_look look, kofn_report *rep)
{
    uint32_t number;

    TRY(left ? kofn_put_at(job, 0, true, in, out, &number)
             : kofn_put(job, in, out, &number));
    return kf_learn_wait(job, number, look, rep);
}

const char *kf_learn_remedy(const kofn_job *job, bool stepped)
{
    kofn_report all = KOFN_REPORT_INIT;
    bool believed = job && !kofn_job_totals(job, &all) && !(all.floor > 0);

    if (!believed)
        return stepped ? "try a shorter step" : "X or y is too large";
    return stepped ? "try a shorter step, or have wrong answers of workers "
                     "found (option errors)"
                   : "X or y is too large, or a worker answers wrongly (option "
                     "errors finds that)";
}

void kf_learn_add_up(kofn_report *all, kofn_report *sum)
{
    if (sum->rounds)
        kf_report_add(all, sum);
    *sum = (kofn_report)KOFN_REPORT_INIT;
}
