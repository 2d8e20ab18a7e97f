"""The interface of scikit-learn's estimators, without importing scikit-learn."""
import threading
import warnings
from numbers import Real

import numpy as np

from . import _lib
from ._lib import Invalid, NotFitted
from ._turn import Turn

_making = threading.Lock()


class ConvergenceWarning(UserWarning):
    """A descent ended before its gradient met the tolerance."""


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
    if np.ma.is_masked(y):
        raise Invalid(f"y has {np.ma.count_masked(y)} masked labels; leave those "
                      "points out")
    y = _plain(y)
    if y.ndim == 0 or y.size != len(y):
        raise Invalid(f"y has the shape {y.shape}; it takes one number or label "
                      "for each row of X")
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
        raise Invalid(f"y[{odd[0]}] is {y[odd[0]]}, and labels of classes are whole "
                      "numbers or names; leave out points without a label"
                      + (f", or give {numbers}, which takes any numbers"
                         if y.dtype.kind == "f" else ""))
    try:
        return np.unique(y, return_inverse=True)
    except TypeError:
        kinds = ", ".join(sorted({type(value).__name__ for value in y}))
        raise Invalid(f"y has labels of several types, {kinds}, which cannot be "
                      "sorted; y.astype(str) makes all of one type") from None


def r2(y, p):
    """Returns R^2 of the predictions p for y. For a constant y it is 1 if only
    rounding is left, else 0, as in kofn_fit_of."""
    if not np.isfinite(y).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(y))[0])
        raise Invalid(f"y[{', '.join(map(str, at))}] is {y[at]}, and only finite "
                      "numbers are taken; leave out what is missing")
    left = float(np.sum((y - p) ** 2))
    spread = np.where((y == y[:1]).all(axis=0), 0.0, y - y.mean(axis=0))
    all_of_it = float(np.sum(spread ** 2))
    if all_of_it > 0:
        return 1 - left / all_of_it
    return 1.0 if left <= 2.0 ** -50 * float(np.sum(y ** 2)) else 0.0


class Estimator:
    """An estimator with named parameters, which a subclass lists in _PARAMS.
    `_sparse`: X may be a SciPy sparse matrix."""

    _PARAMS = ()
    _sparse = False

    def get_params(self, deep=True):
        return {name: getattr(self, name) for name in self._PARAMS}

    def set_params(self, **params):
        for name, value in params.items():
            if name not in self._PARAMS:
                raise Invalid(f"{type(self).__name__} has no parameter {name!r}")
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self):
        """Returns the tags for scikit-learn 1.6 and later."""
        from sklearn.utils import (ClassifierTags, InputTags, RegressorTags, Tags,
                                   TargetTags)

        kind, numbers = self._estimator_type, self._estimator_type == "regressor"
        return Tags(estimator_type=kind, target_tags=TargetTags(required=True),
                    classifier_tags=None if numbers else ClassifierTags(),
                    regressor_tags=RegressorTags() if numbers else None,
                    input_tags=InputTags(sparse=self._sparse))

    def _check_fitted(self, name):
        if name not in vars(self):
            raise NotFitted(f"this {type(self).__name__} is not fitted; call fit first")

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
        value = getattr(self, name)
        if not isinstance(value, str) or value not in table:
            raise Invalid(f"{name}={value!r} is none of "
                          f"{', '.join(map(repr, table))}")
        return table[value]

    def _rows(self, X):
        """Takes X of fit, and remembers its columns for predict."""
        names = _names(X)
        X = self._table(X)
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
        numbers = X.data if _lib.is_sparse(X) else X
        if not np.isfinite(numbers).all():
            at = np.argwhere(~np.isfinite(numbers))[0]
            if _lib.is_sparse(X):
                at = np.searchsorted(X.indptr, at[0], "right") - 1, X.indices[at[0]]
            i, j = at
            raise Invalid(f"X[{i}, {j}] is {X[i, j]}, and only finite numbers are "
                          "taken; fill in or leave out what is missing")
        return X

    def _compare(self, names):
        fitted = getattr(self, "feature_names_in_", None)
        mine = type(self).__name__
        if fitted is None and names is not None:
            warnings.warn(f"X has feature names, but {mine} was fitted without "
                          "feature names", stacklevel=5)
        if fitted is not None and names is None:
            warnings.warn(f"X does not have valid feature names, but {mine} was "
                          "fitted with feature names", stacklevel=5)
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
        return np.require(_lib.numbers(y, "y"), np.float64, "CA")

    @staticmethod
    def _like(y, p):
        """Takes y of score in the shape of the prediction: a column becomes a vector.
        """
        if y.size != p.size or y.shape[:1] != p.shape[:1]:
            raise Invalid(f"y has the shape {y.shape}, and what is predicted "
                          f"{p.shape}")
        return y.reshape(p.shape)

    def _table(self, X):
        if self._sparse and _lib.is_sparse(X):
            return _lib.csr(X, "X").astype(np.float64, copy=False)
        X = _lib.array(X, np.float64, "X")
        if X.ndim != 2:
            raise Invalid("X has one dimension; 2 are needed")
        return X
