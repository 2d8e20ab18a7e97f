"""The multiplication of a worker. A file says which processes are slow or wrong, and counts
multiplications. kofn and plain Dask use the same function."""
import mmap
import os
import time

import numpy as np

SLOTS = 4096  # of processes, by process number modulo this
SLOW, WRONG = 1.0, 2.0


def control(path=None):
    """Returns an array of the file: for each process an event and the operations that it
    has done."""
    path = path or os.environ["KOFN_GWAS"]
    with open(path, "r+b") as f:
        return np.frombuffer(mmap.mmap(f.fileno(), 0)).reshape(2, SLOTS)


def multiply(a, b):
    """Returns a @ b, later on a slow process and with an error on a wrong one."""
    events, done = control()
    slot = os.getpid() % SLOTS
    begin = time.perf_counter()
    c = a @ b
    done[slot] += a.shape[0] * a.shape[1] * b.shape[1]
    if events[slot] == SLOW:
        time.sleep(4 * (time.perf_counter() - begin))
    if events[slot] == WRONG:
        c[::7] *= 1.01
    return c
