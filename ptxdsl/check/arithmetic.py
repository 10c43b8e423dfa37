"""Operations of the model's expressions on the values of a proof."""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.check.values import (
    UNKNOWN,
    Sum,
    Symbols,
    Test,
    Value,
    add,
    in_range,
    may_be_negative,
    negated,
    not_negative,
    scale,
    total,
)
from ptxdsl.hints import Any
from ptxdsl.protocol.expressions import SUMS_FROM, compute, wrap

_SWAPPED = {"gt": "lt", "ge": "le"}
_COMPARISONS = frozenset({"eq", "ne", *(f"{c}.{s}" for c in ("lt", "le", "gt", "ge") for s in "su")})
_LOGIC = frozenset({"and", "or", "xor", "not"})
_BY_CONSTANT = frozenset(f"{name}.{sign}" for name in ("div", "floordiv", "rem", "mod") for sign in "su")


def operate(op: str, args: tuple[Any, ...], bits: int, operand_bits: int, symbols: Symbols) -> Value:
    """One operation of ``model.ARITHMETIC``; the result is signed as there."""
    if all(type(a) is int for a in args):
        return compute(op, list(args), bits, operand_bits)
    if op == "select":
        return _select(args, bits, symbols)
    if any(a is UNKNOWN for a in args):
        return 0 if op == "and" and 0 in args else UNKNOWN
    if op in _COMPARISONS:
        return compared(op, args, operand_bits, symbols)
    if operand_bits == 1 and op in _LOGIC:
        return _logic(op, args)
    args = tuple(_number(a, symbols) for a in args)
    if op == "ext.s":
        return args[0]
    if op == "ext.u" and operand_bits > 1:  # a truth value stays whole: sums with it are compared as they are
        if not_negative(args[0]):
            return args[0]
        if may_be_large(args[0], operand_bits):
            return _as_unsigned(args[0], operand_bits, symbols, lambda a: a)
        return symbols.operation(op, args, bits)
    if op == "trunc":
        return _truncated(args[0], bits, symbols)
    if op in ("add", "sub"):
        return _narrow(add(args[0], args[1], 1 if op == "add" else -1), bits, symbols)
    if op in ("min.u", "max.u") and any(may_be_large(a, bits) for a in args):
        return _select((compared("lt.u", args, bits, symbols), *(args if op == "min.u" else args[::-1])), bits, symbols)
    return _scaled(op, args, bits, symbols)


def may_be_large(a: Value, bits: int) -> bool:
    """Whether the number is another one as unsigned, as far as is known: a negative one is large then.

    Computed values of 32 bits and more are taken not to be negative (docs/checker.md); bytes and 16 bits wrap.
    """
    return not not_negative(a) and (bits < SUMS_FROM or may_be_negative(a))


def _as_unsigned(
    a: Value, bits: int, symbols: Symbols, function: Callable[[Value], Value], result_bits: int = 64
) -> Value:
    """A function of what a value is if it is taken as unsigned, where a negative number is a large one."""
    return _select((_test("lt", a), function(add(a, 1 << bits)), function(a)), result_bits, symbols)


def _truncated(a: Value, bits: int, symbols: Symbols) -> Value:
    """The low bits of a value; that it fits into as many as sums have is taken for granted, as it is of sums."""
    if isinstance(a, int):
        return wrap(a, bits)
    if not a.constant and len(a.terms) == 1 and a.terms[0][1] == 1 and a.terms[0][0].op == "select":
        condition, one, other = a.terms[0][0].args
        return _select((condition, _truncated(one, bits, symbols), _truncated(other, bits, symbols)), bits, symbols)
    return _narrow(Sum(wrap(a.constant, bits), a.terms), bits, symbols)


def _narrow(a: Value, bits: int, symbols: Symbols) -> Value:
    """A sum of numbers of so many bits: those of few bits wrap."""
    if isinstance(a, int):
        return wrap(a, bits)
    return a if bits >= SUMS_FROM or in_range(a, bits) else symbols.operation("trunc", (a,), bits)


def _number(value: Value, symbols: Symbols) -> Value:
    """A truth value as a number."""
    return symbols.operation("select", (value, 1, 0), 32) if isinstance(value, Test) else value


def _select(args: tuple[Any, ...], bits: int, symbols: Symbols) -> Value:
    condition, a, b = args
    if condition is UNKNOWN:
        return a if a is b or a == b else UNKNOWN
    if isinstance(condition, int):
        return a if condition else b
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    if bits == 1:
        return _logic("or", (_logic("and", (condition, a)), _logic("and", (negated(condition), b))))
    return a if a == b else symbols.operation("select", (condition, _number(a, symbols), _number(b, symbols)), bits)


