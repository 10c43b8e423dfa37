"""An instruction taken apart: the types and modifiers of its opcode, its operands as lanes.

An operation takes what it knows of the modifiers; what is left over is reported, so nothing is silently ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ptxdsl.ptx.module import Instruction, Operand, Pair, Sink
from ptxdsl.sim.translate.emitter import ELEMENTS, Emit, Emitter, Unsupported
from ptxdsl.sim.translate.ops_value import Build, Lanes, function

ROUNDINGS = ("rn", "rz", "rm", "rp")
INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
BITS = ("b16", "b32", "b64")
TYPES = frozenset(ELEMENTS) | {"b128", "s2f6x2"}


def is_signed(type: str) -> bool:
    return type.startswith("s")


def width(type: str) -> int:
    """Bits of a scalar type (``s16``: 16)."""
    return int(type.lstrip("busf"))


class Form:
    """types: of the opcode, in order (``cvt.rn.f16.f32``: f16, f32). The last is the type of most operands."""

    def __init__(self, e: Emitter, instruction: Instruction) -> None:
        self.e = e
        self.instruction = instruction
        self.name, *parts = instruction.parts
        self.types = [part for part in parts if part in TYPES]
        self._modifiers = [part for part in parts if part not in TYPES]

    # modifiers

    def has(self, modifier: str) -> bool:
        """Takes a modifier, and says whether it was there."""
        if modifier not in self._modifiers:
            return False
        self._modifiers.remove(modifier)
        return True

    def one_of(self, *modifiers: str) -> str | None:
        """Takes the first of these modifiers that is there."""
        return next((m for m in modifiers if self.has(m)), None)

    def needs(self, *modifiers: str) -> str:
        found = self.one_of(*modifiers)
        if found is None:
            raise Unsupported(f"one of .{', .'.join(modifiers)} is missing")
        return found

    def finish(self) -> None:
        """To be called when all modifiers have been taken."""
        if self._modifiers:
            raise Unsupported(f"modifier .{self._modifiers[0]}")

    # operands

    @property
    def type(self) -> str:
        """The last type of the opcode."""
        if not self.types:
            raise Unsupported("no type")
        return self.types[-1]

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.instruction.operands

    def count(self, *allowed: int) -> int:
        """The number of sources; an error where it is none of ``allowed``."""
        sources = len(self.operands) - 1
        if sources not in allowed:
            raise Unsupported(f"{sources + 1} operands")
        return sources

    def source(self, index: int, type: str | None = None) -> Lanes:
        """Source operand, from 0; type None: that of the opcode."""
        type = type or self.type
        if index + 1 >= len(self.operands):
            raise Unsupported("too few operands")
        return Lanes(self.e, ELEMENTS[type], self.e.read(self.operands[index + 1], type))

    def sources(self, count: int, type: str | None = None) -> list[Lanes]:
        self.count(count)
        return [self.source(i, type) for i in range(count)]

    def result(self, value: Lanes, type: str | None = None) -> None:
        """Writes the destination."""
        self.write(self.operands[0], value, type or self.type)

    def write(self, operand: Operand, value: Lanes, type: str) -> None:
        assert value.element == ELEMENTS[type], (value.type, type, self.instruction.opcode)
        self.e.write(operand, value.text, type)

    def apart(self, build: Build, *values: Lanes) -> Lanes:
        """The result of ``build`` on values, as a function that all instructions of this opcode share."""
        return function(f"ptx.{self.instruction.opcode.replace(':', '_')}.{len(values)}", build, *values)

    def two_results(self) -> tuple[Operand, Operand]:
        """``p|q``; a single destination has a sink beside it."""
        first = self.operands[0]
        return (first.first, first.second) if isinstance(first, Pair) else (first, Sink())


Operation = Callable[[Form], None]


def emits(operation: Operation) -> Emit:
    """An operation as ``LANE_OPS`` wants it."""

    def emit(e: Emitter, instruction: Instruction) -> None:
        form = Form(e, instruction)
        operation(form)
        form.finish()

    return emit


def by_type(choices: Mapping[str, Operation]) -> Operation:
    """The operation of an opcode's last type. choices: type -> operation; several types in one key, by spaces."""
    table = {type: operation for types, operation in choices.items() for type in types.split()}

    def operation(form: Form) -> None:
        chosen = table.get(form.type)
        if chosen is None:
            raise Unsupported(f"type .{form.type}")
        chosen(form)

    return operation
