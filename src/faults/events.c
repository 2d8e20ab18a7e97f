/* events.c -- an events file: what happens to which worker, and when.
 *
 *     ROUND[.FRACTION] leave W | join | slow W FACTOR | normal W | corrupt W |
 *                      flip W | err W PLACE
 *
 * one a line, # comments.  Workers are checked against those that are there at
 * that moment, so that a slip of the pen is found before the run and not in
 * the middle of it.
 *
 * The list of events is the caller's, freed by kofn_free.  Nothing
 * happens here: the body asks when an event is due.
 */
#include "faults.h"

#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct item {
    kofn_fault_event h;
    size_t line; /* lines of the same moment keep their order */
} item;

typedef struct reader {
    const char *name, *at, *end;
    size_t line;
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

static kofn_status wrong(const reader *r, const char *what, const char *word)
{
    return kf_fail(KOFN_FORMAT, "%s, line %zu: %s \"%.40s\"", r->name, r->line,
                   what, word);
}

/* The next blank-separated word of the line; empty at its end. */
static void next_word(const char **at, const char *end, char *word, size_t size)
{
    size_t n = 0;

    while (*at < end && (**at == ' ' || **at == '\t' || **at == '\r'))
        ++*at;
    while (*at < end && **at != ' ' && **at != '\t' && **at != '\r') {
        if (n + 1 < size)
            word[n++] = **at ? **at : '?';
        ++*at;
    }
    word[n] = 0;
}

static kofn_status parse_when(const reader *r, const char *word,
                              kofn_fault_event *h, size_t rounds)
{
    size_t whole = strspn(word, "0123456789"), part;
    unsigned long round;

    part = word[whole] == '.' ? strspn(word + whole + 1, "0123456789") : 0;
    if (whole == 0 || whole > 9 || word[whole + (word[whole] == '.') + part] ||
        (word[whole] == '.' && part == 0))
        return wrong(r, "not a ROUND or ROUND.FRACTION:", word);
    round = strtoul(word, NULL, 10);
    if (round < 1 || round > rounds)
        return kf_fail(KOFN_FORMAT,
                       "%s, line %zu: there are rounds or "
                       "iterations 1..%zu, and none is %lu",
                       r->name, r->line, rounds, round);
    h->round = (unsigned)round;
    h->fraction = part ? strtod(word + whole, NULL) : 0;
    if (h->fraction >= 1) /* so many nines */
        h->fraction = 1 - 0x1p-53;
    return KOFN_OK;
}

static kofn_status parse_worker(const reader *r, const char *word,
                                kofn_fault_event *h)
{
    size_t n = strspn(word, "0123456789");

    if (n == 0 || n > 9 || word[n])
        return *word ? wrong(r, "not a worker number:", word)
                     : kf_fail(KOFN_FORMAT,
                               "%s, line %zu: a worker number is "
                               "missing after the event",
                               r->name, r->line);
    h->worker = (uint32_t)strtoul(word, NULL, 10);
    return KOFN_OK;
}

static kofn_status parse_factor(const reader *r, const char *word,
                                kofn_fault_event *h)
{
    char *end;

    h->factor = strtod(word, &end);
    if (!*word)
        return kf_fail(KOFN_FORMAT,
                       "%s, line %zu: a factor is missing after the worker",
                       r->name, r->line);
    if (*end || !(h->factor >= 1e-3 && h->factor <= 1e6))
        return wrong(r, "not a factor in 0.001..1000000:", word);
    return KOFN_OK;
}

static kofn_status parse_place(const reader *r, const char *word,
                               kofn_fault_event *h)
{
    h->factor = kf_fault_place(word, strlen(word));
    return h->factor > 0 ? KOFN_OK
                         : wrong(r,
                                 "not one of encode, product, decode, vector, "
                                 "update, memory:",
                                 word);
}

static kofn_status parse_line(reader *r, const char *at, const char *end,
                              size_t rounds)
{
    kofn_fault_event h = {0};
    char word[64];
    size_t i = 0;

    next_word(&at, end, word, sizeof word);
    if (!*word)
        return KOFN_OK;
    TRY(parse_when(r, word, &h, rounds));
    next_word(&at, end, word, sizeof word);
    while (i < sizeof words / sizeof *words && strcmp(words[i].word, word) != 0)
        i++;
    if (i == sizeof words / sizeof *words)
        return wrong(
            r,
            "not one of leave, join, slow, normal, corrupt, flip, err:", word);
    h.kind = words[i].kind;
    if (h.kind != KOFN_FAULT_EVENT_JOIN) {
        next_word(&at, end, word, sizeof word);
        TRY(parse_worker(r, word, &h));
    }
    if (h.kind == KOFN_FAULT_EVENT_SLOW) {
        next_word(&at, end, word, sizeof word);
        TRY(parse_factor(r, word, &h));
    }
    if (h.kind == KOFN_FAULT_EVENT_ERR) {
        next_word(&at, end, word, sizeof word);
        TRY(parse_place(r, word, &h));
    }
    next_word(&at, end, word, sizeof word);
    if (*word)
        return wrong(r, "nothing may follow, but there is", word);
    TRY(kf_grow(&r->list, &r->cap, r->count, sizeof *r->list));
    r->list[r->count++] = (item){h, r->line};
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
static kofn_status check_workers(const reader *r, size_t workers)
{
    size_t there = workers, cap = workers + r->count;
    uint8_t *gone = kf_zero(cap, 1);
    kofn_status st = gone ? KOFN_OK : KOFN_NOMEM;

    for (size_t i = 0; i < r->count && !st; i++) {
        const kofn_fault_event *h = &r->list[i].h;

        if (h->kind == KOFN_FAULT_EVENT_JOIN)
            there++;
        else if (h->worker >= there)
            st = kf_fail(KOFN_FORMAT,
                         "%s, line %zu: there is no worker %u at "
                         "that moment; they run from 0 to %zu",
                         r->name, r->list[i].line, h->worker, there - 1);
        else if (gone[h->worker])
            st = kf_fail(KOFN_FORMAT, "%s, line %zu: worker %u has left before",
                         r->name, r->list[i].line, h->worker);
        else if (h->kind == KOFN_FAULT_EVENT_LEAVE)
            gone[h->worker] = 1;
    }
    kf_free(gone);
    return st;
}

static kofn_status parse_all(reader *r, size_t workers, size_t rounds)
{
    while (r->at < r->end) {
        const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
        const char *mark;

        if (!stop)
            stop = r->end;
        mark = memchr(r->at, '#', (size_t)(stop - r->at));
        r->line++;
        TRY(parse_line(r, r->at, mark ? mark : stop, rounds));
        r->at = stop < r->end ? stop + 1 : stop;
    }
    if (r->count)
        qsort(r->list, r->count, sizeof *r->list, by_time);
    return check_workers(r, workers);
}

static kofn_status parse(reader r, size_t workers, size_t rounds,
                         kofn_fault_event **out, size_t *count)
{
    kofn_status st = parse_all(&r, workers, rounds);

    *count = 0;
    *out = st ? NULL : kf_new(r.count, sizeof **out);
    if (!st && !*out)
        st = KOFN_NOMEM;
    for (size_t i = 0; i < r.count && !st; i++)
        (*out)[i] = r.list[i].h;
    if (!st)
        *count = r.count;
    kf_free(r.list);
    return st;
}

kofn_status kofn_events_parse(kofn_fault_event **out, size_t *count,
                              const char *text, size_t length, size_t workers,
                              size_t rounds)
{
    reader r = {.name = "events", .at = text, .end = text + length};

    return parse(r, workers, rounds, out, count);
}

/* An events file is written by hand: a megabyte is a mistake. */
#define MAX_FILE ((size_t)1 << 20)

kofn_status kofn_events_read(kofn_fault_event **out, size_t *count,
                             const char *path, size_t workers, size_t rounds)
{
    FILE *f = fopen(path, "rb");
    char *text;
    size_t n;
    kofn_status st = KOFN_IO;

    *out = NULL;
    *count = 0;
    if (!f)
        return kf_fail(KOFN_IO, "%s: %s", path, strerror(errno));
    text = kf_new(MAX_FILE + 1, 1);
    if (!text) {
        fclose(f);
        return KOFN_NOMEM;
    }
    n = fread(text, 1, MAX_FILE + 1, f);
    if (ferror(f))
        st = kf_fail(KOFN_IO, "%s: %s", path, strerror(errno));
    else if (n > MAX_FILE)
        st = kf_fail(KOFN_FORMAT, "%s: more than %zu bytes of events", path,
                     MAX_FILE);
    else
        st = parse((reader){.name = path, .at = text, .end = text + n}, workers,
                   rounds, out, count);
    fclose(f);
    kf_free(text);
    return st;
}
