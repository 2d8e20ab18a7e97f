/* running.c -- finds the MPI library that runs in this process, without its
 * header.
 *
 * A launcher's environment says what started the process, which need not be
 * what the program uses. So all loaded libraries are asked. Python loads
 * modules whose libraries others do not see; each is then opened by its name.
 *
 * Owns nothing: a library that is asked stays as loaded as it was. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#include "running.h"

#define TEXT_MAX 16384 /* exceeds MPI_MAX_LIBRARY_VERSION_STRING of any MPI */
#define LIBRARIES 16

typedef int asks(int *flag);
typedef int tells(char *text, int *length);

typedef struct found {
    char path[LIBRARIES][512];
    size_t count;
    bool runs, is_there;    /* an MPI runs; there is one at all */
    char version[TEXT_MAX]; /* of the one that runs */
} found;

/* Asks the MPI that this handle of dlopen shows, if it shows one. */
static void ask(found *f, void *handle)
{
    asks *initialized = NULL;
    tells *version = NULL;
    int flag = 0, n = 0;

    /* ISO C has no conversion of an object pointer to a function. */
    *(void **)(&initialized) = dlsym(handle, "MPI_Initialized");
    *(void **)(&version) = dlsym(handle, "MPI_Get_library_version");
    if (f->runs || !initialized || !version)
        return;
    f->is_there = true;
    if (initialized(&flag) == 0 && flag)
        f->runs = version(f->version, &n) == 0;
}

static int note(struct dl_phdr_info *i, size_t size, void *ud)
{
    found *f = ud;
    const char *slash = strrchr(i->dlpi_name, '/');
    const char *file = slash ? slash + 1 : i->dlpi_name;

    (void)size;
    if (strncmp(file, "libmpi", 6) == 0 && f->count < LIBRARIES &&
        strlen(i->dlpi_name) < sizeof f->path[0])
        strcpy(f->path[f->count++], i->dlpi_name);
    return 0;
}

static void ask_all(found *f)
{
    ask(f, RTLD_DEFAULT);
    dl_iterate_phdr(note, f);
    for (size_t i = 0; i < f->count && !f->runs; i++) {
        void *so = dlopen(f->path[i], RTLD_LAZY | RTLD_NOLOAD);

        if (so) {
            ask(f, so);
            dlclose(so);
        }
    }
}

kofn_status kf_mpi_running(const char **name)
{
    found *f = kf_zero(1, sizeof *f);
    kofn_status st = KOFN_OK;

    if (!f)
        return KOFN_NOMEM;
    ask_all(f);
    if (!f->runs)
        st = kf_fail(KOFN_STATE,
                     f->is_there ? "MPI has not been started; call MPI_Init "
                                   "before kofn_mpi_attach"
                                 : "there is no MPI in this process; a "
                                   "program without MPI calls kofn_mpi_open");
    else if (strstr(f->version, "Open MPI"))
        *name = "openmpi";
    else if (strstr(f->version, "MPICH") || strstr(f->version, "Intel"))
        *name = "mpich"; /* and what has its binary interface */
    else
        st = kf_fail(KOFN_TRANSPORT,
                     "kofn has no plugin for this MPI: %.80s; there are those "
                     "for Open MPI and MPICH",
                     f->version);
    kf_free(f);
    return st;
}
