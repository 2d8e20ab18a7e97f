/* nodes_folder.c -- the folder of --checkpoint in a run with --masterless: its
 * lock, and what a run that resumes says of it.
 *
 *     DIR/lock               held by each process in use of the folder
 *     DIR/seat-3-step-...    written and read by the library
 *
 * Ranks of MPI may share a folder, so each locks the byte of its seat alone.
 * Every other process locks the whole file: threads are one process, and a node
 * at an address has its own folder. The kernel frees the lock of a process that
 * was killed. Owns the lock until nodes_leave_folder. */
#include "nodes.h"
#include "sets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that a node of that seat kept after that step. */
typedef struct kept {
    unsigned seat;
    unsigned long long step;
    const char *name; /* valid until the next one is read */
} kept;

/* Reads the next such file. Returns false if there is no more; d may be NULL.
 */
static bool next(DIR *d, kept *k)
{
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        k->name = e->d_name;
        if (sscanf(k->name, "seat-%u-step-%llu", &k->seat, &k->step) == 2)
            return true;
    }
    return false;
}

/* ---- before the nodes start ---------------------------------------------- */

/* True if the folder holds files that a node of this seat kept, or, without a
 * seat, any node. */
static bool has_kept(const char *folder, uint32_t seat)
{
    DIR *d = opendir(folder);
    bool has = false;
    kept k;

    while (!has && next(d, &k))
        has = seat == KOFN_NO_SEAT || k.seat == seat;
    if (d)
        closedir(d);
    return has;
}

/* Locks the folder for the node of this seat, or, without a seat, for this
 * process alone. */
static int claim(cli_nodes *m, uint32_t seat)
{
    const bool all = seat == KOFN_NO_SEAT;
    struct flock part = {.l_type = F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = all ? 0 : (off_t)seat,
                         .l_len = !all};
    const char *folder = m->a->checkpoint;
    char path[KF_STORE_PATH];

    if (strlen(folder) + 32 > sizeof path)
        return cli_say(EXIT_USAGE, "--checkpoint: the name of the folder is "
                                   "too long");
    snprintf(path, sizeof path, "%s/lock", folder);
    m->lock.file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (m->lock.file < 0)
        return cli_say(EXIT_FAILED, "--checkpoint %s: %s", path,
                       strerror(errno));
    m->lock.open = true;
    if (fcntl(m->lock.file, F_SETLK, &part) == 0)
        return 0;
    return errno == EACCES || errno == EAGAIN
               ? cli_say(EXIT_FAILED,
                         "--checkpoint %s: another kofn is at work there; give "
                         "another folder",
                         folder)
               : cli_say(EXIT_FAILED, "--checkpoint %s: %s", path,
                         strerror(errno));
}

int nodes_claim_folder(cli_nodes *m, uint32_t seat)
{
    static const char *const others[] = {"model.json", "checkpoint.json", NULL};
    const char *folder = m->a->checkpoint;
    int why;

    if (!folder)
        return 0;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return cli_say(EXIT_FAILED, "--checkpoint %s: %s", folder,
                       strerror(errno));
    why = cli_no_folder(folder, R_OK | W_OK | X_OK);
    if (why)
        return cli_say(why == ENOTDIR ? EXIT_USAGE : EXIT_FAILED,
                       "--checkpoint %s: %s", folder,
                       why == ENOTDIR ? "it is not a folder" : strerror(why));
    TRY_CODE(cli_set_refuse(folder, others));
    TRY_CODE(claim(m, seat));
    if (!m->a->resume && has_kept(folder, seat))
        return cli_say(
            EXIT_USAGE,
            "--checkpoint %s: another run has saved its state there; give "
            "--resume to continue it, or another folder",
            folder);
    if (!has_kept(folder, KOFN_NO_SEAT))
        nodes_record_options(m);
    return 0;
}

void nodes_leave_folder(cli_nodes *m)
{
    if (m->lock.open)
        close(m->lock.file);
    m->lock.open = false;
}

/* ---- when they resume ---------------------------------------------------- */

/* Returns the number of nodes of this process that resume: the first ones. */
static size_t resuming(const cli_nodes *m)
{
    return m->mesh ? m->count : 1;
}

/* True if a node of this process passed that file over and resumed from an
 * earlier step. */
static bool is_passed_over(const cli_nodes *m, const kept *k)
{
    const char *end = strrchr(k->name, '.');

    if (!end || strcmp(end, ".damaged") != 0)
        return false;
    for (size_t i = 0; i < resuming(m); i++) {
        const cli_node *n = &m->node[i];

        if (n->began && n->from < k->step &&
            (n->seat == k->seat || n->seat == KOFN_NO_SEAT))
            return true;
    }
    return false;
}

/* Says which damaged states were passed over. Returns false if none was. */
static bool tell_damaged(const cli_nodes *m, const char *after)
{
    const char *folder = m->a->checkpoint;
    char name[KF_STORE_NAME] = "";
    DIR *d = opendir(folder);
    size_t more = 0;
    kept k;

    while (next(d, &k)) {
        if (!is_passed_over(m, &k))
            continue;
        if (*name)
            more++;
        else
            snprintf(name, sizeof name, "%s", k.name);
    }
    if (d)
        closedir(d);
    if (*name && more)
        cli_say(0,
                "%s/%s and %zu more are damaged; going on with the states "
                "before them, %s",
                folder, name, more, after);
    else if (*name)
        cli_say(0, "%s/%s is damaged; going on with the state before it, %s",
                folder, name, after);
    return *name;
}

/* Says from which steps the nodes of this process resume. */
static void tell(const cli_nodes *m)
{
    const char *folder = m->a->checkpoint;
    const char *unit = m->a->command->bit == IN_TRAIN ? "step" : "iteration";
    unsigned long long first = UINT64_MAX, last = 0;
    char after[80];

    for (size_t i = 0; i < resuming(m); i++) {
        const cli_node *n = &m->node[i];

        if (n->began && n->from < first)
            first = n->from;
        if (n->began && n->from != UINT64_MAX && n->from > last)
            last = n->from;
    }
    if (first == UINT64_MAX) /* none has begun */
        return;
    if (first == last)
        snprintf(after, sizeof after, "after %s %llu", unit, last);
    else
        snprintf(after, sizeof after, "after %ss %llu to %llu", unit, first,
                 last);
    if (tell_damaged(m, after) || m->a->quiet)
        return;
    if (last)
        cli_tell("going on from %s, %s", folder, after);
    else if (!has_kept(folder, KOFN_NO_SEAT))
        cli_say(0, "%s holds no checkpoint; starting from the beginning",
                folder);
}

void nodes_began(cli_node *n, const kofn_node_view *view)
{
    cli_nodes *m = n->all;

    if (!n->resumes || n->began)
        return;
    n->began = true;
    n->from = view ? view->at.step / m->each : UINT64_MAX;
    if (atomic_fetch_add(&m->began, 1) + 1 == resuming(m))
        tell(m);
}
