"""What is run: one kernel of a .pdsl, .mojo or .ptx file, with the signature that its arguments are checked against."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from ptxdsl.artifact import Compiled
from ptxdsl.diagnostics import Diagnostic, error
from ptxdsl.imports import parse_once
from ptxdsl.options import Options
from ptxdsl.ptx.module import Function, Variable
from ptxdsl.record import dataclass, field
from ptxdsl.run.specification import ArraySpec, BytesSpec, ScalarSpec, Spec
from ptxdsl.signature import BytesParam, KernelSignature, Param, PointerParam, ScalarParam, TensorMapParam
from ptxdsl.source import Source, Span
from ptxdsl.syntax import ast

T = TypeVar("T", Function, KernelSignature)


@dataclass(frozen=True)
class Subject:
    """compiled: the PTX with its line map, made from a file of PTX too. spans: where the parameters are declared.

    aliases: other names of the parameters, to those of the signature. ptx_file: the file's name, where it is PTX: there
    is no other text then that the line map could show.
    """

    compiled: Compiled
    signature: KernelSignature
    spans: Mapping[str, Span]
    warnings: tuple[Diagnostic, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    ptx_file: str | None = None

    @property
    def name(self) -> str:
        """As the file calls the kernel."""
        return self.signature.source_name or self.signature.name


def compiled_subject(source: Source, kernel: str | None, constants: Mapping[str, str], options: Options) -> Subject:
    """Raises CompileError; E1017 where the file has several kernels and none is named."""
    from ptxdsl.driver import compile_source

    compiled = compile_source(source, kernel=kernel, constants=constants, options=options)
    assert isinstance(compiled, Compiled)
    signature = _only(source, compiled.signatures)
    definitions = {d.name: d for d in parse_once(source).body if isinstance(d, ast.FunctionDef)}
    definition = definitions.get(signature.source_name or signature.name)
    spans = {a.name: a.span for a in definition.args} if definition else {}
    return Subject(compiled, signature, spans, compiled.warnings)


def ptx_subject(source: Source, kernel: str | None, specs: Mapping[str, Spec], arch: str) -> Subject:
    """A kernel of PTX text: its parameters have sizes and no types, so their types are those of the arguments.

    A parameter that a compiler has named by its position (``kernel_param_2``) is ``arg2`` here.
    """
    from ptxdsl.ptx.reader import read

    module = read(source.text, source.name)
    kernels = module.kernels
    if kernel is not None and kernel not in kernels:
        names = ", ".join(kernels) or "none"
        raise error("E1017", f"'{source.name}' has no kernel '{kernel}'", None, help=f"its kernels: {names}")
    function = kernels[kernel] if kernel is not None else _only(source, kernels)
    short = [_short(p.name) for p in function.parameters]
    params = tuple(
        _param(p, name, specs.get(name) or specs.get(str(i)) or specs.get(p.name))
        for i, (name, p) in enumerate(zip(short, function.parameters, strict=True))
    )
    signature = KernelSignature(
        function.name, params,
        dynamic_shared=any(v.size is None and v.space == "shared" for v in module.variables.values()),
        cluster=_dims(function.reqnctapercluster), threads=_dims(function.reqntid),
        max_threads=_dims(function.maxntid),
    )  # fmt: skip
    lines = tuple(source.line_span(number) for number in range(1, len(source.line_starts) + 1))
    spans = {
        name: lines[p.line - 1] for name, p in zip(short, function.parameters, strict=True) if 0 < p.line <= len(lines)
    }
    compiled = Compiled({function.name: signature}, source.text, lines, Options(arch), "")
    aliases = {p.name: name for name, p in zip(short, function.parameters, strict=True)}
    return Subject(compiled, signature, spans, (), aliases, source.name)


def _short(name: str) -> str:
    position = re.search(r"_param_(\d+)$", name)
    return f"arg{position[1]}" if position else name


def _only(source: Source, kernels: Mapping[str, T]) -> T:
    if len(kernels) == 1:
        return next(iter(kernels.values()))
    names = ", ".join(getattr(kernel, "source_name", "") or name for name, kernel in kernels.items())
    what = f"has several kernels: {names}" if kernels else "has no kernel"
    raise error("E1017", f"'{source.name}' {what}", None, help="name one with --kernel" if kernels else None)


def _dims(numbers: tuple[int, ...] | None) -> tuple[int, int, int] | None:
    if numbers is None:
        return None
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _param(variable: Variable, name: str, spec: Spec | None) -> Param:
    size = variable.size or 8
    if size == 8 and isinstance(spec, ArraySpec) and not spec.is_map:
        return PointerParam(name, spec.dtype or "", 1, 1, mutable=True)
    is_map = isinstance(spec, ArraySpec) and spec.is_map
    if is_map or (isinstance(spec, BytesSpec) and len(spec.data) == 128 == size):
        return TensorMapParam(name)
    if size not in (1, 2, 4, 8):
        return BytesParam(name, size, variable.align)
    floating = variable.type.startswith("f") or (isinstance(spec, ScalarSpec) and isinstance(spec.value, float))
    kind = spec.dtype if isinstance(spec, ScalarSpec) and spec.dtype else f"{'float' if floating else 'uint'}{8 * size}"
    return ScalarParam(name, kind)
