"""Which of a declaration's arguments a call gives: by order and by name, before anything is converted."""

from __future__ import annotations

from ptxdsl.diagnostics import counted
from ptxdsl.elaborate import types
from ptxdsl.elaborate.convert import adapts
from ptxdsl.elaborate.entities import (
    FunctionDecl,
    FunctionValue,
    LanePlace,
    Literal,
    MemoryPlace,
    Place,
    Poison,
    RValue,
    StructDecl,
    StructType,
    TemporaryPlace,
    VariablePlace,
)
from ptxdsl.elaborate.names import methods_name
from ptxdsl.elaborate.operators import Operators
from ptxdsl.elaborate.parameters import Binding
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.suggestions import meant
from ptxdsl.elaborate.types import ArrayType, PointerType, SimdType, TupleType, Type
from ptxdsl.record import dataclass, field
from ptxdsl.source import Span
from ptxdsl.syntax import ast

BY_POSITION, BY_NAME, VARIADIC = ("posonly", "pos"), ("pos", "kw"), ("many", "pack")  # kinds of arguments


class Given:
    """One argument of a call, evaluated as a place; read at most once. ``.NAME`` waits for the type it is wanted in."""

    def __init__(
        self,
        calls: Matching,
        span: Span,
        place: Place | None,
        name: str | None = None,
        node: ast.Expr | None = None,
        scope: Scope | None = None,
        name_span: Span | None = None,
    ) -> None:
        self.name_span = name_span or span  # where the name of a keyword argument stands
        self.calls, self.name, self.span, self.place, self.node, self.scope = calls, name, span, place, node, scope
        self.kept: RValue | None = None

    @property
    def value(self) -> RValue:
        if self.kept is None:
            if isinstance(self.node, ast.ListExpr) and self.scope is not None:
                self.kept = self.calls.evaluate(self.node, self.scope)
                return self.kept
            if self.place is None:
                raise self.calls.fail(
                    "E0318",
                    "`.NAME` needs a parameter whose type is known",
                    self.span,
                    help="write the type it is a member of: `AddressSpace.SHARED`",
                )
            self.kept = self.calls.read(self.place, self.span)
        return self.kept

    def wanted_as(self, t: Type) -> RValue:
        if self.place is None and self.kept is None and self.node is not None and self.scope is not None:
            return self.calls.evaluate(self.node, self.scope, t)
        return self.value

    @property
    def is_poison(self) -> bool:
        """Whether an error in it has been reported: nothing more is to be said of a call with it."""
        return isinstance(self.place, TemporaryPlace) and isinstance(self.place.value, Poison)

    @property
    def is_literal(self) -> bool:
        return isinstance(self.place, TemporaryPlace) and isinstance(self.value, Literal)

    @property
    def adapts(self) -> bool:
        """Whether it is an integer that takes the type which it is wanted in."""
        return self.is_literal or (isinstance(self.place, TemporaryPlace) and adapts(self.value))


class Rest(Given):
    """What a variadic argument takes: any number of values."""

    def __init__(self, calls: Matching, items: list[Given], span: Span) -> None:
        super().__init__(calls, span, None)
        self.items = items


@dataclass
class Bound:
    """A call ready to be made: the chosen declaration, its parameters, and each argument's value or place."""

    decl: FunctionDecl
    binding: Binding
    args: dict[str, RValue | Place]
    arg_types: dict[str, Type]
    span: Span
    owner: Type | None
    conversions: int = 0
    given: dict[str, Given] = field(default_factory=dict)


