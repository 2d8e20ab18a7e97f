"""Calls on one object take turns.

A handle of the library is for one thread at a time, and Python's threads share
objects freely: whoever comes while a call is under way waits for its end.

A function that the library calls back may ask for another object's turn, but not for
one that waits for itself: neither the object whose call it is part of, nor one whose
call waits for that one.  Who waits for whom is written down, by functions that are
called back only, so that this is an error and not a wait without end.
"""
import contextlib
import os
import threading

from ._lib import Error

_here = threading.local()  # .of: turns whose functions this thread is in
_graph = threading.Lock()
_waits = {}                # (turn, turn): so many calls of one's are in the other


def _after_fork():
    """Other threads are not here, nor what they held."""
    global _graph
    _graph = threading.Lock()
    _waits.clear()


os.register_at_fork(after_in_child=_after_fork)


class Turn:
    """Whose turn it is: `with turn(): ...` is a call on the object of that name."""

    def __init__(self, name):
        self.name = name
        self.closing = 0  # threads that wait to close it
        self._lock = threading.RLock()
        self._process = os.getpid()

    def __call__(self):
        """The lock, which is C's own where nothing is to be written down: Ctrl-C
        then comes before it is taken or within `with`, and never between."""
        if self._process != os.getpid():  # its owner may not be in this process
            self._lock, self._process = threading.RLock(), os.getpid()
        if self._lock._is_owned():
            raise Error(f"{self.name} is in the middle of a call, which this one is "
                        "made from; use another object, or make this call later")
        within = getattr(_here, "of", ())
        return self._nested(within) if within else self._lock

    @contextlib.contextmanager
    def _nested(self, within):
        edges = [(turn, self) for turn in within]
        with _graph:
            if self in within or any(_leads(self, turn) for turn in within):
                raise Error(f"{self.name} waits for the function that this call is "
                            "made from, and the function would wait for it; use "
                            "another object")
            for edge in edges:
                _waits[edge] = _waits.get(edge, 0) + 1
        try:
            with self._lock:
                yield
        finally:
            with _graph:
                for edge in edges:
                    _waits[edge] -= 1
                    if not _waits[edge]:
                        del _waits[edge]

    @contextlib.contextmanager
    def called_back(self):
        """For the time of a function that the library calls for it."""
        within = getattr(_here, "of", ())
        _here.of = (*within, self)
        try:
            yield
        finally:
            _here.of = within

    @contextlib.contextmanager
    def to_close(self):
        """As a call, and the one that is under way ends soon, by check()."""
        self.closing += 1
        try:
            with self():
                yield
        finally:
            self.closing -= 1

    def stop(self, atmost):
        """Take it, to close what it is of, if it can be had within so many seconds;
        go_on() gives it back."""
        self.closing += 1
        if self._lock.acquire(timeout=atmost):
            return True
        self.closing -= 1
        return False

    def go_on(self):
        self._lock.release()
        self.closing -= 1

    def check(self):
        """Raise where another thread waits to close it."""
        if self.closing:
            raise Error(f"{self.name} is being closed by another thread")


def _leads(turn, to):
    """Whether a call on `turn` waits for one on `to`."""
    seen, left = set(), [turn]
    while left:
        at = left.pop()
        if at is to:
            return True
        if at not in seen:
            seen.add(at)
            left += [b for a, b in _waits if a is at]
    return False
