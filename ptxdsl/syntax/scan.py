"""Text to tokens: the grammar's terminals, written out. Characters that begin no token do not end it.

A regular expression of all terminals takes longer to compile, and the module ``re`` longer to import, than a small
kernel takes to parse.
"""

from __future__ import annotations

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.source import Source, Span
from ptxdsl.syntax.tables import ParseTables
from ptxdsl.syntax.token import Token

# A token that no rule has, in place of text that is no token. Its diagnostic is already given.
ERROR = "ERROR"

MAX_NUMBER = 4000  # characters; Python itself stops at 4300 digits

_DECIMAL = frozenset("0123456789")
_OF_BASE = {"x": frozenset("0123456789abcdefABCDEF"), "o": frozenset("01234567"), "b": frozenset("01")}
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")


class _OnlyWords(dict[int, str]):
    """For ``str.translate``: what words are made of stays, all else becomes blanks."""

    def __missing__(self, code: int) -> str:
        return " "


_ONLY_WORDS = _OnlyWords({ord(char): char for char in _LETTERS | _DECIMAL})


def scan(tables: ParseTables, source: Source, problems: list[Diagnostic]) -> list[Token]:
    """All tokens of a source, without the layout's. What is no token becomes an ERROR token and a diagnostic."""
    text, names, signs = source.text, tables.words, tables.signs
    if "\r" in text or not text.replace("\n", "").replace("\t", "").isprintable():
        from ptxdsl.syntax.strange import find_hidden  # nothing that is hidden is printable

        find_hidden(source, problems)
    words = text.translate(_ONLY_WORDS) + " "
    lengths = sorted({len(sign) for sign in signs}, reverse=True)
    tokens: list[Token] = []
    start, size = 0, len(text)
    while start < size:
        char = text[start]
        if char == " " or char == "\t":
            start += 1
            continue
        end = 0  # for what is no token
        if char in _LETTERS:
            end, kind = words.find(" ", start), "STRING"
            closed = _string_end(text, end) if end == start + 1 and char in "rR" else 0
            if not closed:
                kind = names.get(text[start:end], "NAME")
            end = closed or end
        elif char in "\n#\r":
            end, kind = _line_end(text, start), "NEWLINE"
        elif char in _DECIMAL or (char == "." and words[start + 1] in _DECIMAL):
            end, kind = _number(text, words, start)
        elif char == '"' or char == "'":
            end, kind = _string_end(text, start), "STRING"
        elif char == "\\" and text.startswith(("\n", "\r\n"), start + 1):
            start = text.index("\n", start) + 1
            continue
        if not end:
            for length in lengths:
                word = text[start : start + length]
                if word in signs:
                    end, kind = start + len(word), signs[word]  # the text may end before
                    break
        if not end:
            from ptxdsl.syntax.strange import explain

            (end, problem), kind = explain(source, start), ERROR
            if problem is not None:
                problems.append(problem)
        elif end - start > MAX_NUMBER and kind in ("INTEGER", "FLOAT"):
            message = f"this number is longer than {MAX_NUMBER} digits"
            help = "no type holds such a number"
            problems.append(Diagnostic("E0107", message, Span(source, start, end), help=help))
            kind = ERROR
        tokens.append(Token(kind, text[start:end], start, end))
        start = end
    return tokens


# Where a token ends that may begin here; 0 where it does not.


def _line_end(text: str, start: int) -> int:
    """A line end with the blank and comment lines after it, and the blanks before what comes then."""
    end, size = start, len(text)
    while end < size:
        if text[end] == "#":
            line_end = text.find("\n", end)
            end = size if line_end < 0 else line_end
        elif text.startswith(("\n", "\r\n"), end):
            end = text.index("\n", end) + 1
            while end < size and text[end] in " \t":
                end += 1
        else:
            break
    return end if end > start else 0


def _string_end(text: str, start: int) -> int:
    """A string from its quote on."""
    quote = text[start : start + 1]
    if quote not in ('"', "'"):
        return 0
    if text.startswith(quote * 3, start):
        quote *= 3
    at = start + len(quote)
    while (end := text.find(quote, at)) >= 0:
        escape = text.find("\\", at, end)
        if len(quote) == 1 and text.find("\n", at, end if escape < 0 else escape) >= 0:
            break
        if escape < 0:
            return end + len(quote)
        at = escape + 2
    return 0


def _number(text: str, words: str, start: int) -> tuple[int, str]:
    """A number, and which kind. words: the text, with blanks for what is in no word."""
    whole = end = _digits(words, start, _DECIMAL)
    if text.startswith(".", whole):
        fraction = _digits(words, whole + 1, _DECIMAL)
        if fraction > whole + 1 or whole > start:
            end = fraction
    if end > start and words[end] in "eE":
        sign = end + 2 if text.startswith(("+", "-"), end + 1) else end + 1
        end = exponent if (exponent := _digits(words, sign, _DECIMAL)) > sign else end
    if end > whole and words[end] == " ":
        return end, "FLOAT"
    end = whole
    digits = _OF_BASE.get(words[start + 1].lower()) if text[start] == "0" else None
    if digits is not None:
        first = start + 3 if words[start + 2] == "_" else start + 2
        end = last if (last := _digits(words, first, digits)) > first else start
    elif text[start] == "0" and words[start:end].strip("0_"):
        end = start
    continued = words[end] != " " or (text.startswith(".", end) and words[end + 1] in _DECIMAL)
    return (0 if continued else end), "INTEGER"


def _digits(words: str, start: int, digits: frozenset[str]) -> int:
    """Where the digits end that begin here, with single ``_`` between them."""
    end = start
    while words[end] in digits or (words[end] == "_" and end > start and words[end + 1] in digits):
        end += 1
    return end
