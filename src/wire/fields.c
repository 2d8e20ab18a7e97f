/* fields.c -- heads of packets: from a struct to bytes and back.
 *
 * Owns nothing; heads go into the caller's bytes.  A head that is damaged, of
 * another version or for another end is refused here. */
#include "fields.h"

#include "base/hash.h"

#include <assert.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "heads and bodies are sent as they are in memory: little-endian"
#endif

static const char magic[4] = {'k', 'o', 'f', 'n'};

enum {
    AT_SUM = KF_HEAD - 8, /* the checksum of all bytes before it */
    SHORTEST = 15         /* head of any version */
};

/* Copies 1, 2, 4 or 8 bytes, without a call. */
static inline void copy(void *to, const void *from, size_t n)
{
    switch (n) {
    case 1:
        memcpy(to, from, 1);
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    default:
        assert(n == 8);
        memcpy(to, from, 8);
    }
}

/* ---- writing ------------------------------------------------------------- */

void kf_head_fields_write(const kf_head_fields *f, unsigned char head[KF_HEAD],
                          const void *from)
{
    const uint16_t version = KF_WIRE_VERSION;
    uint64_t sum;

    memset(head, 0, KF_HEAD);
    memcpy(head, magic, sizeof magic);
    memcpy(head + KF_AT_VERSION, &version, sizeof version);
    for (size_t i = 0; i < f->count; i++) {
        const kf_head_field *x = &f->field[i];

        assert(x->bytes <= x->size && x->at + x->bytes <= AT_SUM);
        copy(head + x->at, (const char *)from + x->place, x->bytes);
    }
    sum = kf_hash(0, head, AT_SUM);
    memcpy(head + AT_SUM, &sum, sizeof sum);
}

/* ---- reading ------------------------------------------------------------- */

static kofn_status check_range(const kf_head_field *x,
                               const unsigned char *head)
{
    uint64_t value = 0;

    if (x->most == 0)
        return KOFN_OK;
    copy(&value, head + x->at, x->bytes);
    return value <= x->most
               ? KOFN_OK
               : kf_fail(KOFN_FORMAT,
                         "a packet's head has %s %llu; the highest is %llu",
                         x->name, (unsigned long long)value,
                         (unsigned long long)x->most);
}

/* The checksum ends the head in every version, so a damaged head is never taken
 * for one of another kofn. */
static kofn_status check_sum(const void *bytes, size_t n)
{
    uint64_t sum;

    if (n < SHORTEST || memcmp(bytes, magic, sizeof magic) != 0)
        return kf_fail(KOFN_FORMAT, "a packet of %zu bytes is not kofn's", n);
    memcpy(&sum, (const char *)bytes + n - sizeof sum, sizeof sum);
    if (sum != kf_hash(0, bytes, n - sizeof sum))
        return kf_fail(KOFN_FORMAT, "a packet's head was damaged on its way");
    return KOFN_OK;
}

/* Checks all but the checksum. */
static kofn_status check_head(const kf_head_fields *f,
                              const unsigned char *head, size_t n)
{
    if (n != KF_HEAD)
        return kf_fail(KOFN_FORMAT, "a packet's head has %zu bytes, not %d", n,
                       KF_HEAD);
    if (!f->has(head[KF_AT_TYPE]))
        return kf_fail(KOFN_FORMAT,
                       "a packet has the type %u, which no packet between %s "
                       "has",
                       head[KF_AT_TYPE], f->between);
    for (size_t i = 0; i < f->count; i++)
        TRY(check_range(&f->field[i], head));
    return KOFN_OK;
}

kofn_status kf_head_fields_read(const kf_head_fields *f, void *to,
                                const void *bytes, size_t n, unsigned *version)
{
    const unsigned char *head = bytes;
    uint16_t has;

    *version = 0;
    TRY(check_sum(bytes, n));
    memcpy(&has, head + KF_AT_VERSION, sizeof has);
    if (has != KF_WIRE_VERSION) {
        *version = has;
        return kf_fail(KOFN_FORMAT,
                       "the peer speaks version %u of the wire format and this "
                       "kofn %u; install the same kofn on both",
                       has, KF_WIRE_VERSION);
    }
    TRY(check_head(f, head, n));
    for (size_t i = 0; i < f->count; i++) {
        const kf_head_field *x = &f->field[i];
        uint64_t value = 0;

        copy(&value, head + x->at, x->bytes);
        copy((char *)to + x->place, &value, x->size);
    }
    *version = has;
    return KOFN_OK;
}

/* ---- bodies -------------------------------------------------------------- */

uint64_t kf_wire_sum(uint64_t job, const void *body, size_t n)
{
    return n ? kf_hash(job, body, n) : 0;
}

kofn_status kf_wire_check(uint64_t job, uint64_t sum, const void *body,
                          size_t n)
{
    return sum == kf_wire_sum(job, body, n)
               ? KOFN_OK
               : kf_fail(KOFN_FORMAT,
                         "a packet's body of %zu bytes was damaged on its way",
                         n);
}
