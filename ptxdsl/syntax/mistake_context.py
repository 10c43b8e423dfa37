"""The token that does not fit, and what is around it: what the rules of ``mistakes.py`` look at."""

from __future__ import annotations

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.source import Source, Span
from ptxdsl.syntax.foreign import Foreign
from ptxdsl.syntax.lalr import END, Machine
from ptxdsl.syntax.layout import CLOSER_OF, LINE_ENDS, NAMES, Layout
from ptxdsl.syntax.token import Token

BLOCK_WORDS = frozenset(["IF", "ELIF", "ELSE", "WHILE", "FOR", "DEF", "STRUCT", "TRAIT"])


class Context:
    """The offending token and what is around it."""

    def __init__(self, source: Source, layout: Layout, index: int, machine: Machine) -> None:
        self.source = source
        self.layout = layout
        self.tokens = tokens = layout.tokens
        self.index = index
        self.token = tokens[index]
        self.kind: str = self.token.type
        self.machine = machine
        self.expected = machine.expected()
        self.start = statement_start(tokens, index)
        self.before: Token | None = tokens[index - 1] if index > self.start else None
        # The word that says what the statement is: after `comptime`, the next one.
        head = tokens[self.start].type
        self.head: str = tokens[self.start + 1].type if head == "COMPTIME" and self.start + 1 < index else head
        self.brackets: list[Token] = []
        for token in tokens[self.start : index]:
            if token in CLOSER_OF:
                self.brackets.append(token)
            elif token in (")", "]", "}") and self.brackets:
                self.brackets.pop()

    @property
    def leads(self) -> bool:
        """Does the token begin its statement?"""
        return self.index == self.start

    @property
    def ends_line(self) -> bool:
        return self.kind in ("NEWLINE", "DEDENT", END)

    @property
    def expects_expression(self) -> bool:
        return "INTEGER" in self.expected

    @property
    def heads_block(self) -> bool:
        """Could the token be the ':' after a block's first line?"""
        return self.head in BLOCK_WORDS and not self.brackets and "COLON" in self.expected

    @property
    def is_keyword(self) -> bool:
        return self.token.isidentifier() and self.kind not in NAMES and self.kind != "INTEGER"

    @property
    def found(self) -> str:
        """The token in the words of a message."""
        if self.kind in ("NEWLINE", "DEDENT"):
            return "the end of the line"
        if self.kind == END:
            return "the end of the file"
        if self.kind == "STRING":
            return "a string"
        text = self.token
        return f"'{text if len(text) <= 30 else text[:27] + '...'}'"

    def span(self, token: Token | None = None) -> Span:
        """A token's characters; for a line end, the place after the token before it."""
        token = self.token if token is None else token
        if token is self.token and (self.ends_line or (self.kind == "INDENT" and self.before)):
            at = self.tokens[self.index - 1].end if self.index else 0
            if self.index and self.tokens[self.index - 1].type in LINE_ENDS:
                at = token.start
            return Span(self.source, at or 0, at or 0)
        return Span(self.source, token.start, token.end)

    def adjacent(self, text: str) -> bool:
        """Is the token before exactly this text, with no space between?"""
        before = self.before
        return before is not None and before == text and before.end == self.token.start

    @property
    def first_of_physical_line(self) -> bool:
        start = self.token.start
        line_start = self.source.text.rfind("\n", 0, start) + 1
        return not self.source.text[line_start:start].strip()

    def problem(
        self, code: str, message: str, span: Span | None = None, *notes: tuple[Span, str], help: str | None = None
    ) -> Diagnostic:
        return Diagnostic(code, message, span or self.span(), notes, help)

    def foreign(self, what: Foreign, token: Token) -> Diagnostic:
        return self.problem("E0114" if what.gone else "E0113", what.message, self.span(token), help=what.help)


def statement_start(tokens: list[Token], index: int) -> int:
    while index > 0 and tokens[index - 1].type not in LINE_ENDS and tokens[index - 1].type != "SEMICOLON":
        index -= 1
    return index
