"""Instructions of ``intrinsics/``, print, assert and trap."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import prod

from ptxdsl.effects import Effect, Kind
from ptxdsl.hints import Any
from ptxdsl.intrinsics import ROWS, Row
from ptxdsl.lower.arith import Handler
from ptxdsl.lower.asm import AsmEffects, emit_asm
from ptxdsl.lower.builder import Builder
from ptxdsl.lower.llvm_types import llvm_type
from ptxdsl.signature import KernelSignature
from ptxdsl.tir import Op, Ty, Value

# Mojo's names of the element types -> PTX's
PTX_TYPES = {
    "bool": "pred", "int8": "s8", "int16": "s16", "int32": "s32", "int64": "s64", "int": "s64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "uint": "u64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
}  # fmt: skip


def asm_effects(effect: Effect, results: Sequence[Value]) -> AsmEffects:
    """What LLVM may do with an instruction of this effect."""
    if effect.kind is Kind.PURE:
        return AsmEffects(convergent=effect.convergent)
    # Shuffles and votes exchange registers only; a warp barrier without a result orders memory too.
    memory = not (effect.kind is Kind.WARP_SYNC and results)
    return AsmEffects(side_effects=True, memory=memory, convergent=effect.convergent)


def lower_row(b: Builder, op: Op, row: Row) -> None:
    text = fill_in(row.text, op)
    if row.lowering == "asm":
        emit_asm(b, text, op.operands, op.results, asm_effects(row.effect, op.results), row.tied)
    else:
        _intrinsic_call(b, op, text)


def fill_in(text: str, op: Op) -> str:
    """Replaces ``{name}`` by the compile-time parameter; braces that are PTX's own have no bare name in them."""
    first, *pieces = text.split("{")
    filled = [first]
    for piece in pieces:
        name, closed, rest = piece.partition("}")
        if closed and name in op.attrs:
            filled.append(ptx_text(op.attrs[name]) + rest)
        elif closed and name == "b":
            # the value that is moved, not its address
            values = [*op.results, *sorted(op.operands, key=lambda operand: operand.ty.is_pointer)]
            filled.append(f"b{max(values[0].ty.bits, 8)}{rest}")
        else:
            filled.append("{" + piece)
    return "".join(filled)


def ptx_text(value: Any) -> str:
    """A compile-time parameter as PTX writes it: a DType without its dot, a bool as 0 or 1."""
    if isinstance(value, bool):
        return str(int(value))
    name = str(value)
    return PTX_TYPES.get(name.removeprefix("DType."), name)


def _split(arguments: str) -> list[str]:
    """At the commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(arguments):
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            parts.append(arguments[start:position].strip())
            start = position + 1
    last = arguments[start:].strip()
    return [*parts, last] if last else parts


def _intrinsic_call(b: Builder, op: Op, text: str) -> None:
    # ``result @name(arguments)`` or ``result range(low, high) @name(arguments)``
    before, _, call = text.partition(" @")
    result, _, bounds = before.partition(" range(")
    name, _, inside = call.partition("(")
    arguments, types = [], []
    for argument in _split(inside.removesuffix(")")):
        type, _, operand = argument.rpartition(" ")
        if operand.startswith("$"):
            operand = _coerced(b, op.operands[int(operand[1:])], type)
        types.append(type)
        arguments.append(f"{type} {operand}")
    b.module.declare(name, f"{result} @{name}({', '.join(types)})")
    known = ""
    if bounds:
        low, high = launch_range(op.name, b.kernel.signature) or bounds.removesuffix(")").split(", ")
        known = f"range({result} {low}, {high}) "
    call = f"call {known}{result} @{name}({', '.join(arguments)})"
    if result == "void":
        return b.do(call)
    whole = b.emit(call)
    if not result.startswith("{"):
        for only in op.results:
            b.set(only, converted(b, whole, result, only.ty))
        return
    for position, (value, type) in enumerate(zip(op.results, _split(result[1:-1]), strict=False)):
        part = b.emit(f"extractvalue {result} {whole}, {position}")
        b.set(value, converted(b, part, type, value.ty))


def launch_range(name: str, signature: KernelSignature) -> tuple[int, int] | None:
    """What a special register can be, from first to before last, as far as the signature says how it is launched."""
    register, _, axis = name.rpartition("_")
    block, most, cluster = signature.threads, signature.threads or signature.max_threads, signature.cluster
    if name in ("cluster_ctarank", "cluster_nctarank") and cluster:
        return (0, prod(cluster)) if name == "cluster_ctarank" else (prod(cluster), prod(cluster) + 1)
    if axis not in ("x", "y", "z"):
        return None
    along = "xyz".index(axis)
    if register == "tid" and most:
        return 0, most[along]
    if register == "ntid" and most:
        return block[along] if block else 1, most[along] + 1
    if register == "cluster_ctaid" and cluster:
        return 0, cluster[along]
    if register == "cluster_nctaid" and cluster:
        return cluster[along], cluster[along] + 1
    return None


def _coerced(b: Builder, value: Value, type: str) -> str:
    """An operand as the intrinsic's declaration wants it."""
    own = llvm_type(value.ty)
    if own == type:
        return b.ref(value)
    if value.ty.is_pointer:
        return b.emit(f"addrspacecast {b.typed(value)} to {type}")
    return integer_or_bits(b, b.ref(value), own, type)


