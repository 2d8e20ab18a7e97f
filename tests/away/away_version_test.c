/* away_version_test.c -- a worker and a coordinator of different versions both
 * say so, and part. The reason that a leaving worker gives is shown as one
 * line. */
#include "fleet.h"

#include "base/hash.h"
#include "wire/wire.h"

/* Writes a head as another version of kofn might send it. Returns its length.
 */
static size_t foreign_head(unsigned char *head, unsigned version, kf_wire type)
{
    kf_head h = {.type = type};
    uint16_t v = (uint16_t)version;
    uint64_t sum;
    size_t n = KF_HEAD + 16; /* it has grown */

    kf_head_write(head, &h);
    memset(head + KF_HEAD, 0, n - KF_HEAD);
    memcpy(head + 4, &v, sizeof v);
    sum = kf_hash(0, head, n - sizeof sum);
    memcpy(head + n - sizeof sum, &sum, sizeof sum);
    return n;
}

static void names_both(const char *words, unsigned version)
{
    char want[40];

    snprintf(want, sizeof want, "version %u", version);
    assert_non_null(strstr(words, want));
    snprintf(want, sizeof want, "this kofn %u", KF_WIRE_VERSION);
    assert_non_null(strstr(words, want));
}

static void keep_words(void *ud, const char *words)
{
    snprintf(ud, 300, "%s", words);
}

/* Opens a coordinator that writes its news to `news`. Connects a worker, which
 * has not sent anything. */
static void meet(loop_net *net, char *news, kofn_port **port,
                 kofn_transport **spoke, kofn_packet *came)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;

    o.news = keep_words;
    o.ud = news;
    loop_net_init(net, NULL);
    assert_ok(kofn_port_away(port, loop_hub(net), &o));
    *spoke = loop_spoke(net);
    assert_ok((*spoke)->wait(*spoke, 300 * KOFN_SECOND, came));
    assert_int_equal(came->what, KOFN_CAME);
}

static void part(loop_net *net, kofn_port *port, kofn_transport *spoke)
{
    port->close(port);
    spoke->close(spoke, 0);
    pthread_mutex_destroy(&net->lock);
}

static void other_worker(void **state)
{
    unsigned char head[KOFN_HEAD_MAX];
    char news[300] = "", refused[300];
    kofn_transport *spoke;
    kofn_packet k;
    kofn_port *port;
    kf_msg m;
    loop_net net;
    kf_head h;

    (void)state;
    meet(&net, news, &port, &spoke, &k);
    assert_ok(spoke->send(spoke, k.peer, head,
                          foreign_head(head, 1, KF_WIRE_HELLO), NULL, false));
    assert_int_equal(
        port->wait(port, port->now(port) + KOFN_SECOND / 20, KOFN_NEVER, &m),
        KOFN_AGAIN);
    names_both(news, 1);
    assert_ok(spoke->wait(spoke, 300 * KOFN_SECOND, &k));
    assert_ok(kf_head_read(&h, k.head, k.head_bytes));
    assert_int_equal(h.type, KF_WIRE_REFUSED);
    assert_ok(kf_wire_check(h.job, h.body_sum, k.body, k.body_bytes));
    snprintf(refused, sizeof refused, "%.*s", (int)k.body_bytes,
             (const char *)k.body);
    names_both(refused, 1);
    spoke->release(spoke, k.own);
    part(&net, port, spoke);
}

/* A dismissal is urgent. Over MPI it may come before a welcome that was sent
 * earlier. */
static void early_dismissal(void **state)
{
    const kf_head h = {.type = KF_WIRE_DISMISS, .job = 5};
    unsigned char head[KF_HEAD];
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kofn_transport *hub, *spoke;
    loop_net net;

    (void)state;
    o.patience = KOFN_SECOND / 10;
    loop_net_init(&net, NULL);
    hub = loop_hub(&net);
    spoke = loop_spoke(&net);
    kf_head_write(head, &h);
    assert_ok(hub->send(hub, 0, head, sizeof head, NULL, true));
    hub->close(hub, 0);
    assert_int_equal(kofn_serve(spoke, &o), KOFN_OK);
    pthread_mutex_destroy(&net.lock);
}

