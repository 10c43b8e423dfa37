"""What a proof takes for granted where the text does not tell: clauses behind its verdict, each with its lines."""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.source import Span

INSIDE = "if the {index|indices} at {lines} {stays|stay} within {its array|their arrays}"
APART = "if no two threads write different values to the same bytes at {lines}"
NO_SUM = "if the first product at {lines} does not add to what is there"
WRITTEN = "if what is read at {lines} was written"
NOT_NEW = "if what is read again at {lines} need not have been written since"
FREE = "if the registers that are asked for at {lines} become free"
ACQUIRED = "if the tensor map{|s} published at {lines} {is|are} acquired before copies use {it|them}"

_CLAUSES = (INSIDE, APART, NO_SUM, WRITTEN, NOT_NEW, FREE, ACQUIRED)  # in the order in which a verdict names them


class Supposed:
    """by_values: whether it was looked at what threads write. not_negative: parameters that trip counts are made of,
    taken for that."""

    def __init__(self) -> None:
        self._lines: dict[str, set[int]] = {}
        self.by_values = False
        self.not_negative: set[str] = set()

    def note(self, clause: str, span: Span | None) -> None:
        """Takes one of the clauses above for granted at a line; what has no place belongs to something that has."""
        if span is not None:
            self._lines.setdefault(clause, set()).add(span.line)

    @property
    def written(self) -> bool:
        """Whether anything is supposed of writes that were not seen."""
        return WRITTEN in self._lines or NOT_NEW in self._lines

    def clauses(self) -> Iterator[str]:
        for clause in _CLAUSES:
            if clause in self._lines:
                yield _text(clause, sorted(self._lines[clause]))


def _text(clause: str, lines: list[int]) -> str:
    """A clause of one line or of several: ``{of one|of several}``."""
    several = len(lines) > 1
    head, *parts = clause.split("{")
    for part in parts:
        choice, _, rest = part.partition("}")
        if choice == "lines":
            head += f"line{'s' * several} {', '.join(map(str, lines))}{rest}"
        else:
            head += choice.split("|")[several] + rest
    return head
