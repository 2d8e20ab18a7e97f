import os
from typing import (Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Optional,
                    Sequence, TypedDict, Union)

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from typing_extensions import Unpack

__version__: str

Path = Union[str, os.PathLike[str]]
Faults = Union[str, Mapping[str, Any]]
Events = Union[str, Sequence[str]]
Shape2 = tuple[int, int]
Array = NDArray[Any]

class _Options(TypedDict, total=False):
    tolerate: Optional[int]
    seed: int
    faults: Optional[Faults]
    events: Optional[Events]
    keys: Optional[Path]
    insecure: bool
    tls_ca: Optional[Path]
    tls_cert: Optional[Path]
    tls_key: Optional[Path]
    in_flight: Optional[str]
    below: Optional[str]
    patience: Optional[float]
    max_error: Optional[float]
    late: Optional[float]
    lease: Optional[float]
    pieces: Optional[int]
    errors: Optional[str]
    quarantine: Optional[int]
    beyond: Optional[bool]
    workers_per_principal: Optional[int]
    mu: Optional[float]
    audit: Optional[int]
    start_within: Optional[float]
    journal: Optional[Path]
    metrics: Optional[Path]
    trace: Optional[Path]
    record: Optional[Path]
    report: Optional[Path]

class _NodeOptions(_Options, total=False):
    reach: Union[str, Sequence[str]]
    confirm: Optional[int]

class Error(Exception):
    status: str

class TooFewWorkers(Error): ...
class TaskFailed(Error): ...
class Late(Error, TimeoutError): ...
class Corrupt(Error): ...
class Unstable(Error, ArithmeticError): ...
class Invalid(Error, ValueError): ...
class NotFitted(Invalid, AttributeError): ...
class Unsuited(Error, NotImplementedError): ...
class TransportFailed(Error, ConnectionError): ...

class ConvergenceWarning(UserWarning): ...

class Report(NamedTuple):
    rounds: int
    seconds: float
    encoding: float
    waiting: float
    decoding: float
    noise: float
    predicted: float
    live: int
    joined: int
    left: int
    late: int
    dropped: int
    messages: int
    scalars: int
    corrupt: int
    may_lie: int
    floor: float
    sent: int
    received: int
    number: int
    began: int
    ended: int
    plain: int
    coded: int
    again: int
    rebuilt: int
    rebuilding: int
    drift: float
    unchecked: int
    placing: float
    sending: float
    receiving: float
    checking: float
    outside: float
    liars: tuple[int, ...]
    partial: bool
    def phases(self) -> dict[str, float]: ...

class Scheme:
    name: Any
    summary: str
    cite: str
    def parts(self, workers: int) -> int: ...
    def row(self, seat: int, workers: int) -> ArrayLike: ...
    def enough(self, workers: int) -> int: ...
    def seats(self, workers: int) -> Optional[int]: ...

def add_scheme(scheme: Union[Scheme, str]) -> str: ...

class Rows:
    read: Callable[[int, int], ArrayLike]
    shape: Shape2
    dtype: np.dtype[Any]
    panel: int
    part: np.dtype[Any]
    real: Shape2
    def __init__(self, read: Callable[[int, int], ArrayLike], shape: Shape2,
                 dtype: Any = ..., *, panel: int = ...) -> None: ...
    def place(self, job: Any) -> None: ...
    def fill(self, row: int, out: Any) -> None: ...

