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
    KF_HEAD_FIELD(kf_head, state, 9, 1, KOFN_CHANGE_STATES),
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

static_assert(KF_WIRE_CHANGE == sizeof(uint64_t) +
                                    sizeof((kofn_change *)0)->keep +
                                    sizeof((kofn_change *)0)->add,
              "the change of an UPDATE");

void kf_wire_write_change(void *to, const kofn_change *c)
{
    const uint64_t states = c->states;
    char *at = to;

    memcpy(at, &states, sizeof states);
    memcpy(at += sizeof states, c->keep, sizeof c->keep);
    memcpy(at + sizeof c->keep, c->add, sizeof c->add);
}

kofn_status kf_wire_read_change(kofn_change *c, const void *from)
{
    const char *at = from;
    uint64_t states;

    *c = (kofn_change)KOFN_CHANGE_INIT;
    memcpy(&states, at, sizeof states);
    memcpy(c->keep, at += sizeof states, sizeof c->keep);
    memcpy(c->add, at + sizeof c->keep, sizeof c->add);
    c->states = (size_t)states;
    if (kf_states_check_change(c))
        return kf_fail(KOFN_FORMAT,
                       "an update with %zu optimizer states, or a factor that "
                       "is not finite",
                       c->states);
    return KOFN_OK;
}
