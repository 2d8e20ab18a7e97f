/* keys.c -- the keys of a transport: its own, and those that it accepts.
 *
 * Certificates in a folder `keys` are self-signed and compared byte for byte.
 * Certificates of a CA are accepted if the CA's certificate verifies them.
 *
 * Owns the keys and certificates of a transport. If changed files cannot be
 * read, the former keys stay in use. If the list of keys is removed, no key is
 * listed. */
#include "keys.h"

#include <assert.h>
#include <errno.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define CHAIN_PINNED 4096 /* bytes of certificates that a stranger may send */
#define CHAIN_CA (16 << 10)
/* interval of repeated news about one trouble */
#define AGAIN (60 * KOFN_SECOND)

/* ---- owner of a key ------------------------------------------------------ */

bool kf_keys_know(const kf_link *l, const X509 *x, char name[KF_NAME])
{
    const char *who = l->dial ? l->dial->who : NULL; /* expected name */
    const kf_keys *k = l->t->keys;
    const kf_card *is, *wanted;

    assert(k);
    if (k->ca)
        return kf_card_name(x, name) &&
               (!who || !*who || strcmp(who, name) == 0);
    is = kf_cards_find(who && !*who ? &k->server : &k->listed, x);
    wanted = who && *who ? kf_cards_named(&k->listed, who) : is;
    if (!is || !wanted || X509_cmp(is->x, wanted->x) != 0)
        return false;
    memcpy(name, is->name, KF_NAME);
    return true;
}

bool kf_keys_name(const kf_link *l, char name[KF_NAME])
{
    X509 *x = SSL_get0_peer_certificate(l->secure.tls);

    assert(l->secure.tls);
    return x && kf_keys_know(l, x, name);
}

bool kf_keys_revoked(const kf_link *l)
{
    char name[KF_NAME];

    if (!l->secure.tls || l->state < KF_STRANGE || l->state > KF_PEER ||
        (l->dial && !l->dial->who[0]))
        return false;
    return !kf_keys_name(l, name) ||
           (l->principal[0] && strcmp(name, l->principal) != 0);
}

kofn_status kf_keys_expect(const kf_transport *t, const char **address,
                           char who[KF_NAME])
{
    const char *at = strchr(*address, '@'), *scheme = strstr(*address, "://");
    const kf_keys *k = t->keys;
    bool has = at && scheme && at < scheme;
    size_t n = has ? (size_t)(at - *address) : 0;

    who[0] = '\0';
    if (!has)
        return k && k->by_name
                   ? kf_fail(KOFN_INVAL,
                             "%s: each node has its own key: name the one that "
                             "is expected there, as NAME@%s for NAME.crt",
                             *address, *address)
                   : KOFN_OK;
    if (n < KF_NAME)
        snprintf(who, KF_NAME, "%.*s", (int)n, *address);
    if (!k || !who[0] || (!k->ca && !kf_cards_named(&k->listed, who)))
        return kf_fail(KOFN_INVAL,
                       "%s: there is no key %.*s.crt among the listed ones",
                       *address, (int)n, *address);
    *address = at + 1;
    return KOFN_OK;
}

size_t kofn_net_listed(const kofn_transport *base)
{
    kf_transport *t = (kf_transport *)(uintptr_t)base;
    size_t n;

    pthread_mutex_lock(&t->lock);
    n = t->keys ? t->keys->listed.count : 0;
    pthread_mutex_unlock(&t->lock);
    return n;
}

/* ---- contexts ------------------------------------------------------------ */

/* Copies the name of a certificate, expected or not; "" if it has none. */
static void name_of(const kf_keys *k, const X509 *x, char name[KF_NAME])
{
    const kf_card *card = k->ca ? NULL : kf_cards_find(&k->listed, x);

    name[0] = '\0';
    if (card)
        memcpy(name, card->name, KF_NAME);
    else if (k->ca && !kf_card_name(x, name))
        name[0] = '\0';
}

