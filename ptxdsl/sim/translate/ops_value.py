"""Vectors of lane values under construction: operators append LLVM IR to an emitter and give the result.

``a + b`` on vectors of floats is ``fadd``, of integers ``add``; a Python number is a constant vector of the other
operand's type. Comparisons are methods, since their meaning depends on the sign.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Protocol

from ptxdsl.sim.translate.emitter import FLOATS, WIDTH, constant, element_bits

Number = int | float


class Code(Protocol):
    """Where instructions go: an ``Emitter``, or the body of a function that one calls."""

    def do(self, text: str) -> str: ...
    def call(self, result: str, function: str, *arguments: str) -> str: ...
    def define(self, name: str, text: str) -> None: ...


def bits_of(element: str, value: Number) -> int:
    """The bits of a constant of the element type."""
    if element == "float":
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    if element == "double":
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    return int(value) & ((1 << element_bits(element)) - 1)


class Lanes:
    """count values of one element type; count 0: a scalar, in a helper function that takes lanes one by one."""

    __slots__ = ("code", "count", "element", "text")

    def __init__(self, code: Code, element: str, text: str, count: int = WIDTH) -> None:
        self.code, self.element, self.text, self.count = code, element, text, count

    @property
    def type(self) -> str:
        return f"<{self.count} x {self.element}>" if self.count else self.element

    @property
    def typed(self) -> str:
        return f"{self.type} {self.text}"

    @property
    def bits(self) -> int:
        """The width of an element."""
        return element_bits(self.element)

    @property
    def is_float(self) -> bool:
        return self.element in FLOATS

    # construction

    def like(self, value: Number | Lanes) -> Lanes:
        """A constant of this vector's type, given by its value."""
        if isinstance(value, Lanes):
            assert value.type == self.type, (value.type, self.type)
            return value
        return self.pattern(bits_of(self.element, value))

    def pattern(self, bits: int) -> Lanes:
        """A constant of this vector's type, given by its bits."""
        text = constant(self.element, bits)
        return self._new(f"splat ({self.element} {text})" if self.count else text)

    def _new(self, text: str, element: str | None = None, count: int | None = None) -> Lanes:
        return Lanes(self.code, element or self.element, text, self.count if count is None else count)

    def _binary(self, integer: str, floating: str | None, other: Number | Lanes) -> Lanes:
        right = self.like(other)
        operation = floating if self.is_float else integer
        assert operation, (integer, self.type)
        return self._new(self.code.do(f"{operation} {self.typed}, {right.text}"))

    # arithmetic

    def __add__(self, other: Number | Lanes) -> Lanes:
        return self._binary("add", "fadd", other)

    def __sub__(self, other: Number | Lanes) -> Lanes:
        return self._binary("sub", "fsub", other)

    def __mul__(self, other: Number | Lanes) -> Lanes:
        return self._binary("mul", "fmul", other)

    def __truediv__(self, other: Number | Lanes) -> Lanes:
        return self._binary("", "fdiv", other)

    def __rsub__(self, other: Number) -> Lanes:
        return self.like(other) - self

    def __rtruediv__(self, other: Number) -> Lanes:
        return self.like(other) / self

    def __and__(self, other: Number | Lanes) -> Lanes:
        return self._binary("and", None, other)

    def __or__(self, other: Number | Lanes) -> Lanes:
        return self._binary("or", None, other)

    def __xor__(self, other: Number | Lanes) -> Lanes:
        return self._binary("xor", None, other)

    def __invert__(self) -> Lanes:
        return self ^ self.pattern((1 << self.bits) - 1)

    def __neg__(self) -> Lanes:
        if self.is_float:
            return self._new(self.code.do(f"fneg {self.typed}"))
        return self.like(0) - self

    # Shifts by an amount below the width. ``shifted`` in ops_bits takes any amount.

    def shl(self, amount: Number | Lanes) -> Lanes:
        return self._binary("shl", None, amount)

    def lshr(self, amount: Number | Lanes) -> Lanes:
        return self._binary("lshr", None, amount)

    def ashr(self, amount: Number | Lanes) -> Lanes:
        return self._binary("ashr", None, amount)

    # comparison and choice

    def icmp(self, predicate: str, other: Number | Lanes) -> Lanes:
        right = self.like(other)
        return self._new(self.code.do(f"icmp {predicate} {self.typed}, {right.text}"), "i1")

    def fcmp(self, predicate: str, other: Number | Lanes) -> Lanes:
        right = self.like(other)
        return self._new(self.code.do(f"fcmp {predicate} {self.typed}, {right.text}"), "i1")

    def is_nan(self) -> Lanes:
        return self.fcmp("uno", self)

    def choose(self, yes: Lanes | Number, no: Lanes | Number) -> Lanes:
        """Of a condition: ``yes`` where it holds, ``no`` elsewhere; one of them at least is a vector."""
        if not isinstance(yes, Lanes):
            assert isinstance(no, Lanes)
            yes = no.like(yes)
        no = yes.like(no)
        return yes._new(self.code.do(f"select {self.typed}, {yes.typed}, {no.typed}"))

    # types

    def _cast(self, operation: str, element: str) -> Lanes:
        if element == self.element:
            return self
        target = self._new("", element)
        return self._new(self.code.do(f"{operation} {self.typed} to {target.type}"), element)

    def zext(self, element: str) -> Lanes:
        return self._cast("zext", element)

    def sext(self, element: str) -> Lanes:
        return self._cast("sext", element)

    def trunc(self, element: str) -> Lanes:
        return self._cast("trunc", element)

    def resize(self, element: str, signed: bool) -> Lanes:
        """To an integer type of any width."""
        if element_bits(element) < self.bits:
            return self.trunc(element)
        return self.sext(element) if signed else self.zext(element)

    def fpext(self) -> Lanes:
        return self._cast("fpext", "double")

    def fptrunc(self) -> Lanes:
        """Rounded to nearest. A NaN's payload is unspecified."""
        return self._cast("fptrunc", "float")

    def to_float(self, element: str, signed: bool) -> Lanes:
        """An integer rounded to nearest."""
        return self._cast("sitofp" if signed else "uitofp", element)

    def as_bits(self) -> Lanes:
        return self._cast("bitcast", f"i{self.bits}") if self.is_float else self

    def as_float(self) -> Lanes:
        return self if self.is_float else self._cast("bitcast", {32: "float", 64: "double"}[self.bits])

    def split(self, element: str) -> Lanes:
        """The same bits as more, narrower elements, or fewer, wider ones."""
        count = self.count * self.bits // element_bits(element)
        target = self._new("", element, count)
        if target.type == self.type:
            return self
        return self._new(self.code.do(f"bitcast {self.typed} to {target.type}"), element, count)

    # intrinsics

    def intrinsic(
        self, name: str, *others: Lanes | Number, flag: bool | None = None, result: str | None = None
    ) -> Lanes:
        """``llvm.<name>``, overloaded on the operand's type. flag: a last ``i1`` operand. result: another element."""
        operands = [self.typed, *(self.like(other).typed for other in others)]
        if flag is not None:
            operands.append(f"i1 {'true' if flag else 'false'}")
        target = self._new("", result)
        suffix = _suffix(self) if result is None else f"{_suffix(target)}.{_suffix(self)}"
        return self._new(self.code.call(target.type, f"llvm.{name}.{suffix}", *operands), result)

    def popcount(self) -> Lanes:
        return self.intrinsic("ctpop")

    def leading_zeros(self) -> Lanes:
        return self.intrinsic("ctlz", flag=False)

    def abs(self) -> Lanes:
        """The absolute value; of the least integer itself."""
        return self.intrinsic("fabs") if self.is_float else self.intrinsic("abs", flag=False)

    def smin(self, other: Lanes | Number) -> Lanes:
        return self.intrinsic("smin", other)

    def smax(self, other: Lanes | Number) -> Lanes:
        return self.intrinsic("smax", other)

    def umin(self, other: Lanes | Number) -> Lanes:
        return self.intrinsic("umin", other)

    def umax(self, other: Lanes | Number) -> Lanes:
        return self.intrinsic("umax", other)

    def fma(self, factor: Lanes, addend: Lanes) -> Lanes:
        return self.intrinsic("fma", factor, addend)


