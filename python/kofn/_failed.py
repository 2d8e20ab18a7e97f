"""Brings an exception of the user's function from a worker to the caller.

Threads share the exception object. Processes of this machine leave it in the folder
of their socket, where only this user may write. Workers at an address send the
traceback as text: objects are never made from their data.
"""
import collections
import hashlib
import os
import pickle
import sys
import time
import traceback

from ._lib import Late, TaskFailed, TooFewWorkers, ffi, lib

WORDS = 4000  # longest text; a worker's answer has room for a little more
_HEAD = "Traceback (most recent call last)"

home = None  # the folder, in a process forked as a worker
_printed = {}  # what a worker of this process has printed


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


def tell(told=None):
    """Reports the current exception of a worker, to `told` if that is in this process.
    Returns a failure status."""
    if told is not None:
        told.add()
    if home is not None:
        _leave()
    _print_first(_printed if told is None else told.printed)
    text = traceback.format_exc().encode("ascii", "backslashreplace")
    if len(text) > WORDS:  # the end names the exception
        head = f"{_HEAD}:\n  ...\n".encode()
        text = head + text[len(head) - WORDS:]
    return lib.kofn_say(lib.KOFN_INVAL, b"%s", ffi.new("char[]", text))


def _print_first(printed):
    """Prints the current exception, unless one of its type has been printed that came
    from the same line. `printed` has those of this process; those of processes that
    share a folder are there."""
    kind, _, at = sys.exc_info()
    last = traceback.extract_tb(at)[-1]
    key = f"{kind.__qualname__} {last.filename}:{last.lineno}"
    if home is not None:
        if not _is_new_file(f"printed.{hashlib.sha256(key.encode()).hexdigest()}"):
            return
    else:
        mine = object()  # other threads may be here
        if printed.setdefault(key, mine) is not mine:
            return
    print(f"{traceback.format_exc()}kofn: the task fails and goes to other workers; "
          "further exceptions of this line are not printed\n",
          end="", file=sys.stderr, flush=True)  # in one piece, as others write too


def _is_new_file(name):
    """Makes an empty file in the folder of the socket. False if it is there."""
    try:
        os.close(os.open(os.path.join(home, name), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    except OSError:  # there is no such folder any more
        pass
    return True


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
        self.printed = {}
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
