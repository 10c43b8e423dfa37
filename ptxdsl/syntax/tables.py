"""Lark's parse tables: built from the grammar once, kept as bytes, loaded in every other process.

The bytes are a header line (format, Lark version, grammar hash) and Lark's own pickle. They are only ever loaded from
where the program itself was installed, or from a private cache that the driver vouches for: a pickle is code.
"""

from __future__ import annotations

import hashlib
import io
from functools import lru_cache
from typing import TYPE_CHECKING

from ptxdsl.resources import grammar_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lark import Lark, Token

_FORMAT = b"ptxdsl-tables-1"


class KeepRefused:
    """Tells Lark to keep the terminals that no rule has: words and signs that are lexed in order to be refused."""

    always_accept = ("RESERVED", "FOREIGN")

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return stream


def compile_grammar(grammar: str, *, strict: bool = False) -> Lark:
    """The grammar as a Lark parser, tables computed (about 0.3 s).

    ``strict`` makes every conflict, of rules and of terminals, a ``lark.GrammarError``; it needs ``interegular``.
    """
    from lark import Lark

    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        start="module",
        keep_all_tokens=True,
        postlex=KeepRefused(),
        strict=strict,
    )


def _header(grammar: str) -> bytes:
    from lark import __version__

    digest = hashlib.sha256(grammar.encode()).hexdigest()
    return b" ".join((_FORMAT, __version__.encode(), digest.encode())) + b"\n"


def build_tables(grammar: str) -> bytes:
    """The tables of a grammar as bytes, bound to the installed Lark's version and the grammar's hash."""
    out = io.BytesIO()
    compile_grammar(grammar).save(out, exclude_options=("postlex",))
    return _header(grammar) + out.getvalue()


def load_tables(data: bytes, grammar: str) -> Lark | None:
    """The parser in ``data``, or None if it was made by another Lark version or of another grammar.

    Only for bytes that came from the installation or from a private cache.
    """
    header = _header(grammar)
    if not data.startswith(header):
        return None
    from lark import Lark

    return Lark.load(io.BytesIO(data[len(header) :]))


_offered: bytes | None = None


def offer_tables(data: bytes) -> None:
    """Hands over tables that the driver has kept; they are used if they fit."""
    global _offered
    _offered = data


@lru_cache(maxsize=1)
def load_lark() -> Lark:
    """The parser of ``grammar/pdsl.lark``: from the offered tables, or built."""
    grammar = grammar_text()
    lark = load_tables(_offered, grammar) if _offered is not None else None
    return lark or compile_grammar(grammar)
