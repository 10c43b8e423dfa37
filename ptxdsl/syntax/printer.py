"""The syntax tree as text, for ``--emit=ast``: one node a line, indented, with the line and column where it begins."""

from __future__ import annotations

from ptxdsl.record import field_names
from ptxdsl.source import Source, Span
from ptxdsl.syntax import ast


def ast_text(module: ast.Module) -> str:
    """A stable dump. Plain values stand on the node's line, child nodes below it under their field's name."""
    lines: list[str] = []
    _write(module, "", 0, lines)
    return "\n".join(lines) + "\n"


def _write(node: ast.Node, label: str, depth: int, lines: list[str]) -> None:
    plain: list[str] = []
    below: list[tuple[str, ast.Node]] = []
    for name in field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, (Span, Source)) or value is None:
            continue
        if isinstance(value, bool):
            if isinstance(node, ast.BoolLiteral):
                plain.append(str(value))
            elif value:
                plain.append(name)
            continue
        if isinstance(value, ast.Node):
            below.append((name, value))
        elif isinstance(value, tuple):
            if all(isinstance(item, str) for item in value):
                if value:
                    plain.append(f"{name}={' '.join(value)}")
            else:
                below.extend((name, item) for item in value)
        else:
            plain.append(f"{name}={value!r}")
    line, column = node.span.source.position(node.span.start)
    head = f"{label}: " if label else ""
    lines.append("  " * depth + head + " ".join([type(node).__name__, *plain, f"@{line}:{column}"]))
    for name, child in below:
        _write(child, name, depth + 1, lines)
