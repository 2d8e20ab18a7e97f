/* list.c -- whose keys come in, also when that changes while it is used.
 *
 * A folder, each of whose files NAME.public is one key, or one file with many.
 * It is looked at about every second: a key comes in once its file is there,
 * and is revoked by taking the file away.  A file that holds no key lists
 * nobody; what cannot be read for another reason, say for want of file
 * descriptors, changes nothing.
 */
#include "keys.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

struct kf_list {
    char *path;
    pthread_mutex_t lock; /* of keys */
    kf_keys keys;
    uint64_t stamp; /* of the files as they were read */
    atomic_bool changed;
};

/* ---- has anything changed? ----------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * KF_STEP64;
    return h ^ h >> 29;
}

/* What was written in the last two seconds may be written again without a
 * trace: 0, which is no stamp. */
static uint64_t stamp_of(const char *name, const struct stat *s, bool *fresh)
{
    uint64_t h = 1;

    for (; *name; name++)
        h = mix(h, (unsigned char)*name);
    h = mix(h, (uint64_t)s->st_ino);
    h = mix(h, (uint64_t)s->st_size);
    h = mix(h, (uint64_t)s->st_mtim.tv_sec);
    *fresh |= s->st_mtim.tv_sec + 2 >= time(NULL);
    return mix(h, (uint64_t)s->st_mtim.tv_nsec);
}

/* In whatever order the folder names its files. */
static uint64_t stamp(const char *path)
{
    DIR *dir = opendir(path);
    bool fresh = false;
    struct dirent *e;
    struct stat s;
    uint64_t sum = 1;

    if (!dir)
        sum = stat(path, &s) ? 0 : stamp_of("", &s, &fresh);
    while (dir && (e = readdir(dir)))
        if (kf_keys_is_public(e->d_name) &&
            !fstatat(dirfd(dir), e->d_name, &s, 0))
            sum += stamp_of(e->d_name, &s, &fresh);
    if (dir)
        closedir(dir);
    return fresh ? 0 : sum;
}

/* ---- reading ------------------------------------------------------------- */

kofn_status kf_list_open(kf_list **out, const char *path)
{
    kf_list *l = kf_zero(1, sizeof *l);
    kofn_status st = KOFN_OK;

    *out = NULL;
    if (!l)
        return KOFN_NOMEM;
    pthread_mutex_init(&l->lock, NULL);
    atomic_init(&l->changed, false);
    l->path = kf_strdup(path);
    if (!l->path)
        st = KOFN_NOMEM;
    if (!st) {
        l->stamp = stamp(path);
        st = kf_keys_listed(&l->keys, path, true);
    }
    if (st) {
        kf_list_free(l);
        return st;
    }
    *out = l;
    return KOFN_OK;
}

bool kf_list_look(kf_list *l)
{
    uint64_t now = stamp(l->path);
    kf_keys keys = {0}, old;

    if (now && now == l->stamp)
        return false;
    if (kf_keys_listed(&keys, l->path, false)) {
        kf_keys_free(&keys);
        return false;
    }
    l->stamp = now;
    pthread_mutex_lock(&l->lock);
    old = l->keys;
    l->keys = keys;
    pthread_mutex_unlock(&l->lock);
    kf_keys_free(&old);
    atomic_store(&l->changed, true);
    return true;
}

bool kf_list_changed(kf_list *l)
{
    return atomic_exchange(&l->changed, false);
}

/* ---- asking -------------------------------------------------------------- */

bool kf_list_find(kf_list *l, const void *bits, char name[KF_KEY_NAME])
{
    const kf_key *k;

    pthread_mutex_lock(&l->lock);
    k = kf_keys_find(&l->keys, bits);
    if (k && name)
        memcpy(name, k->name, KF_KEY_NAME);
    pthread_mutex_unlock(&l->lock);
    return k != NULL;
}

bool kf_list_key(kf_list *l, const char *name, kf_key *out)
{
    bool found = false;

    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->keys.count && !found; i++)
        if (strcmp(l->keys.key[i].name, name) == 0) {
            *out = l->keys.key[i];
            found = true;
        }
    pthread_mutex_unlock(&l->lock);
    return found;
}

size_t kf_list_count(kf_list *l)
{
    size_t n;

    pthread_mutex_lock(&l->lock);
    n = l->keys.count;
    pthread_mutex_unlock(&l->lock);
    return n;
}

void kf_list_free(kf_list *l)
{
    if (!l)
        return;
    pthread_mutex_destroy(&l->lock);
    kf_keys_free(&l->keys);
    kf_free(l->path);
    kf_free(l);
}