class Matching(Operators):
    """Evaluates what a call gives, finds methods, and pairs values with arguments."""

    def given(self, args: tuple[ast.Argument, ...], scope: Scope) -> list[Given]:
        result = []
        for argument in args:
            if argument.star:
                result += self._starred(argument, scope)
                continue
            at, span = argument.span, argument.value.span
            name_span = Span(at.source, at.start, at.start + len(argument.name)) if argument.name else None
            if isinstance(argument.value, ast.DotName | ast.ListExpr) or (
                isinstance(argument.value, ast.Call) and isinstance(argument.value.func, ast.DotName)
            ):
                result.append(Given(self, span, None, argument.name, argument.value, scope, name_span))
                continue
            place = self.evaluate_place(argument.value, scope)
            result.append(Given(self, span, place, argument.name, argument.value, scope, name_span))
        return result

    def _starred(self, argument: ast.Argument, scope: Scope) -> list[Given]:
        """``*values``: each element of an Array or tuple as an argument of its own."""
        place, span = self.evaluate_place(argument.value, scope), argument.value.span
        t = place.type
        parts = t.items if isinstance(t, TupleType) else (t.elem,) * t.size if isinstance(t, ArrayType) else None
        if parts is None:
            help = "an Array, a tuple or a variadic argument can be given so"
            raise self.fail("E0328", f"`*` before a value of type {t}", argument.span, help=help)
        places = [self.part_place(place, i, part, span) for i, part in enumerate(parts)]
        return [Given(self, span, place) for place in places]

    def methods_of(self, t: Type) -> StructDecl | None:
        """The declaration that has a type's methods."""
        if isinstance(t, StructType):
            return t.decl
        name, module = None, None
        if isinstance(t, SimdType):
            name, module = "SIMD", "simd"
        elif isinstance(t, PointerType):
            name, module = "Pointer", "pointer"
        elif isinstance(t, ArrayType):
            name, module = "Array", "array"
        elif isinstance(t, TupleType):
            name, module = "Tuple", "array"
        elif t == types.DTYPE:
            name, module = "DType", "simd"
        if name is None or module is None:
            return None
        found = self.module_scope(self.loader.stdlib(module)).names.get(methods_name(name))
        return found if isinstance(found, StructDecl) else None

    def method(self, t: Type, name: str, receiver: Place | None) -> FunctionValue | None:
        decl = self.methods_of(t)
        overloads = decl.methods.get(name) if decl is not None else None
        if overloads is None and name == "copy" and t.at_runtime:  # what Mojo's Copyable gives
            given = self.module_scope(self.loader.stdlib("array")).names[methods_name("Copyable")]
            assert isinstance(given, StructDecl)
            overloads = given.methods[name]
        return FunctionValue(name, tuple(overloads), t, receiver) if overloads else None

    @staticmethod
    def receiver_of(decl: FunctionDecl, function: FunctionValue) -> ast.ArgDecl | None:
        """The argument that is the value which a method was taken from."""
        args = decl.node.args
        if function.receiver is None or decl.struct is None or decl.is_static or not args:
            return None
        return None if args[0].convention == "out" else args[0]  # out: an __init__, which makes the value

    def declared(self, decl: FunctionDecl, function: FunctionValue) -> list[ast.ArgDecl]:
        """What a call gives in its parentheses: all but the receiver and the result."""
        receiver = self.receiver_of(decl, function)
        return [a for a in decl.node.args if a is not receiver and a.convention != "out"]

    def takes(self, decl: FunctionDecl, function: FunctionValue, args: list[Given]) -> bool:
        """Whether a declaration has arguments of these names and number, whatever their types."""
        declared = self.declared(decl, function)
        named = {a.name for a in args if a.name is not None}
        unnamed = len(args) - len(named)
        positional = [a.name for a in declared if a.kind in BY_POSITION]
        if unnamed > len(positional) and not any(a.kind in VARIADIC for a in declared):
            return False
        taken = set(positional[:unnamed])
        return all(a.name in taken or a.name in named or a.default is not None or a.kind in VARIADIC for a in declared)

    @staticmethod
    def is_mutable(place: Place | None) -> bool:
        while isinstance(place, LanePlace):
            place = place.base
        if isinstance(place, VariablePlace):
            return place.variable.mutable
        if isinstance(place, MemoryPlace):
            return isinstance(place.pointer.type, PointerType) and place.pointer.type.mutable
        return False

    def match(
        self, declared: list[ast.ArgDecl], args: list[Given], matched: dict[str, Given], what: str,
        decl: FunctionDecl, span: Span,
    ) -> None:  # fmt: skip
        """Positional arguments in order, then those by name."""
        positional = [a for a in declared if a.kind in BY_POSITION]
        here = (decl.node.name_span, "declared here")
        unnamed = [a for a in args if a.name is None]
        variadic = [a for a in declared if a.kind in VARIADIC]
        if variadic:
            matched[variadic[0].name] = Rest(self, unnamed[len(positional) :], span)
        elif len(unnamed) > len(positional):
            raise self.fail(
                "E0322", f"{what} takes {counted(len(positional), 'argument')}, {len(unnamed)} are given",
                unnamed[len(positional)].span, here,
                help=f"parameters stand in brackets: `{decl.name}[…]()`" if decl.node.params and not declared
                else _listed(declared),
            )  # fmt: skip
        for to, given in zip(positional, unnamed, strict=False):
            matched[to.name] = given
        for given in args:
            if given.name is None:
                continue
            found = next((a for a in declared if a.name == given.name and a.kind in BY_NAME), None)
            if found is None:
                if any(a.name == given.name for a in declared):
                    raise self.fail(
                        "E0323", f"argument `{given.name}` of {what} is given by position only", given.name_span, here,
                        help=f"leave `{given.name}=` out",
                    )  # fmt: skip
                if any(p.name == given.name for p in decl.node.params):
                    raise self.fail(
                        "E0323", f"`{given.name}` is a parameter of {what}, not an argument", given.name_span, here,
                        help=f"write it in brackets: `{decl.name}[{given.name}=…](…)`",
                    )  # fmt: skip
                raise self.fail(
                    "E0323", f"{what} has no argument `{given.name}`", given.name_span, here,
                    help=meant(given.name, (a.name for a in declared)),
                )  # fmt: skip
            if found.name in matched:
                raise self.fail(
                    "E0324",
                    f"argument `{given.name}` is given twice",
                    given.name_span,
                    here,
                    help="leave one of them out",
                )
            matched[found.name] = given
        missing = [a.name for a in declared if a.name not in matched and a.default is None]
        if missing:
            names = ", ".join(f"`{m}`" for m in missing)
            raise self.fail(
                "E0325",
                f"{what} lacks {counted(len(missing), 'argument').split()[1]} {names}",
                span,
                here,
                help=_listed(declared),
            )


def _listed(declared: list[ast.ArgDecl]) -> str:
    return "its arguments are " + ", ".join(f"`{a.name}`" for a in declared) if declared else "it takes none"
