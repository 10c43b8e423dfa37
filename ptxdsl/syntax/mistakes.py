"""What a token that does not fit means: from the machine's state and the tokens around it to a diagnostic.

The rules are tried from the most telling to the most general; the first that knows the mistake names it.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.source import Source, Span
from ptxdsl.syntax.foreign import TYPES_OF_C
from ptxdsl.syntax.foreign_mistakes import c_argument, foreign_sign, foreign_statement, foreign_word, string_prefix
from ptxdsl.syntax.lalr import Machine
from ptxdsl.syntax.layout import CLOSER_OF, NAMES, Layout
from ptxdsl.syntax.mistake_context import BLOCK_WORDS, Context, statement_start

_CONDITIONS = frozenset(["IF", "ELIF", "WHILE", "ASSERT"])


def explain(source: Source, layout: Layout, index: int, machine: Machine) -> Diagnostic:
    """The diagnostic for the token at ``index``, which the machine refused."""
    context = Context(source, layout, index, machine)
    for rule in _RULES:
        problem = rule(context)
        if problem is not None:
            return problem
    return _anything(context)


# ---------------------------------------------------------------------------------------------- lines and brackets


def _indentation(c: Context) -> Diagnostic | None:
    if c.kind == "INDENT":
        help = "only the lines of a block are indented, after a line that ends with ':'"
        span = Span(c.source, c.token.start, c.token.end)
        return c.problem("E0106", "unexpected indentation", span, help=help)
    if "INDENT" in c.expected and c.leads:
        start = statement_start(c.tokens, c.index - 1)
        words = c.tokens[start : start + 2]
        word = " ".join(w for w in words if w.isidentifier() and (w is words[0] or words[0].type == "COMPTIME"))
        header = Span(c.source, words[0].start, c.tokens[c.index - 2].end)
        return c.problem(
            "E0117", f"expected an indented block after '{word}'", None, (header, "the block belongs to this line"),
            help="indent the lines of the block, or write 'pass'",
        )  # fmt: skip
    return None


def _decorator(c: Context) -> Diagnostic | None:
    if not (c.leads and c.index and "DEF" in c.expected and "PASS" not in c.expected):
        return None
    start = statement_start(c.tokens, c.index - 1)
    name = c.tokens[start + 1]
    at = Span(c.source, c.tokens[start].start, name.end)
    if name == "parameter" and c.kind in ("IF", "FOR"):
        return c.problem("E0114", f"'@parameter {c.token}' is gone from Mojo", at, help=f"write 'comptime {c.token}'")
    return c.problem(
        "E0117", f"'@{name}' is not followed by a 'def' or 'struct'", at, help="move it to the line above one"
    )


def _orphan(c: Context) -> Diagnostic | None:
    if not c.leads or c.kind not in ("ELSE", "ELIF"):
        return None
    before = "'if', 'for' or 'while'" if c.kind == "ELSE" else "'if'"
    return c.problem(
        "E0117", f"'{c.token}' without {before}", help=f"it stands below {before}, at the same indentation"
    )


def _brackets(c: Context) -> Diagnostic | None:
    closes = c.token in (")", "]", "}")
    if not c.brackets:
        return (
            c.problem("E0111", f"'{c.token}' closes nothing", help="leave it out, or open the bracket before it")
            if closes
            else None
        )
    opener = c.brackets[-1]
    closer = CLOSER_OF[opener]
    at = c.span(opener)
    if closes and c.token != closer:
        return c.problem(
            "E0111",
            f"'{c.token}' does not close '{opener}'",
            None,
            (at, f"'{opener}' opened here"),
            help=f"write '{closer}'",
        )
    unclosed = opener.start in c.layout.unclosed
    if c.ends_line or (unclosed and (c.kind == "COLON" or c.first_of_physical_line)):
        notes = () if c.ends_line else ((c.span(), "this does not belong inside it"),)
        return c.problem("E0111", f"'{opener}' is never closed", at, *notes, help=f"close it with '{closer}'")
    return None


# --------------------------------------------------------------------------------------------------------- operators


def _operators(c: Context) -> Diagnostic | None:
    """Operators of other languages."""
    for first, second, instead in _OTHER_OPERATORS:
        if c.token == second and c.adjacent(first):
            assert c.before is not None
            span = Span(c.source, c.before.start, c.token.end)
            return c.problem("E0110", f"there is no operator '{first}{second}'", span, help=f"write '{instead}'")
    if c.ends_line and c.index >= c.start + 3:
        last = c.tokens[c.index - 2 : c.index]
        if [str(t) for t in last] in (["+", "+"], ["-", "-"]) and last[0].end == last[1].start:
            op = str(last[0])
            span = Span(c.source, last[0].start, last[1].end)
            return c.problem("E0110", f"there is no operator '{op}{op}'", span, help=f"write '{op}= 1'")
    if c.kind == "NOT" and c.expects_expression:
        return c.problem("E0110", "'not' binds weaker than the operator before it", help="put 'not ...' in parentheses")
    return None


_OTHER_OPERATORS = (
    ("&", "&", "and"),
    ("|", "|", "or"),
    ("==", "=", "=="),
    ("=", "<", "<="),
    ("=", ">", ">="),
    ("<", ">", "!="),
    ("-", ">", "->"),
)


def _equals(c: Context) -> Diagnostic | None:
    if c.kind == "AUGMENTED" and (c.brackets or c.head in _CONDITIONS or c.head in ("RETURN", "VAR")):
        return c.problem(
            "E0112", f"'{c.token}' is a statement, not an expression", help="write it on a line of its own"
        )
    if c.kind != "EQUAL":
        return None
    if c.head in _CONDITIONS and not c.brackets:
        return c.problem("E0112", "'=' assigns; it cannot stand in a condition", help="to compare, write '=='")
    if c.head == "FOR" and c.index == c.start + 2:
        return c.problem("E0110", "expected 'in' after the loop variable", help="write 'for i in range(...)'")
    if c.brackets and c.head not in ("DEF", "STRUCT"):
        return c.problem(
            "E0112", "'=' in brackets names an argument: a plain name must precede it", help="to compare, write '=='"
        )
    assigned = any(t.type in ("EQUAL", "AUGMENTED") for t in c.tokens[c.start : c.index])
    if assigned and not c.brackets:
        return c.problem(
            "E0112", "a statement has one '='", help="write one assignment for each target; to compare, write '=='"
        )
    if c.head == "RETURN":
        return c.problem("E0112", "'=' assigns; it cannot stand in an expression", help="to compare, write '=='")
    return None


# ---------------------------------------------------------------------------------------------- parts of statements


def _colon(c: Context) -> Diagnostic | None:
    """A colon that does not belong."""
    if c.kind != "COLON" or c.brackets or c.before is None:
        return None
    first = c.tokens[c.start]
    following = c.tokens[c.index + 1 : c.index + 2]
    if following and following[0].type == "COLON" and following[0].start == c.token.end:
        span = Span(c.source, c.token.start, following[0].end)
        return c.problem("E0110", "there is no operator '::'", span, help="write '.'")
    if c.index == c.start + 1 and first.type in NAMES:
        help = f"write 'var {first}: Type = value'"
        return c.problem(
            "E0116",
            "a declaration begins with 'var'",
            Span(c.source, first.start, c.token.end),
            help=help,
        )
    return None


def _else(c: Context) -> Diagnostic | None:
    if c.kind == "IF" and c.before is not None and c.before.type == "ELSE":
        span = Span(c.source, c.before.start, c.token.end)
        return c.problem("E0110", "there is no 'else if'", span, help="write 'elif'")
    if "ELSE" in c.expected and not c.leads:
        help = "write 'value if condition else other'"
        return c.problem("E0110", f"expected 'else' in the conditional expression, found {c.found}", help=help)
    return None


def _nested_block(c: Context) -> Diagnostic | None:
    before = c.before or (c.tokens[c.index - 1] if c.index else None)
    if before is None or "PASS" not in c.expected or c.kind not in BLOCK_WORDS:
        return None
    if before.type in ("COLON", "SEMICOLON"):
        return c.problem(
            "E0110", f"'{c.token}' begins a block: it needs a line of its own", help="put it on the next line"
        )
    return None


def _comptime(c: Context) -> Diagnostic | None:
    if c.tokens[c.start].type == "COMPTIME" and "EQUAL" in c.expected and not c.brackets:
        return c.problem("E0110", f"expected '=' and a value, found {c.found}", help="write 'comptime NAME = value'")
    if c.before is None or c.before.type != "COMPTIME":
        return None
    if c.kind == "WHILE":
        return c.problem("E0113", "there is no 'comptime while'", help="write 'comptime for ... in range(...)'")
    if c.kind == "VAR":
        return c.problem("E0110", "'comptime' takes the place of 'var'", help="write 'comptime NAME = value'")
    return None


def _loop(c: Context) -> Diagnostic | None:
    if c.head != "FOR" or "INTEGER" in c.expected or "COLON" in c.expected:
        return None
    if "IN" in c.expected:
        return c.problem(
            "E0110", f"expected 'in' after the loop variable, found {c.found}", help="write 'for i in range(n):'"
        )
    return None


def _import(c: Context) -> Diagnostic | None:
    if c.head == "IMPORT" and c.kind == "COMMA":
        return c.problem("E0110", "one 'import' takes one module", help="write an 'import' line for each")
    if c.head == "FROM" and c.kind == "DOT" and "IMPORT" not in c.expected:
        return c.problem("E0110", "a name after 'import' has no dots", help="write the whole module after 'from'")
    return None


def _keyword_as_name(c: Context) -> Diagnostic | None:
    if c.is_keyword and "NAME" in c.expected and not c.expects_expression and not c.leads:
        return c.problem("E0115", f"'{c.token}' is a keyword, not a name", help="choose another name")
    return None


_HEADER_ENDS = {
    "IF": "after the condition",
    "ELIF": "after the condition",
    "WHILE": "after the condition",
    "ELSE": "after 'else'",
    "FOR": "after what the loop goes over",
    "DEF": "at the end of the 'def' line",
    "STRUCT": "at the end of the 'struct' line",
    "TRAIT": "at the end of the 'trait' line",
}


def _header(c: Context) -> Diagnostic | None:
    """A block's line: what is missing before its block."""
    if c.brackets or c.before is None or c.head not in BLOCK_WORDS or (c.expects_expression and not c.ends_line):
        return None
    if c.head == "DEF" and "LPAR" in c.expected and c.ends_line | (c.kind == "COLON"):
        return c.problem(
            "E0110", "expected '(' after the function's name", help="a 'def' has an argument list: write 'def name():'"
        )
    if "COLON" not in c.expected:
        return None
    place = _HEADER_ENDS[c.head]
    if c.ends_line:
        return c.problem("E0110", f"expected ':' {place}")
    return c.problem("E0110", f"expected ':' {place}, found {c.found}")


