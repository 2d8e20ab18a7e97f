/* openssl_test.c -- what of OpenSSL belongs to the process is left to the program.
 *
 * A configuration is read once in a process, so nothing here uses OpenSSL before the
 * transport does. */
#define _GNU_SOURCE
#include "keys_rig.h"

#include <openssl/objects.h>
#include <openssl/ssl.h>

static const char text[] = "openssl_conf = all\n"
                           "[all]\n"
                           "oid_section = names\n"
                           "[names]\n"
                           "ofTheProgram = 1.2.3.4.5.6\n";

/* The program's openssl.cnf is read when it uses OpenSSL itself, after us. */
static void its_configuration_is_read(void **state)
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

TEST_FILE(openssl_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_configuration_is_read),
    };

    return cmocka_run_group_tests_name("openssl", tests, NULL, NULL);
}
