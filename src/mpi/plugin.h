/* plugin.h -- interface between libkofn and the plugin for one MPI.
 *
 * Each side has a constant table of functions. Neither side may free what the
 * other allocated. */
#ifndef KF_MPI_PLUGIN_H
#define KF_MPI_PLUGIN_H

#include <kofn/mpi.h>

#include "base/base.h"

#define KF_MPI_VERSION 2 /* version of this interface */

/* Functions of libkofn that the plugin calls, since it cannot see internal
 * ones. */
typedef struct kf_mpi_host {
    kofn_status (*fail)(kofn_status st, const char *fmt, ...) KF_PRINTF(2, 3);
    void *(*make)(size_t n, size_t size); /* zeroed */
    void *(*room)(size_t n, size_t size); /* not zeroed */
    void (*drop)(void *p);
} kf_mpi_host;

typedef struct kf_mpi_plugin {
    unsigned version;
    kofn_status (*open)(const kf_mpi_host *host, kofn_transport **out,
                        const kofn_mpi_options *opt, kofn_mpi_info *info);
    kofn_status (*attach)(const kf_mpi_host *host, kofn_transport **out,
                          int comm, const kofn_mpi_options *opt);
    int (*end)(int code);
} kf_mpi_plugin;

/* The only symbol of a plugin. */
KOFN_API extern const kf_mpi_plugin kofn_mpi_plugin;

#endif
