"""Dense networks, trained by coded workers, with scikit-learn's interface."""
import numpy as np

from . import _lib, _mesh
from ._estimator import ConvergenceWarning, Estimator, classes, only_if, warn
from ._fleet import life
from ._job import ALL, Job, Report, described, option_table
from ._lib import Error, Invalid, check, ffi, lib, new

TABLE = {**option_table(lib.KOFN_TABLE_TRAIN), **option_table(lib.KOFN_TABLE_NET)}
# The arguments of a Network in these tables.
NAMES = {name: name for name in ("activation", "loss", "output", "step", "momentum",
                                 "nesterov", "l2", "batch", "epochs", "scrub")}
OPTIONS = [name for name in ALL if name != "seed"]
# Options of a node without a master.
MESH = ["errors", "reach", "keys", "insecure", "tls_ca", "tls_cert", "tls_key",
        "confirm", "patience", "checkpoint", "every", "resume"]


@ffi.def_extern(error=1, onerror=_lib.stop_and_raise)
def kofn_py_train(ud, now, report):
    _lib.may_go_on()
    history = ffi.from_handle(ud)
    if report != ffi.NULL and now != ffi.NULL:
        history.append((now.step, now.loss, now.accuracy))
    return 0


def _array_of(W):
    """Returns a NumPy view of a contiguous kofn_matrix."""
    kind = np.float32 if W.dtype == lib.KOFN_F32 else np.float64
    size = W.rows * W.ld * np.dtype(kind).itemsize
    data = np.frombuffer(ffi.buffer(W.data, size), kind)
    return data.reshape(W.rows, W.ld)[:, :W.cols]


