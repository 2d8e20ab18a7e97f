"""Iterations on top of products: power iteration and PageRank."""
import dataclasses

import numpy as np

from . import _lib, _mesh
from ._fleet import life
from ._job import ALL, Job, Report, problem, tolerating
from ._lib import Invalid, begun, check, ffi, lib, new
from ._matrix import Matrix


@dataclasses.dataclass(frozen=True)
class Iterated:
    """The result of an iteration."""

    vector: np.ndarray
    iterations: int
    converged: bool
    change: float      # in the last iteration
    eigenvalue: float  # power iteration only
    report: Report     # all rounds, of a Matrix also earlier ones; None if masterless
    mesh: _mesh.Mesh = None  # masterless: what the node saw of the others


@ffi.def_extern(error=1, onerror=_lib.stop_and_raise)
def kofn_py_iterate(ud, iteration, change, report):
    """Called every tenth of a second, so that Python handles signals."""
    _lib.may_go_on()
    return 0


def _weights(name, value, n):
    """Returns weights of n nodes: a vector, or a dict of some nodes."""
    if value is None:
        return None
    if isinstance(value, dict):
        w = np.zeros(n)
        for node, weight in value.items():
            if not isinstance(node, (int, np.integer)) or not 0 <= node < n:
                raise Invalid(f"{name} has the node {node!r}; the nodes are the rows "
                              f"0 to {n - 1} of G")
            w[node] = weight
        return w
    w = _lib.array(value, np.float64, name).copy()
    if w.shape != (n,):
        raise Invalid(f"{name} has the shape {w.shape}; G has {n} nodes")
    return w


def _options(iterations, **others):
    """Returns kofn_iterate_options; None keeps a default."""
    given = {name: _lib.positive(name, value) for name, value in others.items()
             if value is not None}
    if iterations is not None:
        given["max_iterations"] = _lib.count("iterations", iterations, least=1)
    return begun("kofn_iterate_options", **given)


def _run(iterate, o, vector, job):
    """Calls iterate(options, matrix, result) once."""
    o.watch = lib.kofn_py_iterate
    res = begun("kofn_iterate_result")
    job.call(iterate, o, _lib.view(vector), res)
    return Iterated(vector, res.iterations, res.converged, res.change,
                    res.eigenvalue, job.totals)


def _run_mesh(iterate, o, vector, pb, scheme, workers, masterless,
              mesh_options):
    """Calls iterate(transport, plan, vector, options, peers, result, view) on every
    node of this process."""
    seed = mesh_options.pop("seed", 1)
    workers = _lib.count("workers", workers)
    scheme = tolerating(scheme, workers, mesh_options.pop("tolerate", None))
    plan = ffi.gc(new(lib.kofn_plan_new, pb, scheme, workers,
                      _lib.count("seed", seed, 64)),
                  lib.kofn_plan_free)
    count = workers if masterless is True else 1
    v = [vector.copy() for _ in range(count)]
    res = [begun("kofn_iterate_result") for _ in range(count)]

    def live(i):
        def run(transport, peers, view):
            at = ffi.new("kofn_peering *", {
                "size": ffi.sizeof("kofn_peering"), "transport": transport,
                "plan": plan, "options": peers, "end": view})
            return iterate(at, _lib.view(v[i]), o, res[i])
        return run

    i, mesh = _mesh.run(live, workers, masterless, longest=vector.nbytes,
                        plan=plan, **mesh_options)
    return Iterated(v[i], res[i].iterations, res[i].converged, res[i].change,
                    res[i].eigenvalue, None, mesh)


