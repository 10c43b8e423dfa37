"""What an instruction's accesses are in the PTX memory model: weak or strong, with acquire and release or without.

Source: PTX ISA, "Memory Consistency Model" (operation types, release and acquire patterns), "ld", "st", "atom", "red",
"fence". ``.volatile`` is ``.relaxed`` with the widest scope; ``atom`` and ``red`` without semantics are relaxed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Immediate, Instruction
from ptxdsl.record import dataclass

# The ISA does not say that these order memory, and programs rely on it; of ``elect.sync`` they do not.
_COLLECTIVES = frozenset(("shfl", "vote", "match", "redux"))
_STRONG = frozenset(("relaxed", "acquire", "release", "acq_rel", "volatile", "mmio"))


@dataclass(frozen=True, slots=True)
class Kind:
    """reads, writes: memory. fence: orders what is around it. meets: the lanes of a warp."""

    reads: bool = False
    writes: bool = False
    strong: bool = False
    acquires: bool = False
    releases: bool = False
    fence: bool = False
    meets: bool = False


_NOTHING = Kind()


@lru_cache(4096)
def kind(opcode: str) -> Kind:
    first, *parts = opcode.split(".")
    said = _STRONG.intersection(parts)
    acquires = not said.isdisjoint(("acquire", "acq_rel"))
    releases = not said.isdisjoint(("release", "acq_rel"))
    if first in _COLLECTIVES or opcode.startswith(("bar.warp", "barrier.warp")):
        return Kind(meets=True)
    if first == "ld":
        return Kind(reads=True, strong=bool(said), acquires=acquires)
    if first == "st" and parts[0] != "async" and parts[0] != "bulk":
        return Kind(writes=True, strong=bool(said), releases=releases)
    if first in ("atom", "red"):
        # What red.async does is atomic in each element as well.
        return Kind(reads=first == "atom", writes=True, strong=True, acquires=acquires, releases=releases)
    if opcode.startswith("cp.reduce.async"):
        return Kind(reads=True, writes=True, strong=True)
    if first in ("fence", "membar") and parts[0] not in ("proxy", "mbarrier_init"):
        return Kind(
            fence=True,
            acquires=parts[0] != "release",
            releases=parts[0] != "acquire",
        )
    return _NOTHING


class Sites:
    """The instructions of a program by their numbers. strong: which of them are; orders: whether there are fences,
    acquire and release operations, or collectives of warps; most_left: how many groups of asynchronous work a wait
    leaves under way at most."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self.instructions = instructions
        self.kinds = [kind(instruction.opcode) for instruction in instructions]
        self.strong: npt.NDArray[Any] = np.array([found.strong for found in self.kinds], bool)
        self.orders = any(found.fence or found.acquires or found.releases or found.meets for found in self.kinds)
        self.most_left = max((left(i) for i in instructions if "wait_group" in i.parts), default=0)
        self.numbers = {id(instruction): number for number, instruction in enumerate(instructions)}

    def of(self, instruction: Instruction) -> int:
        return self.numbers[id(instruction)]


def left(instruction: Instruction) -> int:
    """How many groups a wait leaves under way."""
    number = instruction.operands[0]
    assert isinstance(number, Immediate)
    return number.value
