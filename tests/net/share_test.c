/* share_test.c -- long bodies between processes of one machine. They travel as
 * memory files, which are written once and whole. Their writer cannot change
 * them afterwards. */
#define _GNU_SOURCE /* memfd_create */
#include "net_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { MANY = 3 };

/* ---- what this process holds --------------------------------------------- */

typedef struct holding {
    size_t maps,
        files; /* mappings of memory files, and the number of distinct files */
    size_t descriptors;
} holding;

static size_t descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static holding holds(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    unsigned long file[64], inode;
    holding h = {0};
    char line[512];

    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        size_t i = 0;

        if (!strstr(line, "/memfd:kofn"))
            continue;
        assert_int_equal(sscanf(line, "%*s %*s %*s %*s %lu", &inode), 1);
        while (i < h.files && file[i] != inode)
            i++;
        assert_true(i < 64);
        file[i] = inode;
        h.files += i == h.files;
        h.maps++;
    }
    fclose(f);
    h.descriptors = descriptors();
    return h;
}

static void fill(unsigned char *body, size_t n, unsigned char with)
{
    for (size_t i = 0; i < n; i++)
        body[i] = (unsigned char)(i * 31 + with);
}

/* ---- one file ------------------------------------------------------------ */

typedef struct receivers {
    kofn_transport *t, *of[MANY];
    atomic_long done;
} receivers;

static void gather(receivers *f, const char *address, const kofn_net_options *o)
{
    f->done = 0;
    f->t = listener(address, o);
    for (unsigned i = 0; i < MANY; i++) {
        f->of[i] = dialler(f->t, o);
        assert_int_equal(came(f->t, NULL), i);
        came(f->of[i], NULL);
    }
}

static void scatter(receivers *f)
{
    for (int i = 0; i < MANY; i++)
        f->of[i]->close(f->of[i], 0);
    f->t->close(f->t, 0);
}

static void send_to_all(receivers *f, const unsigned char *body, size_t n)
{
    for (unsigned i = 0; i < MANY; i++)
        assert_ok(f->t->send(f->t, i, "x", 1,
                             &(kofn_lent){body, n, count_done, &f->done},
                             false));
}

/* All receivers read one file. The first receiver gets the bytes themselves if
 * the sender need not ask before. The body stays lent until it could be sent
 * to every receiver. Once all have given it back, nothing is left of the file.
 */
static void one_file(void **state)
{
    /* the second is longer than the window, so the sender asks first */
    static const size_t sizes[] = {MEGA, 9 * MEGA + 12345};
    const kofn_net_options o = {
        .size = sizeof o, .peer_bytes = 4 * MEGA, .silence = 10 * KOFN_SECOND};
    unsigned char *body = malloc(sizes[1]), *same = malloc(sizes[1]);

    (void)state;
    for (int a = 0; a < 2; a++) {
        receivers f;

        gather(&f, addresses[a], &o);
        for (int k = 0; k < 2; k++) {
            holding before = holds(), now;
            kofn_packet p[MANY];

            fill(body, sizes[k], (unsigned char)k);
            fill(same, sizes[k], (unsigned char)k);
            f.done = 0;
            send_to_all(&f, body, sizes[k]);
            for (int i = 0; i < MANY; i++) {
                p[i] = next_of(f.of[i], f.t);
                assert_int_equal(p[i].body_bytes, sizes[k]);
            }
            while (f.done < MANY)
                assert_int_equal(f.t->wait(f.t, MILLI, &p[MANY]), KOFN_AGAIN);
            now = holds();
            assert_int_equal(now.maps, a * (k ? MANY : MANY - 1));
            assert_int_equal(now.files, a);
            assert_int_equal(now.descriptors, before.descriptors);
            fill(body, sizes[k], 77); /* the body is the test's again */
            for (int i = 0; i < MANY; i++) {
                assert_memory_equal(p[i].body, same, sizes[k]);
                f.of[i]->release(f.of[i], p[i].own);
            }
            assert_int_equal(holds().maps, 0);
        }
        scatter(&f);
    }
    free(body);
    free(same);
}

