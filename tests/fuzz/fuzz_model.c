/* fuzz_model.c -- fuzzes a model.json that was altered, with its right digest
 * at the end, and valid weights of 3 x 5 and 2 x 4 numbers.
 *
 * Default fuzz-iterations: 20000.
 *
 * An accepted model is a network of these weights. */
#include "cli/matrix.c" /* before cli_messages.h: its `most` would be hidden */

#include "cli_messages.h"

#include "cli/model.c" /* parts of the command, not of the library */
#include "cli/sets.c"

#include "base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t cli_json_lost(void)
{
    return 0;
}

double cli_spent(cli_phase p, double since)
{
    (void)p;
    (void)since;
    return 0;
}

void cli_busy(const char *doing, const char *name)
{
    (void)doing, (void)name;
}

void cli_busy_end(void)
{
}

void cli_guard(bool on)
{
    (void)on;
}

int cli_fail_input(kofn_status st)
{
    MUST(st < 0 && st != KOFN_NOMEM);
    return cli_say(EXIT_USAGE, "%s", kofn_errmsg());
}

static char folder[] = "/tmp/kofn-fuzz-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[100];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void leave(void)
{
    static const char *const names[] = {"model.json", "W1.npy", "W2.npy"};

    for (size_t k = 0; k < 3; k++)
        unlink(path_of(names[k]));
    rmdir(folder);
}

static void enter(void)
{
    double x[15] = {1, 2, 3, 4, 5, 6, 7, 8};
    const kofn_matrix W1 = {x, 3, 5, 5, KOFN_F64}, W2 = {x, 2, 4, 4, KOFN_F64};

    MUST(mkdtemp(folder));
    atexit(leave);
    MUST(kofn_write_npy(path_of("W1.npy"), &W1, 2) == KOFN_OK);
    MUST(kofn_write_npy(path_of("W2.npy"), &W2, 2) == KOFN_OK);
}

static void put(const void *bytes, size_t n)
{
    FILE *f;

    unlink(path_of("model.json")); /* cheaper than truncating the file */
    f = fopen(path_of("model.json"), "wb");
    MUST(f && fwrite(bytes, 1, n, f) == n);
    fprintf(f, "  \"digest\": \"xxh3-64:%016llx\"\n}\n",
            (unsigned long long)kf_hash(0, bytes, n));
    MUST(fclose(f) == 0);
}

static void check(const model *m)
{
    const kofn_matrix *W = kofn_net_weights(m->net, 1);

    MUST(W->rows == 3 && W->cols == 5 && ((double *)W->data)[7] == 8);
    W = kofn_net_weights(m->net, 2);
    MUST(!W || (W->rows == 2 && W->cols == 4 && ((double *)W->data)[3] == 4));
    MUST(!kofn_net_weights(m->net, 3) && m->unit > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool entered;
    model m;
    int code;

    if (!entered)
        enter();
    entered = true;
    watch_memory();
    most = (size_t)1 << 20;
    put(data, size);
    messages = 0;
    code = model_read(folder, &m);
    MUST(code == 0 || code == EXIT_USAGE || code == EXIT_CORRUPT);
    MUST(messages == (code != 0));
    if (!code)
        check(&m);
    model_free(&m);
    MUST(blocks == 0 && held == 0);
    return 0;
}
