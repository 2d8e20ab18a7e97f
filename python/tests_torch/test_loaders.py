"""DataLoader, batches of other forms, resumed trainings, LBFGS and short parameters,
compared with plain PyTorch."""
import copy
import io

import pytest

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed (Debian: apt-get install python3-torch)")

import kofn
import kofn.torch
from torch import nn
from torch.utils.data import (BatchSampler, DataLoader, Dataset, RandomSampler,
                              SequentialSampler, TensorDataset, WeightedRandomSampler)

mse = nn.functional.mse_loss
SAMPLES = 46


def points(dtype=torch.float64):
    draw = torch.Generator().manual_seed(2)
    X = torch.randn(SAMPLES, 5, generator=draw, dtype=torch.float64).to(dtype)
    return TensorDataset(X, torch.sin(X.sum(1, keepdim=True)))


def small(seed=4):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 1)).double()


class Uneven:
    """A batch sampler whose batches have 9, 14 and 5 samples, and no batch_size."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(8)

    def __len__(self):
        return 3

    def __iter__(self):
        order = torch.randperm(SAMPLES, generator=self.generator).tolist()
        yield from (order[:9], order[9:23], order[23:28])


class Epochs(torch.utils.data.Sampler):
    """Its order depends on the epoch that it was given, as DistributedSampler's."""

    def __init__(self):
        self.epoch = 99

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return SAMPLES

    def __iter__(self):
        draw = torch.Generator().manual_seed(self.epoch)
        return iter(torch.randperm(SAMPLES, generator=draw).tolist())


def generator(seed):
    return torch.Generator().manual_seed(seed)


LOADERS = {
    "in order": lambda d, s: DataLoader(d, 10),
    "shuffled": lambda d, s: DataLoader(d, 10, shuffle=True, generator=generator(s)),
    "shuffled by the shared generator": lambda d, s: DataLoader(d, 10, shuffle=True),
    "only whole batches": lambda d, s: DataLoader(
        d, 10, shuffle=True, drop_last=True, generator=generator(s)),
    "weighted": lambda d, s: DataLoader(d, 8, sampler=WeightedRandomSampler(
        torch.arange(SAMPLES) % 3 + 0.5, 30, generator=generator(s))),
    "drawn again and again": lambda d, s: DataLoader(d, 8, sampler=RandomSampler(
        d, replacement=True, num_samples=70, generator=generator(s))),
    "a batch sampler": lambda d, s: DataLoader(
        d, batch_sampler=BatchSampler(SequentialSampler(d), 16, False)),
    "batches of several sizes": lambda d, s: DataLoader(d, batch_sampler=Uneven()),
    "by epoch": lambda d, s: DataLoader(d, 10, sampler=Epochs()),
}


def train(model, loader, epochs, **options):
    options = {"workers": 4, "scheme": "gc:d=2", "where": "threads", **options}
    if isinstance(loader.batch_sampler, Uneven):
        options["batch"] = 14
    return kofn.torch.Training(model, mse, loader, **options)


def plain(model, optimiser, loader, epochs, loss):
    """The loop that every tutorial has. loss(model, batch)."""
    losses = []
    for epoch in range(epochs):
        if isinstance(loader.sampler, Epochs):
            loader.sampler.set_epoch(epoch)
        for batch in loader:
            optimiser.zero_grad()
            value = loss(model, batch)
            value.backward()
            optimiser.step()
            losses.append(value.item())
    return losses


def close(got, expected, bound=1e-10):
    assert len(got) == len(expected)
    assert max(abs(a - b) for a, b in zip(got, expected)) <= bound


@pytest.mark.parametrize("kind", LOADERS)
def test_batches_are_those_of_the_loader(kind):
    """Through three epochs, and two more fits, the loader is at the same place."""
    runs = []
    for coded in True, False:
        model = small()
        sgd = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
        loader = LOADERS[kind](points(), 7)
        torch.manual_seed(11)
        if coded:
            with train(model, loader, 3) as t:
                assert t.batches == len(loader)
                losses = t.fit(sgd, epochs=3)
                again = [t.fit(sgd)[-1] for _ in range(2)]
        else:
            def loss(model, batch):
                return mse(model(batch[0]), batch[1])
            losses = plain(model, sgd, loader, 3, loss)
            again = [plain(model, sgd, loader, 1, loss)[-1] for _ in range(2)]
        runs.append((losses + again, torch.rand(3).tolist()))
    close(runs[0][0], runs[1][0])
    assert runs[0][1] == runs[1][1]  # the shared generator is where plain has it


