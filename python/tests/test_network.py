"""Networks: their steps are compared with NumPy's."""
import threading

import numpy as np
import pytest

import kofn

rng = np.random.default_rng(9)
X = rng.standard_normal((48, 6))
CLASSES = np.array(["left", "middle", "right"])
labels = rng.integers(0, 3, 48)
y = CLASSES[labels]


def step(W, length, targets, cost, X=X / np.abs(X).max()):
    """One of descent on all points, divided by the largest magnitude: tanh, then softmax
    or halved squares."""
    ones = np.ones((len(X), 1))
    H = np.tanh(np.hstack([X, ones]) @ W[0].T)
    Z = np.hstack([H, ones]) @ W[1].T
    if cost == "softmax":
        P = np.exp(Z - Z.max(axis=1, keepdims=True))
        D = (P / P.sum(axis=1, keepdims=True) - targets) / len(X)
    else:
        D = (Z - targets) / len(X)
    G1 = D.T @ np.hstack([H, ones])
    G0 = ((D @ W[1][:, :-1]) * (1 - H ** 2)).T @ np.hstack([X, ones])
    return [W[0] - length * G0, W[1] - length * G1]


def trained(epochs, loss="softmax", target=y, **more):
    """With all points in a batch, so that the order does not matter."""
    net = kofn.Network(hidden=(5,), activation="tanh", loss=loss, step=0.3,
                       momentum=0.0, batch=48, epochs=epochs, **more)
    return net.fit(X, target)


@pytest.mark.parametrize("scheme, workers", [
    ("gc:d=2", 4), ("agc:d=3", 6), ("uncoded", 3), ("gpd:m=2,n=1,p=1", 8),
    ("polydot:m=1,n=2,p=1", 8), ("elastic:k=2", 5)])
def test_a_step_is_numpys(scheme, workers):
    one, two = (trained(e, scheme=scheme, workers=workers) for e in (1, 2))
    want = step(one.coefs_, 0.3, np.eye(3)[labels], "softmax")
    for got, W in zip(two.coefs_, want):
        assert np.allclose(got, W, rtol=0, atol=1e-9)
    assert two.n_steps_ == 2 and two.history_.shape == (2, 3)
    assert two.history_[1, 1] < two.history_[0, 1]
    P = two.predict_proba(X)
    assert np.allclose(P.sum(axis=1), 1)
    assert (two.predict(X) == CLASSES[P.argmax(axis=1)]).all()
    assert two.score(X, y) == np.mean(two.predict(X) == y)


def test_squares_and_autoencoders():
    target = rng.standard_normal((48, 2))
    one, two = (trained(e, "squares", target, workers=4) for e in (1, 2))
    for got, W in zip(two.coefs_, step(one.coefs_, 0.3, target, "squares")):
        assert np.allclose(got, W, rtol=0, atol=1e-9)
    assert two.predict(X).shape == (48, 2) and two.score(X, target) <= 1
    auto = trained(3, "squares", None, workers=4)
    assert np.abs(auto.predict(X) - X).max() > 0 and auto.unit_ == np.abs(X).max()
    half = trained(3, "squares", None, workers=4, unit=2 * auto.unit_)
    small = kofn.Network(hidden=(5,), activation="tanh", loss="squares", step=0.3,
                         momentum=0.0, batch=48, epochs=3, workers=4, unit=1.0)
    assert np.allclose(small.fit(X / auto.unit_ / 2).predict(X / auto.unit_ / 2),
                       half.predict(X) / auto.unit_ / 2, rtol=0, atol=1e-12)
    assert auto.history_[2, 1] < auto.history_[0, 1]


def test_liars_and_kills_change_nothing():
    plain = trained(4, scheme="uncoded", workers=3)
    for scheme, workers, options in (
            ("gc:d=3", 6, {"errors": "adversarial", "events": ["1 corrupt 2"]}),
            ("gpd:m=2,n=1,p=1", 10, {"errors": "probabilistic",
                                     "events": ["2 corrupt 3"]}),
            ("gpd:m=2,n=1,p=1", 8, {"events": ["2 leave 1", "3 leave 4"]})):
        net = trained(4, scheme=scheme, workers=workers, where="sim",
                      **options)
        for got, W in zip(net.coefs_, plain.coefs_):
            assert np.allclose(got, W, rtol=0, atol=1e-9)
        if "errors" in options:
            assert net.report_.corrupt > 0


def test_parameters_and_what_is_refused():
    net = kofn.Network(hidden=(3,))
    assert net.set_params(step=0.5).get_params()["step"] == 0.5
    assert type(net)(**net.get_params()).hidden == (3,)
    with pytest.raises(kofn.Invalid, match="Network has no parameter 'stride'"):
        net.set_params(stride=2)
    with pytest.raises(kofn.Error, match="not fitted"):
        net.predict(X)
    with pytest.raises(kofn.Invalid, match="activation='cubic'"):
        kofn.Network(activation="cubic").fit(X, y)
    with pytest.raises(kofn.Invalid, match="48 rows and y 47"):
        net.fit(X, y[:47])
    with pytest.raises(kofn.Invalid, match="one class"):
        net.fit(X, y[:1].repeat(48))
    with pytest.raises(kofn.Invalid, match="no scheme"):
        kofn.Network(scheme="nonsense").fit(X, y)
    with pytest.raises(kofn.Invalid, match="has no classes"):
        trained(1, "squares", X, workers=4).predict_proba(X)


