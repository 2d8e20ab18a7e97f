/* zmq_floods_test.c -- what strangers and peers can make the ZeroMQ transport
 * pay: memory, descriptors, time.
 *
 * Hostile ends are made by hand, of ZMTP 3.0 (RFC 23) on plain sockets.
 */
#define _GNU_SOURCE /* signals, clocks and limits */
#include "zmq_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- by hand ------------------------------------------------------------- */

static int plain(const char *address)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    const struct timeval patience = {5, 0};
    bool is_unix = *address == 'i';
    int fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM, 0);

    if (fd < 0)
        return fd;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    in.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    if (is_unix)
        snprintf(un.sun_path, sizeof un.sun_path, "%s", address + 6);
    if (is_unix ? connect(fd, (struct sockaddr *)&un, sizeof un)
                : connect(fd, (struct sockaddr *)&in, sizeof in)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* How much of it was taken. */
static size_t put(int fd, const void *bytes, size_t n)
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

static bool get(int fd, void *into, size_t n)
{
    return recv(fd, into, n, MSG_WAITALL) == (ssize_t)n;
}

static bool greet(int fd, const char *mechanism)
{
    unsigned char mine[64] = {0xff, [9] = 0x7f, [10] = 3}, theirs[64];

    memcpy(mine + 12, mechanism, strlen(mechanism));
    return put(fd, mine, sizeof mine) == sizeof mine &&
           get(fd, theirs, sizeof theirs);
}

/* READY, as a DEALER of that name. */
static bool ready(int fd, char channel, const unsigned char *token)
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

static void hello(int fd)
{
    const kf_greeting note = {KF_MAGIC, KF_HELLO, {0}, {0}};
    unsigned char frame[2 + sizeof note] = {0, sizeof note};

    memcpy(frame + 2, &note, sizeof note);
    assert_int_equal(put(fd, frame, sizeof frame), sizeof frame);
}

/* A long frame's head. */
static size_t begin_frame(int fd, unsigned char flags, uint64_t n)
{
    unsigned char head[9] = {flags | 2};

    for (int i = 0; i < 8; i++)
        head[1 + i] = (unsigned char)(n >> 8 * (7 - i));
    return put(fd, head, sizeof head);
}

/* Frames of a message that does not end, until the other end has enough or
 * `most` MiB are sent; how many were. */
static size_t endless(int fd, size_t most)
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
static bool ends(int fd)
{
    char bytes[4096];

    for (int silent = 0; silent < 4;) { /* plain() has patience */
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);

        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return true;
        silent += n < 0;
    }
    return false;
}

/* ---- a transport that listens meanwhile ---------------------------------- */

static long memory(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss; /* KiB */
}

typedef struct house {
    pid_t pid;
    int ask, tell; /* pipes: to end it; its address, then what it says */
    char address[160];
} house;

typedef struct findings {
    long grown; /* KiB */
    unsigned ended, silent, came, told;
    double seconds;
    bool file;
    char news[200];
} findings;

/* Listens until it is told to end, and gives back what it gets. */
static void keep_house(int ask, int tell, const char *address,
                       const kofn_zmq_options *o, rlim_t files)
{
    const struct rlimit limit = {files, files};
    kofn_transport *t;
    findings f = {0};
    char at[160] = "";
    kofn_time start = kf_clock();
    kf_refused is;
    long before;

    if (files)
        setrlimit(RLIMIT_NOFILE, &limit);
    if (kofn_zmq_listen(&t, address, o))
        _exit(1);
    snprintf(at, sizeof at, "%s", kofn_zmq_endpoint(t));
    if (write(tell, at, sizeof at) != sizeof at)
        _exit(2);
    before = memory();
    while (read(ask, at, 1) != 1) {
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
    }
    f.grown = memory() - before;
    f.seconds = (double)(kf_clock() - start) * 1e-9;
    is = kf_doors_refused(((kf_transport *)t)->doors);
    f.ended = (unsigned)(is.full + is.crowd + is.flood);
    f.silent = (unsigned)is.silent;
    f.file = open("/dev/null", O_RDONLY) >= 0;
    if (write(tell, &f, sizeof f) != sizeof f)
        _exit(3);
    t->close(t, 0);
    _exit(0);
}

