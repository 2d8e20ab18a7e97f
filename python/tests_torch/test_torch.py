"""kofn.torch compared with plain training on the same batches.  `make test-torch`."""
import copy
import doctest
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed (Debian: apt-get install python3-torch)")

import kofn
import kofn.torch
from torch import nn

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
sys.path.append(str(EXAMPLES))

cross_entropy = nn.functional.cross_entropy


def digits(n=96, seed=3):
    """Images of four classes with different bright corners."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(4, (n,), generator=draw)
    images = 0.3 * torch.randn(n, 1, 8, 8, generator=draw)
    for i, k in enumerate(labels):
        images[i, 0, k // 2 * 4:k // 2 * 4 + 4, k % 2 * 4:k % 2 * 4 + 4] += 1
    return images, labels


def conv():
    torch.manual_seed(5)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(36, 4))


def dense(dtype):
    torch.manual_seed(6)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Tanh(),
                         nn.Linear(12, 4)).to(dtype)


OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.2, momentum=0.5),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
}


def plain(model, optimiser, part, epochs, loss=cross_entropy):
    """The same batches, in one piece, without any of this."""
    losses = []
    for epoch in range(epochs):
        for number in range(part.batches):
            at = part.indices(epoch, number)
            optimiser.zero_grad()
            value = loss(model(part.data.tensors[0][at]), part.data.tensors[1][at])
            value.backward()
            optimiser.step()
            losses.append(value.item())
    return losses


@pytest.mark.parametrize("scheme", ["agc:d=3", "gc:d=3", "cgc:d=3,s=1", "g-agc:d=2",
                                    "uncoded"])
@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_the_same_loss_curve(scheme, name):
    images, labels = digits()
    model = dense(torch.float64)
    other = copy.deepcopy(model)
    with kofn.torch.Training(model, cross_entropy, (images.double(), labels),
                             batch=40, scheme=scheme, workers=6,
                             where="threads") as t:
        losses = t.fit(OPTIMISERS[name](model.parameters()), epochs=4)
        expected = plain(other, OPTIMISERS[name](other.parameters()), t.part, 4)
    assert len(losses) == 12 and t.batches == 3
    assert np.allclose(losses, expected, rtol=1e-9, atol=0)
    for p, q in zip(model.parameters(), other.parameters()):
        assert torch.allclose(p, q, rtol=0, atol=1e-9)
    assert losses[-1] < 0.7 * losses[0]


def test_single_precision():
    model, other = conv(), conv()
    with kofn.torch.Training(model, cross_entropy, digits(), batch=48, workers=5,
                             where="threads") as t:
        sgd = OPTIMISERS["sgd"]
        losses = t.fit(sgd(model.parameters()), epochs=6)
        expected = plain(other, sgd(other.parameters()), t.part, 6)
    assert np.allclose(losses, expected, rtol=1e-4)
    assert losses[-1] < 0.5 * losses[0]


def test_processes_that_are_killed():
    """Two of seven, in the second epoch."""
    model, other = conv(), conv()
    with kofn.torch.Training(model, cross_entropy, digits(), batch=48, workers=7,
                             scheme="agc:d=3") as t:
        opt = OPTIMISERS["sgd"](model.parameters())
        losses = t.fit(opt, epochs=1)
        for child in t.processes[1], t.processes[4]:
            os.kill(child, signal.SIGKILL)
        losses += t.fit(opt, epochs=2, first=1)
        assert t.totals.left == 2
        expected = plain(other, OPTIMISERS["sgd"](other.parameters()), t.part, 3)
    assert np.allclose(losses, expected, rtol=1e-4)


def test_short_messages():
    """If no worker is late, agc needs a third of the bytes of gc. More may be in flight
    when the answers suffice."""
    bytes_of = {}
    for scheme in "agc:d=3", "gc:d=3":
        model = dense(torch.float32)
        with kofn.torch.Training(model, cross_entropy, digits(), batch=96,
                                 scheme=scheme, workers=6, where="sim",
                                 late=-1) as t:
            t.backward(0, 0)
            bytes_of[scheme] = t.report.received
    assert bytes_of["agc:d=3"] < 0.7 * bytes_of["gc:d=3"]


def test_liars_are_named_and_left_out():
    model, other = dense(torch.float64), dense(torch.float64)
    images, labels = digits()
    with kofn.torch.Training(model, cross_entropy, (images.double(), labels),
                             batch=48, scheme="gc:d=3", workers=7, where="sim",
                             errors="probabilistic", events="3 corrupt 2") as t:
        losses = t.fit(OPTIMISERS["sgd"](model.parameters()), epochs=3)
        assert t.totals.liars == (2,)
        expected = plain(other, OPTIMISERS["sgd"](other.parameters()), t.part, 3)
    assert np.allclose(losses, expected, rtol=1e-9)


def test_audits():
    model, other = dense(torch.float64), dense(torch.float64)
    images, labels = digits()
    with kofn.torch.Training(model, cross_entropy, (images.double(), labels),
                             batch=48, scheme="gc:d=3", workers=7, where="sim",
                             errors="probabilistic", audit=3) as t:
        losses = t.fit(OPTIMISERS["sgd"](model.parameters()), epochs=3)
        assert t.totals.unchecked == 3  # the last is checked
        expected = plain(other, OPTIMISERS["sgd"](other.parameters()), t.part, 3)
    assert np.allclose(losses, expected, rtol=1e-9)


def test_chance_is_the_same_on_every_worker():
    """Dropout: all who compute a part draw alike, or codes would not fit."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 30), nn.Dropout(0.5),
                          nn.Linear(30, 4)).double()
    images, labels = digits()
    grads = []
    for scheme in "gc:d=3", "uncoded":
        copy_of = copy.deepcopy(model)
        with kofn.torch.Training(copy_of, cross_entropy, (images.double(), labels),
                                 batch=60, scheme=scheme, workers=5,
                                 errors="detect" if scheme[0] == "g" else None,
                                 where="sim") as t:
            t.backward(1, 1)
        grads.append(torch.cat([p.grad.flatten() for p in copy_of.parameters()]))
    assert torch.allclose(grads[0], grads[1], rtol=0, atol=1e-12)
    assert grads[0].abs().max() > 1e-3


