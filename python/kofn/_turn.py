"""Calls on one object take turns.

A handle of the library is for one thread at a time, but Python's threads share
objects freely. A thread that calls while another call runs waits for its end.

A function that the library calls back may take another object's turn. It may not take
the turn of its own object, or of one with a call that waits for its own object.
Called-back functions record such waits, so that a deadlock becomes an error.
"""
import contextlib
import os
import threading

from ._lib import Error

_here = threading.local()  # .of: turns of the functions that this thread is in
_graph = threading.Lock()
_waits = {}                # (turn, turn): calls of the first inside a call of the second


def _after_fork():
    """Forgets other threads and their turns in a forked child."""
    global _graph
    _graph = threading.Lock()
    _waits.clear()


os.register_at_fork(after_in_child=_after_fork)


class Turn:
    """A turn: `with turn(): ...` is a call on the object of that name."""

    def __init__(self, name):
        self.name = name
        self.closing = 0  # threads that wait to close it
        self._lock = threading.RLock()
        self._process = os.getpid()

    def __call__(self):
        """Returns the lock. It is C's own lock if nothing is recorded: then Ctrl-C
        comes before it is taken or within `with`, never between."""
        if self._process != os.getpid():  # its owner may be in another process
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
        """Marks the time in which the library calls a function back."""
        within = getattr(_here, "of", ())
        _here.of = (*within, self)
        try:
            yield
        finally:
            _here.of = within

    @contextlib.contextmanager
    def to_close(self):
        """Takes the turn to close: the current call ends soon, by check()."""
        self.closing += 1
        try:
            with self():
                yield
        finally:
            self.closing -= 1

    def stop(self, atmost):
        """Takes the turn to close its object, if that succeeds within `atmost`
        seconds. go_on() gives it back."""
        self.closing += 1
        if self._lock.acquire(timeout=atmost):
            return True
        self.closing -= 1
        return False

    def go_on(self):
        self._lock.release()
        self.closing -= 1

    def check(self):
        """Raises if another thread waits to close the object."""
        if self.closing:
            raise Error(f"{self.name} is being closed by another thread")


def _leads(turn, to):
    """True if a call on `turn` waits for one on `to`."""
    seen, left = set(), [turn]
    while left:
        at = left.pop()
        if at is to:
            return True
        if at not in seen:
            seen.add(at)
            left += [b for a, b in _waits if a is at]
    return False
