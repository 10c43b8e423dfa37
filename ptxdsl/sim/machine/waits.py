"""Lanes that cannot go on: what the machine keeps of each group that waits, and how lanes are told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxdsl.ptx.module import Instruction
from ptxdsl.sim.machine.warp import FULL, lane_numbers

if TYPE_CHECKING:
    from ptxdsl.sim.host import Wait
    from ptxdsl.sim.machine.group import WarpGroup
    from ptxdsl.sim.machine.polling import Watched

# Why lanes wait.
HANDLER = "handler"  # a handler's Wait
WHOLE = "whole"  # an .aligned instruction waits for the other lanes of its warp
GATHER = "gather"  # a warp collective waits for the lanes that it names
POLL = "poll"  # a loop that only looks waits for memory to change


class NotWhole(Exception):
    """Leaves a handler whose instruction needs all lanes of the warp, when some are elsewhere."""


class Blocked:
    """One group that waits. site: the instruction's, -1 of a loop. members: lanes that a collective names.

    version: of a loop, the machine's when it looked last; watched: the memory that it reads, if that is known.
    """

    __slots__ = ("group", "kind", "mask", "members", "site", "version", "wait", "watched")

    def __init__(
        self, kind: str, group: WarpGroup, site: int, *, wait: Wait | None = None, members: int = 0, version: int = 0
    ) -> None:
        self.kind = kind
        self.group = group
        self.mask = group.mask
        self.site = site
        self.wait = wait
        self.members = members
        self.version = version
        self.watched: Watched | None = None

    def may_have_changed(self, version: int) -> bool:
        """Of a loop: whether what it looks at may be different now."""
        if self.wait is not None and self.wait.ready():
            return True
        return version != self.version and (self.watched is None or self.watched.changed())

    @property
    def instruction(self) -> Instruction:
        return self.group.instruction


def lanes_text(mask: int) -> str:
    """``lane 3``, ``lanes 0-15, 17``, ``all lanes``."""
    if mask == FULL:
        return "all lanes"
    numbers = lane_numbers(mask)
    runs: list[list[int]] = []
    for lane in numbers:
        if runs and lane == runs[-1][1] + 1:
            runs[-1][1] = lane
        else:
            runs.append([lane, lane])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
    return f"lane{'' if len(numbers) == 1 else 's'} {text}" if numbers else "no lane"
