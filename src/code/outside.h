/* outside.h -- schemes that are not in the library but in its plugin.
 *
 * The functions are in src/plug, which loads the plugin.  A program that has
 * the schemes inside has other ones (papers/schemes/inside.c). */
#ifndef KF_CODE_OUTSIDE_H
#define KF_CODE_OUTSIDE_H

#include <kofn/scheme.h>

/* The names of these schemes, for a message if the plugin is absent. */
#define KF_CODE_OUTSIDE "bcc|distr-bgd|grid|ignore|mds-published|product"

/* Returns these schemes, a list that ends with NULL and stays valid.  NULL,
 * without a message: there is no plugin. */
const kofn_scheme *const *kf_plug_schemes(void);
/* Fails with the reason why there is no plugin. */
kofn_status kf_plug_schemes_absent(void);

#endif
