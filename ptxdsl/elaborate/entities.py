"""What names stand for and what expressions give, while a program is elaborated."""

from __future__ import annotations

from ptxdsl import tir
from ptxdsl.elaborate import types
from ptxdsl.elaborate.types import ArrayType, TupleType, Type
from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.record import Slotted, dataclass, field
from ptxdsl.source import Span
from ptxdsl.syntax import ast

if TYPE_CHECKING:
    from fractions import Fraction

    from ptxdsl.elaborate.scope import Scope


# --------------------------------------------------------------------------------------------------------- values


class Literal(metaclass=Slotted, eq=True):
    """An integer or float literal: exact until it meets a type."""

    value: int | Fraction

    @property
    def is_float(self) -> bool:
        return not isinstance(self.value, int)

    @property
    def type(self) -> Type:
        return types.FLOAT_LITERAL if self.is_float else types.INT_LITERAL


class Runtime(metaclass=Slotted, eq=True):
    """A scalar, vector or pointer in registers. ``comptime``: may stand where a compile-time value is asked for."""

    type: Type
    value: tir.Value
    comptime: bool = False


class Comptime(metaclass=Slotted, eq=True):
    """A value that exists at compile time only: a string, a type, a dtype, an address space, an origin, None."""

    type: Type
    value: Any


class StructValue(metaclass=Slotted, eq=True):
    type: StructType
    fields: tuple[RValue, ...]


class ArrayValue(metaclass=Slotted, eq=True):
    type: ArrayType
    items: tuple[RValue, ...]


class TupleValue(metaclass=Slotted, eq=True):
    items: tuple[RValue, ...]

    @property
    def type(self) -> Type:
        return TupleType(tuple(i.type for i in self.items))


class RangeValue(metaclass=Slotted, eq=True):
    """``range(start, stop, step)``: bounds of one scalar type, or literals."""

    start: RValue
    stop: RValue
    step: RValue

    @property
    def type(self) -> Type:
        return types.RANGE


class Uninit(metaclass=Slotted, eq=True):
    """Declared and not (or not on every path) given a value."""

    type: Type


class Poison(metaclass=Slotted, eq=True):
    """What an expression in error gives to those who go on: no further complaint."""

    @property
    def type(self) -> Type:
        return types.NONE


class FunctionValue(metaclass=Slotted, eq=True):
    """A function or method with the parameters given so far; ``receiver`` is the place a method was taken from."""

    name: str
    overloads: tuple[FunctionDecl, ...]
    owner: Type | None = None
    receiver: Place | None = None
    params: tuple[tuple[ast.Argument, Scope], ...] = ()

    @property
    def type(self) -> Type:
        return types.FUNCTION


class Variadic(metaclass=Slotted, eq=True):
    """``print`` and ``inlined_assembly``: builtins that take any number of arguments of any type."""

    name: str
    params: tuple[tuple[ast.Argument, Scope], ...] = ()

    @property
    def type(self) -> Type:
        return types.FUNCTION


class GenericType(metaclass=Slotted, eq=True):
    """A type whose parameters are not all given: ``SIMD``, ``RolePipeline[_, True, _, _, _]``."""

    decl: StructDecl | str
    params: tuple[tuple[ast.Argument, Scope], ...] = ()

    def __str__(self) -> str:
        return self.decl if isinstance(self.decl, str) else self.decl.name


RValue = (
    Literal | Runtime | Comptime | StructValue | ArrayValue | TupleValue | RangeValue | Uninit | Poison | FunctionValue
    | Variadic
)  # fmt: skip

NONE_VALUE = Comptime(types.NONE, None)


# --------------------------------------------------------------------------------------------------------- places


class Variable(metaclass=Slotted, frozen=False):
    """A variable; its current value is in the state.

    mutable: declared with ``var`` or passed ``mut``. comptime: of a function that is evaluated at compile time.
    """

    name: str
    type: Type
    mutable: bool
    span: Span
    comptime: bool = False


class VariablePlace(metaclass=Slotted, eq=True):
    """A variable, or a part of it: ``path`` holds field and element numbers."""

    variable: Variable
    type: Type
    path: tuple[int, ...] = ()


class MemoryPlace(metaclass=Slotted, eq=True):
    """What a pointer points at. ``align``: what is known in bytes."""

    pointer: Runtime
    type: Type
    align: int
    volatile: bool = False


class LanePlace(metaclass=Slotted, eq=True):
    """One element, chosen by an integer, of a vector or array in a place; or a part (its number) of such an element."""

    base: Place
    type: Type
    index: Runtime | int


class TemporaryPlace(metaclass=Slotted, eq=True):
    """A value that nobody else holds: it can be read, not assigned."""

    value: RValue

    @property
    def type(self) -> Type:
        return self.value.type


Place = VariablePlace | MemoryPlace | LanePlace | TemporaryPlace


# --------------------------------------------------------------------------------------------------- declarations


