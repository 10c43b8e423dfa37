"""Expression rules to AST: one method for each rule or alias of the grammar, called with the rule's children.

Children are tokens (the grammar keeps all of them), None for what is absent in ``[...]``, and what other methods gave.
The span of a node goes from its first to its last token; parentheses belong to the expression around them, so a
parenthesised node's outer extent is kept beside it.
"""

from __future__ import annotations

from ptxdsl.diagnostics import Diagnostic
from ptxdsl.hints import Any
from ptxdsl.source import Source, Span
from ptxdsl.syntax import ast
from ptxdsl.syntax.literals import decode_string
from ptxdsl.syntax.token import Token

Children = list[Any]


class ExpressionBuilder:
    """The current text, what was found wrong in it, and the spans that nodes are given."""

    def __init__(self) -> None:
        self.source = Source("", "")
        self.problems: list[Diagnostic] = []
        self.outer: dict[ast.Expr, Span] = {}
        self.requirements: list[ast.ComptimeRequirement] = []  # those that stand in no trait so far

    def begin(self, source: Source, problems: list[Diagnostic]) -> None:
        self.source = source
        self.problems = problems
        self.outer = {}
        self.requirements = []

    # ------------------------------------------------------------------------------------------------------- spans

    def _start(self, item: Any) -> int:
        if isinstance(item, Token):
            return item.start
        if self.outer and item in self.outer:
            return self.outer[item].start
        return item.span.start

    def _end(self, item: Any) -> int:
        if isinstance(item, Token):
            return item.end
        if self.outer and item in self.outer:
            return self.outer[item].end
        return item.span.end

    def _span(self, first: Any, last: Any) -> Span:
        return Span(self.source, self._start(first), self._end(last))

    def _at(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)

    def _problem(self, code: str, message: str, span: Span, help: str | None = None) -> None:
        self.problems.append(Diagnostic(code, message, span, help=help))

    def _name(self, token: Token) -> ast.Name:
        return ast.Name(self._at(token), str(token))

    # ------------------------------------------------------------------------------------------------- expressions

    def tuple_expression(self, c: Children) -> ast.TupleExpr:
        items = tuple(c[::2])
        return ast.TupleExpr(self._span(items[0], c[-1] or items[-1]), items)

    def expression_list(self, c: Children) -> tuple[ast.Expr, ...]:
        return tuple(c[::2])

    def conditional(self, c: Children) -> ast.Conditional:
        return ast.Conditional(self._span(c[0], c[4]), c[2], c[0], c[4])

    def bool_op(self, c: Children) -> ast.BoolOp:
        return ast.BoolOp(self._span(c[0], c[2]), str(c[1]), c[0], c[2])  # type: ignore[arg-type]  # "and" or "or"

    def unary(self, c: Children) -> ast.Unary:
        return ast.Unary(self._span(c[0], c[1]), str(c[0]), c[1])  # type: ignore[arg-type]  # a sign of the grammar

    def compare(self, c: Children) -> ast.Compare:
        return ast.Compare(self._span(c[0], c[-1]), tuple(c[::2]), tuple(c[1::2]))

    def comparator(self, c: Children) -> str:
        return " ".join(c)

    def binary(self, c: Children) -> ast.Binary:
        left, op, right = c
        return ast.Binary(self._span(left, right), str(op), left, right)

    def attribute(self, c: Children) -> ast.Attribute:
        return ast.Attribute(self._span(c[0], c[2]), c[0], str(c[2]), self._at(c[2]))

    def call(self, c: Children) -> ast.Call:
        return ast.Call(self._span(c[0], c[3]), c[0], c[2])

    def subscript(self, c: Children) -> ast.Subscript:
        if isinstance(c[0], ast.Name) and c[0].id == "constrained":
            self._problem(
                "E0114", "'constrained' is gone from Mojo", c[0].span, "write 'comptime assert condition, \"message\"'"
            )
        return ast.Subscript(self._span(c[0], c[3]), c[0], c[2])

    def transfer(self, c: Children) -> ast.Transfer:
        return ast.Transfer(self._span(c[0], c[1]), c[0])

    def arguments(self, c: Children) -> tuple[ast.Argument, ...]:
        return tuple(x for x in c if x.__class__ is ast.Argument)

    def positional(self, c: Children) -> ast.Argument:
        value = c[0]
        return ast.Argument(self._span(value, value), None, value)

    def keyword(self, c: Children) -> ast.Argument:
        return ast.Argument(self._span(c[0], c[2]), str(c[0]), c[2])

    def starred(self, c: Children) -> ast.Argument:
        return ast.Argument(self._span(c[0], c[1]), None, c[1], star=True)

    indices = arguments

    def slice_index(self, c: Children) -> ast.Argument:
        present = [x for x in c if x is not None]
        span = self._span(present[0], present[-1])
        return ast.Argument(span, None, ast.Slice(span, c[0], c[2], c[4]))

    # ------------------------------------------------------------------------------------------------------- atoms

    def name_expression(self, c: Children) -> ast.Name:
        token = c[0]
        return ast.Name(Span(self.source, token.start, token.end), str(token))

    def integer(self, c: Children) -> ast.IntLiteral:
        return ast.IntLiteral(self._at(c[0]), int(c[0], 0))

    def float_number(self, c: Children) -> ast.FloatLiteral:
        return ast.FloatLiteral(self._at(c[0]), str(c[0]))

    def string(self, c: Children) -> ast.StringLiteral:
        value = "".join([decode_string(self.source, token, self.problems) for token in c])
        return ast.StringLiteral(self._span(c[0], c[-1]), value)

    def true(self, c: Children) -> ast.BoolLiteral:
        return ast.BoolLiteral(self._at(c[0]), True)

    def false(self, c: Children) -> ast.BoolLiteral:
        return ast.BoolLiteral(self._at(c[0]), False)

    def none(self, c: Children) -> ast.NoneLiteral:
        return ast.NoneLiteral(self._at(c[0]))

    def ellipsis(self, c: Children) -> ast.EllipsisLiteral:
        return ast.EllipsisLiteral(self._at(c[0]))

    def dot_name(self, c: Children) -> ast.DotName:
        return ast.DotName(self._span(c[0], c[1]), str(c[1]))

    def parenthesised(self, c: Children) -> ast.Expr:
        self.outer[c[1]] = self._span(c[0], c[2])
        return c[1]

    def parenthesised_tuple(self, c: Children) -> ast.TupleExpr:
        items = () if len(c) == 2 else (c[1], *(c[3] or ()))
        return ast.TupleExpr(self._span(c[0], c[-1]), items)

    def list_expression(self, c: Children) -> ast.ListExpr:
        return ast.ListExpr(self._span(c[0], c[2]), c[1] or ())

    def function_type(self, c: Children) -> ast.FunctionType:
        keyword, _, args, closer, *effects, _, returns = c
        last = returns or (effects[-1] if effects else closer)
        return ast.FunctionType(self._span(keyword, last), args or (), returns, "raises" in map(str, effects))

    def effect(self, c: Children) -> Token:
        token: Token = c[0]
        return token
