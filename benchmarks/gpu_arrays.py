"""Arrays on the card for the benchmarks, from PyTorch."""

from __future__ import annotations

from typing import Any


def device_int64(values: list[int]) -> Any:
    """A tensor of 64-bit integers; ``tolist`` waits for the card and brings it back."""
    import torch

    return torch.tensor(values, dtype=torch.int64, device="cuda")
