"""Loops that only look: recognised by a warp that comes back to the same place with the same registers.

A loop that reads memory, a clock or a barrier until something changes has no end by itself. When its lanes come back
with nothing changed that decides what they do, and changed nothing themselves, running them again is of no use before
something else in the machine has happened: they count as waiting. (Clocks have changed, and what counts the rounds.)
That makes a deadlock visible at once, and lets others come on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Address, Instruction, Pair, Register, Vector
from ptxdsl.record import dataclass
from ptxdsl.sim.host import Wait
from ptxdsl.sim.layout import FUEL, LAUNCH, SHARED_WINDOW, offset
from ptxdsl.sim.machine.group import WarpGroup
from ptxdsl.sim.machine.memory import SHARED_SPACES, SPACES, AccessFault, Bytes, access_bytes
from ptxdsl.sim.machine.waits import POLL, Blocked
from ptxdsl.sim.machine.warp import FUEL_WORD, MASK_WORD, Warp, lanes_of

if TYPE_CHECKING:
    from ptxdsl.sim.machine.machine import Machine
    from ptxdsl.sim.machine.memory import Memory
    from ptxdsl.sim.machine.turns import Turns
    from ptxdsl.sim.translate.slots import Slot
    from ptxdsl.sim.translate.warp_code import WarpCode

CLOCK_QUAD = offset(LAUNCH, "clock") // 8
WRITES_QUAD = offset(LAUNCH, "writes") // 8

# Instructions of compiled code that access memory: those whose address tells what a loop looks at, and others.
_READS = frozenset(("ld", "atom"))
_OTHER_ACCESSES = frozenset(("ldu", "st", "red", "stu"))
_MOST_WATCHED = 32  # addresses

_LOOP_BLOCKS = 64  # a loop that only looks has at most this many blocks
_MOST_PATIENCE = 256  # turns between looks at a long loop that does not only look


@dataclass(slots=True, eq=False)
class Snapshot:
    """Registers of some lanes; ``version``: what had happened in the machine when it was taken."""

    state: bytes
    version: int


class Snapshots:
    """Takes them: of the registers that decide what the lanes do next (``program.deciding``), but for those that derive
    from clocks."""

    def __init__(self, code: WarpCode) -> None:
        self._code = code
        self.reads_clock = bool(code.program.clock_registers)
        self._known: dict[frozenset[int], list[tuple[int, npt.NDArray[np.int64]]]] = {}

    def take(self, warp: Warp, mask: int, version: int) -> Snapshot:
        lanes = lanes_of(mask)
        places = warp.pc[lanes]
        parts = [places.tobytes()]
        for size, numbers in self._numbers(frozenset(places.tolist())):
            table: npt.NDArray[Any] = warp.registers.view(f"u{size}")
            parts.append(table[numbers[:, lanes]].tobytes())
        return Snapshot(b"".join(parts), version)

    def _numbers(self, blocks: frozenset[int]) -> list[tuple[int, npt.NDArray[np.int64]]]:
        """By size the numbers of the registers' elements in the register file, of lanes that stand at these blocks."""
        found = self._known.get(blocks)
        if found is None:
            program = self._code.program
            deciding = [program.deciding.of(block) for block in blocks]
            slots = [
                slot
                for name, slot in self._code.slots.items()
                if name not in program.clock_registers and any(some is None or name in some for some in deciding)
            ]
            found = self._known[blocks] = [
                (size, _element_numbers(group, size))
                for size in (2, 4, 8)
                if (group := [slot for slot in slots if np.dtype(slot.dtype).itemsize == size])
            ]
        return found


