/* post.c -- letters of tasks, received bodies, and how both are packed.
 *
 * A letter owns its bytes and holds a reference to its buffer until it is sent.
 */
#include "post.h"

#include <assert.h>

void kf_post_drop(kf_msg *m)
{
    kf_block_drop(m->block);
    kf_buffer_drop(m->in);
    kf_buffer_drop(m->with);
    kf_buffer_drop(m->change);
    kf_buffer_drop(m->result);
    kf_free(m->why);
    m->block = NULL;
    m->in = m->with = m->change = m->result = NULL;
    m->why = NULL;
}

/* ---- inboxes ------------------------------------------------------------- */

kofn_status kf_inbox_put(kf_inbox *b, kf_msg m)
{
    if (kf_outbox_room(&b->msg, &b->first, b->count, &b->cap, sizeof *b->msg)) {
        kf_post_drop(&m);
        return KOFN_NOMEM;
    }
    b->msg[b->first + b->count++] = m;
    return KOFN_OK;
}

kf_msg kf_inbox_take(kf_inbox *b, size_t i)
{
    kf_msg *queue = b->msg + b->first, m;

    assert(i < b->count);
    m = queue[i];
    memmove(queue + 1, queue, i * sizeof *queue);
    b->first++;
    if (--b->count == 0)
        b->first = 0;
    return m;
}

void kf_inbox_free(kf_inbox *b)
{
    for (size_t i = 0; i < b->count; i++)
        kf_post_drop(&b->msg[b->first + i]);
    kf_free(b->msg);
    *b = (kf_inbox){0};
}

/* ---- packing ------------------------------------------------------------- */

static void drop_buffer(void *buffer)
{
    kf_buffer_drop(buffer);
}

kofn_lent kf_post_lend(kf_buffer *b)
{
    return b ? (kofn_lent){b->m.data, kf_buffer_bytes(b), drop_buffer, b}
             : (kofn_lent){0};
}

void kf_post_rows(const kofn_matrix *m, char **packed, bool back)
{
    size_t row = m->cols * kf_dtype_size(m->dtype);

    for (size_t i = 0; i < m->rows; i++, *packed += row)
        if (back)
            memcpy(kf_at(m, i, 0), *packed, row);
        else
            memcpy(*packed, kf_at(m, i, 0), row);
}

void kf_post_components(char **to, const kf_block *b, size_t lo, size_t hi)
{
    size_t bytes = (hi - lo) * b->cols * kf_dtype_size(b->dtype);

    assert(lo <= hi);
    assert(hi <= b->rows);
    for (size_t l = 0; l < b->components; l++) {
        kofn_matrix component = b->component[l];

        if (component.rows) {
            component.data = kf_at(&b->component[l], lo, 0);
            component.rows = hi - lo;
            kf_post_rows(&component, to, false);
        } else {
            memset(*to, 0, bytes);
            *to += bytes;
        }
    }
}

/* Returns strips [lo, hi): rows of the input, or columns of its row i if `left`
 * is true. */
static kofn_matrix strips(const kofn_matrix *in, bool left, size_t i, size_t lo,
                          size_t hi)
{
    assert(lo <= hi);
    return left ? (kofn_matrix){kf_at(in, i, lo), 1, hi - lo, in->ld, in->dtype}
                : (kofn_matrix){kf_at(in, lo, 0), hi - lo, in->cols, in->ld,
                                in->dtype};
}

void kf_post_strips(const kofn_matrix *in, const kf_msg *task,
                    size_t components, char *packed, bool back)
{
    bool left = kf_kernel_of(task->how)->left;
    size_t span = (left ? in->cols : in->rows) / components;
    size_t end = kf_min(task->hi, span);

    assert(components > 0);
    assert(task->hi - task->lo <= span);
    for (size_t at = 0; at < components * span; at += span)
        for (size_t i = 0; i < (left ? in->rows : 1); i++) {
            kofn_matrix last = strips(in, left, i, at + task->lo, at + end);
            kofn_matrix first = strips(in, left, i, at, at + task->hi - end);

            kf_post_rows(&last, &packed, back);
            kf_post_rows(&first, &packed, back);
        }
}

/* ---- sending ------------------------------------------------------------- */

uint64_t kf_post_sum(const kofn_transport *t, uint64_t job, const void *body,
                     size_t n)
{
    return t->whole ? 0 : kf_wire_sum(job, body, n);
}

kofn_status kf_post_check(const kofn_transport *t, const kf_head *h,
                          const void *body, size_t n)
{
    return t->whole ? KOFN_OK : kf_wire_check(h->job, h->body_sum, body, n);
}

