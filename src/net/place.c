/* place.c -- addresses: their meaning, their reach, and whether they are free.
 *
 * Owns nothing: a place is a struct of the caller. It may block to look up a
 * name of this machine. dial.c, which may not block, looks up the names of
 * other machines. */
#define _GNU_SOURCE /* struct ucred */
#include "inside.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- reach --------------------------------------------------------------- */

/* True if only this machine can reach the address. The permissions of its
 * folder protect a Unix socket. */
static bool is_private(const char *address)
{
    if (strncmp(address, "ipc://", 6) == 0 ||
        strncmp(address, "tcp://[::1]:", 12) == 0 ||
        strncmp(address, "tcp://localhost:", 16) == 0)
        return true;
    return strncmp(address, "tcp://127.", 10) == 0 &&
           address[6 + strspn(address + 6, "0123456789.")] == ':';
}

/* ---- form ---------------------------------------------------------------- */

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

kofn_status kf_place_check(const char *address, bool listens, bool anywhere)
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
    if (!anywhere && !is_private(address))
        return kf_fail(KOFN_INVAL,
                       "%s can be reached by others: give keys (made by kofn "
                       "keygen) with --keys, or say --insecure to go without",
                       address);
    return KOFN_OK;
}

/* ---- places -------------------------------------------------------------- */

static kofn_status unix_place(const char *address, kf_place *out)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&out->at;
    const char *path = address + 6;
    size_t n = strlen(path);

    if (n >= sizeof un->sun_path)
        return kf_fail(
            KOFN_INVAL,
            "address %.60s...: %zu characters; paths of sockets have "
            "at most %zu",
            address, n, sizeof un->sun_path - 1);
    *out = (kf_place){
        .bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1)};
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, n + 1);
    if (*path == '@') { /* an abstract name, without a file */
        un->sun_path[0] = '\0';
        out->bytes--;
    }
    return KOFN_OK;
}

/* Splits the part after tcp:// and removes the brackets of IPv6. */
static kofn_status split(const char *address, char *host, const char **port)
{
    const char *from = address + 6, *colon = strrchr(from, ':');
    size_t n = (size_t)(colon - from);

    if (*from == '[' && n > 1 && from[n - 1] == ']') {
        from++;
        n -= 2;
    }
    if (n >= 256)
        return kf_fail(KOFN_INVAL,
                       "address %.80s...: a name of a host has at most 255 "
                       "characters",
                       address);
    memcpy(host, from, n);
    host[n] = '\0';
    *port = strcmp(colon + 1, "*") ? colon + 1 : "0";
    return KOFN_OK;
}

