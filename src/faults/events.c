/* events.c -- reads an events file: which fault happens to which worker, and
 * when.
 *
 *     ROUND[.FRACTION] leave W | join | slow W FACTOR | normal W | corrupt W |
 *                      flip W | err W PLACE
 *
 * One event a line; # begins a comment.  Each worker must exist at the moment
 * of its event. So a mistake in the file is found before the run.
 *
 * The caller frees the list of events by kofn_free.  Events do not happen here:
 * the loop of the job carries them out.
 */
#include "faults.h"

#include "base/number.h"
#include "io/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct item {
    kofn_fault_event h;
    size_t line; /* lines of the same moment keep their order */
} item;

typedef struct reader {
    const char *name;
    kf_text t;
    char word[64]; /* the last one that was read */
    size_t workers, rounds;
    item *list;
    size_t count, cap;
} reader;

static const struct {
    const char *word;
    kofn_fault_event_kind kind;
} words[] = {
    {"leave", KOFN_FAULT_EVENT_LEAVE},     {"join", KOFN_FAULT_EVENT_JOIN},
    {"slow", KOFN_FAULT_EVENT_SLOW},       {"normal", KOFN_FAULT_EVENT_NORMAL},
    {"corrupt", KOFN_FAULT_EVENT_CORRUPT}, {"flip", KOFN_FAULT_EVENT_FLIP},
    {"err", KOFN_FAULT_EVENT_ERR},
};

/* Fails with a message that follows "NAME, line N: ". */
static kofn_status wrong(const reader *r, const char *what)
{
    return kf_fail(KOFN_FORMAT, "%s \"%.40s\"", what, r->word);
}

/* The next word of the line, which ends at # as well; empty at its end. */
static void next_word(reader *r)
{
    kf_text *t = &r->t;
    size_t n = 0;

    while (t->at < t->end && memchr(" \t\r", *t->at, 3))
        t->at++;
    for (; t->at < t->end && !memchr(" \t\r\n#", *t->at, 5); t->at++)
        if (n + 1 < sizeof r->word)
            r->word[n++] = *t->at ? *t->at : '?';
    r->word[n] = 0;
}

static kofn_status parse_when(const reader *r, kofn_fault_event *h)
{
    const char *word = r->word;
    size_t whole = strspn(word, "0123456789"), part;
    unsigned long round;

    part = word[whole] == '.' ? strspn(word + whole + 1, "0123456789") : 0;
    if (whole == 0 || whole > 9 || word[whole + (word[whole] == '.') + part] ||
        (word[whole] == '.' && part == 0))
        return wrong(r, "not a ROUND or ROUND.FRACTION:");
    round = strtoul(word, NULL, 10);
    if (round < 1 || round > r->rounds)
        return kf_fail(KOFN_FORMAT,
                       "there are rounds or iterations 1..%zu, and none is %lu",
                       r->rounds, round);
    h->round = (unsigned)round;
    h->fraction = part ? kf_read_real(word + whole, NULL) : 0;
    if (h->fraction >= 1) /* 0.999... was rounded up */
        h->fraction = 1 - 0x1p-53;
    return KOFN_OK;
}

static kofn_status parse_worker(reader *r, kofn_fault_event *h)
{
    size_t n;

    next_word(r);
    n = strspn(r->word, "0123456789");
    if (!*r->word)
        return kf_fail(KOFN_FORMAT,
                       "a worker number is missing after the event");
    if (n == 0 || n > 9 || r->word[n])
        return wrong(r, "not a worker number:");
    h->worker = (uint32_t)strtoul(r->word, NULL, 10);
    return KOFN_OK;
}

static kofn_status parse_factor(reader *r, kofn_fault_event *h)
{
    char *end;

    next_word(r);
    if (!*r->word)
        return kf_fail(KOFN_FORMAT, "a factor is missing after the worker");
    h->factor = kf_read_real(r->word, &end);
    if (*end || !(h->factor >= 1e-3 && h->factor <= 1e6))
        return wrong(r, "not a factor in 0.001..1000000:");
    return KOFN_OK;
}

static kofn_status parse_place(reader *r, kofn_fault_event *h)
{
    next_word(r);
    h->factor = kf_fault_place(r->word, strlen(r->word));
    return h->factor > 0 ? KOFN_OK
                         : wrong(r, "not one of encode, product, decode, "
                                    "vector, update, memory:");
}