def test_a_batch_can_be_asked_for_again():
    loader = LOADERS["shuffled"](points(), 3)
    with train(small(), loader, 1) as t:
        first = [t.indices(0, n) for n in range(t.batches)]
        assert sorted(sum(first, [])) == list(range(SAMPLES))
        assert t.indices(1, 0) != first[0]
        second = [t.indices(1, n) for n in range(t.batches)]
        assert [t.indices(1, n) for n in (0, 2, 2, 1)] == \
            [second[n] for n in (0, 2, 2, 1)]


class Records(Dataset):
    """Sequences of several lengths, as dicts or tuples."""

    def __init__(self, form):
        self.form = form

    def __len__(self):
        return 30

    def __getitem__(self, i):
        length = 2 + i % 3
        ids = torch.arange(length) * (i + 1) % 11
        weight = torch.tensor(0.5 + i % 2, dtype=torch.float64)
        label = torch.tensor(i % 2)
        if self.form == "dicts":
            return {"input_ids": ids, "labels": label, "weight": weight}
        return ids, label, weight


def pad(samples):
    """As DataCollatorWithPadding does."""
    if isinstance(samples[0], dict):
        out = {k: torch.stack([s[k] for s in samples]) for k in ("labels", "weight")}
        out["input_ids"] = nn.utils.rnn.pad_sequence(
            [s["input_ids"] for s in samples], batch_first=True)
        return out
    ids, labels, weights = zip(*samples)
    return (nn.utils.rnn.pad_sequence(ids, batch_first=True), torch.stack(labels),
            torch.stack(weights))


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.embed = nn.Embedding(11, 4, padding_idx=0).double()
        self.out = nn.Linear(4, 2).double()

    def forward(self, input_ids):
        return self.out(self.embed(input_ids).sum(1))


def of_dicts(model, batch):
    logits = model(input_ids=batch["input_ids"])
    each = nn.functional.cross_entropy(logits, batch["labels"], reduction="none")
    return (each * batch["weight"]).mean()


def of_tuples(model, batch):
    return of_dicts(model, dict(zip(("input_ids", "labels", "weight"), batch)))


@pytest.mark.parametrize("form, loss", [("dicts", of_dicts), ("tuples", of_tuples)])
def test_batches_of_dicts_and_longer_tuples(form, loss):
    losses = []
    for coded in True, False:
        model = Bag()
        adam = torch.optim.Adam(model.parameters(), lr=0.05)
        loader = DataLoader(Records(form), 8, shuffle=True, collate_fn=pad,
                            generator=generator(1))
        if coded:
            with kofn.torch.Training(model, loss, loader, scheme="gc:d=2", workers=4,
                                     where="threads") as t:
                losses.append(t.fit(adam, epochs=4))
        else:
            losses.append(plain(model, adam, loader, 4, loss))
    close(*losses)
    assert losses[1][-1] < 0.8 * losses[1][0]


def test_three_tensors():
    """Without a loader: the same form of loss, of the batch's samples."""
    X, y = points().tensors
    weights = torch.linspace(0.1, 2, SAMPLES, dtype=torch.float64)[:, None]

    def loss(model, batch):
        inputs, labels, w = batch
        return (w * (model(inputs) - labels) ** 2).mean()

    model, other = small(), small()
    with kofn.torch.Training(model, loss, (X, y, weights), batch=16, workers=4,
                             scheme="gc:d=2", where="threads") as t:
        value = t.backward(0, 1)
        at = t.indices(0, 1)
    expected = loss(other, (X[at], y[at], weights[at]))
    expected.backward()
    assert abs(value - expected.item()) < 1e-12
    for p, q in zip(model.parameters(), other.parameters()):
        assert torch.allclose(p.grad, q.grad, rtol=0, atol=1e-12)


class Stop(Exception):
    pass


def chancy(seed=4):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Dropout(0.3),
                         nn.Linear(8, 1)).double()


@pytest.mark.parametrize("kind", ["tensors", "shuffled", "weighted",
                                  "drawn again and again", "by epoch",
                                  "shuffled by the shared generator"])