static house open_house(const char *address, const kofn_zmq_options *o,
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

/* It is still alive, and says what it has seen. */
static findings close_house(house *h)
{
    findings f;
    int status;

    assert_int_equal(write(h->ask, "x", 1), 1);
    assert_int_equal(read(h->tell, &f, sizeof f), sizeof f);
    assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
    assert_int_equal(status, 0);
    close(h->ask);
    close(h->tell);
    return f;
}

/* Somebody honest is let in and heard. */
static void visit(const house *h, const kofn_zmq_options *o)
{
    kofn_transport *t;
    kofn_peer peer;

    assert_ok(kofn_zmq_connect(&t, h->address, o));
    peer = came(t, NULL);
    say(t, peer, "still there?");
    hear(t, peer, "still there?");
    t->close(t, 0);
}

/* ---- memory -------------------------------------------------------------- */

#define LITTLE (100 * 1024) /* KiB; the attacks below offer 512 MiB and more */
#define LONGEST (8 * MEGA)  /* a body that is allowed */

static const kofn_zmq_options bounded = {.body_max = LONGEST,
                                         .silence = 10 * KOFN_SECOND};

/* A message that does not end, of one who has not said who it is. */
static void endless_messages_of_strangers(void **state)
{
    static const unsigned char token[KF_TOKEN] = {5};

    (void)state;
    for (int w = 0; w < 2; w++) {
        house h = open_house(addresses[w], &patient, 0);
        int fd = plain(h.address);
        findings f;

        assert_true(greet(fd, "NULL") && ready(fd, KF_BULK, token));
        assert_true(endless(fd, 2048) < 2048);
        close(fd);
        visit(&h, &patient);
        f = close_house(&h);
        assert_true(f.grown <
                    512 * 1024); /* KiB: who looks may be kept waiting */
        assert_true(f.ended >= 1);
        assert_non_null(strstr(f.news, "more than a message may have"));
    }
}

/* ... and of a peer, who is let in and heard. */
static void endless_messages_of_peers(void **state)
{
    static const unsigned char token[KF_TOKEN] = {6};
    house h = open_house(addresses[0], &bounded, 0);
    int bulk = plain(h.address), urgent = plain(h.address);
    findings f;

    (void)state;
    assert_true(greet(bulk, "NULL") && ready(bulk, KF_BULK, token));
    assert_true(greet(urgent, "NULL") && ready(urgent, KF_URGENT, token));
    hello(bulk);
    hello(urgent);
    nap(100 * MILLI);
    assert_true(endless(bulk, 2048) < 2048);
    close(bulk);
    close(urgent);
    visit(&h, &patient);
    f = close_house(&h);
    assert_int_equal(f.came, 2);
    /* What a peer may send ahead, and what comes between two looks. */
    assert_true(f.grown < 1024 * 1024);
    assert_true(f.ended >= 1);
}

/* Whoever begins a frame that is longer than the longest body that is allowed
 * and a head is disconnected before more of it is received. */
static void long_frames(void **state)
{
    static const unsigned char token[KF_TOKEN] = {8};

    (void)state;
    for (int w = 0; w < 2; w++) {
        house h = open_house(addresses[w], &bounded, 0);
        int bulk = plain(h.address), urgent = plain(h.address);

        assert_true(greet(bulk, "NULL") && ready(bulk, KF_BULK, token));
        assert_true(greet(urgent, "NULL") && ready(urgent, KF_URGENT, token));
        hello(bulk);
        hello(urgent);
        assert_int_equal(begin_frame(bulk, 0, LONGEST + KF_LEAD + 1), 9);
        assert_true(ends(bulk));
        visit(&h, &patient);
        close(bulk);
        close(urgent);
        close_house(&h);
    }
}

/* Many strangers begin a frame of so many bytes, and send them; those without
 * a key as a handshake, the others as a message. */
static void claim(const house *h, const kofn_zmq_options *o, size_t bytes)
{
    static const unsigned char token[KF_TOKEN] = {7};
    char *junk = calloc(MEGA, 1);
    int fd[64];

    assert_non_null(junk);
    for (int i = 0; i < 64; i++) {
        fd[i] = plain(h->address);
        assert_true(fd[i] >= 0);
        if (o->keys)
            assert_true(greet(fd[i], "CURVE"));
        else
            assert_true(greet(fd[i], "NULL") && ready(fd[i], KF_BULK, token));
        begin_frame(fd[i], o->keys ? 4 : 0, bytes);
        for (size_t n = bytes; n > 0 && put(fd[i], junk, MEGA / 2);
             n -= kf_min(n, MEGA / 2))
            ;
    }
    visit(h, o);
    for (int i = 0; i < 64; i++)
        close(fd[i]);
    free(junk);
}

static void claim_all(const kofn_zmq_options *o, size_t longest)
{
    house h = open_house(addresses[0], o, 0);
    findings f;

    for (int turn = 0; turn < 2; turn++)
        claim(&h, o, longest - 1);
    claim(&h, o, 32 * MEGA);
    f = close_house(&h);
    assert_true(f.grown < LITTLE);
    assert_true(f.silent >= 3 * 64);
}

/* Handshakes that are long, or claim to be, of many who have no key. */
static void long_handshakes(void **state)
{
    char keys[] = "/tmp/kofn-keys-XXXXXX";
    const kofn_zmq_options o = {.keys = keys, .silence = 10 * KOFN_SECOND};

    (void)state;
    make_keys(keys);
    claim_all(&o, KF_CHUNK);
    erase_keys(keys);
}

/* ... and where there are no keys messages as long as a peer's may be, which
 * make no difference to what a stranger costs; all under one name, of which
 * ZeroMQ would keep for ever what the second and later ones have sent. */
static void long_messages(void **state)
{
    (void)state;
    claim_all(&bounded, LONGEST);
}

/* ---- descriptors --------------------------------------------------------- */

/* More come than descriptors are left: the process lives, its peers are served,
 * files can be opened, and who is honest comes in. */
static void more_than_there_are_descriptors(void **state)
{
    (void)state;
    for (int w = 0; w < 2; w++) {
        house h = open_house(addresses[w], &patient, 1024);
        kofn_transport *t;
        kofn_peer peer;
        int fd[1500];
        findings f;

        assert_ok(kofn_zmq_connect(&t, h.address, &patient));
        peer = came(t, NULL);
        for (int i = 0; i < 1500; i++) {
            fd[i] = plain(h.address);
            if (i % 8 == 0)
                nap(MILLI);
        }
        say(t, peer, "mine");
        hear(t, peer, "mine");
        visit(&h, &patient);
        for (int i = 0; i < 1500; i++)
            if (fd[i] >= 0)
                close(fd[i]);
        t->close(t, 0);
        f = close_house(&h);
        assert_true(f.file);
        assert_true(f.ended >= 500);
        assert_non_null(strstr(f.news, "ulimit -n"));
        assert_true(f.told <= 1 + f.seconds / 10);
    }
}

/* As many at once as the system takes, where there are few descriptors: on a
 * Unix socket ZeroMQ would end the process. */
static void bursts(void **state)
{
    (void)state;
    for (int w = 0; w < 2; w++) {
        house h = open_house(addresses[w], &patient, 64);

        for (int turn = 0; turn < 20; turn++) {
            int fd[500];

            for (int i = 0; i < 500; i++)
                fd[i] = plain(h.address);
            for (int i = 0; i < 500; i++)
                if (fd[i] >= 0)
                    close(fd[i]);
        }
        visit(&h, &patient);
        assert_true(close_house(&h).file);
    }
}

static void too_few_descriptors(void **state)
{
    int tell[2], status;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(tell), 0);
    pid = fork();
    if (pid == 0) {
        const struct rlimit few = {20, 20};
        kofn_transport *t;
        int bad = 0;

        setrlimit(RLIMIT_NOFILE, &few);
        bad |= kofn_zmq_listen(&t, addresses[0], NULL) != KOFN_TRANSPORT;
        bad |= !strstr(kofn_errmsg(), "raise ulimit -n") << 1;
        bad |=
            (kofn_zmq_connect(&t, "tcp://127.0.0.1:9", NULL) != KOFN_TRANSPORT)
            << 2;
        bad |= !strstr(kofn_errmsg(), "of 20 file descriptors") << 3;
        _exit(bad);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(tell[0]);
    close(tell[1]);
}

/* ---- who says nothing ---------------------------------------------------- */

static bool is_ended(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Time and descriptors by hand: the doors do not care where they are from. */
static void the_doors(void **state)
{
    kf_doors *d = kf_doors_new(3, MEGA);
    kofn_time now = KOFN_SECOND;
    int end[6][2];
    int gone = 0;

    (void)state;
    assert_non_null(d);
    for (int i = 0; i < 6; i++)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, end[i]), 0);
    for (int i = 0; i < 3; i++)
        kf_doors_event(d, true, end[i][0], now);
    kf_doors_peer(d, end[0][0], kf_doors_let_in(d));
    /* Nobody listened, perhaps for want of time. */
    assert_true(kf_doors_look(d, now + 60 * KOFN_SECOND) < KOFN_SECOND);
    for (int i = 0; i < 3; i++)
        assert_false(is_ended(end[i][1]));
    /* Peers and three strangers; of four one goes, and no peer. */
    kf_doors_event(d, true, end[3][0], now);
    kf_doors_event(d, true, end[4][0], now + 5 * KOFN_SECOND);
    for (int i = 0; i < 5; i++)
        gone += is_ended(end[i][1]);
    assert_int_equal(gone, 1);
    assert_int_equal(kf_doors_refused(d).crowd, 1);
    assert_false(is_ended(end[0][1]));
    assert_false(is_ended(end[4][1]));
    /* Ten seconds later everything that had come was received. */
    kf_doors_listened(d, now + 11 * KOFN_SECOND);
    kf_doors_look(d, now + 11 * KOFN_SECOND);
    for (int i = 1; i < 4; i++)
        assert_true(is_ended(end[i][1]));
    assert_false(is_ended(end[0][1]));
    assert_false(is_ended(end[4][1]));
    /* Who was told to go, and does not. */
    kf_doors_end(d, end[0][0], 1, now + 12 * KOFN_SECOND);
    kf_doors_look(d, now + 11 * KOFN_SECOND + KOFN_SECOND / 2);
    assert_false(is_ended(end[0][1]));
    kf_doors_look(d, now + 13 * KOFN_SECOND);
    assert_true(is_ended(end[0][1]));
    for (int i = 0; i < 6; i++) {
        close(end[i][0]);
        close(end[i][1]);
    }
    kf_doors_free(d);
}

