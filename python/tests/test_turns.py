"""Threads that share an object, against NumPy."""
import signal
import threading

import numpy as np
import pytest

import kofn
from kofn._turn import Turn

rng = np.random.default_rng(11)
X = rng.standard_normal((40, 6))


def on_threads(f, count=3):
    """f(i) on each; what they raised."""
    raised = []

    def run(i):
        try:
            f(i)
        except BaseException as e:
            raised.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return raised


def test_products_of_one_matrix():
    with kofn.Matrix(X, scheme="elastic:k=2", workers=3) as M:
        def products(i):
            own = np.random.default_rng(i)
            for t in range(40):
                w = own.standard_normal((6, 1 + t % 3))
                v = own.standard_normal(40)
                assert np.allclose(M @ w, X @ w)
                assert np.allclose(v @ M, v @ X)
                assert M.totals.rounds > 0

        assert not on_threads(products)


def test_products_of_one_stream():
    with kofn.Stream((8, 6, 5), scheme="dip:m=2,p=2,T=2", workers=4) as s:
        def products(i):
            own = np.random.default_rng(i)
            for _ in range(30):
                A, B = own.standard_normal((8, 6)), own.standard_normal((6, 5))
                assert np.allclose(s.put(A, B).result(), A @ B)

        assert not on_threads(products)
        assert s.totals.rounds == 90


@pytest.mark.parametrize("where", ["threads", "sim"])
def test_one_sum(where):
    with kofn.Sum(lambda part, parts, x: (part + 1) * x, 6, scheme="gc:d=2",
                  workers=4, where=where) as S:
        weight = sum(range(1, S.parts + 1))

        def sums(i):
            for t in range(30):
                assert np.allclose(S(np.full(6, i + t)), weight * (i + t))

        assert not on_threads(sums)


def test_one_estimator():
    y = X @ np.arange(6.0) + 3
    exact = np.linalg.lstsq(np.c_[X, np.ones(40)], y, rcond=None)[0]
    m = kofn.Regression(scheme="elastic:k=2", workers=3, iterations=4000,
                        tol=1e-12)

    def fits(i):
        for _ in range(3):
            m.fit(X, y)
            assert np.allclose(m.predict(X), np.c_[X, np.ones(40)] @ exact)

    assert not on_threads(fits)


def close_while_it_waits(S, entered, go, call):
    """close() on another thread while a call is under way, which then ends."""
    ended = []

    def one():
        try:
            call()
        except kofn.Error as e:
            ended.append(e)

    caller = threading.Thread(target=one)
    caller.start()
    entered.wait()
    closer = threading.Thread(target=S.close)
    closer.start()
    caller.join()  # before the function ends
    go.set()
    closer.join()
    assert len(ended) == 1 and "closed" in str(ended[0])


def test_close_ends_a_call_of_another_thread():
    entered, go = threading.Event(), threading.Event()

    def waits(part, parts, x):
        entered.set()
        go.wait()
        return x

    S = kofn.Sum(waits, 3, scheme="uncoded", workers=2)
    close_while_it_waits(S, entered, go, lambda: S(np.ones(3)))
    with pytest.raises(kofn.Error, match="closed"):
        S(np.ones(3))
    S.close()


def test_close_from_many_threads():
    for _ in range(10):
        M = kofn.Matrix(X, scheme="elastic:k=2", workers=3)

        def use(i):
            for _ in range(20):
                assert np.allclose(M @ np.ones(6), X @ np.ones(6))
            M.close()

        assert all("closed" in str(e) for e in on_threads(use))
        with pytest.raises(kofn.Error, match="closed"):
            M @ np.ones(6)
        assert M.totals.rounds > 0


