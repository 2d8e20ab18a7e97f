"""Workers of kofn that a process keeps as its children, next to Dask, Ray or Spark."""
import os
import subprocess
import sys
import threading

# What a child runs until kofn itself watches its parent. Importing takes a while, and the
# parent may be killed meanwhile. SIGKILL is then sent by the kernel. The parent may
# have ended even before that was asked for. Parent 0: another program ends the child. The
# current folder is not searched.
START = """
import ctypes, os, sys
parent, folder = sys.argv[1:3]
if parent != "0":
    ctypes.CDLL(None).prctl(1, 9)
    if os.getppid() != int(parent):
        os._exit(1)
del sys.argv[1:3], sys.path[0]
sys.path.append(folder)
from kofn.__main__ import main
main()
"""
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Variables with the number of threads of a BLAS.
THREADS = "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"
# Seconds between two starts of a worker that was killed, and for one that does not end.
PAUSE, LAST = 1, 5


def command(parent, endpoint, options):
    """Returns the words that run a worker for that address."""
    return [sys.executable, "-c", START, str(parent), FOLDER, "worker", endpoint,
            "--with-parent", *options]


def options(keys, insecure, module, grace, patience):
    """Returns the options of a worker. `keys` is a folder of its machine."""
    given = ["--patience", str(patience), "--grace", str(grace)]
    given += ["--insecure"] if insecure else []
    given += ["--module", os.fspath(module)] if module else []
    return given + (["--keys", os.fspath(keys)] if keys else [])


def reached(endpoint, host):
    """Returns the endpoint with that host if it listens on all addresses."""
    for every in "tcp://0.0.0.0:", "tcp://[::]:":
        if endpoint.startswith(every):
            return f"tcp://{host}:{endpoint[len(every):]}"
    return endpoint


class Child:
    """Keeps one worker as a child of this process, with that number of threads.

    A child that was killed is started again, and one that left is not. The thread that
    starts a child also waits for its end, because the kernel ends a child with the
    thread that has started it."""

    def __init__(self, endpoint, options, threads, grace):
        self.words = command(os.getpid(), endpoint, options)
        self.environment = dict(os.environ, **dict.fromkeys(THREADS, str(threads)))
        self.grace = grace
        self.process, self.lock, self.ended = None, threading.Lock(), threading.Event()

    def begin(self):
        """Keeps it on a thread of its own."""
        threading.Thread(target=self.keep, daemon=True, name="kofn").start()

    def keep(self):
        """Returns the exit status of the child when it has left, and None after end()."""
        while self._start():
            if (status := self.process.wait()) >= 0:
                return status
            self.ended.wait(PAUSE)
        return None

    def _start(self):
        with self.lock:
            if self.ended.is_set():
                return False
            self.process = subprocess.Popen(self.words, env=self.environment,
                                            stdin=subprocess.DEVNULL)
            return True

    def end(self):
        """Lets the child finish its tasks, and kills it if it does not end."""
        with self.lock:
            self.ended.set()
            if self.process is not None:
                self.process.terminate()
                last = threading.Timer(self.grace + LAST, self.process.kill)
                last.daemon = True
                last.start()
