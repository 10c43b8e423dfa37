"""Pointers, loads and stores, shared and local memory as LLVM instructions.

A pointer is kept as what is known at run time plus constant bytes: so constant shared addresses become constant
expressions, which PTX prints in place (``[buf+8]``), and constant offsets reach the instruction that uses them.
"""

from __future__ import annotations

from ptxdsl.lower.arith import Handler
from ptxdsl.lower.builder import Address, Builder
from ptxdsl.lower.llvm_types import ADDRESS_SPACES, llvm_type, memory_type, scalar_type
from ptxdsl.tir import Const, Op, Ty, Value
from ptxdsl.tir.fold import unsigned
from ptxdsl.tir.multiples import LARGEST, lowest_bit


def pointer_bits(ty: Ty) -> int:
    """The width of LLVM's pointer: local and parameter addresses are generic there."""
    return 64 if ADDRESS_SPACES[ty.space] in (0, 1) else 32


def _ptr_add(b: Builder, op: Op) -> None:
    pointer, index = op.operands
    scale, offset = op.attrs.get("scale", 1), op.attrs.get("offset", 0)
    address = b.address(pointer)
    if isinstance(index, Const):
        known = index.value
        if op.attrs.get("unsigned") and known < 0:
            known += 1 << index.ty.bits
        return b.set_address(op.result, _wrapped(address.plus(known * scale + offset), pointer.ty))
    bits = pointer_bits(pointer.ty)
    signed = not op.attrs.get("unsigned")
    variable, known, multiple = _IndexSplit(b, bits, signed).split(index)
    address = address.plus(known * scale + offset)
    if variable is not None:
        moved = b.moved(
            address.root, scalar_type(pointer.ty), scale, bits, resized(b, variable, index.ty.bits, bits, signed)
        )
        align = min(address.root_align, multiple * lowest_bit(scale))
        address = Address(moved, address.offset, False, align)
    b.set_address(op.result, _wrapped(address, pointer.ty))


class _IndexSplit:
    """Takes the constant out of an index: ``(i + 1) * 32 + lane`` is ``i * 32 + lane`` and 32.

    The stages of an unrolled ring then share one address register. It is allowed where the sum does not wrap (``nsw``,
    or ``nuw`` for an unsigned index) or where wrapping makes no difference to a pointer of this width. A sum without
    a negative constant may be one that wraps; without a positive one it is not, unless an index is far below 0.
    """

    def __init__(self, b: Builder, bits: int, signed: bool) -> None:
        self.b = b
        self.bits = bits
        self.signed = signed
        self.flag = "nsw" if signed else "nuw"

    def split(self, value: Value) -> tuple[str | None, int, int]:
        """The operand of the variable part (None: there is none), the constant, what the variable is a multiple of."""
        if isinstance(value, Const):
            return None, value.value if self.signed else unsigned(value.value, value.ty.bits), LARGEST
        op = self.b.definitions.get(value)
        wide = value.ty.bits >= self.bits
        if op is None or not (op.attrs.get(self.flag) or wide):
            return self.whole(value)
        type = llvm_type(value.ty)
        if op.name in ("add", "sub"):
            x, known_x, multiple_x = self.split(op.operands[0])
            y, known_y, multiple_y = self.split(op.operands[1])
            known, multiple = known_x + known_y if op.name == "add" else known_x - known_y, min(multiple_x, multiple_y)
            if y is None or (x is None and op.name == "add"):
                return x if y is None else y, known, multiple
            if known_x == known_y == 0 or (known < 0 and not wide):
                return self.whole(value)
            return self.b.shared(f"{op.name}{self.flags(op, known)} {type} {x or 0}, {y}"), known, multiple
        if op.name == "mul" and isinstance(op.operands[1], Const):
            x, known, multiple = self.split(op.operands[0])
            factor = op.operands[1].value if self.signed else unsigned(op.operands[1].value, value.ty.bits)
            moved = known * factor
            if x is None and known != 0:
                return None, moved, LARGEST
            if known == 0 or (moved < 0 and not wide):
                return self.whole(value)
            multiple = min(multiple * lowest_bit(factor), LARGEST)
            return self.b.shared(f"mul{self.flags(op, moved)} {type} {x}, {op.operands[1].value}"), moved, multiple
        return self.whole(value)

    def whole(self, value: Value) -> tuple[str, int, int]:
        return self.b.ref(value), 0, self.b.multiples.of(value)

    def flags(self, op: Op, known: int) -> str:
        return f" {self.flag}" if op.attrs.get(self.flag) and known >= 0 else ""


