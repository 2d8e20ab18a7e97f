"""PageRank with jumps, starts and sinks, compared with NetworkX and by hand."""
import numpy as np
import pytest
import scipy.sparse as sp

import kofn

RNG = np.random.default_rng(3)
N = 40
G = sp.random(N, N, 0.06, "csr", random_state=7)
KW = dict(scheme="elastic:k=2", workers=3, tol=1e-14, iterations=5000)


def solved(d, jumps, sinks):
    """The ranks from LAPACK."""
    A = G.toarray()
    out = A.sum(1)
    M = np.where(out > 0, A.T / np.where(out > 0, out, 1), sinks[:, None])
    return np.linalg.solve(np.eye(N) - d * M, (1 - d) * jumps)


@pytest.mark.parametrize("masterless", [False, True])
def test_ranks_are_those_of_a_solver(masterless):
    p, s = RNG.random(N), RNG.random(N)
    even = np.full(N, 1 / N)
    how = dict(KW, masterless=masterless)
    r = kofn.pagerank(G, personalization=p, dangling=s, **how)
    np.testing.assert_allclose(r.vector, solved(0.85, p / p.sum(), s / s.sum()), atol=1e-12)
    r = kofn.pagerank(G, personalization={3: 2, np.int64(5): 6}, damping=0.5, **how)
    w = np.zeros(N)
    w[3], w[5] = 0.25, 0.75
    np.testing.assert_allclose(r.vector, solved(0.5, w, w), atol=1e-12)
    np.testing.assert_allclose(kofn.pagerank(G, damping=0, **how).vector, even, atol=1e-15)
    again = kofn.pagerank(G, personalization=w, damping=0.5, nstart=r.vector, **how)
    assert again.iterations <= 3


def test_ranks_are_those_of_networkx():
    nx = pytest.importorskip("networkx")
    g = nx.from_scipy_sparse_array(G, create_using=nx.DiGraph)
    r = kofn.pagerank(G, personalization={1: 1}, dangling={2: 1, 3: 4}, nstart={7: 1}, **KW)
    want = nx.pagerank(g, personalization={1: 1}, dangling={2: 1, 3: 4}, nstart={7: 1},
                       tol=1e-15, max_iter=5000)
    np.testing.assert_allclose(r.vector, [want[i] for i in range(N)], atol=1e-10)


@pytest.mark.parametrize("given, words", [
    (dict(personalization=np.ones(3)), "shape"),
    (dict(dangling={N: 1}), "node"),
    (dict(dangling={"a": 1}), "'a'"),
    (dict(nstart=-np.ones(N)), "sum of the weights is -40"),
    (dict(dangling=-np.ones(N)), "weight -1"),
    (dict(personalization=np.zeros(N)), "sum of the weights is 0"),
    (dict(damping=1.5), "1.5")])
def test_what_is_no_distribution_is_refused(given, words):
    with pytest.raises(kofn.Error, match=words):
        kofn.pagerank(G, **given, **KW)
