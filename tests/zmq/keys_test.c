/* keys_test.c -- secret keys that a group may read, and whose group that is.  To
 * give a file away takes root; whoever is not tries what is his own. */
#define _GNU_SOURCE /* setgroups */
#include "support.h"

#include "zmq/keys.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define USER 4321 /* who they are does not matter */
#define OTHER 4322
#define GROUP 5432
#define SECOND 5433
#define STRANGE 5434

typedef struct place {
    char dir[40], secret[80];
} place;

static void place_new(place *p)
{
    *p = (place){.dir = "/tmp/kofn-kept-XXXXXX"};
    assert_non_null(mkdtemp(p->dir));
    assert_ok(kofn_zmq_keygen(p->dir));
    snprintf(p->secret, sizeof p->secret, "%s/worker.secret", p->dir);
}

static void place_free(place *p)
{
    static const char *const names[] = {"worker.secret", "worker.public",
                                        "coordinator.secret",
                                        "coordinator.public"};
    char path[80];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", p->dir, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(p->dir), 0);
}

static kofn_status read_as_it_is(const place *p)
{
    kf_keys keys = {0};
    kofn_status st = kf_keys_secret(&keys, p->dir, "worker.secret");

    kf_keys_free(&keys);
    return st;
}

static void taken(const place *p, mode_t mode)
{
    assert_int_equal(chmod(p->secret, mode), 0);
    assert_ok(read_as_it_is(p));
}

static void refused(const place *p, mode_t mode, const char *why)
{
    char said[120];

    assert_int_equal(chmod(p->secret, mode), 0);
    assert_status(KOFN_INVAL, read_as_it_is(p));
    snprintf(said, sizeof said, "mode %03o", (unsigned)mode);
    assert_non_null(strstr(kofn_errmsg(), said));
    assert_non_null(strstr(kofn_errmsg(), why));
    snprintf(said, sizeof said, "chmod 600 %s", p->secret);
    assert_non_null(strstr(kofn_errmsg(), said));
}

static void a_group_of_ones_own(void **state)
{
    place p;

    (void)state;
    place_new(&p);
    assert_int_equal(chown(p.secret, (uid_t)-1, getegid()), 0);
    taken(&p, 0600);
    taken(&p, 0400);
    taken(&p, 0640);
    taken(&p, 0440);
    for (mode_t others = 1; others < 8; others++) {
        refused(&p, 0600 | others, "everybody");
        refused(&p, 0640 | others, "everybody");
    }
    refused(&p, 0660, "by its group");
    refused(&p, 0620, "by its group");
    refused(&p, 0650, "by its group");
    place_free(&p);
}

static bool is_able(void)
{
    const gid_t root = 0;

    return geteuid() == 0 && setgroups(1, &root) == 0;
}

/* Somebody who is not root, in two groups. */
static void become(void)
{
    const gid_t second = SECOND;

    assert_int_equal(setgroups(1, &second), 0);
    assert_int_equal(setegid(GROUP), 0);
    assert_int_equal(seteuid(USER), 0);
}

static void become_root(void)
{
    const gid_t root = 0;

    assert_int_equal(seteuid(0), 0);
    assert_int_equal(setegid(0), 0);
    assert_int_equal(setgroups(1, &root), 0);
}

/* Read by that somebody when `owner` and `group` have it. */
static kofn_status read_of(const place *p, uid_t owner, gid_t group,
                           mode_t mode)
{
    kofn_status st;

    assert_int_equal(chmod(p->dir, 0755), 0);
    assert_int_equal(chown(p->secret, owner, group), 0);
    assert_int_equal(chmod(p->secret, mode), 0);
    become();
    st = read_as_it_is(p);
    become_root();
    return st;
}

static void groups_of_others(void **state)
{
    place p;

    (void)state;
    if (!is_able())
        skip();
    place_new(&p);
    assert_ok(read_of(&p, 0, GROUP, 0440));
    assert_ok(read_of(&p, 0, SECOND, 0440));
    assert_ok(read_of(&p, USER, SECOND, 0640));
    assert_ok(read_of(&p, USER, STRANGE, 0600));
    assert_status(KOFN_INVAL, read_of(&p, USER, STRANGE, 0640));
    assert_non_null(strstr(kofn_errmsg(), "none of this process's"));
    assert_non_null(strstr(kofn_errmsg(), "mode 640"));
    place_free(&p);
}

static void owners(void **state)
{
    place p;

    (void)state;
    if (!is_able())
        skip();
    place_new(&p);
    assert_status(KOFN_INVAL, read_of(&p, OTHER, GROUP, 0440));
    assert_non_null(strstr(kofn_errmsg(), "neither root's nor this user's"));
    assert_status(KOFN_INVAL, read_of(&p, OTHER, SECOND, 0640));
    assert_ok(read_of(&p, USER, GROUP, 0640));
    place_free(&p);
}

TEST_FILE(keys_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_of_ones_own),
        cmocka_unit_test(groups_of_others),
        cmocka_unit_test(owners),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