@_lib.shows({**ALL, **_mesh.OPTIONS})
def power(A, *, start=None, tol=None, iterations=None, scheme="elastic",
          workers=8, where="threads", masterless=False, **options):
    """The dominant eigenvector and eigenvalue of a square matrix.

    A            an array, a SciPy sparse matrix, or a kofn.Matrix of float64. A Matrix
                 brings its workers, which remain open.
    masterless   True: without a coordinator, on `workers` nodes that are threads
                 of this process. An address such as "tcp://127.0.0.1:5001": this
                 process is one node, and `reach` has addresses of other nodes;
                 all nodes get the same arguments. Then the options are errors,
                 seed, keys, insecure, tls_ca, tls_cert, tls_key, confirm and
                 patience (seconds without enough nodes).

    >>> import numpy as np, kofn
    >>> r = kofn.power(np.diag([4.0, 2, 1]), scheme="elastic:k=2", workers=3)
    >>> round(r.eigenvalue, 6), r.converged
    (4.0, True)
    """
    mine = isinstance(A, Matrix)
    if not mine and not _lib.is_sparse(A):
        A = _lib.array(A, np.float64, "A")
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise Invalid(f"A has the shape {A.shape}; power iteration needs a "
                      "square matrix")
    n = A.shape[0]
    v = np.random.default_rng(1).standard_normal(n) if start is None else \
        _lib.array(start, np.float64, "start").copy()
    if v.ndim != 1:
        raise Invalid(f"start has the shape {v.shape}; a vector is needed")
    o = _options(iterations, tol=tol)
    if mine:
        if options or (scheme, workers, where, masterless) != (
                "elastic", 8, "threads", False):
            raise Invalid("A is a kofn.Matrix, which has its workers and options; give "
                          "none here, or the array that it was made of")
        return A._iterate(lambda job: _run(
            lambda o, m, r: lib.kofn_power(job.job, m, o, r), o, v, job))
    is_sparse = _lib.is_sparse(A)
    view, keep = _lib.sparse(A) if is_sparse else (_lib.view(A), A)
    pb = problem(lib.KOFN_MATVEC, n, n, 1, is_sparse=is_sparse)
    if masterless:
        return _run_mesh(
            lambda at, m, o, r: lib.kofn_power_peers(at, _lib.operand(view), m, o, r),
            o, v, pb, scheme, workers, masterless, options)
    job = Job(pb, scheme, workers, where, serve=life, **options)
    try:
        check(lib.kofn_place_at(job.job, 0, _lib.operand(view)))
        return _run(lambda o, m, r: lib.kofn_power(job.job, m, o, r),
                    o, v, job)
    finally:
        job.close()
        del keep


@_lib.shows({**ALL, **_mesh.OPTIONS})
def pagerank(G, *, damping=None, personalization=None, nstart=None, dangling=None,
             tol=None, iterations=None, scheme="elastic", workers=8,
             where="threads", masterless=False, **options):
    """Computes PageRank of a graph: a SciPy sparse matrix with an entry (i, j) for
    each arc from i to j. `masterless` is as in kofn.power.

    damping           probability of following an arc, 0 to 1 (0.85)
    personalization   where jumps go: a weight for each node, or a dict of some
                      (all nodes alike)
    nstart            ranks to start from, in the same form (all nodes alike)
    dangling          where nodes without arcs point, in the same form
                      (personalization)

    >>> import scipy.sparse as sp, kofn
    >>> G = sp.csr_matrix(([1.0, 1, 1], ([0, 1, 2], [1, 2, 0])), (3, 3))
    >>> kofn.pagerank(G, scheme="elastic:k=2", workers=3).vector.round(6)
    array([0.333333, 0.333333, 0.333333])
    """
    if isinstance(G, Matrix):
        raise Invalid("G is a kofn.Matrix, and PageRank is computed with other numbers: "
                      "the transpose of the graph, with the weights of each node divided "
                      "by their sum. Give the sparse matrix itself")
    if not _lib.is_sparse(G):
        raise Invalid("G must be one of SciPy's sparse matrices; "
                      "scipy.sparse.csr_matrix(G) makes one")
    graph, keep = _lib.sparse(G, "G")
    out, flags = ffi.new("kofn_sparse **"), ffi.new("uint8_t **")
    check(lib.kofn_pagerank_matrix(out, flags, graph))
    M = ffi.gc(out[0], lib.kofn_free)
    loose = ffi.gc(flags[0], lib.kofn_free)
    n = M.rows
    v = _weights("nstart", nstart, n)
    weights = [_weights("personalization", personalization, n),
               _weights("dangling", dangling, n)]
    views = [ffi.NULL if w is None else _lib.view(w) for w in weights]
    pb = problem(lib.KOFN_MATVEC, n, n, 1, is_sparse=True)
    o = _options(iterations, tol=tol, damping=damping or None)
    if damping == 0:
        o.damping = -1.0  # KOFN_NO_DAMPING
    o.personalize, o.sinks = views
    o.warm = v is not None
    v = np.full(n, 1 / n) if v is None else v
    if masterless:
        return _run_mesh(
            lambda at, m, o, r: lib.kofn_pagerank_peers(at, M, loose, m, o, r),
            o, v, pb, scheme, workers, masterless, options)
    job = Job(pb, scheme, workers, where, serve=life, **options)
    try:
        check(lib.kofn_place_at(job.job, 0, _lib.operand(M)))
        return _run(
            lambda o, m, r: lib.kofn_pagerank(job.job, loose, m, o, r),
            o, v, job)
    finally:
        job.close()
        del keep
