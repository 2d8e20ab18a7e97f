/* zmq_hand.h -- hostile ends of the ZeroMQ transport, made by hand of ZMTP 3.0
 * (RFC 23) on plain sockets, and a process in which a transport listens
 * meanwhile. */
#ifndef ZMQ_HAND_H
#define ZMQ_HAND_H

#define _GNU_SOURCE /* signals, clocks and limits */
#include "zmq_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- by hand ------------------------------------------------------------- */

static inline int plain(const char *address)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    const struct timeval patience = {LIMIT / KOFN_SECOND, 0};
    /* who was shut down while the other end had no room hears of it only after a
     * minute, from the system */
    const struct timeval brief = {5, 0};
    bool is_unix = *address == 'i';
    int fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM, 0);

    if (fd < 0)
        return fd;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof brief);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    in.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    if (is_unix)
        snprintf(un.sun_path, sizeof un.sun_path, "%.107s", address + 6);
    if (is_unix ? connect(fd, (struct sockaddr *)&un, sizeof un)
                : connect(fd, (struct sockaddr *)&in, sizeof in)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* How much of it was taken. */
static inline size_t put(int fd, const void *bytes, size_t n)
{
    size_t at = 0;

    while (at < n) {
        ssize_t k = send(fd, (const char *)bytes + at, n - at, MSG_NOSIGNAL);

        if (k <= 0)
            break;
        at += (size_t)k;
    }
    return at;
}

static inline bool get(int fd, void *into, size_t n)
{
    return recv(fd, into, n, MSG_WAITALL) == (ssize_t)n;
}

static inline bool greet(int fd, const char *mechanism)
{
    unsigned char mine[64] = {0xff, [9] = 0x7f, [10] = 3}, theirs[64];

    memcpy(mine + 12, mechanism, strlen(mechanism));
    return put(fd, mine, sizeof mine) == sizeof mine &&
           get(fd, theirs, sizeof theirs);
}

/* READY, as a DEALER of that name. */
static inline bool ready(int fd, char channel, const unsigned char *token)
{
    static const char begin[] = "\4\0\5READY\13Socket-Type\0\0\0\6DEALER"
                                "\10Identity\0\0\0\22";
    unsigned char command[256];
    size_t n = sizeof begin - 1;

    memcpy(command, begin, n);
    command[n++] = 'k';
    command[n++] = (unsigned char)channel;
    memcpy(command + n, token, KF_TOKEN);
    n += KF_TOKEN;
    command[1] = (unsigned char)(n - 2);
    return put(fd, command, n) == n && get(fd, command, 2) &&
           get(fd, command + 2, command[1]);
}

static inline void hello(int fd)
{
    const kf_greeting note = {KF_MAGIC, KF_HELLO, {0}, {0}};
    unsigned char frame[2 + sizeof note] = {0, sizeof note};

    memcpy(frame + 2, &note, sizeof note);
    assert_int_equal(put(fd, frame, sizeof frame), sizeof frame);
}

/* Who has said HELLO on both connections is a peer. */
static inline bool welcome(int bulk)
{
    unsigned char frame[2 + sizeof(kf_greeting)];

    return get(bulk, frame, sizeof frame);
}

/* A long frame's head. */
static inline size_t begin_frame(int fd, unsigned char flags, uint64_t n)
{
    unsigned char head[9] = {flags | 2};

    for (int i = 0; i < 8; i++)
        head[1 + i] = (unsigned char)(n >> 8 * (7 - i));
    return put(fd, head, sizeof head);
}

/* Frames of a message that does not end, until the other end has enough or
 * `most` MiB are sent; how many were. */
static inline size_t endless(int fd, size_t most)
{
    char *frame = calloc(MEGA, 1);
    size_t sent = 0;

    assert_non_null(frame);
    while (sent < most && begin_frame(fd, 1, MEGA) == 9 &&
           put(fd, frame, MEGA) == MEGA)
        sent++;
    free(frame);
    return sent;
}

/* Does the other end hang up, whatever it says before? */
static inline bool ends(int fd)
{
    char bytes[4096];
    ssize_t n;

    do
        n = recv(fd, bytes, sizeof bytes, 0); /* plain() has patience */
    while (n > 0);
    return n == 0 || errno == ECONNRESET;
}

/* ---- a transport that listens meanwhile ---------------------------------- */

typedef struct house {
    pid_t pid;
    int ask, tell; /* pipes: to end it; its address, then what it says */
    char address[160];
} house;

#define LOOKS 20000 /* at least 100 s until all who end are seen to */

typedef struct findings {
    long grown; /* KiB */
    unsigned ended, silent, came, told;
    double seconds;
    bool file;
    char news[200];
} findings;

static inline void count_strangers(kofn_transport *t, findings *f)
{
    kf_refused is = kf_doors_refused(((kf_transport *)t)->doors);

    f->ended = (unsigned)(is.full + is.crowd + is.flood);
    f->silent = (unsigned)is.silent;
}

/* Listens until it is told to end, and then until as many strangers as it is told
 * are gone or were ended: ZeroMQ sees that in its own time. */
static inline void keep_house(int ask, int tell, const char *address,
                              const kofn_zmq_options *o, rlim_t files)
{
    const struct rlimit limit = {files, files};
    kofn_transport *t;
    findings f = {0};
    char at[160] = "";
    kofn_time start = kf_clock();
    unsigned gone = 0, looks = 0;
    long before;

    if (files)
        setrlimit(RLIMIT_NOFILE, &limit);
    if (kofn_zmq_listen(&t, address, o))
        _exit(1);
    snprintf(at, sizeof at, "%s", kofn_zmq_endpoint(t));
    if (write(tell, at, sizeof at) != sizeof at)
        _exit(2);
    before = memory();
    while ((!looks && read(ask, &gone, sizeof gone) != sizeof gone) ||
           (f.silent + f.ended < gone && looks++ < LOOKS)) {
        const char *news = t->news(t);
        kofn_packet p;

        if (news)
            snprintf(f.news, sizeof f.news, "%s", news);
        f.told += news != NULL;
        if (t->wait(t, 5 * MILLI, &p))
            continue;
        f.came += p.what == KOFN_CAME;
        if (p.what == KOFN_PACKET) {
            t->send(t, p.peer, p.head, p.head_bytes, NULL, 0, false, NULL,
                    NULL);
            t->release(t, p.own);
        }
        count_strangers(t, &f);
    }
    f.grown = memory() - before;
    f.seconds = (double)(kf_clock() - start) * 1e-9;
    count_strangers(t, &f);
    f.file = open("/dev/null", O_RDONLY) >= 0;
    if (write(tell, &f, sizeof f) != sizeof f)
        _exit(3);
    t->close(t, 0);
    _exit(0);
}

static inline house open_house(const char *address, const kofn_zmq_options *o,
                               rlim_t files)
{
    int ask[2], tell[2];
    house h;

    assert_int_equal(pipe(ask), 0);
    assert_int_equal(pipe(tell), 0);
    h.pid = fork();
    if (h.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* where a test fails */
        fcntl(ask[0], F_SETFL, O_NONBLOCK);
        keep_house(ask[0], tell[1], address, o, files);
    }
    close(ask[0]);
    close(tell[1]);
    h.ask = ask[1];
    h.tell = tell[0];
    assert_int_equal(read(h.tell, h.address, sizeof h.address),
                     sizeof h.address);
    return h;
}

/* It is still alive, and says what it has seen when so many are gone. */
static inline findings close_when_gone(house *h, unsigned gone)
{
    findings f;
    int status;

    assert_int_equal(write(h->ask, &gone, sizeof gone), sizeof gone);
    assert_int_equal(read(h->tell, &f, sizeof f), sizeof f);
    assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
    assert_int_equal(status, 0);
    close(h->ask);
    close(h->tell);
    return f;
}

static inline findings close_house(house *h)
{
    return close_when_gone(h, 0);
}

/* Somebody honest is let in and heard. */
static inline void visit(const house *h, const kofn_zmq_options *o)
{
    kofn_transport *t;
    kofn_peer peer;

    assert_ok(kofn_zmq_connect(&t, h->address, o));
    peer = came(t, NULL);
    say(t, peer, "still there?");
    hear(t, peer, "still there?");
    t->close(t, 0);
}

/* As many descriptors as this user may have. */
static inline void begin_by_hand(void)
{
    struct rlimit files;

    signal(SIGPIPE, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    name_socket();
}

#endif
