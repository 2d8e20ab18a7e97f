/* assert_state.c -- checks the invariants of the coordinator between steps.
 *
 * It changes nothing.  Tests call it after every step, so it may be slow. */
#include "state.h"

static const char *check_load(const kofn_core *c, const kf_round *r)
{
    size_t busy = 0;

    if (r->workers < c->fleet.workers)
        return "a round does not know all workers";
    for (size_t w = 0; w < c->fleet.workers; w++) {
        size_t out = 0, rows = 0;

        for (size_t t = 0; t < r->p.tasks; t++)
            if (r->p.task[t].worker == w) {
                out += kf_in_hand(&r->p.task[t]);
                rows += r->p.task[t].hi - r->p.task[t].lo;
            }
        if (r->load[w].out != out)
            return "outstanding tasks of a worker are miscounted";
        if (r->load[w].rows != rows)
            return "strips that a worker was asked for are miscounted";
        busy += out > 0;
    }
    return busy != r->busy ? "busy workers of a round are miscounted" : NULL;
}

static const char *check_round(const kofn_core *c, const kf_round *r)
{
    const char *wrong = check_load(c, r);

    if (wrong)
        return wrong;
    if (!kf_is_open(r))
        return r->busy ? "a round that is over has outstanding tasks"
               : r->alarm != KOFN_NEVER ? "a round that is over has an alarm"
                                        : NULL;
    if (r->back || r->resolve)
        return "a round has marks left";
    if (r->p.unsettled == 0)
        return "a round without open strips is not over";
    return kf_product_wrong(&r->p);
}

const char *kf_core_assert_state(const kofn_core *c)
{
    const char *wrong = kf_fleet_check(&c->fleet);

    if (!wrong)
        wrong = c->use[0].policy->wrong(c);
    for (size_t i = 0; i < c->rounds && !wrong; i++) {
        wrong = check_round(c, c->round[i]);
        if (i && c->round[i]->p.number <= c->round[i - 1]->p.number)
            wrong = "numbers of products do not ascend";
    }
    for (size_t w = 0; w < c->fleet.workers && !wrong; w++) {
        size_t out = 0;

        for (size_t i = 0; i < c->rounds; i++)
            out += c->round[i]->load[w].out;
        if (out != c->fleet.worker[w].out)
            wrong = "a worker and the rounds differ in its outstanding tasks";
    }
    return wrong;
}
