"""The estimators satisfy scikit-learn, and agree with its models.

Tests that need scikit-learn are skipped without it (Debian: python3-sklearn)."""
import dataclasses
import inspect
import pickle
import re
import sys
import types
import unittest
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import kofn

try:
    import sklearn  # noqa: F401
except ImportError:
    sklearn = None
needs_sklearn = pytest.mark.skipif(sklearn is None, reason="python3-sklearn is missing")

ESTIMATORS = {"squares": kofn.Regression(), "logistic": kofn.Regression(loss="logistic"),
              "poisson": kofn.Regression(loss="poisson"), "softmax": kofn.Network(),
              "numbers": kofn.Network(loss="squares")}
# Checks of scikit-learn that an estimator does not pass, each with the reason.
UNMET = {}
rng = np.random.default_rng(8)


# ---- all checks ------------------------------------------------------------------

@needs_sklearn
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [
    *(n for n in ESTIMATORS if n != "numbers"),
    pytest.param("numbers", marks=pytest.mark.night)])
def test_check_estimator(name):
    from sklearn.utils.estimator_checks import check_estimator

    failed, count = {}, 0
    for model, check in check_estimator(ESTIMATORS[name], generate_only=True):
        called, count = getattr(check, "func", check).__name__, count + 1
        try:
            check(model)
        except unittest.SkipTest: # it needs pandas
            continue
        except Exception as e:
            failed[called] = e
    assert count >= 39 and set(failed) == set(UNMET.get(name, {})), failed


def stub_of_1_8(monkeypatch):
    """Installs what scikit-learn 1.8 has in sklearn.utils for tags."""
    names = "ClassifierTags", "InputTags", "RegressorTags", "TargetTags"
    field = dataclasses.field

    def tags(name, **defaults):
        return dataclasses.make_dataclass(name, [
            (key, type(value), field(default=value)) for key, value in defaults.items()],
            slots=True)

    made = {
        "ClassifierTags": tags("ClassifierTags", poor_score=False, multi_class=True,
                               multi_label=False),
        "RegressorTags": tags("RegressorTags", poor_score=False),
        "InputTags": tags("InputTags", one_d_array=False, two_d_array=True,
                          three_d_array=False, sparse=False, categorical=False,
                          string=False, dict=False, positive_only=False,
                          allow_nan=False, pairwise=False),
        "TargetTags": dataclasses.make_dataclass("TargetTags", [
            ("required", bool), *((key, bool, field(default=value)) for key, value in (
                ("one_d_labels", False), ("two_d_labels", False),
                ("positive_only", False), ("multi_output", False),
                ("single_output", True)))], slots=True)}
    made["Tags"] = dataclasses.make_dataclass("Tags", [
        ("estimator_type", str), ("target_tags", made["TargetTags"]),
        *((key, object, field(default=None)) for key in (
            "transformer_tags", "classifier_tags", "regressor_tags")),
        ("array_api_support", bool, field(default=False)),
        ("no_validation", bool, field(default=False)),
        ("non_deterministic", bool, field(default=False)),
        ("requires_fit", bool, field(default=True)),
        ("_skip_test", bool, field(default=False)),
        ("input_tags", made["InputTags"], field(default_factory=made["InputTags"]))],
        slots=True)
    assert set(names) < set(made)
    utils = types.SimpleNamespace(**made)
    monkeypatch.setitem(sys.modules, "sklearn", types.SimpleNamespace(utils=utils))
    monkeypatch.setitem(sys.modules, "sklearn.utils", utils)
    return made


@pytest.mark.parametrize("name", ESTIMATORS)
def test_tags_of_1_8(name, monkeypatch):
    made, model = stub_of_1_8(monkeypatch), ESTIMATORS[name]
    classifier = name in ("logistic", "softmax")
    tags = model.__sklearn_tags__()
    assert type(tags) is made["Tags"] and tags.requires_fit and not tags.no_validation
    assert tags.estimator_type == ("classifier" if classifier else "regressor")
    assert (tags.classifier_tags is None) != classifier
    assert (tags.regressor_tags is None) == classifier
    assert tags.input_tags.sparse == (type(model) is kofn.Regression)
    assert not tags.input_tags.allow_nan
    assert tags.target_tags.positive_only == (name == "poisson")
    assert tags.target_tags.multi_output == (name == "numbers")
    assert tags.target_tags.required == (name != "numbers")
    old = model._more_tags()
    assert ("sparse" in old["X_types"]) == tags.input_tags.sparse
    assert old["requires_positive_y"] == tags.target_tags.positive_only
    # check_estimator_tags_renamed: both are of the same class
    for kind in type(model).__mro__:
        assert ("_more_tags" in vars(kind)) <= ("__sklearn_tags__" in vars(kind))


