/* fleet.h -- workers behind a transport, each on a thread of this process, and
 * a port that reaches them by packets only. */
#ifndef KF_TEST_FLEET_H
#define KF_TEST_FLEET_H

#include "loop_transport.h"

#include <stdatomic.h>
#include <stdio.h>

#define FLEET_MOST 64

typedef struct fleet fleet;

/* The operand that workers find in their file. Both NULL: there is no file. */
typedef struct disk {
    const kofn_matrix *A;
    const kofn_sparse *S;
    atomic_size_t asked;
} disk;

typedef struct member {
    fleet *of;
    pthread_t thread;
    kofn_transport *t;
    atomic_int leave; /* a kofn_leave */
    kofn_status ended;
    kofn_faults faults;
    char news[256]; /* the last news */
    atomic_size_t stored;
    atomic_uint number; /* its number as a worker, or its last one */
    void *own;          /* entry of the fleet's `own` */
} member;

struct fleet {
    loop_net net;
    kofn_serve_options serve; /* of all members */
    size_t memory_of_first;   /* memory limit of the first member; 0: as all */
    disk *disk;               /* of all members */
    void *own[FLEET_MOST]; /* serve.multiply_ctx of each member; NULL: as all */
    member *member[FLEET_MOST];
    size_t members;
};

static inline kofn_status from_disk(void *ud, const char *name,
                                    const kofn_matrix **A,
                                    const kofn_sparse **S)
{
    member *m = ud;
    disk *d = m->of->disk;

    assert_string_equal(name, "A.npy");
    atomic_fetch_add(&d->asked, 1);
    *A = d->A;
    *S = d->S;
    return d->A || d->S ? KOFN_OK : kf_fail(KOFN_IO, "there is no A.npy");
}

static inline void disk_done(void *ud)
{
    (void)ud;
}

static inline kofn_leave member_watch(void *ud, const char *news)
{
    member *m = ud;
    unsigned number;

    if (news) {
        snprintf(m->news, sizeof m->news, "%s", news);
        if (sscanf(news, "connected as worker %u", &number) == 1)
            atomic_store(&m->number, number);
        if (strcmp(news, "block stored") == 0)
            atomic_fetch_add(&m->stored, 1);
    }
    return (kofn_leave)atomic_load(&m->leave);
}

static inline void *member_live(void *ud)
{
    member *m = ud;
    kofn_serve_options o = m->of->serve;

    if (m == m->of->member[0] && m->of->memory_of_first)
        o.memory = m->of->memory_of_first;
    if (m->own)
        o.multiply_ctx = m->own;
    o.watch = member_watch;
    o.ud = m;
    m->ended = kofn_serve(m->t, &o);
    return NULL;
}

static inline member *fleet_add(fleet *f)
{
    member *m = calloc(1, sizeof *m);

    assert_non_null(m);
    assert_true(f->members < FLEET_MOST);
    m->of = f;
    m->t = loop_spoke(&f->net);
    m->own = f->own[f->members];
    f->member[f->members++] = m;
    assert_int_equal(pthread_create(&m->thread, NULL, member_live, m), 0);
    return m;
}

static inline int fleet_start(void *ud)
{
    fleet_add(ud);
    return 0;
}

/* Loses a worker for good. Threads cannot be killed, so the port forgets the
 * worker, and it cannot connect again. */
static inline int fleet_kill(void *ud, uint64_t process)
{
    fleet *f = ud;

    (void)process;
    pthread_mutex_lock(&f->net.lock);
    f->net.banish = true;
    pthread_mutex_unlock(&f->net.lock);
    return 0;
}

/* Starts the workers, and then opens the port that reaches them. */
static inline kofn_port *fleet_port(fleet *f, size_t workers,
                                    const kofn_away_options *opt)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_port *port;
    kofn_transport *hub = loop_hub(&f->net);

    if (opt)
        o = *opt;
    o.workers = workers;
    for (size_t i = 0; i < workers; i++)
        fleet_add(f);
    assert_ok(kofn_port_away(&port, hub, &o));
    return port;
}

static inline void fleet_init(fleet *f, const loop_faults *faults)
{
    *f = (fleet){.serve = KOFN_SERVE_OPTIONS_INIT};
    loop_net_init(&f->net, faults);
}

/* Makes all workers leave. The job is closed already. */
static inline void fleet_down(fleet *f)
{
    for (size_t i = 0; i < f->members; i++)
        atomic_store(&f->member[i]->leave, KOFN_LEAVE_NOW);
    for (size_t i = 0; i < f->members; i++) {
        pthread_join(f->member[i]->thread, NULL);
        free(f->member[i]);
    }
    pthread_mutex_destroy(&f->net.lock);
}

#endif
