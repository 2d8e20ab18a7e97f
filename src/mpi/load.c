/* load.c -- finds out which MPI started this process or runs in it, and loads
 * the plugin for it. Reports the failures that a job under this MPI survives.
 *
 * The survival of failures was measured with Open MPI 4.1 and MPICH 4.0:
 * docs/mpi.md.
 *
 * Owns the loaded library, which stays until the process ends. It may not call
 * MPI itself. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/plugin.h"
#include "plugin.h"
#include "running.h"

typedef struct flavour {
    const char *name, *people;   /* "openmpi" and "Open MPI" */
    const char *run, *dev, *lib; /* names of Debian packages */
    const char *const *signs; /* environment variables that its launcher sets */
} flavour;

static const char *const openmpi_signs[] = {"OMPI_COMM_WORLD_SIZE",
                                            "PMIX_NAMESPACE", NULL};
static const char *const mpich_signs[] = {"PMI_RANK", "PMI_FD", NULL};

static const flavour flavours[] = {
    {"openmpi", "Open MPI", "openmpi-bin", "libopenmpi-dev", "libopenmpi3",
     openmpi_signs},
    {"mpich", "MPICH", "mpich", "libmpich-dev", "libmpich12", mpich_signs},
};
#define FLAVOURS (sizeof flavours / sizeof *flavours)

/* ---- which --------------------------------------------------------------- */

static kofn_status named(const flavour **f, const char *name)
{
    for (size_t i = 0; i < FLAVOURS; i++) {
        *f = &flavours[i];
        if (!strcmp(name, (*f)->name))
            return KOFN_OK;
    }
    return kf_fail(KOFN_INVAL,
                   "no MPI is called \"%s\"; there are openmpi and mpich",
                   name);
}

/* Chooses by the environment that a launcher makes. */
static kofn_status choose(const flavour **f, const char *name)
{
    if (name)
        return named(f, name);
    for (size_t i = 0; i < FLAVOURS; i++) {
        *f = &flavours[i];
        for (const char *const *s = (*f)->signs; *s; s++)
            if (getenv(*s))
                return KOFN_OK;
    }
    if (getenv("SLURM_PROCID"))
        return kf_fail(KOFN_STATE,
                       "srun did not start this process as a rank "
                       "of MPI; use srun --mpi=pmi2 for MPICH or --mpi=pmix "
                       "for Open MPI (srun --mpi=list says what there is)");
    return kf_fail(KOFN_STATE,
                   "this process is not a rank of an MPI job; "
                   "start it by mpirun, as in mpirun -n 5 kofn ...");
}

/* ---- load ---------------------------------------------------------------- */

static kofn_status load(const flavour *f, const kf_mpi_plugin **plugin)
{
    const kf_mpi_plugin *found;
    char file[64], path[4096];
    bool there;
    void *so;

    snprintf(file, sizeof file, "libkofn-mpi-%s.so", f->name);
    there = kf_plugin_path(path, sizeof path, file);
    /* Open MPI loads parts of itself, which search all libraries for its
     * symbols. */
    so = dlopen(there ? path : file, RTLD_NOW | RTLD_GLOBAL);
    if (!so && there)
        return kf_fail(KOFN_TRANSPORT, "%s; Debian has %s in the package %s",
                       dlerror(), f->people, f->lib);
    if (!so)
        return kf_fail(KOFN_TRANSPORT,
                       "this kofn was built without %s, which this job uses: "
                       "there is no %s; install the package %s and build kofn "
                       "again",
                       f->people, file, f->dev);
    found = dlsym(so, "kofn_mpi_plugin");
    if (!found || found->version != KF_MPI_VERSION)
        return kf_fail(KOFN_TRANSPORT, "%s belongs to another version of kofn",
                       file);
    *plugin = found;
    return KOFN_OK;
}

/* ---- survival ------------------------------------------------------------ */

static void survival(const flavour *f, kofn_mpi_info *info)
{
    const char *recovery = getenv("OMPI_MCA_orte_enable_recovery");
    const char *text;

    info->survives = false;
    if (f == &flavours[0] && recovery && strcmp(recovery, "0")) {
        info->survives = true;
        text = "under --enable-recovery ranks may be lost, between machines "
               "with --mca pml ucx only, but not rank 0; if a machine is "
               "lost with all its ranks, mpirun never ends";
    } else if (f == &flavours[0]) {
        text = "if any rank is lost the whole job dies; mpirun "
               "--enable-recovery makes it survive the loss of ranks other "
               "than 0";
    } else if (getenv("SLURM_PROCID") && !getenv("HYDI_CONTROL_FD")) {
        info->survives = true;
        text = "started by srun: ranks other than 0 may be lost if srun was "
               "given -K0, else the whole job dies; with UCX set "
               "UCX_TLS=tcp,self, or the loss of a rank may crash others";
    } else {
        text = "if any rank is lost mpirun ends the whole job; srun "
               "--mpi=pmi2 -K0 or Open MPI under --enable-recovery survive "
               "the loss of ranks other than 0";
    }
    snprintf(info->survival, sizeof info->survival, "%s", text);
}

/* ---- the public functions ------------------------------------------------ */

static const kf_mpi_plugin *loaded;
static bool opened;

static const kf_mpi_host host = {kf_fail, kf_zero, kf_new, kf_free};

static kofn_status given(kofn_mpi_options *all, const kofn_mpi_options *opt)
{
    TRY(kf_given(all, sizeof *all, opt, "KOFN_MPI_OPTIONS_INIT"));
    if (all->silence < 0 || all->patience < 0)
        return kf_fail(
            KOFN_INVAL, "a silence of %.3g s cannot be waited for",
            1e-9 * (double)(all->silence < 0 ? all->silence : all->patience));
    return KOFN_OK;
}

kofn_status kofn_mpi_open(kofn_transport **out, const kofn_mpi_options *opt,
                          kofn_mpi_info *info)
{
    kofn_mpi_options all = KOFN_MPI_OPTIONS_INIT;
    kofn_mpi_info found = KOFN_MPI_INFO_INIT;
    const flavour *f;

    *out = NULL;
    TRY(kf_begun(info, "KOFN_MPI_INFO_INIT"));
    TRY(given(&all, opt));
    if (opened)
        return kf_fail(KOFN_STATE, "MPI can be started only once in a process");
    TRY(choose(&f, all.library));
    TRY(load(f, &loaded));
    opened = true;
    TRY(loaded->open(&host, out, &all, &found));
    survival(f, &found);
    kf_give(info, &found, sizeof found);
    return KOFN_OK;
}

kofn_status kofn_mpi_attach(kofn_transport **out, int comm,
                            const kofn_mpi_options *opt)
{
    kofn_mpi_options all = KOFN_MPI_OPTIONS_INIT;
    const kf_mpi_plugin *plugin;
    const char *name;
    const flavour *f;

    *out = NULL;
    TRY(given(&all, opt));
    name = all.library;
    if (!name)
        TRY(kf_mpi_running(&name));
    TRY(named(&f, name));
    TRY(load(f, &plugin));
    return plugin->attach(&host, out, comm, &all);
}

int kofn_mpi_end(int code)
{
    return loaded ? loaded->end(code) : code;
}
