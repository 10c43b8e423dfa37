"""Addresses that must be aligned: those of which it is known at compile time that they are not are errors.

An address in shared memory is that of an allocation, a constant further on, and further on by multiples of a power of
two that are known at run time. Of addresses that come from elsewhere nothing is known, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxdsl import tir
from ptxdsl.effects import Kind
from ptxdsl.intrinsics import ROWS
from ptxdsl.record import Slotted
from ptxdsl.source import Span
from ptxdsl.tir.multiples import LARGEST, Multiples, lowest_bit
from ptxdsl.tir.simplify import carried_inits, carried_params

ALLOCATIONS = ("shared.alloc", "shared.dynamic", "alloca")
_ACCESSES = {"load": "a load", "store": "a store"}


class Wanted(metaclass=Slotted, eq=True):
    """What is said to want an address aligned to so many bytes, and where."""

    address: tir.Value
    bytes: int
    what: str
    span: Span


class Misaligned(metaclass=Slotted, eq=True):
    """A wish that is not met: ``offset`` bytes from an allocation's start the address is aligned to ``has`` alone."""

    wanted: Wanted
    allocation: tir.Op
    offset: int
    has: int

    @property
    def name(self) -> str:
        if "name" in self.allocation.attrs:
            return f"`{self.allocation.attrs['name']}`"
        return "local memory" if self.allocation.name == "alloca" else "dynamic shared memory"

    @property
    def help(self) -> str:
        want = self.wanted.bytes
        if self.offset % want:
            return f"{self.offset} bytes from the start of {self.name} is not a multiple of {want}"
        return f"allocate it with `alignment={want}`"


def accesses(body: tir.Block) -> Iterator[Wanted]:
    """What loads, stores and atomic operations want: the alignment of their types, or what is said of it."""
    for op in tir.walk(body):
        if op.name in ("load", "store"):
            bytes = op.attrs["align"]
        elif op.name in ROWS and ROWS[op.name].effect.kind is Kind.ATOMIC and op.operands[0].ty.is_pointer:
            bytes = (op.results[0] if op.results else op.operands[1]).ty.bytes
        else:
            continue
        if bytes > 1 and op.operands[0].ty.space != "global":
            yield Wanted(op.operands[0], bytes, _ACCESSES.get(op.name, "an atomic operation"), op.span)


def misaligned(body: tir.Block, wanted: Iterable[Wanted]) -> Iterator[Misaligned]:
    """The wishes that cannot be met, for each place of an allocation the first."""
    places = _Places(body)
    told: set[tuple[tir.Op, int]] = set()
    for wish in wanted:
        place = places.of(wish.address)
        if place is None:
            continue
        allocation, offset, multiple = place
        known = min(wish.bytes, multiple)  # what is added at run time changes nothing below
        has = min(allocation.attrs["align"], lowest_bit(offset))
        if has < known and (allocation, offset) not in told:
            told.add((allocation, offset))
            yield Misaligned(wish, allocation, offset, has)


class _Places:
    """Where the pointers of a kernel come from, as it is elaborated: variables of loops are still carried by them."""

    def __init__(self, body: tir.Block) -> None:
        self.definitions: dict[tir.Value, tir.Op] = {}
        self.incoming: dict[tir.Value, list[tir.Value]] = {}  # of what several places hand over
        for op in tir.walk(body):
            for result in op.results:
                self.definitions[result] = op
            if op.name in ("for", "loop"):
                self._hand(carried_params(op), carried_inits(op))
                if op.name == "for":
                    self._hand(op.results, carried_params(op))
            elif op.name in ("repeat", "leave"):
                target = op.attrs["target"]
                self._hand(carried_params(target) if op.name == "repeat" else target.results, op.operands)
            for block in op.blocks:
                if block.terminator is not None and block.terminator.name == "yield":
                    self._hand(op.results, block.terminator.operands)
        self.multiples = Multiples(self.definitions)

    def _hand(self, to: Iterable[tir.Value], values: Iterable[tir.Value]) -> None:
        for one, value in zip(to, values, strict=True):
            self.incoming.setdefault(one, []).append(value)

    def of(self, pointer: tir.Value) -> tuple[tir.Op, int, int] | None:
        """The allocation that a pointer is of, the constant bytes from its start, what the others are multiples of."""
        offset, multiple = 0, LARGEST
        while True:
            op = self.definitions.get(self._source(pointer))
            if op is None:
                return None
            if op.name in ALLOCATIONS:
                return op, offset, multiple
            if op.name not in ("ptr.add", "ptr.cast"):
                return None
            pointer = op.operands[0]
            if op.name == "ptr.add":
                scale = op.attrs["scale"]
                number, rest = self._index(op.operands[1])
                offset += op.attrs["offset"] + number * scale
                multiple = min(multiple, lowest_bit(scale) * rest)

    def _index(self, index: tir.Value) -> tuple[int, int]:
        """The constant part of an index, and what the rest of it is a multiple of."""
        number = 0
        while not isinstance(index, tir.Const):
            op = self.definitions.get(index)
            if op is None or op.name not in ("add", "ext.s", "ext.u"):
                return number, self.multiples.of(index)
            if op.name == "add":
                index, constant = op.operands if isinstance(op.operands[1], tir.Const) else reversed(op.operands)
                if not isinstance(constant, tir.Const):
                    return number, self.multiples.of(op.result)
                number += constant.value
            else:
                index = op.operands[0]
        return number + index.value, LARGEST

    def _source(self, value: tir.Value) -> tir.Value:
        """The value itself, or the one that all places hand over where it comes from several."""
        found: set[tir.Value] = set()
        seen: set[tir.Value] = set()
        pending = [value]
        while pending:
            one = pending.pop()
            if one in seen:
                continue
            seen.add(one)
            if one in self.incoming:
                pending.extend(self.incoming[one])
            else:
                found.add(one)
        return found.pop() if len(found) == 1 else value