void kf_keys_begins(const X509 *x, char date[KF_DATE])
{
    const ASN1_TIME *from = x ? X509_get0_notBefore(x) : NULL;
    struct tm tm;

    date[0] = '\0';
    if (from && X509_cmp_current_time(from) > 0 && ASN1_TIME_to_tm(from, &tm))
        strftime(date, KF_DATE, "%Y-%m-%d %H:%M:%S UTC", &tm);
}

/* Notes whether the key that another end has was listed once, and its name. */
static void name_revoked(const kf_link *l, const X509 *x)
{
    const kf_card *was = kf_cards_find(&l->t->keys->revoked, x);

    snprintf(l->t->text.revoked, sizeof l->t->text.revoked, "%s",
             was ? was->name : "");
}

static int verify(X509_STORE_CTX *store, void *ud)
{
    SSL *ssl =
        X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    const kf_link *l = SSL_get_app_data(ssl);
    const X509 *x = X509_STORE_CTX_get0_cert(store);
    char name[KF_NAME];

    (void)ud;
    if (l->dial)
        l->dial->met[0] = l->dial->begins[0] = '\0';
    if (l->t->keys->ca && X509_verify_cert(store) <= 0) {
        if (l->dial)
            kf_keys_begins(X509_STORE_CTX_get_current_cert(store),
                           l->dial->begins);
        if (X509_STORE_CTX_get_error(store) ==
            X509_V_ERR_CERT_SIGNATURE_FAILURE)
            X509_STORE_CTX_set_error(/* another CA of the same name */
                                     store,
                                     X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
        return 0;
    }
    if (kf_keys_know(l, x, name))
        return 1;
    if (l->dial)
        name_of(l->t->keys, x, l->dial->met);
    else
        name_revoked(l, x);
    X509_STORE_CTX_set_error(store, l->dial ? X509_V_ERR_HOSTNAME_MISMATCH
                                            : X509_V_ERR_CERT_REVOKED);
    return 0;
}

/* Makes a context for TLS 1.3 only, without costly features and without memory
 * of peers. */
static kofn_status make_context(SSL_CTX **out, size_t chain)
{
    kf_errors errors;
    OSSL_LIB_CTX *library = kf_openssl_library();
    SSL_CTX *c;

    kf_openssl_begin(&errors);
    c = library ? SSL_CTX_new_ex(library, NULL, TLS_method()) : NULL;
    *out = c;
    if (!c || !SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) ||
        !SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION) ||
        !SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256:"
                                     "TLS_AES_256_GCM_SHA384:"
                                     "TLS_CHACHA20_POLY1305_SHA256") ||
        !SSL_CTX_set1_groups_list(c, "X25519:P-256") ||
        !SSL_CTX_set_num_tickets(c, 0)) {
        kofn_status st =
            kf_fail(KOFN_TRANSPORT, "no TLS 1.3: %s", kf_openssl_words());

        kf_openssl_end(&errors);
        return st;
    }
    kf_openssl_end(&errors);
    SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
                               SSL_OP_PRIORITIZE_CHACHA |
                               SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE |
                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       NULL);
    SSL_CTX_set_cert_verify_callback(c, verify, NULL);
    SSL_CTX_set_max_cert_list(c, (long)chain);
    return KOFN_OK;
}

/* ---- options ------------------------------------------------------------- */

static kofn_status check(const kofn_net_options *o)
{
    bool ca = o->tls_ca || o->tls_cert || o->tls_key;

    if (o->allow && !o->keys)
        return kf_fail(KOFN_INVAL,
                       "a list of keys (%s), but no keys of this process; give "
                       "keys too",
                       o->allow);
    if (o->keys && ca)
        return kf_fail(KOFN_INVAL,
                       "keys (%s) and those of a CA: give one of "
                       "them",
                       o->keys);
    if ((o->keys || ca) && o->insecure)
        return kf_fail(KOFN_INVAL, "keys (%s) and insecure: give one of them",
                       o->keys ? o->keys : "of a CA");
    if (ca && !(o->tls_ca && o->tls_cert && o->tls_key))
        return kf_fail(KOFN_INVAL, "keys of a CA need three files: its "
                                   "certificate, ours, and our secret key");
    return KOFN_OK;
}

