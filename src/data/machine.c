/* machine.c -- reports the BLAS and the vector instructions in use.
 *
 * Owns nothing and changes neither. */
#include "base/base.h"

#include <stdio.h>

#include "code/combine.h"
#include "mat/mat.h"

kofn_status kofn_machine_info(kofn_machine *m)
{
    static _Thread_local char advice[200];
    static _Thread_local kf_blas b;
    kofn_machine all = {.size = sizeof all, .advice = advice};

    TRY(kf_begun(m, "KOFN_MACHINE_INIT"));
    kf_blas_look(&b);
    all.simd = kf_combine_level();
    all.blas = b.name;
    all.coretype = b.better;
    all.blas_threads = b.threads;
    advice[0] = 0;
    if (b.slow)
        snprintf(advice, sizeof advice, "%s", b.slow);
    else if (b.better)
        snprintf(advice, sizeof advice,
                 "this processor can run faster kernels: set "
                 "OPENBLAS_CORETYPE=%s before the program starts",
                 b.better);
    kf_give(m, &all, sizeof all);
    return KOFN_OK;
}
