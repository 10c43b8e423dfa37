"""Text that is no token: what is wrong with it, and where it ends."""

from __future__ import annotations

import re

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.source import Source, Span

# Not allowed anywhere, not even in strings and comments: controls, lone surrogates, and the marks that make text
# look different from what it is (bidirectional overrides).
_HIDDEN = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
_LONE_CR = r"\r(?!\n)"

_NUMBER = r"[0-9]([0-9A-Za-z_]|\.(?=[0-9]))*"
_QUOTE = "\"\"\"|'''|\"|'"
_WORD = r"\w+"

# Characters that begin no token: code, message, help.
_ADVICE = {
    "!": ("E0103", "'!' is not an operator", "write 'not'"),
    "?": ("E0103", "'?' is not an operator", "write 'a if condition else b'"),
    "$": ("E0103", "'$' is not allowed here", None),
    "`": ("E0103", "names in backticks are not in the subset", "choose a name of letters, digits and '_'"),
    "\\": ("E0103", "'\\' continues a line only as its last character", "remove what follows it, spaces too"),
    "\ufeff": ("E0102", "a byte order mark is allowed only at the start of the file", "remove it"),
    "\u00a0": ("E0102", "a no-break space does not count as white space", "write an ordinary space"),
    "\u201c": ("E0102", "typographic quotes do not make a string", "write '\"'"),
    "\u201d": ("E0102", "typographic quotes do not make a string", "write '\"'"),
    "\u2018": ("E0102", "typographic quotes do not make a string", 'write "\'"'),
    "\u2019": ("E0102", "typographic quotes do not make a string", 'write "\'"'),
    "\u2013": ("E0102", "this dash is not a minus sign", "write '-'"),
    "\u2212": ("E0102", "this dash is not a minus sign", "write '-'"),
    "\u00d7": ("E0102", "'×' is not an operator", "write '*'"),
}


def find_hidden(source: Source, problems: list[Diagnostic]) -> None:
    """Tells of characters that are allowed nowhere."""
    text = source.text
    for pattern in (_HIDDEN, _LONE_CR):
        for match in re.finditer(pattern, text):
            code = ord(match[0])
            name = "NUL byte" if code == 0 else _unicode_name(match[0], "control character")
            if code == 13:
                name = "carriage return"
            problems.append(
                Diagnostic(
                    "E0102",
                    f"{name} (U+{code:04X}) in the text",
                    Span(source, match.start(), match.end()),
                    help="remove it; in a string write an escape such as '\\x00'",
                )
            )
            if len(problems) >= 20:  # a binary file: the first ones say enough
                return


def explain(source: Source, start: int) -> tuple[int, Diagnostic | None]:
    """Where the text that begins no token ends, and what is wrong with it (None if that is already said)."""
    text = source.text
    char = text[start]
    if match := re.compile(_NUMBER).match(text, start):
        return match.end(), _number(source, match)
    if match := re.compile(_QUOTE).match(text, start):
        quote = match[0]
        if len(quote) == 3:
            span = Span(source, start, start + 3)
            return len(text), Diagnostic(
                "E0104", f"this string has no closing {quote}", span, help=f"close it with {quote}"
            )
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        help = f"close it with {quote}; a string over several lines is written between {quote * 3}"
        return end, Diagnostic(
            "E0104", f"this string has no closing {quote} on its line", Span(source, start, end), help=help
        )
    if re.match(_HIDDEN, char) or char == "\r":
        return start + 1, None
    here = Span(source, start, start + 1)
    if char == "\\" and not text[start + 1 :].strip():
        return len(text), Diagnostic("E0103", "'\\' continues no line here: the text ends", here, help="remove it")
    if char in _ADVICE:
        code, message, advice = _ADVICE[char]
        return start + 1, Diagnostic(code, message, here, help=advice)
    if match := re.compile(_WORD).match(text, start):
        span = Span(source, start, match.end())
        help = "names are made of the letters a-z and A-Z, digits and '_'"
        return match.end(), Diagnostic("E0103", f"{char!r} is not allowed in a name", span, help=help)
    name = _unicode_name(char, "")
    message = f"the character {char!r} (U+{ord(char):04X}{', ' + name if name else ''}) is not allowed here"
    return start + 1, Diagnostic(
        "E0102", message, here, help="such characters are allowed only in strings and comments"
    )


def _unicode_name(char: str, default: str) -> str:
    import unicodedata  # for mistakes only

    return unicodedata.name(char, default).lower()


def _number(source: Source, match: re.Match[str]) -> Diagnostic:
    text = match[0]
    span = Span(source, match.start(), match.end())
    help = None
    if re.fullmatch(r"0[0-9_]+", text):
        help = f"leading zeros are not allowed; octal is written 0o{text.lstrip('0_') or '0'}"
    elif re.match(r"0[xXoObB]", text):
        help = "after 0x come hexadecimal digits, after 0o octal ones, after 0b binary ones; '_' only between digits"
    elif "__" in text or text.endswith("_"):
        help = "'_' is allowed only between two digits"
    elif re.fullmatch(r"[0-9_.]*[A-Za-z_]\w*", text):
        help = "a name cannot begin with a digit, and a number has no suffix: write Float32(1.5), UInt32(7)"
    shown = text if len(text) <= 40 else text[:37] + "..."
    return Diagnostic("E0105", f"'{shown}' is not a number", span, help=help)