/* Advice for an invalid file. */
#define ISSUED "give the files that the CA issued, in PEM"
#define MADE "make keys with kofn keygen"

static kofn_status use_key(SSL_CTX *c, const char *path, const char *remedy)
{
    kf_errors errors;
    EVP_PKEY *key;
    BIO *from;
    bool good;

    TRY(kf_keyfile_text(path, true, &from));
    kf_openssl_begin(&errors);
    key = PEM_read_bio_PrivateKey_ex(from, NULL, NULL, KF_NO_PASSWORD,
                                     kf_openssl_library(), NULL);
    good = key && SSL_CTX_use_PrivateKey(c, key) == 1 &&
           SSL_CTX_check_private_key(c) == 1;
    EVP_PKEY_free(key);
    BIO_free(from);
    kf_openssl_end(&errors);
    return good ? KOFN_OK
                : kf_fail(KOFN_FORMAT,
                          "%s: there is no secret key in it (without a "
                          "password) that belongs to its certificate; %s",
                          path, remedy);
}

static kofn_status use_certificate(SSL_CTX *c, const char *path,
                                   const char *remedy)
{
    kf_errors errors;
    BIO *from;
    X509 *x;
    bool good;

    TRY(kf_keyfile_text(path, false, &from));
    kf_openssl_begin(&errors);
    x = kf_keyfile_next(from);
    good = x && SSL_CTX_use_certificate(c, x) == 1;
    X509_free(x);
    while (good && (x = kf_keyfile_next(from)))
        if (SSL_CTX_add0_chain_cert(c, x) != 1) {
            X509_free(x);
            good = false;
        }
    good = good && kf_keyfile_ends();
    kf_openssl_end(&errors);
    BIO_free(from);
    return good ? KOFN_OK
                : kf_fail(KOFN_FORMAT,
                          "%s holds no certificate that can be used; %s", path,
                          remedy);
}

/* ---- files of a CA ------------------------------------------------------- */

/* Returns a number that changes with the files; 0: they may change without a
 * change of it. */
static uint64_t stamp_of(char *const file[KF_FILES])
{
    uint64_t sum = 1;

    for (int i = 0; i < KF_FILES && sum; i++) {
        uint64_t one = kf_list_stamp(file[i]);

        sum = one ? (sum ^ one) * KF_STEP64 : 0;
    }
    return sum;
}

/* Adds the certificates, and lists of revoked ones, of a text. */
static bool add_ca(SSL_CTX *c, BIO *from)
{
    X509_STORE *to = SSL_CTX_get_cert_store(c);
    STACK_OF(X509_INFO) *all = PEM_X509_INFO_read_bio_ex(
        from, NULL, NULL, KF_NO_PASSWORD, kf_openssl_library(), NULL);
    bool good = all != NULL;
    int cards = 0;

    for (int i = 0; i < sk_X509_INFO_num(all); i++) {
        const X509_INFO *one = sk_X509_INFO_value(all, i);

        cards += one->x509 != NULL;
        good &= !one->x509 || X509_STORE_add_cert(to, one->x509) == 1;
        good &= !one->crl || X509_STORE_add_crl(to, one->crl) == 1;
    }
    sk_X509_INFO_pop_free(all, X509_INFO_free);
    return good && cards > 0;
}

