"""Workers next to those of Dask, and products of Dask arrays.

Each Dask worker starts a worker of kofn as a child process, and so does each Dask
worker that comes later. Dask starts, restarts and scales its workers as usual. The
package kofn must be installed there.
"""
import os
import urllib.parse
import uuid

import numpy as np

from . import _child, _fleet, _lib, _matrix
from ._lib import Invalid
from ._rows import Rows

try:
    from distributed import WorkerPlugin
except ImportError:  # the page of reference is made without Dask
    WorkerPlugin = object

__all__ = ["Coded", "fleet", "matmul", "persist"]


class _Plugin(WorkerPlugin):
    """Keeps one worker of kofn as a child of a Dask worker. The event loop never waits
    for it."""

    def __init__(self, endpoint, options, grace):
        self.endpoint, self.options, self.grace = endpoint, options, grace

    def setup(self, worker):
        state = getattr(worker, "state", worker)
        memory = worker.memory_manager.memory_limit
        self.child = _child.Child(
            self.endpoint, [f"--name={str(worker.name)[:64]}", *self.options,
                            *(["--memory", str(int(memory))] if memory else [])],
            state.nthreads, self.grace)
        self.child.begin()

    def teardown(self, worker):
        self.child.end()


class _Fleet(_fleet.Fleet):
    """A fleet of children of Dask workers. The Dask workers keep the plugin until the
    fleet is closed."""

    def close(self):
        """Dismisses the workers; Dask's own workers stay."""
        client, name = self._held.pop("plugin", (None, None))
        try:
            if client is not None and self._held["process"] == os.getpid():
                _leave(client, name)
        finally:
            super().close()


def _join(client, plugin, name):
    if hasattr(client, "register_plugin"):  # Dask of 2023.9.2 and later
        client.register_plugin(plugin, name=name)
    else:
        client.register_worker_plugin(plugin, name=name)


def _leave(client, name):
    """Unregisters the plugin if the scheduler is still there."""
    if client.status == "running":
        client.unregister_worker_plugin(name)


def _host(client):
    """Returns the address of this machine by which it reaches the scheduler."""
    from distributed.utils import get_ip, get_ipv6

    host = urllib.parse.urlsplit(client.scheduler.address).hostname
    if client.scheduler.address.startswith("inproc:"):
        return "127.0.0.1"
    return f"[{get_ipv6(host)}]" if ":" in host else get_ip(host)


def fleet(client, workers=None, *, address=None, keys=None, worker_keys=None,
          insecure=False, module=None, grace=0, patience=60):
    """Returns a kofn.Fleet with one worker on each Dask worker, now and later.

    client     a dask.distributed.Client that is not asynchronous.
    workers    number of workers for which the first round of a job waits; None: of the
               Dask workers that are there now.
    address    where this process listens. None: any free port of the address by which it
               reaches the scheduler, "tcp://127.0.0.1:*" for a LocalCluster. All Dask
               workers must reach it.
    keys, worker_keys
               folders with keys, of this process and of the Dask workers (`kofn keygen`).
               Each machine must have its folder. Keys never pass through Dask, because
               its scheduler would see them. worker_keys=None: the same path as keys.
    insecure   without encryption where others can listen, as for kofn.Matrix.
    module     path of a Python file on the Dask workers' machines, with part(part, parts,
               x), multiply(a, b) or keep(block): see kofn.serve.
    grace      seconds in which a worker finishes its tasks when its Dask worker closes.
    patience   seconds for which a worker looks for this process after losing it.

    A worker is a child process of its Dask worker. It has the same number of threads and
    the same limit of memory, and the Dask worker does not count that memory. It ends with
    the Dask worker, even if that is killed, and a restarted Dask worker brings another
    one. A worker that is killed itself is started again.

    Close the fleet before the client. Closing it ends the workers, and no later Dask
    worker starts one. Dask's own work and that of the fleet share the processors.
    """
    if client.asynchronous:
        raise Invalid("the client is asynchronous; make a Client(..., "
                      "asynchronous=False) for the fleet")
    if workers is None:
        workers = max(1, len(client.nthreads()))
    host = _host(client)
    it = _Fleet(address or f"tcp://{host}:*", workers, keys=keys, insecure=insecure)
    options = _child.options(worker_keys or keys, insecure, module, grace, patience)
    name = f"kofn-{uuid.uuid4().hex}"
    it._held["plugin"] = client, name
    try:
        _join(client, _Plugin(_child.reached(it.endpoint, host), options, grace), name)
    except BaseException:
        it.close()
        raise
    return it


def _known(x, name, dimensions):
    """Fails unless the shape of x is known and right."""
    if x.ndim not in dimensions or not all(n > 0 for n in x.shape):
        raise Invalid(f"{name} has the shape {x.shape}; it must be known "
                      "(compute_chunk_sizes()) and not empty, with "
                      f"{' or '.join(map(str, dimensions))} dimensions")