static void changed_body(void **state)
{
    unsigned char *body = malloc(MEGA), *same = malloc(MEGA);
    receivers f;

    (void)state;
    gather(&f, addresses[1], &patient);
    for (int k = 0; k < 5; k++) {
        kofn_packet p;

        fill(body, MEGA, (unsigned char)k);
        fill(same, MEGA, (unsigned char)k);
        f.done = 0;
        send_to_all(&f, body, MEGA);
        while (f.done < MANY)
            assert_int_equal(f.t->wait(f.t, MILLI, &p), KOFN_AGAIN);
        for (int i = 0; i < MANY; i++) {
            p = next_of(f.of[i], NULL);
            assert_memory_equal(p.body, same, MEGA);
            f.of[i]->release(f.of[i], p.own);
        }
    }
    scatter(&f);
    free(body);
    free(same);
}

static void not_taken(void **state)
{
    unsigned char *body = calloc(MEGA, 1);
    holding before = holds(), after;
    receivers f;

    (void)state;
    gather(&f, addresses[1], &patient);
    send_to_all(&f, body, MEGA);
    send_to_all(&f, body, MEGA);
    scatter(&f);
    assert_int_equal(f.done, 2 * MANY);
    after = holds();
    assert_int_equal(after.maps, 0);
    assert_int_equal(after.descriptors, before.descriptors);
    free(body);
}

/* ---- without a file the bytes are sent ----------------------------------- */

/* Sends a body while the resource `what` is limited to `limit`. */
static void arrives_as_bytes(int what, rlim_t limit)
{
    unsigned char *body = malloc(MEGA);
    struct rlimit was, less;
    receivers f;

    gather(&f, addresses[1], &patient);
    fill(body, MEGA, 3);
    assert_int_equal(getrlimit(what, &was), 0);
    less = was;
    less.rlim_cur = limit;
    assert_int_equal(setrlimit(what, &less), 0);
    send_to_all(&f, body, MEGA);
    assert_int_equal(setrlimit(what, &was), 0);
    for (int i = 0; i < MANY; i++) {
        kofn_packet p = next_of(f.of[i], f.t);

        assert_int_equal(p.body_bytes, MEGA);
        assert_memory_equal(p.body, body, MEGA);
        assert_int_equal(holds().maps, 0);
        f.of[i]->release(f.of[i], p.own);
    }
    scatter(&f);
    free(body);
}

/* The system would end the process with the signal SIGXFSZ. */
static void file_limit(void **state)
{
    (void)state;
    arrives_as_bytes(RLIMIT_FSIZE, MEGA - 1);
}

static void no_descriptor(void **state)
{
    (void)state;
    arrives_as_bytes(RLIMIT_NOFILE, 3);
}

/* ---- files that are refused ---------------------------------------------- */

typedef enum kind {
    GOOD,
    NOTHING,   /* no descriptor comes */
    NO_MEMORY, /* a file on a disk */
    A_PIPE,
    LINGERS, /* a socket; its last close would wait */
    QUEUED,  /* a socket with such a socket in its queue */
    UNSEALED,
    MAY_SHRINK, /* sealed against writing only */
    MAY_CHANGE, /* sealed against shrinking only */
    SHORT,
    LONG,
    KINDS
} kind;

static const char *const kinds[KINDS] = {
    "good",       "nothing",    "a file on a disk",
    "a pipe",     "lingers",    "has one that lingers",
    "not sealed", "may shrink", "may change",
    "short",      "long"};

#define BYTES ((size_t)300000)

