"""Products against NumPy and SciPy."""
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr, svds

import kofn

rng = np.random.default_rng(7)
X = rng.standard_normal((90, 12))


def close(a, b, dtype=np.float64):
    scale = np.abs(b).max() + 1e-300
    return np.abs(np.asarray(a) - b).max() <= scale * (
        1e-11 if dtype == np.float64 else 1e-3)


@pytest.mark.parametrize("scheme", ["elastic:k=3", "mds:k=4", "uncoded",
                                    "replication:k=3"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products(scheme, dtype):
    A = X.astype(dtype)
    w, W = rng.standard_normal(12).astype(dtype), \
        rng.standard_normal((12, 5)).astype(dtype)
    with kofn.Matrix(A, scheme=scheme, workers=6) as M:
        assert close(M @ w, A @ w, dtype)
        assert close(M @ W, A @ W, dtype)
        assert (M @ w).dtype == dtype and (M @ w).shape == (90,)


def test_a_page_about_the_products_is_written(tmp_path):
    page = tmp_path / "run.html"
    with kofn.Matrix(X, workers=4, scheme="elastic:k=2", report=page) as A:
        for _ in range(3):
            A @ np.ones(12)
        assert not page.exists()
    assert '"workers":4,"rounds":3,' in page.read_text()


def test_a_file_that_is_mapped_into_memory_is_read_in_place(tmp_path):
    np.save(tmp_path / "A.npy", X)
    mapped = np.load(tmp_path / "A.npy", mmap_mode="r")
    with kofn.Matrix(mapped, scheme="elastic:k=3", workers=4) as M:
        assert np.shares_memory(M._borrowed, mapped)
        assert close(M @ X[0], X @ X[0])


def test_both_sides_on_one_encoding():
    v, V = rng.standard_normal(90), rng.standard_normal((4, 90))
    with kofn.Matrix(X, scheme="elastic:k=3", workers=5) as M:
        assert close(v @ M, v @ X)
        assert close(M.T @ v, X.T @ v)
        assert close(V @ M, V @ X)
        assert close(M.T @ V.T, X.T @ V.T)
    with kofn.Matrix(X, scheme="mds:k=3", workers=5) as M:
        with pytest.raises(kofn.Unsuited, match="from the left"):
            v @ M


def test_orders_and_strides_without_surprise():
    w = rng.standard_normal(12)
    wide = rng.standard_normal((90, 40))
    columns = wide[:, 5:17]                    # a view: rows contiguous
    for A in (np.asfortranarray(X), columns, X[::-1], X[::2], X.T.copy().T,
              X.tolist(), (100 * X).astype(int)):
        with kofn.Matrix(A, scheme="elastic:k=3", workers=5) as M:
            assert close(M @ w, np.asarray(A, float) @ w)
    with kofn.Matrix(X, scheme="elastic:k=3", workers=5) as M:
        assert close(M @ wide[:12, 3], X @ wide[:12, 3])
        assert close(M @ wide[:12, ::2], X @ wide[:12, ::2])
        assert close(M @ w[::-1], X @ w[::-1])


def askew(a):
    """a at an odd address, as numbers of a file that is mapped may be."""
    b = np.zeros(a.nbytes + 8, np.uint8)
    at = 1 - b.ctypes.data % 2
    b = b[at:at + a.nbytes].view(a.dtype).reshape(a.shape)
    b[...] = a
    assert not b.flags.aligned
    return b


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_at_odd_addresses(dtype):
    A, W = X.astype(dtype), rng.standard_normal((12, 5)).astype(dtype)
    with kofn.Matrix(askew(A), scheme="elastic:k=3", workers=5) as M:
        assert close(M @ askew(W), A @ W, dtype)
        assert close(M @ askew(W)[:, 2], A @ W[:, 2], dtype)
        assert close(askew(A[:, 0]) @ M, A[:, 0] @ A, dtype)
    assert kofn._lib.array(askew(A)).flags.aligned
    C = sp.csr_matrix(X)
    C.data = askew(C.data)
    with kofn.Matrix(C, scheme="elastic:k=3", workers=5) as M:
        assert close(M @ W[:, 0].astype(float), X @ W[:, 0].astype(float))
    if dtype == np.float64:
        y = X @ W[:, 0]
        fit = kofn.Regression(scheme="elastic:k=3", workers=5, intercept=False)
        assert close(fit.fit(X, askew(y)).coef_, fit.fit(X, y).coef_)


def test_nothing_is_copied_on_the_way_in_and_out(monkeypatch):
    A = np.ones((400, 300))
    with kofn.Matrix(A, scheme="elastic:k=4", workers=4) as M:
        assert M._borrowed is A
        assert kofn._lib.array(A) is A
        view = kofn._lib.view(A[:, 10:20])
        assert view.ld == 300 and view.cols == 10
        assert int(kofn._lib.ffi.cast("uintptr_t", view.data)) == \
            A.ctypes.data + 80


def test_a_call_allocates_its_answer_and_little_else():
    import tracemalloc

    A, B = np.ones((600, 500)), np.ones((500, 400))
    with kofn.Matrix(A, scheme="elastic:k=2", workers=3, columns=400) as M:
        for left, x in ((False, B), (True, np.ones((400, 600)))):
            call = (lambda: x @ M) if left else (lambda: M @ x)
            assert close(call(), x @ A if left else A @ x)
            tracemalloc.start()
            try:
                out = call()
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            # NumPy reports its arrays to tracemalloc; a copy of A, x or out is 1.6 MB or more
            assert out.nbytes <= peak < out.nbytes + 100_000


@pytest.mark.parametrize("where", ["threads", "sim", "processes"])
def test_inputs_that_are_not_as_wide_as_was_said(where):
    # workers compute three columns at a time, whatever an input has
    wide, tall = rng.standard_normal((12, 7)), rng.standard_normal((7, 90))
    with kofn.Matrix(X, where, scheme="elastic:k=2", workers=3, columns=3) as M:
        for n in range(1, 8):
            right, left = M @ wide[:, :n], tall[:n] @ M
            assert right.shape == (90, n) and close(right, X @ wide[:, :n])
            assert left.shape == (n, 12) and close(left, tall[:n] @ X)
        assert (M @ wide[:, 0]).shape == (90,)
        assert close(M @ wide[:, 0], X @ wide[:, 0])
        assert (tall[0] @ M).shape == (12,) and close(tall[0] @ M, tall[0] @ X)


@pytest.mark.parametrize("where", ["threads", "processes"])
def test_inputs_of_every_width_have_the_same_workers(where):
    with kofn.Matrix(X, where, scheme="elastic:k=2", workers=2) as M:
        before = threading.active_count(), len(os.listdir("/proc/self/task"))
        for c in (*range(1, 13), 100, 2):
            W, V = rng.standard_normal((12, c)), rng.standard_normal((c, 90))
            assert close(M @ W, X @ W) and close(V @ M, V @ X)
            assert M.totals.rounds % 2 == 0 and len(M._jobs) == 1
        assert (threading.active_count(), len(os.listdir("/proc/self/task"))) == before
        assert M.totals.rounds == 28


def test_inputs_too_long_for_a_packet_are_cut(monkeypatch):
    monkeypatch.setattr(kofn._matrix, "PIECE", 90 * 8 * 3)  # three vectors of 90
    wide, tall = rng.standard_normal((12, 7)), rng.standard_normal((7, 90))
    with kofn.Matrix(X, "processes", scheme="elastic:k=2", workers=3) as M:
        assert close(M @ wide, X @ wide) and M.totals.rounds == 3
        assert close(tall @ M, tall @ X) and M.totals.rounds == 6


@pytest.mark.parametrize("where", ["threads", "sim"])
def test_schemes_that_fix_the_rows_of_left_products(where):
    tall = rng.standard_normal((13, 90))
    with kofn.Matrix(X, where, scheme="gpd:m=2,n=1,p=1", workers=3, columns=5) as M:
        for c in (5, 2, *range(3, 14), 5, 13, 1):
            assert close(tall[:c] @ M, tall[:c] @ X) and len(M._jobs) <= 8
            assert close(M @ tall[:c, :12].T, X @ tall[:c, :12].T)
        assert close(tall[0] @ M, tall[0] @ X)
        assert len(M._jobs) == (8 if where == "threads" else 1)


def test_a_column_from_the_left():
    # a copied column lives until its round ends
    wide = rng.standard_normal((90, 7))
    with kofn.Matrix(X, scheme="elastic:k=2", workers=3) as M:
        for i in range(7):
            assert close(wide[:, i] @ M, wide[:, i] @ X)


def test_sparse():
    S = sp.random(120, 30, 0.2, random_state=3, format="coo")
    w = rng.standard_normal(30)
    with kofn.Matrix(S, scheme="elastic:k=3", workers=5) as M:
        assert close(M @ w, S @ w)


def repeated(kind, form):
    """A sparse matrix with two entries at one place, out of order, read-only."""
    numbers = np.array([100, 7, 100, 1], kind)
    places = [np.array(p, np.int32) for p in ([1, 1, 1, 2], [2, 0, 2, 1])]
    ends = np.array([0, 0, 3, 4], np.int32)
    if form == "bsr":
        numbers = numbers[:, None, None]
    for part in (numbers, *places, ends):
        part.flags.writeable = False
    if form == "coo":
        return sp.coo_matrix((numbers, tuple(places)), (3, 3)), (numbers, *places)
    make = sp.bsr_matrix if form == "bsr" else sp.csr_matrix
    S = make((numbers, places[1], ends), (3, 3))
    return S.T if form == "csc" else S, (numbers, places[1], ends)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.float32, np.float64])
