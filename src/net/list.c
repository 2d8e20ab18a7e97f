/* list.c -- whose keys come in, also when that changes while it is used.
 *
 * A folder, each of whose files NAME.crt is one key, or one file with many.  It is
 * looked at every second: a key comes in once its file is there, and is revoked by
 * taking the file away.  A file that holds no key lists nobody; what cannot be read
 * for another reason, say for want of file descriptors, changes nothing.
 *
 * Owns the list of certificates that are let in.  It reads files once a second
 * at most, and a failure to read changes nothing.
 */
#include "keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FRESH 2 /* seconds in which a file may change again without a trace */

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
    kofn_status st = kf_keys_join(path, dir, name);

    if (!st)
        st = kf_keys_read(to, path, false);
    if (!st || strict)
        return st;
    while (to->count > had)
        OPENSSL_free(to->card[--to->count].der);
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
        return kf_keys_read(to, path, true);
    while (!st && (e = readdir(dir)))
        if (is_certificate(e->d_name) &&
            strcmp(e->d_name, "coordinator.crt") != 0)
            st = add_file(to, path, e->d_name, strict);
    closedir(dir);
    if (!st && to->count == 0 && strict)
        st = kf_fail(KOFN_FORMAT,
                     "%s: nobody's key is in there: names end in .crt", path);
    return st;
}

/* ---- has anything changed? ----------------------------------------------- */

KF_WRAPS static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * KF_STEP64;
    return h ^ h >> 29;
}

static uint64_t stamp_of(const char *name, const struct stat *s, bool *fresh)
{
    uint64_t h = 1;

    for (; *name; name++)
        h = mix(h, (unsigned char)*name);
    h = mix(h, (uint64_t)s->st_ino);
    h = mix(h, (uint64_t)s->st_size);
    h = mix(h, (uint64_t)s->st_ctim.tv_sec);
    h = mix(h, (uint64_t)s->st_ctim.tv_nsec);
    *fresh |= s->st_ctim.tv_sec + FRESH >= time(NULL);
    h = mix(h, (uint64_t)s->st_mtim.tv_sec);
    return mix(h, (uint64_t)s->st_mtim.tv_nsec);
}

/* In whatever order the folder names its files. */
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

/* True if the peer's key is not listed any more, or is another's by now. */
static bool is_revoked(const kf_link *l)
{
    char name[KF_NAME];
    X509 *x;

    if (!l->tls || l->stage < KF_STRANGE || l->stage > KF_PEER ||
        (l->dial && !l->dial->who[0]))
        return false;
    x = SSL_get0_peer_certificate(l->tls);
    return !x || !kf_keys_know(l, x, name) ||
           (l->principal[0] && strcmp(name, l->principal) != 0);
}

void kf_keys_look(uv_timer_t *timer)
{
    kf_transport *t = timer->data;
    kf_keys *k = t->keys;
    kf_cards is = {0};
    uint64_t now;

    if (k->ca) {
        kf_keys_renew(k);
        return;
    }
    now = kf_list_stamp(k->allow);
    if (now && now == k->stamp)
        return;
    if (kf_list_read(&is, k->allow, false)) {
        kf_cards_free(&is);
        return;
    }
    kf_cards_free(&k->listed);
    k->listed = is;
    k->stamp = now;
    for (kf_link *l = t->links, *after; l; l = after) {
        after = l->after;
        if (is_revoked(l))
            kf_join_revoke(l);
    }
}

size_t kofn_net_listed(const kofn_transport *base)
{
    kf_transport *t = (kf_transport *)(uintptr_t)base;
    size_t n;

    pthread_mutex_lock(&t->lock);
    n = t->keys ? t->keys->listed.count : 0;
    pthread_mutex_unlock(&t->lock);
    return n;
}
