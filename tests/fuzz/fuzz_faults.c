/* fuzz_faults.c -- fuzzes the strings of fault models and of patterns.
 *
 * fuzz-iterations: 300000 */
#include <kofn.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool rule)
{
    if (!rule)
        abort();
}

/* Parses a pattern. Names of files are skipped. */
static void look_at_pattern(const char *text)
{
    kofn_matrix a;
    kofn_status st;

    if (!strchr(text, ':'))
        return;
    st = kofn_pattern_new(&a, text, 3, 6, 5, 1);
    must(st == KOFN_OK || st == KOFN_INVAL || st == KOFN_IO);
    must(st ? !a.data && *kofn_errmsg() : a.rows == 6 && a.cols == 3);
    for (size_t e = 0; !st && e < 18; e++) {
        double f = ((const double *)a.data)[e];

        if (!strncmp(text, "lambda", 6))
            must(f >= 1 && f <= 1e6);
        else
            must(f == 1 || f == (strncmp(text, "spot", 4) ? 5 : HUGE_VAL));
    }
    kofn_free(a.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kofn_faults w = KOFN_FAULTS_INIT(.seed = 7), before = w;
    char text[300];
    kofn_status st;

    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    st = kofn_faults_parse(&w, text);
    must(st == KOFN_OK || st == KOFN_INVAL);
    look_at_pattern(text);
    if (st) { /* a refused string changes nothing */
        must(*kofn_errmsg() && memcmp(&w, &before, sizeof w) == 0);
        return 0;
    }
    must(w.seed == 7);
    must(w.spread >= 0 && w.spread < 1);
    must(w.straggle >= 0 && w.straggle <= 1);
    must(w.corrupt >= 0 && w.corrupt <= 1);
    must(w.leave >= 0 && w.join >= 0 && w.delay >= 0 && w.factor >= 0);
    must(w.clock == KOFN_CLOCK_MODELLED || w.clock == KOFN_CLOCK_MEASURED);
    return 0;
}
