/* certificates_test.c -- keys as files: how they are made and protected, how
 * they are added and revoked, and certificates of a CA. */
#define _GNU_SOURCE
#include "keys_rig.h"

#include "net/keys.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

/* ---- keys that are added and revoked ---------------------------------------
 */

static size_t wanted;

static bool wanted_listed(kofn_transport *a, kofn_transport *b)
{
    (void)b;
    return kofn_net_listed(a) == wanted;
}

static bool wanted_admitted(kofn_transport *a, kofn_transport *b)
{
    return wanted_listed(a, b) && peers_of(a) == wanted;
}

static bool heard; /* true once the expected news has come */

static bool is_news(kofn_transport *a, kofn_transport *b)
{
    const char *news = a->news(a);

    (void)b;
    heard |= news && strstr(news, expected);
    return heard;
}

static void wait_for_news(kofn_transport *t, const char *news)
{
    expected = news;
    heard = false;
    until(t, NULL, is_news);
}

static void add_and_revoke(void **state)
{
    kofn_net_options o;
    kofn_transport *hub, *anna, *bert;
    keyring k;
    char away[64];
    kofn_peer peer;
    int fd;

    (void)state;
    keyring_new(&k);
    keyring_add(&k, "anna");
    o = with(k.dir);
    hub = listener(addresses[0], &o);
    assert_int_equal(kofn_net_listed(hub), 1);
    o = with(in(&k, "anna"));
    anna = dialler(hub, &o);
    came(hub, NULL);
    came(anna, NULL);

    /* adds another key, and a file that lists no key */
    fd = open(in(&k, "half.crt"), O_WRONLY | O_CREAT, 0644);
    assert_int_equal(write(fd, "-----BEGIN CERT", 15), 15);
    close(fd);
    keyring_add(&k, "bert");
    o = with(in(&k, "bert"));
    bert = dialler(hub, &o);
    peer = came(hub, NULL);
    came(bert, NULL);
    assert_string_equal(hub->principal_of(hub, peer), "bert");
    assert_int_equal(kofn_net_listed(hub), 2);

    /* anna's key is revoked: its connection ends, and it does not come back */
    assert_int_equal(rename(in(&k, "anna.crt"), in(&k, "anna.out")), 0);
    goes(hub, anna, 0);
    assert_int_equal(kofn_net_listed(hub), 1);
    until(hub, anna, refuses);
    wait_for_news(hub, "refused anna (");
    say(bert, 0, "here");
    hear(hub, peer, "here");

    /* anna's key is listed again */
    assert_int_equal(rename(in(&k, "anna.out"), in(&k, "anna.crt")), 0);
    wanted = 2;
    until(hub, NULL, wanted_listed);
    assert_int_equal(
        locked(hub)->keys->stamp,
        0); /* the folder may change again within the same second */
    unlock(hub);
    came(hub, NULL);

    /* the whole folder is removed, and put back */
    snprintf(away, sizeof away, "%s.away", k.dir);
    assert_int_equal(rename(k.dir, away), 0);
    wanted = 0;
    until(hub, NULL, wanted_admitted);
    wait_for_news(hub, "no key is listed any more");
    assert_null(hub->news(hub)); /* reported once a minute at most */
    assert_int_equal(rename(away, k.dir), 0);
    wanted = 2;
    until(hub, NULL, wanted_admitted);
    anna->close(anna, 0);
    bert->close(bert, 0);
    hub->close(hub, 0);
    keyring_free(&k);
}

static void unreadable_list(void **state)
{
    kofn_net_options o;
    kofn_transport *hub, *anna;
    keyring k;

    (void)state;
    keyring_new(&k);
    keyring_add(&k, "anna");
    o = with(k.dir);
    o.allow = in(&k, "anna.crt");
    hub = listener(addresses[0], &o);
    o = with(in(&k, "anna"));
    anna = dialler(hub, &o);
    came(hub, NULL);
    came(anna, NULL);
    assert_int_equal(unlink(in(&k, "anna.crt")), 0);
    assert_int_equal(mkfifo(in(&k, "anna.crt"), 0600), 0);
    wait_for_news(hub, "the former is used");
    assert_int_equal(kofn_net_listed(hub), 1);
    say(anna, 0, "here");
    hear(hub, 0, "here");
    anna->close(anna, 0);
    hub->close(hub, 0);
    keyring_free(&k);
}

