/* memory.c -- compares what a job will store with the memory that there is.
 *
 * Owns nothing. Workers of this machine share its memory. Others say how much
 * they have, and refuse a block that is too large themselves. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns the bytes that this machine can give to programs; 0: not known. */
static double available(void)
{
    FILE *f = fopen("/proc/meminfo", "r");
    unsigned long long kilobytes = 0;
    char line[128];

    while (f && fgets(line, sizeof line, f) &&
           sscanf(line, "MemAvailable: %llu kB", &kilobytes) != 1)
        ;
    if (f)
        fclose(f);
    return 1024.0 * (double)kilobytes;
}

void cli_seconds_text(char out[16], double s)
{
    if (s < 1e-3)
        snprintf(out, 16, "%.3g us", 1e6 * s);
    else if (s < 1)
        snprintf(out, 16, "%.3g ms", 1e3 * s);
    else if (s < 1000)
        snprintf(out, 16, "%.3g s", s);
    else if (s < 1e5)
        snprintf(out, 16, "%.0f s", s);
    else if (s < 1e8)
        snprintf(out, 16, "%.3g days", s / 86400);
    else
        snprintf(out, 16, "%.2g years", s / (365.25 * 86400));
}

void cli_bytes_text(char out[20], double bytes)
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t i = 0;

    for (; bytes >= 999.5 && i < 5; i++)
        bytes /= 1000;
    snprintf(out, 20, "%.3g %s", bytes, unit[i]);
}

/* Returns the bytes that all workers of this machine store. Threads have the
 * uncoded blocks where A is. */
static double stored_here(const cli_args *a, const kofn_plan_info *info,
                          double block)
{
    size_t coded = a->workers;

    if (cli_transport_of(a->port)->here)
        coded -= info->threshold < coded ? info->threshold : coded;
    return (double)coded * block;
}

int cli_check_memory(const cli_args *a, const kofn_problem *pb,
                     const kofn_plan_info *info)
{
    const cli_transport *to = cli_transport_of(a->port);
    double all = (double)pb->m * (double)pb->n *
                 (pb->dtype == KOFN_F64 ? 8.0 : 4.0),
           block = info->storage * all, here, room = available();
    char each[20], sum[20], free_[20], of[20];

    if (info->parts || pb->sparse || info->storage <= 0)
        return 0;
    cli_bytes_text(each, block);
    cli_bytes_text(of, all);
    here = stored_here(a, info, block);
    if ((to->ours || to->here || to->simulated) && room > 0 && here > room) {
        cli_bytes_text(sum, here);
        cli_bytes_text(free_, room);
        return cli_say(EXIT_USAGE,
                       "%zu workers would store %s each, %s in all, and this "
                       "machine has %s free; take fewer workers, or a code "
                       "that stores less: %.3g of A (%s) on each worker "
                       "would fit",
                       a->workers, each, sum, free_,
                       room / here * info->storage, of);
    }
    if (!a->quiet && !a->json && isatty(STDERR_FILENO))
        fprintf(stderr, "each worker stores %s (%.3g of A, which has %s)\n",
                each, info->storage, of);
    return 0;
}
