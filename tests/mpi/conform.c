/* conform.c SEED -- one rank of an MPI job that checks the laws of transports
 * (conform.h). Prints "rank R: ok" and exits with 0, or reports the fault. */
#include "conform.h"

#include <kofn/mpi.h>

int main(int argc, char **argv)
{
    kofn_mpi_options opt = KOFN_MPI_OPTIONS_INIT;
    kofn_mpi_info info = KOFN_MPI_INFO_INIT;
    conform_end end = {.fills = true, .bounded = true, .longest = 8 << 20};
    const char *why;

    opt.silence = 10 * KOFN_SECOND;
    if (argc != 2 || kofn_mpi_open(&end.t, &opt, &info)) {
        fprintf(stderr, "%s\n",
                argc != 2 ? "use: conform SEED" : kofn_errmsg());
        return 1;
    }
    end.me = info.rank;
    end.ends = info.ranks;
    end.seed = (uint32_t)atoi(argv[1]);
    why = conform(&end);
    printf("rank %u: %s\n", info.rank, why ? why : "ok");
    return kofn_mpi_end(why != NULL);
}
