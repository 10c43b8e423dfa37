"""How fast values grow with counters, and what expressions of the model are made of."""

from __future__ import annotations

from functools import lru_cache
from math import gcd, lcm

from ptxdsl.protocol.expressions import CONVERSIONS, SUMS_FROM, Expr, nodes

Rates = dict[int, tuple[int, int]]
IRREGULAR: Rates = {-1: (1, 0)}


def signs(expr: Expr, sign: int) -> set[int]:
    """The signs with which variables are in a sum."""
    if expr.op == "var":
        return {sign}
    found: set[int] = set()
    for number, arg in enumerate(expr.args):
        turned = (expr.op == "sub" and number == 1) or (expr.op == "mul" and negative(expr.args[1 - number]))
        found |= signs(arg, -sign if turned else sign)
    return found


def negative(expr: Expr) -> bool:
    return expr.op == "const" and expr.value < 0


def keeps(expr: Expr) -> bool:
    """Whether it is a number in another width, and the same number as long as sums do not wrap."""
    return expr.op in CONVERSIONS and (expr.op != "trunc" or expr.bits >= SUMS_FROM)


def is_var(expr: Expr, variable: int) -> bool:
    return expr.op == "var" and expr.value == variable


def moved(expr: Expr) -> tuple[int, int] | None:
    """``(variable, constant)`` of a variable plus a constant; None of sums of few bits, which wrap."""
    by = 0
    while keeps(expr) or (expr.op in ("add", "sub") and expr.bits >= SUMS_FROM):
        if keeps(expr):
            expr = expr.args[0]
            continue
        a, b = expr.args
        if b.op == "const":
            by += b.value if expr.op == "add" else -b.value
            expr = a
        elif a.op == "const" and expr.op == "add":
            by += a.value
            expr = b
        else:
            return None
    return (expr.value, by) if expr.op == "var" else None


@lru_cache(8192)
def leaves(expr: Expr) -> tuple[Expr, ...]:
    """Each once; what is read counts as one, too."""
    if not expr.args:
        return (expr,)
    return tuple([node for node in nodes(expr) if not node.args or node.op in ("load", "held")])


def unknown_leaf(leaf: Expr) -> bool:
    return leaf.op in ("uniform", "cta", "load", "held", "drawn")


def combined(a: Rates, b: Rates, sign: int) -> Rates:
    result = dict(a)
    for g, (turns, growth) in b.items():
        if g in result:
            other, grown = result[g]
            common = lcm(other, turns)
            result[g] = common, grown * (common // other) + sign * growth * (common // turns)
        else:
            result[g] = turns, sign * growth
    return result


def divided(rates: Rates, divisor: int) -> Rates:
    result: Rates = {}
    for g, (turns, growth) in rates.items():
        times = divisor // gcd(growth, divisor) if growth else 1
        result[g] = turns * times, growth * times // divisor
    return result
