/* cmd_stream.c -- kofn stream: one product per line, each finished by its due
 * round.
 *
 * Owns the operands of each product, from the line that names them until its
 * answer is written. This command reads its input while workers compute. So it
 * waits for a line no longer than the stream allows. */
#define _GNU_SOURCE /* basename */
#include "schemes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- lines --------------------------------------------------------------- */

/* The list of products, read as it comes: a pipe may deliver a line after
 * other products are finished. */
typedef struct reader {
    const char *name;
    int fd;
    char *text;
    size_t n, cap, line; /* bytes in the buffer; number of the last line */
    size_t length;       /* length of the last line */
    bool ended;
} reader;

static bool has_line(const reader *r)
{
    return r->n > 0 && (r->ended || memchr(r->text, '\n', r->n));
}

/* Reads the input that is there. Waits for up to `wait` milliseconds, without
 * limit if `wait` is negative. */
static int reader_fill(reader *r, int wait)
{
    struct pollfd p = {.fd = r->fd, .events = POLLIN};
    ssize_t got;

    if (r->ended || has_line(r) || poll(&p, 1, wait) <= 0)
        return 0;
    if (r->cap - r->n < 4096) {
        char *more = realloc(r->text, r->cap + 8192);

        if (!more)
            return cli_say(EXIT_FAILED, "out of memory for a line of %s",
                           r->name);
        r->text = more;
        r->cap += 8192;
    }
    if (r->n > 1 << 20)
        return cli_say(EXIT_USAGE, "%s, line %zu: longer than any three names",
                       r->name, r->line + 1);
    got = read(r->fd, r->text + r->n, r->cap - r->n);
    if (got < 0 && errno != EINTR)
        return cli_say(EXIT_USAGE, "%s: %s", r->name, strerror(errno));
    r->ended = got == 0;
    r->n += got > 0 ? (size_t)got : 0;
    return 0;
}

/* Returns the next line, freed by the caller; NULL: memory ran out. */
static char *reader_take(reader *r)
{
    char *end = memchr(r->text, '\n', r->n);
    size_t n = end ? (size_t)(end - r->text) : r->n;
    char *line = malloc(n + 1);

    if (!line)
        return NULL;
    memcpy(line, r->text, n);
    line[n] = 0;
    r->length = n;
    n += end != NULL;
    memmove(r->text, r->text + n, r->n - n);
    r->n -= n;
    r->line++;
    return line;
}

/* ---- products ------------------------------------------------------------ */

typedef struct task {
    char *line;
    const char *X, *Y, *out; /* names, in the line */
    input x, y;
    kofn_matrix left, right, C;
    uint32_t number;
} task;

typedef struct stream {
    const cli_args *args;
    cli_args quiet; /* the session prints nothing */
    session s;
    bool open;
    task *flight[KOFN_OPEN_MOST];
    size_t flights, most;
    reader list;
} stream;

static void task_free(task *t)
{
    if (!t)
        return;
    input_free(&t->x);
    input_free(&t->y);
    free(t->C.data);
    free(t->line);
    free(t);
}

/* Takes the next name of the line. It ends at a blank, or at the closing quote
 * if it begins with one. NULL: there is none. */
static char *next_name(char **at)
{
    char *name = *at + strspn(*at, " \t\r"), *end;
    bool quoted = *name == '"';

    name += quoted;
    end = name + strcspn(name, quoted ? "\"" : " \t\r");
    if (end == name ||
        (quoted && (!*end || (end[1] && !strchr(" \t\r", end[1])))))
        return NULL;
    *at = end + (*end != 0);
    *end = 0;
    return name;
}

/* Splits a line into X, Y and OUT, separated by blanks. */
static int split(const reader *r, task *t)
{
    char *at = t->line;

    if (strlen(t->line) < r->length)
        return cli_say(EXIT_USAGE, "%s, line %zu: a name holds a zero byte",
                       r->name, r->line);
    t->X = next_name(&at);
    t->Y = t->X ? next_name(&at) : NULL;
    t->out = t->Y ? next_name(&at) : NULL;
    if (t->out && !at[strspn(at, " \t\r")])
        return 0;
    return cli_say(EXIT_USAGE,
                   "%s, line %zu: give X, Y and OUT, three names of files; one "
                   "with a blank stands between double quotes",
                   r->name, r->line);
}

