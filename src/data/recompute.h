/* recompute.h -- entries of A B as exact as they can be had, and whether those of
 * C may be what rounding made of them.
 *
 * A kf_recompute owns the list of entries, freed by kf_recompute_free;
 * matrices are only read. */
#ifndef KF_RECOMPUTE_H
#define KF_RECOMPUTE_H

#include "freivalds.h"

typedef struct kf_recompute {
    const kf_factors *f;
    kofn_wrong *entry; /* that are wrong, in the order they were found */
    size_t count, cap;
    double *a, *b; /* a row, and some columns */
    size_t batch;
} kf_recompute;

kofn_status kf_recompute_begin(kf_recompute *r, const kf_factors *f);
/* Look at the entries in these rows and columns; NULL: in all there are. */
kofn_status kf_recompute_entries(kf_recompute *r, const size_t *row,
                                 size_t rows, const size_t *col, size_t cols);
/* By rows, each entry once. */
void kf_recompute_sort(kf_recompute *r);
void kf_recompute_free(kf_recompute *r);

#endif
