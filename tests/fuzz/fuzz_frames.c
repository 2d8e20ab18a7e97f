/* fuzz_frames.c -- sends frames from an input, cut anywhere, to a transport.
 * The transport listens or dials, without keys or in TLS, or is a mesh node
 * that does either.
 *
 * Default fuzz-iterations: 1200.
 *
 * The transport must agree with judge.h: allowed packets are delivered
 * unchanged, and others end the connection. Meanwhile it holds little memory
 * and keeps to its credit. A forgotten peer delivers nothing more. Afterwards
 * an honest peer is served. */
#define _GNU_SOURCE
#include "draw.h"
#include "judge.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WINDOW ((size_t)64 << 10)
#define BODY_MOST ((size_t)200 << 10)
#define BUDGET ((size_t)1 << 20) /* bytes that are sent for one input */
#define HELD_MOST ((size_t)4 << 20)

/* ---- keys, made once ----------------------------------------------------- */

static char keys_folder[] = "/tmp/kofn-fuzz-XXXXXX", worker_folder[40];
static SSL_CTX *client, *server;

static void drop_keys(void)
{
    static const char *const files[] = {"node1/worker.key",
                                        "node1/worker.crt",
                                        "node1/coordinator.crt",
                                        "node1",
                                        "node1.crt",
                                        "coordinator.key",
                                        "coordinator.crt",
                                        ""};
    char path[80];

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", keys_folder, files[i]);
        remove(path);
    }
}

static SSL_CTX *context(const char *folder, const char *name)
{
    SSL_CTX *c = SSL_CTX_new(TLS_method());
    char path[80];

    MUST(c);
    SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE |
                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    snprintf(path, sizeof path, "%s/%s.crt", folder, name);
    MUST(SSL_CTX_use_certificate_file(c, path, SSL_FILETYPE_PEM) == 1);
    snprintf(path, sizeof path, "%s/%s.key", folder, name);
    MUST(SSL_CTX_use_PrivateKey_file(c, path, SSL_FILETYPE_PEM) == 1);
    return c;
}

static void make_keys(void)
{
    if (client)
        return;
    signal(SIGPIPE, SIG_IGN);
    MUST(mkdtemp(keys_folder));
    atexit(drop_keys);
    MUST(kofn_net_keygen(keys_folder, "node1") == KOFN_OK);
    snprintf(worker_folder, sizeof worker_folder, "%s/node1", keys_folder);
    client = context(worker_folder, "worker");
    server = context(keys_folder, "coordinator");
}

/* ---- memory: threads of transports allocate, too ------------------------- */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *locked_watching(void *ud, void *p, size_t want)
{
    void *q;

    pthread_mutex_lock(&turn);
    q = watching(ud, p, want);
    pthread_mutex_unlock(&turn);
    return q;
}

/* ---- both ends ----------------------------------------------------------- */

typedef struct connection {
    draw d;
    bool dials, keys, mesh;    /* the transport */
    kofn_transport *t, *other; /* `other` is honest */
    int fd;
    SSL *ssl;
    judge j;
    receiver e;
    kofn_peer peer;
    bool came, went, ended; /* ended: it sends no more to us */
    bool forgotten;         /* by the transport, while it was connected */
    bool answered;          /* the honest peer was answered */
    unsigned char out[KF_HEADER + KOFN_HEAD_MAX + KF_CHUNK + 64];
    size_t waiting, budget;
} connection;

static kf_transport *inside(const connection *p)
{
    return (kf_transport *)p->t;
}

static void arrived(connection *p, const kofn_packet *k)
{
    MUST(!p->forgotten || k->peer != p->peer);
    if (k->what == KOFN_PACKET && p->came && k->peer == p->peer) {
        judge_delivered(&p->j, k);
        p->t->release(p->t, k->own);
    } else if (k->what == KOFN_PACKET) {
        MUST(k->head_bytes == 5 && !memcmp(k->head, "hello", 5));
        p->t->release(p->t, k->own);
        MUST(p->t->send(p->t, k->peer, "again", 5, NULL, false) == KOFN_OK);
    } else if (k->what == KOFN_CAME && p->fd >= 0 && !p->came) {
        p->peer = k->peer;
        p->came = true;
    } else if (k->what == KOFN_WENT && p->came && k->peer == p->peer) {
        p->went = true;
    }
}