def test_entries_of_one_place_are_added_and_the_matrix_stays(form, kind):
    S, parts = repeated(kind, form)
    before = S.nnz, [part.copy() for part in parts]
    right = np.zeros((3, 3))
    np.add.at(right, ([1, 1, 1, 2], [2, 0, 2, 1]), [100, 7, 100, 1.0])
    right = right.T if form == "csc" else right
    assert kofn.check_product(S, np.eye(3), right)
    with kofn.Matrix(S, scheme="elastic:k=2", workers=3, where="sim") as M:
        assert close(M @ np.ones(3), right @ np.ones(3))
    assert S.nnz == before[0]
    assert all((a == b).all() for a, b in zip(parts, before[1]))


@pytest.mark.parametrize("scheme", [
    "elastic:k=1", "mds:k=1", "elastic:k=2,groups=2", "mds:k=1,basis=gauss,weight=1",
    "elastic:k=1,basis=haar", "elastic:k=1,cut=columns"])
def test_whole_numbers_stay_whole_where_one_worker_is_enough(scheme):
    A = np.arange(1.0, 41).reshape(20, 2)
    with kofn.Matrix(A, workers=4, scheme=scheme, where="sim") as M:
        assert (M @ np.ones(2) == A.sum(axis=1)).all()


def test_scipy_solvers():
    with kofn.Matrix(X, scheme="elastic:k=3", workers=5,
                     events=["4 leave 1", "9 join", "20 leave 3"]) as M:
        op = M.aslinearoperator()
        assert close(np.sort(svds(op, k=3)[1]),
                     np.sort(np.linalg.svd(X)[1])[-3:])
        b = rng.standard_normal(90)
        assert np.allclose(lsqr(op, b, atol=1e-13, btol=1e-13)[0],
                           np.linalg.lstsq(X, b, rcond=None)[0], atol=1e-8)
        assert M.totals.left == 2 and M.totals.joined >= 1


