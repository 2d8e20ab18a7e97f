/* openssl_test.c -- the process-wide state of OpenSSL is left to the program.
 *
 * OpenSSL reads a configuration once in a process. So nothing here uses
 * OpenSSL before the transport does. */
#define _GNU_SOURCE
#include "keys_rig.h"

#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/ssl.h>

static const char text[] = "openssl_conf = all\n"
                           "[all]\n"
                           "oid_section = names\n"
                           "[names]\n"
                           "ofTheProgram = 1.2.3.4.5.6\n";

/* The program uses OpenSSL only after the transport, and its openssl.cnf is
 * read then. */
static void own_configuration(void **state)
{
    char path[] = "/tmp/kofn-test-XXXXXX";
    int fd = mkstemp(path);
    kofn_net_options o;
    kofn_transport *t;
    SSL_CTX *c;
    keyring k;

    (void)state;
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    assert_int_equal(setenv("OPENSSL_CONF", path, 1), 0);
    keyring_new(&k);
    assert_ok(kofn_net_keygen(k.dir, NULL));
    o = with(k.dir);
    t = listener(addresses[0], &o);
    c = SSL_CTX_new(TLS_method());
    assert_non_null(c);
    assert_int_not_equal(OBJ_txt2nid("ofTheProgram"), NID_undef);
    SSL_CTX_free(c);
    t->close(t, 0);
    keyring_free(&k);
    unlink(path);
}

/* The program has an error in its queue. The error stays there, and the
 * transport does not take it for its own. */
static void own_errors(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int l = socket(AF_INET, SOCK_STREAM, 0), fd;
    socklen_t bytes = sizeof at;
    char address[40];
    kofn_net_options o;
    kofn_transport *t;
    keyring k;
    kofn_packet p;

    (void)state;
    keyring_new(&k);
    assert_ok(kofn_net_keygen(k.dir, NULL));
    assert_int_equal(bind(l, (struct sockaddr *)&at, bytes) | listen(l, 9), 0);
    assert_int_equal(getsockname(l, (struct sockaddr *)&at, &bytes), 0);
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", ntohs(at.sin_port));
    ERR_clear_error();
    ERR_raise(ERR_LIB_SSL, SSL_R_CERTIFICATE_VERIFY_FAILED);
    o = with(k.dir);
    assert_ok(kofn_net_connect(&t, address, &o));
    fd = accept(l, NULL, NULL);
    shutdown(fd, SHUT_WR); /* ends within the handshake */
    while (!strstr(kofn_net_trouble(t), "no TLS handshake")) {
        assert_null(strstr(kofn_net_trouble(t), "another key"));
        assert_int_equal(t->wait(t, MILLI, &p), KOFN_AGAIN);
    }
    close(fd);
    close(l);
    t->close(t, 0);
    assert_int_equal(ERR_GET_REASON(ERR_get_error()),
                     SSL_R_CERTIFICATE_VERIFY_FAILED);
    assert_int_equal(ERR_get_error(), 0);
    keyring_free(&k);
}

TEST_FILE(openssl_test)
{
    const struct CMUnitTest tests[] = {
        TEST(own_configuration,
             "OpenSSL: the program's configuration is read after kofn's use"),
        TEST(own_errors,
             "OpenSSL: the program's queued error stays the program's"),
    };

    return cmocka_run_group_tests_name("openssl", tests, NULL, NULL);
}
