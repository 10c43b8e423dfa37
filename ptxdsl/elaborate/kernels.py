"""Kernels: which to compile, their parameters, their bodies."""

from __future__ import annotations

from collections.abc import Mapping

from ptxdsl import tir
from ptxdsl.diagnostics import CompileError, error
from ptxdsl.elaborate import types
from ptxdsl.elaborate.alignment import accesses, misaligned
from ptxdsl.elaborate.entities import (
    FunctionDecl,
    ImportedName,
    Overloads,
    PlaceAlias,
    Runtime,
    RValue,
    StructDecl,
    StructType,
    StructValue,
    Uninit,
    Variable,
    VariablePlace,
)
from ptxdsl.elaborate.frames import FunctionFrame
from ptxdsl.elaborate.kernel_options import KernelOptions
from ptxdsl.elaborate.matching import VARIADIC
from ptxdsl.elaborate.parameters import Binding
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.suggestions import closest, meant
from ptxdsl.elaborate.tensor_maps import MapNeeds
from ptxdsl.elaborate.types import ArrayType, PointerType, SimdType, Type
from ptxdsl.elaborate.values import key_of
from ptxdsl.signature import Param, PointerParam, ScalarParam, StructParam, TensorMapParam, leaves
from ptxdsl.source import Span
from ptxdsl.syntax import ast

DECORATORS = frozenset({
    "always_inline", "no_inline", "fieldwise_init", "builtin", "no_ring_unroll", "kernel", "staticmethod", "implicit",
    "parameter",
})  # fmt: skip
# Decorators of earlier Mojo and of others, and what is written now.
OTHER_DECORATORS = {
    "register_passable": "name the trait: `struct S(TrivialRegisterPassable)`", "value": "write `@fieldwise_init`",
    **dict.fromkeys(("triton.jit", "gluon.jit", "cuda.jit", "cute.kernel", "jit", "global"), "write `@kernel`"),
    "inline": "write `@always_inline`", "export": "write `@kernel(name=…)`", "nonmaterializable": "leave it out",
}  # fmt: skip
MAX_PARAMETER_BYTES = 4096
POINTER_BYTES = 8
TENSOR_MAP_BYTES, TENSOR_MAP_ALIGN = 128, 64


SOME = 4  # values that stand for any number of them, where a function is checked by itself