@pytest.mark.parametrize("scheme", ["gpd:m=2,n=2,p=2", "polynomial:m=3,p=2",
                                    "matdot:n=4"])
def test_matmul(scheme):
    A, B = rng.standard_normal((24, 16)), rng.standard_normal((16, 18))
    assert close(kofn.matmul(A, B, scheme=scheme, workers=13), A @ B)


def test_tolerate_sets_the_parameter_of_the_scheme():
    X = np.arange(12.0).reshape(6, 2)
    events = ["1 leave 0", "1 leave 3"]  # two of five, in a scheme that any three serve
    with kofn.Matrix(X, "sim", workers=5, tolerate=2, events=events) as A:
        assert np.allclose(A @ [1.0, 10], X @ [1, 10]) and A.report.left == 2
    y = X @ [2.0, -1]
    for scheme in ("auto", "gc"):
        model = kofn.Regression(scheme=scheme, workers=5, tolerate=2, where="sim",
                                events=events, iterations=60)
        assert model.fit(X, y).report_.left == 2 and "tolerate=2" in repr(model)
    with pytest.raises(kofn.Invalid, match="2 of 5 workers needs k=3.*has k=4"):
        kofn.Matrix(X, scheme="elastic:k=4", workers=5, tolerate=2)
    with pytest.raises(kofn.Invalid, match="5 of 5 workers.*at most 4"):
        kofn.Matrix(X, workers=5, tolerate=5)
    with pytest.raises(kofn.Unsuited, match="gpd.*elastic, mds, pcr, gc or agc"):
        kofn.Matrix(X, scheme="gpd:m=2", workers=5, tolerate=1)