static kofn_status use_ca_file(SSL_CTX *c, const char *path)
{
    kf_errors errors;
    BIO *from;
    bool good;

    TRY(kf_keyfile_text(path, false, &from));
    kf_openssl_begin(&errors);
    good = add_ca(c, from);
    kf_openssl_end(&errors);
    BIO_free(from);
    return good ? KOFN_OK
                : kf_fail(KOFN_FORMAT, "%s holds no certificate of a CA; %s",
                          path, ISSUED);
}

static kofn_status read_files(SSL_CTX **out, char *const file[KF_FILES])
{
    static const char *const what[KF_FILES] = {
        "the certificates of the CA", "the certificate of this process",
        "the secret key of this process"};
    SSL_CTX *c;

    for (int i = 0; i < KF_FILES; i++)
        if (access(file[i], R_OK))
            return kf_fail(KOFN_IO, "%s: %s; give a file, in PEM, with %s",
                           file[i], strerror(errno), what[i]);
    TRY(make_context(out, CHAIN_CA));
    c = *out;
    TRY(use_certificate(c, file[KF_FILE_CERT], ISSUED));
    TRY(use_key(c, file[KF_FILE_KEY], ISSUED));
    return use_ca_file(c, file[KF_FILE_CA]);
}

static kofn_status use_ca(kf_keys *k, const kofn_net_options *o)
{
    k->ca = true;
    k->file[KF_FILE_CA] = kf_strdup(o->tls_ca);
    k->file[KF_FILE_CERT] = kf_strdup(o->tls_cert);
    k->file[KF_FILE_KEY] = kf_strdup(o->tls_key);
    for (int i = 0; i < KF_FILES; i++)
        if (!k->file[i])
            return KOFN_NOMEM;
    k->stamp = stamp_of(k->file);
    return read_files(&k->context, k->file);
}

/* Records trouble. Files that are replaced one after the other do not match for
 * a moment, and a folder that is replaced is absent for a moment. So only
 * trouble that lasts until the next check is reported. */
static void cannot_renew(kf_keys *k, const char *effect, const char *why)
{
    bool same = strncmp(k->trouble, why, sizeof k->trouble - 1) == 0;

    snprintf(k->trouble, sizeof k->trouble, "%s", why);
    k->effect = effect;
    k->lasts = same;
    k->reported_at = same ? k->reported_at : 0;
}

static void no_trouble(kf_keys *k)
{
    k->trouble[0] = '\0';
    k->lasts = false;
    k->reported_at = 0;
}

/* Reads changed files of a CA. Existing connections keep their context. */
static void renew_ca(kf_keys *k)
{
    uint64_t now = stamp_of(k->file);
    SSL_CTX *c = NULL;

    if (now && now == k->stamp)
        return;
    if (read_files(&c, k->file)) {
        SSL_CTX_free(c);
        cannot_renew(k, "renewed certificates are not used, but the former",
                     kofn_errmsg());
        return;
    }
    SSL_CTX_free(k->context);
    k->context = c;
    k->stamp = now;
    no_trouble(k);
}

bool kf_keys_news(kf_keys *k, char *words, size_t room)
{
    kofn_time now = kf_clock();

    if (!k || !k->lasts || (k->reported_at && now - k->reported_at < AGAIN))
        return false;
    snprintf(words, room, "%s: %s", k->effect, k->trouble);
    k->reported_at = now;
    return true;
}

/* ---- keys in a folder ---------------------------------------------------- */

/* Reads the key that is expected at the other end. Nodes of a mesh share one
 * key, unless each has its own, which has another name. */
static kofn_status read_server(kf_keys *k, const char *own, const char *dir)
{
    char path[KF_PATH], name[KF_NAME] = "";
    X509 *x = SSL_CTX_get0_certificate(k->context);

    if (own &&
        (!kf_card_common_name(x, name) || strcmp(name, KF_COMMON) != 0)) {
        k->by_name = true;
        return KOFN_OK;
    }
    if (own)
        return kf_keyfile_read(&k->server, own, false);
    TRY(kf_keyfile_join(path, dir, "coordinator.crt"));
    return kf_keyfile_read(&k->server, path, false);
}