class Network(Estimator):
    """A dense network, trained by descent on batches.

    hidden        widths of the hidden layers.
{options}
                  With loss="softmax" y has classes. With "squares" it has numbers, a
                  row for each point, with deviations of about 1; without y the
                  network is an autoencoder.
    unit       points are divided by it; None: the largest magnitude in X, if that
               is above 1.
    scheme     gc:d=3, agc:d=3, ...: workers have the points and sum gradients of
               parts of a batch. gpd, polydot, elastic, ...: workers hold the
               coded weights. With errors="probabilistic" wrong
               answers are excluded, and every `scrub` steps wrong blocks are
               repaired. "auto": gc:d=2; masterless: gpd.
    tolerate   as in kofn.Matrix.
    seed, dtype   of the first weights and of the order; of weights and products.
    errors, audit, faults, events, keys, ...: options of kofn.Matrix.
    masterless True: without a coordinator, on `workers` nodes that are threads of
               this process. An address: this process is one node
               (docs/masterless.md). The scheme is then gpd, polydot, matdot,
               polynomial or grid. The options are errors, reach (addresses of
               other nodes), keys, insecure, tls_ca, tls_cert, tls_key and
               patience. checkpoint is a folder for the node (threads share one),
               with every (steps) and resume. All nodes call fit with the same
               arguments.

    fit begins anew. partial_fit goes on from the weights there are, by one epoch. A
    training with a growing loss warns with kofn.ConvergenceWarning, and one with a
    loss that is not finite fails: both say that a smaller step is needed.

    After fit: coefs_ (for each layer outputs x (inputs + 1), biases last), unit_
    (points are divided by it), classes_ (softmax), history_ (step, loss and accuracy
    of each batch), n_steps_, loss_ and report_. Masterless: mesh_ (kofn.Mesh) instead
    of report_, and no history.

    >>> import numpy as np, kofn
    >>> X = np.repeat([[0.0, 0], [0, 1], [1, 0], [1, 1]], 16, axis=0)
    >>> y = (X[:, 0] != X[:, 1]).astype(int)
    >>> net = kofn.Network(hidden=(16,), activation="tanh", scheme="gc:d=2",
    ...                    workers=4, step=0.5, batch=16, epochs=200)
    >>> net.fit(X, y).score(X, y)
    1.0
    """

    @_lib.shows()
    def __init__(self, *, hidden=(32,), activation="relu", loss="softmax",
                 output="linear", scheme="auto", workers=8, tolerate=None, where="threads",
                 step=0.1, momentum=0.9, nesterov=False, l2=0.0, batch=32,
                 epochs=100, scrub=0, seed=1, dtype=np.float64,
                 masterless=False, unit=None,
                 in_flight=None, below=None, patience=None,
                 max_error=None, late=None, lease=None, pieces=None, errors=None,
                 quarantine=None, beyond=None, workers_per_principal=None, mu=None,
                 audit=None, start_within=None, journal=None, metrics=None,
                 trace=None, record=None, report=None, faults=None, events=None, keys=None,
                 insecure=False, tls_ca=None, tls_cert=None, tls_key=None,
                 reach=None, confirm=None, checkpoint=None, every=None, resume=False):
        self._store(locals())

    def _scheme(self, training):
        """Returns the scheme, which the library chooses for "auto"."""
        def choose(room, n):
            lib.kofn_training_scheme(training, self._workers(), bool(self.masterless),
                                     room, n)

        return self._tolerating(choose)

    @property
    def _estimator_type(self):
        return "classifier" if self.loss == "softmax" else "regressor"

    @property
    def _multioutput(self):
        return self.loss != "softmax"

    @property
    def _needs_y(self):
        return self.loss == "softmax"

    def _no_classes(self):
        if self.loss != "softmax":
            return f"loss={self.loss!r} has no classes"

    def _targets(self, X, y, known=None):
        """Returns the targets for C, and the width of the last layer. `known` are
        all classes, if y may lack some."""
        if self.loss != "softmax":
            y = X if y is None else self._floats(y)
            if y.ndim == 0:
                raise Invalid(f"y={y} is one number; it takes a row for each row of X")
            y = y.reshape(len(y), -1)
            return y, y.shape[1]
        found, labels = classes(y, 'loss="squares"')
        if known is not None:
            odd = np.flatnonzero(~np.isin(found, known))
            if len(odd):
                raise Invalid(f"y has the label {found[odd[0]]!r}, which is none of the "
                              f"classes {list(known)}")
            found, labels = known, np.searchsorted(known, found)[labels]
        if len(found) < 2:
            raise Invalid(f"y has one class, {found[0]!r}; two classes are needed")
        self.classes_ = found
        return labels.astype(np.float64), len(found)

    def _unit_of(self, X):
        """Returns the number that divides the points, as in the command."""
        if self.unit is not None:
            unit = float(_lib.positive("unit", self.unit))
            if unit == float("inf"):
                raise Invalid("unit=inf is not a finite number")
            return unit
        largest = float(np.abs(X).max(initial=0.0))
        return largest if 1 < largest < float("inf") else 1.0

    def _shape(self, widths, autoencoder=False):
        s = _lib.begun("kofn_net_shape")
        s.layers = len(widths) - 1
        kept = ffi.new("size_t[]", [int(w) for w in widths])
        s.widths = kept
        s.activation = self._choice(TABLE, "activation")
        s.output = self._choice(TABLE, "output")
        s.loss = self._choice(TABLE, "loss")
        s.autoencoder = autoencoder
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise Invalid(f"dtype={self.dtype!r} is neither float64 nor float32")
        s.dtype = lib.KOFN_F32 if np.dtype(self.dtype) == np.float32 else \
            lib.KOFN_F64
        return s, kept

    def _train_options(self, history, epochs, seed):
        return _lib.begun(
            "kofn_train_options", watch=lib.kofn_py_train, watch_ud=history,
            **{name: getattr(self, name) for name in (
                "momentum", "nesterov", "l2", "scrub")}, seed=seed,
            step=_lib.positive("step", self.step),
            batch=_lib.count("batch", self.batch, 64, 1),
            epochs=_lib.count("epochs", epochs, least=1))

    def _job(self, training, layers):
        """Returns a job. Its workers have the points or the weights, by the scheme."""
        scheme = self._scheme(training)
        known = lib.kofn_scheme_find(scheme.partition(b":")[0])
        pb = _lib.begun("kofn_problem")
        check(lib.kofn_training_problem(training, pb))
        options = dict(seed=self.seed, serve=life, **self._job_options(OPTIONS))
        if known == ffi.NULL or known.ops & pb.op:
            job = Job(pb, scheme.decode(), self.workers, self.where, **options)
        else:
            job = Job(pb, scheme.decode(), self.workers, self.where,
                      plans=self._plans(training, layers), **options)
        try:
            check(lib.kofn_training_place(training, job.job))
        except BaseException:
            job.close()
            raise
        return job

    def _plans(self, training, layers):
        """Returns the plans of the layers; the caller owns them."""
        plans = ffi.new("kofn_plan *[]", layers)
        check(lib.kofn_training_plans(
            training, self._scheme(training), self._workers(), self.seed, plans))
        return list(plans)

    def _fit_mesh(self, shape, make, *_):
        """Returns the network and the result of a node of this process that has them.
        """
        count = self.workers if self.masterless is True else 1
        own = [make()]
        plans = [ffi.gc(p, lib.kofn_plan_free)
                 for p in self._plans(own[0][1], shape.layers)]
        own += [make() for _ in range(1, count)]
        res = [_lib.begun("kofn_train_result") for _ in own]
        all_plans = ffi.new("kofn_plan *[]", plans)
        options = self._job_options(MESH)
        more = _mesh.kept(*(options.pop(name, empty) for name, empty in (
            ("checkpoint", None), ("every", None), ("resume", False))))
        # of the vector, and of a node's blocks
        batch = sum((8 * self.batch + 4) * (shape.widths[i] + 1)
                    for i in range(shape.layers + 1))
        longest = 8 * (batch + 4 * lib.kofn_training_size(own[0][1]))

        def live(i):
            return lambda transport, peers, view: lib.kofn_train_peers(
                transport, own[i][1], all_plans, peers, res[i], view)

        try:
            i, self.mesh_ = _mesh.run(live, self.workers, self.masterless,
                                      longest=longest, plan=plans[0], more=more,
                                      **options)
        except Error as e:
            if e.status != "NONFINITE":
                raise
            raise Invalid(f"{e}, probably because the training diverges. Give a smaller "
                          f"step, such as step={self.step / 10:g}") from e
        self.report_ = None
        return own[i][0], res[i]

    def _fit_job(self, shape, make, history, largest):
        net, training = make()
        res = _lib.begun("kofn_train_result")
        job = self._job(training, shape.layers)
        try:
            job.call(lib.kofn_train, training, res)
            self.report_ = Report.of(res.rounds)
        except Error as e:
            self._blame_step(e, net, history, largest)
            raise
        finally:
            job.close()
        return net, res

    def _blame_step(self, e, net, history, data):
        """Raises, instead of e, that the training diverges, if it does: the loss grows,
        or the weights give infinite outputs here. Then results of workers disagree
        although none is wrong. `data` is the largest number of X and y."""
        if e.status not in ("NONFINITE", "CORRUPT", "TOOFEW", "UNSTABLE"):
            return
        bound, most = 1.0, float(np.finfo(self.dtype).max)  # bound: of a layer's outputs
        with np.errstate(all="ignore"):
            for i in range(1, len(self._widths)):
                W = np.abs(_array_of(lib.kofn_net_weights(net, i)))
                bound = float(W.sum(axis=1).max()) * max(bound, 1.0)
        losses = [row[1] for row in history]
        grows = len(losses) > 1 and not losses[-1] <= 1000 * losses[0]
        advice = f"Give a smaller step, such as step={self.step / 10:g}"
        step = (history[-1][0] if history else 0) + 1
        if grows or not bound * bound <= most:
            raise Invalid(f"step {step:g}: the gradient is NaN or infinite, or near it, "
                          "because the training diverges; no worker is wrong. "
                          + advice) from e
        if e.status == "NONFINITE" and step == 1 and (bound * (data + 1)) ** 2 <= most:
            raise Invalid(f"step 1: the weights after it are NaN or infinite, because "
                          f"step={self.step:g} is too long. {advice}") from e

    def fit(self, X, y=None):
        """Trains a new network. Without y and with loss="squares", it learns X."""
        with self._turn():
            X = np.ascontiguousarray(self._rows(X))
            self.unit_ = self._unit_of(X)
            return self._fit(X, y, self.epochs)

    def partial_fit(self, X, y=None, classes=None):
        """Trains by one epoch over X, from the weights there are. The first call begins
        a network; `classes` are then all classes, if y lacks some. Momentum begins anew
        at each call."""
        with self._turn():
            old = vars(self).get("coefs_")
            X = np.ascontiguousarray(self._rows(X) if old is None else
                                     self._rows_again(X))
            if old is None:
                self.unit_ = self._unit_of(X)
                known = None if classes is None else np.unique(np.asarray(classes))
            else:
                known = getattr(self, "classes_", None)
            return self._fit(X, y, 1, old, known)

    def _fit(self, X, y, epochs, start=None, known=None):
        X = X / self.unit_ if self.unit_ != 1 else X
        autoencoder = y is None and self.loss == "squares"
        y, last = self._targets(X, y, known)
        if len(y) != len(X):
            raise Invalid(f"X has {len(X)} rows and y {len(y)}")
        if not np.iterable(self.hidden):
            raise Invalid(f"hidden={self.hidden!r} is not a sequence of widths; of one "
                          "layer of 32 it is (32,)")
        widths = [X.shape[1], *(_lib.count("hidden", w) for w in self.hidden), last]
        if start is not None and [len(W) for W in start] != widths[1:]:
            raise Invalid(f"the layers are {widths[1:]} wide, and those of the network "
                          f"that is trained on are {[len(W) for W in start]}; fit begins "
                          "a new one")
        shape, kept = self._shape(widths, autoencoder)
        self._rebuilds, self._widths = autoencoder, widths
        done = self.n_steps_ if start is not None else 0
        history = []
        handle = ffi.new_handle(history)
        # a later epoch gets another order of points
        seed = (_lib.count("seed", self.seed, 64) + done) % 2**64
        o = self._train_options(handle, epochs, seed)
        xv = _lib.view(X)
        yv = ffi.NULL if autoencoder else _lib.view(y)

        def make():
            net = ffi.gc(new(lib.kofn_net_new, shape, self.seed),
                         lib.kofn_net_free)
            for i, W in enumerate(start or (), 1):
                _array_of(lib.kofn_net_weights(net, i))[...] = W
            return net, ffi.gc(new(lib.kofn_training_new, net, xv, yv, o),
                               lib.kofn_training_free)

        fit = self._fit_mesh if self.masterless else self._fit_job
        largest = max(float(np.abs(a).max(initial=0.0)) for a in (X, y))
        net, res = fit(shape, make, history, largest)
        self.n_steps_, self.loss_ = done + res.steps, res.loss
        self.coefs_ = [_array_of(lib.kofn_net_weights(net, i)).copy()
                       for i in range(1, shape.layers + 1)]
        del kept
        self._remember(np.array(history, float).reshape(-1, 3), done, epochs)
        return self

    def _remember(self, history, done, epochs):
        """Keeps the history. Warns if the loss of the last epoch is above that of the
        first batch."""
        history[:, 0] += done
        self.history_ = np.vstack([self.history_, history]) if done else history
        steps = max(1, len(history) // epochs)
        if len(self.history_) > steps and \
                history[-steps:, 1].mean() > 2 * self.history_[0, 1]:
            warn(f"the training diverges: the loss was {self.history_[0, 1]:.3g} at step "
                 f"1 and {history[-steps:, 1].mean():.3g} in the last epoch. Give a "
                 f"smaller step, such as step={self.step / 10:g}",
                 ConvergenceWarning, "ConvergenceWarning")

    def _out(self, X):
        """Returns the outputs of the last layer; with softmax, probabilities."""
        with self._turn():
            return self._out_of(X)

    def _out_of(self, X):
        self._check_fitted("coefs_")
        X = np.ascontiguousarray(self._rows_again(X))
        X = X / self.unit_ if self.unit_ != 1 else X
        widths = [self.coefs_[0].shape[1] - 1, *(len(W) for W in self.coefs_)]
        shape, kept = self._shape(widths)
        net = ffi.gc(new(lib.kofn_net_new, shape, 1), lib.kofn_net_free)
        for i, W in enumerate(self.coefs_, 1):
            _array_of(lib.kofn_net_weights(net, i))[...] = W
        out = np.empty((len(X), widths[-1]))
        check(lib.kofn_net_predict(net, _lib.view(X), _lib.view(out)))
        del kept
        return out * self.unit_ if self._rebuilds else out

    def predict(self, X):
        """Returns classes (softmax), or outputs."""
        out = self._out(X)
        if self.loss == "softmax":
            return self.classes_[np.argmax(out, axis=1)]
        return out[:, 0] if out.shape[1] == 1 else out

    @only_if(_no_classes)
    def predict_proba(self, X):
        """Returns the probabilities of all classes; softmax only."""
        return self._out(X)

    def score(self, X, y=None, sample_weight=None):
        """Returns accuracy (softmax), or R^2, the mean over all outputs."""
        return self._score(X if y is None else y, self.predict(X), sample_weight)


Network.__doc__ = Network.__doc__.replace("{options}", described([TABLE], NAMES))