class FunctionDecl:
    """A def, the scope that it is written in, and the struct that owns it.

    types: those of its arguments and result, by their expressions and the type that the def is a method of, where no
    parameter is in them.
    """

    __slots__ = ("is_builtin", "is_static", "name", "node", "scope", "struct", "types")

    def __init__(self, node: ast.FunctionDef, scope: Scope, struct: StructDecl | None = None) -> None:
        self.node = node
        self.scope = scope
        self.struct = struct
        self.name = node.name
        self.is_static = struct is not None and self.decorator("staticmethod") is not None
        self.is_builtin = self.decorator("builtin") is not None
        self.types: dict[tuple[ast.Expr, Type | None], Type] = {}

    def decorator(self, name: str) -> ast.Decorator | None:
        for decorator in self.node.decorators:
            if decorator.name == name:
                return decorator
        return None


@dataclass(eq=False)
class TraitDecl:
    """A trait of a program's own; ``whole``: itself and those that it is made of, once looked up."""

    node: ast.TraitDef
    scope: Scope
    whole: tuple[TraitDecl, ...] | None = None

    @property
    def name(self) -> str:
        return self.node.name


@dataclass(frozen=True)
class TraitType(Type):
    """What a parameter is declared with that takes types of these traits."""

    traits: tuple[TraitDecl, ...]

    def __str__(self) -> str:
        return " & ".join(t.name for t in self.traits)


@dataclass(eq=False)
class StructDecl:
    """A struct; ``instances`` keeps what was worked out for each set of parameters.

    traits: of the program's own, once looked up. inherited: of constants that traits gave it, the scope they are of.
    """

    node: ast.StructDef
    scope: Scope
    methods: dict[str, list[FunctionDecl]] = field(default_factory=dict)
    aliases: dict[str, ast.ComptimeDecl] = field(default_factory=dict)
    fields: list[ast.FieldDecl] = field(default_factory=list)
    instances: dict[tuple[Any, ...], StructInstance] = field(default_factory=dict)
    traits: tuple[TraitDecl, ...] | None = None
    inherited: dict[str, Scope] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for member in self.node.members:
            if isinstance(member, ast.FunctionDef):
                self.methods.setdefault(member.name, []).append(FunctionDecl(member, self.scope, self))
            elif isinstance(member, ast.ComptimeDecl):
                self.aliases[member.name] = member
            else:
                self.fields.append(member)

    @property
    def name(self) -> str:
        return self.node.name

    def has(self, decorator: str) -> bool:
        return any(d.name == decorator for d in self.node.decorators)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class StructType(Type):
    """An instance of a struct: its declaration and the values of its parameters (as hashable keys)."""

    decl: StructDecl
    keys: tuple[Any, ...] = ()

    @property
    def at_runtime(self) -> bool:
        return True

    def __str__(self) -> str:
        if not self.keys:
            return self.decl.name
        return f"{self.decl.name}[{', '.join(key_text(k) for k in self.keys)}]"


def key_text(key: Any) -> str:
    """A parameter's key as the user would write it."""
    if not (isinstance(key, tuple) and len(key) == 2):
        return str(key)
    t, value = key
    if t == types.ORIGIN:
        return "MutAnyOrigin" if value else "ImmutAnyOrigin"
    if isinstance(value, tuple):
        inside = ", ".join(key_text(part) for part in value)
        return f"[{inside}]" if isinstance(t, ArrayType) else f"{t if isinstance(t, StructType) else ''}({inside})"
    return str(value)


@dataclass(eq=False)
class StructInstance:
    """A struct with its parameters: ``scope`` holds them (and ``Self``); fields and aliases are found on demand."""

    type: StructType
    params: dict[str, RValue]
    scope: Scope
    field_types: tuple[tuple[str, Type], ...] | None = None
    aliases: dict[str, RValue] = field(default_factory=dict)
    busy: set[str] = field(default_factory=set)  # the aliases that are being evaluated


class ComptimeAlias(metaclass=Slotted, frozen=False):
    """``comptime NAME[...] = value`` of a module or function: evaluated when first used."""

    node: ast.ComptimeDecl
    scope: Scope
    value: RValue | None = None
    busy: bool = False


class PlaceAlias(metaclass=Slotted, frozen=False):
    """A name for a place of the caller's: ``self`` and ``mut`` arguments."""

    place: Place


class HostOnly(metaclass=Slotted, frozen=False):
    """A name imported from a module that exists on the host alone."""

    name: str
    module: str
    span: Span


class ImportedName(metaclass=Slotted, frozen=False):
    """A name of another module, looked up when first used. module: None where ``node`` is to be resolved then too."""

    item: ast.ImportName
    node: ast.Import
    module: ast.Module | None
    importing: ast.Module
    entity: Entity | None = None  # what it was found to be
    busy: bool = False  # it is being looked up


class Overloads(metaclass=Slotted, frozen=False):
    decls: list[FunctionDecl]


class ModuleName(metaclass=Slotted, frozen=False):
    """``import module as m``: its names are attributes."""

    scope: Scope


Entity = RValue | Variable | PlaceAlias | Overloads | StructDecl | ComptimeAlias | HostOnly | ImportedName | ModuleName
