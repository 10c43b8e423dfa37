"""Specifications to the values of a kernel's parameters: by name, by position, struct fields by ``name.field``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptxdsl.cuda.arguments import type_text
from ptxdsl.cuda.scalars import SCALARS
from ptxdsl.diagnostics import CompileError, Diagnostic, error, nearest
from ptxdsl.record import dataclass, field
from ptxdsl.run.formats import SHORT_NAMES, Array
from ptxdsl.run.generate import generate
from ptxdsl.run.specification import MAP_OPTIONS, BytesSpec, ScalarSpec, Spec
from ptxdsl.run.subject import Subject
from ptxdsl.signature import BytesParam, Param, ScalarParam, StructParam, TensorMapParam


@dataclass
class Bound:
    """values: one a parameter, in their order; structs are tuples of their fields. arrays: storage and element type by
    the argument's name. numbers: the scalars by name, for expectations."""

    values: list[Any] = field(default_factory=list)
    arrays: dict[str, tuple[Array, str]] = field(default_factory=dict)
    numbers: dict[str, int | float | bool] = field(default_factory=dict)


@dataclass(frozen=True)
class MapOf:
    """A tensor map still to be made, where the array is: options as in the specification."""

    array: Array
    dtype: str
    options: Mapping[str, str]


def bind(subject: Subject, specs: Mapping[str, Spec]) -> Bound:
    """Raises E1018 with one diagnostic for every argument that is missing, unknown or of another kind."""
    bound = Bound()
    left = {subject.aliases.get(name, name): spec for name, spec in specs.items()}
    problems: list[Diagnostic] = []
    for index, param in enumerate(subject.signature.params):
        if str(index) in left:
            spec = left.pop(str(index))
            if left.setdefault(param.name, spec) is not spec:
                what = f"--arg gives '{param.name}' twice, once by its position {index}"
                problems += error("E1014", what, None, help="leave one of them out").diagnostics
        try:
            bound.values.append(_value(param, param.name, left, bound))
        except CompileError as problem:
            problems.extend(problem.diagnostics)
    known = [p.name for p in subject.signature.params]
    for name in left:
        close = nearest(name, known)
        help = f"did you mean '{close}'?" if close else f"its parameters: {', '.join(known) or 'none'}"
        what = f"--arg {name}: kernel '{subject.signature.name}' has no parameter '{name}'"
        problems += error("E1018", what, None, help=help).diagnostics
    if problems:
        raise CompileError(problems)
    return bound


def _value(param: Param, path: str, left: dict[str, Spec], bound: Bound) -> Any:
    if isinstance(param, StructParam):
        if left.pop(path, None) is not None:
            help = f"give its fields: --arg {path}.{param.fields[0].name}=…" if param.fields else "leave it out"
            raise error("E1018", f"parameter '{path}: {type_text(param)}' is a struct", None, help=help)
        return tuple(_value(f, f"{path}.{f.name}", left, bound) for f in param.fields)
    spec = left.pop(path, None)
    if spec is None:
        what = f"parameter '{path}: {type_text(param)}' is given no value"
        raise error("E1018", what, None, help=_example(param, path))
    if isinstance(spec, BytesSpec):
        return _bytes(param, path, spec)
    if isinstance(param, ScalarParam):
        if not isinstance(spec, ScalarSpec):
            raise _kind(param, path, "an array")
        return _number(param, path, spec, bound)
    if isinstance(spec, ScalarSpec) or isinstance(param, BytesParam):
        raise _kind(param, path, "a number" if isinstance(spec, ScalarSpec) else "an array")
    array, dtype = bound.arrays[path] = generate(path, spec)
    options = {name: value for name, value in spec.options.items() if name in MAP_OPTIONS}
    if isinstance(param, TensorMapParam):
        return MapOf(array, dtype, options)
    if options:
        raise error(
            "E1018",
            f"parameter '{path}: {type_text(param)}' is not a TensorMap",
            None,
            help=f"leave out {', '.join(options)}",
        )
    return array


def _number(param: ScalarParam, path: str, spec: ScalarSpec, bound: Bound) -> int | float | bool:
    kind = SCALARS[param.dtype].kind
    value = spec.value
    if spec.dtype is not None and spec.dtype != {"int": "int64", "uint": "uint64"}.get(param.dtype, param.dtype):
        raise _kind(param, path, f"a number of type {spec.dtype}")
    if isinstance(value, float) and kind in ("int", "uint") and value.is_integer():
        value = int(value)  # 1e6
    bound.numbers[path] = value
    return value


def _bytes(param: Param, path: str, spec: BytesSpec) -> Any:
    """A parameter's raw bytes; of a scalar as the number that they are."""
    if isinstance(param, TensorMapParam):
        return spec.data
    kind = ""
    if isinstance(param, BytesParam):
        size = param.size
    elif isinstance(param, ScalarParam) and SCALARS[param.dtype].kind in ("int", "uint"):
        size, kind = SCALARS[param.dtype].size, SCALARS[param.dtype].kind
    else:
        raise _kind(param, path, "raw bytes")
    if len(spec.data) != size:
        message = f"parameter '{path}' has {size} bytes, --arg gives {len(spec.data)}"
        raise error("E1018", message, None, help=f"write 'bytes:' and {2 * size} hexadecimal digits")
    return int.from_bytes(spec.data, "little", signed=kind == "int") if kind else spec.data


def _kind(param: Param, path: str, given: str) -> CompileError:
    return error("E1018", f"parameter '{path}: {type_text(param)}' cannot be {given}", None, help=_example(param, path))


def _example(param: Param, path: str) -> str:
    if isinstance(param, ScalarParam):
        return f"for example --arg {path}={'True' if param.dtype == 'bool' else 1}"
    if isinstance(param, BytesParam):
        return f"for example --arg {path}=bytes:{'00' * min(param.size, 4)}…"
    if isinstance(param, TensorMapParam):
        return f"an array with a box: --arg {path}=randn:bf16:256x64:box=64x64:swizzle=128B"
    dtype = getattr(param, "dtype", "")
    short = next((short for short, name in SHORT_NAMES.items() if name == dtype), dtype)
    return f"for example --arg {path}=zeros:{short if dtype in SCALARS and dtype not in ('int', 'uint') else 'u8'}:1024"