def test_points_are_divided_by_a_unit():
    plain = trained(2, workers=4)
    assert plain.unit_ == np.abs(X).max() and plain.get_params()["unit"] is None
    one = trained(2, workers=4, unit=1.0)
    small = kofn.Network(hidden=(5,), activation="tanh", step=0.3, batch=48, epochs=2,
                         momentum=0.0, workers=4).fit(X / plain.unit_, y)
    assert small.unit_ == one.unit_ == 1
    assert all(np.allclose(a, b, rtol=0, atol=1e-12)
               for a, b in zip(small.coefs_, plain.coefs_))
    assert np.allclose(small.predict_proba(X / plain.unit_), plain.predict_proba(X))
    assert not np.allclose(one.coefs_[0], plain.coefs_[0], rtol=0, atol=1e-4)
    for unit in (0, -1.0, float("inf"), "x"):
        with pytest.raises(kofn.Invalid, match="unit="):
            trained(1, workers=4, unit=unit)


@pytest.mark.parametrize("labels, words", [
    ([0, 1, np.nan], r"y\[2\] is NaN"), ([0, 1, np.inf], r"y\[2\] is inf"),
    ([0, 0.5, 1], r"y\[1\] is 0.5"), (["a", None, "b"], r"y\[1\] is None"),
    (["a", np.nan, "b"], r"y\[1\] is NaN"), ([0, 1, None], r"y\[2\] is None"),
    (["a", 1, "b"], "y has labels of several types, int, str"),
    ([1j, 0, 1], "y has numbers of type complex128")])
@pytest.mark.parametrize("make", [
    lambda: kofn.Network(hidden=(2,), workers=4),
    lambda: kofn.Regression(loss="logistic", workers=4)])
def test_what_is_no_label_is_refused(make, labels, words):
    for y in labels, np.array(labels, object):
        with pytest.raises(kofn.Invalid, match=words if y is labels or "complex" not in
                           words else "y has"):
            make().fit(np.eye(3), y)


@pytest.mark.parametrize("labels, kind", [
    ([2.0, 7.0, 2.0], "f"), (["b", "a", "b"], "U"), ([True, False, True], "b"),
    (np.array([5, 3, 5], object), "i"), (np.array(["b", "a", "b"], object), "O")])
def test_classes_are_of_the_type_that_labels_have(labels, kind):
    net = kofn.Network(hidden=(2,), workers=4).fit(np.eye(3), labels)
    assert net.classes_.dtype.kind == kind
    assert net.classes_.tolist() == sorted(set(labels))


def mesh(**more):
    return trained(3, scheme="gpd:m=2,n=1,p=1", **more)


@pytest.fixture(scope="module")
def plain():
    return trained(3, scheme="uncoded", workers=2)


def same(net, plain):
    assert all(np.allclose(a, b, rtol=0, atol=1e-9)
               for a, b in zip(net.coefs_, plain.coefs_))
    assert net.n_steps_ == 3 and abs(net.loss_ - plain.loss_) < 1e-9


@pytest.mark.parametrize("options", [{}, {"errors": "probabilistic"}])
def test_without_a_master(options, plain):
    net = mesh(workers=8, masterless=True, **options)
    same(net, plain)
    assert net.mesh_.finished == 8 and net.mesh_.liars == 0
    assert net.report_ is None and net.score(X, y) == plain.score(X, y)


def test_without_a_master_by_defaults():
    points = 16 * X
    net, job = (kofn.Network(hidden=(5,), masterless=masterless).fit(points, y)
                for masterless in (True, False))
    assert net.mesh_.finished == 8 and net.unit_ == job.unit_ == np.abs(points).max()
    assert all(np.allclose(a, b, rtol=0, atol=1e-9)
               for a, b in zip(net.coefs_, job.coefs_))


def test_without_a_master_in_float32():
    net = mesh(workers=8, masterless=True, dtype=np.float32)
    job = trained(3, scheme="uncoded", workers=2, dtype=np.float32)
    assert all(W.dtype == np.float32 for W in net.coefs_)
    assert all(np.allclose(a, b, rtol=0, atol=1e-5)
               for a, b in zip(net.coefs_, job.coefs_))


def test_nodes_at_addresses(plain, tmp_path):
    at = [f"ipc://{tmp_path}/{i}" for i in range(4)]
    nets = [None] * 4

    def node(i):
        nets[i] = mesh(workers=4, masterless=at[i],
                       reach=at[:i], patience=100)

    threads = [threading.Thread(target=node, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for net in nets:
        same(net, plain)
        assert all((a == b).all() for a, b in zip(net.coefs_, nets[0].coefs_))


def test_a_mesh_goes_on(plain, tmp_path):
    options = {"checkpoint": tmp_path / "kept", "every": 1}
    mesh(workers=6, masterless=True, **options)
    kept = sorted(p.name for p in (tmp_path / "kept").iterdir())
    assert kept and all(name.startswith("seat-") for name in kept)
    with pytest.raises(kofn.Invalid, match="resume=True"):
        mesh(workers=6, masterless=True, **options)
    same(mesh(workers=6, masterless=True, **options, resume=True),
         plain)
    with pytest.raises(kofn.Invalid, match="another training"):
        mesh(workers=6, masterless=True, l2=0.1,
             **options, resume=True)
    with pytest.raises(kofn.Invalid, match="checkpoint="):
        mesh(workers=6, masterless=True, resume=True)
    with pytest.raises(kofn.Error, match="use gpd"):
        trained(1, scheme="elastic:k=2", workers=5, masterless=True)
