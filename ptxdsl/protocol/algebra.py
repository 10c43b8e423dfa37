"""Expressions in a plain form: what compilers write in many ways becomes one.

Only laws of two's complement arithmetic are used, so that a plain expression has the value of the one that it replaces
for all values of its leaves.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.protocol import expressions
from ptxdsl.protocol.expressions import ARITHMETIC, Expr, apply, const, nodes, wrap

_OPPOSITE = {
    "eq": "ne", "ne": "eq", "lt.s": "ge.s", "ge.s": "lt.s", "gt.s": "le.s", "le.s": "gt.s",
    "lt.u": "ge.u", "ge.u": "lt.u", "gt.u": "le.u", "le.u": "gt.u",
}  # fmt: skip
_SWAPPED = {
    "eq": "eq", "ne": "ne", "lt.s": "gt.s", "gt.s": "lt.s", "le.s": "ge.s", "ge.s": "le.s",
    "lt.u": "gt.u", "gt.u": "lt.u", "le.u": "ge.u", "ge.u": "le.u",
}  # fmt: skip
_COMMUTE = frozenset(("add", "mul", "and", "or", "xor", "min.s", "min.u", "max.s", "max.u"))
_NEUTRAL = {"add": 0, "sub": 0, "or": 0, "xor": 0, "shl": 0, "shr.s": 0, "shr.u": 0, "mul": 1, "and": -1}

# The address bits of CTAs in a cluster that CUTLASS masks to reach the even CTA of a pair.
PEER_MASK = -16777217  # 0xFEFFFFFF

_cache: dict[tuple[str, int, tuple[int, ...]], tuple[tuple[Expr, ...], Expr]] = {}
_CACHE_LIMIT = 200_000


def plain(op: str, *args: Expr, bits: int = 32) -> Expr:
    """An operation of ``ARITHMETIC`` as an expression."""
    key = (op, bits, tuple(map(id, args)))
    found = _cache.get(key)
    if found is None:
        if len(_cache) >= _CACHE_LIMIT:
            _cache.clear()
        found = _cache[key] = args, _plain(op, args, bits)  # the arguments are kept, so that their ids stay theirs
    return found[1]


def _plain(op: str, args: tuple[Expr, ...], bits: int) -> Expr:
    if all(a.op == "const" for a in args):
        return apply(op, *args, bits=bits)
    if len(args) == 1:
        return _unary(op, args[0], bits)
    if op == "select":
        return _select(*args, bits=bits)
    a, b = args
    if a.op == "const" and op in _COMMUTE:
        a, b = b, a
    if op in _OPPOSITE:
        return _comparison(op, a, b)
    if b.op == "const":
        if b.value == _NEUTRAL.get(op):
            return a
        folded = _by_constant(op, a, b.value, bits)
        if folded is not None:
            return folded
    if a is b:
        if op in ("and", "or", "min.s", "min.u", "max.s", "max.u"):
            return a
        if op in ("sub", "xor"):
            return const(0, bits)
    if op == "sub" and a.op == "const":
        return plain("add", plain("mul", b, const(-1, bits), bits=bits), a, bits=bits)
    if op == "add" and a.op == "add" and a.args[1].op == "const":
        return plain("add", plain("add", a.args[0], b, bits=bits), a.args[1], bits=bits)
    if op == "add" and b.op == "add" and b.args[1].op == "const":
        return plain("add", plain("add", a, b.args[0], bits=bits), b.args[1], bits=bits)
    if bits == 1 and op in ("and", "or") and a is plain("not", b, bits=1):
        return const(int(op == "or"), 1)
    return apply(op, a, b, bits=bits)


def _unary(op: str, a: Expr, bits: int) -> Expr:
    if op in ("ext.s", "ext.u", "trunc"):
        return _cast(op, a, bits)
    if op == "not":
        if a.op == "not":
            return a.args[0]
        if a.op in _OPPOSITE:
            return plain(_OPPOSITE[a.op], *a.args, bits=1)
        if a.op in ("and", "or"):
            return plain("or" if a.op == "and" else "and", *(plain("not", arg, bits=1) for arg in a.args), bits=1)
    return apply(op, a, bits=bits)


def _cast(op: str, a: Expr, bits: int) -> Expr:
    if a.bits == bits:
        return a
    if a.op in ("ext.s", "ext.u"):
        inner = a.args[0]
        if op == "trunc":
            return inner if inner.bits == bits else plain("trunc" if inner.bits > bits else a.op, inner, bits=bits)
        if a.op == "ext.u" or op == "ext.s":
            return plain(a.op, inner, bits=bits)
    if op == "trunc":
        if a.op == "trunc":
            return plain("trunc", a.args[0], bits=bits)
        if a.op in ("add", "sub", "mul", "and", "or", "xor"):
            return plain(a.op, *(plain("trunc", arg, bits=bits) for arg in a.args), bits=bits)
    return apply(op, a, bits=bits)


def _select(condition: Expr, a: Expr, b: Expr, *, bits: int) -> Expr:
    if condition.op == "const":
        return a if condition.value else b
    if a is b:
        return a
    if condition.op == "not":
        return plain("select", condition.args[0], b, a, bits=bits)
    if a.op == b.op == "const" and bits == 1:
        return condition if a.value else plain("not", condition, bits=1)
    if a.op == b.op == "const" and {a.value, b.value} == {0, 1}:
        return plain("ext.u", condition if a.value else plain("not", condition, bits=1), bits=bits)
    return apply("select", condition, a, b, bits=bits)


def _comparison(op: str, a: Expr, b: Expr) -> Expr:
    if a.op == "const":
        a, b, op = b, a, _SWAPPED[op]
    if a is b:
        return const(int(op[:2] in ("eq", "le", "ge")), 1)
    if b.op != "const":
        return apply(op, a, b, bits=1)
    value, bits = b.value, b.bits
    if a.op == "ext.u" and a.args[0].bits == 1 and op in ("eq", "ne") and value in (0, 1):
        return a.args[0] if (op == "eq") == bool(value) else plain("not", a.args[0], bits=1)
    if a.op == "add" and a.args[1].op == "const" and op in ("eq", "ne"):
        return plain(op, a.args[0], const(wrap(value - a.args[1].value, bits), bits), bits=1)
    if a.op in ("ext.u", "ext.s") and op in ("eq", "ne"):
        inner = a.args[0]
        if inner.bits < bits and plain(a.op, const(wrap(value, inner.bits), inner.bits), bits=bits).value == value:
            return plain(op, inner, const(wrap(value, inner.bits), inner.bits), bits=1)
    if op.endswith(".u") and value >= 0 and not_negative(a):
        return plain(f"{op[:2]}.s", a, b, bits=1)
    negative = a.op == "mul" and a.args[1] is const(-1, bits) and _never_least(a.args[0])
    if negative and op in ("ge.s", "gt.s", "lt.s", "le.s") and abs(value) < 1 << (bits - 2):
        # -x >= c is x <= -c, where -x does not wrap.
        return plain(_SWAPPED[op], a.args[0], const(-value, bits), bits=1)
    # One way to write a bound: x < c, x >= c.
    if op in ("le.s", "gt.s") and value < (1 << (bits - 1)) - 1:
        return plain("lt.s" if op == "le.s" else "ge.s", a, const(value + 1, bits), bits=1)
    if op in ("le.u", "gt.u") and value != -1:
        return plain("lt.u" if op == "le.u" else "ge.u", a, const(wrap(value + 1, bits), bits), bits=1)
    if op in ("lt.u", "ge.u") and value == 1:
        return plain("eq" if op == "lt.u" else "ne", a, const(0, bits), bits=1)
    if op in ("lt.s", "ge.s") and a.op == "max.s" and a.args[1].op == "const" and a.args[1].value < value:
        return plain(op, a.args[0], b, bits=1)
    return apply(op, a, b, bits=1)


def _by_constant(op: str, a: Expr, value: int, bits: int) -> Expr | None:
    """a op value, where that is simpler."""
    if op == "sub":
        return plain("add", a, const(wrap(-value, bits), bits), bits=bits)
    if op == "shl" and 0 <= value < bits - 1:
        return plain("mul", a, const(1 << value, bits), bits=bits)
    if op == "add" and a.op == "add" and a.args[1].op == "const":
        return plain("add", a.args[0], const(wrap(a.args[1].value + value, bits), bits), bits=bits)
    if op == "mul":
        if value == 0:
            return const(0, bits)
        if a.op == "mul" and a.args[1].op == "const":
            return plain("mul", a.args[0], const(wrap(a.args[1].value * value, bits), bits), bits=bits)
        if a.op == "add" and a.args[1].op == "const":
            scaled = plain("mul", a.args[0], const(value, bits), bits=bits)
            return plain("add", scaled, const(wrap(a.args[1].value * value, bits), bits), bits=bits)
    if op == "and":
        if value == 0:
            return const(0, bits)
        if a.op == "and" and a.args[1].op == "const":
            return plain("and", a.args[0], const(a.args[1].value & value, bits), bits=bits)
    if op == "xor" and a.op == "xor" and a.args[1].op == "const":
        return plain("xor", a.args[0], const(a.args[1].value ^ value, bits), bits=bits)
    if op == "xor" and bits == 1:
        return plain("not", a, bits=1)
    if op == "xor" and value == -1:
        return plain("add", plain("mul", a, const(-1, bits), bits=bits), const(-1, bits), bits=bits)
    if op in ("shr.u", "shr.s") and 0 < value < bits:
        return _shifted_down(op, a, value, bits)
    if op in ("and", "or") and bits == 1:
        return (a if value else const(0, 1)) if op == "and" else (const(1, 1) if value else a)
    return None


def _shifted_down(op: str, a: Expr, by: int, bits: int) -> Expr | None:
    if a.op == op and a.args[1].op == "const" and a.args[1].value + by < bits:
        return plain(op, a.args[0], const(a.args[1].value + by, bits), bits=bits)
    if op == "shr.u":
        quotient = _quotient(a, by)
        if quotient is not None:
            return plain("ext.u", quotient, bits=bits)
        terms, constant = linear(a)
        common = constant
        for factor in terms.values():
            common |= factor
        up = (common & -common).bit_length() - 1  # all of the sum is a multiple of 1 << up
        if 0 < up <= by and terms:
            # A field of bits, moved up to cut off what is above it, and down again.
            inner = of_linear({term: factor >> up for term, factor in terms.items()}, constant >> up, bits)
            mask = const((1 << (bits - by)) - 1, bits)
            return plain("and", plain("shr.u", inner, const(by - up, bits), bits=bits), mask, bits=bits)
    return None


def _quotient(high: Expr, by: int) -> Expr | None:
    """An unsigned division by a constant, done as a multiplication.

    The high half of x * m, shifted down by l, is x / d for all x of 32 bits if 2^(32+l) <= m * d <= 2^(32+l) + 2^l.
    Source: Granlund, Montgomery, "Division by Invariant Integers using Multiplication" (1994), theorem 4.2.
    """
    if high.op == "trunc" and high.bits == 32 and high.args[0].op == "shr.u":
        high, low = high.args[0].args
        by += low.value - 32 if low.op == "const" else -64
    elif high.bits == 64:
        by -= 32
    if high.op != "mul" or high.bits != 64 or by < 0 or high.args[1].op != "const":
        return None
    x, factor = high.args[0], high.args[1].value
    if x.op != "ext.u" or x.args[0].bits != 32 or not 0 < factor < 1 << 33:
        return None
    whole = 1 << (32 + by)
    divisor = -(-whole // factor)
    return None if factor * divisor > whole + (1 << by) or divisor < 2 else _divided(x.args[0], divisor)


def _divided(x: Expr, divisor: int) -> Expr:
    return apply("div.u", x, const(divisor, x.bits), bits=x.bits)


def same_width(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Two operands of one type; an address of the cluster's shared memory is 64 bits wide, wherever it is kept."""
    if a.bits < b.bits:
        a = plain("ext.s", a, bits=b.bits)
    elif b.bits < a.bits:
        b = plain("ext.s", b, bits=a.bits)
    return a, b


