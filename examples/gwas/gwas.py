#!/usr/bin/python3
"""A genome-wide association study on workers that are killed, slow or wrong.

    examples/gwas/gwas.py [-n PEOPLE] [-p VARIANTS] [--repeat N] [--no-dask]

prints a table, and writes gwas.svg in the current folder: kofn on eight processes, kofn next to eight Dask
workers, and Dask alone, with the same faults. README.md explains it.
"""
import argparse
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import threading
import time
import warnings

for name in "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS":
    os.environ.setdefault(name, "1")  # eight workers share the processors
HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = str(HERE.parents[1] / "python")
sys.path[:0] = [str(HERE)]
sys.path.append(PACKAGE)

import numpy as np
import kofn
import worker

WORKERS, ENOUGH, PERMUTATIONS, AXES, SPARE = 8, 5, 200, 10, 10
EVENTS = {"none": (0, 0), "one killed": (1, signal.SIGKILL),
          "two killed": (2, signal.SIGKILL), "one five times slower": (1, worker.SLOW),
          "one returns wrong numbers": (1, worker.WRONG)}


# ---- the study -------------------------------------------------------------------------


def simulate(n, p, seed=1):
    """Returns genotypes 0, 1, 2 of two populations, covariates and a phenotype."""
    rng = np.random.default_rng(seed)
    often = np.clip(rng.uniform(0.1, 0.5, p) + 0.1 * rng.normal(size=(2, p)), 0.05, 0.6)
    G = rng.binomial(2, often[np.arange(n) % 2]).astype(np.int8)
    C = np.column_stack([np.ones(n), rng.normal(size=n), rng.integers(0, 2, n)])
    y = 0.5 * G[:, :5].sum(1) + C @ [1.0, 0.3, -0.2] + rng.normal(size=n)
    return G, C, y


class Study:
    """The part that all ways of computing share: all but products with the genotypes."""

    def __init__(self, G, C, y):
        spread = G.std(0)
        self.Z = np.ascontiguousarray(((G - G.mean(0)) / np.where(spread > 0, spread, 1)).T)
        rng = np.random.default_rng(2)
        Y = np.column_stack([y] + [rng.permutation(y) for _ in range(PERMUTATIONS)])
        self.Q = np.linalg.qr(C)[0]
        self.Y = Y - self.Q @ (self.Q.T @ Y)
        self.squares = np.einsum("ij,ij->i", self.Z, self.Z)
        self.Omega = rng.normal(size=(G.shape[1], AXES + SPARE))
        self.freedom = len(y) - C.shape[1] - 1

    def statistics(self, times):
        """Returns Student's t of each variant (rows) for each phenotype, by the theorem of
        Frisch, Waugh and Lovell. times(X) is Z X."""
        S = times(np.column_stack([self.Y, self.Q]))
        XY, XQ = S[:, :self.Y.shape[1]], S[:, self.Y.shape[1]:]
        xx = (self.squares - (XQ * XQ).sum(1))[:, None]
        rest = (self.Y * self.Y).sum(0) - XY * XY / xx
        return XY / np.sqrt(xx * rest / self.freedom)

    def axes(self, times, times_t):
        """Returns ten singular values by randomised subspace iteration (Halko et al.).
        times_t(X) is Z' X."""
        Q = np.linalg.qr(times_t(self.Omega))[0]
        for _ in range(2):
            Q = np.linalg.qr(times_t(np.linalg.qr(times(Q))[0]))[0]
        return np.linalg.svd(times(Q), compute_uv=False)[:AXES]

    def run(self, times, times_t):
        return self.statistics(times), self.axes(times, times_t)

    def wrong(self, got, right):
        """Returns the number of wrong statistics and singular values."""
        return sum(int((~np.isclose(g, r, rtol=1e-10, atol=1e-10 * abs(r).max())).sum())
                   for g, r in zip(got, right))


# ---- three ways to compute it ------------------------------------------------------------


def on_fleet(study, fleet):
    """Runs the study on a fleet of kofn."""
    given = dict(scheme=f"mds:k={ENOUGH}", errors="keyed")
    with kofn.Matrix(study.Z, fleet, **given) as Z, \
            kofn.Matrix(np.ascontiguousarray(study.Z.T), fleet, **given) as T:
        return study.run(lambda X: Z @ X, lambda X: T @ X)


