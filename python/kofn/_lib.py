"""Statuses as exceptions, and arrays as the library's matrices."""
import difflib
import functools
import inspect
import operator
import os
import sys
import threading
from numbers import Real

import numpy as np

from ._kofn import ffi, lib

__version__ = ffi.string(lib.KOFN_VERSION).decode()
NEVER = 2**63 - 1
SECOND = 10**9


class Error(Exception):
    """A failure reported by the library.

    `status` is the name of the kofn_status. The text says what was wrong, with the
    value, and what to do.
    """

    status = "?"


class TooFewWorkers(Error):
    """Fewer workers are left than decoding needs."""


class Late(Error, TimeoutError):
    """The patience ran out before enough results came."""


class Corrupt(Error):
    """More results are wrong than the code can correct."""


class Unstable(Error, ArithmeticError):
    """The predicted error exceeds max_error."""


class Invalid(Error, ValueError):
    """An invalid argument, shape or number."""


class NotFitted(Invalid, AttributeError):
    """A model is used before fit, like scikit-learn's NotFittedError."""

    status = "STATE"


class Unsuited(Error, NotImplementedError):
    """The scheme does not support this operation."""


class TransportFailed(Error, ConnectionError):
    """The network is not available, or it failed."""


class TaskFailed(Error):
    """A function raised an exception on a worker; the text is its traceback.

    It is the __cause__ of that exception, which is raised here. It is raised itself
    if the exception's type cannot be restored here, or if the worker is at an
    address.
    """


_CLASS = {
    "TOOFEW": TooFewWorkers, "LATE": Late, "CORRUPT": Corrupt,
    "UNSTABLE": Unstable, "INVAL": Invalid, "SHAPE": Invalid,
    "NOSCHEME": Invalid, "NONFINITE": Invalid, "FORMAT": Invalid,
    "STATE": Error, "UNSUITED": Unsuited, "TRANSPORT": TransportFailed,
    "IO": type("FileFailed", (Error, OSError), {}),
    "NOMEM": type("OutOfMemory", (Error, MemoryError), {}),
}
_NAME = {value: name.removeprefix("KOFN_") for value, name in
         ffi.typeof("kofn_status").elements.items()}


def raise_for(st):
    """Raises the exception for a failed status."""
    name = _NAME.get(st, str(st))
    words = ffi.string(lib.kofn_errmsg()).decode(errors="replace")
    error = _CLASS.get(name, Error)(
        words or ffi.string(lib.kofn_strerror(st)).decode())
    error.status = name
    raise error


def check(st):
    """Returns the status if it is no failure: 0, PARTIAL or AGAIN."""
    if st < 0:
        raise_for(st)
    return st


def new(make, *args):
    """Returns the handle that make(&handle, ...) creates."""
    out = ffi.new(ffi.typeof(make).args[0].item.cname + " *")
    check(make(out, *args))
    return out[0]


# ---- arguments -----------------------------------------------------------------

# Names of scikit-learn and PyTorch for arguments that have another one here.
ELSEWHERE = {"alpha": "l2", "ridge": "l2", "weight_decay": "l2", "max_iter": "iterations",
             "fit_intercept": "intercept", "solver": "optimizer", "cost": "loss",
             "hidden_layer_sizes": "hidden", "batch_size": "batch", "lr": "step",
             "learning_rate_init": "step", "max_epochs": "epochs", "n_jobs": "workers",
             "random_state": "seed"}


def nearest(name, names):
    """Returns the end of a message about an unknown name: the name that it is most
    like, or all names."""
    like = [n for n in names if n == ELSEWHERE.get(name)] or \
        [n for n in names if len(n) > 2 and str(name).startswith(n)] or \
        difflib.get_close_matches(str(name), names, 1)
    return f"; did you mean {like[0]!r}?" if like else \
        f"; there are {', '.join(names)}"


