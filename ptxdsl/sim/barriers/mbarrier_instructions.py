"""The instructions on mbarriers: ``mbarrier.*``. Every active lane executes them, on whatever barrier it names.

Source: PTX ISA, "mbarrier.init" … "mbarrier.pending_count". Lanes act in their order. Scope and semantics (.release,
.relaxed, .cluster) change nothing here: memory is sequentially consistent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ptxdsl.ptx.module import Address, Instruction, Operand, Sink
from ptxdsl.record import dataclass
from ptxdsl.sim.barriers.mbarrier import SIZE, Barrier, barriers_of, shared_address
from ptxdsl.sim.barriers.mbarrier_word import token_pending, tokens
from ptxdsl.sim.host import Group, Wait, WaitsFor, handles
from ptxdsl.sim.layout import LANES, RANK_SHIFT, SHARED_WINDOW
from ptxdsl.sim.machine.warp import lane_numbers


@dataclass(frozen=True, slots=True)
class Form:
    """What an opcode says. name: as far as messages need it (``mbarrier.arrive``). space: "" is generic."""

    name: str
    space: str
    complete: bool
    expects: bool
    parity: bool
    blocking: bool

    @property
    def local(self) -> bool:
        """Whether the address is said to be in the CTA's own shared memory."""
        return self.space in ("shared", "shared::cta")


@lru_cache(1024)
def form(opcode: str) -> Form:
    parts = opcode.split(".")
    space = next((part for part in parts if part.startswith("shared")), "")
    return Form(
        ".".join(parts[:2]), space, "noComplete" not in parts, "expect_tx" in parts[2:], "parity" in parts,
        parts[1] == "try_wait",
    )  # fmt: skip


def find(group: Group, made: Form, address: int) -> Barrier:
    """The barrier at an address as this instruction gives it."""
    address = shared_address(made.space, address)
    if made.local and address >> RANK_SHIFT != group.cta.rank:
        group.machine.memory.view(group.cta, made.space, address, SIZE, write=True)  # raises
    return barriers_of(group.machine, group.cta).find(group.cta, address, made.name)


def own(group: Group, made: Form, address: int) -> int:
    """A shared address that must be in the executing CTA."""
    address = shared_address(made.space, address)
    if address >> RANK_SHIFT != group.cta.rank:
        raise group.fault(
            "E1136",
            f"{made.name} on an mbarrier of the CTA of rank {address >> RANK_SHIFT}, executed in the CTA of rank "
            f"{group.cta.rank}",
            "of another CTA's barrier only arrive, arrive_drop, expect_tx and complete_tx are possible; wait on a "
            "barrier in your own shared memory",
        )
    return address


@lru_cache(4096)
def parsed(instruction: Instruction) -> tuple[Form, Operand | None, Operand, Operand | None]:
    """The form, the destination (None if it is not wanted), the address, and the operand that follows it."""
    destination: Operand | None = None
    operands = instruction.operands
    if not isinstance(operands[0], Address):
        destination, *rest = operands
        operands = tuple(rest)
    if isinstance(destination, Sink):
        destination = None
    return form(instruction.opcode), destination, operands[0], operands[1] if len(operands) > 1 else None


@handles("mbarrier.init")
def init(group: Group) -> None:
    made = form(group.instruction.opcode)
    table = barriers_of(group.machine, group.cta)
    counts = group.values(group.instruction.operands[1], "u32")
    addresses = group.values(group.instruction.operands[0], "u64")
    for lane, address, count in zip(lane_numbers(group.mask), addresses, counts, strict=True):
        group.only(1 << lane)
        barrier = table.init(group.cta, own(group, made, address), count, group.instruction)
        barrier.initialiser = (group.warp, lane)
        group.warp.unfenced += 1


@handles("mbarrier.inval")
def inval(group: Group) -> None:
    made = form(group.instruction.opcode)
    table = barriers_of(group.machine, group.cta)
    for lane, address in zip(lane_numbers(group.mask), group.values(group.instruction.operands[0], "u64"), strict=True):
        group.only(1 << lane)
        table.inval(group.cta, own(group, made, address))


@handles("mbarrier.expect_tx", "mbarrier.complete_tx")
def transactions(group: Group) -> None:
    made, _, address_operand, size_operand = parsed(group.instruction)
    assert size_operand is not None
    expecting = made.name == "mbarrier.expect_tx"
    sizes = group.values(size_operand, "u32")
    for address, size in zip(group.values(address_operand, "u64"), sizes, strict=True):
        barrier = find(group, made, address)
        group.touch(barrier)
        (barrier.expect_tx if expecting else barrier.complete_tx)(size, group.time)


@handles("mbarrier.arrive", "mbarrier.arrive_drop")
def arrive(group: Group) -> None:
    made, destination, address_operand, number_operand = parsed(group.instruction)
    drop = made.name == "mbarrier.arrive_drop"
    address = group.common(address_operand, "u64")
    number = 1 if number_operand is None else group.common(number_operand, "u32")
    if address is not None and number is not None:
        barrier = _arrivable(group, made, address, destination)
        count, expect = (1, number) if made.expects else (number, 0)
        phase = barrier.phase
        first = barrier.arrive(
            group.mask.bit_count(), count, complete=made.complete, drop=drop, expect=expect, time=group.time
        )
        if destination is not None:
            group.write(destination, tokens(first, group.mask, count), "b64")
        group.quiet = barrier.phase == phase
        return
    lanes = lane_numbers(group.mask)
    numbers = [1] * len(lanes) if number_operand is None else group.values(number_operand, "u32")
    states = np.zeros(LANES, np.uint64)
    for lane, address, number in zip(lanes, group.values(address_operand, "u64"), numbers, strict=True):
        group.only(1 << lane)
        barrier = _arrivable(group, made, address, destination)
        count, expect = (1, number) if made.expects else (number, 0)
        states[lane] = barrier.arrive(1, count, complete=made.complete, drop=drop, expect=expect, time=group.time)
    if destination is not None:
        group.write(destination, states, "b64")


