"""Is C = A B, from wherever it came?"""
import numpy as np

from . import _lib
from ._lib import check, ffi, lib


class Findings:
    """What kofn.check_product found; true where nothing is wrong.

    floor     entries off by no more than this times the norm of a row of A times
              that of a column of B may have been missed
    rows, columns    arrays of those in which something is wrong
    entries   a structured array with row, column, was, is: what is wrong, one by
              one
    complete  whether all that is wrong is in entries
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
        """A copy of C with what is in entries put right.

        Raises kofn.Corrupt where that is not all that is wrong.
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
    """Is C = A B?  A few passes over the three say so, and which entries are wrong.

    A         m x n: an array, a CPU tensor, a SciPy sparse matrix
    B, C      n x p and m x p; vectors are columns.  Types may differ: what rounding
              may do is that of the coarsest.  Float16 counts in C only.
    tolerance entries are right that are off by no more than this times the largest
              norm of a row of A times the largest of a column of B; 0: no more than
              any order of summation may do

    Returns kofn.Findings.  Raises kofn.Invalid where shapes do not agree, or A or B
    is not finite.

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