def target(name, X):
    """Returns a y that this estimator takes."""
    t = X @ np.arange(1.0, X.shape[1] + 1)
    if name in ("logistic", "softmax"):
        return np.array(["a", "b", "c"])[np.digitize(t, [-1, 1])]
    return t - t.min() if name == "poisson" else t


def same(a, b):
    return (a == b).all() if a.dtype.kind == "U" else np.allclose(a, b)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_later_versions_check_besides(name):
    """1.6 to 1.8 added checks of the constructor, of layouts and of sparse points."""
    kind, odd = type(ESTIMATORS[name]), object()
    for key in kind().get_params():
        assert getattr(kind(**{key: odd}), key) is odd
        assert kind().set_params(**{key: odd}).get_params()[key] is odd
    X = rng.standard_normal((40, 3))
    y = target(name, X)
    model = kind(**{**ESTIMATORS[name].get_params(), "workers": 3})
    if kind is kofn.Network:
        model.set_params(epochs=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = model.fit(X, y).predict(X)
        fortran, fixed = np.asfortranarray(X), X.copy()
        fixed.setflags(write=False)
        for points in fortran, fixed, X.tolist():
            assert model.fit(points, y) is model
            assert same(model.predict(points), want)
        if model._more_tags()["X_types"] == ["2darray"]:
            with pytest.raises(kofn.Invalid, match="sparse"):
                model.fit(sp.csr_matrix(X), y)
        else:
            assert same(model.fit(sp.csr_array(X), y).predict(sp.csr_array(X)), want)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["squares", "logistic", "poisson"])
@pytest.mark.filterwarnings("ignore::kofn.ConvergenceWarning")
def test_weights_repeat_points(name, sparse):
    """check_sample_weight_equivalence_on_dense_data and ..._on_sparse_data."""
    X = rng.standard_normal((15, 30)) * (rng.random((15, 30)) < 0.7)
    y, times = target(name, X), rng.integers(0, 5, 15)
    a, b = (kofn.Regression(loss=ESTIMATORS[name].loss, workers=3) for _ in range(2))
    kind = sp.csr_matrix if sparse else np.asarray
    mix = rng.permutation(15)
    a.fit(kind(X[mix]), y[mix], sample_weight=times[mix])
    b.fit(kind(np.repeat(X, times, axis=0)), np.repeat(y, times))
    if name == "logistic":
        assert np.allclose(a.predict_proba(X), b.predict_proba(X), rtol=1e-6)
    else:
        assert np.allclose(a.predict(X), b.predict(X), rtol=1e-6)


# ---- results beside scikit-learn's -----------------------------------------------

def points(m=80, n=4):
    X = rng.standard_normal((m, n))
    return X, X @ np.arange(1.0, n + 1) / n + 0.3


def ridges(loss, m, ridge, weights=None):
    """Returns scikit-learn's model with the minimum of the same F."""
    from sklearn import linear_model as lm

    total = m if weights is None else weights.sum()
    if loss == "squares":
        return lm.Ridge(alpha=ridge * total, tol=1e-12)
    if loss == "poisson":
        return lm.PoissonRegressor(alpha=ridge, tol=1e-10, max_iter=10000)
    return lm.LogisticRegression(C=1 / (ridge * total), tol=1e-8, max_iter=100,
                                 multi_class="ovr", solver="newton-cg")


