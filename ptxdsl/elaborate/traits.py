"""Traits of a program's own: what they ask of a struct that names them, and what they give it."""

from __future__ import annotations

from collections.abc import Iterator

from ptxdsl.diagnostics import CompileError
from ptxdsl.elaborate.convert import accepts_types
from ptxdsl.elaborate.entities import Comptime, FunctionDecl, StructType, TraitDecl, TraitType
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.type_expressions import TypeExpressions
from ptxdsl.elaborate.types import Type
from ptxdsl.elaborate.values import type_value
from ptxdsl.source import Span
from ptxdsl.syntax import ast


class Traits(TypeExpressions):
    """Conformance, checked where a struct is first used with its parameters."""

    def owner_scope(self, decl: FunctionDecl, owner: Type | None) -> Scope:
        """The scope a method's signature is read in: the struct's parameters and ``Self``."""
        if decl.struct is None or owner is None:
            return Scope(decl.scope)
        if isinstance(owner, StructType):
            return self.member_scope(owner, decl.scope)
        scope = Scope(decl.scope)
        given = self.type_params(decl.struct.name, owner) or {}
        for name, param in zip((p.name for p in decl.struct.node.params), given.values(), strict=False):
            scope.declare(name, param)
        scope.declare("Self", type_value(owner))
        return scope

    def conforms(self, t: object, trait: TraitType) -> bool:
        return isinstance(t, StructType) and set(trait.traits) <= set(self._traits_of(t))

    def check_heading(self, t: StructType) -> None:
        """Decorators and traits. A struct gets the methods and constants of its traits that it does not have itself."""
        if t.decl.node.span.source.library:
            return
        self.check_decorators(t.decl.node.decorators)
        members = [(member, trait) for trait in self._traits_of(t) for member in trait.node.members]
        for member, trait in members:
            if isinstance(member, ast.FunctionDef) and not is_required(member):
                self._give(member, trait, t)
            elif isinstance(member, ast.ComptimeDecl) and member.name not in t.decl.aliases:
                t.decl.aliases[member.name] = member
                t.decl.inherited[member.name] = trait.scope
        for member, trait in members:
            if isinstance(member, ast.FunctionDef) and is_required(member):
                self._require(member, trait, t)
            elif isinstance(member, ast.ComptimeRequirement):
                self._require_constant(member, trait, t)

    def _traits_of(self, t: StructType) -> tuple[TraitDecl, ...]:
        """The traits that a struct names, and those that these are made of."""
        decl = t.decl
        if decl.traits is None:
            found = (trait for node in decl.node.traits for trait in self._named(node, self.instance(t).scope))
            decl.traits = tuple(dict.fromkeys(found))
        return decl.traits

    def _named(self, node: ast.Expr, scope: Scope) -> Iterator[TraitDecl]:
        """The traits of an entry in a list of them; of Mojo's own nothing is asked."""
        value = self.comptime_value(node, scope)
        if not (isinstance(value, Comptime) and isinstance(value.value, Type) and accepts_types(value.value)):
            help = "structs inherit nothing; name traits such as `TrivialRegisterPassable`"
            raise self.fail("E0311", f"expected a trait, found {value.type}", node.span, help=help)
        for trait in value.value.traits if isinstance(value.value, TraitType) else ():
            if trait.whole is None:
                trait.whole = (trait,)  # while its bases are looked up, which may lead back here
                bases = (base for entry in trait.node.bases for base in self._named(entry, trait.scope))
                trait.whole = tuple(dict.fromkeys((trait, *bases)))
            yield from trait.whole

    def _give(self, member: ast.FunctionDef, trait: TraitDecl, t: StructType) -> None:
        """A method with a body, to a struct that has none like it."""
        given = FunctionDecl(member, trait.scope, t.decl)
        own = t.decl.methods.setdefault(member.name, [])
        like = next((f for f in own if f.node is member or self._agree(f, given, t)), None)
        if like is None:
            own.append(given)
        elif like.node is not member and like.node not in t.decl.node.members:
            what = f"`{t.decl.name}` gets `{member.name}` from two of its traits"
            raise self._unmet(what, t.decl.node.name_span, member)

    def _require(self, member: ast.FunctionDef, trait: TraitDecl, t: StructType) -> None:
        """A method that the struct must have."""
        wanted = FunctionDecl(member, trait.scope, t.decl)
        own = t.decl.methods.get(member.name)
        if own is None:
            what = f"`{t.decl.name}` lacks `{member.name}`, which its trait `{trait.name}` asks for"
            raise self._unmet(what, t.decl.node.name_span, member)
        if not any(self._agree(f, wanted, t) for f in own):
            what = f"`{member.name}` of `{t.decl.name}` is not what its trait `{trait.name}` declares"
            raise self._unmet(what, own[0].node.name_span, member)

    def _unmet(self, what: str, span: Span, member: ast.FunctionDef) -> CompileError:
        heading = Span(member.span.source, member.span.start, member.body[0].span.start).text
        help = f"write `{' '.join(heading.split())} …`"
        return self.fail("E0351", what, span, (member.name_span, "declared here"), help=help)

    def _agree(self, own: FunctionDecl, wanted: FunctionDecl, t: StructType) -> bool:
        """Whether a method may stand for another: as many arguments, passed alike, of the same types."""
        a, b = own.node, wanted.node
        if own.is_static != wanted.is_static or len(a.args) != len(b.args):
            return False
        if any(x.convention != y.convention or x.kind != y.kind for x, y in zip(a.args, b.args, strict=True)):
            return False
        if a.params or b.params:  # their types may be seen only with values for these
            return True
        return self._types(own, t) == self._types(wanted, t)

    def _types(self, decl: FunctionDecl, t: StructType) -> list[object]:
        scope = self.owner_scope(decl, t)
        written = [*(a.type for a in decl.node.args), decl.node.returns]
        return [None if node is None else self.comptime_value(node, scope) for node in written[1 - decl.is_static :]]

    def _require_constant(self, member: ast.ComptimeRequirement, trait: TraitDecl, t: StructType) -> None:
        """A constant that a trait asks for, as the type that the trait says."""
        if member.name in self.instance(t).params:
            return
        value = self.struct_alias(t, member.name, t.decl.node.name_span)
        if value is None:
            raise self.fail(
                "E0351", f"`{t.decl.name}` lacks `{member.name}`, which its trait `{trait.name}` asks for",
                t.decl.node.name_span, (member.name_span, "declared here"), help=f"write `comptime {member.name} = …`",
            )  # fmt: skip
        wanted = self.type_of(member.type, self.member_scope(t, trait.scope))
        span = t.decl.aliases[member.name].value.span
        self.instance(t).aliases[member.name] = self.checked(member, value, span, wanted)


def is_required(member: ast.FunctionDef) -> bool:
    """Whether a trait leaves the body to the structs."""
    body = member.body
    return len(body) == 1 and isinstance(body[0], ast.ExprStmt) and isinstance(body[0].value, ast.EllipsisLiteral)