/* Sends descriptors together with the bytes of a Unix socket. */
static void pass_beside(int to, void *bytes, size_t n, const int *fd,
                        size_t copies)
{
    struct iovec part = {bytes, n};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } with = {0};

    if (copies) {
        m.msg_control = &with;
        m.msg_controllen = CMSG_SPACE(copies * sizeof *fd);
        with.head.cmsg_level = SOL_SOCKET;
        with.head.cmsg_type = SCM_RIGHTS;
        with.head.cmsg_len = CMSG_LEN(copies * sizeof *fd);
        for (size_t i = 0; i < copies; i++)
            memcpy(CMSG_DATA(&with.head) + i * sizeof *fd, fd, sizeof *fd);
    }
    assert_int_equal(sendmsg(to, &m, MSG_NOSIGNAL), n);
}

static int other_end = -1; /* the other end of the socket that lingers */

/* Makes a TCP socket with bytes that are never read. Its last close waits for
 * a day. */
static int one_that_lingers(void)
{
    const struct linger day = {1, 86400};
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof at;
    static char junk[1 << 16];
    int l = socket(AF_INET, SOCK_STREAM, 0), fd;

    assert_int_equal(bind(l, (struct sockaddr *)&at, bytes) | listen(l, 1), 0);
    assert_int_equal(getsockname(l, (struct sockaddr *)&at, &bytes), 0);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, bytes), 0);
    other_end = accept(l, NULL, NULL);
    close(l);
    while (send(fd, junk, sizeof junk, MSG_DONTWAIT) > 0)
        ;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &day, sizeof day);
    return fd;
}

/* Makes a Unix socket with a lingering socket in its queue. */
static int one_with_a_queue(void)
{
    int fd = one_that_lingers(), both[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
    pass_beside(both[0], "x", 1, &fd, 1);
    close(fd);
    close(both[0]);
    return both[1];
}

static int file_of(kind k)
{
    size_t n = k == SHORT ? BYTES - 1 : k == LONG ? BYTES + 1 : BYTES;
    int fd, both[2];

    if (k == NO_MEMORY) {
        char name[] = "/tmp/kofn-share-XXXXXX";

        fd = mkstemp(name);
        unlink(name);
    } else if (k == A_PIPE) {
        assert_int_equal(pipe(both), 0);
        close(both[1]);
        return both[0];
    } else if (k == LINGERS) {
        return one_that_lingers();
    } else if (k == QUEUED) {
        return one_with_a_queue();
    } else {
        fd = memfd_create("kofn", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    }
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)n), 0);
    if (k == MAY_SHRINK)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    else if (k == MAY_CHANGE)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    else if (k != UNSEALED && k != NO_MEMORY)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK),
                         0);
    return fd;
}

/* Sends a frame of a header, and `copies` copies of a descriptor. */
static void pass(int to, int word, uint64_t number, const int *fd,
                 size_t copies)
{
    unsigned char f[KF_HEADER] = {(unsigned char)word};

    kf_net_put_number(f + 8, number, 8);
    pass_beside(to, f, word == KF_BEAT ? 1 : sizeof f, fd, copies);
}

/* Announces a file, and gives its descriptor away. A header that is not whole
 * is not acted upon, so the receiver holds the last open copy. */
static void give(int to, int file)
{
    unsigned char f[KF_HEADER] = {KF_FILE};

    kf_net_put_number(f + 8, BYTES, 8);
    pass_beside(to, f, 1, &file, file >= 0);
    if (file >= 0)
        close(file);
    assert_int_equal(send(to, f + 1, sizeof f - 1, MSG_NOSIGNAL), sizeof f - 1);
}

/* Waits until this process has n descriptors. Other threads may close some. */
static void has_descriptors(size_t n)
{
    while (descriptors() != n)
        nap(MILLI);
}

