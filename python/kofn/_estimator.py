"""The interface of scikit-learn's estimators, without importing scikit-learn."""
import functools
import inspect
import os
import sys
import threading
import warnings
from numbers import Real

import numpy as np

from . import _lib
from ._fleet import placed
from ._job import tolerating, words_of
from ._lib import Invalid, NotFitted, ffi, nearest
from ._turn import Turn

_making = threading.Lock()
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class ConvergenceWarning(UserWarning):
    """A descent ended before its gradient met the tolerance."""


# ---- exceptions and warnings -----------------------------------------------------

def _remade(own, name, *args):
    return of_both(own, name)(*args)


def of_both(own, name):
    """Returns the class `own`. If scikit-learn's exceptions are loaded, returns a
    subclass of `own` and of the one that is called `name` there."""
    theirs = getattr(sys.modules.get("sklearn.exceptions"), name, None)
    if theirs is None or issubclass(theirs, own):
        return theirs or own
    return _subclass(own, theirs, name)


@functools.lru_cache(None)
def _subclass(own, theirs, name):
    return type(own.__name__, (own, theirs), {
        "__module__": own.__module__, "__doc__": own.__doc__,
        "__reduce__": lambda e: (_remade, (own, name, *e.args))})


def warn(text, own=UserWarning, name=None):
    """Warns at the line that called this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(_HERE):
        level, frame = level + 1, frame.f_back
    kind = of_both(own, name) if name else own
    warnings.warn(text, kind, stacklevel=level)


class _NoSuchMethod(Invalid, AttributeError):
    """The estimator has this method with other parameters only."""

    status = "INVAL"


class only_if:
    """Decorates a method that an estimator has if `why_not(self)` is empty. Otherwise
    the text says why it has no such method."""

    def __init__(self, why_not):
        self._why_not = why_not

    def __call__(self, method):
        self._method = method
        functools.update_wrapper(self, method)
        return self

    def __get__(self, model, kind=None):
        if model is None:
            return self._method
        if why := self._why_not(model):
            raise _NoSuchMethod(why)
        return self._method.__get__(model, kind)


# ---- points and labels -----------------------------------------------------------

def _names(X):
    """Returns the column names of a data frame, or None."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    columns = list(columns)
    named = [isinstance(name, str) for name in columns]
    if any(named) and not all(named):
        raise TypeError("some names of X's columns are strings and some are not; "
                        "X.columns = X.columns.astype(str) makes all so")
    return np.array(columns, object) if named and all(named) else None


def _shown(value):
    """Returns the value for a message, with one spelling of NaN."""
    return "NaN" if isinstance(value, Real) and value != value else value


def _from_objects(a):
    """Returns an array of objects as float64, as scikit-learn reads it."""
    try:
        return a.astype(np.float64)
    except (TypeError, ValueError):
        pass
    for at in np.ndindex(a.shape):
        try:
            float(a[at])
        except (TypeError, ValueError) as e:
            where = ", ".join(map(str, at))
            words = f"X has numbers of type object, and X[{where}] is {a[at]!r}: {e}"
            raise (TypeError(words) if isinstance(e, TypeError) else
                   Invalid(words)) from None
    raise Invalid("X has numbers of type object that are no real numbers")


def _points(X):
    """Returns X as an array of two dimensions in float64."""
    if not _lib.is_sparse(X) and not np.ma.isMaskedArray(X) and \
            not _lib.is_nullable(X) and not hasattr(X, "detach"):
        X = np.asarray(X)
        if X.dtype.kind == "c":
            raise Invalid(f"Complex data not supported: X has numbers of type {X.dtype}")
        if X.dtype.kind == "O":
            X = _from_objects(X)
        if X.ndim == 0:
            raise Invalid(f"X={X} is one number; 2 dimensions are needed. Reshape your "
                          "data: X.reshape(1, 1)")
    X = _lib.array(X, np.float64, "X")
    if X.ndim != 2:
        raise Invalid("X has one dimension; 2 are needed. Reshape your data: "
                      "X.reshape(-1, 1) if it has one feature, X.reshape(1, -1) if it "
                      "is one point")
    return X


