"""Workers that are ranks of a program with MPI.

The program starts and ends MPI itself, for example by mpi4py, and every rank of a
communicator calls one of the functions here. The library's plugin for its MPI must be
there; wheels have none.
"""
import operator

import numpy as np

from . import _fleet, _lib
from ._lib import Invalid, lib, new
from ._rows import Rows

__all__ = ["Spread", "attach", "fleet", "serve"]


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


class Spread:
    """A matrix whose rows are spread over the ranks of a communicator of mpi4py.

    comm      a communicator of mpi4py; every rank of it makes the Spread.
    own       the rows of this rank, an array with the same number of columns and of the
              same type on all ranks; perhaps without rows. The rows of rank 0 are the
              first of A. It is copied only if its rows are not contiguous. Keep it
              unchanged.
    panel     bytes of A that the coordinator reads at a time.

    `rows` is a kofn.Rows, for kofn.Matrix on the rank of the coordinator. That rank gets
    the rows of others by MPI_Get from where they lie, and never has A as a whole. `shape`
    and `dtype` are those of A.

    Every rank calls free(), or leaves the `with`, after the fleet is closed, and before
    MPI ends.
    """

    def __init__(self, comm, own, *, panel=64 << 20):
        from mpi4py import MPI

        own = np.ascontiguousarray(own)
        if own.ndim != 2:
            raise Invalid(f"the rows of this rank have {own.ndim} dimensions, not 2")
        parts = comm.allgather((own.shape, own.dtype.str))
        if len({(shape[1], kind) for shape, kind in parts}) > 1:
            raise Invalid("the rows of the ranks differ in length or type: " + ", ".join(
                f"rank {i} has {m} x {n} {np.dtype(kind)}"
                for i, ((m, n), kind) in enumerate(parts)))
        self._ends = np.cumsum([shape[0] for shape, _ in parts])
        self.shape, self.dtype = (int(self._ends[-1]), own.shape[1]), own.dtype
        self.rows = Rows(self._read, self.shape, self.dtype, panel=panel)
        self._own, self._locked, self._byte = own, MPI.LOCK_SHARED, MPI.BYTE
        self._window = MPI.Win.Create(own, own.itemsize * max(1, own.shape[1]), comm=comm)

    def _read(self, lo, hi):
        """Returns rows lo, ..., hi - 1 of A."""
        out = np.empty((hi - lo, self.shape[1]), self.dtype)
        at = lo
        while at < hi:
            rank = int(np.searchsorted(self._ends, at, "right"))
            first = int(self._ends[rank - 1]) if rank else 0
            end = min(hi, int(self._ends[rank]))
            self._window.Lock(rank, self._locked)
            part = out[at - lo:end - lo].view(np.uint8)
            self._window.Get([part, part.size, self._byte], rank,
                             (at - first, part.size, self._byte))
            self._window.Unlock(rank)
            at = end
        return out

    def free(self):
        """Frees the window of MPI. Every rank calls this."""
        if self._window is not None:
            self._window.Free()
            self._window = None

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:  # another rank may wait for what this one will not do
            self.free()
