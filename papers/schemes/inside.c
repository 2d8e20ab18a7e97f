/* inside.c -- the list of a program that has these schemes inside.
 *
 * Owns nothing. A program has its own list kofn_schemes, if any. */
#include "code/outside.h"
#include "schemes.h"

const kofn_scheme *const *kf_plug_schemes(void)
{
    static const kofn_scheme *const schemes[] = KF_SCHEMES_LIST;

    return schemes;
}

kofn_status kf_plug_schemes_absent(void)
{
    return KOFN_OK;
}
