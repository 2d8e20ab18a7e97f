/* audit.c -- audits an iteration with unchecked sums: keeps the state of the
 * last check, and decides when to return to it.
 *
 * The audit owns the kept state; the loop owns the state in use. */
#include "audit.h"

#include <assert.h>

/* A correct descent does not multiply its loss by this factor. */
#define GROWN 10

static void copy(const kf_audit *a, bool keep)
{
    char *kept = a->kept;

    assert(kept);
    for (size_t i = 0; i < KF_AUDIT_PARTS; i++) {
        if (a->part[i].bytes && keep)
            memcpy(kept, a->part[i].at, a->part[i].bytes);
        else if (a->part[i].bytes)
            memcpy(a->part[i].at, kept, a->part[i].bytes);
        kept += a->part[i].bytes;
    }
}

kofn_status kf_audit_begin(kf_audit *a, kofn_job *job,
                           const kf_audit_part part[KF_AUDIT_PARTS],
                           const double *loss)
{
    assert(loss);
    size_t bytes = 0;

    *a = (kf_audit){.every = job ? kofn_audited(job) : 1, .loss = loss};
    if (a->every <= 1)
        return KOFN_OK;
    for (size_t i = 0; i < KF_AUDIT_PARTS; i++) {
        a->part[i] = part[i];
        bytes += part[i].bytes;
    }
    TRY_MADE(a->kept, kf_new(bytes, 1));
    a->job = job;
    copy(a, true);
    return KOFN_OK;
}

void kf_audit_free(kf_audit *a)
{
    if (a->job)
        (void)kofn_audit(a->job, a->every);
    kf_free(a->kept);
}

kofn_status kf_audit_before(kf_audit *a, uint64_t t, bool last)
{
    if (!a->job)
        return KOFN_OK;
    return kofn_audit(a->job, last || t <= a->until ? 1 : a->every);
}

/* True if st reports numbers that a wrong sum can cause. */
static bool is_of_numbers(kofn_status st)
{
    return st == KOFN_NONFINITE || st == KOFN_INVAL || st == KOFN_UNSTABLE;
}

/* True if the iterations since the state was kept look wrong. */
static bool is_doubtful(const kf_audit *a, const kofn_report *sum,
                        kofn_status st)
{
    if (st != KOFN_OK)
        return is_of_numbers(st) && (a->unsure || sum->unchecked > 0);
    if (!a->unsure || sum->unchecked > 0)
        return false;
    return sum->corrupt > 0 ||
           (a->kept_loss > 0 && !(*a->loss <= GROWN * a->kept_loss));
}

kofn_status kf_audit_after(kf_audit *a, uint64_t t, const kofn_report *sum,
                           bool over, kofn_status *st, kf_audit_move *to)
{
    bool unchecked = sum->unchecked > 0;

    *to = KF_AUDIT_ON;
    if (!a->job)
        return KOFN_OK;
    if (is_doubtful(a, sum, *st)) {
        copy(a, false);
        a->unsure = false;
        a->until = t;
        *st = KOFN_OK;
        *to = KF_AUDIT_BACK;
    } else if (*st != KOFN_OK) {
        return KOFN_OK;
    } else if (over && unchecked) {
        a->unsure = true;
        a->until = t;
        *to = KF_AUDIT_ONCE_MORE;
    } else {
        a->unsure = unchecked || (a->unsure && sum->rounds == 0);
        if (a->unsure)
            return KOFN_OK;
        a->kept_loss = *a->loss;
        copy(a, true);
    }
    return KOFN_OK;
}
