/* openssl.c -- OpenSSL as it is used here: in a library context of its own, which reads
 * no configuration and leaves nothing to be done at the end of the process.
 *
 * Owns that context, which is the process's.
 */
#include "keys.h"

#include <openssl/err.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static OSSL_LIB_CTX *library;

/* OpenSSL is not initialised before it is used.  Whether it reads openssl.cnf, and what
 * it does when the process exits, is settled for all of the process by whoever asks first:
 * that is for the program to do, which may ask before us, and otherwise OpenSSL does
 * what it does in every program.  What the program's configuration loads, engines and
 * providers, is not in the library context that is made here; only what it demands of all
 * TLS connections (system_default) holds here, too. */
static void begin(void)
{
    library = OSSL_LIB_CTX_new();
}

OSSL_LIB_CTX *kf_openssl_library(void)
{
    pthread_once(&once, begin);
    return library;
}

const char *kf_openssl_words(void)
{
    const char *why = ERR_reason_error_string(ERR_peek_last_error());

    return why ? why : "OpenSSL does not say why";
}
