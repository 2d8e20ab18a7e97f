from typing import Any, Callable, Optional

from . import Array, ArrayLike, Faults, Fleet

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