def test_liars_are_located():
    # simulated: all answer in time, so that what is wrong is seen
    with kofn.Matrix(X, scheme="mds:k=4", workers=9, where="sim",
                     errors="adversarial",
                     events=["1 corrupt 2", "1 corrupt 5"]) as M:
        assert close(M @ np.ones(12), X @ np.ones(12))
        assert M.report.liars == (2, 5) and M.report.floor > 0
        assert "<table>" in M.report._repr_html_()
        assert str(M.report).splitlines()[-1].split() == ["located", "as", "faulty", "u2,", "u5"]


def test_a_report_says_where_the_time_went():
    with kofn.Matrix(X, scheme="elastic:k=4", workers=6) as M:
        for _ in range(3):
            M @ np.ones(12)
            parts = M.report.phases()
            assert abs(sum(parts.values()) - M.report.seconds) < 1e-6 and "waiting" in parts
        shown = [line.split()[0] for line in str(M.totals).splitlines()
                 if line.startswith("  ")]
        assert shown == list(M.totals.phases())
        assert sum(M.totals.phases().values()) > M.totals.seconds
        html = M.totals._repr_html_()
        assert html.count("background:#0072b2") == len(shown)


@pytest.mark.parametrize("where", ["sim", "processes"])
def test_the_default_scheme_finds_errors_too(where):
    with kofn.Matrix(X, where, workers=5, scheme="elastic:k=2",
                     errors="probabilistic", below="pause") as M:
        assert close(M @ np.ones(12), X @ np.ones(12)) and M.report.floor > 0
        with pytest.raises(kofn.Unsuited, match="without errors"):
            np.ones(90) @ M
    with kofn.Matrix(X, errors="probabilistic") as M:
        assert close(M @ np.ones(12), X @ np.ones(12))


def test_processes_and_kills():
    w = rng.standard_normal(12)
    with kofn.Matrix(X, "processes", scheme="elastic:k=2", workers=4) as M:
        assert close(M @ w, X @ w)
        os.kill(M.processes[1], signal.SIGKILL)
        for _ in range(3):
            assert close(M @ w, X @ w)
        assert close(M @ rng.standard_normal((12, 3)) * 0, np.zeros((90, 3)))


def test_close_ends_a_process_that_is_stopped(monkeypatch):
    killed, kill, waitpid = set(), os.kill, os.waitpid

    def kills(process, number):
        if number == signal.SIGKILL:
            killed.add(process)
        kill(process, number)

    def waits(process, how):
        assert how == os.WNOHANG or process != stopped or stopped in killed, \
            "it would wait for as long as the process is stopped"
        return waitpid(process, how)

    M = kofn.Matrix(X, "processes", scheme="mds:k=2", workers=3)
    M @ np.ones(12)
    stopped = M.processes[1]
    kill(stopped, signal.SIGSTOP)
    monkeypatch.setattr(os, "kill", kills)
    monkeypatch.setattr(os, "waitpid", waits)
    try:
        M.close()
    finally:
        if stopped not in killed:
            kill(stopped, signal.SIGKILL)
    with pytest.raises(ProcessLookupError):
        kill(stopped, 0)


