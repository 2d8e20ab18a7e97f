from typing import Any, Callable, Optional

from . import Array, ArrayLike, Faults, Fleet, Rows, Shape2

def attach(comm: Any, *, root: int = ..., silence: Optional[float] = ...,
           patience: Optional[float] = ...) -> Any: ...
def serve(comm: Any, f: Optional[Callable[[int, int, Array], ArrayLike]] = ..., *,
          root: int = ..., silence: Optional[float] = ...,
          patience: Optional[float] = ..., faults_words: Optional[Faults] = ...,
          multiply: Optional[Callable[[Any, Any], Any]] = ...,
          keep: Optional[Callable[[Array], Any]] = ...) -> None: ...
def fleet(comm: Any, *, root: int = ..., silence: Optional[float] = ...,
          patience: Optional[float] = ...,
          part: Optional[Callable[[int, int, Array], ArrayLike]] = ...,
          multiply: Optional[Callable[[Any, Any], Any]] = ...,
          keep: Optional[Callable[[Array], Any]] = ...) -> Optional[Fleet]: ...

class Spread:
    shape: Shape2
    dtype: Any
    rows: Rows
    def __init__(self, comm: Any, own: Array, *, panel: int = ...) -> None: ...
    def free(self) -> None: ...
    def __enter__(self) -> Spread: ...
    def __exit__(self, kind: Any, *_: object) -> None: ...
