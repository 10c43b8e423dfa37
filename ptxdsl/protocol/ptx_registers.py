"""What instructions of PTX make of registers: integers as expressions of their operands, whatever place they are at."""

from __future__ import annotations

from collections.abc import Mapping

from ptxdsl.protocol import expressions, ptx_integers
from ptxdsl.protocol.algebra import plain
from ptxdsl.protocol.expressions import Expr, const, wrap
from ptxdsl.protocol.ptx_graph import Item, Wait
from ptxdsl.ptx.module import (
    Address,
    Immediate,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Vector,
)
from ptxdsl.ptx.opcodes import sources

POINTER_BITS = 64
_MAX_WIDE = 64  # bits of registers that are integers


class Registers:
    """registers: types by name. symbols: of shared variables their addresses. parameters: of the kernel's the names.

    The registers that are seen are those of ``look``.
    """

    def __init__(self, registers: Mapping[str, str], symbols: Mapping[str, int], parameters: Mapping[str, str]) -> None:
        self.registers = registers
        self.symbols = symbols
        self.parameters = parameters
        self.at: dict[tuple[int, int], dict[str, Expr]] = {}  # block, item (the branch: their number)
        self.roots: dict[Expr, str | None] = {}  # of variables that are global addresses: the parameter
        self.constant: set[Expr] = set()  # loads of what the compiler knows to be constant
        self._unknowns = 0
        self._env: dict[str, Expr] = {}

    def look(self, number: int, index: int) -> None:
        """From now on ``read`` and ``address`` see the registers before an item of a block."""
        self._env = self.at.get((number, index), {})

    def guard(self, instruction: Instruction, values: Mapping[str, Expr]) -> Expr:
        assert instruction.guard is not None
        register, negated = instruction.guard
        value = values.get(register.name)
        if value is None:
            value = self.unknown(1)
        return plain("not", value, bits=1) if negated else value

    def _fitted(self, value: Expr, name: str, item: Instruction) -> Expr:
        width = self._width(name)
        if value.bits == width or (value.bits > width and ptx_integers.is_remote(value)):
            return value
        if value.bits > width:
            return plain("trunc", value, bits=width)
        return plain(f"ext.{'s' if ptx_integers.type_of(item.opcode)[0] == 's' else 'u'}", value, bits=width)

    def _width(self, name: str) -> int:
        type = self.registers.get(name, "b32")
        return 1 if type == "pred" else min(int(type.lstrip("busf") or 32), _MAX_WIDE)

    def unknown(self, bits: int) -> Expr:
        self._unknowns += 1
        return expressions.unknown(self._unknowns, bits)

    def _value(self, name: str) -> Expr:
        found = self._env.get(name)
        if found is not None:
            return found
        if name.startswith("%"):
            known = ptx_integers.special(name)
            if known is not None:
                return known
        return self.unknown(self._width(name))  # read before it is written

    def read(self, operand: Operand, bits: int) -> Expr:
        """A scalar operand as an integer of a width; addresses of the cluster's shared memory keep their own."""
        if isinstance(operand, Immediate):
            return const(int(operand.value != 0) if bits == 1 else wrap(operand.value, bits), bits)
        if isinstance(operand, Symbol):
            base = self.symbols.get(operand.name)
            return self.unknown(bits) if base is None else const(base + operand.offset, bits)
        if isinstance(operand, Not):
            return plain("not", self.read(operand.operand, 1), bits=1)
        if not isinstance(operand, Register):
            return self.unknown(bits)
        value = self._value(operand.name)
        if value.bits < bits:
            return plain("ext.u", value, bits=bits)
        if value.bits > bits and not ptx_integers.is_remote(value):
            return plain("trunc", value, bits=bits)
        return value

    def address(self, operand: Operand, bits: int = 32) -> Expr:
        """``[base + offset]``."""
        if not isinstance(operand, Address):
            return self.read(operand, bits)
        base = const(0, bits) if operand.base is None else self.read(operand.base, bits)
        return plain("add", base, const(wrap(operand.offset, base.bits), base.bits), bits=base.bits)

    def _made(self, item: Instruction) -> dict[str, Expr | None]:
        """By register what an instruction makes."""
        first = item.opcode.partition(".")[0]
        target = item.operands[0]
        if first == "elect":
            found = ptx_integers.elected(item, self.read)
        elif first in ("ld", "ldu"):
            found = self._load(item)
        elif first.startswith("mbarrier") and "parity" in item.opcode and _is_test(item):
            found = [expressions.test(self._barrier(item), self.read(sources(item)[1], 32))]
        elif isinstance(target, Vector) and first == "mov":
            found = self._unpacked(item)
        elif first == "mov" and isinstance(item.operands[1], Vector):
            found = [self._packed(item.operands[1], item.opcode)]
        else:
            found = ptx_integers.result(item, self.read)
        names = list(_destinations(target))
        return {name: value for name, value in zip(names, found, strict=False) if name is not None}

    def _barrier(self, item: Instruction) -> Expr:
        return plain("ext.u", self.address(sources(item)[0]), bits=POINTER_BITS)

    def _unpacked(self, item: Instruction) -> list[Expr | None]:
        target = item.operands[0]
        assert isinstance(target, Vector)
        bits = ptx_integers.type_of(item.opcode)[1]
        if bits not in (32, 64) or bits % len(target.items):
            return [None] * len(target.items)
        whole, part = self.read(item.operands[1], bits), bits // len(target.items)
        return [
            plain("trunc", plain("shr.u", whole, const(i * part, bits), bits=bits), bits=part)
            for i in range(len(target.items))
        ]

    def _packed(self, vector: Vector, opcode: str) -> Expr | None:
        bits = ptx_integers.type_of(opcode)[1]
        if bits not in (32, 64) or bits % len(vector.items):
            return None
        part = bits // len(vector.items)
        whole = const(0, bits)
        for i, operand in enumerate(vector.items):
            piece = plain("ext.u", self.read(operand, part), bits=bits)
            whole = plain("or", whole, plain("shl", piece, const(i * part, bits), bits=bits), bits=bits)
        return whole

    # ------------------------------------------------------------------------------------------------------ loads

    def _load(self, item: Instruction) -> list[Expr | None]:
        """Of a parameter, or of global memory that nobody writes (``forget_loads`` takes back what somebody does)."""
        parts = item.parts
        letter, bits = ptx_integers.type_of(item.opcode)
        place = item.operands[1]
        count = len(item.operands[0].items) if isinstance(item.operands[0], Vector) else 1
        if letter == "f" or not bits or bits > _MAX_WIDE or not isinstance(place, Address):
            return [None] * count
        if parts[1].startswith("param"):
            return [self._parameter(place, i * bits // 8, bits) for i in range(count)]
        if "global" not in parts or not {"volatile", "relaxed", "acquire", "mmio"}.isdisjoint(parts):
            return [None] * count
        address = self.address(place, POINTER_BITS)
        root = root_of(address, self.roots)
        if root is None:
            return [None] * count
        found = []
        for i in range(count):
            at = plain("add", address, const(i * bits // 8, POINTER_BITS), bits=POINTER_BITS)
            found.append(expressions.load(root, at, bits))
        if "nc" in parts:
            self.constant.update(found)
        return list(found)

    def _parameter(self, place: Address, offset: int, bits: int) -> Expr | None:
        if not isinstance(place.base, Symbol) or place.base.name not in self.parameters:
            return None
        offset += place.base.offset + place.offset
        name = self.parameters[place.base.name]
        return expressions.uniform(f"{name}+{offset}" if offset else name, bits)


def root_of(address: Expr, roots: Mapping[Expr, str | None]) -> str | None:
    """The parameter that a global address is derived from. roots: of variables."""
    found: set[str] = set()
    seen: set[int] = set()
    work = [address]
    while work:
        at = work.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if at.op == "uniform" and at.bits == POINTER_BITS:
            found.add(at.value)
        elif at.op in ("add", "sub"):
            work.extend(at.args)
        elif at.op == "var" and at.bits == POINTER_BITS:
            root = roots.get(at)
            if root is not None:
                found.add(root)
        elif at.op in ("select", "load", "unknown"):
            return None
    return found.pop() if len(found) == 1 else None


def is_integer(item: Item, registers: Mapping[str, str]) -> bool:
    """Whether what an item makes is worth evaluating."""
    if isinstance(item, Wait):
        return False
    first = item.opcode.partition(".")[0]
    if first in ("ld", "ldu"):
        return "param" in item.opcode or "global" in item.opcode
    return first in ptx_integers.HANDLERS or _is_test(item) or first == "elect"


def _is_test(item: Instruction) -> bool:
    return item.opcode.startswith(("mbarrier.test_wait", "mbarrier.try_wait"))


def _destinations(target: Operand) -> list[str | None]:
    if isinstance(target, Register):
        return [target.name]
    if isinstance(target, Pair):
        return [*_destinations(target.first), *_destinations(target.second)]
    if isinstance(target, Vector):
        return [name for item in target.items for name in _destinations(item)]
    if isinstance(target, Sink):
        return [None]
    return [None]
