"""Mistakes made in clean kernels by fixed operators: each is one change of one place, with the classes of findings that
are right for it and the lines at which it may be shown.

Lines keep their numbers: what is dropped becomes ``pass`` (or the step that went with it), what is doubled stands twice
on its line, what is moved changes places with its neighbour. A finding must show the changed line. Where nothing is
left there to be shown, the other side of the ring or a line of the same block will do.
"""

from __future__ import annotations

from dataclasses import dataclass

from mutant_classes import ACCEPTED
from mutant_operators import OPERATORS
from mutant_program import Program


@dataclass(frozen=True)
class Mutant:
    """line: the first that differs, from 1. before: what stood there. lines: where a finding may be shown.

    place: ``before``, with a number where the operator fits several such lines.
    """

    kernel: str
    operator: str
    line: int
    place: str
    before: str
    after: str
    text: str
    lines: frozenset[int]

    @property
    def accepted(self) -> tuple[str, ...]:
        return ACCEPTED[self.operator]

    @property
    def name(self) -> str:
        return f"{self.kernel}:{self.line}:{self.operator}"


def mutants(kernel: str, text: str) -> list[Mutant]:
    """All mutants of a kernel, in the order of its lines."""
    program = Program(text)
    found: dict[str, Mutant] = {}
    seen: dict[tuple[str, str], list[int]] = {}
    for i, code in enumerate(program.code):
        for name, find in OPERATORS.items():
            if not code:
                continue
            for changes, beside in find(program, i, code):
                lines = seen.setdefault((name, code), [])
                if i not in lines:
                    lines.append(i)
                place = code if len(lines) == 1 else f"{code} ({len(lines)})"
                made = _mutant(program, kernel, name, changes, beside, place)
                found.setdefault(made.text, made)
    return list(found.values())


def _mutant(program: Program, kernel: str, name: str, changes: dict[int, str], beside: set[int], place: str) -> Mutant:
    lines = list(program.lines)
    for i, code in changes.items():
        lines[i] = code if code.startswith(" ") else " " * program.indent(i) + code
    first = min(changes)
    shown = frozenset(i + 1 for i in {*changes, *beside})
    return Mutant(kernel, name, first + 1, place, program.code[first], changes[first].strip(), "\n".join(lines), shown)
