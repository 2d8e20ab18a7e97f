"""Sums of a function over parts: gradients, and other sums."""
import numpy as np

from . import _lib
from ._fleet import Fleet, life, placed
from ._job import ALL, Job, problem
from ._kernel import Part
from ._lib import Invalid, begun, check, ffi, lib
from ._turn import Turn


class Sum:
    """The sum of f(part, parts, x) over all parts, computed by coded workers.

    f        returns a vector of `length` real numbers. The same part and x must
             give the same numbers on every worker. x is read-only; write to
             x.copy(). f runs on threads ("threads"), in processes ("processes"),
             or on workers that have it themselves (kofn.serve(address, f)). If it
             raises, and no other worker makes up for that, the exception is raised
             here; its __cause__ is a kofn.TaskFailed with the traceback.
    length   numbers in the answer; x has `inputs` numbers (default: length).
    scheme   gc:d=2, agc:d=3, cgc:..., uncoded: see docs/gradients.md. It
             determines the number of parts, `parts`.
    audit    with `errors`, under gc, cgc and g-cgc: one round in `audit` is coded
             and checked. In other rounds one worker computes each part, unchecked;
             they are coded only if a worker is missing.

    >>> import numpy as np, kofn
    >>> def f(part, parts, x):
    ...     return (part + 1) * x
    >>> with kofn.Sum(f, 2, scheme="gc:d=2", workers=4) as total:
    ...     total([1.0, 10.0])
    array([ 10., 100.])
    """

    @_lib.shows(ALL)
    def __init__(self, f, length, *, inputs=None, scheme="gc:d=2", workers=8,
                 where="threads", dtype=np.float64, work=None, **options):
        where, workers = placed(where, workers)
        if isinstance(where, Fleet) and where.where == "processes" and f is not None:
            raise Invalid("the processes of this fleet were started before f was "
                          "known; give kofn.Fleet(part=f), and None here")
        if not callable(f) and not (f is None and (isinstance(where, Fleet) or
                                                   "://" in str(where))):
            raise Invalid(f"f={f!r} is not a function f(part, parts, x); None is for "
                          "workers elsewhere, which know theirs")
        self.f = f
        self.length = _lib.count("length", length)
        self.inputs = self.length if inputs is None else \
            _lib.count("inputs", inputs)
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float32, np.float64):
            raise Invalid(f"dtype={dtype!r} is neither float64 nor float32")
        self._job = Job(
            problem(lib.KOFN_SUM, length, self.inputs, 1, self.dtype), scheme,
            workers, where, serve=lambda address, **o: life(address, f, **o),
            turn=Turn("the sum"), **options)
        info = begun("kofn_plan_info")
        check(lib.kofn_plan_describe(self._job.plan, False, info))
        self.parts = info.parts
        handle = ffi.new_handle(self._in_turn(Part(f)))
        check(lib.kofn_place_parts(self._job.job, lib.kofn_py_part, handle))
        self._job.borrow(handle)
        if work is not None:
            check(lib.kofn_parts_work(self._job.job, work))

    def _in_turn(self, compute):
        """Marks compute as what the library calls for this sum."""
        turn = self._job.turn

        def called(*given):
            with turn.called_back():
                compute(*given)
        called.told = self._job.told
        return called

    def __call__(self, x):
        x = _lib.array(x, self.dtype, "x")
        if x.shape != (self.inputs,):
            raise Invalid(f"x has the shape {x.shape} and the sum takes "
                          f"({self.inputs},)")
        out = np.empty(self.length, self.dtype)
        with self._job.turn():
            self._job.round(lib.kofn_put, _lib.view(x), _lib.view(out),
                            (x, out))
        return out

    @property
    def audited(self):
        """The option `audit`: one sum in `audit` is checked; 1: all, or none."""
        return lib.kofn_audited(self._job.job)

    def audit(self, every):
        """Lets the next sum be checked, and then one in `every`."""
        with self._job.turn():
            check(lib.kofn_audit(self._job.job, _lib.count("every", every, least=1)))

    @property
    def report(self):
        """The report of the last round."""
        return self._job.report

    @property
    def totals(self):
        """The report of all rounds."""
        return self._job.totals

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
