"""The stages of a compilation, from text to machine code: one table, read from top to bottom.

A run starts at the stage that the file's suffix names (``.pdsl`` and ``.mojo`` at the top, ``.ll`` and ``.ptx`` further
down), stops where it is asked to, and can print what any stage made. No stage reaches back. A stage imports its code
when it runs: stopping early costs nothing for what comes later.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ptxdsl.artifact import Compiled
from ptxdsl.diagnostics import CompileError, Diagnostic, DiagnosticSink, error
from ptxdsl.files import cache
from ptxdsl.garbage import rare_collections
from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.imports import Loader, parse_once, provide_tables
from ptxdsl.options import Options
from ptxdsl.record import dataclass, field, replace
from ptxdsl.source import Source, Span
from ptxdsl.unhandled import diagnostic_of

if TYPE_CHECKING:
    from ptxdsl import tir
    from ptxdsl.backend.assemble import Assembled
    from ptxdsl.backend.emit_ptx import Emitted
    from ptxdsl.syntax import ast


# Where constants that were given beside the text stand.
_CONSTANTS_NAME = "<constants>"
_CONSTANT_HELP = "write a constant expression: -D STAGES=3, -D CHECKED=True, -D T=DType.float32"


@dataclass
class Job:
    """One compilation: what was asked for, and what was found on the way."""

    source: Source
    kernel: str | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    loader: Loader = field(default_factory=Loader)
    sink: DiagnosticSink = field(default_factory=DiagnosticSink)
    unchecked: tuple[str, tir.Module] | None = None  # what the checker has still to look at, behind its inputs' digest


@dataclass(frozen=True)
class Lowered:
    """LLVM IR text and the module that it was made of; None for a text that others wrote."""

    ir: str
    module: tir.Module | None


@dataclass(frozen=True)
class Ptx:
    """PTX with its line map, and the kernels in it (of PTX that others wrote, none)."""

    emitted: Emitted
    kernels: tuple[tir.Kernel, ...]


@dataclass(frozen=True)
class Stage:
    """``run`` makes this stage's value of the one before; ``show`` prints it (cubin: bytes)."""

    name: str
    run: Callable[[Job, Any], Any]
    show: Callable[[Any], str | bytes]


def _tree(job: Job, source: Source) -> Source:
    provide_tables()
    return source


def _show_tree(source: Source) -> str:
    from ptxdsl.syntax.parse import tree_text

    return tree_text(source)


def _ast(job: Job, source: Source) -> ast.Module:
    module = parse_once(source, job.sink)
    job.sink.raise_errors()
    return module


def _show_ast(module: ast.Module) -> str:
    from ptxdsl.syntax.printer import ast_text

    return ast_text(module)


def _tir(job: Job, module: ast.Module) -> tir.Module:
    from ptxdsl.elaborate import elaborate

    constants = {name: constant(name, text) for name, text in job.constants.items()}
    typed = elaborate(
        module, kernel=job.kernel, constants=constants, options=job.options, loader=job.loader, sink=job.sink
    )
    job.sink.raise_errors()
    _verify(typed)
    return typed


# Whether TIR is verified between every two stages: a tenth of their time.
VERIFIES = os.environ.get("PTXDSL_DEBUG") == "1"


def _verify(module: tir.Module) -> None:
    if VERIFIES:
        from ptxdsl.tir.verify import verify

        verify(module)


def _check(job: Job) -> None:
    """Tells faults of the kernels' protocols as ``--check`` says: those that are quickly found, or all where they are
    errors. Once; it is done before anything else is told of what comes after ``tir``."""
    if job.unchecked is None:
        return
    (inputs, module), job.unchecked = job.unchecked, None
    fatal = job.options.check == "error"
    found = _findings.get(inputs)
    if found is None:
        from ptxdsl.check.report import as_warnings, verdicts

        found = as_warnings(verdicts(module, quick=not fatal))
        if len(_findings) >= _MOST_CHECKED:
            _findings.clear()
        _findings[inputs] = found
    for diagnostic in found:
        job.sink.add(replace(diagnostic, severity="error") if fatal else diagnostic)
    job.sink.raise_errors()


# What was found of inputs that were compiled before in this process, by their digests.
_findings: dict[str, Sequence[Diagnostic]] = {}
_MOST_CHECKED = 4096


