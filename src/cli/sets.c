/* sets.c -- writes and reads the JSON of sets of files. Owns nothing. */
#include "sets.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static int refuse(const char *folder, const char *name)
{
    if (!strncmp(name, "seat-", 5))
        return cli_say(EXIT_USAGE,
                       "--checkpoint %s: it holds %s, which nodes without a "
                       "master keep; add --masterless to continue their run, "
                       "or give another folder",
                       folder, name);
    return cli_say(EXIT_USAGE,
                   "--checkpoint %s: it holds %s, and nothing that this "
                   "command can continue; give another folder, or remove that "
                   "file",
                   folder, name);
}

int cli_set_refuse(const char *folder, const char *const *begin)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    int code = 0;

    while (d && !code && (e = readdir(d)))
        for (size_t i = 0; begin[i] && !code; i++)
            if (!strncmp(e->d_name, begin[i], strlen(begin[i])))
                code = refuse(folder, e->d_name);
    if (d)
        closedir(d);
    return code;
}

kofn_status cli_set_commit(kf_store *s, json_t *o, size_t lost, kofn_status st)
{
    char *text =
        o ? json_dumps(o, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;

    if (!st && (!text || cli_json_lost() != lost))
        st = kofn_say(KOFN_NOMEM, "out of memory");
    st = kf_store_commit(s, text ? text : "", st);
    json_decref(o);
    free(text);
    return st;
}

int cli_set_json(const kf_store *s, json_t **out)
{
    json_error_t e;

    *out = json_loads(s->text, 0, &e);
    if (*out)
        return 0;
    return json_error_code(&e) == json_error_out_of_memory
               ? cli_say(EXIT_FAILED, "out of memory")
               : cli_say(EXIT_USAGE, "%s/%s is no JSON: %s", s->folder, s->name,
                         e.text);
}

int cli_set_fail(kofn_status st)
{
    return st == KOFN_FORMAT ? cli_say(EXIT_CORRUPT, "%s", kofn_errmsg())
                             : cli_fail_input(st);
}
