/* nodes_folder.c -- the folder of --checkpoint in a run with --masterless.
 *
 * Owns nothing: the library writes and reads the files. */
#include "nodes.h"
#include "sets.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* True if the folder holds files that a node of this seat kept, or, without a
 * seat, any node. */
static bool has_kept(const char *folder, uint32_t seat)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    bool has = false;

    while (d && !has && (e = readdir(d))) {
        unsigned of;

        has = sscanf(e->d_name, "seat-%u-step-", &of) == 1 &&
              (seat == KOFN_NO_SEAT || of == seat);
    }
    if (d)
        closedir(d);
    return has;
}

int nodes_check_folder(const cli_nodes *m, uint32_t seat)
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
    if (!m->a->resume && has_kept(folder, seat))
        return cli_say(
            EXIT_USAGE,
            "--checkpoint %s: another run has saved its state there; give "
            "--resume to continue it, or another folder",
            folder);
    return 0;
}
