"""A plan, a port and a job together, and rounds that Ctrl-C can stop."""
import collections
import os
import re
import textwrap
import time
import weakref
from numbers import Real

import numpy as np

from . import _lib
from ._failed import Told
from ._fleet import Fleet, Keys, Port, placed
from ._lib import (Error, Invalid, SECOND, begun, check, count, ffi, lib, nearest,
                   new, raise_for)
from ._turn import Turn

# The fields of kofn_report. Times are seconds here, and two names differ.
_TIME = ffi.typeof("kofn_time")
_NUMBERS = [(name, field.type is _TIME)
            for name, field in ffi.typeof("kofn_report").fields
            if field.type.kind == "primitive" and
            name not in ("size", "workers", "parts")]
_NAME = {"took": "seconds", "liars": "may_lie"}
# The parts of the time of a round, in their order; `seconds` is their sum.
PHASES = ("encoding", "placing", "sending", "waiting", "receiving", "decoding", "checking",
          "outside")


class Report(collections.namedtuple(
        "Report", [_NAME.get(name, name) for name, _ in _NUMBERS] +
        ["liars", "partial"])):
    """The result of one round, or of all rounds (`Job.totals`). It has the fields of
    kofn_report, with `seconds` for `took` and `may_lie` for `liars`, and two more.

    liars    workers located as faulty.
    partial  True if inexact: rows are NaN, or parts are missing.
    """

    __slots__ = ()

    @classmethod
    def of(cls, r, status=0):
        located = ffi.unpack(r.located, r.workers) if r.located else ()
        return cls(*[getattr(r, name) / SECOND if time else getattr(r, name)
                     for name, time in _NUMBERS],
                   tuple(i for i, rounds in enumerate(located) if rounds),
                   status == lib.KOFN_PARTIAL)

    def phases(self):
        """Returns where the coordinator's time went, a dict from names to seconds. Those
        of a round add up to `seconds`, those of totals to the time since the job was
        opened. Phases without time are left out."""
        return {name: getattr(self, name) for name in PHASES if getattr(self, name) > 0}

    def _rows(self):
        """Yields what a table shows: name, text, and share of the time or None."""
        yield "rounds", str(self.rounds), None
        yield "seconds", f"{self.seconds:.4g}", None
        spent = sum(self.phases().values())
        if spent > 1.001 * self.seconds:
            yield "since the start", f"{spent:.4g}", None
        for name, seconds in self.phases().items():
            yield name, f"{seconds:.4g}", seconds / spent
        yield "sent, received", f"{_bytes(self.sent)}, {_bytes(self.received)}", None
        yield "predicted error", f"{self.predicted:.2g}", None
        for name in ("live", "joined", "left", "late", "corrupt", "rebuilt"):
            if getattr(self, name):
                yield name, str(getattr(self, name)), None
        if self.liars:
            yield "located as faulty", ", ".join(f"u{i}" for i in self.liars), None
        if self.partial:
            yield "partial", "the result is not exact", None

    def __str__(self):
        """Returns a table; repr() has all fields."""
        return "\n".join(
            f"{'  ' if share is not None else ''}{name}".ljust(20) + text.rjust(10) +
            ("" if share is None else f"{share:7.0%}  " + "#" * round(30 * share))
            for name, text, share in self._rows())

    def _repr_html_(self):
        """Returns a table for Jupyter, with a bar for each phase."""
        bar = ('<div style="background:#0072b2;height:.8em;width:{:.1f}em" '
               'title="{:.1%}"></div>')
        rows = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td>{text}</td><td>"
            + ("" if share is None else bar.format(12 * share, share)) + "</td></tr>"
            for name, text, share in self._rows())
        return f"<table>{rows}</table>"