def _rings(job: Job, module: tir.Module) -> tir.Module:
    if job.options.check != "off":
        inputs = inputs_digest(job)
        job.unchecked = inputs, module
        # A fault that is an error ends the run here. A warning can wait for LLVM, which leaves time for it; what is
        # known needs none.
        if job.options.check == "error" or inputs in _findings:
            _check(job)
    from ptxdsl.rings.unroll import unroll_rings

    unrolled = unroll_rings(module, job.options)
    _verify(unrolled)
    return unrolled


def _show_tir(module: tir.Module) -> str:
    from ptxdsl.tir.printer import tir_text

    return tir_text(module)


def _llvm(job: Job, module: tir.Module) -> Lowered:
    from ptxdsl.llvm_library import load_ahead

    load_ahead()
    from ptxdsl.lower.module import lower

    return Lowered(lower(module, job.options), module)


def _show_llvm(lowered: Lowered) -> str:
    return lowered.ir


def _ptx(job: Job, lowered: Lowered) -> Ptx:
    if lowered.module is None:
        from ptxdsl.backend.foreign_ir import emit_apart

        return Ptx(emit_apart(job.source, job.options), ())
    from ptxdsl.backend.emit_ptx import emit

    meanwhile = None if job.unchecked is None else partial(_check, job)
    return Ptx(emit(lowered.ir, lowered.module, job.options, meanwhile), tuple(lowered.module.kernels))


def _show_ptx(ptx: Ptx) -> str:
    return ptx.emitted.ptx


def _cubin(job: Job, ptx: Ptx) -> Assembled:
    from ptxdsl.backend.assemble import assemble

    assembled = assemble(ptx.emitted.ptx, job.options, ptx.emitted.line_map)
    for finding in assembled.log:
        job.sink.add(finding)
    spans = {kernel.name: kernel.span for kernel in ptx.kernels}
    for name, used in assembled.resources.items():
        spilled = used.spill_stores + used.spill_loads
        said = f"{used.registers} registers, {used.shared} bytes of shared memory, {spilled or 'no'} bytes spilled"
        job.sink.add(Diagnostic("W0805", f"kernel `{name}` uses {said}", spans.get(name), severity="note"))
    job.sink.raise_errors()
    return assembled


def _show_cubin(assembled: Assembled) -> bytes:
    return assembled.cubin


def _sass(job: Job, assembled: Assembled) -> str:
    from ptxdsl.backend.assemble import disassemble

    return disassemble(assembled.cubin)


def _show_sass(text: str) -> str:
    return text


STAGES: tuple[Stage, ...] = (
    Stage("tree", _tree, _show_tree),
    Stage("ast", _ast, _show_ast),
    Stage("tir", _tir, _show_tir),
    Stage("rings", _rings, _show_tir),
    Stage("llvm", _llvm, _show_llvm),
    Stage("ptx", _ptx, _show_ptx),
    Stage("cubin", _cubin, _show_cubin),
    Stage("sass", _sass, _show_sass),
)
STAGE_NAMES = tuple(stage.name for stage in STAGES)


def run(job: Job, stop: str = "ptx") -> Any:
    """Runs the stages up to ``stop``; its value. Raises CompileError for whatever is wrong with the input.

    Warnings are left in ``job.sink``. A defect of the compiler itself is a CompileError too, with code E0001 and the
    exception as its cause.
    """
    last = STAGE_NAMES.index(stop)
    try:
        with rare_collections:
            first, value = _entry(job, stop)
            try:
                for stage in STAGES[first : last + 1]:
                    value = stage.run(job, value)
            except CompileError:
                _check(job)
                raise
            _check(job)
        return value
    except CompileError as problem:
        # Warnings found before belong to the answer as well.
        said = set(problem.diagnostics)
        found = [d for d in job.sink.items if d not in said]
        raise CompileError(_with_help(d) for d in (*found, *problem.diagnostics)) from problem.__cause__
    except Exception as defect:
        raise CompileError((*job.sink.items, diagnostic_of(defect))) from defect


def _with_help(diagnostic: Diagnostic) -> Diagnostic:
    """A finding; in a constant that was given beside the text, with what such a constant may be."""
    if diagnostic.help is None and diagnostic.span is not None and diagnostic.span.source.name == _CONSTANTS_NAME:
        return replace(diagnostic, help=_CONSTANT_HELP)
    return diagnostic