def _two_words(c: Context) -> Diagnostic | None:
    """`int x`, `foo x`: one operand after another where a statement could have ended."""
    first = c.tokens[c.start]
    if c.index == c.start + 1 and first.type == "NAME" and c.kind in NAMES:
        if first in TYPES_OF_C:
            help = f"write 'var {c.token} = value', or 'var {c.token}: {TYPES_OF_C[first]} = value'"
            return c.problem("E0116", "a declaration begins with 'var'", c.span(first), help=help)
        help = f"to declare a variable, write 'var {c.token}: {first}'; to call a function, write '{first}({c.token})'"
        return c.problem("E0110", f"'{first}' and '{c.token}' stand side by side", help=help)
    return None


# --------------------------------------------------------------------------------------------------------- the rest


def _expression(c: Context) -> Diagnostic | None:
    if not c.expects_expression:
        return None
    if c.before == "*" and c.head == "DEF" and c.brackets and c.token in (",", ")", "="):
        return c.problem(
            "E0110", "a pointer's type does not end with '*'", c.span(c.before),
            help="write 'Pointer[Float32, MutAnyOrigin]', of what it points to",
        )  # fmt: skip
    help = _SIGNS_OF_C.get(c.token) if c.before is None or c.before in ("=", "(", ",") else None
    if c.before is None:
        return c.problem("E0110", f"a statement cannot begin with {c.found}", help=help)
    after = f" after '{c.before}'" if c.before.type not in ("STRING", "INDENT") else ""
    found = "" if c.ends_line else f", found {'keyword ' if c.is_keyword else ''}{c.found}"
    return c.problem("E0110", f"expected an expression{after}{found}", help=None if c.ends_line else help)


