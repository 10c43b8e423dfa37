"""Reads of memory that nobody has written: a slot that is handed over unfilled, a table that was never made.

*Ever*: what is not written when the one canonical run comes to the read is written before it in no schedule, once all
accesses are known to be ordered; so it is told last. A warp may read more than it uses, so that one of its lanes has to
find something written; in tensor memory, some lane of the columns of each operand. Where memory is read or written is
sometimes not known, or whether it is: nothing is said then. A compiler may load what it does not use: of such a read in
PTX the verdict says that it takes it to find something.

*In this phase*: a role has read a stage, has given it back and waits for it again, and nothing of what it reads then is
new. That is looked at on one way to each state. It is said only of tables of several barriers, and of bytes that who
arrives there writes turn by turn: a table that is filled once may be read as often as one likes.

*Nowhere*: a program reads an array, or counts in it, and has nothing that writes it. Whether it comes to the read may
hang on data then: what it would read there is nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from ptxdsl.check import classes
from ptxdsl.check.blame import arrival_notes, fault, makers
from ptxdsl.check.context import Context
from ptxdsl.check.findings import Finding
from ptxdsl.check.intervals import Intervals, intervals_of, merged, moved, overlap
from ptxdsl.check.parts import Agent, Barrier, Touch
from ptxdsl.check.states import State
from ptxdsl.check.supposed import NOT_NEW, WRITTEN
from ptxdsl.check.tables import arrives_at
from ptxdsl.check.threads import WARP, Mask, members
from ptxdsl.diagnostics import Trip
from ptxdsl.effects import Kind
from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.protocol.expressions import ARRAY_SHIFT, TENSOR_GROUP, Expr, array_number
from ptxdsl.protocol.model import Array, Kernel, Op, Unmodelled
from ptxdsl.record import dataclass, replace
from ptxdsl.source import Span

if TYPE_CHECKING:
    from ptxdsl.check.turns import Turn


_FILL_STAGE = "fill the stage between acquire and commit on every path"
_FILL_TENSOR = "write it before: by a product, by a copy, or by `store` of all warps, each of its own lanes"
_FIRST_PRODUCT = "let the first product into it not add: `adds=False`"
_FILL = "give it a value on every path that leads here: a loop may make no turn"


@dataclass(frozen=True, slots=True)
class _Turn:
    """Of a role and a table: the barrier that it has waited for last (by its number), whether for others as well, what
    it has read since: something new, and the first read that was not."""

    barrier: int
    several: bool = False
    fresh: bool = False
    stale: Touch | None = None


class Fill:
    """Of a state, by agent. old: bytes that it has read in an earlier turn and that nobody has written since; done:
    that it has read since its last wait (both as ``Touch.bytes``). turns: by the table's address. returned: full
    barriers (by numbers, as bits) whose stage it has released since it has waited for them. written: writes that have
    happened, on whatever way."""

    __slots__ = ("done", "old", "returned", "turns", "written")

    def __init__(self, agents: int) -> None:
        self.old = [0] * agents
        self.done = [0] * agents
        self.turns: list[dict[int, _Turn]] = [{} for _ in range(agents)]
        self.returned = [0] * agents
        self.written = 0

    def copy(self) -> Fill:
        new = Fill.__new__(Fill)
        new.old, new.done, new.returned = self.old[:], self.done[:], self.returned[:]
        new.turns = [dict(turns) for turns in self.turns]
        new.written = self.written
        return new

    def place(self) -> tuple[Any, ...]:
        """Where the agents are in tables."""
        return tuple([tuple([(table, turn.barrier) for table, turn in own.items()]) for own in self.turns])

    def known(self) -> tuple[Any, ...]:
        """What later reads are judged by, besides."""
        turns = tuple([tuple([(turn.several, turn.fresh) for turn in own.values()]) for own in self.turns])
        return tuple(self.old), tuple(self.done), tuple(self.returned), turns, self.written

    def weaken(self, other: Fill) -> bool:
        """Makes it stand for another one at the same place as well; whether that makes a difference."""
        before = self.known()
        for mine, others in ((self.old, other.old), (self.done, other.done), (self.returned, other.returned)):
            mine[:] = [a | b for a, b in zip(mine, others, strict=True)]
        self.written &= other.written
        for turns, others_turns in zip(self.turns, other.turns, strict=True):
            for table, turn in others_turns.items():
                own = turns.setdefault(table, turn)
                several, fresh = own.several or turn.several or own.barrier != turn.barrier, own.fresh and turn.fresh
                turns[table] = _Turn(own.barrier, several, fresh, own.stale or turn.stale)
        return before != self.known()

    def turned(self, turn: Turn, touches: Mapping[int, Touch]) -> None:
        """Gives another name to bytes, to events, to barriers by their numbers, and to touches."""
        bytes, numbers, bits = turn.bytes, turn.numbers, turn.events.bits
        self.written = turn.events[self.written]
        self.old = [bytes[b] for b in self.old]
        self.done = [bytes[b] for b in self.done]
        self.returned = [sum(1 << numbers.get(n, n) for n in _numbers(r)) if r else 0 for r in self.returned]
        for turns in self.turns:
            for table, old in turns.items():
                stale = None if old.stale is None else touches[bits.get(old.stale.bit, old.stale.bit)]
                turns[table] = _Turn(numbers.get(old.barrier, old.barrier), old.several, old.fresh, stale)

    def write(self, context: Context, touch: Touch) -> None:
        if touch.site.fills:
            self.written |= context.blocks.everywhere(touch.bit)
        if touch.readers:
            keep = ~touch.readers
            self.old = [bits & keep for bits in self.old]
            self.done = [bits & keep for bits in self.done]

    def read(self, context: Context, state: State, agent: Agent, touch: Touch) -> None:
        before = touch.writers & self.written
        filled = touch.filled.get(before)
        if filled is None:
            filled = touch.filled[before] = _is_filled(context, touch, before)
        if not filled and not touch.used:
            context.supposed.note(WRITTEN, _unfilled(context, touch, before))
        elif not filled:
            from ptxdsl.check.trips import of_agent  # where there is a fault

            name = makers(context, touch)
            span = _unfilled(context, touch, before)
            trips = of_agent(context, state, agent, touch.site, span, name)
            _note(context, state, agent, touch, f"is read by {name} where nobody has ever written it", span, trips)
        number = agent.number
        turns = self.turns[number]
        for table, turn in turns.items():
            if not turn.fresh and _is_handed(context, touch, table, before, touch.writers & state.live):
                if not touch.bytes & self.old[number]:
                    turns[table] = replace(turn, fresh=True)
                elif turn.stale is None:
                    turns[table] = replace(turn, stale=touch)
        self.done[number] |= touch.bytes

    def is_begun(self, context: Context, touch: Touch) -> bool:
        """Whether a product writes over what was written before."""
        if self.written & touch.bit:
            return True  # in another turn
        begun = touch.filled.get(self.written)
        if begun is None:
            writes = [bit for bit in _bits(self.written) if _is_beside(context, touch, bit)]
            begun = touch.filled[self.written] = _is_filled(context, touch, sum(writes))
        return begun

    def add(self, context: Context, state: State, touch: Touch) -> None:
        """A product adds to what nobody has written."""
        assert touch.array is not None
        message = f"`{touch.array.name}` is added to by {makers(context, touch)} where nobody has ever written it"
        found = fault(state, classes.READ_BEFORE_FULL, message, touch.span, help=_FIRST_PRODUCT)
        context.tell_last(touch.site, found)

    def wait(self, context: Context, state: State, agent: Agent, table: int, barrier: int) -> None:
        """The agent has waited for a barrier of a table."""
        number = agent.number
        turn = self.turns[number].get(table)
        several = False
        if turn is not None:
            several = turn.several or turn.barrier != barrier
            self._over(context, state, agent, table, turn)
        self.turns[number][table] = _Turn(barrier, several)
        self.old[number] |= self.done[number]
        self.done[number] = 0
        self.returned[number] &= ~(1 << barrier)

    def arrive(self, context: Context, agent: Agent, barrier: Barrier) -> None:
        """The agent releases a stage, where it is a pipeline's."""
        if barrier.place is not None and barrier.place[1] == "consumer_mbar":
            self.returned[agent.number] |= context.full_of(barrier)

    def end(self, context: Context, state: State, agent: Agent) -> None:
        for table, turn in self.turns[agent.number].items():
            self._over(context, state, agent, table, turn)

    def _over(self, context: Context, state: State, agent: Agent, table: int, turn: _Turn) -> None:
        if turn.stale is not None and turn.several and not turn.fresh:
            if table in context.joined or not turn.stale.used:
                context.supposed.note(NOT_NEW, turn.stale.span)
                return
            from ptxdsl.check.trips import of_access  # where there is a fault

            read = turn.stale
            name = makers(context, read)
            trips = of_access(context, state, read, name, read.span)
            what = f"is read again by {name}, and nobody has written it since"
            _note(context, state, agent, read, what, read.span, trips)