/* Finds the first place of a host; returns 0, or the error of getaddrinfo. */
static int look_up(const char *host, const char *port, int family, int flags,
                   kf_place *out)
{
    const struct addrinfo hints = {
        .ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *found = NULL;
    int why = getaddrinfo(host, port, &hints, &found);

    if (why)
        return why;
    *out = (kf_place){.bytes = found->ai_addrlen};
    memcpy(&out->at, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

static int by_numbers(const char *host, const char *port, kf_place *out)
{
    return look_up(host, port, AF_UNSPEC, AI_NUMERICHOST | AI_NUMERICSERV, out);
}

kofn_status kf_place_there(const char *address, kf_place *out, char *host,
                           const char **port)
{
    if (*address == 'i')
        return unix_place(address, out);
    TRY(split(address, host, port));
    return by_numbers(host, *port, out) ? KOFN_AGAIN : KOFN_OK;
}

bool kf_place_everywhere(const char *address)
{
    return strncmp(address, "tcp://*:", 8) == 0;
}

/* localhost is replaced by its number. A name service must not decide its
 * meaning, since it may be used without keys. */
kofn_status kf_place_here(const char *address, bool any_v6, kf_place *out)
{
    char host[256];
    const char *port;
    int why;

    if (*address == 'i')
        return unix_place(address, out);
    TRY(split(address, host, &port));
    /* listen.c tries IPv6 first, which serves IPv4 too */
    if (!strcmp(host, "*"))
        strcpy(host, any_v6 ? "::" : "0.0.0.0");
    if (!strcmp(host, "localhost"))
        strcpy(host, "127.0.0.1");
    why = by_numbers(host, port, out);
    if (why)
        why = look_up(host, port, AF_INET, 0, out);
    if (why)
        why = look_up(host, port, AF_INET6, 0, out);
    return why ? kf_fail(KOFN_TRANSPORT,
                         "cannot listen at %s: %s: %s; this machine has no "
                         "such address; give one of its own names, or "
                         "tcp://*:PORT",
                         address, host, gai_strerror(why))
               : KOFN_OK;
}

/* ---- names --------------------------------------------------------------- */

/* True if the IPv6 address represents an IPv4 address, which is then in
 * `out`. */
static bool is_mapped(const struct sockaddr *at, struct sockaddr_storage *out)
{
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)at;
    struct sockaddr_in *four = (struct sockaddr_in *)out;

    if (at->sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        return false;
    *out = (struct sockaddr_storage){0};
    four->sin_family = AF_INET;
    four->sin_port = six->sin6_port;
    memcpy(&four->sin_addr, six->sin6_addr.s6_addr + 12, 4);
    return true;
}

void kf_place_text(const struct sockaddr *at, char *out, size_t room)
{
    struct sockaddr_storage plain;
    bool v6;
    char host[80] = "?", port[8] = "0";

    if (is_mapped(at, &plain))
        at = (const struct sockaddr *)&plain;
    v6 = at->sa_family == AF_INET6;

    if (at->sa_family != AF_INET && !v6) {
        snprintf(out, room, "this machine");
        return;
    }
    (void)getnameinfo(at, sizeof(struct sockaddr_storage), host, sizeof host,
                      port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(out, room, v6 ? "[%s]:%s" : "%s:%s", host, port);
}

void kf_place_principal(int fd, char *out, size_t room)
{
    struct sockaddr_storage at = {0};
    socklen_t bytes = sizeof at;
    struct ucred who = {0};
    socklen_t size = sizeof who;
    char *colon;

    snprintf(out, room, "this machine");
    if (getpeername(fd, (struct sockaddr *)&at, &bytes))
        return;
    if (at.ss_family != AF_UNIX) {
        kf_place_text((const struct sockaddr *)&at, out, room);
        colon = strrchr(out, ':');
        if (colon)
            *colon = '\0';
    } else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0) {
        snprintf(out, room, "user %u", (unsigned)who.uid);
    }
}

void kf_place_listens(const char *endpoint, char out[KF_LISTENS])
{
    static const char local[] = "ipc://";
    const char *at = strrchr(endpoint, ':');

    memset(out, 0, KF_LISTENS);
    if (strncmp(endpoint, local, strlen(local)) == 0)
        at = endpoint + strlen(local);
    else
        at = at ? at + 1 : "";
    if (strlen(at) < KF_LISTENS)
        memcpy(out, at, strlen(at));
}

/* True if the text is not empty and all characters are in first..last. */
static bool is_of(const char *text, char first, char last)
{
    for (const char *c = text; *c; c++)
        if (*c < first || *c > last)
            return false;
    return *text != '\0';
}

void kf_place_rename(char *name, size_t room, bool local,
                     const char listens[KF_LISTENS])
{
    char *colon = strrchr(name, ':'), host[80];

    if (!memchr(listens, 0, KF_LISTENS))
        return;
    if (local && is_of(listens, '!', '~'))
        snprintf(name, room, "ipc://%s", listens);
    if (local || !colon || strlen(listens) > 5 || !is_of(listens, '0', '9') ||
        (size_t)(colon - name) >= sizeof host)
        return;
    snprintf(host, sizeof host, "%.*s", (int)(colon - name), name);
    snprintf(name, room, "tcp://%s:%s", host, listens);
}

/* ---- free addresses ------------------------------------------------------ */

static bool somebody_listens(const char *address)
{
    kf_place at;
    bool yes = false;
    int s;

    kf_low_begin();
    s = kf_low_end(
        socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (s < 0)
        return false;
    if (!unix_place(address, &at))
        yes = connect(s, (const struct sockaddr *)&at.at, at.bytes) == 0 ||
              errno == EAGAIN; /* it listens, but its queue is full */
    close(s);
    return yes;
}

kofn_status kf_place_vacant(const char *address)
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
    return somebody_listens(address)
               ? kf_fail(
                     KOFN_TRANSPORT,
                     "cannot listen at %s: another process does already; name "
                     "another path",
                     address)
               : KOFN_OK;
}

const char *kf_place_advice(int error)
{
    switch (error) {
    case EADDRINUSE:
        return "take another port, or * for any that is free";
    case EADDRNOTAVAIL:
        return "this machine has no such address; tcp://*:PORT is all it has";
    case ENOENT:
        return "make its folder first";
    case EACCES:
        return "it is not for this user";
    case EMFILE:
    case ENFILE:
        return "raise ulimit -n";
    default:
        return "addresses are tcp://*:PORT, tcp://HOST:PORT or ipc://PATH";
    }
}
