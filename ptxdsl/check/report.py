"""What the proof says of a module, as diagnostics and as verdicts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from math import prod

from ptxdsl.check.classes import CODES, CYCLIC_WAIT, DIVERGENT, MISSING_ARRIVE, WRONG_COUNT
from ptxdsl.diagnostics import Diagnostic
from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.protocol.model import Kernel, Op, Unmodelled
from ptxdsl.record import dataclass, replace
from ptxdsl.source import Span

if TYPE_CHECKING:
    from ptxdsl import tir
    from ptxdsl.check.findings import Finding
    from ptxdsl.check.proof import Proof
    from ptxdsl.ptx.module import Function, Module

Shape = tuple[int, int, int]

PROVED, FAULT, UNPROVED = "proved", "fault", "not provable here"
NOT_PROVABLE = "W1290"
NO_REASON = "W1291"

# What a compilation looks at: about 10 ms on a slow machine. Larger kernels are for `ptxdsl check`.
_QUICK_OPERATIONS = 600
_QUICK_NODES = 100
_QUICK_STEPS = 800

# Faults that a block of another size may not have: they say who is there, and how many.
_ABOUT_SIZE = frozenset({WRONG_COUNT, MISSING_ARRIVE, CYCLIC_WAIT, DIVERGENT})


@dataclass(frozen=True)
class Verdict:
    """kernel: its name. verdict: one of the three. block, cluster: the shapes that it was looked at for.

    assumed: nobody promises the block's. assumptions: what is taken for granted, each as a clause behind the verdict.
    diagnostics: faults (severity error) and, where it is not provable, the reason (a note). kinds: of the faults.
    shows_with: of each fault launch parameters with which it shows, as ``n = 2, k = 1``; may be empty.
    """

    kernel: str
    verdict: str
    block: Shape
    assumed: bool
    diagnostics: tuple[Diagnostic, ...] = ()
    kinds: tuple[str, ...] = ()
    cluster: Shape | None = None
    assumptions: tuple[str, ...] = ()
    shows_with: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One line for a terminal."""
        return ", ".join([f"kernel '{self.kernel}': {self.verdict}", *self.assumptions])

    def as_json(self) -> dict[str, Any]:
        """The stable form (``--json``)."""
        return {
            "kernel": self.kernel,
            "verdict": self.verdict,
            "kinds": list(self.kinds),
            "block": list(self.block),
            "cluster": None if self.cluster is None else list(self.cluster),
            "assumed": self.assumed,
            "assumptions": list(self.assumptions),
        }


def verdicts(
    module: tir.Module, block: Shape | None = None, cluster: Shape | None = None, *, quick: bool = False
) -> list[Verdict]:
    """The verdicts of a module's kernels, before rings are unrolled; kernels without any protocol have none.

    block, cluster: shapes for kernels that do not say theirs. quick: to give up where a proof takes more than the few
    milliseconds that a compilation has for it.
    """
    from ptxdsl.protocol.from_tir import kernel_model

    found = [
        _too_large(kernel.name, kernel.span, kernel.signature.threads)
        if quick and _exceeds(kernel.body, _QUICK_OPERATIONS) < 0
        else _safely(kernel, kernel_model, block, cluster, quick)
        for kernel in module.kernels
    ]
    return [verdict for verdict in found if verdict is not None]


def ptx_verdicts(
    module: Module, kernel: str | None = None, block: Shape | None = None, cluster: Shape | None = None
) -> list[Verdict]:
    """The verdicts of the kernels of a PTX module, or of one; spans are of the source where ``.loc`` leads to it."""
    from ptxdsl.check.source_lines import SourceLines

    lines = SourceLines(module)
    found = []
    for function in module.kernels.values():
        if kernel is not None and function.name != kernel:
            continue
        verdict = _ptx_verdict(module, function, block, cluster)
        if verdict is not None:
            found.append(replace(verdict, diagnostics=lines.at_source(verdict.diagnostics)))
    return found


def _ptx_verdict(module: Module, function: Function, block: Shape | None, cluster: Shape | None) -> Verdict | None:
    """Of unrolled loops first with their copies as turns, which those of other roles are; then as they are."""
    from ptxdsl.protocol.from_ptx import kernel_model, span_of

    named = Named(function.name, span_of(module, function))
    made: list[Kernel] = []

    def model(_: Any) -> Kernel:
        made.append(kernel_model(module, function, by_position=not made))
        return made[-1]

    found = _safely(named, model, block, cluster)
    if found is None or found.verdict != UNPROVED or not (made and made[0].by_position):
        return found
    other = _safely(named, model, block, cluster)
    return found if other is None or other.verdict == UNPROVED else other


@dataclass(frozen=True)
class Named:
    """A kernel of which there is no model yet."""

    name: str
    span: Span