/* Two connections of one name, of which the first goes on sending: ZeroMQ does
 * not end it any more, and keeps its descriptor. */
static void leave_one(const house *h)
{
    static const unsigned char token[KF_TOKEN] = {10};
    const unsigned char frame[4] = {0, 2, 'h', 'i'};
    int fd[2];

    for (int i = 0; i < 2; i++) {
        fd[i] = plain(h->address);
        assert_true(greet(fd[i], "NULL") && ready(fd[i], KF_BULK, token));
    }
    put(fd[0], frame, sizeof frame);
    close(fd[0]);
    close(fd[1]);
}

/* They cost descriptors, but keep nobody out who is no stranger for long. */
static void leftovers(void **state)
{
    kofn_zmq_options o = patient;

    (void)state;
    o.strangers = 4;
    for (int w = 0; w < 2; w++) {
        house h = open_house(addresses[w], &o, 0);

        for (int i = 0; i < 20; i++)
            leave_one(&h);
        visit(&h, &patient);
        assert_true(close_house(&h).file);
    }
}

/* ---- long bodies --------------------------------------------------------- */

#ifndef __SANITIZE_THREAD__ /* it takes milliseconds for every number */
typedef struct taste {
    size_t asked;
    bool wanted;
} taste;

static bool wants(void *ud, kofn_peer peer, const void *head, size_t head_bytes,
                  size_t body_bytes)
{
    taste *is = ud;

    (void)peer;
    assert_int_equal(head_bytes, 4);
    assert_memory_equal(head, "long", 4);
    is->asked = body_bytes;
    return is->wanted;
}

