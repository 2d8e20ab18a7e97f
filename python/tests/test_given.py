"""Arguments of all kinds, and the messages for wrong ones."""
import numpy as np
import pytest
import scipy.sparse as sp

import kofn

rng = np.random.default_rng(11)
X = rng.standard_normal((20, 6))
S, x, y = X.T @ X, rng.standard_normal(6), X[:, 0]
LABELS = X[:, 0] > 0
RING = sp.csr_matrix(np.roll(np.eye(5), 1, axis=0))


def matrix(**given):
    with kofn.Matrix(X, **{"scheme": "elastic:k=3", "workers": 5, **given}) as M:
        return M @ x


def total(f=lambda part, parts, x: x, length=6, **given):
    with kofn.Sum(f, length, **{"scheme": "gc:d=2", "workers": 4, **given}) as s:
        return s(x)


def regression(y=y, **given):
    return kofn.Regression(**{"scheme": "elastic:k=3", "workers": 5, **given}).fit(X, y)


def network(y=LABELS, **given):
    return kofn.Network(**{"hidden": (3,), "scheme": "gc:d=2", "workers": 4, "batch": 5,
                           **given}).fit(X, y)


def mesh(**given):
    return network(**{"scheme": "gpd:m=2,n=1,p=1", "masterless": True, **given})


def power(**given):
    return kofn.power(S, **{"scheme": "elastic:k=2", "workers": 4, **given})


def pagerank(**given):
    return kofn.pagerank(RING, **{"scheme": "elastic:k=2", "workers": 4, **given})


@pytest.mark.parametrize("call, name, value", [
    *((call, name, value) for call in (matrix, total, regression, network, mesh, power)
      for name, value in [("workers", "8"), ("workers", 8.5), ("workers", -1),
                          ("workers", 2**70), ("seed", "one"), ("scheme", 3),
                          ("scheme", None), ("scheme", "elastic\0")]),
    *((call, "where", 3) for call in (matrix, total, regression, network, power)),
    (matrix, "columns", "x"), (matrix, "late", "soon"), (matrix, "faults", 3),
    (matrix, "journal", 3), (matrix, "journal", "a\0b"), (matrix, "keys", 3),
    (total, "f", None), (total, "length", -1), (total, "inputs", 1.5),
    (regression, "iterations", 0), (regression, "iterations", "many"),
    (regression, "tol", -1.0), (regression, "tol", float("nan")),
    (regression, "l2", "x"), (regression, "loss", ["squares"]), (regression, "y", 3.0),
    (regression, "y", X), (regression, "y", ["a"] * 20),
    (network, "hidden", 32), (network, "hidden", ("x",)), (network, "epochs", 0),
    (network, "batch", 0), (network, "step", 0), (network, "momentum", None),
    (mesh, "workers", 0), (mesh, "workers", 2**40),
    (power, "tol", 0), (power, "tol", float("nan")), (power, "iterations", 0),
    (power, "start", S), (power, "start", 1.0),
    (pagerank, "damping", -1), (pagerank, "damping", 1.5),
    (pagerank, "damping", float("nan")), (pagerank, "tol", float("inf"))])
def test_it_is_told_by_name(call, name, value):
    where = {"keys": {"where": "tcp://127.0.0.1:*"}}.get(name, {})
    with pytest.raises(kofn.Invalid, match=rf"\b{name}\b"):
        call(**where, **{name: value})


def test_mesh_that_has_no_patience():
    for patience in ("x", -1, (1, 2)):
        with pytest.raises(kofn.Invalid, match="patience=.*seconds"):
            kofn.power(S, masterless=True, workers=4, patience=patience)


@pytest.mark.filterwarnings("ignore::kofn.ConvergenceWarning")
def test_a_column_of_labels_is_a_vector():
    for fit, y_of in ((regression, y), (lambda y: regression(y, loss="logistic"), LABELS),
                      (network, LABELS), (lambda y: network(y, loss="squares"), y)):
        flat, column = fit(y=y_of), fit(y=y_of[:, None])
        assert flat.predict(X).shape == column.predict(X).shape == (20,)
        assert np.allclose(flat.predict(X), column.predict(X))
        assert np.isclose(column.score(X, y_of[:, None]), flat.score(X, y_of))
        with pytest.raises(kofn.Invalid, match="y has the shape"):
            flat.score(X, y_of[:7])
        with pytest.raises(kofn.Invalid, match="y has the shape"):
            flat.score(X[:1], y_of[0])
