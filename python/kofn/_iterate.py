"""Iterations on top of products: power iteration and PageRank."""
import dataclasses

import numpy as np

from . import _lib
from ._fleet import serve
from ._job import Job, Report, problem
from ._lib import Invalid, check, ffi, lib


@dataclasses.dataclass(frozen=True)
class Iterated:
    """Where an iteration ended."""

    vector: np.ndarray
    iterations: int
    converged: bool
    change: float      # by the last iteration
    eigenvalue: float  # of power iteration
    report: Report     # of all rounds


@ffi.def_extern(error=1, onerror=_lib.stop_and_raise)
def kofn_py_iterate(ud, iteration, change, report):
    """Called every tenth of a second, so that Python sees signals."""
    return 0


def _run(iterate, options, vector, job):
    """iterate(options, matrix, result) once."""
    o = ffi.new("kofn_iterate_options *")
    o.size = ffi.sizeof("kofn_iterate_options")
    for name, value in options.items():
        if value is not None:
            setattr(o, name, value)
    o.watch = lib.kofn_py_iterate
    res = ffi.new("kofn_iterate_result *")
    _lib.call(iterate, o, _lib.view(vector), res)
    return Iterated(vector, res.iterations, res.converged, res.change,
                    res.eigenvalue, job.totals)


def power(A, *, start=None, tolerance=None, iterations=None, scheme="elastic",
          workers=8, where="threads", **options):
    """The dominant eigenvector and eigenvalue of a square matrix.

    >>> import numpy as np, kofn
    >>> r = kofn.power(np.diag([4.0, 2, 1]), scheme="elastic:k=2", workers=3)
    >>> round(r.eigenvalue, 6), r.converged
    (4.0, True)
    """
    A = _lib.array(A, np.float64, "A")
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise Invalid(f"A has the shape {A.shape}; power iteration needs a "
                      "square matrix")
    n = A.shape[0]
    v = np.random.default_rng(1).standard_normal(n) if start is None else \
        np.array(start, np.float64)
    job = Job(problem(lib.KOFN_MATVEC, n, n, 1), scheme, workers, where,
              serve=serve, **options)
    try:
        view = _lib.view(A)
        check(lib.kofn_place(job.job, view))
        return _run(lambda o, m, r: lib.kofn_power(job.job, m, o, r),
                    {"tolerance": tolerance, "max_iterations": iterations},
                    v, job)
    finally:
        job.close()


def pagerank(G, *, damping=None, tolerance=None, iterations=None,
             scheme="elastic", workers=8, where="threads", **options):
    """PageRank of a graph: a SciPy sparse matrix with an entry (i, j) for
    each arc from i to j.

    >>> import scipy.sparse as sp, kofn
    >>> G = sp.csr_matrix(([1.0, 1, 1], ([0, 1, 2], [1, 2, 0])), (3, 3))
    >>> kofn.pagerank(G, scheme="elastic:k=2", workers=3).vector.round(6)
    array([0.333333, 0.333333, 0.333333])
    """
    if not _lib.is_sparse(G):
        raise Invalid("G must be one of SciPy's sparse matrices; "
                      "scipy.sparse.csr_matrix(G) makes one")
    graph, keep = _lib.sparse(G)
    out, dangling = ffi.new("kofn_sparse **"), ffi.new("uint8_t **")
    check(lib.kofn_pagerank_matrix(out, dangling, graph))
    M = ffi.gc(out[0], lib.kofn_sparse_free)
    loose = ffi.gc(dangling[0], lib.kofn_free)
    n = M.rows
    v = np.empty(n)
    job = Job(problem(lib.KOFN_MATVEC, n, n, 1, is_sparse=True), scheme,
              workers, where, serve=serve, **options)
    try:
        check(lib.kofn_place_sparse(job.job, M))
        return _run(
            lambda o, m, r: lib.kofn_pagerank(job.job, loose, m, o, r),
            {"tolerance": tolerance, "max_iterations": iterations,
             "damping": damping}, v, job)
    finally:
        job.close()
        del keep
