/* address.c -- whether an address is one, who can reach it, and whether it may
 * be taken. */
#include "inside.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LONG ((size_t)8 << 20) /* a body */
#define NUMBERS (KF_ADDRESS - 16)

/* ---- reaching ------------------------------------------------------------ */

bool kf_address_v4(const char *address)
{
    const char *host = address + 6; /* behind tcp:// */

    return strncmp(address, "tcp://", 6) == 0 && host[0] >= '0' &&
           host[0] <= '9' && host[strspn(host, "0123456789.")] == ':';
}

/* Behind tcp:// something that is looked up: not numbers, nor any interface. */
bool kf_address_is_name(const char *address)
{
    const char *host = address + 6, *colon = strrchr(address, ':');

    return strncmp(address, "tcp://", 6) == 0 && colon > host && *host != '[' &&
           *host != '*' && strchr(host, ':') == colon &&
           !kf_address_v4(address);
}

bool kf_address_is_localhost(const char *address)
{
    return strncmp(address, "tcp://localhost:", 16) == 0;
}

/* Unix sockets are kept by the permissions of their folder, and the loopback
 * by the machine. */
static bool is_private(const char *address)
{
    if (strncmp(address, "ipc://", 6) == 0 ||
        strncmp(address, "tcp://[::1]:", 12) == 0 ||
        kf_address_is_localhost(address))
        return true;
    return strncmp(address, "tcp://127.", 10) == 0 && kf_address_v4(address);
}

/* ---- form ---------------------------------------------------------------- */

/* ZeroMQ takes ports modulo 65536, and no port for a hidden one. */
static bool is_port(const char *text, bool listens)
{
    size_t digits = strspn(text, "0123456789");

    if (listens && (!strcmp(text, "*") || !strcmp(text, "0")))
        return true;
    return digits && digits <= 5 && !text[digits] && atoi(text) > 0 &&
           atoi(text) <= 65535;
}

static kofn_status check_tcp(const char *address, bool listens)
{
    const char *host = address + 6, *colon = strrchr(host, ':');
    const char *bracket = strrchr(host, ']');

    if (!colon || (bracket && colon < bracket))
        return kf_fail(KOFN_INVAL,
                       "address %s has no port; a port is a number behind a "
                       "colon, as in tcp://%s:5555",
                       address, *host ? host : "HOST");
    if (!is_port(colon + 1, listens))
        return kf_fail(
            KOFN_INVAL, "address %s: \"%s\" is no port; ports are 1 to 65535%s",
            address, colon + 1, listens ? ", or * for any that is free" : "");
    if (colon == host)
        return kf_fail(KOFN_INVAL, "address %s has no host; give %s%s", address,
                       listens ? "* for every interface, tcp://*"
                               : "the coordinator's, tcp://HOST",
                       colon);
    if (!listens && *host == '*')
        return kf_fail(KOFN_INVAL,
                       "address %s: * is where one listens; give the "
                       "coordinator's host, tcp://HOST%s",
                       address, colon);
    return KOFN_OK;
}

kofn_status kf_address_check(const char *address, bool listens,
                             const kf_set *set)
{
    if (strncmp(address, "ipc://", 6) != 0 &&
        strncmp(address, "tcp://", 6) != 0)
        return kf_fail(KOFN_INVAL,
                       "address '%s': addresses are tcp://*:PORT, "
                       "tcp://HOST:PORT or ipc://PATH",
                       address);
    if (!address[6] && *address == 'i')
        return kf_fail(KOFN_INVAL, "address ipc:// has no path; give "
                                   "ipc://PATH");
    if (*address == 't')
        TRY(check_tcp(address, listens));
    if (!set->own.count && !set->insecure && !is_private(address))
        return kf_fail(KOFN_INVAL,
                       "%s can be reached by others: give keys "
                       "(made by kofn keygen) with --keys, or say --insecure "
                       "to go without",
                       address);
    return KOFN_OK;
}

/* ---- taking -------------------------------------------------------------- */

/* The first of a family as its numbers; false: there is none. */
static bool numbers_of(const struct addrinfo *found, int family,
                       char text[NUMBERS])
{
    while (found && found->ai_family != family)
        found = found->ai_next;
    return found && getnameinfo(found->ai_addr, found->ai_addrlen, text,
                                NUMBERS, NULL, 0, NI_NUMERICHOST) == 0;
}

