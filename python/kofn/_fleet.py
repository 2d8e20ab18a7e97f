"""Ports: the places of the workers, from a few words."""
import copy
import ctypes
import functools
import os
import signal
import tempfile
import time
import weakref
from numbers import Real
from typing import NamedTuple

from . import _failed, _lib, _worker
from ._kernel import Kernel, Part
from ._lib import Invalid, SECOND, check, ffi, lib, new

# Seconds between SIGTERM and SIGKILL for a process that does not end.
GRACE = 0.2


def faults(words):
    """Returns a kofn_faults for "straggle=0.1,delay=0.05" or a dict, or NULL."""
    if not words:
        return ffi.NULL
    if isinstance(words, dict):
        words = ",".join(f"{k}={v}" for k, v in words.items())
    w = _lib.begun("kofn_faults")
    check(lib.kofn_faults_parse(w, _lib.text("faults", words)))
    return w


def _keep_memory():
    """Lets malloc keep up to 64 MiB of freed memory. The process belongs to a worker.
    Otherwise each round returns its vectors to the system and faults them in again.
    The values are the largest that glibc would choose itself."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # not glibc
        return
    mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD
    mallopt(-1, 64 << 20)  # M_TRIM_THRESHOLD


class Keys(NamedTuple):
    """The keys for an address, as the user gives them."""

    keys: object = None
    insecure: bool = False
    tls_ca: object = None
    tls_cert: object = None
    tls_key: object = None


def net_options(who):
    """Returns network options for such Keys, and the objects that they borrow."""
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
    """Returns the matrix that this process has had since it was forked, or that a
    folder has."""
    operand = ffi.from_handle(ud)
    if isinstance(operand, _worker.Folder):
        return operand.open(name, dense, sparse)
    dense[0], sparse[0] = operand.dense, operand.sparse
    return lib.KOFN_OK


@ffi.def_extern()
def kofn_py_operand_done(ud):
    operand = ffi.from_handle(ud)
    if isinstance(operand, _worker.Folder):
        operand.close()


@ffi.def_extern(error=lib.KOFN_LEAVE_NOW, onerror=_lib.stop_and_raise)
def kofn_py_serve(ud, news):
    """Called about every millisecond, so that Python handles signals."""
    orphan = Port.parent is not None and os.getppid() != Port.parent
    if orphan or _lib.stopped():
        return lib.KOFN_LEAVE_NOW
    return lib.KOFN_LEAVE_SOON if _worker.is_asked_to_leave() else lib.KOFN_STAY


class Port:
    """A port to `workers` workers: "threads" of this process, "sim" (a deterministic
    simulator), "processes" of this machine, or remote workers that connect to an
    address."""

    parent = None  # in a worker process: the number of its parent process

    def __init__(self, where, workers, faults_words, keys, serve, joiners=0,
                 operand=None, alone=False):
        """operand: the kofn_operand that will be placed. Processes have its numbers
        since they are forked, and make their blocks from them.
        alone: every worker is its own principal, whatever key or host it has."""
        self.where = where
        self.news = []
        self.children = []
        self.alone = alone
        self.spare = []  # pipes of the processes that will join by events
        self.lost = 0
        self.folder = None
        self.named = None  # name of the operand that the children have
        self.keep = []
        self.faults = faults(faults_words)
        self.told = None  # folder in which workers write their exceptions
        if isinstance(where, Fleet):
            self._join(where, workers)
        elif where == "threads":
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
                          news=lib.kofn_py_news, ud=handle, alone=self.alone)
        if self.children:
            away.ended = lib.kofn_py_ended
            away.start = lib.kofn_py_start
            away.kill = lib.kofn_py_kill
            away.alone = True  # started here: each is its own principal
            if self.named:
                away.source = self.named
        self.keep += [options, borrowed, away, handle]
        self.port = new(lib.kofn_port_away, transport, away)

    def _join(self, fleet, workers):
        """Opens a port for one job on a fleet."""
        trunk = fleet._open()
        handle = ffi.new_handle(self)
        away = _lib.begun("kofn_away_options", workers=workers, weight=fleet.weight,
                          news=lib.kofn_py_news, ud=handle,
                          alone=self.alone or bool(trunk.children))
        if trunk.children or trunk.place is not None:
            self.ended = trunk.ended
            away.ended = lib.kofn_py_ended
        self.told = trunk.folder
        self.keep += [away, handle, trunk]
        self.port = new(lib.kofn_fleet_port, trunk.port, away)

    def _processes(self, workers, joiners, serve, operand):
        """Forks all processes, also those that join later. At this time there are no
        threads or connections that a child would share."""
        self.folder = self.told = tempfile.mkdtemp(prefix="kofn.")
        address = f"ipc://{self.folder}/socket"
        if operand is not None:
            self.named = ffi.new("char[]", b"memory")
            serve = functools.partial(serve, operand=operand)
        Port.parent = os.getpid()  # a child may begin after its parent has ended
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
        """Runs a child: from the word on the pipe until it is dismissed or its parent
        has ended. Between two rounds, or before the first, the parent may be busy for
        long and not answer."""
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            _failed.home = os.path.dirname(address[len("ipc://"):])
            _keep_memory()
            for end in others:
                os.close(end)  # so that the child notices the end of its parent
            if begin is not None and not os.read(begin, 1):
                return
            serve(address, staged=True)
        finally:
            os._exit(0)

    def start(self):
        """Lets the next one join."""
        if not self.spare:
            return -1
        child, end = self.spare.pop(0)
        self.children.append(child)
        os.write(end, b"!")
        os.close(end)
        return 0

    def kill(self, process):
        """Kills the worker with that process number, as an event demands."""
        if process not in self.children:
            return -1
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        self.children.remove(process)
        self.lost += 1
        return 0

    def ended(self):
        """Returns how many children have ended, and forgets those."""
        before = len(self.children)
        self.children = [child for child in self.children
                         if os.waitpid(child, os.WNOHANG) == (0, 0)]
        self.lost += before - len(self.children)
        return self.lost

    def _signal(self, number):
        """Sends the signal to every child."""
        for child in self.children:
            try:
                os.kill(child, number)
            except ProcessLookupError:
                pass

    def _reap(self, how):
        """Forgets the children that have ended."""
        left = []
        for child in self.children:
            try:
                if os.waitpid(child, how) == (0, 0):
                    left.append(child)
            except ChildProcessError:  # another call has reaped it
                pass
        self.children = left

    def close(self):
        """Ends the children. Call it after the job, which closes the port, was
        closed."""
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
        finally:  # a stopped process takes no other signal
            self._signal(signal.SIGKILL)
            self._reap(0)
        if self.folder:
            for name in os.listdir(self.folder):
                os.unlink(os.path.join(self.folder, name))
            os.rmdir(self.folder)
            self.folder = None


class _Trunk(Port):
    """The transport and the processes of a fleet. `port` is its kofn_fleet.

    place    what has started the workers elsewhere, or None. Its over() is true if
             all of these have ended. Its end() waits for that, or ends them."""

    place = None

    def _listen(self, address, workers, keys):
        options, borrowed = net_options(keys)
        transport = new(lib.kofn_net_listen, _lib.text("address", address), options)
        self.endpoint = ffi.string(lib.kofn_net_endpoint(transport)).decode()
        self.keep += [options, borrowed]
        self._over(transport, workers)

    @classmethod
    def of(cls, transport, workers):
        """Returns that of a transport, which it takes over."""
        it = cls.__new__(cls)
        it.news, it.children, it.spare, it.keep = [], [], [], []
        it.folder = it.endpoint = None
        it._over(transport, workers)
        return it

    def _over(self, transport, workers):
        handle = ffi.new_handle(self)
        o = _lib.begun("kofn_fleet_options", workers=workers, news=lib.kofn_py_news,
                       ud=handle)
        self.keep += [o, handle]
        self.port = new(lib.kofn_fleet_open, transport, o)
        self.size = workers

    def ended(self):
        """Returns how many of the workers that were started have ended."""
        if self.place is None:
            return super().ended()
        return self.size if self.place.over() else 0


class FleetWorker(NamedTuple):
    """A worker of a Fleet.

    memory   limit of its memory in bytes, or None.
    state    "free", "busy" or "draining".
    slow     times as long as others take for the same work; 1.0: it is not slow;
             None: not enough data.
    tasks    results that it has sent; seconds: time that it computed for these;
             bytes: their size.
    """

    name: str
    host: str
    process: int
    memory: object
    state: str
    tasks: int
    seconds: float
    bytes: float
    slow: object


def _end_fleet(held):
    """Closes the fleet and its jobs, at most once, and not in a forked child."""
    trunk = held.pop("trunk", None)
    if trunk is not None and held.get("process") == os.getpid():
        for job in list(held["jobs"]):
            job.close()
        lib.kofn_fleet_close(trunk.port)
        trunk.close()
        if trunk.place is not None:
            trunk.place.end()


class Fleet:
    """Workers that stay while jobs come and go.

    Give it as `where` of Matrix, Sum, Stream, Regression, Network, power, pagerank
    and torch.Training. These may follow one another and be open side by side. Each
    then has the workers of the fleet, and their own `workers` is ignored. The
    workers take turns.

    where      "processes" of this machine, "threads", or an address such as
               "tcp://0.0.0.0:5555" or "tcp://127.0.0.1:*" (any free port, see
               `endpoint`), to which `kofn worker ADDRESS` connects.
    workers    number of workers for which the first round of a job waits, and of
               processes or threads. More workers may join later.
    part, multiply, keep
               for processes: as for kofn.serve. A Sum on them has f=None.
    keys, insecure, tls_ca, tls_cert, tls_key
               as for Matrix.

    >>> import numpy as np, kofn
    >>> A, x = np.eye(6), np.arange(6.)
    >>> with kofn.Fleet("processes", workers=4) as fleet:
    ...     with kofn.Matrix(A, fleet, scheme="mds:k=2") as M:
    ...         first = M @ x
    ...     with kofn.Matrix(2 * A, fleet, scheme="mds:k=3") as M:
    ...         second = M @ x
    >>> bool(np.allclose(first, x) and np.allclose(second, 2 * x))
    True

    Closing it ends the workers, also those on other machines, and every job that is
    open."""

    weight = 1.0  # of jobs that are opened here; see share()

    def __init__(self, where="processes", workers=8, *, part=None, multiply=None,
                 keep=None, keys=None, insecure=False, tls_ca=None, tls_cert=None,
                 tls_key=None):
        self.where = where
        self.size = _lib.count("workers", workers, 32, 1)
        self._held = {"process": os.getpid(), "jobs": weakref.WeakSet()}
        self._final = weakref.finalize(self, _end_fleet, self._held)
        own = part or multiply or keep
        if own and where != "processes":
            raise Invalid('part=, multiply= and keep= are for "processes"; workers '
                          "elsewhere know theirs (python3 -m kofn worker --module)")
        if where == "processes":
            serve = functools.partial(life, f=part, multiply=multiply, keep=keep,
                                      stay=True)
            self._held["trunk"] = _Trunk(where, self.size, None, Keys(), serve)
        elif where != "threads":
            if "://" not in str(where):
                raise Invalid(f'where={where!r} is none of "processes", "threads" and '
                              'an address such as "tcp://127.0.0.1:5555"')
            self._held["trunk"] = _Trunk(
                where, self.size, None,
                Keys(keys, insecure, tls_ca, tls_cert, tls_key), None)

    @classmethod
    def _of(cls, where, transport, workers):
        """Returns the fleet of a transport, which it takes over."""
        it = cls.__new__(cls)
        it.where, it.size = where, workers
        it._held = {"process": os.getpid(), "jobs": weakref.WeakSet(), "trunk": _Trunk.of(transport, workers)}
        it._final = weakref.finalize(it, _end_fleet, it._held)
        return it

    def _open(self):
        trunk = self._held.get("trunk")
        if trunk is None:
            raise Invalid("this fleet is closed" if self.where != "threads" else
                          "a fleet of threads has no connections")
        if self._held["process"] != os.getpid():
            raise Invalid("this process is a fork; the fleet is its parent's")
        return trunk

    def _opened(self, job):
        """Keeps a job, which ends with the fleet."""
        self._held["jobs"].add(job)

    def share(self, weight):
        """Returns this fleet for jobs that get `weight` times the time that other
        jobs get when both have work."""
        if not isinstance(weight, Real) or not 0 < weight <= 1e6:
            raise Invalid(f"weight={weight!r} is not a number above 0, at most 1e6")
        other = copy.copy(self)
        other._whole = self  # which closes the fleet when it is collected
        other.weight = float(weight)
        return other

    @property
    def endpoint(self):
        """The address to which workers connect; None for threads."""
        return None if self.where == "threads" else self._open().endpoint

    @property
    def workers(self):
        """The workers that are connected now, as a list of FleetWorker."""
        if self.where == "threads":
            return [FleetWorker(f"thread {i}", "", os.getpid(), None, "free", 0, 0.0, 0,
                                None)
                    for i in range(self.size)]
        fleet = self._open().port
        _lib.call(lib.kofn_fleet_poll, fleet, 0)
        out, w = [], _lib.begun("kofn_fleet_worker")
        for i in range(lib.kofn_fleet_workers(fleet)):
            if lib.kofn_fleet_at(fleet, i, w) == lib.KOFN_OK:
                out.append(FleetWorker(
                    ffi.string(w.name).decode(errors="replace"),
                    ffi.string(w.host).decode(errors="replace"), w.process,
                    w.memory or None, ("free", "busy", "draining")[w.state], w.tasks,
                    w.computed, w.bytes, w.slow or None))
        return out

    def wait(self, workers=None, timeout=None):
        """Waits until so many workers are connected (all that are expected), at most
        `timeout` seconds, or until no more can come. Returns their number."""
        want = self.size if workers is None else _lib.count("workers", workers)
        end = None if timeout is None else time.monotonic() + timeout
        while (n := len(self.workers)) < want:
            place = self._open().place
            if end is not None and time.monotonic() >= end or \
                    place is not None and place.over():
                break
            _lib.call(lib.kofn_fleet_poll, self._open().port, SECOND // 20)
        return n

    def drain(self, name):
        """Lets the worker of that name finish its tasks and leave."""
        check(lib.kofn_fleet_drain(self._open().port, _lib.text("name", name)))

    @property
    def news(self):
        """Messages about workers that came, left or were refused, as a list."""
        return [] if self.where == "threads" else self._open().news

    def close(self):
        """Dismisses the workers."""
        self._final()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __deepcopy__(self, memo):
        return self  # scikit-learn's clone() shares the workers

    def __repr__(self):
        if self.where != "threads" and "trunk" not in self._held:
            return "kofn.Fleet(closed)"
        at = "" if self.where == "threads" else f", {len(self.workers)} connected"
        return f"kofn.Fleet({self.where!r}, workers={self.size}{at})"


def placed(where, workers):
    """Returns the place of a job and the number of its workers. A Fleet has its
    own."""
    if not isinstance(where, Fleet):
        return where, workers
    return ("threads" if where.where == "threads" else where), where.size


def serve(address, f=None, keys=None, insecure=False, patience=None,
          faults_words=None, multiply=None, keep=None, tls_ca=None,
          tls_cert=None, tls_key=None, with_parent=False, grace=None, memory=None,
          data_path=None, once=False, name=None):
    """Runs a worker at that address.

    f         f(part, parts, x) computes one part of a sum. Without f, the worker
              computes products and regressions. It may not write to x.
    multiply  multiply(a, b) multiplies dense blocks, for example with PyTorch;
              without it, BLAS does. a is m x k and b is k x n; both are read-only
              views. The result is m x n and of the same type, in any form that
              np.asarray takes. It must be exact to the rounding of that type (on
              a GPU: no TF32). One call computes for a few milliseconds. If it
              raises, the task fails, and another worker computes it.
    keep      keep(block) is called once for each block that stays on this worker
              (one, or four), and again when its numbers change. Then multiply gets
              K[i:j, k:l] of its result K instead of the block's rows and columns.
              So a block is copied to a GPU only once. The other factor comes as
              an array.
    keys, insecure, tls_ca, tls_cert, tls_key
              as the options of kofn worker.
    with_parent, grace, memory, data_path
              as the options of kofn worker; memory is a number of bytes. With grace,
              SIGTERM lets the worker finish its tasks for that number of seconds.
              Signals are handled on the main thread only.

    >>> import numpy as np, kofn
    >>> def multiply(a, b):        # a job.py for python3 -m kofn worker --module
    ...     return np.einsum("ik,kj->ij", a, b)

    once      return when the job is over, too. Without it the worker serves one job
              after another.
    name      of this worker for people, at most 64 characters.

    Returns when a fleet is closed, or when there was no coordinator for `patience`
    seconds (an hour; with `once`, no limit). Ctrl-C ends it at the next check for messages; a running function is
    finished first.
    """
    with _worker.Leaving(grace, with_parent):
        life(address, f, Keys(keys, insecure, tls_ca, tls_cert, tls_key), patience,
             faults_words, multiply, keep, grace=grace or 0, memory=memory or 0,
             operand=None if data_path is None else _worker.Folder(data_path),
             stay=not once, name=name)


def life(address, f=None, keys=Keys(), patience=None, faults_words=None,
         multiply=None, keep=None, staged=False, operand=None, grace=0, memory=0,
         stay=False, name=None):
    """Runs serve(). `staged` workers obey events that slow them down or spoil their
    results. The worker makes its blocks from `operand`, a kofn_operand."""
    options, borrowed = net_options(keys)
    work(lambda: new(lib.kofn_net_connect, _lib.text("address", address), options),
         f, patience, faults_words, multiply, keep, staged, operand, grace, memory,
         stay, name)
    del borrowed


def work(connect, f=None, patience=None, faults_words=None, multiply=None, keep=None,
         staged=False, operand=None, grace=0, memory=0, stay=False, name=None):
    """Runs a worker on the transport that connect() returns, which it closes. The
    other arguments are those of life()."""
    if keep is not None and multiply is None:
        raise Invalid("keep= is what multiply= is given, and there is no "
                      "multiply=")
    kernel = ffi.new_handle(Kernel(multiply, keep)) if multiply else None
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
    o.patience = _lib.seconds("patience", patience or (3600 if stay else 0))
    o.grace = _lib.seconds("grace", grace)
    o.memory = _lib.count("memory", memory, bits=63)
    o.stay = stay
    called = ffi.NULL if name is None else ffi.new("char[]", _lib.text("name", name))
    o.name = called
    o.staged = staged
    o.watch = lib.kofn_py_serve
    if operand is not None:
        held = ffi.new_handle(operand)
        o.ud = held
        o.operand = lib.kofn_py_operand
        o.operand_done = lib.kofn_py_operand_done
    _lib.call(lib.kofn_serve, connect(), o)
    del handle, kernel, sky, called
