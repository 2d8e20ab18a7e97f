"""Sums, iterations, regression, workers elsewhere."""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import kofn
from kofn._audit import Audit

rng = np.random.default_rng(5)


def squares(part, parts, x):
    return (part + 1.0) * x ** 2


@pytest.mark.parametrize("own", [np.float64, np.float32])
@pytest.mark.parametrize("given", ["f8", "f4", "f2", ">f8", ">f4", "i4", "?"])
def test_what_comes_is_of_the_type_that_was_said(own, given):
    x = np.array([0, 1, 1], given)
    with kofn.Sum(lambda part, parts, x: (part + 1) * x, 3, scheme="gc:d=2",
                  workers=4, dtype=own) as total:
        y = total(x)
    assert y.dtype == own and np.allclose(y, [0, 10, 10], atol=1e-5)
    X = np.diag(x)
    with kofn.Stream((3, 3, 3), scheme="polynomial:m=1,p=2", workers=3,
                     dtype=own) as s:
        C = s.put(X, X).result()
    assert C.dtype == own and np.allclose(C, np.diag([0, 1, 1]), atol=1e-5)


@pytest.mark.parametrize("scheme", ["gc:d=2", "agc:d=3", "cgc:d=3,s=1",
                                    "uncoded"])
@pytest.mark.parametrize("where", ["threads", "processes"])
def test_sums(scheme, where):
    x = rng.standard_normal(24)
    with kofn.Sum(squares, 24, scheme=scheme, workers=6, where=where) as S:
        weight = sum(range(1, S.parts + 1))
        assert np.allclose(S(x), weight * x ** 2, rtol=1e-9)
        assert np.allclose(S(2 * x), weight * 4 * x ** 2, rtol=1e-9)


@pytest.mark.parametrize("where", ["threads", "processes"])
def test_sums_that_are_checked_now_and_then(where):
    x = rng.standard_normal(24)
    with kofn.Sum(squares, 24, scheme="gc:d=3", workers=6, where=where,
                  errors="detect", audit=3) as S:
        for t in range(7):
            assert np.allclose(S((t + 1) * x), 21 * ((t + 1) * x) ** 2, rtol=1e-9)
            assert S.report.unchecked == (t % 3 > 0)
        assert S.totals.unchecked == 4
    with pytest.raises(kofn.Unsuited, match="audit = 3"):
        kofn.Sum(squares, 24, scheme="agc:d=3", workers=6, errors="detect", audit=3)


def descend(S, steps, audit=None):
    """Gradient descent on a sum of squares; the place where it ends."""
    state = [np.zeros(S.inputs)]

    def take():
        state[0] = state[0] - 0.1 * S(state[0])
        return float(state[0] @ state[0])

    audit = audit or Audit(S, lambda: state[0].copy(),
                           lambda kept: state.__setitem__(0, kept.copy()))
    step = 0
    while step < steps:
        step, _ = audit.step(step, step + 1 == steps, take)
    audit.end()
    return state[0]


@pytest.mark.parametrize("begin", [1, 2, 5, 6, 8, 9])
def test_a_loop_goes_back_to_the_last_checked_step(begin):
    def pull(part, parts, x):
        return (x - np.arange(5) - part) / parts

    ends = []
    for more in {}, dict(errors="probabilistic", audit=4, seed=begin,
                         events=f"{begin} corrupt 2"):
        with kofn.Sum(pull, 5, scheme="gc:d=3", workers=6, where="sim", **more) as S:
            ends.append(descend(S, 9))
            if more:
                assert set(S.totals.liars) <= {2}
    assert np.allclose(*ends, rtol=1e-9)


@pytest.mark.parametrize("scheme", ["agc:d=3", "g-agc:d=3"])
@pytest.mark.parametrize("where", ["sim", "threads", "processes"])
def test_who_lies_in_short_messages_is_named(scheme, where, tmp_path):
    me = []

    def f(part, parts, x):
        if where == "processes":  # the first that comes here lies
            try:
                (tmp_path / "liar").touch(exist_ok=False)
                me.append(True)
            except FileExistsError:
                pass
        return (part + 1) * x + len(me)

    events = None if where == "processes" else "2 corrupt 4"
    with kofn.Sum(f, 24, scheme=scheme, workers=9, where=where, late=0,
                  errors="probabilistic", events=events, below="pause") as S:
        weight = sum(range(1, S.parts + 1))
        named = set()
        for _ in range(4):
            x = rng.standard_normal(24)
            assert np.allclose(S(x), weight * x, rtol=1e-9)
            named |= set(S.report.liars)
        assert named == {4} if events else len(named) == 1


