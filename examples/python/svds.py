"""Singular values by SciPy on a fleet of processes. Two of them are killed."""
import os
import pathlib
import signal
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import kofn
import numpy as np
from scipy.sparse.linalg import svds

X = np.random.default_rng(1).standard_normal((3000, 200))
with kofn.Matrix(X, "processes", scheme="elastic:k=4", workers=8,
                 below="pause") as A:  # wait if too few workers are left
    A @ np.ones(200)  # distributes the blocks
    for after, child in ((0.05, 2), (0.1, 5)):
        threading.Timer(after, os.kill, (A.processes[child], signal.SIGKILL)).start()
    s = np.sort(svds(A, k=5)[1])[::-1]
    exact = np.linalg.svd(X, compute_uv=False)[:5]
    print("singular values", s.round(3))
    print("they differ by", f"{np.abs(s - exact).max():.0e};",
          A.totals.left, "workers were lost")
