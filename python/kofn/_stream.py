"""Streams of products: both operands change every time."""
import collections
import time

import numpy as np

from . import _lib
from ._fleet import life
from ._job import ALL, Job, Report, problem
from ._lib import Error, Invalid, SECOND, begun, check, ffi, lib
from ._turn import Turn

MOST = lib.KOFN_OPEN_MOST


class Product:
    """A product in progress, returned by Stream.put. Its result can be taken once.

    number   1, 2, ... in the order of put.
    report   set by `result`: the first and last round (`began`, `ended`), the
             numbers of `plain` and `coded` answers, ...
    """

    def __init__(self, stream, number, operands):
        self._stream, self.number, self._operands = stream, number, operands
        self._failed = None
        self.report = None

    def result(self):
        """Waits, and returns X @ Y. Ctrl-C returns within a tenth of a second; then
        it may be called again."""
        if self.report is None and self._failed is None:
            with self._stream._turn():
                if self.report is None and self._failed is None:
                    self._wait()
        if self._failed is not None:
            raise self._failed
        return self._operands[2]

    def _wait(self):
        job = self._stream._job
        job.check_open()
        rep = _lib.begun("kofn_report")
        st = job.wait(lib.kofn_take, job.job, self.number, SECOND // 10, rep)
        self._stream._taken(self.number)
        try:
            check(st)
        except Error as e:
            self._failed = e
        else:
            self.report = Report.of(rep, st)


class Stream:
    """Products X @ Y in sequence, on coded workers. Slow answers of one round are
    made up for in the next ones: docs/stream.md.

    shape    (m, n, p) of a typical product, m x n times n x p; others may come.
    scheme   dip:m=,p=,T=,lambda=, idip:m=,p=,N=,W=, or one that treats each
             product alone: polynomial, matdot, polydot, gpd, uncoded.
    mu       patience: if the scheme permits, a round does not wait for workers
             that take more than 1 + mu times the fastest one's time.
    where, workers, errors, faults, events, keys, ...: as in kofn.Matrix.

    A product may take `delay` rounds beyond its first, while others are in progress:
    keep delay + 2 of them open, as `products` does.

    >>> import numpy as np, kofn
    >>> with kofn.Stream((4, 3, 2), scheme="dip:m=2,p=2,T=1", workers=4) as s:
    ...     first, second = s.put(np.eye(3), np.ones((3, 2))), \\
    ...         s.put(np.ones((2, 3)), np.ones((3, 2)))
    ...     second.result()
    array([[3., 3.],
           [3., 3.]])
    """

    @_lib.shows(ALL)
    def __init__(self, shape, where="threads", *, scheme="dip", workers=8,
                 dtype=np.float64, mu=None, **options):
        if len(shape) != 3:
            raise Invalid(f"shape={shape!r} is not (m, n, p), of products of "
                          "m x n and n x p")
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float32, np.float64):
            raise Invalid(f"dtype={dtype!r} is neither float64 nor float32")
        m, n, p = shape
        self._turn = Turn("the stream")
        self._job = Job(problem(lib.KOFN_STREAM, m, n, p, self.dtype), scheme,
                        workers, where, serve=life, mu=mu, turn=self._turn,
                        **options)
        info = begun("kofn_plan_info")
        check(lib.kofn_plan_describe(self._job.plan, False, info))
        self.delay = info.delay
        self._began = self._ended = None  # first put, last taken
        self._borrowed = {}  # by number, until the product is finished
        self._job.borrow(self._borrowed)

    def put(self, X, Y):
        """Starts X @ Y without waiting. Keep both unchanged until the Product is
        finished; they are copied only where kofn.Matrix copies. At most 16 products
        may be open."""
        X, Y = (self._operand(a, n) for a, n in ((X, "X"), (Y, "Y")))
        if X.shape[1] != Y.shape[0]:
            raise Invalid(f"X has {X.shape[1]} columns and Y {Y.shape[0]} rows")
        out = np.empty((X.shape[0], Y.shape[1]), self.dtype)
        kept = [X, Y, out]
        views = [_lib.view(a) for a in kept]
        number = ffi.new("uint32_t *")
        with self._turn():
            self._job.check_open()
            if self._began is None:
                self._began = time.monotonic()
            check(lib.kofn_put_pair(self._job.job, *views, number))
            self._borrowed[number[0]] = kept, views
        return Product(self, number[0], kept)

    def _taken(self, number):
        self._borrowed.pop(number, None)
        self._ended = time.monotonic()

    def _operand(self, a, name):
        a = _lib.array(a, self.dtype, name)
        if a.ndim != 2:
            raise Invalid(f"{name} has one dimension; 2 are needed")
        return a

    def _copy(self, a, name):
        """Returns an operand that the caller may change."""
        made = self._operand(a, name)
        fresh = made is not a and made.base is None and made.flags.owndata
        return made if fresh else made.copy()

    def products(self, pairs):
        """Yields X @ Y for each pair (X, Y), in order, with delay + 2 in progress at
        a time. X and Y are copied: `pairs` may fill the same arrays again.

        >>> import numpy as np, kofn
        >>> with kofn.Stream((2, 2, 2), workers=4) as s:
        ...     [round(C.sum()) for C in
        ...      s.products((np.full((2, 2), i), np.eye(2)) for i in range(4))]
        [0, 4, 8, 12]
        """
        under_way = collections.deque()
        for X, Y in pairs:
            if len(under_way) >= min(self.delay + 2, MOST):
                yield under_way.popleft().result()
            under_way.append(self.put(self._copy(X, "X"), self._copy(Y, "Y")))
        while under_way:
            yield under_way.popleft().result()

    @property
    def totals(self):
        """The report of all products. `seconds` counts from the first put to the last
        result, by this machine's clock."""
        spent = self._ended - self._began if self._ended else 0.0
        return self._job.totals._replace(seconds=spent)

    @property
    def processes(self):
        """Process numbers of the workers that this process started."""
        return tuple(self._job.fleet.children)

    def close(self):
        """Ends the workers. Further calls do nothing."""
        self._job.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
