"""Every docstring's example is run."""
import doctest
import importlib

import numpy as np
import pytest

MODULES = ["kofn", "kofn._job", "kofn._matrix", "kofn._sum", "kofn._iterate",
           "kofn._regression", "kofn._check", "kofn._stream", "kofn._network"]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    np.set_printoptions(legacy=False)
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
    assert result.attempted > 0