def unchecked(problem: Diagnostic) -> Verdict:
    """The verdict on a kernel that could not be looked at: it lacks values of parameters."""
    _, _, quoted = problem.message.partition("`")
    name, closed, _ = quoted.partition("`")
    reason = _reason(problem.span, problem.message, problem.help or "give them by -D NAME=VALUE")
    return Verdict(name if closed else "?", UNPROVED, (0, 0, 0), True, (reason,))


def _safely(
    kernel: Any, model_of: Callable[[Any], Kernel], block: Shape | None, cluster: Shape | None, quick: bool = False
) -> Verdict | None:
    """The checker's own failure must not keep a kernel from being compiled; nothing is proved then."""
    try:
        return checked(model_of(kernel), block, cluster, quick=quick)
    except Exception as defect:
        if os.environ.get("PTXDSL_DEBUG") == "1":
            raise
        why = f"the checker failed on this kernel ({type(defect).__name__})"
        return Verdict(
            kernel.name,
            UNPROVED,
            block or (0, 0, 0),
            True,
            (
                _reason(
                    kernel.span, why, "please report it with the kernel; `ptxdsl run … --races` looks at single runs"
                ),
            ),
        )


def checked(
    kernel: Kernel, block: Shape | None = None, cluster: Shape | None = None, *, quick: bool = False
) -> Verdict | None:
    """The verdict on one kernel; None where there is nothing to prove. block, cluster: if the kernel does not say."""
    nodes = kernel.nodes
    if not any(isinstance(node, (Op, Unmodelled)) for node in nodes):
        return None
    if quick and len(nodes) > _QUICK_NODES:
        return _too_large(kernel.name, kernel.span, kernel.threads)
    from ptxdsl.check.blocks import shapes

    if kernel.cluster is None:
        kernel = replace(kernel, cluster=cluster or kernel.cluster_hint)
    fits = block is not None and kernel.threads is None and kernel.thread_count in (None, prod(block))
    candidates, assumed = ([block], False) if block is not None and fits else shapes(kernel)
    tried: list[Verdict] = []
    for shape in candidates:
        verdict = _proved(kernel, shape, assumed, quick)
        if verdict.verdict == PROVED or not assumed:
            if tried and tried[0].verdict == FAULT:
                return _depends(kernel, verdict, tried[0])
            return verdict
        tried.append(verdict)
    if len({_told(verdict) for verdict in tried}) == 1 or not any(verdict.kinds for verdict in tried):
        return tried[0]
    return _differ(kernel, tried)


def _exceeds(block: tir.Block, most: int) -> int:
    """What is left of a number of operations; negative where a block has more."""
    most -= len(block.ops)
    for op in block.ops:
        for inner in op.blocks:
            if most < 0:
                return most
            most = _exceeds(inner, most)
    return most


def _too_large(name: str, span: Span, threads: Shape | None) -> Verdict:
    reason = _reason(span, "the kernel is too large for a compilation to look at", "`ptxdsl check` does")
    return Verdict(name, UNPROVED, threads or (0, 0, 0), threads is None, (reason,))


def _depends(kernel: Kernel, proved: Verdict, other: Verdict) -> Verdict:
    size, least = _shape_text(proved.block), _shape_text(other.block)
    why = f"with {size} threads it is proved, with {least} there is a fault ({', '.join(other.kinds)})"
    said = f"say {_how_to_say(kernel, proved.block)}"
    help = f"{said}, or --block {size}" if _is_ptx(kernel) else said
    reason = _reason(kernel.span, f"the size of the block is not known; {why}", help)
    return Verdict(kernel.name, UNPROVED, proved.block, True, (reason,), (), kernel.cluster, proved.assumptions)


def _told(verdict: Verdict) -> tuple[Any, ...]:
    """What is the same of two sizes' findings where neither is about the size."""
    first = verdict.diagnostics[0]
    about_size = not _ABOUT_SIZE.isdisjoint(verdict.kinds)
    return verdict.verdict, verdict.kinds, first.span, first.message if about_size else ""


def _differ(kernel: Kernel, tried: Sequence[Verdict]) -> Verdict:
    """No size is proved, and what is wrong depends on it."""
    found = [f"with {_shape_text(v.block)} threads {', '.join(v.kinds) or 'nothing is proved'}" for v in tried]
    said = ".reqntid, or --block" if _is_ptx(kernel) else "@kernel(threads=…)"
    reason = _reason(kernel.span, f"the size of the block is not known ({'; '.join(found)})", f"say {said}")
    return Verdict(kernel.name, UNPROVED, tried[0].block, True, (reason,), (), kernel.cluster)


