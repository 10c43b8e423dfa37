"""Programs that are in error, with what is said about them in comments below the lines that are meant.

``rejected/*.pdsl`` has snippets, each after a line ``# ----``, which may give options: ``arch=sm_80``, ``kernel=k``,
constants (``n=3``). What stands after ``# ==== head`` goes before each of the snippets that follow. The comments are
written by ``pytest --update-golden`` and are exact: code, first column and width (of a span's first line), message,
help, notes.

    p[1.5] = 0
    # ^^^ E0604: a pointer index must be an integer, not FloatLiteral
    # help: …

A caret at once after the ``#`` stands for a span that begins in the first column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from elaborate_support import diagnostics

from ptxdsl.diagnostics import Diagnostic

FOLDER = Path(__file__).parent / "rejected"
_TITLE = re.compile(r"# (?:---- ?(.*)|==== (head))")
_SAID = re.compile(r"# *(\^|help: |note: |elsewhere: )")


@dataclass(frozen=True)
class Snippet:
    """``text``: the program without what is said about it; ``annotated``: with it, as it stands in the file."""

    title: str
    options: str
    head: str
    text: str
    annotated: str

    def __str__(self) -> str:
        return " ".join(self.text.split())[:60]

    def said(self) -> str:
        """The program annotated with what the compiler says now."""
        settings = dict(option.split("=", 1) for option in self.options.split(", ")) if self.options else {}
        problems = diagnostics(self.head + self.text, **settings)
        first = self.head.count("\n") + 1
        lines = []
        for number, line in enumerate(self.text.splitlines(), start=first):
            lines.append(line)
            for problem in problems:
                if problem.span is not None and problem.span.source.name == "test.pdsl" and problem.span.line == number:
                    lines += _comments(problem, line)
        for problem in problems:
            span = problem.span
            if span is None or span.source.name != "test.pdsl" or span.line < first:
                place = "no place" if span is None else f"{span.source.name} {span.column}"
                lines.append(f"# elsewhere: {place}: {problem.code}: {problem.message}")
                lines += [f"# help: {problem.help}"] if problem.help else []
        return "\n".join(lines) + "\n"


def _comments(problem: Diagnostic, line: str) -> list[str]:
    assert problem.span is not None
    column = problem.span.column
    assert column != 2, "a span in the second column cannot be shown"
    width = max(1, min(len(problem.span.text.split("\n")[0]), len(line) + 1 - column))
    margin = "#" if column == 1 else "#" + " " * (column - 2)
    result = [f"{margin}{'^' * width} {problem.code}: {problem.message}"]
    lead = "# " if column == 1 else margin
    if problem.help:
        result.append(f"{lead}help: {problem.help}")
    for span, label in problem.notes:
        result.append(f"{lead}note: `{' '.join(span.text.split())[:40]}`: {label}")
    return result


def snippets(path: Path) -> list[Snippet]:
    """The snippets of a file, and its heads (whose title is not that of a snippet)."""
    found: list[Snippet] = []
    head, title, options, lines = "", "", "", []
    for line in [*path.read_text().splitlines(), "# ---- end"]:
        match = _TITLE.fullmatch(line)
        if match is None:
            lines.append(line)
            continue
        text = "\n".join(line for line in lines if not _SAID.match(line)).rstrip("\n") + "\n"
        if title:
            found.append(Snippet(title, options, head, text, "\n".join(lines).rstrip("\n") + "\n"))
        if title == "# ==== head":
            head = text
        title, options, lines = line, match[1] or "", []
    return found


def cases(path: Path) -> list[Snippet]:
    return [snippet for snippet in snippets(path) if snippet.title != "# ==== head"]


def rewritten(path: Path, now: bool = True) -> str:
    """A file's text, put together again: with what the compiler says now, or as it was read."""
    preamble = re.split(r"^# (?:----|====)", path.read_text(), maxsplit=1, flags=re.M)[0]
    return preamble + "\n".join(
        f"{snippet.title}\n{snippet.said() if now and snippet.title != '# ==== head' else snippet.annotated}"
        for snippet in snippets(path)
    )
