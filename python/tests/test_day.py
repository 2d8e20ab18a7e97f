"""A long day: handles made and dropped, threads, exceptions, interrupts, forks.

Memory and descriptors are measured once all kinds of handles have been used. After
ten times the handles they may have grown only by what allocators keep. KOFN_TEST_SCALE=100
python3 -m pytest python/tests/test_day.py is 10^5 handles.
"""
import gc
import os
import signal
import threading

import numpy as np
import pytest

import kofn
from kofn import _lib

X = np.random.default_rng(2).standard_normal((24, 6))
w = np.ones(6)
SCALE = float(os.environ.get("KOFN_TEST_SCALE", "1"))


def held():
    """(KiB of memory that is this process's own, descriptors, threads)"""
    gc.collect()
    with open("/proc/self/status") as f:
        rows = dict(line.split(":", 1) for line in f)
    return (int(rows["RssAnon"].split()[0]), len(os.listdir("/proc/self/fd")),
            int(rows["Threads"]))


def matrix(i):
    M = kofn.Matrix(X, scheme="mds:k=2", workers=3, where="sim")
    assert np.allclose(M @ w, X @ w)
    if i % 2:
        M.close()


def on_threads(i):
    with kofn.Matrix(X, scheme="elastic:k=2", workers=2) as M:
        found = []
        t = threading.Thread(target=lambda: found.append(w @ M.T))
        t.start()
        t.join()
        assert np.allclose(found[0], X @ w)


def fails(part, parts, x):
    raise RuntimeError("as it should")


def an_exception(i):
    with kofn.Sum(fails, 4, scheme="gc:d=2", workers=2, where="sim") as S:
        with pytest.raises(RuntimeError, match="as it should"):
            S(np.ones(4))


def dropped_in_the_middle(i):
    S = kofn.Stream((4, 4, 4), "sim", scheme="dip:m=1,p=2,T=1", workers=2)
    put = [S.put(np.eye(4), np.eye(4)) for _ in range(3)]
    put[i % 3].result()


def refused(i):
    with pytest.raises(kofn.Invalid):
        kofn.Matrix(X, scheme="nonsense")
    with pytest.raises(kofn.Invalid):
        kofn.Matrix(X, workers=-1)


def interrupted(i):
    with kofn.Matrix(X, scheme="uncoded", workers=2, where="sim") as M:
        old = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            os.kill(os.getpid(), signal.SIGINT)
            assert np.allclose(M @ w, X @ w)
        finally:
            signal.signal(signal.SIGINT, old)


def forked(i):
    M = kofn.Matrix(X, ("sim", "threads", "processes")[i // 50 % 3],
                    scheme="mds:k=2", workers=3, below="pause")
    M @ w
    child = os.fork()
    if child == 0:
        ok = False
        try:
            with pytest.raises(kofn.Error, match="is a fork"):
                M @ w
            M.close()  # and leaves what is the parent's alone
            with kofn.Matrix(X, scheme="mds:k=2", workers=3, where="sim") as own:
                ok = np.allclose(own @ w, X @ w)
        finally:
            os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.allclose(M @ w, X @ w)


KINDS = [(matrix, 1), (on_threads, 4), (an_exception, 4), (refused, 2),
         (dropped_in_the_middle, 2), (interrupted, 4), (forked, 50)]


def day(handles):
    for i in range(handles):
        for kind, every in KINDS:
            if i % every == 0:
                kind(i)


def test_a_day(capfd):
    day(150)
    before = held()
    day(int(1000 * SCALE))
    after = held()
    assert not _lib.stopped()
    assert after[1:] == before[1:]
    # 8 KiB a handle are seen here, 84 bytes in the long form
    assert after[0] - before[0] < 8192
