/* keys.c -- key files: read, believed only if they are kept well; and whose
 * certificate is whose.
 *
 * A secret key and a certificate are files of their own, in PEM.  Certificates of
 * `keys` are signed by nobody but themselves, and known byte for byte; those of
 * another CA are believed as it says.
 *
 * Owns the keys and certificates of a transport, and wipes what is secret when
 * it frees it.  A key that others may read is refused.
 */
#include "keys.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX ((off_t)16 << 20)
#define CHAIN_PINNED 4096 /* bytes of certificates that a stranger may send */
#define CHAIN_CA (16 << 10)

/* ---- files --------------------------------------------------------------- */

kofn_status kf_keys_join(char path[KF_PATH], const char *dir, const char *name)
{
    if (snprintf(path, KF_PATH, "%s/%s", dir, name) >= KF_PATH)
        return kf_fail(KOFN_INVAL, "%.80s...: the path is too long", dir);
    return KOFN_OK;
}

void kf_keys_wipe(char *text, size_t bytes)
{
    if (text)
        OPENSSL_cleanse(text, bytes);
    kf_free(text);
}

static const char *advice(int error)
{
    return error == ENOENT    ? "; make keys with kofn keygen"
           : error == ENOTDIR ? "; give the folder that kofn keygen made"
           : error == EACCES  ? "; keys are for their owner only"
                              : "";
}

static bool is_our_group(gid_t group)
{
    int n = getgroups(0, NULL), i = 0;
    gid_t *list = n > 0 ? kf_new((size_t)n, sizeof *list) : NULL;
    bool found = group == getegid();

    n = list ? getgroups(n, list) : 0;
    while (!found && i < n)
        found = list[i++] == group;
    kf_free(list);
    return found;
}

/* The fault in how a secret file is kept, or NULL.  Kubernetes and systemd hand
 * a secret to a process by one of its groups; what is root's is for root to
 * say. */
static const char *exposed(const struct stat *s)
{
    if (s->st_mode & 07)
        return "is open to everybody";
    if (s->st_mode & 030)
        return "can be changed or run by its group";
    if (!(s->st_mode & 040) || s->st_uid == 0)
        return NULL;
    if (s->st_uid != geteuid())
        return "can be read by its group, and is neither root's nor this "
               "user's";
    return is_our_group(s->st_gid)
               ? NULL
               : "can be read by its group, which is none of this process's";
}

static kofn_status check_kept(const char *path, const struct stat *s)
{
    const char *what = exposed(s);

    return what ? kf_fail(KOFN_INVAL,
                          "%s %s (mode %03o): it is no secret any more; make "
                          "new keys, or chmod 600 %s",
                          path, what, (unsigned)s->st_mode & 0777, path)
                : KOFN_OK;
}

static kofn_status read_all(int fd, const char *path, char *text, size_t room,
                            size_t *bytes)
{
    ssize_t n = 1;

    *bytes = 0;
    while (*bytes < room && n > 0) {
        n = read(fd, text + *bytes, room - *bytes);
        if (n < 0)
            return kf_fail(KOFN_IO, "%s: %s", path, strerror(errno));
        *bytes += (size_t)n;
    }
    text[*bytes < room ? *bytes : room - 1] = '\0';
    return *bytes < room ? KOFN_OK : kf_fail(KOFN_IO, "%s: it changes", path);
}

kofn_status kf_keys_text(const char *path, bool secret, char **text,
                         size_t *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error = errno;
    kofn_status st = KOFN_OK;
    struct stat s;

    *text = NULL;
    *bytes = 0;
    if (fd < 0)
        return kf_fail(KOFN_IO, "%s: %s%s", path, strerror(error),
                       advice(error));
    if (fstat(fd, &s))
        st = kf_fail(KOFN_IO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(s.st_mode) || s.st_size > FILE_MAX)
        st = kf_fail(KOFN_FORMAT, "%s is no file of keys", path);
    else if (secret)
        st = check_kept(path, &s);
    if (!st && !(*text = kf_new((size_t)s.st_size + 1, 1)))
        st = KOFN_NOMEM;
    if (!st)
        st = read_all(fd, path, *text, (size_t)s.st_size + 1, bytes);
    close(fd);
    if (st) {
        kf_keys_wipe(*text, *bytes);
        *text = NULL;
    }
    return st;
}

/* ---- names --------------------------------------------------------------- */

bool kf_keys_is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

