/* names_test.c -- host names, which may have addresses of both kinds.
 *
 * This file defines what its names mean. The C library resolves only
 * system_lookup addresses. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "net_rig.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

static const struct meaning {
    const char *name, *four, *six;
} meanings[] = {
    {"both.kofn.test", "127.0.0.1", "::1"},
    {"four.kofn.test", "127.0.0.1", NULL},
    {"six.kofn.test", NULL, "::1"},
    {"far.kofn.test", "192.0.2.1", NULL},
    {"none.kofn.test", NULL, NULL},
};

typedef int look_up_fn(const char *, const char *, const struct addrinfo *,
                       struct addrinfo **);

static look_up_fn *system_lookup(void)
{
    look_up_fn *f;

    *(void **)&f = dlsym(RTLD_NEXT, "getaddrinfo");
    assert_non_null(f);
    return f;
}

/* Resolves both addresses. IPv6 comes first, as in the C library. */
static int both(const struct meaning *m, const char *service,
                const struct addrinfo *hints, struct addrinfo **out)
{
    int why = system_lookup()(m->six, service, hints, out);
    struct addrinfo *last = *out;

    while (!why && last->ai_next)
        last = last->ai_next;
    return why ? why : system_lookup()(m->four, service, hints, &last->ai_next);
}

/* Resolves like the addresses of the name. With AI_V4MAPPED the IPv4 addresses
 * are given if there are no others. */
int getaddrinfo(const char *name, const char *service,
                const struct addrinfo *hints, struct addrinfo **out)
{
    int family = hints ? hints->ai_family : AF_UNSPEC;
    const struct meaning *m = NULL;
    const char *numbers;

    for (size_t i = 0; name && i < sizeof meanings / sizeof *meanings; i++)
        if (strcmp(name, meanings[i].name) == 0)
            m = &meanings[i];
    if (!m)
        return system_lookup()(name, service, hints, out);
    if (hints && hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    if (family == AF_UNSPEC && m->four && m->six)
        return both(m, service, hints, out);
    numbers = family == AF_INET ? m->four : m->six ? m->six : m->four;
    return numbers ? system_lookup()(numbers, service, hints, out) : EAI_NONAME;
}

static const kofn_net_options open_to_all = {
    .size = sizeof open_to_all, .insecure = true, .silence = 10 * KOFN_SECOND};

/* Listens at `at`, and connects to its port under `name`. */
static void check_reached(const char *at, const char *name)
{
    kofn_transport *a = listener(at, &open_to_all), *b;
    char address[100];

    snprintf(address, sizeof address, "tcp://%s%s", name,
             strrchr(kofn_net_endpoint(a), ':'));
    assert_ok(kofn_net_connect(&b, address, &open_to_all));
    came(a, NULL); /* the other end's thread does its part */
    came(b, NULL);
    b->close(b, 0);
    a->close(a, 0);
}

static void connect_by_name(void **state)
{
    (void)state;
    check_reached("tcp://127.0.0.1:*", "both.kofn.test");
    check_reached("tcp://127.0.0.1:*", "four.kofn.test");
    check_reached("tcp://127.0.0.1:*", "localhost");
    if (has_v6()) {
        check_reached("tcp://[::1]:*", "both.kofn.test");
        check_reached("tcp://[::1]:*", "six.kofn.test");
    }
}

static void check_endpoint(const char *name, const char *where)
{
    char address[100];
    kofn_transport *t;

    snprintf(address, sizeof address, "tcp://%s:*", name);
    t = listener(address, &open_to_all);
    assert_memory_equal(kofn_net_endpoint(t), where, strlen(where));
    t->close(t, 0);
}

static void listen_by_name(void **state)
{
    (void)state;
    check_endpoint("localhost", "tcp://127.0.0.1:");
    check_endpoint("both.kofn.test", "tcp://127.0.0.1:");
    check_endpoint("four.kofn.test", "tcp://127.0.0.1:");
    if (has_v6())
        check_endpoint("six.kofn.test", "tcp://[::1]:");
    check_reached("tcp://both.kofn.test:*", "both.kofn.test");
}

static void refused(const char *address, const kofn_net_options *o,
                    kofn_status status, const char *why)
{
    kofn_transport *t;

    assert_status(status, kofn_net_listen(&t, address, o));
    assert_non_null(strstr(kofn_errmsg(), address));
    assert_non_null(strstr(kofn_errmsg(), why));
}

static void bad_names(void **state)
{
    char longest[300] = "tcp://";

    (void)state;
    refused("tcp://none.kofn.test:*", &open_to_all, KOFN_TRANSPORT,
            "none.kofn.test: ");
    refused("tcp://far.kofn.test:*", &open_to_all, KOFN_TRANSPORT,
            "this machine has no such address");
    /* Without a look-up only localhost is certain to be private. */
    refused("tcp://both.kofn.test:*", NULL, KOFN_INVAL, "can be reached");
    memset(longest + 6, 'a', 260);
    snprintf(longest + 266, sizeof longest - 266, ":*");
    {
        kofn_transport *t;

        assert_status(KOFN_INVAL, kofn_net_listen(&t, longest, &open_to_all));
        assert_non_null(strstr(kofn_errmsg(), "255 characters"));
    }
}

TEST_FILE(names_test)
{
    const struct CMUnitTest tests[] = {
        TEST(connect_by_name,
             "net: a host is reached by its name at any of its addresses"),
        TEST(listen_by_name,
             "net: a name stands for its first usable address (IPv4, IPv6)"),
        TEST(bad_names,
             "net: unknown, foreign, public and too long names are refused"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
