"""``inlined_assembly``: PTX that the user wrote, with LLVM's placeholders and constraints.

LLVM ends the process on a constraint that it cannot fulfil, so everything about them is checked here first.
"""

from __future__ import annotations

from ptxdsl.diagnostics import CompileError, counted, error
from ptxdsl.lower.asm import AsmEffects, asm_call
from ptxdsl.lower.builder import Builder
from ptxdsl.lower.intrinsic import converted
from ptxdsl.lower.llvm_types import llvm_type
from ptxdsl.lower.memory import pointer_bits
from ptxdsl.record import dataclass
from ptxdsl.tir import Const, Op, Ty, Value

# constraint letter -> LLVM type of the register
LETTERS = {"b": "i1", "h": "i16", "c": "i16", "r": "i32", "l": "i64", "f": "float", "d": "double"}

# constraint letter -> what it stands for, in words
_HOLDS = {
    "b": "a Bool",
    "h": "a register of 16 bits",
    "c": "a register of 16 bits",
    "r": "a register of 32 bits",
    "l": "a register of 64 bits",
    "f": "a Float32",
    "d": "a Float64",
}

# The types of the language that a machine type can be; signs are not in it.
_NAMES = {
    "i1": "a Bool",
    "i8": "an Int8 or UInt8",
    "i16": "an Int16 or UInt16",
    "i32": "an Int32 or UInt32",
    "i64": "an Int, UInt, Int64 or UInt64",
    "f16": "a Float16",
    "bf16": "a BFloat16",
    "f32": "a Float32",
    "f64": "a Float64",
    "f8e4m3": "a Float8_e4m3fn",
    "f8e5m2": "a Float8_e5m2",
}

_KNOWN = "constraints are h (16 bits), r (32), l (64), f (float32), d (float64), n and i (constants), a digit (tied)"


@dataclass(frozen=True)
class _Constraints:
    outputs: list[str]
    inputs: list[str]
    memory: bool


def lower_asm(b: Builder, op: Op) -> None:
    parsed = _parse(op)
    _check_placeholders(op, len(parsed.outputs) + len(parsed.inputs))
    letters = [c.lstrip("=&") for c in parsed.outputs]
    types = [_register(op, result.ty, letter) for result, letter in zip(op.results, letters, strict=True)]
    arguments = []
    for value, constraint in zip(op.operands, parsed.inputs, strict=True):
        letter = letters[int(constraint)] if constraint.isdigit() else constraint
        arguments.append(_argument(b, op, value, letter))
    effects = AsmEffects(bool(op.attrs.get("side_effects", True)), parsed.memory, convergent=True)
    text = str(op.attrs["text"])
    parts = asm_call(b, types, text, [*parsed.outputs, *parsed.inputs], arguments, effects)
    for result, part, type in zip(op.results, parts, types, strict=True):
        b.set(result, converted(b, part, type, result.ty))


def _wrong(op: Op, message: str, help: str = _KNOWN) -> CompileError:
    return error("E0346", f"inlined_assembly: {message}", op.span, help=help)


def _parse(op: Op) -> _Constraints:
    parts = [part.strip() for part in str(op.attrs["constraints"]).split(",") if part.strip()]
    clobbers = [part for part in parts if part.startswith("~")]
    outputs = [part for part in parts if part.startswith("=")]
    inputs = [part for part in parts if not part.startswith(("=", "~"))]
    for part in clobbers:
        if part != "~{memory}":
            raise _wrong(op, f"unknown clobber '{part}'", "the only clobber is ~{memory}")
    for part in outputs:
        if part.lstrip("=&") not in LETTERS:
            raise _wrong(op, f"unknown constraint '{part}'")
    for part in inputs:
        if part.isdigit() and int(part) >= len(outputs):
            raise _wrong(op, f"constraint '{part}' names no result")
        if not part.isdigit() and part not in (*LETTERS, "n", "i"):
            raise _wrong(op, f"unknown constraint '{part}'")
    for what, have, want in (("result", outputs, op.results), ("operand", inputs, op.operands)):
        if len(have) != len(want):
            numbers = f"{counted(len(have), f'{what} constraint')} for {counted(len(want), what)}"
            raise _wrong(op, numbers, "one constraint each, results (=) first")
    return _Constraints(outputs, inputs, "~{memory}" in clobbers)


def _check_placeholders(op: Op, count: int) -> None:
    """Every ``$`` names an operand or is doubled; ``${:uid}`` is a number of its own for labels."""
    import re  # where there is such text

    for match in re.finditer(r"\$(\$|\d+|\{\d+(?::\w)?\}|\{:uid\})?", str(op.attrs["text"])):
        digits = re.search(r"\d+", match[0])
        if match[1] is None or (digits and int(digits[0]) >= count):
            help = "operands are $0, $1, …, the results first; write $$ for a dollar"
            raise _wrong(op, f"'{match[0]}' names no operand", help)


def _named(ty: Ty) -> str:
    """A type as the user knows it."""
    if ty.is_pointer:
        return f"a pointer of {pointer_bits(ty)} bits"
    name = _NAMES[ty.name]
    return name if ty.lanes == 1 else f"a vector of {ty.lanes}, each {name}"


def _bits(ty: Ty) -> int:
    return pointer_bits(ty) if ty.is_pointer else ty.bits * ty.lanes


def _register(op: Op, ty: Ty, letter: str) -> str:
    """The LLVM type in which a result comes out of its register."""
    type = LETTERS[letter]
    if not _fits(ty, type) or (ty.lanes > 1 and _bits(ty) != _width(type)):
        raise _wrong(op, f"constraint '{letter}' is {_HOLDS[letter]}, but the result is {_named(ty)}")
    return llvm_type(ty) if ty.is_pointer else type


def _width(type: str) -> int:
    return {"float": 32, "double": 64}.get(type) or int(type[1:])


def _fits(ty: Ty, type: str) -> bool:
    if type in ("float", "double"):
        return llvm_type(ty) == type
    if ty.is_pointer:
        return _bits(ty) == _width(type)
    if ty.is_int and ty.lanes == 1:
        return _bits(ty) <= _width(type)
    return _bits(ty) == _width(type) or ty.name.startswith("f8")


def _argument(b: Builder, op: Op, value: Value, letter: str) -> str:
    ty = value.ty
    if letter in ("n", "i"):
        address = b.addresses.get(value)
        if not isinstance(value, Const) and not (letter == "i" and address and address.constant):
            raise _wrong(op, f"constraint '{letter}' wants a constant", "use r, l, f or d for run-time values")
        return b.typed(value)
    type = LETTERS[letter]
    if ty.is_pointer and _bits(ty) == 32 and type == "i64":
        return f"i64 {b.emit(f'ptrtoint {b.typed(value)} to i64')}"
    if not _fits(ty, type):
        raise _wrong(op, f"constraint '{letter}' is {_HOLDS[letter]}, but the operand is {_named(ty)}")
    if ty.is_pointer or llvm_type(ty) == type:
        return b.typed(value)
    if _bits(ty) < _width(type):
        return f"{type} {b.emit(f'zext {b.typed(value)} to {type}')}"
    return f"{type} {b.emit(f'bitcast {b.typed(value)} to {type}')}"
