"""PTX text before it is read: decoded, comments blanked, and the errors that point into it."""

from __future__ import annotations

import re
from typing import NoReturn

from ptxdsl.diagnostics import CompileError, Diagnostic
from ptxdsl.source import Source, Span

# More than these in one text tell a reader nothing.
MAX_ERRORS = 20

_COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|/\*|"[^"\n]*"', re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\n]")


class Refused(Exception):
    """A piece of a statement is wrong. Where it stands is found by whoever has the statement's text.

    fragment: the piece as written; empty: the whole statement.
    """

    def __init__(self, code: str, message: str, fragment: str = "", help: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message if len(message) < 300 else message[:140] + " … " + message[-140:]
        self.fragment = fragment
        self.help = help


class Errors:
    """The errors of one text, in the order of the text; the run ends at the last or after ``MAX_ERRORS``."""

    def __init__(self, name: str, text: str) -> None:
        self.source = Source(name, text)
        self.found: list[Diagnostic] = []

    def add(self, refused: Refused, start: int, end: int) -> None:
        """An error within the characters start to end."""
        if refused.fragment:
            at = self._find(refused.fragment, start, end)
            if at >= 0:
                start, end = at, at + len(refused.fragment)
        text = self.source.text
        end = min(end, len(text))
        while start < end and text[start].isspace():
            start += 1
        first_line = text.find("\n", start, end)
        end = first_line if first_line >= 0 else end
        span = Span(self.source, start, max(end, start + 1) if start < len(text) else start)
        self.found.append(Diagnostic(refused.code, refused.message, span, help=refused.help))
        if len(self.found) >= MAX_ERRORS:
            self.raise_found()

    def _find(self, fragment: str, start: int, end: int) -> int:
        """Where the fragment stands as a whole word, or at all."""
        text = self.source.text
        if fragment[0].isalnum() or fragment[0] in "_$%":
            word = re.compile(r"(?<![\w$%])" + re.escape(fragment) + r"(?![\w$])").search(text, start, end)
            if word is not None:
                return word.start()
        return text.find(fragment, start, end)

    def fatal(self, refused: Refused, start: int, end: int) -> NoReturn:
        """An error after which the rest of the text cannot be understood."""
        self.add(refused, start, end)
        self.raise_found()
        raise AssertionError

    def raise_found(self) -> None:
        if self.found:
            raise CompileError(sorted(self.found, key=lambda d: d.span.start if d.span else 0))


def decode(text: str | bytes, name: str) -> str:
    """The text of a PTX file. Raises CompileError for bytes that are no UTF-8 and for NUL characters."""
    if isinstance(text, bytes):
        data = text
        text = data.decode("utf-8", errors="replace")
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as problem:
            at = len(data[: problem.start].decode("utf-8"))
            refused = Refused("E0810", "this is not PTX text: a byte that is not UTF-8", help=_BINARY)
            Errors(name, text).fatal(refused, at, at + 1)
    # The driver takes a text that ends in one NUL; so do we.
    nul = text.find("\0", 0, len(text) - 1)
    if nul >= 0:
        Errors(name, text).fatal(Refused("E0810", "this is not PTX text: a NUL character", help=_BINARY), nul, nul + 1)
    return text.removesuffix("\0")


_BINARY = "a cubin or a fat binary has no PTX text; `cuobjdump --dump-ptx` prints the PTX inside a fat binary"


def blank_comments(errors: Errors) -> str:
    """The text with spaces in the place of comments: offsets and lines stay, and no later step knows of comments."""
    text = errors.source.text
    if "//" not in text and "/*" not in text:
        return text

    def blank(match: re.Match[str]) -> str:
        piece = match[0]
        if piece[0] == '"':
            return piece
        if piece[1] == "/":
            return " " * len(piece)
        if piece == "/*":
            errors.fatal(Refused("E0810", "a comment that does not end"), match.start(), match.end())
        return _NOT_NEWLINE.sub(" ", piece)

    return _COMMENT_OR_STRING.sub(blank, text)