def mentions(expr: Expr, kinds: frozenset[str]) -> bool:
    """Whether one of its leaves, or what is not arithmetic, is of these kinds."""
    return any(node.op in kinds for node in nodes(expr))


def size(expr: Expr, limit: int) -> int:
    """How many nodes it has as a tree, counted up to a limit."""
    count = 0
    work = [expr]
    while work and count < limit:
        count += 1
        work.extend(work.pop().args)
    return count


def substitute(expr: Expr, of: Callable[[Expr], Expr | None], known: dict[Expr, Expr]) -> Expr:
    """The expression with other leaves: of gives the new one, or None. known: results, to be shared between calls."""
    work = [expr]
    while work:
        at = work[-1]
        if at in known:
            work.pop()
            continue
        new = of(at)
        if new is not None:
            known[at] = new
            work.pop()
            continue
        missing = [arg for arg in at.args if arg not in known]
        if missing:
            work.extend(missing)
            continue
        work.pop()
        args = tuple(known[arg] for arg in at.args)
        if all(a is b for a, b in zip(args, at.args, strict=True)):
            known[at] = at
        elif at.op in ARITHMETIC:
            known[at] = plain(at.op, *args, bits=at.bits)
        else:
            known[at] = rebuilt(at, args)
    return known[expr]