@pytest.mark.parametrize("place", [(1, 0), (1, 2), (1, -1)])
def test_a_resumed_training_is_the_same_to_the_bit(kind, place):
    """The training stops after a batch, and other objects resume it."""
    def start(seed):
        model = chancy(seed)
        data = points() if kind == "tensors" else LOADERS[kind](points(), seed)
        t = kofn.torch.Training(
            model, mse, data, batch=10 if kind == "tensors" else None, workers=3,
            scheme="uncoded", where="threads")
        torch.manual_seed(seed)
        return t, torch.optim.Adam(model.parameters(), lr=0.02)

    t, adam = start(4)
    with t:
        expected = t.fit(adam, epochs=3)
        last = t.state_dict(adam)

    t, adam = start(4)
    kept, losses = io.BytesIO(), []

    def watch(epoch, number, loss):
        losses.append(loss)
        if (epoch, number) == (place[0], place[1] % t.batches):
            torch.save(t.state_dict(adam), kept)
            raise Stop

    with t, pytest.raises(Stop):
        t.fit(adam, epochs=3, watch=watch)

    t, adam = start(5)
    with t:
        kept.seek(0)
        t.load_state_dict(torch.load(kept), adam)
        losses += t.fit(adam, epochs=3)
        resumed = t.state_dict(adam)
    assert losses == expected
    assert resumed["place"] == last["place"] == (3, 0)
    for key, value in last["model"].items():
        assert torch.equal(resumed["model"][key], value)
    for key, value in last["optimiser"]["state"][0].items():
        assert torch.equal(resumed["optimiser"]["state"][0][key], value)
    if kind != "tensors":
        for a, b in zip(last["order"]["now"], resumed["order"]["now"]):
            assert torch.equal(a, b)


def test_a_state_is_a_copy():
    model = small()
    sgd = torch.optim.SGD(model.parameters(), lr=0.2)
    with train(model, LOADERS["in order"](points(), 1), 1) as t:
        state = t.state_dict(sgd)
        t.fit(sgd)
        assert not torch.equal(state["model"]["0.weight"], model[0].weight)


def test_audits_go_back_in_the_loader():
    """Unchecked sums of a faulty worker are repeated with the batches of then."""
    losses = []
    for events in "4 corrupt 2", None:
        model = small()
        sgd = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
        seen = []
        with kofn.torch.Training(
                model, mse, DataLoader(points(), 23, shuffle=True,
                                       generator=generator(7)), scheme="gc:d=3", workers=7, where="sim", errors="probabilistic", audit=3,
                events=events) as t:
            losses.append(t.fit(sgd, epochs=7,
                                watch=lambda *step: seen.append(step[:2])))
            assert t.totals.liars == ((2,) if events else ())
        back = [(a, b) for a, b in zip(seen, seen[1:]) if b < a]
        assert back == ([((1, 0), (0, 1))] if events else [])
    close(*losses)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs(search):
    losses = []
    for coded in True, False:
        model = small()
        data = points()
        lbfgs = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=6,
                                  line_search_fn=search)
        if coded:
            with kofn.torch.Training(model, mse, data.tensors, batch=SAMPLES,
                                     scheme="gc:d=2", workers=4,
                                     where="threads") as t:
                fitted = t.fit(lbfgs, epochs=2)
                fitted.append(lbfgs.step(t.closure(lbfgs, 2, 0)))
        else:
            def closure():
                lbfgs.zero_grad()
                value = mse(model(data.tensors[0]), data.tensors[1])
                value.backward()
                return value
            fitted = [lbfgs.step(closure).item() for _ in range(3)]
        losses.append(fitted)
    close(*losses, 1e-8)  # the search amplifies rounding
    assert losses[0][2] < 0.7 * losses[0][0]


@pytest.mark.parametrize("kind, u", [(torch.bfloat16, 2.0**-8),
                                     (torch.float16, 2.0**-11)])