/* Lets the transports work until they have nothing to do. */
static void pump(connection *p)
{
    kofn_packet k;

    while (p->t->wait(p->t, 0, &k) == KOFN_OK)
        arrived(p, &k);
    while (p->other && p->other->wait(p->other, 0, &k) == KOFN_OK)
        if (k.what == KOFN_CAME) {
            MUST(p->other->send(p->other, k.peer, "hello", 5, NULL, false) ==
                 KOFN_OK);
        } else if (k.what == KOFN_PACKET) {
            MUST(k.head_bytes == 5 && !memcmp(k.head, "again", 5));
            p->other->release(p->other, k.own);
            p->answered = true;
        }
}

static void read_output(connection *p)
{
    unsigned char text[16 << 10];

    while (!p->ended) {
        ssize_t n = p->ssl ? SSL_read(p->ssl, text, sizeof text)
                           : recv(p->fd, text, sizeof text, MSG_DONTWAIT);
        bool later = p->ssl ? n <= 0 && SSL_get_error(p->ssl, (int)n) ==
                                            SSL_ERROR_WANT_READ
                            : n < 0 && errno == EAGAIN;

        ERR_clear_error();
        if (later)
            return;
        p->ended = n <= 0;
        if (n > 0)
            receiver_feed(&p->e, &p->j, text, (size_t)n);
    }
}

/* Returns the number of bytes that could be sent. 0 means none now, or the
 * other end is gone. */
