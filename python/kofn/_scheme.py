"""Codes of one's own."""
import ctypes
import os

import numpy as np

from . import _lib
from ._lib import Invalid, check, ffi, lib

_KEPT = []  # what the library borrows until the process ends


class Scheme:
    """A code that gives the rows of a seat; kofn.add_scheme makes it known.

    A subclass has `name`, and these methods. `workers` is the number of workers at the
    start. A is cut into blocks of rows, and a seat stores a mixture of them.

    parts(workers)      returns the number of blocks.
    row(seat, workers)  returns the coefficients of that seat, one for each block. Equal
                        arguments must give equal results. Seats are counted from 0.
    enough(workers)     returns a number of seats; fewer cannot decode. As it stands: the
                        number of blocks.
    seats(workers)      returns the number of seats that have a row, or None: any
                        number, so that more workers may join. As it stands: `workers`.

    >>> import numpy as np, kofn
    >>> class Parity(kofn.Scheme):
    ...     name = "parity"
    ...     def parts(self, workers):
    ...         return workers - 1
    ...     def row(self, seat, workers):
    ...         k = workers - 1
    ...         return np.eye(k)[seat] if seat < k else np.ones(k)
    >>> X, w = np.arange(24.0).reshape(8, 3), np.ones(3)
    >>> with kofn.Matrix(X, scheme=kofn.add_scheme(Parity()), workers=5,
    ...                  events="1 leave 2") as A:
    ...     bool(np.allclose(A @ w, X @ w))
    True
    """

    name = None
    summary = ""
    cite = ""

    def parts(self, workers):
        raise NotImplementedError("parts(workers) is missing")

    def row(self, seat, workers):
        raise NotImplementedError("row(seat, workers) is missing")

    def enough(self, workers):
        return self.parts(workers)

    def seats(self, workers):
        return workers


def _failed(scheme, what, e):
    text = f"scheme {scheme.name}: {what} raised {type(e).__name__}: {e}"
    return lib.kofn_say(lib.KOFN_INVAL, b"%s", ffi.new(
        "char[]", text[:400].encode("ascii", "backslashreplace")))


def _layout(scheme, L):
    n = L.workers
    L.cut[0].rows = _lib.count("parts", scheme.parts(n), 31, 1)
    L.enough = _lib.count("enough", scheme.enough(n), 31, 1)
    seats = scheme.seats(n)
    L.seats = n
    if seats is not None:
        L.max_seats = _lib.count("seats", seats, 31, 1)


def _seat(scheme, L, seat, E0):
    row = np.asarray(scheme.row(seat, L.workers), np.float64)
    parts = L.cut[0].rows
    if row.shape != (parts,) or not np.isfinite(row).all():
        raise Invalid(f"row({seat}, {L.workers}) has the shape {row.shape}, or is not "
                      f"finite; {parts} coefficients are needed")
    ffi.memmove(E0, np.ascontiguousarray(row), 8 * parts)


def _made(scheme):
    """Returns the kofn_scheme of a Scheme."""
    def guarded(what, f):
        def call(*args):
            try:
                f(scheme, *args)
            except Exception as e:
                return _failed(scheme, what, e)
            return lib.KOFN_OK
        return call

    kinds = dict(ffi.typeof("kofn_scheme").fields)
    fill = guarded("row", _seat)
    layout = ffi.callback(kinds["layout"].type, guarded("parts", _layout),
                          error=lib.KOFN_INVAL)
    seat = ffi.callback(kinds["seat"].type, lambda L, i, E0, E1, G: fill(L, i, E0),
                        error=lib.KOFN_INVAL)
    texts = [ffi.new("char[]", _lib.text(name, getattr(scheme, name)))
             for name in ("name", "summary", "cite")]
    _KEPT.append((layout, seat, texts))
    s = _lib.begun("kofn_scheme", summary=texts[1], cite=texts[2],
                   ops=lib.KOFN_MATVEC | lib.KOFN_MATMUL, layout=layout, seat=seat)
    s.name = texts[0]
    return s


def add_scheme(scheme):
    """Makes a code of your own known by its name, and returns the name.

    scheme   a kofn.Scheme, or the path of a shared object with the list kofn_schemes of
             kofn/scheme.h, of which it returns the first name.

    Matrix, matmul, power, plan and plan_info take the name until the process ends.
    Workers need not know it.
    """
    if isinstance(scheme, Scheme):
        if not isinstance(scheme.name, str):
            raise Invalid(f"name={scheme.name!r} of a scheme is no string")
        check(lib.kofn_scheme_add(_made(scheme)))
        return scheme.name
    if isinstance(scheme, type):
        raise Invalid(f"{scheme.__name__} is a class; give an object of it, "
                      f"{scheme.__name__}()")
    try:
        so = ctypes.CDLL(os.fspath(scheme))
        first = ctypes.addressof(ctypes.c_void_p.in_dll(so, "kofn_schemes"))
    except (OSError, TypeError, ValueError) as e:
        raise Invalid(f"{scheme}: {e}") from None
    _KEPT.append(so)
    list_of, i = ffi.cast("const kofn_scheme **", first), 0
    while list_of[i] != ffi.NULL:
        if lib.kofn_scheme_find(list_of[i].name) == ffi.NULL:
            check(lib.kofn_scheme_add(list_of[i]))
        i += 1
    if i == 0:
        raise Invalid(f"{scheme} has an empty list of schemes")
    return ffi.string(list_of[0].name).decode()
