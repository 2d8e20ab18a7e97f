"""Linear models fitted on coded workers, with scikit-learn's interface."""
import numpy as np

from . import _lib
from ._estimator import (ConvergenceWarning, Estimator, classes, labels, only_if, warn,
                         weights_of)
from ._fleet import life
from ._job import ALL, Job, Report, described, option_table
from ._lib import Invalid, Unsuited, check, ffi, lib, new

TABLE = option_table(lib.KOFN_TABLE_REGRESS)
# The arguments of a Regression in that table, and its members.
NAMES = {name: name for name in ("loss", "l2", "optimizer", "line_search", "step", "tol",
                                 "batches")}
NAMES["iterations"] = "max_iterations"
OPTIONS = [name for name in ALL if name != "seed"]


@ffi.def_extern(error=1, onerror=_lib.stop_and_raise)
def kofn_py_regress(ud, now, report):
    _lib.may_go_on()
    history = ffi.from_handle(ud)
    if report != ffi.NULL and now != ffi.NULL:
        history.append((now.iteration, now.objective, now.gradient))
    return 0


def _deviations(X):
    """Returns the standard deviation of each column."""
    if not _lib.is_sparse(X):
        return X.std(axis=0)
    mean, square = (np.asarray(A.mean(axis=0)).ravel() for A in (X, X.multiply(X)))
    return np.sqrt(np.maximum(square - mean ** 2, 0))


