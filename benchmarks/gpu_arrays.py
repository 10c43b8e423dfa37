"""Arrays on the card for the benchmarks, from PyTorch; and whether there are card and PyTorch."""

from __future__ import annotations

import shutil
from typing import Any


def lacking(*programs: str) -> str | None:
    """What this machine lacks of a GPU, PyTorch, cuda-python and ``programs``, in one line; None where it has all."""
    try:
        import torch
    except ImportError:
        return "needs an NVIDIA GPU and PyTorch, and PyTorch is not installed"
    try:
        import cuda.bindings.driver  # noqa: F401
    except ImportError:
        return "needs an NVIDIA GPU and cuda-python, and cuda-python is not installed"
    if not torch.cuda.is_available():
        return "needs an NVIDIA GPU that PyTorch can use, and there is none"
    absent = [program for program in programs if shutil.which(program) is None]
    return f"needs {absent[0]} on PATH, and there is none" if absent else None


def device_int64(values: list[int]) -> Any:
    """A tensor of 64-bit integers; ``tolist`` waits for the card and brings it back."""
    import torch

    return torch.tensor(values, dtype=torch.int64, device="cuda")
