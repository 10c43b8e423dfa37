"""How deep a syntax tree may be, so that no later walk over it runs out of stack."""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.record import field_names
from ptxdsl.syntax import ast

MAX_DEPTH = 200  # nodes from the module to the deepest leaf

# Below these a tree cannot be deeper than MAX_DEPTH: every level takes a token, a block or an `elif`.
_SAFE_LINE = 100  # tokens in the longest statement
_SAFE_BLOCKS = 25
_SAFE_ELIFS = 50


def too_deep(module: ast.Module, longest_line: int, deepest_block: int, elifs: int) -> Diagnostic | None:
    """The diagnostic for a tree that is too deep. Walks it, without recursion, only where it could be."""
    if longest_line <= _SAFE_LINE and deepest_block <= _SAFE_BLOCKS and elifs <= _SAFE_ELIFS:
        return None
    level: list[ast.Node] = [module]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in children(node)]
        if not level:
            return None
    help = "split it: give parts names with 'var', or put blocks into functions of their own"
    return Diagnostic("E0108", f"this is nested more than {MAX_DEPTH} levels deep", level[0].span, help=help)


def children(node: ast.Node) -> Iterator[ast.Node]:
    """The nodes directly below a node, in the order of its fields."""
    for name in field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, ast.Node):
            yield value
        elif value.__class__ is tuple:
            for item in value:
                if isinstance(item, ast.Node):
                    yield item
