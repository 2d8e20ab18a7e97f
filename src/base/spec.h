/* spec.h -- the text of a scheme, shortened for a line of output. */
#ifndef KF_SPEC_H
#define KF_SPEC_H

#include <stdio.h>
#include <string.h>

#define KF_SPEC_SHORT 96

/* Removes ",NAME=VALUE", with any value if `pair` ends in "=". */
static inline void kf_spec_drop(char *spec, const char *pair)
{
    size_t n = strlen(pair);

    for (char *at = strstr(spec, pair); at; at = strstr(at + 1, pair)) {
        size_t all = pair[n - 1] == '=' ? n + strcspn(at + n, ",") : n;

        if (at[all] && at[all] != ',')
            continue;
        memmove(at, at + all, strlen(at + all) + 1);
        return;
    }
}

/* Writes the scheme without parameters that have their default, so that the
 * text gives the same code.  Of numbers that are chosen for the workers, it
 * leaves out those that only an author of codes needs.  "" is plain BLAS. */
static inline void kf_spec_short(char out[KF_SPEC_SHORT], const char *spec)
{
    static const char *const rest[] = {",basis=quaternion",  ",basis=circle",
                                       ",weight=",           ",groups=1",
                                       ",deal=equal",        ",cut=rows",
                                       ",construction=dual", ",form=sequential",
                                       ",sub=uvn",           ",systematic=0",
                                       ",layout=super",      ",copies=1",
                                       ",angles=",           ",plain=yes",
                                       ",order=newest",      ",model=arbitrary",
                                       ",early=yes"};

    snprintf(out, KF_SPEC_SHORT, "%.*s", KF_SPEC_SHORT - 1, spec);
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        if (i != 1 || strncmp(spec, "polynomial", 10))
            kf_spec_drop(out, rest[i]);
    if (!*spec)
        snprintf(out, KF_SPEC_SHORT, "plain BLAS, one machine");
}

#endif