static void changed_files(void **state)
{
    kofn_net_options o;
    kofn_transport *hub, *anna;
    keyring k;

    (void)state;
    keyring_new(&k);
    keyring_add(&k, "anna");
    keyring_add(&k, "carl");
    o = with(k.dir);
    hub = listener(addresses[0], &o);
    o = with(in(&k, "anna"));
    anna = dialler(hub, &o);
    came(hub, NULL);
    assert_int_equal(rename(in(&k, "anna.crt"), in(&k, "eve.crt")), 0);
    goes(hub, anna, 0);
    assert_string_equal(hub->principal_of(hub, came(hub, NULL)), "eve");
    assert_int_equal(rename(in(&k, "carl.crt"), in(&k, "eve.crt")), 0);
    goes(hub, anna, 1);
    anna->close(anna, 0);
    hub->close(hub, 0);
    keyring_free(&k);
}

/* ---- a CA ---------------------------------------------------------------- */

typedef struct authority {
    EVP_PKEY *key;
    X509 *x;
} authority;

static void extend(X509 *x, X509 *by, int nid, const char *text)
{
    X509_EXTENSION *e;
    X509V3_CTX c;

    X509V3_set_ctx(&c, by, x, NULL, NULL, 0);
    X509V3_set_ctx_nodb(&c);
    e = X509V3_EXT_conf_nid(NULL, &c, nid, text);
    assert_non_null(e);
    assert_int_equal(X509_add_ext(x, e, -1), 1);
    X509_EXTENSION_free(e);
}

/* Issues a certificate for `key`, signed by `by`, or self-signed if `by` is
 * NULL. It is valid for `until` seconds from now, since `begins` seconds from
 * now. */
static long begins = -100000;

static X509 *issue(const authority *by, EVP_PKEY *key, const char *cn,
                   const char *san, long until)
{
    static long serial;
    X509 *x = X509_new();
    X509_NAME *of = X509_get_subject_name(x);

    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(x), begins);
    X509_gmtime_adj(X509_getm_notAfter(x), until);
    X509_NAME_add_entry_by_txt(of, "CN", MBSTRING_ASC,
                               (const unsigned char *)cn, -1, -1, 0);
    X509_set_issuer_name(x, by ? X509_get_subject_name(by->x) : of);
    X509_set_pubkey(x, key);
    extend(x, by ? by->x : x, NID_basic_constraints,
           by ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (san)
        extend(x, by->x, NID_subject_alt_name, san);
    assert_true(X509_sign(x, by ? by->key : key, EVP_sha256()) > 0);
    return x;
}

static EVP_PKEY *new_key(void)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");

    assert_non_null(key);
    return key;
}

static authority authority_new(const keyring *k, const char *file)
{
    authority a = {new_key(), NULL};
    FILE *f = fopen(in(k, file), "w");

    a.x = issue(NULL, a.key, "some company", NULL, 100000);
    PEM_write_X509(f, a.x);
    fclose(f);
    return a;
}

static void authority_free(authority *a)
{
    EVP_PKEY_free(a->key);
    X509_free(a->x);
}

/* Makes NAME.crt and NAME.key. */
static void enrol(const keyring *k, const authority *a, const char *name,
                  const char *cn, const char *san, long until)
{
    EVP_PKEY *key = new_key();
    X509 *x = issue(a, key, cn, san, until);
    char file[40];
    FILE *f;

    snprintf(file, sizeof file, "%.30s.crt", name);
    f = fopen(in(k, file), "w");
    PEM_write_X509(f, x);
    fclose(f);
    snprintf(file, sizeof file, "%.30s.key", name);
    f = fopen(in(k, file), "w");
    PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
    fclose(f);
    assert_int_equal(chmod(in(k, file), 0600), 0);
    X509_free(x);
    EVP_PKEY_free(key);
}

typedef struct ca_options {
    kofn_net_options o;
    char ca[80], crt[80], key[80];
} ca_options;

