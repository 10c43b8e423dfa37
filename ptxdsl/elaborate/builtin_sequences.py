"""Ranges and tuples: the functions and methods of what has elements and is no number."""

from __future__ import annotations

from ptxdsl.elaborate import types
from ptxdsl.elaborate.builtins import HANDLERS, Builtins
from ptxdsl.elaborate.convert import items_of
from ptxdsl.elaborate.entities import Literal, RangeValue, RValue
from ptxdsl.elaborate.matching import Bound
from ptxdsl.elaborate.types import SimdType
from ptxdsl.elaborate.values import const


def _range(e: Builtins, bound: Bound) -> RValue:
    stop = e.number(bound, "stop")
    assert isinstance(stop.type, SimdType)
    if not stop.type.dtype.is_integer:
        raise e.fail(
            "E0339", f"a range counts integers, not {stop.type}", bound.span, help="convert the bound: `Int(…)`"
        )
    start = e.argument(bound, "start") if "start" in bound.args else const(stop.type, 0)
    step = e.argument(bound, "step") if "step" in bound.args else const(stop.type, 1)
    return RangeValue(start, stop, step)


def _reversed(e: Builtins, bound: Bound) -> RValue:
    """range(0, 8, 3) from behind is range(6, -3, -3)."""
    numbers, span = e.argument(bound, "items"), bound.span
    assert isinstance(numbers, RangeValue)
    kinds = [v.type for v in (numbers.start, numbers.stop) if isinstance(v.type, SimdType)]
    if any(not t.dtype.signed for t in kinds):
        raise e.fail("E0339", f"a range of {kinds[0]} downwards", span, help="convert the bounds: `Int(…)`")
    step = e.comptime_int(numbers.step, span)
    if step == 0:
        raise e.fail("E0339", "a range with step 0", span, help="a step is not 0")
    distance = e.binary("-", numbers.stop, numbers.start, span)
    turns = e.binary("//", e.binary("-", distance, Literal(1 if step > 0 else -1), span), Literal(step), span)
    last = e.binary("+", numbers.start, e.binary("*", turns, Literal(step), span), span)
    return RangeValue(last, e.binary("-", numbers.start, Literal(step), span), Literal(-step))


def _tuple_length(e: Builtins, bound: Bound) -> RValue:
    return const(types.INT, len(items_of(e.argument(bound, "self")) or ()))


HANDLERS.update({"range": _range, "reversed": _reversed, "Tuple.__len__": _tuple_length})
