"""What the library asks the compiler to check: no code, but an error where it is not so."""

from __future__ import annotations

from ptxdsl.elaborate.builtins import HANDLERS, Builtins
from ptxdsl.elaborate.entities import NONE_VALUE, RValue
from ptxdsl.elaborate.matching import Bound
from ptxdsl.elaborate.suggestions import meant
from ptxdsl.targets import FEATURES


def _check_alignment(e: Builtins, bound: Bound) -> RValue:
    what = e.param_value(bound, "what")
    e.want_aligned(e.number(bound, "address").value, e.param_int(bound, "bytes"), what, bound.span)
    return NONE_VALUE


def _check_feature(e: Builtins, bound: Bound) -> RValue:
    feature = e.param_value(bound, "feature")
    if feature not in FEATURES:
        raise e.fail("E0407", f"no target has a feature '{feature}'", bound.span, help=meant(feature, FEATURES))
    e.require(feature, bound.span, e.param_value(bound, "what"))
    return NONE_VALUE


HANDLERS.update({"check_alignment": _check_alignment, "check_feature": _check_feature})
