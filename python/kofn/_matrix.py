"""Matrices with products computed by coded workers."""
import numpy as np

from . import _lib
from ._fleet import life, placed
from ._job import ALL, Job, problem
from ._lib import Invalid, Unsuited, check, ffi, lib
from ._rows import Rows
from ._turn import Turn


# Most jobs of a matrix. There is one for each type of inputs, and under some schemes
# one for each number of rows from the left.
JOBS = 8
# Bytes of an input or a result that is sent at a time.
PIECE = 16 << 20


def _put_left(job, x, out, number):
    return lib.kofn_put_at(job, 0, True, x, out, number)


class _Operator:
    """What Matrix and its transpose have in common: the members that SciPy's solvers
    and scikit-learn's randomized_svd look for. A subclass has shape, dtype, T, H and the
    two products."""

    ndim = 2
    __array_priority__ = 100
    __array_ufunc__ = None  # ndarray @ Matrix calls __rmatmul__

    def matvec(self, x):
        """Returns A @ x for a vector of n, or for a matrix n x 1."""
        return self @ _one(x)

    def rmatvec(self, x):
        """Returns A.H @ x for a vector of m, or for a matrix m x 1."""
        return self.H @ _one(x)

    def matmat(self, X):
        """Returns A @ X."""
        return self @ X

    def rmatmat(self, X):
        """Returns A.H @ X."""
        return self.H @ X

    def dot(self, x):
        """Returns A @ x."""
        return self @ x

    def __call__(self, x):
        """Returns A @ x; lobpcg calls small operators."""
        return self @ x

    def aslinearoperator(self):
        """Returns a scipy.sparse.linalg.LinearOperator. SciPy's solvers take the matrix
        as it is; an operator can also be added, scaled and chained.

        >>> import numpy as np, kofn
        >>> from scipy.sparse.linalg import svds
        >>> with kofn.Matrix(np.diag([3.0, 2, 1, 0.5]), scheme="elastic:k=2",
        ...                  workers=3) as A:
        ...     s = svds(2 * A.aslinearoperator(), k=1)[1]
        >>> round(float(s[0]), 9)
        6.0
        """
        from scipy.sparse.linalg import LinearOperator

        return LinearOperator(self.shape, dtype=self.dtype, matvec=self.matvec,
                              rmatvec=self.rmatvec, matmat=self.matmat,
                              rmatmat=self.rmatmat)

    def __array__(self, *_, **__):
        raise Unsuited("a kofn.Matrix is no array: workers hold its numbers, coded. "
                       "Multiply it with arrays, A @ x or x @ A, where x is "
                       "x.to_numpy() of pandas or x.toarray() of SciPy. Where the "
                       "numbers are needed, give the array that A was made of")

    def __reduce_ex__(self, _):
        raise Unsuited("a kofn.Matrix has workers, and is neither pickled nor copied. "
                       "Send the array that it was made of, and make a Matrix of it "
                       "there")


def _one(x):
    """Returns x, which is a vector or a column."""
    if np.ndim(x) != 1 and np.shape(x)[1:] != (1,):
        raise Invalid(f"the other factor has the shape {np.shape(x)}; matvec and rmatvec "
                      "take one vector, matmat and rmatmat a matrix")
    return x


