/* pool_port.h -- a port to workers that are processes of the pool, reached over
 * sockets. */
#ifndef KF_TEST_POOL_PORT_H
#define KF_TEST_POOL_PORT_H

#include "process_pool.h"

static char pool_folder[] = "/tmp/kofn-pool-XXXXXX"; /* folder of the sockets */

static pool_worker
    pool_next; /* properties of the workers that are started now */

static inline bool pool_folder_new(void)
{
    return mkdtemp(pool_folder) != NULL;
}

/* True if the folder was empty and is removed. */
static inline bool pool_folder_end(void)
{
    return rmdir(pool_folder) == 0;
}

static inline int pool_start_next(void *ud)
{
    (void)ud;
    pool_start(&pool_next);
    return 0;
}

static inline int pool_kill(void *ud, uint64_t process)
{
    (void)ud;
    pool_signal((pid_t)process, SIGKILL);
    return 0;
}

/* Opens a port at a new address. A worker that loses its coordinator looks for
 * another at the former address, and has the fault model and numbers of that
 * time. */
static inline kofn_port *pool_port(const rig_kind *kind,
                                   const kofn_faults *faults)
{
    kofn_net_options z = {
        .size = sizeof z, .silence = 30 * KOFN_SECOND, .insecure = true};
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    static unsigned had;
    kofn_transport *t;
    kofn_port *port;

    o.workers = kind->workers;
    o.alone = true;
    o.start = pool_start_next;
    o.kill = pool_kill;
    pool_next = (pool_worker){
        .kind = *kind,
        .faults = *faults,
        .patience = 3 * KOFN_SECOND,
        .silence = z.silence, /* a killed worker is detected at once anyway */
        .staged = true};
    snprintf(pool_next.address, sizeof pool_next.address, "ipc://%s/%u",
             pool_folder, had++);
    assert_ok(kofn_net_listen(&t, pool_next.address, &z));
    assert_ok(kofn_port_away(&port, t, &o));
    for (size_t i = 0; i < kind->workers; i++)
        pool_start(&pool_next);
    return port;
}

#endif
