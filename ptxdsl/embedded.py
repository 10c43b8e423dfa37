"""Where a kernel's text stands in a Python file, so that what is said of it is said there.

The text is looked for as it is, and as ``textwrap.dedent`` leaves it; nothing is parsed. A literal with escapes is not
found, which costs the place and nothing else.
"""

from __future__ import annotations

import linecache

from ptxdsl.source import Source

UNNAMED = "<text>"
_SHORTEST = 12  # characters: what is shorter may stand anywhere


def source_in(text: str, file: str, line: int) -> Source:
    """The text as a source that has its Python file's name and lines; by itself where it does not stand there.

    line: where it is used, from 1: of several places the nearest counts.
    """
    lines = linecache.getlines(file)
    found = [] if len(text) < _SHORTEST or "\n" not in text else _places(text, lines)
    if not found:
        return Source(UNNAMED, text)
    first = min(found, key=lambda place: abs(place - line))
    return Source(file, "\n" * (first - 1) + text)


def _places(text: str, lines: list[str]) -> list[int]:
    """Numbers of the lines in which the text begins."""
    whole, found = "".join(lines), []
    start = whole.find(text)
    while start >= 0:
        found.append(whole.count("\n", 0, start) + 1)
        start = whole.find(text, start + 1)
    return found or _indented(text.split("\n"), lines)


def _indented(wanted: list[str], lines: list[str]) -> list[int]:
    """Of a text whose lines all have lost the same white space."""
    lead = next((i for i, line in enumerate(wanted) if line.strip()), None)
    if lead is None:
        return []
    found = []
    for number, line in enumerate(lines):
        indent = line[: len(line) - len(line.lstrip())]
        if (
            line.strip()
            and line.rstrip("\n") == indent + wanted[lead]
            and _goes_on(wanted[lead:], lines[number:], indent)
        ):
            found.append(number - lead + 1)
    return [place for place in found if place > 0]


def _goes_on(wanted: list[str], lines: list[str], indent: str) -> bool:
    """Whether lines are those of a text under an indent; its last one may end within a line."""
    if len(lines) < len(wanted):
        return False
    *middle, last = wanted
    same = all(
        line.rstrip("\n") == indent + text or not (text.strip() or line.strip())
        for text, line in zip(middle, lines, strict=False)
    )
    return same and (not last.strip() or lines[len(middle)].startswith(indent + last))
