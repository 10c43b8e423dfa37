"""Which loops are rings, and by how much to unroll them: the rule of ``rings.py``, found without changing anything.

A carried value is a *ring index* where every path through the body takes it through the same number of ``pipe.step``.
Stepped once, it comes round after as many turns as the pipeline has stages; stepped a multiple of the stage count
(an inner loop whose trip count is known), it is the same at every turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import lcm

from ptxdsl.simplify import carried_inits, carried_params
from ptxdsl.tir import TERMINATORS, Block, Const, Op, Value

# The unrolled loop should stay in the instruction cache nearest to its scheduler: 12 KiB, 16 bytes an instruction
# (Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, 2018). One operation of the IR is
# about one instruction, one on a vector as many as it has lanes.
MAX_OPERATIONS = 768

# Several rings in one loop share an unrolling by the least common multiple of their stages up to this.
MAX_COMMON_STAGES = 8

# Fewer stages keep the counter: a ring of one has none, and of two it costs less than the second copy of the body.
LEAST_STAGES = 3


@dataclass(frozen=True)
class Ring:
    """A ring index among the values that a loop carries. ``advance``: steps a turn."""

    position: int
    stages: int
    advance: int

    @property
    def period(self) -> int | None:
        """After how many turns the index is the same again; None where the rule does not cover it."""
        if self.advance % self.stages == 0:
            return 1
        return self.stages if self.advance == 1 else None


@dataclass(frozen=True)
class Plan:
    """``copies`` of the body a turn. ``fixed``: by position among the carried values, the rings whose index is constant
    in each copy."""

    copies: int
    fixed: dict[int, Ring] = field(default_factory=dict)


class Planner:
    """Plans the loops of one kernel; what it finds about a loop it remembers."""

    def __init__(self) -> None:
        self._rings: dict[Op, list[Ring]] = {}
        self._weights: dict[Op, int] = {}

    def plan(self, loop: Op, inits: list[Value]) -> Plan:
        """What to do with a loop that is entered with these carried values."""
        rings = []
        for ring in self.rings(loop):
            init = inits[ring.position]
            if isinstance(init, Const) and 0 <= init.value < ring.stages:
                rings.append(ring)
        copies = self.copies(loop, rings)
        return Plan(copies, {r.position: r for r in rings if r.period and copies % r.period == 0})

    def rings(self, loop: Op) -> list[Ring]:
        if loop not in self._rings:
            self._rings[loop] = _Steps(self, loop).rings()
        return self._rings[loop]

    def copies(self, loop: Op, rings: list[Ring]) -> int:
        distinct = sorted({r.period for r in rings if r.period and r.period > 1}, reverse=True)
        candidates = [p for p in distinct if p >= LEAST_STAGES]
        if candidates and len(distinct) > 1 and lcm(*distinct) <= MAX_COMMON_STAGES:
            candidates.insert(0, lcm(*distinct))
        return next((copies for copies in candidates if copies * self.weight(loop) <= MAX_OPERATIONS), 1)

    def weight(self, op: Op) -> int:
        """The size of what is inside an operation; an inner loop that may be unrolled itself counts as unrolled."""
        if op not in self._weights:
            self._weights[op] = sum(self.size(inner) for block in op.blocks for inner in block.ops)
        return self._weights[op]

    def size(self, op: Op) -> int:
        if op.name in TERMINATORS or op.name == "pipe.step":
            return 0
        own = max((v.ty.lanes for v in (*op.results, *op.operands)), default=1)
        if op.name in ("for", "loop"):
            return own + self.copies(op, self.rings(op)) * self.weight(op)
        return own + self.weight(op)


class _Steps:
    """One walk over a loop's body: how many steps each value is away from a carried value of the turn's start."""

    def __init__(self, planner: Planner, loop: Op) -> None:
        self.planner = planner
        self.loop = loop
        self.away: dict[Value, tuple[int, int]] = {p: (i, 0) for i, p in enumerate(carried_params(loop))}
        self.stages: dict[int, int] = {}
        self.spoilt: set[int] = set()  # stepped with two different stage counts
        self.handed: dict[Op, list[list[Value]]] = {}
        self.walk(loop.blocks[0], loop)

    def rings(self) -> list[Ring]:
        found = []
        repeats = self.handed.get(self.loop, [])
        for position, stages in self.stages.items():
            advances = {self.away.get(values[position]) for values in repeats}
            if position in self.spoilt or len(advances) != 1:
                continue
            (advance,) = advances
            if advance is not None and advance[0] == position:
                found.append(Ring(position, stages, advance[1]))
        return found

    def step(self, position: int, stages: int) -> None:
        if self.stages.setdefault(position, stages) != stages:
            self.spoilt.add(position)

    def walk(self, block: Block, owner: Op) -> None:
        for op in block.ops:
            if op.name == "pipe.step" and op.operands[0] in self.away:
                position, steps = self.away[op.operands[0]]
                self.step(position, op.attrs["stages"])
                self.away[op.results[0]] = (position, steps + 1)
            elif op.name == "yield":
                self.handed.setdefault(owner, []).append(op.operands)
            elif op.name == "leave":
                if op.attrs["target"] is not self.loop:
                    self.handed.setdefault(op.attrs["target"], []).append(op.operands)
            elif op.name == "repeat":
                if op.attrs["target"] is self.loop:
                    self.handed.setdefault(self.loop, []).append(op.operands)
            elif op.blocks:
                for inner in op.blocks:
                    self.walk(inner, op)
                self.join(op)

    def join(self, op: Op) -> None:
        """What the results are: the same from every end, or an inner ring's turns."""
        if op.name == "for":
            self.inner_rings(op)
        elif op.name != "loop" or op in self.handed:
            for i, result in enumerate(op.results):
                ends = {self.away.get(values[i]) for values in self.handed.get(op, [])}
                end = ends.pop() if len(ends) == 1 else None
                if end is not None:
                    self.away[result] = end

    def inner_rings(self, op: Op) -> None:
        trips = trip_count(op)
        if trips is None:
            return
        inits = carried_inits(op)
        for ring in self.planner.rings(op):
            start = self.away.get(inits[ring.position])
            if start is not None:
                self.step(start[0], ring.stages)
                self.away[op.results[ring.position]] = (start[0], start[1] + ring.advance * trips)


def trip_count(loop: Op) -> int | None:
    """Of a ``for`` over a constant range that ends in no other way than by its exhaustion."""
    start, stop = loop.operands[:2]
    if not (isinstance(start, Const) and isinstance(stop, Const)) or leaves(loop.blocks[0], loop):
        return None
    first, last = start.value, stop.value
    if not loop.attrs["signed"]:
        mask = (1 << start.ty.bits) - 1
        first, last = first & mask, last & mask
    return len(range(first, last, loop.attrs["step"]))


def leaves(block: Block, loop: Op) -> bool:
    """Whether something in a block ends the loop early."""
    return any(
        (op.name == "leave" and op.attrs["target"] is loop) or any(leaves(inner, loop) for inner in op.blocks)
        for op in block.ops
    )
