"""Instructions that wait, communicate or start asynchronous work: executed in Python, one handler each.

A handler is registered under a dotted prefix of the opcode (``mbarrier.try_wait``); the longest registered prefix of an
instruction's opcode is the one that runs it. The lanes that execute it together are a Group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Instruction, Operand
from ptxdsl.record import dataclass
from ptxdsl.sim import families

if TYPE_CHECKING:
    from ptxdsl.sim.barriers.mbarrier import Barrier
    from ptxdsl.sim.barriers.named_barrier import NamedBarrier
    from ptxdsl.sim.machine.cta import Cta
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.warp import Warp
    from ptxdsl.sim.matrix.warpgroup import Warpgroup

Lanes = npt.NDArray[np.bool_]


class Group(Protocol):
    """The lanes of one warp that stand before one host instruction. (The class itself, ``group.WarpGroup``, is above
    the handlers.)

    ``read`` gives 32 values, those of inactive lanes unspecified; ``write`` writes the active lanes alone. type is a
    PTX type without dot: ``u32``/``s32``/``b32``/``f32``/``pred`` (bool) … ``b16``/``f16`` give uint16, ``b8`` uint8,
    ``b128`` an array (32, 2) of uint64. The operand of a read may be a Register (special ones too), Immediate, Symbol
    (its address), Address (the address itself, uint64) or Not. ``read_many`` and ``write_many`` do the same for a
    sequence of operands at once, as an array (operands, 32): for instructions with up to 128 registers, gathered from
    the register file in one step. A group may be kept after its handler: an agent reads and writes the lanes'
    registers later.
    """

    machine: Machine
    cta: Cta
    warp: Warp
    instruction: Instruction
    mask: int
    quiet: bool  # to be set by a handler: what it did, if it does not wait, makes nobody ready who waits

    @property
    def lanes(self) -> Lanes: ...
    def read(self, operand: Operand, type: str) -> npt.NDArray[np.generic]: ...
    def write(self, operand: Operand, values: npt.ArrayLike, type: str) -> None: ...
    def read_many(self, operands: Sequence[Operand], type: str) -> npt.NDArray[np.generic]: ...
    def write_many(self, operands: Sequence[Operand], values: npt.ArrayLike, type: str) -> None: ...
    def values(self, operand: Operand, type: str) -> list[int]:
        """The values of the active lanes, in their order."""
        ...

    def common(self, operand: Operand, type: str) -> int | None:
        """The value that all active lanes have, None where they differ: the quickest way to a uniform operand."""
        ...

    def uniform(self, operand: Operand, type: str) -> int:
        """The value that all active lanes have; a fault names the operand where they differ."""
        ...

    def fault(
        self, code: str, message: str, help: str | None = None, at: Sequence[tuple[Instruction, str]] = ()
    ) -> Exception:
        """To be raised: the diagnostic at this instruction's place, with kernel, CTA, warp and lanes. at: instructions
        to show besides, with what is said there."""
        ...

    def require_whole_warp(self) -> None:
        """For ``.aligned`` instructions: waits for, or faults on, lanes of the warp that are elsewhere.

        It may leave the handler by an exception and have it called again: call it before any side effect."""
        ...

    def polled(self, wait: Wait | None = None) -> None:
        """To be called by an instruction that only looked and did not find what it asks for (``mbarrier.test_wait``
        that gives false): the call changed nothing. If the program asks again and again and nothing else changes
        either, its lanes count as waiting: for this ``wait`` (``ready`` and ``describe`` are used), or for memory."""
        ...

    def touch(self, key: object) -> None:
        """Remembers that these lanes arrived on (or otherwise served) the barrier ``key``: a deadlock report tells of
        those who wait for it which warps could still come, and why they do not."""
        ...

    def only(self, mask: int) -> None:
        """Tells a watch that what follows is done by these of the lanes, not by all together."""
        ...

    @property
    def time(self) -> int:
        """The warp's clock, cycles under the cost model of ``timeline``."""
        ...

    def after(self, time: int) -> None:
        """What this instruction found done was done at ``time``: the warp's clock is at least that."""
        ...


