"""Matrices with products computed by coded workers."""
import numpy as np

from . import _lib
from ._fleet import life
from ._job import ALL, Job, problem
from ._lib import Invalid, Unsuited, check, lib
from ._turn import Turn


# Most jobs of a matrix, each for inputs of one width and type.
JOBS = 8


def _put_left(job, x, out, number):
    return lib.kofn_put_at(job, 0, True, x, out, number)


class Matrix:
    """A matrix, coded and distributed to workers; `A @ x` is one round.

    A        m x n: a NumPy array, a CPU tensor, or a SciPy sparse matrix. float64
             and float32 with contiguous rows are not copied: keep them unchanged.
    where    "threads" (the default), "sim", "processes", or an address such as
             "tcp://0.0.0.0:5555". Workers connect to it with `kofn worker
             tcp://HOST:5555` or `python -m kofn worker tcp://HOST:5555`.
    scheme   the code, see kofn.schemes().
    workers  number of workers at the start.
    columns  columns of later inputs. Remote workers compute this number of columns
             at a time; those of this machine take an input whole. Threads keep A
             coded for up to eight widths and types of inputs, the last used ones.
    errors   "detect", "adversarial", "probabilistic" or "keyed": finds wrong
             results. Products from the left are then not available.
    multiply, keep
             as in kofn.serve: how "processes" multiply dense blocks.
    below, max_error, late, faults, events, keys, insecure, tls_ca, tls_cert,
    tls_key, journal, metrics, trace, seed: as the options of the kofn command.

    Raises kofn.TooFewWorkers, kofn.Corrupt, kofn.Unstable, ... with what was wrong
    and what to do.

    >>> import numpy as np, kofn
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> with kofn.Matrix(X, scheme="elastic:k=3", workers=4) as A:
    ...     y = A @ [1.0, 10.0]
    >>> y
    array([ 10.,  32.,  54.,  76.,  98., 120.])
    """

    __array_priority__ = 100  # ndarray @ Matrix calls __rmatmul__

    @_lib.shows(ALL)
    def __init__(self, A, where="threads", *, scheme="elastic", workers=8,
                 columns=1, multiply=None, keep=None, **options):
        if (multiply or keep) and where != "processes":
            raise Invalid("multiply= and keep= are for where=\"processes\"; "
                          "workers elsewhere know theirs (kofn.serve, python3 "
                          "-m kofn worker --module), and others have BLAS")
        self._own = dict(multiply=multiply, keep=keep) if multiply or keep else {}
        self._sparse = _lib.is_sparse(A)
        self._options = dict(where=where, scheme=scheme, workers=workers,
                             **options)
        self._jobs = {}  # jobs by the columns and type of the input
        self._turn = Turn("the matrix")
        self.report = None
        if self._sparse:
            self._operand, self._borrowed = _lib.sparse(A)
            self.dtype = np.dtype(np.float64)
        else:
            self._borrowed = _lib.array(A, name="A")
            if self._borrowed.ndim != 2:
                raise Invalid("A has one dimension; 2 are needed")
            self._operand = _lib.view(self._borrowed)
            self.dtype = self._borrowed.dtype
        self.shape = (self._operand.rows, self._operand.cols)
        self._copy = None
        self._job(_lib.count("columns", columns))

    def _job(self, columns, dtype=None):
        """Returns the job for inputs of this width and type. Remote workers hold the
        blocks of one job only, so inputs are cut to its width."""
        dtype = self.dtype if dtype is None else dtype
        if (columns, dtype) in self._jobs:
            return self._used(columns, dtype)
        for job in self._jobs.values():
            job.check_open()
        here = self._options["where"] in ("threads", "sim")
        if dtype != self.dtype and not here:
            raise Invalid(f"A is {self.dtype} and the other factor {dtype}, and so "
                          f"their product would be; workers hold A as {self.dtype}. "
                          f"Give the factor as {self.dtype}, x.astype('"
                          f"{self.dtype}'), or make a Matrix of A.astype('{dtype}')")
        if self._options["where"] != "threads":
            for (_, kind), job in self._jobs.items():
                if kind == dtype:
                    return job
        if len(self._jobs) >= JOBS:  # totals are those of the first job
            self._jobs.pop(list(self._jobs)[1]).end()
        if dtype == self.dtype:
            operand, borrowed = self._operand, self._borrowed
        else:
            borrowed = self._wide()
            operand = _lib.view(borrowed)
        m, n = self.shape
        op = lib.KOFN_MATVEC if columns == 1 else lib.KOFN_MATMUL
        o = dict(self._options)
        # left products cannot be compared: none with errors
        whole = o.get("errors") in (None, "none") and not self._sparse
        job = Job(problem(op, m, n, columns, dtype, self._sparse),
                  o.pop("scheme"), o.pop("workers"), o.pop("where"),
                  left=columns if whole else 0,
                  serve=lambda address, **w: life(address, **self._own, **w),
                  turn=self._turn, operand=_lib.operand(operand), **o)
        job.columns = columns
        check(lib.kofn_place_at(job.job, 0, _lib.operand(operand)))
        job.borrow(borrowed, operand)
        self._jobs[columns, dtype] = job
        return job

    def _used(self, *key):
        """Returns the job of that key. The least recently used one is ended first."""
        if key != next(iter(self._jobs)):
            self._jobs[key] = self._jobs.pop(key)
        return self._jobs[key]

    def _wide(self):
        """Returns A as float64: one more copy for all jobs."""
        if self._copy is None:
            self._copy = self._borrowed.astype(np.float64)
        return self._copy

    def _product(self, x, rows, row, put):
        """Returns put's product of x, which has `rows` rows (`row`: columns)."""
        x = _lib.factor(x, self.dtype, "the other factor")
        if row and x.ndim == 1:
            x = np.ascontiguousarray(x)
        side = x.shape[-1] if row else x.shape[0]
        if side != rows:
            raise Invalid(f"A is {self.shape[0]} x {self.shape[1]} and the "
                          f"other factor has {side} {'columns' if row else 'rows'}"
                          f"; {rows} are needed")
        other = 1 if x.ndim == 1 else x.shape[0] if row else x.shape[1]
        length = self.shape[1] if row else self.shape[0]
        with self._turn():
            job = self._job(other, x.dtype)
            if row:
                self._check_left(job)
            if job.columns == other:
                out = self._round(job, x, length, row, put)
            else:
                out = self._in_pieces(job, x, length, row, put)
            self.report = job.report
            return out

    def _check_left(self, job):
        if self._options.get("errors") not in (None, "none"):
            raise Unsuited("products from the left need every answer, and leave "
                           "none to find errors with; make a Matrix of it without "
                           "errors, or one of its transpose")
        if self._sparse:
            raise Unsuited("sparse matrices are not multiplied from the left; make "
                           "a Matrix of the transpose as well, or a dense one")
        if not job.serves_left:
            raise Unsuited(f"scheme {self._options['scheme']} does not serve "
                           "products from the left; elastic and polynomial do")

    def _round(self, job, x, length, row, put):
        if x.ndim == 1:
            out = np.empty(length, x.dtype)
        else:
            out = np.empty((x.shape[0], length) if row else (length, x.shape[1]),
                           x.dtype)
        job.round(put, _lib.view(x, row), _lib.view(out, row), (x, out))
        return out

    def _in_pieces(self, job, x, length, row, put):
        """Multiplies as many columns (rows) at a time as the job takes. The last
        piece is padded with zeros."""
        all_of = x if row else x.T
        all_of = all_of.reshape(-1, all_of.shape[-1])
        parts = []
        for at in range(0, len(all_of), job.columns):
            piece = all_of[at:at + job.columns]
            short = job.columns - len(piece)
            if short:
                piece = np.pad(piece, ((0, short), (0, 0)))
            part = self._round(job, np.ascontiguousarray(piece if row else piece.T),
                               length, row, put)
            parts.append(part if row else part.T)
        all_of = np.concatenate(parts)[:len(all_of)]
        if x.ndim == 1:
            return all_of[0]
        return all_of if row else np.ascontiguousarray(all_of.T)

    def __matmul__(self, x):
        """Returns A @ x for a vector of n or a matrix of n rows."""
        return self._product(x, self.shape[1], False, lib.kofn_put)

    def __rmatmul__(self, x):
        """Returns x @ A for a vector of m or a matrix of m columns, on the same
        blocks."""
        return self._product(x, self.shape[0], True, _put_left)

    @property
    def T(self):
        """The transpose; workers multiply with it on the same blocks.

        >>> import numpy as np, kofn
        >>> with kofn.Matrix(np.ones((6, 2)), scheme="elastic:k=3",
        ...                  workers=4) as A:
        ...     A.T @ np.arange(6.0)
        array([15., 15.])
        """
        return _Transposed(self)

    @property
    def totals(self):
        """The report of all rounds."""
        return next(iter(self._jobs.values())).totals

    @property
    def news(self):
        """Refused remote workers, with the reasons."""
        return [n for j in list(self._jobs.values()) for n in j.fleet.news]

    @property
    def processes(self):
        """Process numbers of the workers that this process started."""
        return [c for j in list(self._jobs.values()) for c in j.fleet.children]

    def aslinearoperator(self):
        """Returns a scipy.sparse.linalg.LinearOperator, for svds, lsqr, eigsh, cg.

        >>> import numpy as np, kofn
        >>> from scipy.sparse.linalg import svds
        >>> with kofn.Matrix(np.diag([3.0, 2, 1, 0.5]), scheme="elastic:k=2",
        ...                  workers=3) as A:
        ...     s = svds(A.aslinearoperator(), k=1)[1]
        >>> round(float(s[0]), 9)
        3.0
        """
        from scipy.sparse.linalg import LinearOperator

        return LinearOperator(
            self.shape, dtype=self.dtype,
            matvec=lambda x: self @ np.ravel(x),
            rmatvec=lambda x: np.ravel(x) @ self,
            matmat=lambda X: self @ X,
            rmatmat=lambda X: (np.ascontiguousarray(X.T) @ self).T)

    def close(self):
        """Ends the workers. Further calls do nothing. Another thread may call it; the
        current call then ends with an error."""
        with self._turn.to_close():
            for job in self._jobs.values():
                job.end()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        o = self._options
        return (f"kofn.Matrix({self.shape[0]} x {self.shape[1]} {self.dtype}, "
                f"{o['scheme']} on {o['workers']} workers, {o['where']})")


