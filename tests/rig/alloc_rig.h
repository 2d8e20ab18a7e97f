/* alloc_rig.h -- runs a function again and again. Each time memory runs out at
 * another place. */
#ifndef KF_TEST_ALLOC_RIG_H
#define KF_TEST_ALLOC_RIG_H

#include "support.h"

#include "base/base.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- an allocator that fails once ---------------------------------------- */

static atomic_long calls, held, fails_at;

static inline void *fail_once(void *ud, void *p, size_t want)
{
    (void)ud;
    if (want == 0) {
        if (p)
            atomic_fetch_sub(&held, 1);
        free(p);
        return NULL;
    }
    if (atomic_fetch_add(&calls, 1) + 1 == atomic_load(&fails_at))
        return NULL;
    atomic_fetch_add(&held, 1);
    return aligned_alloc(64, (want + 63) / 64 * 64);
}

/* ---- the function that lacks memory -------------------------------------- */

/* A function under test, and its status. */
typedef kofn_status life(const void *ud);

/* Runs f while the n-th allocation fails, for n = 1, 2, ... until f makes
 * fewer. `for_good`: later allocations fail too. `may` is another allowed
 * status, if it was another end's memory that ran out. */
static inline void every_allocation(life *f, const void *ud, bool for_good,
                                    kofn_status may, size_t step)
{
    size_t nomem = 0;

    for (long n = 1; n < 100000; n += (long)step) {
        long before = for_good ? allocated() : atomic_load(&held), made;
        kofn_status st;

        if (for_good) {
            fail_allocation(n);
        } else {
            atomic_store(&calls, 0);
            atomic_store(&fails_at, n);
        }
        st = f(ud);
        made = for_good ? allocations() : atomic_load(&calls);
        fail_allocation(0);
        atomic_store(&fails_at, 0);
        assert_int_equal(for_good ? allocated() : atomic_load(&held), before);
        if (st != KOFN_OK && st != KOFN_NOMEM && st != may)
            fail_msg("allocation %ld of %ld: %s (%s)", n, made,
                     kofn_strerror(st), kofn_errmsg());
        nomem += st == KOFN_NOMEM;
        if (made < n) {
            assert_int_equal(st, KOFN_OK);
            assert_true(nomem > 0);
            return;
        }
    }
    fail_msg("there is no end of allocations");
}

static inline void both_ways(life *f, const void *ud, kofn_status may,
                             size_t step)
{

    count_allocations();
    every_allocation(f, ud, true, may, step);
    kofn_set_alloc(fail_once, NULL);
    every_allocation(f, ud, false, may, step);
    kofn_set_alloc(NULL, NULL);
}

#endif