static size_t put(connection *p, const unsigned char *at, size_t n)
{
    ssize_t m = p->ssl ? SSL_write(p->ssl, at, (int)n)
                       : send(p->fd, at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    int why = p->ssl && m <= 0 ? SSL_get_error(p->ssl, (int)m) : 0;

    ERR_clear_error();
    if (m > 0)
        return (size_t)m;
    if (p->ssl ? why != SSL_ERROR_WANT_WRITE && why != SSL_ERROR_WANT_READ
               : errno != EAGAIN)
        p->ended = true;
    return 0;
}

static void flush(connection *p)
{
    size_t n = p->waiting, at = 0;

    p->waiting = 0;
    pump(p);
    read_output(p);
    judge_feed(&p->j, p->out, n);
    while (at < n && !p->ended) {
        size_t m = put(p, p->out + at, n - at);

        at += m;
        if (m == 0 && !p->ended) {
            pump(p);
            read_output(p);
        }
    }
    pump(p);
}

/* ---- frames -------------------------------------------------------------- */

static void add(connection *p, const void *bytes, size_t n)
{
    if (n > sizeof p->out - p->waiting)
        flush(p);
    memcpy(p->out + p->waiting, bytes, n);
    p->waiting += n;
}

typedef struct put_frame {
    int word, channel;
    size_t head;
    uint64_t chunk, number;
} put_frame;

/* Adds a frame with its body, or the part within the budget. */
static void add_frame(connection *p, put_frame f)
{
    static unsigned char body[KF_CHUNK + 8];
    unsigned char h[KF_HEADER + KOFN_HEAD_MAX] = {(unsigned char)f.word,
                                                  (unsigned char)f.channel};
    size_t n = (size_t)kf_min(f.chunk, sizeof body);
    unsigned cut;

    kf_net_put_number(h + 2, f.head, 2);
    kf_net_put_number(h + 4, f.chunk, 4);
    kf_net_put_number(h + 8, f.number, 8);
    for (size_t i = KF_HEADER; i < sizeof h; i++)
        h[i] = (unsigned char)(f.head + i);
    add(p, h, KF_HEADER + kf_min(f.head, KOFN_HEAD_MAX));
    n = kf_min(n, p->budget);
    p->budget -= n;
    for (size_t i = 0; i < kf_min(n, 64); i++)
        body[i] = (unsigned char)(f.number + i + f.head);
    cut = next(&p->d, 8);
    if (cut == 7 && n > 1) { /* cut anywhere */
        size_t half = 1 + next(&p->d, 256) * (n - 1) / 256;

        add(p, body, half);
        flush(p);
        add(p, body + half, n - half);
    } else {
        add(p, body, n);
    }
}

static void greet(connection *p)
{
    static const char words[] = "HWG";
    unsigned how = next(&p->d, 16);
    kf_greeting g = {.magic = {0}};
    unsigned char h[KF_HEADER] = {p->dials ? KF_WELCOME : KF_HELLO};

    memcpy(g.magic, KF_MAGIC, sizeof g.magic);
    kf_net_put_number(g.silence, 100 * (uint64_t)KOFN_SECOND, 8);
    kf_net_put_number(g.window, how == 13 ? 1000 : 8 * WINDOW, 8);
    kf_net_put_number(g.urgent, how == 14 ? 0 : 2 * WINDOW, 8);
    kf_net_put_number(h + 2, sizeof g - (how == 12), 2);
    if (how == 11)
        g.magic[next(&p->d, 8)] ^= (char)(1 + next(&p->d, 255));
    if (how == 10)
        h[0] = (unsigned char)words[next(&p->d, 3)];
    if (how == 15)
        h[4] = 1;
    add(p, h, sizeof h);
    add(p, &g, sizeof g - (how == 12));
}

/* Returns a length near a limit, or another one. */
static uint64_t length(connection *p, uint64_t limit)
{
    switch (next(&p->d, 6)) {
    case 0:
        return limit + next(&p->d, 5) - 2;
    case 1:
        return size_of(&p->d, limit);
    case 2:
        return next(&p->d, 256) * limit / 256;
    default:
        return next(&p->d, 256);
    }
}

/* Returns the rest of the channel's packet, or a little more or less. */
static uint64_t rest(connection *p, int channel)
{
    judged_channel *a = &p->j.channel[channel];
    uint64_t n = a->coming ? a->bytes - a->at : 1;

    switch (next(&p->d, 8)) {
    case 0:
        return n + next(&p->d, 3) - 1;
    case 1:
        return kf_min(n, 1 + next(&p->d, 256) * n / 256);
    default:
        return kf_min(n, KF_CHUNK);
    }
}

/* Makes a packet with all of its body, a part or nothing. */
static put_frame packet(connection *p, int channel)
{
    static const size_t limits[] = {1000, WINDOW / 4 - KF_COST,
                                    WINDOW - KF_COST, WINDOW, BODY_MOST};
    unsigned how = next(&p->d, 8);
    put_frame f = {KF_PACKET, channel, next(&p->d, 4) ? 4 : 0, 0, 0};

    f.number = length(p, limits[next(&p->d, 5)]);
    f.chunk = how < 4 ? f.number : how == 4 ? f.number / 2 : how == 5;
    if (f.number > (channel ? WINDOW / 4 : WINDOW) && how < 7)
        f.chunk = 0;
    if (how == 6)
        f.head = KOFN_HEAD_MAX - 1 + next(&p->d, 3);
    return f;
}

static void transport_sends(connection *p, bool urgent)
{
    static unsigned char body[4 * WINDOW];

    flush(p);
    if (!p->came || p->went || p->forgotten)
        return;
    p->j.sent_to = true;
    (void)p->t->send(
        p->t, p->peer, "said", 4,
        &(kofn_lent){.data = body,
                     .bytes = kf_min(length(p, WINDOW), sizeof body)},
        urgent);
}

static void transport_forgets(connection *p)
{
    flush(p);
    if (!p->came || p->went || p->forgotten)
        return;
    p->t->forget(p->t, p->peer);
    p->forgotten = true;
    p->j.unsure = true; /* the transport may have read a part only */
}

static void act(connection *p)
{
    static const char words[] = "HWGBPDCSF";
    int channel = next(&p->d, 3) == 2;
    judged_channel *a = &p->j.channel[channel];
    unsigned char raw[64];
    put_frame f = {KF_BEAT, channel, 0, 0, 0};
    unsigned what = next(&p->d, 256);

    switch (what % 16) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        add_frame(p, packet(p, channel));
        flush(p);
        break;
    case 5:
    case 6:
    case 7:
        f.word = KF_DATA;
        flush(p);
        f.chunk = rest(p, channel);
        add_frame(p, f);
        break;
    case 8:
        f.word = KF_CREDIT;
        f.number = a->allowed + length(p, WINDOW);
        add_frame(p, f);
        break;
    case 9:
        f.word = KF_SKIP;
        add_frame(p, f);
        break;
    case 10:
        add(p, "B", 1);
        break;
    case 11:
        for (size_t i = 0; i < sizeof raw; i++)
            raw[i] = (unsigned char)next(&p->d, 256);
        add(p, raw, 1 + next(&p->d, sizeof raw));
        break;
    case 12:
        f = (put_frame){words[next(&p->d, 9)], (int)next(&p->d, 4),
                        length(p, KOFN_HEAD_MAX), length(p, KF_CHUNK),
                        size_of(&p->d, 1000)};
        add_frame(p, f);
        break;
    case 13:
        greet(p);
        break;
    case 14:
        transport_sends(p, channel);
        break;
    default:
        if (what == 255)
            transport_forgets(p);
        flush(p);
    }
}

