from typing import Any, Optional

from . import Fleet, Path

def fleet(workers: Optional[int] = ..., *, num_cpus: float = ...,
          address: Optional[str] = ..., keys: Optional[Path] = ...,
          worker_keys: Optional[Path] = ..., insecure: bool = ...,
          module: Optional[Path] = ..., grace: float = ..., patience: float = ...,
          **options: Any) -> Fleet: ...
