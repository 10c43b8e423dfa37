"""Inline PTX: operands become registers, immediates or addresses printed in place; results are taken apart again.

An operand's constraint follows from its type. What is known at compile time goes into the text: an address
(``[buf+8]``, constraint ``i``), bytes after an address in a register (``[%r1+8]``), an integer literal (``n``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ptxdsl.lower.builder import Address, Builder, from_lanes
from ptxdsl.lower.llvm_types import llvm_type, quoted, scalar_type
from ptxdsl.lower.memory import pointer_bits
from ptxdsl.record import dataclass
from ptxdsl.tir import Const, Ty, Value

# Operands of these never take an immediate (PTX wants a register there).
REGISTERS_ONLY = (
    "wgmma", "wmma.mma", "mma", "tcgen05.mma", "tcgen05.cp", "tcgen05.st", "stmatrix", "cvt", "mov.b64", "mov.b128"
)  # fmt: skip

# ptxas refuses other literals here, so those go into a register: (instruction, lowest, highest, multiple of). The
# first that fits counts.
_ANY = (-(1 << 63), (1 << 64) - 1, 1)
LITERAL_RANGES: tuple[tuple[str, int, int, int], ...] = (
    ("mbarrier.init", 1, (1 << 20) - 1, 1),
    ("mbarrier.arrive.expect_tx", *_ANY),
    ("mbarrier.arrive", 1, (1 << 20) - 1, 1),
    ("mbarrier.arrive_drop", 1, (1 << 20) - 1, 1),
    ("mbarrier.try_wait.parity", 0, 1, 1),
    ("mbarrier.test_wait.parity", 0, 1, 1),
    ("cp.async.bulk", 0, (1 << 20) - 16, 16),
    ("cp.reduce.async.bulk", 0, (1 << 20) - 16, 16),
    ("cp.async.ca", 0, 16, 1),
    ("cp.async.cg", 0, 16, 1),
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


_DOLLAR = "\0"  # for $$, which is no place, while places are looked for


@dataclass(frozen=True)
class _Place:
    """Where a template has operands or results: kind, number, and what goes with it.

    ``address``: ``[$0]`` or, with an offset, ``[$0+8]``; ``results``: ``$r1*``; ``rest``: ``, {$2*}``, its ``before``
    and ``after`` the text around the list; ``result``: ``$r0``; ``operand``: ``$0``, its ``before`` the text of the
    instruction up to it.
    """

    kind: str
    number: int
    before: str = ""
    after: str = ""
    offset: int = 0


@lru_cache(maxsize=1024)
def _parts(template: str) -> tuple[str | _Place, ...]:
    """A template's texts and places, in order."""
    template = template.replace("$$", _DOLLAR)
    text, *pieces = template.split("$")
    parts: list[str | _Place] = []
    position = len(text)  # of the $
    for piece in pieces:
        before = _statement_before(template, position)
        position += 1 + len(piece)
        of_results = piece.startswith("r")
        digits = piece[of_results:]
        digits = digits[: len(digits) - len(digits.lstrip("0123456789"))]
        after = piece[of_results + len(digits) :]
        many = after.startswith("*")
        if not (digits or (of_results and many)):
            text += f"${piece}"
            continue
        number, offset = int(digits or 0), after.partition("]")[0].removeprefix("+")
        if many and of_results:
            place, after = _Place("results", number), after[1:]
        elif many:
            opening, closing = ("{", "}") if text.endswith("{") and after.startswith("*}") else ("", "")
            text, after = text.removesuffix(opening), after[1 + len(closing) :]
            place = _Place("rest", number, (", " if text.endswith(", ") else "") + opening, closing)
            text = text.removesuffix(", ")
        elif of_results:
            place = _Place("result", number)
        elif text.endswith("[") and "]" in after and (not offset or offset.isdecimal()):
            place, text, after = _Place("address", number, offset=int(offset or 0)), text[:-1], after.partition("]")[2]
        else:
            place = _Place("operand", number, before)
        parts += [text, place]
        text = after
    return tuple(part.replace(_DOLLAR, "$$") if isinstance(part, str) else part for part in (*parts, text))