def shows(options=None):
    """Decorates a function so that its signature has these options by name instead of
    **options. An unknown argument is refused with the name that it is most like."""
    def decorate(f):
        signature = inspect.signature(f)
        every = list(signature.parameters.values())
        named = [p for p in every if p.kind is not p.VAR_KEYWORD]
        had = {p.name for p in named}
        named += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value)
                  for name, value in (options or {}).items() if name not in had]
        known = {p.name: None for p in named if p.name != "self"}

        @functools.wraps(f)
        def call_it(*args, **given):
            if not known.keys() >= given.keys():
                name = next(name for name in given if name not in known)
                what = f.__qualname__.removesuffix(".__init__")
                raise TypeError(f"{what}() has no argument {name!r}"
                                + nearest(name, known))
            return f(*args, **given)

        call_it.__signature__ = signature.replace(parameters=named)
        return call_it
    return decorate


def begun(name, **members):
    """Returns a struct of the library that begins with its size. An error names a
    member that C does not take."""
    struct = ffi.new(name + " *")
    struct.size = ffi.sizeof(name)
    for name, value in members.items():
        try:
            setattr(struct, name, value)
        except (TypeError, OverflowError) as e:
            raise Invalid(f"{name}={value!r}: {e}") from None
    return struct


def count(name, value, bits=32, least=0):
    """Returns a whole number that fits into `bits` bits in C."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not least <= number < 1 << bits:
        raise Invalid(f"{name}={value!r} is not a whole number from {least} to "
                      f"2^{bits} - 1")
    return number


def positive(name, value):
    """Returns a number above 0: C takes 0 for the default."""
    if not isinstance(value, Real) or not value > 0:
        raise Invalid(f"{name}={value!r} is not a number above 0")
    return value


def seconds(name, value):
    """Returns nanoseconds for C; a value beyond its range means forever."""
    if not isinstance(value, Real) or not value >= 0:
        raise Invalid(f"{name}={value!r} is not a number of seconds")
    return int(min(value * SECOND, NEVER))


def text(name, value):
    """Returns the bytes of a text, which may not contain a zero byte."""
    if not isinstance(value, str) or "\0" in value:
        raise Invalid(f"{name}={value!r} is not a text")
    return value.encode()


def path(name, value):
    """Returns a path for C; the caller keeps it alive."""
    try:
        coded = os.fsencode(value)
    except TypeError as e:
        raise Invalid(f"{name}={value!r}: {e}") from None
    if b"\0" in coded:
        raise Invalid(f"{name}={value!r} is not a path: it has a zero in it")
    return ffi.new("char[]", coded)



# An exception in a function that the library calls, Ctrl-C included, cannot pass
# through C. It stops the call, which then raises it. Each thread has its own calls.
_raised = threading.local()


def stop_and_raise(kind, value, trace):
    """Keeps an exception, for def_extern(onerror=...)."""
    _raised.value = value


def stopped():
    """True if something was raised in the current call."""
    return getattr(_raised, "value", None) is not None


def raise_stopped():
    """Raises, once, what was raised in a callback of this thread."""
    value, _raised.value = getattr(_raised, "value", None), None
    if value is not None:
        raise value


def call(f, *args, turn=None):
    """Calls f(*args), and raises what was raised in a callback. `turn` is the turn of
    the object, if the call belongs to one."""
    _raised.value, _raised.turn = None, turn
    try:
        st = f(*args)
    finally:
        _raised.turn = None
    raise_stopped()
    return check(st)


def may_go_on():
    """Raises, in a callback, if the object of the call is to be closed."""
    turn = getattr(_raised, "turn", None)
    if turn is not None:
        turn.check()


# ---- arrays -------------------------------------------------------------------

_VOID, _MATRIX = ffi.typeof("void *"), ffi.typeof("kofn_matrix *")
_DTYPE = {np.dtype(np.float64): lib.KOFN_F64, np.dtype(np.float32): lib.KOFN_F32}


def numbers(x, name, kinds="fiub"):
    """Returns x as a NumPy array of numbers of their own type, which must be of these
    kinds."""
    if not isinstance(x, np.ndarray) and hasattr(x, "__dlpack_device__"):
        if x.__dlpack_device__()[0] != 1:
            raise Invalid(f"{name} does not lie in this machine's memory; "
                          "bring it here first, in PyTorch with .cpu()")
        x = np.from_dlpack(x.detach() if hasattr(x, "detach") else x)
    if is_sparse(x):
        raise Invalid(f"{name} is sparse, which it cannot be here; "
                      "its toarray() makes it dense")
    if np.ma.is_masked(x):
        raise Invalid(f"{name} has {np.ma.count_masked(x)} masked numbers, and what "
                      "is masked cannot be left out; x.filled(value) says what "
                      "stands for them")
    a = np.asarray(x)
    if a.dtype.kind == "O" and is_nullable(x):
        a = x.to_numpy(np.float64, na_value=np.nan)
    if a.dtype.kind not in kinds:
        raise wrong_kind(name, a.dtype)
    return a


def wrong_kind(name, dtype):
    """Returns the exception for numbers of a type that is refused here."""
    if dtype.kind == "c":
        return Invalid(f"{name} has numbers of type {dtype}; kofn.Matrix and kofn.matmul "
                       "take complex numbers, and here they must be real")
    return Invalid(f"{name} has numbers of type {dtype}; kofn computes with float64, "
                   "float32, complex128 and complex64")


def is_nullable(x):
    """True for a pandas table or column of nullable numbers (Float64, Int64,
    boolean), which NumPy sees as objects."""
    kinds = getattr(x, "dtypes", None)
    kinds = [kinds] if hasattr(kinds, "kind") else [] if kinds is None else list(kinds)
    return hasattr(x, "to_numpy") and bool(kinds) and \
        all(getattr(kind, "kind", "O") in "fiub" for kind in kinds)


def factor(x, dtype, name):
    """Returns array(x) in the type of its product with numbers of `dtype`: NumPy's
    rule, hence the wider type. x is complex only if it was, and then pairs(x) is what
    the library can read."""
    if type(x) is np.ndarray and x.dtype == dtype and x.dtype in _DTYPE:
        return array(x, dtype, name)  # the faster way
    a = numbers(x, name, "fiubc")
    wide = part(np.result_type(dtype, a.dtype))
    if a.dtype.kind == "c":
        check_dimensions(a, name)
        a = np.ascontiguousarray(a, pair(wide))
        return a if a.flags.aligned else a.copy()
    return array(a, wide, name)


def part(dtype):
    """Returns the type of the parts of numbers of this type, as the library has it."""
    return np.dtype(np.float32 if dtype in (np.float32, np.complex64) else np.float64)


def pair(dtype):
    """Returns the complex type with parts of this type."""
    return np.dtype(np.complex64 if dtype == np.float32 else np.complex128)


def pairs(a):
    """Returns a contiguous complex array, m x n or a vector, as a real one, m x 2n: the
    library's way to see it. It is not copied."""
    cols = 1 if a.ndim == 1 else a.shape[1]
    return a.view(part(a.dtype)).reshape(len(a), 2 * cols)


