"""AST to TIR: names, types, parameters, compile-time evaluation, expansion of calls. The layers, lowest first:

entities (what names and expressions stand for) → values → library (what is in scope without import) → frames →
context (the block being filled) → control (regions and merging) → names → convert → parameters → type_expressions →
traits → memory → operators → matching → arguments → calls → conditions → subscripts → expressions → loops →
statements → construct → builtins (and the handlers of builtin_checks, builtin_maps, builtin_methods, builtin_sequences,
pipeline_methods) → variadic → kernel_options → kernels
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping

from ptxdsl import tir
from ptxdsl.diagnostics import CompileError, DiagnosticSink, error
from ptxdsl.elaborate import (  # noqa: F401  (register their handlers)
    builtin_checks,
    builtin_maps,
    builtin_methods,
    builtin_sequences,
    pipeline_methods,
)
from ptxdsl.elaborate.entities import ComptimeAlias, FunctionDecl, ImportedName, Overloads, StructDecl
from ptxdsl.elaborate.kernels import Kernels
from ptxdsl.elaborate.library import Library, borrow, give_back
from ptxdsl.generator_context import contextmanager
from ptxdsl.imports import Loader
from ptxdsl.options import Options
from ptxdsl.source import Span
from ptxdsl.syntax import ast
from ptxdsl.tir.simplify import simplify

RECURSION_LIMIT = 20_000  # Python frames: MAX_DEPTH calls of the language, each some twenty deep


def elaborate(
    module: ast.Module,
    *,
    kernel: str | None,
    constants: Mapping[str, ast.Expr],
    options: Options,
    loader: Loader,
    sink: DiagnosticSink,
) -> tir.Module:
    """The module's kernels, monomorphic and with every call expanded.

    ``kernel`` names one; without it every ``@kernel``, or the only def that can be one, is taken. ``constants`` are
    values of kernel parameters (``-D``); a name that no kernel has is E0409. Raises CompileError with all that went
    wrong.
    """
    library = borrow(options)
    loader.begin(module.source, options.include)
    with _elaborator(options, loader, sink, library) as e:
        decls = e.choose_kernels(module, kernel, constants)
        known = {p.name for d in decls for p in d.node.params}
        for name, value in constants.items():
            if name not in known:
                raise error("E0409", f"no kernel has a parameter `{name}`", value.span, help=_listed(known))
        kernels: list[tir.Kernel] = []
        for decl in decls:
            if sink.full:
                break
            with _reporting(sink, decl.node.name_span):
                kernels.append(e.kernel(decl, constants))
        _check_names(kernels, sink)
        sink.raise_errors()
        give_back(library, options)
        result = tir.Module(kernels)
        _simplify(result, sink)
        sink.raise_errors()
        return result


def check_module(module: ast.Module, *, options: Options, loader: Loader, sink: DiagnosticSink) -> None:
    """Checks everything in a file that has no open compile-time parameters; findings go to the sink."""
    loader.begin(module.source, options.include)
    with _elaborator(options, loader, sink, Library()) as e:
        scope = e.module_scope(module)
        kernels: list[tir.Kernel] = []
        for entity in list(scope.names.values()):
            if sink.full:
                break
            if isinstance(entity, ImportedName):
                with _reporting(sink, entity.item.span):
                    e.imported(entity)
            elif isinstance(entity, StructDecl) and entity.scope is scope:
                with _reporting(sink, entity.node.name_span):
                    e.check_struct(entity)
            elif isinstance(entity, ComptimeAlias) and not entity.node.params:
                with _reporting(sink, entity.node.name_span):
                    e.alias_value(entity, entity.node.name_span)
            elif isinstance(entity, Overloads):
                for decl in entity.decls:
                    if decl.scope is scope and decl.name != "main":
                        with _reporting(sink, decl.node.name_span):
                            kernels += _check_function(e, decl)
        _check_names(kernels, sink)
        _simplify(tir.Module(kernels), sink)


def _simplify(module: tir.Module, sink: DiagnosticSink) -> None:
    for op in simplify(module):
        called = op.span.text.partition("(")[0]
        what = f"nobody takes the result of `{called}`: it is written into registers that are used for something else"
        help = (
            f"`{called}` returns the Pending result and leaves what it was given as it was: `acc = {called}(…, acc)`, "
            "then use what the wait returns for it"
        )
        sink.add(error("E0352", what, op.span, help=help))


@contextmanager
def _reporting(sink: DiagnosticSink, span: Span) -> Iterator[None]:
    """What goes wrong inside is put into the sink; ``span`` is shown where names lead to names beyond all limits."""
    try:
        yield
    except CompileError as problem:
        sink.add(problem)
    except RecursionError:
        help = "something here is defined by something else, and that again, thousands of times"
        sink.add(error("E0406", "this is nested too deeply", span, help=help))


def _check_function(e: Kernels, decl: FunctionDecl) -> list[tir.Kernel]:
    """The kernel that it is, if it is one without open parameters."""
    e.check_decorators(decl.node.decorators)
    if decl.decorator("kernel") is None:
        e.check_function(decl)
        return []
    return [e.kernel(decl, {})] if all(p.default is not None for p in decl.node.params) else []


def _check_names(kernels: Iterable[tir.Kernel], sink: DiagnosticSink) -> None:
    names: dict[str, Span] = {}
    for made in kernels:
        if made.name in names:
            what = f"two kernels have the PTX name `{made.name}`"
            sink.add(
                error(
                    "E0227",
                    what,
                    made.span,
                    (names[made.name], "here"),
                    help="give one of them another: `@kernel(name=…)`",
                )
            )
        names[made.name] = made.span


@contextmanager
def _elaborator(options: Options, loader: Loader, sink: DiagnosticSink, library: Library) -> Iterator[Kernels]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION_LIMIT))
    try:
        yield Kernels(options, loader, sink, library)
    finally:
        sys.setrecursionlimit(before)


def _listed(names: set[str]) -> str:
    return (
        "the parameters are " + ", ".join(f"`{n}`" for n in sorted(names)) if names else "no kernel here has parameters"
    )
