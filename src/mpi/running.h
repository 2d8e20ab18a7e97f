/* running.h -- which MPI library runs in this process. */
#ifndef KF_MPI_RUNNING_H
#define KF_MPI_RUNNING_H

#include "base/base.h"

/* Finds the MPI that the program has started: "openmpi" or "mpich". */
kofn_status kf_mpi_running(const char **name);

#endif