/* ---- beginning and end --------------------------------------------------- */

static kofn_net_options options(const connection *p, bool coordinator)
{
    kofn_net_options o = KOFN_NET_OPTIONS_INIT;

    o.body_max = BODY_MOST;
    o.peer_bytes = WINDOW;
    o.silence = 1000 * KOFN_SECOND;
    o.keys = p->keys ? coordinator ? keys_folder : worker_folder : NULL;
    return o;
}

/* Returns the address of a listener. Each letter has its own. */
static const char *address_of(char letter)
{
    static char address[64];

    snprintf(address, sizeof address, "ipc://@kofn-fuzz-%ld%c", (long)getpid(),
             letter);
    return address;
}

static const char *our_address(void)
{
    return address_of('l');
}

/* Opens an honest transport that dials this address. */
static void dial(connection *p, kofn_transport **out, const char *address,
                 const kofn_net_options *o, char letter)
{
    char at[64];

    snprintf(at, sizeof at, "%s", address);
    if (!p->mesh) {
        MUST(kofn_net_connect(out, at, o) == KOFN_OK);
        return;
    }
    MUST(kofn_net_mesh(out, address_of(letter), o) == KOFN_OK);
    MUST((*out)->reach(*out, at) == KOFN_OK);
}

static int our_socket(struct sockaddr_un *at, socklen_t *bytes)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    MUST(fd >= 0);
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    strcpy(at->sun_path + 1, our_address() + strlen("ipc://@"));
    *bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                         strlen(at->sun_path + 1));
    return fd;
}

static void shake(connection *p)
{
    int r;

    p->ssl = SSL_new(p->dials ? server : client);
    MUST(p->ssl && SSL_set_fd(p->ssl, p->fd) == 1);
    while ((r = p->dials ? SSL_accept(p->ssl) : SSL_connect(p->ssl)) != 1) {
        MUST(SSL_get_error(p->ssl, r) == SSL_ERROR_WANT_READ);
        pump(p);
    }
}

/* Opens a transport that listens, with an honest peer and us as its peers, or
 * one that dials us. */
