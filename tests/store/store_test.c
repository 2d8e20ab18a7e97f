/* store_test.c -- sets of files on disk.  A writer is cut at every change of
 * the folder, by a kill or by a full disk.  Then either the old set or the new
 * one is read, never a mixture. */
#define _DEFAULT_SOURCE /* syscall */
#include "io_rig.h"

#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- cuts ---------------------------------------------------------------- */

/* Changes until the cut; 0: none.  `full`: from then on the disk is full, which
 * ends no process. */
static long left;
static bool full;

/* True if this change fails. */
static bool cut(bool takes_room)
{
    if (left == 0 || (left > 1 && --left > 0))
        return false;
    if (!full)
        _exit(9);
    errno = ENOSPC;
    return takes_room;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    return cut(true) ? -1 : syscall(SYS_write, fd, bytes, n);
}

int fsync(int fd)
{
    return cut(true) ? -1 : (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    return cut(true)
               ? -1
               : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int link(const char *from, const char *to)
{
    return cut(true)
               ? -1
               : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path)
{
    return cut(false) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

/* ---- sets ---------------------------------------------------------------- */

/* A model's sets have the same names of files. A checkpoint's files take turns,
 * and its set before is kept. A node's sets have names of their own. */
typedef enum { SAME, IN_TURN, OWN } way;

static kf_store set_of(way w)
{
    return (kf_store){.folder = folder,
                      .name = "set.json",
                      .before = w == IN_TURN ? "before.json" : NULL,
                      .remedy = "ask the owner"};
}

static void name_of(char out[KF_STORE_NAME], way w, int file, int number,
                    const char *id)
{
    char more[40] = "";

    if (w == IN_TURN)
        snprintf(more, sizeof more, "-%d", number % 2);
    else if (w == OWN)
        snprintf(more, sizeof more, "-%s", id);
    snprintf(out, KF_STORE_NAME, "%c%s.bin", 'a' + file, more);
}

/* Writes set `number`: two files that say which it is. */
static kofn_status put(way w, int number)
{
    kf_store s = set_of(w);
    char path[KF_STORE_PATH], name[KF_STORE_NAME], text[40];
    kofn_status st = kf_store_begin(&s);

    for (int i = 0; !st && i < 2; i++) {
        name_of(name, w, i, number, s.id);
        snprintf(text, sizeof text, "file %d of set %d", i, number);
        st = kf_store_add(&s, name, path);
        if (!st)
            st = kofn_write_bytes(path, text, strlen(text));
    }
    snprintf(text, sizeof text, "{\"number\": %d, \"of\": {\"a\": {}}}",
             number);
    st = kf_store_commit(&s, text, st);
    kf_store_close(&s);
    return st;
}

/* Returns the number of the set that was read. Fails if a file is of another.
 */
static int number_of(const kf_store *s)
{
    char path[KF_STORE_PATH], text[40], want[40];
    json_t *o = json_loads(s->text, 0, NULL);
    int number = (int)json_integer_value(json_object_get(o, "number"));

    json_decref(o);
    assert_int_equal(s->files, 2);
    for (size_t i = 0; i < 2; i++) {
        memset(text, 0, sizeof text);
        assert_ok(kf_store_find(s, i, text, path));
        snprintf(want, sizeof want, "file %zu of set %d", i, number);
        assert_string_equal(text, want);
    }
    return number;
}

static int number_on_disk(way w)
{
    kf_store s = set_of(w);
    int number;

    assert_ok(kf_store_open(&s));
    assert_false(s.is_old);
    number = number_of(&s);
    kf_store_close(&s);
    return number;
}

static void start_again(void)
{
    DIR *d = opendir(folder);
    const struct dirent *e;

    while (d && (e = readdir(d)))
        unlink(path_of(e->d_name));
    closedir(d);
}

static void settle(way w)
{
    kf_store s = set_of(w);

    assert_ok(kf_store_open(&s));
    kf_store_settle(&s);
    kf_store_close(&s);
}

/* ---- a cut at every change ----------------------------------------------- */

/* Writes set 3 in a process that is killed at its nth change.  Returns true if
 * it is killed. */
static bool killed_at(way w, long n)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        left = n;
        _exit(put(w, 3) ? 1 : 0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1);
    return WEXITSTATUS(status) == 9;
}

static void a_kill(void **state)
{
    (void)state;
    for (way w = SAME; w <= OWN; w++) {
        int was = 2, found = 2;
        bool cuts = true;
        long n;

        for (n = 1; cuts; n++, was = found) {
            start_again();
            assert_ok(put(w, 1));
            assert_ok(put(w, 2));
            cuts = killed_at(w, n);
            found = number_on_disk(w);
            assert_in_range(found, was, 3);
            settle(w);
            assert_int_equal(listed(".kofn-"), 0);
            assert_int_equal(number_on_disk(w), found);
            assert_ok(put(w, 4));
            assert_int_equal(number_on_disk(w), 4);
        }
        assert_true(n > 12 && found == 3);
    }
}

static void a_full_disk(void **state)
{
    (void)state;
    for (way w = SAME; w <= OWN; w++) {
        kofn_status st = KOFN_IO;
        long n;

        for (n = 1; st; n++) {
            start_again();
            assert_ok(put(w, 1));
            assert_ok(put(w, 2));
            left = n;
            full = true;
            st = put(w, 3);
            left = 0;
            full = false;
            if (number_on_disk(w) == 2)
                assert_int_equal(listed(".kofn-"), 0);
            assert_true(st || number_on_disk(w) == 3);
            assert_true(!st || st == KOFN_IO);
        }
        assert_true(n > 12);
    }
}

/* ---- damage -------------------------------------------------------------- */

static void change(const char *name, long at)
{
    FILE *f = fopen(path_of(name), "r+b");
    int c;

    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    c = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    fputc(c ^ 4, f);
    assert_int_equal(fclose(f), 0);
}

/* Fails unless the set is refused with the file's name and what to do, or with
 * a set before that one is read. */
static void is_noticed(way w, const char *name)
{
    kf_store s = set_of(w);
    kofn_status st = kf_store_open(&s);
    const char *why = kofn_errmsg();

    if (!strstr(why, name) || !strstr(why, "is damaged or was changed: "))
        fail_msg("%s is damaged, and the message is: %s", name, why);
    if (w == IN_TURN) {
        assert_ok(st);
        assert_true(s.is_old);
        assert_int_equal(number_of(&s), 1);
    } else {
        assert_status(KOFN_FORMAT, st);
        assert_non_null(strstr(why, "; ask the owner"));
        assert_null(s.text);
    }
    kf_store_close(&s);
}

static void every_byte_counts(void **state)
{
    static const way ways[] = {SAME, IN_TURN};
    char bytes[1024], name[KF_STORE_NAME];

    (void)state;
    for (size_t k = 0; k < COUNT(ways); k++)
        for (int file = 0; file < 3; file++) {
            size_t n;

            start_again();
            assert_ok(put(ways[k], 1));
            assert_ok(put(ways[k], 2));
            name_of(name, ways[k], file, 2, "");
            if (file == 2)
                snprintf(name, sizeof name, "set.json");
            n = read_file(name, bytes, sizeof bytes);
            assert_true(n > 10);
            for (size_t at = 0; at < n; at++) {
                change(name, (long)at);
                is_noticed(ways[k], name);
                change(name, (long)at);
                write_file(name, bytes, at);
                is_noticed(ways[k], name);
                write_file(name, bytes, n);
            }
            write_file(name, bytes, n + 1); /* and a 0 */
            is_noticed(ways[k], name);
            write_file(name, bytes, n);
            assert_int_equal(number_on_disk(ways[k]), 2);
            unlink(path_of(name));
            if (file < 2)
                is_noticed(ways[k], name);
        }
}

/* A set that was replaced by the one before is never the last hope again. */
static void the_set_before(void **state)
{
    (void)state;
    start_again();
    assert_ok(put(IN_TURN, 1));
    assert_ok(put(IN_TURN, 2));
    change("a-0.bin", 3);
    settle(IN_TURN);
    assert_int_equal(number_on_disk(IN_TURN), 1);
    assert_ok(put(IN_TURN, 2));
    assert_int_equal(number_on_disk(IN_TURN), 2);
    unlink(path_of("set.json"));
    settle(IN_TURN);
    assert_int_equal(number_on_disk(IN_TURN), 1);
}

/* ---- names --------------------------------------------------------------- */

static void no_set(void **state)
{
    static const char old[] = "{\n  \"kofn\": \"0.1.0\",\n  \"unit\": 1\n}\n";
    static char far[KF_STORE_PATH];
    kf_store s = set_of(SAME);

    (void)state;
    start_again();
    assert_status(KOFN_AGAIN, kf_store_open(&s));
    write_file("set.json", old, strlen(old));
    assert_status(KOFN_FORMAT, kf_store_open(&s));
    assert_non_null(
        strstr(kofn_errmsg(), "those of this version of kofn; ask"));
    memset(far, 'x', sizeof far - 1);
    s.folder = far;
    assert_status(KOFN_INVAL, kf_store_open(&s));
    assert_status(KOFN_INVAL, kf_store_begin(&s));
}

static void other_names(void **state)
{
    kf_store s = set_of(OWN);

    (void)state;
    start_again();
    assert_ok(put(OWN, 1));
    assert_ok(kf_store_look(&s));
    assert_ok(kf_store_rename(&s, "kept.json"));
    kf_store_close(&s);
    assert_ok(put(OWN, 2));
    assert_ok(put(OWN, 3)); /* files of 2 go */
    assert_int_equal(listed("a-"), 2);
    assert_ok(kf_store_look(&s));
    assert_ok(kf_store_rename(&s, "kept.json")); /* files of 1 go */
    kf_store_close(&s);
    assert_int_equal(listed("a-") + listed("b-"), 2);
    s.name = "kept.json";
    assert_ok(kf_store_open(&s));
    assert_int_equal(number_of(&s), 3);
    assert_ok(kf_store_remove(&s));
    kf_store_close(&s);
    assert_int_equal(listed(""), 2); /* . and .. */
}

/* On a memory file system if there is one: no test cuts the power. */
static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/kofn-store-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    return mkdtemp(folder) ? 0 : -1;
}

TEST_FILE(store_test)
{
    const struct CMUnitTest tests[] = {
        TEST(a_kill, "store: a kill at any change leaves one whole set"),
        TEST(a_full_disk, "store: a full disk leaves one whole set"),
        TEST(every_byte_counts,
             "store: every changed or missing byte is found"),
        TEST(the_set_before, "store: a damaged set is replaced by that before"),
        TEST(no_set, "store: a missing set and one of another version differ"),
        TEST(other_names, "store: a renamed set takes the place of another"),
    };

    return cmocka_run_group_tests(tests, make_folder, tear_down);
}
