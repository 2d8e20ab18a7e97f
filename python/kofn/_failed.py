"""What a function of the user's raised on a worker, brought home.

Among threads the exception is there; processes of this machine leave it in the folder
of their socket, in which only this user may write.  Of those at an address the
traceback comes, as text: what they send is not believed enough to make objects of it.
"""
import collections
import os
import pickle
import sys
import time
import traceback

from ._lib import Late, TaskFailed, TooFewWorkers, ffi, lib

WORDS = 4000  # that a worker's answer has room for, and a little less
_HEAD = "Traceback (most recent call last)"

home = None  # the folder, in a process that was forked to be a worker


def _again(make, arguments):
    """An exception, without what its type makes of arguments."""
    return make.__new__(make, *arguments)


def _packed(e):
    """e in bytes that make one of its type; None where that cannot be had."""
    for what in (e, (type(e), e.args), (type(e), (str(e),))):
        try:
            data = pickle.dumps(what)
            if type(_unpacked(data)) is type(e):
                return data
        except Exception:  # whatever a type of the user's makes of that
            pass
    return None


def _unpacked(data):
    what = pickle.loads(data)
    return _again(*what) if isinstance(what, tuple) else what


def tell():
    """Of the exception that is being handled, in a worker; a status of failure."""
    if home is not None:
        _leave()
    text = traceback.format_exc().encode("ascii", "backslashreplace")
    if len(text) > WORDS:  # what was raised is at its end
        head = f"{_HEAD}:\n  ...\n".encode()
        text = head + text[len(head) - WORDS:]
    return lib.kofn_say(lib.KOFN_INVAL, b"%s", ffi.new("char[]", text))


def _leave():
    """In the folder of the socket."""
    kind, e = _this()
    row = time.monotonic(), _packed(e), kind, traceback.format_exc()
    name = os.path.join(home, f"raised.{os.getpid()}")
    try:
        with open(name + ".new", "wb") as f:
            pickle.dump(row, f)
        os.rename(name + ".new", name)
    except OSError:  # it has been printed
        pass


def _this():
    kind, e, _ = sys.exc_info()
    return kind.__qualname__, e


class Told:
    """What the functions of a job raised."""

    def __init__(self):
        self.folder = None
        self._here = collections.deque(maxlen=64)

    def add(self):
        """The exception that is being handled, on a thread of this process."""
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
        """Raise the first exception since then, in the place of a round's error
        that says only who is missing."""
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
        # frames of the worker hold numbers that are the library's again
        e.__context__ = None
        raise e.with_traceback(None) from where
