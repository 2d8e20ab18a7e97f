/* ready.c -- what is done when the descriptor of a connection is ready: the handshake
 * goes on, and what came is received, and what waits is sent.
 *
 * Owns nothing.  libuv calls it, with the lock; the link may be over afterwards.
 */
#include "inside.h"

#include <errno.h>

#define LEFTOVER (64 << 10) /* bytes that who is refused may have sent */

/* Where a socket is closed with bytes that nobody has read, the system resets the
 * connection, and the other end may never read what was said last. */
static void throw_away(kf_link *l)
{
    struct iovec all = {l->t->stage, sizeof l->t->stage};
    ssize_t n = kf_link_read(l, &all, 1);

    l->shaken += n > 0 ? (size_t)n : 0;
    if (n == 0 || (n < 0 && errno != EAGAIN) || l->shaken > LEFTOVER)
        kf_link_end(l);
}

void kf_ready(uv_poll_t *poll, int status, int events)
{
    kf_link *l = poll->data;

    if (l->stage == KF_SHAKING || l->stage == KF_REFUSED) {
        if (l->stage == KF_SHAKING)
            kf_shake(l);
        else
            throw_away(l);
        if (status < 0)
            kf_link_watch(l); /* libuv has stopped; it may have to wait */
        return;
    }
    if (l->waits || status < 0)
        events = UV_READABLE | UV_WRITABLE;
    l->waits = 0;
    if ((events & UV_READABLE) && !l->deaf)
        kf_net_receive(l);
    if (l->stage != KF_OVER && (events & UV_WRITABLE)) {
        l->blocked = false;
        kf_net_send_on(l);
        if (!l->blocked)
            kf_link_watch(l);
    }
}
