"""Workers that are ranks of a program with MPI.

The program starts and ends MPI itself, for example by mpi4py, and every rank of a
communicator calls one of the functions here. The library's plugin for its MPI must be
there; wheels have none.
"""
import operator

from . import _fleet, _lib
from ._lib import Invalid, lib, new

__all__ = ["attach", "fleet", "serve"]


def _handle(comm):
    """Returns the Fortran handle of a communicator."""
    if hasattr(comm, "py2f"):
        return comm.py2f()
    try:
        return operator.index(comm)
    except TypeError:
        raise Invalid(f"comm={comm!r} is neither a communicator of mpi4py nor a whole "
                      "number, its Fortran handle") from None


def attach(comm, *, root=0, silence=None, patience=None):
    """Returns the transport of this rank, a kofn_transport * of cffi.

    comm      a communicator of mpi4py, or its Fortran handle, a whole number. It is
              duplicated, and free for other use after this call.
    root      rank of the coordinator; the others are workers.
    silence   seconds after which the coordinator takes a silent worker for lost (60).
    patience  the same for a worker and the coordinator; None: without limit.

    Every rank of comm calls this or kofn.mpi.serve, with the same root. The transport
    must be closed, or be given to kofn_serve or kofn_port_away, which close it. Closing
    waits until all ranks of comm do so. MPI stays, and must end after that.
    """
    o = _lib.begun("kofn_mpi_options", root=_lib.count("root", root),
                   silence=_lib.seconds("silence", silence or 0),
                   patience=_lib.seconds("patience", patience or 0))
    return new(lib.kofn_mpi_attach, _handle(comm), o)


def serve(comm, f=None, *, root=0, silence=None, patience=None, faults_words=None,
          multiply=None, keep=None):
    """Runs a worker on this rank until the coordinator dismisses it.

    comm, root, silence, patience
              as in kofn.mpi.attach.
    f, multiply, keep, faults_words
              as in kofn.serve.
    """
    _fleet.work(lambda: attach(comm, root=root, silence=silence, patience=patience),
                f, None, faults_words, multiply, keep)


def fleet(comm, *, root=0, silence=None, patience=None, part=None, multiply=None,
          keep=None):
    """Makes the other ranks of comm workers of a fleet.

    Rank `root` gets a kofn.Fleet and returns. Every other rank works until that fleet
    is closed, and then gets None. Every rank of comm calls this.

    comm, silence, patience
              as in kofn.mpi.attach.
    part, multiply, keep
              as in kofn.Fleet.

    The fleet and its jobs are used on one thread.
    """
    rank, ranks = _place(comm)
    given = dict(root=root, silence=silence, patience=patience)
    if rank != root:
        serve(comm, part, multiply=multiply, keep=keep, **given)
        return None
    return _fleet.Fleet._of("mpi", attach(comm, **given), ranks - 1)


def _place(comm):
    """Returns the rank of this process in comm, and their number."""
    if not hasattr(comm, "Get_rank"):
        from mpi4py import MPI
        comm = MPI.Comm.f2py(_handle(comm))
    return comm.Get_rank(), comm.Get_size()
