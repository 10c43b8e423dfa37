from __future__ import annotations
from ptxdsl.diagnostics import Diagnostic
from ptxdsl.source import Source, Span
from ptxdsl.syntax.lalr import Machine
from ptxdsl.syntax.layout import Layout


def explain(source: Source, layout: Layout, index: int, machine: Machine) -> Diagnostic:
    token = layout.tokens[index]
    return Diagnostic("E0110", f"unexpected {str(token)!r}", Span(source, token.start_pos or 0, token.end_pos or 0))
