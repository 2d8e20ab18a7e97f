"""What a worker has besides its functions: files, its parent, and signals."""
import ctypes
import os
import signal
import threading

from ._lib import Error, Invalid, ffi, lib

PR_SET_PDEATHSIG = 1


class Folder:
    """Opens the coordinator's input files in a folder of this machine."""

    def __init__(self, folder):
        self.folder = os.fspath(folder)
        if not os.path.isdir(self.folder):
            raise Invalid(f"data_path={self.folder!r} is no folder; give the folder that "
                          "has the coordinator's input files")
        self.file = None

    def open(self, name, dense, sparse):
        """Opens the file for kofn_serve_options.operand, and returns the status."""
        out = ffi.new("kofn_file **")
        name = os.path.join(os.fsencode(self.folder), ffi.string(name))
        st = lib.kofn_file_open(out, name, lib.KOFN_FILE_READ | lib.KOFN_FILE_COMPLEX)
        if not st:
            self.file = out[0]
            dense[0] = self.file.matrix.dense
            sparse[0] = self.file.matrix.sparse
        return st

    def close(self):
        if self.file is not None:
            lib.kofn_file_free(self.file)
        self.file = None


class Leaving:
    """While a worker serves, handles SIGTERM if `grace` is given, and the end of the
    parent process if `with_parent` is true. Only the main thread of Python can handle
    signals. On others, the end of the parent is noticed between two tasks."""

    present = None  # the one in charge, for all workers of this process
    caught = False  # SIGTERM came, or the parent has ended

    def __init__(self, grace, with_parent):
        self.term = grace is not None
        self.parent = os.getppid() if with_parent else None
        self.asked = False
        self.former = {}
        if self.parent == 1:
            raise Error("with_parent: the process that started this one has ended, or "
                        "it is process 1, which never ends")

    def orphan(self):
        return self.parent is not None and os.getppid() != self.parent

    def _on_term(self, number, frame):
        if self.asked:
            os._exit(128 + signal.SIGTERM)
        self.asked = Leaving.caught = True

    def _on_parent(self, number, frame):
        if self.orphan() and not self.term:
            os._exit(128 + signal.SIGTERM)
        if self.orphan():
            self.asked = Leaving.caught = True

    def _handle(self, number, handler):
        self.former[number] = signal.signal(number, handler)

    def __enter__(self):
        if not self.term and self.parent is None:
            return self
        if threading.current_thread() is threading.main_thread():
            if self.term:
                self._handle(signal.SIGTERM, self._on_term)
            if self.parent is not None:
                self._handle(signal.SIGUSR2, self._on_parent)
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGUSR2)
        Leaving.present = self
        return self

    def __exit__(self, *_):
        if Leaving.present is self:
            Leaving.present = None
        if signal.SIGUSR2 in self.former:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0)
        for number, handler in self.former.items():
            signal.signal(number, handler)


def is_asked_to_leave():
    """True if a worker of this process is to finish its tasks and leave."""
    now = Leaving.present
    return now is not None and (now.asked or now.orphan())


def size(words):
    """Returns a number of bytes, given as the command has it: with k, M or G."""
    scale = {"k": 10**3, "M": 10**6, "G": 10**9}.get(words[-1:], 1)
    digits = words[:-1] if scale > 1 else words
    if not (digits.isascii() and digits.isdigit()) or int(digits) * scale >= 2**63 \
            or int(digits) == 0:
        raise ValueError(words)
    return int(digits) * scale
