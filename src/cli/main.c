/* main.c -- dispatch, help, failing, signals. */
#define _GNU_SOURCE
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define DESCRIPTORS 65536 /* of more nobody has use */

/* ---- failing ------------------------------------------------------------- */

static int exit_code(kofn_status st)
{
    switch (st) {
    case KOFN_OK:
        return EXIT_EXACT;
    case KOFN_PARTIAL:
    case KOFN_TOOFEW:
    case KOFN_LATE:
        return EXIT_TOOFEW;
    case KOFN_CORRUPT:
        return EXIT_CORRUPT;
    case KOFN_INVAL:
    case KOFN_SHAPE:
    case KOFN_NOSCHEME:
    case KOFN_UNSUITED:
    case KOFN_FORMAT:
    case KOFN_NONFINITE:
        return EXIT_USAGE;
    default:
        return EXIT_FAILED;
    }
}

int cli_fail(kofn_status st)
{
    return cli_say(exit_code(st), "%s", kofn_errmsg());
}

int cli_fail_input(kofn_status st)
{
    return cli_say(st == KOFN_NOMEM ? EXIT_FAILED : EXIT_USAGE, "%s",
                   kofn_errmsg());
}

/* ---- signals ------------------------------------------------------------- */

static volatile sig_atomic_t caught, guarded;

static void on_signal(int sig)
{
    if (!guarded || caught)
        _exit(128 + sig);
    caught = sig;
}

void cli_signals(void)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction was;

    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &act, NULL); /* unless nohup has it ignored */
}

void cli_guard(bool on)
{
    guarded = on;
}

int cli_caught(void)
{
    return caught;
}

/* ---- dispatch ------------------------------------------------------------ */

static const cli_command *find(const char *name)
{
    const cli_command *c = cli_commands;

    while (c->name && strcmp(c->name, name) != 0)
        c++;
    return c->name ? c : NULL;
}

static int no_command(const char *name)
{
    char known[200] = "";

    for (const cli_command *c = cli_commands; c->name; c++) {
        strcat(known, c == cli_commands ? "" : ", ");
        strcat(known, c->name);
    }
    return cli_say(EXIT_USAGE, "no command \"%s\"; there are %s", name, known);
}

static bool is(const char *word, const char *a, const char *b)
{
    return !strcmp(word, a) || (b && !strcmp(word, b));
}

static int help(const char *topic)
{
    const cli_command *c;

    if (!topic) {
        cli_help(stdout);
        return EXIT_EXACT;
    }
    c = find(topic);
    if (!c)
        return no_command(topic);
    cli_help_command(stdout, c);
    return EXIT_EXACT;
}

static cli_args defaults(void)
{
    cli_args a = {.scheme = "elastic",
                  .port = "threads",
                  .workers = 8,
                  .rounds = 1,
                  .rows = 100000,
                  .seed = 1,
                  .dtype = "f8",
                  .factor = 5,
                  .model = {20, 3, 0.05, 1, 1, 0},
                  .stream = {0, 5, 0.3, 0},
                  .delay = 3,
                  .regress = {.size = sizeof(kofn_regress_options)},
                  .job = KOFN_OPTIONS_INIT};

    return a;
}

static int carry_out(cli_args *a)
{
    const cli_command *c = a->command;
    int code;

    if (c->bit & IN_RUN && !a->masterless) {
        const cli_transport *port = cli_transport_of(a->port);
        bool is_worker;

        if (port->start) {
            code = port->start(a, &is_worker);
            if (!code && !is_worker)
                code = c->run(a);
            return port->end(code);
        }
    }
    code = c->run(a);
    cli_ports_end();
    return code;
}

static int run(const cli_command *c, int argc, char **argv)
{
    cli_args a = defaults();
    int code;

    a.command = c;
    code = cli_parse(c, argc, argv, &a);
    if (!code && !a.help && c->bit & IN_RUN)
        code = cli_check_names(&a);
    if (code) {
        cli_print_failure(&a);
        return code;
    }
    if (a.help) {
        cli_help_command(stdout, c);
        return EXIT_EXACT;
    }
    a.weather.seed = a.seed;
    code = cli_make_pattern(&a);
    if (!code)
        code = carry_out(&a);
    /* Workers may be in the middle of something; nothing of it is wanted. */
    if (code >= 128)
        _exit(code);
    if (code)
        cli_print_failure(&a);
    kofn_free(a.pattern.data);
    return code;
}

static int dispatch(int argc, char **argv)
{
    const cli_command *c;

    if (argc < 2) {
        cli_help(stderr);
        return EXIT_USAGE;
    }
    if (is(argv[1], "--help", "-h"))
        return help(NULL);
    if (is(argv[1], "help", NULL))
        return help(argv[2]);
    if (is(argv[1], "--version", "-V")) {
        cli_version(stdout);
        return EXIT_EXACT;
    }
    if (is(argv[1], "--manual", NULL)) {
        cli_manual(stdout);
        return EXIT_EXACT;
    }
    c = find(argv[1]);
    return c ? run(c, argc - 1, argv + 1) : no_command(argv[1]);
}

/* A file must not be opened as descriptor 0, 1 or 2 and then be printed into:
 * where one is closed, something that fails takes its place. */
static void fill_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd < 3);
    if (fd >= 0)
        close(fd);
}

/* Messages of megabytes come and go, on a thread here and on another there.
 * The allocator would give each back to the system, whose pages cost more than
 * to fill them. */
static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, INT_MAX);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_ARENA_MAX, 1);
}

/* Two connections a worker: the usual limit of 1024 is soon reached, and may be
 * raised by anybody up to the hard one. */
static void raise_descriptors(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= DESCRIPTORS)
        return;
    files.rlim_cur =
        files.rlim_max < DESCRIPTORS ? files.rlim_max : DESCRIPTORS;
    setrlimit(RLIMIT_NOFILE, &files);
}

/* By the name of its file: under Valgrind the link leads to Valgrind when it is
 * run.  By the link where the file was removed since. */
void cli_again(char **argv)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    if (n > 0) {
        path[n] = 0;
        execv(path, argv);
    }
    execv("/proc/self/exe", argv);
}

/* OpenBLAS asks for its buffers until it gets them, on threads that it has
 * begun before main and waits for at the end: a process that has no room for
 * them would hang. */
static void demand_room(void)
{
    const size_t buffers = (size_t)2 << 27; /* of two threads */
    struct rlimit space;
    void *p;

    if (getrlimit(RLIMIT_AS, &space) || space.rlim_cur == RLIM_INFINITY)
        return;
    p = mmap(NULL, buffers, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED) {
        munmap(p, buffers);
        return;
    }
    cli_say(EXIT_FAILED,
            "the limit of %zu KiB of address space leaves no room "
            "for the BLAS, which takes 128 MiB a thread; say ulimit -v "
            "1000000, or unlimited",
            (size_t)space.rlim_cur / 1024);
    _exit(EXIT_FAILED);
}

int main(int argc, char **argv)
{
    int code;

    keep_memory();
    fill_descriptors();
    raise_descriptors();
    demand_room();
    cli_fast_blas(argv);
    cli_signals();
    cli_json_begin();
    code = dispatch(argc, argv);
    if (!code && cli_json_lost())
        code = cli_say(EXIT_FAILED, "out of memory for the report");
    if (fflush(stdout) || ferror(stdout))
        code =
            cli_say(code ? code : EXIT_FAILED, "stdout: %s", strerror(errno));
    return code;
}
