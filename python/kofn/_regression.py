"""Linear models fitted on coded workers, with scikit-learn's interface."""
import warnings

import numpy as np

from . import _lib
from ._estimator import ConvergenceWarning, Estimator, classes, labels, r2
from ._fleet import life
from ._job import Job, Report
from ._lib import Invalid, check, ffi, lib, new

_LOSS = {"squares": lib.KOFN_LOSS_SQUARES, "logistic": lib.KOFN_LOSS_LOGISTIC,
         "poisson": lib.KOFN_LOSS_POISSON}
_DESCENT = {"gd": lib.KOFN_DESCENT_GD, "nesterov": lib.KOFN_DESCENT_NESTEROV,
            "sgd": lib.KOFN_DESCENT_SGD, "lbfgs": lib.KOFN_DESCENT_LBFGS}
_RULE = {"fixed": lib.KOFN_STEP_FIXED, "exact": lib.KOFN_STEP_EXACT,
         "armijo": lib.KOFN_STEP_ARMIJO, "grid": lib.KOFN_STEP_GRID}


@ffi.def_extern(error=1, onerror=_lib.stop_and_raise)
def kofn_py_regress(ud, now, report):
    _lib.may_go_on()
    box = ffi.from_handle(ud)
    if report != ffi.NULL and now != ffi.NULL:
        box["history"].append((now.iteration, now.objective, now.gradient))
    return 0


