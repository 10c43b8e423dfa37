"""The abstract syntax tree: frozen nodes, each with the exact span of the text it came from."""

from __future__ import annotations

from ptxdsl.hints import Literal
from ptxdsl.record import Slotted
from ptxdsl.source import Source, Span


class Node(metaclass=Slotted):
    """What every node has. Nodes are equal when they are the same."""

    span: Span


# ---------------------------------------------------------------------------------------------------- expressions


class Expr(Node):
    __slots__ = ()


class Name(Expr):
    """``x``; ``_`` is a Name too (a hole in a parameter list, a discarded target)."""

    id: str


class IntLiteral(Expr):
    value: int


class FloatLiteral(Expr):
    text: str


class StringLiteral(Expr):
    """Escapes already resolved, adjacent literals already joined."""

    value: str


class BoolLiteral(Expr):
    value: bool


class NoneLiteral(Expr):
    pass


class EllipsisLiteral(Expr):
    pass


class DotName(Expr):
    """``.SHARED``: a member of the type that the context wants."""

    name: str


class Attribute(Expr):
    value: Expr
    name: str
    name_span: Span


class Argument(Node):
    """One entry of ``(…)`` or ``[…]``: positional where ``name`` is None. ``star`` marks ``*x``."""

    name: str | None
    value: Expr
    star: bool = False


class Call(Expr):
    """``func(args)``."""

    func: Expr
    args: tuple[Argument, ...]


class Subscript(Expr):
    """``value[args]``: parameters or an index, decided later. ``p[]`` has no args."""

    value: Expr
    args: tuple[Argument, ...]


class Unary(Expr):
    op: Literal["-", "+", "~", "not"]
    operand: Expr


class Binary(Expr):
    """op is one of ``+ - * / // % ** @ << >> & | ^``."""

    op: str
    left: Expr
    right: Expr


class Compare(Expr):
    """``a < b <= c``: operands has one more entry than ops. ops: ``== != < <= > >= in not in is is not``."""

    operands: tuple[Expr, ...]
    ops: tuple[str, ...]


class BoolOp(Expr):
    op: Literal["and", "or"]
    left: Expr
    right: Expr


class Conditional(Expr):
    """``then if test else orelse``."""

    test: Expr
    then: Expr
    orelse: Expr


class TupleExpr(Expr):
    items: tuple[Expr, ...]


class ListExpr(Expr):
    items: tuple[Expr, ...]


class Slice(Expr):
    start: Expr | None
    stop: Expr | None
    step: Expr | None


class Transfer(Expr):
    """``x^``: Mojo's transfer; a copy for register-passable values."""

    value: Expr


class FunctionType(Expr):
    """``def(Int, Float32) -> Bool``: the type of a function given as a parameter."""

    args: tuple[Expr, ...]
    returns: Expr | None
    raises: bool


# ----------------------------------------------------------------------------------------------------- statements


class Stmt(Node):
    __slots__ = ()


Block = tuple[Stmt, ...]


class VarDecl(Stmt):
    """``var a: T = v``, ``var a, (b, c) = v``, ``var a: T``; target is a Name, or a TupleExpr of such targets."""

    target: Expr
    type: Expr | None
    value: Expr | None


class RefDecl(Stmt):
    """``ref name = value``: another name for what the value designates."""

    name: Name
    value: Expr


class Assign(Stmt):
    """``target = value``; target is a Name, Attribute, Subscript or a TupleExpr of them."""

    target: Expr
    value: Expr


class AugAssign(Stmt):
    """``target op= value``; op without the ``=``."""

    target: Expr
    op: str
    value: Expr


class ExprStmt(Stmt):
    value: Expr


class If(Stmt):
    """``elif`` is an If in orelse. ``comptime`` marks ``comptime if``."""

    test: Expr
    then: Block
    orelse: Block
    comptime: bool = False


class While(Stmt):
    test: Expr
    body: Block
    orelse: Block