def converted(b: Builder, text: str, type: str, to: Ty) -> str:
    """A result of an intrinsic as the type that the language gives it."""
    own = llvm_type(to)
    return text if own == type else integer_or_bits(b, text, type, own)


def integer_or_bits(b: Builder, text: str, source: str, to: str) -> str:
    if source[:1] == to[:1] == "i":
        wider = int(to[1:]) > int(source[1:])
        return b.emit(f"{'zext' if wider else 'trunc'} {source} {text} to {to}")
    return b.emit(f"bitcast {source} {text} to {to}")


# print, assert, trap


def _print(b: Builder, op: Op) -> None:
    """``vprintf(format, arguments)``: the arguments lie in local memory, each aligned to its size."""
    offset, places = 0, []
    for operand in op.operands:
        size = operand.ty.bytes if not operand.ty.is_pointer else 8
        offset = -(-offset // size) * size
        places.append(offset)
        offset += size
    buffer = "null"
    if op.operands:
        buffer = b.entry(f"alloca [{offset} x i8], align 8")
    for operand, place in zip(op.operands, places, strict=True):
        where = b.emit(f"getelementptr i8, ptr {buffer}, i64 {place}")
        if operand.ty.is_pointer:
            b.do(f"store i64 {b.emit(f'ptrtoint {b.typed(operand)} to i64')}, ptr {where}, align 8")
        else:
            b.do(f"store {b.typed(operand)}, ptr {where}, align {operand.ty.bytes}")
    b.call("i32", "vprintf", [f"ptr {b.module.string(str(op.attrs['format']))}", f"ptr {buffer}"])


def _assert(b: Builder, op: Op) -> None:
    """A failing assertion reports message, file and line through the driver and ends the kernel."""
    (condition,) = op.operands
    failed, passed = b.fresh("failed", "passed")
    b.branch_if(b.ref(condition), passed, failed)
    b.start(failed)
    file = os.path.basename(op.span.source.name)
    b.call(
        "void",
        "__assertfail",
        [
            f"ptr {b.module.string(str(op.attrs['message']))}",
            f"ptr {b.module.string(file)}",
            f"i32 {op.span.line}",
            f"ptr {b.module.string(b.kernel.name)}",
            "i64 1",
        ],
    )
    _stop(b)
    b.start(passed)


def _stop(b: Builder) -> None:
    b.call("void", "llvm.trap", [])
    b.do("unreachable")
    b.label = None


def _trap(b: Builder, op: Op) -> None:
    b.call("void", "llvm.trap", [])


def _row_handler(row: Row) -> Handler:
    return lambda b, op: lower_row(b, op, row)


HANDLERS: dict[str, Handler] = {
    **{name: _row_handler(row) for name, row in ROWS.items()},
    "string": lambda b, op: b.set(op.result, b.module.string(str(op.attrs["text"]))),
    "print": _print,
    "assert": _assert,
    "trap": _trap,
}
