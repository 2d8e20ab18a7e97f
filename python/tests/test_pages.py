"""The blocks of Python in the docs are run, page by page, and print what their comments
say."""
import contextlib
import io
import pathlib
import re

import pytest

DOCS = pathlib.Path(__file__).resolve().parent.parent.parent / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def expected(code):
    """Returns what a block prints by its comments: those behind print(...), and those of
    lines of their own that follow a line of code."""
    behind = re.findall(r"^.*print\(.*\)  # (.*)$", code, re.M)
    below = re.findall(r"^# (.*)$", code.split("print(")[-1], re.M) \
        if "print(" in code else []
    return behind + below


@pytest.mark.parametrize("page", ["python.md", "recipes.md"])
def test_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    pytest.importorskip("networkx")
    monkeypatch.chdir(tmp_path)
    names, blocks = {"__name__": "page"}, BLOCK.findall((DOCS / page).read_text())
    if any("import pandas" in code for code in blocks):
        pytest.importorskip("pandas")
    assert len(blocks) >= 5
    for code in blocks:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, page, "exec"), names)
        assert said.getvalue().splitlines() == expected(code), code