static int load(task *t)
{
    TRY_CODE(input_matrix(&t->x, &t->left, t->X));
    TRY_CODE(input_matrix(&t->y, &t->right, t->Y));
    if (t->left.cols != t->right.rows)
        return cli_say(EXIT_USAGE,
                       "%s is %zu x %zu and %s %zu x %zu: the "
                       "inner sizes do not agree",
                       t->X, t->left.rows, t->left.cols, t->Y, t->right.rows,
                       t->right.cols);
    return cli_room(&t->C, t->left.rows, t->right.cols, "the result");
}

static void tell_json(const session *s, const task *t, const kofn_report *r,
                      const cli_exactness *v)
{
    bool looked = v->rel_error >= 0;
    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "status", "ok", "X", t->X,
        "Y", t->Y, "output", t->out, "predicted", cli_number(r->predicted),
        "rel_error", looked ? cli_number(v->rel_error) : json_null(),
        "row_error", looked ? cli_number(v->row_error) : json_null(),
        "worst_row",
        looked ? json_integer((json_int_t)v->worst_row) : json_null());

    session_put_report(s, r, o);
    cli_print_json(o);
}

static void tell_text(const session *s, const task *t, const kofn_report *r,
                      const cli_exactness *v)
{
    char title[SHOW_TITLE];

    printf("%s = %s %s: rounds %u to %u, %.4f s, %zu plain and %zu coded "
           "answers, predicted relative error %.1e",
           t->out, t->X, t->Y, r->began, r->ended, (double)r->took * 1e-9,
           r->plain, r->coded, r->predicted);
    if (v->rel_error >= 0)
        printf(", found %.1e (row %zu: %.1e of |X| |Y|, the most)",
               v->rel_error, v->worst_row, v->row_error);
    if (r->corrupt)
        printf(", %u wrong answers", r->corrupt);
    for (size_t i = 0; i < r->workers; i++)
        if (r->corrupt && r->located[i])
            printf(", %s%s", show_title(s, i, title),
                   r->states[i] == KOFN_WORKER_QUARANTINED ? " (quarantined)"
                                                           : "");
    putchar('\n');
}

/* Flushes the output. Reports once if its reader has gone. */
static int flush(void)
{
    int code;

    if (!fflush(stdout) && !ferror(stdout))
        return 0;
    code = cli_say(EXIT_FAILED, "stdout: %s", strerror(errno));
    clearerr(stdout);
    return code;
}

/* Writes a finished product and reports it. */
static int finish(stream *s, size_t i, const kofn_report *rep)
{
    task *t = s->flight[i];
    cli_exactness v = {.rel_error = -1};
    const cli_factors factors = {.A = KOFN_DENSE(&t->left), .B = &t->right};
    int code = s->args->verify ? cli_verify_product(&factors, &t->C, &v) : 0;

    cli_guard(true);
    if (!code)
        code = cli_wrote(kofn_write(t->out, KOFN_DENSE(&t->C), 2));
    cli_guard_promptly();
    if (!code && s->args->json)
        tell_json(&s->s, t, rep, &v);
    else if (!code && !s->args->quiet)
        tell_text(&s->s, t, rep, &v);
    if (!code)
        code = flush();
    task_free(t);
    memmove(&s->flight[i], &s->flight[i + 1],
            (--s->flights - i) * sizeof(task *));
    return code;
}

/* Waits for product `number`, or for the next one if it is 0, for `atmost`.
 * Sets *over if it is finished. */
static int await(stream *s, uint32_t number, kofn_time atmost, bool *over)
{
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_status st = kofn_take(s->s.job, number, atmost, &rep);
    size_t i = 0;

    *over = st != KOFN_AGAIN;
    if (cli_caught())
        return 128 + cli_caught();
    if (st < 0)
        return cli_fail(st);
    if (!*over) {
        session_tell_waiting(&s->s, s->args->quiet);
        return 0;
    }
    while (s->flight[i]->number != rep.number)
        i++;
    return finish(s, i, &rep);
}

/* Finds the folder of this path. Returns false if there is none. */
static bool folder_of(const char *path, struct stat *st)
{
    int n = (int)(basename(path) - path);
    char folder[4096];

    return snprintf(folder, sizeof folder, "%.*s.", n, path) <
               (int)sizeof folder &&
           stat(folder, st) == 0;
}

