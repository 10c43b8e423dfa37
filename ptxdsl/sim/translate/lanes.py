"""The Emitter of lane-wise code: registers as vectors of one chunk of lanes, slots of the register file around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ptxdsl.ptx.module import Address, Immediate, Instruction, Not, Operand, Pair, Register, Sink, Symbol, Vector
from ptxdsl.sim.program.symbols import Symbols
from ptxdsl.sim.translate.emitter import ELEMENTS, FLOATS, WIDTH, Unsupported, element_bits, splat, vector
from ptxdsl.sim.translate.slots import Slot, register_bits
from ptxdsl.sim.translate.special import SPECIAL, broadcast

_SIGNED = frozenset(("s8", "s16", "s32"))
# The code generator's time grows with the square of the loads in one block of LLVM's.
MAX_LOADS = 64


class LaneEmitter:
    """Appends the IR of lane-wise instructions to ``text``; ``start`` begins a chunk, ``finish`` stores slots."""

    def __init__(self, registers: Mapping[str, str], slots: Mapping[str, Slot], symbols: Symbols, traced: bool) -> None:
        self.registers = registers
        self.slots = slots
        self.symbols = symbols
        self.text: list[str] = []
        self.definitions: dict[str, str] = {}
        self.declared: dict[str, str] = {}
        self.count = 0
        self.guard: str | None = None  # of the current instruction: <8 x i1>, or None for all lanes of the mask
        self.site = 0  # the current instruction's number
        self.ahead = 0  # by how many instructions `issued` is ahead of it
        self.traced = traced  # whether memory accesses go to the access log
        self.accesses = False  # whether the block has instructions that may fault

    # ------------------------------------------------------------------ one block

    def start(self, index: str, mask: str, byte: str, label: str) -> None:
        """index: the chunk's first lane, i64. mask, byte: its active lanes (a vector, an i8). label: of this code."""
        self.index, self.mask, self.byte = index, mask, byte
        self.label = label
        self.loads = 0
        self.values: dict[str, dict[str, str]] = {}  # register -> element type -> value
        self.dirty: dict[str, None] = {}
        self.old: dict[str, str] = {}  # what the slot held at the start, as stored
        self.bases: dict[int, str] = {}
        self.specials: dict[str, str] = {}

    def finish(self, wanted: Callable[[str], bool]) -> None:
        """Stores the registers that were written and are wanted by later blocks, in the lanes of the mask."""
        for name in self.dirty:
            slot = self.slots.get(name)
            if slot is None or not wanted(name):
                continue
            if slot.bits == 128:
                for half in ("low", "high"):
                    self._blend(name, half, self.values[name][half], "i64", slot, 256 if half == "high" else 0)
                continue
            if slot.is_predicate:
                value = self.do(f"sext {vector('i1')} {self._as(name, 'i1')} to {vector('i32')}")
                self._blend(name, "", value, "i32", slot, 0)
                continue
            forms = self.values[name]
            element = next(iter(forms))
            self._blend(name, element, forms[element], element, slot, 0)

    def _blend(self, name: str, key: str, value: str, element: str, slot: Slot, extra: int) -> None:
        pointer = self._pointer(slot, extra)
        type = vector(element)
        old = self.old.get(f"{name}/{key}")
        if old is None:
            old = self._load(element, pointer)
        blended = self.do(f"select {vector('i1')} {self.mask}, {type} {value}, {type} {old}")
        self.run(f"store {type} {blended}, ptr {pointer}, align 2")

    def _load(self, element: str, pointer: str) -> str:
        if self.loads == MAX_LOADS:
            self.loads = 0
            self.count += 1
            self.label = f"m{self.count}"
            self.text.append(f" br label %{self.label}\n{self.label}:\n")
        self.loads += 1
        return self.do(f"load {vector(element)}, ptr {pointer}, align 2")

    def _pointer(self, slot: Slot, extra: int = 0) -> str:
        bits = min(slot.bits, 64)
        base = self.bases.get(bits)
        if base is None:
            base = self.bases[bits] = self.do(f"getelementptr i{bits}, ptr %regs, i64 {self.index}")
        return self.do(f"getelementptr i8, ptr {base}, i64 {slot.offset + extra}")

    # ------------------------------------------------------------------ the protocol

    def do(self, text: str) -> str:
        self.count += 1
        name = f"%v{self.count}"
        self.text.append(f" {name} = {text}\n")
        return name

    def run(self, text: str) -> None:
        """Appends an instruction without a result."""
        self.text.append(f" {text}\n")

    def call(self, result: str, function: str, *arguments: str) -> str:
        if function not in self.definitions and function not in self.declared and not function.startswith("rt."):
            types = ", ".join(_argument_type(argument) for argument in arguments)
            self.declared[function] = f"declare {result} @{function}({types})\n"
        call = f"call {result} @{function}({', '.join(arguments)})"
        if result == "void":
            self.run(call)
            return ""
        return self.do(call)

    def define(self, name: str, text: str) -> None:
        self.definitions.setdefault(name, text if text.endswith("\n") else text + "\n")

    def read(self, operand: Operand, type: str) -> str:
        element = ELEMENTS.get(type)
        if element is None:
            raise Unsupported(f"type .{type}")
        if isinstance(operand, Register):
            return self._read_register(operand.name, element, type)
        if isinstance(operand, Immediate):
            return self._immediate(operand, element, type)
        if isinstance(operand, Not):
            value = self._read_register(operand.operand.name, element, type)
            return self.do(f"xor {vector(element)} {value}, {splat(element, -1)}")
        if isinstance(operand, Symbol):
            return self._resize(self.symbol_address(operand), "i64", element)
        if isinstance(operand, Vector):
            return self._pack(operand, element)
        raise Unsupported("an operand of this kind is not taken here")

    def write(self, operand: Operand, value: str, type: str) -> None:
        element = ELEMENTS.get(type)
        if element is None:
            raise Unsupported(f"type .{type}")
        if isinstance(operand, Sink):
            return
        if isinstance(operand, Register):
            self._write_register(operand.name, value, element, type)
        elif isinstance(operand, Vector):
            self._unpack(operand, value, element)
        elif isinstance(operand, Pair):
            raise Unsupported("two destinations where there is one result")
        else:
            raise Unsupported("the destination is not a register")

    def read128(self, operand: Operand) -> tuple[str, str]:
        if isinstance(operand, Register):
            if self.registers.get(operand.name) != "b128":
                raise Unsupported(f"{operand.name} is not a register of 128 bits")
            forms = self._forms(operand.name)
            return forms["low"], forms["high"]
        if isinstance(operand, Vector) and len(operand.items) == 2:
            return self.read(operand.items[0], "b64"), self.read(operand.items[1], "b64")
        if isinstance(operand, Immediate) and operand.kind == "int":
            return splat("i64", operand.value), splat("i64", operand.value >> 64)
        raise Unsupported("an operand of 128 bits is a register or a vector of two")

    def write128(self, operand: Operand, low: str, high: str) -> None:
        if isinstance(operand, Vector) and len(operand.items) == 2:
            self.write(operand.items[0], low, "b64")
            self.write(operand.items[1], high, "b64")
            return
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Register) or self.registers.get(operand.name) != "b128":
            raise Unsupported("a result of 128 bits goes to a register or a vector of two")
        name = operand.name
        if self.guard is not None:
            old = self._forms(name)
            low, high = (
                self.do(f"select {vector('i1')} {self.guard}, {vector('i64')} {new}, {vector('i64')} {before}")
                for new, before in ((low, old["low"]), (high, old["high"]))
            )
        self.values[name] = {"low": low, "high": high}
        self.dirty[name] = None

    # ------------------------------------------------------------------ registers

    def begin(self, instruction: Instruction) -> None:
        """Sets the guard of an instruction."""
        self.guard = None
        if instruction.guard is not None:
            register, negated = instruction.guard
            value = self._read_register(register.name, "i1", "pred")
            if negated:
                value = self.do(f"xor {vector('i1')} {value}, {splat('i1', 1)}")
            self.guard = value

    def active(self) -> str:
        """The lanes that execute the current instruction, as an i8."""
        if self.guard is None:
            return self.byte
        both = self.do(f"and {vector('i1')} {self.guard}, {self.mask}")
        return self.do(f"bitcast {vector('i1')} {both} to i{WIDTH}")

    def bits_of(self, name: str) -> int:
        """Bits of a register as it is kept. Raises Unsupported for one that is not declared."""
        if name in SPECIAL:
            return int(SPECIAL[name].element[1:])
        type = self.registers.get(name)
        if type is None:
            raise Unsupported(f"{name} is not a register of this function, nor a special register of the simulator")
        return register_bits(type)

    def _forms(self, name: str) -> dict[str, str]:
        """A register's value by element type; loaded from its slot the first time that a block wants it."""
        forms = self.values.get(name)
        if forms is not None:
            return forms
        bits = self.bits_of(name)
        slot = self.slots.get(name)
        if slot is None:
            forms = (
                {"low": "zeroinitializer", "high": "zeroinitializer"}
                if bits == 128
                else {f"i{bits}": "zeroinitializer"}
            )
        elif bits == 128:
            forms = {}
            for half, extra in (("low", 0), ("high", 256)):
                forms[half] = self._load("i64", self._pointer(slot, extra))
                self.old[f"{name}/{half}"] = forms[half]
        elif bits == 1:
            stored = self._load("i32", self._pointer(slot))
            self.old[f"{name}/"] = stored
            forms = {"i1": self.do(f"icmp slt {vector('i32')} {stored}, zeroinitializer")}
        else:
            element = {"f32": "float", "f64": "double"}.get(self.registers[name], f"i{bits}")
            loaded = self._load(element, self._pointer(slot))
            self.old[f"{name}/{element}"] = loaded
            forms = {element: loaded}
        self.values[name] = forms
        return forms

    def _as(self, name: str, element: str) -> str:
        """A register's value as an element type of its own width."""
        forms = self._forms(name)
        value = forms.get(element)
        if value is None:
            have, known = next(iter(forms.items()))
            if known == "zeroinitializer":
                value = known
            else:
                value = self.do(f"bitcast {vector(have)} {known} to {vector(element)}")
            forms[element] = value
        return value

    def _read_register(self, name: str, element: str, type: str) -> str:
        special = SPECIAL.get(name)
        if special is not None:
            value = self.specials.get(name)
            if value is None:
                value = special.read(self)
                if not special.changes:
                    self.specials[name] = value
            return self._resize(value, special.element, element)
        bits = self.bits_of(name)
        wanted = element_bits(element)
        if wanted > bits or bits == 128 or (bits == 1) != (wanted == 1):
            raise Unsupported(f"{name} is a .{self.registers[name]} register, and .{type} is wanted")
        if wanted == bits:
            return self._as(name, element)
        value = self.do(f"trunc {vector(f'i{bits}')} {self._as(name, f'i{bits}')} to {vector(f'i{wanted}')}")
        if element in FLOATS:
            value = self.do(f"bitcast {vector(f'i{wanted}')} {value} to {vector(element)}")
        return value

    def _write_register(self, name: str, value: str, element: str, type: str) -> None:
        if name in SPECIAL:
            raise Unsupported(f"{name} cannot be written")
        bits = self.bits_of(name)
        have = element_bits(element)
        if have > bits or bits == 128 or (bits == 1) != (have == 1):
            raise Unsupported(f"{name} is a .{self.registers[name]} register, and gets a .{type}")
        if have < bits:
            if element in FLOATS:
                value = self.do(f"bitcast {vector(element)} {value} to {vector(f'i{have}')}")
            extend = "sext" if type in _SIGNED else "zext"
            value = self.do(f"{extend} {vector(f'i{have}')} {value} to {vector(f'i{bits}')}")
            element = f"i{bits}"
        if self.guard is not None:
            old = self._as(name, element)
            vec = vector(element)
            value = self.do(f"select {vector('i1')} {self.guard}, {vec} {value}, {vec} {old}")
        self.values[name] = {element: value}
        self.dirty[name] = None

    def _resize(self, value: str, have: str, element: str) -> str:
        """An integer value in an element type, cut or extended by zeros."""
        wanted = element_bits(element)
        bits = element_bits(have)
        if wanted != bits:
            step = "trunc" if wanted < bits else "zext"
            value = self.do(f"{step} {vector(have)} {value} to {vector(f'i{wanted}')}")
        if element in FLOATS:
            value = self.do(f"bitcast {vector(f'i{wanted}')} {value} to {vector(element)}")
        return value

    # ------------------------------------------------------------------ constants, vectors

    def _immediate(self, operand: Immediate, element: str, type: str) -> str:
        value = operand.value
        if operand.kind == "f64" and element in ("float", "i32") and type in ("f32", "b32", "tf32"):
            value = int(np.array([value], np.uint64).view(np.float64).astype(np.float32).view(np.uint32)[0])
        elif operand.kind == "f32" and element == "double":
            value = int(np.array([value], np.uint32).view(np.float32).astype(np.float64).view(np.uint64)[0])
        elif operand.kind == "int" and type in ("f32", "f64"):
            raise Unsupported("an integer where a floating-point constant is wanted")
        if operand.kind == "int" and element == "i1":
            value = int(value != 0)
        return splat(element, value)

    def symbol_address(self, operand: Symbol) -> str:
        """A variable's address in its own space, as i64 lanes."""
        place = self.symbols.places.get(operand.name)
        if place is None:
            raise Unsupported(f"the address of {operand.name}, which is not a variable")
        address = splat("i64", place.address + operand.offset)
        if place.variable.space == "shared":
            return self.do(f"add {vector('i64')} {broadcast(self, '%rank_base', 'i64')}, {address}")
        return address

    def address(self, operand: Operand) -> str:
        """What ``[…]`` says, as i64 lanes; a 32-bit base is extended by zeros after the offset is added."""
        if not isinstance(operand, Address):
            raise Unsupported("an address in brackets is wanted")
        base, offset = operand.base, operand.offset
        if base is None:
            return splat("i64", offset)
        if isinstance(base, Symbol):
            return self.symbol_address(Symbol(base.name, base.offset + offset))
        bits = self.bits_of(base.name)
        if bits not in (32, 64):
            raise Unsupported("an address register has 32 or 64 bits")
        element = f"i{bits}"
        value = self._read_register(base.name, element, f"b{bits}")
        if offset:
            value = self.do(f"add {vector(element)} {value}, {splat(element, offset)}")
        return value if bits == 64 else self.do(f"zext {vector('i32')} {value} to {vector('i64')}")

    def _pack(self, operand: Vector, element: str) -> str:
        wanted = element_bits(element)
        count = len(operand.items)
        if not count or wanted % count or wanted // count < 8:
            raise Unsupported("a vector that does not fill its type")
        part = wanted // count
        result = ""
        for i, item in enumerate(operand.items):
            value = splat(f"i{part}", 0) if isinstance(item, Sink) else self.read(item, f"b{part}")
            value = self.do(f"zext {vector(f'i{part}')} {value} to {vector(f'i{wanted}')}")
            if i:
                value = self.do(f"shl {vector(f'i{wanted}')} {value}, {splat(f'i{wanted}', part * i)}")
                result = self.do(f"or {vector(f'i{wanted}')} {result}, {value}")
            else:
                result = value
        if element in FLOATS:
            result = self.do(f"bitcast {vector(f'i{wanted}')} {result} to {vector(element)}")
        return result

    def _unpack(self, operand: Vector, value: str, element: str) -> None:
        have = element_bits(element)
        count = len(operand.items)
        if not count or have % count or have // count < 8:
            raise Unsupported("a vector that does not fill its type")
        if element in FLOATS:
            value = self.do(f"bitcast {vector(element)} {value} to {vector(f'i{have}')}")
        part = have // count
        for i, item in enumerate(operand.items):
            if isinstance(item, Sink):
                continue
            piece = value
            if i:
                piece = self.do(f"lshr {vector(f'i{have}')} {value}, {splat(f'i{have}', part * i)}")
            if part < have:
                piece = self.do(f"trunc {vector(f'i{have}')} {piece} to {vector(f'i{part}')}")
            self.write(item, piece, f"b{part}")


def _argument_type(argument: str) -> str:
    """The type in front of a value: ``<8 x i32> %a`` or ``ptr %p``."""
    if argument.startswith("<"):
        return argument[: argument.index(">") + 1]
    return argument.partition(" ")[0]
