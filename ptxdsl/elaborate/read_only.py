"""Why a target cannot be assigned, in the words of what it is."""

from __future__ import annotations

from ptxdsl.diagnostics import CompileError
from ptxdsl.elaborate import types
from ptxdsl.elaborate.entities import (
    Comptime,
    ComptimeAlias,
    ImportedName,
    Literal,
    Overloads,
    Runtime,
    StructDecl,
    StructType,
    Variadic,
)
from ptxdsl.elaborate.names import Names
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.values import is_comptime
from ptxdsl.syntax import ast


def not_assignable(e: Names, node: ast.Expr, scope: Scope) -> CompileError:
    """E0317 for what is no variable at all, E0337 for a compile-time name, E0321 for what is read-only."""
    base = node
    while isinstance(base, ast.Attribute | ast.Subscript):
        base = base.value
    if not isinstance(base, ast.Name):
        return e.fail("E0317", "this cannot be assigned", node.span, help="give the value to a `var` first")
    if isinstance(node, ast.Attribute):
        t = e.evaluate_place(node.value, scope).type
        if isinstance(t, StructType) and node.name in t.decl.methods:
            fields = ", ".join(f"`{f.name}`" for f in t.decl.fields)
            return e.fail(
                "E0317",
                f"`{node.name}` is a method of {t}: it cannot be assigned",
                node.name_span,
                help=f"its fields are {fields}" if fields else None,
            )
        if isinstance(t, StructType) and node.name in (*t.decl.aliases, *(p.name for p in t.decl.node.params)):
            help = f"a variable can: `var x = {node.span.text}`"
            message = f"`{node.name}` of {t} is a compile-time name: it cannot change"
            return e.fail("E0337", message, node.name_span, help=help)
    name, holder = base.id, scope.holder(base.id)
    entity = scope.lookup(name)
    if isinstance(entity, ImportedName):
        entity = e.imported(entity)
    if isinstance(entity, Overloads | Variadic):
        return e.fail(
            "E0317",
            f"`{name}` is a function: it cannot be assigned",
            node.span,
            help="choose another name for the variable",
        )
    if isinstance(entity, StructDecl) or (isinstance(entity, Comptime) and entity.type == types.ANY_TYPE):
        return e.fail(
            "E0317",
            f"`{name}` is a type: it cannot be assigned",
            node.span,
            help="choose another name for the variable",
        )
    if isinstance(entity, Comptime | Literal | ComptimeAlias) or (isinstance(entity, Runtime) and is_comptime(entity)):
        help = f"a variable can: `var x = {name}`"
        return e.fail("E0337", f"`{name}` is a compile-time name: it cannot change", node.span, help=help)
    if holder is not None and holder.loop:
        help = f"write `for var {name} in …` for a copy; `for ref {name} in …` changes the element"
        return e.fail("E0321", f"`{name}` is the loop's own: it cannot be assigned", node.span, help=help)
    conventions = f"`var {name}`" if e.call_depth == 0 else f"`mut {name}` or `var {name}`"
    return e.fail("E0321", f"`{name}` is read-only here", node.span, help=f"take the argument as {conventions}")