@needs_sklearn
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss, classes", [("squares", 0), ("logistic", 2),
                                           ("logistic", 3), ("poisson", 0)])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_models_and_weights_are_scikit_learns(loss, classes, weighted):
    X, t = points()
    y = {"squares": t + rng.standard_normal(80),
         "logistic": np.array(["a", "b", "c"])[np.digitize(
             t + rng.standard_normal(80), [0, 1][:max(classes - 1, 1)])],
         "poisson": rng.poisson(np.exp(t / 2))}[loss]
    w = rng.integers(0, 4, 80) / 3 if weighted else None
    want = ridges(loss, 80, 0.02, w).fit(X, y, sample_weight=w)
    m = kofn.Regression(loss=loss, l2=0.02, workers=4, scheme="elastic:k=2",
                        tol=1e-11, iterations=3000).fit(X, y, sample_weight=w)
    shape = (3, 4) if loss == "logistic" and classes == 3 else (4,)
    assert m.coef_.shape == shape
    assert np.allclose(m.coef_, want.coef_.reshape(shape), atol=1e-5)
    assert np.allclose(m.intercept_, want.intercept_, atol=1e-5)
    assert np.allclose(m.predict(X), want.predict(X), atol=1e-4) if loss != "logistic" \
        else (m.predict(X) == want.predict(X)).all()
    if loss == "logistic":
        assert np.allclose(m.predict_proba(X), want.predict_proba(X), atol=1e-5)
        assert np.allclose(m.decision_function(X), want.decision_function(X), atol=1e-4)
    if loss != "poisson":  # scikit-learn's score is the deviance there
        assert abs(m.score(X, y, sample_weight=w) - want.score(X, y, w)) < 1e-6
    if loss != "squares" or not weighted:
        return
    for scheme in "gc:d=2", "pcr:r=2":
        m.set_params(scheme=scheme).fit(sp.csr_matrix(X) if "pcr" in scheme else X, y, w)
        assert np.allclose(m.coef_, want.coef_, atol=1e-5)


def test_weights_that_are_none_are_refused():
    X, y = points(20)
    m = kofn.Regression(workers=3)
    for w, words in ((np.ones(19), "expected"), (np.ones((20, 1)), "1D array or scalar"),
                     (-np.ones(20), r"sample_weight\[0\] is -1"),
                     (np.where(np.arange(20) == 3, np.nan, 1), r"sample_weight\[3\] is NaN"),
                     (np.zeros(20), "are 0"), (["x"] * 20, "sample_weight")):
        with pytest.raises(kofn.Invalid, match=words):
            m.fit(X, y, sample_weight=w)
    with pytest.raises(kofn.Unsuited, match="equal weights"):
        m.set_params(loss="poisson", scheme="gc:d=2").fit(X, y - y.min(), np.arange(20.0))
    with pytest.raises(kofn.Unsuited, match="3 classes.*elastic"):
        m.set_params(loss="logistic").fit(X, np.arange(20) % 3)
    with pytest.raises(kofn.Invalid, match="one class, 'a'"):  # b counts nothing
        m.fit(X, np.array(["a", "b"])[np.arange(20) % 2], np.arange(1.0, 21) % 2)


@needs_sklearn
@pytest.mark.filterwarnings("ignore")
def test_scores_are_scikit_learns():
    from sklearn.metrics import r2_score

    from kofn._estimator import r2

    y = np.column_stack([np.full(30, 2.0), rng.standard_normal(30), np.full(30, 4.0)])
    p = y + [0, 0.3, 1e-9] * rng.standard_normal((30, 3))
    w = rng.random(30)
    for weights in None, w:
        assert r2(y, p, weights) == pytest.approx(r2_score(y, p, sample_weight=weights))
        for j, constant in ((0, 1.0), (1, None), (2, 0.0)):
            mine = r2(y[:, j], p[:, j], weights)
            assert mine == pytest.approx(r2_score(y[:, j], p[:, j], sample_weight=weights))
            assert constant is None or mine == constant
    assert np.isnan(r2(y[:1, 1], p[:1, 1])) and np.isnan(r2_score(y[:1, 1], p[:1, 1]))
    # the mean of this constant is rounded, and is not taken for a spread
    y = np.full(60, 0.1)
    assert y.mean() != 0.1 and r2(y, y) == 1.0 and r2(y, y + 1) == 0.0