def _check_size(X):
    for i, what in enumerate(("sample", "feature")):
        if X.shape[i] == 0:
            raise Invalid(f"X has 0 {what}(s) (shape={X.shape}) while a minimum of 1 is "
                          "required.")


def _check_finite(X):
    """Refuses NaN and infinity, by place."""
    sparse = _lib.is_sparse(X)
    numbers = X.data if sparse else X
    with np.errstate(all="ignore"):
        if np.isfinite(numbers.sum()):
            return
    at = np.argwhere(~np.isfinite(numbers))
    if not len(at):
        return
    if sparse:
        k = at[0][0]
        i, j = np.searchsorted(X.indptr, k, "right") - 1, X.indices[k]
    else:
        i, j = at[0]
    raise Invalid(f"X[{i}, {j}] is {_shown(numbers[tuple(at[0])])}, and only finite "
                  "numbers are taken; fill in or leave out what is missing")


def _is_missing(value):
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # comparing pandas.NA gives no bool
        return True


def _plain(y):
    """Returns labels as an array. Objects that are all numbers become numbers. In a
    list, None and numbers do not become text."""
    a = np.asarray(y)
    if a.dtype.kind in "US" and not hasattr(y, "dtype") and a.ndim == 1 and \
            not all(isinstance(v, (str, bytes)) for v in y):
        a = np.array(list(y), object)
    if a.dtype.kind == "O" and all(isinstance(v, Real) for v in a.flat):
        a = np.array(a.tolist())
    return a


def labels(y):
    """Returns y as a vector, one label per row of X."""
    if y is None:
        raise Invalid("This estimator requires y to be passed, but the target y is None")
    if np.ma.is_masked(y):
        raise Invalid(f"y has {np.ma.count_masked(y)} masked labels; leave those "
                      "points out")
    y = _plain(y)
    if y.ndim == 0 or y.size != len(y):
        raise Invalid(f"y has the shape {y.shape}; it takes one number or label "
                      "for each row of X")
    if y.ndim > 1:
        warn("A column-vector y was passed when a 1d array was expected. Please change "
             "the shape of y to (n_samples,), for example by y.ravel().",
             name="DataConversionWarning")
    return y.reshape(-1)


def classes(y, numbers):
    """Returns the classes of y and the class of each point. `numbers` names the
    argument for labels that are no classes."""
    y = labels(y)
    if y.dtype.kind == "c":
        raise Invalid(f"y has numbers of type {y.dtype}, and labels are whole numbers "
                      "or names")
    if y.dtype.kind == "f":
        odd = np.flatnonzero(~(np.isfinite(y) & (y == np.rint(y))))
    elif y.dtype.kind == "O":
        odd = [i for i, value in enumerate(y) if _is_missing(value)]
    else:
        odd = np.flatnonzero(y != y)  # NaN and NaT differ from themselves
    if len(odd):
        raise Invalid(f"Unknown label type: y[{odd[0]}] is {_shown(y[odd[0]])}, and "
                      "labels of classes are whole numbers or names; leave out points "
                      "without a label"
                      + (f", or give {numbers}, which takes any numbers"
                         if y.dtype.kind == "f" else ""))
    try:
        return np.unique(y, return_inverse=True)
    except TypeError:
        kinds = ", ".join(sorted({type(value).__name__ for value in y}))
        raise Invalid(f"y has labels of several types, {kinds}, which cannot be "
                      "sorted; y.astype(str) makes all of one type") from None


def weights_of(sample_weight, m):
    """Returns the weights of m points, or None if all are equal."""
    if sample_weight is None:
        return None
    w = np.asarray(_lib.numbers(sample_weight, "sample_weight"), np.float64)
    if w.ndim == 0:
        w = np.full(m, float(w))
    if w.ndim != 1:
        raise Invalid(f"sample_weight has the shape {w.shape}. Sample weights must be "
                      "1D array or scalar")
    if len(w) != m:
        raise Invalid(f"sample_weight.shape == {w.shape}, expected ({m},)!")
    odd = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(odd):
        raise Invalid(f"sample_weight[{odd[0]}] is {_shown(w[odd[0]])}, and weights are "
                      "finite and not negative")
    if not w.any():
        raise Invalid("all weights of sample_weight are 0; one point at least needs one")
    return None if (w == w[0]).all() else w