class Regression(Estimator):
    """A linear model of y from the rows of X, with an intercept if `intercept`.

    X may be a SciPy sparse matrix.

    loss          "squares", "logistic" (labels 0, 1 or -1, 1) or "poisson".
    scheme        elastic, pcr, gc, agc, ...: see docs/regression.md.
    descent       "lbfgs", "nesterov", "gd" or "sgd". None: "nesterov" for squares;
                  for other losses "lbfgs", unless a step or a rule is given.
    ridge, rule, step, tolerance, iterations, batches, seed: as there.

    The ridge does not penalise the intercept. `predict` takes the columns of `fit`;
    for data frames the same names in the same order. A descent that has not reached
    its tolerance after `iterations` iterations warns with kofn.ConvergenceWarning.

    After fit: coef_, intercept_, n_iter_, converged_, objective_, history_ (rows of
    iteration, objective, norm of the gradient) and report_.

    >>> import numpy as np, kofn
    >>> X = np.array([[1.0, 0], [0, 1], [1, 1], [2, 1]])
    >>> model = kofn.Regression(scheme="elastic:k=2", workers=3,
    ...                         intercept=False, iterations=500)
    >>> model.fit(X, X @ [2.0, -1.0]).coef_.round(4)
    array([ 2., -1.])
    """

    _PARAMS = ("loss", "scheme", "workers", "where", "ridge", "descent",
               "rule", "step", "tolerance", "iterations", "batches",
               "intercept", "seed", "options")
    _sparse = True

    def __init__(self, *, loss="squares", scheme="elastic", workers=8,
                 where="threads", ridge=0.0, descent=None, rule="fixed",
                 step=0.0, tolerance=0.0, iterations=100, batches=0,
                 intercept=True, seed=1, options=None):
        self.loss, self.scheme, self.workers = loss, scheme, workers
        self.where, self.ridge, self.descent = where, ridge, descent
        self.rule, self.step, self.tolerance = rule, step, tolerance
        self.iterations, self.batches = iterations, batches
        self.intercept, self.seed, self.options = intercept, seed, options

    @property
    def _estimator_type(self):
        return "classifier" if self.loss == "logistic" else "regressor"

    def _design(self, X):
        """Returns the rows, with a last column of 1 for an intercept."""
        X = self._rows(X)
        if not self.intercept:
            return X
        ones = np.ones((X.shape[0], 1))
        if not _lib.is_sparse(X):
            return np.hstack([X, ones])
        from scipy.sparse import hstack

        return hstack([X, ones], "csr")

    def _labels(self, y):
        if self.loss != "logistic":
            return self._floats(labels(y))
        self.classes_, which = classes(y, 'loss="squares"')
        if len(self.classes_) != 2:
            raise Invalid(f"y has {len(self.classes_)} classes, and logistic "
                          "regression takes 2")
        return which.astype(np.float64)

    def _descent(self):
        if self.descent is not None:
            return self._choice(_DESCENT, "descent")
        partial = self.scheme.startswith(("ignore", "distr-bgd"))
        if self.loss == "squares" or self.step or partial:
            return lib.KOFN_DESCENT_NESTEROV
        return lib.KOFN_DESCENT_LBFGS if self.rule == "fixed" else lib.KOFN_DESCENT_GD

    def fit(self, X, y):
        with self._turn():
            return self._fit(X, y)

    def _fit(self, X, y):
        loss = self._choice(_LOSS, "loss")
        scheme = _lib.text("scheme", self.scheme)
        X, y = self._design(X), self._labels(y)
        box = {"history": []}
        handle = ffi.new_handle(box)
        o = _lib.begun(
            "kofn_regress_options", loss=loss, descent=self._descent(),
            rule=self._choice(_RULE, "rule"), intercept=bool(self.intercept),
            max_iterations=_lib.count("iterations", self.iterations, least=1),
            watch=lib.kofn_py_regress, watch_ud=handle,
            **{name: getattr(self, name) for name in (
                "step", "ridge", "tolerance", "batches", "seed")})
        yv = _lib.view(y)
        xv, kept = _lib.sparse(X, "X") if _lib.is_sparse(X) else (_lib.view(X), X)
        r = ffi.gc(new(lib.kofn_regression_new, _lib.operand(xv), yv, o),
                   lib.kofn_regression_free)
        pb = _lib.begun("kofn_problem")
        check(lib.kofn_regression_problem(
            r, scheme, _lib.count("workers", self.workers), pb))
        job = Job(pb, self.scheme, self.workers, self.where, seed=self.seed,
                  left=1 if pb.op == lib.KOFN_MATVEC else 0, serve=life,
                  operand=_lib.operand(xv), **(self.options or {}))
        try:
            check(lib.kofn_regression_place(r, job.job, pb.op))
            w = np.zeros(X.shape[1])
            res = _lib.begun("kofn_regress_result")
            job.call(lib.kofn_regress, r, _lib.view(w), res)
            self.report_ = Report.of(res.rounds)
        finally:
            job.close()
        self.coef_ = w[:-1] if self.intercept else w
        self.intercept_ = float(w[-1]) if self.intercept else 0.0
        self.n_iter_ = res.iterations
        self.converged_ = bool(res.converged)
        self.objective_ = res.objective
        self.history_ = np.array(box["history"], float).reshape(-1, 3)
        self._warn(res)
        return self

    def _warn(self, res):
        if self.converged_ or self.descent == "sgd":  # sgd has no such test
            return
        if res.distance > 0:
            why = ("far from the minimum, although the norm of the gradient is only "
                   f"{res.gradient:.3g}. Single rows or columns of X probably dominate; "
                   "divide such rows and their labels by their size, or")
        else:
            why = (f"with a gradient of norm {res.gradient:.3g}, more than tolerance="
                   f"{self.tolerance or 1e-8:g} of the first one's;")
        warnings.warn(
            f"the descent ended after {res.iterations} iterations {why} give more "
            f"iterations={self.iterations * 10}, or bring the columns of X to one "
            "scale", ConvergenceWarning, stacklevel=4)

    def decision_function(self, X):
        """Returns the margins X w + intercept."""
        with self._turn():
            self._check_fitted("coef_")
            return self._rows_again(X) @ self.coef_ + self.intercept_

    def predict(self, X):
        t = self.decision_function(X)
        if self.loss == "logistic":
            return self.classes_[(t > 0).astype(int)]
        return np.exp(t) if self.loss == "poisson" else t

    def predict_proba(self, X):
        """Returns the probabilities of both classes; logistic only."""
        if self.loss != "logistic":
            raise Invalid(f'loss="{self.loss}" has no classes')
        t = self.decision_function(X)
        with np.errstate(under="ignore"):
            less = np.exp(-np.abs(t))  # the smaller probability over the larger
            p = np.column_stack([np.ones_like(t), less]) / (1 + less)[:, None]
        return np.where((t > 0)[:, None], p[:, ::-1], p)

    def score(self, X, y):
        """Returns accuracy (logistic) or R^2."""
        p = self.predict(X)
        if self.loss == "logistic":
            return float(np.mean(self._like(np.asarray(y), p) == p))
        return r2(self._like(self._floats(y), p), p)
