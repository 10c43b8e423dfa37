"""Where a kernel's text stands in Python code, so that what is said of it is said there.

The text is looked for line by line in the caller's code, as it is or without a common indent (``textwrap.dedent``), in
a file, a notebook's cell or the text of ``python -c``. A text that was built, as by an f-string with values in it,
stands nowhere: its lines are its own.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from ptxdsl.source import Source

UNNAMED = "<text>"
_SHORTEST = 12  # characters: what is shorter may stand anywhere
_QUOTES = ("'", '"')


def source_in(text: str, caller: FrameType) -> Source:
    """The text as a source with the name and the lines of the code that the caller runs; by itself where it is not
    there. Of several places the nearest to the caller's line counts."""
    name = caller.f_code.co_filename
    found = _found(text, _lines(caller)) if len(text) >= _SHORTEST and "\n" in text else None
    if found is None:
        return Source(UNNAMED, text)
    first, lead, indent = min(found, key=lambda place: abs(place[0] - caller.f_lineno))
    return Source(_shown(name), "\n" * (first - 1) + text, indent=indent, lead=(first, lead))


Place = tuple[int, str, str]  # the line in which a text begins, from 1; what stands before it there, and before others


def _found(text: str, lines: Sequence[str]) -> list[Place] | None:
    wanted = text.split("\n")
    head = next((i for i, line in enumerate(wanted) if line.strip()), None)
    return None if head is None else list(_places(wanted, head, lines)) or None


def _places(wanted: Sequence[str], head: int, lines: Sequence[str]) -> Iterator[Place]:
    """head: the first line of ``wanted`` that is not blank."""
    for first in range(len(lines) - len(wanted) + 1):
        lead = _before(lines[first + head], wanted[head])
        if lead is None or (lead.strip() and (head or not lead.endswith(_QUOTES))):
            continue
        indent = _indent(wanted, head, lines[first : first + len(wanted)], lead)
        if indent is not None:
            yield first + 1, indent if head else lead, indent


def _indent(wanted: Sequence[str], head: int, lines: Sequence[str], lead: str) -> str | None:
    """What stands before the lines of a text below its head; None where these lines are not the text's."""
    indent = None if lead.strip() else lead
    last = len(wanted) - 1  # it may end within a line of code
    for number in range(head + 1, len(wanted)):
        text, line = wanted[number], lines[number]
        if not text.strip() and (number == last or not line.strip()):
            continue
        before = _before(line, text) if number < last else line.partition(text)[0] if text in line else None
        if before is None or before.strip() or indent not in (None, before):
            return None
        indent = before
    return indent or ""


def _before(line: str, text: str) -> str | None:
    """What stands in a line of code before a text that ends it, written as it is or with escapes; None if it does not.
    Behind an escape columns are not exact: it has more characters in the code than in the text."""
    written = line.rstrip("\n")
    if not written.endswith(text):
        plain, escape, _ = written.partition("\\")
        if not escape or plain.lstrip() not in text:
            return None
        written = _evaluated(written)
    return written[: len(written) - len(text)] if written.endswith(text) else None


def _evaluated(line: str) -> str:
    """A line of a literal with its escapes done; empty for what is none."""
    import ast
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes that Python does not know
        try:
            return str(ast.literal_eval(f'"""{line}"""'))
        except (SyntaxError, ValueError):
            return ""


def _lines(frame: FrameType) -> list[str]:
    name = frame.f_code.co_filename
    if name == "<string>" and sys.argv[:1] == ["-c"] and frame.f_globals.get("__name__") == "__main__":
        # the arguments of `python -c` after its text are those of sys.argv after "-c"
        return sys.orig_argv[-len(sys.argv)].splitlines(keepends=True)
    return linecache.getlines(name, frame.f_globals)


def _shown(name: str) -> str:
    """What messages call a file of code: cells of IPython are In[n]."""
    shell: Any = sys.modules.get("IPython")
    running = shell and shell.get_ipython()
    cell = running and running.compile.format_code_name(name)
    return cell[1] if cell else name