static kofn_status parse_line(reader *r)
{
    kofn_fault_event h = {0};
    size_t i = 0;

    next_word(r);
    if (!*r->word)
        return KOFN_OK;
    TRY(parse_when(r, &h));
    next_word(r);
    while (i < sizeof words / sizeof *words && strcmp(words[i].word, r->word))
        i++;
    if (i == sizeof words / sizeof *words)
        return wrong(
            r, "not one of leave, join, slow, normal, corrupt, flip, err:");
    h.kind = words[i].kind;
    if (h.kind != KOFN_FAULT_EVENT_JOIN)
        TRY(parse_worker(r, &h));
    if (h.kind == KOFN_FAULT_EVENT_SLOW)
        TRY(parse_factor(r, &h));
    if (h.kind == KOFN_FAULT_EVENT_ERR)
        TRY(parse_place(r, &h));
    next_word(r);
    if (*r->word)
        return wrong(r, "nothing may follow, but there is");
    TRY(kf_grow(&r->list, &r->cap, r->count, sizeof *r->list));
    r->list[r->count++] = (item){h, r->t.line};
    return KOFN_OK;
}

static int by_time(const void *a, const void *b)
{
    const item *x = a, *y = b;

    if (x->h.round != y->h.round)
        return x->h.round < y->h.round ? -1 : 1;
    if (x->h.fraction != y->h.fraction)
        return x->h.fraction < y->h.fraction ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Walk through time: is each worker there when something happens to it? */
static kofn_status check_workers(const reader *r)
{
    size_t there = r->workers;
    kofn_status st = KOFN_OK;
    uint8_t *gone;

    TRY_ZERO(gone, there + r->count);
    for (size_t i = 0; i < r->count && !st; i++) {
        const kofn_fault_event *h = &r->list[i].h;

        if (h->kind == KOFN_FAULT_EVENT_JOIN)
            there++;
        else if (h->worker >= there)
            st = kf_fail(KOFN_FORMAT,
                         "there is no worker %u at that moment; they run from "
                         "0 to %zu",
                         h->worker, there - 1);
        else if (gone[h->worker])
            st = kf_fail(KOFN_FORMAT, "worker %u has left before", h->worker);
        else if (h->kind == KOFN_FAULT_EVENT_LEAVE)
            gone[h->worker] = 1;
        if (st)
            kf_fail_in(st, "%s, line %zu", r->name, r->list[i].line);
    }
    kf_free(gone);
    return st;
}

static kofn_status parse_all(reader *r)
{
    while (kf_io_next_line(&r->t, '#')) {
        kofn_status st = parse_line(r);

        if (st)
            return kf_fail_in(st, "%s, line %zu", r->name, r->t.line);
        kf_io_skip_line(&r->t); /* a comment */
    }
    if (r->count)
        qsort(r->list, r->count, sizeof *r->list, by_time);
    return check_workers(r);
}

static kofn_status parse(reader r, kofn_fault_event **out, size_t *count)
{
    kofn_status st = parse_all(&r);

    *count = 0;
    *out = st ? NULL : kf_new(r.count, sizeof **out);
    if (!st && !*out)
        st = KOFN_NOMEM;
    for (; !st && *count < r.count; ++*count)
        (*out)[*count] = r.list[*count].h;
    kf_free(r.list);
    return st;
}

kofn_status kofn_events_parse(kofn_fault_event **out, size_t *count,
                              const char *text, size_t length, size_t workers,
                              size_t rounds)
{
    return parse((reader){.name = "events",
                          .t = kf_io_text(text, length),
                          .workers = workers,
                          .rounds = rounds},
                 out, count);
}

/* An events file is written by hand: a megabyte is a mistake. */
#define MAX_FILE ((size_t)1 << 20)

kofn_status kofn_events_read(kofn_fault_event **out, size_t *count,
                             const char *path, size_t workers, size_t rounds)
{
    reader r = {.name = path, .workers = workers, .rounds = rounds};
    FILE *f = fopen(path, "rb");
    kofn_status st = KOFN_NOMEM;
    char *text;
    size_t n;

    *out = NULL;
    *count = 0;
    if (!f)
        return kf_fail(KOFN_IO, "%s: %s", path, strerror(errno));
    text = kf_new(MAX_FILE + 1, 1);
    n = text ? fread(text, 1, MAX_FILE + 1, f) : 0;
    if (ferror(f)) {
        st = kf_fail(KOFN_IO, "%s: %s", path, strerror(errno));
    } else if (n > MAX_FILE) {
        st = kf_fail(KOFN_FORMAT, "%s: more than %zu bytes of events", path,
                     MAX_FILE);
    } else if (text) {
        r.t = kf_io_text(text, n);
        st = parse(r, out, count);
    }
    fclose(f);
    kf_free(text);
    return st;
}