static kofn_status use_folder(kf_keys *k, bool listens, bool dials,
                              const kofn_net_options *o)
{
    char key[KF_PATH], own[KF_PATH];

    TRY(kf_keyfile_join(key, o->keys,
                        dials ? "worker.key" : "coordinator.key"));
    TRY(kf_keyfile_join(own, o->keys,
                        dials ? "worker.crt" : "coordinator.crt"));
    TRY(make_context(&k->context, CHAIN_PINNED));
    TRY(use_certificate(k->context, own, MADE));
    TRY(use_key(k->context, key, MADE));
    if (dials)
        TRY(read_server(k, listens ? own : NULL, o->keys));
    if (!listens)
        return KOFN_OK;
    k->allow = kf_strdup(o->allow ? o->allow : o->keys);
    if (!k->allow)
        return KOFN_NOMEM;
    k->stamp = kf_list_stamp(k->allow);
    return kf_list_read(&k->listed, k->allow, true);
}

#define REVOKED 256 /* most revoked keys whose names are kept */

/* Replaces the list, and keeps those that are no longer on it. Without memory
 * or room their names are forgotten. */
static void replace_list(kf_keys *k, const kf_cards *is)
{
    for (size_t i = 0; i < k->listed.count; i++) {
        const kf_card *was = &k->listed.card[i];
        kf_cards *to = &k->revoked;

        if (kf_cards_find(is, was->x) || kf_cards_find(to, was->x) ||
            to->count >= REVOKED ||
            kf_grow(&to->card, &to->cap, to->count, sizeof *to->card))
            continue;
        X509_up_ref(was->x);
        to->card[to->count++] = *was;
    }
    kf_cards_free(&k->listed);
    k->listed = *is;
}

/* Handles a list that cannot be read. A list that was removed lists no key;
 * otherwise the former list stays in use. True: the list is another now. */
static bool cannot_list(kf_keys *k)
{
    bool gone = kf_list_is_gone(k->allow);

    cannot_renew(k,
                 gone ? "no key is listed any more, so that all connections "
                        "with keys are ended"
                      : "the list of keys cannot be read, and the former is "
                        "used",
                 kofn_errmsg());
    k->stamp = 0;
    if (!gone || !k->lasts || k->listed.count == 0)
        return false;
    replace_list(k, &(kf_cards){0});
    return true;
}

bool kf_keys_renew(kf_keys *k)
{
    kf_cards is = {0};
    uint64_t now;

    assert(k->ca || k->allow);
    if (k->ca) {
        renew_ca(k);
        return false;
    }
    now = kf_list_stamp(k->allow);
    if (now && now == k->stamp)
        return false;
    if (kf_list_read(&is, k->allow, false)) {
        kf_cards_free(&is);
        return cannot_list(k);
    }
    replace_list(k, &is);
    k->stamp = now;
    no_trouble(k);
    return true;
}

/* ---- opening ------------------------------------------------------------- */

kofn_status kf_keys_open(kf_transport *t, bool listens, bool dials,
                         const kofn_net_options *o)
{
    kf_keys *k;

    TRY(check(o));
    if (!o->keys && !o->tls_ca)
        return KOFN_OK;
    TRY_ZERO(k, 1);
    t->keys = k;
    return o->keys ? use_folder(k, listens, dials, o) : use_ca(k, o);
}

bool kf_keys_may_change(const kf_keys *k)
{
    return k && (k->allow || k->ca);
}

void kf_keys_free(kf_keys *k)
{
    if (!k)
        return;
    SSL_CTX_free(k->context);
    kf_cards_free(&k->server);
    kf_cards_free(&k->revoked);
    kf_cards_free(&k->listed);
    for (int i = 0; i < KF_FILES; i++)
        kf_free(k->file[i]);
    kf_free(k->allow);
    kf_free(k);
}