static void count_done(void *ud)
{
    atomic_fetch_add((atomic_long *)ud, 1);
}

/* A body that nobody wants comes without, and the next one as it is. */
static void ask_for(const kofn_zmq_options *o, size_t n)
{
    unsigned char *body = malloc(n);
    pair m = meet(addresses[0], o);
    atomic_long done = 0;
    taste is = {0, false};

    for (size_t i = 0; i < n; i++)
        body[i] = (unsigned char)(i * 131 >> 7);
    m.a->wanted = wants;
    m.a->wanted_ud = &is;
    for (int i = 0; i < 4; i++) {
        kofn_packet p;

        is.wanted = i % 2;
        assert_ok(m.b->send(m.b, m.of_a, "long", 4, body, n, i > 1, count_done,
                            &done));
        p = next_of(m.a, m.b);
        assert_int_equal(is.asked, n);
        assert_int_equal(p.what, KOFN_PACKET);
        assert_int_equal(p.body_bytes, i % 2 ? n : 0);
        if (i % 2)
            assert_memory_equal(p.body, body, n);
        m.a->release(m.a, p.own);
    }
    part(&m);
    assert_int_equal(done, 4);
    free(body);
}

static void bodies_are_asked_for(void **state)
{
    char keys[] = "/tmp/kofn-keys-XXXXXX";
    const kofn_zmq_options o = {.keys = keys, .silence = 10 * KOFN_SECOND};

    (void)state;
    make_keys(keys);
    ask_for(&patient, 5 * MEGA + 77); /* one message */
    ask_for(&o, 5 * MEGA + 77);       /* chunks      */
    erase_keys(keys);
}

