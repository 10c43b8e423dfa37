"""A matrix product ready to be launched, and the kernels that multiply: samples, each of which is read once."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from ptxdsl.api.kernel import Kernel
from ptxdsl.record import dataclass


@dataclass(frozen=True)
class Launch:
    """A kernel and what it is launched with: a grid of blocks, each of so many threads, with ``smem`` bytes of dynamic
    shared memory. pdl: it may begin while the launch before it ends, as far as the kernel lets it."""

    kernel: Kernel
    grid: int
    threads: int
    smem: int
    arguments: tuple[Any, ...]
    pdl: bool


@cache
def sample_kernel(file: str, arch: str) -> Kernel:
    """The kernel ``gemm`` of a sample; arch: the target where none is given."""
    from ptxdsl.api.module import Module
    from ptxdsl.files.resources import folder
    from ptxdsl.imports import read_file
    from ptxdsl.options import Options

    path = os.path.join(folder("samples"), file)
    return Module(read_file(path), Options(arch), path=path)["gemm"]
