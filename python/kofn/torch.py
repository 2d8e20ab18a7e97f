"""Training of PyTorch modules by coded sums of gradients.

Every batch is cut into the number of parts that the scheme has. Several workers
compute each part's gradient, and workers may come and go. The coordinator decodes the
gradient of the batch, exact to rounding, and any PyTorch optimiser takes the step.
Needs PyTorch (Debian: python3-torch), 1.13 or later.
"""
import copy
import inspect
import operator
import os
import threading

import numpy as np
import torch
from torch.utils.data import (DataLoader, IterableDataset, TensorDataset,
                              default_collate)

from ._audit import Audit
from ._job import ALL
from ._lib import Invalid, shows
from ._sum import Sum

__all__ = ["Part", "Training"]

# Modules store gradients and statistics, and share one random generator. So a process
# computes one part, or draws one batch, at a time.
_one = threading.Lock()

_SHORT = {torch.bfloat16, torch.float16}  # travel as float32
_DIGIT = 1 << 20  # indices travel in two digits: a float32 is exact below 2^24


def __dir__():
    return list(__all__)


def _trained(model):
    return [p for p in model.parameters() if p.requires_grad]


def _kept(model):
    """Returns the statistics that layers such as BatchNorm keep."""
    return [b for b in model.buffers() if b.is_floating_point()]


def _flat(tensors, dtype):
    if not tensors:
        return np.empty(0, dtype)
    kind = torch.float32 if dtype == np.float32 else torch.float64
    return np.concatenate([t.detach().reshape(-1).to(kind).numpy() for t in tensors])


def _fill(tensors, x):
    """Copies numbers of x into the tensors in turn. Returns the rest."""
    with torch.no_grad():
        for t in tensors:
            t.copy_(torch.from_numpy(x[:t.numel()].copy()).view_as(t))
            x = x[t.numel():]
    return x


def _type_of(model):
    trained = _trained(model)
    if not trained:
        raise Invalid("the model has no parameters that require a gradient")
    kinds = {t.dtype for t in trained + _kept(model)}
    for t in trained + _kept(model):
        if t.device.type != "cpu":
            raise Invalid(f"the model lies on {t.device}; bring it here first, with "
                          ".cpu()")
    if kinds == {torch.float64}:
        return np.float64
    if not kinds <= _SHORT | {torch.float32}:
        raise Invalid("parameters and statistics are of " +
                      ", ".join(sorted(map(str, kinds))) +
                      "; all must be float64, or all float32, bfloat16 or float16")
    return np.float32


def _is_pair(batch):
    return isinstance(batch, (tuple, list)) and len(batch) == 2


