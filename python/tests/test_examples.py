"""The programs in examples/python that need nothing else; each checks itself or
prints by how much it is off."""
import os
import pathlib
import re
import runpy
import subprocess
import sys

import pytest

import kofn  # noqa: F401, which the examples then find

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/python"


def run(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    runpy.run_path(str(EXAMPLES / name))
    return capsys.readouterr().out


@pytest.mark.parametrize("name", ["first.py", "svds.py"])
def test_differences(name, monkeypatch, capsys):
    out = run(name, monkeypatch, capsys)
    assert float(re.search(r"differs? by (\S+?);?\s", out).group(1)) < 1e-6


def test_notebook(monkeypatch, capsys):
    out = run("notebook.py", monkeypatch, capsys)
    assert "uncoded ends in round 30" in out
    assert "right: True - liars: (5,)" in out
    assert "(1234, 7" in out and "corrected: True" in out


@pytest.mark.night
def test_study_of_genomes(tmp_path):
    out = subprocess.run(
        [sys.executable, EXAMPLES.parent / "gwas/gwas.py", "--no-dask", "-n", "300", "-p",
         "800", "-o", tmp_path / "g.svg"], check=True, capture_output=True, text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))).stdout
    assert re.findall(r"^\| kofn \| ([^|]*) .* (\S+) \|$", out, re.M) == [
        (event, "0") for event in ("none", "one killed", "two killed",
                                   "one five times slower", "one returns wrong numbers")]
    assert (tmp_path / "g.svg").read_text().startswith("<svg")


@pytest.mark.night
def test_study_on_sixteen_machines(tmp_path):
    out = subprocess.run(
        [sys.executable, EXAMPLES.parent / "gwas/sixteen.py", "-n", "300", "-p", "800",
         "-o", tmp_path / "s.svg"], check=True, capture_output=True, text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))).stdout
    rows = dict(re.findall(r"^\| (.*? \| \S.*?) \| (.*) \|$", out, re.M))
    for event in "one of 16 stopped", "two of 16 stopped":
        assert rows["no code | " + event].startswith("fails: TooFewWorkers")
        assert float(rows["elastic:k=12 | " + event].split(" | ")[-1]) < 1e-10
    assert float(rows["elastic:k=12, keyed | one returns wrong numbers"]
                 .split(" | ")[-1]) < 1e-5
    assert (tmp_path / "s.svg").read_text().startswith("<svg")