/* A name that can be told from all others when it is shown, or NULL. */
static bool copy_name(const ASN1_STRING *s, char name[KF_NAME])
{
    int n = s ? ASN1_STRING_length(s) : 0;
    const unsigned char *p = s ? ASN1_STRING_get0_data(s) : NULL;

    if (n <= 0 || n >= KF_NAME)
        return false;
    for (int i = 0; i < n; i++)
        if (p[i] <= ' ' || p[i] > '~')
            return false;
    memcpy(name, p, (size_t)n);
    name[n] = '\0';
    return true;
}

static bool common_name(const X509 *x, char name[KF_NAME])
{
    const X509_NAME *of = X509_get_subject_name(x);
    int i = X509_NAME_get_index_by_NID(of, NID_commonName, -1);

    return i >= 0 &&
           copy_name(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(of, i)),
                     name);
}

/* The first DNS name or URI, and where there is none the CN. */
static bool name_of(const X509 *x, char name[KF_NAME])
{
    GENERAL_NAMES *all = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    bool named = false, found = false;

    for (int i = 0; i < sk_GENERAL_NAME_num(all) && !named; i++) {
        const GENERAL_NAME *g = sk_GENERAL_NAME_value(all, i);

        named = g->type == GEN_DNS || g->type == GEN_URI;
        if (named)
            found = copy_name(g->d.ia5, name);
    }
    GENERAL_NAMES_free(all);
    return named ? found : common_name(x, name);
}

/* ---- certificates -------------------------------------------------------- */

void kf_cards_free(kf_cards *c)
{
    for (size_t i = 0; i < c->count; i++)
        OPENSSL_free(c->card[i].der);
    kf_free(c->card);
    *c = (kf_cards){0};
}

static const kf_card *find(const kf_cards *c, const kf_card *same)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->card[i].bytes == same->bytes &&
            memcmp(c->card[i].der, same->der, same->bytes) == 0)
            return &c->card[i];
    return NULL;
}

static const kf_card *named(const kf_cards *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->card[i].name, name) == 0)
            return &c->card[i];
    return NULL;
}

static bool card_of(X509 *x, kf_card *out)
{
    int n;

    *out = (kf_card){0};
    n = i2d_X509(x, &out->der);
    out->bytes = n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* As its file is called; what is odd in that is not for a terminal. */
static void file_name(const char *path, char name[KF_NAME])
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(base),
           end = n > 4 && !strcmp(base + n - 4, ".crt") ? 4 : 0;

    snprintf(name, KF_NAME, "%.*s", (int)kf_min(n - end, KF_NAME - 32), base);
    for (char *c = name; *c; c++)
        if (!kf_keys_is_plain(*c))
            *c = '_';
}

/* Two that go by one name are told apart. */
static kofn_status add(kf_cards *to, X509 *x, const char *path, bool many)
{
    kf_card *card;
    size_t n;

    TRY(kf_grow(&to->card, &to->cap, to->count, sizeof *to->card));
    card = &to->card[to->count];
    if (!card_of(x, card))
        return KOFN_NOMEM;
    if (!many || !common_name(x, card->name))
        file_name(path, card->name);
    n = kf_min(strlen(card->name), KF_NAME - 32);
    if (named(to, card->name))
        snprintf(card->name + n, KF_NAME - n, "#%zu", to->count + 1);
    to->count++;
    return KOFN_OK;
}

static X509 *next_certificate(BIO *from)
{
    X509 *x = X509_new_ex(kf_tls_library(), NULL);

    if (x && PEM_read_bio_X509(from, &x, kf_tls_no_password, NULL))
        return x;
    X509_free(x);
    return NULL;
}

static bool at_the_end(void)
{
    unsigned long e = ERR_peek_last_error();

    return ERR_GET_LIB(e) == ERR_LIB_PEM &&
           ERR_GET_REASON(e) == PEM_R_NO_START_LINE;
}

kofn_status kf_keys_read(kf_cards *to, const char *path, bool many)
{
    size_t bytes, had = to->count;
    kofn_status st;
    char *text;
    BIO *from;
    X509 *x;

    TRY(kf_keys_text(path, false, &text, &bytes));
    from = BIO_new_mem_buf(text, (int)bytes);
    st = from ? KOFN_OK : KOFN_NOMEM;
    ERR_set_mark();
    while (!st && (x = next_certificate(from))) {
        st = add(to, x, path, many);
        X509_free(x);
    }
    if (!st && (to->count == had || !at_the_end()))
        st = kf_fail(KOFN_FORMAT,
                     "%s holds no certificate; make keys with kofn keygen",
                     path);
    ERR_pop_to_mark();
    BIO_free(from);
    kf_free(text);
    return st;
}

/* ---- whose it is --------------------------------------------------------- */

