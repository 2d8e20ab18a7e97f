/* metrics_listen.c -- answers GET /metrics for --metrics-listen.
 *
 * A thread serves one client at a time, each for at most five seconds. The
 * command leaves its latest text here and never waits for a client.
 *
 * Owns the socket, the thread and the text. */
#define _GNU_SOURCE
#include "metrics.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUEST_MOST 8192             /* bytes of a request */
#define CLIENT_TIME (5 * KOFN_SECOND) /* of a client, in all */
#define RENEW 1.0                     /* seconds between two texts */

static struct {
    bool open;
    int fd, end[2]; /* the socket; a pipe that is closed at the end */
    pthread_t thread;
    pthread_mutex_t lock; /* guards text and bytes */
    char *text;
    size_t bytes;
    double renewed;
} shop = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- a client ------------------------------------------------------------ */

/* Waits until the client can be read or written. False: its time is over, or
 * the command ends. */
static bool await(int fd, short what, kofn_time until)
{
    kofn_time now = kf_clock();
    struct pollfd p[2] = {{.fd = fd, .events = what},
                          {.fd = shop.end[0], .events = POLLIN}};

    return now < until && poll(p, 2, (int)((until - now) / 1000000) + 1) > 0 &&
           !p[1].revents;
}

/* Receives the head of a request. False: it did not come whole. */
static bool receive(int fd, kofn_time until, char in[REQUEST_MOST + 1])
{
    size_t n = 0;
    ssize_t got;

    in[0] = 0;
    while (!strstr(in, "\r\n\r\n") && !strstr(in, "\n\n")) {
        if (n == REQUEST_MOST || !await(fd, POLLIN, until))
            return n == REQUEST_MOST;
        got = recv(fd, in + n, REQUEST_MOST - n, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        n += got > 0 ? (size_t)got : 0;
        in[n] = 0;
        if (strlen(in) < n) /* a zero byte: no text */
            return false;
    }
    return true;
}

static bool send_all(int fd, kofn_time until, const char *data, size_t n)
{
    ssize_t sent;

    while (n > 0) {
        if (!await(fd, POLLOUT, until))
            return false;
        sent = send(fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        data += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

/* Returns the status line for a request. */
static const char *judge(const char *in)
{
    size_t method = strcspn(in, " "), path;
    bool reads = !strncmp(in, "GET ", 4) || !strncmp(in, "HEAD ", 5);

    if (!strstr(in, "\r\n\r\n") && !strstr(in, "\n\n"))
        return "431 Request Header Fields Too Large";
    if (in[method] != ' ' || !strstr(in, " HTTP/1."))
        return "400 Bad Request";
    path = strcspn(in + method + 1, " ?");
    if (!reads)
        return "405 Method Not Allowed";
    return path == 8 && !strncmp(in + method + 1, "/metrics", 8)
               ? "200 OK"
               : "404 Not Found";
}

static void answer(int fd, kofn_time until, const char *in)
{
    const char *status = judge(in);
    bool found = status[0] == '2', body = strncmp(in, "HEAD ", 5) != 0;
    char head[400], *text;
    size_t bytes;

    pthread_mutex_lock(&shop.lock);
    text = found ? strdup(shop.text ? shop.text : "") : strdup(status);
    pthread_mutex_unlock(&shop.lock);
    if (!text)
        return;
    bytes = strlen(text);
    snprintf(head, sizeof head,
             "HTTP/1.1 %s\r\n"
             "Content-Type: text/plain; %scharset=utf-8\r\n"
             "Content-Length: %zu\r\n%sConnection: close\r\n\r\n",
             status, found ? "version=0.0.4; " : "", bytes,
             status[0] == '4' && status[2] == '5' ? "Allow: GET, HEAD\r\n"
                                                  : "");
    if (send_all(fd, until, head, strlen(head)) && body)
        send_all(fd, until, text, bytes);
    free(text);
}

static void serve(int fd)
{
    static char in[REQUEST_MOST + 1], rest[512];
    kofn_time until = kf_clock() + CLIENT_TIME;
    bool whole = receive(fd, until, in);

    if (whole)
        answer(fd, until, in);
    shutdown(fd, SHUT_WR);
    /* Unread bytes would make the system withdraw the answer. */
    while (whole && strlen(in) == REQUEST_MOST && await(fd, POLLIN, until) &&
           recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0)
        ;
    close(fd);
}

static void *keep_shop(void *ud)
{
    struct pollfd p[2] = {{.fd = shop.fd, .events = POLLIN},
                          {.fd = shop.end[0], .events = POLLIN}};

    (void)ud;
    while (!p[1].revents) {
        int fd = -1;

        if (poll(p, 2, -1) > 0 && p[0].revents && !p[1].revents)
            fd = accept4(shop.fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            serve(fd);
        else if (p[0].revents && !p[1].revents)
            usleep(100000); /* no descriptors are left */
    }
    return NULL;
}

/* ---- opening ------------------------------------------------------------- */

/* True for addresses that only this machine reaches. */
static bool is_loopback(const struct sockaddr *a)
{
    const struct sockaddr_in *v4 = (const void *)a;
    const struct sockaddr_in6 *v6 = (const void *)a;

    return a->sa_family == AF_INET ? ntohl(v4->sin_addr.s_addr) >> 24 == 127
                                   : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static bool is_port(const char *text)
{
    size_t n = strspn(text, "0123456789");

    return n > 0 && n < 6 && !text[n] && strtoul(text, NULL, 10) <= 65535;
}

/* Reads HOST:PORT or [HOST]:PORT. The caller frees it with freeaddrinfo. */
static struct addrinfo *read_address(const char *text)
{
    const char *colon = strrchr(text, ':');
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags =
                                 AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    char host[64];
    size_t n = colon ? (size_t)(colon - text) : 0;
    bool six = n > 1 && text[0] == '[' && text[n - 1] == ']';

    if (n == 0 || n >= sizeof host || (!six && memchr(text, ':', n)) ||
        !is_port(colon + 1))
        return NULL;
    snprintf(host, sizeof host, "%.*s", (int)(six ? n - 2 : n), text + six);
    return getaddrinfo(host, colon + 1, &hints, &found) ? NULL : found;
}

/* Makes the socket. Returns 0, or an errno. */
static int make_socket(const struct addrinfo *at)
{
    int on = 1;

    shop.fd =
        socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (shop.fd < 0)
        return errno;
    setsockopt(shop.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(shop.fd, at->ai_addr, at->ai_addrlen) == 0 &&
        listen(shop.fd, 16) == 0 && pipe2(shop.end, O_CLOEXEC) == 0)
        return 0;
    on = errno;
    close(shop.fd);
    return on;
}

/* Starts the thread, which no signal interrupts. Returns 0, or an errno. */
static int start(void)
{
    sigset_t all, was;
    int why;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    why = pthread_create(&shop.thread, NULL, keep_shop, NULL);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    shop.open = why == 0;
    if (why) {
        close(shop.fd);
        close(shop.end[0]);
        close(shop.end[1]);
    }
    return why;
}

/* Says where the figures are; the port may be any free one. */
static void tell_address(const cli_args *a)
{
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    char host[64], port[16];

    if (a->quiet || getsockname(shop.fd, (void *)&at, &n) ||
        getnameinfo((void *)&at, n, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV))
        return;
    fprintf(stderr,
            at.ss_family == AF_INET6 ? "metrics at http://[%s]:%s/metrics\n"
                                     : "metrics at http://%s:%s/metrics\n",
            host, port);
}

int cli_metrics_open(const cli_args *a)
{
    struct addrinfo *at;
    int why;

    if (!a->metrics_listen)
        return 0;
    at = read_address(a->metrics_listen);
    if (!at)
        return cli_say(EXIT_USAGE,
                       "--metrics-listen %s: give a numeric address and a "
                       "port, as 127.0.0.1:9100 or [::1]:9100",
                       a->metrics_listen);
    if (!is_loopback(at->ai_addr) && !a->insecure) {
        freeaddrinfo(at);
        return cli_say(EXIT_USAGE,
                       "--metrics-listen %s: other machines could read the "
                       "figures there, without encryption; give "
                       "127.0.0.1:PORT, or --insecure as well",
                       a->metrics_listen);
    }
    why = make_socket(at);
    freeaddrinfo(at);
    if (!why)
        why = start();
    if (why)
        return cli_say(EXIT_USAGE, "--metrics-listen %s: %s; give another %s",
                       a->metrics_listen, strerror(why),
                       why == EADDRINUSE ? "port, or 0 for any free one"
                                         : "address or port");
    tell_address(a);
    return 0;
}

bool cli_metrics_due(void)
{
    return shop.open && kf_clock_seconds() - shop.renewed >= RENEW;
}

void cli_metrics_put(char *text)
{
    char *was;

    pthread_mutex_lock(&shop.lock);
    was = shop.text;
    shop.text = text;
    pthread_mutex_unlock(&shop.lock);
    shop.renewed = kf_clock_seconds();
    free(was);
}

void cli_metrics_close(void)
{
    if (!shop.open)
        return;
    shop.open = false;
    close(shop.end[1]);
    pthread_join(shop.thread, NULL);
    close(shop.fd);
    close(shop.end[0]);
    free(shop.text);
    shop.text = NULL;
}
