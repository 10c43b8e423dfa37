"""The typed IR: structured SSA. Every value typed, every operation with a span, every kernel monomorphic.

Operations are uniform: a name, operands, results, attributes, nested blocks. Names and their meaning:

constants     a ``Const`` is a value, not an operation.
integers      ``add sub mul`` (wrap; attr ``nsw`` where the value feeds a pointer index alone), ``div.s div.u``
              (truncate), ``floordiv.s mod.s floordiv.u mod.u`` (floor, sign of the divisor), ``and or xor``,
              ``shl shr.s shr.u``, ``min.s min.u max.s max.u abs.s``. Nothing is undefined: a division by zero
              gives 0, MIN // -1 wraps, a shift by the width or more gives 0 (or the sign).
floats        ``fadd fsub fmul fdiv fneg ffloordiv fmod fmin fmax fabs fma``. ``fadd fsub fmul`` may contract.
comparisons   ``eq ne lt.s le.s gt.s ge.s lt.u le.u gt.u ge.u`` and ``feq fne flt fle fgt fge`` (ordered; fne
              unordered): i1 or a vector of i1. ``select`` (condition, then, else). ``not`` of an i1.
casts         ``ext.s ext.u trunc itof.s itof.u ftoi.s ftoi.u`` (saturating, NaN gives 0) ``fcast bitcast``.
pointers      ``ptr.add`` (pointer, integer index; attr ``scale`` bytes, ``offset`` bytes, ``unsigned`` for an unsigned
              index), ``ptr.cast`` (address space), ``ptr.toint``, ``int.toptr``.
memory        ``load`` / ``store`` (attrs ``align`` bytes, ``volatile``), ``alloca`` (attrs ``bytes align``),
              ``shared.alloc`` (attrs ``bytes align name``, ``element`` bytes of one element), ``shared.dynamic`` (attr
              ``align``).
vectors       ``vec.splat`` (scalar), ``vec.build`` (elements), ``vec.extract`` (vector, i32 index),
              ``vec.insert`` (vector, element, i32 index), ``vec.shuffle`` (a, b; attr ``mask``).
pipelines     ``pipe.new`` (full base, empty base; no result: where a RolePipeline value is made),
              ``pipe.wait`` (base, index i32, phase i32), ``pipe.arrive`` (base, index), ``pipe.commit_mma`` (base,
              index, and the electing i32 if given; attr ``cta_group``), ``pipe.step`` (index, phase, count) → the
              same three. Attrs: ``pipeline`` (the variable's name), ``method`` (as the user wrote it), ``producer``
              (bool), ``stages``, and where there is a base ``side`` (``full`` | ``empty``), ``subs`` (sub-stages of
              that table) and ``sub``. The barrier's address is base + 8 * (index * subs + sub).
instructions  every row of ``intrinsics/`` by its name; attrs hold its compile-time parameters.
others        ``string`` (attr ``text``: the generic address of a NUL-terminated constant), ``asm`` (attrs
              ``text constraints side_effects``), ``print`` (attr ``format``: a printf format, operands
              already promoted), ``assert`` (i1; attrs ``message``), ``trap``.
control       ``if`` (i1; two blocks), ``for`` (start, stop, *inits; attrs ``step`` (a non-zero int), ``signed``; block
              params are the index and the carried values), ``loop`` (*inits; block params are the carried values),
              ``scope`` (one block). Their results are the values handed to their end.
terminators   ``yield`` (values to the end of the enclosing if or scope), ``repeat`` (attr ``target``, a loop or for:
              next iteration with these carried values), ``leave`` (attr ``target``, a loop, for or scope: go to its
              end with these results), ``return``, ``unreachable``. A ``for`` whose range is exhausted ends with its
              carried values; a range is that of the integers, and ends where the next index would not fit its type.

Control flow is a tree, so every graph made from it is reducible. Values are visible in the rest of their block and in
the blocks nested there.
"""

from __future__ import annotations

from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.record import Slotted, field
from ptxdsl.source import Span

if TYPE_CHECKING:
    from ptxdsl.signature import KernelSignature