def rebuilt(expr: Expr, args: tuple[Expr, ...]) -> Expr:
    """What is not arithmetic, of other arguments."""
    if expr.op in ("any", "all"):
        found = expressions.vote(expr.op, *args)
        assert found is not None
        return found
    if expr.op == "shuffle":
        return expressions.shuffle(*args)
    if expr.op == "load":
        return expressions.load(expr.value, args[0], expr.bits)
    if expr.op == "test":
        return expressions.test(*args)
    if expr.op == "answer":
        return expressions.answer(*args)
    if expr.op == "held":
        return expressions.held(args[0], expr.bits)
    raise AssertionError(expr.op)


def linear(expr: Expr) -> tuple[dict[Expr, int], int]:
    """An expression as a sum: what is not a sum with its factors, and the constant, all in two's complement."""
    terms: dict[Expr, int] = {}
    constant = 0
    work = [(expr, 1)]
    while work:
        at, factor = work.pop()
        if at.op == "const":
            constant += at.value * factor
        elif at.op in ("add", "sub"):
            work.append((at.args[0], factor))
            work.append((at.args[1], factor if at.op == "add" else -factor))
        elif at.op == "mul" and at.args[1].op == "const":
            work.append((at.args[0], factor * at.args[1].value))
        else:
            terms[at] = terms.get(at, 0) + factor
    bits = expr.bits
    return {e: w for e, factor in terms.items() if (w := wrap(factor, bits))}, wrap(constant, bits)