def test_workers_that_do_not_start(monkeypatch):
    from kofn import _fleet

    monkeypatch.setattr(_fleet.Port, "_live",
                        staticmethod(lambda *_: os._exit(3)))
    with pytest.raises(kofn.TooFewWorkers, match="ended before they came"):
        with kofn.Matrix(X, "processes", workers=2) as M:
            M @ np.ones(12)


def test_a_worker_killed_before_the_first_round_is_a_lost_worker():
    with kofn.Matrix(X, "processes", scheme="elastic:k=3", workers=5) as M:
        for process in M.processes[:2]:
            os.kill(process, signal.SIGKILL)
        assert np.allclose(M @ np.ones(12), X @ np.ones(12))
    with kofn.Matrix(X, "processes", scheme="elastic:k=4", workers=5) as M:
        for process in M.processes[:2]:
            os.kill(process, signal.SIGKILL)
        with pytest.raises(kofn.TooFewWorkers, match="3 workers are left"):
            M @ np.ones(12)


def test_processes_wait_for_a_first_round():
    X = np.arange(24.0).reshape(8, 3)
    with kofn.Matrix(X, "processes", scheme="mds:k=2", workers=3) as M:
        # the parent is busy elsewhere
        time.sleep(12 if float(os.environ.get("KOFN_TEST_SCALE", "1")) >= 1 else 3)
        assert np.allclose(M @ np.ones(3), X @ np.ones(3))
        assert M.report.live == 3 and M.report.left == 0


