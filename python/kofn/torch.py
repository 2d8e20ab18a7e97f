"""Training of PyTorch modules by coded sums of gradients.

Every batch is cut into the number of parts that the scheme has. Several workers
compute each part's gradient, and workers may come and go. The coordinator decodes the
gradient of the batch, exact to rounding, and any PyTorch optimiser takes the step.
Needs PyTorch (Debian: python3-torch), 1.13 or later.
"""
import copy
import os
import threading

import numpy as np
import torch
from torch.utils.data import TensorDataset, default_collate

from ._audit import Audit
from ._job import ALL
from ._lib import Invalid, shows
from ._sum import Sum

# Modules store gradients and statistics, and share one random generator. So a process
# computes one part at a time.
_one = threading.Lock()


def _trained(model):
    return [p for p in model.parameters() if p.requires_grad]


def _kept(model):
    """Returns the statistics that layers such as BatchNorm keep."""
    return [b for b in model.buffers() if b.is_floating_point()]


def _flat(tensors, dtype):
    if not tensors:
        return np.empty(0, dtype)
    return np.concatenate([t.detach().reshape(-1).numpy() for t in tensors])


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
    if kinds not in ({torch.float32}, {torch.float64}):
        raise Invalid("parameters and statistics are of " +
                      ", ".join(sorted(map(str, kinds))) +
                      "; all must be float32, or all float64")
    return np.float32 if kinds == {torch.float32} else np.float64


class Part:
    """The worker's function f(part, parts, x) for kofn.Sum.

    model    a module; only its shapes and frozen parameters matter, the others
             come with x.
    loss     loss(model(inputs), labels), the mean over the given samples.
    data     two tensors (inputs, labels), or a Dataset of such pairs.
    batch    samples in a batch.
    seed     of the order of samples, drawn in every epoch, and of random numbers
             in the model (dropout).

    Remote workers create the same object: job.py of `python3 -m kofn worker ADDRESS
    --module job.py` contains `part = kofn.torch.Part(...)`.
    """

    def __init__(self, model, loss, data, batch, seed=1):
        self.model = copy.deepcopy(model)
        self.loss = loss
        self.data = data if hasattr(data, "__getitem__") and not \
            isinstance(data, (tuple, list)) else TensorDataset(*data)
        self.samples = len(self.data)
        if not 0 < batch <= self.samples:
            raise Invalid(f"batch={batch} of {self.samples} samples: ask for 1 to "
                          f"{self.samples}")
        self.batch, self.seed = batch, seed
        self.dtype = _type_of(model)
        self.trained = sum(p.numel() for p in _trained(model))
        self.kept = sum(b.numel() for b in _kept(model))
        self.length = self.trained + self.kept + 1  # and the loss
        self.inputs = self.trained + self.kept + 2  # and the number of the batch
        self._epoch = self._order = None
        self._home = os.getpid()

    @property
    def batches(self):
        """Batches in an epoch; the last may be smaller."""
        return -(-self.samples // self.batch)

    def indices(self, epoch, number):
        """Returns the samples of a batch."""
        if self._epoch != epoch:
            draw = torch.Generator().manual_seed(self.seed * 1000003 + epoch)
            self._order = torch.randperm(self.samples, generator=draw)
            self._epoch = epoch
        return self._order[number * self.batch:(number + 1) * self.batch]

    def _pairs(self, indices):
        if isinstance(self.data, TensorDataset):
            return [t[indices] for t in self.data.tensors]
        return default_collate([self.data[int(i)] for i in indices])

    def gradient(self, indices, of, chance):
        """Sets .grad of the model and returns the loss for these samples, both as
        shares of a mean over `of` samples."""
        torch.manual_seed(chance)
        self.model.zero_grad()
        if len(indices) == 0:
            return 0.0
        inputs, labels = self._pairs(indices)
        value = self.loss(self.model(inputs), labels) * (len(indices) / of)
        value.backward()
        return value.item()

    def __call__(self, part, parts, x):
        if os.getpid() != self._home:  # OpenMP's threads do not survive a fork
            torch.set_num_threads(1)
        with _one:
            rest = _fill(_kept(self.model), _fill(_trained(self.model), x))
            epoch, number = (int(v) for v in rest)
            batch = self.indices(epoch, number)
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
    def __init__(self, model, loss, data, *, batch, scheme="agc:d=3", workers=8,
                 where="processes", seed=1, **options):
        self.model = model
        self.part = Part(model, loss, data, batch, seed)
        self._sum = Sum(self.part, self.part.length, inputs=self.part.inputs,
                        scheme=scheme, workers=workers, where=where,
                        dtype=self.part.dtype, seed=seed, **options)

    @property
    def batches(self):
        """Batches in an epoch."""
        return self.part.batches

    def backward(self, epoch, number):
        """Adds the gradient of that batch to .grad of the parameters, as backward()
        of its loss would. Returns the loss."""
        p = self.part
        x = np.concatenate([_flat(_trained(self.model), p.dtype),
                            _flat(_kept(self.model), p.dtype),
                            np.array([epoch, number], p.dtype)])
        out = self._sum(x)
        _fill(_kept(self.model), out[p.trained:-1])
        at = 0
        for q in _trained(self.model):
            g = torch.from_numpy(out[at:at + q.numel()]).view_as(q)
            q.grad = g.clone() if q.grad is None else q.grad + g
            at += q.numel()
        return float(out[-1])

    def fit(self, optimiser, epochs=1, first=0, watch=None):
        """Runs the optimiser for `epochs` epochs; the first has number `first`.
        Returns the loss of each batch before its step. watch(epoch, number, loss) is
        called after each step. With audit=, it returns to the last checked step if a
        faulty worker is located, and repeats the steps since then."""
        def keep():
            return copy.deepcopy((self.model.state_dict(), optimiser.state_dict()))

        def put(state):
            self.model.load_state_dict(state[0])
            optimiser.load_state_dict(copy.deepcopy(state[1]))

        def take():
            optimiser.zero_grad()
            loss = self.backward(*steps[at])
            optimiser.step()
            return loss

        steps = [(epoch, number) for epoch in range(first, first + epochs)
                 for number in range(self.batches)]
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
