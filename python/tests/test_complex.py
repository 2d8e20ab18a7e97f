"""Complex matrices and factors against NumPy and SciPy."""
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh, gmres, lsqr, svds

import kofn

rng = np.random.default_rng(11)
TYPES = [np.complex128, np.complex64, np.float64, np.float32, np.int64, np.int8]


def draw(shape, dtype=np.complex128):
    a = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return a.astype(dtype) if np.dtype(dtype).kind == "c" else \
        (4 * a.real).astype(dtype)


def same(y, want):
    """True if both have one type and shape, and nearly the same numbers."""
    single = want.dtype in (np.float32, np.complex64)
    assert type(y) is np.ndarray and y.dtype == want.dtype and y.shape == want.shape
    return np.allclose(y, want, rtol=0, atol=(1e-4 if single else 1e-12) *
                       (np.abs(want).max() if want.size else 1))


@pytest.mark.parametrize("dtype", TYPES[:4])
def test_both_sides_have_the_types_and_shapes_of_numpy(dtype):
    A = draw((40, 6), dtype)
    with kofn.Matrix(A, scheme="elastic:k=3", workers=4, where="sim") as M:
        assert M.dtype == dtype and M.shape == (40, 6)
        for kind in TYPES if A.dtype.kind == "c" else TYPES[:2]:
            for more in (), (1,), (3,), (0,):
                x, v = draw((6, *more), kind), draw((40, *more), kind)
                assert same(M @ x, A @ x)
                assert same(v.T @ M, v.T @ A)
                assert same(M.T @ v, A.T @ v)
                assert same(x.T @ M.T, x.T @ A.T)
                assert same(M.H @ v, A.conj().T @ v)
                assert same(x.T @ M.H, x.T @ A.conj().T)
                assert same(M.T.H @ x, A.conj() @ x)
                assert same(v.T @ M.H.T, v.T @ A.conj())
        assert M.T.T is M and M.H.H is M and M.T.H.T.H is M
        x, v = draw(6), draw(40)
        assert same(M.matvec(x), A @ x) and same(M.rmatvec(v), A.conj().T @ v)
        X, V = draw((6, 2)), draw((40, 2))
        assert same(M.matmat(X), A @ X) and same(M.rmatmat(V), A.conj().T @ V)
        assert same(M.H.rmatvec(x), A @ x) and same(M.T.rmatvec(x), A.conj() @ x)


@pytest.mark.parametrize("layout", [
    np.asfortranarray, lambda a: a[::-1], lambda a: np.repeat(a, 2, 1)[:, ::2],
    lambda a: a.astype(">c16"),
    lambda a: np.frombuffer(b"." + a.tobytes(), a.dtype, offset=1).reshape(a.shape)])
def test_any_layout_of_complex_arrays(layout):
    A, x = layout(draw((30, 7))), layout(draw((7, 2)))
    with kofn.Matrix(A, scheme="elastic:k=2", workers=3, where="sim") as M:
        assert same(M @ x, A.astype(complex) @ x.astype(complex))
        assert same(M @ x[:, 1], A.astype(complex) @ x[:, 1].astype(complex))


def test_contiguous_complex_arrays_are_not_copied():
    A = draw((20, 4))
    with kofn.Matrix(A, scheme="elastic:k=2", workers=3, where="sim") as M:
        assert np.shares_memory(M._borrowed, A)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_sparse_matrices(form, dtype):
    S = sp.random(50, 12, 0.2, random_state=3, dtype=np.float64) + \
        1j * sp.random(50, 12, 0.2, random_state=4)
    S = S.asformat(form).astype(dtype)
    D = S.toarray().astype(complex)
    with kofn.Matrix(S, scheme="elastic:k=3", workers=4, where="sim") as M:
        assert M.dtype == np.complex128 and M.shape == (50, 12)
        for x in draw(12), draw((12, 2)), draw(12).real:
            assert same(M @ x, D @ x)
        for v in draw(50), draw((50, 2)):
            assert same(M.H @ v, D.conj().T @ v) and same(v.T @ M, v.T @ D)
    with kofn.Matrix(S.real, scheme="elastic:k=3", workers=4, where="sim") as M:
        x, v = draw((12, 3)), draw((50, 3))
        assert same(M @ x, D.real @ x) and same(M.H @ v, D.real.T @ v)


def test_complex_entries_of_one_place_are_added():
    place = [0, 2, 0, 1], [1, 1, 1, 0]
    S = sp.coo_matrix(([1 + 2j, 3j, 4 - 8j, 5], place), (3, 2))
    with kofn.Matrix(S, scheme="elastic:k=1", workers=2, where="sim") as M:
        assert (M @ np.eye(2) == [[0, 5 - 6j], [5, 0], [0, 3j]]).all()


def test_every_row_is_as_exact_as_plain_numpy():
    A, x = draw((60, 9)), draw(9)
    A *= 10.0 ** np.linspace(-120, 120, 60)[:, None]
    with kofn.Matrix(A, scheme="elastic:k=4", workers=6, where="sim",
                     events=["1 leave 0", "1 leave 2"]) as M:
        y = M @ x
    assert (np.abs(y - A @ x) <= 1e-13 * (np.abs(A) @ np.abs(x))).all()


@pytest.mark.parametrize("errors", ["adversarial", "probabilistic", "keyed"])
def test_wrong_results_are_found(errors):
    A, x = draw((60, 9)), draw((9, 2))
    with kofn.Matrix(A, scheme="elastic:k=3", workers=8, where="sim", errors=errors,
                     events=["1 corrupt 2"]) as M:
        assert same(M @ x, A @ x) and same(M @ x[:, 0], A @ x[:, 0])
        assert M.totals.liars == (2,)
        with pytest.raises(kofn.Unsuited, match="from the left"):
            M.H @ draw(60)