def never_filled(kernel: Kernel) -> Finding | None:
    """The first read of an array of shared memory that nothing in the program writes."""
    for array, op, used in _of_nothing(kernel):
        if used:
            message = f"`{array.name}` is read, and nothing in the kernel writes it"
            return Finding(classes.READ_BEFORE_FULL, message, op.span, (), "fill it, and let all who read it wait")
    return None


def perhaps_never_filled(kernel: Kernel) -> list[Span]:
    """The same of reads that a compiler may have made for nothing: there are such in PTX."""
    return [op.span for _, op, used in _of_nothing(kernel) if not used]


def _of_nothing(kernel: Kernel) -> list[tuple[Array, Op, bool]]:
    """Reads of arrays that nothing writes, by array; whether somebody looks at what they give."""
    filled: set[int] = set()
    reads: list[tuple[int, Op, bool]] = []
    for node in kernel.nodes:
        if isinstance(node, Unmodelled):
            return []
        if not isinstance(node, Op) or not (node.writes or node.reads) or node.what.space == "tensor":
            continue
        if node.kind is Kind.ATOMIC and node.reads and "exch" not in node.name:
            reads += [(_array_of(place.address), node, True) for place in node.writes]
            continue
        filled.update(_array_of(place.address) for place in node.writes)
        reads += [(_array_of(place.address), node, place.used) for place in node.reads]
    if 0 in filled:  # somewhere
        return []
    return [
        (array, op, used)
        for array in kernel.arrays
        for number, op, used in reads
        if number == array_number(array.base) and number not in filled
    ]


