"""Declaration rules to AST: functions, structs, traits; ``build_expressions.py`` says how the methods are called."""

from __future__ import annotations

from ptxdsl.hints import Any, Literal
from ptxdsl.record import replace
from ptxdsl.source import Span
from ptxdsl.syntax import ast
from ptxdsl.syntax.build_expressions import Children, ExpressionBuilder
from ptxdsl.syntax.token import Token

_VARIADIC = ("many", "pack")
_Convention = Literal["read", "mut", "out", "var", "ref", "deinit"]


class DeclarationBuilder(ExpressionBuilder):
    """Functions, structs, traits, their parameters and arguments."""

    def decorated(self, c: Children) -> ast.FunctionDef | ast.StructDef:
        return replace(c[-1], decorators=tuple(c[:-1]))

    def decorator(self, c: Children) -> ast.Decorator:
        at, (name, span), _, arguments, closer, _ = c
        end = self._end(closer) if closer else span.end
        return ast.Decorator(Span(self.source, self._start(at), end), name, arguments)

    def def_statement(self, c: Children) -> ast.FunctionDef:
        keyword, name, params, _, args, _, raises, _, returns = c[:9]
        body: ast.Block = c[-1]
        docstring, rest = take_docstring(body)
        return ast.FunctionDef(
            self._span(keyword, body[-1]), str(name), self._at(name), params or (), args or (), returns, tuple(c[9:-2]),
            raises is not None, (), docstring, rest,
        )  # fmt: skip

    def struct_statement(self, c: Children) -> ast.StructDef:
        keyword, name, params, _, traits, _ = c[:6]
        block: ast.Block = c[-1]
        docstring, rest = take_docstring(block)
        listed = tuple(part for trait in traits or () for part in _split_traits(trait))
        members = self._members(rest)
        return ast.StructDef(
            self._span(keyword, block[-1]), str(name), self._at(name), params or (), listed, tuple(c[6:-2]), (),
            docstring, members,
        )  # fmt: skip

    def trait_statement(self, c: Children) -> ast.TraitDef:
        keyword, name, _, bases, _ = c[:5]
        block: ast.Block = c[-1]
        docstring, rest = take_docstring(block)
        listed = tuple(part for base in bases or () for part in _split_traits(base))
        members: list[ast.FunctionDef | ast.ComptimeDecl | ast.ComptimeRequirement] = []
        for statement in rest:
            if isinstance(statement, (ast.FunctionDef, ast.ComptimeDecl, ast.ComptimeRequirement)):
                members.append(statement)
            elif not _is_empty(statement):
                help = "a trait has methods ('def'), 'comptime NAME: Type' and 'comptime NAME = value'"
                self._problem("E0122", "this statement cannot stand in a trait", statement.span, help)
        self.requirements = [r for r in self.requirements if r not in members]
        return ast.TraitDef(
            self._span(keyword, block[-1]), str(name), self._at(name), listed, docstring, tuple(members)
        )

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
        return c[1]

    def parameters(self, c: Children) -> tuple[ast.Param, ...]:
        return c[1] or ()

    def parameter_list(self, c: Children) -> tuple[ast.Param, ...]:
        return tuple(self._listed(c, "parameter", "//", "infer"))

    def parameter(self, c: Children) -> ast.Param:
        name, _, type, _, default = c
        return ast.Param(self._span(name, default or type or name), str(name), type, default, "pos")

    def declared_arguments(self, c: Children) -> tuple[ast.ArgDecl, ...]:
        return tuple(self._listed(c, "argument", "/", "posonly"))

    def _listed(self, c: Children, what: str, slash: str, before: str) -> list[Any]:
        """Declarations with what the marks among them say: before the slash they are of the kind ``before``, behind a
        '*' or what takes any number of values they are keywords. (A parameter list's '/' changes nothing.)"""
        article = "an" if what[0] == "a" else "a"
        found: list[Any] = []
        keywords = False
        for item in c:
            if item is None or item == ",":
                continue
            if item == "*":
                if keywords:
                    self._misplaced(item, f"may appear once in {article} {what} list")
                keywords = True
            elif item == slash:
                if keywords or not found or found[0].kind == before:
                    self._misplaced(item, f"may appear once, after {article} {what} and before any '*'")
                found = [replace(x, kind=before) for x in found]
            elif isinstance(item, Token):
                continue
            elif item.kind in _VARIADIC:
                self._check_single(item, found)
                found.append(item)
                keywords = True
            else:
                found.append(replace(item, kind="kw") if keywords else item)
        self._check_defaults(found, what)
        return found

    def _misplaced(self, mark: Token, rule: str) -> None:
        self._problem("E0123", f"'{mark}' {rule}", self._at(mark), help="leave it out here")

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


def take_docstring(body: ast.Block) -> tuple[str | None, ast.Block]:
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
    if isinstance(statement, ast.If) and not statement.test.span.text:  # stands for a line with a mistake
        return True
    return isinstance(statement, ast.Pass)