class Matrix:
    ndim: int
    shape: Shape2
    dtype: np.dtype[Any]
    report: Optional[Report]
    __array_priority__: int
    __array_ufunc__: None
    def __init__(self, A: Any, where: Union[str, Fleet] = ..., *, scheme: str = ...,
                 workers: int = ..., columns: int = ...,
                 multiply: Optional[Callable[[Any, Any], Any]] = ...,
                 keep: Optional[Callable[[Array], Any]] = ...,
                 **options: Unpack[_Options]) -> None: ...
    def __matmul__(self, x: ArrayLike) -> Array: ...
    def __rmatmul__(self, x: ArrayLike) -> Array: ...
    def __call__(self, x: ArrayLike) -> Array: ...
    def matvec(self, x: ArrayLike) -> Array: ...
    def rmatvec(self, x: ArrayLike) -> Array: ...
    def matmat(self, X: ArrayLike) -> Array: ...
    def rmatmat(self, X: ArrayLike) -> Array: ...
    def dot(self, x: ArrayLike) -> Array: ...
    @property
    def T(self) -> Any: ...
    @property
    def H(self) -> Any: ...
    @property
    def totals(self) -> Report: ...
    @property
    def news(self) -> list[str]: ...
    @property
    def processes(self) -> list[int]: ...
    def aslinearoperator(self) -> Any: ...
    def fetch(self) -> Array: ...
    def close(self) -> None: ...
    def __enter__(self) -> Matrix: ...
    def __exit__(self, *_: object) -> None: ...

def matmul(A: Any, B: ArrayLike, where: Union[str, Fleet] = ..., *, scheme: str = ...,
           workers: int = ..., **options: Unpack[_Options]) -> Array: ...

class Sum:
    f: Callable[[int, int, Array], ArrayLike]
    length: int
    inputs: int
    dtype: np.dtype[Any]
    parts: int
    def __init__(self, f: Callable[[int, int, Array], ArrayLike], length: int, *,
                 inputs: Optional[int] = ..., scheme: str = ..., workers: int = ...,
                 where: Union[str, Fleet] = ..., dtype: DTypeLike = ...,
                 work: Optional[float] = ...,
                 **options: Unpack[_Options]) -> None: ...
    def __call__(self, x: ArrayLike) -> Array: ...
    @property
    def report(self) -> Optional[Report]: ...
    @property
    def totals(self) -> Report: ...
    @property
    def processes(self) -> tuple[int, ...]: ...
    @property
    def audited(self) -> int: ...
    def audit(self, every: int) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Sum: ...
    def __exit__(self, *_: object) -> None: ...

class Plan(list[Any]):
    @property
    def best(self) -> Optional[Any]: ...

class Product:
    number: int
    report: Optional[Report]
    def __init__(self, stream: Stream, number: int, operands: Any) -> None: ...
    def result(self) -> Array: ...

class Stream:
    dtype: np.dtype[Any]
    delay: int
    def __init__(self, shape: tuple[int, int, int], where: Union[str, Fleet] = ..., *,
                 scheme: str = ..., workers: int = ..., dtype: DTypeLike = ...,
                 mu: Optional[float] = ..., **options: Unpack[_Options]) -> None: ...
    def put(self, X: ArrayLike, Y: ArrayLike) -> Product: ...
    def products(self, pairs: Iterable[tuple[ArrayLike, ArrayLike]]
                 ) -> Iterator[Array]: ...
    @property
    def totals(self) -> Report: ...
    @property
    def processes(self) -> tuple[int, ...]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Stream: ...
    def __exit__(self, *_: object) -> None: ...

class Regression:
    coef_: Array
    intercept_: Union[float, Array]
    n_iter_: int
    converged_: bool
    objective_: Union[float, Array]
    history_: Array
    report_: Report
    classes_: Array
    n_features_in_: int
    feature_names_in_: Array
    def __init__(self, *, loss: str = ..., scheme: str = ..., workers: int = ...,
                 tolerate: Optional[int] = ...,
                 where: Union[str, Fleet] = ..., l2: float = ..., optimizer: str = ...,
                 line_search: str = ..., step: float = ..., tol: float = ...,
                 iterations: int = ..., batches: int = ..., intercept: bool = ...,
                 warm_start: bool = ...,
                 seed: int = ..., in_flight: Optional[str] = ...,
                 below: Optional[str] = ..., patience: Optional[float] = ...,
                 max_error: Optional[float] = ..., late: Optional[float] = ...,
                 lease: Optional[float] = ..., pieces: Optional[int] = ...,
                 errors: Optional[str] = ..., quarantine: Optional[int] = ...,
                 beyond: Optional[bool] = ...,
                 workers_per_principal: Optional[int] = ..., mu: Optional[float] = ...,
                 audit: Optional[int] = ..., start_within: Optional[float] = ...,
                 journal: Optional[Path] = ..., metrics: Optional[Path] = ...,
                 trace: Optional[Path] = ..., record: Optional[Path] = ...,
                 report: Optional[Path] = ...,
                 faults: Optional[Faults] = ..., events: Optional[Events] = ...,
                 keys: Optional[Path] = ..., insecure: bool = ...,
                 tls_ca: Optional[Path] = ..., tls_cert: Optional[Path] = ...,
                 tls_key: Optional[Path] = ...) -> None: ...
    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Regression: ...
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: Optional[ArrayLike] = ...
            ) -> Regression: ...
    def path(self, X: ArrayLike, y: ArrayLike, l2s: ArrayLike,
             sample_weight: Optional[ArrayLike] = ...) -> tuple[Array, Array]: ...
    def decision_function(self, X: ArrayLike) -> Array: ...
    def predict(self, X: ArrayLike) -> Array: ...
    def predict_proba(self, X: ArrayLike) -> Array: ...
    def score(self, X: ArrayLike, y: ArrayLike,
              sample_weight: Optional[ArrayLike] = ...) -> float: ...

