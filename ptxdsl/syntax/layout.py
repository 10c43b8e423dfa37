"""The layout: line ends and indentation become NEWLINE, INDENT and DEDENT tokens.

Lark's own Indenter fails without a position on text that is not well laid out; this one says what is wrong and goes on.
"""

from __future__ import annotations

from ptxdsl.diagnostics import Diagnostic, error
from ptxdsl.record import dataclass
from ptxdsl.source import Source, Span
from ptxdsl.syntax.lalr import END
from ptxdsl.syntax.token import Token

MAX_BRACKETS = 60
MAX_BLOCKS = 60
_TAB = 8

LINE_ENDS = ("NEWLINE", "INDENT", "DEDENT")

CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
_OPENER_OF = {closer: opener for opener, closer in CLOSER_OF.items()}

# Keywords that only ever begin a statement.
_LEADING = frozenset(
    ["STRUCT", "TRAIT", "COMPTIME", "IMPORT", "FROM", "RETURN", "PASS", "BREAK", "CONTINUE", "WHILE", "ELIF"]
)  # fmt: skip

NAMES = frozenset(("NAME", "READ", "MUT", "OUT", "REF", "DEINIT", "RAISES", "THIN", "WHERE"))
_LITERALS = frozenset(("INTEGER", "FLOAT", "STRING", "TRUE", "FALSE", "NONE", "ELLIPSIS"))

# What can begin an operand: a `^` before one of these is the operator, before anything else the transfer.
_OPERAND = NAMES | _LITERALS | {"LPAR", "LSQB", "PLUS", "MINUS", "TILDE"}

# What can end one: after these an `if` in brackets may belong to a conditional expression.
_OPERAND_END = NAMES | _LITERALS | {"RPAR", "RSQB", "TRANSFER"}


@dataclass
class Layout:
    """The laid-out tokens, END last, and what was noticed on the way."""

    tokens: list[Token]
    unclosed: set[int]  # offsets of the opening brackets that nothing closes
    odd_lines: set[int]  # offsets of the first tokens of lines whose indentation fits no block
    longest_line: int  # in tokens
    deepest_block: int


def lay_out(source: Source, raw: list[Token], problems: list[Diagnostic]) -> Layout:
    """Raises CompileError where brackets or blocks are nested too deep to go on."""
    return _LayoutPass(source, raw, problems).run()


