/* yard_port.h -- a port whose workers are processes of the yard, reached over
 * sockets. */
#ifndef KF_TEST_YARD_PORT_H
#define KF_TEST_YARD_PORT_H

#include "yard.h"

static char yard_folder[] = "/tmp/kofn-yard-XXXXXX"; /* of addresses */

static yard_life yard_now; /* of whoever is started now */

static inline bool yard_folder_new(void)
{
    return mkdtemp(yard_folder) != NULL;
}

/* Nothing stays there. */
static inline bool yard_folder_end(void)
{
    return rmdir(yard_folder) == 0;
}

static inline int yard_start_now(void *ud)
{
    (void)ud;
    yard_start(&yard_now);
    return 0;
}

static inline int yard_kill(void *ud, uint64_t process)
{
    (void)ud;
    yard_signal((pid_t)process, SIGKILL);
    return 0;
}

/* An address of its own each time: who has lost a coordinator looks for
 * another where it was, and has the fault model and the numbers of then. */
static inline kofn_port *yard_port(const rig_kind *kind,
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
    o.start = yard_start_now;
    o.kill = yard_kill;
    yard_now = (yard_life){.kind = *kind,
                           .faults = *faults,
                           .patience = 3 * KOFN_SECOND,
                           .silence = z.silence, /* who is killed is missed at
                                                    once all the same */
                           .staged = true};
    snprintf(yard_now.address, sizeof yard_now.address, "ipc://%s/%u",
             yard_folder, had++);
    assert_ok(kofn_net_listen(&t, yard_now.address, &z));
    assert_ok(kofn_port_away(&port, t, &o));
    for (size_t i = 0; i < kind->workers; i++)
        yard_start(&yard_now);
    return port;
}

#endif