def show(job: Job, stop: str) -> str | bytes:
    """What stage ``stop`` made, printed. Raises as ``run`` does."""
    value = run(job, stop)
    try:
        return STAGES[STAGE_NAMES.index(stop)].show(value)
    except CompileError:
        raise
    except Exception as defect:
        raise CompileError((*job.sink.items, diagnostic_of(defect))) from defect


def compile_source(
    source: Source,
    *,
    kernel: str | None = None,
    constants: Mapping[str, str] | None = None,
    options: Options | None = None,
    loader: Loader | None = None,
    stop: str = "ptx",
) -> Compiled | str | bytes:
    """Compiles one text.

    kernel: the def to compile; None for all ``@kernel`` ones, else the only def that can be one. constants: its
    comptime parameters as expression texts (``"3"``, ``"True"``, ``"DType.float32"``). stop: a name of ``STAGES``;
    ``ptx`` gives a Compiled, another its printed form (``cubin``: bytes). Raises CompileError.
    """
    job = Job(source, kernel, dict(constants or {}), options or Options(), loader or Loader())
    return compiled(job) if stop == "ptx" else show(job, stop)


def compiled(job: Job) -> Compiled:
    """The artifact of a job. Raises CompileError."""
    from ptxdsl.backend.shared_names import shared_names

    ptx: Ptx = run(job, "ptx")
    return Compiled(
        signatures={kernel.signature.name: kernel.signature for kernel in ptx.kernels},
        ptx=ptx.emitted.ptx,
        line_map=ptx.emitted.line_map,
        options=job.options,
        inputs_digest=inputs_digest(job),
        warnings=tuple(job.sink.items),
        shared_names=shared_names(ptx.kernels),
    )


def inputs_digest(job: Job) -> str:
    """Of everything that the PTX is a function of: SHA-256, hexadecimal."""
    parts = [repr(job.kernel), repr(sorted(job.constants.items())), repr(job.options)]
    for source in (job.source, *job.loader.sources):
        name, text, place = source.identity
        parts += [os.path.basename(name), text, place]
    return cache.key(*(part.encode("utf-8", "surrogatepass") for part in parts)).hex()


def constant(name: str, text: str) -> ast.Expr:
    """The expression that ``-D NAME=text`` gives. Raises E1010 where it is none."""
    from ptxdsl.syntax import ast

    # As the value of a declaration: that is where its grammar is that of an expression.
    lead = f"comptime {name} = "
    try:
        module = parse_once(Source(_CONSTANTS_NAME, lead + text))
    except CompileError as problem:
        first = problem.diagnostics[0]
        raise error(
            "E1010", f"the value of {name} is not an expression: {first.message}", None, help=_CONSTANT_HELP
        ) from None
    declaration = module.body[0] if len(module.body) == 1 else None
    if not isinstance(declaration, ast.ComptimeDecl):
        raise error("E1010", f"the value of {name} is not one expression: {text!r}", None, help=_CONSTANT_HELP)
    return declaration.value


def _entry(job: Job, stop: str) -> tuple[int, Any]:
    """The first stage to run and the value it starts from."""
    # An unknown target is said before anything else is done for it.
    from ptxdsl.targets import target

    target(job.options.arch)
    suffix = os.path.splitext(job.source.name)[1]
    if suffix not in (".ll", ".ptx"):
        return 0, job.source
    given = "llvm" if suffix == ".ll" else "ptx"
    if STAGE_NAMES.index(stop) < STAGE_NAMES.index(given):
        raise error(
            "E1011",
            f"a {suffix} file has no {stop} stage",
            Span(job.source, 0, 0),
            help=f"it starts at '{given}': ask for {' or '.join(STAGE_NAMES[STAGE_NAMES.index(given) :])}",
        )
    if suffix == ".ll":
        return STAGE_NAMES.index("ptx"), Lowered(job.source.text, None)
    from ptxdsl.backend.emit_ptx import Emitted

    spans = []
    for number, start in enumerate(job.source.line_starts, start=1):
        line = job.source.line(number)
        spans.append(Span(job.source, start + len(line) - len(line.lstrip()), start + len(line)))
    return STAGE_NAMES.index("cubin"), Ptx(Emitted(job.source.text, tuple(spans)), ())