def load(path, i):
    return np.array_split(np.load(path, mmap_mode="r"), WORKERS)[i].copy()


def times_part(part, X):
    return worker.multiply(part, X)


def times_part_t(part, X):
    return worker.multiply(part.T, X)


def on_dask(study, client, path):
    """Runs the study on Dask alone. Each worker reads one of eight parts from a file, and
    another one may replace it. Inputs go with the tasks, because numbers that are scattered
    would be lost with a worker."""
    parts = [client.submit(load, path, i, pure=False, workers=[w],
                           allow_other_workers=True)
             for i, w in enumerate(client.nthreads())]

    def times(X):
        return np.concatenate(client.gather(
            [client.submit(times_part, p, X, pure=False) for p in parts]))

    def times_t(X):
        return sum(client.gather(
            [client.submit(times_part_t, p, x, pure=False)
             for p, x in zip(parts, np.array_split(X, WORKERS))]))

    return study.run(times, times_t)


# ---- events ------------------------------------------------------------------------------


def work(study):
    """Returns the operations that the study needs."""
    columns = study.Y.shape[1] + study.Q.shape[1] + 6 * study.Omega.shape[1]
    return study.Z.size * columns


def measure(study, right, event, run, victims, board, after):
    """Runs the study once with the event. Returns seconds, operations over those needed,
    and the number of wrong results."""
    number, what = EVENTS[event]
    board[:] = 0
    chosen = victims(what)[:number]
    timer = None
    if what == signal.SIGKILL:
        timer = threading.Timer(after, lambda: [os.kill(p, what) for p in chosen])
        timer.start()
    else:
        for p in chosen:
            board[0, p % worker.SLOTS] = what
    begin = time.perf_counter()
    got = run()
    took = time.perf_counter() - begin
    if timer:
        timer.join()
    return took, board[1].sum() / work(study), study.wrong(got, right)


def median(rows):
    return [statistics.median(column) for column in zip(*rows)]


def rounds(study, right, name, setting, board, repeat):
    """Yields the rows of a table for one way of computing. setting() is a context that
    gives the function and the victims. The first run only warms up."""
    with setting() as (run, _):
        run()
    base = None
    for event in EVENTS:
        rows = []
        for _ in range(repeat):
            with setting() as (run, victims):
                after = 0.4 * (base or 0)
                rows.append(measure(study, right, event, run, victims, board, after))
        took, done, _ = median(rows)
        base = base or took
        yield (name, event, took, took / base, done,
               max(wrong for *_, wrong in rows))


class Processes:
    """kofn on eight processes of this machine."""

    def __init__(self, study):
        self.study = study

    def __enter__(self):
        self.fleet = kofn.Fleet("processes", WORKERS, multiply=worker.multiply)
        self.fleet.wait()
        return (lambda: on_fleet(self.study, self.fleet),
                lambda what: sorted(w.process for w in self.fleet.workers))

    def __exit__(self, *_):
        self.fleet.close()


class Beside:
    """kofn next to Dask workers. A victim is a Dask worker's child if it is to be slow or
    wrong; the Dask worker is killed."""

    def __init__(self, study, client):
        self.study, self.client = study, client

    def __enter__(self):
        import kofn.dask
        settle(self.client)
        self.fleet = kofn.dask.fleet(self.client, WORKERS, module=HERE / "worker.py")
        self.fleet.wait()
        return lambda: on_fleet(self.study, self.fleet), self.victims

    def victims(self, what):
        return sorted(pids(self.client) if what == signal.SIGKILL else
                      (w.process for w in self.fleet.workers))

    def __exit__(self, *_):
        self.fleet.close()


class Alone:
    """Dask without kofn."""

    def __init__(self, study, client, path):
        self.study, self.client, self.path = study, client, path

    def __enter__(self):
        settle(self.client)
        return (lambda: on_dask(self.study, self.client, self.path),
                lambda what: sorted(pids(self.client)))

    def __exit__(self, *_):
        pass


def pids(client):
    return [nanny.pid for nanny in client.cluster.workers.values()]


