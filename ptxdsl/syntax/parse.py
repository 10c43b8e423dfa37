"""Text to AST: scan, lay out, run the LALR machine, and go on after every error.

The machine is imported where something is parsed: a text is read without it.
"""

from __future__ import annotations

from ptxdsl.diagnostics import DiagnosticSink
from ptxdsl.source import Source
from ptxdsl.syntax import ast
from ptxdsl.syntax.reader import read_source

__all__ = ["parse", "read_source", "tree_text"]


def parse(source: Source, sink: DiagnosticSink | None = None) -> ast.Module:
    """The module of a source.

    Every problem of the text is found in one run. Without a sink they are raised together as a ``CompileError``; with
    one they are added to it, and what could be parsed is given back.
    """
    from ptxdsl.syntax.session import run

    module, problems = run(source)
    own = DiagnosticSink() if sink is None else sink
    for problem in problems:
        own.add(problem)
    if sink is None:
        own.raise_errors()
    return module


def tree_text(source: Source) -> str:
    """The Lark tree of a source, indented, for ``--emit=tree``. Raises CompileError as ``parse`` does."""
    parse(source)
    from ptxdsl.syntax.session import lark_tree

    return str(lark_tree(source).pretty())