@pytest.mark.parametrize("scheme", ["gpd:m=2,n=1,p=2", "elastic:k=4",
                                    "polydot:m=2,n=1,p=1"])
def test_other_schemes_serve_both_sides(scheme):
    A, x, V = draw((24, 8)), draw(8), draw((5, 24))
    with kofn.Matrix(A, scheme=scheme, workers=10) as M:
        assert same(M @ x, A @ x)
        assert same(V @ M, V @ A) and same(V.real @ M, V.real @ A)
        assert same(M.H @ V[0], A.conj().T @ V[0])


@pytest.mark.parametrize("a, b", [(np.complex128, np.complex128),
                                  (np.float32, np.complex64),
                                  (np.complex64, np.float64),
                                  (np.float64, np.complex128)])
def test_matmul(a, b):
    A, B = draw((12, 8), a), draw((8, 6), b)
    C = kofn.matmul(A, B, scheme="gpd:m=2,n=2,p=2", workers=12, where="sim")
    assert same(C, A @ B)
    assert same(kofn.matmul(A, B[:, 0], workers=3, scheme="elastic:k=2"), A @ B[:, 0])


def test_processes_hold_one_type():
    A, x = draw((30, 6)), draw((6, 2))
    with kofn.Matrix(A, "processes", scheme="elastic:k=2", workers=3) as M:
        for f in x, x.real, x.real.astype(int):
            assert same(M @ f, A @ f)
        assert same(M.H @ A, A.conj().T @ A)
    with kofn.Matrix(A.astype(np.complex64), "sim", scheme="elastic:k=2",
                     workers=3) as M:
        M._options["where"] = "processes"
        with pytest.raises(kofn.Invalid, match=r"A is complex64 and the other factor "
                           r"float64.*x.astype\('float32'\).*A.astype\('complex128'\)"):
            M @ x.real
        with pytest.raises(kofn.Invalid, match=r"x.astype\('complex64'\)"):
            M @ x
        M._options["where"] = "sim"


def solver(A, **options):
    return kofn.Matrix(A, scheme="elastic:k=3", workers=5, where="sim",
                       events=["3 leave 1", "8 leave 3"], **options)


def test_svds_while_workers_leave():
    A = draw((40, 15))
    with solver(A) as M:
        u, s, vh = svds(M, k=3, v0=draw(15), tol=1e-12)
        assert M.totals.left == 2
    assert np.allclose(np.sort(s), np.sort(svds(A, k=3)[1]), rtol=1e-10)
    assert np.allclose(A @ vh.conj().T, u * s, atol=1e-8)


def test_eigsh_while_workers_leave():
    A = draw((25, 25))
    A = A + A.conj().T
    with solver(A) as M:
        w, v = eigsh(M, k=3, v0=draw(25))
        assert M.totals.left == 2
    assert np.allclose(np.sort(w), np.sort(eigsh(A, k=3)[0]))
    assert np.allclose(A @ v, v * w, atol=1e-8)


@pytest.mark.parametrize("sparse", [False, True])
def test_linear_systems_while_workers_leave(sparse):
    A, b = draw((30, 30)) / 10 + 3 * np.eye(30), draw(30)
    make = sp.csr_matrix if sparse else np.asarray
    with solver(make(A)) as M:
        x = gmres(M, b, tol=1e-12, atol=0)[0]
        z = lsqr(M, b, atol=1e-13, btol=1e-13)[0]
        assert M.totals.left == 2
    assert np.allclose(x, gmres(A, b, tol=1e-12, atol=0)[0], atol=1e-9)
    assert np.allclose(z, lsqr(A, b, atol=1e-13, btol=1e-13)[0], atol=1e-9)


def test_what_takes_real_numbers_says_what_takes_complex_ones():
    A, I = draw((4, 4)), np.eye(4)
    S = sp.csr_matrix(A)
    with kofn.Matrix(A, workers=2, scheme="elastic:k=1", where="sim") as M, \
            kofn.Stream((4, 4, 4), scheme="dip:m=2,p=2,T=1", workers=4) as stream, \
            kofn.Sum(lambda i, n, x: x, 4, scheme="gc:d=2", workers=4) as total:
        for call in (
                lambda: kofn.power(A), lambda: kofn.power(S), lambda: kofn.power(M),
                lambda: kofn.pagerank(S), lambda: total(A[0]),
                lambda: kofn.check_product(A, I, I), lambda: kofn.check_product(I, A, I),
                lambda: kofn.check_product(I, I, A), lambda: kofn.check_product(S, I, I),
                lambda: kofn.Regression(workers=4).fit(S, I[0]),
                lambda: stream.put(A, I)):
            with pytest.raises(kofn.Invalid, match="complex128; kofn.Matrix and "
                               "kofn.matmul take complex numbers"):
                call()
    for model in kofn.Regression(workers=4), kofn.Network(loss="squares", workers=4):
        with pytest.raises(kofn.Invalid, match="Complex.*X has numbers of type complex"):
            model.fit(A, I[0])


@pytest.mark.parametrize("x, words", [
    (np.ones((3, 2)) * 1j, "A is 5 x 4 and the other factor has 3 rows; 4 are needed"),
    (np.ones((4, 1, 1)) * 1j, "3 dimensions"), (np.array(1j), "0 dimensions"),
    (np.full(4, np.nan * 1j), "NaN|infinite")])
def test_factors_that_are_refused(x, words):
    with kofn.Matrix(draw((5, 4)), workers=2, scheme="elastic:k=1", where="sim") as M:
        with pytest.raises(kofn.Invalid, match=words):
            M @ x
