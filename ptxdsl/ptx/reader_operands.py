"""Scopes of names, and operands read in them.

Source: PTX ISA, "Instruction Operands", "Identifiers", "Parameterized Variable Names".
"""

from __future__ import annotations

import re

from ptxdsl.ptx.module import (
    Address,
    Arguments,
    Immediate,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    TensorAddress,
    Vector,
)
from ptxdsl.ptx.reader_constants import WARP_SIZE, immediate, integer
from ptxdsl.ptx.reader_text import Refused

_NAME = re.compile(r"[A-Za-z_$%][\w$]*+", re.ASCII)
_NAME_AND_REST = re.compile(r"([A-Za-z_$%][\w$]*+)(\.\w++)?\s*+(?:([+-])\s*+(.+))?", re.ASCII | re.DOTALL)
_DIGITS = "0123456789"
_BRACKET = re.compile(r"[,()\[\]{}]")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_MAX_NESTING = 50

SPECIAL = re.compile(
    r"%(?:(?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)(?:\.[xyzw])?"
    r"|cluster_ctarank|cluster_nctarank|is_explicit_cluster|laneid|warpid|nwarpid|smid|nsmid|gridid"
    r"|lanemask_(?:eq|le|lt|ge|gt)|clock|clock_hi|clock64|globaltimer|globaltimer_lo|globaltimer_hi"
    r"|pm[0-7](?:_64)?|envreg(?:[12]?\d|3[01])|reserved_smem_offset_(?:begin|end|cap|[01])"
    r"|total_smem_size|aggr_smem_size|dynamic_smem_size|current_graph_exec)",
    re.ASCII,
)
_COMPONENTS = {".x": 0, ".y": 1, ".z": 2, ".w": 3, ".r": 0, ".g": 1, ".b": 2, ".a": 3}
_PARTS = frozenset((".b0", ".b1", ".b2", ".b3", ".h0", ".h1"))  # of a register, for video instructions
_SINK = Sink()


class Scope:
    """The names of one ``{ }``: registers, ranges of registers (``%r<100>``), variables and labels.

    suffix makes what is declared here unique in the function. ``cache`` has the operands already read here.
    """

    __slots__ = ("cache", "labels", "names", "parent", "ranges", "suffix", "types")

    def __init__(self, parent: Scope | None, suffix: str) -> None:
        self.parent = parent
        self.suffix = suffix
        self.names: dict[str, Operand] = {}
        self.types: dict[str, str] = {}
        self.ranges: dict[str, tuple[int, str, int]] = {}  # prefix -> count, type, elements
        self.labels: dict[str, str] = {}  # what it names: "label", ".branchtargets", ".callprototype"
        self.cache: dict[str, Operand] = {}

    def declare_register(self, name: str, type: str, elements: int) -> None:
        """elements: of a vector register, else 0. Raises Refused."""
        self._free(name)
        unique = name + self.suffix
        self.names[name] = _registers(unique, elements)
        self.types[name] = type

    def declare_range(self, prefix: str, count: int, type: str, elements: int = 0) -> None:
        if prefix in self.ranges:
            raise Refused("E0813", f"the registers {prefix}<…> are declared twice", prefix)
        self.ranges[prefix] = (count, type, elements)
        self.cache.clear()

    def declare_variable(self, name: str) -> str:
        """Gives the variable's unique name. Raises Refused."""
        self._free(name)
        self.names[name] = Symbol(name + self.suffix)
        return name + self.suffix

    def ranged(self, stem: str, digits: str) -> tuple[int, str, int] | None:
        """The range of this scope that a register is of. The prefix of a range may end in digits too."""
        for length in range(len(digits) if len(digits) < 12 else 0):
            counted = self.ranges.get(stem + digits[:length])
            number = digits[length:]
            if counted is not None and (number[0] != "0" or number == "0") and int(number) < counted[0]:
                return counted
        return None

    def _free(self, name: str) -> None:
        if name in self.names:
            raise Refused("E0813", f"{name} is declared twice", name)
        self.cache.clear()  # the same name may have been read as that of an outer scope