static void begin(connection *p)
{
    kofn_net_options mine = options(p, !p->dials), o = options(p, p->dials);
    struct sockaddr_un at;
    socklen_t bytes;
    int fd = our_socket(&at, &bytes);

    if (p->dials) {
        MUST(!bind(fd, (struct sockaddr *)&at, bytes) && !listen(fd, 4));
        dial(p, &p->t, our_address(), &mine, 'd');
        while ((p->fd = accept4(fd, NULL, NULL, SOCK_NONBLOCK)) < 0)
            pump(p);
        close(fd); /* a second dial finds no listener */
    } else {
        MUST((p->mesh ? kofn_net_mesh : kofn_net_listen)(&p->t, our_address(),
                                                         &mine) == KOFN_OK);
        dial(p, &p->other, our_address(), &o, 'o');
        while (!p->answered)
            pump(p);
        MUST(!connect(fd, (struct sockaddr *)&at, bytes));
        p->fd = fd;
    }
    if (p->keys)
        shake(p);
}

static size_t links(const connection *p)
{
    kf_transport *t = inside(p);
    size_t n = 0;

    pthread_mutex_lock(&t->lock);
    for (kf_link *l = t->in.links; l; l = l->after)
        n++;
    if (p->dials && p->other && !p->mesh) { /* it need not wait */
        t->out.dial[0]->next = 0;
        kf_dial_due(t, kf_clock());
    }
    pthread_mutex_unlock(&t->lock);
    return n;
}

/* Ends our side, and reads the transport's output to its end. */
static void leave(connection *p)
{
    flush(p);
    shutdown(p->fd, SHUT_WR);
    while (!p->ended) {
        pump(p);
        read_output(p);
    }
    close(p->fd);
    SSL_free(p->ssl);
    while (links(p) > !p->dials || (p->came && !p->went && !p->forgotten))
        pump(p);
}

static void compare(const connection *p)
{
    uint64_t flood;

    pthread_mutex_lock(&inside(p)->lock);
    flood = inside(p)->gate.refused.flood;
    pthread_mutex_unlock(&inside(p)->lock);
    MUST(flood <= 1 && p->came <= p->j.peer);
    if (p->j.unsure)
        return;
    MUST(flood == p->j.invalid && p->came == p->j.peer);
    for (int i = 0; i < KF_CHANNELS; i++)
        MUST(p->j.channel[i].delivered == p->j.channel[i].done);
}

/* Checks that an honest peer is served. */
static void check_service(connection *p)
{
    kofn_net_options o = options(p, true);

    p->fd = -1;
    p->answered = false;
    if (p->dials && p->mesh) /* it may not dial a forgotten peer */
        dial(p, &p->other, kofn_net_endpoint(p->t), &o, 'o');
    else if (p->dials)
        MUST(kofn_net_listen(&p->other, our_address(), &o) == KOFN_OK);
    else
        MUST(p->other->send(p->other, 0, "hello", 5, NULL, false) == KOFN_OK);
    while (!p->answered) {
        pump(p);
        links(p);
    }
    p->other->close(p->other, 0);
    p->t->close(p->t, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static connection p;
    unsigned how;
    size_t before;

    make_keys();
    kofn_set_alloc(locked_watching, NULL);
    before = held;
    most = held + HELD_MOST;
    memset(&p, 0, sizeof p);
    p.d = (draw){data, size};
    p.fd = -1;
    p.budget = BUDGET;
    how = next(&p.d, 4);
    p.dials = how % 2;
    p.mesh = how / 2;
    p.keys = next(&p.d, 8) == 7 && !p.mesh;
    p.j.dialled = p.dials;
    p.j.body_max = BODY_MOST;
    for (int i = 0; i < KF_CHANNELS; i++)
        p.j.channel[i].window = p.j.channel[i].may = i ? WINDOW / 4 : WINDOW;
    begin(&p);
    if (next(&p.d, 8))
        greet(&p);
    while (p.d.left && !p.ended)
        act(&p);
    leave(&p);
    compare(&p);
    check_service(&p);
    MUST(held == before);
    most = SIZE_MAX;
    return 0;
}