def _bytes(n):
    """Returns a number of bytes in a few characters."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n < 1000 or unit == "TB":
            return f"{n:.4g} {unit}"
        n /= 1000


def _end(handles, turn):
    """Closes the handles, in order, at most once. A forked child skips it: the
    workers belong to the parent, and their threads do not exist here.

    At the end of the interpreter another thread may still be in a call. It leaves
    within a tenth of a second; else nothing is closed."""
    if handles.pop("process", None) != os.getpid():
        handles.clear()
        return
    if not turn.stop(5):
        return
    try:
        _close(handles)
    finally:
        turn.go_on()


def _close(handles):
    if handles.get("job"):
        lib.kofn_close(handles["job"])
    elif handles.get("port"):
        lib.kofn_port_close(handles["port"])
    for plan in handles.get("plans", ()):
        lib.kofn_plan_free(plan)
    if handles.get("fleet"):
        handles["fleet"].close()
    handles.clear()


def option_table(which=lib.KOFN_TABLE_JOB):
    """Returns a table of options of the library, by name."""
    out, i = {}, 0
    while (row := lib.kofn_option_in(which, i)) != ffi.NULL:
        out[ffi.string(row.name).decode()] = row
        i += 1
    return out


def words_of(row):
    """Returns the words of a choice."""
    return ffi.string(row.value).decode().split("|")


def described(tables, names):
    """Returns a line or more for each name: its words, and its text in the library's
    tables without the default, which signatures show. `names` maps arguments to
    members."""
    out = []
    for name, member in names.items():
        row = next(t[member] for t in tables if member in t)
        text = re.sub(r" \([^()]*\)$", "", ffi.string(row.text).decode())
        if row.kind == lib.KOFN_OPTION_CHOICE:
            text = ", ".join(map(repr, words_of(row))) + ". " + text
        out += textwrap.wrap(f"{name:13} {text}", 88, initial_indent=4 * " ",
                             subsequent_indent=18 * " ")
    return "\n".join(out)


OPTIONS = option_table()
KEYS = dict(keys=None, insecure=False, tls_ca=None, tls_cert=None, tls_key=None)
# All options of a job with the defaults that its signature shows.
ALL = {"tolerate": None, "seed": 1, "faults": None, "events": None, **KEYS, **dict.fromkeys(OPTIONS)}


def choice(name, word):
    """Returns the value of that option; None means its first word."""
    words = words_of(OPTIONS[name])
    if word is None:
        return 0
    if word not in words:
        raise Invalid(f"{name}={word!r} is none of None, "
                      f"{', '.join(map(repr, words))}")
    return words.index(word)


def job_options(given):
    """Returns kofn_options from a dict by name, and the objects they borrow. None
    keeps a default."""
    o = ffi.new("kofn_options *")
    lib.kofn_options_begin(o)
    keep = [o]
    for name, value in given.items():
        if name not in OPTIONS:
            raise TypeError(f"a job has no option {name!r}" + nearest(name, ALL))
        row = OPTIONS[name]
        if value is None:
            continue
        if row.kind == lib.KOFN_OPTION_FILE:
            keep.append(_lib.path(name, value))
            setattr(o, name, keep[-1])
        else:
            if row.kind == lib.KOFN_OPTION_CHOICE:
                value = choice(name, value)
            elif not isinstance(value, Real):
                raise Invalid(f"{name}={value!r} is not a number")
            check(lib.kofn_option_set(o, row, value))
    return o, keep


def tolerating(scheme, workers, tolerate):
    """Returns the scheme as bytes, with the parameter with which any `tolerate` of the
    workers may be lost; None: as it is."""
    scheme = _lib.text("scheme", scheme)
    if tolerate is None:
        return scheme
    room = ffi.new("char[]", len(scheme) + 40)
    check(lib.kofn_scheme_tolerate(scheme, count("workers", workers),
                                   count("tolerate", tolerate), room, len(room)))
    return ffi.string(room)


class Job:
    """One problem on one fleet; Matrix, Sum and others use it.

    options those of kofn_options, by name, as in the library's table.
    plans   instead of one plan of `problem`: the plans of its operands, which are
            freed with the job.
    turn    the turn of the object that owns the job. The object uses the job in
            its turn, and so do round() and `totals`."""

    def __init__(self, problem, scheme, workers, where, *, tolerate=None, seed=1, left=0,
                 serve=None, faults=None, events=None, keys=None, insecure=False,
                 tls_ca=None, tls_cert=None, tls_key=None, plans=None, turn=None,
                 operand=None, **options):
        self._handles = {"process": os.getpid(), "plans": plans or []}
        self.turn = turn or Turn("it")
        self._final = weakref.finalize(self, _end, self._handles, self.turn)
        options.setdefault("below", None)
        where, workers = placed(where, workers)
        scheme = tolerating(scheme, workers, tolerate)
        workers, seed = count("workers", workers), count("seed", seed, 64)
        place = where.where if isinstance(where, Fleet) else where
        if options["below"] is None and b"://" in _lib.text("where", place):
            options["below"] = "pause"  # more may come at any time
        opt, borrowed = job_options(options)
        self._keep = borrowed  # what C borrows until the end
        self._running = None  # what the current round borrows
        self._began = 0.0     # start of that round
        self.told = Told()    # exceptions of functions
        if plans is None:
            plans = [new(lib.kofn_plan_new, problem, scheme, workers, seed)]
            self._handles["plans"] = plans
        self.plan = plans[0]
        self.serves_left = left > 0 and \
            lib.kofn_plan_serve_left(self.plan, left) == lib.KOFN_OK
        joiners = self._events(opt, events, workers)
        fleet = Port(where, workers, faults,
                     Keys(keys, insecure, tls_ca, tls_cert, tls_key), serve,
                     joiners, operand, options.get("workers_per_principal") == 0)
        self._handles["fleet"] = self.fleet = fleet
        self.told.folder = fleet.told
        out = ffi.new("kofn_job **")
        st = lib.kofn_open_all(out, plans, len(plans), fleet.port,
                               opt)  # owns the port from now on
        if st < 0:
            raise_for(st)
        self._handles["job"] = self.job = out[0]
        if isinstance(where, Fleet):
            where._opened(self)
        self.report = None
        self._last = None  # totals, once it is closed

    def _events(self, o, events, workers):
        """Reads lines of an events file such as "3.5 leave 2". Returns the number of
        joins."""
        if not events:
            return 0
        text = events if isinstance(events, str) else "\n".join(events)
        data = _lib.text("events", text)
        out, count = ffi.new("kofn_fault_event **"), ffi.new("size_t *")
        check(lib.kofn_events_parse(out, count, data, len(data),
                                    workers, 2**31))
        self._keep.append(ffi.gc(out[0], lib.kofn_free))
        o.events, o.event_count = out[0], count[0]
        return sum(out[0][i].kind == lib.KOFN_FAULT_EVENT_JOIN
                   for i in range(count[0]))

    def borrow(self, *things):
        """Keeps these objects alive until the job ends."""
        self._keep += things

    @property
    def closed(self):
        return not self._handles

    def check_open(self):
        """Raises if the job cannot be used."""
        self.turn.check()
        if self.closed:
            raise Error(f"{self.turn.name} has been closed")
        process = self._handles["process"]
        if process != os.getpid():
            raise Error(f"{self.turn.name} is of process {process}, of which this one "
                        "is a fork; make one here")

    def close(self):
        """Ends the job and its workers. Further calls do nothing. A call of another
        thread ends first, soon and with an error."""
        with self.turn.to_close():
            self.end()

    def end(self):
        """Calls close() in turn."""
        if self.closed:
            return
        if self._handles["process"] == os.getpid():
            self._last = self._totals()
        self._final()

    def round(self, put, in_, out, keep):
        """Runs one round: calls put(job, in, out, number), and waits for it.

        Ctrl-C returns within a tenth of a second. The round continues, and the next
        round waits for its end."""
        self.check_open()
        self._finish()
        self.told.forget()
        self._began = time.monotonic()
        number = ffi.new("uint32_t *")
        check(put(self.job, in_, out, number))
        self._running = (number[0], in_, out, keep)
        return self._finish()

    def call(self, f, *args):
        """Calls f(*args), which takes many rounds and calls back between them."""
        with self.turn():
            self.check_open()
            self.told.forget()
            began = time.monotonic()
            try:
                return _lib.call(f, *args, turn=self.turn)
            except Error as e:
                self.told.raise_for(e, began, self.job)
                raise

    def wait(self, f, *args):
        """Calls f(*args) until it is done. f returns KOFN_AGAIN every tenth of a
        second, so that Python handles signals and another thread may close the
        object."""
        while (st := f(*args)) == lib.KOFN_AGAIN:
            _lib.raise_stopped()
            self.turn.check()
        return st

    def _finish(self):
        if self._running is None:
            return None
        rep = begun("kofn_report")
        st = self.wait(lib.kofn_take, self.job, self._running[0],
                       SECOND // 10, rep)
        self._running = None
        self.report = Report.of(rep, st)
        _lib.raise_stopped()
        try:
            check(st)
        except Error as e:
            self.told.raise_for(e, self._began, self.job)
            raise
        self.told.forget()
        return self.report

    @property
    def totals(self):
        """Returns the report of all rounds."""
        if self.closed:
            return self._last
        if self._handles.get("process", os.getpid()) != os.getpid():
            return self._totals()
        with self.turn():
            return self._last if self.closed else self._totals()

    def _totals(self):
        rep = begun("kofn_report")
        lib.kofn_job_totals(self.job, rep)
        return Report.of(rep)


def problem(op, m, n, p, dtype=np.float64, is_sparse=False):
    """Returns a kofn_problem."""
    kind = lib.KOFN_F32 if np.dtype(dtype) == np.float32 else lib.KOFN_F64
    return begun("kofn_problem", op=op, m=m, n=n, p=p, dtype=kind,
                 sparse=is_sparse)


def schemes():
    """Returns the codes: a dict from name to description.

    >>> import kofn
    >>> kofn.schemes()["mds"]
    'any k of n answers; stragglers are not waited for'
    """
    out, i = {}, 0
    while (s := lib.kofn_scheme_at(i)) != ffi.NULL:
        out[ffi.string(s.name).decode()] = ffi.string(s.summary).decode()
        i += 1
    return out


def plan_info(scheme, workers, shape, *, columns=1, op="product",
              dtype=np.float64, noise=False, seed=1):
    """Returns what a scheme needs and costs: threshold, storage, load, ...

    op     "product" of a matrix of that shape and one with `columns` columns,
           "left", "gram", "sum" (of `shape[0]` numbers), or "stream": products of
           such matrices.

    >>> import kofn
    >>> kofn.plan_info("mds:k=6", 8, (1000, 100))["threshold"]
    6
    """
    m, n = shape
    ops = {"product": lib.KOFN_MATVEC if columns == 1 else lib.KOFN_MATMUL,
           "left": lib.KOFN_LEFT, "gram": lib.KOFN_GRAM, "sum": lib.KOFN_SUM,
           "stream": lib.KOFN_STREAM}
    if op not in ops:
        raise Invalid(f"op={op!r} is none of {', '.join(ops)}")
    plan = ffi.gc(new(lib.kofn_plan_new,
                      problem(ops[op], m, n, columns, dtype),
                      _lib.text("scheme", scheme), count("workers", workers),
                      count("seed", seed, 64)), lib.kofn_plan_free)
    info = begun("kofn_plan_info")
    check(lib.kofn_plan_describe(plan, noise, info))
    out = {}
    for name, field in ffi.typeof("kofn_plan_info").fields[1:]:  # the first is `size`
        value = getattr(info, name)
        out[name] = (ffi.string(value).decode()
                     if field.type.cname == "char *" or "char" in
                     field.type.cname else value)
    return out
