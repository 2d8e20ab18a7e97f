"""Brings an exception of the user's function from a worker to the caller.

Threads share the exception object. Processes of this machine leave it in the folder
of their socket, where only this user may write. Workers at an address send the
traceback as text: objects are never made from their data.
"""
import collections
import os
import pickle
import sys
import time
import traceback

from ._lib import Late, TaskFailed, TooFewWorkers, ffi, lib

WORDS = 4000  # longest text; a worker's answer has room for a little more
_HEAD = "Traceback (most recent call last)"

home = None  # the folder, in a process forked as a worker


def _again(make, arguments):
    """Makes an exception without running its type's own constructor."""
    return make.__new__(make, *arguments)


def _packed(e):
    """Returns e as bytes that restore its type; None if that is impossible."""
    for what in (e, (type(e), e.args), (type(e), (str(e),))):
        try:
            data = pickle.dumps(what)
            if type(_unpacked(data)) is type(e):
                return data
        except Exception:  # a user's type may raise anything
            pass
    return None


def _unpacked(data):
    what = pickle.loads(data)
    return _again(*what) if isinstance(what, tuple) else what


def tell():
    """Reports the current exception of a worker. Returns a failure status."""
    if home is not None:
        _leave()
    text = traceback.format_exc().encode("ascii", "backslashreplace")
    if len(text) > WORDS:  # the end names the exception
        head = f"{_HEAD}:\n  ...\n".encode()
        text = head + text[len(head) - WORDS:]
    return lib.kofn_say(lib.KOFN_INVAL, b"%s", ffi.new("char[]", text))


def _leave():
    """Leaves it in the folder of the socket."""
    kind, e = _this()
    row = time.monotonic(), _packed(e), kind, traceback.format_exc()
    name = os.path.join(home, f"raised.{os.getpid()}")
    try:
        with open(name + ".new", "wb") as f:
            pickle.dump(row, f)
        os.rename(name + ".new", name)
    except OSError:  # it was printed
        pass


def _this():
    kind, e, _ = sys.exc_info()
    return kind.__qualname__, e


class Told:
    """The exceptions of a job's functions."""

    def __init__(self):
        self.folder = None
        self._here = collections.deque(maxlen=64)

    def add(self):
        """Adds the current exception of a thread of this process."""
        kind, e = _this()
        self._here.append((time.monotonic(), e, kind, traceback.format_exc()))

    def _rows(self):
        yield from list(self._here)
        for name in os.listdir(self.folder) if self.folder else ():
            if not name.startswith("raised.") or name.endswith(".new"):
                continue
            with open(os.path.join(self.folder, name), "rb") as f:
                at, data, kind, text = pickle.load(f)
            yield at, data and _unpacked(data), kind, text

    def forget(self):
        if self._here:
            self._here.clear()

    def raise_for(self, error, began, job):
        """Raises the first exception since `began` instead of a round's error, which
        says only which workers are missing."""
        if not isinstance(error, (TooFewWorkers, Late)):
            return
        rows = [row for row in self._rows() if row[0] >= began]
        self.forget()
        if rows:
            _, e, kind, text = min(rows, key=lambda row: row[0])
        else:
            text = ffi.string(lib.kofn_job_failure(job)).decode()
            e, kind = None, "an exception"
            if _HEAD not in text:
                return
        where = TaskFailed(f"a function raised {kind} on a worker, and no other "
                           f"worker made up for it:\n\n{text}")
        where.status = error.status
        if e is None:
            raise where from error
        where.__cause__ = error
        # the worker's frames hold arrays that belong to the library again
        e.__context__ = None
        raise e.with_traceback(None) from where
