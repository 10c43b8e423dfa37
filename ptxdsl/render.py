"""Diagnostics as text: the message, the source line, carets under the span, notes, help.

error[E0301]: cannot add Int and Int32
  --> a.pdsl:3:13
   |
 3 |     var c = a + b
   |             ^^^^^
   = help: write Int32(a)
"""

from __future__ import annotations

from typing import Protocol

from ptxdsl.source import Span


class Finding(Protocol):
    """What there is to show: a ``Diagnostic``. It renders itself, so this module is below its own."""

    @property
    def code(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def span(self) -> Span | None: ...
    @property
    def notes(self) -> tuple[tuple[Span, str], ...]: ...
    @property
    def help(self) -> str | None: ...
    @property
    def severity(self) -> str: ...
    def trips_at(self, span: Span) -> str: ...


# A source line is shown up to this width in columns; of a longer one, the part around the span.
WINDOW = 120
_BEFORE_SPAN = 40
_FAR = 4 * WINDOW  # characters from the span's start beyond which a line is not looked at
_TAB = 4

_BOLD, _RESET = "\x1b[1m", "\x1b[0m"
_COLORS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "note": "\x1b[1;36m"}
_RULE = "\x1b[1;34m"


def render(diagnostic: Finding, color: bool = False) -> str:
    """The whole diagnostic, without a line end after it. color: with ANSI escapes."""
    paint = _paint if color else _plain
    severity = _COLORS[diagnostic.severity]
    head = paint(f"{diagnostic.severity}[{diagnostic.code}]", severity)
    lines = [head + paint(f": {_printable(diagnostic.message)}", _BOLD)]
    spans = [span for span in (diagnostic.span, *(span for span, _ in diagnostic.notes)) if span is not None]
    margin = max((len(str(span.line)) for span in spans), default=1)
    if diagnostic.span is not None:
        lines += _snippet(diagnostic.span, margin, color, "^", severity, diagnostic.trips_at(diagnostic.span))
    for span, label in diagnostic.notes:
        lines.append(f"{' ' * margin} {paint('=', _RULE)} {paint('note', _COLORS['note'])}: {_printable(label)}")
        lines += _snippet(span, margin, color, "-", _COLORS["note"], diagnostic.trips_at(span))
    if diagnostic.help:
        first, *rest = diagnostic.help.splitlines()
        lines.append(f"{' ' * margin} {paint('=', _RULE)} {paint('help', _BOLD)}: {_printable(first)}")
        lines += [f"{' ' * margin}         {_printable(line)}" for line in rest]
    return "\n".join(lines)


def _snippet(span: Span, margin: int, color: bool, mark: str, mark_color: str, label: str = "") -> list[str]:
    """Where a span is, its first line, and marks below it, with what is said of it there."""
    paint = _paint if color else _plain
    first, column = span.source.position(span.start)
    last, end_column = span.source.position(max(span.end, span.start))
    text = span.source.line(first)
    stop = len(text) if last > first else end_column - 1
    shown, lead, width = _window(text, column - 1, max(stop, column - 1))
    bar = paint("|", _RULE)
    blank = f"{' ' * margin} {bar}"
    where = f"{span} to line {last}" if last > first and span.end > span.source.line_starts[last - 1] else str(span)
    return [
        f"{' ' * margin}{paint('-->', _RULE)} {where}",
        blank,
        f"{paint(f'{first:>{margin}}', _RULE)} {bar} {shown}".rstrip(),
        *[f"{blank} {' ' * lead}{paint(said, mark_color)}" for said in _marked(mark * max(width, 1), label, lead)],
    ]


def _marked(marks: str, label: str, lead: int) -> list[str]:
    """Marks, and what is said of them: in a line of its own where there is not much room behind them."""
    if not label:
        return [marks]
    label = _printable(label)
    return [f"{marks} {label}"] if lead + len(marks) + 1 + len(label) <= WINDOW else [marks, label]


def _window(text: str, start: int, stop: int) -> tuple[str, int, int]:
    """A line as shown, and the columns before and under the span of its characters ``start`` to ``stop``."""
    first = max(start - _FAR, 0)
    beyond = start + _FAR < len(text)
    text, start, stop = text[first : start + _FAR], start - first, stop - first
    begin, head = 0, "…" if first else ""
    if _columns(text) > WINDOW and _columns(text[:start]) > WINDOW // 2:
        begin, head = max(start - _BEFORE_SPAN, 0), "…"
    # Tabs stand at the columns they have in the file, also where the line is cut before them.
    cells = _cells(text)
    room = WINDOW - len(head)
    end = begin
    while end < len(cells) and (room := room - _columns(cells[end])) >= 0:
        end += 1
    tail = "…" if beyond or end < len(cells) else ""
    shown = head + "".join(cells[begin:end]) + tail
    lead = len(head) + _columns("".join(cells[begin:start]))
    return shown, lead, _columns("".join(cells[start : min(stop, end)]))


def _cells(text: str) -> list[str]:
    """What each character is shown as."""
    cells, column = [], 0
    for character in text:
        cell = " " * (_TAB - column % _TAB) if character == "\t" else _printable(character)
        column += _columns(cell)
        cells.append(cell)
    return cells


def _columns(text: str) -> int:
    """The columns that a terminal gives to a text."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _printable(text: str) -> str:
    """Control characters must not reach a terminal: a source may hold escape sequences."""
    if text.isprintable():
        return text
    text = text.replace("\t", " ")
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _paint(text: str, color: str) -> str:
    return f"{color}{text}{_RESET}"


def _plain(text: str, color: str) -> str:
    return text