BITS = {
    "i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64,
    "f8e4m3": 8, "f8e5m2": 8, "ptr.generic": 64, "ptr.global": 64, "ptr.shared": 32, "ptr.const": 32,
    "ptr.local": 32, "ptr.param": 64, "ptr.cluster": 32,
}  # fmt: skip


class Ty:
    """A machine type: ``i1 i8 i16 i32 i64 f16 bf16 f32 f64 f8e4m3 f8e5m2``, ``ptr.<space>``; vectors have lanes > 1.

    There is one object of each: types are compared by identity. bits: of one lane; pointers have 32 in shared, const,
    local and cluster space, 64 elsewhere. space: of a pointer, generic, global, shared, const, local, param or cluster.
    """

    __slots__ = ("bits", "is_float", "is_int", "is_pointer", "lanes", "name", "space")

    name: str
    lanes: int
    bits: int
    is_int: bool
    is_float: bool
    is_pointer: bool
    space: str

    def __new__(cls, name: str, lanes: int = 1) -> Ty:
        known = _TYPES.get((name, lanes))
        if known is not None:
            return known
        made = super().__new__(cls)
        made.name, made.lanes, made.bits = name, lanes, BITS[name]
        made.is_int, made.is_float, made.is_pointer = name[0] == "i", name[0] in "fb", name.startswith("ptr.")
        made.space = name[4:]
        return _TYPES.setdefault((name, lanes), made)

    def __reduce__(self) -> tuple[type[Ty], tuple[str, int]]:
        return Ty, (self.name, self.lanes)

    @property
    def scalar(self) -> Ty:
        return Ty(self.name)

    @property
    def bytes(self) -> int:
        """In memory: an i1 takes a byte."""
        return max(self.bits // 8, 1) * self.lanes

    def __repr__(self) -> str:
        return f"Ty({self})"

    def __str__(self) -> str:
        return self.name if self.lanes == 1 else f"{self.name}x{self.lanes}"


_TYPES: dict[tuple[str, int], Ty] = {}

I1, I8, I16, I32, I64 = Ty("i1"), Ty("i8"), Ty("i16"), Ty("i32"), Ty("i64")
F16, BF16, F32, F64 = Ty("f16"), Ty("bf16"), Ty("f32"), Ty("f64")
F8E4M3, F8E5M2 = Ty("f8e4m3"), Ty("f8e5m2")


def ptr(space: str) -> Ty:
    return Ty("ptr." + space)


class Value:
    """An SSA value; identity is what counts. ``name`` is a hint for printing."""

    __slots__ = ("name", "ty")

    def __init__(self, ty: Ty, name: str = "") -> None:
        self.ty = ty
        self.name = name


class Const(Value):
    """A constant: int (two's complement, kept signed; i1 as 0 or 1), float, or a tuple of them for a vector."""

    __slots__ = ("value",)

    def __init__(self, ty: Ty, value: Any) -> None:
        super().__init__(ty)
        self.value = value


class Block(metaclass=Slotted, frozen=False):
    params: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)

    @property
    def terminator(self) -> Op | None:
        return self.ops[-1] if self.ops and self.ops[-1].name in TERMINATORS else None


TERMINATORS = frozenset({"yield", "repeat", "leave", "return", "unreachable"})


class Op(metaclass=Slotted, frozen=False):
    """``span`` is the user's own text: code of the standard library carries the span of the user's call."""

    name: str
    operands: list[Value]
    results: list[Value]
    attrs: dict[str, Any]
    span: Span
    blocks: list[Block] = field(default_factory=list)

    @property
    def result(self) -> Value:
        return self.results[0]


class Kernel(metaclass=Slotted, frozen=False):
    """One entry point. ``params`` correspond to ``signature.params`` one to one, struct parameters flattened."""

    name: str
    params: list[Value]
    body: Block
    signature: KernelSignature
    span: Span


class Module(metaclass=Slotted, frozen=False):
    kernels: list[Kernel]


def walk(block: Block) -> list[Op]:
    """Every operation in and below a block, in program order, an operation before what is nested in it."""
    found: list[Op] = []  # generators inside of generators would take thrice the time
    _collect(block, found)
    return found


def _collect(block: Block, found: list[Op]) -> None:
    add = found.append
    for op in block.ops:
        add(op)
        if op.blocks:
            for inner in op.blocks:
                _collect(inner, found)
