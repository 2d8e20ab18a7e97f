/* train_keep_rig.h -- trainings on the simulated mesh with checkpoints on
 * disk: handles the files, and stops and restarts nodes. */
#ifndef KF_TEST_TRAIN_KEEP_RIG_H
#define KF_TEST_TRAIN_KEEP_RIG_H

#include "keep_rig.h"
#include "train_mesh_rig.h"

#include <sys/stat.h>

/* Calls `take` for each file with this beginning and end of its name. Returns
 * the number of files. `take` may be NULL. */
static inline size_t each_of(const char *begin, const char *end,
                             void (*take)(const char *path))
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    size_t n = 0;

    assert_non_null(d);
    while ((e = readdir(d))) {
        size_t length = strlen(e->d_name), wants = strlen(end);
        char path[400];

        if (length < wants || e->d_name[0] == '.' ||
            strncmp(e->d_name, begin, strlen(begin)) != 0 ||
            strcmp(e->d_name + length - wants, end) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (take)
            take(path);
        n++;
    }
    closedir(d);
    return n;
}

static inline size_t each_file(const char *end, void (*take)(const char *path))
{
    return each_of("", end, take);
}

static inline void erase(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

/* Flips one bit in the middle of the file. */
static inline void damage(const char *path)
{
    FILE *f = fopen(path, "r+b");
    struct stat s;
    int c;

    assert_non_null(f);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(fseek(f, s.st_size / 2, SEEK_SET), 0);
    c = fgetc(f);
    assert_int_equal(fseek(f, s.st_size / 2, SEEK_SET), 0);
    fputc(c ^ 4, f);
    assert_int_equal(fclose(f), 0);
}

static inline void cut_short(const char *path)
{
    struct stat s;

    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(truncate(path, s.st_size - 16), 0);
}

static inline void checkpoints_up(sim *s, fixture *f, const training_case *l,
                                  uint64_t seed)
{
    mesh_up(s, f, l, 8, seed);
    s->opt.keep = folder;
    s->opt.every = 2 + seed % 4;
    if (seed % 4 == 3 && l->nodes > f->needs + 1)
        s->opt.errors = KOFN_ERRORS_PROBABILISTIC;
    empty(folder);
}

static inline void start_all(sim *s)
{
    for (size_t n = 0; n < s->nodes; n++)
        if (!s->node[n].up)
            sim_start(s, n, true);
}

static inline void stop_all(sim *s)
{
    for (size_t n = 0; n < s->nodes; n++)
        if (s->node[n].up)
            sim_stop(s, n);
}

/* Returns the number of nodes that start from a checkpoint, and their earliest
 * turn. */
static inline size_t count_resumed(const sim *s, uint64_t *least)
{
    size_t n = 0;

    *least = UINT64_MAX;
    for (size_t i = 0; i < s->nodes; i++) {
        n += s->node[i].host->it.at.step > 0;
        *least = kf_min(*least, s->node[i].host->blocks.changing.turn);
    }
    return n;
}

static inline size_t count_rebuiled(const sim *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->nodes; i++)
        n += s->node[i].host->blocks.changing.rebuilt;
    return n;
}

#endif
