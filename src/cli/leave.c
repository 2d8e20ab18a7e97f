/* leave.c -- looks for the file and runs the command that ask a worker to
 * leave.
 *
 * Owns the process of the command. Neither can block the worker. */
#include "leave.h"

#include "cli.h"

#include "base/clock.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK 0.25 /* seconds between two looks for the file */
#define ASK 5     /* seconds between two runs of the command */

extern char **environ;

/* Starts the command in a process group of its own, without input and output.
 * Returns 0, or an errno. */
static int start(cli_leaving *l)
{
    const char *argv[] = {"sh", "-c", l->command, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, ignored;
    int why;

    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGXFSZ);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP |
                                       POSIX_SPAWN_SETSIGMASK |
                                       POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &ignored);
    why = posix_spawn(&l->child, "/bin/sh", &files, &how,
                      (char **)(uintptr_t)argv, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return why;
}

/* Warns once about a command that cannot be run. */
static void warn(cli_leaving *l, const char *why)
{
    if (!l->warned)
        cli_say(0, "--preempt-command %s: %s; retrying", l->command, why);
    l->warned = true;
}

/* Starts the command when it is due. True if it has ended with 0. */
static bool command_says(cli_leaving *l, double now)
{
    int code = 0, why;

    if (!l->child && now >= l->ask) {
        l->ask = now + ASK;
        why = start(l);
        if (why) {
            l->child = 0;
            warn(l, strerror(why));
        }
    }
    if (!l->child || waitpid(l->child, &code, WNOHANG) == 0)
        return false;
    l->child = 0;
    if (WIFEXITED(code) && WEXITSTATUS(code) >= 126)
        warn(l, WEXITSTATUS(code) == 126 ? "it cannot be run"
                                         : "it was not found");
    return WIFEXITED(code) && WEXITSTATUS(code) == 0;
}

const char *cli_leaving_why(cli_leaving *l)
{
    double now;

    if (l->why || (!l->file && !l->command))
        return l->why;
    now = kf_clock_seconds();
    if (l->file && now >= l->look) {
        l->look = now + LOOK;
        if (access(l->file, F_OK) == 0)
            l->why = "the file of --preempt-file is there";
    }
    if (l->command && !l->why && command_says(l, now))
        l->why = "the command of --preempt-command has ended with 0";
    return l->why;
}

void cli_leaving_end(cli_leaving *l)
{
    if (!l->child)
        return;
    kill(-l->child, SIGKILL);
    waitpid(l->child, NULL, 0);
    l->child = 0;
}
