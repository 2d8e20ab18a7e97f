/* wire.c -- heads of packets, and their checksums.
 *
 * Owns nothing; heads go into the caller's bytes.  A head that is not whole,
 * or of another version, is refused here. */
#include "wire.h"

#include "data/kernel.h"

#include <math.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "bodies of packets are sent as they lie in memory: little-endian"
#endif

static const char magic[4] = {'k', 'o', 'f', 'n'};

/* Where the fields of a head begin. */
enum {
    AT_VERSION = 4,
    AT_TYPE = 6,
    AT_HOW = 7,
    AT_DTYPE = 8,
    AT_VELOCITY = 9,
    AT_OPERAND = 10,
    AT_STATUS = 12,
    AT_HEAD_SUM = 136
};

/* The fields that are sent as they are. */
#define FIELDS(X)                                                              \
    X(task, 16)                                                                \
    X(round, 20)                                                               \
    X(product, 24)                                                             \
    X(row, 28)                                                                 \
    X(job, 32)                                                                 \
    X(block, 40)                                                               \
    X(input, 48)                                                               \
    X(updates, 56)                                                             \
    X(lo, 64)                                                                  \
    X(hi, 72)                                                                  \
    X(which, 80)                                                               \
    X(took, 88)                                                                \
    X(rows, 96)                                                                \
    X(cols, 104)                                                               \
    X(out_rows, 112)                                                           \
    X(out_cols, 120)                                                           \
    X(body_sum, 128)

void kf_head_write(unsigned char bytes[KF_HEAD], const kf_head *h)
{
    uint16_t version = KF_WIRE_VERSION, operand = (uint16_t)h->operand;
    int32_t status = h->status;
    uint64_t sum;

    memset(bytes, 0, KF_HEAD);
    memcpy(bytes, magic, sizeof magic);
    bytes[AT_TYPE] = (unsigned char)h->type;
    bytes[AT_HOW] = (unsigned char)h->how;
    bytes[AT_DTYPE] = (unsigned char)h->dtype;
    bytes[AT_VELOCITY] = h->velocity;
#define PUT(at, value) memcpy(bytes + (at), &(value), sizeof(value))
    PUT(AT_VERSION, version);
    PUT(AT_OPERAND, operand);
    PUT(AT_STATUS, status);
#define X(field, at) PUT(at, h->field);
    FIELDS(X)
#undef X
    sum = kf_hash(0, bytes, AT_HEAD_SUM);
    PUT(AT_HEAD_SUM, sum);
#undef PUT
}

static bool known(unsigned type)
{
    return (type >= KF_WIRE_HELLO && type <= KF_WIRE_CHANGED) ||
           (type >= KF_WIRE_WELCOME && type <= KF_WIRE_WHOLE);
}

kofn_status kf_head_read(kf_head *h, const void *p, size_t n)
{
    const unsigned char *bytes = p;
    uint16_t version = 0, operand;
    int32_t status;
    uint64_t sum;

    *h = (kf_head){0};
    if (n < AT_HOW + sizeof sum || memcmp(bytes, magic, sizeof magic) != 0)
        return kf_fail(KOFN_FORMAT, "a packet of %zu bytes is not kofn's", n);
    /* the checksum ends the head in every version: a damaged head is never
     * taken for one of another kofn */
    memcpy(&sum, bytes + n - sizeof sum, sizeof sum);
    if (sum != kf_hash(0, bytes, n - sizeof sum))
        return kf_fail(KOFN_FORMAT, "a packet's head was damaged on its way");
#define GET(at, value) memcpy(&(value), bytes + (at), sizeof(value))
    GET(AT_VERSION, version);
    h->type = bytes[AT_TYPE];
    if (version != KF_WIRE_VERSION) {
        h->version = version;
        return kf_fail(KOFN_FORMAT,
                       "the peer speaks version %u of the wire format and this "
                       "kofn %u; install the same kofn on both",
                       version, KF_WIRE_VERSION);
    }
    if (n != KF_HEAD)
        return kf_fail(KOFN_FORMAT, "a packet's head has %zu bytes, not %d", n,
                       KF_HEAD);
    if (!known(bytes[AT_TYPE]) || !kf_kernel_of(bytes[AT_HOW]) ||
        bytes[AT_DTYPE] > KOFN_F32 || bytes[AT_VELOCITY] > 1)
        return kf_fail(KOFN_FORMAT, "a packet has type %u, how %u, numbers %u",
                       bytes[AT_TYPE], bytes[AT_HOW], bytes[AT_DTYPE]);
    h->version = version;
    h->how = bytes[AT_HOW];
    h->dtype = bytes[AT_DTYPE];
    h->velocity = bytes[AT_VELOCITY];
    GET(AT_OPERAND, operand);
    h->operand = operand;
    GET(AT_STATUS, status);
    h->status = status;
#define X(field, at) GET(at, h->field);
    FIELDS(X)
#undef X
#undef GET
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