def _array_of(address: Expr | None) -> int:
    """The number of the array that an address is in; 0 where the text does not tell."""
    if address is None:
        return 0
    half = 1 << ARRAY_SHIFT - 1  # what is added to the constant part may be negative, or the constant itself
    return array_number(max(_constant_of(address) + half, 0))


@lru_cache(4096)
def _constant_of(address: Expr) -> int:
    """The constant part of an address."""
    if address.op == "const":
        return int(address.value)
    if address.op == "add":
        return sum(map(_constant_of, address.args))
    return _constant_of(address.args[0]) if address.op in ("sub", "ext.u", "ext.s", "trunc", "mapa") else 0


def _is_beside(context: Context, touch: Touch, bit: int) -> bool:
    """Whether a write is to the array of a touch in the same block."""
    write = context.touch_of(bit)
    return write.array is touch.array and write.cta == touch.cta and not context.place_of(bit)


def _is_handed(context: Context, touch: Touch, table: int, before: int, perhaps: int) -> bool:
    """Whether those who arrive at a table write, turn by turn, bytes that a touch reads; before: writes that have
    happened, perhaps: those that may have."""
    key = table, before, perhaps
    found = touch.handed.get(key)
    if found is None:
        known = (
            not touch.tensor and _is_known(context, touch) and all(context.touch_of(bit).exact for bit in _bits(before))
        )
        writes = [context.touch_of(bit) for bit in _bits(perhaps)]
        found = touch.handed[key] = known and any(
            write.site.nesting and arrives_at(context.agents[write.agent], table) for write in writes
        )
    return found