def _panels(heights, most):
    """Yields lo, hi of panels of whole chunks, or of parts of a chunk that is higher
    than `most` rows."""
    lo = hi = 0
    for height in heights:
        if hi > lo and hi + height - lo > most:
            yield lo, hi
            lo = hi
        hi += height
        while hi - lo > most:
            yield lo, lo + most
            lo += most
    if hi > lo:
        yield lo, hi


def matmul(A, B, fleet, *, panel=256 << 20, **options):
    """Returns A @ B of Dask arrays, computed by the fleet, as a Dask array.

    A, B      Dask or NumPy arrays with known shapes: A is m x n, and B is a matrix of n
              rows or a vector. Their numbers may be complex.
    fleet     a kofn.Fleet, for example of kofn.dask.fleet.
    panel     bytes of A that are in memory here at a time.
    options   of kofn.matmul, such as scheme and errors.

    The product is computed now. A's chunks are not used in place: a code mixes them, so
    they come to this process. Its memory holds B, the product, and one panel of A, twice
    during coding. A panel is a number of whole chunks of rows. Each panel is sent coded,
    so n/k times its size leaves this process, for a code of n workers with any k enough.

    The chunks of the result are rows as of A and columns as of B. They stay in this
    process, so no loss of a Dask worker loses them. Persist an A that is expensive, or
    the panels compute its common parts again.
    """
    import dask.array as da

    A, B = (x if isinstance(x, da.Array) else da.from_array(np.asarray(x))
            for x in (A, B))
    _known(A, "A", (2,))
    _known(B, "B", (1, 2))
    if A.shape[1] != B.shape[0]:
        raise Invalid(f"A has {A.shape[1]} columns and B has {B.shape[0]} rows; these "
                      "must be equal")
    b, out = B.compute(), None
    rows = max(1, _lib.count("panel", panel, 63, 1) //
               max(1, A.shape[1] * A.dtype.itemsize))
    for lo, hi in _panels(A.chunks[0], rows):
        part = _matrix.matmul(A[lo:hi].compute(), b, fleet, **options)
        if out is None:
            out = np.empty((len(A), *part.shape[1:]), part.dtype)
        out[lo:hi] = part
    return da.from_array(out, (A.chunks[0], *B.chunks[1:]))


class Coded(_matrix.Matrix):
    """A kofn.Matrix of a Dask array, made by kofn.dask.persist.

    Products with arrays are arrays, and those with Dask arrays are
    Dask arrays. The other factor comes to this process, and so does the product."""

    def __init__(self, A, fleet, coded, panel, options):
        self.chunks = A.chunks
        rows = Rows(lambda lo, hi: A[lo:hi].compute(), A.shape, A.dtype, panel=panel)
        super().__init__(rows, fleet, scheme=coded, **options)
        rows.read = None  # Dask may free the chunks

    def __matmul__(self, x):
        """Returns A @ x."""
        return _product(super().__matmul__, x, lambda x: (self.chunks[0], *x.chunks[1:]))

    def __rmatmul__(self, x):
        """Returns x @ A."""
        return _product(super().__rmatmul__, x,
                        lambda x: (*x.chunks[:-1], self.chunks[1]))

    def compute(self):
        """Returns A as an array, read from the coded blocks."""
        return self.fetch()

    def to_dask(self):
        """Returns A as a Dask array of the same chunks, in the memory of this process."""
        import dask.array as da

        return da.from_array(self.fetch(), self.chunks)


def _product(multiply, x, chunks):
    """Returns multiply(x), as a Dask array of these chunks if x is one."""
    import dask.array as da

    if not isinstance(x, da.Array):
        return multiply(x)
    _known(x, "the other factor", (1, 2))
    return da.from_array(multiply(x.compute()), chunks(x))


def persist(A, fleet, *, coded="elastic", panel=64 << 20, **options):
    """Gives a Dask array to the workers of a fleet, coded, and returns a Coded.

    A         a Dask array m x n with known chunks, of float64, float32, complex128 or
              complex64.
    fleet     a kofn.Fleet, for example of kofn.dask.fleet.
    coded     the scheme. Under "elastic:k=6" any 6 workers have all numbers of A.
    panel     bytes of A that are read at a time. Here is memory for a few panels.
    options   of kofn.Matrix.

    A is persisted by Dask, and its chunks come here panel by panel, twice: to be measured,
    and to be coded. The second time the rows of a panel are from several places of A. When
    this returns, no chunk of A is needed any more. Drop other references, and Dask frees
    them. From then on no loss of workers that the code allows computes anything again. A
    worker that joins gets its block from those of others.
    """
    _known(A, "A", (2,))
    return Coded(A.persist(), fleet, coded, panel, options)
