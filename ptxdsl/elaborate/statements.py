"""Statements: variables, assignment, and control flow at compile time and at run time."""

from __future__ import annotations

from ptxdsl.diagnostics import MOST_PROBLEMS, CompileError
from ptxdsl.elaborate import types
from ptxdsl.elaborate.context import COMPTIME_VALUES, Exhausted
from ptxdsl.elaborate.control import root
from ptxdsl.elaborate.convert import items_of
from ptxdsl.elaborate.entities import (
    NONE_VALUE,
    Comptime,
    ComptimeAlias,
    FunctionValue,
    LanePlace,
    Place,
    PlaceAlias,
    Poison,
    RValue,
    StructType,
    TemporaryPlace,
    Uninit,
    Variable,
    Variadic,
)
from ptxdsl.elaborate.frames import ReturnSignal
from ptxdsl.elaborate.loops import Loops
from ptxdsl.elaborate.matching import Given
from ptxdsl.elaborate.operators import METHODS
from ptxdsl.elaborate.read_only import not_assignable
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.suggestions import meant
from ptxdsl.elaborate.types import SimdType, TupleType, Type
from ptxdsl.elaborate.values import is_comptime, with_comptime
from ptxdsl.record import dataclass
from ptxdsl.source import Span
from ptxdsl.syntax import ast

# What a variable cannot hold: which value it has is decided before the kernel runs.
COMPTIME_ONLY = (types.DTYPE, types.ANY_TYPE, types.SPACE, types.ORIGIN, types.FUNCTION, types.MODULE)


@dataclass(frozen=True)
class ItemPlace:
    """``s[i]`` as the target of an assignment, where the struct ``s`` has ``__setitem__``."""

    setter: FunctionValue
    args: list[Given]
    span: Span


