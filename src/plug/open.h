/* open.h -- loads plugins of libkofn at their first use. */
#ifndef KF_PLUG_OPEN_H
#define KF_PLUG_OPEN_H

#include "base/base.h"

#include <stdatomic.h>

/* A plugin: its file, and the symbol of its table. */
typedef struct kf_plug {
    const char *file, *symbol;
    const char *absent; /* what kofn lacks without it */
    const char *needs;  /* what it is built with: options and libraries */
    /* Threads may load at the same time: all find the same table. */
    _Atomic(const void *) table;
} kf_plug;

/* Sets *table to the table of the plugin, which stays until the process ends.
 * Fails with KOFN_UNSUITED if its file is not in the folder of libkofn, and
 * with KOFN_TRANSPORT if it cannot be loaded. */
kofn_status kf_plug_load(kf_plug *p, const void **table);

#endif