class For(Stmt):
    """``for target in iter``; target as of a VarDecl, binding stands before it. ``comptime`` marks ``comptime for``."""

    target: Expr
    iter: Expr
    body: Block
    orelse: Block
    comptime: bool
    binding: Literal["read", "var", "ref"]


class Break(Stmt):
    pass


class Continue(Stmt):
    pass


class Pass(Stmt):
    pass


class Return(Stmt):
    value: Expr | None


class Assert(Stmt):
    """``comptime assert test, message``."""

    test: Expr
    message: Expr | None


# --------------------------------------------------------------------------------------------------- declarations


class Param(Node):
    """One compile-time parameter in ``[…]`` of a def or struct.

    kind: ``infer`` (before ``//``), ``pos`` (positional or keyword), ``kw`` (after ``*``), ``many`` (``*name: T``).
    """

    name: str
    type: Expr | None
    default: Expr | None
    kind: Literal["infer", "pos", "kw", "many"]


class ArgDecl(Node):
    """One run-time argument in ``(…)`` of a def.

    kind: ``posonly`` (before ``/``), ``pos``, ``kw`` (after ``*``), ``many`` (``*name: T``: any number of values of one
    type), ``pack`` (``*name: *Ts``: of a type each).
    """

    name: str
    type: Expr | None
    default: Expr | None
    convention: Literal["read", "mut", "out", "var", "ref", "deinit"]
    kind: Literal["posonly", "pos", "kw", "many", "pack"]


class Decorator(Node):
    """``@name`` or ``@name(args)``; args is None without parentheses."""

    name: str
    args: tuple[Argument, ...] | None


class FunctionDef(Stmt):
    name: str
    name_span: Span
    params: tuple[Param, ...]
    args: tuple[ArgDecl, ...]
    returns: Expr | None
    where: tuple[Expr, ...]
    raises: bool
    decorators: tuple[Decorator, ...]
    docstring: str | None
    body: Block


class FieldDecl(Stmt):
    """``var name: type`` inside a struct."""

    name: str
    type: Expr
    docstring: str | None


class StructDef(Stmt):
    """members: FieldDecl, FunctionDef and ComptimeDecl in the order written (``pass`` and ``...`` dropped)."""

    name: str
    name_span: Span
    params: tuple[Param, ...]
    traits: tuple[Expr, ...]
    where: tuple[Expr, ...]
    decorators: tuple[Decorator, ...]
    docstring: str | None
    members: tuple[FieldDecl | FunctionDef | ComptimeDecl, ...]


class ComptimeDecl(Stmt):
    """``comptime NAME[params]: type = value`` (module, struct or function scope)."""

    name: str
    name_span: Span
    params: tuple[Param, ...]
    type: Expr | None
    value: Expr


class ComptimeRequirement(Stmt):
    """``comptime NAME: type`` of a trait: what a struct must give a value."""

    name: str
    name_span: Span
    type: Expr


class TraitDef(Stmt):
    """members in the order written; a FunctionDef whose body is ``...`` is what a struct must have."""

    name: str
    name_span: Span
    bases: tuple[Expr, ...]
    docstring: str | None
    members: tuple[FunctionDef | ComptimeDecl | ComptimeRequirement, ...]


class ImportName(Node):
    name: str
    alias: str | None


class Import(Stmt):
    """``from module import a, b as c`` (names None for ``*``), or ``import module as alias`` (names empty).

    ``level`` counts leading dots of a relative import.
    """

    module: str
    level: int
    names: tuple[ImportName, ...] | None
    alias: str | None
    module_span: Span


class Module(Node):
    source: Source
    docstring: str | None
    body: Block


def names_of(target: Expr) -> tuple[Name, ...]:
    """The names that the target of a VarDecl or For declares, in order."""
    if isinstance(target, TupleExpr):
        return tuple(name for item in target.items for name in names_of(item))
    assert isinstance(target, Name)
    return (target,)
