"""Mathematical functions of Float64: the PTX that they become, in the simulator, against NumPy's extended precision.

The bounds are those of the docstrings, in units in the last place of float64.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_math import IMPORTS, INVERSES, ODD, PAIRS

import ptxdsl

WIDE = np.longdouble
pytestmark = pytest.mark.skipif(np.finfo(WIDE).nmant < 63, reason="NumPy has no float longer than float64 here")
BLOCK = 256
LARGE = [
    2.0**27,
    -(2.0**27),
    1e22,
    5.319372648326541e255,
    -1.7e308,
]  # the fourth is as near to a multiple of pi / 2 as can be
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-310, -1e-310, 5e-324, -5e-324, 1, -1, 1.7e308, *LARGE]


def evaluate(expression: str, *inputs: np.ndarray) -> np.ndarray:
    """The expression of x0, x1, … elementwise."""
    names = range(len(inputs))
    arguments = "".join(f"a{i}: Pointer[Float64, MutAnyOrigin], " for i in names)
    loads = "".join(f"    var x{i} = a{i}[unsafe_offset=global_idx.x]\n" for i in names)
    text = f"{IMPORTS}@kernel\ndef k({arguments}res: Pointer[Float64, MutAnyOrigin]):\n{loads}"
    kernel = ptxdsl.loads(f"{text}    res[unsafe_offset=global_idx.x] = {expression}\n").k
    size = len(inputs[0])
    filled = [np.resize(x, -(-size // BLOCK) * BLOCK) for x in inputs]
    result = np.empty_like(filled[0])
    kernel[len(result) // BLOCK, BLOCK](*filled, result, target="sim")
    return result[:size]


def errors(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """In ulp of float64 at the exact value; NaN and infinity must be met exactly, or be what rounding gives."""
    with np.errstate(all="ignore"):
        unit = np.ldexp(WIDE(1), np.maximum(np.frexp(np.abs(want).astype(np.float64))[1] - 53, -1074))
        off = np.abs(got.astype(WIDE) - want) / unit
        exact = (got == want.astype(np.float64)) | (np.isnan(got) & np.isnan(want))
        return np.where(exact & ~np.isfinite(got), 0, np.where(np.isnan(off), np.inf, off))


def bits(rng, count):
    """Numbers of every exponent."""
    return rng.integers(0, 2**64, count, dtype=np.uint64).view(np.float64)


def erf(x: np.ndarray) -> np.ndarray:
    """Taylor's series below 1; above it 1 - erfc has bits to spare."""
    square, sum, term = x * x, np.zeros_like(x), x.copy()
    for k in range(40):
        sum += term / (2 * k + 1)
        term *= -square / (k + 1)
    root = np.sqrt(np.arctan2(WIDE(0), WIDE(-1)))
    rest = np.array([math.erfc(abs(float(v))) for v in x], WIDE)
    return np.where(np.abs(x) < 1, 2 * sum / root, np.copysign(1 - rest, x))


def erfc(x: np.ndarray) -> np.ndarray:
    """A series of positive terms below 2; above it a continued fraction, whose exponent is not rounded."""
    a = np.minimum(np.abs(x), 30)
    sum, term = np.zeros_like(a), a.copy()
    for k in range(120):
        sum += term
        term *= 2 * a * a / (2 * k + 3)
    high = a.astype(np.float32).astype(WIDE)
    power = np.exp(-high * high) * np.exp(-(a - high) * (a + high)) / np.sqrt(np.arctan2(WIDE(0), WIDE(-1)))
    rest = a
    for k in range(240, 0, -1):
        rest = a + k / WIDE(2) / rest
    right = np.where(a < 2, 1 - 2 * power * sum, power / rest)
    return np.where(x < 0, 2 - right, right)