@needs_sklearn
@pytest.mark.parametrize("data", ["load_iris", "load_digits"])
def test_a_network_with_its_defaults_learns(data):
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    X, y = getattr(datasets, data)(return_X_y=True)
    a, b, ya, yb = train_test_split(X, y, test_size=1 / 3, random_state=0, stratify=y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kofn.Network().fit(a, ya).score(b, yb) >= 0.95


@needs_sklearn
@pytest.mark.filterwarnings("ignore")
def test_tools_take_the_estimators():
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning, NotFittedError
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, t = points(60)
    y = np.array(["no", "yes"])[(t + rng.standard_normal(60) > 0.3).astype(int)]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), kofn.Regression(loss="logistic", workers=3)),
        {"regression__l2": [1e-3, 1e3]}, cv=3).fit(X, y)
    assert search.best_params_ == {"regression__l2": 1e-3}
    assert cross_val_score(kofn.Network(epochs=5, workers=3), X, y, cv=3).shape == (3,)
    again = clone(kofn.Network(hidden=(3, 4), step=0.2))
    assert repr(again) == "Network(hidden=(3, 4), step=0.2)"
    with pytest.raises(NotFittedError) as e:
        again.predict(X)
    assert isinstance(e.value, kofn.NotFitted)
    back = pickle.loads(pickle.dumps(e.value))
    assert isinstance(back, NotFittedError) and str(back) == str(e.value)
    with pytest.warns(ConvergenceWarning):
        kofn.Regression(workers=3, iterations=1).fit(X, t)


# ---- what fits say ---------------------------------------------------------------

def follow(X, y, model):
    """Follows the advice of warnings until there is none. Returns what was done."""
    done = []
    for _ in range(4):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            model.fit(X, y)
        if not seen:
            assert model.converged_
            return done
        assert seen[0].filename == __file__ and len(seen) == 1
        text = str(seen[0].message)
        if found := re.search(r'Give optimizer="(\w+)"(, and leave out step and line_search)?', text):
            model.set_params(optimizer=found.group(1))
            if found.group(2):
                model.set_params(step=0.0, line_search="none")
        elif "Bring the columns of X to one scale" in text:
            X = X / X.std(axis=0)
        else:
            found = re.search(r"Give more iterations=(\d+)", text)
            model.set_params(iterations=int(found.group(1)))
        done.append(text[text.index(". ") + 2:][:12])
    raise AssertionError(done)


def test_advice_of_a_warning_cures():
    X = rng.standard_normal((60, 4)) * [1, 30, 1, 0.1]
    y = X @ [1.0, 2, 3, 4]
    assert follow(X, y, kofn.Regression(workers=3)) == []
    assert follow(X, y, kofn.Regression(workers=3, optimizer="nesterov")) == ["Give optimiz"]
    assert follow(X, y, kofn.Regression(workers=3, optimizer="gd", line_search="exact", step=1.0)
                  ) == ["Give optimiz"]
    assert follow(X, y, kofn.Regression(workers=3, optimizer="lbfgs", iterations=5)
                  ) == ["Bring the co", "Give more it"]
    X = rng.standard_normal((60, 1)) * [1, 30, 1, 0.1] + 1e-3 * rng.standard_normal((60, 4))
    assert follow(X, y, kofn.Regression(workers=3, optimizer="nesterov")
                  )[:1] == ["Give optimiz"]


@needs_sklearn
@pytest.mark.parametrize("data", ["load_diabetes", "load_wine", "load_breast_cancer"])
def test_advice_cures_on_real_points(data):
    from sklearn import datasets

    X, y = getattr(datasets, data)(return_X_y=True)
    given = follow(X, y.astype(float), kofn.Regression(workers=3))
    assert bool(given) == (data == "load_breast_cancer")  # 30 columns, nearly dependent
    assert follow(X, y.astype(float), kofn.Regression(workers=3, optimizer="nesterov"))


