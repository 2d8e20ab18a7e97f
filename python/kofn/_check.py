"""Checks whether C = A B, whatever computed it."""
import numpy as np

from . import _lib
from ._lib import check, ffi, lib


class Findings:
    """The result of kofn.check_product; true if nothing is wrong.

    floor     smaller errors may have been missed: those up to floor times the
              norm of the row of A times the norm of the column of B.
    rows, columns    arrays: the rows and columns with wrong entries.
    entries   a structured array with row, column, was, is: the wrong entries.
    complete  True if entries holds all wrong entries.
    """

    _dtype = np.dtype([("row", np.uintp), ("column", np.uintp),
                       ("was", np.float64), ("is", np.float64)])

    def __init__(self, f):
        def copy(p, n, dtype):
            size = n * np.dtype(dtype).itemsize
            return np.frombuffer(bytearray(ffi.buffer(p, size)[:] if n else b""),
                                 dtype)

        self.floor, self.complete = f.floor, bool(f.complete)
        self.rows = copy(f.row, f.rows, np.uintp)
        self.columns = copy(f.col, f.cols, np.uintp)
        self.entries = copy(f.entry, f.entries, self._dtype)

    def __bool__(self):
        return not len(self.rows) and not len(self.columns)

    def corrected(self, C):
        """Returns a copy of C with the wrong entries corrected.

        Raises kofn.Corrupt if entries does not hold all of them.
        """
        if not self.complete:
            raise _lib.Corrupt("more is wrong in C than was found one by one; "
                               "compute it again")
        C = np.array(C, copy=True)
        out = C.reshape(-1, 1) if C.ndim == 1 else C
        out[self.entries["row"], self.entries["column"]] = self.entries["is"]
        return C

    def __repr__(self):
        if self:
            return f"kofn.Findings(right, floor={self.floor:.2g})"
        return (f"kofn.Findings({len(self.entries)} wrong entries, "
                f"{len(self.rows)} rows, {len(self.columns)} columns, "
                f"floor={self.floor:.2g})")


def check_product(A, B, C, tolerance=0.0):
    """Checks whether C = A B, in a few passes over the three, and finds the wrong
    entries.

    A         m x n: an array, a CPU tensor, or a SciPy sparse matrix.
    B, C      n x p and m x p; vectors are columns. Types may differ; the coarsest
              one determines the allowed rounding. Only C may be float16.
    tolerance  an error is accepted up to tolerance times the largest norm of a row
              of A times the largest norm of a column of B; 0: up to the rounding
              of any order of summation.

    Returns kofn.Findings. Raises kofn.Invalid if shapes do not agree, or if A or B is
    not finite.

    >>> import numpy as np, kofn
    >>> A, B = np.arange(12.0).reshape(3, 4), np.arange(8.0).reshape(4, 2)
    >>> C = A @ B
    >>> bool(kofn.check_product(A, B, C))
    True
    >>> C[1, 0] += 0.5
    >>> found = kofn.check_product(A, B, C)
    >>> int(found.rows[0]), int(found.columns[0]), len(found.entries)
    (1, 0, 1)
    >>> bool((found.corrected(C) == A @ B).all())
    True
    """
    C = _lib.numbers(C, "C")
    half = C.dtype == np.float16
    B, C = _lib.array(B, name="B"), _lib.array(C, name="C")
    if _lib.is_sparse(A):
        matrix, borrowed = _lib.sparse(A)
    else:
        borrowed = _lib.array(A, name="A")
        matrix = _lib.view(borrowed)
    out = ffi.new("kofn_findings **")
    check_it = lib.kofn_check_product_half if half else lib.kofn_check_product
    st = check_it(_lib.operand(matrix), _lib.view(B), _lib.view(C), tolerance, out)
    if out[0] == ffi.NULL:
        check(st)
    try:
        return Findings(out[0])
    finally:
        lib.kofn_findings_free(out[0])
