"""Declarations of variables and registers: ``.global .align 8 .u64 table[2] = {generic(a), b+8};``

Source: PTX ISA, "Variables", "State Spaces", "Performance-Tuning Directives" (``.attribute``).
"""

from __future__ import annotations

import re

from ptxdsl.ptx.module import TYPE_BYTES, Symbol, Variable
from ptxdsl.ptx.reader_constants import immediate, initial_bytes, integer
from ptxdsl.ptx.reader_operands import split
from ptxdsl.ptx.reader_text import Refused
from ptxdsl.record import dataclass

SPACES = ("global", "const", "shared", "local", "param", "reg", "tex")
MAX_VARIABLE = 1 << 40  # bytes; no card has more
MAX_INITIAL = 1 << 26
_MAX_DIMENSIONS = 16

_PART = re.compile(
    r"\s*+\.(?:align\s++(?P<align>\d++)|attribute\s*+\((?:[^()]|\([^()]*+\))*+\)|(?P<word>\w++))",
    re.ASCII,
)
_DECLARATOR = re.compile(
    r"\s*+([A-Za-z_$%][\w$]*+)\s*+(?:<\s*+(\d++)\s*+>\s*+)?((?:\[[^\[\]]*+\]\s*+)*+)(?:=\s*+(.*))?",
    re.ASCII | re.DOTALL,
)
_DIMENSION = re.compile(r"\[([^\[\]]*)\]")
_PLAIN = re.compile(r"[-\d,\s]+", re.ASCII)
_OCTAL = re.compile(r"(?<!\d)0\d", re.ASCII)
_ADDRESS = re.compile(
    r"(?:(generic)\s*+\(|(0[xX][0-9a-fA-F]++|\d++)\s*+\()?\s*+([A-Za-z_$%][\w$]*+)\s*+([+-][^()]++)?(\))?\s*+([+-].*)?",
    re.ASCII | re.DOTALL,
)


@dataclass(slots=True)
class Declaration:
    """What stands before the names. elements: of a ``.v2``/``.v4`` type, else 0."""

    space: str
    type: str
    align: int
    elements: int
    rest: str


@dataclass(slots=True)
class Declarator:
    """One name of a declaration. count: of a register range (``%r<100>``)."""

    name: str
    count: int | None
    dimensions: tuple[int | None, ...]
    initial: str | None


def declaration(text: str) -> Declaration:
    """text: from the state space on. Raises Refused."""
    space = type = ""
    align = elements = at = 0
    while (match := _PART.match(text, at)) is not None:
        at = match.end()
        word = match["word"]
        if match["align"] is not None:
            align = integer(match["align"])
            if align <= 0 or align & (align - 1) or align > MAX_VARIABLE:
                raise Refused("E0816", f"an alignment is a power of two, and {match['align']} is none", match["align"])
        elif word is None:
            continue
        elif word in TYPE_BYTES:
            type = word
        elif word in ("v2", "v4"):
            elements = int(word[1])
        elif word in SPACES:
            space = space or word  # `.param .u64 .ptr .global x`: the first is the variable's
        elif word not in ("ptr", "noreturn"):
            raise Refused("E0811", f".{word} is not known in a declaration", f".{word}")
    if not space or not type:
        raise Refused("E0816", "a declaration has a state space and a type")
    return Declaration(space, type, align, elements, text[at:])


def declarators(text: str) -> list[Declarator]:
    """The names of a declaration. Raises Refused."""
    result = []
    for piece in split(text):
        match = _DECLARATOR.fullmatch(piece)
        if match is None:
            raise Refused("E0816", "expected a name", piece.strip()[:60])
        dimensions = tuple(_dimension(d) for d in _DIMENSION.findall(match[3]))
        if len(dimensions) > _MAX_DIMENSIONS:
            raise Refused("E0816", f"more than {_MAX_DIMENSIONS} dimensions", match[1])
        count = None if match[2] is None else integer(match[2])
        result.append(Declarator(match[1], count, dimensions, match[4]))
    return result


def _dimension(text: str) -> int | None:
    if not text.strip():
        return None
    value = integer(text.strip())
    if not 0 <= value <= MAX_VARIABLE:
        raise Refused("E0816", "an array is too large", text.strip())
    return value


