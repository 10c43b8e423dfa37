"""f32 and f64 arithmetic: add to sqrt in all rounding modes, min and max, signs; packed f32x2; sums of mixed precision.

NaN: f32 results are 0x7fffffff. f64 results keep an operand's payload, made quiet; an invalid operation gives
0xfff8000000000000. Source: PTX ISA, "Floating Point Instructions", "Mixed Precision Floating Point Instructions"; which
NaN the card gives was read from ptxas's code and measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxdsl.record import dataclass
from ptxdsl.sim.translate.emitter import Unsupported
from ptxdsl.sim.translate.ops_f64_rounding import fma_f64, quotient_f64, root_f64
from ptxdsl.sim.translate.ops_float_common import (
    QUIET_F64,
    cancelled,
    canonical,
    flush,
    payload,
    round_to_float,
    saturate,
    sum_to_odd,
    widen_half,
)
from ptxdsl.sim.translate.ops_form import ROUNDINGS, Form, Operation
from ptxdsl.sim.translate.ops_value import Lanes

Function = Callable[..., Lanes]


@dataclass(frozen=True)
class Arithmetic:
    """One operation. nearest: on floats or doubles, rounded to nearest by the host. exact: on doubles that hold floats,
    exact or rounded to odd, for other roundings of floats. summands: of the exact result, where it is a sum of doubles.
    directed: f64 rounded otherwise than to nearest; called with the rounding and the operands.
    """

    arity: int
    nearest: Function
    exact: Function
    directed: Function
    summands: Callable[..., tuple[Lanes, Lanes]] | None = None
    nan: tuple[int, ...] = (0, 1)  # of several f64 operands that are NaN the card gives the last in this order


def _one(a: Lanes) -> Lanes:
    return a.like(1.0)


def _signed_zero(a: Lanes, b: Lanes) -> Lanes:
    """A zero with the sign of the product: adding it changes nothing."""
    return ((a.as_bits() ^ b.as_bits()) & (1 << 63)).as_float()


ARITHMETIC: dict[str, Arithmetic] = {
    "add": Arithmetic(
        2,
        lambda a, b: a + b,
        sum_to_odd,
        lambda mode, a, b: fma_f64(mode, a, _one(a), b),
        lambda a, b: (a, b),
    ),
    "sub": Arithmetic(
        2,
        lambda a, b: a - b,
        lambda a, b: sum_to_odd(a, -b),
        lambda mode, a, b: fma_f64(mode, a, _one(a), -b),
        lambda a, b: (a, -b),
    ),
    "mul": Arithmetic(
        2,
        lambda a, b: a * b,
        lambda a, b: a * b,
        lambda mode, a, b: fma_f64(mode, a, b, _signed_zero(a, b)),
    ),
    "fma": Arithmetic(
        3,
        lambda a, b, c: a.fma(b, c),
        lambda a, b, c: sum_to_odd(a * b, c),
        lambda mode, a, b, c: fma_f64(mode, a, b, c),
        lambda a, b, c: (a * b, c),
        (0, 2, 1),
    ),
    # A quotient or root of floats is no nearer to a float, if it is none, than 2**-48 of it: the double is as good.
    "div": Arithmetic(
        2,
        lambda a, b: a / b,
        lambda a, b: a / b,
        lambda mode, a, b: quotient_f64(mode, a, b),
        nan=(1, 0),
    ),
    "rcp": Arithmetic(
        1,
        lambda a: 1.0 / a,
        lambda a: 1.0 / a,
        lambda mode, a: quotient_f64(mode, _one(a), a),
    ),
    "sqrt": Arithmetic(
        1,
        lambda a: a.intrinsic("sqrt"),
        lambda a: a.intrinsic("sqrt"),
        lambda mode, a: root_f64(mode, a),
    ),
}


def float_result(operation: Arithmetic, rounding: str, ftz: bool, sat: bool, values: Sequence[Lanes]) -> Lanes:
    """The operation on floats."""
    if ftz:
        values = [flush(value) for value in values]
    if rounding == "rn":
        result = operation.nearest(*values)
    else:
        doubles = [value.fpext() for value in values]
        result = round_to_float(operation.exact(*doubles), rounding)
        if rounding == "rm" and operation.summands is not None:
            result = cancelled(result, *operation.summands(*doubles))
    if ftz:
        tiny = is_tiny(operation.exact(*(value.fpext() for value in values)), rounding)
        result = tiny.choose(result.as_bits() & (1 << 31), result.as_bits()).as_float()
    return saturate(result) if sat else canonical(result)


def is_tiny(exact: Lanes, rounding: str) -> Lanes:
    """Whether the float that a double is rounded to is flushed: below the smallest normal one, if exponents had no end.

    The double is exact or rounded to odd.
    """
    size = exact.abs()
    if rounding == "rn":
        return size.fcmp("olt", LEAST_F32 * (1 - 2.0**-25))
    toward_zero = size.fcmp("olt", LEAST_F32)
    if rounding == "rz":
        return toward_zero
    away = size.fcmp("ole", LEAST_F32 * (1 - 2.0**-24))
    negative = exact.as_bits().icmp("slt", 0)
    grows = negative if rounding == "rm" else negative.icmp("eq", 0)
    return grows.choose(away, toward_zero)


LEAST_F32 = 2.0**-126


def double_result(operation: Arithmetic, rounding: str, values: Sequence[Lanes]) -> Lanes:
    if rounding == "rn":
        result = operation.nearest(*values)
    else:
        result = operation.directed(rounding, *values)
    return payload(result, *(values[i] for i in operation.nan[: len(values)]))


def arithmetic(name: str) -> Operation:
    operation = ARITHMETIC[name]

    def emit(form: Form) -> None:
        rounding = form.one_of(*ROUNDINGS) or "rn"
        ftz, sat = form.has("ftz"), form.has("sat")

        def compute(*values: Lanes) -> Lanes:
            if form.type == "f64":
                return double_result(operation, rounding, values)
            floats = [value.split("float") for value in values]
            return float_result(operation, rounding, ftz, sat, floats).split(values[0].element)

        values = form.sources(operation.arity)
        if form.type == "f64" and (ftz or sat):
            raise Unsupported(".ftz or .sat of f64")
        form.result(compute(*values) if rounding == "rn" else form.apart(compute, *values))

    return emit


def mixed(name: str) -> Operation:
    """``add.f32.bf16 d, a, c``: halves widened, then the operation on floats; the last operand is a float already."""
    operation = ARITHMETIC[name]

    def emit(form: Form) -> None:
        if len(form.types) != 2 or form.types[0] != "f32":
            raise Unsupported(f"types .{'.'.join(form.types)}")
        rounding = form.one_of(*ROUNDINGS) or "rn"
        form.count(operation.arity)
        values = [widen_half(form.source(i), form.type) for i in range(operation.arity - 1)]
        values.append(form.source(operation.arity - 1, "f32"))
        form.result(float_result(operation, rounding, False, form.has("sat"), values), "f32")

    return emit


def extreme(values: list[Lanes], smaller: bool, nan: bool) -> Lanes:
    """min or max of floats, -0 below +0; of a number and a NaN the number, or NaN if ``nan``."""
    result = values[0]
    for value in values[1:]:
        equal = result.fcmp("oeq", value)
        first = result.fcmp("olt" if smaller else "ogt", value)
        a, b = result.as_bits(), value.as_bits()
        picked = first.choose(a, b)
        # Equal numbers differ in their sign at most.
        picked = equal.choose(a | b if smaller else a & b, picked)
        if nan:
            none = result.fcmp("uno", value)
        else:
            picked = value.is_nan().choose(a, picked)
            picked = result.is_nan().choose(b, picked)
            none = result.is_nan() & value.is_nan()
        if result.bits == 64:
            result = none.choose(b | QUIET_F64, picked).as_float()
        else:
            result = none.choose(a.like(0x7FFF_FFFF), picked).as_float()
    return result


def min_or_max(smaller: bool) -> Operation:
    def emit(form: Form) -> None:
        values = form.sources(form.count(2, 3) if form.type == "f32" else 2)
        if form.type == "f32":
            if form.has("ftz"):
                values = [flush(value) for value in values]
            form.result(_modified_extreme(form, values, smaller))
        else:
            form.result(extreme(values, smaller, nan=False))

    return emit


def _modified_extreme(form: Form, values: list[Lanes], smaller: bool) -> Lanes:
    """With .NaN, .abs (of three operands) and .xorsign.abs: magnitudes, the sign that of the product."""
    nan, xorsign, absolute = form.has("NaN"), form.has("xorsign"), form.has("abs")
    sign = values[0].as_bits()
    if xorsign:
        for value in values[1:]:
            sign = sign ^ value.as_bits()
    if absolute:
        values = [value.abs() for value in values]
    result = extreme(values, smaller, nan)
    if not xorsign:
        return result
    signed = (result.as_bits() | (sign & 0x8000_0000)).as_float()
    return canonical(signed)


def absolute(form: Form) -> None:
    (a,) = form.sources(1)
    _sign_changed(form, a, a.abs())


def negative(form: Form) -> None:
    (a,) = form.sources(1)
    _sign_changed(form, a, -a)


def _sign_changed(form: Form, operand: Lanes, result: Lanes) -> None:
    """The card does these by an addition: f32 NaNs become canonical, f64 ones quiet, and keep their sign."""
    if form.type == "f64":
        form.result(operand.is_nan().choose(operand.as_bits() | QUIET_F64, result.as_bits()).as_float())
    else:
        form.result(canonical(flush(result) if form.has("ftz") else result))


def copysign(form: Form) -> None:
    """The magnitude of b with the sign of a."""
    a, b = form.sources(2)
    form.result(b.intrinsic("copysign", a))


_ALL = "f32 f64 f32x2"

FLOAT: dict[str, dict[str, Operation]] = {
    "add": {_ALL: arithmetic("add")},
    "sub": {_ALL: arithmetic("sub")},
    "mul": {_ALL: arithmetic("mul")},
    "fma": {_ALL: arithmetic("fma")},
    "mad": {"f32 f64": arithmetic("fma")},  # fused since sm_20
    "min": {"f32 f64": min_or_max(True)},
    "max": {"f32 f64": min_or_max(False)},
    "abs": {"f32 f64": absolute},
    "neg": {"f32 f64": negative},
    "copysign": {"f32 f64": copysign},
}
