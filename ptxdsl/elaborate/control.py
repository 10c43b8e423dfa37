"""Control flow: how the values of variables come together where paths meet.

While a branch or a loop body is elaborated, variables change in the state. Each way out of a region is an ``Exit``: its
terminator and the state at that point. When the region is complete, the variables that differ become its results.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

from ptxdsl import tir
from ptxdsl.diagnostics import CompileError
from ptxdsl.elaborate.context import Context
from ptxdsl.elaborate.entities import (
    ArrayValue,
    FunctionDecl,
    FunctionValue,
    LanePlace,
    Overloads,
    Place,
    PlaceAlias,
    Runtime,
    RValue,
    StructValue,
    TupleValue,
    Uninit,
    Variable,
    VariablePlace,
)
from ptxdsl.elaborate.frames import Exit, LoopFrame, State
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.values import leaves, rebuild, same
from ptxdsl.generator_context import contextmanager
from ptxdsl.record import field_names
from ptxdsl.source import Span
from ptxdsl.syntax import ast


def _bodies(decls: Iterable[FunctionDecl]) -> Iterator[tuple[ast.Node, Scope]]:
    return ((d.node, d.scope) for d in decls if d.struct is None and d.scope.parent is not None)


def root(place: Place | None) -> Variable | None:
    """The variable that a place is part of."""
    while isinstance(place, LanePlace):
        place = place.base
    return place.variable if isinstance(place, VariablePlace) else None


def overlap(one: Place | None, other: Place | None) -> bool:
    """Whether two places may have a part of a variable in common. Elements chosen at run time may be the same."""
    if root(one) is None or root(one) is not root(other):
        return False
    return all(a is None or b is None or a == b for a, b in zip(_path(one), _path(other), strict=False))


def _path(place: Place | None) -> tuple[int | None, ...]:
    """The numbers of the parts that lead to a place; None for one that is chosen at run time."""
    if isinstance(place, LanePlace):
        index = place.index if isinstance(place.index, int) else place.index.value
        number = index.value if isinstance(index, tir.Const) else index
        return (*_path(place.base), number if isinstance(number, int) else None)
    return place.path if isinstance(place, VariablePlace) else ()


class Control(Context):
    """Regions, their exits, and the merging of states."""

    def end_block(self, name: str, target: tir.Op | None, span: Span, value: RValue | None = None) -> Exit:
        """Ends the current block; its operands are filled in when the region is complete."""
        op = tir.Op(name, [], [], {} if target is None else {"target": target}, self.origin(span))
        self.append(op)
        return Exit(self.ops, op, self.state, value)

    def merge(self, exits: Sequence[Exit], before: State, region: tir.Op, span: Span) -> RValue | None:
        """Completes a region: its results are what differs between the exits; returns the merged exit value."""
        if not exits:
            self.state = before
            self.append(tir.Op("unreachable", [], [], {}, self.origin(span)))
            return None
        merged: State = {}
        for variable, old in before.items():
            merged[variable] = self._join([e.state[variable] for e in exits], old, exits, region)
        self.state = merged
        values = [e.value for e in exits]
        if values[0] is None:
            return None
        return self._join([v for v in values if v is not None], None, exits, region)

    def _join(self, values: list[RValue], old: RValue | None, exits: Sequence[Exit], region: tir.Op) -> RValue:
        first = values[0]
        if all(v is old for v in values):
            return first
        if any(isinstance(v, Uninit) for v in values):
            return Uninit(first.type)
        match first:
            case Runtime():
                incoming = [v.value for v in values if isinstance(v, Runtime)]
                if all(same(v, incoming[0]) for v in incoming) and (
                    isinstance(incoming[0], tir.Const) or (isinstance(old, Runtime) and old.value is incoming[0])
                ):
                    return Runtime(first.type, incoming[0])
                return Runtime(first.type, self._result(incoming, exits, region))
            case StructValue():
                parts = self._join_parts(
                    [v.fields if isinstance(v, StructValue) else () for v in values],
                    old.fields if isinstance(old, StructValue) else None, exits, region,
                )  # fmt: skip
                return StructValue(first.type, parts)
            case ArrayValue() | TupleValue():
                parts = self._join_parts(
                    [v.items if isinstance(v, ArrayValue | TupleValue) else () for v in values],
                    old.items if isinstance(old, ArrayValue | TupleValue) else None, exits, region,
                )  # fmt: skip
                return ArrayValue(first.type, parts) if isinstance(first, ArrayValue) else TupleValue(parts)
        if any(v != first for v in values):
            raise self._known_at_compile_time(first, region.span)
        return first

    def _known_at_compile_time(self, value: RValue, span: Span) -> CompileError:
        return self.fail(
            "E0401", f"a run-time branch or loop cannot change a {value.type}: it is known at compile time", span,
            help="use a number, and choose by it where the value is used",
        )  # fmt: skip

    def _join_parts(
        self,
        values: list[tuple[RValue, ...]],
        old: tuple[RValue, ...] | None,
        exits: Sequence[Exit],
        region: tir.Op,
    ) -> tuple[RValue, ...]:
        olds: Sequence[RValue | None] = old if old is not None else [None] * len(values[0])
        return tuple(
            self._join(list(column), o, exits, region)
            for o, column in zip(olds, zip(*values, strict=True), strict=True)
        )

    def _result(self, incoming: list[tir.Value], exits: Sequence[Exit], region: tir.Op) -> tir.Value:
        ty = incoming[0].ty
        if any(v.ty != ty for v in incoming):  # pointers of different spaces meet in a generic one
            ty = tir.ptr("generic")
        result = tir.Value(ty)
        region.results.append(result)
        for exit, value in zip(exits, incoming, strict=True):
            exit.op.operands.append(self.cast_before(exit, value, ty))
        return result

    def cast_before(self, exit: Exit, value: tir.Value, ty: tir.Ty) -> tir.Value:
        """The value as ``ty`` (another address space), cast just before an exit's terminator."""
        if value.ty == ty:
            return value
        cast = tir.Op("ptr.cast", [value], [tir.Value(ty)], {}, exit.op.span)
        exit.ops.insert(len(exit.ops) - 1, cast)
        return cast.result

    # ------------------------------------------------------------------------------------------------------- loops

    @contextmanager
    def carrying(self, node: ast.Stmt, scope: Scope, op: tir.Op, span: Span) -> Iterator[LoopFrame]:
        """The body of a run-time loop: every variable that it mentions becomes a carried value.

        ``tir/simplify.py`` later drops what the body does not change. The caller has set ``op.operands`` to the bounds
        and appends the index parameter; inside, ``self.ops`` is the body.
        """
        before = self.state
        carried = [v for v in self.mentioned(node, scope) if not isinstance(before[v], Uninit)]
        block = op.blocks[0]
        inside = dict(before)
        for variable in carried:
            op.operands.extend(leaves(before[variable]))
            inside[variable] = self._parameters_for(variable.name, before[variable], block)
        frame = LoopFrame(op, op)
        outer_loop, outer_ops, self.loop = self.loop, self.ops, frame
        self.ops, self.state = block.ops, inside
        try:
            yield frame
            if not self.terminated:
                frame.repeats.append(self.end_block("repeat", op, span))
        finally:
            self.loop, self.ops = outer_loop, outer_ops
        self._finish_loop(op, frame, carried, before)

    @staticmethod
    def _parameters_for(name: str, value: RValue, block: tir.Block) -> RValue:
        """The value made of new parameters of a loop's body."""

        def parameter(old: tir.Value) -> tir.Value:
            block.params.append(tir.Value(old.ty, name))
            return block.params[-1]

        return rebuild(value, parameter)

    def _finish_loop(self, op: tir.Op, frame: LoopFrame, carried: list[Variable], before: State) -> None:
        first = 1 if op.name == "for" else 0
        wanted = [p.ty for p in op.blocks[0].params[first:]]
        kept = set(carried)
        fixed = [v for v, value in before.items() if v not in kept and not isinstance(value, Uninit)]
        for exit in (*frame.repeats, *frame.leaves):
            for variable in carried:
                exit.op.operands.extend(self._handed_over(variable, before[variable], exit.state[variable], exit))
            for variable in fixed:
                if exit.state[variable] is not before[variable]:
                    raise self.fail(
                        "E0410", f"`{variable.name}` changes in this loop, which does not name it", op.span,
                        (variable.span, "declared here"), help="pass it as a `mut` argument",
                    )  # fmt: skip
        op.results = [tir.Value(ty) for ty in wanted]
        results = iter(op.results)
        after = dict(before)
        for variable in carried:
            after[variable] = rebuild(before[variable], lambda v: next(results))
        if op.name == "loop" and frame.leaves:  # what every way out has given a value to
            for variable, old in before.items():
                if isinstance(old, Uninit):
                    after[variable] = self._join([e.state[variable] for e in frame.leaves], old, frame.leaves, op)
        self.state = after
        self.append(op)
        if op.name == "loop" and not frame.leaves:  # `while True` without a break
            self.append(tir.Op("unreachable", [], [], {}, op.span))

    def _handed_over(self, variable: Variable, old: RValue, new: RValue, exit: Exit) -> Iterator[tir.Value]:
        """The machine values of a carried variable at an exit. What had no value before the loop has none after it."""
        match old:
            case Uninit():
                return
            case Runtime():
                assert isinstance(new, Runtime)
                space = old.value.ty.space
                if new.value.ty != old.value.ty and space != "generic":
                    raise self.fail(
                        "E0612", f"`{variable.name}` points to {space} memory before this loop, and elsewhere in it",
                        exit.op.span, (variable.span, "declared here"),
                        help="start with a generic address: `.address_space_cast[AddressSpace.GENERIC]()`",
                    )  # fmt: skip
                yield self.cast_before(exit, new.value, old.value.ty)
            case StructValue() if isinstance(new, StructValue):
                for was, now in zip(old.fields, new.fields, strict=True):
                    yield from self._handed_over(variable, was, now, exit)
            case ArrayValue() | TupleValue() if isinstance(new, ArrayValue | TupleValue):
                for was, now in zip(old.items, new.items, strict=True):
                    yield from self._handed_over(variable, was, now, exit)
            case _:
                if new != old:
                    raise self._known_at_compile_time(old, exit.op.span)

    def mentioned(self, node: ast.Node, scope: Scope) -> list[Variable]:
        """The variables of the state that code may change: those it names, also inside the functions it names."""
        found: dict[Variable, None] = {}
        seen: set[tuple[ast.Node, Scope]] = set()  # a local function is another one in each expansion of its parent
        pending: list[tuple[ast.Node, Scope]] = [(node, scope)]
        while pending:
            current, where = pending.pop()
            if (current, where) in seen:
                continue
            seen.add((current, where))
            for name in names_in(current):
                entity = where.lookup(name)
                variable = entity if isinstance(entity, Variable) else None
                if isinstance(entity, PlaceAlias):
                    variable = root(entity.place)
                elif isinstance(entity, Overloads):
                    pending.extend(_bodies(entity.decls))
                elif isinstance(entity, FunctionValue):  # a parameter, or a `comptime` name
                    pending.extend((*_bodies(entity.overloads), *entity.params))
                    variable = root(entity.receiver)
                if variable is not None and variable in self.state:
                    found[variable] = None
        return list(found)


def nodes_in(node: ast.Node) -> Iterator[ast.Node]:
    """A node and everything below it, in no particular order."""
    stack: list[object] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            stack.extend(item)
        elif isinstance(item, ast.Node):
            yield item
            kind = type(item)
            if kind not in _parts:
                _parts[kind] = tuple(f for f in field_names(kind) if f != "span")
            stack.extend([getattr(item, f) for f in _parts[kind]])


_parts: dict[type, tuple[str, ...]] = {}  # of a kind of node, the fields in which others may be


@functools.lru_cache(maxsize=4096)  # a tree is elaborated again for other constants
def names_in(node: ast.Node) -> tuple[str, ...]:
    """Every identifier used as a name in and below a node, once."""
    return tuple(dict.fromkeys([item.id for item in nodes_in(node) if isinstance(item, ast.Name)]))


@functools.lru_cache(maxsize=4096)
def contains_call(node: ast.Node) -> bool:
    return any(isinstance(item, ast.Call) for item in nodes_in(node))
