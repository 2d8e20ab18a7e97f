"""Matrices that are read row by row, because no process has them as a whole."""
import numpy as np

from . import _lib
from ._lib import Invalid, ffi, lib


class Rows:
    """A matrix that workers get without its ever being in memory here as a whole.

    read     a function of lo and hi that returns rows lo, ..., hi - 1 as an array of
             hi - lo rows. They may come from a file, a data base or other machines.
    shape    (m, n) of the matrix.
    dtype    float64, float32, complex128 or complex64.
    panel    bytes that are read at a time. Here is memory for a few panels.

    Give it to kofn.Matrix in place of an array. Every row is read twice before the
    Matrix is there, first in their order, and never again. Blocks of workers that join
    later are made from those of others.

    >>> import numpy as np, kofn
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> rows = kofn.Rows(lambda lo, hi: X[lo:hi], X.shape)
    >>> with kofn.Matrix(rows, scheme="elastic:k=3", workers=4) as A:
    ...     y = A @ [1.0, 10.0]
    >>> y
    array([ 10.,  32.,  54.,  76.,  98., 120.])
    """

    def __init__(self, read, shape, dtype=np.float64, *, panel=64 << 20):
        if not callable(read):
            raise Invalid(f"read={read!r} is no function of lo and hi")
        try:
            m, n = shape
        except (TypeError, ValueError):
            raise Invalid(f"shape={shape!r} is not (m, n)") from None
        self.read = read
        self.shape = (_lib.count("m", m, 63, 1), _lib.count("n", n, 63, 1))
        self.dtype = np.dtype(dtype)
        if self.dtype.name not in ("float64", "float32", "complex128", "complex64"):
            raise Invalid(f"dtype={dtype!r} is none of float64, float32, complex128 and "
                          "complex64")
        self.panel = _lib.count("panel", panel, 63, 1)
        self.part = _lib.part(self.dtype)
        self.real = (m, n * (2 if self.dtype.kind == "c" else 1))

    def __repr__(self):
        return f"kofn.Rows({self.shape[0]} x {self.shape[1]} {self.dtype})"

    def place(self, job):
        """Places the matrix on a job."""
        handle = ffi.new_handle(self)
        source = _lib.begun("kofn_source", read=lib.kofn_py_rows, ud=handle,
                            panel=self.panel)
        job.call(lib.kofn_place_from, job.job, 0, source)

    def fill(self, row, out):
        """Puts rows from `row` on into a kofn_matrix."""
        lo, hi = row, row + out.rows
        rows = np.asarray(self.read(lo, hi))
        if rows.shape != (hi - lo, self.shape[1]):
            raise Invalid(f"read({lo}, {hi}) returned an array of the shape "
                          f"{rows.shape}; ({hi - lo}, {self.shape[1]}) is needed")
        if not np.can_cast(rows.dtype, self.dtype, "same_kind"):
            raise Invalid(f"read({lo}, {hi}) returned {rows.dtype}, and the matrix is "
                          f"{self.dtype}")
        buffer = ffi.buffer(out.data, (out.rows * out.ld - (out.ld - out.cols)) *
                            self.part.itemsize)
        to = np.lib.stride_tricks.as_strided(
            np.frombuffer(buffer, self.part), (out.rows, out.cols),
            (out.ld * self.part.itemsize, self.part.itemsize))
        if self.dtype.kind == "c":
            rows = _lib.pairs(np.ascontiguousarray(rows, self.dtype))
        to[:] = rows


@ffi.def_extern(error=lib.KOFN_STATE, onerror=_lib.stop_and_raise)
def kofn_py_rows(ud, row, out):
    _lib.may_go_on()
    if out != ffi.NULL:
        ffi.from_handle(ud).fill(row, out)
    return lib.KOFN_OK
