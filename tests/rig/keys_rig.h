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
    assert_ok(kofn_net_keygen(k->dir, name));
}

/* Returns a path in the ring's folder. It is valid until 32 further calls. */
static inline char *in(const keyring *k, const char *name)
{
    static char path[32][200];
    static int next;

    next = (next + 1) % 32;
    snprintf(path[next], sizeof path[next], "%s/%s", k->dir, name);
    return path[next];
}

/* Removes a folder with its contents. */
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

/* Returns options with the keys of that folder, and the timeout of `patient`.
 */
static inline kofn_net_options with(const char *keys)
{
    kofn_net_options o = patient;

    o.keys = keys;
    return o;
}

/* Listens with the keys of a folder, and connects to it as `name`. */
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

/* ---- a ring of keys, and looks inside ------------------------------------ */

static const char *expected =
    ""; /* expected in the trouble of the peer that tries to come in */

static keyring ring; /* with coordinator, worker and anna */

static inline int make_ring(void **state)
{
    (void)state;
    name_socket();
    keyring_new(&ring);
    assert_ok(kofn_net_keygen(ring.dir, NULL));
    keyring_add(&ring, "anna");
    return 0;
}

static inline int drop_ring(void **state)
{
    (void)state;
    keyring_free(&ring);
    return 0;
}

static inline kf_transport *inside(kofn_transport *t)
{
    return (kf_transport *)t;
}

static inline kf_transport *locked(kofn_transport *t)
{
    pthread_mutex_lock(&inside(t)->lock);
    return inside(t);
}

static inline void unlock(kofn_transport *t)
{
    pthread_mutex_unlock(&inside(t)->lock);
}

static inline size_t peers_of(kofn_transport *t)
{
    size_t n = locked(t)->in.count;

    unlock(t);
    return n;
}

static inline kofn_peer only_peer(kofn_transport *t)
{
    kofn_peer n = locked(t)->in.peer[0]->number;

    unlock(t);
    return n;
}

static inline kf_refused refused_by(kofn_transport *t)
{
    kf_refused r = locked(t)->gate.refused;

    unlock(t);
    return r;
}

/* Looks at the keys now, if t looks at them every second. */
static inline void look_now(kofn_transport *t)
{
    if (t && uv_is_active((uv_handle_t *)&locked(t)->uv.look))
        kf_join_look(&inside(t)->uv.look);
    if (t)
        unlock(t);
}

/* Serves both until `seen`. Drops what else arrives. */
static inline void until(kofn_transport *a, kofn_transport *b,
                         bool (*seen)(kofn_transport *a, kofn_transport *b))
{
    kofn_time end = kf_clock() + LIMIT;
    kofn_packet p;

    while (!seen(a, b) && kf_clock() < end) {
        look_now(a);
        look_now(b);
        if (!a->wait(a, MILLI, &p))
            a->release(a, p.own);
        if (b && !b->wait(b, MILLI, &p))
            b->release(b, p.own);
    }
    if (!seen(a, b))
        fail_msg("it does not happen; trouble: '%s', expected %s",
                 b ? kofn_net_trouble(b) : "", expected);
}

/* Waits until that peer of a goes. b is served meanwhile. */
static inline void goes(kofn_transport *a, kofn_transport *b, kofn_peer peer)
{
    kofn_packet p, q;

    do {
        p = next_of(a, NULL);
        while (b && !b->wait(b, 0, &q))
            b->release(b, q.own);
    } while (p.what != KOFN_WENT);
    assert_int_equal(p.peer, peer);
}

static inline bool refuses(kofn_transport *a, kofn_transport *b)
{
    (void)a;
    return strstr(kofn_net_trouble(b), "not on its list") ||
           strstr(kofn_net_trouble(b), "key revoked");
}

static inline bool is_told(kofn_transport *a, kofn_transport *b)
{
    assert_int_equal(peers_of(a), 0);
    return strstr(kofn_net_trouble(b), expected) != NULL;
}

/* Checks that a dialler with these options is refused by such a listener. */
static inline void refused(const kofn_net_options *listens,
                           const kofn_net_options *dials, const char *why)
{
    for (int w = 0; w < 2; w++) {
        kofn_transport *a = listener(addresses[w], listens);
        kofn_transport *b = dialler(a, dials);

        expected = why;
        until(a, b, is_told);
        b->close(b, 0);
        a->close(a, 0);
    }
}

#endif