def variable(of: Declaration, one: Declarator, linkage: str, line: int) -> Variable:
    """Raises Refused."""
    if one.count is not None:
        raise Refused("E0816", "only registers are declared as a range", one.name)
    element = TYPE_BYTES[of.type] * max(of.elements, 1)
    dimensions = one.dimensions + ((of.elements,) if of.elements else ())
    initial: bytes | None = None
    relocations: tuple[tuple[int, int, Symbol], ...] = ()
    if one.initial is not None:
        values = _Initialiser(of.type, dimensions, one.initial)
        initial, relocations = bytes(values.data), values.merged()
        if dimensions and dimensions[0] is None:
            inner = values.strides[0]
            dimensions = (-(-len(initial) // inner) if inner else 0, *dimensions[1:])
    shape: tuple[int, ...] | None = None
    size: int | None = None
    if None not in dimensions:
        shape = tuple(d for d in dimensions if d is not None)
        size = TYPE_BYTES[of.type]
        for dimension in shape:
            size *= dimension
        if size > MAX_VARIABLE:
            raise Refused("E0816", f"{one.name} is too large", one.name)
    elif None in dimensions[1:]:
        raise Refused("E0816", "only the first dimension of an array can be left open", one.name)
    align = of.align or element
    return Variable(one.name, of.space, of.type, align, size, shape, initial, relocations, linkage, line)


class _Initialiser:
    """Bytes and addresses of ``= …``, laid out by the dimensions; a row in inner braces is filled with zeros."""

    def __init__(self, type: str, dimensions: tuple[int | None, ...], text: str) -> None:
        self.type = type
        self.width = TYPE_BYTES[type]
        self.data = bytearray()
        self.addresses: list[tuple[int, int, Symbol]] = []
        self.masked: list[tuple[int, int, Symbol]] = []  # (byte offset, shift in bytes, symbol)
        # bytes of one item at each depth of braces
        self.strides = [self.width] * len(dimensions)
        for depth in range(len(dimensions) - 2, -1, -1):
            self.strides[depth] = self.strides[depth + 1] * (dimensions[depth + 1] or 0)
        text = text.strip()
        if text.startswith("{") and not dimensions:
            raise Refused("E0816", "a scalar is initialised without braces", text[:60])
        if not text.startswith("{") and dimensions:
            raise Refused("E0816", "an array is initialised in braces", text[:60])
        if dimensions:
            self.row(text, 0, None if dimensions[0] is None else dimensions[0] * self.strides[0])
        else:
            self.item(text)

    def row(self, text: str, depth: int, size: int | None) -> None:
        """``{…}`` whose items are of ``strides[depth]`` bytes; size: of the whole row."""
        if not text.endswith("}"):
            raise Refused("E0816", "braces do not match", text[:60])
        start = len(self.data)
        inner = text[1:-1]
        if self.type[0] != "f" and _PLAIN.fullmatch(inner) and not _OCTAL.search(inner):
            self.plain(inner)
        elif inner.strip():
            for piece in split(inner):
                piece = piece.strip()
                if piece.startswith("{"):
                    if depth + 1 >= len(self.strides):
                        raise Refused("E0816", "more braces than the array has dimensions", piece[:60])
                    self.row(piece, depth + 1, self.strides[depth])
                else:
                    self.item(piece)
        used = len(self.data) - start
        if size is not None and used > size:
            raise Refused("E0816", "more values than the array has elements", text[:60])
        if depth and size is not None:
            if size > MAX_INITIAL or len(self.data) + size > MAX_INITIAL:
                raise Refused("E0816", f"an initialiser of more than {MAX_INITIAL} bytes", text[:60])
            self.data.extend(bytes(size - used))

    def plain(self, text: str) -> None:
        """Decimal integers, the common case of large tables."""
        mask = (1 << 8 * self.width) - 1
        try:
            values = [int(piece) & mask for piece in text.split(",")]
        except ValueError:
            raise Refused("E0814", "this is neither a number nor a constant expression", text.strip()[:60]) from None
        if self.width == 1:
            self.data.extend(values)
        else:
            self.data.extend(b"".join([value.to_bytes(self.width, "little") for value in values]))

    def item(self, text: str) -> None:
        match = _ADDRESS.fullmatch(text)
        if match is None or match[3] == "WARP_SZ":
            self.data.extend(initial_bytes(text, self.type, self.width))
            return
        generic, mask, name, inner, closed, outer = match.groups()
        if (closed is None) != (generic is None and mask is None):
            raise Refused("E0816", "brackets do not match", text)
        offset = sum(_signed(piece) for piece in (inner, outer) if piece is not None)
        at = len(self.data)
        symbol = Symbol(name, offset)
        if mask is not None:
            self.masked.append((at, _byte_of_mask(mask), symbol))
        elif self.width < 4:
            raise Refused("E0816", f"an address does not fit into .{self.type}", text)
        else:
            self.addresses.append((at, self.width, symbol))
        self.data.extend(bytes(self.width))

    def merged(self) -> tuple[tuple[int, int, Symbol], ...]:
        """The addresses, those written byte by byte (``0xFF(x), 0xFF00(x), …``) put together."""
        result = list(self.addresses)
        index = 0
        while index < len(self.masked):
            start, shift, symbol = self.masked[index]
            count = 0
            while index < len(self.masked) and self.masked[index] == (start + count, shift + count, symbol):
                count += 1
                index += 1
            if shift or self.width != 1:
                raise Refused(
                    "E0816", "only all bytes of an address, from the lowest on, can be taken with masks", symbol.name
                )
            result.append((start, count, symbol))
        return tuple(sorted(result, key=lambda address: address[0]))


def _signed(text: str) -> int:
    value = integer(text[1:].strip())
    return -value if text[0] == "-" else value


def _byte_of_mask(text: str) -> int:
    mask = immediate(text).value
    for byte in range(8):
        if mask == 0xFF << 8 * byte:
            return byte
    raise Refused("E0816", "a mask takes one byte of an address: 0xFF, 0xFF00, …", text)
