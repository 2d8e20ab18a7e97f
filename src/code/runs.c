/* runs.c -- chooses the rows of D to make together.
 *
 * The engine makes all its outputs from all its sources.  If D has many zeros,
 * as with submessages of adaptive gradient codes, most of that work is wasted.
 * If rows are made one by one, each reads all sources.  Runs of rows are the
 * compromise.
 *
 * Owns its scratch within a call; the runs belong to the decoder.  It may
 * change only the order of work, never a result. */
#include "code.h"

#include <assert.h>
#include <math.h>

/* Most rows in a run; and the time to read a number from memory, in
 * multiplications. */
#define LONGEST 64
#define READING 3

/* Returns the cost of rows [i, end) together.  A result that any of the rows
 * uses is read once, which costs READING, and multiplied for all rows.  `used`
 * describes rows [i, end-1). */
static double cost_with(const kofn_decoder *d, size_t i, size_t end, bool *used,
                        size_t *count)
{
    const double *row = d->D + (end - 1) * d->results;

    assert(i < end);
    assert(end <= d->mixed);
    for (size_t r = 0; r < d->results; r++)
        if (row[r] != 0 && !used[r]) {
            used[r] = true;
            ++*count;
        }
    return (double)(READING + end - i) * (double)*count;
}

/* Finds the cheapest runs, from the last row back. */
static kofn_status find_runs(kofn_decoder *d)
{
    size_t m = d->mixed;
    kf_arrays a = {0};
    double *cost = kf_arrays_table(&a, m + 1, 1);
    bool *used = kf_arrays_new(&a, d->results, sizeof *used);

    assert(!d->run);
    assert(m <= LONGEST);
    d->run = kf_new(m, sizeof *d->run);
    a.failed |= !d->run;
    for (size_t i = a.failed ? 0 : m; i-- > 0;) {
        size_t count = 0;

        memset(used, 0, d->results * sizeof *used);
        cost[i] = HUGE_VAL;
        for (size_t end = i + 1; end <= m && end - i <= LONGEST; end++) {
            double c = cost_with(d, i, end, used, &count) + cost[end];

            if (c <= cost[i]) {
                cost[i] = c;
                d->run[i] = (uint32_t)end;
            }
        }
    }
    kf_arrays_free(&a);
    return kf_arrays_status(&a);
}

kofn_status kf_decoder_runs(kofn_decoder *d)
{
    bool zero = false;

    for (size_t e = 0; e < d->mixed * d->results; e++)
        zero |= d->D[e] == 0;
    return zero && d->mixed <= LONGEST ? find_runs(d) : KOFN_OK;
}
