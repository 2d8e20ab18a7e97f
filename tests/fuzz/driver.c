/* driver.c -- runs a fuzz target without libFuzzer.
 *
 * To add a target for a parser:
 *
 *   1. fuzz_NAME.c exports LLVMFuzzerTestOneInput(data, size).  It returns 0,
 *      and calls abort() if an answer breaks a rule.  Rules for a success find
 *      wrong parses; without them only crashes are found.  `data` has no zero
 *      byte at its end, and must not be read beyond `size`.
 *   2. Put ten to thirty small files into corpus/NAME/.  Each variant of the
 *      format has one at least, and so has each way to break it.
 *   3. A comment of fuzz_NAME.c says "fuzz-iterations: N" on one line, with N
 *      for about 3 seconds in the plain build.  The default is 300000.
 *      KOFN_TEST_SCALE multiplies it.
 *
 * CMakeLists.txt finds both and adds the test fuzz_NAME. It runs the whole
 * corpus and then N mutations of it. Mutations depend on the seed and their
 * number only. With clang, `make fuzz` links the same file with libFuzzer
 * instead.  Usage:
 *
 *   fuzz_NAME [--iterations N] [--seed S] [--max-size BYTES] FOLDER...
 *   fuzz_NAME FILE...          runs these inputs in this process.
 *
 * The target runs in a child process, and its input is in shared memory. If
 * the child dies or hangs, the parent writes that input to a file and prints
 * its name. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned int seed); /* mutate.c */

#define LARGEST ((size_t)1 << 20) /* bytes of an input, at most */
#define TIMEOUT 60                /* seconds for one input */

typedef struct input {
    unsigned char *data;
    size_t size;
    char *name;
} input;

/* The memory that parent and child share. */
typedef struct view {
    atomic_ulong runs;    /* inputs begun */
    unsigned long corpus; /* inputs from files */
    size_t size;
    unsigned char data[LARGEST];
} view;

static input *corpus;
static size_t corpus_count, max_size = 4096;
static view *shared;

static void die(const char *what, const char *name)
{
    fprintf(stderr, "fuzz: %s %s: %s\n", what, name, strerror(errno));
    exit(2);
}

static void *need(void *p)
{
    if (!p)
        die("cannot get", "memory");
    return p;
}

/* ---- random numbers: splitmix64 (Steele, Lea, Flood 2014) ---------------- */

static uint64_t state;

static uint64_t draw(void)
{
    return kf_next64(&state);
}

static size_t below(size_t n)
{
    return n ? (size_t)(draw() % n) : 0;
}

/* ---- corpus -------------------------------------------------------------- */

static void add_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    input in = {.data = need(malloc(LARGEST + 1))};

    if (!f)
        die("cannot open", path);
    in.size = fread(in.data, 1, LARGEST, f);
    fclose(f);
    in.data = need(realloc(in.data, in.size + 1));
    in.name = need(strdup(path));
    corpus = need(realloc(corpus, (corpus_count + 1) * sizeof *corpus));
    corpus[corpus_count++] = in;
}