# What stands in C where an operand begins.
_SIGNS_OF_C = {
    "/": "a comment begins with '#'",
    "//": "a comment begins with '#'",
    "&": "variables have no address; that of an element in memory is 'p.unsafe_offset(i)'",
    "*": "what a pointer points to is 'p[]'",
}


def _in_brackets(c: Context) -> Diagnostic | None:
    if not c.brackets:
        return None
    opener = c.brackets[-1]
    closer = CLOSER_OF[opener]
    note = (c.span(opener), f"'{opener}' opened here")
    if "COMMA" in c.expected or _CLOSER_KINDS.get(closer) in c.expected:
        wanted = f"',' or '{closer}'" if "COMMA" in c.expected else f"'{closer}'"
        return c.problem("E0110", f"expected {wanted}, found {c.found}", None, note)
    return None


_CLOSER_KINDS = {")": "RPAR", "]": "RSQB"}


def _name(c: Context) -> Diagnostic | None:
    if "NAME" not in c.expected:
        return None
    after = f" after '{c.before}'" if c.before is not None else ""
    return c.problem("E0110", f"expected a name{after}, found {c.found}")


def _end_of_statement(c: Context) -> Diagnostic | None:
    if "NEWLINE" in c.expected:
        cast = c.tokens[max(c.index - 3, 0) : c.index]
        help = None
        if c.kind in NAMES and [t.type for t in cast] == ["LPAR", "NAME", "RPAR"]:
            help = f"to convert a value, write '{TYPES_OF_C.get(cast[1], cast[1])}({c.token})'"
        elif c.token == "as":
            help = "to convert a value, write 'Type(value)'"
        return c.problem("E0110", f"expected an operator or the end of the statement, found {c.found}", help=help)
    return None