static void sealed_only(void **state)
{
    kofn_transport *t = listener(addresses[1], &patient);
    size_t before;

    (void)state;
    before = descriptors();
    for (kind k = GOOD; k < KINDS; k++) {
        int fd = plain(kofn_net_endpoint(t));
        kofn_peer peer;
        kofn_packet p;

        assert_true(hello(fd, NULL));
        peer = came(t, NULL);
        put_frame(fd, KF_PACKET, 0, "x", 1, 0, BYTES);
        give(fd, k == NOTHING ? -1 : file_of(k));
        p = next_of(t, NULL);
        if (p.what != (k == GOOD ? KOFN_PACKET : KOFN_WENT))
            fail_msg("%s: %d", kinds[k], p.what);
        if (k == GOOD) {
            assert_int_equal(p.body_bytes, BYTES);
            assert_int_equal(holds().maps, 1);
            t->release(t, p.own);
            close(fd);
            went(t, peer);
        } else {
            close(fd);
        }
        if (other_end >= 0)
            close(other_end);
        other_end = -1;
        assert_int_equal(holds().maps, 0);
        has_descriptors(before);
    }
    t->close(t, 0);
}

/* Each row: the frame that comes first, and the frame with a good file. */
static void misplaced_files(void **state)
{
    static const struct {
        const char *what;
        int packet; /* 0: none comes before */
        size_t chunk;
        int word;
        uint64_t number;
        size_t copies;
    } wrong[] = {
        {"a file of no packet", 0, 0, KF_FILE, BYTES, 1},
        {"a file of no body", KF_PACKET, 0, KF_FILE, 0, 1},
        {"a file after a piece", KF_PACKET, 10, KF_FILE, BYTES, 1},
        {"a file of another size", KF_PACKET, 0, KF_FILE, BYTES - 1, 1},
        {"a file with a beat, and another", KF_BEAT, 0, KF_FILE, BYTES, 1},
        {"two files", KF_PACKET, 0, KF_FILE, BYTES, 2},
        {"a file with a beat, and nothing else", 0, 0, KF_BEAT, 0, 1},
        {"a file with credit", 0, 0, KF_CREDIT, 32 * MEGA, 1},
    };
    kofn_transport *t = listener(addresses[1], &patient);
    size_t before = descriptors();

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int fd = plain(kofn_net_endpoint(t)), file = file_of(GOOD);
        kofn_packet p;

        assert_true(hello(fd, NULL));
        came(t, NULL);
        if (wrong[i].packet == KF_BEAT)
            pass(fd, KF_BEAT, 0, &file, 1);
        else if (wrong[i].packet)
            put_frame(fd, KF_PACKET, 0, "x", 1, wrong[i].chunk, BYTES);
        if (wrong[i].chunk)
            assert_int_equal(send(fd, "0123456789", wrong[i].chunk, 0), 10);
        pass(fd, wrong[i].word, wrong[i].number, &file, wrong[i].copies);
        p = next_of(t, NULL);
        if (p.what != KOFN_WENT)
            fail_msg("%s: %d", wrong[i].what, p.what);
        close(fd);
        close(file);
        assert_int_equal(holds().maps, 0);
        has_descriptors(before);
    }
    t->close(t, 0);
}

static void unread_descriptor(void **state)
{
    int both[2], fd = one_that_lingers();

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
    pass(both[0], KF_BEAT, 0, &fd, 1);
    close(fd);
    kf_share_drain(both[1]);
    close(both[1]);
    close(both[0]);
    close(other_end);
    other_end = -1;
}

TEST_FILE(share_test)
{
    const struct CMUnitTest tests[] = {
        TEST(one_file,
             "net: receivers of a long body read one file (1 and 9 MiB)"),
        TEST(changed_body,
             "net: a body that changed at its place is sent anew"),
        TEST(not_taken,
             "net: memory files that no receiver takes are freed on close"),
        TEST(file_limit,
             "net: a long body arrives as bytes if files are limited"),
        TEST(no_descriptor,
             "net: a long body arrives as bytes if descriptors run out"),
        TEST(sealed_only,
             "net: only a sealed memory file of the right size is accepted"),
        TEST(misplaced_files,
             "net: a file that was not announced ends the connection"),
        TEST(unread_descriptor,
             "net: an unread lingering descriptor does not delay the close"),
    };

    name_socket();
    return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
