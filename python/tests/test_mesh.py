"""Iterations without a master, against NumPy's."""
import signal
import tempfile
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import kofn

rng = np.random.default_rng(10)
B = rng.standard_normal((30, 30))
A = B @ B.T + 30 * np.eye(30)
A[0, 0] += 200  # far from the others, so that few iterations do
TOP = np.linalg.eigvalsh(A)[-1]


@pytest.mark.parametrize("errors", [None, "detect", "probabilistic"])
def test_power(errors):
    r = kofn.power(A, masterless=True, workers=6, scheme="elastic:k=3",
                   errors=errors)
    assert r.converged and abs(r.eigenvalue - TOP) <= 1e-8 * TOP
    assert r.report is None
    assert r.mesh.members == 6 and r.mesh.finished == 6 and r.mesh.liars == 0


def test_pagerank():
    G = sp.random(40, 40, 0.1, random_state=4, format="csr")
    G.data[:] = 1
    M = G.toarray().T
    out = M.sum(axis=0)
    M = M / np.where(out, out, 1)
    want = np.full(40, 1 / 40)
    for _ in range(300):
        want = 0.85 * (M @ want + want[out == 0].sum() / 40) + 0.15 / 40
    r = kofn.pagerank(G, masterless=True, workers=4, scheme="mds:k=2")
    assert np.abs(r.vector - want).max() <= 1e-9


def test_nodes_that_meet_at_addresses():
    with tempfile.TemporaryDirectory(prefix="kofn.") as folder:
        at = [f"ipc://{folder}/{i}" for i in range(3)]
        found = [None] * 3

        def live(i):
            found[i] = kofn.power(A, masterless=at[i], reach=at[:i], workers=3,
                                  scheme="mds:k=2", confirm=1)

        nodes = [threading.Thread(target=live, args=(i,)) for i in range(3)]
        for node in nodes:
            node.start()
        for node in nodes:
            node.join()
    for r in found:
        assert abs(r.eigenvalue - TOP) <= 1e-8 * TOP and r.mesh.finished == 1
    assert (found[0].vector == found[1].vector).all()


def test_ctrl_c_has_all_nodes_leave():
    before = threading.active_count()
    timer = threading.Timer(0.5, signal.pthread_kill,
                            (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        # of two eigenvalues of one size, between which it swings for ever
        kofn.power(np.diag([2.0, -2, 1, 1]), masterless=True, workers=3,
                   scheme="mds:k=2", iterations=10 ** 9)
    timer.join()
    assert threading.active_count() == before


def test_what_is_refused():
    with pytest.raises(kofn.TooFewWorkers, match="of 3 nodes are.*only 2 are.*use 3 nodes"):
        kofn.power(A, masterless=True, workers=2, scheme="mds:k=2",
                   errors="probabilistic")
    with pytest.raises(kofn.Invalid, match="masterless='here'"):
        kofn.power(A, masterless="here")
    with pytest.raises(kofn.Invalid, match="errors='sometimes'"):
        kofn.power(A, masterless=True, errors="sometimes")
    with pytest.raises(kofn.Error, match="nowhere"):
        kofn.power(A, masterless="tcp://127.0.0.1:*", reach="nowhere", workers=2,
                   scheme="mds:k=1")
    with pytest.raises(kofn.TooFewWorkers):
        kofn.power(A, masterless="tcp://127.0.0.1:*", workers=3, scheme="mds:k=2",
                   patience=0.5)
