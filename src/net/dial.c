/* dial.c -- a connection to an address, made again after every loss.
 *
 * A dial owns its address and is freed with the transport; the transport owns
 * its link. It may not wait: timers of the loop do everything. */
#include "inside.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#define PAUSE_MIN (50 * KF_MILLI)
#define PAUSE_MIN_HERE                                                         \
    KF_MILLI /* for a Unix socket, which costs no network                      \
              */
#define PAUSE_MAX (5 * KOFN_SECOND)

/* ---- one attempt --------------------------------------------------------- */

static void trouble(kf_dial *d, const char *why)
{
    snprintf(d->t->text.trouble, sizeof d->t->text.trouble,
             "no answer at %s%s%s", d->address, why ? ": " : "",
             why ? why : "");
}

static void due_now(uv_timer_t *timer)
{
    kf_dial_due(timer->data, kf_clock());
}

static kofn_time shortest(const kf_dial *d)
{
    return strncmp(d->address, "ipc://", 6) == 0 ? PAUSE_MIN_HERE : PAUSE_MIN;
}

/* Sets the time of the next attempt. Pauses double, and are spread so that the
 * workers do not all connect at once. */
static void pause_now(kf_dial *d)
{
    uint32_t spread = 0;

    d->pause = d->welcome || !d->pause ? shortest(d) : 2 * d->pause;
    if (d->pause > PAUSE_MAX)
        d->pause = PAUSE_MAX;
    d->welcome = false;
    if (d->pause < PAUSE_MIN) /* ticks are too far apart */
        uv_timer_start(&d->t->uv.dialing, due_now,
                       (uint64_t)(d->pause / KF_MILLI) * 3 / 2 + 1, 0);
    (void)!getrandom(&spread, sizeof spread, GRND_NONBLOCK);
    d->next =
        kf_clock() + d->pause / 2 + (kofn_time)(spread % (uint64_t)d->pause);
}

static void clear(kf_dial *d)
{
    if (d->found)
        uv_freeaddrinfo(d->found);
    d->found = d->at = NULL;
}

static void connected(uv_poll_t *poll, int status, int events)
{
    assert(((const kf_link *)poll->data)->state == KF_DIALLING);
    kf_link *l = poll->data;
    int error = 0;
    socklen_t size = sizeof error;

    (void)status, (void)events;
    getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) {
        trouble(l->dial, NULL);
        kf_link_end(l);
        return;
    }
    l->state = l->t->keys ? KF_SHAKING : KF_STRANGE;
    /* OpenSSL begins when the socket is writable */
    l->secure.waits = l->t->keys ? KF_READS_WAIT : 0;
    l->flag.blocked = false;
    l->ready = kf_net_ready;
    kf_link_watch(l);
    clear(l->dial);
    kf_net_send_word(l, KF_HELLO);
}

static bool connect_to(kf_dial *d, const struct sockaddr *at, socklen_t bytes)
{
    int fd;

    assert(!d->link);
    kf_low_begin();
    fd = kf_low_end(
        socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        trouble(d, errno == EMFILE || errno == ENFILE
                       ? "no file descriptors are left; raise ulimit -n"
                       : strerror(errno));
        return false;
    }
    if (connect(fd, at, bytes) && errno != EINPROGRESS && errno != EAGAIN) {
        trouble(d, strerror(errno));
        close(fd);
        return false;
    }
    if (kf_link_new(&d->link, d->t, fd, KF_DIALLING, connected))
        return false;
    d->link->dial = d;
    snprintf(d->link->name, sizeof d->link->name, "%s", d->address);
    snprintf(d->link->principal, sizeof d->link->principal, "%s",
             d->t->mesh ? d->who : d->address);
    return true;
}

/* Connects to the next of the addresses that were found. */
static void next_found(kf_dial *d)
{
    bool made = false;

    while (d->at && !made) {
        made = connect_to(d, d->at->ai_addr, d->at->ai_addrlen);
        d->at = d->at->ai_next;
    }
    if (!made) {
        clear(d);
        pause_now(d);
    }
}

static void found(uv_getaddrinfo_t *look, int status, struct addrinfo *list)
{
    kf_dial *d = look->data;

    d->looking = false;
    if (d->over) {
        if (list)
            uv_freeaddrinfo(list);
        return;
    }
    if (status) {
        trouble(d, uv_strerror(status));
        pause_now(d);
        return;
    }
    d->found = d->at = list;
    next_found(d);
}

static void begin(kf_dial *d)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    char host[256];
    const char *port;
    kf_place place;
    kofn_status st = kf_place_there(d->address, &place, host, &port);

    assert(!d->looking);
    if (st == KOFN_AGAIN) {
        d->look.data = d;
        d->looking = !uv_getaddrinfo(&d->t->uv.loop, &d->look, found, host,
                                     port, &hints);
        d->t->dirty = true;
        if (d->looking)
            return;
    }
    if (st || !connect_to(d, (const struct sockaddr *)&place.at, place.bytes))
        pause_now(d);
}

/* ---- due and lost connections -------------------------------------------- */

/* True if a peer is the node of this dial: a mesh does not dial a node that is
 * connected. */
static bool is_known(const kf_dial *d)
{
    static const unsigned char nobody[KF_NODE];

    if (!d->t->mesh || memcmp(d->node, nobody, KF_NODE) == 0)
        return false;
    for (size_t i = 0; i < d->t->in.count; i++)
        if (memcmp(d->t->in.peer[i]->node, d->node, KF_NODE) == 0)
            return true;
    return false;
}

void kf_dial_due(kf_transport *t, kofn_time now)
{
    for (size_t i = 0; i < t->out.count; i++) {
        kf_dial *d = t->out.dial[i];

        if (d->link || d->looking || d->lost || d->over || now < d->next)
            continue;
        if (is_known(d))
            d->next = now + d->pause;
        else
            begin(d);
    }
}

void kf_dial_again(kf_transport *t)
{
    t->out.redial = false;
    for (size_t i = 0; i < t->out.count; i++) {
        kf_dial *d = t->out.dial[i];

        bool goes_on = d->lost && !d->over;

        d->lost = false;
        if (goes_on && d->at)
            next_found(d);
        else if (goes_on)
            pause_now(d);
    }
}

kofn_status kf_dial_new(kf_transport *t, const char *address, const char *who)
{
    kf_dial *d;

    TRY(kf_grow(&t->out.dial, &t->out.cap, t->out.count, sizeof *t->out.dial));
    TRY_ZERO(d, 1);
    if (!(d->address = kf_strdup(address))) {
        kf_free(d);
        return KOFN_NOMEM;
    }
    d->t = t;
    snprintf(d->who, sizeof d->who, "%s", who);
    t->out.dial[t->out.count++] = d;
    begin(d);
    return KOFN_OK;
}

void kf_dial_free(kf_dial *d)
{
    assert(!d->looking);
    assert(!d->link);
    clear(d);
    kf_free(d->address);
    kf_free(d);
}
