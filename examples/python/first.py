"""A product on eight workers; any five suffice."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import kofn
import numpy as np

X = np.random.default_rng(1).standard_normal((2000, 300))
w = np.ones(300)
with kofn.Matrix(X, scheme="mds:k=5", workers=8,
                 events=["1 leave 3", "1 slow 6 50"]) as A:
    y = A @ w
    print("without worker 3, not waiting for worker 6:",
          "the product differs by", f"{np.abs(y - X @ w).max():.0e}")
    print(A.report)
