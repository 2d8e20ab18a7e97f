/* fuzz_head.c -- fuzzes heads of packets, unchanged and with a right checksum.
 * fuzz-iterations: 1000000 */
#include "packets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const unsigned char *bytes, size_t n)
{
    unsigned char again[KF_HEAD];
    kf_head h;
    kofn_status st = kf_head_read(&h, bytes, n);

    MUST(st == KOFN_OK || (st == KOFN_FORMAT && *kofn_errmsg()));
    if (st) {
        MUST(h.version != KF_WIRE_VERSION);
        return;
    }
    MUST(n == KF_HEAD && h.version == KF_WIRE_VERSION);
    MUST(h.how <= KF_HOW_PART && h.dtype <= KOFN_F32);
    kf_head_write(again, &h);
    MUST(memcmp(again, bytes, 9) == 0);
    MUST(memcmp(again + 12, bytes + 12, KF_HEAD - 8 - 12) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char bytes[KOFN_HEAD_MAX] = {0};
    size_t n = kf_min(size, sizeof bytes);
    kf_head h = {.job = size};
    uint64_t sum;

    memcpy(bytes, data, n);
    check(bytes, n);
    if (n >= 16) {
        memcpy(bytes, "kofn", 4);
        if (size % 4)
            memcpy(bytes + 4, "\2", 2);
        sum = kf_hash(0, bytes, n - 8);
        memcpy(bytes + n - 8, &sum, 8);
        check(bytes, n);
    }
    h.body_sum = size ? kf_hash(h.job, data, size) : 0;
    MUST(kf_wire_check_body(&h, data, size) == KOFN_OK);
    h.body_sum ^= 1;
    MUST(kf_wire_check_body(&h, data, size) == KOFN_FORMAT);
    return 0;
}