static kofn_status look_up(const char *address, const char *host,
                           char text[NUMBERS], bool *six)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int why = getaddrinfo(host, NULL, &hints, &found);

    *six = false;
    if (!why && !numbers_of(found, AF_INET, text)) {
        *six = numbers_of(found, AF_INET6, text);
        why = *six ? 0 : EAI_NONAME;
    }
    if (found)
        freeaddrinfo(found);
    return why ? kf_fail(KOFN_TRANSPORT,
                         "cannot listen at %s: %s: %s; this machine has no "
                         "such address; give a name of its own, or "
                         "tcp://*:PORT",
                         address, host, gai_strerror(why))
               : KOFN_OK;
}

/* What a name of the loopback means is not for others to say: it may be used
 * without keys. */
kofn_status kf_address_numbers(const char *address, char out[KF_ADDRESS])
{
    const char *host = address + 6, *port = strrchr(address, ':');
    char name[256], text[NUMBERS] = "127.0.0.1";
    bool six = false;

    if (port - host >= (ptrdiff_t)sizeof name || strlen(port) > 6)
        return kf_fail(KOFN_INVAL,
                       "cannot listen at %.80s...: a name of a host has at "
                       "most 255 characters",
                       address);
    snprintf(name, sizeof name, "%.*s", (int)(port - host), host);
    if (!kf_address_is_localhost(address))
        TRY(look_up(address, name, text, &six));
    snprintf(out, KF_ADDRESS, six ? "tcp://[%s]%s" : "tcp://%s%s", text, port);
    return KOFN_OK;
}

static bool somebody_listens(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    size_t n = strlen(path);
    bool yes;

    if (s < 0 || n >= sizeof at.sun_path) {
        if (s >= 0)
            close(s);
        return false;
    }
    memcpy(at.sun_path, path, n);
    yes = connect(s, (const struct sockaddr *)&at, sizeof at) == 0 ||
          errno == EAGAIN; /* so many come that it has no time */
    close(s);
    return yes;
}

kofn_status kf_address_vacant(const char *address)
{
    const char *path = address + 6;
    struct stat s;

    if (*address != 'i' || *path == '@' || lstat(path, &s))
        return KOFN_OK;
    if (!S_ISSOCK(s.st_mode))
        return kf_fail(KOFN_INVAL,
                       "cannot listen at %s: there is something else already; "
                       "name a path where nothing is",
                       address);
    return somebody_listens(path)
               ? kf_fail(KOFN_TRANSPORT,
                         "cannot listen at %s: somebody does already; name "
                         "another path",
                         address)
               : KOFN_OK;
}

/* Where there are keys all others are strangers, who may begin with a message
 * as long as any, and encrypting costs far more than putting together. */
size_t kf_address_whole(const char *address, const kf_set *set)
{
    return *address == 't' && set->own.count ? KF_CHUNK
                                             : kf_max(set->body_max, KF_CHUNK);
}

/* ZeroMQ counts messages, not bytes.  With few of them it spends as much time
 * on telling that there is room again as on small messages themselves; but
 * where others can connect, who sends long ones is not to fill the memory. */
size_t kf_address_ahead(const char *address, const kf_set *set)
{
    size_t whole = kf_address_whole(address, set);
    size_t least = *address == 't' && whole > LONG ? 4 : 8;

    return kf_max(least, kf_min(1000, set->peer_bytes / whole));
}

kf_greeting kf_address_greeting(const char *address, const kf_set *set,
                                kf_word word)
{
    kf_greeting note = {KF_MAGIC, (char)word, {0}, {0}};
    uint64_t whole = kf_address_whole(address, set);

    memcpy(note.node, set->node, KF_TOKEN);
    for (int i = 0; i < 8; i++)
        note.whole[i] = (unsigned char)(whole >> 8 * i);
    return note;
}

const char *kf_address_advice(int error)
{
    switch (error) {
    case EADDRINUSE:
        return "take another port, or * for any that is free";
    case ENODEV: /* as ZeroMQ calls a name that is not this machine's */
    case EADDRNOTAVAIL:
        return "this machine has no such address; tcp://*:PORT is all it has";
    case ENAMETOOLONG:
        return "paths of sockets have at most 107 characters";
    case ENOENT:
        return "make its folder first";
    case EACCES:
        return "it is not for this user";
    default:
        return "addresses are tcp://*:PORT, tcp://HOST:PORT or ipc://PATH";
    }
}
