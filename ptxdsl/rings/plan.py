"""Which loops are rings, and by how much to unroll them: the rule of ``unroll.py``, found without changing anything.

**The form.** Measured on an H200, a bare handshake of two warps takes 55 cycles a stage where the loop has nothing but
waits and arrives, and 70 to 80 where the end of the range is tested after each stage: the test lies on the way from one
barrier to the next. So a ``for`` becomes a loop over whole turns without tests between the stages, and the remainder,
less than a turn, straight code behind it with a test before each stage. In order of preference, for a pipeline of S
stages (of several, their least common multiple):

1. two turns of the ring in one, 4 S - 1 copies of the body with the remainder: the phase is a constant too. For
   S = 2 up to MAX_TWO_STAGES operations in all copies together, for S = 3 and 4 up to MAX_CONSTANT_PHASE.
2. S > 2: one turn, 2 S - 1 copies, the phase flips once a turn; up to MAX_OPERATIONS.
3. S > 2: one turn with a test for the end after each copy, S copies, no remainder; up to MAX_OPERATIONS. ``while``
   loops, which have no trip count, have this form or the next.
4. the counter: index and phase in registers. A ring of one stage has no index, and is left alone.

Known trip counts need only the remainder that they leave, and no loop if it had one turn.

**The rings.** A carried value is a *ring index* where every path through the body takes it through the same number of
``pipe.step``. Stepped once, it comes round after as many turns as the pipeline has stages; stepped a multiple of the
stage count (an inner loop whose trip count is known), it is the same at every turn.
"""

from __future__ import annotations

from math import lcm

from ptxdsl.record import dataclass, field
from ptxdsl.tir import TERMINATORS, Block, Const, Op, Value
from ptxdsl.tir.simplify import carried_inits, carried_params

# The unrolled loop should stay in the instruction cache nearest to its scheduler: 12 KiB, 16 bytes an instruction
# (Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, 2018). One operation of the IR is
# about one instruction, one on a vector as many as it has lanes.
MAX_OPERATIONS = 768

# All copies together where two turns are one. Two stages have no other unrolled form. From three on, it saves the two
# instructions that flip the phase and shift it into place, once a turn, and costs as much compile time as the rest of
# the loop: kernel A of three stages takes 45 ms to PTX in place of 33 (29 in the tested form).
MAX_TWO_STAGES = MAX_OPERATIONS // 4
MAX_CONSTANT_PHASE = 64

# Several rings in one loop share an unrolling by the least common multiple of their stages up to this; two turns go
# into one for the phase up to this many copies too.
MAX_COMMON_STAGES = 8

# With fewer stages the one turn of the tested form is not worth its copies: the counter costs less.
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
    """``copies`` of the body in the loop. ``tested``: the range's end is tested for after each, otherwise after all.
    ``fixed``: by position among the carried values, the rings whose index is constant in each copy."""

    copies: int
    tested: bool = False
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
        copies, tested = self.form(loop, rings)
        return Plan(copies, tested, {r.position: r for r in rings if r.period and copies % r.period == 0})

    def rings(self, loop: Op) -> list[Ring]:
        if loop not in self._rings:
            self._rings[loop] = _Steps(self, loop).rings()
        return self._rings[loop]

    def form(self, loop: Op, rings: list[Ring]) -> tuple[int, bool]:
        """How many copies, and whether the end is tested for after each."""
        weight, trips, counted = self.weight(loop), trip_count(loop), loop.name == "for"
        for period in self.periods(rings):
            large = period >= LEAST_STAGES
            twice = 2 * period if 2 * period <= MAX_COMMON_STAGES else 0
            limit = MAX_CONSTANT_PHASE if large else MAX_TWO_STAGES
            if counted and twice and weight * total_copies(twice, trips) <= limit:
                return twice, False
            if counted and large and weight * total_copies(period, trips) <= MAX_OPERATIONS:
                return period, False
            if large and weight * period <= MAX_OPERATIONS:
                return period, True
        return 1, False

    def periods(self, rings: list[Ring]) -> list[int]:
        """By what a loop with these rings may be unrolled, the best first."""
        distinct = sorted({r.period for r in rings if r.period and r.period > 1}, reverse=True)
        common = lcm(*distinct)
        return [common, *distinct] if len(distinct) > 1 and common <= MAX_COMMON_STAGES else distinct

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
            copies, tested = self.form(op, self.rings(op))
            return own + (copies if tested else total_copies(copies, trip_count(op))) * self.weight(op)
        return own + self.weight(op)


def total_copies(copies: int, trips: int | None) -> int:
    """Of a body in a loop over whole turns and in the remainder after it."""
    if trips is None:
        return 2 * copies - 1
    return trips if trips < 2 * copies else copies + trips % copies


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
    if loop.name != "for":
        return None
    start, stop = loop.operands[:2]
    if not (isinstance(start, Const) and isinstance(stop, Const)) or leaves(loop.blocks[0], loop):
        return None
    first, last = start.value, stop.value
    if not loop.attrs["signed"]:
        mask = (1 << start.ty.bits) - 1
        first, last = first & mask, last & mask
    turns = range(first, last, loop.attrs["step"])
    return (turns[-1] - turns[0]) // turns.step + 1 if turns else 0  # ``len`` stops at 63 bits


def leaves(block: Block, loop: Op) -> bool:
    """Whether something in a block ends the loop early."""
    return any(
        (op.name == "leave" and op.attrs["target"] is loop) or any(leaves(inner, loop) for inner in op.blocks)
        for op in block.ops
    )
