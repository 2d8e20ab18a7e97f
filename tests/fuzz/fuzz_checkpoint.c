/* fuzz_checkpoint.c -- fuzzes a checkpoint.json that was altered, with its
 * right digest at the end, and valid states in its folder.
 *
 * Default fuzz-iterations: 20000.
 *
 * A job resumes only with a state that was written. */
#include "cli/matrix.c" /* before cli_messages.h: its `most` would be hidden */

#include "cli_messages.h"

#include "cli/checkpoint.c" /* parts of the command, not of the library */
#include "cli/fingerprint.c"
#include "cli/sets.c"

#include "base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t cli_json_lost(void)
{
    return 0;
}

/* The job of the checkpoints is no training. */
const char *model_activation(kofn_activation f)
{
    (void)f;
    return "";
}

const char *model_loss(kofn_net_loss loss)
{
    (void)loss;
    return "";
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

double cli_spent(cli_phase p, double since)
{
    (void)p;
    (void)since;
    return 0;
}

int cli_fail_input(kofn_status st)
{
    MUST(st < 0 && st != KOFN_NOMEM);
    return cli_say(EXIT_USAGE, "%s", kofn_errmsg());
}

int cli_caught(void)
{
    return 0;
}

/* ---- a folder with two states -------------------------------------------- */

static char folder[] = "/tmp/kofn-fuzz-XXXXXX";

static void leave(void)
{
    static const char *const names[] = {"checkpoint.json", "state-0.npy",
                                        "state-1.npy", "lock"};
    char path[100];

    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void put(const char *name, const void *bytes, size_t n)
{
    char path[100];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path); /* cheaper than truncating the file */
    f = fopen(path, "wb");
    MUST(f && fwrite(bytes, 1, n, f) == n);
    fprintf(f, "  \"digest\": \"xxh3-64:%016llx\"\n}\n",
            (unsigned long long)kf_hash(0, bytes, n));
    MUST(fclose(f) == 0);
}

static void enter(void)
{
    double x[6] = {1, 2, 3, 4, 5, 6};
    char path[100];

    MUST(mkdtemp(folder));
    atexit(leave);
    for (int i = 0; i < 2; i++) {
        const kofn_matrix m = {x, (size_t)(2 + i), 2, 2, KOFN_F64};

        snprintf(path, sizeof path, "%s/state-%d.npy", folder, i);
        MUST(kofn_write_npy(path, &m, 2) == KOFN_OK);
    }
}

/* ---- the target ---------------------------------------------------------- */

static void check(checkpoint *c)
{
    double room[6] = {0};
    kofn_matrix out = {room, 2, 2, 2, KOFN_F64};
    double change = checkpoint_number(c, "change");
    int code;

    MUST(change != change || checkpoint_number(c, "change") == change);
    if (checkpoint_done(c) == 0)
        return;
    MUST(c->state);
    messages = 0;
    code = checkpoint_state(c, &out);
    MUST(messages == (code != 0));
    MUST(room[0] == (code ? 0 : 1) && room[3] == (code ? 0 : 4));
    MUST(room[4] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const cli_command product = {.name = "matvec", .bit = IN_MATVEC};
    const cli_args a = {.command = &product,
                        .workers = 3,
                        .checkpoint = folder,
                        .resume = true,
                        .quiet = true};
    static bool entered;
    checkpoint *c = NULL;
    int code;

    if (!entered)
        enter();
    entered = true;
    put("checkpoint.json", data, size);
    messages = 0;
    code = checkpoint_open(&c, &a, "uncoded");
    MUST(code == 0 || code == EXIT_USAGE || code == EXIT_CORRUPT);
    MUST(messages == (code != 0) && c);
    if (!code)
        check(c);
    checkpoint_free(c);
    return 0;
}
