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
    asm = _Assembly(b, operands, results)
    text = _PLACE.sub(asm.place, template)
    if tied is not None:
        asm.tie(tied)
    constraints = [f"={register.letter}" for _, register in asm.outputs] + [constraint for constraint, _ in asm.inputs]
    types = [register.type for _, register in asm.outputs]
    parts = asm_call(b, types, text, constraints, [typed for _, typed in asm.inputs], effects)
    for index, result in enumerate(results):
        own = [part for part, (owner, _) in zip(parts, asm.outputs, strict=True) if owner == index]
        b.set(result, _from_registers(b, result.ty, own))


class _Assembly:
    """One inline assembly whose template is being filled in. An operand becomes an input where it is first named.

    outputs: by register, the result that it is a part of. inputs: the constraint and the typed operand of each.
    """

    def __init__(self, b: Builder, operands: Sequence[Value | AddressOperand], results: Sequence[Value]) -> None:
        self.b = b
        self.operands = operands
        self.outputs = [(index, register) for index, result in enumerate(results) for register in registers(result.ty)]
        self.inputs: list[tuple[str, str]] = []
        self._numbers: dict[int, list[int]] = {}  # by operand, those of its registers or literal
        self._roots: dict[int, int] = {}  # by operand, that of the register which its address starts from

    def place(self, match: re.Match[str]) -> str:
        """What a placeholder of the template stands for."""
        if match["address"] is not None:
            index = int(match["address"])
            if self.operands[index].ty.is_pointer:
                return self._address(index, int(match["offset"] or 0))
            inner = _list(self._registers(index, None))  # an address held in an integer
            return f"[{inner}+{match['offset']}]" if match["offset"] else f"[{inner}]"
        if match["results"] is not None:
            first = int(match["results"] or 0)
            return ", ".join(f"${number}" for number, (index, _) in enumerate(self.outputs) if index >= first)
        if match["rest"] is not None:
            indices = range(int(match["rest"]), len(self.operands))
            rest = ", ".join(f"${number}" for index in indices for number in self._registers(index, None))
            rest = f"{{{rest}}}" if match["open"] else rest
            return f"{match['comma'] or ''}{rest}" if indices else ""
        if match["result"] is not None:
            return _list([n for n, (index, _) in enumerate(self.outputs) if index == int(match["result"])])
        if match["operand"] is not None:
            return _list(self._registers(int(match["operand"]), _statement_before(match.string, match.start())))
        return "$$"

    def tie(self, first: int) -> None:
        """The operands from a number on go into the registers of the results."""
        values = [operand for operand in self.operands[first:] if isinstance(operand, Value)]
        texts = [part for value in values for part in _to_registers(self.b, value)]
        types = [register.type for value in values for register in registers(value.ty)]
        if types != [register.type for _, register in self.outputs]:
            raise AssertionError("tied operands and results differ in their registers")
        pairs = zip(types, texts, strict=True)
        self.inputs += [(str(number), f"{type} {text}") for number, (type, text) in enumerate(pairs)]

    def _take(self, constraint: str, text: str) -> int:
        self.inputs.append((constraint, text))
        return len(self.outputs) + len(self.inputs) - 1

    def _registers(self, index: int, statement: str | None) -> list[int]:
        """The numbers of an operand. ``statement``: the text before it, where a literal may stand."""
        if index not in self._numbers:
            b, operand = self.b, self.operands[index]
            if isinstance(operand, AddressOperand):
                raise AssertionError("a barrier's address is only used as an address")
            known = b.addresses.get(operand)
            if known and known.constant:
                self._numbers[index] = [self._take("i", b.typed(operand))]
            elif isinstance(operand, Const) and statement is not None and _is_literal(operand, statement):
                self._numbers[index] = [self._take("n", b.typed(operand))]
            else:
                kinds, texts = registers(operand.ty), _to_registers(b, operand)
                pairs = zip(kinds, texts, strict=True)
                self._numbers[index] = [self._take(kind.letter, f"{kind.type} {text}") for kind, text in pairs]
        return self._numbers[index]

    def _address(self, index: int, extra: int) -> str:
        """``[…]`` of a pointer, ``extra`` bytes on."""
        operand = self.operands[index]
        address = operand.address if isinstance(operand, AddressOperand) else self.b.address(operand)
        type = scalar_type(operand.ty)
        # In a loop the table's address stays in a register, its slot in the text: ptxas makes a symbol's address
        # anew at every use (three SASS instructions), and does not take it out of the loop.
        whole = address.offset + extra
        if address.constant and not self.b.loop_depth and whole >= 0:  # LLVM prints buf-8, and ptxas wants buf+-8
            moved = f"getelementptr (i8, {type} {address.root}, i32 {whole})" if whole else address.root
            return f"[${self._take('i', f'{type} {moved}')}]"
        if index not in self._roots:
            self._roots[index] = self._take(registers(operand.ty)[0].letter, f"{type} {address.root}")
        suffix = f"+{whole}" if whole else ""  # PTX writes a negative one as +-8
        return f"[${self._roots[index]}{suffix}]"


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