def test_ctrl_c_reaches_who_waits_for_a_turn():
    entered, go = threading.Event(), threading.Event()

    def waits(part, parts, x):
        entered.set()
        go.wait()
        return x

    with kofn.Sum(waits, 3, scheme="uncoded", workers=1) as S:
        found = []
        other = threading.Thread(target=lambda: found.append(S(np.ones(3))))
        other.start()
        entered.wait()
        main = threading.main_thread().ident
        # again and again: the first may come before this thread waits
        stop = threading.Event()

        def interrupt():
            while not stop.wait(0.05):
                signal.pthread_kill(main, signal.SIGINT)

        sender = threading.Thread(target=interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                try:
                    sender.start()
                    S(np.ones(3))
                finally:
                    signal.signal(signal.SIGINT, signal.SIG_IGN)
        finally:
            stop.set()
            sender.join()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            go.set()
            other.join()
        assert np.array_equal(found[0], np.ones(3))
        assert np.array_equal(S(np.ones(3)), np.ones(3))


@pytest.mark.parametrize("where", ["threads", "sim"])
@pytest.mark.parametrize("what", ["call", "totals", "close"])
def test_a_function_that_asks_its_own_sum(where, what):
    said = []

    def f(part, parts, x):
        try:
            {"call": lambda: S(x), "totals": lambda: S.totals,
             "close": S.close}[what]()
        except kofn.Error as e:
            said.append(str(e))
        return x

    with kofn.Sum(f, 3, scheme="uncoded", workers=2, where=where) as S:
        assert np.array_equal(S(np.ones(3)), np.full(3, S.parts))
    assert said and all("made from" in words for words in said)


def test_functions_that_ask_each_other_s_sums():
    """The functions wait for each other, in either order, and both end."""
    said = []
    both = threading.Barrier(2)

    def asks(name):
        first = [True]

        def f(part, parts, x):
            if first:  # later the other one asks for it
                first.clear()
                both.wait()
            try:
                sums[name](x)
            except kofn.Error as e:
                said.append(str(e))
            return x
        return f

    sums = {}
    with kofn.Sum(asks("b"), 3, scheme="uncoded", workers=1) as sums["a"]:
        with kofn.Sum(asks("a"), 3, scheme="uncoded", workers=1) as sums["b"]:
            assert not on_threads(lambda i: sums["ab"[i]](np.ones(3)), 2)
    assert said and all("made from" in words for words in said)


def test_a_function_may_ask_another_object():
    with kofn.Matrix(X, scheme="elastic:k=2", workers=3) as M:
        def f(part, parts, x):
            return M @ x

        with kofn.Sum(f, 40, inputs=6, scheme="uncoded", workers=3) as S:
            assert np.allclose(S(np.ones(6)), S.parts * (X @ np.ones(6)))


def test_turns_are_not_held_in_a_fork():
    import os

    turn = Turn("it")
    inside, go = threading.Event(), threading.Event()

    def hold():
        with turn():
            inside.set()
            go.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        with turn():
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    go.set()
    holder.join()


def test_the_interpreter_ends_while_threads_are_in_calls():
    import os
    import subprocess
    import sys

    script = """
import threading, numpy as np, kofn
X = np.random.default_rng(1).standard_normal((90, 12))
M = kofn.Matrix(X, scheme="elastic:k=3", workers=4)
s = kofn.Stream((8, 8, 8), scheme="dip:m=2,p=2,T=2", workers=4)
m = kofn.Regression(workers=3, iterations=10**8, tol=1e-300)
n = kofn.Network(workers=2, epochs=10**8)
G = np.diag(np.r_[2.0, np.full(9, 1.99999)])
calls = [lambda: M @ np.ones(12), lambda: s.put(np.eye(8), np.eye(8)).result(),
         lambda: m.fit(X, X[:, 0]), lambda: n.fit(X, X[:, 0] > 0),
         lambda: kofn.power(G, scheme="uncoded", workers=2, tol=1e-300,
                            iterations=10**8)]
begun = threading.Barrier(len(calls) + 1)
def again(call):
    begun.wait()
    while True:
        call()
for call in calls:
    threading.Thread(target=again, args=(call,), daemon=True).start()
begun.wait()
for _ in range(50):
    M @ np.ones(12)
print("over", flush=True)
"""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    r = subprocess.run([sys.executable, "-c", script], env=env, text=True,
                       capture_output=True)
    assert r.returncode == 0 and r.stdout == "over\n", r.stderr
