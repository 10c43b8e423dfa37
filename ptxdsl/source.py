"""Source text and spans: where every later stage's values come from."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from ptxdsl.record import dataclass


@dataclass(frozen=True, eq=False)
class Source:
    """One text: a file, standard input or a string handed to ``loads``.

    ``name`` is what diagnostics show (a path as the user gave it, ``<stdin>``, ...).
    ``library`` marks the standard library, whose spans are never shown where a user's line can be. A text that stands
    in another file may lack what is before its lines there: ``indent``, and in the line of the number ``lead[0]``
    ``lead[1]``. Offsets are those of the text, lines and columns those of the file.
    """

    name: str
    text: str
    library: bool = False
    indent: str = ""
    lead: tuple[int, str] = (0, "")

    def __repr__(self) -> str:  # a text is long, and many things lead to it
        return f"<source {self.name}>"

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
        margin = self.lead[1] if line == self.lead[0] else self.indent
        return line, offset - self.line_starts[line - 1] + len(margin) + 1

    def line(self, number: int) -> str:
        """The text of a 1-based line, without its line end."""
        return self._margin(number) + self._own(number)

    def _own(self, number: int) -> str:
        start = self.line_starts[number - 1]
        end = self.line_starts[number] - 1 if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")

    def _margin(self, number: int) -> str:
        return self.lead[1] if number == self.lead[0] else self.indent

    def line_span(self, number: int, column: int = 0) -> Span:
        """A 1-based line from a 1-based column on, without the blanks around it; the nearest line where there is none
        of that number. column 0: from the first character that is no blank."""
        number = max(1, min(number, len(self.line_starts)))
        text, start = self._own(number), self.line_starts[number - 1]
        end = len(text.rstrip())
        place = column - len(self._margin(number)) - 1
        begin = max(0, min(place, len(text))) if column else len(text) - len(text.lstrip())
        return Span(self, start + begin, start + max(begin, end))

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("name", "text", "library", "indent", "lead")}

    @property
    def identity(self) -> tuple[str, str, str]:
        """Its name, its text, and what else its spans depend on."""
        return self.name, self.text, repr((self.library, self.indent, self.lead))


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

    @property
    def plain(self) -> Span:
        """The same place, whoever calls what is there."""
        return self

    @property
    def calls(self) -> tuple[tuple[Span, str], ...]:
        """The calls through which a kernel comes to this place, the innermost first, each with the function's name."""
        return ()

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"


@dataclass(frozen=True, slots=True)
class CalledSpan(Span):
    """A place in a function that was expanded at a call. call: the call's span. name: the function's."""

    call: Span
    name: str

    @property
    def plain(self) -> Span:
        return Span(self.source, self.start, self.end)

    @property
    def calls(self) -> tuple[tuple[Span, str], ...]:
        return ((self.call.plain, self.name), *self.call.calls)
