/* fuzz_journal.c -- fuzzes journals. fuzz-iterations: 20000
 *
 * The first inputs contain today's decisions. scripts/journals records them
 * again if decisions change. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/replay.c" /* parts of the command, not of the library */
#include "cli/steps.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* True for sizes that a journal may have but that take a fuzzer too long. */
static int too_much_work(const char *text)
{
    const char *at = strstr(text, "\"workers\":");

    return at && strtoul(at + 10, NULL, 10) > 64;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    replay_show show = {.state = true};
    replay_result r;
    char *text = malloc(size + 1);
    int code;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (!too_much_work(text)) {
        if (!nowhere)
            nowhere = fopen("/dev/null", "w");
        show.steps = size % 4 ? NULL : nowhere; /* it is slow */
        show.trace = size % 8 == 1 ? "fuzz_journal.json" : NULL;
        code = replay(text, size, "fuzz", &show, &r);
        if (code < 0 || code > 2 || (code == 0) != (r.line == 0) ||
            (code != 0) != (*r.error != 0))
            abort();
    }
    free(text);
    return 0;
}