class Network:
    coefs_: list[Array]
    classes_: Array
    history_: Array
    n_steps_: int
    loss_: float
    unit_: float
    report_: Optional[Report]
    mesh_: Mesh
    n_features_in_: int
    feature_names_in_: Array
    def __init__(self, *, hidden: Sequence[int] = ..., activation: str = ...,
                 loss: str = ..., output: str = ..., scheme: str = ...,
                 workers: int = ..., tolerate: Optional[int] = ...,
                 where: Union[str, Fleet] = ..., step: float = ...,
                 momentum: float = ..., nesterov: bool = ..., l2: float = ...,
                 batch: int = ..., epochs: int = ..., scrub: int = ...,
                 seed: int = ..., dtype: DTypeLike = ...,
                 masterless: Union[bool, str] = ..., unit: Optional[float] = ...,
                 in_flight: Optional[str] = ...,
                 below: Optional[str] = ..., patience: Optional[float] = ...,
                 max_error: Optional[float] = ..., late: Optional[float] = ...,
                 lease: Optional[float] = ..., pieces: Optional[int] = ...,
                 errors: Optional[str] = ..., quarantine: Optional[int] = ...,
                 beyond: Optional[bool] = ...,
                 workers_per_principal: Optional[int] = ..., mu: Optional[float] = ...,
                 audit: Optional[int] = ..., start_within: Optional[float] = ...,
                 journal: Optional[Path] = ..., metrics: Optional[Path] = ...,
                 trace: Optional[Path] = ..., record: Optional[Path] = ...,
                 report: Optional[Path] = ...,
                 faults: Optional[Faults] = ..., events: Optional[Events] = ...,
                 keys: Optional[Path] = ..., insecure: bool = ...,
                 tls_ca: Optional[Path] = ..., tls_cert: Optional[Path] = ...,
                 tls_key: Optional[Path] = ...,
                 reach: Union[str, Sequence[str], None] = ...,
                 confirm: Optional[int] = ..., checkpoint: Optional[Path] = ...,
                 every: Optional[int] = ..., resume: bool = ...) -> None: ...
    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Network: ...
    def fit(self, X: ArrayLike, y: Optional[ArrayLike] = ...) -> Network: ...
    def partial_fit(self, X: ArrayLike, y: Optional[ArrayLike] = ...,
                    classes: Optional[ArrayLike] = ...) -> Network: ...
    def predict(self, X: ArrayLike) -> Array: ...
    def predict_proba(self, X: ArrayLike) -> Array: ...
    def score(self, X: ArrayLike, y: Optional[ArrayLike] = ...,
              sample_weight: Optional[ArrayLike] = ...) -> float: ...

class Mesh:
    members: int
    epochs: int
    liars: int
    left_out: int
    finished: int
    def __init__(self, members: int, epochs: int, liars: int, left_out: int,
                 finished: int) -> None: ...

