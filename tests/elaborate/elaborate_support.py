"""Compiling snippets in tests: their TIR, or the diagnostics they give."""

from __future__ import annotations

import textwrap

from ptxdsl import tir
from ptxdsl.diagnostics import CompileError, Diagnostic, DiagnosticSink
from ptxdsl.elaborate import elaborate
from ptxdsl.imports import Loader
from ptxdsl.options import Options
from ptxdsl.source import Source
from ptxdsl.syntax import ast
from ptxdsl.syntax.parse import parse
from ptxdsl.tir.verify import verify

PIPELINE = """\
@kernel
def k(n: Int32):
    var m = unsafe_stack_allocation[8, SharedMemBarrier, address_space=.SHARED]().unsafe_origin_cast[MutAnyOrigin]()
"""


def constant(text: str) -> ast.Expr:
    declaration = parse(Source("-D", f"comptime x = {text}\n")).body[0]
    assert isinstance(declaration, ast.ComptimeDecl)
    return declaration.value


def typed(text: str, arch: str = "sm_100a", kernel: str | None = None, **constants: str) -> tir.Module:
    """The verified TIR of a program."""
    module = parse(Source("test.pdsl", textwrap.dedent(text)))
    sink = DiagnosticSink()
    values = {name: constant(value) for name, value in constants.items()}
    result = elaborate(module, kernel=kernel, constants=values, options=Options(arch=arch), loader=Loader(), sink=sink)
    verify(result)
    return result


def diagnostics(text: str, arch: str = "sm_100a", kernel: str | None = None, **constants: str) -> list[Diagnostic]:
    """What is wrong with a program (nothing: an empty list)."""
    try:
        typed(text, arch, kernel, **constants)
    except CompileError as problem:
        return list(problem.diagnostics)
    return []


def in_kernel(body: str) -> str:
    """A kernel that has barriers ``m`` and an Int32 ``n``; the body starts at line 4."""
    return PIPELINE + textwrap.indent(textwrap.dedent(body), "    ")


def where(problem: Diagnostic) -> tuple[str, int, int]:
    assert problem.span is not None
    return problem.code, problem.span.line, problem.span.column