static const kofn_net_options *papers_of(ca_options *p, const keyring *k,
                                         const char *ca, const char *name)
{
    *p = (ca_options){.o = patient};
    snprintf(p->ca, sizeof p->ca, "%s/%s", k->dir, ca);
    snprintf(p->crt, sizeof p->crt, "%s/%s.crt", k->dir, name);
    snprintf(p->key, sizeof p->key, "%s/%s.key", k->dir, name);
    p->o.tls_ca = p->ca;
    p->o.tls_cert = p->crt;
    p->o.tls_key = p->key;
    return &p->o;
}

static void ca_admits(void **state)
{
    static const struct {
        const char *file, *cn, *san, *name;
    } who[] = {
        {"plain", "plain", NULL, "plain"},
        {"dns", "other", "DNS:w1.example.org,DNS:w2", "w1.example.org"},
        {"uri", "other", "email:a@b.c,URI:spiffe://x/y", "spiffe://x/y"}};
    ca_options p;
    keyring k;
    authority a;
    kofn_transport *hub;

    (void)state;
    keyring_new(&k);
    a = authority_new(&k, "ca.crt");
    enrol(&k, &a, "hub", "hub", NULL, 10000);
    hub = listener(addresses[0], papers_of(&p, &k, "ca.crt", "hub"));
    assert_int_equal(kofn_net_listed(hub), 0);
    for (size_t i = 0; i < sizeof who / sizeof *who; i++) {
        char at[200];
        kofn_transport *t;

        enrol(&k, &a, who[i].file, who[i].cn, who[i].san, 10000);
        papers_of(&p, &k, "ca.crt", who[i].file);
        snprintf(at, sizeof at, "%s%s", i ? "hub@" : "",
                 kofn_net_endpoint(hub));
        assert_ok(kofn_net_connect(&t, at, &p.o));
        assert_string_equal(hub->principal_of(hub, came(hub, NULL)),
                            who[i].name);
        came(t, NULL);
        say(t, 0, "hello");
        hear(hub, (kofn_peer)i, "hello");
        t->close(t, 0);
        went(hub, (kofn_peer)i);
    }
    hub->close(hub, 0);
    authority_free(&a);
    keyring_free(&k);
}

static void ca_refuses(void **state)
{
    ca_options hub, p;
    keyring k;
    authority a, b;
    kofn_transport *t, *l;
    char at[200], date[40];
    time_t from;

    (void)state;
    keyring_new(&k);
    a = authority_new(&k, "a.ca");
    b = authority_new(&k, "b.ca");
    enrol(&k, &a, "hub", "hub", NULL, 10000);
    enrol(&k, &a, "late", "late", NULL, -10);
    enrol(&k, &a, "blank", "a blank", NULL, 10000);
    enrol(&k, &b, "stranger", "hub", NULL, 10000);
    begins = 5000;
    enrol(&k, &a, "early", "early", NULL, 10000);
    begins = -100000;
    papers_of(&hub, &k, "a.ca", "hub");
    refused(&hub.o, papers_of(&p, &k, "a.ca", "late"), "has expired");
    refused(&hub.o, papers_of(&p, &k, "a.ca", "blank"), "refuses this key");
    refused(&hub.o, papers_of(&p, &k, "a.ca", "stranger"), "of another CA");
    refused(papers_of(&p, &k, "b.ca", "stranger"), &hub.o, "another key");
    refused(papers_of(&p, &k, "a.ca", "late"), &hub.o, "expired");
    from = time(NULL) + 5000; /* on the same day, or soon after */
    strftime(date, sizeof date, "valid from %Y-%m-%d", gmtime(&from));
    refused(&hub.o, papers_of(&p, &k, "a.ca", "early"), date);
    refused(papers_of(&p, &k, "a.ca", "early"), &hub.o, date);
    /* the CA's certificate is right, but the name is not the expected one */
    l = listener(addresses[0], &hub.o);
    snprintf(at, sizeof at, "boss@%s", kofn_net_endpoint(l));
    assert_ok(kofn_net_connect(&t, at, papers_of(&p, &k, "a.ca", "hub")));
    expected = "is 'hub', not 'boss' as asked for";
    until(l, t, is_told);
    t->close(t, 0);
    l->close(l, 0);
    authority_free(&a);
    authority_free(&b);
    keyring_free(&k);
}

