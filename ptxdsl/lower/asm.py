"""Inline PTX: operands become registers, immediates or addresses printed in place; results are taken apart again.

An operand's constraint follows from its type. What is known at compile time goes into the text: an address
(``[buf+8]``, constraint ``i``), bytes after an address in a register (``[%r1+8]``), an integer literal (``n``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ptxdsl.lower.builder import Address, Builder, from_lanes
from ptxdsl.lower.llvm_types import llvm_type, quoted, scalar_type
from ptxdsl.lower.memory import pointer_bits
from ptxdsl.record import dataclass
from ptxdsl.tir import Const, Ty, Value

# Operands of these never take an immediate (PTX wants a register there).
REGISTERS_ONLY = re.compile(r"\b(wgmma|mma|tcgen05\.mma|tcgen05\.cp|tcgen05\.st|stmatrix|cvt|mov\.b(64|128))\b")

# ptxas refuses other literals here, so those go into a register: (instruction, lowest, highest, multiple of).
LITERAL_RANGES = (
    (re.compile(r"\bmbarrier\.init\b"), 1, (1 << 20) - 1, 1),
    (re.compile(r"\bmbarrier\.arrive(?!\.expect_tx)"), 1, (1 << 20) - 1, 1),
    (re.compile(r"\bmbarrier\.(try|test)_wait\.parity\b"), 0, 1, 1),
    (re.compile(r"\bcp\.(reduce\.)?async\.bulk\b"), 0, (1 << 20) - 16, 16),
    (re.compile(r"\bcp\.async\.c[ag]\b"), 0, 16, 1),
)


@dataclass(frozen=True)
class _Register:
    """One PTX register: its constraint letter and LLVM type."""

    letter: str
    type: str


_SCALARS = {
    "i1": _Register("r", "i32"), "i8": _Register("h", "i16"), "i16": _Register("h", "i16"),
    "i32": _Register("r", "i32"), "i64": _Register("l", "i64"), "f16": _Register("h", "i16"),
    "bf16": _Register("h", "i16"), "f32": _Register("f", "float"), "f64": _Register("d", "double"),
    "f8e4m3": _Register("h", "i16"), "f8e5m2": _Register("h", "i16"),
}  # fmt: skip


def registers(ty: Ty) -> list[_Register]:
    """The registers of a type. Vectors of narrow elements are packed into 32 bits (16 if that is all there is)."""
    if ty.is_pointer:
        return [_Register("r" if pointer_bits(ty) == 32 else "l", scalar_type(ty))]
    if ty.lanes == 1:
        return [_SCALARS[ty.name]]
    if ty.bits >= 32 or ty.name == "i1":
        return [_SCALARS[ty.name]] * ty.lanes
    bits = ty.bits * ty.lanes
    if bits == 16:
        return [_Register("h", "i16")]
    if bits % 32:
        raise AssertionError(f"{ty} does not fill registers")
    return [_Register("r", "i32")] * (bits // 32)


def _to_registers(b: Builder, value: Value) -> list[str]:
    ty, regs = value.ty, registers(value.ty)
    if ty.is_pointer or (ty.lanes == 1 and llvm_type(ty) == regs[0].type):
        return [b.ref(value)]
    if ty.lanes == 1:
        if ty.name in ("f16", "bf16"):
            return [b.emit(f"bitcast {b.typed(value)} to i16")]
        return [b.emit(f"zext {b.typed(value)} to {regs[0].type}")]
    text, type = b.ref(value), llvm_type(ty)
    if ty.name == "i1":
        type = f"<{ty.lanes} x i32>"
        text = b.emit(f"zext {b.typed(value)} to {type}")
    elif ty.bits < 32:
        type = regs[0].type if len(regs) == 1 else f"<{len(regs)} x i32>"
        text = b.emit(f"bitcast {b.typed(value)} to {type}")
        if len(regs) == 1:
            return [text]
    return [b.emit(f"extractelement {type} {text}, i32 {lane}") for lane in range(len(regs))]


def _from_registers(b: Builder, ty: Ty, parts: Sequence[str]) -> str:
    regs = registers(ty)
    if ty.is_pointer or (ty.lanes == 1 and llvm_type(ty) == regs[0].type):
        return parts[0]
    if ty.lanes == 1:
        if ty.name == "i1":
            return b.emit(f"icmp ne i32 {parts[0]}, 0")
        if ty.name in ("f16", "bf16"):
            return b.emit(f"bitcast i16 {parts[0]} to {llvm_type(ty)}")
        return b.emit(f"trunc {regs[0].type} {parts[0]} to {llvm_type(ty)}")
    if ty.name == "i1":
        return from_lanes(b, ty, [b.emit(f"icmp ne i32 {part}, 0") for part in parts])
    if ty.bits >= 32:
        return from_lanes(b, ty, parts)
    packed, type = parts[0], regs[0].type
    if len(regs) > 1:
        words = Ty("i32", len(regs))
        packed, type = from_lanes(b, words, parts), llvm_type(words)
    return b.emit(f"bitcast {type} {packed} to {llvm_type(ty)}")


@dataclass(frozen=True)
class AsmEffects:
    side_effects: bool = False
    memory: bool = False
    convergent: bool = False


SYNCHRONISES = AsmEffects(side_effects=True, memory=True, convergent=True)


@dataclass(frozen=True)
class AddressOperand:
    """An address that is no value of the typed IR: a barrier in a table."""

    address: Address
    ty: Ty


_PLACE = re.compile(
    r"\[\$(?P<address>\d+)(?:\+(?P<offset>\d+))?\]|\$r(?P<results>\d*)\*|(?P<comma>, )?(?P<open>\{)?\$(?P<rest>\d+)\*"
    r"(?(open)\})|\$r(?P<result>\d+)|\$(?P<operand>\d+)|\$\$"
)


def emit_asm(
    b: Builder,
    template: str,
    operands: Sequence[Value | AddressOperand],
    results: Sequence[Value],
    effects: AsmEffects,
    tied: int | None = None,
) -> None:
    """``template``: PTX with ``$0 $1 …`` for operands and ``$r0 …`` for results; several registers print in braces.

    ``$r*`` and ``$r1*`` are all results and those from a number on, ``$2*`` the operands from a number on, without
    braces; where there are none of these, ``, {$2*}`` and ``, $2*`` are nothing. ``tied``: the operands from this
    number on share the registers of the results, which are as many.
    """
    outputs = [(index, register) for index, result in enumerate(results) for register in registers(result.ty)]
    inputs: list[tuple[str, str]] = []  # constraint, typed operand
    numbers: dict[tuple[int, bool], list[int]] = {}  # (operand, taken as a bare root) -> positions

    def take(constraint: str, text: str) -> int:
        inputs.append((constraint, text))
        return len(outputs) + len(inputs) - 1

    def operand_numbers(index: int, statement: str | None) -> list[int]:
        """``statement``: the text before the operand, where a literal may stand."""
        key = (index, False)
        if key not in numbers:
            operand = operands[index]
            if isinstance(operand, AddressOperand):
                raise AssertionError("a barrier's address is only used as an address")
            known = b.addresses.get(operand)
            if known and known.constant:
                numbers[key] = [take("i", b.typed(operand))]
            elif isinstance(operand, Const) and statement is not None and _is_literal(operand, statement):
                numbers[key] = [take("n", b.typed(operand))]
            else:
                kinds = registers(operand.ty)
                texts = _to_registers(b, operand)
                numbers[key] = [take(k.letter, f"{k.type} {t}") for k, t in zip(kinds, texts, strict=True)]
        return numbers[key]

    def address_text(index: int, extra: int) -> str:
        operand = operands[index]
        address = operand.address if isinstance(operand, AddressOperand) else b.address(operand)
        key = (index, True)
        type = scalar_type(operand.ty)
        letter = registers(operand.ty)[0].letter
        # In a loop the table's address stays in a register, its slot in the text: ptxas makes a symbol's address
        # anew at every use (three SASS instructions), and does not take it out of the loop.
        whole = address.offset + extra
        if address.constant and not b.loop_depth and whole >= 0:  # LLVM prints buf-8 there, and ptxas wants buf+-8
            text = f"{type} " + (f"getelementptr (i8, {type} {address.root}, i32 {whole})" if whole else address.root)
            return f"[${take('i', text)}]"
        if key not in numbers:
            numbers[key] = [take(letter, f"{type} {address.root}")]
        suffix = f"+{whole}" if whole else ""  # PTX writes a negative one as +-8
        return f"[${numbers[key][0]}{suffix}]"

    def place(match: re.Match[str]) -> str:
        if match["address"] is not None and operand_type(int(match["address"])).is_pointer:
            return address_text(int(match["address"]), int(match["offset"] or 0))
        if match["results"] is not None:
            first = int(match["results"] or 0)
            return ", ".join(f"${number}" for number, (index, _) in enumerate(outputs) if index >= first)
        if match["rest"] is not None:
            indices = range(int(match["rest"]), len(operands))
            rest = ", ".join(f"${number}" for index in indices for number in operand_numbers(index, None))
            rest = f"{{{rest}}}" if match["open"] else rest
            return f"{match['comma'] or ''}{rest}" if indices else ""
        if match["result"] is not None:
            return _list([n for n, (index, _) in enumerate(outputs) if index == int(match["result"])])
        if match["address"] is not None:  # an address held in an integer
            inner = _list(operand_numbers(int(match["address"]), None))
            return f"[{inner}+{match['offset']}]" if match["offset"] else f"[{inner}]"
        if match["operand"] is not None:
            return _list(operand_numbers(int(match["operand"]), _statement_before(template, match.start())))
        return "$$"

    def operand_type(index: int) -> Ty:
        return operands[index].ty

    text = _PLACE.sub(place, template)
    if tied is not None:
        values = [operand for operand in operands[tied:] if isinstance(operand, Value)]
        texts = [part for value in values for part in _to_registers(b, value)]
        types = [register.type for value in values for register in registers(value.ty)]
        if types != [register.type for _, register in outputs]:
            raise AssertionError("tied operands and results differ in their registers")
        inputs += [
            (str(number), f"{type} {text}") for number, (type, text) in enumerate(zip(types, texts, strict=True))
        ]
    constraints = [f"={register.letter}" for _, register in outputs] + [constraint for constraint, _ in inputs]
    parts = asm_call(
        b, [register.type for _, register in outputs], text, constraints, [typed for _, typed in inputs], effects
    )
    for index, result in enumerate(results):
        own = [part for part, (owner, _) in zip(parts, outputs, strict=True) if owner == index]
        b.set(result, _from_registers(b, result.ty, own))


def _list(numbers: Sequence[int]) -> str:
    inner = ", ".join(f"${number}" for number in numbers)
    return inner if len(numbers) == 1 else f"{{{inner}}}"


def _statement_before(template: str, position: int) -> str:
    """The part of the instruction that stands before an operand."""
    return template[template.rfind(";", 0, position) + 1 : position].lstrip(" \t\n{")


def _is_literal(operand: Const, statement: str) -> bool:
    """Whether a constant may be printed in place: not among a vector's registers, and of a value that ptxas takes."""
    if operand.ty.name not in ("i32", "i64") or operand.ty.lanes != 1:
        return False
    ranges = _literal_ranges(statement)
    return ranges is not None and all(
        low <= operand.value <= high and operand.value % multiple == 0 for low, high, multiple in ranges
    )


