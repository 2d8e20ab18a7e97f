/* fuzz_weather.c -- weather strings.  fuzz-iterations: 300000 */
#include <kofn.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool rule)
{
    if (!rule)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kofn_weather w = {.seed = 7}, before = w;
    char text[300];
    kofn_status st;

    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    st = kofn_weather_parse(&w, text);
    must(st == KOFN_OK || st == KOFN_INVAL);
    if (st) { /* nothing is changed by a string that is refused */
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
