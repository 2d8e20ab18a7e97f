"""Sums of a function over parts: gradients, and anything else that adds up."""
import traceback

import numpy as np

from . import _failed, _lib
from ._fleet import life
from ._job import Job, problem
from ._lib import Invalid, begun, check, ffi, lib
from ._turn import Turn


def _array_of(m):
    """A NumPy view of a kofn_matrix, as a vector where it has one column."""
    kind = np.float32 if m.dtype == lib.KOFN_F32 else np.float64
    size = np.dtype(kind).itemsize
    data = np.frombuffer(ffi.buffer(m.data, m.rows * m.ld * size), kind)
    table = data.reshape(m.rows, m.ld)[:, :m.cols]
    return table[:, 0] if m.cols == 1 else table


@ffi.def_extern(error=lib.KOFN_INVAL, onerror=_lib.stop_and_raise)  # Ctrl-C
def kofn_py_part(ctx, part, parts, in_, out):
    f = ffi.from_handle(ctx)
    try:
        _array_of(out)[...] = f(part, parts, _array_of(in_))
    except Exception:  # the task fails; others are asked
        traceback.print_exc()
        return _failed.tell()
    return lib.KOFN_OK


class Sum:
    """The sum of f(part, parts, x) over all parts, computed by coded workers.

    f        returns a vector of `length` numbers; the same part and x must
             give the same numbers on every worker. It is called on threads
             ("threads"), in processes ("processes"), or by workers that know it
             themselves (kofn.serve(address, f)).
             Where it raises and no other worker makes up for that, the exception
             is raised here; its __cause__ is a kofn.TaskFailed with the traceback.
    length   numbers in the answer; x has `inputs` (the same, if not given).
    scheme   gc:d=2, agc:d=3, cgc:..., uncoded: see docs/gradients.md. It says
             into how many parts the whole is cut: `parts`.
    audit    with `errors`, under gc, cgc and g-cgc: only one round in so many is
             coded and checked. In the others each part is computed once, by one
             worker, and believed; they are coded only where a worker is missing.

    >>> import numpy as np, kofn
    >>> def f(part, parts, x):
    ...     return (part + 1) * x
    >>> with kofn.Sum(f, 2, scheme="gc:d=2", workers=4) as total:
    ...     total([1.0, 10.0])
    array([ 10., 100.])
    """

    def __init__(self, f, length, *, inputs=None, scheme="gc:d=2", workers=8,
                 where="threads", dtype=np.float64, work=None, **options):
        if not callable(f) and not (f is None and "://" in str(where)):
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
        handle = ffi.new_handle(self._in_turn(f))
        check(lib.kofn_place_parts(self._job.job, lib.kofn_py_part, handle))
        self._job.borrow(handle)
        if work is not None:
            check(lib.kofn_parts_work(self._job.job, work))

    def _in_turn(self, f):
        """f, known as what the library calls for this sum."""
        turn, told = self._job.turn, self._job.told

        def called(part, parts, x):
            with turn.called_back():
                try:
                    return f(part, parts, x)
                except Exception:
                    told.add()
                    raise
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
    def report(self):
        """Of the last round."""
        return self._job.report

    @property
    def totals(self):
        """Of all rounds."""
        return self._job.totals

    @property
    def processes(self):
        """Process numbers of the workers, where they are processes of ours."""
        return tuple(self._job.fleet.children)

    def close(self):
        """End the workers.  Again is allowed."""
        self._job.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
