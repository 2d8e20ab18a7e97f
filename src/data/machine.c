/* machine.c -- what the numbers are computed with.
 *
 * Owns nothing: it reads which BLAS and which vectors are in use, and changes
 * neither. */
#include "base/base.h"

#include <stdio.h>

#include "code/combine.h"
#include "mat/mat.h"

void kofn_machine_info(kofn_machine *m)
{
    static _Thread_local char advice[200];
    static _Thread_local kf_blas b;

    kf_blas_look(&b);
    *m =
        (kofn_machine){kf_combine_level(), b.name, advice, b.better, b.threads};
    advice[0] = 0;
    if (b.slow)
        snprintf(advice, sizeof advice, "%s", b.slow);
    else if (b.better)
        snprintf(advice, sizeof advice,
                 "this processor can run faster kernels: set "
                 "OPENBLAS_CORETYPE=%s before the program starts",
                 b.better);
}
