"""What a thread does, by executing the model with numbers for all that is unknown before the launch.

Two models of one kernel, of TIR and of its PTX say, can be compared so: the same operations on the same barriers in the
same order, with the same accesses between them, in every thread. Nothing waits here: what a thread does depends on what
it is given, not on when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ptxdsl.effects import Kind
from ptxdsl.protocol.expressions import ARITHMETIC, ARRAY_SHIFT, CTA_SHIFT, Expr, compute
from ptxdsl.protocol.model import Assign, Branch, Jump, Kernel, Loop, Node, Op, Place, Return, Seq, Unmodelled
from ptxdsl.record import dataclass

WARP = 32
_MANY = 100_000  # operations of a thread, or turns of its loops
_NEW: Any = object()  # a value that is not remembered
_COLLECTIVE_OPS = frozenset(("vote", "elect", "activemask", "mma", "wmma", "movmatrix"))


class Undetermined(Exception):
    """What a thread does next depends on what the model does not know. what: the reason."""


@dataclass(frozen=True, slots=True)
class Where:
    """Bytes: the array's name (None: none that is known), the first byte's offset, the CTA's rank (None: the own)."""

    array: str | None
    offset: int
    rank: int | None


@dataclass(frozen=True, slots=True)
class Event:
    """An operation of one thread with numbers; None where it has none, ``?`` where the model does not know."""

    kind: Kind
    barrier: Where | None
    parity: int | str | None
    count: int | str | None
    bytes: int | str | None
    id: int | str | None
    mask: int | str | None


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes of an array (None: none that is known) from start to end; asynchronous: touched by the async proxy."""

    array: str | None
    asynchronous: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Accesses:
    """Shared memory that a thread touches between two operations; pieces do not overlap and are in order."""

    reads: tuple[Bytes, ...]
    writes: tuple[Bytes, ...]


NOTHING = Accesses((), ())


def merged(pieces: Iterable[Bytes]) -> tuple[Bytes, ...]:
    """The same bytes in as few pieces as can be."""
    found: list[Bytes] = []
    for piece in sorted(pieces, key=lambda b: (b.array or "", b.asynchronous, b.start)):
        last = found[-1] if found else None
        if (
            last is None
            or (last.array, last.asynchronous) != (piece.array, piece.asynchronous)
            or piece.start > last.end
        ):
            found.append(piece)
        elif piece.end > last.end:
            found[-1] = Bytes(last.array, last.asynchronous, last.start, piece.end)
    return tuple(found)


def covers(whole: tuple[Bytes, ...], part: tuple[Bytes, ...]) -> bool:
    """Whether all bytes of the part are among those of the whole; both merged."""
    return merged((*whole, *part)) == whole


_KINDS_OF_ACCESS = frozenset((Kind.READ, Kind.WRITE, Kind.ATOMIC))
Inputs = Callable[[str, str, int], int]  # kind of leaf (uniform, cta, load, unknown), its name, its width → its value


class Thread:
    """inputs: values of uniform and cta leaves, and of loads (with the address in the place of the width)."""

    def __init__(self, kernel: Kernel, shape: tuple[int, int, int], number: int, inputs: Inputs) -> None:
        self.kernel = kernel
        self.shape = shape
        self.number = number
        self.inputs = inputs
        self.variables: dict[int, int | None] = {}
        self.events: list[Event | Accesses] = []
        self.reads: list[Bytes] = []
        self.writes: list[Bytes] = []
        self.turns = 0
        self.arrays = {array.base >> ARRAY_SHIFT: array for array in kernel.arrays}
        self.settled: dict[Expr, int | None] = {}  # values of what has no variables in it
        self.current: dict[Expr, int | None] = {}  # of what has, until a variable is set

    def run(self) -> list[Event | Accesses]:
        """What the thread does. Raises Undetermined."""
        self._node(self.kernel.program)
        self._flush()
        return self.events

    # -------------------------------------------------------------------------------------------------- control

    def _node(self, node: Node) -> Jump | Return | None:
        """Where it leads, if not to what follows."""
        if isinstance(node, Op):  # what there is most of
            if not node.elected or self.number % WARP == 0:
                self._operation(node)
            return None
        if isinstance(node, Assign):
            values = [self.value(value) for value in node.values]
            self.variables.update(zip(node.targets, values, strict=True))
            self.current.clear()
            return None
        if isinstance(node, Seq):
            for inner in node.nodes:
                end = self._node(inner)
                if end is not None:
                    return end
            return None
        if isinstance(node, Branch):
            chosen = self.value(node.condition)
            if chosen is None:
                raise Undetermined(f"the condition at {node.span}")
            return self._node(node.then if chosen else node.orelse)
        if isinstance(node, Loop):
            return self._loop(node)
        if isinstance(node, Unmodelled):
            raise Undetermined(f"{node.span}: {node.why}")
        return node

    def _loop(self, node: Loop) -> Jump | Return | None:
        for _ in self._turns(node):
            self.turns += 1
            if self.turns > _MANY:
                raise Undetermined(f"the loop at {node.span} does not end")
            end = self._node(node.body)
            if end is None or (isinstance(end, Jump) and end.label == node.label and end.again):
                continue
            if isinstance(end, Jump) and end.label == node.label:
                return None
            return end
        return None

    def _turns(self, node: Loop) -> Iterator[None]:
        if node.once:
            yield None
        elif node.range is None:
            while True:
                yield None
        else:
            start, stop = self.value(node.range.start), self.value(node.range.stop)
            if start is None or stop is None:
                raise Undetermined(f"the range at {node.span}")
            if not node.range.signed:
                start, stop = (v & ((1 << node.range.stop.bits) - 1) for v in (start, stop))
            for index in range(start, stop, node.range.step):
                self.variables[node.range.index] = index
                self.current.clear()
                yield None

    # ----------------------------------------------------------------------------------------------- operations

    def _operation(self, op: Op) -> None:
        proxy = op.what.proxy == "async"
        for place in op.reads:
            self.reads.append(self._bytes(place, proxy))
        for place in op.writes:
            self.writes.append(self._bytes(place, proxy))
        if op.kind in _KINDS_OF_ACCESS:
            return
        if op.kind is Kind.WARP_SYNC and op.name.partition(".")[0].partition("_")[0] in _COLLECTIVE_OPS:
            return  # compilers add, share and move them
        if op.kind is not Kind.WARP_SYNC:
            self._flush()
        barrier = None
        if op.barrier is not None:
            address = None if op.barrier.address is None else self.value(op.barrier.address)
            barrier = Where(None, 0, None) if address is None else self.where(address)
        parity = self._number(op.parity)
        count = self._number(op.count)
        if count is None and op.kind in (Kind.BAR_ARRIVE, Kind.BAR_INIT):
            count = 1
        kind = Kind.BAR_WAIT if op.kind is Kind.BAR_TEST else op.kind  # tests are answered yes here: as waits are
        self.events.append(
            Event(
                kind,
                barrier,
                parity & 1 if isinstance(parity, int) else parity,
                count,
                self._number(op.bytes),
                self._number(op.id),
                self._number(op.mask),
            )
        )

    def _number(self, expr: Expr | None) -> int | str | None:
        if expr is None:
            return None
        value = self.value(expr)
        return "?" if value is None else value & 0xFFFFFFFF

    def _bytes(self, place: Place, proxy: bool) -> Bytes:
        address = None if place.address is None else self.value(place.address)
        width = self.value(place.width) if isinstance(place.width, Expr) else place.width
        if address is None:
            return Bytes(None, proxy, 0, 1)
        where = self.where(address)
        name = where.array if where.rank is None else f"{where.array} of CTA {where.rank}"
        return Bytes(name, proxy, where.offset, where.offset + (width if width is not None else 1))

    def _flush(self) -> None:
        if self.reads or self.writes:
            self.events.append(Accesses(merged(self.reads), merged(self.writes)))
            self.reads.clear()
            self.writes.clear()

    def where(self, address: int) -> Where:
        """The bytes of an address of the model."""
        rank, low = address >> CTA_SHIFT, address & ((1 << CTA_SHIFT) - 1)
        if low >> ARRAY_SHIFT == 0:
            low = self._tagged(low)
        array = self.arrays.get(low >> ARRAY_SHIFT)
        remote = rank - 1 if rank > 0 else None
        return Where(None, low, remote) if array is None else Where(array.name, low - array.base, remote)

    def _tagged(self, low: int) -> int:
        """The address that a matrix descriptor has kept the low bits of."""
        tag = (1 << ARRAY_SHIFT) - 1
        for array in self.kernel.arrays:
            start = array.base & tag
            if start <= low < start + (array.bytes or 1 << 18):
                return array.base - start + low
        return low

    # --------------------------------------------------------------------------------------------------- values

    def value(self, expr: Expr) -> int | None:
        """An expression's value in this thread; None where it is not known."""
        return self._value(expr, self.number, self.current)

    def _value(self, expr: Expr, number: int, known: dict[Expr, int | None]) -> int | None:
        op = expr.op
        if op == "const":
            return int(expr.value)
        if op == "var":
            return self.variables.get(expr.value)
        memo = known if expr.variables or number != self.number else self.settled
        found = memo.get(expr, _NEW)
        if found is _NEW:
            found = memo[expr] = self._compound(expr, number, known)
        return found

    def _compound(self, expr: Expr, number: int, known: dict[Expr, int | None]) -> int | None:
        op = expr.op
        if op in ARITHMETIC:
            if op == "select":
                chosen = self._value(expr.args[0], number, known)
                return None if chosen is None else self._value(expr.args[1 if chosen else 2], number, known)
            args = []
            for arg in expr.args:
                value = int(arg.value) if arg.op == "const" else self._value(arg, number, known)
                if value is None:
                    return None
                args.append(value)
            return compute(op, args, expr.bits, expr.args[0].bits)
        if op in ("uniform", "cta"):
            return self.inputs(op, expr.value, expr.bits)
        if op == "tid":
            return self._thread_id(expr.value, number)
        if op == "elected":
            return int(number % WARP == 0)
        if op == "test":
            return 1
        if op == "load":
            address = self._value(expr.args[0], number, known)
            return None if address is None else self.inputs("load", expr.value, address)
        if op == "shuffle":
            lane = self._value(expr.args[1], number, known)
            return None if lane is None else self._value(expr.args[0], number // WARP * WARP + lane % WARP, {})
        if op in ("any", "all"):
            return self._vote(expr, number)
        return None

    def _vote(self, expr: Expr, number: int) -> int | None:
        first = number // WARP * WARP
        x, y, z = self.shape
        votes = [self._value(expr.args[0], lane, {}) for lane in range(first, min(first + WARP, x * y * z))]
        if None in votes:
            return None
        return int(any(votes)) if expr.op == "any" else int(all(votes))

    def _thread_id(self, axis: int, number: int) -> int:
        x, y, _ = self.shape
        return (number % x, number // x % y, number // (x * y), number)[axis]
