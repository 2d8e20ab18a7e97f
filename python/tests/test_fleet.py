"""One fleet for many objects, against NumPy and scikit-learn."""
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_score

import kofn

rng = np.random.default_rng(8)
A = rng.normal(size=(60, 9))
X = rng.normal(size=(9, 2))
y = A @ np.arange(9.) + rng.normal(size=60)


def part(number, parts, x):
    return (number + 1) * x


@pytest.fixture(scope="module")
def fleet():
    with kofn.Fleet("processes", workers=4, part=part) as f:
        yield f


def worker(address, *options):
    return subprocess.Popen([sys.executable, "-m", "kofn", "worker", address, *options])


def test_objects_follow_one_another_and_are_open_side_by_side(fleet):
    before = {w.process for w in fleet.workers}
    with kofn.Matrix(A, fleet, scheme="mds:k=3") as M:
        assert np.allclose(M @ X, A @ X)
        with kofn.Matrix(3 * A, fleet.share(2), scheme="elastic:k=2") as N, \
                kofn.Sum(None, 2, where=fleet) as S, \
                kofn.Stream((4, 9, 2), fleet, scheme="dip:m=1,p=2,T=1") as T:
            product = T.put(A[:4], X)
            assert np.allclose(N @ X, 3 * A @ X)
            assert np.allclose(S([1.0, 10.0]), [10, 100])
            assert np.allclose(M @ X, A @ X)
            assert np.allclose(product.result(), A[:4] @ X)
    with kofn.Matrix(-A, fleet, scheme="mds:k=2") as M:
        assert np.allclose(M @ X, -A @ X)
    assert {w.process for w in fleet.workers} >= before


def test_folds_and_clones_share_the_workers(fleet):
    model = kofn.Regression(where=fleet)
    assert clone(model).where is fleet
    folds = KFold(4)
    assert np.allclose(cross_val_score(model, A, y, cv=folds),
                       cross_val_score(LinearRegression(), A, y, cv=folds))


def test_threads_of_the_program_have_matrices_of_their_own(fleet):
    wrong = []

    def run(factor):
        with kofn.Matrix(factor * A, fleet, scheme="mds:k=2") as M:
            for _ in range(5):
                if not np.allclose(M @ X, factor * A @ X):
                    wrong.append(factor)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(1, 4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_hundred_fits_leave_nothing(fleet):
    def held():
        gc.collect()
        with open("/proc/self/status") as status:
            size = next(int(line.split()[1]) for line in status if "VmRSS" in line)
        return len(os.listdir("/proc/self/fd")), threading.active_count(), size

    def children():
        return sum(int(open(f"/proc/{w.process}/statm").read().split()[1])
                   for w in fleet.workers) * 4

    def fits(n):
        for _ in range(n):
            w = kofn.Regression(where=fleet).fit(A, y)
        assert np.allclose(w.coef_, LinearRegression().fit(A, y).coef_)

    fits(30)
    before, apart = held(), children()
    fits(100)
    after = held()
    assert after[:2] == before[:2]
    assert after[2] - before[2] < 4096 and children() - apart < 4096  # KiB


def test_workers_elsewhere_have_names_and_leave_when_drained():
    with kofn.Fleet("tcp://127.0.0.1:*", workers=3) as f:
        at = [worker(f.endpoint, "--name", f"w{i}") for i in range(3)]
        assert f.wait(timeout=60) == 3
        assert {w.name for w in f.workers} == {"w0", "w1", "w2"}
        assert {w.process for w in f.workers} == {p.pid for p in at}
        with kofn.Matrix(A, f, scheme="mds:k=1") as M:
            assert np.allclose(M @ X, A @ X)
            at[0].kill()
            assert np.allclose(M @ X, A @ X)
            f.drain("w1")
            assert at[1].wait(timeout=60) == 0
            assert np.allclose(M @ X, A @ X)
        with pytest.raises(kofn.Invalid, match="no connected worker"):
            f.drain("w9")
        assert "w2 came" in f.news
    assert at[2].wait(timeout=60) == 0
    at[0].wait()


def test_a_worker_stays_for_another_coordinator_unless_once(tmp_path):
    address = f"ipc://{tmp_path}/s"
    stays, once = worker(address), worker(address, "--once")
    with kofn.Matrix(A, address, scheme="mds:k=1", workers=2) as M:
        assert np.allclose(M @ X, A @ X)
    assert once.wait(timeout=60) == 0
    with kofn.Matrix(2 * A, address, scheme="mds:k=1", workers=1) as M:
        assert np.allclose(M @ X, 2 * A @ X)
    assert stays.poll() is None
    stays.terminate()
    stays.wait()


def test_a_fleet_of_threads_and_what_is_refused(fleet):
    with kofn.Fleet("threads", workers=3) as f:
        assert len(f.workers) == 3 and f.endpoint is None
        with kofn.Matrix(A, f, scheme="mds:k=2") as M:
            assert np.allclose(M @ X, A @ X)
    with pytest.raises(kofn.Invalid, match="none of"):
        kofn.Fleet("nowhere")
    with pytest.raises(kofn.Invalid, match="--module"):
        kofn.Fleet("threads", part=part)
    with pytest.raises(kofn.Invalid, match="part=f"):
        kofn.Sum(part, 2, where=fleet)
    for weight in 0, -1, "2", float("nan"):
        with pytest.raises(kofn.Invalid, match="weight"):
            fleet.share(weight)
    alone = kofn.Fleet("processes", workers=1).share(2)
    with kofn.Matrix(A, alone, scheme="mds:k=1") as M:
        assert np.allclose(M @ X, A @ X)
    closed = kofn.Fleet("processes", workers=1)
    M = kofn.Matrix(A, closed, scheme="mds:k=1")
    closed.close()
    closed.close()
    with pytest.raises(kofn.Error, match="has been closed"):
        M @ X
    with pytest.raises(kofn.Invalid, match="is closed"):
        kofn.Matrix(A, closed)
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(kofn.Invalid, match="fork"):
                kofn.Matrix(A, fleet)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