/* Half a body is lost with its sender, and nothing else is. */
static void half_a_body_is_lost(void **state)
{
    char keys[] = "/tmp/kofn-keys-XXXXXX";
    const kofn_zmq_options o = {
        .peer_bytes = 4 * MEGA, .keys = keys, .silence = 10 * KOFN_SECOND};
    unsigned char *body = calloc(60 * MEGA, 1);
    atomic_long done = 0;

    (void)state;
    make_keys(keys);
    for (int way = 0; way < 2; way++) {
        pair m = meet(addresses[0], &o);
        kofn_transport *from = way ? m.a : m.b, *to = way ? m.b : m.a;
        kofn_packet p;

        done = 0;
        assert_ok(from->send(from, way ? m.of_b : m.of_a, "x", 1, body,
                             60 * MEGA, false, count_done, &done));
        assert_int_equal(to->wait(to, 50 * MILLI, &p), KOFN_AGAIN);
        assert_int_equal(done, 0);
        from->close(from, 0);
        assert_int_equal(done, 1);
        p = next_of(to, NULL);
        assert_int_equal(p.what, KOFN_WENT);
        to->close(to, 0);
    }
    erase_keys(keys);
    free(body);
}
#endif

int main(void)
{
    struct rlimit files;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endless_messages_of_strangers),
        cmocka_unit_test(endless_messages_of_peers),
        cmocka_unit_test(long_frames),
        cmocka_unit_test(long_handshakes),
        cmocka_unit_test(long_messages),
        cmocka_unit_test(more_than_there_are_descriptors),
        cmocka_unit_test(bursts),
        cmocka_unit_test(too_few_descriptors),
        cmocka_unit_test(the_doors),
        cmocka_unit_test(leftovers),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(bodies_are_asked_for),
        cmocka_unit_test(half_a_body_is_lost),
#endif
    };

    signal(SIGPIPE, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    name_socket();
    return cmocka_run_group_tests_name("zmq_floods", tests, NULL, NULL);
}
