/* published.h -- names of the schemes that have a family of coefficients. */
#ifndef KF_TEST_PUBLISHED_H
#define KF_TEST_PUBLISHED_H

#include <string.h>

/* Returns the scheme "any k of n" that has this basis. */
static inline const char *mds_of(const char *basis)
{
    return strstr("chebyshev monomial cauchy vandermonde", basis)
               ? "mds-published"
               : "mds";
}

#endif