static bool know_of_ca(const kf_link *l, const X509 *x, char name[KF_NAME])
{
    return name_of(x, name) &&
           (!l->dial || !l->dial->who[0] || strcmp(l->dial->who, name) == 0);
}

bool kf_keys_know(const kf_link *l, X509 *x, char name[KF_NAME])
{
    const kf_keys *k = l->t->keys;
    const kf_card *is = NULL, *wanted;
    kf_card card;

    if (k->ca)
        return know_of_ca(l, x, name);
    if (!card_of(x, &card))
        return false;
    if (!l->dial || l->dial->who[0]) {
        is = find(&k->listed, &card);
        wanted = is && l->dial ? named(&k->listed, l->dial->who) : is;
        if (!wanted || find(&k->listed, wanted) != is)
            is = NULL;
    } else {
        is = find(&k->server, &card);
    }
    if (is)
        memcpy(name, is->name, KF_NAME);
    OPENSSL_free(card.der);
    return is != NULL;
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
                             "%s: nodes have keys of their own: say whose is "
                             "expected there, NAME@%s, of NAME.crt",
                             *address, *address)
                   : KOFN_OK;
    if (n < KF_NAME)
        snprintf(who, KF_NAME, "%.*s", (int)n, *address);
    if (!k || !who[0] || (!k->ca && !named(&k->listed, who)))
        return kf_fail(KOFN_INVAL,
                       "%s: there is no key %.*s.crt among those that come in",
                       *address, (int)n, *address);
    *address = at + 1;
    return KOFN_OK;
}

/* ---- what is given ------------------------------------------------------- */

static kofn_status check(const kofn_net_options *o)
{
    bool ca = o->tls_ca || o->tls_cert || o->tls_key;

    if (o->allow && !o->keys)
        return kf_fail(KOFN_INVAL,
                       "a list of keys that may come (%s), but no keys to be "
                       "recognised by",
                       o->allow);
    if (o->keys && ca)
        return kf_fail(KOFN_INVAL,
                       "keys (%s) and those of a CA: say one of "
                       "them",
                       o->keys);
    if ((o->keys || ca) && o->insecure)
        return kf_fail(KOFN_INVAL, "keys (%s) and insecure: say one of them",
                       o->keys ? o->keys : "of a CA");
    if (ca && !(o->tls_ca && o->tls_cert && o->tls_key))
        return kf_fail(KOFN_INVAL, "of a CA all three are needed: its "
                                   "certificate, ours, and our secret key");
    return KOFN_OK;
}

/* Advice where a file is not what it should be. */
#define ISSUED "give the files that the CA issued, in PEM"
#define MADE "make keys with kofn keygen"

static kofn_status use_key(SSL_CTX *c, const char *path, const char *remedy)
{
    EVP_PKEY *key = NULL;
    BIO *from = NULL;
    size_t bytes;
    char *text;
    bool good;

    TRY(kf_keys_text(path, true, &text, &bytes));
    ERR_set_mark();
    from = BIO_new_mem_buf(text, (int)bytes);
    if (from)
        key = PEM_read_bio_PrivateKey_ex(from, NULL, kf_tls_no_password, NULL,
                                         kf_tls_library(), NULL);
    good = key && SSL_CTX_use_PrivateKey(c, key) == 1 &&
           SSL_CTX_check_private_key(c) == 1;
    EVP_PKEY_free(key);
    BIO_free(from);
    kf_keys_wipe(text, bytes);
    ERR_pop_to_mark();
    return good ? KOFN_OK
                : kf_fail(KOFN_FORMAT,
                          "%s: there is no secret key in it (without a "
                          "password) that belongs to its certificate; %s",
                          path, remedy);
}

static kofn_status use_certificate(SSL_CTX *c, const char *path,
                                   const char *remedy)
{
    bool good;

    TRY(access(path, R_OK)
            ? kf_fail(KOFN_IO, "%s: %s%s", path, strerror(errno), advice(errno))
            : KOFN_OK);
    ERR_set_mark();
    good = SSL_CTX_use_certificate_chain_file(c, path) == 1;
    ERR_pop_to_mark();
    return good ? KOFN_OK
                : kf_fail(KOFN_FORMAT,
                          "%s holds no certificate that can be used; %s", path,
                          remedy);
}

static kofn_status can_be_read(const char *path, const char *what)
{
    return access(path, R_OK)
               ? kf_fail(KOFN_IO, "%s: %s; give a file, in PEM, with %s", path,
                         strerror(errno), what)
               : KOFN_OK;
}

/* ---- of a CA ------------------------------------------------------------- */

