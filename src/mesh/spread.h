/* spread.h -- lines of the input that a code mixes, while matrices change.
 *
 * The host keeps the spread together with the input. */
#ifndef KF_MESH_SPREAD_H
#define KF_MESH_SPREAD_H

#include "host.h"

/* Sets p->mixes. */
kofn_status kf_mesh_spread_new(kf_host_product_data *p, bool left);
/* Sets h->spread for the input that was just made. */
kofn_status kf_mesh_spread_measure(kf_host *h);
/* Checks the error of this decoder for the smallest line, if the code mixes the
 * input, which must be there.  Fails with KOFN_UNSTABLE if the error exceeds
 * the tolerance. */
kofn_status kf_mesh_spread_check(kf_host *h, const kofn_decoder *d);
/* Sets lines of the product to zero if they are zero in the input, which must
 * be there. */
kofn_status kf_mesh_spread_clear(kf_host *h);

#endif