class Matrix(_Operator):
    """A matrix, coded and distributed to workers; `A @ x` is one round.

    A        m x n: a NumPy array, a CPU tensor, a pandas table, or a SciPy sparse
             matrix, or kofn.Rows. Its numbers may be complex. Arrays of float64 and float32 with
             contiguous rows, and contiguous ones of complex128 and complex64, are not
             copied: keep them unchanged.
    where    "threads" (the default), "sim", "processes", or an address such as
             "tcp://0.0.0.0:5555". Workers connect to it with `kofn worker
             tcp://HOST:5555` or `python -m kofn worker tcp://HOST:5555`. Or a
             kofn.Fleet.
    scheme   the code, see kofn.schemes().
    workers, tolerate
             number of workers at the start; any `tolerate` of them may be lost. That
             sets the parameter of elastic, mds, gc, agc or pcr, which the scheme then
             does not give.
    columns  the usual number of columns of later inputs. Any number may come, on the
             same blocks. Under schemes other than elastic, products from the left have
             this number of rows. Threads then keep up to eight coded copies, for other
             numbers of rows.
    errors   "detect", "adversarial", "probabilistic" or "keyed": finds wrong
             results. Products from the left are then not available.
    multiply, keep
             as in kofn.serve: how "processes" multiply dense blocks.
    below, max_error, late, faults, events, keys, insecure, tls_ca, tls_cert,
    tls_key, journal, metrics, trace, report, seed: as the options of the kofn command.

    Complex numbers are pairs of real ones inside: workers, and a function `multiply`,
    get a real matrix of twice the columns.

    SciPy's solvers take it as it is: svds(A), eigsh(A), lsqr(A, b), cg(A, b). The other
    factor of a product is an array, or a table or column of pandas. Of these the
    numbers are taken by position, not by label, and the result is an array.

    Raises kofn.TooFewWorkers, kofn.Corrupt, kofn.Unstable, ... with what was wrong
    and what to do.

    >>> import numpy as np, kofn
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> with kofn.Matrix(X, scheme="elastic:k=3", workers=4) as A:
    ...     y = A @ [1.0, 10.0]
    >>> y
    array([ 10.,  32.,  54.,  76.,  98., 120.])
    """

    @_lib.shows(ALL)
    def __init__(self, A, where="threads", *, scheme="elastic", workers=8,
                 columns=1, multiply=None, keep=None, **options):
        if (multiply or keep) and where != "processes":
            raise Invalid("multiply= and keep= are for where=\"processes\"; "
                          "workers elsewhere know theirs (kofn.serve, python3 "
                          "-m kofn worker --module), and others have BLAS")
        self._own = dict(multiply=multiply, keep=keep) if multiply or keep else {}
        where, workers = placed(where, workers)
        self._sparse = _lib.is_sparse(A)
        self._rows = A if isinstance(A, Rows) else None
        self._options = dict(where=where, scheme=scheme, workers=workers,
                             **options)
        self._columns = _lib.count("columns", columns)
        self._fixed = False  # True: left products have as many rows as the job says
        self._jobs = {}  # jobs by the type of the input, and its rows if these are fixed
        self._turn = Turn("the matrix")
        self.report = None
        self._hold(A)
        self.shape = (self._real[0], self._real[1] // (2 if self._complex else 1))
        self.dtype = _lib.pair(self._part) if self._complex else self._part
        self._columns *= 2 if self._complex else 1
        self._copy = None
        self._job()

    def _hold(self, A):
        """Sets what is known of A, and of the real matrix that workers have."""
        if self._rows:
            self._complex = A.dtype.kind == "c"
            self._operand, self._borrowed = None, A
            self._part, self._real = A.part, A.real
            return
        if self._sparse:
            self._complex = A.dtype.kind == "c"
            self._operand, self._borrowed = _lib.sparse(A, kinds="fiubc")
            self._part = np.dtype(np.float64)
        else:
            self._borrowed = _matrix(A)
            self._complex = self._borrowed.dtype.kind == "c"
            if self._complex:
                self._borrowed = _lib.pairs(self._borrowed)
            self._operand = _lib.view(self._borrowed)
            self._part = self._borrowed.dtype
        self._real = (self._operand.rows, self._operand.cols)

    def _job(self, dtype=None, rows=None):
        """Returns the job for real inputs of this type; with `rows` the one for left
        products of this number of rows, if workers are threads. Remote workers hold the
        blocks of one job only."""
        dtype = self._part if dtype is None else dtype
        place = self._options["where"]
        key = (dtype, rows if place == "threads" and not self._rows else None)
        if key in self._jobs:
            return self._used(key)
        for job in self._jobs.values():
            job.check_open()
        if len(self._jobs) >= JOBS:  # totals are those of the first job
            self._jobs.pop(list(self._jobs)[1]).end()
        self._jobs[key] = self._new_job(dtype, rows or self._columns)
        return self._jobs[key]

    def _new_job(self, dtype, columns):
        if dtype == self._part:
            operand, borrowed = self._operand, self._borrowed
        else:
            borrowed = self._wide()
            operand = _lib.view(borrowed)
        given = None if self._rows else _lib.operand(operand)
        m, n = self._real
        o = dict(self._options)
        # left products cannot be compared: none with errors
        whole = o.get("errors") in (None, "none")
        job = Job(problem(lib.KOFN_MATMUL, m, n, columns, dtype, self._sparse),
                  o.pop("scheme"), o.pop("workers"), o.pop("where"),
                  left=columns if whole else 0,
                  serve=lambda address, **w: life(address, **self._own, **w),
                  turn=self._turn, operand=given, **o)
        job.columns = columns
        try:
            if self._rows:
                self._rows.place(job)
            else:
                check(lib.kofn_place_at(job.job, 0, given))
        except BaseException:
            job.end()
            raise
        job.borrow(borrowed, operand)
        return job

    def _used(self, key):
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
        if self._complex or x.dtype.kind == "c":
            return self._complex_product(x, row, put)
        return self._real_product(x, row, put)

    def _complex_product(self, x, row, put):
        """Returns the same of complex numbers, by one real product."""
        dtype = _lib.pair(_lib.part(x.dtype))
        if x.ndim == 2 and 0 in x.shape:
            self._real_product(np.empty((0, 0), _lib.part(x.dtype)), row, put, x.dtype)
            return np.empty((0, self.shape[1]) if row else (self.shape[0], 0), dtype)
        if row:
            return self._complex_left(x, dtype)
        if self._complex:
            y = self._real_product(_expanded(x), row, put, x.dtype)
        else:
            y = self._real_product(_lib.pairs(x), row, put, x.dtype)
        y = y.view(dtype)
        return y[:, 0] if x.ndim == 1 else y

    def _complex_left(self, x, dtype):
        """Returns x @ A: the products of both parts of x, one above the other."""
        rows = x[None] if x.ndim == 1 else x
        both = rows
        if x.dtype.kind == "c":
            both = np.concatenate([rows.real, rows.imag])
        z = self._real_product(both, True, _put_left, x.dtype)
        if self._complex:
            z = z.view(dtype)
        if x.dtype.kind == "c":
            z = z[:len(rows)] + dtype.type(1j) * z[len(rows):]
        return z[0] if x.ndim == 1 else z

    def _real_product(self, x, row, put, given=None):
        """Returns the product of x with the real matrix of the workers. `given` is the
        type that the factor had."""
        other = 1 if x.ndim == 1 else x.shape[0] if row else x.shape[1]
        length = self._real[1] if row else self._real[0]
        self._check_type(x.dtype, given or x.dtype)
        with self._turn():
            job = self._job(x.dtype)
            job.check_open()
            if row:
                self._check_left(job)
            if other == 0:
                return np.empty((0, length) if row else (length, 0), x.dtype)
            job, out = self._best(job, x, length, row, put)
            self.report = job.report
            return out

    def _check_type(self, dtype, given):
        """Refuses a factor of this type, if workers hold A in one type only."""
        once = self._rows or self._options["where"] not in ("threads", "sim")
        if dtype == self._part or not once:
            return
        fitting = _lib.pair(self._part) if given.kind == "c" else self._part
        wide = _lib.pair(dtype) if self._complex else dtype
        raise Invalid(f"A is {self.dtype} and the other factor {given}, and so "
                      f"their product would be; workers hold A as {self.dtype}. "
                      f"Give the factor as {fitting}, x.astype('"
                      f"{fitting}'), or make a Matrix of A.astype('{wide}')")

    def _best(self, job, x, length, row, put):
        """Returns the job that multiplies, and the product: in one round, if the scheme
        and the memory of a packet allow it."""
        other = 1 if x.ndim == 1 else len(x) if row else x.shape[1]
        most = other
        if self._options["where"] not in ("threads", "sim"):
            most = max(1, min(other, PIECE // (max(self._real) * x.itemsize)))
        try:
            if not row or not self._fixed:
                return job, self._in_pieces(job, x, length, row, put, most)
        except Invalid as e:
            if not row or e.status != "SHAPE":
                raise
            self._fixed = True  # only now known: the scheme is C's
        job = self._job(x.dtype, other)
        return job, self._in_pieces(job, x, length, row, put, job.columns)

    def _check_left(self, job):
        if self._options.get("errors") not in (None, "none"):
            raise Unsuited("products from the left need every answer, and leave "
                           "none to find errors with; make a Matrix of it without "
                           "errors, or one of its transpose")
        if not job.serves_left:
            raise Unsuited(f"scheme {self._options['scheme']} does not serve "
                           "products from the left of this matrix; elastic does")

    def _round(self, job, x, length, row, put):
        if x.ndim == 1:
            out = np.empty(length, x.dtype)
        else:
            out = np.empty((x.shape[0], length) if row else (length, x.shape[1]),
                           x.dtype)
        job.round(put, _lib.view(x, row), _lib.view(out, row), (x, out))
        return out

    def _in_pieces(self, job, x, length, row, put, width):
        """Multiplies `width` columns (rows) at a time. Where the scheme fixes the width
        of left products, the last piece is padded with zeros."""
        all_of = x if row else x.T
        all_of = all_of.reshape(-1, all_of.shape[-1])
        padded = row and self._fixed
        if len(all_of) == width or len(all_of) < width and not padded:
            return self._round(job, x, length, row, put)
        parts = []
        for at in range(0, len(all_of), width):
            piece = all_of[at:at + width]
            if padded and len(piece) < width:
                piece = np.pad(piece, ((0, width - len(piece)), (0, 0)))
            part = self._round(job, np.ascontiguousarray(piece if row else piece.T),
                               length, row, put)
            parts.append(part if row else part.T)
        all_of = np.concatenate(parts)[:len(all_of)]
        if x.ndim == 1:
            return all_of[0]
        return all_of if row else np.ascontiguousarray(all_of.T)

    def _iterate(self, run):
        """Returns run(job), which takes many products of A with float64 vectors."""
        if self._complex:
            raise _lib.wrong_kind("A", self.dtype)
        with self._turn():
            job = self._job(np.dtype(np.float64))
            job.check_open()
        return run(job)

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
    def H(self):
        """The conjugate transpose; T if the numbers are real.

        >>> import numpy as np, kofn
        >>> with kofn.Matrix(np.full((6, 2), 2 + 1j), scheme="elastic:k=3",
        ...                  workers=4) as A:
        ...     A.H @ np.ones(6)
        array([12.-6.j, 12.-6.j])
        """
        return _Transposed(self, conjugate=self._complex)

    def fetch(self):
        """Returns A as an array, read from the blocks of workers; kofn.Rows need not be
        there any more. Codes that mix numbers round them in the last places.

        >>> import numpy as np, kofn
        >>> with kofn.Matrix(np.eye(3), scheme="elastic:k=2", workers=4) as A:
        ...     np.abs(A.fetch()[0]).round(9)
        array([1., 0., 0.])
        """
        if self._sparse:
            raise Unsuited("blocks of a sparse matrix are not read back")
        out = np.empty(self._real, self._part)
        with self._turn():
            job = self._job()
        job.call(lib.kofn_fetch, job.job, 0, 0, _lib.view(out), ffi.NULL)
        return out.view(self.dtype) if self._complex else out

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


class _Transposed(_Operator):
    """The type of Matrix.T and Matrix.H, and of A.T.H, the conjugate of A."""

    def __init__(self, A, transpose=True, conjugate=False):
        self._A = A
        self._transpose, self._conjugate = transpose, conjugate
        self.shape = A.shape[::-1] if transpose else A.shape
        self.dtype = A.dtype

    @property
    def T(self):
        return self._of(not self._transpose, self._conjugate)

    @property
    def H(self):
        return self._of(not self._transpose,
                        self._conjugate != (self.dtype.kind == "c"))

    def _of(self, transpose, conjugate):
        if not transpose and not conjugate:
            return self._A
        return _Transposed(self._A, transpose, conjugate)

    def _conj(self, x):
        return np.conj(x) if self._conjugate else x

    def __matmul__(self, x):
        x = self._conj(_lib.factor(x, self.dtype, "the other factor"))
        if not self._transpose:
            return self._conj(self._A @ x)
        if x.ndim == 1:
            return self._conj(x @ self._A)
        return self._conj((np.ascontiguousarray(x.T) @ self._A).T)

    def __rmatmul__(self, x):
        x = self._conj(_lib.factor(x, self.dtype, "the other factor"))
        if not self._transpose:
            return self._conj(x @ self._A)
        if x.ndim == 1:
            return self._conj(self._A @ x)
        return self._conj((self._A @ np.ascontiguousarray(x.T)).T)

    @property
    def report(self):
        return self._A.report

    @property
    def totals(self):
        return self._A.totals

    def __repr__(self):
        end = {(True, False): "T", (True, True): "H", (False, True): "T.H"}
        return f"{self._A!r}.{end[self._transpose, self._conjugate]}"


def _matrix(A):
    """Returns A as an array whose numbers the library can read, if need be in pairs."""
    A = _lib.numbers(A, "A", "fiubc")
    A = _lib.factor(A, A.dtype, "A")
    if A.ndim != 2:
        raise Invalid("A has one dimension; 2 are needed")
    return A


def _expanded(x):
    """Returns the real input of a complex matrix for x, real or complex."""
    is_complex = x.dtype.kind == "c"
    p = 1 if x.ndim == 1 else x.shape[1]
    out = np.empty((2 * len(x), 2 * p), _lib.part(x.dtype))
    x = _lib.pairs(x) if is_complex else x
    check(lib.kofn_complex_input(_lib.view(x), is_complex, _lib.view(out)))
    return out


@_lib.shows(ALL)
def matmul(A, B, where="threads", *, scheme="elastic", workers=8, **options):
    """Multiplies A B once, both coded by the scheme: gpd, polynomial, matdot, ...

    >>> import numpy as np, kofn
    >>> A, B = np.arange(16.0).reshape(4, 4), np.eye(4)
    >>> np.allclose(kofn.matmul(A, B, scheme="gpd:m=2,n=2,p=2", workers=12), A)
    True
    """
    B = _lib.numbers(B, "B", "fiubc")
    B = _lib.factor(B, B.dtype, "B")
    if not _lib.is_sparse(A):
        A = _lib.factor(A, B.dtype, "A")  # coded once, in the wider type of both
    columns = 1 if B.ndim == 1 else B.shape[1]
    if B.dtype.kind == "c" and A.dtype.kind != "c":
        columns *= 2
    with Matrix(A, where, scheme=scheme, workers=workers, columns=columns,
                **options) as M:
        return M @ B