def _arrivable(group: Group, made: Form, address: int, destination: Operand | None) -> Barrier:
    barrier = find(group, made, address)
    if destination is not None and barrier.address >> RANK_SHIFT != group.cta.rank:
        raise group.fault(
            "E1136",
            f"{made.name} on {barrier.place} cannot return a state: the barrier is in another CTA",
            "write _ in the state's place",
        )
    group.touch(barrier)
    if group.machine.trace is not None:
        group.machine.event("arrive", barrier.place, group.instruction.line)
    return barrier


@handles("mbarrier.pending_count")
def pending_count(group: Group) -> None:
    count, state = group.instruction.operands
    values = np.zeros(LANES, np.uint32)
    for lane, value in zip(lane_numbers(group.mask), group.values(state, "b64"), strict=True):
        values[lane] = token_pending(value)
    group.write(count, values, "u32")


@handles("mbarrier.test_wait", "mbarrier.try_wait")
def wait(group: Group) -> Wait | None:
    """True for the lanes whose phase is complete, at once if there are any; else try_wait waits for the first."""
    made, result, address_operand, what_operand = parsed(group.instruction)
    assert what_operand is not None
    kind = "u32" if made.parity else "b64"
    address, what = group.common(address_operand, "u64"), group.common(what_operand, kind)
    if address is not None and what is not None:
        return _wait_together(group, made, result, address, what)
    pairs = [
        (_waitable(group, made, address), what)
        for address, what in zip(group.values(address_operand, "u64"), group.values(what_operand, kind), strict=True)
    ]
    found = np.zeros(LANES, np.bool_)
    seen: dict[Barrier, int] = {}  # by which lanes
    for lane, (barrier, what) in zip(lane_numbers(group.mask), pairs, strict=True):
        if _complete(group, made, barrier, what):
            seen[barrier] = seen.get(barrier, 0) | 1 << lane
            found[lane] = True
    if not found.any():
        return _later(group, made, result, pairs)
    for barrier, lanes in seen.items():
        group.only(lanes)
        _saw(group, barrier)
    if result is not None:
        group.write(result, found, "pred")
    return None


def _wait_together(group: Group, made: Form, result: Operand | None, address: int, what: int) -> Wait | None:
    """All lanes wait for one phase of one barrier."""
    barrier = _waitable(group, made, address)
    if _complete(group, made, barrier, what):
        _saw(group, barrier)
        if result is not None:
            group.write(result, True, "pred")
        group.quiet = True
        return None
    return _later_together(group, made, result, barrier, what)


def _later_together(group: Group, made: Form, result: Operand | None, barrier: Barrier, what: int) -> Wait | None:
    kept = barrier.waits.get((group.instruction, what))
    if kept is not None:
        return kept
    address = barrier.address if made.space else barrier.address + SHARED_WINDOW

    def again(group: Group) -> Wait | None:
        return _wait_together(group, made, result, address, what)

    later = _later(group, made, result, [(barrier, what)], again)
    if later is not None and made.parity:  # else a state, of which there are ever more
        barrier.waits[group.instruction, what] = later
    return later


def waits_for(group: Group, barrier: Barrier, parity: int) -> Wait:
    """How a group waits, all lanes for one phase of a barrier, at its ``try_wait``."""
    made, result, _, _ = parsed(group.instruction)
    later = _later_together(group, made, result, barrier, parity)
    assert later is not None
    return later


def _saw(group: Group, barrier: Barrier) -> None:
    barrier.saw(group.warp, group.mask, group.instruction)
    group.after(barrier.done_at)
    if group.machine.watch is not None:
        group.machine.watch.saw(group, barrier)
    if group.machine.trace is not None:
        group.machine.event("seen", barrier.place, group.instruction.line)


def _waitable(group: Group, made: Form, address: int) -> Barrier:
    address = own(group, made, address)
    return barriers_of(group.machine, group.cta).find(group.cta, address, made.name)


def _complete(group: Group, made: Form, barrier: Barrier, what: int) -> bool:
    if not made.parity:
        return barrier.completed_token(what)
    if what > 1:
        raise group.fault(
            "E1138", f"{made.name}.parity on {barrier.place} with parity {what}; a phase parity is 0 or 1"
        )
    return barrier.completed(what)


def _later(
    group: Group,
    made: Form,
    result: Operand | None,
    pairs: list[tuple[Barrier, int]],
    then: Callable[[Group], Wait | None] | None = None,
) -> Wait | None:
    """None of the (barrier, parity or state) of the lanes is complete."""
    barrier, what = pairs[0]
    if made.parity:
        if len(pairs) == 1:

            def ready() -> bool:
                return barrier.phase & 1 != what

        else:

            def ready() -> bool:
                return any(barrier.completed(parity) for barrier, parity in pairs)

        parity = what
    else:

        def ready() -> bool:
            return any(barrier.completed_token(state) for barrier, state in pairs)

        parity = barrier.phase & 1

    def describe() -> WaitsFor:
        return barrier.describe(parity)

    def give_up(group: Group) -> None:
        if result is not None:
            group.write(result, False, "pred")

    if made.blocking:
        alone = (barrier, what) if made.parity and then is not None else None
        return Wait(ready, describe, then, give_up=give_up, phase=alone)
    give_up(group)
    group.polled(Wait(ready, describe))
    return None