_WORDS_FOR = {
    "EQUAL": "'='", "COLON": "':'", "IN": "'in'", "IMPORT": "'import'", "LPAR": "'('", "RPAR": "')'", "RSQB": "']'",
    "COMMA": "','", "NEWLINE": "the end of the line", "DEF": "'def'", "STRUCT": "'struct'", "TRAIT": "'trait'",
    "ELSE": "'else'", "LSQB": "'['",
}  # fmt: skip


def _anything(c: Context) -> Diagnostic:
    wanted = sorted(_WORDS_FOR[kind] for kind in c.expected if kind in _WORDS_FOR)
    if 0 < len(wanted) <= 4:
        return c.problem("E0110", f"expected {' or '.join(wanted)}, found {c.found}")
    return c.problem("E0110", f"{c.found} does not fit here")


_RULES: tuple[Callable[[Context], Diagnostic | None], ...] = (
    foreign_word,
    foreign_sign,
    string_prefix,
    _indentation,
    _decorator,
    foreign_statement,
    _orphan,
    _brackets,
    _operators,
    c_argument,
    _equals,
    _colon,
    _else,
    _nested_block,
    _comptime,
    _loop,
    _import,
    _keyword_as_name,
    _header,
    _two_words,
    _expression,
    _in_brackets,
    _name,
    _end_of_statement,
)
