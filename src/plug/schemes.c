/* schemes.c -- loads the plugin of schemes that papers compare theirs with, at
 * the first name that the library does not know.
 *
 * Owns nothing. */
#include "code/outside.h"
#include "plug/open.h"

static kf_plug plug = {.file = "libkofn-schemes.so",
                       .symbol = KOFN_SCHEMES_SYMBOL,
                       .absent = "schemes " KF_CODE_OUTSIDE,
                       .needs = "-DKOFN_SCHEMES=ON"};

const kofn_scheme *const *kf_plug_schemes(void)
{
    return kf_plug_try(&plug);
}

kofn_status kf_plug_schemes_absent(void)
{
    const void *table;

    return kf_plug_load(&plug, &table);
}