def _suffix(lanes: Lanes) -> str:
    element = {"float": "f32", "double": "f64"}.get(lanes.element, lanes.element)
    return f"v{lanes.count}{element}" if lanes.count else element


class Body:
    """The body of a function under construction. Intrinsics, and functions defined before it, need no declaration."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.definitions: dict[str, str] = {}

    def do(self, text: str) -> str:
        self.lines.append(f"  %v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def call(self, result: str, function: str, *arguments: str) -> str:
        return self.do(f"call {result} @{function}({', '.join(arguments)})")

    def define(self, name: str, text: str) -> None:
        self.definitions[name] = text


Build = Callable[..., Lanes]

# What a name stands for in every kernel: the definitions, and the type of the result.
_made: dict[str, tuple[dict[str, str], str, int]] = {}


def function(name: str, build: Build, *arguments: Lanes) -> Lanes:
    """The result of a function of its own, which ``build`` makes from its parameters.

    For code that is long: a kernel has it once, and compiling a call takes a tenth of the time. The name must say all
    that the code depends on.
    """
    code = arguments[0].code
    result = _define(code, name, build, [(a.element, a.count) for a in arguments])
    return Lanes(code, result.element, code.call(result.type, name, *(a.typed for a in arguments)), result.count)


def lane_by_lane(name: str, build: Build, *arguments: Lanes) -> Lanes:
    """As ``function``, with a function of single lanes: for what is very long and rarely needed."""

    def all_lanes(*vectors: Lanes) -> Lanes:
        code = vectors[0].code
        result = _define(code, f"{name}.lane", build, [(v.element, 0) for v in vectors])
        collected = Lanes(code, result.element, "poison", vectors[0].count)
        for lane in range(collected.count):
            lanes = [f"{v.element} {code.do(f'extractelement {v.typed}, i32 {lane}')}" for v in vectors]
            value = code.call(result.element, f"{name}.lane", *lanes)
            collected.text = code.do(f"insertelement {collected.typed}, {result.element} {value}, i32 {lane}")
        return collected

    return function(name, all_lanes, *arguments)


def definition(name: str, build: Build, types: list[tuple[str, int]], linkage: str = "") -> tuple[str, Body, Lanes]:
    """The text of a function, the body that it was made with, and the result. types: element and count of each
    parameter."""
    body = Body()
    parameters = [Lanes(body, element, f"%a{i}", count) for i, (element, count) in enumerate(types)]
    result = build(*parameters)
    head = f"{linkage}{result.type} @{name}({', '.join(parameter.typed for parameter in parameters)})"
    lines = [f"define {head} noinline nounwind {{", *body.lines, f"  ret {result.typed}", "}", ""]
    return "\n".join(lines), body, result


def _define(code: Code, name: str, build: Build, types: list[tuple[str, int]]) -> Lanes:
    """Defines a function; gives a value of its result's type."""
    known = _made.get(name)
    if known is None:
        text, body, result = definition(name, build, types, "internal ")
        known = _made[name] = ({**body.definitions, name: text}, result.element, result.count)
    definitions, element, count = known
    for each, text in definitions.items():
        code.define(each, text)
    return Lanes(code, element, "", count)