class Statements(Loops):
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
                if self.comptime_depth or self.site is not None or isinstance(problem, Exhausted):
                    raise
                if self.call_depth:  # a function's are told at its end, with the call that led there
                    assert self.function is not None
                    self.function.problems.append(problem)
                    if len(self.function.problems) >= MOST_PROBLEMS:
                        return
                else:
                    self.sink.add(problem)
                    if self.sink.full:
                        raise Exhausted(()) from None
                self._poison(statement, scope)

    def _poison(self, statement: ast.Stmt, scope: Scope) -> None:
        """Names that a statement in error would have declared exist from now on, and are not complained about; nor
        are variables to which it would have given a value."""
        names: list[str] = []
        if isinstance(statement, ast.VarDecl):
            names = [n.id for n in ast.names_of(statement.target)]
        elif isinstance(statement, ast.RefDecl):
            names = [statement.name.id]
        elif isinstance(statement, ast.ComptimeDecl | ast.FunctionDef):
            names = [statement.name]
        for name in names:
            scope.names.setdefault(name, Poison())
        self.in_error.update(self.mentioned(statement, scope))

    def _statement(self, node: ast.Stmt, scope: Scope) -> None:
        match node:
            case ast.ExprStmt():
                self._expression(node, scope)
            case ast.VarDecl():
                self._var(node, scope)
            case ast.Assign():
                self._assign(node, scope)
            case ast.RefDecl():
                self._ref(node, scope)
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
            case ast.TraitDef():
                raise self.fail("E0211", "a trait inside a function", node.name_span, help="move it to the module")
            case _:
                raise AssertionError(node)

    def _expression(self, node: ast.ExprStmt, scope: Scope) -> None:
        if isinstance(node.value, ast.StringLiteral | ast.EllipsisLiteral):
            return
        value = self.evaluate(node.value, scope)
        if isinstance(value, FunctionValue | Variadic):
            text = node.value.span.text
            raise self.fail("E0347", f"`{text}` is not called", node.span, help=f"write `{text}()`")

    def _var(self, node: ast.VarDecl, scope: Scope) -> None:
        t = None if node.type is None else self.type_of(node.type, scope)
        names = ast.names_of(node.target)
        if t is not None and not t.at_runtime and not self.comptime_depth and (t != types.STRING or not node.value):
            assert node.type is not None
            raise self.fail(
                "E0333", f"a variable cannot be of type {t}", node.type.span,
                help=f"such values exist at compile time: `comptime {names[0].id} = …`",
            )  # fmt: skip
        if isinstance(t, StructType):
            self.fields_of(t)  # what is wrong with them is said even where no value is made
        if node.value is None:
            assert t is not None  # the parser asks for one or the other
            for name in names:
                self.new_variable(name, t, Uninit(t), scope)
            return
        each = t if t is None or len(names) == 1 else TupleType((t,) * len(names))
        outer, self.naming = self.naming, names[0].id
        value = self.evaluate(node.value, scope, each)
        self.naming = outer
        for name, item in self.spread(node.target, value, node.value.span):
            if t is not None:
                item = self.convert(item, t, node.value.span)
            self._initialise(name, item, scope, node.value.span)

    def _ref(self, node: ast.RefDecl, scope: Scope) -> None:
        """``ref x = place``: the place is found once, here."""
        place = self.designate(node.value, scope)
        if isinstance(place, TemporaryPlace) and not isinstance(place.value, Poison):
            raise self.fail(
                "E0349", "a `ref` names a variable or something in memory; this is only a value", node.value.span,
                help=f"keep it: `var {node.name.id} = …`",
            )  # fmt: skip
        self.check_new(node.name.id, node.name.span, scope)
        scope.declare(node.name.id, PlaceAlias(place))

    def _initialise(self, name: ast.Name, value: RValue, scope: Scope, span: Span) -> None:
        if isinstance(value, Poison):
            scope.names.setdefault(name.id, value)
            return
        value = self.materialize(value, span)
        if value.type == types.NONE:
            help = "make it a statement of its own"
            raise self.fail("E0336", "this has no result to give a name to", span, help=help)
        if value.type in COMPTIME_ONLY and not self.comptime_depth:
            help = f"such values exist at compile time: `comptime {name.id} = …`"
            if isinstance(value, FunctionValue):
                help = f"to call it, write `()` at its end; {help}"
            raise self.fail("E0333", f"a variable cannot be of type {value.type}", span, help=help)
        self.new_variable(name, value.type, value, scope)

    def new_variable(self, name: ast.Name, t: Type, value: RValue, scope: Scope) -> Variable:
        if name.id != "_":
            self.check_new(name.id, name.span, scope)
        variable = Variable(name.id, t, True, name.span, self.comptime_depth > 0)
        self.state[variable] = value if self.comptime_depth else with_comptime(value, False)
        scope.declare(name.id, variable)
        return variable

    def _comptime(self, node: ast.ComptimeDecl, scope: Scope) -> None:
        self.check_new(node.name, node.name_span, scope)
        if node.params:
            scope.declare(node.name, ComptimeAlias(node, scope))
        else:
            scope.declare(node.name, self.typed_alias(node, scope))

    def _assign(self, node: ast.Assign, scope: Scope) -> None:
        target = node.target
        if isinstance(target, ast.TupleExpr):
            self._assign_several(target, node, scope)
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
        place = self._settled(place, target, scope)
        self.write(place, self._stored(value, place.type, node.value.span), node.span)

    def _assign_several(self, target: ast.TupleExpr, node: ast.Assign, scope: Scope) -> None:
        """``a, b = …``: the targets are evaluated, then the values, then all are stored."""
        targets, span = target.items, node.value.span
        dropped = [isinstance(t, ast.Name) and t.id == "_" for t in targets]
        places = [None if d else self._target(t, scope) for t, d in zip(targets, dropped, strict=True)]
        items = self._items_for(places, node.value, scope)
        if len(items) != len(targets):
            raise self.fail(
                "E0335",
                f"{len(targets)} targets for {len(items)} values",
                node.span,
                help="write as many targets as there are values",
            )
        for to, place, value in zip(targets, places, items, strict=True):
            if isinstance(place, ItemPlace):
                self._set_item(place, value, span)
            elif place is not None:
                place = self._settled(place, to, scope)
                self.write(place, self._stored(value, place.type, span), to.span)

    def _items_for(self, places: list[Place | ItemPlace | None], value: ast.Expr, scope: Scope) -> tuple[RValue, ...]:
        """The values for several targets; those written side by side take the types of the places they go to."""
        if not isinstance(value, ast.TupleExpr) or len(value.items) != len(places):
            whole = self.evaluate(value, scope)
            items = items_of(whole)
            if items is None:
                raise self.fail(
                    "E0335",
                    f"{len(places)} targets for a value of type {whole.type}",
                    value.span,
                    help="write as many targets as there are values",
                )
            return items
        wanted = tuple(None if p is None or isinstance(p, ItemPlace) else p.type for p in places)
        return tuple(self.evaluate_items(value.items, scope, wanted))

    def _settled(self, place: Place, target: ast.Expr, scope: Scope) -> Place:
        """The place as it is when the value is stored: a variable that indexes a vector is read then."""
        if not (isinstance(place, LanePlace) and isinstance(place.base.type, SimdType)):
            return place
        if isinstance(target, ast.Subscript) and isinstance(target.args[0].value, ast.Name | ast.Attribute):
            return self.element_place(target, place.base, place.base.type, scope)
        return place

    def _stored(self, value: RValue, t: Type, span: Span) -> RValue:
        value = self.convert(value, t, span)
        return value if self.comptime_depth else with_comptime(value, False)

    def _target(self, node: ast.Expr, scope: Scope) -> Place | ItemPlace | None:
        """What an assignment writes; None where an earlier error made it meaningless."""
        if isinstance(node, ast.Name) and scope.lookup(node.id) is None:
            variables = (n for n in scope.visible() if isinstance(scope.lookup(n), Variable | PlaceAlias))
            help = meant(node.id, variables) or f"declare it: `var {node.id} = …`"
            scope.declare(node.id, Poison())  # one error for all of its uses
            raise self.fail("E0212", f"`{node.id}` is not declared", node.span, help=help)
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
            raise not_assignable(self, node, scope)
        variable = root(place)
        if variable is not None and not variable.mutable:
            raise not_assignable(self, node, scope)
        return place

    def _set_item(self, item: ItemPlace, value: RValue, span: Span) -> None:
        """``s[i] = v`` on a struct is ``s.__setitem__(i, v)``."""
        given = Given(self, span, TemporaryPlace(value))
        self.call_function(item.setter, [*item.args, given], item.span)

    def _item(self, item: ItemPlace) -> RValue:
        owner, receiver = item.setter.owner, item.setter.receiver
        getter = None if owner is None else self.method(owner, "__getitem__", receiver)
        if getter is None:
            raise self.fail("E0331", f"{owner} has no `__getitem__`", item.span, help="define it beside `__setitem__`")
        return self.call_function(getter, item.args, item.span)

    def _augmented(self, node: ast.AugAssign, scope: Scope) -> None:
        place = self._target(node.target, scope)
        if place is None:
            return
        if isinstance(place, ItemPlace):
            right = self.evaluate(node.value, scope)
            self._set_item(place, self.binary(node.op, self._item(place), right, node.span), node.span)
            return
        right = self.evaluate(node.value, scope)
        place = self._settled(place, node.target, scope)
        if isinstance(place.type, StructType):
            method = self.method(place.type, f"__i{METHODS[node.op]}__", place)
            if method is not None:
                self.call_function(method, [Given(self, node.value.span, TemporaryPlace(right))], node.span)
                return
        result = self.binary(node.op, self.read(place, node.target.span), right, node.span)
        self.write(place, self._stored(result, place.type, node.span), node.span)

    def _if(self, node: ast.If, scope: Scope) -> None:
        if node.comptime or self.comptime_depth:
            value = self.comptime_value(node.test, scope) if node.comptime else self.evaluate(node.test, scope)
            test = self.condition(value, node.test.span)
            if not is_comptime(test):
                raise self.fail(
                    "E0401", "this condition is not known at compile time", node.test.span, help=COMPTIME_VALUES
                )
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

    def _return(self, node: ast.Return, scope: Scope) -> None:
        frame = self.function
        assert frame is not None
        value = self._returned(node, scope)
        if frame.out is not None and node.value is None:
            if isinstance(self.state[frame.out], Uninit):
                raise self.fail(
                    "E0210", f"`{frame.name}` returns before its result has a value", node.span,
                    help=f"assign `{frame.out.name}` before this line",
                )  # fmt: skip
            value = self.out_value(frame, node.span)
        if self.comptime_depth:
            raise ReturnSignal(value)
        frame.returns.append(self.end_block("leave", frame.op, node.span, value))

    def _returned(self, node: ast.Return, scope: Scope) -> RValue:
        frame = self.function
        assert frame is not None
        if frame.result is None:
            if node.value is not None:
                value = self.evaluate(node.value, scope)
                if value.type != types.NONE:
                    help = "declare the result behind the arguments: `-> Type:`"
                    if self.call_depth == 0:
                        help += "; a kernel writes its results through pointers"
                    raise self.fail("E0341", f"`{frame.name}` returns nothing", node.value.span, help=help)
            return NONE_VALUE
        if frame.out is not None and node.value is None:
            return NONE_VALUE
        if node.value is None:
            raise self.fail(
                "E0341", f"`{frame.name}` must return a value of type {frame.result}", node.span,
                help=f"write `return …`, or leave out `-> {frame.result}`",
            )  # fmt: skip
        value = self.evaluate(node.value, scope, frame.result)
        return self._stored(value, frame.result, node.value.span)

    def _assert(self, node: ast.Assert, scope: Scope) -> None:
        value = self.comptime_value(node.test, scope)
        if isinstance(value, Poison) or self.comptime_int(self.condition(value, node.test.span), node.test.span):
            return
        message = f"compile-time assertion failed: `{node.test.span.text}` does not hold"
        if node.message is not None:
            text = self.comptime_value(node.message, scope)
            if isinstance(text, Comptime) and isinstance(text.value, str):
                if node.span.source.library:  # its words stand for themselves; a second line is the help
                    message, _, help = text.value.partition("\n")
                    raise self.fail("E0407", message, node.test.span, help=help or None)
                message = f"compile-time assertion failed: {text.value}"
        raise self.fail("E0407", message, node.test.span)
