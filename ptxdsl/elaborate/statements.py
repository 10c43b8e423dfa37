"""Statements: variables, assignment, and control flow at compile time and at run time."""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl import tir, types
from ptxdsl.diagnostics import CompileError
from ptxdsl.elaborate.calls import Given
from ptxdsl.elaborate.control import BreakSignal, ContinueSignal, Exit, LoopFrame, ReturnSignal
from ptxdsl.elaborate.entities import (
    ArrayValue,
    Comptime,
    ComptimeAlias,
    FunctionValue,
    LanePlace,
    Literal,
    Place,
    PlaceAlias,
    Poison,
    RangeValue,
    Runtime,
    RValue,
    TemporaryPlace,
    TupleValue,
    Uninit,
    Variable,
    VariablePlace,
    const,
    is_comptime,
    with_comptime,
)
from ptxdsl.elaborate.expressions import Expressions
from ptxdsl.elaborate.operators import METHODS
from ptxdsl.elaborate.scope import Scope
from ptxdsl.record import dataclass
from ptxdsl.source import Span
from ptxdsl.syntax import ast
from ptxdsl.types import SimdType, StructType, TupleType, Type

MAX_UNROLL = 4096  # iterations of one `comptime for`

Breaks = tuple[tir.Op, list[Exit]]  # where breaks go: the scope that they leave, and its exits


@dataclass(frozen=True)
class ItemPlace:
    """``s[i]`` as the target of an assignment, where the struct ``s`` has ``__setitem__``."""

    setter: FunctionValue
    args: list[Given]
    span: Span


