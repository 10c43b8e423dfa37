"""Statement rules to AST; ``build_expressions.py`` says how the methods are called."""

from __future__ import annotations

from ptxdsl.hints import Any
from ptxdsl.source import Span
from ptxdsl.syntax import ast
from ptxdsl.syntax.build_declarations import DeclarationBuilder, take_docstring
from ptxdsl.syntax.build_expressions import Children
from ptxdsl.syntax.token import Token


class Builder(DeclarationBuilder):
    """Makes one module at a time: call ``begin`` before each parse.

    ``problems`` collects what the grammar lets through and the language does not.
    """

    # -------------------------------------------------------------------------------------------------- statements

    def module(self, c: Children) -> ast.Module:
        body = _flatten(c)
        docstring, rest = take_docstring(body)
        for requirement in self.requirements:
            help = "write 'comptime NAME = value'"
            self._problem("E0110", "a constant needs '=' and a value outside of a trait", requirement.span, help)
        return ast.Module(Span(self.source, 0, len(self.source.text)), self.source, docstring, rest)

    def line(self, c: Children) -> Any:
        return c[0] if len(c) == 3 else _flatten(c[:-2][::2])

    def block(self, c: Children) -> ast.Block:
        return _flatten(c[2:-1])

    def line_block(self, c: Children) -> ast.Block:
        return _flatten(c)

    def pass_statement(self, c: Children) -> ast.Pass:
        return ast.Pass(self._at(c[0]))

    def break_statement(self, c: Children) -> ast.Break:
        return ast.Break(self._at(c[0]))

    def continue_statement(self, c: Children) -> ast.Continue:
        return ast.Continue(self._at(c[0]))

    def return_statement(self, c: Children) -> ast.Return:
        return ast.Return(self._span(c[0], c[1] or c[0]), c[1])

    def comptime_assert(self, c: Children) -> ast.Assert:
        return ast.Assert(self._span(c[0], c[4] or c[2]), c[2], c[4])

    def comptime_declaration(self, c: Children) -> ast.ComptimeDecl:
        _, name, params, _, type, _, value = c
        return ast.ComptimeDecl(self._span(c[0], value), str(name), self._at(name), params or (), type, value)

    def comptime_declarations(self, c: Children) -> tuple[ast.ComptimeDecl, ...]:
        """``comptime A, B = 1, 2``: a declaration for each name."""
        names, values = c[1:-2:2], c[-1].items if isinstance(c[-1], ast.TupleExpr) else ()
        if len(names) != len(values):
            help = f"{len(names)} names take {len(names)} values with commas between them"
            self._problem("E0121", "write a value for each name", self._span(c[-1], c[-1]), help)
        pairs = zip(names, values, strict=False)
        return tuple(ast.ComptimeDecl(self._span(n, v), str(n), self._at(n), (), None, v) for n, v in pairs)

    def comptime_requirement(self, c: Children) -> ast.ComptimeRequirement:
        keyword, name, _, type = c
        requirement = ast.ComptimeRequirement(self._span(keyword, type), str(name), self._at(name), type)
        self.requirements.append(requirement)
        return requirement

    def var_statement(self, c: Children) -> ast.VarDecl:
        keyword, target, _, type, _, value = c
        span = self._span(keyword, value or type or target)
        if type is None and value is None:
            name = ast.names_of(target)[0].id
            self._problem(
                "E0120", "a variable needs a value or a type", span, f"write 'var {name} = value' or 'var {name}: Type'"
            )
        return ast.VarDecl(span, target, type, value)

    def ref_statement(self, c: Children) -> ast.RefDecl:
        return ast.RefDecl(self._span(c[0], c[3]), self._name(c[1]), c[3])

    def names(self, c: Children) -> ast.Expr:
        """One name, or a tuple of names and of tuples in parentheses."""
        items = tuple(
            self._name(x) if isinstance(x, Token) else x for x in c if x is not None and x not in (",", "(", ")")
        )
        if len(items) == 1 and c[-1] is None:
            return items[0]
        return ast.TupleExpr(self._span(c[0], c[-1] or c[-2]), items)

    def expression_statement(self, c: Children) -> ast.ExprStmt:
        return ast.ExprStmt(self._span(c[0], c[0]), c[0])

    def assign(self, c: Children) -> ast.Assign:
        self._check_target(c[0])
        return ast.Assign(self._span(c[0], c[2]), c[0], c[2])

    def augmented(self, c: Children) -> ast.AugAssign:
        target, op, value = c
        if isinstance(target, ast.TupleExpr):
            self._problem(
                "E0121", f"'{op}' takes one target", self._span(target, target), "write one statement for each"
            )
        else:
            self._check_target(target)
        return ast.AugAssign(self._span(target, value), target, op[:-1], value)

    def _check_target(self, target: ast.Expr) -> None:
        if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
            return
        if isinstance(target, ast.TupleExpr) and target.items:
            for item in target.items:
                self._check_target(item)
            return
        help = "the left side of '=' is a name, x.field, x[index] or several of these with commas"
        if isinstance(target, ast.Compare):
            help = "to compare, write '=='"
        self._problem("E0121", f"cannot assign to {_describe(target)}", self._span(target, target), help)

    # ------------------------------------------------------------------------------------------------------ blocks

    def elif_clause(self, c: Children) -> tuple[Token, ast.Expr, ast.Block]:
        return c[0], c[1], c[3]

    def else_clause(self, c: Children) -> ast.Block:
        return c[2]

    def if_statement(self, c: Children) -> ast.If:
        comptime = c[0] is not None
        orelse: ast.Block = c[-1] or ()
        for token, test, then in reversed(c[5:-1]):
            end = self._end((orelse or then)[-1])
            span = Span(self.source, self._start(token), end)
            orelse = (ast.If(span, test, then, orelse, comptime),)
        then = c[4]
        return ast.If(self._span(c[0] or c[1], (orelse or then)[-1]), c[2], then, orelse, comptime)

    def while_statement(self, c: Children) -> ast.While:
        return ast.While(self._span(c[0], (c[4] or c[3])[-1]), c[1], c[3], c[4] or ())

    def for_statement(self, c: Children) -> ast.For:
        comptime, keyword, binding, target, _, iter, _, body, orelse = c
        span = self._span(comptime or keyword, (orelse or body)[-1])
        return ast.For(span, target, iter, body, orelse or (), comptime is not None, binding or "read")

    def binding(self, c: Children) -> str:
        return str(c[0])

    # ----------------------------------------------------------------------------------------------------- imports

    def dotted(self, c: Children) -> tuple[str, Span]:
        return "".join(c), self._span(c[0], c[-1])

    def origin(self, c: Children) -> tuple[str, int, Span]:
        module, span = c[-1] or ("", None)
        dots = c[:-1]
        start = dots[0] if dots else None
        if span is None:
            span = self._span(start, dots[-1])
        elif start is not None:
            span = Span(self.source, self._start(start), span.end)
        return module, sum(map(len, dots)), span

    def import_names(self, c: Children) -> tuple[tuple[ast.ImportName, ...] | None, Any]:
        """The names (None for all) and the last token or node."""
        names = tuple(x for x in c if isinstance(x, ast.ImportName))
        last = c[-1] if c[-1] is not None else c[-2]
        return names or None, last

    def import_name(self, c: Children) -> ast.ImportName:
        return ast.ImportName(self._span(c[0], c[2] or c[0]), str(c[0]), c[2] and str(c[2]))

    def from_statement(self, c: Children) -> ast.Import:
        module, level, span = c[1]
        names, last = c[3]
        return ast.Import(self._span(c[0], last), module, level, names, None, span)

    def import_statement(self, c: Children) -> ast.Import:
        module, span = c[1]
        end = self._end(c[3]) if c[3] else span.end
        whole = Span(self.source, self._start(c[0]), end)
        return ast.Import(whole, module, 0, (), c[3] and str(c[3]), span)


def _flatten(items: Children) -> ast.Block:
    """A line of several statements is a tuple among statements."""
    statements: list[ast.Stmt] = []
    for item in items:
        if item.__class__ is tuple:
            statements.extend(item)
        else:
            statements.append(item)
    return tuple(statements)


def _describe(node: ast.Expr) -> str:
    """What a node is, in the words of a message."""
    return _DESCRIPTIONS.get(type(node), "an expression")


_DESCRIPTIONS: dict[type[ast.Expr], str] = {
    ast.IntLiteral: "a number",
    ast.FloatLiteral: "a number",
    ast.StringLiteral: "a string",
    ast.BoolLiteral: "True or False",
    ast.NoneLiteral: "None",
    ast.EllipsisLiteral: "'...'",
    ast.DotName: "a '.NAME'",
    ast.Call: "a call",
    ast.Unary: "an operation",
    ast.Binary: "an operation",
    ast.Compare: "a comparison",
    ast.BoolOp: "a condition",
    ast.Conditional: "a conditional expression",
    ast.TupleExpr: "an empty tuple",
    ast.ListExpr: "a list",
    ast.Transfer: "a transfer",
    ast.FunctionType: "a function type",
}
