"""A PTX module in memory: what the text says, with scopes made flat and nothing interpreted.

Source: PTX ISA, "Syntax", "State Spaces, Types, and Variables", "Instruction Operands", "Directives".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ptxdsl.record import dataclass, field

# Bytes of one element of a type. pred has none in memory; the opaque types are handles.
TYPE_BYTES = {
    "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "b32": 4, "u32": 4, "s32": 4,
    "f32": 4, "f16x2": 4, "bf16x2": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16, "e4m3": 1, "e5m2": 1,
    "texref": 8, "samplerref": 8, "surfref": 8, "pred": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Register:
    """``%r1``, or a special register: ``%tid.x`` (its name with the component). Unique in its function."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """value: an int as written (``-1`` stays negative), or the bits of a ``0f…``/``0d…`` constant.

    kind: ``int``, ``f32`` (value holds 32 bits) or ``f64`` (value holds 64 bits; decimal floating literals too).
    """

    value: int
    kind: str = "int"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, function or label, with a byte offset (``buf+8``)."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """``[base + offset]``. base None: an absolute address. A Symbol's own offset is 0 here."""

    base: Register | Symbol | None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class TensorAddress:
    """``[map, {c0, c1, …}]``: a tensor map and its coordinates (or the im2col offsets' vector)."""

    map: Address
    coordinates: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b, c, d}``."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """``%p|%q``: two destinations."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Not:
    """``!%p`` as an operand."""

    operand: Register


@dataclass(frozen=True, slots=True)
class Sink:
    """``_``: a result that nobody wants."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """A parenthesised list of a call: return values, or arguments."""

    items: tuple[Operand, ...]


Operand = Register | Immediate | Symbol | Address | TensorAddress | Vector | Pair | Not | Sink | Arguments


def named(operand: Operand) -> Iterator[Register | Symbol]:
    """The registers and symbols that an operand names, in its order."""
    if isinstance(operand, Register | Symbol):
        yield operand
    elif isinstance(operand, Address):
        if operand.base is not None:
            yield operand.base
    elif isinstance(operand, Vector | Arguments):
        for item in operand.items:
            yield from named(item)
    elif isinstance(operand, Pair):
        yield from named(operand.first)
        yield from named(operand.second)
    elif isinstance(operand, Not):
        yield operand.operand
    elif isinstance(operand, TensorAddress):
        yield from named(operand.map)
        for item in operand.coordinates:
            yield from named(item)


@dataclass(frozen=True, slots=True)
class Location:
    """A ``.loc``: the file as ``.file`` names it, line and column from 1 (column 0: unknown)."""

    file: str
    line: int
    column: int


@dataclass(slots=True, eq=False)
class Instruction:
    """One instruction. opcode: the whole dotted name as written (``ld.global.v4.f32``).

    guard: the predicate register and whether it is negated (``@!%p``), or None. line: of the PTX text, from 1.
    """

    opcode: str
    operands: tuple[Operand, ...]
    guard: tuple[Register, bool] | None
    line: int
    location: Location | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """``("ld", "global", "v4", "f32")``; a part may contain ``::`` (``shared::cta``)."""
        return _parts(self.opcode)


@lru_cache(4096)
def _parts(opcode: str) -> tuple[str, ...]:
    return tuple(opcode.split("."))


@dataclass(frozen=True, slots=True)
class Label:
    name: str
    line: int


@dataclass(slots=True)
class Variable:
    """A variable of a state space: module scope, function scope, or a parameter.

    space: ``global``, ``const``, ``shared``, ``local``, ``param``, or ``reg`` (a parameter or result of a ``.func``
    that is a register; ``Function.registers`` has it too). type: ``b8`` … of one element, without dot. shape: the
    dimensions, () for a scalar, a vector type's width last; None: extern array of unknown size
    (``.extern .shared .b8 x[]``). align, size: bytes (size None as for shape). initial: the bytes of the initialiser
    (fewer than size: the rest is zero); addresses of symbols in it are in ``relocations``: (byte offset, width in
    bytes, symbol).
    """

    name: str
    space: str
    type: str
    align: int
    size: int | None
    shape: tuple[int, ...] | None = ()
    initial: bytes | None = None
    relocations: tuple[tuple[int, int, Symbol], ...] = ()
    linkage: str = ""  # "", "extern", "visible", "weak", "common"
    line: int = 0


@dataclass(slots=True)
class Function:
    """A ``.entry`` (kernel) or a ``.func``. body: instructions and labels in the order of the text.

    Registers, variables and labels of inner ``{ }`` scopes carry a suffix that makes them unique (``p#1``); a vector
    register is its components (``v.x``). ``registers`` holds those that the body names, with their types without dot
    (``pred``, ``b32``, ``f64``, ``b128`` …). branch_targets: of each ``.branchtargets`` label the labels in order
    (``brx.idx``). prototypes: names of ``.callprototype`` labels. An alias is the same Function under a second name.
    extern: declared only. Launch bounds are tuples of up to three numbers as written, or None.
    """

    name: str
    is_kernel: bool
    parameters: tuple[Variable, ...] = ()
    returns: tuple[Variable, ...] = ()
    registers: dict[str, str] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    body: list[Instruction | Label] = field(default_factory=list)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: frozenset[str] = frozenset()
    extern: bool = False
    line: int = 0
    reqntid: tuple[int, ...] | None = None
    maxntid: tuple[int, ...] | None = None
    minnctapersm: int | None = None
    maxnreg: int | None = None
    reqnctapercluster: tuple[int, ...] | None = None
    explicit_cluster: bool = False
    blocks_are_clusters: bool = False


@dataclass(slots=True)
class Module:
    """version: (major, minor). target: the first ``.target`` name (``sm_90a``). text_name: for messages."""

    version: tuple[int, int]
    target: str
    address_size: int
    functions: dict[str, Function]
    variables: dict[str, Variable]
    text: str
    text_name: str = "<ptx>"

    @property
    def kernels(self) -> dict[str, Function]:
        return {name: f for name, f in self.functions.items() if f.is_kernel and not f.extern}