/* A number that changes with them; 0: they may change without that. */
static uint64_t stamp_of(char *const file[KF_FILES])
{
    uint64_t sum = 1;

    for (int i = 0; i < KF_FILES && sum; i++) {
        uint64_t one = kf_list_stamp(file[i]);

        sum = one ? (sum ^ one) * KF_STEP64 : 0;
    }
    return sum;
}

static kofn_status read_files(SSL_CTX **out, char *const file[KF_FILES])
{
    SSL_CTX *c;
    bool good;

    TRY(can_be_read(file[KF_FILE_CA], "the certificates of the CA"));
    TRY(can_be_read(file[KF_FILE_CERT], "the certificate of this process"));
    TRY(can_be_read(file[KF_FILE_KEY], "the secret key of this process"));
    TRY(kf_tls_context(out, CHAIN_CA));
    c = *out;
    TRY(use_certificate(c, file[KF_FILE_CERT], ISSUED));
    TRY(use_key(c, file[KF_FILE_KEY], ISSUED));
    ERR_set_mark();
    good = SSL_CTX_load_verify_file(c, file[KF_FILE_CA]) == 1;
    ERR_pop_to_mark();
    return good ? KOFN_OK
                : kf_fail(KOFN_FORMAT, "%s holds no certificate of a CA; %s",
                          file[KF_FILE_CA], ISSUED);
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

/* Files that are replaced one after the other do not fit for a moment: it is trouble
 * if they do not at the next look either. */
static void cannot_renew(kf_keys *k, const char *why)
{
    bool same = strncmp(k->trouble, why, sizeof k->trouble - 1) == 0;

    snprintf(k->trouble, sizeof k->trouble, "%s", why);
    k->lasts = same;
    k->told &= same;
}

/* A connection that was made keeps the context that it was made with. */
void kf_keys_renew(kf_keys *k)
{
    uint64_t now = stamp_of(k->file);
    SSL_CTX *c = NULL;

    if (now && now == k->stamp)
        return;
    if (read_files(&c, k->file)) {
        SSL_CTX_free(c);
        cannot_renew(k, kofn_errmsg());
        return;
    }
    SSL_CTX_free(k->context);
    k->context = c;
    k->stamp = now;
    k->trouble[0] = '\0';
    k->lasts = k->told = false;
}

bool kf_keys_news(kf_keys *k, char *words, size_t room)
{
    if (!k || !k->lasts || k->told)
        return false;
    snprintf(words, room,
             "renewed certificates are not used, but the former: %s",
             k->trouble);
    k->told = true;
    return true;
}

/* ---- of a folder --------------------------------------------------------- */

/* Nodes of a mesh have one key in common, unless each has its own, which is called
 * otherwise. */
static kofn_status read_server(kf_keys *k, const char *own, const char *dir)
{
    char path[KF_PATH], name[KF_NAME] = "";
    X509 *x = SSL_CTX_get0_certificate(k->context);

    if (own && (!common_name(x, name) || strcmp(name, KF_COMMON) != 0)) {
        k->by_name = true;
        return KOFN_OK;
    }
    if (own)
        return kf_keys_read(&k->server, own, false);
    TRY(kf_keys_join(path, dir, "coordinator.crt"));
    return kf_keys_read(&k->server, path, false);
}

static kofn_status use_folder(kf_keys *k, bool listens, bool dials,
                              const kofn_net_options *o)
{
    char key[KF_PATH], own[KF_PATH];

    TRY(kf_keys_join(key, o->keys, dials ? "worker.key" : "coordinator.key"));
    TRY(kf_keys_join(own, o->keys, dials ? "worker.crt" : "coordinator.crt"));
    TRY(kf_tls_context(&k->context, CHAIN_PINNED));
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

/* ---- opening ------------------------------------------------------------- */

kofn_status kf_keys_open(kf_transport *t, bool listens, bool dials,
                         const kofn_net_options *o)
{
    kf_keys *k;

    TRY(check(o));
    if (!o->keys && !o->tls_ca)
        return KOFN_OK;
    k = kf_zero(1, sizeof *k);
    if (!k)
        return KOFN_NOMEM;
    t->keys = k;
    TRY(o->keys ? use_folder(k, listens, dials, o) : use_ca(k, o));
    if (k->allow || k->ca)
        uv_timer_start(&t->look, kf_keys_look, 1000, 1000);
    return KOFN_OK;
}

void kf_keys_free(kf_keys *k)
{
    if (!k)
        return;
    SSL_CTX_free(k->context);
    kf_cards_free(&k->server);
    kf_cards_free(&k->listed);
    for (int i = 0; i < KF_FILES; i++)
        kf_free(k->file[i]);
    kf_free(k->allow);
    kf_free(k);
}
