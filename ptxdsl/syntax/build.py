"""Statement and declaration rules to AST; ``build_expressions.py`` says how the methods are called."""

from __future__ import annotations

from ptxdsl.hints import Any, Literal
from ptxdsl.record import replace
from ptxdsl.source import Span
from ptxdsl.syntax import ast
from ptxdsl.syntax.build_expressions import Children, ExpressionBuilder
from ptxdsl.syntax.token import Token

_VARIADIC = ("many", "pack")
_Convention = Literal["read", "mut", "out", "var", "ref", "deinit"]


class Builder(ExpressionBuilder):
    """Makes one module at a time: call ``begin`` before each parse.

    ``problems`` collects what the grammar lets through and the language does not.
    """

    # -------------------------------------------------------------------------------------------------- statements

    def module(self, c: Children) -> ast.Module:
        body = _flatten(c)
        docstring, rest = _take_docstring(body)
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
        return c[2]  # type: ignore[no-any-return]

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

    # ------------------------------------------------------------------------------------------------ declarations

    def decorated(self, c: Children) -> ast.FunctionDef | ast.StructDef:
        return replace(c[-1], decorators=tuple(c[:-1]))  # type: ignore[no-any-return]

    def decorator(self, c: Children) -> ast.Decorator:
        at, (name, span), _, arguments, closer, _ = c
        end = self._end(closer) if closer else span.end
        return ast.Decorator(Span(self.source, self._start(at), end), name, arguments)

    def def_statement(self, c: Children) -> ast.FunctionDef:
        keyword, name, params, _, args, _, raises, _, returns = c[:9]
        body: ast.Block = c[-1]
        docstring, rest = _take_docstring(body)
        return ast.FunctionDef(
            self._span(keyword, body[-1]), str(name), self._at(name), params or (), args or (), returns, tuple(c[9:-2]),
            raises is not None, (), docstring, rest,
        )  # fmt: skip

    def struct_statement(self, c: Children) -> ast.StructDef:
        keyword, name, params, _, traits, _ = c[:6]
        block: ast.Block = c[-1]
        docstring, rest = _take_docstring(block)
        listed = tuple(part for trait in traits or () for part in _split_traits(trait))
        members = self._members(rest)
        return ast.StructDef(
            self._span(keyword, block[-1]), str(name), self._at(name), params or (), listed, tuple(c[6:-2]), (),
            docstring, members,
        )  # fmt: skip

    def _members(self, body: ast.Block) -> tuple[ast.FieldDecl | ast.FunctionDef | ast.ComptimeDecl, ...]:
        members: list[ast.FieldDecl | ast.FunctionDef | ast.ComptimeDecl] = []
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.ComptimeDecl)):
                members.append(statement)
            elif isinstance(statement, ast.VarDecl):
                members.extend(self._fields(statement))
            elif isinstance(statement, ast.ExprStmt) and isinstance(statement.value, ast.StringLiteral):
                if members and isinstance(members[-1], ast.FieldDecl):
                    members[-1] = replace(members[-1], docstring=statement.value.value)
            elif not _is_empty(statement):
                help = "a struct has fields ('var name: Type'), methods ('def') and 'comptime NAME = value'"
                self._problem("E0122", "this statement cannot stand in a struct", statement.span, help)
        return tuple(members)

    def _fields(self, statement: ast.VarDecl) -> list[ast.FieldDecl]:
        if statement.value is not None:
            help = "give it a value in __init__, or make it 'comptime NAME = value'"
            self._problem("E0122", "a field has no value of its own", statement.value.span, help)
        if statement.type is None:
            if statement.value is not None:
                self._problem("E0122", "a field needs a type", statement.span, "write 'var name: Type'")
            return []
        return [ast.FieldDecl(statement.span, name.id, statement.type, None) for name in ast.names_of(statement.target)]

    def where_clause(self, c: Children) -> ast.Expr:
        return c[1]  # type: ignore[no-any-return]

    def parameters(self, c: Children) -> tuple[ast.Param, ...]:
        return c[1] or ()

    def parameter_list(self, c: Children) -> tuple[ast.Param, ...]:
        items = [x for x in c if x is not None and x != ","]
        params: list[ast.Param] = []
        kind = "pos"
        for item in items:
            if isinstance(item, ast.Param):
                if item.kind == "many":
                    self._check_single(item, params)
                    params.append(item)
                    kind = "kw"
                else:
                    params.append(replace(item, kind="kw") if kind == "kw" else item)
            elif item == "//":
                if kind == "kw" or any(p.kind == "infer" for p in params):
                    self._problem("E0123", "'//' stands once, before any '*'", self._at(item), help="leave it out here")
                params = [replace(p, kind="infer") for p in params]
            elif item == "*":
                if kind == "kw":
                    self._problem(
                        "E0123", "'*' stands once in a parameter list", self._at(item), help="leave it out here"
                    )
                kind = "kw"
        self._check_defaults(params, "parameter")
        return tuple(params)

    def parameter(self, c: Children) -> ast.Param:
        name, _, type, _, default = c
        return ast.Param(self._span(name, default or type or name), str(name), type, default, "pos")

    def declared_arguments(self, c: Children) -> tuple[ast.ArgDecl, ...]:
        items = [x for x in c if x is not None and x != ","]
        args: list[ast.ArgDecl] = []
        kind = "pos"
        for item in items:
            if isinstance(item, ast.ArgDecl):
                if item.kind in _VARIADIC:
                    self._check_single(item, args)
                    args.append(item)
                    kind = "kw"
                else:
                    args.append(replace(item, kind="kw") if kind == "kw" else item)
            elif item == "/":
                if kind == "kw" or not args or args[0].kind == "posonly":
                    self._problem(
                        "E0123",
                        "'/' stands once, after an argument and before any '*'",
                        self._at(item),
                        help="leave it out here",
                    )
                args = [replace(a, kind="posonly") for a in args]
            elif item == "*":
                if kind == "kw":
                    self._problem(
                        "E0123", "'*' stands once in an argument list", self._at(item), help="leave it out here"
                    )
                kind = "kw"
        self._check_defaults(args, "argument")
        return tuple(args)

    def declared_argument(self, c: Children) -> ast.ArgDecl:
        convention, name, _, type, _, default = c
        word: _Convention
        word, start = convention or ("read", name)
        span = self._span(start, default or type or name)
        return ast.ArgDecl(span, str(name), type, default, word, "pos")

    def convention(self, c: Children) -> tuple[str, Token]:
        return str(c[0]), c[0]

    def variadic_parameter(self, c: Children) -> ast.Param:
        star, name, _, type = c
        self._check_star(star, name)
        return ast.Param(self._span(star, type or name), str(name), type, None, "many")

    def variadic_argument(self, c: Children) -> ast.ArgDecl:
        convention, star, name, _, unpacked, type = c
        self._check_star(star, name)
        word: _Convention
        word, start = convention or ("read", star)
        span = self._span(start, type or name)
        if word != "read":
            help = "its values are read-only: pass one by `mut`, or a Pointer"
            self._problem("E0124", f"variadic '{word} *{name}' is not in the subset", span, help)
        return ast.ArgDecl(span, str(name), type, None, "read", "pack" if unpacked else "many")

    def _check_star(self, star: Token, name: Token) -> None:
        if star == "**":
            help = "write each one by name: a call chooses them by keyword"
            self._problem("E0124", f"variadic '**{name}' is not in the subset", self._span(star, name), help)

    def _check_single(self, item: Any, before: list[Any]) -> None:
        """A list has one entry that takes any number of values."""
        if any(other.kind in _VARIADIC for other in before):
            self._problem("E0123", f"'*{item.name}' follows another variadic one", item.span, "leave one of them out")

    def _check_defaults(self, items: list[Any], what: str) -> None:
        seen = None
        for item in items:
            if item.kind in ("kw", "infer", *_VARIADIC):
                continue
            if item.default is not None:
                seen = item
            elif seen is not None:
                message = f"{what} '{item.name}' without a default follows '{seen.name}' with one"
                self._problem(
                    "E0123", message, item.span, f"give '{item.name}' a default, or move it before '{seen.name}'"
                )
                return


def _flatten(items: Children) -> ast.Block:
    """A line of several statements is a tuple among statements."""
    statements: list[ast.Stmt] = []
    for item in items:
        if item.__class__ is tuple:
            statements.extend(item)
        else:
            statements.append(item)
    return tuple(statements)


def _take_docstring(body: ast.Block) -> tuple[str | None, ast.Block]:
    if body and isinstance(body[0], ast.ExprStmt) and isinstance(body[0].value, ast.StringLiteral):
        return body[0].value.value, body[1:]
    return None, body


def _split_traits(trait: ast.Expr) -> list[ast.Expr]:
    parts: list[ast.Expr] = []
    while isinstance(trait, ast.Binary) and trait.op == "&":
        parts.insert(0, trait.right)
        trait = trait.left
    return [trait, *parts]


def _is_empty(statement: ast.Stmt) -> bool:
    if isinstance(statement, ast.ExprStmt):
        return isinstance(statement.value, ast.EllipsisLiteral)
    return isinstance(statement, ast.Pass)


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