class Odd(Exception):
    """One that cannot be pickled and made again as others are."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


def raises_odd(part, parts, x):
    raise Odd(1, 2)


def raises_key(part, parts, x):
    return {}["luck"] * x


def raises_local(part, parts, x):
    class Local(Exception):
        pass

    raise Local("out of luck")


@pytest.mark.parametrize("where", ["threads", "sim", "processes"])
@pytest.mark.parametrize("f, kind, words", [
    (raises_key, KeyError, "'luck'"), (raises_odd, Odd, "1 and 2"),
    (raises_local, None, "out of luck")])
def test_what_a_function_raises_comes_home(where, f, kind, words, capfd):
    with kofn.Sum(f, 4, scheme="gc:d=2", workers=4, where=where) as S:
        for _ in range(2):
            with pytest.raises(Exception) as e:
                S(np.ones(4))
            cause = e.value.__cause__
            if kind:
                assert type(e.value) is kind and str(e.value) == words
            elif where == "processes":  # of a type that there is only there
                cause = e.value
            else:
                assert type(e.value).__name__ == "Local"
            assert type(cause) is kofn.TaskFailed and cause.status == "TOOFEW"
            assert f"in {f.__name__}" in str(cause) and words in str(cause)
            assert isinstance(cause.__cause__, kofn.TooFewWorkers)
    assert words in capfd.readouterr().err


@pytest.mark.parametrize("where", ["threads", "sim", "processes"])
def test_an_exception_is_printed_once(where, capfd):
    """And those of other lines are printed, too."""
    def f(part, parts, x):
        tries.append(part)
        if x[0] < 2:
            raise RuntimeError(f"part {part} is out of luck")
        raise RuntimeError("of another line")

    tries = []
    with kofn.Sum(f, 4, scheme="gc:d=2", workers=4, where=where) as S:
        for first in 0.0, 1.0, 2.0:
            with pytest.raises(RuntimeError) as e:
                S(np.full(4, first))
            assert "in f" in str(e.value.__cause__)
    err = capfd.readouterr().err
    assert where == "processes" or len(tries) > 3
    assert err.count("is out of luck\n") == err.count("of another line\n") == 1
    assert err.count("Traceback") == 2


def test_what_multiply_raises_in_an_iteration_comes_home(capfd):
    def multiply(a, b):
        raise MemoryError("no room on the GPU")

    with kofn.Matrix(np.eye(6), "processes", scheme="mds:k=2", workers=3,
                     multiply=multiply) as M:
        with pytest.raises(MemoryError, match="no room"):
            kofn.power(M, iterations=3)
    assert capfd.readouterr().err.count("Traceback") == 1


def writes(part, parts, x):
    x *= part + 1
    return x


@pytest.mark.parametrize("where", ["threads", "processes"])
def test_a_function_cannot_write_to_what_it_is_lent(where):
    with kofn.Sum(writes, 4, scheme="gc:d=2", workers=4, where=where) as S:
        with pytest.raises(ValueError, match="read-only"):
            S(np.ones(4))


@pytest.mark.parametrize("where", ["sim", "processes"])
def test_answers_of_a_function_are_checked(where):
    def f(part, parts, x):
        return answers[int(x[0])]

    answers, told = zip(
        (None, "None, and 3 numbers"), (2.0, r"shape \(\), and length=3"),
        ([2.0], r"shape \(1,\)"), (np.ones((3, 1)), r"shape \(3, 1\)"),
        (1j * np.ones(3), "complex128"), (["1", "2", "3"], "type <U1"),
        (np.ma.masked_less(np.arange(3.0), 1), "1 masked"))
    for i, words in enumerate(told):  # a worker may be late with what it raised before
        with kofn.Sum(f, 3, scheme="gc:d=2", workers=4, where=where) as S:
            with pytest.raises(kofn.Invalid, match=words):
                S(np.full(3, i))


def test_what_was_made_up_for_stays_where_it_was():
    """And is not taken for why a later round fails."""
    failed = []

    def f(part, parts, x):
        if not failed:
            failed.append(part)
            raise RuntimeError("once")
        return (part + 1) * x

    with kofn.Sum(f, 4, scheme="gc:d=2", workers=3, where="sim",
                  events=["2 leave 0", "2 leave 1", "2 leave 2"]) as S:
        weight = sum(range(1, S.parts + 1))
        assert np.allclose(S(np.ones(4)), weight) and failed
        with pytest.raises(kofn.TooFewWorkers) as e:
            S(np.ones(4))
        assert e.value.__cause__ is None


def at_an_address(f, where):
    """Starts workers at an address; one of them has the function f."""
    code = ("import kofn, sys, test_rest\n"
            "kofn.serve(sys.argv[1], getattr(test_rest, sys.argv[2]), patience=300, "
            "insecure=True)")
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(
        [os.path.dirname(__file__), *sys.path]))
    return [subprocess.Popen([sys.executable, "-c", code, where, name], env=env)
            for name in ("fair", f)]


def fair(part, parts, x):
    return (part + 1) * x


def raises_evil(part, parts, x):
    raise RuntimeError("\x1b[31mgr\xfcn\x07\u202e" + "x" * 5000 + " luck")


@pytest.mark.parametrize("kind", ["ipc", "tcp"])
@pytest.mark.parametrize("f, words", [
    ("raises_key", ["KeyError: 'luck'", "in raises_key"]),
    ("raises_evil", ["...", "x luck"])])
def test_what_a_function_raises_at_an_address_is_told(kind, f, words, tmp_path, capfd):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free = s.getsockname()[1]
    where = f"ipc://{tmp_path}/s" if kind == "ipc" else f"tcp://127.0.0.1:{free}"
    workers = at_an_address(f, where)
    try:
        with kofn.Sum(fair, 4, scheme="uncoded", workers=2, where=where,
                      below="refuse", insecure=True) as S:
            with pytest.raises(kofn.TaskFailed) as e:
                S(np.ones(4))
            assert isinstance(e.value.__cause__, kofn.TooFewWorkers)
            assert " failed: " in str(e.value.__cause__)
            for text in "Traceback (most recent call last)", *words:
                assert text in str(e.value)
            assert len(str(e.value)) < 4200
            assert all(" " <= c <= "~" or c == "\n"
                       for c in str(e.value) + str(e.value.__cause__))
    finally:
        for w in workers:
            w.kill()
            w.wait()


def test_what_multiply_raises_comes_home():
    def multiply(a, b):
        raise MemoryError("no room on the GPU")

    with kofn.Matrix(np.ones((9, 3)), "processes", scheme="mds:k=2", workers=3,
                     multiply=multiply) as M:
        with pytest.raises(MemoryError, match="no room") as e:
            M @ np.ones(3)
        assert "in multiply" in str(e.value.__cause__)


def test_power_and_pagerank():
    B = rng.standard_normal((40, 40))
    B = B @ B.T
    top = np.linalg.eigvalsh(B)[-1]
    r = kofn.power(B, scheme="elastic:k=3", workers=5, tol=1e-12,
                   iterations=20000)
    assert r.converged and abs(r.eigenvalue - top) < 1e-6 * top
    G = sp.random(200, 200, 0.03, random_state=1, format="csr")
    G.data[:] = 1
    p = kofn.pagerank(G, scheme="elastic:k=3", workers=5, tol=1e-12)
    out = np.asarray(G.sum(axis=1)).ravel()
    v = np.full(200, 1 / 200)
    for _ in range(p.iterations):
        share = np.divide(v, out, out=np.zeros_like(v), where=out > 0)
        v = 0.85 * (G.T @ share + v[out == 0].sum() / 200) + 0.15 / 200
    assert np.abs(p.vector - v).max() < 1e-12


def test_ctrl_c_stops_an_iteration():
    B = np.diag(np.r_[2.0, np.full(9, 1.99999)])
    timer = threading.Timer(0.3, signal.pthread_kill,
                            (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        kofn.power(B, scheme="uncoded", workers=2, tol=1e-300,
                   iterations=10**6)
    timer.join()


def test_regression_squares():
    X = rng.standard_normal((200, 6))
    y = X @ np.arange(6.0) + 3 + 0.1 * rng.standard_normal(200)
    exact = np.linalg.lstsq(np.c_[np.ones(200), X], y, rcond=None)[0]
    for scheme in ("elastic:k=3", "pcr:r=3", "gc:d=2"):
        m = kofn.Regression(scheme=scheme, workers=6, iterations=3000,
                            tol=1e-10).fit(X, y)
        assert m.converged_
        assert np.allclose(np.r_[m.intercept_, m.coef_], exact, atol=1e-7)
        assert m.score(X, y) > 0.99
        assert len(m.history_) >= m.n_iter_


@pytest.mark.filterwarnings("ignore::kofn.ConvergenceWarning")
@pytest.mark.parametrize("scheme, seed", [("pcr:r=3", 2), ("gc:d=2", 5), ("elastic", 2)])
def test_equal_columns_share_their_weight(scheme, seed):
    """F is flat along one line, on which weights must not run away. Across it they are
    those of least norm. With pcr rounding may keep a descent from meeting its tol."""
    r = np.random.default_rng(seed)
    X = r.standard_normal((60, 6))
    X[:, 5] = X[:, 0]
    y = r.standard_normal(60)
    want = np.linalg.lstsq(np.c_[X, np.ones(60)], y, rcond=None)[0]
    m = kofn.Regression(scheme=scheme, workers=5).fit(X, y)
    off = np.r_[m.coef_, m.intercept_] - want
    flat = np.array([1, 0, 0, 0, 0, -1, 0]) / np.sqrt(2)
    assert abs(off @ flat) < 0.05
    assert np.abs(off - (off @ flat) * flat).max() < 1e-6
    assert np.allclose(m.predict(X), X @ want[:-1] + want[-1], atol=1e-6)


def test_regression_has_the_command_s_scheme():
    """pcr needs few answers, elastic serves every loss."""
    r = np.random.default_rng(4)
    X = r.standard_normal((40, 3))
    y = X @ [1.0, 2, 3]
    with pytest.raises(kofn.Unsuited, match="elastic"):
        kofn.Regression(scheme="pcr", loss="poisson", workers=4).fit(X, np.abs(y))
    assert kofn.Regression(loss="poisson", workers=4).fit(X, np.abs(y)).report_.rounds
    few, many = (kofn.Regression(scheme=s, workers=4).fit(X, y) for s in ("auto", "elastic"))
    assert few.report_.rounds < many.report_.rounds  # X' X w is one round
    assert np.allclose(few.coef_, many.coef_)


@pytest.mark.parametrize("scheme", ["auto", "elastic:k=2", "gc:d=2"])
def test_a_path_is_the_ridge_of_each_penalty(scheme):
    r = np.random.default_rng(8)
    X, l2s = r.standard_normal((80, 5)) + 1, [10, 1, 0.1, 0.01, 0]
    y = X @ np.arange(5.0) + r.standard_normal(80)
    m = kofn.Regression(scheme=scheme, workers=4, tol=1e-12)
    coefs, intercepts = m.path(X, y, l2s)
    for l2, w, b in zip(l2s, coefs, intercepts):
        assert np.allclose(np.r_[w, b], ridge_of(X, y, l2), rtol=0, atol=1e-8)
    assert (m.coef_ == coefs[-1]).all() and m.intercept_ == intercepts[-1]
    with pytest.raises(kofn.Invalid, match="l2 = -1"):
        m.path(X, y, [1, -1])


def test_a_warm_start_begins_at_the_last_weights():
    r = np.random.default_rng(8)
    X = r.standard_normal((80, 5)) + 1
    y = (X @ np.arange(5.0) + r.standard_normal(80) > 10).astype(int)
    m = kofn.Regression(loss="logistic", l2=0.1, workers=4, warm_start=True).fit(X, y)
    cold, first = m.n_iter_, np.r_[m.coef_, m.intercept_]
    m.fit(X, y)
    assert m.converged_ and m.n_iter_ == 1 < cold
    assert np.allclose(np.r_[m.coef_, m.intercept_], first, atol=1e-6)
    m.set_params(l2=0.11).fit(X, y)
    want = kofn.Regression(loss="logistic", l2=0.11, workers=4).fit(X, y)
    assert m.n_iter_ < want.n_iter_ and np.allclose(m.coef_, want.coef_, atol=1e-5)
    assert m.fit(X[:, :3], y).coef_.shape == (3,)


def test_regression_names_who_lies():
    X = rng.standard_normal((120, 5))
    y = X @ np.arange(5.0) + 0.1 * rng.standard_normal(120)
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    lies = ["2 corrupt 3", "3 corrupt 7"]
    m = kofn.Regression(scheme="pcr:r=3", workers=9, intercept=False,
                        iterations=3000, tol=1e-10,
                        errors="adversarial", events=lies)
    assert np.allclose(m.fit(X, y).coef_, exact, atol=1e-7)
    assert set(m.report_.liars) in ({3}, {7}, {3, 7})
    assert 0 < m.report_.floor < 1e-6
    m.set_params(errors="detect")
    with pytest.raises(kofn.Corrupt):
        m.fit(X, y)


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
@pytest.mark.parametrize("scheme", ["elastic:k=3", "gc:d=2"])
def test_regression_ends_where_newton_does(loss, scheme):
    r = np.random.default_rng(5)
    X = r.standard_normal((200, 4)) * [1, 0.1, 3, 1]
    t = X @ [0.5, 2, -0.2, 0] + 0.3
    y = r.poisson(np.exp(t)) if loss == "poisson" else r.random(200) < 1 / (1 + np.exp(-t))
    Z, w = np.c_[X, np.ones(200)], np.zeros(5)
    for _ in range(50):
        mu = np.exp(Z @ w) if loss == "poisson" else 1 / (1 + np.exp(-Z @ w))
        h = mu if loss == "poisson" else mu * (1 - mu)
        w -= np.linalg.solve(Z.T @ (Z * h[:, None]), Z.T @ (mu - y))
    m = kofn.Regression(loss=loss, scheme=scheme, workers=5, tol=1e-10).fit(X, y)
    assert m.converged_ and m.n_iter_ < 50
    assert np.abs(np.append(m.coef_, m.intercept_) - w).max() < 1e-8


def test_regression_logistic_and_parameters():
    X = rng.standard_normal((300, 4))
    y = np.where(X @ [2, -1, 0.5, 0] + 0.3 > 0, "yes", "no")
    m = kofn.Regression(loss="logistic", scheme="elastic:k=3", workers=5,
                        iterations=400, l2=1e-3).fit(X, y)
    assert m.score(X, y) > 0.97
    assert set(m.predict(X)) == {"yes", "no"}
    assert np.allclose(m.predict_proba(X).sum(axis=1), 1)
    assert kofn.Regression(**m.get_params()).get_params() == m.get_params()
    with pytest.raises(kofn.Invalid, match="'hinge'"):
        kofn.Regression(loss="hinge").fit(X, y)
    with pytest.raises(kofn.Error, match="fit"):
        kofn.Regression().predict(X)


def test_workers_of_their_own():
    """python -m kofn worker with a module, at a Unix socket."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    with tempfile.TemporaryDirectory() as folder:
        module = pathlib.Path(folder, "job.py")
        module.write_text("def part(part, parts, x):\n"
                          "    return (part + 1.0) * x ** 2\n")
        address = f"ipc://{folder}/socket"
        workers = [subprocess.Popen(
            [sys.executable, "-m", "kofn", "worker", "--once", address, "--module",
             str(module), "--patience", "20"], env=env) for _ in range(3)]
        try:
            with kofn.Sum(squares, 5, scheme="gc:d=2", workers=3,
                          where=address) as S:
                assert np.allclose(S(np.ones(5)), 6.0)
        finally:
            for w in workers:
                w.terminate()
                w.wait()