def _wrapped(address: Address, ty: Ty) -> Address:
    """The offset as the signed number of the pointer's width that it is for the machine."""
    half = 1 << (pointer_bits(ty) - 1)
    return Address(address.root, (address.offset + half) % (2 * half) - half, address.constant, address.root_align)


def resized(b: Builder, text: str, source: int, bits: int, signed: bool) -> str:
    """An integer of ``source`` bits as one of another width."""
    if source == bits:
        return text
    instruction = "trunc" if source > bits else "sext" if signed else "zext"
    return b.shared(f"{instruction} i{source} {text} to i{bits}")


def _ptr_cast(b: Builder, op: Op) -> None:
    (pointer,) = op.operands
    cast_pointer(b, pointer, op.result)


def cast_pointer(b: Builder, pointer: Value, result: Value) -> None:
    source, to = llvm_type(pointer.ty), llvm_type(result.ty)
    address = b.address(pointer)
    if source == to:
        return b.set_address(result, address)
    if {pointer.ty.space, result.ty.space} == {"shared", "cluster"}:
        # The shared window of a CTA lies in that of its cluster: the same 32 bits.
        if address.constant:
            root = f"inttoptr (i32 ptrtoint ({source} {address.root} to i32) to {to})"
            return b.set_address(result, Address(root, address.offset, True, address.root_align))
        bits = b.emit(f"ptrtoint {b.typed(pointer)} to i32")
        return b.set(result, b.emit(f"inttoptr i32 {bits} to {to}"))
    if address.constant:
        # Generic addresses of symbols are computed at run time (cvta), so they are no constants for PTX.
        return b.set(result, f"addrspacecast ({source} {b.ref(pointer)} to {to})")
    b.set(result, b.emit(f"addrspacecast {b.typed(pointer)} to {to}"))


def _ptr_toint(b: Builder, op: Op) -> None:
    b.set(op.result, b.emit(f"ptrtoint {b.typed(op.operands[0])} to {llvm_type(op.result.ty)}"))


def _int_toptr(b: Builder, op: Op) -> None:
    b.set(op.result, b.emit(f"inttoptr {b.typed(op.operands[0])} to {llvm_type(op.result.ty)}"))


def _load(b: Builder, op: Op) -> None:
    (pointer,) = op.operands
    ty = op.result.ty
    volatile = "volatile " if op.attrs.get("volatile") else ""
    text = b.emit(f"load {volatile}{memory_type(ty)}, {b.typed(pointer)}, align {_align(b, op, pointer, ty)}")
    if ty.name == "i1":
        text = b.emit(f"icmp ne {memory_type(ty)} {text}, zeroinitializer" if ty.lanes > 1 else f"icmp ne i8 {text}, 0")
    b.set(op.result, text)


def _store(b: Builder, op: Op) -> None:
    pointer, value = op.operands
    text, align = b.ref(value), _align(b, op, pointer, value.ty)
    if value.ty.name == "i1":
        text = b.emit(f"zext {b.typed(value)} to {memory_type(value.ty)}")
    volatile = "volatile " if op.attrs.get("volatile") else ""
    b.do(f"store {volatile}{memory_type(value.ty)} {text}, {b.typed(pointer)}, align {align}")


def _align(b: Builder, op: Op, pointer: Value, ty: Ty) -> int:
    """What the access promises, or what is known of its address."""
    return max(int(op.attrs.get("align") or ty.scalar.bytes), b.address(pointer).align)


def _alloca(b: Builder, op: Op) -> None:
    size, align = op.attrs["bytes"], op.attrs.get("align", 1)
    b.set_address(op.result, Address(b.entry(f"alloca [{size} x i8], align {align}"), 0, False, align))


def _shared_alloc(b: Builder, op: Op) -> None:
    name = b.module.unique_symbol(f"{b.kernel.name}_{op.attrs.get('name') or 'shared'}")
    b.module.globals.append(
        f"@{name} = internal addrspace(3) global [{op.attrs['bytes']} x i8] undef, align {op.attrs.get('align', 1)}"
    )
    b.set_address(op.result, Address(f"@{name}", 0, True, op.attrs.get("align", 1)))


def _shared_dynamic(b: Builder, op: Op) -> None:
    """All of a kernel's uses are one symbol with the largest alignment."""
    align = op.attrs.get("align", 16)
    b.set_address(op.result, Address(b.module.dynamic_shared(b.kernel.name, align), 0, True, align))


HANDLERS: dict[str, Handler] = {
    "ptr.add": _ptr_add,
    "ptr.cast": _ptr_cast,
    "ptr.toint": _ptr_toint,
    "int.toptr": _int_toptr,
    "load": _load,
    "store": _store,
    "alloca": _alloca,
    "shared.alloc": _shared_alloc,
    "shared.dynamic": _shared_dynamic,
}
