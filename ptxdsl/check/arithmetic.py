"""Operations of the model's expressions on the values of a proof."""

from __future__ import annotations

from ptxdsl.check.values import UNKNOWN, Sum, Symbols, Test, Value, add, negated, scale, total
from ptxdsl.hints import Any
from ptxdsl.protocol.expressions import SIGNED_CONVERSIONS, compute

_SWAPPED = {"gt": "lt", "ge": "le"}
_COMPARISONS = frozenset({"eq", "ne", *(f"{c}.{s}" for c in ("lt", "le", "gt", "ge") for s in "su")})
# Of a sum they are the sum: sums are taken to fit their types.
_LOGIC = frozenset({"and", "or", "xor", "not"})


def operate(op: str, args: tuple[Any, ...], bits: int, operand_bits: int, symbols: Symbols) -> Value:
    """One operation of ``model.ARITHMETIC``; the result is signed as there."""
    if all(type(a) is int for a in args):
        return compute(op, list(args), bits, operand_bits)
    if op == "select":
        return _select(args, bits, symbols)
    if any(a is UNKNOWN for a in args):
        return 0 if op == "and" and 0 in args else UNKNOWN
    if op in _COMPARISONS:
        return _compare(op, args, symbols)
    if operand_bits == 1 and op in _LOGIC:
        return _logic(op, args)
    args = tuple(_number(a, symbols) for a in args)
    if op in SIGNED_CONVERSIONS:
        return args[0]
    if op == "ext.u":
        return args[0] if not_negative(args[0]) else symbols.operation(op, args, bits)
    if op in ("add", "sub"):
        return add(args[0], args[1], 1 if op == "add" else -1)
    return _scaled(op, args, bits, symbols)


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


def _compare(op: str, args: tuple[Any, ...], symbols: Symbols) -> Value:
    a, b = (_number(x, symbols) for x in args)
    name, _, sign = op.partition(".")
    if name in ("eq", "ne"):
        test = _test("eq", add(a, b, -1))
        return test if name == "eq" else negated(test)
    if name in _SWAPPED:
        a, b, name = b, a, _SWAPPED[name]
    less = _test("lt", add(add(a, b, -1), 0 if name == "lt" else -1))
    if sign == "s" or not (_may_pass_zero(a) or _may_pass_zero(b)):
        return less
    # A negative number is a large one when it is taken as unsigned.
    a_low, b_low = _test("lt", a), _test("lt", b)
    same = _logic("or", (_logic("and", (a_low, b_low)), _logic("and", (negated(a_low), negated(b_low)))))
    return _logic("or", (_logic("and", (same, less)), _logic("and", (negated(a_low), b_low))))


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


def _may_pass_zero(value: Value) -> bool:
    """``n - 1`` taken as unsigned is a large number where n is 0; other sums are taken to fit their types."""
    if isinstance(value, int):
        return value < 0
    return isinstance(value, Sum) and value.constant < 0 and not_negative(add(value, -value.constant))


def not_negative(value: Value) -> bool:
    """Whether a value is made of positive parts alone; what is unsigned in the source counts as that."""
    if isinstance(value, int):
        return value >= 0
    if not isinstance(value, Sum) or value.constant < 0:
        return False
    return all(c > 0 and (atom.low >= 0 or atom.op in ("symbol", "index", "load")) for atom, c in value.terms)


def _scaled(op: str, args: tuple[Any, ...], bits: int, symbols: Symbols) -> Value:
    a = args[0]
    b = args[1] if len(args) > 1 else None
    if op == "mul":
        if isinstance(a, int):
            return scale(b, a)
        if isinstance(b, int):
            return scale(a, b)
    elif isinstance(b, int):
        if op == "shl" and 0 <= b < bits:
            return scale(a, 1 << b)
        if op in ("shr.s", "shr.u") and 0 <= b < bits and (op == "shr.s" or not_negative(a)):
            return _floordiv(a, 1 << b, symbols)
        if op in ("floordiv.s", "floordiv.u", "div.u") and b > 0 and (op == "floordiv.s" or not_negative(a)):
            return _floordiv(a, b, symbols)
        if op == "div.s" and b > 0 and not_negative(a):
            return _floordiv(a, b, symbols)
        if op in ("mod.s", "mod.u") and b > 0 and (op == "mod.s" or not_negative(a)):
            return _mod(a, b, symbols)
        if op in ("rem.s", "rem.u") and b > 0 and not_negative(a):
            return _mod(a, b, symbols)
        if op == "and" and b > 0 and b & (b + 1) == 0:
            return _mod(a, b + 1, symbols)
    if op in ("xor", "or", "add") and b == 0:
        return a
    return symbols.operation(op, args, bits)


def _split(value: Value, divisor: int) -> tuple[Value, Value]:
    """quotient and rest with value = quotient * divisor + rest, the rest as small as can be seen."""
    assert isinstance(value, Sum)
    whole = {atom: c // divisor for atom, c in value.terms if c % divisor == 0}
    rest = {atom: c for atom, c in value.terms if c % divisor}
    return total(value.constant // divisor, whole), total(value.constant % divisor, rest)


def _floordiv(value: Value, divisor: int, symbols: Symbols) -> Value:
    quotient, rest = _split(value, divisor)
    if isinstance(rest, int):
        return quotient
    return add(quotient, symbols.operation("floordiv.s", (rest, divisor), 64))


def _mod(value: Value, divisor: int, symbols: Symbols) -> Value:
    rest = _split(value, divisor)[1]
    return rest if isinstance(rest, int) else symbols.operation("mod.s", (rest, divisor), 64)
