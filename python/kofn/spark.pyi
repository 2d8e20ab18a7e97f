from typing import Any, Optional

from . import Fleet, Path

def fleet(sc: Any, workers: Optional[int] = ..., *, address: Optional[str] = ...,
          keys: Optional[Path] = ..., worker_keys: Optional[Path] = ...,
          insecure: bool = ..., module: Optional[Path] = ..., grace: float = ...,
          patience: float = ...) -> Fleet: ...