QUARTERS = np.arange(-3000, 3000) * (math.pi / 2)
FUNCTIONS = {
    "exp": (np.exp, (-750, 712), 1),
    "exp2": (np.exp2, (-1080, 1025), 1),
    "exp10": (lambda x: WIDE(10) ** x, (-325, 309), 1),
    "log": (np.log, (0.5, 2), 1),
    "log2": (np.log2, (0.5, 2), 1),
    "log10": (np.log10, (0.5, 2), 1),
    "sin": (np.sin, (-1.4e8, 1.4e8), 1),
    "cos": (np.cos, (-1.4e8, 1.4e8), 1),
    "tan": (np.tan, (-1.4e8, 1.4e8), 1),
    "tanh": (np.tanh, (-20, 20), 1),
    "erf": (erf, (-6.5, 6.5), 1.5),
    "erfc": (erfc, (-1, 27.5), 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0, 10), 1.5),
    "expm1": (np.expm1, (-3, 720), 1.5),
    "log1p": (np.log1p, (-1, 3), 1),
    "sinh": (np.sinh, (-720, 720), 2),
    "cosh": (np.cosh, (-720, 720), 1.5),
    **INVERSES,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_within_the_documented_bound(name):
    exact, interval, bound = FUNCTIONS[name]
    rng = np.random.default_rng(1)
    powers = np.ldexp(1.0, np.arange(-1074, 1024))
    near_one = 1 + rng.uniform(-1e-8, 1e-8, 500)
    x = np.concatenate(
        [SPECIAL, QUARTERS, rng.uniform(*interval, 6000), rng.uniform(-4, 4, 6000), near_one, powers, bits(rng, 6000)]
    )
    with np.errstate(all="ignore"):
        want = np.asarray(exact(x.astype(WIDE)), WIDE)
    off = errors(evaluate(f"{name}(x0)", x), want)
    assert off.max() <= bound, f"{off.max():.2f} ulp at {x[off.argmax()]!r}"


def test_pow_is_within_its_bound():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(0, 3, 6000), np.abs(bits(rng, 6000)), 1 + rng.uniform(-1e-6, 1e-6, 6000)])
    y = np.concatenate([rng.uniform(-500, 500, 6000), rng.uniform(-3, 3, 6000), rng.uniform(-7e8, 7e8, 6000)])
    with np.errstate(all="ignore"):
        want = np.power(x.astype(WIDE), y.astype(WIDE))
    off = errors(evaluate("pow(x0, x1)", x, y), want)
    assert off.max() <= 1, f"{off.max():.2f} ulp at {x[off.argmax()]!r} ** {y[off.argmax()]!r}"


def test_pow_of_zeros_infinities_and_negative_numbers():
    values = [0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1e300, -1e300, 2.0**53 - 1, math.inf, -math.inf, math.nan]
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        want = np.power(x.astype(WIDE), y.astype(WIDE))
    got = evaluate("pow(x0, x1)", x, y)
    assert errors(got, want).max() <= 1
    assert np.array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(want)[~np.isnan(got)])


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_numbers_are_within_their_bounds(name):
    exact, bound = PAIRS[name]
    rng = np.random.default_rng(3)
    special = [values.ravel() for values in np.meshgrid(SPECIAL, SPECIAL)]
    x, y = (np.concatenate([special[i], rng.uniform(-3, 3, 6000), bits(rng, 6000)]) for i in (0, 1))
    with np.errstate(all="ignore"):
        want = exact(x.astype(WIDE), y.astype(WIDE))
    got = evaluate(f"{name}(x0, x1)", x, y)
    off = errors(got, want)
    assert off.max() <= bound, f"{off.max():.2f} ulp at {x[off.argmax()]!r}, {y[off.argmax()]!r}"
    assert np.array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(want)[~np.isnan(got)])


@pytest.mark.parametrize("name", ODD)
def test_negative_zero_stays(name):
    assert np.signbit(evaluate(f"{name}(x0)", np.array([-0.0])))[0]


def test_a_vector_goes_lane_by_lane():
    vector = "SIMD[DType.float64, 2](x0, 2.0 * x0)"
    got = evaluate(f"exp({vector})[1] - pow({vector}, 2.0)[0]", np.array([0.75]))
    assert got[0] == math.exp(1.5) - 0.5625