class Statements(Expressions):
    """One method a kind of statement."""

    def execute(self, body: ast.Block, scope: Scope) -> None:
        """Runs statements in order; one that is in error is reported, and the next is tried."""
        for statement in body:
            if self.terminated:
                return
            self.count_step(statement.span)
            try:
                self._statement(statement, scope)
            except CompileError as problem:
                if self.comptime_depth or self.call_depth:
                    raise
                self.sink.add(problem)
                self._poison(statement, scope)

    def _poison(self, statement: ast.Stmt, scope: Scope) -> None:
        """Names that a statement in error would have declared exist from now on, and are not complained about."""
        names: list[str] = []
        if isinstance(statement, ast.VarDecl):
            names = [n.id for n in statement.names]
        elif isinstance(statement, ast.ComptimeDecl | ast.FunctionDef):
            names = [statement.name]
        for name in names:
            scope.names.setdefault(name, Poison())

    def _statement(self, node: ast.Stmt, scope: Scope) -> None:
        match node:
            case ast.ExprStmt():
                self._expression(node, scope)
            case ast.VarDecl():
                self._var(node, scope)
            case ast.Assign():
                self._assign(node, scope)
            case ast.AugAssign():
                self._augmented(node, scope)
            case ast.If():
                self._if(node, scope)
            case ast.For():
                self._for(node, scope)
            case ast.While():
                self._while(node, scope)
            case ast.Return():
                self._return(node, scope)
            case ast.Break() | ast.Continue():
                self._jump(node)
            case ast.ComptimeDecl():
                self._comptime(node, scope)
            case ast.Assert():
                self._assert(node, scope)
            case ast.FunctionDef():
                self.declare_function(node, scope)
            case ast.Import():
                self.declare_import(node, scope, ast.Module(node.span, node.span.source, None, ()))
            case ast.Pass():
                pass
            case ast.StructDef():
                raise self.fail("E0211", "a struct inside a function", node.name_span, help="move it to the module")
            case _:
                raise self.fail("E0328", "this statement is not in the subset", node.span)

    def _expression(self, node: ast.ExprStmt, scope: Scope) -> None:
        if isinstance(node.value, ast.StringLiteral | ast.EllipsisLiteral):
            return
        self.evaluate(node.value, scope)

    # ---------------------------------------------------------------------------------------------------- variables

    def _var(self, node: ast.VarDecl, scope: Scope) -> None:
        t = None if node.type is None else self.type_of(node.type, scope)
        if t is not None and not t.at_runtime and not self.comptime_depth and t != types.STRING:
            assert node.type is not None
            raise self.fail("E0333", f"a variable cannot be of type {t}", node.type.span, help="use `comptime`")
        if node.value is None:
            if t is None:
                raise self.fail("E0334", "a variable needs a type or a value", node.span)
            for name in node.names:
                self.new_variable(name, t, Uninit(t), scope)
            return
        self.naming = node.names[0].id
        each = t if t is None or len(node.names) == 1 else TupleType((t,) * len(node.names))
        value = self.evaluate(node.value, scope, each)
        values = self._spread(node.names, value, node.value.span)
        for name, item in zip(node.names, values, strict=True):
            if t is not None:
                item = self.convert(item, t, node.value.span)
            self._initialise(name, item, scope, node.value.span)

    def _spread(self, names: tuple[ast.Name, ...], value: RValue, span: Span) -> tuple[RValue, ...]:
        if len(names) == 1:
            return (value,)
        if not isinstance(value, TupleValue) or len(value.items) != len(names):
            raise self.fail("E0335", f"{len(names)} names for a value of type {value.type}", span)
        return value.items

    def _initialise(self, name: ast.Name, value: RValue, scope: Scope, span: Span) -> None:
        if isinstance(value, Poison):
            scope.names.setdefault(name.id, value)
            return
        if not self.comptime_depth:
            value = self.materialize(value, span)
        if value.type == types.NONE:
            raise self.fail("E0336", "the value is None: there is nothing to name", span)
        self.new_variable(name, value.type, value, scope)

    def new_variable(self, name: ast.Name, t: Type, value: RValue, scope: Scope, mutable: bool = True) -> Variable:
        if name.id != "_":
            self.check_new(name.id, name.span, scope)
        variable = Variable(name.id, t, mutable, name.span)
        self.state[variable] = value if self.comptime_depth else with_comptime(value, False)
        scope.declare(name.id, variable)
        return variable

    def _comptime(self, node: ast.ComptimeDecl, scope: Scope) -> None:
        self.check_new(node.name, node.name_span, scope)
        if node.params:
            scope.declare(node.name, ComptimeAlias(node, scope))
        else:
            scope.declare(node.name, self.typed_alias(node, scope))

    # --------------------------------------------------------------------------------------------------- assignment

    def _assign(self, node: ast.Assign, scope: Scope) -> None:
        target = node.target
        if isinstance(target, ast.TupleExpr):
            items = self._items_for(target, node.value, scope)
            if len(items) != len(target.items):
                raise self.fail("E0335", f"{len(target.items)} targets for {len(items)} values", node.span)
            for part, item in zip(target.items, items, strict=True):
                self._store_to(part, item, node.value.span, scope)
            return
        if isinstance(target, ast.Name) and target.id == "_":
            self.evaluate(node.value, scope)
            return
        place = self._target(target, scope)
        if place is None:
            return
        if isinstance(place, ItemPlace):
            self._set_item(place, self.evaluate(node.value, scope), node.value.span)
            return
        value = self.evaluate(node.value, scope, place.type)
        if isinstance(place, LanePlace) and _has_call(node.value) and not _has_call(target):
            again = self._target(target, scope)  # the call may have changed the index
            assert isinstance(again, LanePlace)
            place = again
        self.write(place, self._stored(value, place.type, node.value.span), node.span)

    def _items_for(self, target: ast.TupleExpr, value: ast.Expr, scope: Scope) -> tuple[RValue, ...]:
        """The values for several targets; those written side by side take the types of the variables they go to."""
        if not isinstance(value, ast.TupleExpr) or len(value.items) != len(target.items):
            return self.array_items(self.evaluate(value, scope), value.span)
        pairs = zip(target.items, value.items, strict=True)
        return tuple(self.evaluate(item, scope, _variable_type(to, scope)) for to, item in pairs)

    def _store_to(self, target: ast.Expr, value: RValue, span: Span, scope: Scope) -> None:
        if isinstance(target, ast.Name) and target.id == "_":
            return
        place = self._target(target, scope)
        if isinstance(place, ItemPlace):
            self._set_item(place, value, span)
        elif place is not None:
            self.write(place, self._stored(value, place.type, span), target.span)

    def _stored(self, value: RValue, t: Type, span: Span) -> RValue:
        value = self.convert(value, t, span)
        return value if self.comptime_depth else with_comptime(value, False)

    def _target(self, node: ast.Expr, scope: Scope) -> Place | ItemPlace | None:
        """What an assignment writes; None where an earlier error made it meaningless."""
        if isinstance(node, ast.Name) and scope.lookup(node.id) is None:
            raise self.fail("E0212", f"`{node.id}` is not declared", node.span, help=f"declare it: `var {node.id} = …`")
        if isinstance(node, ast.Subscript):
            base = self.designate(node.value, scope)
            setter = self.method(base.type, "__setitem__", base) if isinstance(base.type, StructType) else None
            if setter is not None:
                return ItemPlace(setter, self.given(node.args, scope), node.span)
            place = self.subscript_of(base, node, scope)
        else:
            place = self.designate(node, scope)
        if isinstance(place, TemporaryPlace):
            if isinstance(place.value, Poison):
                return None
            raise self._not_assignable(node, scope)
        variable = _variable_of(place)
        if variable is not None and not variable.mutable:
            raise self._not_assignable(node, scope)
        return place

    def _set_item(self, item: ItemPlace, value: RValue, span: Span) -> None:
        """``s[i] = v`` on a struct is ``s.__setitem__(i, v)``."""
        given = Given(self, None, span, TemporaryPlace(value), None, None)
        self.call_function(item.setter, [*item.args, given], item.span)

    def _item(self, item: ItemPlace) -> RValue:
        owner, receiver = item.setter.owner, item.setter.receiver
        getter = None if owner is None else self.method(owner, "__getitem__", receiver)
        if getter is None:
            raise self.fail("E0331", f"{owner} has no `__getitem__`", item.span, help="define it beside `__setitem__`")
        return self.call_function(getter, item.args, item.span)

    def _not_assignable(self, node: ast.Expr, scope: Scope) -> CompileError:
        base = node
        while isinstance(base, ast.Attribute | ast.Subscript):
            base = base.value
        if isinstance(base, ast.Name):
            entity = scope.lookup(base.id)
            if isinstance(entity, Comptime | Literal | ComptimeAlias) or (
                isinstance(entity, Runtime) and is_comptime(entity)
            ):
                return self.fail("E0337", f"`{base.id}` is a compile-time name: it cannot change", node.span)
            return self.fail(
                "E0321", f"`{base.id}` is read-only here", node.span,
                help=f"take the argument as `mut {base.id}` or `var {base.id}`",
            )  # fmt: skip
        return self.fail("E0317", "this cannot be assigned", node.span)

    def _augmented(self, node: ast.AugAssign, scope: Scope) -> None:
        place = self._target(node.target, scope)
        if place is None:
            return
        if isinstance(place, ItemPlace):
            changed = self.binary(node.op, self._item(place), self.evaluate(node.value, scope), node.span)
            self._set_item(place, changed, node.span)
            return
        left = self.read(place, node.target.span)
        right = self.evaluate(node.value, scope)
        if isinstance(place.type, StructType):
            method = self.method(place.type, f"__i{METHODS[node.op]}__", place)
            if method is not None:
                self.call_function(
                    method, [Given(self, None, node.value.span, TemporaryPlace(right), None, None)], node.span
                )
                return
        result = self.binary(node.op, left, right, node.span)
        self.write(place, self._stored(result, place.type, node.span), node.span)

    # -------------------------------------------------------------------------------------------------- conditionals

    def _if(self, node: ast.If, scope: Scope) -> None:
        if node.comptime or self.comptime_depth:
            value = self.comptime_value(node.test, scope) if node.comptime else self.evaluate(node.test, scope)
            test = self.condition(value, node.test.span)
            if not is_comptime(test):
                raise self.fail("E0401", "this condition is not known at compile time", node.test.span)
            chosen = node.then if self.comptime_int(test, node.test.span) else node.orelse
            self.execute(chosen, scope if node.comptime and not self.comptime_depth else Scope(scope))
            return
        test = self.condition(self.evaluate(node.test, scope), node.test.span)
        self.branch(
            test,
            lambda: self.execute(node.then, Scope(scope)),
            lambda: self.execute(node.orelse, Scope(scope)),
            node.span,
        )

    def branch(self, test: Runtime, then: Callable[[], None], orelse: Callable[[], None], span: Span) -> None:
        """An ``if`` whose branches are elaborated one after the other and joined."""
        op = tir.Op("if", [test.value], [], {}, self.at(span))
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

    # --------------------------------------------------------------------------------------------------------- loops

    def _for(self, node: ast.For, scope: Scope) -> None:
        iterable = self.comptime_value(node.iter, scope) if node.comptime else self.evaluate(node.iter, scope)
        if isinstance(iterable, Poison):
            return
        if node.comptime or self.comptime_depth:
            self._for_now(node, iterable, scope)
        elif isinstance(iterable, RangeValue):
            self._with_else(node, scope, lambda breaks: self._for_later(node, iterable, scope, breaks))
        elif isinstance(iterable, ArrayValue | TupleValue):
            raise self.fail("E0338", "a run-time `for` goes over a range", node.iter.span, help="write `comptime for`")
        else:
            raise self.fail("E0338", f"a `for` goes over a range, not {iterable.type}", node.iter.span)

    def _items(self, iterable: RValue, span: Span) -> list[RValue]:
        """What a compile-time loop goes through."""
        if not isinstance(iterable, RangeValue):
            return list(self.array_items(iterable, span))
        start, stop, step = (self.comptime_int(v, span) for v in (iterable.start, iterable.stop, iterable.step))
        if step == 0:
            raise self.fail("E0339", "a range with step 0", span)
        numbers = range(start, stop, step)
        limit = MAX_UNROLL if not self.comptime_depth else 1_000_000
        if len(numbers) > limit:
            raise self.fail(
                "E0403", f"a compile-time loop of {len(numbers):,} iterations", span, help=f"the limit is {limit:,}"
            )
        t = next((v.type for v in (iterable.stop, iterable.start) if isinstance(v, Runtime)), types.INT)
        assert isinstance(t, SimdType)
        return [const(t, n) for n in numbers]

    def _for_now(self, node: ast.For, iterable: RValue, scope: Scope) -> None:
        items = self._items(iterable, node.iter.span)
        if self.comptime_depth:
            for item in items:
                try:
                    self.execute(node.body, self._bind_target(node.target, item, scope))
                except BreakSignal:
                    return
                except ContinueSignal:
                    continue
            self.execute(node.orelse, Scope(scope))
            return
        if not _jumps(node.body):
            for item in items:
                self.execute(node.body, self._bind_target(node.target, item, scope))
            self.execute(node.orelse, Scope(scope))
            return
        self._region(node.span, lambda whole, leave: self._unrolled(node, items, scope, whole, leave))

    def _unrolled(self, node: ast.For, items: list[RValue], scope: Scope, whole: tir.Op, breaks: list[Exit]) -> None:
        """A `comptime for` with run-time breaks: each iteration is a scope that `continue` leaves."""
        for item in items:
            if self.terminated:
                return

            def iteration(once: tir.Op, continues: list[Exit], item: RValue = item) -> None:
                outer, self.loop = self.loop, LoopFrame(once, whole, continues, breaks)
                try:
                    self.execute(node.body, self._bind_target(node.target, item, scope))
                finally:
                    self.loop = outer

            self._region(node.span, iteration)
        if not self.terminated:
            self.execute(node.orelse, Scope(scope))

    def _region(self, span: Span, fill: Callable[[tir.Op, list[Exit]], None]) -> None:
        """A scope operation; ``fill`` elaborates its body and collects the exits that leave it early."""
        op = tir.Op("scope", [], [], {}, self.at(span))
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

    def _bind_target(self, target: ast.Expr, item: RValue, scope: Scope) -> Scope:
        inner = Scope(scope)
        if isinstance(target, ast.TupleExpr):
            for name, part in zip(target.items, self.array_items(item, target.span), strict=True):
                assert isinstance(name, ast.Name)
                inner.declare(name.id, part)
        else:
            assert isinstance(target, ast.Name)
            inner.declare(target.id, item)
        return inner

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
        start, stop, step, t = self._bounds(iterable, node.iter.span)
        attrs = {"step": step, "signed": t.dtype.signed}
        op = tir.Op("for", [start.value, stop.value], [], attrs, self.at(node.span), [tir.Block()])
        index = tir.Value(t.ty, node.target.id if isinstance(node.target, ast.Name) else "i")
        op.blocks[0].params.append(index)
        with self.carrying(node, scope, op, node.span) as frame:
            self._loop_body(frame, node.body, self._bind_target(node.target, Runtime(t, index), scope), breaks)

    def _bounds(self, iterable: RangeValue, span: Span) -> tuple[Runtime, Runtime, int, SimdType]:
        values = (iterable.start, iterable.stop)
        t = next((v.type for v in values if isinstance(v, Runtime)), types.INT)
        start, stop = (self.convert(v, t, span) for v in values)
        assert isinstance(t, SimdType) and isinstance(start, Runtime) and isinstance(stop, Runtime)
        step = iterable.step
        if isinstance(step, Runtime) and not isinstance(step.value, tir.Const):
            raise self.fail("E0339", "a range's step must be a constant", span, help="use a `while` loop")
        number = self.comptime_int(step, span)
        if number == 0:
            raise self.fail("E0339", "a range with step 0", span)
        return start, stop, number, t

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
                raise self.fail("E0401", "this condition is not known at compile time", node.test.span)
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
        op = tir.Op("loop", [], [], {}, self.at(node.span), [tir.Block()])
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
            raise self.fail("E0340", f"`{word}` outside of a loop", node.span)
        if stop:
            frame.leaves.append(self.end_block("leave", frame.leave_op, node.span))
        else:
            name = "leave" if frame.repeat_op.name == "scope" else "repeat"
            frame.repeats.append(self.end_block(name, frame.repeat_op, node.span))

    def _return(self, node: ast.Return, scope: Scope) -> None:
        frame = self.function
        assert frame is not None
        value = self._returned(node, scope)
        if self.comptime_depth:
            raise ReturnSignal(value)
        if frame.out is not None:
            state_value = self.state[frame.out]
            if isinstance(state_value, Uninit):
                raise self.fail("E0210", f"`{frame.name}` returns before its result has a value", node.span)
            frame.returns.append(self.end_block("leave", frame.op, node.span, state_value))
            return
        frame.returns.append(self.end_block("leave", frame.op, node.span, value))

    def _returned(self, node: ast.Return, scope: Scope) -> RValue:
        frame = self.function
        assert frame is not None
        none = Comptime(types.NONE, None)
        if frame.result is None:
            if node.value is not None:
                value = self.evaluate(node.value, scope)
                if value.type != types.NONE:
                    raise self.fail(
                        "E0341", f"`{frame.name}` returns nothing", node.value.span, help="declare the result: `-> T`"
                    )
            return none
        if frame.out is not None and node.value is None:
            return none
        if node.value is None:
            raise self.fail("E0341", f"`{frame.name}` must return a value of type {frame.result}", node.span)
        value = self.evaluate(node.value, scope, frame.result)
        return self._stored(value, frame.result, node.value.span)

    # ------------------------------------------------------------------------------------------------------- asserts

    def _assert(self, node: ast.Assert, scope: Scope) -> None:
        test = self.condition(self.comptime_value(node.test, scope), node.test.span)
        if self.comptime_int(test, node.test.span):
            return
        message = f"`{node.test.span.text}` does not hold"
        if node.message is not None:
            text = self.comptime_value(node.message, scope)
            if isinstance(text, Comptime) and isinstance(text.value, str):
                message = text.value
        raise self.fail("E0407", f"compile-time assertion failed: {message}", node.test.span)


def _variable_of(place: Place) -> Variable | None:
    while isinstance(place, LanePlace):
        place = place.base
    return place.variable if isinstance(place, VariablePlace) else None


def _variable_type(target: ast.Expr, scope: Scope) -> Type | None:
    """The type of a target that is a variable; None for another, which is not evaluated before the values."""
    entity = scope.lookup(target.id) if isinstance(target, ast.Name) else None
    if isinstance(entity, PlaceAlias):
        return entity.place.type
    return entity.type if isinstance(entity, Variable) else None


def _has_call(node: ast.Node) -> bool:
    return any(isinstance(n, ast.Call) for n in _walk(node))


def _walk(node: ast.Node) -> list[ast.Node]:
    found, stack = [], [node]
    while stack:
        item = stack.pop()
        found.append(item)
        for field in item.__dataclass_fields__:
            value = getattr(item, field)
            for child in value if isinstance(value, tuple) else (value,):
                if isinstance(child, ast.Node):
                    stack.append(child)
    return found


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
