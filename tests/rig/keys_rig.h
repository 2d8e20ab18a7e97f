/* keys_rig.h -- folders of keys in tests of the transport with TLS. */
#ifndef KEYS_RIG_H
#define KEYS_RIG_H

#include "net_rig.h"

#include <dirent.h>
#include <sys/stat.h>

typedef struct keyring {
    char dir[40];
} keyring;

static inline void keyring_new(keyring *k)
{
    *k = (keyring){"/tmp/kofn-keys-XXXXXX"};
    assert_non_null(mkdtemp(k->dir));
}

static inline void keyring_add(const keyring *k, const char *name)
{
    assert_ok(kofn_net_keygen_worker(k->dir, name));
}

/* A path in one of its folders, until 32 others are asked for. */
static inline char *in(const keyring *k, const char *name)
{
    static char path[32][200];
    static int next;

    next = (next + 1) % 32;
    snprintf(path[next], sizeof path[next], "%s/%s", k->dir, name);
    return path[next];
}

/* What is in a folder, and the folder. */
static inline void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    char at[4096];

    for (struct dirent *e; d && (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        snprintf(at, sizeof at, "%.3000s/%s", path, e->d_name);
        if (remove(at)) /* a folder that is not empty */
            remove_folder(at);
    }
    if (d)
        closedir(d);
    assert_int_equal(remove(path), 0);
}

static inline void keyring_free(const keyring *k)
{
    remove_folder(k->dir);
}

/* With the keys of that folder, as patient as the others. */
static inline kofn_net_options with(const char *keys)
{
    kofn_net_options o = patient;

    o.keys = keys;
    return o;
}

/* One listens with the keys of a folder, another connects as `name`. */
static inline pair meet_as(const char *address, const keyring *k,
                           const char *name)
{
    const kofn_net_options a = with(k->dir), b = with(in(k, name));
    pair m;

    m.a = listener(address, &a);
    m.b = dialler(m.a, &b);
    m.of_b = came(m.a, NULL);
    m.of_a = came(m.b, NULL);
    return m;
}

#endif
