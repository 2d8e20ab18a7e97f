/* blame.c -- counts how often each worker was wrong, and decides whether that
 * is too often.
 *
 * The counts belong to the worker's principal if it has one.  They are those of
 * Page's test (src/base/blame.h), and the fleet owns them.  This file only
 * counts: verdict.c takes the seat away. */
#include "state.h"

/* Returns the counts of the worker's principal, or of the worker if it has
 * none. */
static kf_blame *blame_of(const kf_fleet *f, uint32_t worker)
{
    uint32_t p = f->worker[worker].principal;

    assert(worker < f->workers && (p == 0 || p < f->principals));
    return p ? &f->principal[p].blame : &f->worker[worker].blame;
}

bool kf_core_banned(const kofn_core *c, uint32_t worker)
{
    return kf_blame_suffices(blame_of(&c->fleet, worker), c->opt.quarantine);
}

/* An excluded worker stays excluded, and its later answers are not counted. */
void kf_core_blame_one(kofn_core *c, uint32_t worker, bool wrong)
{
    kf_fleet *f = &c->fleet;
    kf_blame *b = blame_of(f, worker);

    if (kf_core_banned(c, worker))
        return;
    kf_blame_note(b, &f->blame, wrong);
    if (kf_core_banned(c, worker))
        kf_blame_leave(b, &f->blame);
}

/* True if this worker is the first of its principal to be counted.  `wrong` is
 * 1 for wrong workers and 0 for right ones.  A principal with a wrong worker
 * counts as wrong, once. */
static bool counts(kf_fleet *f, uint32_t worker, size_t wrong)
{
    uint32_t p = f->worker[worker].principal;
    bool first = p == 0 || f->principal[p].seats == wrong;

    assert(p == 0 || p < f->principals);
    if (first && p > 0)
        f->principal[p].seats = 2;
    return first;
}

void kf_core_blame(kofn_core *c, const kf_round *r)
{
    kf_fleet *f = &c->fleet;

    if (r->p.use->errors == KOFN_ERRORS_NONE || r->p.all)
        return;
    for (size_t p = 0; p < f->principals; p++)
        f->principal[p].seats = 0;
    for (uint32_t i = 0; i < f->workers; i++)
        if (r->load[i].located && f->worker[i].principal)
            f->principal[f->worker[i].principal].seats = 1;
    for (uint32_t i = 0; i < f->workers; i++)
        if (r->load[i].agrees && !r->load[i].located && counts(f, i, 0))
            kf_core_blame_one(c, i, false);
    for (uint32_t i = 0; i < f->workers; i++)
        if (r->load[i].located && counts(f, i, 1))
            kf_core_blame_one(c, i, true);
}

size_t kf_core_suspects(const kofn_core *c)
{
    const kf_fleet *f = &c->fleet;
    size_t n = 0;

    for (size_t s = 0; s < f->seats; s++)
        n += f->seat[s] != KF_NOBODY && blame_of(f, f->seat[s])->level > 0;
    return n;
}