@lru_cache(maxsize=1024)
def _literal_ranges(statement: str) -> tuple[tuple[int, int, int], ...] | None:
    """What a literal behind this text must fit; None where there can be none."""
    if statement.count("{") > statement.count("}") or REGISTERS_ONLY.search(statement):
        return None
    return tuple((low, high, multiple) for name, low, high, multiple in LITERAL_RANGES if name.search(statement))


def asm_call(
    b: Builder,
    types: Sequence[str],
    text: str,
    constraints: Sequence[str],
    arguments: Sequence[str],
    effects: AsmEffects,
) -> list[str]:
    """The call itself, with the attributes that keep LLVM from moving what must stay. Gives one operand per type."""
    constraints = [*constraints, "~{memory}"] if effects.memory else constraints
    result = "void" if not types else types[0] if len(types) == 1 else "{" + ", ".join(types) + "}"
    side = " sideeffect" if effects.side_effects else ""
    attributes = " convergent nounwind" if effects.convergent else " nounwind"
    if not effects.memory:
        attributes += " memory(none)"
    call = f'call {result} asm{side} "{quoted(text)}", "{",".join(constraints)}"({", ".join(arguments)}){attributes}'
    if not types:
        b.do(call)
        return []
    whole = b.emit(call)
    if len(types) == 1:
        return [whole]
    return [b.emit(f"extractvalue {result} {whole}, {position}") for position in range(len(types))]