class _LayoutPass:
    def __init__(self, source: Source, raw: list[Token], problems: list[Diagnostic]) -> None:
        self.source = source
        self.raw = raw
        self.problems = problems
        self.out: list[Token] = []
        self.brackets: list[Token] = []
        self.indents = [0]
        self.unclosed: set[int] = set()
        self.first_white = ""  # the first white space used for indentation: the rest of the file must agree
        self.said_mixed = False
        self.odd_lines: set[int] = set()
        self.odd_width = -1  # the last indentation that fitted no block

    def run(self) -> Layout:
        raw, out, brackets = self.raw, self.out, self.brackets
        line_start = longest = deepest = 0
        if raw and raw[0].type != "NEWLINE":
            self._indent(self.source.text[: raw[0].start], raw[0].start)
        last = len(raw) - 1
        for index, token in enumerate(raw):
            kind = token.type
            if kind == "NEWLINE":
                at_end = index == last
                if brackets:
                    if not at_end and not self._begins_statement(index + 1):
                        continue
                    self.unclosed.update(b.start for b in brackets)
                    brackets.clear()
                if out and out[-1].type not in LINE_ENDS:
                    self._settle_transfer()
                    out.append(token)
                    longest = max(longest, len(out) - line_start)
                if not at_end:
                    end = token.end
                    self._indent(token[token.rfind("\n") + 1 :], end)
                    deepest = max(deepest, len(self.indents))
                line_start = len(out)
                continue
            if kind == "LPAR" or kind == "LSQB" or (kind == "FOREIGN" and token == "{"):
                brackets.append(token)
                if len(brackets) > MAX_BRACKETS:
                    raise error(
                        "E0108",
                        f"brackets are nested more than {MAX_BRACKETS} deep",
                        self._span(token),
                        help="give the inner parts names with 'var'",
                    )
            elif (kind == "RPAR" or kind == "RSQB" or (kind == "FOREIGN" and token == "}")) and brackets:
                self._close(token)
            if out and out[-1].type == "CIRCUMFLEX" and kind not in _OPERAND:
                out[-1].type = "TRANSFER"
            out.append(token)
        self._finish()
        longest = max(longest, len(out) - line_start)
        return Layout(out, self.unclosed, self.odd_lines, longest, deepest)

    def _finish(self) -> None:
        out = self.out
        end = len(self.source.text)
        self.unclosed.update(b.start for b in self.brackets)
        if out and out[-1].type not in LINE_ENDS:
            self._settle_transfer()
            out.append(Token("NEWLINE", "", end, end))
        out.extend(Token("DEDENT", "", end, end) for _ in self.indents[1:])
        out.append(Token(END, "", end, end))

    def _settle_transfer(self) -> None:
        """A `^` at the end of a line has no operand."""
        if self.out[-1].type == "CIRCUMFLEX":
            self.out[-1].type = "TRANSFER"

    def _close(self, closer: Token) -> None:
        # A closer that does not match its bracket closes it all the same; the parser says so. If a bracket further out
        # matches, those inside it were never closed.
        opener = _OPENER_OF[closer]
        for depth in range(len(self.brackets) - 1, -1, -1):
            if self.brackets[depth] == opener:
                self.unclosed.update(b.start for b in self.brackets[depth + 1 :])
                del self.brackets[depth:]
                return
        self.brackets.pop()

    def _indent(self, white: str, end: int) -> None:
        """Compares the white space of a line, which ends at ``end``, with the blocks that are open."""
        if "\r" in white:
            white = white[white.rfind("\r") + 1 :]
        if white:
            self._check_white(white, end)
        width = len(white.expandtabs(_TAB)) if "\t" in white else len(white)
        indents = self.indents
        if width > indents[-1]:
            self.odd_width = -1
            indents.append(width)
            if len(indents) > MAX_BLOCKS:
                raise error(
                    "E0108",
                    f"blocks are nested more than {MAX_BLOCKS} deep",
                    Span(self.source, end - len(white), end),
                    help="put the inner blocks into functions of their own",
                )
            self.out.append(Token("INDENT", white, end - len(white), end))
            return
        while width < indents[-1]:
            if width > indents[-2]:
                # The line stays in the innermost block, and so do the next ones like it.
                if width != self.odd_width:
                    self._report_dedent(white, end)
                self.odd_width = width
                self.odd_lines.add(end)
                return
            self.odd_width = -1
            indents.pop()
            self.out.append(Token("DEDENT", "", end, end))

    def _report_dedent(self, white: str, end: int) -> None:
        columns = ", ".join(str(n) for n in sorted(set(self.indents)))
        self.problems.append(
            Diagnostic(
                "E0106",
                "inconsistent indentation: this line belongs to no open block",
                Span(self.source, end - len(white), end),
                help=f"the open blocks are indented by {columns} columns, this line by {len(white.expandtabs(_TAB))}",
            )
        )

    def _check_white(self, white: str, end: int) -> None:
        self.first_white = self.first_white or white[0]
        if self.said_mixed or white == self.first_white * len(white):
            return
        self.said_mixed = True
        both = " " in white and "\t" in white
        message = "tabs and spaces are mixed in this indentation" if both else "tabs and spaces are mixed in this file"
        used = "a tab" if self.first_white == "\t" else "spaces"
        help = f"indent every line with {'tabs' if used == 'a tab' else 'spaces'}, as the first indented line does"
        self.problems.append(Diagnostic("E0106", message, Span(self.source, end - len(white), end), help=help))

    def _begins_statement(self, index: int) -> bool:
        """Inside brackets: does the line at this raw token begin a statement, so that a bracket was left open?"""
        raw = self.raw
        token = raw[index]
        kind = token.type
        following = raw[index + 1].type if index + 1 < len(raw) else "NEWLINE"
        if kind in _LEADING:
            return True
        if kind == "DEF":
            return following != "LPAR"  # `def(` is a function type
        if kind == "RESERVED":
            return following != "NEWLINE" and token != "lambda" and token != "await"
        if kind == "VAR":
            return not self._in_declaration()
        if kind == "ELSE":
            return following == "COLON"
        if kind == "AT":
            return self._column(token) <= self.indents[-1] and self._line_end(index).type != "COLON"
        if kind in ("IF", "FOR"):
            return raw[index - 2].type not in _OPERAND_END or self._line_end(index).type == "COLON"
        return False

    def _in_declaration(self) -> bool:
        """Are the open brackets a def's arguments? There `var` is a convention."""
        for token in reversed(self.out):
            if token.type in ("NEWLINE", "INDENT", "DEDENT"):
                return False
            if token.type == "DEF":
                return self.out[-1].type in ("LPAR", "COMMA")
        return False

    def _line_end(self, index: int) -> Token:
        raw = self.raw
        while index + 1 < len(raw) and raw[index + 1].type != "NEWLINE":
            index += 1
        return raw[index]

    def _column(self, token: Token) -> int:
        start = token.start
        return start - (self.source.text.rfind("\n", 0, start) + 1)

    def _span(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)
