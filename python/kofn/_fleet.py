"""Where the workers are: ports, from a few words."""
import ctypes
import functools
import os
import signal
import tempfile
import time
from typing import NamedTuple

from . import _failed, _lib
from ._kernel import Kernel, Part
from ._lib import Invalid, SECOND, check, ffi, lib, new

# Seconds between SIGTERM and SIGKILL for a process that does not end.
GRACE = 0.2


def faults(words):
    """A kofn_faults from "straggle=0.1,delay=0.05", a dict, or NULL."""
    if not words:
        return ffi.NULL
    if isinstance(words, dict):
        words = ",".join(f"{k}={v}" for k, v in words.items())
    w = _lib.begun("kofn_faults")
    check(lib.kofn_faults_parse(w, _lib.text("faults", words)))
    return w


def _keep_memory():
    """Have malloc of this process, which is a worker's alone, keep up to 64 MiB that
    is freed. Else each round gives its vectors back to the system and faults them in
    again. The figures are the largest that glibc comes to by itself."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # not glibc
        return
    mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD
    mallopt(-1, 64 << 20)  # M_TRIM_THRESHOLD


class Keys(NamedTuple):
    """Whose keys are used at an address, as the user gives them."""

    keys: object = None
    insecure: bool = False
    tls_ca: object = None
    tls_cert: object = None
    tls_key: object = None


def net_options(who):
    """Options of the network of such Keys, and what they borrow."""
    files = {"tls_ca": who.tls_ca, "tls_cert": who.tls_cert,
             "tls_key": who.tls_key}
    missing = [name for name, path in files.items() if not path]
    if 0 < len(missing) < 3:
        raise Invalid(f"{missing[0]}= is not given; give tls_ca=, tls_cert= and "
                      "tls_key= together")
    o = _lib.begun("kofn_net_options", insecure=bool(who.insecure))
    borrowed = []
    for name, path in {"keys": who.keys, **files}.items():
        if path:
            borrowed.append(_lib.path(name, path))
            setattr(o, name, borrowed[-1])
    return o, borrowed


@ffi.def_extern()
def kofn_py_news(ud, words):
    ffi.from_handle(ud).news.append(ffi.string(words).decode(errors="replace"))


@ffi.def_extern()
def kofn_py_ended(ud):
    return ffi.from_handle(ud).ended()


@ffi.def_extern(error=-1)
def kofn_py_start(ud):
    return ffi.from_handle(ud).start()


@ffi.def_extern(error=-1)
def kofn_py_kill(ud, process):
    return ffi.from_handle(ud).kill(process)


@ffi.def_extern(error=lib.KOFN_STATE)
def kofn_py_operand(ud, name, dense, sparse):
    """The matrix that this process has since it was forked."""
    operand = ffi.from_handle(ud)
    dense[0], sparse[0] = operand.dense, operand.sparse
    return lib.KOFN_OK


@ffi.def_extern()
def kofn_py_operand_done(ud):
    pass


@ffi.def_extern(error=lib.KOFN_LEAVE_NOW, onerror=_lib.stop_and_raise)
def kofn_py_serve(ud, news):
    """Asked every millisecond or so, which is when Python sees signals."""
    orphan = Port.parent is not None and os.getppid() != Port.parent
    return lib.KOFN_LEAVE_NOW if orphan or _lib.stopped() else lib.KOFN_STAY


class Port:
    """A port to `workers` workers: "threads" of this process, "sim" (a
    deterministic simulator), "processes" of this machine, or whoever comes to
    an address."""

    parent = None  # of a process that is a worker: the number of its parent

    def __init__(self, where, workers, faults_words, keys, serve, joiners=0,
                 operand=None):
        """operand: the kofn_operand that will be placed.  Processes have its numbers
        since they are forked, and make their blocks of these."""
        self.where = where
        self.news = []
        self.children = []
        self.spare = []  # pipes on which those wait who are to join by events
        self.lost = 0
        self.folder = None
        self.named = None  # what children call the operand that they have
        self.keep = []
        self.faults = faults(faults_words)
        if where == "threads":
            self.port = new(lib.kofn_port_threads, workers, self.faults)
        elif where == "sim":
            self.port = new(lib.kofn_port_sim, workers, self.faults)
        elif where == "processes":
            self._processes(workers, joiners, serve, operand)
        elif "://" in where:
            self._listen(where, workers, keys)
        else:
            raise Invalid(f'where={where!r} is none of "threads", "sim", '
                          '"processes" and an address such as '
                          '"tcp://127.0.0.1:5555"')

    def _listen(self, address, workers, keys):
        options, borrowed = net_options(keys)
        transport = new(lib.kofn_net_listen, _lib.text("address", address), options)
        self.endpoint = ffi.string(lib.kofn_net_endpoint(transport)).decode()
        handle = ffi.new_handle(self)
        away = _lib.begun("kofn_away_options", workers=workers,
                          news=lib.kofn_py_news, ud=handle)
        if self.children:
            away.ended = lib.kofn_py_ended
            away.start = lib.kofn_py_start
            away.kill = lib.kofn_py_kill
            away.alone = True  # ours: each answers for itself
            if self.named:
                away.source = self.named
        self.keep += [options, borrowed, away, handle]
        self.port = new(lib.kofn_port_away, transport, away)

    def _processes(self, workers, joiners, serve, operand):
        """Those who are to join later are forked now as well, before there are
        threads and connections that a child would have a share in."""
        self.folder = tempfile.mkdtemp(prefix="kofn.")
        address = f"ipc://{self.folder}/socket"
        if operand is not None:
            self.named = ffi.new("char[]", b"memory")
            serve = functools.partial(serve, operand=operand)
        Port.parent = os.getpid()  # a child may begin after its parent's end
        for _ in range(workers):
            child = os.fork()
            if child == 0:
                self._live(address, serve)
            self.children.append(child)
        for _ in range(joiners):
            here, there = os.pipe()
            child = os.fork()
            if child == 0:
                self._live(address, serve, here,
                           [there, *(end for _, end in self.spare)])
            os.close(here)
            self.spare.append((child, there))
        Port.parent = None
        self._listen(address, workers, Keys())

    @staticmethod
    def _live(address, serve, begin=None, others=()):
        """A child's whole life, from when it is told on that pipe until it is told to
        go or has lost who began it.  That one may be long at something else between
        two rounds, or before the first, and answers nothing then."""
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            _failed.home = os.path.dirname(address[len("ipc://"):])
            _keep_memory()
            for end in others:
                os.close(end)  # so that it reads the end of who began it
            if begin is not None and not os.read(begin, 1):
                return
            serve(address, staged=True)
        finally:
            os._exit(0)

    def start(self):
        """The next one joins."""
        if not self.spare:
            return -1
        child, end = self.spare.pop(0)
        self.children.append(child)
        os.write(end, b"!")
        os.close(end)
        return 0

    def kill(self, process):
        """As an event says of a worker with that number."""
        if process not in self.children:
            return -1
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        self.children.remove(process)
        self.lost += 1
        return 0

    def ended(self):
        """How many of the children have; those are no children any more."""
        before = len(self.children)
        self.children = [child for child in self.children
                         if os.waitpid(child, os.WNOHANG) == (0, 0)]
        self.lost += before - len(self.children)
        return self.lost

    def _signal(self, number):
        """Send it to every child that is there."""
        for child in self.children:
            try:
                os.kill(child, number)
            except ProcessLookupError:
                pass

    def _reap(self, how):
        """Forget the children that have ended."""
        left = []
        for child in self.children:
            try:
                if os.waitpid(child, how) == (0, 0):
                    left.append(child)
            except ChildProcessError:  # it has been waited for elsewhere
                pass
        self.children = left

    def close(self):
        """After the job has been closed, which closes the port."""
        for child, end in self.spare:
            os.close(end)
            self.children.append(child)
        self.spare = []
        try:
            self._signal(signal.SIGTERM)
            end = time.monotonic() + GRACE
            while self.children and time.monotonic() < end:
                self._reap(os.WNOHANG)
                time.sleep(0.001 if self.children else 0)
        finally:  # one that is stopped takes no other signal
            self._signal(signal.SIGKILL)
            self._reap(0)
        if self.folder:
            for name in os.listdir(self.folder):
                os.unlink(os.path.join(self.folder, name))
            os.rmdir(self.folder)
            self.folder = None


def serve(address, f=None, keys=None, insecure=False, patience=None,
          faults_words=None, multiply=None, keep=None, tls_ca=None,
          tls_cert=None, tls_key=None):
    """A worker's whole life at that address.

    f         f(part, parts, x) is what sums are made of; without one the worker
              computes products and regressions.  x is read-only.
    multiply  multiply(a, b) makes the products of dense blocks, with PyTorch or
              whatever there is; without one BLAS does.  a is m x k and b k x n,
              read-only views; what it returns is
              m x n, of their type, as np.asarray takes it, and exact to the
              rounding of that type (so on a GPU not in TF32).  It is called for as
              much at a time as takes some milliseconds.  What it raises fails the
              task, which another worker is then asked for.
    keep      keep(block) is called once of a block that stays here (a worker has
              one, or four), until its numbers change; multiply is then given rows and columns of what it
              returned, K[i:j, k:l], in the place of the block's: a block is
              brought to a GPU once so.  The other factor comes as it is.
    keys, insecure, tls_ca, tls_cert, tls_key
              as the options of kofn worker.

    >>> import numpy as np, kofn
    >>> def multiply(a, b):        # a job.py for python3 -m kofn worker --module
    ...     return np.einsum("ik,kj->ij", a, b)

    Ends when it is dismissed, has found no
    coordinator for `patience` seconds, or by Ctrl-C, at the next look at messages:
    of a function that is being computed, at its end.
    """
    life(address, f, Keys(keys, insecure, tls_ca, tls_cert, tls_key), patience,
         faults_words, multiply, keep)


def life(address, f=None, keys=Keys(), patience=None, faults_words=None,
         multiply=None, keep=None, staged=False, operand=None):
    """serve(); `staged` ones let events slow down and spoil them.  Blocks of `operand`,
    a kofn_operand, are made here."""
    if keep is not None and multiply is None:
        raise Invalid("keep= is what multiply= is given, and there is no "
                      "multiply=")
    kernel = ffi.new_handle(Kernel(multiply, keep)) if multiply else None
    options, borrowed = net_options(keys)
    transport = new(lib.kofn_net_connect, _lib.text("address", address), options)
    o = _lib.begun("kofn_serve_options")
    o.formulas = lib.kofn_formulas
    sky = faults(faults_words)
    o.faults = sky
    handle = None
    if f is not None:
        handle = ffi.new_handle(Part(f))
        o.f = lib.kofn_py_part
        o.ctx = handle
    if kernel:
        o.multiply = lib.kofn_py_multiply
        o.multiply_ctx = kernel
    o.patience = _lib.seconds("patience", patience or 0)
    o.staged = staged
    o.watch = lib.kofn_py_serve
    if operand is not None:
        held = ffi.new_handle(operand)
        o.ud = held
        o.operand = lib.kofn_py_operand
        o.operand_done = lib.kofn_py_operand_done
    _lib.call(lib.kofn_serve, transport, o)
    del borrowed, handle, kernel, sky
