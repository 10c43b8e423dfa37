"""The barriers of a CTA: ``bar``, ``barrier``.

Source: PTX ISA, "bar, barrier". An ``.aligned`` form (all of ``bar``) counts whole warps; the others count threads.
Without a thread count a barrier waits for all threads of the CTA that have not exited.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ptxdsl.ptx.module import Instruction, Operand
from ptxdsl.record import dataclass
from ptxdsl.sim.barriers.named_barrier import BARRIERS, NamedBarrier, barriers_of, barriers_used
from ptxdsl.sim.host import EXIT_WARNINGS, Fault, Group, Wait, WaitsFor, handles
from ptxdsl.sim.layout import LANES
from ptxdsl.sim.machine.cta import Cta
from ptxdsl.sim.machine.faults import BARRIER_MISUSE, SHARED_ID
from ptxdsl.sim.machine.warp import lane_numbers
from ptxdsl.sim.machine.who import numbers_text

if TYPE_CHECKING:
    from ptxdsl.sim.machine.machine import Machine


@dataclass(frozen=True, slots=True)
class Form:
    """What a ``bar``/``barrier`` opcode says. operation: ``sync``, ``arrive``, ``popc``, ``and``, ``or``."""

    operation: str
    aligned: bool
    name: str


@lru_cache(256)
def form(opcode: str) -> Form:
    parts = opcode.split(".")
    aligned = parts[0] == "bar" or "aligned" in parts
    if "red" in parts:
        operation = next(part for part in parts if part in ("popc", "and", "or"))
        return Form(operation, aligned, "bar.red")
    operation = "arrive" if "arrive" in parts else "sync"
    return Form(operation, aligned, f"bar.{operation}")


@handles("bar.sync", "bar.arrive", "bar.red", "bar.cta", "barrier.sync", "barrier.arrive", "barrier.red", "barrier.cta")
def barrier(group: Group) -> Wait | None:
    made = form(group.instruction.opcode)
    if made.aligned:
        group.require_whole_warp()
    operands: tuple[Operand, ...] = group.instruction.operands
    predicate = None
    if made.name == "bar.red":
        predicate, operands = operands[-1], operands[1:-1]
    if not made.aligned and any(group.common(operand, "u32") is None for operand in operands):
        raise group.fault(
            BARRIER_MISUSE,
            f"'{group.instruction.opcode}' with several barriers or thread counts in the lanes of one warp",
        )
    number = group.uniform(operands[0], "u32")
    count = group.uniform(operands[1], "u32") if len(operands) > 1 else None
    _check(group, number, count, made)
    named = barriers_of(group)[number]
    # What counts is the warp, also one with fewer threads; lanes of a divergent warp count for themselves.
    whole = group.mask == group.warp.live
    threads = group.mask.bit_count()
    if whole and count is not None:
        threads = LANES
    votes: list[bool] = []
    if predicate is not None:
        votes = group.read(predicate, "pred")[group.lanes].tolist()
    generation = named.generation
    named.arrive(group, count, threads, votes)
    if made.operation == "arrive":
        return None

    if named.generation != generation:
        _go_on(group, named, generation)
        return None
    return waits_for(group, named, generation)


def waits_for(group: Group, named: NamedBarrier, generation: int) -> Wait:
    """How a group that has arrived waits for the end of a generation."""
    name = form(group.instruction.opcode).name

    def then(group: Group) -> None:
        named.complete()
        _go_on(group, named, generation)

    def ready() -> bool:
        return named.generation != generation or named.satisfied()

    def describe() -> WaitsFor:
        return named.describe(name, group.machine.touches.get(named, {}))

    meeting = (named, generation) if name == "bar.sync" else None
    return Wait(ready, describe, then, at=lambda: named.done_at, meeting=meeting)


def _go_on(group: Group, named: NamedBarrier, generation: int) -> None:
    """A generation has ended that the group has waited for."""
    group.after(named.done_at)
    if group.machine.watch is not None:
        group.machine.watch.leaves(group, named, generation)
    made = form(group.instruction.opcode)
    if made.name == "bar.red":
        destination, yes = group.instruction.operands[0], named.results[generation]
        if made.operation == "popc":
            group.write(destination, np.full(LANES, sum(yes), np.uint32), "u32")
        else:
            value = all(yes) if made.operation == "and" else any(yes)
            group.write(destination, np.full(LANES, value, np.bool_), "pred")


def _shared_ids(machine: Machine, cta: Cta) -> Iterator[tuple[Fault, Instruction]]:
    """Barriers with a thread count at which different warps have met at different times: two roles that use one id. At
    another time they may pair up otherwise."""
    for barrier in barriers_used(cta):
        (first, here), *others = barrier.met.items() or [(0, None)]
        other = next((warps for warps, _ in others if not warps & first), None)
        if here is None or other is None:
            continue
        who, whom = (numbers_text("warp", list(lane_numbers(warps))) for warps in (first, other))
        yield (
            Fault(
                SHARED_ID,
                f"{who} have met at barrier {barrier.id}, and so have {whom}: warps of both may pair up",
                "give each role a barrier id of its own",
                [(barrier.met[other], f"{whom} met here")],
            ),
            here,
        )


EXIT_WARNINGS.append(_shared_ids)


def _check(group: Group, number: int, count: int | None, made: Form) -> None:
    if number >= BARRIERS:
        raise group.fault(
            BARRIER_MISUSE,
            f"'{group.instruction.opcode}' names barrier {number}; a CTA has barriers 0 to {BARRIERS - 1}",
        )
    if count is None:
        if made.operation == "arrive":
            raise group.fault(BARRIER_MISUSE, f"'{group.instruction.opcode}' needs a thread count")
        return
    threads = len(group.cta.warps) * LANES
    if count == 0 or count % LANES or count > threads:
        raise group.fault(
            BARRIER_MISUSE,
            f"'{group.instruction.opcode}' on barrier {number} for {count} threads: the count must be a multiple of "
            f"{LANES}, and the CTA has {threads} threads",
        )
