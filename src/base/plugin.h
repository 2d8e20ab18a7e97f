/* plugin.h -- finds the files of plugins, which libkofn loads when they are
 * needed: the transport over sockets (src/net), and one for each MPI. */
#ifndef KF_PLUGIN_H
#define KF_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the path of a plugin's file in the folder of this library, or in its
 * subfolder kofn.  False if neither has it, or the path is too long. */
bool kf_plugin_path(char *path, size_t room, const char *file);

#endif
