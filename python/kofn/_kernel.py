"""Products and parts of sums computed by user functions on a worker, for example with
PyTorch on a GPU. The functions get read-only arrays."""
import numpy as np

from . import _failed, _lib
from ._lib import ffi, lib

_KIND = {lib.KOFN_F64: np.dtype(np.float64), lib.KOFN_F32: np.dtype(np.float32)}


def _table(m):
    """Returns a NumPy view of a kofn_matrix."""
    kind = _KIND[m.dtype]
    size = kind.itemsize
    if not m.rows or not m.cols:
        return np.empty((m.rows, m.cols), kind)
    room = ffi.buffer(m.data, ((m.rows - 1) * m.ld + m.cols) * size)
    return np.ndarray((m.rows, m.cols), kind, room,
                      strides=(m.ld * size, size))


def _lent(a):
    """Returns a read-only view of `a`. The numbers belong to the library, or stay on
    the worker for later tasks."""
    if isinstance(a, np.ndarray):
        a = a.view()
        a.flags.writeable = False
    return a


def _vector(table):
    """Returns a table of one column as a vector."""
    return table[:, 0] if table.shape[1] == 1 else table


def _answer(y, shape):
    """Returns the answer of f(part, parts, x) as numbers of that shape."""
    if y is None:
        raise _lib.Invalid(f"f(part, parts, x) returned None, and {shape[0]} numbers "
                           "are needed; see whether its return is missing")
    y = _lib.numbers(y, "the answer of f(part, parts, x)")
    if y.shape != shape:
        raise _lib.Invalid(f"f(part, parts, x) returned numbers of the shape "
                           f"{y.shape}, and length={shape[0]} takes {shape}")
    return y


class Part:
    """Calls f(part, parts, x), checks the answer and writes it to `out`."""

    def __init__(self, f):
        self.f = f

    def __call__(self, part, parts, x, out):
        out[...] = _answer(self.f(part, parts, x), out.shape)


class Kernel:
    """Calls multiply(a, b), with the results of keep(block) for blocks that stay."""

    def __init__(self, multiply, keep=None):
        for name, f in ("multiply", multiply), ("keep", keep):
            if f is not None and not callable(f):
                raise _lib.Invalid(f"{name}={f!r} is no function")
        self.multiply = multiply
        self.keep = keep
        self.kept = {}
        self.version = 0

    def whole(self, f):
        """Returns keep(block) for the block that contains a factor."""
        if self.version != f.version:
            self.kept.clear()
            self.version = f.version
        w = f.whole
        key = int(ffi.cast("uintptr_t", w.data)), w.rows, w.cols
        if key not in self.kept:
            self.kept[key] = self.keep(_table(w))
        return self.kept[key]

    def __call__(self, f, out):
        a, b = _table(f.A), _table(f.B)
        if self.keep is not None and f.version:
            m = f.B if f.left else f.A
            part = self.whole(f)[f.row:f.row + m.rows, f.col:f.col + m.cols]
            a, b = (a, part) if f.left else (part, b)
        elif self.keep is not None:  # it is freed with its task
            a, b = (a, self.keep(b)) if f.left else (self.keep(a), b)
        to, product = _table(out), self.multiply(_lent(a), _lent(b))
        if np.ma.is_masked(product):
            raise _lib.Invalid("multiply(a, b) returns masked numbers, and none can "
                               "be left out")
        product = np.asarray(product)
        if product.shape != to.shape or product.dtype != to.dtype:
            raise _lib.Invalid(
                f"multiply(a, b) returns {product.shape} numbers of "
                f"{product.dtype}, and the product of {tuple(a.shape)} and "
                f"{tuple(b.shape)} is {to.shape} of {to.dtype}")
        to[...] = product


@ffi.def_extern(error=lib.KOFN_INVAL, onerror=_lib.stop_and_raise)  # Ctrl-C
def kofn_py_part(ctx, part, parts, in_, out):
    compute = ffi.from_handle(ctx)
    try:
        compute(part, parts, _vector(_lent(_table(in_))), _vector(_table(out)))
    except Exception:  # the task fails and goes to other workers
        return _failed.tell(getattr(compute, "told", None))
    return lib.KOFN_OK


@ffi.def_extern(error=lib.KOFN_INVAL, onerror=_lib.stop_and_raise)  # Ctrl-C
def kofn_py_multiply(ctx, factors, out):
    kernel = ffi.from_handle(ctx)
    try:
        kernel(factors, out)
    except Exception:  # the task fails and goes to other workers
        return _failed.tell()
    return lib.KOFN_OK
