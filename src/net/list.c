/* list.c -- the list of keys that may connect: its contents, and whether it has
 * changed.
 *
 * The list is a folder in which each file NAME.crt is one key, or one file with
 * many keys. A key is listed once its file is there. To revoke it, remove the
 * file, or the whole folder. A file without a key lists none. A file that
 * cannot be read for another reason, such as a lack of file descriptors, is a
 * failure.
 *
 * Owns nothing. */
#include "keys.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* seconds in which a file may change again with the same times */
#define FRESH 2

/* ---- reading ------------------------------------------------------------- */

static bool is_certificate(const char *name)
{
    size_t n = strlen(name);

    return name[0] != '.' && n > 4 && strcmp(name + n - 4, ".crt") == 0;
}

/* Adds one file of a folder. */
static kofn_status add_file(kf_cards *to, const char *dir, const char *name,
                            bool strict)
{
    size_t had = to->count;
    char path[KF_PATH];
    kofn_status st = kf_keyfile_join(path, dir, name);

    if (!st)
        st = kf_keyfile_read(to, path, false);
    if (!st || strict)
        return st;
    while (to->count > had)
        X509_free(to->card[--to->count].x);
    return st == KOFN_FORMAT || access(path, F_OK) ? KOFN_OK : st;
}

kofn_status kf_list_read(kf_cards *to, const char *path, bool strict)
{
    DIR *dir = opendir(path);
    kofn_status st = KOFN_OK;
    struct dirent *e;

    if (!dir && errno != ENOTDIR)
        return kf_fail(KOFN_IO, "%s: %s", path, strerror(errno));
    if (!dir)
        return kf_keyfile_read(to, path, true);
    while (!st && (e = readdir(dir)))
        if (is_certificate(e->d_name) &&
            strcmp(e->d_name, "coordinator.crt") != 0)
            st = add_file(to, path, e->d_name, strict);
    closedir(dir);
    if (!st && to->count == 0 && strict)
        st = kf_fail(KOFN_FORMAT,
                     "%s holds no key; files of keys are named NAME.crt", path);
    return st;
}

bool kf_list_is_gone(const char *path)
{
    struct stat s;

    return stat(path, &s) && (errno == ENOENT || errno == ENOTDIR);
}

/* ---- changes ------------------------------------------------------------- */

static uint64_t stamp_of(const char *name, const struct stat *s, bool *fresh)
{
    const int64_t of[] = {(int64_t)s->st_ino, s->st_size,
                          s->st_ctim.tv_sec,  s->st_ctim.tv_nsec,
                          s->st_mtim.tv_sec,  s->st_mtim.tv_nsec};
    uint64_t h = KF_FNV;

    for (; *name; name++)
        h = kf_fnv(h, (unsigned char)*name);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        h = kf_mix64(kf_fnv(h, (uint64_t)of[i]));
    *fresh |= s->st_ctim.tv_sec + FRESH >= time(NULL);
    return h;
}

/* The sum does not depend on the order in which the folder is read. */
KF_WRAPS uint64_t kf_list_stamp(const char *path)
{
    DIR *dir = opendir(path);
    bool fresh = false;
    struct dirent *e;
    struct stat s;
    uint64_t sum = 1;

    if (!dir)
        sum = stat(path, &s) ? 0 : stamp_of("", &s, &fresh);
    while (dir && (e = readdir(dir)))
        if (is_certificate(e->d_name) && !fstatat(dirfd(dir), e->d_name, &s, 0))
            sum += stamp_of(e->d_name, &s, &fresh);
    if (dir)
        closedir(dir);
    return fresh ? 0 : sum;
}
