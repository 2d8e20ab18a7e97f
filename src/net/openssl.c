/* openssl.c -- the use of OpenSSL: a separate library context, which reads no
 * configuration and leaves no work for the end of the process.
 *
 * Owns that context, one for the process. */
#include "keys.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static OSSL_LIB_CTX *library;

/* Makes the library context. OpenSSL is not initialised before. The first
 * caller of OpenSSL decides for the whole process whether openssl.cnf is read,
 * and what OpenSSL does at exit. That decision is the program's. If the program
 * does not decide, OpenSSL uses its defaults. Engines and providers of the
 * program's configuration are not in this context. Only the settings for all
 * TLS connections (system_default) hold here too. */
static void begin(void)
{
    library = OSSL_LIB_CTX_new();
}

OSSL_LIB_CTX *kf_openssl_library(void)
{
    pthread_once(&once, begin);
    return library;
}

/* Saves the program's errors and empties the queue. A handshake would empty it
 * as well. */
void kf_openssl_begin(kf_errors *e)
{
    const char *file, *function, *data;
    int flags;

    for (e->count = 0; e->count < KF_ERRORS; e->count++) {
        kf_error *one = &e->of[e->count];

        one->code =
            ERR_get_error_all(&file, &one->line, &function, &data, &flags);
        if (!one->code)
            break;
        snprintf(one->file, sizeof one->file, "%s", file);
        snprintf(one->function, sizeof one->function, "%s", function);
        snprintf(one->data, sizeof one->data, "%s",
                 flags & ERR_TXT_STRING ? data : "");
    }
}

void kf_openssl_end(const kf_errors *e)
{
    int error = errno; /* the caller reads it afterwards */

    assert(e->count <= KF_ERRORS);
    if (ERR_peek_error())
        ERR_clear_error();
    for (size_t i = 0; i < e->count; i++) {
        const kf_error *one = &e->of[i];

        ERR_new();
        ERR_set_debug(one->file, one->line, one->function);
        ERR_set_error(ERR_GET_LIB(one->code), ERR_GET_REASON(one->code),
                      one->data[0] ? "%s" : NULL, one->data);
    }
    errno = error;
}

unsigned long kf_openssl_error(void)
{
    return ERR_peek_last_error();
}

const char *kf_openssl_words(void)
{
    const char *why = ERR_reason_error_string(kf_openssl_error());

    return why ? why : "OpenSSL does not say why";
}
