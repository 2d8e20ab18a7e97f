/* names_test.c -- hosts by their names, which may have addresses of both kinds.
 *
 * What a name means is said here: the C library is asked for the others only.
 */
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

static look_up_fn *numeric(void)
{
    look_up_fn *f;

    *(void **)&f = dlsym(RTLD_NEXT, "getaddrinfo");
    assert_non_null(f);
    return f;
}

/* Those of IPv6 stand before the others, as the C library has them. */
static int both(const struct meaning *m, const char *service,
                const struct addrinfo *hints, struct addrinfo **out)
{
    int why = numeric()(m->six, service, hints, out);
    struct addrinfo *last = *out;

    while (!why && last->ai_next)
        last = last->ai_next;
    return why ? why : numeric()(m->four, service, hints, &last->ai_next);
}

/* As for the numbers; with AI_V4MAPPED those of IPv4 if there are no others. */
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
        return numeric()(name, service, hints, out);
    if (hints && hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    if (family == AF_UNSPEC && m->four && m->six)
        return both(m, service, hints, out);
    numbers = family == AF_INET ? m->four : m->six ? m->six : m->four;
    return numbers ? numeric()(numbers, service, hints, out) : EAI_NONAME;
}

static const kofn_net_options open_to_all = {
    .size = sizeof open_to_all, .insecure = true, .silence = 10 * KOFN_SECOND};

/* A transport at `at`, and one that connects to its port under `name`. */
static void is_reached(const char *at, const char *name)
{
    kofn_transport *a = listener(at, &open_to_all), *b;
    char address[100];

    snprintf(address, sizeof address, "tcp://%s%s", name,
             strrchr(kofn_net_endpoint(a), ':'));
    assert_ok(kofn_net_connect(&b, address, &open_to_all));
    came(a, NULL); /* the keeper of the other does its part */
    came(b, NULL);
    b->close(b, 0);
    a->close(a, 0);
}

/* Whichever of its addresses somebody listens at. */
static void names_are_reached(void **state)
{
    (void)state;
    is_reached("tcp://127.0.0.1:*", "both.kofn.test");
    is_reached("tcp://127.0.0.1:*", "four.kofn.test");
    is_reached("tcp://127.0.0.1:*", "localhost");
    if (has_v6()) {
        is_reached("tcp://[::1]:*", "both.kofn.test");
        is_reached("tcp://[::1]:*", "six.kofn.test");
    }
}

static void listens_at(const char *name, const char *where)
{
    char address[100];
    kofn_transport *t;

    snprintf(address, sizeof address, "tcp://%s:*", name);
    t = listener(address, &open_to_all);
    assert_memory_equal(kofn_net_endpoint(t), where, strlen(where));
    t->close(t, 0);
}

static void names_are_listened_at(void **state)
{
    (void)state;
    listens_at("localhost", "tcp://127.0.0.1:");
    listens_at("both.kofn.test", "tcp://127.0.0.1:");
    listens_at("four.kofn.test", "tcp://127.0.0.1:");
    if (has_v6())
        listens_at("six.kofn.test", "tcp://[::1]:");
    is_reached("tcp://both.kofn.test:*", "both.kofn.test");
}

static void refused(const char *address, const kofn_net_options *o,
                    kofn_status status, const char *why)
{
    kofn_transport *t;

    assert_status(status, kofn_net_listen(&t, address, o));
    assert_non_null(strstr(kofn_errmsg(), address));
    assert_non_null(strstr(kofn_errmsg(), why));
}

static void what_is_no_name_is_told(void **state)
{
    char longest[300] = "tcp://";

    (void)state;
    refused("tcp://none.kofn.test:*", &open_to_all, KOFN_TRANSPORT,
            "none.kofn.test: ");
    refused("tcp://far.kofn.test:*", &open_to_all, KOFN_TRANSPORT,
            "this machine has no such address");
    /* whatever it means, only localhost is private without asking anybody */
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
        cmocka_unit_test(names_are_reached),
        cmocka_unit_test(names_are_listened_at),
        cmocka_unit_test(what_is_no_name_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
