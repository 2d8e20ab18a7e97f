"""Which code to take, before anything runs."""
import collections
import html

import numpy as np

from . import _lib
from ._fleet import faults as _faults
from ._lib import Invalid, begun, ffi, lib

# Operations by name, and how many sizes each takes.
OPERATIONS = {"matvec": (lib.KOFN_MATVEC, 1), "matmul": (lib.KOFN_MATMUL, 2),
              "stream": (lib.KOFN_STREAM, 2), "least_squares": (lib.KOFN_GRAM, 1)}
COLUMNS = ("scheme", "median", "p90", "p99", "total", "place", "memory", "sent",
           "received", "work", "survives", "faulty", "error")

Row = collections.namedtuple("Row", COLUMNS)
Row.__doc__ = """A forecast. Times are seconds, sizes bytes; `scheme` is None for plain
BLAS on one machine."""


class Plan(list):
    """Forecasts, plain BLAS first and then the fastest: a list of named tuples, which
    pandas.DataFrame takes as it is. It prints as a table.

    Each row has these members. `scheme` is None for BLAS on one machine. `median`, `p90`
    and `p99` are quantiles of the time of a round. `place` is the time until all blocks
    are stored, and `total` that of placing and of all rounds. `memory` is what a worker
    stores. `sent` and `received` are bytes of the coordinator. `work` is the number of
    multiplications of all workers, over that of plain products. Of the workers
    `survives` may be lost at any time, and `faulty` can be found if they are wrong.
    `error` is the predicted relative error by rounding.
    """

    @property
    def best(self):
        """The first row that survives a loss; None if there is none."""
        return next((row for row in self if row.survives), None)

    def _cells(self):
        yield ("code", "median", "90 %", "99 %", "in all", "memory", "may be lost",
               "faulty found", "error")
        for r in self:
            yield (r.scheme.split(",basis=")[0] if r.scheme else "plain BLAS",
                   *(f"{t:.3g} s" for t in (r.median, r.p90, r.p99, r.total)),
                   f"{r.memory / 1e6:.3g} MB", str(r.survives), str(r.faulty),
                   f"{r.error:.0e}")

    def __repr__(self):
        rows = list(self._cells())
        wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join(" ".join([row[0].ljust(wide[0])] + [
            cell.rjust(w) for cell, w in zip(row[1:], wide[1:])]) for row in rows)

    def _repr_html_(self):
        def line(row, tag):
            return "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)

        first, *rest = self._cells()
        return ("<table><tr>" + line(first, "th") + "</tr>" + "".join(
            "<tr>" + line(row, "td") + "</tr>" for row in rest) + "</table>")


def _row(f):
    return Row(ffi.string(f.spec).decode() or None, f.round50, f.round90, f.round99,
               f.total, f.place, f.memory, f.sent, f.received, f.work, f.survives,
               f.faulty, f.error)


def _problem(operation, shapes, dtype):
    if operation not in OPERATIONS:
        raise Invalid(f"operation={operation!r}; give one of {', '.join(OPERATIONS)}")
    op, sizes = OPERATIONS[operation]
    if len(shapes) != sizes or any(len(s) != 2 for s in shapes):
        raise Invalid(f"{operation} takes {sizes} shape{'s' * (sizes > 1)} "
                      f"(rows, columns), not {shapes!r}")
    (m, n), p = shapes[0], 1
    if sizes == 2:
        if shapes[1][0] != n:
            raise Invalid(f"the shapes {shapes[0]} and {shapes[1]} cannot be multiplied")
        p = shapes[1][1]
    kind = lib.KOFN_F32 if np.dtype(dtype) == np.float32 else lib.KOFN_F64
    return begun("kofn_problem", op=op, m=m, n=n, p=p, dtype=kind, sparse=False)


def plan(operation, *shapes, workers=8, rounds=1, scheme=None, machines=False,
         latency=1e-4, bandwidth=1.25e9, faults=None, memory=0, deadline=0, tolerate=0,
         faulty=0, dtype=np.float64):
    """Returns the best codes for a job as a Plan, before anything runs.

    The operation is "matvec", "matmul", "stream" or "least_squares" (its gradient). The
    shapes, (rows, columns), are those of A and, for products of matrices, of the other
    factor. The job computes `rounds` products with this number of workers.

    Without `machines` the workers are threads of this machine. With machines=True each
    has a machine like this one. The coordinator then has a link with `latency` (seconds)
    and `bandwidth` (bytes a second). `faults` is as --faults of the command:
    "straggle=0.1,factor=5".

    With `scheme` the plan has this code only. A code is left out if it stores more than
    `memory` bytes on a worker or takes more than `deadline` seconds. It is also left out
    if it does not survive `tolerate` lost workers, or cannot find `faulty` ones.

    It measures this machine for a second, and simulates the coordinator, without
    numbers.

    >>> import kofn
    >>> p = kofn.plan("matmul", (4000, 500), (500, 20), workers=6, rounds=10)
    >>> p[0].scheme is None and p.best.survives > 0
    True
    """
    pb = _problem(operation, shapes, dtype)
    n = _lib.count("workers", workers, least=1)
    costs = begun("kofn_costs")
    _lib.call(lib.kofn_costs_measure, costs, pb, n)
    if machines:
        costs.work, costs.cores, costs.message = costs.plain, 0, 2e-5
        costs.latency = _lib.seconds("latency", latency) * 1e-9
        costs.bandwidth = float(bandwidth)
    sky = _faults(faults)
    o = begun("kofn_forecast_options", costs=costs, faults=sky,
              rounds=_lib.count("rounds", rounds, 32, 1), away=bool(machines),
              memory=float(memory), deadline=float(deadline),
              faulty=_lib.count("faulty", faulty), survive=_lib.count("tolerate", tolerate))
    if scheme is not None:
        rows = []
        for spec in "", scheme:
            f = begun("kofn_forecast")
            _lib.call(lib.kofn_forecast_job, f, pb, _lib.text("scheme", spec), n, o)
            rows.append(f)
        return Plan(map(_row, rows))
    out, count = ffi.new("kofn_forecast **"), ffi.new("size_t *")
    _lib.call(lib.kofn_forecast_all, out, count, pb, n, o)
    try:
        return Plan(_row(out[0][i]) for i in range(count[0]) if not out[0][i].status)
    finally:
        lib.kofn_free(out[0])