def settle(client):
    """Waits until all Dask workers are there, and their nannies have noticed."""
    while len(client.nthreads()) < WORKERS or not all(
            n.process and n.process.status.name == "running"
            for n in client.cluster.workers.values()):
        time.sleep(0.05)


# ---- the table and the picture -----------------------------------------------------------


HEAD = ("way", "event", "seconds", "over no fault", "work over needed", "wrong numbers")


def printed(rows):
    yield "| " + " | ".join(HEAD) + " |"
    yield "|" + "---|" * len(HEAD)
    for way, event, took, ratio, done, wrong in rows:
        yield f"| {way} | {event} | {took:.2f} | {ratio:.2f} | {done:.2f} | {wrong:,} |"


def picture(rows, events=EVENTS):
    """Returns an SVG: bars of the time over no fault; black: wrong results delivered."""
    colours = dict(zip(dict.fromkeys(r[0] for r in rows), ("#1b6ca8", "#58a55c", "#d9822b")))
    most = max(r[3] for r in rows)
    out, y = [], 20
    for event in events:
        out.append(f'<text x="10" y="{y + 12}" font-weight="bold">{event}</text>')
        y += 20
        for way, _, _, ratio, _, wrong in (r for r in rows if r[1] == event):
            said = f"{ratio:.2f}" + (f", {wrong:,} wrong numbers" if wrong else "")
            out.append(
                f'<text x="10" y="{y + 12}">{way}</text><rect x="150" y="{y}" '
                f'width="{300 * ratio / most:.0f}" height="14" '
                f'fill="{"#000" if wrong else colours[way]}"/>'
                f'<text x="{156 + 300 * ratio / most:.0f}" y="{y + 12}">{said}</text>')
            y += 18
        y += 12
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{y}" '
            'font-family="sans-serif" font-size="12"><title>time over no fault</title>'
            + "".join(out) + "</svg>\n")


def arguments():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("-n", type=int, default=1200, help="people (1200)")
    a.add_argument("-p", type=int, default=6000, help="variants (6000)")
    a.add_argument("--repeat", type=int, default=1,
                   help="runs of each row, to take the median of (1)")
    a.add_argument("--no-dask", action="store_true", help="only kofn on processes")
    a.add_argument("-o", default="gwas.svg", help="the picture (gwas.svg)")
    return a.parse_args()


def with_dask(study, right, board, folder, repeat):
    import dask
    from distributed import Client, LocalCluster

    # A LocalCluster removes a worker that is not there 15 s after a former loss.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})
    warnings.filterwarnings("ignore", "Large object")
    path = os.path.join(folder, "Z.npy")
    np.save(path, study.Z)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get(
        "PYTHONPATH", PACKAGE)])
    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None,
                      silence_logs=50) as cluster, Client(cluster) as client:
        yield from rounds(study, right, "kofn.dask", lambda: Beside(study, client), board,
                          repeat)
        yield from rounds(study, right, "Dask alone", lambda: Alone(study, client, path),
                          board, repeat)


def main():
    given = arguments()
    study = Study(*simulate(given.n, given.p))
    right = study.run(lambda X: study.Z @ X, lambda X: study.Z.T @ X)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KOFN_GWAS"] = os.path.join(folder, "control")
        np.zeros((2, worker.SLOTS)).tofile(os.environ["KOFN_GWAS"])
        board = worker.control()
        rows = list(rounds(study, right, "kofn", lambda: Processes(study), board,
                           given.repeat))
        if not given.no_dask:
            rows += with_dask(study, right, board, folder, given.repeat)
    print(f"{given.n} people, {given.p} variants, {PERMUTATIONS} permutations, "
          f"{WORKERS} workers, mds:k={ENOUGH}\n")
    print("\n".join(printed(rows)))
    highest = abs(right[0][:, 1:]).max(0)
    found = np.flatnonzero(abs(right[0][:, 0]) > np.quantile(highest, 0.95))
    print("\nvariants beyond 95 % of the permutations' largest |t|:", *found)
    pathlib.Path(given.o).write_text(picture(rows))
    if any(r[5] for r in rows if r[0].startswith("kofn")):
        sys.exit("kofn delivered wrong numbers")


if __name__ == "__main__":
    main()
