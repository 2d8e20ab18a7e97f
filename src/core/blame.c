/* blame.c -- how often each worker was found wrong, and whether that is too often.
 *
 * Counts are of whoever answers for a worker, by Page's test (src/base/blame.h).  They
 * are the fleet's.  It only counts: who loses a seat for that, verdict.c says. */
#include "state.h"

/* Of whoever answers for this worker. */
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

/* One that is excluded stays excluded, and the others are not compared with it. */
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

/* A principal counts once, whichever of its workers is met first. */
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