class _Filled:
    """A template as its operands and results are printed into it.

    outputs: of each register of the results whose it is, and its kind. inputs: constraints and typed operands, in the
    order in which the text has come to them; their numbers follow on those of the outputs.
    """

    def __init__(self, b: Builder, operands: Sequence[Value | AddressOperand], results: Sequence[Value]) -> None:
        self.b = b
        self.operands = operands
        self.outputs = [(index, register) for index, result in enumerate(results) for register in registers(result.ty)]
        self.inputs: list[tuple[str, str]] = []
        self._numbers: dict[tuple[int, bool], list[int]] = {}  # by operand, and whether it is taken as a bare root

    def text(self, part: str | _Place) -> str:
        """Of a part of the template."""
        if isinstance(part, str):
            return part
        kind, chosen = part.kind, part.number
        if kind == "results":
            return ", ".join(f"${number}" for number, (index, _) in enumerate(self.outputs) if index >= chosen)
        if kind == "rest":
            indices = range(chosen, len(self.operands))
            rest = ", ".join(f"${number}" for index in indices for number in self._operand(index, None))
            return f"{part.before}{rest}{part.after}" if indices else ""
        if kind == "result":
            return _list([n for n, (index, _) in enumerate(self.outputs) if index == chosen])
        if kind == "operand":
            return _list(self._operand(chosen, part.before))
        if self.operands[chosen].ty.is_pointer:
            return self._address(chosen, part.offset)
        inner = _list(self._operand(chosen, None))  # an address held in an integer
        return f"[{inner}+{part.offset}]" if part.offset else f"[{inner}]"

    def tie(self, operands: Sequence[Value | AddressOperand]) -> None:
        """Operands that share the registers of the results."""
        values = [operand for operand in operands if isinstance(operand, Value)]
        texts = [part for value in values for part in _to_registers(self.b, value)]
        types = [register.type for value in values for register in registers(value.ty)]
        if types != [register.type for _, register in self.outputs]:
            raise AssertionError("tied operands and results differ in their registers")
        for number, (type, text) in enumerate(zip(types, texts, strict=True)):
            self.inputs.append((str(number), f"{type} {text}"))

    def _take(self, constraint: str, text: str) -> int:
        self.inputs.append((constraint, text))
        return len(self.outputs) + len(self.inputs) - 1

    def _operand(self, index: int, statement: str | None) -> list[int]:
        """Its registers' numbers. statement: the text before the operand, where a literal may stand."""
        key = (index, False)
        if key not in self._numbers:
            operand = self.operands[index]
            if isinstance(operand, AddressOperand):
                raise AssertionError("a barrier's address is only used as an address")
            known = self.b.addresses.get(operand)
            if known and known.constant:
                self._numbers[key] = [self._take("i", self.b.typed(operand))]
            elif isinstance(operand, Const) and statement is not None and _is_literal(operand, statement):
                self._numbers[key] = [self._take("n", self.b.typed(operand))]
            else:
                kinds = registers(operand.ty)
                texts = _to_registers(self.b, operand)
                self._numbers[key] = [
                    self._take(kind.letter, f"{kind.type} {text}") for kind, text in zip(kinds, texts, strict=True)
                ]
        return self._numbers[key]

    def _address(self, index: int, extra: int) -> str:
        operand = self.operands[index]
        address = operand.address if isinstance(operand, AddressOperand) else self.b.address(operand)
        key = (index, True)
        type = scalar_type(operand.ty)
        letter = registers(operand.ty)[0].letter
        # In a loop the table's address stays in a register, its slot in the text: ptxas makes a symbol's address
        # anew at every use (three SASS instructions), and does not take it out of the loop.
        whole = address.offset + extra
        if address.constant and not self.b.loop_depth and whole >= 0:  # LLVM prints buf-8, and ptxas wants buf+-8
            text = f"{type} " + (f"getelementptr (i8, {type} {address.root}, i32 {whole})" if whole else address.root)
            return f"[${self._take('i', text)}]"
        if key not in self._numbers:
            self._numbers[key] = [self._take(letter, f"{type} {address.root}")]
        suffix = f"+{whole}" if whole else ""  # PTX writes a negative one as +-8
        return f"[${self._numbers[key][0]}{suffix}]"


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
    filled = _Filled(b, operands, results)
    text = "".join(map(filled.text, _parts(template)))
    if tied is not None:
        filled.tie(operands[tied:])
    outputs, inputs = filled.outputs, filled.inputs
    constraints = [f"={register.letter}" for _, register in outputs] + [constraint for constraint, _ in inputs]
    types = [register.type for _, register in outputs]
    parts = asm_call(b, types, text, constraints, [typed for _, typed in inputs], effects)
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
    limits = _literal_limits(statement)
    if limits is None:
        return False
    low, high, multiple = limits
    return bool(low <= operand.value <= high and operand.value % multiple == 0)


@lru_cache(maxsize=1024)
def _literal_limits(statement: str) -> tuple[int, int, int] | None:
    """What a literal behind this text must fit; None where there can be none."""
    words = statement.split()
    opcode = next((word for word in words if not (word.startswith("@") or word.endswith(":"))), "")
    if statement.count("{") > statement.count("}") or any(_begins(opcode, name) for name in REGISTERS_ONLY):
        return None
    return next(((low, high, of) for name, low, high, of in LITERAL_RANGES if _begins(opcode, name)), _ANY)


def _begins(opcode: str, name: str) -> bool:
    return f"{opcode}.".startswith(f"{name}.")


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
