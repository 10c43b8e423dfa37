"""What the machine knows of a program and of its compiled code. ``program.build`` and ``translate`` make these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ptxdsl.ptx.module import Function, Instruction, Module
from ptxdsl.sim.symbols import Symbols


class BlockView(Protocol):
    """instructions: in the order of the text; a host instruction or a warp collective stands alone."""

    @property
    def instructions(self) -> Sequence[Instruction]: ...


class ProgramView(Protocol):
    """One kernel with all calls inlined. Execution starts at block 0."""

    @property
    def module(self) -> Module: ...
    @property
    def kernel(self) -> Function: ...
    @property
    def blocks(self) -> Sequence[BlockView]: ...
    @property
    def symbols(self) -> Symbols: ...
    @property
    def registers(self) -> Mapping[str, str]:
        """The type of each register: ``pred``, ``b32`` …"""
        ...

    @property
    def clock_registers(self) -> frozenset[str]:
        """Those whose value derives from a clock, whatever the path: two turns of a loop that differ in them alone are
        the same."""
        ...


class SlotView(Protocol):
    """A register's 32 lanes in the register file: ``offset`` in bytes; ``dtype`` of a lane (int16/32/64; ``pred`` int32
    with lanes 0/-1; ``b128`` two rows of int64, the low halves first)."""

    @property
    def offset(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...


class SiteView(Protocol):
    """An instruction at which compiled code comes back: its block and the block that follows it."""

    @property
    def instruction(self) -> Instruction: ...
    @property
    def block(self) -> int: ...
    @property
    def next_block(self) -> int: ...


class WarpCodeView(Protocol):
    """run: the host function, called with the address of a warp's record; gives one of layout's exit codes."""

    @property
    def program(self) -> ProgramView: ...
    @property
    def slots(self) -> Mapping[str, SlotView]: ...
    @property
    def register_bytes(self) -> int: ...
    @property
    def sites(self) -> Sequence[SiteView]: ...
    @property
    def run(self) -> Callable[[int], int]: ...
