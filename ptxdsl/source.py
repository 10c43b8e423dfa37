"""Source text and spans: where every later stage's values come from."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from ptxdsl.record import dataclass


@dataclass(frozen=True, eq=False)
class Source:
    """One text: a file, standard input or a string handed to ``loads``.

    ``name`` is what diagnostics show (a path as the user gave it, ``<stdin>``, ...).
    ``library`` marks the standard library, whose spans are never shown where a user's line can be.
    """

    name: str
    text: str
    library: bool = False

    @cached_property
    def line_starts(self) -> list[int]:
        starts, at = [0], self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column of a character offset."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a 1-based line, without its line end."""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] - 1 if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")

    def line_span(self, number: int, column: int = 0) -> Span:
        """A 1-based line from a 1-based column on, without the blanks around it; the nearest line where there is none
        of that number. column 0: from the first character that is no blank."""
        number = max(1, min(number, len(self.line_starts)))
        text, start = self.line(number), self.line_starts[number - 1]
        end = len(text.rstrip())
        begin = min(column - 1, len(text)) if column else len(text) - len(text.lstrip())
        return Span(self, start + begin, start + max(begin, end))

    def __getstate__(self) -> dict[str, object]:
        return {"name": self.name, "text": self.text, "library": self.library}


@dataclass(frozen=True, slots=True)
class Span:
    """Characters ``start`` (inclusive) to ``end`` (exclusive) of a source."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.position(self.start)[1]

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of another."""
        return Span(self.source, self.start, other.end)

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"