static void replaces(const keyring *k, const char *file, const char *by)
{
    char path[200];

    snprintf(path, sizeof path, "%s", in(k, by));
    assert_int_equal(rename(path, in(k, file)), 0);
}

static bool has_trouble(kofn_transport *a, kofn_transport *b)
{
    (void)a;
    return strstr(kofn_net_trouble(b), expected) != NULL;
}

static bool is_renewed(kofn_transport *a, kofn_transport *b)
{
    bool fine = !locked(a)->keys->trouble[0];

    (void)b;
    unlock(a);
    return fine;
}

/* Connects a peer and checks that the hub admits it under this name. */
static kofn_transport *admit(kofn_transport *hub, const ca_options *p,
                             const char *name)
{
    kofn_transport *t = dialler(hub, &p->o);

    assert_string_equal(hub->principal_of(hub, came(hub, NULL)), name);
    came(t, NULL);
    return t;
}

static void ca_renewed(void **state)
{
    ca_options p, q;
    keyring k;
    authority a, b;
    kofn_transport *hub, *anna, *bert, *carl;
    char at[200];

    (void)state;
    keyring_new(&k);
    a = authority_new(&k, "ca.crt");
    b = authority_new(&k, "b.crt");
    enrol(&k, &a, "hub", "hub", NULL, 10000);
    enrol(&k, &a, "new", "new", NULL, 10000);
    enrol(&k, &a, "anna", "anna", NULL, 10000);
    enrol(&k, &b, "carl", "carl", NULL, 10000);
    hub = listener(addresses[0], papers_of(&p, &k, "ca.crt", "hub"));
    papers_of(&p, &k, "ca.crt", "anna");
    anna = admit(hub, &p, "anna");
    snprintf(at, sizeof at, "new@%s", kofn_net_endpoint(hub));
    assert_ok(kofn_net_connect(&bert, at, &p.o));
    expected = "is 'hub', not 'new' as asked for";
    until(hub, bert, has_trouble);

    /* our certificate: for a moment it does not fit its key */
    replaces(&k, "hub.crt", "new.crt");
    replaces(&k, "hub.key", "new.key");
    came(hub, NULL);
    came(bert, NULL);

    /* the CA's certificate: each end has the certificate of the other's CA */
    assert_int_equal(link(in(&k, "ca.crt"), in(&k, "a.crt")), 0);
    papers_of(&q, &k, "a.crt", "carl");
    carl = dialler(hub, &q.o);
    expected = "of another CA";
    until(hub, carl, has_trouble);
    replaces(&k, "ca.crt", "b.crt");
    came(hub, NULL);
    came(carl, NULL);
    say(anna, 0, "still here");
    hear(hub, 0, "still here");
    anna->close(anna, 0);
    bert->close(bert, 0);
    carl->close(carl, 0);
    hub->close(hub, 0);
    authority_free(&a);
    authority_free(&b);
    keyring_free(&k);
}

static void ca_unusable(void **state)
{
    ca_options p;
    keyring k;
    authority a;
    kofn_transport *hub, *anna[3];

    (void)state;
    keyring_new(&k);
    a = authority_new(&k, "ca.crt");
    enrol(&k, &a, "hub", "hub", NULL, 10000);
    enrol(&k, &a, "new", "new", NULL, 10000);
    enrol(&k, &a, "anna", "anna", NULL, 10000);
    hub = listener(addresses[0], papers_of(&p, &k, "ca.crt", "hub"));
    papers_of(&p, &k, "ca.crt", "anna");

    replaces(&k, "hub.key", "new.key");
    wait_for_news(hub, "hub.key: there is no secret key in it");
    anna[0] = admit(hub, &p, "anna");
    replaces(&k, "old.crt", "hub.crt");
    wait_for_news(hub, "hub.crt: No such file");
    for (int i = 0; i < 3; i++) {
        locked(hub);
        kf_join_look(&inside(hub)->uv.look);
        unlock(hub);
        assert_null(hub->news(hub)); /* it was reported before */
    }
    anna[1] = admit(hub, &p, "anna");

    replaces(&k, "hub.crt", "new.crt"); /* now it fits */
    until(hub, NULL, is_renewed);
    anna[2] = admit(hub, &p, "anna");
    assert_null(hub->news(hub));
    for (int i = 0; i < 3; i++)
        anna[i]->close(anna[i], 0);
    hub->close(hub, 0);
    authority_free(&a);
    keyring_free(&k);
}

