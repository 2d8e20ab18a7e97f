"""Products as a worker's owner makes them: with PyTorch, on a GPU, or anyhow."""
import traceback

import numpy as np

from . import _failed, _lib
from ._lib import ffi, lib

_KIND = {lib.KOFN_F64: np.dtype(np.float64), lib.KOFN_F32: np.dtype(np.float32)}


def _table(m):
    """A NumPy view of a kofn_matrix."""
    kind = _KIND[m.dtype]
    size = kind.itemsize
    if not m.rows or not m.cols:
        return np.empty((m.rows, m.cols), kind)
    room = ffi.buffer(m.data, ((m.rows - 1) * m.ld + m.cols) * size)
    return np.ndarray((m.rows, m.cols), kind, room,
                      strides=(m.ld * size, size))


class Kernel:
    """multiply(a, b), and what keep(block) made of blocks that stay."""

    def __init__(self, multiply, keep=None):
        for name, f in ("multiply", multiply), ("keep", keep):
            if f is not None and not callable(f):
                raise _lib.Invalid(f"{name}={f!r} is no function")
        self.multiply = multiply
        self.keep = keep
        self.kept = {}
        self.version = 0

    def whole(self, f):
        """keep(block) of the block that a factor is part of."""
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
        elif self.keep is not None:  # it goes with its task
            a, b = (a, self.keep(b)) if f.left else (self.keep(a), b)
        to, product = _table(out), np.asarray(self.multiply(a, b))
        if product.shape != to.shape or product.dtype != to.dtype:
            raise _lib.Invalid(
                f"multiply(a, b) returns {product.shape} numbers of "
                f"{product.dtype}, and the product of {tuple(a.shape)} and "
                f"{tuple(b.shape)} is {to.shape} of {to.dtype}")
        to[...] = product


@ffi.def_extern(error=lib.KOFN_INVAL, onerror=_lib.stop_and_raise)  # Ctrl-C
def kofn_py_multiply(ctx, factors, out):
    kernel = ffi.from_handle(ctx)
    try:
        kernel(factors, out)
    except Exception:  # the task fails; others are asked
        traceback.print_exc()
        return _failed.tell()
    return lib.KOFN_OK