@pytest.mark.parametrize("rounds", [0, 1])
def test_processes_do_not_outlive_who_began_them(tmp_path, rounds):
    # without a round the children begin when their parent has ended
    script = f"""
import os, signal, time, numpy as np, kofn
fork, parent = os.fork, os.getpid()
def fork_late():
    child = fork()
    while child == 0 and os.getppid() == parent:
        time.sleep(0.01)
    return child
if {rounds} == 0:
    os.fork = fork_late
M = kofn.Matrix(np.ones((12, 4)), "processes", workers=2)
for _ in range({rounds}):
    M @ np.ones(4)
print(*M.processes, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    # to a file: the children have it open as well
    with open(tmp_path / "children", "w+") as out:
        subprocess.run([sys.executable, "-c", script], stdout=out,
                       stderr=subprocess.DEVNULL, check=False)
        out.seek(0)
        children = [int(word) for word in out.read().split()]
    assert len(children) == 2

    def lives(pid):
        try:
            with open(f"/proc/{pid}/stat") as f:
                return f.read().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return False

    end = time.monotonic() + 300
    while any(map(lives, children)) and time.monotonic() < end:
        time.sleep(0.1)
    left = [child for child in children if lives(child)]
    for child in left:
        os.kill(child, signal.SIGKILL)
    assert not left


def test_what_is_refused():
    with pytest.raises(kofn.Invalid, match="no scheme"):
        kofn.Matrix(X, scheme="nonsense")
    with pytest.raises(kofn.Invalid, match="carrier pigeon"):
        kofn.Matrix(X, "carrier pigeon")
    with pytest.raises(kofn.Invalid, match="type <U32"):
        kofn.Matrix(X.astype(str))
    with pytest.raises(kofn.Invalid, match=r"B is sparse.*toarray"):
        kofn.matmul(X, sp.eye(12))
    with pytest.raises(ValueError, match=r"\[3, 4\]|NaN"):
        Y = X.copy()
        Y[3, 4] = np.nan
        kofn.Matrix(Y)
    with pytest.raises(kofn.Invalid, match="errors='sometimes'"):
        kofn.Matrix(X, errors="sometimes")
    with kofn.Matrix(X, scheme="elastic:k=3", workers=5) as M:
        with pytest.raises(kofn.Invalid, match="12 are needed"):
            M @ np.ones(13)
    with pytest.raises(kofn.Error, match="closed"):
        M @ np.ones(12)
    with kofn.Matrix(X, scheme="elastic:k=4", workers=4,
                     events="1 leave 0") as M:
        with pytest.raises(kofn.TooFewWorkers) as e:
            M @ np.ones(12)
        assert e.value.status == "TOOFEW"


def test_ctrl_c_stops_a_round_promptly():
    # a machine with much else to do may need a longer round to interrupt
    for delay in (1, 5, 25):
        with kofn.Matrix(X, scheme="uncoded", workers=3,
                         faults=f"straggle=1,delay={delay}") as M:
            main = threading.main_thread().ident
            timer = threading.Timer(0.2, signal.pthread_kill,
                                    (main, signal.SIGINT))
            timer.start()
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                M @ np.ones(12)
            prompt = time.monotonic() - began < 0.9 * delay
            timer.join()
            # the next product waits for the running round, and is right
            assert close(M @ np.ones(12), X @ np.ones(12))
        if prompt:
            return
    assert prompt


def test_handles_end_when_they_are_collected():
    before = threading.active_count()
    for _ in range(50):
        M = kofn.Matrix(X, scheme="elastic:k=2", workers=3)
        M @ np.ones(12)
    job = M._job()
    del M
    gc.collect()
    assert not job.closed
    del job
    gc.collect()
    assert threading.active_count() == before
    with open("/proc/self/status") as f:
        threads = [int(line.split()[1]) for line in f
                   if line.startswith("Threads:")]
    assert threads[0] < 40


@pytest.mark.parametrize("where", ["threads", "sim"])
def test_a_product_has_the_wider_type(where):
    wide = np.array([16777217.0, 0.1])  # neither is a float32
    A = np.eye(2, dtype=np.float32)
    with kofn.Matrix(A, where, workers=2, scheme="elastic:k=1") as M:
        for x in (wide, wide.tolist(), np.array([16777217, 3]), np.array([1, 2]),
                  np.array([1, 2], np.int8), np.array([True, False]),
                  np.ones(2, np.float16), np.ones(2, np.float32), wide[::-1],
                  np.ones((2, 3)), np.ones((2, 3), np.float32)):
            for got, right in ((M @ x, A @ np.asarray(x)),
                               (M.T @ x, A.T @ np.asarray(x))):
                assert got.dtype == right.dtype, x
                assert np.allclose(got, right, rtol=64 * np.finfo(got.dtype).eps)
        assert np.allclose(wide @ M, wide, rtol=1e-14)
        assert (wide @ M).dtype == np.float64
    with kofn.Matrix(A.astype(float), where, workers=2, scheme="uncoded") as M:
        got = M @ wide.astype(np.float32)
        assert got.dtype == np.float64
        assert np.array_equal(got, wide.astype(np.float32))
    got = kofn.matmul(A, np.diag(wide), where, workers=2, scheme="uncoded")
    assert got.dtype == np.float64 and np.array_equal(got, np.diag(wide))


def test_workers_that_hold_one_type_say_so():
    with kofn.Matrix(np.eye(2, dtype=np.float32), "processes", workers=2,
                     scheme="uncoded") as M:
        with pytest.raises(kofn.Invalid, match="float32 and the other factor "
                           "float64.*A.astype"):
            M @ np.ones(2)
        got = M @ np.ones(2, np.float32)
        assert got.dtype == np.float32 and np.array_equal(got, np.ones(2))


def test_what_is_masked_is_refused():
    hidden = np.ma.masked_less(X, X.min() + 1e-9)
    for given in (lambda: kofn.Matrix(hidden),
                  lambda: kofn.check_product(np.eye(90), hidden, X)):
        with pytest.raises(kofn.Invalid, match="1 masked"):
            given()
    with kofn.Matrix(np.ma.masked_array(X), workers=2, scheme="uncoded") as M:
        assert close(M @ np.ones(12), X @ np.ones(12))
        with pytest.raises(kofn.Invalid, match="1 masked"):
            M @ np.ma.masked_array(np.ones(12), [1] + [0] * 11)


def test_processes_leave_join_and_lie_by_events():
    w = rng.standard_normal(12)
    with kofn.Matrix(X, "processes", scheme="elastic:k=3", workers=4, below="pause",
                     events=["2 leave 1", "3 join", "4 leave 0", "5 join"]) as M:
        first = M.processes
        for _ in range(8):
            assert close(M @ w, X @ w)
        assert M.totals.left == 2 and M.totals.joined == 2
        now = M.processes
        assert len(now) == 4 and len(set(now) - set(first)) == 2
    with kofn.Matrix(X, "processes", scheme="elastic:k=3", workers=4,
                     events="9 join") as M:  # which does not come
        assert close(M @ w, X @ w) and len(M.processes) == 4
    with kofn.Matrix(X, "processes", scheme="mds:k=2", workers=5, late=0,
                     errors="adversarial", below="pause",
                     events="1 corrupt 2") as M:
        for _ in range(100):
            assert close(M @ w, X @ w)
            if M.report.liars:
                break
        assert M.report.liars == (2,)


def played(**options):
    """Simulated seconds of a round in which a worker is 5000 times as slow as the
    others, which could make up for it."""
    with kofn.Matrix(X, "sim", workers=4, scheme="elastic:k=2",
                     events="1 slow 2 5000", **options) as M:
        assert close(M @ np.ones(12), X @ np.ones(12))
        return M.report.seconds


def test_late_of_zero_is_never():
    assert played() == played(late=None) == played(late=1.5)
    assert played(late=0) == played(late=-1) > 500 * played()
    for late in (0.5, float("nan")):
        with pytest.raises(kofn.Invalid, match="neither 0, never"):
            played(late=late)


def test_a_plan_of_a_stream():
    info = kofn.plan_info("dip:m=2,p=3,T=3", 4, (8, 6), columns=5, op="stream")
    assert info["delay"] == 3 and info["workers"] == 4


def test_below_at_an_address_waits_for_who_may_come(tmp_path):
    """As the command does, and elsewhere it does not."""

    address = f"ipc://{tmp_path}/socket"
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))

    def worker():
        return subprocess.Popen([sys.executable, "-m", "kofn", "worker", "--once", address,
                                 "--patience", "300"], env=env)

    workers = [worker()]
    try:
        with kofn.Matrix(X, address, scheme="uncoded", workers=1) as M:
            assert close(M @ np.ones(12), X @ np.ones(12))
            workers[0].kill()
            workers[0].wait()
            workers.append(worker())
            assert close(M @ np.ones(12), X @ np.ones(12))
    finally:
        for w in workers:
            w.kill()
            w.wait()
    with kofn.Matrix(X, scheme="uncoded", workers=1, events="2 leave 0") as M:
        M @ np.ones(12)
        with pytest.raises(kofn.TooFewWorkers):
            M @ np.ones(12)


class Asked:
    """An operand that notes down that a worker looks at it."""

    def __init__(self, operand, path):
        self._operand, self._path = operand, path

    @property
    def dense(self):
        with open(self._path, "a", encoding="ascii") as f:
            f.write(f"{os.getpid()}\n")
        return self._operand.dense

    @property
    def sparse(self):
        return self._operand.sparse


@pytest.mark.parametrize("scheme", ["uncoded", "elastic:k=3"])
def test_processes_make_blocks_of_the_matrix_that_they_were_forked_with(
        scheme, monkeypatch, tmp_path):
    A = np.random.default_rng(1).standard_normal((300, 200))
    A[7] *= 1e9  # lines of unlike size are raised, here and there
    x = np.arange(200.0)
    fork = kofn._fleet.Port._processes
    monkeypatch.setattr(
        kofn._fleet.Port, "_processes", lambda self, workers, joiners, serve, operand:
        fork(self, workers, joiners, serve, Asked(operand, tmp_path / "asked")))
    with kofn.Matrix(A, "processes", scheme=scheme, workers=4) as M:
        assert np.allclose(M @ x, A @ x, rtol=1e-12)
        asked = {int(line) for line in open(tmp_path / "asked", encoding="ascii")}
        assert asked == set(M.processes)