@pytest.mark.parametrize("busy", [False, True])
def test_ctrl_c_ends_a_worker(busy):
    """While it waits, and in its function."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    with tempfile.TemporaryDirectory() as folder:
        module = pathlib.Path(folder, "job.py")
        module.write_text("import time\n"
                          "def part(part, parts, x):\n"
                          "    print('busy', flush=True)\n"
                          "    time.sleep(600)\n"
                          "print('loaded', flush=True)\n")
        address = f"ipc://{folder}/socket"
        worker = subprocess.Popen(
            [sys.executable, "-m", "kofn", "worker", "--once", address, "--module",
             str(module)], env=env, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.PIPE,  # and whoever began us may ignore it
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        boss = None
        try:
            assert worker.stdout.readline() == "loaded\n"
            if busy:
                boss = subprocess.Popen(
                    [sys.executable, "-c",
                     "import sys, kofn, numpy as np\n"
                     "with kofn.Sum(None, 5, scheme='uncoded', workers=1,"
                     " where=sys.argv[1]) as S:\n"
                     "    S(np.ones(5))\n", address], env=env,
                    stderr=subprocess.DEVNULL)
                assert worker.stdout.readline() == "busy\n"
            else:
                time.sleep(0.5)
            worker.send_signal(signal.SIGINT)
            worker.communicate(timeout=300)  # else 600 s, or for ever
            assert worker.returncode == 130
        finally:
            for process in (worker, boss):
                if process:
                    process.kill()
                    process.wait()


def test_the_command_line_says_what_is_wrong():
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    r = subprocess.run([sys.executable, "-m", "kofn", "worker", "--once", "nowhere"],
                       env=env, capture_output=True, text=True)
    assert r.returncode == 1 and "kofn: " in r.stderr
    assert "Traceback" not in r.stderr


def ridge_of(X, y, ridge):
    """Returns the minimum of 1/m sum (x . w + b - y)^2 / 2 + ridge/2 |w|^2 by the
    normal equations; b is not penalised."""
    m, n = X.shape
    A = np.c_[X, np.ones(m)]
    return np.linalg.solve(A.T @ A / m + ridge * np.diag([1.0] * n + [0.0]),
                           A.T @ y / m)


@pytest.mark.parametrize("scheme", ["elastic:k=2", "pcr:r=2", "gc:d=2"])
def test_the_ridge_is_not_of_the_intercept(scheme):
    X = np.array([[-1.0], [1.0]])
    m = kofn.Regression(l2=1.0, scheme=scheme, workers=4, iterations=1000,
                        tol=1e-12).fit(X, np.array([9.0, 11.0]))
    assert abs(m.intercept_ - 10) < 1e-9 and abs(m.coef_[0] - 0.5) < 1e-9
    X = rng.standard_normal((60, 4)) + 1
    y = X @ [1.0, -2, 0.5, 3] + 7 + rng.standard_normal(60)
    m = kofn.Regression(l2=0.3, scheme=scheme, workers=4, iterations=4000,
                        tol=1e-11).fit(X, y)
    assert np.allclose(np.r_[m.coef_, m.intercept_], ridge_of(X, y, 0.3), atol=1e-8)
    assert np.allclose(m.predict(X), np.c_[X, np.ones(60)] @ ridge_of(X, y, 0.3))


class Frame:
    """The parts of a data frame that kofn uses."""

    def __init__(self, table, columns):
        self.table, self.columns = np.asarray(table), columns

    def __array__(self, dtype=None, copy=None):
        return self.table.astype(dtype or self.table.dtype)


def fitted(X, y):
    return (kofn.Regression(scheme="elastic:k=2", workers=3, iterations=3000,
                            tol=1e-9).fit(X, y),
            kofn.Network(hidden=(3,), scheme="gc:d=2", workers=2,
                         loss="squares", batch=20).fit(X, y))


def test_columns_go_by_their_names():
    table = rng.standard_normal((40, 3))
    y = table @ [1.0, 2, 3]
    X = Frame(table, ["a", "b", "c"])
    other = Frame(table[:, ::-1], ["c", "b", "a"])
    for m in fitted(X, y):
        assert list(m.feature_names_in_) == ["a", "b", "c"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            p = m.predict(X)
        with pytest.raises(ValueError, match="same order"):
            m.predict(other)
        with pytest.raises(ValueError, match="unseen at fit time: d.*missing: c"):
            m.predict(Frame(table, ["a", "b", "d"]))
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            assert np.array_equal(m.predict(table), p)
        with pytest.raises(TypeError, match="some names"):
            m.predict(Frame(table, ["a", "b", 3]))
        with pytest.raises(ValueError, match="X has 2 features, but"):
            m.predict(Frame(table[:, :2], [0, 1]).table)
    for m in fitted(table, y):
        assert not hasattr(m, "feature_names_in_") and m.n_features_in_ == 3
        with pytest.warns(UserWarning, match="fitted without"):
            m.predict(X)
        m.predict(Frame(table, [0, 1, 2]))  # numbers are no names
    assert np.allclose(fitted(table, y)[0].predict(table), y, atol=1e-6)


def test_what_is_missing_is_refused():
    X = rng.standard_normal((40, 3))
    y = X @ [1.0, 2, 3]
    hole = X.copy()
    hole[5, 2] = np.nan
    masked = np.ma.masked_invalid(hole)
    for m in fitted(X, y):
        with pytest.raises(ValueError, match=r"X\[5, 2\] is NaN"):
            m.predict(hole)
        with pytest.raises(ValueError, match="1 masked"):
            m.predict(masked)
        with pytest.raises(ValueError, match="1 masked"):
            m.fit(masked, y)
        with pytest.raises(ValueError, match="1 masked"):
            m.fit(X, np.ma.masked_less(y, y.min() + 1e-12))
        with pytest.raises(ValueError):
            m.fit(hole, y)


def test_a_descent_that_has_not_converged_warns():
    X = rng.standard_normal((200, 5)) * [1, 1e3, 1e-3, 1, 1]
    y = X @ [1, 1e-3, 1e3, 1, 1] + 2
    with pytest.warns(kofn.ConvergenceWarning, match="after 100 iterations") as seen:
        m = kofn.Regression(workers=4, optimizer="nesterov").fit(X, y)
    assert not m.converged_ and issubclass(kofn.ConvergenceWarning, UserWarning)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Z = X / X.std(axis=0)
        assert kofn.Regression(workers=4, optimizer="nesterov", iterations=3000).fit(Z, y).converged_
        assert kofn.Regression(workers=4).fit(X, y).converged_


class Nullable:
    """The part of a pandas data frame with nullable numbers that kofn uses."""

    class Kind:
        kind = "f"

    def __init__(self, table):
        self.table, self.dtypes = table, [self.Kind()]

    def __array__(self, dtype=None, copy=None):
        return self.table.astype(dtype or object)

    def to_numpy(self, dtype, na_value):
        return np.where(self.table == None, na_value, self.table).astype(dtype)  # noqa


def test_numbers_that_may_be_missing():
    table = rng.standard_normal((40, 3))
    y = table @ [1.0, 2, 3]
    m = fitted(Nullable(table.astype(object)), Nullable(y.astype(object)))[0]
    assert np.allclose(m.coef_, [1, 2, 3], atol=1e-6)
    hole = table.astype(object)
    hole[5, 2] = None
    with pytest.raises(kofn.Invalid, match=r"X\[5, 2\] is NaN"):
        m.predict(Nullable(hole))
    assert np.allclose(m.predict(table.astype(object)), y, atol=1e-5)
    words = table.astype(object)
    words[5, 2] = "many"
    with pytest.raises(kofn.Invalid, match=r"type object.*X\[5, 2\] is 'many'"):
        m.predict(words)


def test_models_before_their_fit():
    for m in kofn.Regression(), kofn.Network():
        if isinstance(m, kofn.Regression):
            m.set_params(loss="logistic")
        for call in m.predict, m.predict_proba, lambda X: m.score(X, [0, 1]):
            with pytest.raises(kofn.NotFitted, match="not fitted; call fit") as e:
                call(np.eye(2))
            for kind in kofn.Error, ValueError, AttributeError:
                assert isinstance(e.value, kind)


@pytest.mark.parametrize("loss, scheme", [("squares", "elastic:k=2"),
                                          ("squares", "pcr:r=2"),
                                          ("logistic", "elastic:k=2")])
def test_regression_of_sparse_points(loss, scheme):
    X = rng.standard_normal((60, 4)) * (rng.random((60, 4)) < 0.6)
    y = X @ [1.0, -2, 0.5, 3] + 0.7 + rng.standard_normal(60)
    y = y > 0 if loss == "logistic" else y
    for intercept in True, False:
        m = kofn.Regression(loss=loss, scheme=scheme, workers=4, iterations=3000,
                            tol=1e-10, l2=0.1, intercept=intercept)
        dense = m.fit(X, y).coef_, m.intercept_, m.score(X, y)
        S = sp.coo_matrix(X)
        assert np.allclose(m.fit(S, y).coef_, dense[0], atol=1e-8)
        assert abs(m.intercept_ - dense[1]) < 1e-8
        assert np.allclose(m.predict(S), m.predict(X))
        assert abs(m.score(S.tocsc(), y) - dense[2]) < 1e-8
    S = sp.csr_matrix(X)
    S.data[3] = np.inf
    i, j = np.argwhere(np.isinf(S.toarray()))[0]
    with pytest.raises(kofn.Invalid, match=rf"X\[{i}, {j}\] is inf"):
        m.predict(S)
    with pytest.raises(kofn.Invalid, match="complex"):
        m.fit(S.astype(complex), y)
    with pytest.raises(kofn.Unsuited, match="use scheme pcr or elastic"):
        m.set_params(scheme="gc:d=2").fit(sp.csr_matrix(X), y)


def test_chances_far_from_the_border():
    X = rng.standard_normal((60, 3))
    m = kofn.Regression(loss="logistic", l2=0.01, workers=4).fit(X, X[:, 0] > 0)
    far = np.array([[-1e6, 0, 0], [1e6, 0, 0], [0.3, 0, 0]])
    with np.errstate(all="raise"):
        p = m.predict_proba(far)
    assert p[:2].tolist() == [[1, 0], [0, 1]]
    t = m.decision_function(far)[2]
    assert np.allclose(p[2], [1 / (1 + np.exp(t)), 1 / (1 + np.exp(-t))], rtol=1e-14)
    m.set_params(loss="squares")
    with pytest.raises(kofn.Invalid, match="no classes"):
        m.predict_proba(X)


def test_scores_of_a_constant():
    X = rng.standard_normal((60, 3))
    y = np.full(60, 0.1)  # of which the mean is another number
    m = kofn.Regression(workers=4, tol=1e-12, iterations=3000).fit(X, y)
    net = kofn.Network(hidden=(2,), loss="squares", workers=4).fit(X, y)
    assert m.score(X, m.predict(X)) == 1.0 and net.score(X, y) == 0.0
    assert m.score(X, y + 1) == 0.0
    with pytest.warns(UserWarning, match="fewer than two"):
        assert np.isnan(m.score(X[:1], y[:1]))
    two = np.column_stack([y, X[:, 0]])
    both = kofn.Network(hidden=(2,), loss="squares", workers=4).fit(X, two)
    left = ((both.predict(X)[:, 1] - X[:, 0]) ** 2).sum()
    assert np.isclose(both.score(X, two),
                      (1 - left / ((X[:, 0] - X[:, 0].mean()) ** 2).sum()) / 2)
    for model in m, net:
        with pytest.raises(kofn.Invalid, match=r"y\[2\] is NaN"):
            model.score(X, np.where(np.arange(60) == 2, np.nan, y))


def test_labels_that_are_no_real_numbers_are_refused():
    for make in (kofn.Regression(workers=4),
                 kofn.Network(loss="squares", workers=4)):
        for y, words in ((np.full(3, 1j), "complex"), (["1", "2", "3"], "type <U1"),
                         ([None, 1, 2], "type object")):
            with pytest.raises(kofn.Invalid, match=f"^y has.*{words}"):
                make.fit(np.eye(3), y)


def test_a_model_is_copied_and_pickled():
    import copy
    import pickle

    X = rng.standard_normal((40, 3))
    y = X @ [1.0, 2, 3]
    for m in fitted(X, y):
        for again in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
            assert np.array_equal(again.predict(X), m.predict(X))
