/* plugin.c -- the list of the plugin, for libkofn and for -s ./FILE.so.
 *
 * Owns nothing. It is in the plugin only (cmake/plugin.cmake). */
#include "schemes.h"

KOFN_API extern const kofn_scheme *const kofn_schemes[];
const kofn_scheme *const kofn_schemes[] = KF_SCHEMES_LIST;