def _element_numbers(slots: list[Slot], size: int) -> npt.NDArray[np.int64]:
    """Of each slot (each row of a wide one) and lane the number of its element in the register file."""
    starts = np.array([slot.offset // size for slot in slots])
    return starts[:, None] + np.arange(32)


@dataclass(slots=True, eq=False)
class Poll:
    """A place at which lanes looked and found nothing: the state of the warp then, None the first time."""

    snapshot: Snapshot | None = None


class Polling:
    """Finds the loops of one machine's warps."""

    def __init__(self, machine: Machine, turns: Turns) -> None:
        self.machine = machine
        self.turns = turns

    def looked(self, warp: Warp, group: WarpGroup, site: int) -> None:
        """A host instruction looked and found nothing. If nothing has changed since it did so last, its lanes wait."""
        machine = self.machine
        if warp.poll_changes != warp.changes:
            warp.poll_changes = warp.changes
            warp.polls.clear()
        mask = group.mask
        key = (site, mask)
        poll = warp.polls.get(key)
        if poll is None:
            warp.polls[key] = Poll()
            return
        version = machine.version
        snapshot = machine.snapshots.take(warp, mask, version)
        before = poll.snapshot
        poll.snapshot = snapshot
        if before is None or before.state != snapshot.state or before.version != version:
            return
        wait = group.polling if isinstance(group.polling, Wait) else None
        self._wait(warp, Blocked(POLL, group, site, wait=wait, version=version))

    def _wait(self, warp: Warp, blocked: Blocked) -> None:
        warp.block(blocked.mask)
        warp.waits.append(blocked)
        self.machine.pollers[warp] = None
        if self.machine.trace is not None:
            self.turns.trace(warp, blocked, "wait")

    def out_of_fuel(self, warp: Warp, writes: int) -> int:
        """Many blocks without a host instruction: a long computation, or a loop that waits for memory.

        writes: the counter of memory's changes before them. Gives FUEL, or how a look at the loop ended (``probe``).
        """
        if self.machine.launch_quads[WRITES_QUAD] != writes:
            return FUEL
        if warp.patience_left:
            warp.patience_left -= 1
            return FUEL
        code = self.probe(warp, self.machine.version)
        if code == FUEL:
            warp.patience = min(2 * warp.patience + 1, _MOST_PATIENCE)
            warp.patience_left = warp.patience
        return code

    def probe(self, warp: Warp, version: int) -> int:
        """Runs block by block until the warp is back where it was. If its registers are too and memory is unchanged,
        its lanes wait: -1. Else how the last block ended."""
        machine = self.machine
        runnable = warp.live & ~warp.blocked
        start = machine.snapshots.take(warp, runnable, version)
        places = warp.pc.tobytes()
        moved = 0
        blocks = []
        quads = machine.launch_quads
        writes = quads[WRITES_QUAD]
        code = FUEL
        for _ in range(_LOOP_BLOCKS):
            before = warp.pc.tolist()
            quads[CLOCK_QUAD] = warp.clock
            warp.words[FUEL_WORD] = 1
            code = self.turns.run(warp.address)
            self.turns.count(warp)
            if code != FUEL or quads[WRITES_QUAD] != writes:
                break
            ran = warp.words[MASK_WORD]
            moved |= ran
            blocks.append(before[(ran & -ran).bit_length() - 1])
            if warp.pc.tobytes() == places:
                if machine.snapshots.take(warp, runnable, version).state != start.state:
                    break
                instructions = [i for block in blocks for i in machine.program.blocks[block].instructions]
                group = WarpGroup(machine, warp, min(instructions, key=_unlikely), moved)
                blocked = Blocked(POLL, group, -1, version=version)
                blocked.watched = watch(group, instructions)
                self._wait(warp, blocked)
                warp.patience = warp.patience_left = 0
                return -1
        return code


def watch(group: WarpGroup, instructions: list[Instruction]) -> Watched | None:
    """The memory that a loop reads, if its addresses are known: as long as that is unchanged, so is what the loop does.

    None where it is not known, or is more than a few addresses.
    """
    memory, cta = group.machine.memory, group.cta
    written = {name for i in instructions for name in _targets(i)}
    found: dict[tuple[str, int, int], Bytes] = {}
    for instruction in instructions:
        first, *parts = instruction.parts
        if first in _OTHER_ACCESSES:
            return None
        if first not in _READS:
            continue
        space = next((part for part in parts if part in SPACES), "generic")
        if space in ("const", "param"):
            continue
        address = next((o for o in instruction.operands if isinstance(o, Address)), None)
        size = access_bytes(instruction.parts)
        if address is None or space == "local" or not size:
            return None
        base = address.base
        if isinstance(base, Register) and (base.name in written or base.name not in group.machine.code.slots):
            return None
        for value in set(group.values(address, "u64")):
            if (space, value, size) not in found:
                if len(found) == _MOST_WATCHED:
                    return None
                try:
                    found[space, value, size] = memory.view(cta, space, value, size, write=False)
                except AccessFault:
                    return None
    return Watched(found) if found else None


def _targets(instruction: Instruction) -> list[str]:
    first = instruction.operands[0] if instruction.operands else None
    if isinstance(first, Register):
        return [first.name]
    if isinstance(first, Vector):
        return [item.name for item in first.items if isinstance(item, Register)]
    if isinstance(first, Pair):
        return [item.name for item in (first.first, first.second) if isinstance(item, Register)]
    return []


class Watched:
    """Pieces of memory, by state space, address and size, and what they held."""

    __slots__ = ("before", "pieces")

    def __init__(self, pieces: dict[tuple[str, int, int], Bytes]) -> None:
        self.pieces = pieces
        self.before = self._read()

    def text(self, memory: Memory) -> str:
        """``byte 0 of argument 'flag' is 0``; nothing where there are several."""
        if len(self.pieces) > 1:
            return ""
        ((space, address, _),) = self.pieces
        if space not in SHARED_SPACES and SHARED_WINDOW <= address < SHARED_WINDOW + (1 << 32):
            space, address = "shared", address - SHARED_WINDOW
        region = None if space in SHARED_SPACES else memory.region(address)
        place = memory.shared.place(address) if region is None else f"byte {address - region.start} of {region.name}"
        return f"{place} is {int.from_bytes(self.before, 'little')}"

    def _read(self) -> bytes:
        return b"".join([piece.tobytes() for piece in self.pieces.values()])

    def changed(self) -> bool:
        return self._read() != self.before


def _unlikely(instruction: Instruction) -> int:
    """How unlikely it is that a loop waits for what this instruction reads."""
    first, *rest = instruction.parts
    if first in ("atom", "ld"):
        return 0 if first == "atom" or not {"volatile", "acquire", "relaxed", "mmio"}.isdisjoint(rest) else 1
    return 2
