"""Numbers have a point in a program that has a decimal comma."""
import json
import locale
import shutil
import subprocess

import numpy as np
import pytest

import kofn

COMMA = 'LC_NUMERIC\ndecimal_point ","\nthousands_sep "."\ngrouping 3;3\nEND LC_NUMERIC\n'


@pytest.fixture
def comma(tmp_path, monkeypatch):
    """Such a locale, made here, because few machines have one."""
    if not shutil.which("localedef"):
        pytest.skip("localedef is missing")
    (tmp_path / "comma").write_text(COMMA)
    subprocess.run(["localedef", "-c", "-i", tmp_path / "comma", "-f", "ANSI_X3.4-1968",
                    tmp_path / "xx_XX"], capture_output=True, check=False)
    monkeypatch.setenv("LOCPATH", str(tmp_path))
    locale.setlocale(locale.LC_NUMERIC, "xx_XX")
    assert locale.str(1.5) == "1,5"
    yield tmp_path
    locale.setlocale(locale.LC_NUMERIC, "C")


def test_options_and_journals_have_a_point(comma):
    journal = comma / "journal"
    with kofn.Matrix(np.eye(6), workers=4, scheme="elastic:k=2", where="sim",
                     faults="straggle=0.25,factor=2.5", max_error=0.5,
                     journal=str(journal)) as A:
        assert np.allclose(A @ np.arange(6.0), np.arange(6.0))
    head = [json.loads(line) for line in journal.read_text().splitlines()][0]
    assert head["max_error"] == 0.5
