"""kofn.plan, compared with what its arguments demand."""
import re

import pytest

import kofn


def test_plain_blas_is_first_and_the_others_are_sorted():
    p = kofn.plan("matmul", (4000, 500), (500, 20), workers=6, rounds=10, machines=True,
                  tolerate=2, memory=8 * 4000 * 500 / 2)
    assert p[0].scheme is None and p[0].survives == 0
    assert len(p) > 2 and p.best == p[1]
    times = [row.total for row in p[1:]]
    assert times == sorted(times)
    assert all(row.survives >= 2 and row.memory <= 8e6 for row in p[1:])


def test_one_scheme():
    p = kofn.plan("matvec", (8000, 100), workers=8, scheme="mds:k=4", rounds=3)
    assert [bool(row.scheme) for row in p] == [False, True]
    assert p[1].survives == 4
    assert p[1].memory == pytest.approx(8 * 2000 * 100)
    assert 1 <= p[1].work <= 2.01  # four of eight suffice


def test_it_prints_as_a_table():
    p = kofn.plan("least_squares", (4000, 50), workers=5)
    assert re.match(r"code +median", repr(p))
    assert p._repr_html_().count("<tr>") == len(p) + 1


@pytest.mark.parametrize("words, given", [
    ("give one of", ("foo", (3, 3))),
    ("takes 2 shapes", ("matmul", (3, 3))),
    ("cannot be multiplied", ("matmul", (3, 3), (4, 4))),
])
def test_what_is_wrong_is_said(words, given):
    with pytest.raises(kofn.Invalid, match=words):
        kofn.plan(*given)
