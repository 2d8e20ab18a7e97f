/* check.h -- do these results agree? */
#ifndef KF_RUN_CHECK_H
#define KF_RUN_CHECK_H
#include "run.h"
typedef struct kf_check {
    const kofn_plan *plan;
    kf_code *code;
    const kf_decoder *decoder;
    const double *H;
    size_t q;
    const kf_source *source;
    size_t lo, hi, most;
    const double *row, *col;
    uint64_t secret;
    uint32_t number;
} kf_check;
kofn_status kf_check_results(const kf_check *c, uint32_t *bad, size_t *count,
                             double *floor);
kofn_status kf_scales_of_rows(const kf_resident *r, size_t group, double *row);
kofn_status kf_scales_of_part_rows(const kofn_matrix *part, size_t parts,
                                   double *row, size_t rows);
kofn_status kf_scales_of_columns(const kofn_matrix *part, size_t parts,
                                 double *col, size_t cols);
#endif