class Iterated:
    vector: Array
    iterations: int
    converged: bool
    change: float
    eigenvalue: float
    report: Optional[Report]
    mesh: Optional[Mesh]
    def __init__(self, vector: Array, iterations: int, converged: bool, change: float,
                 eigenvalue: float, report: Optional[Report],
                 mesh: Optional[Mesh] = ...) -> None: ...

def power(A: Any, *, start: Optional[ArrayLike] = ...,
          tol: Optional[float] = ..., iterations: Optional[int] = ...,
          scheme: str = ..., workers: int = ..., where: Union[str, Fleet] = ...,
          masterless: Union[bool, str] = ..., **options: Unpack[_NodeOptions]
          ) -> Iterated: ...
def pagerank(G: Any, *, damping: Optional[float] = ...,
             personalization: Union[ArrayLike, dict[int, float], None] = ...,
             nstart: Union[ArrayLike, dict[int, float], None] = ...,
             dangling: Union[ArrayLike, dict[int, float], None] = ...,
             tol: Optional[float] = ..., iterations: Optional[int] = ...,
             scheme: str = ..., workers: int = ..., where: Union[str, Fleet] = ...,
             masterless: Union[bool, str] = ..., **options: Unpack[_NodeOptions]
          ) -> Iterated: ...

class Findings:
    floor: float
    rows: Array
    columns: Array
    entries: Array
    complete: bool
    def __init__(self, f: Any) -> None: ...
    def __bool__(self) -> bool: ...
    def corrected(self, C: ArrayLike) -> Array: ...

def check_product(A: Any, B: ArrayLike, C: ArrayLike, tolerance: float = ...
                  ) -> Findings: ...
def schemes() -> dict[str, str]: ...
def plan(operation: str, *shapes: Shape2, workers: int = ..., rounds: int = ...,
         scheme: Optional[str] = ..., machines: bool = ..., latency: float = ...,
         bandwidth: float = ..., faults: Optional[Faults] = ..., memory: float = ...,
         deadline: float = ..., tolerate: int = ..., faulty: int = ...,
         dtype: DTypeLike = ...) -> Plan: ...
def plan_info(scheme: str, workers: int, shape: Shape2, *, columns: int = ...,
              op: str = ..., dtype: DTypeLike = ..., noise: bool = ...,
              seed: int = ...) -> dict[str, Any]: ...
def serve(address: str, f: Optional[Callable[[int, int, Array], ArrayLike]] = ...,
          keys: Optional[Path] = ..., insecure: bool = ...,
          patience: Optional[float] = ..., faults_words: Optional[Faults] = ...,
          multiply: Optional[Callable[[Any, Any], Any]] = ...,
          keep: Optional[Callable[[Array], Any]] = ...,
          tls_ca: Optional[Path] = ..., tls_cert: Optional[Path] = ...,
          tls_key: Optional[Path] = ..., with_parent: bool = ...,
          grace: Optional[float] = ..., memory: Optional[int] = ...,
          data_path: Optional[Path] = ..., once: bool = ...,
          name: Optional[str] = ...) -> None: ...

class FleetWorker(NamedTuple):
    name: str
    host: str
    process: int
    memory: Optional[int]
    state: str
    tasks: int
    seconds: float
    bytes: float
    slow: Optional[float]

class Fleet:
    where: str
    size: int
    weight: float
    def __init__(self, where: str = ..., workers: int = ..., *,
                 part: Optional[Callable[[int, int, Array], ArrayLike]] = ...,
                 multiply: Optional[Callable[[Any, Any], Any]] = ...,
                 keep: Optional[Callable[[Array], Any]] = ...,
                 keys: Optional[Path] = ..., insecure: bool = ...,
                 tls_ca: Optional[Path] = ..., tls_cert: Optional[Path] = ...,
                 tls_key: Optional[Path] = ...) -> None: ...
    def share(self, weight: float) -> Fleet: ...
    @property
    def endpoint(self) -> Optional[str]: ...
    @property
    def workers(self) -> list[FleetWorker]: ...
    def wait(self, workers: Optional[int] = ...,
             timeout: Optional[float] = ...) -> int: ...
    def drain(self, name: str) -> None: ...
    @property
    def news(self) -> list[str]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Fleet: ...
    def __exit__(self, *_: Any) -> None: ...