class Kernels(KernelOptions):
    """From a module to its kernels."""

    # -------------------------------------------------------------------------------------------------- which kernels

    def choose_kernels(
        self, module: ast.Module, name: str | None, constants: Mapping[str, ast.Expr]
    ) -> list[FunctionDecl]:
        """The kernel named, which may be imported, else every ``@kernel`` of the module, else its only def that can be
        one."""
        scope = self.module_scope(module)
        known = [d for e in scope.names.values() if isinstance(e, Overloads) for d in e.decls]
        functions = [d for d in known if d.scope is scope]
        if name is not None:
            entity = scope.names.get(name)
            if isinstance(entity, ImportedName):
                entity = self.imported(entity)
            found = entity.decls if isinstance(entity, Overloads) else []
            if len(found) == 1:
                return list(found)
            if found:
                raise error("E0213", f"`{name}` has several overloads", found[1].node.name_span, help="rename one")
            raise error(
                "E0214",
                f"there is no kernel `{name}`",
                _whole(module),
                help=meant(name, (d.name for d in functions)) or _functions_here(functions),
            )
        marked = [d for d in functions if d.decorator("kernel")]
        if marked:
            return marked
        possible = [d for d in functions if d.name != "main" and self._could_be_kernel(d, constants)]
        if len(possible) == 1:
            return possible
        if not possible:
            for function in functions:  # of other languages: why it is no kernel
                self.check_decorators(function.node.decorators)
            raise error(
                "E0214", "there is no kernel in this file", _whole(module),
                help="mark an entry point with `@kernel`, or name one with --kernel",
            )  # fmt: skip
        raise error(
            "E0215", "several functions could be the kernel", possible[0].node.name_span,
            *((d.node.name_span, "or this one") for d in possible[1:4]),
            help="mark the entry points with `@kernel`, or name one with --kernel",
        )  # fmt: skip

    def _could_be_kernel(self, decl: FunctionDecl, constants: Mapping[str, ast.Expr]) -> bool:
        node = decl.node
        if node.returns is not None or decl.decorator("always_inline"):
            return False
        if any(p.default is None and p.name not in constants for p in node.params):
            return False
        return all(a.type is not None and a.convention == "read" and a.kind not in VARIADIC for a in node.args)

    # ------------------------------------------------------------------------------------------------------- one kernel

    def kernel(self, decl: FunctionDecl, constants: Mapping[str, ast.Expr]) -> tir.Kernel:
        """Elaborates one kernel with the given compile-time parameters."""
        node = decl.node
        self.check_decorators(node.decorators)
        binding = Binding(node.params, Scope(decl.scope), f"kernel `{decl.name}`", node.name_span)
        for param in node.params:
            value = constants.get(param.name)
            if value is not None:
                self.bind_param(binding, param, value, decl.scope)
        missing = next((p for p in node.params if p.name not in binding.values and p.default is None), None)
        if missing is not None:
            raise self.fail(
                "E0408", f"kernel `{decl.name}` needs a value for its parameter `{missing.name}`", missing.span,
                help=f"give it: `-D {missing.name}=…`, in Python `.specialize({missing.name}=…)`",
            )  # fmt: skip
        self.complete(binding)
        self.check_where(node.where, binding.scope, node.name_span)
        if node.returns is not None and self.type_of(node.returns, binding.scope) != types.NONE:
            raise self.fail(
                "E0217", "a kernel returns nothing", node.returns.span, help="write results through a pointer"
            )
        self.state, self.ops, self.loop = {}, [], None
        self.op_count, self.steps = 0, 0
        self.uses_dynamic_shared, self.dynamic_shared = False, None
        self.known_offsets, self.alignments, self.retyped = {}, [], False
        self.map_needs = MapNeeds()
        self.kernel_threads, self.thread_count = self.threads_of(decl, binding.scope), None
        scope = Scope(binding.scope)
        values, params = self._parameters(node, binding.scope, scope)
        body = self._body(node, scope)
        self._check_alignments(body)
        constants_shown = tuple((p.name, _shown(binding.values[p.name])) for p in node.params)
        symbol = self.kernel_symbol(decl, binding.scope, constants_shown)
        told = self.map_needs.told(params, values)
        signature = self.kernel_signature(decl, binding.scope, symbol, told, body, constants_shown)
        return tir.Kernel(symbol, values, body, signature, node.name_span)

    def _check_alignments(self, body: tir.Block) -> None:
        if self.retyped:  # else each element lies where its type wants it
            self.alignments += accesses(body)
        for found in misaligned(body, self.alignments) if self.alignments else ():
            wanted, allocation = found.wanted, found.allocation
            message = (
                f"{wanted.what} needs an address aligned to {wanted.bytes} bytes, this one is aligned to {found.has}"
            )
            note = allocation.span, f"allocated here, aligned to {allocation.attrs['align']}"
            self.sink.add(error("E0617", message, wanted.span, note, help=found.help))

    def check_decorators(self, decorators: tuple[ast.Decorator, ...]) -> None:
        for decorator in decorators:
            if decorator.name not in DECORATORS:
                near = closest(decorator.name, DECORATORS)
                other = OTHER_DECORATORS.get(decorator.name)
                raise self.fail(
                    "E0218", f"unknown decorator `@{decorator.name}`", decorator.span,
                    help=other or (f"did you mean `@{near}`?" if near else None),
                )  # fmt: skip

    def _body(self, node: ast.FunctionDef, scope: Scope) -> tir.Block:
        op = tir.Op("scope", [], [], {}, node.name_span)
        self.function = FunctionFrame(op, None, node.name)
        before = self.state
        self.state = dict(before)
        with self.block() as block:
            self.execute(node.body, scope)
            if not self.terminated:
                self.function.returns.append(self.end_block("leave", op, node.span))
        exits = self.function.returns
        self.function = None
        if len(exits) == 1 and exits[0].ops is block.ops:
            block.ops[-1] = tir.Op("return", [], [], {}, node.span)
            return block
        outer = tir.Block()
        self.ops = outer.ops
        op.blocks = [block]
        self.append(op)
        self.merge(exits, before, op, node.span)
        if not self.terminated:
            self.append(tir.Op("return", [], [], {}, node.span))
        return outer

    # ------------------------------------------------------------------------------------------------------- parameters

    def _parameters(
        self, node: ast.FunctionDef, types_scope: Scope, scope: Scope
    ) -> tuple[list[tir.Value], list[Param]]:
        values: list[tir.Value] = []
        params: list[Param] = []
        self.check_distinct(node)
        for argument in node.args:
            if argument.type is None:
                raise self.fail(
                    "E0326", f"argument `{argument.name}` has no type", argument.span,
                    help=f"write its type: `{argument.name}: Int32`",
                )  # fmt: skip
            if argument.kind in VARIADIC:
                raise self.fail(
                    "E0219", "a kernel's arguments are a fixed number", argument.span,
                    help="write each one by name, or pass a pointer to them",
                )  # fmt: skip
            if argument.convention not in ("read", "var"):
                raise self.fail(
                    "E0219", f"a kernel's argument cannot be `{argument.convention}`", argument.span,
                    help="leave the word out; a kernel writes its results through pointers",
                )  # fmt: skip
            t = self.type_of(argument.type, types_scope)
            value, param = self._parameter_of(argument.name, t, argument.type.span, values)
            params.append(param)
            if argument.convention == "var":
                variable = Variable(argument.name, t, True, argument.span)
                self.state[variable] = value
                scope.declare(argument.name, variable)
            else:
                scope.declare(argument.name, value)
        if (size := _bytes_of(params)) > MAX_PARAMETER_BYTES:
            help = f"the limit is {MAX_PARAMETER_BYTES:,}"
            raise self.fail("E0220", f"the parameters take {size:,} bytes", node.name_span, help=help)
        return values, params

    def _parameter_of(self, name: str, t: Type, span: Span, values: list[tir.Value]) -> tuple[RValue, Param]:
        """A parameter's value, and its entry in the signature."""
        match t:
            case SimdType() if t.width == 1:
                values.append(tir.Value(t.ty, name))
                return Runtime(t, values[-1]), ScalarParam(name, t.dtype.name)
            case PointerType():
                return self._pointer_parameter(name, t, span, values)
            case types.TENSOR_MAP:
                values.append(tir.Value(tir.ptr("generic"), name))
                return Runtime(t, values[-1]), TensorMapParam(name)
            case StructType():
                members = [self._parameter_of(n, field, span, values) for n, field in self.fields_of(t)]
                struct = StructParam(name, str(t), tuple(param for _, param in members))
                return StructValue(t, tuple(value for value, _ in members)), struct
        raise self.fail(
            "E0222", f"a kernel's argument cannot be of type {t}", span,
            help="arguments are scalars, pointers, tensor maps and structs of these",
        )  # fmt: skip

    def _pointer_parameter(
        self, name: str, t: PointerType, span: Span, values: list[tir.Value]
    ) -> tuple[RValue, Param]:
        if t.space not in ("generic", "global", "const"):
            raise self.fail(
                "E0223", f"a kernel's argument cannot point to {t.space} memory", span,
                help="the host passes pointers to global memory: leave `address_space` out",
            )  # fmt: skip
        size, align = self.layout(t.elem, span)
        # what the host passes is global memory; knowing it saves the generic access
        values.append(tir.Value(tir.ptr("global"), name))
        dtype = t.elem.dtype.name if isinstance(t.elem, SimdType) else str(t.elem)
        return Runtime(t, values[-1]), PointerParam(name, dtype, size, align, t.mutable)

    # ---------------------------------------------------------------------------------------------------- whole modules

    def check_function(self, decl: FunctionDecl, owner: StructType | None = None) -> None:
        """Elaborates a function or method that has no open parameters, for its diagnostics alone."""
        node = decl.node
        if node.params or decl.is_builtin or any(a.type is None and owner is None for a in node.args):
            return
        self.state, self.ops, self.op_count, self.steps = {}, [], 0, 0
        outer = self.owner_scope(decl, owner)
        scope, out = Scope(outer), None
        for argument in node.args:
            t = owner if argument.type is None else self.type_of(argument.type, outer)
            if t is None or not t.at_runtime:
                return
            if argument.kind == "many":
                t = ArrayType(t, SOME)
            variable = Variable(argument.name, t, argument.convention != "read", argument.span)
            if argument.convention == "out":
                out = variable
            self.state[variable] = Uninit(t) if out is variable else self._fresh(t, argument.name, node.span)
            scope.declare(argument.name, PlaceAlias(VariablePlace(variable, t)))
        result = out.type if out is not None else self.result_type(decl, outer)
        op = tir.Op("scope", [], [], {}, node.span)
        self.function = FunctionFrame(op, None if result == types.NONE else result, node.name, out=out)
        reported = len(self.sink.items)
        with self.block():
            self.execute(node.body, scope)
            if not self.terminated and len(self.sink.items) == reported:
                self.end_value(decl)
        self.function = None

    def _fresh(self, t: Type, name: str, span: Span) -> RValue:
        return self._assemble_result(t, iter([tir.Value(ty, name) for ty in self._machine_types(t, span)]))

    def check_struct(self, decl: StructDecl) -> None:
        """The fields and members of a struct without parameters."""
        self.check_decorators(decl.node.decorators)
        if decl.node.params:
            return
        t = self.instantiate_struct(decl)
        self.fields_of(t)
        for name in decl.aliases:
            self.struct_alias(t, name, decl.node.name_span)
        for methods in decl.methods.values():
            for method in methods:
                try:
                    self.check_function(method, t)
                except CompileError as problem:
                    self.recover(problem)

    def instantiate_struct(self, decl: StructDecl) -> StructType:
        t = self.as_type(self.struct_value(decl, decl.node.name_span), decl.node.name_span)
        assert isinstance(t, StructType)
        return t


def _functions_here(functions: list[FunctionDecl]) -> str:
    names = ", ".join(f"`{d.name}`" for d in functions[:6])
    return f"the file has {names}" if names else "the file has no functions"


def _whole(module: ast.Module) -> Span | None:
    return Span(module.source, 0, 0) if module.source.text else None


def _shown(value: RValue) -> str:
    """A parameter's value as text, for the symbol and the signature."""
    key = key_of(value)
    return str(key[1] if isinstance(key, tuple) and len(key) == 2 else key)


def _bytes_of(params: list[Param]) -> int:
    """The size of what the host passes: each parameter of the PTX aligned as its type."""
    end = 0
    for _, param in leaves(params):
        size = types.DTYPES[param.dtype].bytes if isinstance(param, ScalarParam) else POINTER_BYTES
        align = size
        if isinstance(param, TensorMapParam):
            size, align = TENSOR_MAP_BYTES, TENSOR_MAP_ALIGN
        end = -(-end // align) * align + size
    return end
