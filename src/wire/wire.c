/* wire.c -- heads of packets between coordinator and workers.
 *
 * Owns nothing.  A head that is damaged, or of another version, is refused. */
#include "wire.h"

#include "data/kernel.h"

#include <math.h>

static bool has(unsigned type)
{
    return (type >= KF_WIRE_HELLO && type <= KF_WIRE_ASK) ||
           (type >= KF_WIRE_WELCOME && type <= KF_WIRE_TOLD);
}

static const kf_head_field field[] = {
    KF_HEAD_FIELD(kf_head, type, KF_AT_TYPE, 1, 0),
    KF_HEAD_FIELD(kf_head, how, 7, 1, KF_HOW_PART),
    KF_HEAD_FIELD(kf_head, dtype, 8, 1, KOFN_F32),
    KF_HEAD_FIELD(kf_head, velocity, 9, 1, 1),
    KF_HEAD_FIELD(kf_head, operand, 10, 2, 0),
    KF_HEAD_FIELD(kf_head, status, 12, 4, 0),
    KF_HEAD_FIELD(kf_head, task, 16, 4, 0),
    KF_HEAD_FIELD(kf_head, round, 20, 4, 0),
    KF_HEAD_FIELD(kf_head, product, 24, 4, 0),
    KF_HEAD_FIELD(kf_head, row, 28, 4, 0),
    KF_HEAD_FIELD(kf_head, job, KF_AT_JOB, 8, 0),
    KF_HEAD_FIELD(kf_head, block, 40, 8, 0),
    KF_HEAD_FIELD(kf_head, input, 48, 8, 0),
    KF_HEAD_FIELD(kf_head, updates, 56, 8, 0),
    KF_HEAD_FIELD(kf_head, lo, 64, 8, 0),
    KF_HEAD_FIELD(kf_head, hi, 72, 8, 0),
    KF_HEAD_FIELD(kf_head, which, 80, 8, 0),
    KF_HEAD_FIELD(kf_head, took, 88, 8, 0),
    KF_HEAD_FIELD(kf_head, rows, 96, 8, 0),
    KF_HEAD_FIELD(kf_head, cols, 104, 8, 0),
    KF_HEAD_FIELD(kf_head, out_rows, 112, 8, 0),
    KF_HEAD_FIELD(kf_head, out_cols, 120, 8, 0),
    KF_HEAD_FIELD(kf_head, body_sum, KF_AT_BODY_SUM, 8, 0),
};

static const kf_head_fields tasks = {"coordinator and workers", field,
                                     sizeof field / sizeof *field, has};

void kf_head_write(unsigned char bytes[KF_HEAD], const kf_head *h)
{
    kf_head_fields_write(&tasks, bytes, h);
}

kofn_status kf_head_read(kf_head *h, const void *bytes, size_t n)
{
    *h = (kf_head){0};
    return kf_head_fields_read(&tasks, h, bytes, n, &h->version);
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
