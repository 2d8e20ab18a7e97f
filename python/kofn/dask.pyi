from typing import Any, Optional

from . import Fleet, Path

def fleet(client: Any, workers: Optional[int] = ..., *, address: Optional[str] = ...,
          keys: Optional[Path] = ..., worker_keys: Optional[Path] = ...,
          insecure: bool = ..., module: Optional[Path] = ..., grace: float = ...,
          patience: float = ...) -> Fleet: ...
def matmul(A: Any, B: Any, fleet: Fleet, *, panel: int = ..., **options: Any) -> Any: ...
