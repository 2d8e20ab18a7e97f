/* pattern_rig.h -- makes patterns of stragglers, and reads them. */
#ifndef KF_TEST_PATTERN_RIG_H
#define KF_TEST_PATTERN_RIG_H

#include "rig.h"

static inline kofn_matrix pattern(const char *text, size_t workers,
                                  size_t rounds, uint64_t seed)
{
    kofn_matrix a;

    assert_ok(kofn_pattern_new(&a, text, workers, rounds, 5, seed));
    assert_true(a.rows == rounds && a.cols == workers && a.ld == workers);
    return a;
}

static inline bool slow(const kofn_matrix *a, size_t t, size_t w)
{
    double f = ((const double *)a->data)[t * a->ld + w];

    assert_true(f == 1 || f == 5);
    return f > 1;
}

#endif
