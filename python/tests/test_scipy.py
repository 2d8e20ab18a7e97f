"""A Matrix in SciPy's solvers, in scikit-learn and in pandas, while workers go."""
import copy
import os
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sl

import kofn

rng = np.random.default_rng(11)
X = rng.standard_normal((50, 14))
b50, b14 = rng.standard_normal(50), rng.standard_normal(14)
S = X.T @ X + np.eye(14)                       # symmetric, positive definite
N = S + rng.standard_normal((14, 14))          # not symmetric
START = rng.standard_normal((14, 3))


def close(a, b, most=1e-9):
    b = np.asarray(b)
    return np.shape(a) == b.shape and np.abs(a - b).max() <= most * np.abs(b).max()


def eigen(A):
    return np.sort(sl.eigsh(A, 3, v0=b14)[0])


SOLVERS = {
    "svds": (X, lambda A: np.sort(sl.svds(A, 3)[1])),
    "svds of T": (X, lambda A: np.sort(sl.svds(A.T, 3)[1])),
    "svds by lobpcg": (X, lambda A: np.sort(
        sl.svds(A, 2, solver="lobpcg", random_state=1)[1])),
    "eigsh": (S, eigen),
    "lsqr": (X, lambda A: sl.lsqr(A, b50, atol=1e-13, btol=1e-13)[0]),
    "lsmr": (X, lambda A: sl.lsmr(A, b50, atol=1e-13, btol=1e-13)[0]),
    "gmres": (N, lambda A: sl.gmres(A, b14, atol=1e-13)[0]),
    "lobpcg": (S, lambda A: np.sort(
        sl.lobpcg(A, START[:, :2].copy(), tol=1e-9, maxiter=100)[0])),
    "cg": (S, lambda A: sl.cg(A, b14, atol=1e-13)[0]),
}


def kill_in(M, rounds, monkeypatch):
    """Kills a worker process at the start of each of these rounds."""
    begin, count, alive = M._round, [0], M.processes

    def begin_and_kill(*args):
        count[0] += 1
        if count[0] in rounds:
            os.kill(alive.pop(), signal.SIGKILL)
        return begin(*args)

    monkeypatch.setattr(M, "_round", begin_and_kill)
    return count


@pytest.mark.filterwarnings("ignore:.*lobpcg")
@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_take_a_matrix_while_threads_leave_and_join(solver):
    A, solve = SOLVERS[solver]
    with kofn.Matrix(A, scheme="elastic:k=3", workers=5,
                     events=["2 leave 1", "4 join", "5 leave 3"]) as M:
        assert close(solve(M), solve(A), 1e-7)
        assert M.totals.left == 2 and M.totals.rounds >= 5


@pytest.mark.filterwarnings("ignore:.*lobpcg")
@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_take_a_matrix_while_processes_are_killed(solver, monkeypatch):
    A, solve = SOLVERS[solver]
    with kofn.Matrix(A, "processes", scheme="elastic:k=2", workers=4) as M:
        count = kill_in(M, (2, 4), monkeypatch)
        assert close(solve(M), solve(A), 1e-7) and count[0] >= 4
        while M.totals.left < 2:  # the last rounds may not have waited for them
            M @ np.ones(A.shape[1])


def test_lobpcg_calls_small_operators():
    with kofn.Matrix(S, scheme="elastic:k=3", workers=5, events="1 leave 1") as M:
        got, right = (np.sort(sl.lobpcg(A, START.copy())[0]) for A in (M, S))
        assert close(got, right) and M.totals.left == 1


def test_members_of_an_operator():
    V, W = rng.standard_normal((50, 3)), rng.standard_normal((14, 3))
    with kofn.Matrix(X, scheme="elastic:k=2", workers=3) as M:
        for A, Y, right, left in ((M, X, W, V), (M.T, X.T, V, W), (M.H, X.T, V, W),
                                  (M.T.T, X, W, V)):
            assert A.shape == Y.shape and A.dtype == Y.dtype and A.ndim == 2
            assert A.__array_ufunc__ is None
            assert close(A.matvec(right[:, 0]), Y @ right[:, 0])
            assert close(A.matvec(right[:, :1]), Y @ right[:, :1])
            assert close(A.rmatvec(left[:, 0]), Y.T @ left[:, 0])
            assert close(A.rmatvec(left[:, :1]), Y.T @ left[:, :1])
            assert close(A.matmat(right), Y @ right)
            assert close(A.rmatmat(left), Y.T @ left)
            assert close(A.dot(right), Y @ right) and close(A(right), Y @ right)
            assert close(left.T @ A, left.T @ Y)
            op = A.aslinearoperator()
            assert isinstance(op, sl.LinearOperator) and op.shape == Y.shape
            assert close((2 * op.T) @ left, 2 * Y.T @ left)
            for f in (A.matvec, A.rmatvec):
                with pytest.raises(kofn.Invalid, match="take one vector"):
                    f(np.ones((14, 2)))
        assert M.T.totals[:2] == M.totals[:2] and M.T.report == M.report
        assert repr(M.T) == repr(M) + ".T"