/* ---- files --------------------------------------------------------------- */

static mode_t mode_of(const char *path)
{
    struct stat s;

    assert_int_equal(lstat(path, &s), 0);
    return s.st_mode & 0777;
}

static void made_keys(void **state)
{
    static const char *const crt[] = {"coordinator.crt", "worker.crt",
                                      "anna.crt", "anna/worker.crt",
                                      "anna/coordinator.crt"};
    static const char *const cn[] = {"coordinator", "worker", "anna", "anna",
                                     "coordinator"};
    static const char *const key[] = {"coordinator.key", "worker.key",
                                      "anna/worker.key"};
    char name[64];

    (void)state;
    for (size_t i = 0; i < sizeof crt / sizeof *crt; i++) {
        FILE *f = fopen(in(&ring, crt[i]), "r");
        X509 *x = PEM_read_X509(f, NULL, NULL, NULL);

        assert_non_null(x);
        fclose(f);
        assert_true(X509_NAME_get_text_by_NID(X509_get_subject_name(x),
                                              NID_commonName, name,
                                              sizeof name) > 0);
        assert_string_equal(name, cn[i]);
        assert_int_equal(X509_verify(x, X509_get0_pubkey(x)), 1);
        X509_free(x);
        assert_int_equal(mode_of(in(&ring, crt[i])), 0644);
    }
    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        assert_int_equal(mode_of(in(&ring, key[i])), 0600);
    assert_int_equal(mode_of(ring.dir), 0700);
    assert_int_equal(mode_of(in(&ring, "anna")), 0700);
}

