"""The rules of ``mistakes.py`` for what other languages have and this one lacks."""

from __future__ import annotations

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.syntax.foreign import CONVENTIONS, EFFECTS, LEADING_NAMES, STRING_PREFIXES, TYPES_OF_C, WORDS
from ptxdsl.syntax.layout import NAMES
from ptxdsl.syntax.mistake_context import Context


def foreign_word(c: Context) -> Diagnostic | None:
    if c.kind != "RESERVED":
        return None
    what = WORDS[c.token]
    if c.leads or c.token in ("lambda", "await", "yield", "fn") or c.before is None or c.before.type == "COMPTIME":
        return c.foreign(what, c.token)
    return c.problem("E0115", f"'{c.token}' is a reserved word, not a name", help="choose another name")


def foreign_sign(c: Context) -> Diagnostic | None:
    if c.kind != "FOREIGN":
        return None
    if c.token == "{" and c.heads_block:
        return c.problem("E0113", "a block begins with ':', not '{'", help="write ':', indent its lines, and no '}'")
    if c.token == "{":
        return c.problem(
            "E0113", "dictionaries and sets are not in the subset", help="use an Array; a struct is made by its name"
        )
    if c.token == ":=":
        return c.problem("E0114", "':=' is gone from Mojo", help="assign in a statement of its own, before this one")
    return c.problem("E0111", "'}' closes nothing", help="leave it out, or open the bracket before it")


def string_prefix(c: Context) -> Diagnostic | None:
    if c.kind == "STRING" and c.before is not None and c.before.end == c.token.start:
        what = STRING_PREFIXES.get(c.before)
        if what is not None:
            return c.foreign(what, c.before)
    return None


def foreign_statement(c: Context) -> Diagnostic | None:
    if c.kind == "ASSERT" and c.leads:
        help = "write debug_assert(condition, \"message\"), or 'comptime assert' for what is known at compile time"
        return c.problem("E0113", "'assert' at run time is not in the subset", help=help)
    first = c.tokens[c.start]
    if (
        c.index == c.start + 1
        and first.type in NAMES
        and (c.kind in NAMES or c.kind in ("INTEGER", "STRING", "LPAR", "COLON"))
    ):
        what = LEADING_NAMES.get(first)
        if what is not None:
            return c.foreign(what, first)
    if c.head == "DEF" and c.before is not None and c.kind in NAMES:
        if c.brackets and c.before in CONVENTIONS:
            return c.foreign(CONVENTIONS[c.before], c.before)
        if c.token in EFFECTS and (not c.brackets or c.before == ")"):  # there, of a function's type
            return c.foreign(EFFECTS[c.token], c.token)
    if c.brackets and c.kind == "FOR":
        return c.problem(
            "E0113", "comprehensions are not in the subset", help="fill an Array in a 'for' or 'comptime for' loop"
        )
    return None


def c_argument(c: Context) -> Diagnostic | None:
    """`for (int i = 0; …)`, `def f(float* p, const int n)`."""
    if not c.brackets or c.before is None:
        return None
    if c.head == "FOR" and c.brackets[0] is c.tokens[c.start + 1] and (c.kind == "EQUAL" or c.before in TYPES_OF_C):
        return c.problem("E0110", "a 'for' goes over a range", help="write 'for i in range(n):'")
    if c.head == "DEF" and c.before in (*TYPES_OF_C, "const") and (c.kind in NAMES or c.token == "*"):
        named = f"{c.token}: {TYPES_OF_C.get(c.before, 'Type')}"
        if c.token == "*" or c.before == "const":
            named = f"p: Pointer[Float32, {'MutAnyOrigin' if c.token == '*' else 'ImmutAnyOrigin'}]"
        message = "an argument's type stands behind its name"
        return c.problem("E0110", message, c.span(c.before), help=f"write '{named}'")
    return None