# ---- scores ----------------------------------------------------------------------

def r2(y, p, weights=None):
    """Returns R^2 of the predictions p for y, the mean over the columns of y. It has
    the values of scikit-learn's r2_score. A constant column has 1 if p equals it, and
    else 0."""
    if not np.isfinite(y).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(y))[0])
        raise Invalid(f"y[{', '.join(map(str, at))}] is {_shown(y[at])}, and only finite "
                      "numbers are taken; leave out what is missing")
    y, p = y.reshape(len(y), -1), p.reshape(len(p), -1)
    if len(y) < 2:
        warn("R^2 is not defined for fewer than two points",
             name="UndefinedMetricWarning")
        return float("nan")
    w = np.ones((len(y), 1)) if weights is None else weights.reshape(-1, 1)
    left = (w * (y - p) ** 2).sum(axis=0)
    spread = (w * (y - np.average(y, axis=0, weights=w[:, 0])) ** 2).sum(axis=0)
    spread[(y == y[:1]).all(axis=0)] = 0  # its mean may be rounded
    some = np.where(spread > 0, spread, 1)
    each = np.where(spread > 0, 1 - left / some, np.where(left > 0, 0.0, 1.0))
    return float(each.mean())


def accuracy(y, p, weights=None):
    """Returns the share of labels that are predicted right."""
    return float(np.average(y == p, weights=weights))


# ---- estimators ------------------------------------------------------------------

