"""Tensor maps as values: what launches must check of them, and where they lie in memory."""

from __future__ import annotations

from ptxdsl.elaborate import types
from ptxdsl.elaborate.builtins import HANDLERS, Builtins
from ptxdsl.elaborate.entities import NONE_VALUE, Runtime, RValue
from ptxdsl.elaborate.matching import Bound
from ptxdsl.elaborate.tensor_maps import box_of


def _expect_box(e: Builtins, bound: Bound) -> RValue:
    rank, rows, cols, span, atom = (e.param_int(bound, name) for name in ("rank", "rows", "cols", "span", "atom"))
    in_one_line, combines = (bool(e.param_int(bound, name)) for name in ("in_one_line", "combines"))
    dtype = e.param_value(bound, "dtype")
    box = box_of(rank, rows, cols, dtype, span, atom, in_one_line=in_one_line, combines=combines)
    e.map_needs.box(e.number(bound, "map").value, box)
    return NONE_VALUE


def _tensor_map_at(e: Builtins, bound: Bound) -> RValue:
    address = e.convert(e.argument(bound, "address"), bound.arg_types["address"], bound.span)
    return Runtime(types.TENSOR_MAP, e.runtime(address, bound.span).value)


def _tensor_map_words(e: Builtins, bound: Bound) -> RValue:
    return Runtime(e.result_of(bound), e.number(bound, "map").value)


HANDLERS.update({
    "expect_box": _expect_box, "tensor_map_at": _tensor_map_at, "tensor_map_words": _tensor_map_words,
})  # fmt: skip
