"""Barriers of a CTA and of a cluster: ``bar``, ``barrier``, ``barrier.cluster``.

Source: PTX ISA, "bar, barrier", "barrier.cluster". An ``.aligned`` form (all of ``bar``) counts whole warps; the others
count threads. Without a thread count a barrier waits for all threads of the CTA that have not exited.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ptxdsl.ptx.module import Instruction, Operand
from ptxdsl.record import dataclass
from ptxdsl.sim.host import EXIT_WARNINGS, Fault, Group, Wait, WaitsFor, handles
from ptxdsl.sim.layout import LANES
from ptxdsl.sim.machine.cta import Cluster, Cta
from ptxdsl.sim.machine.faults import BARRIER_MISUSE, CLUSTER_MISUSE, SHARED_ID
from ptxdsl.sim.machine.warp import Warp
from ptxdsl.sim.machine.who import numbers_text

if TYPE_CHECKING:
    from ptxdsl.sim.machine.machine import Machine

BARRIERS = 16  # of a CTA
_MOST_PARTIES = 8  # that are remembered of a barrier
_KEY = "barriers"


class NamedBarrier:
    """One of a CTA's sixteen. arrived: threads of the generation under way; expected: its thread count, None for all.

    warps: which lanes of which warps have arrived; result: of a ``.red``, by generation. parties: who met in
    generations with a thread count, and where the first of them arrived.
    """

    __slots__ = (
        "arrived",
        "cta",
        "done_at",
        "expected",
        "generation",
        "id",
        "latest",
        "origin",
        "parties",
        "results",
        "votes",
        "warps",
    )

    def __init__(self, cta: Cta, id: int) -> None:
        self.cta = cta
        self.id = id
        self.generation = 0
        self.latest = self.done_at = 0
        self.results: dict[int, list[bool]] = {}  # of the last generations, the votes
        self.parties: dict[frozenset[Warp], Instruction] = {}
        self._begin()

    def _begin(self) -> None:
        self.arrived = 0
        self.expected: int | None = None
        self.origin: Instruction | None = None
        self.warps: dict[Warp, int] = {}
        self.votes: list[bool] = []

    def arrive(self, group: Group, count: int | None, threads: int, votes: list[bool]) -> None:
        if self.origin is None:
            self.expected, self.origin = count, group.instruction
        elif self.expected != count:
            there = "all threads" if self.expected is None else f"{self.expected} threads"
            here = "all threads" if count is None else f"{count} threads"
            at = group.machine.places.line_text(self.origin)
            raise group.fault(
                BARRIER_MISUSE,
                f"'{group.instruction.opcode}' on barrier {self.id} for {here}, while others have arrived on it for "
                f"{there} at {at}",
                "give a barrier the same thread count everywhere, and each role a barrier id of its own",
                [(self.origin, f"those others arrived on barrier {self.id} here")],
            )
        self.arrived += threads
        self.warps[group.warp] = self.warps.get(group.warp, 0) | group.mask
        self.votes += votes
        self.latest = max(self.latest, group.time)
        group.touch(self)
        if group.machine.watch is not None:
            group.machine.watch.comes(group, self, self.generation)
        if self.expected is not None and self.arrived > self.expected:
            raise group.fault(
                BARRIER_MISUSE,
                f"{self.arrived} threads have arrived on barrier {self.id}, which waits for {self.expected}",
                "the thread count must be the number of threads in all warps that take part",
            )
        self.complete()

    def satisfied(self) -> bool:
        if self.origin is None:
            return False
        if self.expected is None:
            return self.arrived >= self.cta.live_threads
        return self.arrived == self.expected

    def complete(self) -> None:
        """Begins the next generation if this one is complete."""
        if self.satisfied():
            if self.expected is not None and self.origin is not None and len(self.parties) < _MOST_PARTIES:
                self.parties.setdefault(frozenset(self.warps), self.origin)
            self.results[self.generation] = self.votes
            self.results.pop(self.generation - 4, None)
            self.generation += 1
            self.done_at = self.latest
            self._begin()

    def missing(self, used: Container[Warp]) -> tuple[Warp, ...]:
        """The warps that have not arrived; of a barrier with a count, if there are such, those that used it before."""
        found = tuple(w for w in self.cta.warps if w.live & ~self.warps.get(w, 0))
        known = tuple(w for w in self.cta.warps if w in used and w not in self.warps)
        return known or found if self.expected is not None else found

    def describe(self, what: str, used: Container[Warp]) -> WaitsFor:
        expected = self.cta.live_threads if self.expected is None else self.expected
        state = f"{self.arrived} of {expected} threads have arrived"
        return WaitsFor(what, str(self.id), state, key=self, by=self.missing(used))


def barriers_of(group: Group) -> list[NamedBarrier]:
    cta = group.cta
    return group.machine.state(cta, _KEY, lambda: [NamedBarrier(cta, id) for id in range(BARRIERS)])


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
    destination = predicate = None
    if made.name == "bar.red":
        destination, predicate, operands = operands[0], operands[-1], operands[1:-1]
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

    def then(group: Group) -> None:
        named.complete()
        group.after(named.done_at)
        if group.machine.watch is not None:
            group.machine.watch.leaves(group, named, generation)
        if destination is not None:
            yes = named.results[generation]
            if made.operation == "popc":
                group.write(destination, np.full(LANES, sum(yes), np.uint32), "u32")
            else:
                value = all(yes) if made.operation == "and" else any(yes)
                group.write(destination, np.full(LANES, value, np.bool_), "pred")

    if named.generation != generation:
        then(group)
        return None

    def ready() -> bool:
        return named.generation != generation or named.satisfied()

    def describe() -> WaitsFor:
        return named.describe(made.name, group.machine.touches.get(named, {}))

    return Wait(ready, describe, then, at=lambda: named.done_at)


def _shared_ids(machine: Machine, cta: Cta) -> Iterator[tuple[Fault, Instruction]]:
    """Barriers with a thread count at which different warps have met at different times: two roles that use one id. At
    another time they may pair up otherwise."""
    named: list[NamedBarrier] = cta.states.get(_KEY, [])
    for barrier in named:
        (first, here), *others = barrier.parties.items() or [(frozenset(), None)]
        other = next((warps for warps, _ in others if not warps & first), None)
        if here is None or other is None:
            continue
        who, whom = (numbers_text("warp", sorted(w.index for w in warps)) for warps in (first, other))
        yield (
            Fault(
                SHARED_ID,
                f"{who} have met at barrier {barrier.id}, and so have {whom}: warps of both may pair up",
                "give each role a barrier id of its own",
                [(barrier.parties[other], f"{whom} met here")],
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


class ClusterBarrier:
    """A cluster's hardware barrier. arrived: lanes of each warp in the generation under way.

    waiting_for: of each warp the lanes that have arrived and not yet waited, with the generation that they arrived in.
    """

    __slots__ = ("arrived", "cluster", "done_at", "generation", "known", "latest", "pending", "stamp")

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.generation = 0
        self.latest = self.done_at = 0
        self.arrived: dict[Warp, int] = {}
        self.pending: dict[Warp, int] = {}
        self.stamp = (-1, -1)
        self.known = False

    def satisfied(self) -> bool:
        """Whether all threads that have not exited have arrived. Counted again when a thread arrived or exited."""
        stamp = (sum(mask.bit_count() for mask in self.arrived.values()), sum(cta.exits for cta in self.cluster.ctas))
        if stamp != self.stamp:
            self.stamp = stamp
            self.known = bool(self.arrived) and not self.missing()
        return self.known

    def missing(self) -> tuple[Warp, ...]:
        arrived = self.arrived
        return tuple(w for cta in self.cluster.ctas for w in cta.warps if w.live & ~arrived.get(w, 0))

    def complete(self) -> None:
        if self.satisfied():
            self.generation += 1
            self.done_at = self.latest
            self.arrived = {}
            self.stamp = (-1, -1)

    def describe(self) -> WaitsFor:
        arrived = sum(mask.bit_count() for mask in self.arrived.values())
        threads = sum(cta.live_threads for cta in self.cluster.ctas)
        state = f"{arrived} of {threads} threads have arrived"
        return WaitsFor("cluster barrier", "", state, key=self, by=self.missing())


@handles("barrier.cluster.arrive")
def cluster_arrive(group: Group) -> None:
    barrier = _cluster_barrier(group)
    again = barrier.pending.get(group.warp, 0) & group.mask
    if again:
        raise group.fault(
            CLUSTER_MISUSE,
            "a second barrier.cluster.arrive without a barrier.cluster.wait between the two",
            "a thread arrives once, then waits",
        )
    for lanes in (barrier.arrived, barrier.pending):
        lanes[group.warp] = lanes.get(group.warp, 0) | group.mask
    barrier.latest = max(barrier.latest, group.time)
    group.touch(barrier)
    if group.machine.watch is not None:
        group.machine.watch.comes(group, barrier, barrier.generation)
    barrier.complete()


@handles("barrier.cluster.wait")
def cluster_wait(group: Group) -> Wait | None:
    barrier = _cluster_barrier(group)
    warp = group.warp
    if group.mask & ~barrier.pending.get(warp, 0):
        raise group.fault(
            CLUSTER_MISUSE,
            "barrier.cluster.wait without a barrier.cluster.arrive before it",
            "every thread arrives first: barrier.cluster.arrive",
        )
    arrived = barrier.arrived.get(warp, 0) & group.mask
    generation = barrier.generation + (1 if arrived else 0)

    def then(group: Group) -> None:
        barrier.complete()
        group.after(barrier.done_at)
        if group.machine.watch is not None:
            group.machine.watch.leaves(group, barrier, generation - 1)
        barrier.pending[warp] &= ~group.mask

    def ready() -> bool:
        return barrier.generation >= generation or barrier.satisfied()

    if ready():
        then(group)
        return None
    return Wait(ready, barrier.describe, then, at=lambda: barrier.done_at)


def _cluster_barrier(group: Group) -> ClusterBarrier:
    if "aligned" in group.instruction.opcode:
        group.require_whole_warp()
    cluster = group.cta.cluster
    return group.machine.state(cluster, _KEY, lambda: ClusterBarrier(cluster))