@functools.lru_cache(None)
def _parameters(kind):
    """Returns the defaults of the constructor's arguments, by name."""
    return {p.name: p.default for p in
            list(inspect.signature(kind.__init__).parameters.values())[1:]
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


class Estimator:
    """An estimator. Its parameters are the arguments of its constructor, which stores
    them and does nothing else. `_sparse`: X may be a SciPy sparse matrix."""

    _sparse = False

    def _store(self, given):
        """Stores the arguments of the constructor, from its locals()."""
        for name in given:
            if name not in ("self", "__class__"):
                setattr(self, name, given[name])

    def get_params(self, deep=True):
        return {name: getattr(self, name) for name in _parameters(type(self))}

    def set_params(self, **params):
        names = _parameters(type(self))
        for name in params:
            if name not in names:
                raise Invalid(f"{type(self).__name__} has no parameter {name!r}"
                              + nearest(name, names))
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self):
        """Returns the call that makes this estimator. Defaults are left out."""
        def differs(name, default):
            value = getattr(self, name, default)
            try:
                return type(value) is not type(default) or bool(value != default)
            except (TypeError, ValueError):  # arrays
                return True

        given = ", ".join(f"{name}={getattr(self, name)!r}"
                          for name, default in _parameters(type(self)).items()
                          if differs(name, default))
        return f"{type(self).__name__}({given})"

    # ---- what scikit-learn asks ----

    _multioutput = False  # y may have several columns
    _positive = False     # y must not be negative
    _needs_y = True

    def __sklearn_tags__(self):
        """Returns the tags for scikit-learn 1.6 and later."""
        from sklearn.utils import (ClassifierTags, InputTags, RegressorTags, Tags,
                                   TargetTags)

        kind, numbers = self._estimator_type, self._estimator_type == "regressor"
        return Tags(estimator_type=kind,
                    target_tags=TargetTags(required=self._needs_y,
                                           positive_only=self._positive,
                                           multi_output=self._multioutput),
                    classifier_tags=None if numbers else ClassifierTags(),
                    regressor_tags=RegressorTags() if numbers else None,
                    input_tags=InputTags(sparse=self._sparse))

    def _more_tags(self):
        """Returns the tags for scikit-learn before 1.6."""
        return {"requires_y": self._needs_y, "requires_positive_y": self._positive,
                "multioutput": self._multioutput,
                "X_types": ["2darray"] + ["sparse"] * self._sparse}

    def _check_fitted(self, name):
        if name not in vars(self):
            raise of_both(NotFitted, "NotFittedError")(
                f"this {type(self).__name__} is not fitted; call fit first")

    def __getstate__(self):
        """Returns the state without the lock, which belongs to this process."""
        return {k: v for k, v in vars(self).items() if k != "_own_turn"}

    @property
    def _turn(self):
        if "_own_turn" not in vars(self):
            with _making:
                if "_own_turn" not in vars(self):
                    self._own_turn = Turn("the model")
        return self._own_turn

    def _choice(self, table, name):
        """Returns the number of the word that this argument has, by a table of the
        library."""
        value, words = getattr(self, name), words_of(table[name])
        if not isinstance(value, str) or value not in words:
            raise Invalid(f"{name}={value!r} is none of {', '.join(map(repr, words))}")
        return words.index(value)

    def _workers(self):
        """Returns the number of workers, which a Fleet knows."""
        return _lib.count("workers", placed(self.where, self.workers)[1])

    def _tolerating(self, choose):
        """Returns the scheme as bytes. With "auto" choose(room, n) writes it, and
        `tolerate` sets its parameter anew."""
        scheme = self.scheme
        if scheme == "auto":
            room = ffi.new("char[]", 64)
            choose(room, 64)
            scheme = ffi.string(room).decode()
            if self.tolerate is not None:
                scheme = scheme.partition(":")[0]
        return tolerating(scheme, self._workers(), self.tolerate)

    def _job_options(self, names):
        """Returns the options of a job that were given, from the arguments of these
        names. The scheme has what `tolerate` asks for."""
        return {name: getattr(self, name) for name in names
                if name != "tolerate" and getattr(self, name) is not None and getattr(self, name) is not False}

    # ---- points ----

    def _rows(self, X):
        """Takes X of fit, and remembers its columns for predict."""
        names = _names(X)
        X = self._table(X)
        _check_size(X)
        _check_finite(X)
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        self.n_features_in_ = X.shape[1]
        return X

    def _rows_again(self, X):
        """Takes X of predict, which needs the columns of fit, by name if they have
        names."""
        self._compare(_names(X))
        X = self._table(X)
        if X.shape[1] != self.n_features_in_:
            raise Invalid(f"X has {X.shape[1]} features, but "
                          f"{type(self).__name__} is expecting "
                          f"{self.n_features_in_} features as input")
        _check_size(X)
        _check_finite(X)
        return X

    def _compare(self, names):
        fitted = getattr(self, "feature_names_in_", None)
        mine = type(self).__name__
        if fitted is None and names is not None:
            warn(f"X has feature names, but {mine} was fitted without feature names")
        if fitted is not None and names is None:
            warn(f"X does not have valid feature names, but {mine} was fitted with "
                 "feature names")
        if fitted is None or names is None or np.array_equal(fitted, names):
            return
        unseen = sorted(set(names) - set(fitted))
        missing = sorted(set(fitted) - set(names))
        raise Invalid("The feature names should match those that were passed during "
                      "fit. " + (
                          f"Feature names unseen at fit time: {', '.join(unseen)}. "
                          if unseen else "") + (
                          f"Feature names seen at fit time, yet now missing: "
                          f"{', '.join(missing)}." if missing else "") + (
                          "" if unseen or missing else
                          "Feature names must be in the same order as they were in "
                          "fit: X[model.feature_names_in_]."))

    @staticmethod
    def _floats(y):
        if isinstance(y, np.ndarray) and y.dtype.kind == "O":
            y = _plain(y)
        return np.require(_lib.numbers(y, "y"), np.float64, "CA")

    @staticmethod
    def _like(y, p):
        """Takes y of score in the shape of the prediction: a column becomes a vector.
        """
        if y.size != p.size or y.shape[:1] != p.shape[:1]:
            raise Invalid(f"y has the shape {y.shape}, and what is predicted "
                          f"{p.shape}")
        return y.reshape(p.shape)

    def _score(self, y, p, sample_weight):
        """Returns accuracy of a classifier, R^2 of a regressor."""
        w = weights_of(sample_weight, len(p))
        if self._estimator_type == "classifier":
            return accuracy(self._like(np.asarray(y), p), p, w)
        return r2(self._like(self._floats(y), p), p, w)

    def _table(self, X):
        if self._sparse and _lib.is_sparse(X):
            return _lib.csr(X, "X").astype(np.float64, copy=False)
        return _points(X)
