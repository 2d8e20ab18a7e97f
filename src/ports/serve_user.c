/* serve_user.c -- multiplication by the program's own function. The size of a
 * call is adapted so that it takes some milliseconds at any speed.
 *
 * The function belongs to the program and is called on the computing thread.
 * The size of its calls is adapted here. */
#include "serve.h"

#include "base/clock.h"

#include <assert.h>

/* A call that is shorter than SOON doubles the work of the next. A call that is
 * longer than LONG reduces it. */
#define SOON (KOFN_SECOND / 200)
#define LONG (KOFN_SECOND / 50)
#define MOST 1e15

/* Adapts the work of a call. The minimum is the work given to BLAS: more calls
 * would not help a slower function. */
static void adapt(kf_user_multiply *user, double asked, kofn_time took)
{
    assert(took >= 0);
    if (took < SOON && asked > user->work / 2 && user->work < MOST)
        user->work *= 2;
    else if (took > LONG && asked < user->work)
        user->work = asked;
    if (took > LONG)
        user->work *= (double)SOON / (double)took;
    if (user->work < KF_LOOK_UP_WORK)
        user->work = KF_LOOK_UP_WORK;
}

static kofn_status multiply(void *ud, const kofn_factors *f, kofn_matrix *out)
{
    server *s = ud;
    kofn_time began = kf_clock();
    kofn_status st;

    kf_fail(KOFN_OK, "%s", ""); /* clears older messages */
    st = s->w->opt.multiply(s->w->opt.multiply_ctx, f, out);
    if (st < 0 && *kofn_errmsg())
        return st;
    if (st)
        return kf_fail(st < 0 ? st : KOFN_INVAL,
                       "the worker's own way to multiply %zu x %zu by %zu x "
                       "%zu says %d (%s)",
                       f->A.rows, f->A.cols, f->B.rows, f->B.cols, (int)st,
                       kofn_strerror(st));
    adapt(&s->user, (double)f->A.rows * (double)f->A.cols * (double)f->B.cols,
          kf_clock() - began);
    return KOFN_OK;
}

void kf_serve_own_begin(server *s)
{
    if (!s->w->opt.multiply)
        return;
    s->user = (kf_user_multiply){multiply, s, 0, KF_LOOK_UP_WORK};
    s->exposed.user = &s->user;
}