static int plain_name(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* Adds the files of a folder. Names are sorted, because the order must not
 * depend on the file system. */
static void add_folder(const char *path)
{
    struct dirent **list;
    int n = scandir(path, &list, plain_name, alphasort);

    if (n < 0)
        die("cannot read", path);
    for (int i = 0; i < n; i++) {
        size_t room = strlen(path) + strlen(list[i]->d_name) + 2;
        char *file = need(malloc(room));

        snprintf(file, room, "%s/%s", path, list[i]->d_name);
        add_file(file);
        free(file);
        free(list[i]);
    }
    free(list);
}

/* ---- words: from the corpus, and known traps for parsers ----------------- */

typedef struct word {
    const unsigned char *data;
    size_t size;
} word;

static const char *const usual[] = {
    "nan",
    "inf",
    "-inf",
    "-0",
    "1e999",
    "1e-999",
    "4.9e-324",
    "1.7976931348623159e308",
    "0x1p3",
    "1e",
    "+",
    "-",
    ".",
    ",",
    ";",
    "\t",
    "\n",
    "\r\n",
    "\"",
    "'",
    "#",
    "%",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "\xef\xbb\xbf",
    "\xff\xfe",
};

static const uint64_t numbers[] = {
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    9,
    10,
    16,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    1000,
    32767,
    32768,
    65535,
    65536,
    2147483647,
    2147483648,
    4294967295,
    4294967296,
    4294967297,
    1u << 20,
    1u << 22,
    (1u << 22) + 1,
    INT64_MAX,
    1ull << 63,
    UINT64_MAX,
    UINT64_MAX / 8,
    UINT64_MAX / 8 + 1,
    UINT64_MAX / 24 + 1,
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static word *words;
static size_t word_count;

static void add_word(const void *data, size_t size)
{
    if (word_count % 64 == 0)
        words = need(realloc(words, (word_count + 64) * sizeof *words));
    words[word_count++] = (word){data, size};
}

static int wordly(unsigned char c)
{
    return c > ' ' && !strchr(",;:()[]{}\"'", c);
}

static void collect_words(void)
{
    for (size_t i = 0; i < COUNT(usual); i++)
        add_word(usual[i], strlen(usual[i]));
    for (size_t f = 0; f < corpus_count && word_count < 4096; f++)
        for (size_t i = 0, j; i < corpus[f].size; i = j + 1) {
            for (j = i; j < corpus[f].size && wordly(corpus[f].data[j]); j++)
                ;
            if (j > i && j - i <= 32)
                add_word(corpus[f].data + i, j - i);
        }
}

/* ---- mutations
 *
 * Each mutation changes the n bytes at p, with room for max_size bytes. It
 * returns the new size. */

/* Replaces `cut` bytes at `at` by `size` bytes, or by the part that fits. */
static size_t splice(unsigned char *p, size_t n, size_t at, size_t cut,
                     const void *bytes, size_t size)
{
    cut = cut > n - at ? n - at : cut;
    if (size > max_size - (n - cut))
        size = max_size - (n - cut);
    memmove(p + at + size, p + at + cut, n - at - cut);
    if (size)
        memcpy(p + at, bytes, size);
    return n - cut + size;
}

static size_t change_byte(unsigned char *p, size_t n)
{
    if (n) {
        unsigned char *c = p + below(n);
        unsigned how = (unsigned)(draw() >> 32);

        if (how % 3 == 0)
            *c ^= (unsigned char)(1u << (how >> 8) % 8);
        else if (how % 3 == 1)
            *c = (unsigned char)(how >> 8);
        else
            *c = (unsigned char)"\0\xff\x7f\x80 0\n9"[(how >> 8) % 8];
    }
    return n;
}

/* Writes a binary number in either byte order. */
static size_t change_binary(unsigned char *p, size_t n)
{
    unsigned char bytes[8];
    size_t size = (size_t)1 << below(4);
    uint64_t x = numbers[below(COUNT(numbers))] + (below(4) ? 0 : draw() % 3);
    int turned = draw() & 1;

    for (size_t i = 0; i < size; i++)
        bytes[turned ? size - 1 - i : i] = (unsigned char)(x >> 8 * i);
    return splice(p, n, below(n + 1), size, bytes, size);
}

/* Writes a decimal number, in the place of another one if possible. */
static size_t change_decimal(unsigned char *p, size_t n)
{
    char text[32];
    size_t at = below(n + 1), cut = 0;
    uint64_t x = below(3) ? numbers[below(COUNT(numbers))] : draw() % 30;
    int size = snprintf(text, sizeof text, "%s%llu", below(8) ? "" : "-",
                        (unsigned long long)x);

    for (size_t i = 0; i < n; i++)
        if (p[(at + i) % n] >= '0' && p[(at + i) % n] <= '9') {
            at = (at + i) % n;
            break;
        }
    while (at + cut < n && p[at + cut] >= '0' && p[at + cut] <= '9')
        cut++;
    return splice(p, n, at, cut, text, (size_t)size);
}

static size_t change_word(unsigned char *p, size_t n)
{
    const word *w = &words[below(word_count)];

    return splice(p, n, below(n + 1), draw() & 1 ? w->size : 0, w->data,
                  w->size);
}

static size_t insert_bytes(unsigned char *p, size_t n)
{
    unsigned char bytes[64];
    size_t size = 1 + below(draw() & 1 ? 4 : sizeof bytes);
    int same = draw() & 1;

    for (size_t i = 0; i < size; i++)
        bytes[i] = same && i ? bytes[0] : (unsigned char)draw();
    return splice(p, n, below(n + 1), 0, bytes, size);
}

static size_t cut_bytes(unsigned char *p, size_t n)
{
    return splice(p, n, below(n + 1), 1 + below(draw() & 1 ? 4 : n), "", 0);
}

static size_t truncate_bytes(unsigned char *p, size_t n)
{
    (void)p;
    return below(n + 1);
}

/* Inserts a piece of an input of the corpus. */
static size_t insert_piece(unsigned char *p, size_t n)
{
    const input *in = &corpus[below(corpus_count)];
    size_t from = below(in->size + 1), size = below(in->size - from + 1);

    return splice(p, n, below(n + 1), draw() & 1 ? size : 0, in->data + from,
                  size);
}

/* Joins the head of this input and the tail of another. */
static size_t cross(unsigned char *p, size_t n)
{
    const input *in = &corpus[below(corpus_count)];
    size_t from = below(in->size + 1);

    return splice(p, n, below(n + 1), n, in->data + from, in->size - from);
}

/* Repeats a whole line somewhere. */
static size_t repeat_line(unsigned char *p, size_t n)
{
    unsigned char line[256];
    size_t from = below(n + 1), size = 0;

    while (from > 0 && from <= n && p[from - 1] != '\n')
        from--;
    while (from + size < n && size < sizeof line) {
        line[size] = p[from + size];
        if (line[size++] == '\n')
            break;
    }
    return splice(p, n, draw() & 1 ? from : below(n + 1), 0, line, size);
}

size_t LLVMFuzzerMutate(uint8_t *p, size_t n, size_t most)
{
    static size_t (*const all[])(unsigned char *, size_t) = {
        change_byte,    change_byte,  change_binary,  change_decimal,
        change_decimal, change_word,  change_word,    insert_bytes,
        cut_bytes,      insert_piece, truncate_bytes, cross,
        repeat_line,
    };

    for (size_t k = 1 + below(draw() & 1 ? 2 : 8); k > 0; k--)
        n = all[below(COUNT(all))](p, n);
    return n < most ? n : most;
}

/* ---- running ------------------------------------------------------------- */

/* Runs one input. The target gets a copy of the exact size, so that sanitizers
 * see reads beyond it. */
static void run(const unsigned char *data, size_t size)
{
    unsigned char *copy = need(malloc(size ? size : 1));

    if (size)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void run_shared(size_t size)
{
    shared->size = size;
    atomic_fetch_add(&shared->runs, 1);
    run(shared->data, size);
}

static void child(uint64_t seed, unsigned long iterations)
{
    for (size_t i = 0; i < corpus_count; i++) {
        memcpy(shared->data, corpus[i].data, corpus[i].size);
        run_shared(corpus[i].size);
    }
    collect_words();
    for (unsigned long k = 0; k < iterations; k++) {
        const input *in;
        size_t n;

        state = seed * 0x2545f4914f6cdd1du + k;
        in = &corpus[below(corpus_count)];
        n = in->size < max_size ? in->size : max_size;
        memcpy(shared->data, in->data, n);
        run_shared(LLVMFuzzerCustomMutator(shared->data, n, max_size,
                                           (unsigned)draw()));
    }
}

/* Writes the input to a file and prints how to run it again. */
static void report(const char *program, const char *how, int code,
                   uint64_t seed)
{
    const char *base = strrchr(program, '/');
    unsigned long runs = atomic_load(&shared->runs);
    char name[256];
    FILE *f;

    snprintf(name, sizeof name, "%s-crash-%ld", base ? base + 1 : program,
             (long)getpid());
    f = fopen(name, "wb");
    if (!f || fwrite(shared->data, 1, shared->size, f) != shared->size ||
        fclose(f) != 0)
        die("cannot write", name);
    fprintf(stderr, "%s: %s %d in ", program, how, code);
    if (runs && runs <= shared->corpus)
        fprintf(stderr, "%s\n", corpus[runs - 1].name);
    else
        fprintf(stderr, "mutation %lu with --seed %llu\n",
                runs - shared->corpus, (unsigned long long)seed);
    fprintf(stderr, "the input (%zu bytes) is in %s; again:\n    %s %s\n",
            shared->size, name, program, name);
}

/* Waits for the child. Returns non-zero unless it ended well. */
static int watch(pid_t pid, const char *program, uint64_t seed)
{
    const struct timespec nap = {0, 10000000};
    unsigned long last = 0, still = 0;
    int status;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        unsigned long runs = atomic_load(&shared->runs);

        nanosleep(&nap, NULL);
        still = runs == last ? still + 1 : 0;
        last = runs;
        if (still > TIMEOUT * 100) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            report(program, "timeout in seconds:", TIMEOUT, seed);
            return 1;
        }
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status))
        report(program, "exit code", WEXITSTATUS(status), seed);
    else
        report(program, "killed by signal", WTERMSIG(status), seed);
    return 1;
}