def check_dimensions(a, name):
    """Refuses an array that is neither a vector nor a matrix."""
    if a.ndim not in (1, 2):
        raise Invalid(f"{name} has {a.ndim} dimensions; 1 or 2 are needed")


def array(x, dtype=None, name="array"):
    """Returns x as a NumPy array that the library can read. It is copied once, unless
    its numbers are float64 or float32, aligned (and of `dtype`, if given), with
    contiguous rows. x may have __dlpack__ or the buffer protocol. Arrays on a GPU are
    refused."""
    if type(x) is np.ndarray and x.flags.c_contiguous and x.flags.aligned and \
            x.dtype in _DTYPE and x.ndim in (1, 2) and \
            (dtype is None or x.dtype == dtype):  # float64 equals None, too
        return x  # the faster way
    a = numbers(x, name)
    if a.dtype not in _DTYPE:
        a = a.astype(np.float64)
    if dtype is not None and a.dtype != dtype:
        a = a.astype(dtype)
    check_dimensions(a, name)
    size = a.itemsize
    whole_rows = a.shape[-1] <= 1 or a.strides[-1] == size
    if a.ndim == 2 and a.shape[0] > 1:
        whole_rows &= a.strides[0] >= size * a.shape[1] and \
            a.strides[0] % size == 0
    elif a.ndim == 1 and not whole_rows:
        # a column of a matrix: n x 1 with the row distance of the matrix
        whole_rows = a.strides[0] > 0 and a.strides[0] % size == 0
    return a if whole_rows and a.flags.aligned else a.copy("C")