class Fault(Exception):
    """An error of the simulated program, raised where no group is at hand: in an agent, or a function that knows none.

    The machine makes the diagnostic of it, at the place of the group whose handler was called, or of the agent's
    ``origin``. ``Group.fault`` is for what a handler finds itself. notes: instructions to show, and what to say there.
    """

    def __init__(
        self, code: str, message: str, help: str | None = None, notes: Sequence[tuple[Instruction, str]] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help
        self.notes = notes


@dataclass(frozen=True)
class WaitsFor:
    """What a blocked group or agent says of itself in a deadlock report.

    what: ``mbarrier``, ``bar.sync``, ``cluster barrier``, ``wgmma group``, … place: names it (``full[1] at shared+8``).
    parity: of an mbarrier wait. state: pending arrivals, bytes, phase in words. key: what is waited for, the object
    given to ``Group.touch``. by: the warps and agents that still have to do something, where that is known (of a named
    barrier the warps that have not arrived); without it, those that have touched ``key``.
    """

    what: str
    place: str
    state: str = ""
    parity: int | None = None
    key: object = None
    by: tuple[Warp | Agent, ...] | None = None


@dataclass(frozen=True)
class Wait:
    """What a handler returns when its group cannot go on yet.

    ready: asked by the scheduler; no side effects. then: called with the group once ready; without it the whole
    instruction is executed again. describe: for reports. timed: a ``try_wait``, that may also come back without
    success; ``give_up`` then is called when nothing else in the machine can move. at: the time (cycles) at which what
    it waits for was done, for the cost model; without it, the clock of whoever made it ready. phase: the mbarrier and
    the parity that a ``try_wait`` of all its lanes waits for. meeting: the named barrier and the generation for whose
    end a ``bar.sync`` waits. product: the warpgroup and the number of the product for which a ``wgmma.wait_group``
    waits.
    """

    ready: Callable[[], bool]
    describe: Callable[[], WaitsFor]
    then: Callable[[Group], Wait | None] | None = None
    give_up: Callable[[Group], None] | None = None
    at: Callable[[], int] | None = None
    phase: tuple[Barrier, int] | None = None
    meeting: tuple[NamedBarrier, int] | None = None
    product: tuple[Warpgroup, int] | None = None


Handler = Callable[[Group], "Wait | None"]
Check = Callable[[Instruction], "str | None"]

# Asked when the last thread of a CTA has exited: what a program must not leave behind, and the instruction to blame.
ExitCheck = Callable[["Machine", "Cta"], "tuple[Fault, Instruction] | None"]

HANDLERS: dict[str, Handler] = {}
CHECKS: dict[str, Check] = {}
EXIT_CHECKS: list[ExitCheck] = []
EXIT_WARNINGS: list[Callable[[Machine, Cta], Iterable[tuple[Fault, Instruction]]]] = []  # asked then too


def handles(*prefixes: str, check: Check | None = None) -> Callable[[Handler], Handler]:
    """Registers a handler. check says before execution what of an instruction is not supported, or None."""

    def register(handler: Handler) -> Handler:
        for prefix in prefixes:
            HANDLERS[prefix] = handler
            if check is not None:
                CHECKS[prefix] = check
        return handler

    return register


def handler_prefix(opcode: str) -> str | None:
    """The longest registered prefix of a dotted opcode."""
    families.load(opcode)
    while opcode not in HANDLERS:
        opcode, dot, _ = opcode.rpartition(".")
        if not dot:
            return None
    return opcode


class Agent(Protocol):
    """Asynchronous work under way (a bulk copy, a wgmma, a tcgen05 pipe): scheduled like a warp.

    unit: what ``--schedule slow:…`` names (``tma``, ``cp.async``, ``wgmma``, ``tcgen05``). origin: the instruction.
    ``step`` does the next part of the work and says whether all is done; it is called only when ``ready``. cycles: what
    the whole work takes under the cost model (``timeline.copy_cycles``), counted from its start, or from when it
    became ready. time: set by the machine before every step: the clock at which that step is done. harmless_at_exit:
    it does not touch its CTA's memory any more, so that the CTA may exit.
    """

    unit: str
    cta: Cta
    origin: Instruction
    cycles: int
    time: int

    @property
    def harmless_at_exit(self) -> bool: ...
    def ready(self) -> bool: ...
    def step(self) -> bool: ...
    def describe(self) -> WaitsFor: ...
