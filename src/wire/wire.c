/* wire.c -- heads of packets, and their checksums.
 *
 * Owns nothing; heads go into the caller's bytes.  A head that is damaged, or
 * of another version, is refused here. */
#include "wire.h"

#include "data/kernel.h"

#include <math.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "bodies of packets are sent as they are in memory: little-endian"
#endif

static const char magic[4] = {'k', 'o', 'f', 'n'};

enum {
    AT_VELOCITY = 9,
    AT_SUM = 136, /* the checksum of all bytes before it */
    SHORTEST = 15 /* head of any version */
};

/* The fields of a head: how each is stored, and where. */
#define FIELDS(X)                                                              \
    X(version, uint16_t, 4)                                                    \
    X(type, uint8_t, 6)                                                        \
    X(how, uint8_t, 7)                                                         \
    X(dtype, uint8_t, 8)                                                       \
    X(velocity, uint8_t, AT_VELOCITY)                                          \
    X(operand, uint16_t, 10)                                                   \
    X(status, int32_t, 12)                                                     \
    X(task, uint32_t, 16)                                                      \
    X(round, uint32_t, 20)                                                     \
    X(product, uint32_t, 24)                                                   \
    X(row, uint32_t, 28)                                                       \
    X(job, uint64_t, 32)                                                       \
    X(block, uint64_t, 40)                                                     \
    X(input, uint64_t, 48)                                                     \
    X(updates, uint64_t, 56)                                                   \
    X(lo, uint64_t, 64)                                                        \
    X(hi, uint64_t, 72)                                                        \
    X(which, uint64_t, 80)                                                     \
    X(took, uint64_t, 88)                                                      \
    X(rows, uint64_t, 96)                                                      \
    X(cols, uint64_t, 104)                                                     \
    X(out_rows, uint64_t, 112)                                                 \
    X(out_cols, uint64_t, 120)                                                 \
    X(body_sum, uint64_t, 128)

void kf_head_write(unsigned char bytes[KF_HEAD], const kf_head *h)
{
    kf_head whole = *h;
    uint64_t sum;

    whole.version = KF_WIRE_VERSION;
    memset(bytes, 0, KF_HEAD);
    memcpy(bytes, magic, sizeof magic);
#define X(field, type, at)                                                     \
    memcpy(bytes + (at), &(type){(type)whole.field}, sizeof(type));
    FIELDS(X)
#undef X
    sum = kf_hash(0, bytes, AT_SUM);
    memcpy(bytes + AT_SUM, &sum, sizeof sum);
}

/* As they are stored, whatever they mean. */
static void read_fields(kf_head *h, const unsigned char *bytes)
{
#define X(field, type, at)                                                     \
    {                                                                          \
        type field##_;                                                         \
                                                                               \
        memcpy(&field##_, bytes + (at), sizeof field##_);                      \
        h->field = field##_;                                                   \
    }
    FIELDS(X)
#undef X
}

static bool known(unsigned type)
{
    return (type >= KF_WIRE_HELLO && type <= KF_WIRE_ASK) ||
           (type >= KF_WIRE_WELCOME && type <= KF_WIRE_TOLD);
}

kofn_status kf_head_read(kf_head *h, const void *p, size_t n)
{
    unsigned char bytes[KF_HEAD] = {0};
    uint64_t sum;

    *h = (kf_head){0};
    if (n < SHORTEST || memcmp(p, magic, sizeof magic) != 0)
        return kf_fail(KOFN_FORMAT, "a packet of %zu bytes is not kofn's", n);
    /* the checksum ends the head in every version: a damaged head is never
     * taken for one of another kofn */
    memcpy(&sum, (const char *)p + n - sizeof sum, sizeof sum);
    if (sum != kf_hash(0, p, n - sizeof sum))
        return kf_fail(KOFN_FORMAT, "a packet's head was damaged on its way");
    memcpy(bytes, p, kf_min(n, KF_HEAD));
    read_fields(h, bytes);
    if (h->version != KF_WIRE_VERSION)
        return kf_fail(KOFN_FORMAT,
                       "the peer speaks version %u of the wire format and this "
                       "kofn %u; install the same kofn on both",
                       h->version, KF_WIRE_VERSION);
    h->version = 0; /* until nothing is wrong with it */
    if (n != KF_HEAD)
        return kf_fail(KOFN_FORMAT, "a packet's head has %zu bytes, not %d", n,
                       KF_HEAD);
    if (!known(h->type) || !kf_kernel_of(h->how) || h->dtype > KOFN_F32 ||
        bytes[AT_VELOCITY] > 1)
        return kf_fail(KOFN_FORMAT, "a packet has type %u, how %u, numbers %u",
                       h->type, h->how, h->dtype);
    h->version = KF_WIRE_VERSION;
    return KOFN_OK;
}

kofn_status kf_wire_check_body(const kf_head *h, const void *body, size_t n)
{
    if (h->body_sum != (n ? kf_hash(h->job, body, n) : 0))
        return kf_fail(KOFN_FORMAT,
                       "a packet's body of %zu bytes was damaged on its way",
                       n);
    return KOFN_OK;
}

void kf_wire_write_change(void *to, const kofn_change *c)
{
    const double numbers[] = {c->step, c->decay, c->momentum};
    const uint64_t nesterov = c->nesterov;

    memcpy(to, numbers, sizeof numbers);
    memcpy((char *)to + sizeof numbers, &nesterov, sizeof nesterov);
}

kofn_status kf_wire_read_change(kofn_change *c, const void *from)
{
    double numbers[3];
    uint64_t nesterov;

    memcpy(numbers, from, sizeof numbers);
    memcpy(&nesterov, (const char *)from + sizeof numbers, sizeof nesterov);
    *c = (kofn_change){sizeof *c, numbers[0], numbers[1], numbers[2],
                       nesterov != 0};
    if (nesterov > 1 || !isfinite(c->step) || !isfinite(c->decay) ||
        !isfinite(c->momentum))
        return kf_fail(KOFN_FORMAT,
                       "an update with step %g, decay %g and momentum %g",
                       c->step, c->decay, c->momentum);
    return KOFN_OK;
}
