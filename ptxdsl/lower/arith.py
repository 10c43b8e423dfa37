"""Arithmetic and comparisons as LLVM instructions without undefined behaviour.

What hardware and simulator must agree on is spelled out here: division by zero gives 0, MIN // -1 wraps, a shift by
the width or more gives 0 (or the sign). A constant operand takes the short form.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.lower.builder import Builder
from ptxdsl.lower.llvm_types import constant, int_type, llvm_type, scalar_type
from ptxdsl.tir import Const, Op, Ty, Value

Handler = Callable[[Builder, Op], None]

PLAIN = {
    "mul": "mul", "and": "and", "or": "or", "xor": "xor", "fdiv": "fdiv",
}  # fmt: skip

CONTRACTED = {"fadd": "fadd", "fsub": "fsub", "fmul": "fmul"}

WRAPPING = {"add", "sub", "mul"}

PREDICATES = {
    "eq": "icmp eq", "ne": "icmp ne",
    "lt.s": "icmp slt", "le.s": "icmp sle", "gt.s": "icmp sgt", "ge.s": "icmp sge",
    "lt.u": "icmp ult", "le.u": "icmp ule", "gt.u": "icmp ugt", "ge.u": "icmp uge",
    "feq": "fcmp oeq", "fne": "fcmp une", "flt": "fcmp olt", "fle": "fcmp ole", "fgt": "fcmp ogt", "fge": "fcmp oge",
}  # fmt: skip

# Intrinsics overloaded on the type: ``llvm.<name>.<type>``.
OVERLOADED = {
    "min.s": "smin", "min.u": "umin", "max.s": "smax", "max.u": "umax",
    "fmin": "minnum", "fmax": "maxnum", "fabs": "fabs", "fma": "fma",
}  # fmt: skip

_MANGLED = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}


def mangled(ty: Ty) -> str:
    """The suffix of an overloaded intrinsic."""
    name = scalar_type(ty.scalar)
    name = _MANGLED.get(name, name)
    return name if ty.lanes == 1 else f"v{ty.lanes}{name}"


def lane_constants(value: Value) -> list[int] | None:
    """The lanes of an integer constant, or None."""
    if not isinstance(value, Const):
        return None
    raw = value.value if isinstance(value.value, tuple | list) else (value.value,)
    return [int(lane) for lane in raw]


def uniform_constant(value: Value) -> int | None:
    """The value of an integer constant that is the same in every lane."""
    lanes = lane_constants(value)
    return lanes[0] if lanes and all(lane == lanes[0] for lane in lanes) else None


def _binary(b: Builder, op: Op) -> None:
    x, y = op.operands
    name = op.name
    if name not in WRAPPING:
        flags = " contract" if name in CONTRACTED and b.options.contract else ""
        b.set(op.result, b.shared(f"{name}{flags} {b.typed(x)}, {b.ref(y)}"))
        return
    flags = "".join([f" {flag}" for flag in ("nuw", "nsw") if op.attrs.get(flag)])
    if isinstance(x, Const) or isinstance(y, Const):
        left, right = b.ref(x), b.ref(y)
    else:
        left, right = _operand(b, x), _operand(b, y)
    result = b.shared(f"{name}{flags} {llvm_type(x.ty)} {left}, {right}")
    b.set(op.result, _linked(b, op, result))


# LLVM's analyses of integer sums (scalar evolution) look along a chain of additions to its start, in time that grows
# with the cube of its length: a chain of 200, through the addresses of loads, took seconds. So every so often it is
# cut by assembly without text, which they do not look through; it costs no instruction. Sums with a common operand are
# compared pair by pair: beyond a number of them the operand is hidden in the same way.
CHAIN_LENGTH = 16
COMMON_OPERAND = 200
_CONSTRAINTS = {"i16": "=h,0", "i32": "=r,0", "i64": "=l,0"}


def _linked(b: Builder, op: Op, result: str) -> str:
    """A sum or product, cut off from what it was made of where that is too long a chain."""
    x, y = op.operands
    length = 1 + max(b.chains.get(b.ref(x), 0), b.chains.get(b.ref(y), 0))
    ty = llvm_type(op.result.ty)
    if length < CHAIN_LENGTH or ty not in _CONSTRAINTS:
        b.chains[result] = length
        return result
    return _hidden(b, ty, result)


def _operand(b: Builder, value: Value) -> str:
    """An operand of a sum of two unknown values."""
    text, ty = b.ref(value), llvm_type(value.ty)
    b.sums[text] = b.sums.get(text, 0) + 1
    return text if b.sums[text] <= COMMON_OPERAND or ty not in _CONSTRAINTS else _hidden(b, ty, text)


def _hidden(b: Builder, ty: str, value: str) -> str:
    return b.emit(f'call {ty} asm "", "{_CONSTRAINTS[ty]}"({ty} {value})')


def _compare(b: Builder, op: Op) -> None:
    x, y = op.operands
    b.set(op.result, b.emit(f"{PREDICATES[op.name]} {b.typed(x)}, {b.ref(y)}"))


def _overloaded(b: Builder, op: Op) -> None:
    ty = op.result.ty
    name = f"llvm.{OVERLOADED[op.name]}.{mangled(ty)}"
    b.set(op.result, b.call(llvm_type(ty), name, [b.typed(operand) for operand in op.operands]))


def _abs(b: Builder, op: Op) -> None:
    (x,) = op.operands
    b.set(op.result, b.call(llvm_type(x.ty), f"llvm.abs.{mangled(x.ty)}", [b.typed(x), "i1 false"]))


def _not(b: Builder, op: Op) -> None:
    (x,) = op.operands
    b.set(op.result, b.emit(f"xor {b.typed(x)}, {constant(x.ty, 1 if x.ty.name == 'i1' else -1)}"))


def _fneg(b: Builder, op: Op) -> None:
    b.set(op.result, b.emit(f"fneg {b.typed(op.operands[0])}"))


def _select(b: Builder, op: Op) -> None:
    condition, then, otherwise = op.operands
    b.set(op.result, b.emit(f"select {b.typed(condition)}, {b.typed(then)}, {b.typed(otherwise)}"))


# division


class _Division:
    """One integer division in progress: everything about the divisor that is known."""

    def __init__(self, b: Builder, op: Op) -> None:
        self.b = b
        self.x, self.y = op.operands
        self.ty = self.x.ty
        self.type = llvm_type(self.ty)
        self.bools = int_type(1, self.ty.lanes)
        self.constant = uniform_constant(self.y)
        known = lane_constants(self.y)
        self.may_be_zero = known is None or 0 in known
        self.may_be_minus_one = known is None or -1 in known

    def emit(self, name: str, x: str, y: str) -> str:
        return self.b.emit(f"{name} {self.type} {x}, {y}")

    def select(self, condition: str, then: str, otherwise: str) -> str:
        return self.b.emit(f"select {self.bools} {condition}, {self.type} {then}, {self.type} {otherwise}")

    def number(self, value: int) -> str:
        return constant(self.ty, value)

    def guarded(self, signed: bool) -> tuple[str, str | None, str | None]:
        """A divisor that never traps; whether it was 0; whether it was -1 (None: it never is)."""
        y = self.b.ref(self.y)
        zero = self.emit("icmp eq", y, self.number(0)) if self.may_be_zero else None
        minus = self.emit("icmp eq", y, self.number(-1)) if signed and self.may_be_minus_one else None
        safe = y
        for condition in (zero, minus):
            if condition:
                safe = self.select(condition, self.number(1), safe)
        return safe, zero, minus


def _div_s(b: Builder, op: Op) -> None:
    """Truncating; by floor where ``op`` is a ``floordiv``."""
    d = _Division(b, op)
    x = b.ref(d.x)
    floor = op.name == "floordiv.s"
    if d.constant == 0:
        return b.set(op.result, d.number(0))
    if d.constant is not None and floor and d.constant > 0 and d.constant & (d.constant - 1) == 0:
        shift = d.constant.bit_length() - 1
        return b.set(op.result, d.emit("ashr", x, d.number(shift)) if shift else x)
    safe, zero, minus = d.guarded(signed=True)
    quotient = d.emit("sdiv", x, safe)
    if floor:
        remainder = d.emit("srem", x, safe)
        quotient = d.emit("sub", quotient, _widen_bool(d, _floor_fix(d, remainder, safe)))
    if minus:
        quotient = d.select(minus, d.emit("sub", d.number(0), x), quotient)
    if zero:
        quotient = d.select(zero, d.number(0), quotient)
    b.set(op.result, quotient)


def _floor_fix(d: _Division, remainder: str, divisor: str) -> str:
    """Whether a truncated quotient is one too large: the remainder is not 0 and has the other sign."""
    if d.constant is not None:
        return d.emit("icmp slt" if d.constant > 0 else "icmp sgt", remainder, d.number(0))
    differs = d.emit("icmp slt", d.emit("xor", remainder, divisor), d.number(0))
    inexact = d.emit("icmp ne", remainder, d.number(0))
    return d.b.emit(f"and {d.bools} {inexact}, {differs}")


def _widen_bool(d: _Division, condition: str) -> str:
    return d.b.emit(f"zext {d.bools} {condition} to {d.type}")


def _mod_s(b: Builder, op: Op) -> None:
    d = _Division(b, op)
    x = b.ref(d.x)
    if d.constant in (0, 1, -1):
        return b.set(op.result, d.number(0))
    if d.constant is not None and d.constant > 0 and d.constant & (d.constant - 1) == 0:
        return b.set(op.result, d.emit("and", x, d.number(d.constant - 1)))
    safe, _, _ = d.guarded(signed=True)
    remainder = d.emit("srem", x, safe)
    fixed = d.emit("add", remainder, safe)
    b.set(op.result, d.select(_floor_fix(d, remainder, safe), fixed, remainder))


def _div_u(b: Builder, op: Op) -> None:
    d = _Division(b, op)
    if d.constant == 0:
        return b.set(op.result, d.number(0))
    safe, zero, _ = d.guarded(signed=False)
    result = d.emit("udiv", b.ref(d.x), safe)
    b.set(op.result, d.select(zero, d.number(0), result) if zero else result)


def _mod_u(b: Builder, op: Op) -> None:
    d = _Division(b, op)
    if d.constant == 0:
        return b.set(op.result, d.number(0))
    # A divisor of 0 became 1, whose remainder is the 0 that we want.
    safe, _, _ = d.guarded(signed=False)
    b.set(op.result, d.emit("urem", b.ref(d.x), safe))


# shifts


def _shift(b: Builder, op: Op) -> None:
    x, y = op.operands
    ty, name = x.ty, {"shl": "shl", "shr.s": "ashr", "shr.u": "lshr"}[op.name]
    known = lane_constants(y)
    inside = known is not None and all(0 <= lane < ty.bits for lane in known)
    if inside:
        return b.set(op.result, b.emit(f"{name} {b.typed(x)}, {b.ref(y)}"))
    if name == "ashr":
        limit = b.call(
            llvm_type(ty), f"llvm.umin.{mangled(ty)}", [b.typed(y), f"{llvm_type(ty)} {constant(ty, ty.bits - 1)}"]
        )
        return b.set(op.result, b.emit(f"ashr {b.typed(x)}, {limit}"))
    # select does not pass on the poison of the arm that it does not take. LLVM makes PTX's clamping shift of the pair,
    # whose amount has 32 bits: a wider amount is clamped first, or its upper half would be lost.
    bools, type = int_type(1, ty.lanes), llvm_type(ty)
    amount = b.ref(y)
    if ty.bits > 32:
        amount = b.call(type, f"llvm.umin.{mangled(ty)}", [b.typed(y), f"{type} {constant(ty, ty.bits)}"])
    shifted = b.emit(f"{name} {b.typed(x)}, {amount}")
    fits = b.emit(f"icmp ult {type} {amount}, {constant(ty, ty.bits)}")
    b.set(op.result, b.emit(f"select {bools} {fits}, {type} {shifted}, {type} {constant(ty, 0)}"))


# floor division of floats


def _floor_quotient(b: Builder, op: Op) -> tuple[str, str, str]:
    x, y = op.operands
    type = llvm_type(x.ty)
    quotient = b.emit(f"fdiv {b.typed(x)}, {b.ref(y)}")
    return type, mangled(x.ty), b.call(type, f"llvm.floor.{mangled(x.ty)}", [f"{type} {quotient}"])


def _ffloordiv(b: Builder, op: Op) -> None:
    b.set(op.result, _floor_quotient(b, op)[2])


def _fmod(b: Builder, op: Op) -> None:
    """x - floor(x / y) * y, rounded once with every option: what is folded at compile time is the same number."""
    x, y = op.operands
    type, suffix, floor = _floor_quotient(b, op)
    negated = b.emit(f"fneg {type} {floor}")
    b.set(op.result, b.call(type, f"llvm.fma.{suffix}", [f"{type} {negated}", b.typed(y), b.typed(x)]))


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("add", "sub", *PLAIN, *CONTRACTED), _binary),
    **dict.fromkeys(PREDICATES, _compare),
    **dict.fromkeys(OVERLOADED, _overloaded),
    "abs.s": _abs,
    "not": _not,
    "fneg": _fneg,
    "select": _select,
    "div.s": _div_s,
    "floordiv.s": _div_s,
    "mod.s": _mod_s,
    "div.u": _div_u,
    "floordiv.u": _div_u,
    "mod.u": _mod_u,
    **dict.fromkeys(("shl", "shr.s", "shr.u"), _shift),
    "ffloordiv": _ffloordiv,
    "fmod": _fmod,
}
