"""scikit-learn's manners, without needing it."""
import threading
import warnings

import numpy as np

from . import _lib
from ._lib import Invalid
from ._turn import Turn

_making = threading.Lock()


class ConvergenceWarning(UserWarning):
    """A descent ended before its gradient was as small as was asked for."""


def _names(X):
    """Names of the columns of a data frame, or None."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    columns = list(columns)
    named = [isinstance(name, str) for name in columns]
    if any(named) and not all(named):
        raise TypeError("some names of X's columns are strings and some are not; "
                        "X.columns = X.columns.astype(str) makes all so")
    return np.array(columns, object) if named and all(named) else None


class Estimator:
    """Parameters by name, of which a subclass lists the names in _PARAMS."""

    _PARAMS = ()

    def get_params(self, deep=True):
        return {name: getattr(self, name) for name in self._PARAMS}

    def set_params(self, **params):
        for name, value in params.items():
            if name not in self._PARAMS:
                raise Invalid(f"{type(self).__name__} has no parameter {name!r}")
            setattr(self, name, value)
        return self

    def __getstate__(self):
        """Without the lock, which is this process's."""
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
        """X of fit, whose columns are those of predict as well."""
        names = _names(X)
        X = self._table(X)
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        self.n_features_in_ = X.shape[1]
        return X

    def _rows_again(self, X):
        """X of predict: the columns of fit, by name where they have names."""
        self._compare(_names(X))
        X = self._table(X)
        if X.shape[1] != self.n_features_in_:
            raise Invalid(f"X has {X.shape[1]} features, but "
                          f"{type(self).__name__} is expecting "
                          f"{self.n_features_in_} features as input")
        if not np.isfinite(X).all():
            i, j = np.argwhere(~np.isfinite(X))[0]
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
        try:
            return np.require(y, np.float64, "CA")
        except (TypeError, ValueError) as e:
            raise Invalid(f"y: {e}") from None

    @staticmethod
    def _like(y, p):
        """y of score, in the shape of what is predicted: a column is a vector."""
        y = np.asarray(y)
        if y.size != p.size or y.shape[:1] != p.shape[:1]:
            raise Invalid(f"y has the shape {y.shape}, and what is predicted "
                          f"{p.shape}")
        return y.reshape(p.shape)

    @staticmethod
    def _table(X):
        X = _lib.array(X, np.float64, "X")
        if X.ndim != 2:
            raise Invalid("X has one dimension; 2 are needed")
        return X