def compared(op: str, args: tuple[Any, ...], bits: int, symbols: Symbols) -> Value:
    """A comparison of numbers of so many bits as a test."""
    a, b = (_number(x, symbols) for x in args)
    name, _, sign = op.partition(".")
    if name in ("eq", "ne"):
        test = _test("eq", add(a, b, -1))
        return test if name == "eq" else negated(test)
    if name in _SWAPPED:
        a, b, name = b, a, _SWAPPED[name]
    less = _less(a, b, name)
    if sign == "s" or not (may_be_large(a, bits) or may_be_large(b, bits)):
        return less
    if not may_be_large(a, bits):  # a counter's way: what is asked first is what its loop mostly goes by
        return _logic("or", (less, _logic("and", (_test("lt", b), _less(a, add(b, 1 << bits), name)))))
    return _as_unsigned(a, bits, symbols, lambda x: _as_unsigned(b, bits, symbols, lambda y: _less(x, y, name), 1), 1)


def _less(a: Value, b: Value, name: str) -> Value:
    """a < b, or a <= b."""
    return _test("lt", add(add(a, b, -1), 0 if name == "lt" else -1))


def _test(op: str, value: Value) -> Value:
    if isinstance(value, int):
        return int(value < 0 if op == "lt" else value == 0)
    return Test(op, value)


def _logic(op: str, args: tuple[Any, ...]) -> Value:
    if op == "not":
        return negated(args[0])
    a, b = args
    if op == "xor":
        if isinstance(a, int):
            a, b = b, a
        if isinstance(b, int):
            return negated(a) if b else a
        return _logic("or", (_logic("and", (a, negated(b))), _logic("and", (negated(a), b))))
    neutral = 1 if op == "and" else 0
    for x, y in ((a, b), (b, a)):
        if isinstance(x, int):
            return y if x == neutral else x
    return a if a == b else Test(op, 0, (a, b))


def _scaled(op: str, args: tuple[Any, ...], bits: int, symbols: Symbols) -> Value:
    a = args[0]
    b = args[1] if len(args) > 1 else None
    if op == "mul" and isinstance(a, int):
        a, b = b, a
    if op == "mul" and isinstance(b, int):
        return _narrow(scale(a, b), bits, symbols)
    if isinstance(b, int):
        if op == "shl" and 0 <= b < bits // 2:  # further, bits are meant to fall out
            return _narrow(scale(a, 1 << b), bits, symbols)
        if op in ("shr.s", "shr.u") and 0 <= b < bits:
            return _by_constant(("floordiv" if op == "shr.s" else "div") + op[-2:], a, 1 << b, bits, symbols)
        if op == "and" and b > 0 and b & (b + 1) == 0:
            return _mod(a, b + 1, symbols)
        if b > 0 and op in _BY_CONSTANT:
            return _by_constant(op, a, b, bits, symbols)
    if op in ("xor", "or", "add") and b == 0:
        return a
    return symbols.operation(op, args, bits)


def _by_constant(op: str, a: Value, b: int, bits: int, symbols: Symbols) -> Value:
    """A quotient or a rest by what is positive."""
    function = _floordiv if "div" in op else _mod
    if op in ("floordiv.s", "mod.s") or not_negative(a):
        return function(a, b, symbols)
    if not may_be_large(a, bits):
        return symbols.operation(op, (a, b), bits)
    if op.endswith(".u"):
        return _as_unsigned(a, bits, symbols, lambda x: function(x, b, symbols))
    below = scale(function(scale(a, -1), b, symbols), -1)
    return _select((_test("lt", a), below, function(a, b, symbols)), bits, symbols)


def _split(value: Sum, divisor: int) -> tuple[Value, Value]:
    """quotient and rest with value = quotient * divisor + rest, the rest as small as can be seen."""
    whole = {atom: c // divisor for atom, c in value.terms if c % divisor == 0}
    rest = {atom: c for atom, c in value.terms if c % divisor}
    return total(value.constant // divisor, whole), total(value.constant % divisor, rest)


def _floordiv(value: Value, divisor: int, symbols: Symbols) -> Value:
    if isinstance(value, int):
        return value // divisor
    quotient, rest = _split(value, divisor)
    if isinstance(rest, int):
        return quotient
    return add(quotient, symbols.operation("floordiv.s", (rest, divisor), 64))


def _mod(value: Value, divisor: int, symbols: Symbols) -> Value:
    if isinstance(value, int):
        return value % divisor
    rest = _split(value, divisor)[1]
    return rest if isinstance(rest, int) else symbols.operation("mod.s", (rest, divisor), 64)