def test_statistics_of_layers_are_means_over_parts():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, 4)).double()
    other = copy.deepcopy(model)
    images, labels = digits()
    with kofn.torch.Training(model, cross_entropy, (images.double(), labels),
                             batch=96, scheme="agc:d=2", workers=4,
                             where="threads") as t:
        t.backward(0, 0)
        at = t.part.indices(0, 0)
        means = [images.double().flatten(1)[at[24 * k:24 * k + 24]].mean(0)
                 for k in range(4)]
    expected = 0.9 * other[1].running_mean + 0.1 * sum(means) / 4
    assert torch.allclose(model[1].running_mean, expected, atol=1e-12)


def test_backward_adds_up():
    model = dense(torch.float64)
    images, labels = digits()
    with kofn.torch.Training(model, cross_entropy, (images.double(), labels),
                             batch=50, workers=4, where="threads") as t:
        first = t.backward(0, 0)
        once = [p.grad.clone() for p in model.parameters()]
        assert abs(t.backward(0, 0) - first) < 1e-12
        for p, g in zip(model.parameters(), once):
            assert torch.allclose(p.grad, 2 * g, atol=1e-12)


class Pairs(torch.utils.data.Dataset):
    """One sample at a time."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


def test_datasets_and_frozen_parameters():
    images, labels = digits(30)
    model = conv()
    for p in model[0].parameters():
        p.requires_grad_(False)
    other = copy.deepcopy(model)
    with kofn.torch.Training(model, cross_entropy, Pairs(images, labels), batch=20,
                             scheme="gc:d=2", workers=4, where="threads") as t:
        for number in range(t.batches):  # the last is of ten samples
            model.zero_grad()
            loss = t.backward(0, number)
            at = t.part.indices(0, number)
            value = cross_entropy(other(images[at]), labels[at])
            other.zero_grad()
            value.backward()
            assert abs(loss - value.item()) < 1e-5
            assert torch.allclose(model[4].weight.grad, other[4].weight.grad, atol=1e-5)
        assert model[0].weight.grad is None


def test_workers_of_their_own():
    """python -m kofn worker with a module that makes the same Part."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    with tempfile.TemporaryDirectory() as folder:
        module = pathlib.Path(folder, "job.py")
        module.write_text(
            "import torch, kofn.torch\n"
            "X = torch.arange(40.0).view(20, 2) / 40\n"
            "part = kofn.torch.Part(torch.nn.Linear(2, 1),\n"
            "    torch.nn.functional.mse_loss, (X, X.sum(1, keepdim=True)), 10)\n")
        address = f"ipc://{folder}/socket"
        workers = [subprocess.Popen(
            [sys.executable, "-m", "kofn", "worker", "--once", address, "--module",
             str(module), "--patience", "60"], env=env) for _ in range(3)]
        try:
            X = torch.arange(40.0).view(20, 2) / 40
            model = nn.Linear(2, 1)
            with kofn.torch.Training(model, nn.functional.mse_loss,
                                     (X, X.sum(1, keepdim=True)), batch=10,
                                     scheme="gc:d=2", workers=3,
                                     where=address) as t:
                losses = t.fit(torch.optim.SGD(model.parameters(), lr=0.5), epochs=60)
        finally:
            for w in workers:
                w.terminate()
                w.wait()
        assert losses[-1] < 1e-3


