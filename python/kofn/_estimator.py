"""scikit-learn's manners, without needing it."""
import numpy as np

from . import _lib
from ._lib import Invalid


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

    def _choice(self, table, name):
        value = getattr(self, name)
        if value not in table:
            raise Invalid(f"{name}={value!r} is none of "
                          f"{', '.join(map(repr, table))}")
        return table[value]

    @staticmethod
    def _rows(X):
        X = _lib.array(X, np.float64, "X")
        if X.ndim != 2:
            raise Invalid("X has one dimension; 2 are needed")
        return X