/* The job may end before a rank of MPI has said hello. */
static void late_hello(void **state)
{
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    char news[300] = "";
    kofn_transport *spoke;
    kofn_port *port;
    kofn_packet k;
    loop_net net;
    kf_msg m;

    (void)state;
    o.patience = KOFN_SECOND / 10;
    meet(&net, news, &port, &spoke, &k);
    assert_int_equal(port->wait(port, 0, 0, &m), KOFN_AGAIN);
    port->close(port);
    assert_int_equal(kofn_serve(spoke, &o), KOFN_OK);
    pthread_mutex_destroy(&net.lock);
}

typedef struct one_worker {
    kofn_transport *t;
    kofn_status end;
} one_worker;

static void *serve_one(void *ud)
{
    one_worker *w = ud;
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;

    o.patience = KOFN_SECOND / 10;
    w->end = kofn_serve(w->t, &o);
    return NULL;
}

static kofn_status (*send_at_once)(kofn_transport *, kofn_peer, const void *,
                                   size_t, const kofn_lent *, bool);
static int full; /* number of further urgent packets that are refused */

static kofn_status send_unless_full(kofn_transport *t, kofn_peer peer,
                                    const void *head, size_t bytes,
                                    const kofn_lent *body, bool urgent)
{
    if (urgent && full-- > 0)
        return KOFN_AGAIN;
    return send_at_once(t, peer, head, bytes, body, urgent);
}

static kofn_status wait_a_little(kofn_transport *t, kofn_time atmost,
                                 kofn_packet *k)
{
    return loop_wait(t, atmost < 1000000 ? atmost : 1000000, k);
}

/* A channel that is full of tasks has no room at first. */
static void full_channel(void **state)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_transport *hub;
    one_worker worker;
    pthread_t thread;
    kofn_port *port;
    loop_net net;
    kf_msg m;

    (void)state;
    loop_net_init(&net, NULL);
    hub = loop_hub(&net);
    send_at_once = hub->send;
    hub->send = send_unless_full;
    hub->wait = wait_a_little;
    assert_ok(kofn_port_away(&port, hub, &o));
    worker.t = loop_spoke(&net);
    assert_int_equal(pthread_create(&thread, NULL, serve_one, &worker), 0);
    assert_ok(
        port->wait(port, port->now(port) + 300 * KOFN_SECOND, KOFN_NEVER, &m));
    assert_int_equal(m.type, KF_MSG_HELLO);
    full = 3;
    port->close(port);
    pthread_join(thread, NULL);
    assert_int_equal(worker.end, KOFN_OK);
    pthread_mutex_destroy(&net.lock);
}

static kofn_status nothing_comes(kofn_transport *t, kofn_time atmost,
                                 kofn_packet *k)
{
    (void)t, (void)atmost, (void)k;
    return KOFN_TRANSPORT;
}

/* Rank 0 of MPI may end in order although its dismissal has not come. */
static void lost_transport(void **state)
{
    (void)state;
    for (int in_order = 0; in_order < 2; in_order++) {
        kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
        kofn_transport *hub, *spoke;
        loop_net net;

        loop_net_init(&net, NULL);
        hub = loop_hub(&net);
        spoke = loop_spoke(&net);
        spoke->wait = nothing_comes;
        spoke->over = in_order;
        assert_int_equal(kofn_serve(spoke, &o),
                         in_order ? KOFN_OK : KOFN_TRANSPORT);
        hub->close(hub, 0);
        pthread_mutex_destroy(&net.lock);
    }
}

static void other_coordinator(void **state)
{
    unsigned char head[KOFN_HEAD_MAX];
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kofn_transport *hub, *spoke;
    loop_net net;

    (void)state;
    o.patience = 10 * KOFN_SECOND;
    loop_net_init(&net, NULL);
    hub = loop_hub(&net);
    spoke = loop_spoke(&net);
    assert_ok(hub->send(
        hub, 0, head, foreign_head(head, KF_WIRE_VERSION + 1, KF_WIRE_WELCOME),
        NULL, false));
    assert_int_equal(kofn_serve(spoke, &o), KOFN_UNSUITED);
    names_both(kofn_errmsg(), KF_WIRE_VERSION + 1);
    hub->close(hub, 0);
    pthread_mutex_destroy(&net.lock);
}

