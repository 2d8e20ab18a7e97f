#include "check.h"
kofn_status kf_check_results(const kf_check *c, uint32_t *bad, size_t *count, double *floor)
{ (void)c,(void)bad; *count = 0; *floor = 0; return KOFN_OK; }
kofn_status kf_scales_of_rows(const kf_resident *r, size_t group, double *row)
{ (void)r,(void)group,(void)row; return KOFN_OK; }
kofn_status kf_scales_of_part_rows(const kofn_matrix *part, size_t parts, double *row, size_t rows)
{ (void)part,(void)parts,(void)row,(void)rows; return KOFN_OK; }
kofn_status kf_scales_of_columns(const kofn_matrix *part, size_t parts, double *col, size_t cols)
{ (void)part,(void)parts,(void)col,(void)cols; return KOFN_OK; }
