/* schemes.h -- schemes that papers compare theirs with.  They are a plugin,
 * which libkofn loads when it meets a name that it does not know. */
#ifndef KF_PAPERS_SCHEMES_H
#define KF_PAPERS_SCHEMES_H

#include <kofn/scheme.h>

extern const kofn_scheme kf_bcc, kf_distr_bgd, kf_grid, kf_ignore,
    kf_mds_published, kf_product;

/* All of them, as a list that ends with NULL. */
#define KF_SCHEMES_LIST                                                        \
    {                                                                          \
        &kf_bcc, &kf_distr_bgd, &kf_grid, &kf_ignore, &kf_mds_published,       \
            &kf_product, NULL                                                  \
    }

#endif
