/* spec.h -- the text of a scheme, shortened for a line of output. */
#ifndef KF_SPEC_H
#define KF_SPEC_H

#include <stdio.h>
#include <string.h>

#define KF_SPEC_SHORT 48

/* Writes the scheme without the parameters that only an author of codes needs,
 * and without `groups` if there is one group.
 * "" is plain BLAS. */
static inline void kf_spec_short(char out[KF_SPEC_SHORT], const char *spec)
{
    static const char *const rest[] = {
        ",basis=", ",construction=", ",plain=", ",model=", ",form=", ",sub="};
    const char *speed = strstr(spec, "deal=speed") ? ",deal=speed" : "";
    size_t n = strlen(spec), room = KF_SPEC_SHORT - 1 - strlen(speed);
    char *one;

    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        const char *from = strstr(spec, rest[i]);

        if (from && (size_t)(from - spec) < n)
            n = (size_t)(from - spec);
    }
    snprintf(out, KF_SPEC_SHORT, "%.*s%s", (int)(n < room ? n : room), spec,
             speed);
    one = strstr(out, ",groups=1");
    if (one && (!one[9] || one[9] == ','))
        memmove(one, one + 9, strlen(one + 9) + 1);
    if (!*spec)
        snprintf(out, KF_SPEC_SHORT, "plain BLAS, one machine");
}

#endif