static unsigned long long number(const char *program, const char *text)
{
    char *end;
    unsigned long long x = text ? strtoull(text, &end, 10) : 0;

    if (!text || end == text || *end) {
        fprintf(stderr, "%s: '%s' is not a number\n", program,
                text ? text : "");
        exit(2);
    }
    return x;
}

/* Returns n multiplied by KOFN_TEST_SCALE, if that is set. */
static unsigned long long scaled(unsigned long long n)
{
    const char *s = getenv("KOFN_TEST_SCALE");
    double scale = s ? atof(s) : 1;

    return scale > 0 ? (unsigned long long)((double)n * scale) : n;
}

int main(int argc, char **argv)
{
    unsigned long long iterations = 0, seed = 1;
    int folders = 0, failed;
    pid_t pid;

    for (int i = 1; i < argc; i++) {
        struct stat st;

        if (strcmp(argv[i], "--iterations") == 0)
            iterations = scaled(number(argv[0], argv[++i]));
        else if (strcmp(argv[i], "--seed") == 0)
            seed = number(argv[0], argv[++i]);
        else if (strcmp(argv[i], "--max-size") == 0)
            max_size = (size_t)number(argv[0], argv[++i]);
        else if (stat(argv[i], &st) != 0)
            die("cannot read", argv[i]);
        else if (S_ISDIR(st.st_mode) && ++folders)
            add_folder(argv[i]);
        else
            add_file(argv[i]);
    }
    if (corpus_count == 0 || max_size == 0 || max_size > LARGEST) {
        fprintf(stderr,
                "usage: %s [--iterations N] [--seed S] [--max-size BYTES] "
                "FOLDER|FILE...\n",
                argv[0]);
        return 2;
    }
    if (!folders && !iterations) {
        for (size_t i = 0; i < corpus_count; i++)
            run(corpus[i].data, corpus[i].size);
        return 0;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("cannot get", "shared memory");
    shared->corpus = corpus_count;
    pid = fork();
    if (pid < 0)
        die("cannot", "fork");
    if (pid == 0) {
        child(seed, (unsigned long)iterations);
        exit(0);
    }
    failed = watch(pid, argv[0], seed);
    printf("%s: %zu files and %llu mutations%s\n", argv[0], corpus_count,
           iterations, failed ? ": FAILED" : "");
    return failed;
}
