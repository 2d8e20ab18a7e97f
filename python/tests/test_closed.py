"""A process that has closed descriptors 0, 1 or 2, as daemons and joblib's workers have:
the library works in it and takes none of these descriptors."""
import os
import subprocess
import sys

import pytest

ROUNDS = """
import os, sys
import numpy as np
import kofn

closed = [int(fd) for fd in sys.argv[1]]
for fd in closed:
    os.close(fd)

def are_closed():
    for fd in closed:
        try:
            os.fstat(fd)
        except OSError:
            continue
        return False
    return True

X = np.arange(60.0).reshape(20, 3)
good = True
for turn in range(2):
    with kofn.Matrix(X, "processes", workers=2, scheme="uncoded") as m:
        good &= are_closed() and np.array_equal(m @ np.ones(3), X @ np.ones(3))
    good &= are_closed()
os._exit(0) if not good else sys.exit(42)
"""


@pytest.mark.parametrize("closed", ["0", "1", "2", "012"])
def test_processes(closed):
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-c", ROUNDS, closed], env=env,
                          capture_output=True, timeout=600)
    assert done.returncode == 42, done.stderr.decode()
