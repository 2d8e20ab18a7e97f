/* manifest.c -- the manifest of a set: JSON that the caller gave, with these
 * lines as its first and last members.
 *
 *     "set": 1,
 *     ...
 *     "files": [
 *       {"name": "W1.npy", "bytes": 4224, "digest": "xxh3-64:0123456789abcdef"}
 *     ],
 *     "digest": "xxh3-64:0123456789abcdef"
 *   }
 *
 * The last digest is that of all lines before its own.  The lines are read as
 * they were written: with another layout the manifest was changed.  Digests
 * show damage, not malice.
 *
 * Owns the text and the list of files until kf_store_close frees them. */
#include "manifest.h"

#include "base/base.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <kofn/io.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST "{\n  \"set\": 1,"
#define FILES "\n  \"files\": ["
#define LAST "  \"digest\": \"xxh3-64:%016" PRIx64 "\"\n}\n"

enum { TAIL = 41 };         /* bytes of LAST */
enum { LINE = 300 };        /* more bytes than the line of a file */
enum { LONGEST = 1 << 20 }; /* bytes of a manifest */
enum { FIRST_BYTES = sizeof FIRST - 1 };

kofn_status kf_manifest_damaged(const char *path, const char *why)
{
    return kf_fail(KOFN_FORMAT, "%s is damaged or was changed: %s", path, why);
}

static void print_last(char out[TAIL + 1], const char *text, size_t n)
{
    int printed = snprintf(out, TAIL + 1, LAST, kf_hash(0, text, n));

    assert(printed == TAIL);
    (void)printed;
}

/* ---- writing ------------------------------------------------------------- */

static size_t print_files(char *out, size_t room, const kf_store *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->files; i++) {
        const kf_store_file *f = &s->file[i];

        n += (size_t)snprintf(out + n, room - n,
                              "%s\n    {\"name\": \"%s\", \"bytes\": %" PRIu64
                              ", \"digest\": \"xxh3-64:%016" PRIx64 "\"}",
                              i ? "," : "", f->name, f->bytes, f->digest);
        assert(n < room);
    }
    return n;
}

/* Returns the length of the object without the brace at its end. */
static size_t end_of_members(const char *json)
{
    const char *end = strrchr(json, '}');

    assert(json[0] == '{');
    assert(end);
    while (end > json && strchr("\n ", end[-1]))
        end--;
    assert(end > json + 1);
    return (size_t)(end - json);
}

kofn_status kf_manifest_write(const kf_store *s, const char *json,
                              const char *path)
{
    size_t length = end_of_members(json), room = length + (s->files + 2) * LINE,
           n;
    kofn_status st;
    char *text;

    TRY_NEW(text, room);
    n = (size_t)snprintf(text, room, FIRST "%.*s," FILES, (int)length - 1,
                         json + 1);
    n += print_files(text + n, room - n, s);
    n += (size_t)snprintf(text + n, room - n, "\n  ],\n");
    print_last(text + n, text, n);
    st = n + TAIL <= LONGEST ? kofn_write_bytes(path, text, n + TAIL)
                             : kf_fail(KOFN_INVAL, "%s is too long", path);
    kf_free(text);
    return st;
}

/* ---- reading ------------------------------------------------------------- */

/* Reads the whole text, with a zero behind it. */
static kofn_status read_text(int fd, const char *path, char **text, size_t *n)
{
    struct stat is;
    ssize_t got = 0;

    if (fstat(fd, &is) != 0 || !S_ISREG(is.st_mode) || is.st_size > LONGEST)
        return kf_manifest_damaged(path, "it is no manifest of a set");
    TRY_NEW(*text, (size_t)is.st_size + 1);
    for (*n = 0; *n < (size_t)is.st_size; *n += (size_t)got) {
        got = read(fd, *text + *n, (size_t)is.st_size - *n);
        if (got <= 0)
            return kf_manifest_damaged(path, "it cannot be read");
    }
    (*text)[*n] = 0;
    return KOFN_OK;
}

/* Returns what is wrong with the text, or NULL. */
static const char *judge(const char *text, size_t n)
{
    char last[TAIL + 1];

    if (n < FIRST_BYTES || memcmp(text, FIRST, FIRST_BYTES) != 0)
        return "it does not begin like those of this version of kofn";
    if (n < FIRST_BYTES + TAIL)
        return "its end is missing";
    print_last(last, text, n - TAIL);
    return memcmp(text + n - TAIL, last, TAIL) != 0
               ? "its own digest is another one"
               : NULL;
}

/* Returns the line of the first file, or NULL. */
static const char *find_list(const char *text)
{
    const char *list = NULL;

    for (const char *at = text; (at = strstr(at, FILES)); at++)
        list = at + sizeof FILES - 1;
    return list;
}

static kofn_status read_files(kf_store *s, const char *line, const char *path)
{
    for (int n = 0; line && *line != ']'; line += n) {
        kf_store_file f;

        n = 0;
        if (sscanf(line,
                   " {\"name\": \"%119[^\"/]\", \"bytes\": %" SCNu64
                   ", \"digest\": \"xxh3-64:%16" SCNx64 "\"}%n",
                   f.name, &f.bytes, &f.digest, &n) != 3 ||
            n == 0)
            return kf_manifest_damaged(path, "its list of files is not clear");
        TRY(kf_grow(&s->file, &s->cap, s->files, sizeof *s->file));
        s->file[s->files++] = f;
        n += (int)strspn(line + n, ",\n ");
    }
    return line ? KOFN_OK : kf_manifest_damaged(path, "it lists no files");
}

static kofn_status take_text(kf_store *s, const char *path, size_t n)
{
    const char *why = judge(s->text, n), *list = find_list(s->text);

    if (why)
        return kf_manifest_damaged(path, why);
    if (list)
        list += strspn(list, "\n ");
    return read_files(s, list, path);
}

kofn_status kf_manifest_read(kf_store *s, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    kofn_status st;
    size_t n = 0;

    assert(!s->text);
    assert(s->files == 0);
    if (fd < 0)
        return kf_fail(errno == ENOENT ? KOFN_AGAIN : KOFN_IO,
                       "cannot read %s: %s", path, strerror(errno));
    st = read_text(fd, path, &s->text, &n);
    close(fd);
    return st ? st : take_text(s, path, n);
}
