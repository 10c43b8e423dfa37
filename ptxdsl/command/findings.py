"""What ``ptxdsl check`` finds in a text: faults of everything that is written there, and of its kernels' protocols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxdsl.diagnostics import CompileError, Diagnostic, DiagnosticSink, error
from ptxdsl.driver import Job, run
from ptxdsl.imports import Loader, parse_once
from ptxdsl.record import replace
from ptxdsl.source import Span
from ptxdsl.tir.features import check_features
from ptxdsl.unhandled import diagnostic_of

if TYPE_CHECKING:
    from ptxdsl import tir
    from ptxdsl.check.report import Verdict

# A kernel's parameter that has no value.
_NEEDS_VALUE = "E0408"


def findings(
    job: Job, block: tuple[int, int, int] | None = None, cluster: tuple[int, int, int] | None = None
) -> tuple[list[Diagnostic], Sequence[Verdict]]:
    """All that is to be said of a text, and the verdicts on its kernels' protocols, none where it has errors.

    block, cluster: as for ``prove``. Raises CompileError.
    """
    found = list(check(job))
    if any(d.severity == "error" for d in found):
        return found, ()
    from ptxdsl.check.report import suppressed

    verdicts = prove(replace(job, loader=Loader(), sink=DiagnosticSink()), block, cluster)
    return [*found, *suppressed(d for verdict in verdicts for d in verdict.diagnostics)], verdicts


def check(job: Job) -> tuple[Diagnostic, ...]:
    """Checks everything in a text, reached by a kernel or not: what was found, in the order of the text."""
    try:
        if job.source.name.endswith(".ll"):
            help = "check the .pdsl file, or the PTX that it is compiled to"
            raise error("E1011", "a .ll file has nothing that can be checked", Span(job.source, 0, 0), help=help)
        if job.source.name.endswith(".ptx"):
            from ptxdsl.ptx.reader import read

            read(job.source.text, job.source.name)
            return ()
        from ptxdsl.elaborate import check_module

        module = parse_once(job.source, job.sink)
        # Checking a tree with holes would blame what is not there.
        if not job.sink.items:
            check_module(module, options=job.options, loader=job.loader, sink=job.sink)
    except CompileError as problem:
        job.sink.add(problem)
    except Exception as defect:
        raise CompileError((*job.sink.items, diagnostic_of(defect))) from defect
    return tuple(job.sink.items)


def prove(
    job: Job, block: tuple[int, int, int] | None = None, cluster: tuple[int, int, int] | None = None
) -> list[Verdict]:
    """The verdicts on the protocols of a text's kernels. block, cluster: shapes, where a kernel does not say its own.

    Of a kernel with parameters that only a compilation gives, unless one was named, it says that nothing is proved.
    Raises CompileError.
    """
    from ptxdsl.check.report import ptx_verdicts, unchecked, verdicts

    if job.source.name.endswith(".ptx"):
        from ptxdsl.ptx.reader import read

        ptx = read(job.source.text, job.source.name)
        if job.kernel is not None and job.kernel not in ptx.kernels:
            known = ", ".join(ptx.kernels) or "none"
            raise error(
                "E1017", f"'{job.source.name}' has no kernel '{job.kernel}'", None, help=f"its kernels: {known}"
            )
        return ptx_verdicts(ptx, job.kernel, block, cluster)
    try:
        return verdicts(_compilable(job), block, cluster)
    except CompileError as problem:
        if job.kernel is not None or job.constants:
            raise
        names = _kernels(job)
        if len(names) < 2:
            return [unchecked(d) for d in problem.diagnostics if d.code == _NEEDS_VALUE]
        found = []
        for name in names:
            try:
                found += verdicts(_compilable(replace(job, kernel=name, sink=DiagnosticSink())), block, cluster)
            except CompileError as other:
                found += [unchecked(d) for d in other.diagnostics if d.code == _NEEDS_VALUE]
        return found


def _compilable(job: Job) -> tir.Module:
    """The kernels of a text, all of which the target has. Raises CompileError."""
    module: tir.Module = run(job, "tir")
    check_features(module, job.options)
    return module


def _kernels(job: Job) -> list[str]:
    """The names of the functions that the text marks as kernels."""
    from ptxdsl.syntax import ast

    module = parse_once(job.source, DiagnosticSink())
    return [
        item.name
        for item in module.body
        if isinstance(item, ast.FunctionDef) and any(d.name == "kernel" for d in item.decorators)
    ]