kofn_status kf_post(kf_outbox *b, kofn_transport *t, kofn_peer peer,
                    const kf_head *h, const kofn_lent *body)
{
    kf_head head = *h;
    kf_letter l = {.type = h->type, .task = h->task, .input = h->input};

    if (body)
        l.body = *body;
    if (body && !head.body_sum)
        head.body_sum = kf_post_sum(t, h->job, body->data, body->bytes);
    kf_head_write(l.head, &head);
    TRY(kf_outbox_add(b, &l));
    return kf_outbox_flush(b, t, peer);
}

/* True if it is a task. */
static bool is_work(const kf_letter *l)
{
    return l->type == KF_WIRE_WORK;
}

/* Finds the next task that has the same input as letter i, with or without a
 * body; NULL: none. *swapped: letters between the two carry other inputs. */
static kf_letter *heir(kf_outbox *b, size_t i, bool *swapped)
{
    const kf_letter *from = &b->letter[b->first + i];

    assert(i < b->count);
    *swapped = false;
    for (size_t k = i + 1; k < b->count; k++) {
        kf_letter *l = &b->letter[b->first + k];

        if (is_work(l) && l->input == from->input)
            return l;
        *swapped |= is_work(l) && l->body.bytes;
    }
    return NULL;
}

static void inherit(kf_letter *l, const kf_letter *from)
{
    kf_head h, with;

    assert(!l->body.bytes);
    assert(l->input == from->input);
    kf_head_read(&with, from->head, KF_HEAD); /* both were written here */
    kf_head_read(&h, l->head, KF_HEAD);
    h.body_sum = with.body_sum;
    kf_head_write(l->head, &h);
    l->body = from->body;
}

bool kf_post_take_back(kf_outbox *b, uint32_t task, uint64_t *lost)
{
    size_t i = 0;
    kf_letter *l, *next;
    bool swapped;

    *lost = 0;
    while (i < b->count && !(is_work(&b->letter[b->first + i]) &&
                             b->letter[b->first + i].task == task))
        i++;
    if (i == b->count)
        return false;
    l = &b->letter[b->first + i];
    if (l->body.bytes) {
        next = heir(b, i, &swapped);
        if (!next || next->body.bytes) {
            *lost = next ? 0 : l->input;
            kf_give_back(&l->body);
        } else if (swapped) {
            return false;
        } else {
            inherit(next, l);
        }
    }
    memmove(l, l + 1, (b->count - i - 1) * sizeof *l);
    b->count--;
    return true;
}

/* ---- receiving ----------------------------------------------------------- */

static void release_body(void *from, void *own)
{
    kofn_transport *t = from;

    t->release(t, own);
}

static kofn_status take(kofn_transport *t, kofn_packet *k, kf_buffer **into)
{
    kofn_matrix m = (*into)->m;
    kf_buffer *around;

    if (!k->body)
        return k->body_bytes ? t->fetch(t, k, m.data) : KOFN_OK;
    if ((uintptr_t)k->body % kf_dtype_size(m.dtype) != 0) {
        memcpy(m.data, k->body, k->body_bytes);
        return KOFN_OK;
    }
    m.data = (void *)(uintptr_t)k->body;
    TRY(kf_buffer_around(&around, &m, release_body, t, k->own));
    k->own = NULL;
    kf_buffer_drop(*into);
    *into = around;
    return KOFN_OK;
}

kofn_status kf_post_take_body(kofn_transport *t, kofn_packet *k,
                              const kf_head *h, kf_buffer **into)
{
    size_t bytes = k->body_bytes;
    kofn_status st;

    if (bytes != kf_buffer_bytes(*into))
        st = kf_fail(KOFN_FORMAT,
                     "a packet's body has %zu bytes and should have %zu", bytes,
                     kf_buffer_bytes(*into));
    else
        st = take(t, k, into);
    if (k->own)
        t->release(t, k->own);
    k->own = NULL;
    return st ? st : kf_post_check(t, h, (*into)->m.data, bytes);
}

void kf_post_plain(char *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((words[i] < ' ' || words[i] > '~') && words[i] != '\n')
            words[i] = '?';
}

kofn_status kf_post_take_words(kofn_transport *t, kofn_packet *k,
                               const kf_head *h, char **words)
{
    size_t n = k->body_bytes;
    kofn_status st = KOFN_OK;
    char *to;

    *words = NULL;
    if (n > KF_WORDS)
        return kf_fail(KOFN_FORMAT,
                       "a message text of %zu bytes from the other end; at "
                       "most %d are allowed",
                       n, KF_WORDS);
    if (n == 0)
        return kf_post_check(t, h, NULL, 0);
    if (!(to = kf_new(n + 1, 1)))
        return KOFN_NOMEM;
    if (k->body)
        memcpy(to, k->body, n);
    else
        st = t->fetch(t, k, to);
    if (!st)
        st = kf_post_check(t, h, to, n);
    kf_post_plain(to, n);
    to[n] = 0;
    if (st)
        kf_free(to);
    else
        *words = to;
    return st;
}