class Operator:
    """A LinearOperator by the rules of SciPy 1.18: the constructor of the base class
    sets what all methods need, and matvec has vectors only."""

    def __init__(self, dtype, shape):
        self._xp, self.dtype, self.shape, self.ndim = np, dtype, shape, len(shape)


class Custom(Operator):
    def __init__(self, shape, matvec, rmatvec=None, matmat=None, dtype=None,
                 rmatmat=None):
        super().__init__(dtype, shape)
        self.does = matvec, rmatvec, matmat, rmatmat

    def _apply(self, one, many, x):
        if np.ndim(x) == 1:
            return one(x)
        if many is not None:
            return many(x)
        return self._xp.stack([one(x[..., :, i]) for i in range(x.shape[-1])], axis=-1)

    def __matmul__(self, x):
        return self._apply(self.does[0], self.does[2], x)

    def adjoint(self, x):
        return self._apply(self.does[1], self.does[3], x)


def adopt(A):
    """Returns an operator for an object with a shape and matvec, as SciPy 1.18 does."""
    if isinstance(A, (Operator, np.ndarray)) or hasattr(A, "__array_namespace__") or \
            sp.issparse(A):
        return A
    assert hasattr(A, "shape") and hasattr(A, "matvec")
    return Custom(A.shape, A.matvec, rmatvec=getattr(A, "rmatvec", None),
                  rmatmat=getattr(A, "rmatmat", None), dtype=getattr(A, "dtype", None))


def test_rules_of_later_versions_of_scipy(monkeypatch):
    V, W = rng.standard_normal((50, 3)), rng.standard_normal((14, 3))
    monkeypatch.setattr(sl, "LinearOperator", Custom)
    with kofn.Matrix(X, scheme="elastic:k=2", workers=3) as M:
        for A, Y, right, left in ((M, X, W, V), (M.T, X.T, V, W)):
            for op in (adopt(A), A.aslinearoperator()):
                assert type(op) is Custom and op.dtype == np.float64
                assert close(op @ right, Y @ right)
                assert close(op @ right[:, 1], Y @ right[:, 1])
                assert close(op.adjoint(left), Y.T @ left)
                assert close(op.adjoint(left[:, 1]), Y.T @ left[:, 1])


def test_what_insists_on_an_array_is_refused():
    with kofn.Matrix(X, scheme="elastic:k=2", workers=3) as M:
        for A in (M, M.T):
            for call in (np.asarray, lambda A: np.dot(A, b14),
                         lambda A: sp.eye(A.shape[0], format="csr") @ A):
                with pytest.raises(kofn.Unsuited, match="no array.*toarray.*give the "
                                   "array"):
                    call(A)
            for call in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(kofn.Unsuited, match="neither pickled nor copied.*"
                                   "make a Matrix of it there"):
                    call(A)
            with pytest.raises(kofn.Invalid, match=r"sparse.*toarray\(\)"):
                A @ sp.eye(A.shape[1], format="csr")
            with pytest.raises(TypeError, match="unsupported operand"):
                b14 * A
        assert close(M @ b14, X @ b14)


def test_randomized_svd_of_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.decomposition import TruncatedSVD
    from sklearn.utils.extmath import randomized_svd

    with kofn.Matrix(X, scheme="elastic:k=3", workers=5, events="3 leave 2") as M:
        for A, Y in ((M, X), (M.T, X.T)):
            got, right = (randomized_svd(Z, 3, n_iter=5, random_state=0) for Z in (A, Y))
            assert all(close(a, b) for a, b in zip(got, right))
        with pytest.raises(kofn.Unsuited, match="no array"):
            TruncatedSVD(3).fit(M)
        Vt = randomized_svd(M, 3, n_iter=5, random_state=0)[2]
        assert close(M @ Vt.T, TruncatedSVD(3, random_state=0).fit_transform(X))
        assert M.totals.left == 1


def test_factors_without_columns():
    for A in (X, sp.csr_matrix(X)):
        with kofn.Matrix(A, scheme="elastic:k=2", workers=3) as M:
            for got, right in ((M @ np.ones((14, 0)), X @ np.ones((14, 0))),
                               (np.ones((0, 50)) @ M, np.ones((0, 50)) @ X),
                               (M.T @ np.ones((50, 0)), X.T @ np.ones((50, 0))),
                               (np.ones((0, 14)) @ M.T, np.ones((0, 14)) @ X.T)):
                assert got.shape == right.shape and got.dtype == right.dtype
            with pytest.raises(kofn.Invalid, match="14 are needed"):
                M @ np.ones((13, 0))
            assert M.totals.rounds == 0
        with pytest.raises(kofn.Error, match="closed"):
            M @ np.ones((14, 0))


