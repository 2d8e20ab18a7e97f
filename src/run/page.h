/* page.h -- the text of a report around its data.  cmake/report.cmake makes it
 * from share/report. */
#ifndef KF_PAGE_H
#define KF_PAGE_H

#include <stddef.h>

extern const unsigned char kf_page_head[], kf_page_tail[];
extern const size_t kf_page_head_size, kf_page_tail_size;

#endif