def view(a, row=False):
    """Returns a kofn_matrix for an array from array(). A vector becomes one column,
    or one row, for which it must be contiguous. It borrows: keep the array."""
    size = a.itemsize
    if a.ndim == 1 and row:
        rows, cols, ld = 1, a.shape[0], a.shape[0]
    elif a.ndim == 1:
        rows, cols = a.shape[0], 1
        ld = a.strides[0] // size if rows > 1 else 1
    else:
        rows, cols = a.shape
        ld = a.strides[0] // size if rows > 1 else cols
    if a.flags.c_contiguous:  # the faster way
        data = ffi.from_buffer(a)
    else:
        data = ffi.cast(_VOID, a.__array_interface__["data"][0])
    return ffi.new(_MATRIX, (data, rows, cols, max(ld, cols), _DTYPE[a.dtype]))


def csr(A, name, kinds="fiub"):
    """Returns a SciPy sparse matrix as CSR with ordered rows and without duplicates,
    which are added in float64 or complex128. A is not changed."""
    from scipy.sparse import coo_matrix, csr_matrix

    if A.dtype.kind not in kinds:
        raise wrong_kind(name, A.dtype)
    wide = np.complex128 if A.dtype.kind == "c" else np.float64
    if len(A.shape) != 2:
        raise Invalid(f"{name} has {len(A.shape)} dimensions; 2 are needed")
    kind = getattr(A, "format", None)
    if kind == "csc" or (kind != "csr" and not hasattr(A, "tocoo")):
        A = A.tocsr()  # which keeps duplicates
    elif kind != "csr":
        A = A.tocoo()
        place = A.row, A.col
        return coo_matrix((A.data.astype(wide), place), A.shape).tocsr()
    made = csr_matrix((A.data, A.indices, A.indptr), A.shape)
    if made.has_canonical_format:
        return made
    made = csr_matrix((A.data.astype(wide), A.indices.copy(), A.indptr.copy()),
                      A.shape)
    made.sum_duplicates()
    return made


def sparse(A, name="A", kinds="fiub"):
    """Returns a kofn_sparse of a SciPy sparse matrix, and the arrays it borrows. A
    complex m x n matrix becomes a real m x 2n matrix, with both parts of an entry."""
    A = csr(A, name, kinds)
    ptr, col, (rows, cols) = A.indptr.astype(np.uint64), A.indices, A.shape
    if A.dtype.kind == "c":
        if cols >= 1 << 31:
            raise Invalid(f"{name} has {cols} columns; complex matrices have fewer than "
                          "2^31")
        val = np.require(A.data, np.complex128, "CA").view(np.float64)
        ptr, cols = 2 * ptr, 2 * cols
        twice = 2 * col.astype(np.uint32)
        col = np.stack([twice, twice + np.uint32(1)], 1).ravel()
    else:
        col, val = col.astype(np.uint32), np.require(A.data, np.float64, "CA")
    s = ffi.new("kofn_sparse *")
    s.rows, s.cols = rows, cols
    s.ptr = ffi.cast("size_t *", ptr.ctypes.data)
    s.col = ffi.cast("uint32_t *", col.ctypes.data)
    s.val = ffi.cast("double *", val.ctypes.data)
    return s, (ptr, col, val)


def operand(matrix):
    """Returns a kofn_operand of a kofn_matrix or a kofn_sparse, which it borrows."""
    o = ffi.new("kofn_operand *")
    if ffi.typeof(matrix) is ffi.typeof("kofn_sparse *"):
        o.sparse = matrix
    else:
        o.dense = matrix
    return o[0]


def is_sparse(A):
    """True for a SciPy sparse matrix."""
    return hasattr(A, "tocsr")