def test_short_parameters(kind, u):
    """The gradient of w in the mean of x w is the mean of x. With eight samples in a
    part a worker rounds w x / 8 and sums of it, at most 16 times; the parts are added
    in float32, and the total is rounded once. Plain PyTorch, in one piece, rounds each
    sum of 32 samples at most 64 times."""
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.full((5,), 0.75, dtype=kind))

        def forward(self, x):
            return x * self.w

    X = points().tensors[0][:32].to(kind)
    model, other = Scale(), Scale()

    def loss(outputs, labels):
        return outputs.sum(1).mean()

    with kofn.torch.Training(model, loss, (X, X), batch=32, scheme="gc:d=2", workers=4,
                             where="threads") as t:
        t.backward(0, 0)
        once = model.w.grad.clone()
        t.backward(0, 0)
        torch.optim.SGD(model.parameters(), lr=0.5).step()
    loss(other(X), None).backward()
    assert once.dtype == model.w.dtype == kind
    exact, size = X.double().mean(0), X.double().abs().mean(0)
    assert ((once.double() - exact).abs() <= 17 * u * size).all()
    assert ((once - other.w.grad).double().abs() <= (17 + 64) * u * size).all()
    assert torch.equal(model.w, 0.75 - 0.5 * (once + once))


def test_a_bfloat16_network():
    """Of Linear layers and a normalisation that stays float32, as is usual."""
    def make():
        model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
        torch.manual_seed(1)
        for p in model.parameters():
            p.data.uniform_(-0.5, 0.5)
        return model.bfloat16()

    def squares(outputs, labels):
        return ((outputs - labels) ** 2).mean()

    X, y = points(torch.float32).tensors
    model, other, exact = make(), make(), make().double()
    with kofn.torch.Training(model, squares, (X.bfloat16(), y.bfloat16()), batch=40,
                             scheme="gc:d=2", workers=4, where="threads") as t:
        value = t.backward(0, 0)
        at = t.indices(0, 0)
    squares(other(X[at].bfloat16()), y[at].bfloat16()).backward()
    plain = squares(exact(X[at].bfloat16().double()), y[at].bfloat16().double())
    plain.backward()
    assert abs(value - plain.item()) < 2**-5 * plain.item()
    for p, q, r in zip(*(m.parameters() for m in (model, other, exact))):
        ours, theirs = ((g.grad.double() - r.grad).norm() for g in (p, q))
        assert p.grad.dtype == torch.bfloat16
        assert ours <= 2 * theirs + 2**-8 * r.grad.norm()


def test_what_is_public():
    assert dir(kofn.torch) == ["Part", "Training"] == sorted(kofn.torch.__all__)
    names = {}
    exec("from kofn.torch import *", names)
    assert set(names) - {"__builtins__"} == {"Part", "Training"}


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(points())


@pytest.mark.parametrize("loader, options, message", [
    (lambda: DataLoader(Stream(), 4), {}, "no indices"),
    (lambda: DataLoader(points(), batch_size=None), {}, "batch_size=None"),
    (lambda: DataLoader(points(), batch_sampler=Uneven()), {}, "give batch="),
    (lambda: DataLoader(points(), 10), {"batch": 9}, "batch=9, and the loader"),
    (lambda: {"x": torch.zeros(4)}, {"batch": 2}, "data is a dict"),
    (points, {}, "batch is missing"),
])
def test_loaders_that_are_refused(loader, options, message):
    with pytest.raises(kofn.Invalid, match=message):
        kofn.torch.Training(small(), mse, loader(), **options)


@pytest.mark.parametrize("drawn, message", [
    ([[0, SAMPLES]], f"index {SAMPLES} of {SAMPLES} samples"),
    ([["a"]], "drew 'a'"),
    ([[0] * 15], "drew 15 samples; batch=14"),
    ([], "ended after 0 batches"),
])
def test_samplers_that_err(drawn, message):
    class Errs(Uneven):
        def __iter__(self):
            return iter(drawn)

    with train(small(), DataLoader(points(), batch_sampler=Errs()), 1) as t:
        with pytest.raises(kofn.Invalid, match=message):
            t.backward(0, 0)


def test_states_that_do_not_fit():
    loader = LOADERS["shuffled"]
    model = small()
    with train(model, loader(points(), 1), 1) as t:
        state = t.state_dict()
        with pytest.raises(kofn.Invalid, match="no optimiser"):
            t.load_state_dict(state, torch.optim.SGD(model.parameters(), lr=1))
        with pytest.raises(kofn.Invalid, match="4 batches.*this one has 5"):
            t.load_state_dict({**state, "batches": 4})
        fewer = copy.deepcopy(state)
        del fewer["order"]
        with pytest.raises(kofn.Invalid, match="DataLoader"):
            t.load_state_dict(fewer)
        del state["order"]["now"][0]
        with pytest.raises(kofn.Invalid, match="1 random generators"):
            t.load_state_dict(state)
