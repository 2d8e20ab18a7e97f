from typing import Optional, Sequence, Union

from . import Fleet, Path

def fleet(workers: Optional[int] = ..., *, address: Optional[str] = ...,
          keys: Optional[Path] = ..., worker_keys: Optional[Path] = ...,
          insecure: bool = ..., module: Optional[Path] = ..., grace: float = ...,
          patience: float = ..., time: Union[None, int, str] = ...,
          srun_options: Sequence[str] = ...) -> Fleet: ...
