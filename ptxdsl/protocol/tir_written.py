"""What threads write, as far as it tells whether two of them write the same: what it is made of, back to thread ids.

Two threads that take the same way and have the same at its sources write the same. Values that come from other lanes,
from memory that may change meanwhile, or from what is not seen are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ptxdsl.effects import Kind
from ptxdsl.intrinsics import ROWS
from ptxdsl.protocol.expressions import ARITHMETIC, Expr, nodes
from ptxdsl.protocol.model import TURN, Written
from ptxdsl.protocol.tir_integers import Integers
from ptxdsl.tir import Const, Op, Value, walk
from ptxdsl.tir.simplify import PURE

_COMPUTED = ARITHMETIC.keys() | {"shuffle", "any", "all"}
_ALIKE = frozenset({"const", "uniform", "cta"})
_ESCAPES = frozenset({"repeat", "leave", "return", "unreachable", "exit_thread", "trap"})
_OF_THREADS = frozenset({"const", "tid", "elected"})


class Sources:
    """Of a kernel's values. place: of what control flow hands over, whose it is, and which one. handed: the values that
    it may become."""

    def __init__(
        self,
        integers: Integers,
        place: Mapping[Value, tuple[Op, int]],
        handed: Callable[[Op, Value, int], Iterable[Value]],
    ) -> None:
        self.integers = integers
        self.place = place
        self.handed = handed

    def of(self, values: Sequence[Value]) -> tuple[Expr, ...] | None:
        """As ``Written.told_by``, for what is made of all of these."""
        found: dict[Expr, None] = {}
        seen: set[Value] = set()
        work = list(values)
        while work:
            value = work.pop()
            if value in seen or isinstance(value, Const) or value in self.integers.params:
                continue
            seen.add(value)
            there = self.place.get(value)
            if there is not None:
                owner, number = there
                work += self.handed(owner, value, number)
                work += _decisions(owner)
                if owner.name != "if":
                    found[TURN] = None
                continue
            of_threads = self._of_threads(value)
            if of_threads is not None:
                found.update(dict.fromkeys(of_threads))
                continue
            inputs = self._inputs(value)
            if inputs is None:
                return None
            if self._is_shared(value):
                found[TURN] = None
            work += inputs
        return tuple(found)

    def _of_threads(self, value: Value) -> tuple[Expr, ...] | None:
        """An integer of thread ids alone; nothing where it is the same for all threads."""
        if value.ty.lanes != 1 or value.ty.is_float:
            return None
        expr = self.integers.of(value)
        ops = {node.op for node in nodes(expr)} - _COMPUTED
        return () if ops <= _ALIKE else (expr,) if ops <= _OF_THREADS else None

    def _inputs(self, value: Value) -> Sequence[Value] | None:
        """What a value is computed from, by the thread that has it; None where it is not."""
        op = self.integers.made.get(value)
        if op is None:
            return None
        if op in self.integers.bases:
            return ()
        if op.name == "load":
            root = self.integers.root(op.operands[0])
            if isinstance(root, str):
                return op.operands if self.integers.stays(op, root) else None
            return op.operands if root in self.integers.bases and not op.attrs.get("volatile") else None
        if op.name in PURE or op.name == "pipe.step":
            return None if op.blocks else op.operands
        row = ROWS.get(op.name)
        return op.operands if row is not None and row.effect.kind is Kind.PURE and op.operands else None

    def _is_shared(self, value: Value) -> bool:
        """Whether a value is loaded from shared memory: in another turn of a loop there may be something else."""
        op = self.integers.made.get(value)
        return op is not None and op.name == "load" and isinstance(self.integers.root(op.operands[0]), Op)


class Stored(Written):
    """values: all that decides about what is written."""

    def __init__(self, sources: Sources, values: Sequence[Value]) -> None:
        self.sources = sources
        self.values = values

    def told_by(self) -> tuple[Expr, ...] | None:
        return self.sources.of(self.values)


def _decisions(owner: Op) -> Iterator[Value]:
    """What decides which way a thread takes through an operation of control flow, and how often."""
    if owner.name == "if":
        yield owner.operands[0]
        return
    if owner.name == "for":
        yield from owner.operands[:2]
    for op in walk(owner.blocks[0]):
        if op.name == "if" and any(inner.name in _ESCAPES for block in op.blocks for inner in walk(block)):
            yield op.operands[0]
