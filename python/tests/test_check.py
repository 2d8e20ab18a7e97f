"""Products from anywhere."""
import numpy as np
import pytest
import scipy.sparse as sp

import kofn

rng = np.random.default_rng(9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_right_and_wrong(dtype):
    A = rng.standard_normal((60, 40)).astype(dtype)
    B = rng.standard_normal((40, 50)).astype(dtype)
    C = A @ B
    assert kofn.check_product(A, B, C)
    assert kofn.check_product(A, B, np.asfortranarray(C))
    assert kofn.check_product(A, B[:, 3], A @ B[:, 3])
    right = C.copy()
    C[7, 9] += 1
    C[20] = np.nan
    f = kofn.check_product(A, B, C)
    assert not f and f.complete
    assert f.rows.tolist() == [7, 20] and len(f.columns) == 50
    assert len(f.entries) == 51 and f.entries[0]["was"] == C[7, 9]
    assert "51 wrong entries" in repr(f)
    fixed = f.corrected(C)
    assert fixed.dtype == dtype and np.isnan(C[20, 3])
    assert np.allclose(fixed, right, rtol=1e-3, atol=1e-4)
    assert kofn.check_product(A, B, fixed)


def test_half_precision():
    A, B = (rng.standard_normal(s).astype(np.float16) for s in ((30, 40), (40, 50)))
    exact = A.astype(np.float64) @ B
    best, slow = exact.astype(np.float16), np.zeros((30, 50), np.float16)
    for k in range(40):  # as float16 adds them up
        slow += A[:, k:k + 1] * B[k]
    for C in best, slow, np.asfortranarray(best), memoryview(best):
        assert kofn.check_product(A, B, C)
        assert kofn.check_product(sp.csr_matrix(A.astype(np.float32)), B, C)
    assert not kofn.check_product(A, B, best.astype(np.float32))
    assert kofn.check_product(A, B, exact)
    assert not kofn.check_product(A, B, exact + 1e-6)  # A and B are as wide as C
    C = best.copy()
    C[7, 9] += 8
    found = kofn.check_product(A, B, C)
    assert len(found.entries) == 1 and found.entries[0]["is"] == best[7, 9]
    assert (found.corrected(C) == best).all()
    small, large = np.float16(2.0 ** -8), np.float16(2.0 ** 6)
    assert kofn.check_product(small * A, small * B,
                              (exact * 2.0 ** -16).astype(np.float16))
    with np.errstate(over="ignore"):
        C = (np.abs(exact) * 2.0 ** 12 + 6e4).astype(np.float16)
    A1, B1 = np.c_[np.ones(30), large * np.eye(30)], np.r_[
        np.full((1, 50), 6e4), np.abs(exact) * 2.0 ** 6]
    assert np.isinf(C).any() and kofn.check_product(A1, B1, C)


def test_sparse_and_tolerance():
    G = sp.random(80, 60, 0.1, random_state=2, format="csc")
    B = rng.standard_normal((60, 5))
    C = G @ B
    assert kofn.check_product(G, B, C)
    assert not kofn.check_product(G, B, C + 1e-9)
    assert kofn.check_product(G, B, C + 1e-9, tolerance=1e-6)


def test_what_is_no_product_is_refused():
    X = np.ones((3, 4))
    with pytest.raises(kofn.Invalid, match="inner sizes"):
        kofn.check_product(X, X, X)
    with pytest.raises(kofn.Invalid, match="NaN"):
        kofn.check_product(X * np.nan, X.T, np.ones((3, 3)))
    big = rng.standard_normal((700, 600)), rng.standard_normal((600, 800))
    f = kofn.check_product(*big, rng.standard_normal((700, 800)))
    assert not f.complete and len(f.rows) == 700
    with pytest.raises(kofn.Corrupt):
        f.corrected(np.zeros((700, 800)))