class Regression(Estimator):
    """A linear model of y from the rows of X, with an intercept if `intercept`.

    X may be a SciPy sparse matrix. For loss="logistic" y has classes. Of three classes
    and more, a model of each class against the others is fitted.

    scheme        elastic, pcr, gc, agc, ...: see docs/regression.md. "auto": pcr for
                  squares and a small X, and else elastic, as in the command.
    tolerate      as in kofn.Matrix.
{options}
    seed          of the order of batches.
    warm_start    fit starts from the weights of the last fit, if they are as many.
    errors, faults, events, late, keys, ...: options of kofn.Matrix.

    The penalty l2 leaves out the intercept. `predict` takes the columns of `fit`;
    for data frames the same names in the same order. A descent that has not reached
    its tol after `iterations` iterations warns with kofn.ConvergenceWarning. So
    does a logistic fit without l2 of classes that a plane separates.

    After fit: coef_, intercept_, n_iter_, converged_, objective_, history_ (rows of
    iteration, objective, norm of the gradient), report_ and, for "logistic", classes_.
    Of three classes and more, coef_, intercept_ and objective_ have a row for each
    class. Then history_ has the descents of all classes one after the other, and
    n_iter_ is the largest number of iterations.

    >>> import numpy as np, kofn
    >>> X = np.array([[1.0, 0], [0, 1], [1, 1], [2, 1]])
    >>> model = kofn.Regression(scheme="elastic:k=2", workers=3,
    ...                         intercept=False, iterations=500)
    >>> model.fit(X, X @ [2.0, -1.0]).coef_.round(4)
    array([ 2., -1.])
    """

    _sparse = True

    @_lib.shows()
    def __init__(self, *, loss="squares", scheme="auto", workers=8, tolerate=None,
                 where="threads", l2=0.0, optimizer="auto", line_search="none",
                 step=0.0, tol=1e-8, iterations=100, batches=10,
                 intercept=True, warm_start=False, seed=1, in_flight=None, below=None, patience=None,
                 max_error=None, late=None, lease=None, pieces=None, errors=None,
                 quarantine=None, beyond=None, workers_per_principal=None, mu=None,
                 audit=None, start_within=None, journal=None, metrics=None,
                 trace=None, record=None, report=None, faults=None, events=None, keys=None,
                 insecure=False, tls_ca=None, tls_cert=None, tls_key=None):
        self._store(locals())

    @property
    def _estimator_type(self):
        return "classifier" if self.loss == "logistic" else "regressor"

    @property
    def _positive(self):
        return self.loss == "poisson"

    def _no_classes(self):
        if self.loss != "logistic":
            return f"loss={self.loss!r} has no classes"

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
        """Returns y as numbers: of classes, the number of each."""
        if self.loss != "logistic":
            return self._floats(labels(y))
        self.classes_, which = classes(y, 'loss="squares"')
        return which.astype(np.float64)

    def _uses_lbfgs(self):
        automatic = self.optimizer == "auto"
        return self.optimizer == "lbfgs" or (
            automatic and not self.step and self.line_search == "none")

    def _scheme(self, r):
        """Returns the scheme, which the library chooses for "auto"."""
        def choose(room, n):
            lib.kofn_regression_scheme(r, self._workers(), room, n)

        return self._tolerating(choose).decode()

    def fit(self, X, y, sample_weight=None):
        """Fits the model. The loss is the mean over the points by sample_weight."""
        with self._turn():
            return self._fit(X, y, sample_weight)

    def _weighted(self, X, y, weights):
        """Returns the points with a weight, their labels and weights. Least squares
        has the weights in X and y."""
        if weights is None:
            return X, y, None
        there = weights > 0
        X, y, weights = X[there], y[there], weights[there]
        weights = weights * (len(weights) / weights.sum())
        if self.loss != "squares":
            return X, y, weights
        root = np.sqrt(weights)
        if not _lib.is_sparse(X):
            return X * root[:, None], y * root, None
        from scipy.sparse import diags

        return (diags(root) @ X).tocsr(), y * root, None

    def _check_classes(self, y):
        """Raises if the points that count are of one class."""
        found = np.unique(y).astype(int)
        if len(found) < 2:
            raise Invalid(f"all labels of y are of one class, {self.classes_[found[0]]!r}; "
                          "logistic regression needs points of two classes")
        self.classes_ = self.classes_[found]
        return np.searchsorted(found, y).astype(np.float64)

    def path(self, X, y, l2s, sample_weight=None):
        """Fits the model for each penalty of l2s, in this order, on one job. Each fit
        starts from the weights of the one before. Begin with the largest penalty.

        Returns coefs (a row for each penalty) and intercepts. The model is then that
        of the last penalty. Of classes there may be two.

        >>> import numpy as np, kofn
        >>> X = np.array([[1.0, 0], [0, 1], [1, 1], [2, 1]])
        >>> model = kofn.Regression(scheme="elastic:k=2", workers=3)
        >>> coefs, intercepts = model.path(X, X @ [2.0, -1.0], [1, 0.1, 0])
        >>> coefs[-1].round(4)
        array([ 2., -1.])
        """
        l2s = np.asarray(l2s, np.float64)
        if l2s.ndim != 1 or not len(l2s):
            raise Invalid(f"l2s has the shape {l2s.shape}; it takes one penalty or more")
        with self._turn():
            self._fit(X, y, sample_weight, l2s)
            coefs, intercepts, self._path = *self._path, None
            return coefs, intercepts

    def _fit(self, X, y, sample_weight, l2s=None):
        loss = self._choice(TABLE, "loss")
        _lib.text("scheme", self.scheme)
        given = self._job_options(OPTIONS)
        X, y = self._design(X), self._labels(y)
        if len(y) != X.shape[0]:
            raise Invalid(f"X has {X.shape[0]} rows and y {len(y)}")
        X, y, weights = self._weighted(X, y, weights_of(sample_weight, len(y)))
        each = [y]
        if self.loss == "logistic":
            y = self._check_classes(y)
            each = [y] if len(self.classes_) == 2 else \
                [(y == i).astype(np.float64) for i in range(len(self.classes_))]
        if l2s is not None and len(each) > 1:
            raise Unsuited(f"y has {len(each)} classes, and a path has one model")
        fits, history = self._fit_each(loss, X, each, weights, given, l2s)
        if l2s is not None:
            W = np.array([w for w, _ in fits])
            self._path = (W[:, :-1], W[:, -1]) if self.intercept else \
                (W, np.zeros(len(W)))
            fits = fits[-1:]
        self._take(fits, history)
        self._warn(X, y, [res for _, res in fits])
        return self

    def _fit_each(self, loss, X, each, weights, given, l2s=None):
        """Returns weights and result of a fit for each vector of labels, and then for
        each further penalty, on one job, and the history of all."""
        xv, kept = _lib.sparse(X, "X") if _lib.is_sparse(X) else (_lib.view(X), X)
        wv = ffi.NULL if weights is None else _lib.view(weights)
        history = []
        handle = ffi.new_handle(history)
        o = self._regress_options(loss, handle)
        if l2s is not None:
            o.l2 = l2s[0]
        o.weights, o.relabels = wv, len(each) > 1
        r = ffi.gc(new(lib.kofn_regression_new, _lib.operand(xv), _lib.view(each[0]), o),
                   lib.kofn_regression_free)
        pb = _lib.begun("kofn_problem")
        scheme = self._scheme(r)
        try:
            check(lib.kofn_regression_problem(r, _lib.text("scheme", scheme),
                                              self._workers(), pb))
        except Unsuited as e:
            if len(each) == 1:
                raise
            raise Unsuited(f"y has {len(each)} classes: {e}, or "
                           "sklearn.multiclass.OneVsRestClassifier of this model") from e
        job = Job(pb, scheme, self.workers, self.where, seed=self.seed,
                  left=1 if pb.op == lib.KOFN_MATVEC else 0, serve=life,
                  operand=_lib.operand(xv), **given)
        try:
            check(lib.kofn_regression_place(r, job.job, pb.op))
            starts = self._starts(len(each), X.shape[1])
            out = [self._descend(r, job, starts[0])]
            for y, start in zip(each[1:], starts[1:]):
                check(lib.kofn_regression_relabel(r, _lib.view(y)))
                out.append(self._descend(r, job, start))
            for l2 in () if l2s is None else l2s[1:]:
                check(lib.kofn_regression_penalise(r, l2))
                out.append(self._descend(r, job, out[-1][0].copy()))
            self.report_ = Report.of(out[0][1].rounds) if len(out) == 1 else job.totals
        finally:
            job.close()
        del kept
        return out, history

    def _starts(self, models, columns):
        """Returns the weights from which each model starts."""
        zeros = np.zeros((models, columns))
        if not self.warm_start or not hasattr(self, "coef_"):
            return zeros
        W = np.atleast_2d(self.coef_)
        if self.intercept:
            W = np.column_stack([W, np.atleast_1d(self.intercept_)])
        return W.copy() if W.shape == zeros.shape else zeros

    @staticmethod
    def _descend(r, job, w):
        w, res = np.ascontiguousarray(w), _lib.begun("kofn_regress_result")
        job.call(lib.kofn_regress, r, _lib.view(w), res)
        return w, res

    def _regress_options(self, loss, handle):
        return _lib.begun(
            "kofn_regress_options", loss=loss, optimizer=self._choice(TABLE, "optimizer"),
            line_search=self._choice(TABLE, "line_search"), intercept=bool(self.intercept),
            max_iterations=_lib.count("iterations", self.iterations, least=1),
            watch=lib.kofn_py_regress, watch_ud=handle,
            **{name: getattr(self, name) for name in (
                "step", "l2", "tol", "batches", "seed")})

    def _take(self, fits, history):
        W = np.array([w for w, _ in fits])
        results = [res for _, res in fits]
        coef, last = (W[:, :-1], W[:, -1]) if self.intercept else (W, np.zeros(len(W)))
        self.n_iter_ = max(res.iterations for res in results)
        self.converged_ = all(res.converged for res in results)
        self.history_ = np.array(history, float).reshape(-1, 3)
        if len(fits) == 1:
            self.coef_, self.intercept_ = coef[0], float(last[0])
            self.objective_ = results[0].objective
        else:
            self.coef_, self.intercept_ = coef, last
            self.objective_ = np.array([res.objective for res in results])

    def _separated(self, X, y):
        """Returns the classes that a plane separates from the others."""
        if self.loss != "logistic" or self.l2 > 0:
            return []
        W = np.atleast_2d(self.coef_)
        if self.intercept:
            W = np.column_stack([W, np.atleast_1d(self.intercept_)])
        t = X @ W.T
        mine = np.array([1.0]) if len(W) == 1 else np.arange(float(len(W)))
        apart = np.where(y[:, None] == mine, t > 0, t < 0).all(axis=0)
        return list(self.classes_[mine.astype(int)[apart]])

    def _warn(self, X, y, results):
        kind = ConvergenceWarning, "ConvergenceWarning"
        apart = self._separated(X, y)
        if apart:
            warn(f"a plane separates the class {apart[0]!r} of y from the others, so no "
                 "weights are best: longer ones always fit better. Give a penalty, such as "
                 "l2=0.001", *kind)
            return
        late = [res for res in results if not res.converged]
        if not late or self.optimizer == "sgd":  # sgd has no such test
            return
        res = late[0]
        if res.distance > 0:
            why = ("far from the minimum, although the norm of the gradient is only "
                   f"{res.gradient:.3g}")
        else:
            why = (f"with a gradient of norm {res.gradient:.3g}, more than tol="
                   f"{self.tol or 1e-8:g} of the first one's")
        warn(f"the descent ended after {res.iterations} iterations {why}. "
             + self._advice(X), *kind)

    def _advice(self, X):
        """Returns what makes a descent converge, the best first: another descent,
        columns of one scale, more iterations."""
        partial = self.scheme.startswith(("ignore", "distr-bgd"))
        if not self._uses_lbfgs() and not partial:
            left_out = [name for name, default in (("step", 0.0), ("line_search", "none"))
                        if getattr(self, name) != default]
            return 'Give optimizer="lbfgs"' + (
                f", and leave out {' and '.join(left_out)}" if left_out else "")
        spread = _deviations(X[:, :-1] if self.intercept else X)
        spread = spread[spread > 0]
        if len(spread) and spread.max() > 10 * spread.min():
            return ("Bring the columns of X to one scale, such as X / X.std(axis=0); "
                    f"their deviations are {spread.min():.2g} to {spread.max():.2g}")
        return f"Give more iterations={self.iterations * 10}, or a larger l2"

    def _margins(self, X):
        """Returns X w + intercept, with a column for each of three classes and more."""
        with self._turn():
            self._check_fitted("coef_")
            return self._rows_again(X) @ self.coef_.T + self.intercept_

    @only_if(_no_classes)
    def decision_function(self, X):
        """Returns the margins X w + intercept; logistic only."""
        return self._margins(X)

    def predict(self, X):
        """Returns classes (logistic), or the mean of y for each row."""
        t = self._margins(X)
        if self.loss == "logistic":
            return self.classes_[(t > 0).astype(int) if t.ndim == 1 else t.argmax(1)]
        return np.exp(t) if self.loss == "poisson" else t

    @only_if(_no_classes)
    def predict_proba(self, X):
        """Returns the probabilities of all classes; logistic only."""
        t = self._margins(X)
        with np.errstate(under="ignore"):
            if t.ndim == 1:
                less = np.exp(-np.abs(t))  # the smaller probability over the larger
                p = np.column_stack([np.ones_like(t), less]) / (1 + less)[:, None]
                return np.where((t > 0)[:, None], p[:, ::-1], p)
            logs = np.minimum(t, 0) - np.log1p(np.exp(-np.abs(t)))
            p = np.exp(logs - logs.max(axis=1, keepdims=True))
            return p / p.sum(axis=1, keepdims=True)

    def score(self, X, y, sample_weight=None):
        """Returns accuracy (logistic) or R^2."""
        return self._score(y, self.predict(X), sample_weight)


Regression.__doc__ = Regression.__doc__.replace("{options}", described([TABLE], NAMES))
