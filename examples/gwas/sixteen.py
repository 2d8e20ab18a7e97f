#!/usr/bin/python3
"""The permutations of the study on sixteen simulated machines.

    examples/gwas/sixteen.py [-n PEOPLE] [-p VARIANTS]

prints a table, and writes sixteen.svg in the current folder. README.md explains it. The
simulator computes all numbers. Time in it passes by costs that are measured first.
"""
import argparse
import os
import pathlib
import statistics
import sys
import time

for name in "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS":
    os.environ.setdefault(name, "1")  # a machine has one thread here
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

import numpy as np
import kofn
import gwas

MACHINES, BATCH = 16, 2
LATENCY, BANDWIDTH = 100e-6, 1.25e9  # of a link of 10 Gbit/s

HALF = gwas.PERMUTATIONS // BATCH // 2
# Each event's lines for the simulator, and what is left of the capacity after half of
# the batches. Slow or wrong machines are so from the first batch after the half.
EVENTS = {
    "none": ("", MACHINES),
    "one of 16 stopped": (f"{HALF + 1} leave 3", MACHINES - 1),
    "two of 16 stopped": (f"{HALF + 1} leave 3\n{HALF + 1} leave 4", MACHINES - 2),
    "one five times slower": (f"{HALF + 1} slow 3 5", MACHINES - 1 + 1 / 5),
    "one returns wrong numbers": (f"{HALF + 1} corrupt 3", MACHINES - 1),
}
WAYS = {"no code": dict(scheme="uncoded"),
        "elastic:k=12": dict(scheme="elastic:k=12,deal=speed"),
        "elastic:k=12, keyed": dict(scheme="elastic:k=12,deal=speed", errors="keyed")}


def measured(study):
    """Returns seconds for 1e9 multiply-adds of a machine's part, the median of nine."""
    part = np.array_split(study.Z, MACHINES)[0]
    x, times = np.ascontiguousarray(study.Y[:, :BATCH]), []
    for _ in range(9):
        begin = time.perf_counter()
        for _ in range(10):
            part @ x
        times.append((time.perf_counter() - begin) / 10)
    return statistics.median(times) * 1e9 / (part.size * BATCH)


def permutations(study, costs, events, given):
    """Returns the simulated seconds of all batches, and the largest error, relative to
    the largest number of the result of NumPy. Fails if kofn predicted less."""
    error = took = predicted = 0.0
    right = study.Z @ study.Y[:, 1:]
    with kofn.Matrix(study.Z, "sim", workers=MACHINES, columns=BATCH, faults=costs,
                     events=events, **given) as Z:
        for i in range(0, gwas.PERMUTATIONS, BATCH):
            got = Z @ np.ascontiguousarray(study.Y[:, 1 + i:1 + i + BATCH])
            error = max(error, abs(got - right[:, i:i + BATCH]).max())
            took += Z.report.seconds
            predicted = max(predicted, Z.report.predicted)
    if error > predicted * abs(right).max():
        sys.exit(f"kofn delivered an error of {error:.0e}, and predicted {predicted:.0e} "
                 "of the largest number")
    return took, error / abs(right).max()


def rows(study, costs):
    """Yields the way, the event, seconds, the time over that without an event, that
    over what the remaining capacity allows, and the largest error; or what failed."""
    for way, given in WAYS.items():
        base = None
        for event, (lines, left) in EVENTS.items():
            try:
                took, error = permutations(study, costs, lines, given)
            except (kofn.TooFewWorkers, kofn.Corrupt) as e:
                yield way, event, None, None, None, type(e).__name__
                continue
            base = base or took
            best = (1 + MACHINES / left) / 2
            yield way, event, took, took / base, took / base / best, error


HEAD = ("way", "event", "seconds", "over no event", "over remaining capacity",
        "largest error")


def printed(table):
    yield "| " + " | ".join(HEAD) + " |"
    yield "|" + "---|" * len(HEAD)
    for way, event, took, ratio, best, error in table:
        if took is None:
            yield f"| {way} | {event} | fails: {error} | | | |"
        else:
            yield (f"| {way} | {event} | {took:.3f} | {ratio:.3f} | {best:.3f} | "
                   f"{error:.0e} |")


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("-n", type=int, default=2000, help="people (2000)")
    a.add_argument("-p", type=int, default=10000, help="variants (10000)")
    a.add_argument("-o", default="sixteen.svg", help="the picture (sixteen.svg)")
    given = a.parse_args()
    study = gwas.Study(*gwas.simulate(given.n, given.p))
    work = measured(study)
    table = list(rows(study, f"work={work:.6g},latency={LATENCY},bandwidth={BANDWIDTH}"))
    print(f"{given.n} people, {given.p} variants, {gwas.PERMUTATIONS} permutations in "
          f"batches of {BATCH}, {MACHINES} machines; {work:.3f} s for 1e9 "
          "multiply-adds\n")
    print("\n".join(printed(table)))
    pathlib.Path(given.o).write_text(gwas.picture(
        [(w, e, t, r, None, 0) for w, e, t, r, *_ in table if t is not None], EVENTS))


if __name__ == "__main__":
    main()