/* True if both names mean one file, which may not exist. */
static bool same_place(const char *a, const char *b)
{
    struct stat s, t;

    if (strcmp(basename(a), basename(b)) != 0)
        return false;
    return strcmp(a, b) == 0 || (folder_of(a, &s) && folder_of(b, &t) &&
                                 s.st_dev == t.st_dev && s.st_ino == t.st_ino);
}

/* Waits until no open product writes to a file that this one reads or writes.
 */
static int await_sources(stream *s, const task *t)
{
    for (size_t i = 0; i < s->flights; i++) {
        const task *f = s->flight[i];
        bool over = false;
        int code = 0;

        if (!same_place(f->out, t->X) && !same_place(f->out, t->Y) &&
            !same_place(f->out, t->out))
            continue;
        while (!over && !code)
            code = await(s, f->number, KOFN_SECOND / 10, &over);
        if (code)
            return code;
        i = (size_t)-1; /* restart the search: places have changed */
    }
    return 0;
}

/* Opens the job for the shape of the first product. */
static int open_job(stream *s, const task *t)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_STREAM, t->left.rows, t->left.cols,
                                        t->right.cols, KOFN_F64, false);
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;

    s->quiet = *s->args;
    s->quiet.json = false;
    s->open = true;
    TRY_CODE(session_open(&s->s, &s->quiet, &pb, SIZE_MAX / 2, NULL));
    s->quiet.quiet = true;
    if (kofn_plan_describe(s->s.plan[0], false, &info))
        return cli_fail(KOFN_NOMEM);
    s->most = info.delay + 2;
    cli_guard_promptly();
    return 0;
}

/* Starts the product of a line, and takes its ownership on success. */
static int put(stream *s, task *t)
{
    TRY_CODE(split(&s->list, t));
    TRY_CODE(await_sources(s, t));
    TRY_CODE(cli_check_path("", t->out, true));
    TRY_CODE(load(t));
    if (!s->open)
        TRY_CODE(open_job(s, t));
    TRY_CODE(cli_fail(
        kofn_put_pair(s->s.job, &t->left, &t->right, &t->C, &t->number)));
    s->flight[s->flights++] = t;
    return 0;
}

/* Reads the next line. Empty lines and those that begin with # are skipped. */
static int read_line(stream *s)
{
    task *t = calloc(1, sizeof *t);
    bool named;
    int code;

    if (t)
        t->line = reader_take(&s->list);
    if (!t || !t->line) {
        free(t);
        return cli_say(EXIT_FAILED, "out of memory for a line of %s",
                       s->list.name);
    }
    named = strspn(t->line, " \t\r") < s->list.length && *t->line != '#';
    code = named ? put(s, t) : 0;
    if (!named || code)
        task_free(t);
    return code;
}

static int run(stream *s)
{
    int code = 0;

    while (!code && !(s->list.ended && s->list.n == 0 && s->flights == 0)) {
        bool room = s->flights == 0 || s->flights < s->most, over;

        if (room)
            code = reader_fill(&s->list, s->flights ? 0 : 100);
        if (cli_caught())
            return 128 + cli_caught();
        if (!code && room && has_line(&s->list))
            code = read_line(s);
        else if (!code && s->flights > 0)
            code = await(s, 0, KOFN_SECOND / 100, &over);
    }
    return code;
}

int cmd_stream(cli_args *a)
{
    const char *name = a->operand[0];
    stream s = {.args = a, .list = {.name = name, .fd = STDIN_FILENO}};
    int code;

    if (!a->scheme_given)
        a->scheme = "dip";
    TRY_CODE(cli_tolerate(a, &a->scheme, a->tolerated));
    if (strcmp(name, "-") != 0)
        s.list.fd = open(name, O_RDONLY | O_CLOEXEC);
    code = s.list.fd < 0 ? cli_say(EXIT_USAGE, "%s: %s", name, strerror(errno))
                         : run(&s);
    if (!code && !s.open && a->mpi) /* the other ranks wait for a message */
        code = cli_say(EXIT_USAGE,
                       "%s names no product: the other ranks have nothing to "
                       "do",
                       name);
    if (s.open)
        code = session_close(&s.s, code);
    if (code >= 128)
        return code;
    for (size_t i = 0; i < s.flights; i++)
        task_free(s.flight[i]);
    if (s.list.fd > STDIN_FILENO)
        close(s.list.fd);
    free(s.list.text);
    return code;
}
