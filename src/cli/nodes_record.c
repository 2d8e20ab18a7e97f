/* nodes_record.c -- the options of a run with --masterless, next to what its
 * nodes keep. The library refuses files of another run; these options say what
 * differs.
 *
 *     DIR/options.json       a set without other files (store/store.h)
 *
 * A folder without them is as good: only the names of the options are then
 * unknown. Ranks of MPI that share a folder write the same options. */
#include "fingerprint.h"
#include "nodes.h"
#include "sets.h"

#include <stdlib.h>
#include <string.h>

static kf_store set_of(const cli_nodes *m)
{
    return (kf_store){.folder = m->a->checkpoint,
                      .name = "options.json",
                      .remedy = "remove it"};
}

/* A training keeps blocks of a code. */
static void put_training(const cli_nodes *m, json_t *o)
{
    static const char *const errors[] = {"", "detect", "adversarial",
                                         "probabilistic", "keyed"};
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;

    if (!kofn_plan_describe(m->plan, false, &info))
        fingerprint_text(o, "--scheme", info.spec);
    fingerprint_size(o, "--workers", m->count);
    fingerprint_size(o, "--every", m->every);
    fingerprint_text(o, "--errors", errors[m->a->job.errors]);
    fingerprint_text(o, "--decode", nodes_decoding(m));
}

/* An iterate is the same in every code. */
static void put_iteration(const cli_args *a, json_t *o)
{
    fingerprint_real(o, "--tol", a->tol);
    fingerprint_size(o, "--max-iter", a->max_iter);
    if (a->command->bit != IN_PAGERANK)
        return;
    fingerprint_text(o, "--personalize", a->personalize);
    fingerprint_text(o, "--sinks", a->sinks);
    fingerprint_text(o, "--start", a->start);
    fingerprint_real(o, "--weights", a->weights);
    fingerprint_real(o, "--undirected", a->undirected);
    fingerprint_real(o, "--directed", a->directed);
    fingerprint_real(o, "--keep-isolated", a->isolated);
}

/* Returns the options that must be those of the first run, or NULL. */
static json_t *options_of(const cli_nodes *m)
{
    json_t *o = json_object();

    if (!o)
        return NULL;
    fingerprint_options(o, m->a);
    if (m->a->command->bit == IN_TRAIN)
        put_training(m, o);
    else
        put_iteration(m->a, o);
    return o;
}

void nodes_record_options(const cli_nodes *m)
{
    size_t lost = cli_json_lost();
    kf_store s = set_of(m);
    json_t *o = json_object();

    PUT("kofn", json_string(KOFN_VERSION));
    PUT("options", options_of(m));
    (void)cli_set_commit(&s, o, lost, kf_store_begin(&s));
    kf_store_close(&s);
}

/* Returns the options of the first run, or NULL if they are not known. */
static json_t *recorded(const cli_nodes *m)
{
    kf_store s = set_of(m);
    json_t *all = kf_store_look(&s) ? NULL : json_loads(s.text, 0, NULL);
    json_t *o = json_incref(json_object_get(all, "options"));

    json_decref(all);
    kf_store_close(&s);
    return o;
}

void nodes_differences(const cli_nodes *m, char *to, size_t room)
{
    json_t *then = m->a->resume && m->a->checkpoint ? recorded(m) : NULL;
    json_t *now = then ? options_of(m) : NULL, *is;
    const char *key, *was;
    size_t n = 0;

    *to = 0;
    json_object_foreach(now, key, is)
    {
        was = json_string_value(json_object_get(then, key));
        if (was && strcmp(was, json_string_value(is)) != 0 && n < room)
            n += (size_t)snprintf(
                to + n, room - n, "%s %s was \"%.40s\" and is \"%.40s\"",
                n ? "," : ";", key, was, json_string_value(is));
    }
    json_decref(now);
    json_decref(then);
}