class Operands:
    """Reads the operands of one function.

    registers: those named, with their types. unknown: names that are no register and no variable of the function, with
    the statement that names them first; the module may have them.
    """

    def __init__(self) -> None:
        self.registers: dict[str, str] = {}
        self.unknown: dict[str, tuple[int, int]] = {}
        self.statement = (0, 0)

    def all(self, text: str, scope: Scope) -> tuple[Operand, ...]:
        """The operands of an instruction, from the text after its opcode. Raises Refused."""
        return tuple([self.one(piece, scope) for piece in split(text)])

    def one(self, text: str, scope: Scope) -> Operand:
        text = text.strip()
        found = scope.cache.get(text)
        if found is None:
            found = scope.cache[text] = self._read(text, scope, 0)
        return found

    def arguments(self, text: str, scope: Scope) -> Arguments:
        """``(a, b)`` of a call."""
        if not text.endswith(")"):
            raise Refused("E0810", "a list of arguments that does not end", text)
        return Arguments(self._items(text, scope, 0))

    def _items(self, text: str, scope: Scope, depth: int) -> tuple[Operand, ...]:
        """What stands between the brackets at both ends of the text."""
        inner = text[1:-1]
        return tuple([self._nested(piece, scope, depth) for piece in split(inner)]) if inner.strip() else ()

    def _nested(self, text: str, scope: Scope, depth: int) -> Operand:
        if depth > _MAX_NESTING:
            raise Refused("E0810", "operands nested too deeply")
        text = text.strip()
        found = scope.cache.get(text)
        if found is None:
            found = scope.cache[text] = self._read(text, scope, depth + 1)
        return found

    def _read(self, text: str, scope: Scope, depth: int) -> Operand:
        if not text:
            raise Refused("E0810", "an operand is missing")
        first = text[0]
        if first in "%$_" or first.isalpha():
            return self._named(text, scope, depth)
        if first == "[":
            return self._address(text, scope, depth)
        if first == "{":
            if text[-1] != "}":
                raise Refused("E0810", "an operand that is not understood", text)
            return Vector(self._items(text, scope, depth))
        if first == "!" and _NAME.fullmatch(text[1:].strip()):
            operand = self._nested(text[1:], scope, depth)
            if isinstance(operand, Register):
                return Not(operand)
            raise Refused("E0810", "only a register can stand after '!'", text)
        return immediate(text)

    def _named(self, text: str, scope: Scope, depth: int) -> Operand:
        match = _NAME_AND_REST.fullmatch(text)
        if match is None:
            first, bar, second = text.partition("|")
            if bar and first.strip() != "WARP_SZ":
                return Pair(self._nested(first, scope, depth), self._nested(second, scope, depth))
            if text.startswith("WARP_SZ"):
                return immediate(text)
            raise Refused("E0810", "an operand that is not understood", text)
        name, component, sign, offset = match.groups()
        if name == "_" and component is None and sign is None:
            return _SINK
        if name == "WARP_SZ":
            return Immediate(WARP_SIZE) if name == text else immediate(text)
        found = self.resolve(name, component, scope)
        if sign is None:
            return found
        if not isinstance(found, Symbol):
            raise Refused("E0810", "only an address has an offset outside of [ ]", text)
        return Symbol(found.name, integer(sign + offset if sign == "-" else offset))

    def resolve(self, name: str, component: str | None, scope: Scope | None) -> Operand:
        """What a name stands for in a scope. Raises Refused."""
        stem = name.rstrip(_DIGITS)
        digits = name[len(stem) :]
        at = scope
        while at is not None:
            found = at.names.get(name)
            if found is not None:
                return self._component(name, found, component, at.types.get(name, ""))
            if digits:
                counted = at.ranged(stem, digits)
                if counted is not None:
                    found = _registers(name + at.suffix, counted[2])
                    return self._component(name, found, component, counted[1])
            at = at.parent
        full = name if component is None else name + component
        if name[0] == "%":
            if SPECIAL.fullmatch(full):
                return Register(full)
            raise Refused("E0812", f"register {full} is not declared", full)
        if component is not None:
            raise Refused("E0812", f"{full} is not declared", full)
        self.unknown.setdefault(name, self.statement)
        return Symbol(name)

    def _component(self, name: str, found: Operand, component: str | None, type: str) -> Operand:
        """A register, vector register, component of one, or variable; registers are noted as named."""
        if isinstance(found, Vector):
            if component is None:
                for item in found.items:
                    assert isinstance(item, Register)
                    self.registers[item.name] = type
                return found
            index = _COMPONENTS.get(component, 4)
            if index < len(found.items):
                item = found.items[index]
                assert isinstance(item, Register)
                self.registers[item.name] = type
                return item
        if component in _PARTS and isinstance(found, Register):
            what = f"{name}{component}: bytes and halves of video instructions' operands are not supported"
            raise Refused("E0812", what, name + component)
        if component is not None:
            raise Refused("E0812", f"{name} has no component {component}", name + component)
        if isinstance(found, Register):
            self.registers[found.name] = type
        return found

    def _address(self, text: str, scope: Scope, depth: int) -> Operand:
        if text[-1] != "]":
            raise Refused("E0810", "an address that does not end", text)
        inner = text[1:-1].strip()
        if "," in inner:
            first, *rest = split(inner)
            coordinates = [self._nested(piece, scope, depth) for piece in rest]
            if len(coordinates) == 1 and isinstance(coordinates[0], Vector):
                return TensorAddress(self._base(first.strip(), scope), coordinates[0].items)
            return TensorAddress(self._base(first.strip(), scope), tuple(coordinates))
        return self._base(inner, scope)

    def _base(self, text: str, scope: Scope) -> Address:
        """What stands in the brackets of an address, without coordinates."""
        match = _NAME_AND_REST.fullmatch(text)
        if match is None or match[1] == "WARP_SZ":
            return Address(None, integer(text))
        name, component, sign, offset = match.groups()
        base = self.resolve(name, component, scope)
        if not isinstance(base, Register | Symbol):
            raise Refused("E0810", f"{name} cannot be an address", name)
        if sign is None:
            return Address(base)
        return Address(base, integer(sign + offset if sign == "-" else offset))


def _registers(name: str, elements: int) -> Operand:
    """What a declared register is: itself, or the vector of its components."""
    return Vector(tuple(Register(f"{name}.{c}") for c in "xyzw"[:elements])) if elements else Register(name)


def split(text: str) -> list[str]:
    """At the commas that stand in no brackets. Raises Refused where brackets do not match."""
    if "{" not in text and "[" not in text and "(" not in text:
        return text.split(",")
    pieces: list[str] = []
    open_brackets: list[str] = []
    start = 0
    for match in _BRACKET.finditer(text):
        character = match[0]
        if character == ",":
            if not open_brackets:
                pieces.append(text[start : match.start()])
                start = match.end()
        elif character in _CLOSING:
            open_brackets.append(_CLOSING[character])
        elif not open_brackets or open_brackets.pop() != character:
            raise Refused("E0810", f"{character!r} closes nothing")
    if open_brackets:
        raise Refused("E0810", f"{open_brackets[-1]!r} is missing")
    pieces.append(text[start:])
    return pieces
