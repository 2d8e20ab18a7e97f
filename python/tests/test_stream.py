"""Streams of products, against NumPy's."""
import signal
import threading
import time

import numpy as np
import pytest

import kofn

rng = np.random.default_rng(8)
SCHEMES = ["dip:m=2,p=3,T=3,lambda=1", "idip:m=2,p=4,N=4,W=3", "polynomial:m=2,p=1",
           "matdot:n=2", "uncoded"]


def pairs(count, dtype=np.float64):
    """Yields pairs of operands with changing shapes."""
    for i in range(count):
        yield (rng.standard_normal((8 + i % 3, 6)).astype(dtype),
               rng.standard_normal((6, 5 + i % 2)).astype(dtype))


def close(got, X, Y):
    """Within what coding makes of the rounding of products of this length."""
    unit = np.finfo(got.dtype).eps * np.linalg.norm(X) * np.linalg.norm(Y)
    return got.shape == (X.shape[0], Y.shape[1]) and \
        np.abs(got - X @ Y).max() <= 1e4 * unit


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_products_in_order(scheme, dtype):
    given = list(pairs(20, dtype))
    with kofn.Stream((8, 6, 5), scheme=scheme, workers=4, dtype=dtype) as s:
        got = list(s.products(given))
        assert s.totals.rounds == 20
    assert len(got) == 20
    assert all(close(C, X, Y) and C.dtype == dtype for C, (X, Y) in zip(got, given))


@pytest.mark.parametrize("where", ["sim", "processes"])
def test_put_and_asked_for_in_any_order(where):
    given = list(pairs(7))
    with kofn.Stream((8, 6, 5), where, scheme=SCHEMES[0], workers=4, below="pause",
                     faults="straggle=0.3,delay=0.002") as s:
        assert s.delay == 3
        put = [s.put(X, Y) for X, Y in given]
        for p, (X, Y) in reversed(list(zip(put, given))):
            assert close(p.result(), X, Y)
            assert p.result() is p.result()
            assert p.report.began >= 1 and p.report.ended <= p.report.began + 3
            assert p.report.plain + p.report.coded >= 6


def test_liars_are_located():
    with kofn.Stream((8, 6, 5), "sim", scheme="polynomial:m=2,p=1", workers=6,
                     errors="adversarial", mu=10, events=["1 corrupt 2"]) as s:
        for (X, Y) in pairs(3):
            p = s.put(X, Y)
            assert close(p.result(), X, Y)
        assert p.report.liars == (2,) and p.report.floor > 0


def test_too_few_is_told_and_told_again():
    with kofn.Stream((8, 6, 5), "sim", scheme="dip:m=2,p=3,T=1", workers=2,
                     events=["1 leave 0", "1 leave 1"]) as s:
        p = s.put(*next(pairs(1)))
        for _ in range(2):
            with pytest.raises(kofn.TooFewWorkers):
                p.result()


def test_what_is_refused():
    X, Y = next(pairs(1))
    with pytest.raises(kofn.Invalid, match=r"\(8, 6\)"):
        kofn.Stream((8, 6), workers=4)
    with pytest.raises(kofn.Invalid, match="int32"):
        kofn.Stream((8, 6, 5), workers=4, dtype=np.int32)
    with kofn.Stream((8, 6, 5), scheme="dip:m=1,p=2,T=1", workers=4) as s:
        with pytest.raises(kofn.Invalid, match="6 columns and Y 5 rows"):
            s.put(X, Y[:5])
        with pytest.raises(kofn.Invalid, match="one dimension"):
            s.put(X, Y[:, 0])
        put = [s.put(X, Y) for _ in range(16)]
        with pytest.raises(kofn.Error, match="16"):
            s.put(X, Y)
        assert close(put[3].result(), X, Y)
    with pytest.raises(kofn.Error, match="closed"):
        put[5].result()
    with pytest.raises(kofn.Error, match="closed"):
        s.put(X, Y)


def test_ctrl_c_leaves_and_the_product_can_be_had():
    X, Y = next(pairs(1))
    # a machine with much else to do may need a longer round to interrupt
    for delay in (1, 5, 25):
        with kofn.Stream((8, 6, 5), scheme="uncoded", workers=3,
                         faults=f"straggle=1,delay={delay}") as s:
            p = s.put(X, Y)
            timer = threading.Timer(0.2, signal.pthread_kill,
                                    (threading.main_thread().ident, signal.SIGINT))
            timer.start()
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                p.result()
            prompt = time.monotonic() - began < 0.9 * delay
            timer.join()
            assert close(p.result(), X, Y)
        if prompt:
            return
    assert prompt


@pytest.mark.parametrize("dtype, again", [
    (np.float64, lambda X: X), (np.float64, lambda X: X[:, :3]),
    (np.float64, memoryview), (np.float32, lambda X: X)])
def test_a_generator_may_fill_an_array_again(dtype, again):
    X, Y = np.zeros((4, 4)), np.zeros((4, 3))

    def pairs():
        for i in range(5):
            X[:], Y[:] = i, i
            yield again(X), Y[:again(X).shape[1]]

    with kofn.Stream((4, 4, 3), scheme="dip:m=2,p=2,T=2", workers=4, where="sim",
                     dtype=dtype) as s:
        got = [C[0, 0] for C in s.products(pairs())]
    assert got == [again(X).shape[1] * i ** 2 for i in range(5)]


def test_totals_are_of_the_clock(monkeypatch):
    """seconds counts from the first put to the last result. Products in progress at
    the same time do not count twice."""
    ticks = iter(range(100, 200))
    monkeypatch.setattr(kofn._stream.time, "monotonic", lambda: next(ticks))
    given = list(pairs(6))
    with kofn.Stream((8, 6, 5), scheme=SCHEMES[0], workers=4) as s:
        assert s.totals.seconds == 0
        put = [s.put(X, Y) for X, Y in given]  # the first of them at 100
        for p in put:                          # over at 101, 102, ...
            p.result()
        assert s.totals.seconds == 6
        assert s.totals.rounds == 6
    assert s.totals.seconds == 6
