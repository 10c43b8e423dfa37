"""The precise mathematical functions: their own TIR, run on NumPy float32, against float64 or better.

The bounds are those of the docstrings, in units in the last place of float32.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from tir_numpy import Run

from ptxdsl.diagnostics import DiagnosticSink
from ptxdsl.elaborate import elaborate
from ptxdsl.imports import Loader, parse_once
from ptxdsl.options import Options
from ptxdsl.source import Source
from ptxdsl.tir import Kernel

WIDE = np.longdouble
IMPORTS = """\
from math import acos, acosh, asin, asinh, atan, atan2, atanh, cbrt, cosh, erfc, exp10, expm1, hypot
from math import lgamma, log1p, sinh

"""
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, -1e-42, 1, -1, 3.4e38, -3.4e38], np.float32)


def kernel_of(expression: str, inputs: int) -> Kernel:
    """A kernel that computes the expression of x0, x1, … once."""
    names = range(inputs)
    arguments = "".join(f"a{i}: Pointer[Float32, MutAnyOrigin], " for i in names)
    loads = "".join(f"    var x{i} = a{i}[]\n" for i in names)
    text = (
        f"{IMPORTS}@kernel\ndef k({arguments}res: Pointer[Float32, MutAnyOrigin]):\n{loads}    res[] = {expression}\n"
    )
    sink = DiagnosticSink()
    module = parse_once(Source("test.pdsl", text))
    made = elaborate(module, kernel=None, constants={}, options=Options(), loader=Loader(), sink=sink)
    sink.raise_errors()
    return made.kernels[0]


def evaluate(expression: str, *inputs: np.ndarray) -> np.ndarray:
    """The expression of x0, x1, … elementwise."""
    output = Run(kernel_of(expression, len(inputs)), *inputs).output
    assert output is not None
    return output


def errors(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """In ulp of float32 at the exact value; NaN and infinity must be met exactly, or be what rounding gives."""
    with np.errstate(all="ignore"):
        unit = np.ldexp(1.0, np.maximum(np.frexp(np.abs(want).astype(np.float64))[1] - 24, -149))
        off = np.abs(got.astype(WIDE) - want) / unit
        exact = (got == want.astype(np.float32)) | (np.isnan(got) & np.isnan(want))
        return np.where(exact & ~np.isfinite(got), 0, np.where(np.isnan(off), np.inf, off))


def bits(rng, count, low=-np.inf, high=np.inf):
    """Numbers of every exponent."""
    found = rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    return found[(found >= low) & (found <= high)]


def evenly(rng, low, high, count=30_000):
    return rng.uniform(low, high, count).astype(np.float32)


# Of Float64 as well: neither where they are looked at nor their bounds depend on the type.
INVERSES = {
    "asinh": (np.arcsinh, (-20, 20), 2),
    "acosh": (np.arccosh, (1, 20), 2),
    "atanh": (np.arctanh, (-1, 1), 2),
    "atan": (np.arctan, (-10, 10), 1.5),
    "asin": (np.arcsin, (-1, 1), 1.5),
    "acos": (np.arccos, (-1, 1), 1.5),
    "cbrt": (np.cbrt, (-30, 30), 1),
}
FUNCTIONS = {
    "exp": (np.exp, (-110, 90), 1.5),
    "exp2": (np.exp2, (-152, 129), 1.5),
    "exp10": (lambda x: WIDE(10) ** x, (-46, 39), 1.5),
    "log": (np.log, (0.5, 2), 1.5),
    "log2": (np.log2, (0.5, 2), 2),
    "log10": (np.log10, (0.5, 2), 2),
    "sin": (np.sin, (-50000, 50000), 2),
    "cos": (np.cos, (-50000, 50000), 2),
    "tan": (np.tan, (-50000, 50000), 4),
    "tanh": (np.tanh, (-10, 10), 2),
    "erf": (np.vectorize(math.erf, otypes=[WIDE]), (-5, 5), 2),
    "erfc": (np.vectorize(math.erfc, otypes=[WIDE]), (-1, 11), 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0, 10), 1.5),
    "expm1": (np.expm1, (-3, 90), 1.5),
    "log1p": (np.log1p, (-1, 3), 1),
    "sinh": (np.sinh, (-90, 90), 2),
    "cosh": (np.cosh, (-90, 90), 1.5),
    **INVERSES,
}
PAIRS = {"hypot": (np.hypot, 2), "atan2": (np.arctan2, 1.5)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_within_the_documented_bound(name):
    exact, interval, bound = FUNCTIONS[name]
    rng = np.random.default_rng(1)
    x = np.concatenate([SPECIAL, evenly(rng, *interval), evenly(rng, -4, 4, 10_000), bits(rng, 30_000)])
    with np.errstate(all="ignore"):
        want = np.asarray(exact(x.astype(WIDE)), WIDE)
    off = errors(evaluate(f"{name}(x0)", x), want)
    assert off.max() <= bound, f"{off.max():.2f} ulp at {x[off.argmax()]!r}"


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_numbers_are_within_their_bounds(name):
    exact, bound = PAIRS[name]
    rng = np.random.default_rng(3)
    special = [values.ravel() for values in np.meshgrid(SPECIAL, SPECIAL)]
    x, y = (np.concatenate([special[i], evenly(rng, -3, 3), bits(rng, 30_000)[:29_000]]) for i in (0, 1))
    with np.errstate(all="ignore"):
        want = exact(x.astype(WIDE), y.astype(WIDE))
    got = evaluate(f"{name}(x0, x1)", x, y)
    off = errors(got, want)
    assert off.max() <= bound, f"{off.max():.2f} ulp at {x[off.argmax()]!r}, {y[off.argmax()]!r}"
    assert np.array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(want)[~np.isnan(got)])


ODD = ["sin", "tan", "tanh", "erf", "asin", "atan", "sinh", "asinh", "atanh", "expm1", "log1p", "cbrt"]


@pytest.mark.parametrize("name", [*ODD, "floor", "trunc", "round", "sqrt"])
def test_negative_zero_stays(name):
    assert np.signbit(evaluate(f"{name}(x0)", np.array([-0.0], np.float32)))[0]


def test_pow_is_within_its_bound():
    rng = np.random.default_rng(2)
    x = np.concatenate([evenly(rng, 0, 3), bits(rng, 80_000, 0)[:30_000], evenly(rng, 0.99, 1.01)])
    y = np.concatenate([evenly(rng, -60, 60), evenly(rng, -3, 3), evenly(rng, -8000, 8000)])
    with np.errstate(all="ignore"):
        want = np.power(x.astype(WIDE), y.astype(WIDE))
    off = errors(evaluate("pow(x0, x1)", x, y), want)
    assert off.max() <= 2, f"{off.max():.2f} ulp at {x[off.argmax()]!r} ** {y[off.argmax()]!r}"


def test_pow_of_zeros_infinities_and_negative_numbers():
    values = [0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1e30, -1e30, 16777215, math.inf, -math.inf, math.nan]
    x, y = (a.ravel() for a in np.meshgrid(np.array(values, np.float32), np.array(values, np.float32)))

    def exact(a: float, b: float) -> float:
        """C's pow: Python's differs where it raises."""
        try:
            return math.pow(a, b)
        except OverflowError:
            return -math.inf if a < 0 and b % 2 == 1 else math.inf
        except ValueError:
            if a != 0:
                return math.nan
            return math.copysign(math.inf, a) if b % 2 == 1 else math.inf

    want = np.array([exact(float(a), float(b)) for a, b in zip(x, y, strict=True)])
    got = evaluate("pow(x0, x1)", x, y)
    assert errors(got, want.astype(WIDE)).max() <= 2
    assert np.array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(want)[~np.isnan(got)])


def test_constants_fold():
    """A function of a constant is a constant: nothing is left to compute at run time."""
    sum_of_constants = "exp(Float32(1)) + log(Float32(2)) + erf(Float32(0.5))"
    assert [op.name for op in kernel_of(sum_of_constants, 0).body.ops] == ["store", "return"]
