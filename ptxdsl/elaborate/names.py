"""Names: modules, imports, the names that need no import, and compile-time names evaluated on first use."""

from __future__ import annotations

from ptxdsl.diagnostics import CompileError
from ptxdsl.elaborate import types
from ptxdsl.elaborate.context import Exhausted
from ptxdsl.elaborate.control import Control
from ptxdsl.elaborate.entities import (
    Comptime,
    ComptimeAlias,
    Entity,
    FunctionDecl,
    FunctionValue,
    HostOnly,
    ImportedName,
    ModuleName,
    Overloads,
    Place,
    PlaceAlias,
    Poison,
    RValue,
    StructDecl,
    StructType,
    TraitDecl,
    TraitType,
    Uninit,
    Variable,
)
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.suggestions import elsewhere, ended_block, hidden_module, importable_name, meant, renamed
from ptxdsl.elaborate.values import type_value, uninitialised, with_comptime
from ptxdsl.imports import MOJO_MODULES, module_of_name
from ptxdsl.imports import HostOnly as HostModule
from ptxdsl.source import Span
from ptxdsl.syntax import ast


class Names(Control):
    """From an identifier to its value."""

    # ----------------------------------------------------------------------------------------------------- modules

    def prelude_scope(self) -> Scope:
        library, module = self.library, self.loader.prelude()
        prelude = library.modules.get(module)
        if prelude is None:
            self._declare_all(self.loader.stdlib("core"), library.builtins)
            prelude = library.modules[module] = Scope(library.builtins)
            self._declare_all(module, prelude)
        return prelude

    def module_scope(self, module: ast.Module) -> Scope:
        """The scope of a module's top level, filled without evaluating anything."""
        scope = self.library.modules.get(module) or self.modules.get(module)
        if scope is None:
            prelude = self.prelude_scope()
            scopes = self.library.modules if module.source.library else self.modules
            scope = scopes[module] = Scope(prelude)
            self._declare_all(module, scope)
        return scope

    def _declare_all(self, module: ast.Module, scope: Scope) -> None:
        for statement in module.body:
            try:
                self.declare_statement(statement, scope, module)
            except CompileError as problem:
                self.recover(problem)

    def recover(self, problem: CompileError) -> None:
        """Records a diagnostic and lets elaboration go on."""
        if self.comptime_depth:
            raise problem
        self.sink.add(problem)
        if self.sink.full:
            raise Exhausted(())

    def declare_statement(self, node: ast.Stmt, scope: Scope, module: ast.Module) -> None:
        """A declaration at the top of a module."""
        match node:
            case ast.FunctionDef():
                self.declare_function(node, scope)
            case ast.StructDef():
                self.check_new(node.name, node.name_span, scope)
                decl = StructDecl(node, scope)
                for method in (m for group in decl.methods.values() for m in group if m.decorator("kernel")):
                    self.recover(self.fail(
                        "E0216", "a method cannot be a kernel", method.node.name_span, help="call it in a `def`"
                    ))  # fmt: skip
                name = methods_name(node.name) if decl.has("builtin") and self.is_builtin_type(node.name) else node.name
                scope.declare(name, decl)
            case ast.TraitDef():
                self.check_new(node.name, node.name_span, scope)
                scope.declare(node.name, type_value(TraitType((TraitDecl(node, scope),))))
            case ast.ComptimeDecl():
                self.check_new(node.name, node.name_span, scope)
                scope.declare(node.name, ComptimeAlias(node, scope))
            case ast.Import():
                self.declare_import(node, scope, module)
            case ast.ExprStmt(value=ast.StringLiteral() | ast.EllipsisLiteral()) | ast.Pass():
                pass
            case ast.VarDecl():
                raise self.fail(
                    "E0205", "a module has no variables", node.span,
                    help="write `comptime NAME = value` for a constant, or move the `var` into a function",
                )  # fmt: skip
            case _:
                raise self.fail("E0206", "a statement outside of a function", node.span, help="move it into a `def`")

    def is_builtin_type(self, name: str) -> bool:
        """Whether a library struct only declares the methods of a type that the compiler itself has."""
        return name in self.library.builtins.names

    def declare_function(self, node: ast.FunctionDef, scope: Scope) -> None:
        decl = FunctionDecl(node, scope)
        known = scope.names.get(node.name)
        if isinstance(known, Overloads):
            known.decls.append(decl)
            return
        self.check_new(node.name, node.name_span, scope)
        scope.declare(node.name, Overloads([decl]))

    def check_new(self, name: str, span: Span, scope: Scope) -> None:
        """E0202 where a name is declared twice in one scope."""
        known = scope.names.get(name)
        if known is None or isinstance(known, HostOnly | ImportedName | Poison):
            return
        before = entity_span(known)
        notes = () if before is None else ((before, "declared here before"),)
        raise self.fail(
            "E0202", f"`{name}` is already declared in this scope", span, *notes, help="choose another name"
        )

    def declare_import(self, node: ast.Import, scope: Scope, module: ast.Module) -> None:
        """Names of another module. The library's own imports are followed when a name is used: few of them are."""
        if module.source.library and node.names:
            for item in node.names:
                scope.declare(item.alias or item.name, ImportedName(item, node, None, module))
            return
        names = node.names
        try:
            found = self.loader.resolve(module.source, node.module, node.level, node.module_span)
        except CompileError as problem:
            if problem.diagnostics[0].code == "E0250" and self._declare_files(node, scope, module):
                return
            for name in [i.alias or i.name for i in names or ()] or [node.alias or node.module.split(".")[0]]:
                scope.declare(name, Poison())  # what it would have named is not complained about
            raise
        if isinstance(found, HostModule):
            for item in names or ():
                scope.declare(item.alias or item.name, HostOnly(item.name, node.module, item.span))
            if names == ():
                name = node.alias or node.module.split(".")[0]
                scope.declare(name, HostOnly(name, node.module, node.span))
            return
        if names is None:
            if found is not module:
                for name, entity in list(self.module_scope(found).names.items()):
                    if not name.startswith("_"):
                        scope.names.setdefault(name, entity)
            return
        if not names:
            self._declare_module(node, scope, self.module_scope(found))
            return
        for item in names:
            scope.declare(item.alias or item.name, ImportedName(item, node, found, module))

    def _declare_files(self, node: ast.Import, scope: Scope, module: ast.Module) -> bool:
        """``from folder import a, b`` where the folder itself is no module, but a and b are files in it."""
        files = [(item, self._file_of(item, node, module)) for item in node.names or ()]
        for item, found in files:
            if found is not None:
                scope.declare(item.alias or item.name, found)
        return bool(files) and all(found is not None for _, found in files)

    def _file_of(self, item: ast.ImportName, node: ast.Import, importing: ast.Module) -> ModuleName | None:
        found = self.loader.file_module(importing.source, module_of_name(node, item.name), item.span)
        return None if found is None else ModuleName(self.module_scope(found))

    def _declare_module(self, node: ast.Import, scope: Scope, found: Scope) -> None:
        """``import a.b``: `a` has `b`, beside what other imports have given it."""
        if node.alias:
            scope.declare(node.alias, ModuleName(found))
            return
        *outer, last = node.module.split(".")
        for part in outer:
            inner = _with_others(Scope(), scope.names.get(part))
            scope.declare(part, ModuleName(inner))
            scope = inner
        scope.declare(last, ModuleName(_with_others(found, scope.names.get(last))))

    def imported(self, name: ImportedName) -> Entity:
        """What an imported name stands for, looked up once."""
        if name.entity is None:
            if name.busy:
                raise self.fail(
                    "E0203", f"`{name.item.name}` is imported in a cycle", name.item.span, help="break the cycle"
                )
            name.busy = True
            try:
                name.entity = self._find_imported(name)
            finally:
                name.busy = False
        return name.entity

    def _find_imported(self, name: ImportedName) -> Entity:
        item, node, module = name.item, name.node, name.module
        if module is None:
            resolved = self.loader.resolve(name.importing.source, node.module, node.level, node.module_span)
            assert isinstance(resolved, ast.Module)
            module = resolved
        source_scope = self.module_scope(module)
        entity = source_scope.names.get(item.name)
        if entity is None and module.source.library:
            entity = self.prelude_scope().lookup(item.name)
            inner = self.loader.mojo_module(f"{node.module}.{item.name}") if entity is None else None
            if inner is not None:  # `from max.gpu.primitives import warp`
                return ModuleName(self.module_scope(inner))
            if entity is None and "." in node.module:  # a Mojo module: more names than we have
                return HostOnly(item.name, node.module, item.span)
        if entity is None and not module.source.library:
            entity = self._file_of(item, node, name.importing)
        if entity is None:
            raise self.fail(
                "E0204", f"module `{node.module}` has no `{item.name}`", item.span,
                help=hidden_module(node.module, module) or renamed(item.name) or elsewhere(item.name)
                or meant(item.name, source_scope.names),
            )  # fmt: skip
        return self.imported(entity) if isinstance(entity, ImportedName) else entity

    # ------------------------------------------------------------------------------------------------------ lookup

    def lookup(self, node: ast.Name, scope: Scope) -> Entity:
        """What a name stands for, or E0201."""
        entity = scope.lookup(node.id)
        if entity is None:
            raise self._unknown(node, scope)
        if isinstance(entity, ImportedName):
            entity = self.imported(entity)
        if isinstance(entity, HostOnly):
            what = "is not in the subset" if entity.module in MOJO_MODULES else "is for host code"
            raise self.fail(
                "E0207", f"`{entity.name}` of `{entity.module}` {what}", node.span,
                (entity.span, "imported here"),
                help=renamed(entity.name) or elsewhere(entity.name) or "a kernel cannot use it",
            )  # fmt: skip
        return entity

    def _unknown(self, node: ast.Name, scope: Scope) -> Exception:
        if (instead := renamed(node.id)) is not None:
            return self.fail("E0201", f"`{node.id}` is not a name here", node.span, help=instead)
        if node.id == "_":
            return self.fail("E0201", "`_` has no value", node.span, help="name the value to use it")
        ended = ended_block(node.id, node.span)
        if ended is not None:
            return self.fail(
                "E0201", f"unknown name `{node.id}`", node.span, (ended, "this one ends with its block"),
                help="declare it before that block",
            )  # fmt: skip
        return self.fail("E0201", f"unknown name `{node.id}`", node.span, help=self._instead_of(node.id, scope))

    def _instead_of(self, name: str, scope: Scope) -> str | None:
        """What a name that is unknown may have meant."""
        owner = scope.lookup("Self")
        if isinstance(owner, Comptime) and isinstance(owner.value, StructType):
            members = [f.name for f in owner.value.decl.fields] + list(owner.value.decl.methods)
            if name in members and scope.lookup("self") is not None:
                return f"write `self.{name}`"
            if name in owner.value.decl.aliases:
                return f"write `Self.{name}`"
        return importable_name(name, scope.visible())

    def entity_value(self, entity: Entity, node: ast.Expr) -> RValue:
        """The value that a name stands for."""
        match entity:
            case Variable():
                return self.variable_value(entity, node.span)
            case PlaceAlias():
                return self.read(entity.place, node.span)
            case Overloads():
                return FunctionValue(entity.decls[0].name, tuple(entity.decls))
            case StructDecl():
                return self.struct_value(entity, node.span)
            case ComptimeAlias():
                return self.alias_value(entity, node.span)
            case ModuleName():
                return Comptime(types.MODULE, entity.scope)
            case ImportedName() | HostOnly():
                raise AssertionError(entity)
        return entity

    def variable_value(self, variable: Variable, span: Span) -> RValue:
        value = self.state.get(variable)
        if value is None:
            raise AssertionError(f"{variable.name} is out of reach")
        value = self.initialised(value, variable, span)
        return value if self.comptime_depth else with_comptime(value, False)

    def initialised(self, value: RValue, variable: Variable, span: Span) -> RValue:
        """A variable's value, or that of a part of it; E0209 where it has none, unless an error is why."""
        if variable in self.in_error and uninitialised(value) is not None:
            return Poison()
        if isinstance(value, Uninit):
            declared = f"`var {variable.name}: {variable.type} = …`"
            if isinstance(variable.type, types.ArrayType):
                declared = f"`var {variable.name} = {variable.type}(fill=0)`"
            raise self.fail(
                "E0209", f"`{variable.name}` is used before it is given a value on every path", span,
                (variable.span, "declared here"),
                help=f"give it a value where it is declared: {declared}",
            )  # fmt: skip
        return value

    def alias_value(self, alias: ComptimeAlias, span: Span) -> RValue:
        """The value of ``comptime NAME = …``, evaluated once."""
        if alias.value is None:
            if alias.node.params:
                return Comptime(types.ANY_TYPE, alias)
            if alias.busy:
                raise self.fail(
                    "E0402", f"`{alias.node.name}` is defined in terms of itself", span,
                    (alias.node.name_span, "its definition"), help="break the cycle",
                )  # fmt: skip
            alias.busy = True
            try:
                with self.outside(), self.comptime(), self.deeper(span):
                    alias.value = self.typed_alias(alias.node, alias.scope)
            except CompileError:
                if not self.comptime_depth and not alias.node.span.source.library:  # the library's are kept
                    alias.value = Poison()  # reported once
                raise
            finally:
                alias.busy = False
        return alias.value

    # ------------------------------------------------------------------------------------------ implemented above

    def typed_alias(self, node: ast.ComptimeDecl, scope: Scope) -> RValue:
        raise NotImplementedError

    def read(self, place: Place, span: Span) -> RValue:
        raise NotImplementedError

    def struct_value(self, decl: StructDecl, span: Span) -> RValue:
        raise NotImplementedError


def _with_others(module: Scope, known: Entity | None) -> Scope:
    """A module's names, and those that are known as its own; the module's scope itself stays as it is."""
    if not isinstance(known, ModuleName) or known.scope is module:
        return module
    both = Scope(module.parent)
    both.names = {**known.scope.names, **module.names}
    return both


def methods_name(name: str) -> str:
    """Where a module keeps the methods of a builtin type: under a name that no program can write."""
    return f"struct {name}"


def entity_span(entity: Entity | None) -> Span | None:
    """Where a name is declared, where that is known."""
    match entity:
        case Variable():
            return entity.span
        case Overloads():
            return entity.decls[0].node.name_span
        case StructDecl():
            return entity.node.name_span
        case ComptimeAlias():
            return entity.node.name_span
    return None
