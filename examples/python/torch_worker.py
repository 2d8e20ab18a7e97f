"""Multiplies on a worker by PyTorch, on a GPU if there is one.

    kofn matmul A.npy B.npy -o C.npy -n 3 -s mds:k=2 --port tcp://127.0.0.1:5555 &
    python3 -m kofn worker tcp://127.0.0.1:5555 --module torch_worker.py    # three times
"""
import warnings

import torch

# Factors are read-only, and nothing here writes to them.
warnings.filterwarnings("ignore", "The given NumPy array is not writable")
WHERE = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cuda.matmul.allow_tf32 = False  # TF32 is not exact enough


def keep(block):
    """Called once per block, and again when its numbers change."""
    return torch.from_numpy(block).to(WHERE)


def multiply(a, b):
    """One factor is the result of keep(), or rows and columns of it."""
    return (torch.as_tensor(a, device=WHERE) @ torch.as_tensor(b, device=WHERE)).cpu()
