"""What the checker says of a mutant: first the proof, and where it is content the trace check over a small run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corpus import Entry, lines_of
from mutant_classes import equivalent
from mutants import Mutant

from ptxdsl.check.report import FAULT
from ptxdsl.diagnostics import CompileError


@dataclass(frozen=True)
class Outcome:
    """by: ``proof``, ``trace``, ``nobody`` or ``compiler`` (it is no program). verdict: the proof's."""

    mutant: Mutant
    by: str
    verdict: str
    kinds: tuple[str, ...] = ()
    lines: frozenset[int] = frozenset()
    status: str = ""

    @property
    def problem(self) -> str | None:
        """What is wrong with the outcome, None where it is as it must be."""
        m = self.mutant
        if self.by == "compiler":
            return None
        if equivalent(m.kernel, m.operator, m.place) is not None:
            return None if self.by == "nobody" else f"false alarm: {self.kinds}"
        if self.by == "nobody":
            return f"missed ({self.verdict}; run: {self.status})"
        if not set(self.kinds) & set(m.accepted):
            return f"class {self.kinds}"
        if not self.lines & m.lines:
            return f"lines {sorted(self.lines)}, not {sorted(m.lines)}"
        if self.by == "trace" and self.verdict == "proved":
            return f"proved, but the trace check finds {self.kinds}"
        return None


def judge(entry: Entry, mutant: Mutant, trace: bool = True) -> Outcome:
    known = entry.small()
    try:
        verdict = entry.proof(known, mutant.text)
    except CompileError:
        return Outcome(mutant, "compiler", "")
    if verdict.verdict == FAULT:
        return Outcome(mutant, "proof", verdict.verdict, verdict.kinds, lines_of(verdict.diagnostics))
    if not trace:
        return Outcome(mutant, "nobody", verdict.verdict)
    found, report, _ = entry.trace(known, mutant.text)
    if found.races:
        kinds = tuple(dict.fromkeys(race.kind for race in found.races))
        return Outcome(mutant, "trace", verdict.verdict, kinds, lines_of(found.diagnostics), report.status)
    return Outcome(mutant, "nobody", verdict.verdict, status=report.status)


def chosen(found: Sequence[Mutant]) -> list[Mutant]:
    """Of each operator the first mutant of a kernel: what the others of them would show is much the same."""
    first: dict[tuple[str, str], Mutant] = {}
    for mutant in found:
        first.setdefault((mutant.kernel, mutant.operator), mutant)
    return list(first.values())


def spread(found: Sequence[Mutant]) -> list[Mutant]:
    """One mutant of each operator, by turns of other kernels."""
    of: dict[str, list[Mutant]] = {}
    for mutant in chosen(found):
        of.setdefault(mutant.operator, []).append(mutant)
    return [those[7 * turn % len(those)] for turn, those in enumerate(of.values())]
