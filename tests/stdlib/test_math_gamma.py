"""The logarithm of the gamma function, against its series in extended precision.

Where its many zeros below 0 are, a relative error says nothing: there it is measured in units of what is subtracted.
"""

from __future__ import annotations

import numpy as np
import pytest
import test_math
import test_math64

WIDE = np.longdouble
pytestmark = pytest.mark.skipif(np.finfo(WIDE).nmant < 63, reason="NumPy has no float longer than float64 here")
EULER = WIDE("0.57721566490153286060651209008240243")
PI = WIDE("3.14159265358979323846264338327950288")


def zeta_minus_one(k: int) -> WIDE:
    """The sum of n ** -k from n = 2 on, the end of it by Euler and Maclaurin."""
    n = WIDE(50)
    ends = n ** (1 - k) / (k - 1) + n**-k / 2 + k * n ** (-k - 1) / 12
    ends += -k * (k + 1) * (k + 2) * n ** (-k - 3) / 720
    ends += k * (k + 1) * (k + 2) * (k + 3) * (k + 4) * n ** (-k - 5) / 30240
    return sum(WIDE(i) ** -k for i in range(49, 1, -1)) + ends


ZETA = {k: zeta_minus_one(k) for k in range(2, 90)}


def near_two(z: np.ndarray) -> np.ndarray:
    """log(gamma(2 + z)) for z from -0.5 to 0.75."""
    sum = np.zeros_like(z)
    for k in reversed(ZETA):
        sum = (sum + (-1) ** k * ZETA[k] / k) * z
    return (sum + 1 - EULER) * z


def positive(x: np.ndarray) -> np.ndarray:
    """By the series around 2 after steps of 1 towards it, from 30 on by Stirling's."""
    below, steps = x.copy(), np.ones_like(x)
    for _ in range(29):
        far = (below > 2.5) & (x < 30)
        below = np.where(far, below - 1, below)
        steps = np.where(far, steps * below, steps)
    up = x < 1.5  # gamma(x) = gamma(1 + x) / x, once or twice
    twice = x < 0.5
    z = np.where(twice, x, np.where(up, x - 1, np.where(x < 30, below - 2, 0)))
    small = near_two(z) + np.log(steps) - np.where(up, np.log1p(z), 0) - np.where(twice, np.log(x), 0)
    v = 1 / (x * x)
    tail = 1 / (12 * x) * (1 - v / 30 * (1 - v * 2 / 7 * (1 - v * 3 / 4 * (1 - v * WIDE(140) / 99))))
    return np.where(x < 30, small, (x - WIDE(0.5)) * (np.log(x) - 1) + (np.log(2 * PI) - 1) / 2 + tail)


def lgamma(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        x = x.astype(WIDE)
        a = np.abs(x)
        part = np.abs(a - np.round(a))
        mirrored = np.log(PI) - np.log(a) - np.log(np.sin(PI * part)) - positive(a)
        mirrored = np.where(part == 0, np.inf, mirrored)
        return np.where(np.isinf(x), np.inf, np.where(x < 0, mirrored, np.where(x == 0, np.inf, positive(a))))


SIDES = {"float32": test_math, "float64": test_math64}


@pytest.mark.parametrize("dtype", SIDES)
def test_it_is_within_its_bound(dtype):
    of, rng = SIDES[dtype], np.random.default_rng(4)
    x = np.concatenate(
        [of.SPECIAL, rng.uniform(0, 12, 3000), rng.uniform(0.5, 3, 3000), np.abs(of.bits(rng, 2000)), [1, 2, 3, 8]]
    ).astype(dtype)
    x = x[~(x < 0)]
    off = of.errors(of.evaluate("lgamma(x0)", x), lgamma(x))
    assert off.max() <= 4, f"{off.max():.2f} ulp at {x[off.argmax()]!r}"


@pytest.mark.parametrize("dtype", SIDES)
def test_below_zero_it_is_within_its_bound(dtype):
    of, rng = SIDES[dtype], np.random.default_rng(5)
    x = -np.concatenate(
        [rng.uniform(0, 30, 4000), np.abs(of.bits(rng, 2000)), range(5), [np.inf, 1e-42, 0.5, 10.25]]
    ).astype(dtype)
    got, want = of.evaluate("lgamma(x0)", x).astype(WIDE), lgamma(x)
    assert np.array_equal(np.isinf(got), np.isinf(want.astype(dtype)))
    finite = np.isfinite(got)
    scale = np.maximum(np.maximum(np.abs(want), np.abs(lgamma(-x))), 1)[finite]
    off = np.abs(got[finite] - want[finite]) / np.ldexp(WIDE(1), np.frexp(scale)[1] - np.finfo(dtype).nmant - 1)
    assert off.max() <= 4, f"{off.max():.2f} ulp at {x[finite][off.argmax()]!r}"