class _Indices:
    """A data set in which every sample is its own index."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        try:
            index = operator.index(index)
        except TypeError:
            raise Invalid(f"the sampler drew {index!r}, which is not the index of a "
                          "sample") from None
        if not 0 <= index < self.samples:
            raise Invalid(f"the sampler drew the index {index} of {self.samples} "
                          f"samples: 0 to {self.samples - 1} are there")
        return index


class _Order:
    """The batches of a DataLoader, as lists of indices.

    It draws as an iterator of that loader does, from the same generators.
    """

    def __init__(self, loader):
        self._samplers = [s for s in (loader.batch_sampler, loader.sampler,
                                      getattr(loader.batch_sampler, "sampler", None))
                          if s is not None]
        owners = [loader, *self._samplers]
        found = [getattr(owner, "generator", None) for owner in owners]
        self._generators = list({id(g): g for g in [torch.default_generator, *found]
                                 if isinstance(g, torch.Generator)}.values())
        self._indices = DataLoader(_Indices(len(loader.dataset)), collate_fn=list,
                                   batch_sampler=loader.batch_sampler,
                                   generator=loader.generator)
        self.forget()

    def forget(self):
        """Lets the next batch begin an epoch, also one of the same number."""
        self._epoch = self._iterator = self._batch = self._begun = None
        self._next = 0

    def _states(self):
        return [g.get_state() for g in self._generators]

    def _set_states(self, states):
        for g, state in zip(self._generators, states):
            g.set_state(state)

    def _begin(self, epoch):
        for s in {id(s): s for s in self._samplers}.values():
            if hasattr(s, "set_epoch"):
                s.set_epoch(epoch)
        self._begun = self._states()
        self._iterator = iter(self._indices)
        self._epoch, self._next = epoch, 0

    def _draw(self):
        self._batch = next(self._iterator, None)
        if self._batch is None:
            raise Invalid(f"the sampler ended after {self._next} batches; its length "
                          f"is {len(self._indices)}")
        self._next += 1
        if self._next == len(self._indices):
            next(self._iterator, None)  # samplers may draw numbers at their end

    def batch(self, epoch, number):
        """Returns the indices of a batch. Earlier batches of the same epoch are drawn
        again as they were."""
        with _one:
            if (epoch, number + 1) != (self._epoch, self._next):
                if epoch != self._epoch:
                    self._begin(epoch)
                elif number < self._next:
                    self._set_states(self._begun)
                    self._begin(epoch)
                while self._next <= number:
                    self._draw()
            return self._batch

    def state_dict(self):
        """Returns the states of generators, now and when the epoch began."""
        with _one:
            return {"begun": self._begun, "now": self._states()}

    def load_state_dict(self, state, epoch, number):
        """Makes (epoch, number) the next batch, drawn as state_dict() found it."""
        for states in state["begun"] if number else (), state["now"]:
            if states and len(states) != len(self._generators):
                raise Invalid(f"the state has {len(states)} random generators, and "
                              f"this loader uses {len(self._generators)}; make the "
                              "same loader again")
        self.forget()
        with _one:
            if number:
                self._set_states(state["begun"])
                self._begin(epoch)
                while self._next < number:
                    self._draw()
            self._set_states(state["now"])


def _largest(loader, batch):
    """Returns the largest number of samples in a batch of the loader."""
    if isinstance(loader.dataset, IterableDataset):
        raise Invalid("the data set has no indices, which workers need; give one with "
                      "__getitem__ and __len__")
    if loader.batch_sampler is None:
        raise Invalid("the loader has batch_size=None; give it batches")
    try:
        len(loader.batch_sampler)
    except TypeError:
        raise Invalid("the batch sampler has no __len__, which says how many batches "
                      "an epoch has") from None
    size = getattr(loader.batch_sampler, "batch_size", None)
    if size is None and batch is None:
        raise Invalid("the batch sampler has no batch_size; give batch=, the most "
                      "samples that a batch has")
    if None not in (size, batch) and size != batch:
        raise Invalid(f"batch={batch}, and the loader has batches of {size}; leave "
                      "batch out")
    return batch if size is None else min(size, len(loader.dataset))


class Part:
    """The worker's function f(part, parts, x) for kofn.Sum.

    model    a module; only its shapes and frozen parameters matter, the others
             come with x.
    loss     loss(model(inputs), labels) for batches that are pairs (inputs, labels);
             loss(model, batch) for all others, such as dicts and longer tuples. It is
             the mean over the given samples.
    data     tensors (inputs, labels, ...), a Dataset, or a DataLoader. Of a loader
             the data set, collate_fn and the order are used; of a part's samples
             collate_fn makes a batch.
    batch    samples in a batch. A loader has that itself, but for batch samplers
             without a batch_size; these need the largest.
    seed     of the order of samples, drawn in every epoch unless a loader draws it,
             and of random numbers in the model (dropout).

    Remote workers create the same object: job.py of `python3 -m kofn worker ADDRESS
    --module job.py` contains `part = kofn.torch.Part(...)`.
    """

    def __init__(self, model, loss, data, batch=None, seed=1):
        self.model = copy.deepcopy(model)
        self.loss = loss
        self.collate, self.loader = default_collate, None
        if isinstance(data, DataLoader):
            batch = _largest(data, batch)
            self.loader, self.collate, data = data, data.collate_fn, data.dataset
        if isinstance(data, dict):
            raise Invalid("data is a dict; give a Dataset whose samples are dicts")
        self.data = data if hasattr(data, "__getitem__") and not \
            isinstance(data, (tuple, list)) else TensorDataset(*data)
        self.samples = len(self.data)
        if batch is None:
            raise Invalid("batch is missing: the number of samples in a batch")
        if not 0 < batch and self.loader or \
                not 0 < batch <= self.samples and not self.loader:
            raise Invalid(f"batch={batch} of {self.samples} samples: ask for 1 to "
                          f"{self.samples}")
        self.batch, self.seed = batch, seed
        self.dtype = _type_of(model)
        self.trained = sum(p.numel() for p in _trained(model))
        self.kept = sum(b.numel() for b in _kept(model))
        self.length = self.trained + self.kept + 1  # and the loss
        self.inputs = self.trained + self.kept + 2  # and the number of the batch
        if self.loader:  # and its indices, in two digits, and how many they are
            self.inputs += 1 + 2 * batch
        self._epoch = self._order = None
        self._home = os.getpid()

    @property
    def batches(self):
        """Batches in an epoch; the last may be smaller."""
        if self.loader:
            return len(self.loader.batch_sampler)
        return -(-self.samples // self.batch)

    def indices(self, epoch, number):
        """Returns the samples of a batch. A loader draws them: see
        Training.indices."""
        if self.loader:
            raise Invalid("the loader draws the samples; see indices() of a Training")
        if self._epoch != epoch:
            draw = torch.Generator().manual_seed(self.seed * 1000003 + epoch)
            self._order = torch.randperm(self.samples, generator=draw)
            self._epoch = epoch
        return self._order[number * self.batch:(number + 1) * self.batch]

    def head(self, epoch, number, indices):
        """Returns what x has after parameters and statistics."""
        if not self.loader:
            return np.array([epoch, number], self.dtype)
        if len(indices) > self.batch:
            raise Invalid(f"the batch sampler drew {len(indices)} samples; "
                          f"batch={self.batch} is the most")
        head = np.zeros(3 + 2 * self.batch, self.dtype)
        head[:3] = epoch, number, len(indices)
        head[3:3 + len(indices)] = [i // _DIGIT for i in indices]
        head[3 + self.batch:3 + self.batch + len(indices)] = \
            [i % _DIGIT for i in indices]
        return head

    def _of_head(self, head):
        """Returns epoch and number of the batch, and its samples."""
        epoch, number = (int(v) for v in head[:2])
        if not self.loader:
            return epoch, number, self.indices(epoch, number)
        digits = head[3:].astype(np.int64).reshape(2, self.batch)[:, :int(head[2])]
        return epoch, number, torch.from_numpy(digits[0] * _DIGIT + digits[1])

    def _samples(self, indices):
        """Returns these samples as a batch."""
        if isinstance(self.data, TensorDataset) and self.collate is default_collate:
            return [t[indices] for t in self.data.tensors]
        indices = [int(i) for i in indices]
        several = getattr(self.data, "__getitems__", None)
        return self.collate(several(indices) if several else
                            [self.data[i] for i in indices])

    def gradient(self, indices, of, chance):
        """Sets .grad of the model and returns the loss for these samples, both as
        shares of a mean over `of` samples. The random generator stays as it was."""
        self.model.zero_grad()
        if len(indices) == 0:
            return 0.0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(chance)
            batch = self._samples(indices)
            if _is_pair(batch):
                value = self.loss(self.model(batch[0]), batch[1])
            else:
                value = self.loss(self.model, batch)
            value = value * (len(indices) / of)
            value.backward()
        return value.item()

    def __call__(self, part, parts, x):
        if os.getpid() != self._home:  # OpenMP's threads do not survive a fork
            torch.set_num_threads(1)
        with _one:
            rest = _fill(_kept(self.model), _fill(_trained(self.model), x))
            epoch, number, batch = self._of_head(rest)
            mine = batch[part * len(batch) // parts:
                         (part + 1) * len(batch) // parts]
            chance = np.random.SeedSequence((self.seed, epoch, number, part))
            value = self.gradient(mine, len(batch),
                                  int(chance.generate_state(1)[0]))
            grads = [torch.zeros_like(p) if p.grad is None else p.grad
                     for p in _trained(self.model)]
            kept = _flat(_kept(self.model), self.dtype)
            return np.concatenate([_flat(grads, self.dtype), kept / parts,
                                   np.array([value], self.dtype)])


def _needs_closure(optimiser):
    closure = inspect.signature(optimiser.step).parameters.get("closure")
    return closure is not None and closure.default is inspect.Parameter.empty


class Training:
    """Computes gradients of a module's loss on coded workers.

    model     the module to train; it stays here, and its state is sent with every
              batch.
    loss, data, batch, seed
              as in Part.
    scheme    agc:d=3 sends short messages if few workers are late; see
              docs/gradients.md.
    where     "processes" of this machine, an address, or "threads", which compute
              one at a time.
    options   as in kofn.Sum: errors, audit, faults, events, ...

    A layer that works across samples, such as BatchNorm, sees the samples of a part.
    It keeps the mean over parts of their statistics.

    Parameters of bfloat16 and float16 travel as float32. Gradients of parts are summed
    in float32, and .grad has the type of its parameter.

    >>> import torch, kofn.torch
    >>> X = torch.eye(12)
    >>> model = torch.nn.Linear(12, 1)
    >>> opt = torch.optim.SGD(model.parameters(), lr=0.5)
    >>> with kofn.torch.Training(model, torch.nn.functional.mse_loss,
    ...                          (X, X.sum(1, keepdim=True)), batch=6, workers=4,
    ...                          where="threads") as t:
    ...     losses = t.fit(opt, epochs=20)
    >>> len(losses), losses[-1] < 0.1 * losses[0]
    (40, True)
    """

    @shows(ALL)
    def __init__(self, model, loss, data, *, batch=None, scheme="agc:d=3", workers=8,
                 where="processes", seed=1, **options):
        self.model = model
        self.part = Part(model, loss, data, batch, seed)
        self._order = _Order(self.part.loader) if self.part.loader else None
        self._place = self._resume = (0, 0)
        self._sum = Sum(self.part, self.part.length, inputs=self.part.inputs,
                        scheme=scheme, workers=workers, where=where,
                        dtype=self.part.dtype, seed=seed, **options)

    @property
    def batches(self):
        """Batches in an epoch."""
        return self.part.batches

    def indices(self, epoch, number):
        """Returns the samples of a batch. A loader draws its batches in turn: this
        one, those before it that were not drawn, or the epoch again."""
        if self._order:
            return self._order.batch(epoch, number)
        return self.part.indices(epoch, number)

    def backward(self, epoch, number):
        """Adds the gradient of that batch to .grad of the parameters, as backward()
        of its loss would. Returns the loss."""
        p = self.part
        indices = self._order and self._order.batch(epoch, number)
        x = np.concatenate([_flat(_trained(self.model), p.dtype),
                            _flat(_kept(self.model), p.dtype),
                            p.head(epoch, number, indices)])
        out = self._sum(x)
        _fill(_kept(self.model), out[p.trained:-1])
        at = 0
        for q in _trained(self.model):
            g = torch.from_numpy(out[at:at + q.numel()]).view_as(q).to(q.dtype)
            q.grad = g.clone() if q.grad is None else q.grad + g
            at += q.numel()
        after = number + 1
        self._place = (epoch, after) if after < self.batches else (epoch + 1, 0)
        return float(out[-1])

    def closure(self, optimiser, epoch, number):
        """Returns a function that computes that batch's gradient anew, and returns
        the loss: optimiser.step(t.closure(optimiser, 0, 0)) for LBFGS."""
        def compute():
            optimiser.zero_grad()
            return self.backward(epoch, number)

        return compute

    def state_dict(self, optimiser=None):
        """Returns a copy of the state of the model, the optimiser and the place in
        the data, for torch.save(). The place is after the last batch with a computed
        gradient. With a loader, generators of its samplers are included."""
        state = {"model": self.model.state_dict(), "place": self._place,
                 "batches": self.batches}
        if optimiser is not None:
            state["optimiser"] = optimiser.state_dict()
        if self._order:
            state["order"] = self._order.state_dict()
        return copy.deepcopy(state)

    def load_state_dict(self, state, optimiser=None):
        """Restores a state. The next fit() omits the batches before its place, so it
        is called as if nothing had been interrupted."""
        if optimiser is not None and "optimiser" not in state:
            raise Invalid("the state has no optimiser; give it to state_dict() as well")
        if state["batches"] != self.batches:
            raise Invalid(f"the state is of a training with {state['batches']} batches "
                          f"in an epoch, and this one has {self.batches}")
        if bool(self._order) != ("order" in state):
            raise Invalid("one of state and training has a DataLoader, and the other "
                          "does not")
        state = copy.deepcopy(state)
        self.model.load_state_dict(state["model"])
        if optimiser is not None:
            optimiser.load_state_dict(state["optimiser"])
        self._place = self._resume = tuple(state["place"])
        if self._order:
            self._order.load_state_dict(state["order"], *self._place)

    def _steps(self, epochs, first):
        """Returns the batches of a fit, without those before a restored place."""
        steps = [(epoch, number) for epoch in range(first, first + epochs)
                 for number in range(self.batches) if (epoch, number) >= self._resume]
        if steps and self._order and self._resume == (0, 0):
            self._order.forget()
            self._place = steps[0]
        self._resume = (0, 0)
        return steps

    def fit(self, optimiser, epochs=1, first=0, watch=None):
        """Runs the optimiser for `epochs` epochs; the first has number `first`.
        Returns the loss of each batch before its step. watch(epoch, number, loss) is
        called after each step. With audit=, it returns to the last checked step if a
        faulty worker is located, and repeats the steps since then."""
        closes = _needs_closure(optimiser)
        if closes and self._sum.audited > 1:
            raise Invalid(f"audit={self._sum.audited} and an optimiser that computes "
                          "several gradients in a step; leave audit out")

        def keep():
            return self.state_dict(optimiser)

        def put(state):
            self.load_state_dict(state, optimiser)
            self._resume = (0, 0)

        def take():
            compute = self.closure(optimiser, *steps[at])
            if closes:
                return float(optimiser.step(compute))
            loss = compute()
            optimiser.step()
            return loss

        steps = self._steps(epochs, first)
        losses, at = [], 0
        audit = Audit(self._sum, keep, put)
        while at < len(steps):
            to, loss = audit.step(at, at + 1 == len(steps), take)
            if to <= at:  # older steps used wrong sums
                del losses[to:]
            else:
                losses.append(loss)
                if watch:
                    watch(*steps[at], loss)
            at = to
        audit.end()
        return losses

    @property
    def report(self):
        """The report of the last batch."""
        return self._sum.report

    @property
    def totals(self):
        """The report of all batches."""
        return self._sum.totals

    @property
    def parts(self):
        """Parts of a batch."""
        return self._sum.parts

    @property
    def processes(self):
        """Process numbers of the workers that this process started."""
        return self._sum.processes

    def close(self):
        """Ends the workers. Further calls do nothing."""
        self._sum.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