@pytest.mark.parametrize("classes", [2, 3])
def test_separable_classes_are_reported(classes):
    X = np.repeat(np.eye(3)[:classes] * 4, 10, axis=0) + rng.uniform(
        -0.5, 0.5, (10 * classes, 3))
    y = np.array(["a", "b", "c"])[np.arange(10 * classes) // 10]
    with pytest.warns(kofn.ConvergenceWarning, match="separates the class '[ab]'"):
        kofn.Regression(loss="logistic", workers=3).fit(X, y)
    with warnings.catch_warnings():  # its advice
        warnings.simplefilter("error")
        m = kofn.Regression(loss="logistic", workers=3, l2=0.001).fit(X, y)
    assert m.score(X, y) == 1


@pytest.mark.parametrize("more", [
    {"scheme": "gc:d=2"}, {"scheme": "gc:d=2", "errors": "probabilistic"},
    {"scheme": "gpd", "errors": "probabilistic"}, {"masterless": True}])
@pytest.mark.parametrize("cost", ["softmax", "squares"])
def test_a_training_that_diverges_says_so(cost, more):
    X, t = points(40)
    y = (t > 0).astype(int) if cost == "softmax" else t
    with pytest.raises(kofn.Invalid, match=r"(step|iterate) [2-9].*(diverges.*"
                       r"smaller step, such as step=1e\+1|shorter step)") as e:
        kofn.Network(loss=cost, step=1e200, epochs=5, **more).fit(X, y)
    assert "worker" not in str(e.value) or "no worker is wrong" in str(e.value)


@pytest.mark.parametrize("scheme", ["gc:d=3", "agc:d=3", "gpd:m=1,n=1,p=2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore::kofn.ConvergenceWarning")
def test_no_worker_is_blamed_for_a_long_step(dtype, scheme):
    X = np.random.default_rng(3).standard_normal((60, 4))
    for step in 10, 1e4, 1e6, 1e20, 1e160:
        net = kofn.Network(loss="squares", step=step, epochs=20, scheme=scheme,
                           dtype=dtype, where="sim", errors="probabilistic")
        try:
            assert net.fit(X, X @ [1.0, 2, 3, 4]).report_.liars == ()
        except kofn.Invalid as e:
            assert re.search("(smaller|shorter) step", str(e))


def test_a_loss_that_grows_is_reported():
    X, t = points(200)
    y = (t + 5 * rng.standard_normal(200) > 0).astype(int)
    with pytest.warns(kofn.ConvergenceWarning, match="diverges.*step=100"):
        kofn.Network(step=1000, epochs=3).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kofn.Network(step=0.1, epochs=3).fit(X, y)


# ---- labels and points -----------------------------------------------------------

@pytest.mark.parametrize("name", ["logistic", "softmax"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, None, 0.5])
def test_labels_that_are_no_classes(name, bad):
    X, _ = points(6)
    y = [0, 1, bad, 1, 0, 1]
    shown = "NaN" if bad is np.nan else str(bad)
    for labels in y, np.array(y, object):
        if bad == 0.5 and not isinstance(labels, list):
            continue
        with pytest.raises(kofn.Invalid, match=rf"Unknown label type: y\[2\] is {shown}"):
            ESTIMATORS[name].fit(X, labels)


def test_nullable_columns():
    pd = pytest.importorskip("pandas")
    X, y = points(30, 2)
    y = (y > 0.3).astype(int)
    table = pd.DataFrame({"a": pd.array(X[:, 0], "Float64"),
                          "b": pd.array(X[:, 1], "Float64")})
    m = kofn.Regression(loss="logistic", l2=0.1, workers=3)
    want = m.fit(X, y).coef_
    assert np.allclose(m.fit(table, pd.Series(y, dtype="Int64")).coef_, want)
    assert list(m.feature_names_in_) == ["a", "b"] and set(m.predict(table)) <= {0, 1}
    with pytest.raises(kofn.Invalid, match=r"y\[0\] is <NA>"):
        m.fit(table, pd.Series([None, *y[1:]], dtype="Int64"))
    table.loc[3, "b"] = None
    with pytest.raises(kofn.Invalid, match=r"X\[3, 1\] is NaN"):
        m.predict(table)


def test_chances_do_not_overflow():
    X = np.repeat(np.eye(3), 8, axis=0)
    m = kofn.Regression(loss="logistic", l2=1e-4, workers=3).fit(
        X, np.arange(24) // 8)
    with np.errstate(all="raise", under="ignore"):
        p = m.predict_proba(np.vstack([1e6 * np.eye(3), -1e6 * np.eye(3), np.eye(3)]))
    assert np.isfinite(p).all() and np.allclose(p.sum(axis=1), 1)
    assert np.array_equal(p[:3], np.eye(3))
    one = 1 / (1 + np.exp(-m.decision_function(np.eye(3))))
    assert np.allclose(p[6:], one / one.sum(axis=1, keepdims=True), rtol=1e-12)


def test_methods_of_classifiers_alone():
    for name, model in ESTIMATORS.items():
        classifier = name in ("logistic", "softmax")
        assert hasattr(model, "predict_proba") == classifier
        assert hasattr(model, "decision_function") == (name == "logistic")
        assert hasattr(model, "partial_fit") == (type(model) is kofn.Network)


# ---- partial_fit -----------------------------------------------------------------

def test_partial_fit_goes_on():
    X, t = points(60)
    y = np.array(["no", "yes"])[(t > 0.3).astype(int)]
    whole = kofn.Network(batch=60, epochs=2, momentum=0.0, workers=3).fit(X, y)
    parts = kofn.Network(batch=60, momentum=0.0, workers=3)
    for _ in range(2):
        parts.partial_fit(X, y)
    assert parts.n_steps_ == 2 and parts.history_[:, 0].tolist() == [1, 2]
    assert all(np.allclose(a, b, atol=1e-12) for a, b in zip(parts.coefs_, whole.coefs_))
    late = kofn.Network(workers=3)
    late.partial_fit(X[y == "no"], y[y == "no"], classes=["yes", "no"])
    late.partial_fit(X, y)
    assert list(late.classes_) == ["no", "yes"]
    with pytest.raises(kofn.Invalid, match="label 'odd', which is none"):
        late.partial_fit(X[:2], ["odd", "no"])
    with pytest.raises(kofn.Invalid, match="X has 3 features"):
        late.partial_fit(X[:, :3], y)
    numbers = kofn.Network(loss="squares", workers=3).partial_fit(X, X[:, :2])
    with pytest.raises(kofn.Invalid, match="wide"):
        numbers.partial_fit(X, t)
    with pytest.raises(kofn.Invalid, match="one class"):
        kofn.Network(workers=3).partial_fit(X[:2], ["no", "no"])


# ---- options ---------------------------------------------------------------------

def test_options_are_arguments():
    from kofn._job import OPTIONS

    for kind in (kofn.Matrix, kofn.Sum, kofn.Stream, kofn.Network, kofn.Regression,
                 kofn.matmul, kofn.power, kofn.pagerank):
        names = inspect.signature(kind).parameters
        assert set(OPTIONS) | {"faults", "events", "keys", "insecure", "tls_ca"} <= \
            set(names), kind
    for kind in kofn.Network, kofn.Regression:
        assert set(kind().get_params()) == set(inspect.signature(kind).parameters)


@pytest.mark.parametrize("call, typo, nearest", [
    (kofn.Regression, "shceme", "scheme"), (kofn.Network, "epoch", "epochs"),
    (kofn.Network, "erors", "errors"),
    (kofn.Regression, "alpha", "l2"), (kofn.Regression, "tolerance", "tol"),
    (kofn.Regression, "max_iter", "iterations"),
    (kofn.Network, "hidden_layer_sizes", "hidden"),
    (lambda **o: kofn.Matrix(np.eye(3), **o), "workrs", "workers"),
    (lambda **o: kofn.matmul(np.eye(3), np.eye(3), **o), "patiense", "patience"),
    (lambda **o: kofn.power(np.eye(3), **o), "toll", "tol"),
    (lambda **o: kofn.Sum(None, 3, **o), "lat", "late"),
    (lambda **o: kofn.Stream((2, 2, 2), **o), "audits", "audit")])
def test_a_typo_names_the_nearest(call, typo, nearest):
    with pytest.raises(TypeError, match=rf"{typo!r}; did you mean {nearest!r}\?"):
        call(**{typo: 1})
    if isinstance(call, type):
        with pytest.raises(kofn.Invalid, match=f"no parameter {typo!r}.*{nearest!r}"):
            call().set_params(**{typo: 1})


def test_a_regression_has_the_options_and_defaults_of_the_library():
    from kofn import _regression as r
    from kofn._job import words_of
    mine = inspect.signature(kofn.Regression).parameters
    members = {member: name for name, member in r.NAMES.items()}
    assert set(members) == set(r.TABLE)
    for member, row in r.TABLE.items():
        default = mine[members[member]].default
        if isinstance(default, str):
            assert default == words_of(row)[0]
        else:
            assert default in (row.zero, 0)
        assert f"\n    {members[member]:13} " in kofn.Regression.__doc__


def test_an_option_reaches_the_job():
    X, t = points(30)
    m = kofn.Regression(scheme="gc:d=3", workers=6, where="sim", errors="adversarial",
                        events=["1 corrupt 2"]).fit(X, t)
    assert m.report_.corrupt > 0 and m.report_.liars == (2,)
