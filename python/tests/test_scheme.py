"""Codes of one's own in Python, against NumPy."""
import numpy as np
import pytest

import kofn

rng = np.random.default_rng(8)
A, B = rng.standard_normal((43, 7)), rng.standard_normal((7, 3))


class Cosines(kofn.Scheme):
    """Three blocks, mixed with powers of a cosine; any number of workers."""
    name = "cosines"

    def parts(self, workers):
        return 3

    def row(self, seat, workers):
        return np.cos(seat + 0.3) ** np.arange(3)

    def seats(self, workers):
        return None


NAME = kofn.add_scheme(Cosines())


@pytest.mark.parametrize("where", ["threads", "sim", "processes"])
def test_products_are_those_of_numpy_after_losses_and_joins(where):
    events = None if where == "processes" else "1 leave 0\n2 leave 3\n3 join"
    with kofn.Matrix(A, where, scheme=NAME, workers=5, events=events) as M:
        for _ in range(4):
            np.testing.assert_allclose(M @ B, A @ B, atol=1e-12)


def test_a_wrong_worker_is_found():
    with kofn.Matrix(A, "sim", scheme=NAME, workers=6, errors="probabilistic",
                     events="1 corrupt 2", columns=3) as M:
        np.testing.assert_allclose(M @ B, A @ B, atol=1e-12)
        assert M.report.liars == (2,)


def test_it_is_planned_and_described():
    assert kofn.plan_info(NAME, 5, (60, 4))["threshold"] == 3
    assert [row.scheme for row in kofn.plan("matvec", (900, 90), workers=5, scheme=NAME)
            ][1] == NAME


@pytest.mark.parametrize("row, words", [
    (lambda i, n: [1, 2], r"shape \(2,\)"), (lambda i, n: [1, np.nan, 0], "not finite"),
    (lambda i, n: 1 / 0, "ZeroDivisionError: division by zero"),
    (lambda i, n: "abc", "ValueError")])
def test_a_wrong_row_is_an_error_with_the_reason(row, words):
    class Bad(Cosines):
        name = f"bad{abs(hash(words)) % 10 ** 9}"

    scheme = Bad()
    scheme.row = row
    with pytest.raises(kofn.Invalid, match=words):
        with kofn.Matrix(A, scheme=kofn.add_scheme(scheme), workers=5) as M:
            M @ B


def test_what_is_no_scheme_is_refused():
    for what, words in ((Cosines(), "already"), (Cosines, "is a class"),
                        (kofn.Scheme(), "no string"), ("./nosuch.so", "nosuch.so"), (3, "3")):
        with pytest.raises(kofn.Invalid, match=words):
            kofn.add_scheme(what)
