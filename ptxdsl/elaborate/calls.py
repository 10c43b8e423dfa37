"""Calls: overload resolution, binding of arguments, and the expansion of the callee's body in place."""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl import tir
from ptxdsl.diagnostics import CompileError
from ptxdsl.elaborate import types
from ptxdsl.elaborate.arguments import Arguments
from ptxdsl.elaborate.context import CALL_STEPS, Call, Exhausted
from ptxdsl.elaborate.entities import (
    NONE_VALUE,
    FunctionDecl,
    FunctionValue,
    GenericType,
    LanePlace,
    MemoryPlace,
    PlaceAlias,
    Poison,
    RValue,
    StructType,
    StructValue,
    TemporaryPlace,
    Uninit,
    Variable,
    VariablePlace,
)
from ptxdsl.elaborate.frames import FunctionFrame, ReturnSignal
from ptxdsl.elaborate.matching import VARIADIC, Bound, Given
from ptxdsl.elaborate.parameters import ParamArgs
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.types import Type
from ptxdsl.elaborate.values import uninitialised, with_comptime
from ptxdsl.source import Span
from ptxdsl.syntax import ast


class Calls(Arguments):
    """Functions and methods."""

    def call_builtin(self, bound: Bound) -> RValue:
        raise NotImplementedError

    def construct(self, t: Type | GenericType, args: list[Given], span: Span) -> RValue:
        raise NotImplementedError

    def call_function(self, function: FunctionValue, args: list[Given], span: Span) -> RValue:
        """Calls the overload that fits best."""
        if not function.overloads[0].is_builtin:
            self.count_step(span, CALL_STEPS)
        # Choosing is inside as well: defaults, `where` clauses and implicit conversions call functions too.
        with self.deeper(span):
            bound = self.resolve(function, args, span)
            if any(isinstance(value, Poison) for value in bound.binding.values.values()):
                return Poison()  # an error in a parameter has been reported
            return self.invoke(bound)

    def resolve(self, function: FunctionValue, args: list[Given], span: Span) -> Bound:
        if len(function.overloads) == 1:
            return self.bind(function.overloads[0], function, args, span)
        possible = [d for d in function.overloads if self.takes(d, function, args)]
        if len(possible) == 1:
            undo = self._checkpoint(args)
            try:
                return self.bind(possible[0], function, args, span)
            except Exhausted:
                raise
            except CompileError:
                undo()  # what is wrong with the others is to be told too
        fitting: list[Bound] = []
        problems: list[CompileError] = []
        for decl in function.overloads:
            undo = self._checkpoint(args)
            try:
                fitting.append(self.bind(decl, function, args, span, dry=True))
            except Exhausted:
                raise
            except CompileError as problem:
                problems.append(problem)
            finally:
                undo()
        if not fitting:
            raise self.no_overload(function, args, problems, span)
        best = min(b.conversions for b in fitting)
        chosen = [b for b in fitting if b.conversions == best]
        if len(chosen) > 1:
            chosen = self._most_specific(chosen)
        if len(chosen) > 1:
            raise self.fail(
                "E0320", f"the call of `{function.name}` is ambiguous", span,
                *((b.decl.node.name_span, "this overload fits") for b in chosen[:3]), help="convert an argument",
            )  # fmt: skip
        return self.bind(chosen[0].decl, function, args, span)

    def _checkpoint(self, args: list[Given]) -> Callable[[], None]:
        """As ``checkpoint``; what arguments have loaded is undone with the operations that loaded it."""
        kept, undo = [a.kept for a in args], self.checkpoint()

        def undo_all() -> None:
            undo()
            for argument, value in zip(args, kept, strict=True):
                argument.kept = value

        return undo_all

    @staticmethod
    def _most_specific(candidates: list[Bound]) -> list[Bound]:
        """One without a variadic argument is more specific, then one with fewer parameters to infer."""

        def breadth(bound: Bound) -> tuple[bool, int]:
            node = bound.decl.node
            return any(a.kind in VARIADIC for a in node.args), len(node.params)

        least = min(map(breadth, candidates))
        return [b for b in candidates if breadth(b) == least]

    def no_overload(
        self, function: FunctionValue, args: list[Given], problems: list[CompileError], span: Span
    ) -> CompileError:
        if len(problems) == 1 or all(p.diagnostics[:1] == problems[0].diagnostics[:1] for p in problems):
            return problems[0]
        arity = [
            p
            for p, d in zip(problems, function.overloads, strict=True)
            if len(d.node.args) - (d.struct is not None and not d.is_static) == len(args)
        ]
        if len(arity) == 1:
            return arity[0]
        shown = ", ".join(str(a.value.type) if a.place is not None else "…" for a in args)
        notes = []
        for problem, decl in list(zip(problems, function.overloads, strict=True))[:4]:
            reason = problem.diagnostics[0].message if problem.diagnostics else "does not fit"
            notes.append((decl.node.name_span, f"not this one: {reason}"))
        help = None
        if function.overloads[0].node.span.source.library:  # whose declarations are not shown
            help = "; or ".join(dict.fromkeys(label.removeprefix("not this one: ") for _, label in notes[:2]))
        return self.fail("E0319", f"no overload of `{function.name}` takes ({shown})", span, *notes, help=help)

    def invoke(self, bound: Bound) -> RValue:
        """Expands the callee's body here."""
        library = bound.decl.node.span.source.library
        site, entered, call = self.site, self.entered, self.call
        if not library:
            self.check_decorators(bound.decl.node.decorators)
            self.call = Call(self.origin(bound.span), bound.decl.name)
        elif site is None:
            self.entered = bound.decl.name
        self.site = self.at(bound.span) if library else None
        try:
            return self.call_builtin(bound) if bound.decl.is_builtin else self._expand(bound)
        except CompileError as problem:
            raise self._called_from(problem, bound, library, site) from None
        except RecursionError:
            help = "a recursion must end on compile-time parameters"
            raise self.exhausted("E0406", "the expansion is nested too deeply", bound.span, help) from None
        finally:
            self.site, self.entered, self.call = site, entered, call

    @staticmethod
    def _called_from(problem: CompileError, bound: Bound, library: bool, site: Span | None) -> CompileError:
        """Adds "in this call" to what went wrong in a function of the user's."""
        if library or site is not None:
            return problem
        return problem.noted(bound.span, f"in this call of `{bound.decl.name}`")

    def result_type(self, decl: FunctionDecl, scope: Scope) -> Type:
        return types.NONE if decl.node.returns is None else self.type_of(decl.node.returns, scope)

    def result_of(self, bound: Bound) -> Type:
        """The type that a call gives. Without parameters it is the same at every call."""
        decl, node = bound.decl, bound.decl.node.returns
        if node is None or bound.binding.params:
            return self.result_type(decl, bound.binding.scope)
        key = (node, bound.owner)
        if key not in decl.types:
            decl.types[key] = self.result_type(decl, bound.binding.scope)
        return decl.types[key]

    def _expand(self, bound: Bound) -> RValue:
        node = bound.decl.node
        scope = Scope(bound.binding.scope)
        span = bound.span
        out: Variable | None = None
        with self.outside():
            for argument in node.args:
                if argument.convention == "out":
                    out = self._out_variable(argument, bound)
                    scope.declare(argument.name, PlaceAlias(VariablePlace(out, out.type)))
                else:
                    self._declare_argument(scope, argument, bound)
            result = out.type if out is not None else self.result_of(bound)
            op = tir.Op("scope", [], [], {}, self.origin(span))
            self.function = FunctionFrame(op, None if result == types.NONE else result, bound.decl.name, out=out)
            if self.comptime_depth:
                value = self._run_now(bound, scope)
            else:
                value = self._run_later(bound, scope, op)
        return value

    def _out_variable(self, argument: ast.ArgDecl, bound: Bound) -> Variable:
        if argument.name == "self" and bound.owner is not None:
            t = bound.owner
        else:
            assert argument.type is not None
            t = self.type_of(argument.type, bound.binding.scope)
        return Variable(argument.name, t, True, argument.span, self.comptime_depth > 0)

    def _blank(self, t: Type) -> RValue:
        """The result before anything is assigned; a struct without fields is complete as it is."""
        if isinstance(t, StructType) and not self.fields_of(t):
            return StructValue(t, ())
        return Uninit(t)

    def _declare_argument(self, scope: Scope, argument: ast.ArgDecl, bound: Bound) -> None:
        given = bound.args[argument.name]
        if isinstance(given, VariablePlace | MemoryPlace | LanePlace | TemporaryPlace):
            scope.declare(argument.name, PlaceAlias(given))
            return
        # The library's methods have no way that is taken for some constants alone: an index out of range is told there.
        known = self.comptime_depth or (bound.owner is not None and argument.span.source.library)
        value = given if known else with_comptime(given, False)
        if argument.convention == "var":
            t = bound.arg_types[argument.name]
            variable = Variable(argument.name, t, True, argument.span, self.comptime_depth > 0)
            self.state[variable] = value
            scope.declare(argument.name, variable)
        else:
            scope.declare(argument.name, value)

    def _run_now(self, bound: Bound, scope: Scope) -> RValue:
        """At compile time: statements are executed one after the other."""
        frame = self.function
        assert frame is not None
        if frame.out is not None:
            self.state[frame.out] = self._blank(frame.out.type)
        try:
            self.execute(bound.decl.node.body, scope)
        except ReturnSignal as signal:
            return signal.value
        return self.end_value(bound.decl)

    def out_value(self, frame: FunctionFrame, where: Span) -> RValue:
        assert frame.out is not None
        value = self.state[frame.out]
        missing = uninitialised(value)
        if missing is not None:
            name = self._part_name(frame.out.type, missing)
            what = f"`{frame.out.name}.{name}`" if name else f"`{frame.out.name}`"
            raise self.fail(
                "E0210", f"`{frame.name}` leaves {what} without a value", where, help=f"assign {what} on every path",
            )  # fmt: skip
        return value

    def _part_name(self, t: Type, path: tuple[int, ...]) -> str:
        if path and isinstance(t, StructType):
            return self.fields_of(t)[path[0]][0]
        return ""

    def end_value(self, decl: FunctionDecl) -> RValue:
        """What a function gives that ends without a `return`."""
        frame = self.function
        assert frame is not None
        if frame.out is not None:
            return self.out_value(frame, decl.node.name_span)
        if frame.result is not None:
            raise self.fail(
                "E0327", f"`{decl.name}` can end without a `return`", decl.node.name_span,
                help="return a value on every path",
            )  # fmt: skip
        return NONE_VALUE

    def _run_later(self, bound: Bound, scope: Scope, op: tir.Op) -> RValue:
        """At run time: the body becomes a scope; with a single way out it is part of the caller's block."""
        frame = self.function
        assert frame is not None
        before = self.state
        self.state = dict(before)
        if frame.out is not None:
            self.state[frame.out] = self._blank(frame.out.type)
        with self.block() as block:
            self.execute(bound.decl.node.body, scope)
            if frame.problems:
                raise CompileError(d for problem in frame.problems for d in problem.diagnostics)
            if not self.terminated:
                frame.returns.append(self.end_block("leave", op, bound.span, self.end_value(bound.decl)))
        exits = frame.returns
        if len(exits) == 1 and exits[0].ops is block.ops:
            block.ops.pop()
            self.ops.extend(block.ops)
            self.state = {v: exits[0].state[v] for v in before}
            return exits[0].value or NONE_VALUE
        op.blocks = [block]
        self.append(op)
        if not exits:  # an endless loop: there is no value, and nothing after it is reached
            self.merge(exits, before, op, bound.span)
            return Poison()
        return self.merge(exits, before, op, bound.span) or NONE_VALUE

    def call_method(self, receiver: RValue, name: str, args: list[RValue], span: Span) -> RValue | None:
        function = self.method(receiver.type, name, TemporaryPlace(receiver))
        if function is None:
            return None
        return self.call_function(function, [Given(self, span, TemporaryPlace(a)) for a in args], span)

    def implicit_construct(self, value: RValue, to: StructType, span: Span) -> RValue | None:
        candidates = [d for d in to.decl.methods.get("__init__", ()) if d.decorator("implicit")]
        if not candidates or isinstance(value, StructValue):
            return None
        function = FunctionValue(to.decl.name, tuple(candidates), to)
        return self.call_function(function, [Given(self, span, TemporaryPlace(value))], span)


def param_args(args: tuple[ast.Argument, ...], scope: Scope) -> ParamArgs:
    return tuple((a, scope) for a in args)