static size_t files_of(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void no_overwriting(void **state)
{
    static const char *const bad[] = {
        "",
        "-a",
        ".a",
        "a b",
        "a/b",
        "worker",
        "coordinator",
        "a123456789b123456789c123456789d123456789e123456789x"};
    size_t before = files_of(ring.dir);
    keyring k;

    (void)state;
    assert_status(KOFN_IO, kofn_net_keygen(ring.dir, NULL));
    assert_non_null(strstr(kofn_errmsg(), "never overwritten"));
    assert_status(KOFN_IO, kofn_net_keygen(ring.dir, "anna"));
    assert_non_null(strstr(kofn_errmsg(), "never overwritten"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(KOFN_INVAL, kofn_net_keygen(ring.dir, bad[i]));
    assert_int_equal(files_of(ring.dir), before);
    /* one existing file is enough to make none */
    keyring_new(&k);
    close(open(in(&k, "worker.crt"), O_CREAT | O_WRONLY, 0600));
    assert_status(KOFN_IO, kofn_net_keygen(k.dir, NULL));
    assert_int_equal(files_of(k.dir), 3);
    keyring_free(&k);
}

static void concurrent_keygen(void **state)
{
    static const char *const name[] = {"anna", "anna", "bert", "anna", "bert"};
    enum { MAKERS = sizeof name / sizeof *name };
    int made = 0, status, ready[2];
    pid_t pid[MAKERS];
    keyring k;
    char c;

    (void)state;
    keyring_new(&k);
    assert_int_equal(pipe(ready), 0);
    for (int i = 0; i < MAKERS; i++)
        if ((pid[i] = fork()) == 0) {
            close(ready[1]);
            (void)!read(ready[0], &c, 1); /* all begin when it is closed */
            _exit(kofn_net_keygen(k.dir, name[i]) != KOFN_OK);
        }
    close(ready[0]);
    close(ready[1]);
    for (int i = 0; i < MAKERS; i++) {
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        made += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    assert_int_equal(made, 2);
    assert_int_equal(access(in(&k, "coordinator.key"), F_OK), 0);
    assert_int_equal(access(in(&k, "anna/worker.key"), F_OK), 0);
    assert_int_equal(access(in(&k, "anna/worker.crt"), F_OK), 0);
    assert_int_equal(access(in(&k, "anna.crt"), F_OK), 0);
    assert_int_equal(access(in(&k, "bert/worker.key"), F_OK), 0);
    keyring_free(&k);
}

static void refuse_pipe(const kofn_net_options *o, const char *path)
{
    char was[200];
    kofn_transport *t;

    snprintf(was, sizeof was, "%s.was", path);
    assert_int_equal(rename(path, was), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_status(KOFN_FORMAT, kofn_net_listen(&t, addresses[0], o));
    assert_non_null(strstr(kofn_errmsg(), "is no regular file"));
    assert_int_equal(rename(was, path), 0);
}

static void pipes(void **state)
{
    static const char *const own[] = {"coordinator.key", "coordinator.crt",
                                      "anna.crt"};
    kofn_net_options o = with(ring.dir);
    ca_options p;
    keyring k;
    authority a;

    (void)state;
    for (int i = 0; i < 3; i++)
        refuse_pipe(&o, in(&ring, own[i]));
    keyring_new(&k);
    a = authority_new(&k, "ca.crt");
    enrol(&k, &a, "hub", "hub", NULL, 10000);
    papers_of(&p, &k, "ca.crt", "hub");
    refuse_pipe(&p.o, p.o.tls_ca);
    refuse_pipe(&p.o, p.o.tls_cert);
    refuse_pipe(&p.o, p.o.tls_key);
    authority_free(&a);
    keyring_free(&k);
}

/* Keys that the group may read are tested by keys_test of the other transport.
 */
static void key_modes(void **state)
{
    const kofn_net_options o = with(ring.dir);
    kofn_transport *t;
    const char *path = in(&ring, "coordinator.key");
    struct stat s;

    (void)state;
    assert_int_equal(lstat(path, &s), 0);
    for (mode_t m = 1; m < 8; m++) {
        assert_int_equal(chmod(path, 0600 | m), 0);
        assert_status(KOFN_INVAL, kofn_net_listen(&t, "tcp://127.0.0.1:*", &o));
        assert_non_null(strstr(kofn_errmsg(), "open to everybody"));
    }
    assert_int_equal(chmod(path, 0620), 0);
    assert_status(KOFN_INVAL, kofn_net_listen(&t, "tcp://127.0.0.1:*", &o));
    assert_int_equal(chown(path, (uid_t)-1, getegid()), 0);
    assert_int_equal(chmod(path, 0640), 0);
    assert_ok(kofn_net_listen(&t, "tcp://127.0.0.1:*", &o));
    t->close(t, 0);
    assert_int_equal(chmod(path, 0600), 0);
}

TEST_FILE(certificates_test)
{
    const struct CMUnitTest tests[] = {
        TEST(add_and_revoke,
             "keys: added keys are admitted, revoked ones disconnected"),
        TEST(unreadable_list,
             "keys: an unreadable list is reported, the former one is used"),
        TEST(changed_files,
             "keys: a renamed key has the new name, a replaced key ends"),
        TEST(ca_admits,
             "CA: certificates are admitted by their names (CN, DNS, URI)"),
        TEST(ca_refuses,
             "CA: expired, unnamed, foreign, unexpected ones are refused"),
        TEST(ca_renewed,
             "CA: changed files are read again, and former peers stay"),
        TEST(ca_unusable,
             "CA: unusable files are reported once, former ones are used"),
        TEST(made_keys,
             "keygen: certificates have their names and files their modes"),
        TEST(no_overwriting,
             "keygen: existing keys and bad names are refused without a file"),
        TEST(concurrent_keygen,
             "keygen: processes make one key for each name (5 processes)"),
        TEST(pipes, "keys: a pipe in the place of a file is refused at once"),
        TEST(key_modes, "keys: a secret that others can read is refused"),
    };

    return cmocka_run_group_tests_name("certificates", tests, make_ring,
                                       drop_ring);
}
