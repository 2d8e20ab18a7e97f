"""The stubs and docs/python-details.md name what there is, with the same parameters."""
import ast
import importlib
import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

import kofn
from kofn._job import OPTIONS
from kofn._kofn import ffi

STUBS = pathlib.Path(kofn.__file__).parent / "__init__.pyi"
TREE = ast.parse(STUBS.read_text())


def parameters(node):
    a = node.args
    names = [p.arg for p in a.posonlyargs + a.args]
    if a.vararg:
        names.append("*" + a.vararg.arg)
    names += [p.arg for p in a.kwonlyargs]
    if a.kwarg and isinstance(a.kwarg.annotation, ast.Subscript):  # Unpack[...]
        names += [name for name in unpacked(a.kwarg.annotation.slice.id)
                  if name not in names]
    elif a.kwarg:
        names.append("**" + a.kwarg.arg)
    return names


def unpacked(name):
    """Returns the options of a dictionary type of the stubs, and of its base."""
    node, = (n for n in TREE.body if getattr(n, "name", "") == name)
    base = node.bases[0].id
    return (unpacked(base) if base != "TypedDict" else []) + \
        [field.target.id for field in node.body]


def real_parameters(f):
    mark = {inspect.Parameter.VAR_POSITIONAL: "*",
            inspect.Parameter.VAR_KEYWORD: "**"}
    return [mark.get(p.kind, "") + p.name
            for p in inspect.signature(f).parameters.values()]


def test_docs_and_table_have_every_option_of_a_job():
    fields = {name for name, _ in ffi.typeof("kofn_options").fields}
    assert set(OPTIONS) == fields - {"size", "events", "event_count"}
    doc = pathlib.Path(__file__).parents[2] / "docs/python-details.md"
    listed = re.search(r"arguments of the same name:(.*?)\. They", doc.read_text(),
                       re.S).group(1)
    assert set(OPTIONS) <= set(re.findall(r"`(\w+)`", listed))


def test_every_number_of_a_report_is_an_attribute_and_documented():
    source = pathlib.Path(__file__).parents[2]
    table = {name for name, kind in
             re.findall(r"^    X\((\w+), \w+, (\w+),",
                        (source / "src/base/report.h").read_text(), re.M)
             if kind != "LIST"}
    mine = table - {"took"} | {"seconds", "may_lie", "liars", "partial"}
    assert "unchecked" in table and set(kofn.Report._fields) == mine
    typed, = (n for n in TREE.body if getattr(n, "name", "") == "Report")
    assert tuple(f.target.id for f in typed.body
                 if isinstance(f, ast.AnnAssign)) == kofn.Report._fields
    listed = re.search(r"A report has (.*?)\.\s", (source / "docs/python-details.md")
                       .read_text(), re.S).group(1)
    assert set(re.findall(r"`(\w+)`", listed)) == mine


def test_the_reference_is_what_the_docstrings_say():
    source = pathlib.Path(__file__).parents[2]
    done = subprocess.run([sys.executable, source / "scripts/python-reference", "--check"],
                          env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_name_has_a_stub():
    stubs = {n.name for n in TREE.body if isinstance(n, (ast.ClassDef,
                                                         ast.FunctionDef))
             and not n.name.startswith("_")}
    assert stubs == set(kofn.__all__)


def test_parameters_are_the_same():
    compared = 0
    for node in TREE.body:
        real = getattr(kofn, getattr(node, "name", ""), None)
        if isinstance(node, ast.FunctionDef):
            assert parameters(node) == real_parameters(real), node.name
            compared += 1
        elif real is not None and isinstance(node, ast.ClassDef):
            compared += members(node, real)
    assert compared > 40


def members(node, real, classes=None):
    """Compares the .pyi file with the class, and returns the number of methods. `classes`
    are the class and its bases, if not all of them."""
    stubs = {}
    for m in node.body:
        if isinstance(m, ast.FunctionDef):
            stubs[m.name] = m
            where = inspect.getattr_static(real, m.name)
            if not isinstance(where, property):
                assert parameters(m) == real_parameters(getattr(real, m.name)), \
                    (node.name, m.name)
    public = {name for c in classes or real.__mro__ if c.__module__.startswith("kofn")
              for name, value in vars(c).items()
              if not name.startswith("_") and
              (inspect.isfunction(value) or isinstance(value, property))}
    assert public <= set(stubs), (node.name, public - set(stubs))
    return len(stubs)


@pytest.mark.parametrize("name", ["mpi", "dask", "slurm", "ray", "spark"])
def test_stubs_of_modules_are_the_same(name):
    module = importlib.import_module(f"kofn.{name}")
    stubs = {n.name: n for n in ast.parse((STUBS.parent / f"{name}.pyi").read_text()).body
             if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    assert set(stubs) == set(module.__all__)
    for f, node in stubs.items():
        if isinstance(node, ast.ClassDef):
            members(node, getattr(module, f), [getattr(module, f)])
        else:
            assert parameters(node) == real_parameters(getattr(module, f)), f