def is_rest(expr: Expr, of: Expr, size: int) -> bool:
    """Whether it is what a division of an unsigned number by a size leaves."""
    if expr.op in ("mod.u", "rem.u"):
        return expr.args[0] is of and expr.args[1] is const(size, of.bits)
    return (
        expr.op == "and" and not size & (size - 1) and expr.args[0] is of and expr.args[1] is const(size - 1, of.bits)
    )


def of_linear(terms: dict[Expr, int], constant: int, bits: int) -> Expr:
    """The sum again."""
    total = const(0, bits)
    for expr, factor in terms.items():
        total = plain("add", total, plain("mul", expr, const(factor, bits), bits=bits), bits=bits)
    return plain("add", total, const(wrap(constant, bits), bits), bits=bits)


def _never_least(expr: Expr) -> bool:
    """Whether it cannot be the least number of its type, whose negative is no number of it."""
    if expr.op in ("shr.s", "div.s", "floordiv.s"):
        return expr.args[1].op == "const" and expr.args[1].value > (expr.op != "shr.s")
    return expr.op in ("ext.s", "ext.u") or not_negative(expr)


def not_negative(expr: Expr) -> bool:
    """Whether it is 0 or more, read as signed, whatever its leaves."""
    if expr.op == "const":
        return bool(expr.value >= 0)
    if expr.op == "ext.u":
        return True
    if expr.op == "max.s":
        return any(map(not_negative, expr.args))
    if expr.op in ("and", "shr.u", "mod.u", "rem.u"):
        last = expr.args[-1]
        return last.op == "const" and last.value > 0
    return expr.op in ("tid", "min.s", "select") and all(map(not_negative, expr.args[-2:]))