static void say(kofn_transport *t, kofn_peer to, kf_head h, const char *words)
{
    unsigned char head[KF_HEAD];
    size_t n = strlen(words);

    h.body_sum = n ? kf_hash(h.job, words, n) : 0;
    kf_head_write(head, &h);
    assert_ok(t->send(t, to, head, sizeof head,
                      &(kofn_lent){words, n, NULL, NULL}, false));
}

/* A worker cannot forge lines of others, or move the cursor of the terminal. */
static void leaving_reason(void **state)
{
    static char long_one[1001];
    const struct {
        const char *said, *shown;
    } reason[] = {
        {"the disk is full", "went: the disk is full"},
        {"gone\x1b[2J\xc3\xa9\tso", "went: gone?[2J???so"},
        {"gone\nkofn: all is well", "went: gone"},
        {long_one, NULL},
    };

    (void)state;
    memset(long_one, 'x', sizeof long_one - 1);
    for (size_t i = 0; i < sizeof reason / sizeof *reason; i++) {
        char news[300] = "";
        kofn_transport *spoke;
        kofn_packet k;
        kofn_port *port;
        const char *words;
        kf_msg m;
        loop_net net;
        kf_head h;

        meet(&net, news, &port, &spoke, &k);
        say(spoke, k.peer, (kf_head){.type = KF_WIRE_HELLO}, "");
        assert_ok(port->wait(port, KOFN_NEVER, KOFN_NEVER, &m));
        assert_int_equal(m.type, KF_MSG_HELLO);
        assert_ok(spoke->wait(spoke, 300 * KOFN_SECOND, &k));
        assert_ok(kf_head_read(&h, k.head, k.head_bytes));
        assert_int_equal(h.type, KF_WIRE_WELCOME);
        spoke->release(spoke, k.own);
        say(spoke, k.peer, (kf_head){.type = KF_WIRE_BYE, .job = h.job},
            reason[i].said);
        assert_ok(port->wait(port, KOFN_NEVER, KOFN_NEVER, &m));
        assert_int_equal(m.type, KF_MSG_BYE);
        words = strstr(news, "went: ");
        assert_non_null(words);
        if (reason[i].shown)
            assert_string_equal(words, reason[i].shown);
        else
            assert_int_equal(strlen(words), strlen("went: ") + 200);
        part(&net, port, spoke);
    }
}

/* The coordinator's reason is printed without control characters, too. */
static void refusal_text(void **state)
{
    const char *words = "go\x1b]0;owned\x07 away \xf2\xff\xc2\x9b";
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kofn_transport *hub, *spoke;
    loop_net net;

    (void)state;
    o.patience = 10 * KOFN_SECOND;
    loop_net_init(&net, NULL);
    hub = loop_hub(&net);
    spoke = loop_spoke(&net);
    say(hub, 0, (kf_head){.type = KF_WIRE_REFUSED, .job = 7}, words);
    assert_int_equal(kofn_serve(spoke, &o), KOFN_UNSUITED);
    assert_string_equal(
        kofn_errmsg(),
        "the coordinator refuses this worker: go?]0;owned? away ????");
    hub->close(hub, 0);
    pthread_mutex_destroy(&net.lock);
}

TEST_FILE(away_version_test)
{
    const struct CMUnitTest tests[] = {
        TEST(other_worker,
             "away: a worker of another version is refused with both versions"),
        TEST(other_coordinator,
             "away: a worker refuses a coordinator of another version"),
        TEST(early_dismissal,
             "away: a worker may be dismissed before its welcome"),
        TEST(late_hello,
             "away: a worker is dismissed though it says hello after the job"),
        TEST(full_channel,
             "away: a dismissal waits until a full channel has room"),
        TEST(lost_transport,
             "away: a worker ends well if its transport ended in order"),
        TEST(leaving_reason,
             "away: the reason of a leaving worker is shown as one plain line"),
        TEST(refusal_text,
             "away: the text of a refusal has no control characters"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
