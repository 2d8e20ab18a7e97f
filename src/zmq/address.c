/* address.c -- who can reach an address. */
#include "inside.h"

bool kf_address_v4(const char *address)
{
    const char *host = address + 6; /* behind tcp:// */

    return strncmp(address, "tcp://", 6) == 0 && host[0] >= '0' &&
           host[0] <= '9' && host[strspn(host, "0123456789.")] == ':';
}

/* Unix sockets are kept by the permissions of their folder, and the loopback
 * by the machine. */
static bool is_private(const char *address)
{
    static const char *const local[] = {"tcp://localhost:", "tcp://[::1]:"};

    if (strncmp(address, "ipc://", 6) == 0)
        return true;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (strncmp(address, local[i], strlen(local[i])) == 0)
            return true;
    return strncmp(address, "tcp://127.", 10) == 0 && kf_address_v4(address);
}

kofn_status kf_address_check(const char *address, const kf_set *set)
{
    if (strncmp(address, "ipc://", 6) != 0 &&
        strncmp(address, "tcp://", 6) != 0)
        return kf_fail(KOFN_INVAL,
                       "address '%s': addresses are tcp://*:PORT, "
                       "tcp://HOST:PORT or ipc://PATH",
                       address);
    if (!set->own.count && !set->insecure && !is_private(address))
        return kf_fail(KOFN_INVAL,
                       "%s can be reached by others: give keys "
                       "(made by kofn keygen) with --keys, or say --insecure "
                       "to go without",
                       address);
    return KOFN_OK;
}