def _proved(kernel: Kernel, shape: Shape, assumed: bool, quick: bool) -> Verdict:
    from ptxdsl.check.proof import prove
    from ptxdsl.check.proved import proved
    from ptxdsl.check.search import MAX_STEPS

    return _verdict(kernel, shape, assumed, proved(prove, kernel, shape, _QUICK_STEPS if quick else MAX_STEPS))


def _verdict(kernel: Kernel, shape: tuple[int, int, int], assumed: bool, proof: Proof) -> Verdict:
    reasons = [_reason(reason.span, reason.why, reason.remedy) for reason in proof.reasons]
    faults = [_diagnostic(finding) for finding in proof.findings]
    kinds = tuple(finding.kind for finding in proof.findings)
    shows_with = tuple(finding.witness for finding in proof.findings)
    taken: tuple[str, ...] = (_block_text(kernel, shape),) if assumed else ()
    if proof.verdict == PROVED:
        reasons_not_to_end = ((kernel.awaited, "waits for memory"), (kernel.endless, "that is not shown"))
        taken += tuple(_ends_text(loops, why) for loops, why in reasons_not_to_end if loops)
    return Verdict(
        kernel.name,
        proof.verdict,
        shape,
        assumed,
        tuple(faults + reasons),
        kinds,
        kernel.cluster,
        (*taken, *proof.assumptions),
        shows_with,
    )


def _block_text(kernel: Kernel, block: Shape) -> str:
    return f"for blocks of {_shape_text(block)} threads (not in the source: say {_how_to_say(kernel, block)})"


def _ends_text(loops: tuple[Span, ...], why: str) -> str:
    at = sorted({span.line for span in loops})
    ends = "the loops at lines" if len(at) > 1 else "the loop at line"
    return f"if {ends} {', '.join(map(str, at))} come{'' if len(at) > 1 else 's'} to an end ({why})"


def _shape_text(block: Shape) -> str:
    return "x".join(map(str, _written(block)))


def _written(block: Shape) -> tuple[int, ...]:
    """Without the dimensions at its end that are 1."""
    return block[:1] if block[1:] == (1, 1) else block[:2] if block[2] == 1 else block


def _how_to_say(kernel: Kernel, block: Shape) -> str:
    numbers = ", ".join(map(str, _written(block)))
    if _is_ptx(kernel):
        return f".reqntid {numbers}"
    return f"@kernel(threads={f'({numbers})' if ',' in numbers else numbers})"


def _is_ptx(kernel: Kernel) -> bool:
    return kernel.span.source.name.endswith(".ptx")


def _reason(span: Any, why: str, help: str) -> Diagnostic:
    return Diagnostic(NOT_PROVABLE, f"not provable here: {why}", span, (), help, "note")


def _diagnostic(finding: Finding) -> Diagnostic:
    help = finding.help
    if finding.witness:
        help = f"{help}\nit shows with {finding.witness}" if help else f"it shows with {finding.witness}"
    message = f"{finding.kind}: {finding.message}"
    return Diagnostic(CODES[finding.kind], message, finding.span, finding.notes, help, trips=finding.trips)


# -------------------------------------------------------------------------------------------------- suppression

# At the end of a line, or alone on the line before: what follows the colon is the reason.
_MARK = "# check: allow "


def suppressed(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Without findings that a comment at their line allows; one that gives no reason is told of.

    ``p.acquire()  # check: allow E1203: the epilogue resets the parity``. Codes are separated by commas.
    """
    kept = []
    for diagnostic in diagnostics:
        allowed = _allowance(diagnostic)
        if allowed is None:
            kept.append(diagnostic)
        elif not allowed:
            help = f"write why: `{_MARK}{diagnostic.code}: …`"
            message = f"{diagnostic.code} is allowed here without a reason"
            kept.append(Diagnostic(NO_REASON, message, diagnostic.span, (), help, "warning"))
    return kept


def _allowance(diagnostic: Diagnostic) -> str | None:
    """The reason for which a finding is allowed at one of its lines, None where it is not."""
    if not diagnostic.code.startswith("E12"):
        return None
    for span in (diagnostic.span, *(place for place, _ in diagnostic.notes)):
        if span is None or _MARK.strip() not in span.source.text:
            continue
        line = span.line
        above = span.source.line(line - 1) if line > 1 else ""
        for text in (span.source.line(line), above if above.lstrip()[:1] == "#" else ""):
            if _MARK not in text:
                continue
            codes, _, reason = text.partition(_MARK)[2].partition(":")
            if diagnostic.code in [code.strip() for code in codes.split(",")]:
                return reason.strip()
    return None


def as_warnings(found: Iterable[Verdict]) -> list[Diagnostic]:
    """The faults of verdicts as a compilation tells them."""
    faults = [d for verdict in found for d in verdict.diagnostics if d.severity == "error"]
    return [replace(d, severity="warning") if d.severity == "error" else d for d in suppressed(faults)]
