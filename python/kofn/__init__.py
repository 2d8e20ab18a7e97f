"""Any k of n workers are enough.

Products, sums, regressions and iterations on workers that may be late, gone or wrong:
the answers of any k of n workers give the exact result.

>>> import numpy as np, kofn
>>> X, w = np.random.default_rng(1).random((60, 5)), np.ones(5)
>>> with kofn.Matrix(X, scheme="elastic:k=4", workers=6) as A:
...     bool(np.allclose(A @ w, X @ w))
True
"""
from ._lib import __version__
from ._check import Findings, check_product
from ._estimator import ConvergenceWarning
from ._fleet import Fleet, FleetWorker, serve
from ._iterate import Iterated, pagerank, power
from ._job import Report, plan_info, schemes
from ._lib import (Corrupt, Error, Invalid, Late, NotFitted, TaskFailed, TooFewWorkers,
                   TransportFailed, Unstable, Unsuited)
from ._matrix import Matrix, matmul
from ._mesh import Mesh
from ._network import Network
from ._plan import Plan, plan
from ._regression import Regression
from ._rows import Rows
from ._scheme import Scheme, add_scheme
from ._stream import Product, Stream
from ._sum import Sum

__all__ = ["ConvergenceWarning", "Corrupt", "Error", "Findings", "Fleet",
           "FleetWorker", "Invalid",
           "Iterated", "Late", "Matrix", "Mesh", "Network", "NotFitted", "Plan", "Product",
           "Regression", "Report", "Rows", "Scheme", "Stream", "Sum", "TaskFailed", "TooFewWorkers",
           "TransportFailed", "Unstable", "Unsuited", "add_scheme", "check_product", "matmul",
           "pagerank", "plan", "plan_info", "power", "schemes", "serve"]