class _Transposed:
    """The type of Matrix.T."""

    __array_priority__ = 100

    def __init__(self, A):
        self._A = A
        self.shape = A.shape[::-1]
        self.dtype = A.dtype
        self.T = A

    def __matmul__(self, x):
        x = _lib.factor(x, self.dtype, "the other factor")
        if x.ndim == 1:
            return x @ self._A
        return (np.ascontiguousarray(x.T) @ self._A).T

    def __rmatmul__(self, x):
        x = _lib.factor(x, self.dtype, "the other factor")
        if x.ndim == 1:
            return self._A @ x
        return (self._A @ np.ascontiguousarray(x.T)).T


@_lib.shows(ALL)
def matmul(A, B, where="threads", *, scheme="elastic", workers=8, **options):
    """Multiplies A B once, both coded by the scheme: gpd, polynomial, matdot, ...

    >>> import numpy as np, kofn
    >>> A, B = np.arange(16.0).reshape(4, 4), np.eye(4)
    >>> np.allclose(kofn.matmul(A, B, scheme="gpd:m=2,n=2,p=2", workers=12), A)
    True
    """
    B = _lib.array(B, name="B")
    if not _lib.is_sparse(A):
        A = _lib.factor(A, B.dtype, "A")  # coded once, in the wider type of both
    columns = 1 if B.ndim == 1 else B.shape[1]
    with Matrix(A, where, scheme=scheme, workers=workers, columns=columns,
                **options) as M:
        return M @ B
