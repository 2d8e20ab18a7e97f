/* machine.c -- what the numbers are computed with. */
#include "base/base.h"

#include <stdio.h>

#include "code/combine.h"
#include "mat/mat.h"

void kofn_machine_info(kofn_machine *m)
{
    static _Thread_local char blas[80], advice[160];
    const char *better, *core = kf_blas_core(&better);

    *m = (kofn_machine){kf_combine_level(), blas, advice, better};
    advice[0] = 0;
    if (core)
        snprintf(blas, sizeof blas, "OpenBLAS %s", core);
    else
        snprintf(blas, sizeof blas, "a BLAS that does not tell its kernel");
    if (better)
        snprintf(advice, sizeof advice,
                 "this processor can run faster kernels: set "
                 "OPENBLAS_CORETYPE=%s before the program starts", better);
}