def test_what_is_refused():
    X, y = torch.zeros(8, 2), torch.zeros(8, 1)
    loss = nn.functional.mse_loss
    with pytest.raises(kofn.Invalid, match="batch=9 of 8 samples"):
        kofn.torch.Training(nn.Linear(2, 1), loss, (X, y), batch=9)
    with pytest.raises(kofn.Invalid, match="no parameters"):
        kofn.torch.Training(nn.Flatten(), loss, (X, y), batch=4)
    mixed = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1).double())
    with pytest.raises(kofn.Invalid, match="float32, torch.float64"):
        kofn.torch.Training(mixed, loss, (X, y), batch=4)
    with pytest.raises(kofn.Invalid, match="complex64"):
        kofn.torch.Training(nn.Linear(2, 1).to(torch.complex64), loss, (X, y), batch=4)


def test_resnet18():
    """The example: what is played out is what the model says of the same stragglers,
    and the codes stand as published but for those that wait."""
    import resnet18 as example

    assert sum(p.numel() for p in example.resnet18().parameters()) == 11173962
    gradient = 4 * sum(p.numel() for p in example.resnet18(8).parameters())
    for rows, told, right in example.main(["--images", "1", "--batches", "1",
                                           "--rounds", "12"]):
        assert set(rows) == set(example.CODES)
        for name, (played, model, received, error) in rows.items():
            assert error < 1e-6
            # AGC sends segments one after the other until enough have come
            assert abs(played - model) < (0.15 if "AGC" in name else 0.1) * model
            assert received <= 20.2 * gradient
        for one, other in ("G-AGC", "AGC"), ("AGC", "uncoded"), ("CGC(1)", "uncoded"):
            assert rows[one][1] < rows[other][1]
        assert told == 35 and right >= 24


def test_digits(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["torch_digits.py"])
    runpy.run_path(str(EXAMPLES / "torch_digits.py"))
    assert "2 workers were lost" in capsys.readouterr().out


def test_examples():
    result = doctest.testmod(kofn.torch)
    assert result.failed == 0 and result.attempted > 0


@pytest.mark.parametrize("dtype, u", [(np.float64, 1e-12), (np.float32, 1e-4)])
def test_workers_that_multiply_with_torch(dtype, u):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 20)).astype(dtype)
    with tempfile.TemporaryDirectory() as folder:
        address = f"ipc://{folder}/socket"
        env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
        workers = [subprocess.Popen(
            [sys.executable, "-m", "kofn", "worker", "--once", address, "--module",
             str(EXAMPLES / "torch_worker.py"), "--patience", "100"], env=env)
            for _ in range(3)]
        try:
            with kofn.Matrix(X, address, scheme="elastic:k=2", workers=3,
                             below="pause") as M:
                for _ in range(2):
                    w, z = (rng.standard_normal(n).astype(dtype) for n in (20, 60))
                    for got, want in (M @ w, X @ w), (z @ M, z @ X):
                        assert np.linalg.norm(got - want) <= \
                            u * np.linalg.norm(want)
            assert [w.wait(300) for w in workers] == [0, 0, 0]
        finally:
            for w in workers:
                w.kill()
                w.wait()
