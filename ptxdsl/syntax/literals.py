"""What a string token stands for."""

from __future__ import annotations

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.hints import TYPE_CHECKING
from ptxdsl.source import Source, Span
from ptxdsl.syntax.token import Token

if TYPE_CHECKING:
    import re

_ESCAPE = r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|\r?\n|[\s\S])"

_SIMPLE = {
    "n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "v": "\v",
    "\n": "", "\r\n": "",
}  # fmt: skip


def decode_string(source: Source, token: Token, problems: list[Diagnostic]) -> str:
    """The text of a string literal, its escapes resolved unless it is raw."""
    raw = token[0] in "rR"
    quoted = token[1:] if raw else token
    width = 3 if quoted[:3] in ('"""', "'''") else 1
    body = quoted[width:-width]
    if raw or "\\" not in body:
        return str(body)
    import re  # where there is an escape

    base = token.start + width

    def resolve(match: re.Match[str]) -> str:
        escape = match[1]
        if (simple := _SIMPLE.get(escape)) is not None:
            return simple
        span = Span(source, base + match.start(), base + match.end())
        if escape[0] in "01234567":
            return chr(int(escape, 8))
        if len(escape) > 1:
            value = int(escape[1:], 16)
            if value <= 0x10FFFF and not 0xD800 <= value <= 0xDFFF:
                return chr(value)
            problems.append(
                Diagnostic(
                    "E0109",
                    f"'{match[0]}' is not a Unicode character",
                    span,
                    help="the characters are 0 to 10ffff, without d800 to dfff",
                )
            )
        elif escape in "xuU":
            digits = {"x": 2, "u": 4, "U": 8}[escape]
            problems.append(
                Diagnostic(
                    "E0109",
                    f"'\\{escape}' needs {digits} hexadecimal digits",
                    span,
                    help=f"write '\\\\{escape}' for a backslash and '{escape}'",
                )
            )
        else:
            help = f"write '\\\\{escape}' for a backslash, or r\"...\" for a string without escapes"
            problems.append(Diagnostic("E0109", f"'\\{escape}' is not an escape", span, help=help, severity="warning"))
        return match[0]

    return re.sub(_ESCAPE, resolve, body)