def _is_known(context: Context, touch: Touch) -> bool:
    """Whether a read is certain, and of what."""
    return touch.exact and touch.certain and touch.array is not None


def _is_filled(context: Context, touch: Touch, before: int) -> bool:
    if not _is_known(context, touch):
        return True
    blocks = context.blocks
    writes = [(context.touch_of(bit), context.place_of(bit)) for bit in _bits(before)]
    differ = touch.elsewhere or any(write.elsewhere for write, _ in writes)
    for rank in range(blocks.count if differ else 1):
        written = [write.of(blocks.rank(rank, place)).intervals for write, place in writes]
        if not all(any(overlap(read, done) for done in written) for read in _by_warps(touch.of(rank))):
            return False
    return True


def _unfilled(context: Context, touch: Touch, before: int) -> Span | None:
    """Where the first of a read's bytes are read that nobody has written."""
    for place, span in zip(touch.places, touch.spans, strict=False):
        if not _is_filled(context, replace(touch, places=(place,)), before):
            return span
    return touch.span


def _bits(bits: int) -> list[int]:
    found = []
    while bits:
        found.append(bits & -bits)
        bits &= bits - 1
    return found


def _numbers(bits: int) -> list[int]:
    return [bit.bit_length() - 1 for bit in _bits(bits)]


def _by_warps(touch: Touch) -> set[Intervals]:
    """The bytes that each warp reads, place by place; in tensor memory, columns by columns, whichever lanes."""
    read: dict[tuple[int, ...], list[Intervals]] = {}
    for number, (lanes, shift, width) in enumerate(touch.places):
        place = (shift % TENSOR_GROUP, width) if touch.tensor else (number,)
        of_warps = (((0, width),),) if lanes is None else _warps_bytes(touch.mask, lanes, width)
        for warp, of_warp in enumerate(of_warps):
            read.setdefault((warp, *place), []).append(moved(of_warp, shift))
    return set(map(merged, read.values()))


@lru_cache(256)
def _warps_bytes(mask: Mask, lanes: tuple[int, ...], width: int) -> tuple[Intervals, ...]:
    """The bytes that each warp of a mask touches."""
    of_warps: dict[int, list[int]] = {}
    for thread, offset in zip(members(mask), lanes, strict=True):
        of_warps.setdefault(thread // WARP, []).append(offset)
    return tuple([intervals_of(tuple(offsets), width) for offsets in of_warps.values()])


def _note(
    context: Context,
    state: State,
    agent: Agent,
    touch: Touch,
    what: str,
    span: Span | None,
    trips: tuple[Trip, ...],
) -> None:
    if touch.site in context.last:
        return
    assert touch.array is not None
    notes: list[tuple[Span | None, str]] = []
    for number, *_ in state.waited[agent.number].values():
        barrier = context.barriers[number]
        site = barrier.waiters.get(agent.number)
        if site is not None:
            notes += [(site.span, "waits here"), *arrival_notes(barrier)]
    kind, message = classes.READ_BEFORE_FULL, f"`{touch.array.name}` {what}"
    help = _FILL_TENSOR if touch.tensor else _FILL_STAGE if notes and touch.slot is not None else _FILL
    if touch.stale is not None and touch.given:
        from ptxdsl.check.blame_stages import HELD  # where there is a fault

        kind, help = classes.STALE_STAGE, HELD
        message = f"stage {touch.slot} of {message}: the role has waited for stage {touch.stale} and given that back"
    found = fault(state, kind, message, span, *notes[:6], help=help, trips=trips)
    context.tell_last(touch.site, found)
