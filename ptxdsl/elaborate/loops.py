"""Loops and branches: unrolled at compile time, or regions of the typed IR."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxdsl import tir
from ptxdsl.elaborate import types
from ptxdsl.elaborate.context import COMPTIME_VALUES
from ptxdsl.elaborate.convert import items_of
from ptxdsl.elaborate.entities import (
    Literal,
    Place,
    PlaceAlias,
    Poison,
    RangeValue,
    Runtime,
    RValue,
    TemporaryPlace,
    TupleValue,
    Variable,
)
from ptxdsl.elaborate.expressions import Expressions
from ptxdsl.elaborate.frames import BreakSignal, ContinueSignal, Exit, LoopFrame
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.types import ArrayType, SimdType, Type
from ptxdsl.elaborate.values import const, is_comptime
from ptxdsl.source import Span
from ptxdsl.syntax import ast

MAX_UNROLL = 4096  # iterations of one `comptime for`
Breaks = tuple[tir.Op, list[Exit]]  # where breaks go: the scope that they leave, and its exits


class Loops(Expressions):
    """``for``, ``while``, ``break``, ``continue``, and the branches of a run-time ``if``."""

    def branch(self, test: Runtime, then: Callable[[], None], orelse: Callable[[], None], span: Span) -> None:
        """An ``if`` whose branches are elaborated one after the other and joined."""
        op = tir.Op("if", [test.value], [], {}, self.origin(span))
        before = self.state
        exits: list[Exit] = []
        for part in (then, orelse):
            self.state = dict(before)
            with self.block() as block:
                part()
                if not self.terminated:
                    exits.append(self.end_block("yield", None, span))
            op.blocks.append(block)
        self.append(op)
        self.merge(exits, before, op, span)

    def _for(self, node: ast.For, scope: Scope) -> None:
        span = node.iter.span
        if node.comptime:
            iterable = self.comptime_value(node.iter, scope)
        else:
            place = self.designate(node.iter, scope)
            t = place.type
            if isinstance(t, ArrayType):
                self._for_now(node, [self.part_place(place, i, t.elem, span) for i in range(t.size)], scope)
                return
            iterable = self.read(place, span)
        if isinstance(iterable, Poison):
            return
        if node.comptime or self.comptime_depth:
            self._for_now(node, [TemporaryPlace(v) for v in self._items(iterable, span)], scope)
        elif isinstance(iterable, RangeValue):
            self._with_else(node, scope, lambda breaks: self._for_later(node, iterable, scope, breaks))
        elif isinstance(iterable, TupleValue):
            help = "write `comptime for`"
            raise self.fail("E0338", "a run-time `for` goes over a range or an Array", span, help=help)
        else:
            raise self.fail(
                "E0338", f"a `for` goes over a range or an Array, not {iterable.type}", span,
                help=_range_instead(iterable, span),
            )  # fmt: skip

    def _items(self, iterable: RValue, span: Span) -> list[RValue]:
        """What a compile-time loop goes through."""
        if not isinstance(iterable, RangeValue):
            items = items_of(iterable)
            if items is None:
                raise self.fail(
                    "E0338", f"a `comptime for` goes over a range, an Array or a tuple, not {iterable.type}", span,
                    help=_range_instead(iterable, span),
                )  # fmt: skip
            return list(items)
        start, stop, step = (self.comptime_int(v, span) for v in (iterable.start, iterable.stop, iterable.step))
        if step == 0:
            raise self.fail("E0339", "a range with step 0", span, help="a step is not 0")
        numbers = range(start, stop, step)
        limit = MAX_UNROLL if not self.comptime_depth else 1_000_000
        if len(numbers) > limit:
            raise self.fail(
                "E0403", f"a compile-time loop of {len(numbers):,} iterations", span, help=f"the limit is {limit:,}"
            )
        t = next((v.type for v in (iterable.stop, iterable.start) if isinstance(v, Runtime)), types.INT)
        assert isinstance(t, SimdType)
        return [const(t, n) for n in numbers]

    def _for_now(self, node: ast.For, items: list[Place], scope: Scope) -> None:
        """The body once for each item."""
        if self.comptime_depth:
            for item in items:
                try:
                    self.execute(node.body, self._bind_target(node, item, scope))
                except BreakSignal:
                    return
                except ContinueSignal:
                    continue
            self.execute(node.orelse, Scope(scope))
            return
        if not _jumps(node.body):
            for item in items:
                if not self.terminated:
                    self.execute(node.body, self._bind_target(node, item, scope))
            self.execute(node.orelse, Scope(scope))
            return
        self._region(node.span, lambda whole, leave: self._unrolled(node, items, scope, whole, leave))

    def _unrolled(self, node: ast.For, items: list[Place], scope: Scope, whole: tir.Op, breaks: list[Exit]) -> None:
        """Items and run-time breaks: each iteration is a scope that `continue` leaves."""
        for item in items:
            if self.terminated:
                return

            def iteration(once: tir.Op, continues: list[Exit], item: Place = item) -> None:
                outer, self.loop = self.loop, LoopFrame(once, whole, continues, breaks)
                try:
                    self.execute(node.body, self._bind_target(node, item, scope))
                finally:
                    self.loop = outer

            self._region(node.span, iteration)
        if not self.terminated:
            self.execute(node.orelse, Scope(scope))

    def _region(self, span: Span, fill: Callable[[tir.Op, list[Exit]], None]) -> None:
        """A scope operation; ``fill`` elaborates its body and collects the exits that leave it early."""
        op = tir.Op("scope", [], [], {}, self.origin(span))
        exits: list[Exit] = []
        before = self.state
        self.state = dict(before)
        with self.block() as block:
            fill(op, exits)
            if not self.terminated:
                exits.append(self.end_block("leave", op, span))
        op.blocks = [block]
        self.append(op)
        self.merge(exits, before, op, span)

    def _bind_target(self, node: ast.For, item: Place, scope: Scope) -> Scope:
        """The names of one turn, in a scope of their own: values, variables (``var``), or other names (``ref``)."""
        inner = Scope(scope, loop=node.binding == "read")
        if node.binding == "ref" and isinstance(node.target, ast.Name):
            inner.declare(node.target.id, PlaceAlias(item))
            return inner
        for name, part in self.spread(node.target, self.read(item, node.iter.span), node.target.span):
            if node.binding == "var":
                self.new_variable(name, part.type, part, inner)
            else:
                inner.declare(name.id, part)
        return inner

    def spread(self, target: ast.Expr, value: RValue, span: Span) -> Iterator[tuple[ast.Name, RValue]]:
        """Each name of a declaration with the part of the value that it takes."""
        if isinstance(target, ast.Name):
            yield target, value
            return
        assert isinstance(target, ast.TupleExpr)
        parts = (value,) * len(target.items) if isinstance(value, Poison) else items_of(value)
        if parts is None or len(parts) != len(target.items):
            raise self.fail(
                "E0335", f"{len(target.items)} names for a value of type {value.type}", span,
                help="write as many names as it has parts",
            )  # fmt: skip
        for item, part in zip(target.items, parts, strict=True):
            yield from self.spread(item, part, span)

    def new_variable(self, name: ast.Name, t: Type, value: RValue, scope: Scope) -> Variable:
        raise NotImplementedError  # implemented above, in statements.py

    def _with_else(self, node: ast.For | ast.While, scope: Scope, loop: Callable[[Breaks | None], None]) -> None:
        """``for … else``: a scope around loop and else, which breaks leave."""
        if not node.orelse:
            loop(None)
            return

        def fill(op: tir.Op, exits: list[Exit]) -> None:
            loop((op, exits))
            if not self.terminated:
                self.execute(node.orelse, Scope(scope))

        self._region(node.span, fill)

    def _loop_body(self, frame: LoopFrame, body: ast.Block, scope: Scope, breaks: Breaks | None) -> None:
        """A loop's body; with an ``else`` its breaks leave the scope around both."""
        if breaks is None:
            self.execute(body, scope)
            return
        own = frame.leave_op, frame.leaves
        frame.leave_op, frame.leaves = breaks
        self.execute(body, scope)
        frame.leave_op, frame.leaves = own

    def _for_later(self, node: ast.For, iterable: RangeValue, scope: Scope, breaks: Breaks | None) -> None:
        start, stop, t = self._bounds(iterable, node.iter.span)
        if isinstance(iterable.step, Runtime) and not isinstance(iterable.step.value, tir.Const):
            self._for_stepping(node, start, stop, iterable.step, scope, breaks)
            return
        step = self.comptime_int(iterable.step, node.iter.span)
        if step == 0:
            raise self.fail("E0339", "a range with step 0", node.iter.span, help="a step is not 0")
        attrs = {"step": step, "signed": t.dtype.signed}
        op = tir.Op("for", [start.value, stop.value], [], attrs, self.origin(node.span), [tir.Block()])
        index = tir.Value(t.ty, node.target.id if isinstance(node.target, ast.Name) else "i")
        op.blocks[0].params.append(index)
        with self.carrying(node, scope, op, node.span) as frame:
            self._loop_body(frame, node.body, self._bind_target(node, TemporaryPlace(Runtime(t, index)), scope), breaks)

    def _for_stepping(
        self, node: ast.For, start: Runtime, stop: Runtime, step: Runtime, scope: Scope, breaks: Breaks | None
    ) -> None:
        """A loop whose step is known at run time: upwards, downwards, or none at all where the step is 0.

        The index is a variable that begins a step before the start: `continue` goes to the head too, where it moves on.
        Complements of signed numbers are in the opposite order, so that one comparison is enough for both directions.
        """
        span, t = node.iter.span, start.type
        assert isinstance(t, SimdType)
        name = node.target.id if isinstance(node.target, ast.Name) else "i"
        index = Variable(name, t, False, node.target.span)
        outer = Scope(scope)
        outer.declare(name, index)  # the loop carries what its text names
        self.state[index] = self.binary("-", start, step, span)
        zero, sign = const(t, 0), None
        limit: RValue = stop
        if t.dtype.signed:
            sign = self.binary(">>", step, const(t, t.dtype.bits - 1), span)  # all ones where it goes downwards
            limit = self.binary("^", stop, sign, span)
        op = tir.Op("loop", [], [], {}, self.origin(node.span), [tir.Block()])
        with self.carrying(node, outer, op, node.span) as frame:
            now = self.state[index] = self.binary("+", self.state[index], step, span)
            place = now if sign is None else self.binary("^", now, sign, span)
            moves = self.compare("<", zero, step, span) if sign is None else self.compare("!=", step, zero, span)
            more = self.condition(self.binary("&", moves, self.compare("<", place, limit, span), span), span)

            def done() -> None:
                frame.leaves.append(self.end_block("leave", op, span))

            self.branch(more, lambda: None, done, span)
            self._loop_body(frame, node.body, self._bind_target(node, TemporaryPlace(now), outer), breaks)
        del self.state[index]

    def _bounds(self, iterable: RangeValue, span: Span) -> tuple[Runtime, Runtime, SimdType]:
        values = (iterable.start, iterable.stop)
        t = next((v.type for v in values if isinstance(v, Runtime)), types.INT)
        start, stop = (self.convert(v, t, span) for v in values)
        assert isinstance(t, SimdType) and isinstance(start, Runtime) and isinstance(stop, Runtime)
        return start, stop, t

    def _while(self, node: ast.While, scope: Scope) -> None:
        if self.comptime_depth:
            self._while_now(node, scope)
        else:
            self._with_else(node, scope, lambda breaks: self._while_later(node, scope, breaks))

    def _while_now(self, node: ast.While, scope: Scope) -> None:
        while True:
            self.count_step(node.test.span)
            test = self.condition(self.evaluate(node.test, scope), node.test.span)
            if not is_comptime(test):
                raise self.fail(
                    "E0401", "this condition is not known at compile time", node.test.span, help=COMPTIME_VALUES
                )
            if not self.comptime_int(test, node.test.span):
                break
            try:
                self.execute(node.body, Scope(scope))
            except BreakSignal:
                return
            except ContinueSignal:
                continue
        self.execute(node.orelse, Scope(scope))

    def _while_later(self, node: ast.While, scope: Scope, breaks: Breaks | None) -> None:
        op = tir.Op("loop", [], [], {}, self.origin(node.span), [tir.Block()])
        with self.carrying(node, scope, op, node.span) as frame:
            test = self.condition(self.evaluate(node.test, scope), node.test.span)
            if not (isinstance(test.value, tir.Const) and test.value.value):

                def done() -> None:
                    frame.leaves.append(self.end_block("leave", op, node.test.span))

                self.branch(test, lambda: None, done, node.test.span)
            self._loop_body(frame, node.body, Scope(scope), breaks)

    def _jump(self, node: ast.Break | ast.Continue) -> None:
        stop = isinstance(node, ast.Break)
        if self.comptime_depth:
            raise BreakSignal if stop else ContinueSignal
        frame = self.loop
        if frame is None:
            word = "break" if stop else "continue"
            raise self.fail("E0340", f"`{word}` outside of a loop", node.span, help="`return` leaves a function")
        if stop:
            frame.leaves.append(self.end_block("leave", frame.leave_op, node.span))
        else:
            name = "leave" if frame.repeat_op.name == "scope" else "repeat"
            frame.repeats.append(self.end_block(name, frame.repeat_op, node.span))


def _range_instead(value: RValue, span: Span) -> str | None:
    """What to write where a number stands for the iterations."""
    if isinstance(value.type, SimdType) and value.type.width > 1:
        return f"write `for i in range(len({span.text}))`, and index it"
    counts = isinstance(value, Literal) or (isinstance(value.type, SimdType) and value.type.dtype.is_integer)
    return f"write `range({span.text})`" if counts else None


def _jumps(body: ast.Block) -> bool:
    """Whether a loop's body has a break or continue of that loop."""
    for statement in body:
        match statement:
            case ast.Break() | ast.Continue():
                return True
            case ast.If():
                if _jumps(statement.then) or _jumps(statement.orelse):
                    return True
            case ast.For() | ast.While():
                if _jumps(statement.orelse):
                    return True
    return False
