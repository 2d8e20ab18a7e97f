/* spread.h -- lines of the input that a code mixes, while matrices change.
 *
 * The host keeps the spread as long as the input. */
#ifndef KF_MESH_SPREAD_H
#define KF_MESH_SPREAD_H

#include "host.h"

/* Sets p->mixes. */
kofn_status kf_mesh_spread_new(kf_mesh_product *p, bool left);
/* Sets h->spread for the input that was just made. */
kofn_status kf_mesh_spread_measure(kf_host *h);
/* The input is there, where the code mixes it.  KOFN_UNSTABLE: what this
 * decoder makes of it is less exact than is tolerated. */
kofn_status kf_mesh_spread_check(kf_host *h, const kofn_decoder *d);
/* The input is there, too.  Lines of the product that are zeros in the input
 * become zeros. */
kofn_status kf_mesh_spread_clear(kf_host *h);

#endif