def test_factors_of_pandas_go_by_position():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(START, index=range(14, 0, -1), columns=list("abc"))
    tall = pd.DataFrame(X.T, columns=range(50, 0, -1))
    with kofn.Matrix(pd.DataFrame(X), scheme="elastic:k=2", workers=3) as M:
        assert type(M @ table) is np.ndarray and close(M @ table, X @ START)
        assert close(M @ table["b"], X @ START[:, 1])
        assert close(M.T @ tall.T, X.T @ X)
        assert close(M @ table["b"].convert_dtypes(), X @ START[:, 1])
        with pytest.raises(kofn.Unsuited, match=r"to_numpy\(\)"):
            tall @ M
        assert close(tall.to_numpy() @ M, X.T @ X)


FORMS = [f"{form}_{kind}" for form in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")
         for kind in ("matrix", "array")]
G = sp.random(30, 30, 0.15, random_state=5) + 2 * sp.eye(30)
D = G.toarray()


@pytest.mark.parametrize("form", FORMS)
def test_sparse_matrices_of_every_format(form):
    A = getattr(sp, form)(G)
    x, V = rng.standard_normal(30), rng.standard_normal((4, 30))
    code = dict(scheme="elastic:k=3", workers=5)
    with kofn.Matrix(A, **code, events="3 leave 1") as M:
        assert close(M @ x, D @ x) and close(M @ V.T, D @ V.T)
        assert close(x @ M, x @ D) and close(V @ M, V @ D)
        assert close(M.T @ x, D.T @ x) and close(M.T @ V.T, D.T @ V.T)
        assert close(np.sort(sl.svds(M, 2)[1]), np.sort(sl.svds(D, 2)[1]))
        assert M.totals.left == 1
    top = np.abs(np.linalg.eigvals(D)).max()
    assert abs(kofn.power(A, iterations=2000, **code).eigenvalue - top) < 1e-8 * top
    n, d = 30, 0.85
    P = (D / D.sum(axis=1, keepdims=True)).T
    rank = np.linalg.solve(np.eye(n) - d * P, np.full(n, (1 - d) / n))
    assert close(kofn.pagerank(A, tol=1e-12, **code).vector, rank)
    fit = kofn.Regression(**code, intercept=False, iterations=500).fit(A, D @ x)
    assert close(fit.coef_, x, 1e-5) and close(fit.predict(A), D @ x, 1e-5)


def test_sparse_products_from_the_left_have_the_same_rules_as_dense_ones():
    with kofn.Matrix(G, scheme="mds:k=2", workers=3) as M:
        with pytest.raises(kofn.Unsuited, match="from the left.*elastic does"):
            np.ones(30) @ M
    with kofn.Matrix(G, workers=5, scheme="elastic:k=2", errors="detect") as M:
        with pytest.raises(kofn.Unsuited, match="one of its transpose"):
            np.ones(30) @ M


@pytest.mark.parametrize("A", [S, sp.csr_matrix(S)], ids=["dense", "sparse"])
def test_power_of_a_matrix_keeps_its_workers(A):
    values, vectors = np.linalg.eigh(S)
    with kofn.Matrix(A, scheme="elastic:k=3", workers=5, events="4 leave 0") as M:
        assert close(M @ START, S @ START)
        r = kofn.power(M, iterations=3000)
        assert abs(r.eigenvalue - values[-1]) < 1e-9 * values[-1] and r.converged
        assert 1 - abs(r.vector @ vectors[:, -1]) < 1e-9
        assert r.report.rounds == r.iterations + 1 and r.report.left == 1
        assert close(M @ START, S @ START)
        assert M.totals.rounds == r.iterations + 2 and len(M._jobs) == 1
        for options in ({"workers": 3}, {"scheme": "mds"}, {"late": 0},
                        {"masterless": True}):
            with pytest.raises(kofn.Invalid, match="has its workers"):
                kofn.power(M, **options)
        with pytest.raises(kofn.Invalid, match="Give the sparse matrix itself"):
            kofn.pagerank(M)
    with pytest.raises(kofn.Error, match="closed"):
        kofn.power(M)
    with kofn.Matrix(X, workers=2) as M:
        with pytest.raises(kofn.Invalid, match="square"):
            kofn.power(M)
    alone = kofn.power(sp.csr_matrix(S), masterless=True, workers=3, iterations=3000)
    assert abs(alone.eigenvalue - values[-1]) < 1e-9 * values[-1]


def test_importing_kofn_imports_neither_scipy_nor_pandas():
    code = "import sys, kofn; print([m for m in ('scipy', 'pandas', 'sklearn') " \
           "if m in sys.modules])"
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    out = subprocess.run([sys.executable, "-c", code], env=env, check=True,
                         capture_output=True, text=True).stdout
    assert out.strip() == "[]"
