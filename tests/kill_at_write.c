/* kill_at_write.c -- `kill_at_write N COMMAND...` runs a command and kills it
 * when it is about to change a file for the Nth time. A change is a write,
 * truncation, renaming, removal or sync.
 *
 * Exit status: that of the command, if it ends before; 137 if it was killed;
 * 77 if processes may not be traced here. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__
/* True for a file. A pipe or a terminal leaves nothing that can be found
 * afterwards. */
static bool is_file(pid_t who, unsigned long long fd)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d/fd/%llu", (int)who, fd);
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool changes(pid_t who)
{
    struct user_regs_struct r;

    if (ptrace(PTRACE_GETREGS, who, NULL, &r) != 0)
        return false;
    switch (r.orig_rax) {
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_ftruncate:
    case SYS_fsync:
    case SYS_fdatasync:
        return is_file(who, r.rdi);
    case SYS_rename:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_unlink:
    case SYS_unlinkat:
    case SYS_link:
    case SYS_linkat:
        return true;
    default:
        return false;
    }
}

/* Traces the command. It is stopped twice in each call, at the begin and at
 * the end. A call of a thread that ends within it is counted twice, which does
 * no harm. */
static int watch(pid_t child, long left)
{
    static bool inside[1 << 22];
    int status;
    pid_t who;

    while ((who = waitpid(-1, &status, __WALL)) > 0) {
        long pass = 0;

        if (!WIFSTOPPED(status)) {
            if (who != child)
                continue;
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                       : WEXITSTATUS(status);
        }
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            bool *in = &inside[who & ((1 << 22) - 1)];

            *in = !*in;
            if (*in && changes(who) && --left <= 0) {
                kill(child, SIGKILL);
                continue;
            }
        } else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
            pass = WSTOPSIG(status);
        }
        ptrace(PTRACE_SYSCALL, who, NULL, (void *)pass);
    }
    return 77;
}

int main(int argc, char **argv)
{
    int status;
    pid_t child;

    if (argc < 3)
        return 77;
    child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        raise(SIGSTOP);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 77;
    if (!WIFSTOPPED(status))
        return 77;
    ptrace(PTRACE_SETOPTIONS, child, NULL,
           (void *)(long)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE |
                          PTRACE_O_EXITKILL));
    ptrace(PTRACE_SYSCALL, child, NULL, NULL);
    return watch(child, strtol(argv[1], NULL, 10));
}
#else
int main(void)
{
    return 77;
}
#endif
