"""Conversions of two instructions round once: a number just beside the middle of two neighbours goes to the nearer."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl

# The middle of two neighbours, the even one of these, the other: of Float8_e4m3fn, Float8_e5m2 and BFloat16.
E4M3, E5M2 = (14.5, 14.0, 15.0), (104.0, 96.0, 112.0)
WIDE, NARROW = (2**40 + 2**32, 2**40, 2**40 + 2**33), (2**30 + 2**22, 2**30, 2**30 + 2**23)

CASES = [
    ("Float64", np.float64, "Float8_e4m3fn", E4M3, 2.0**-40),
    ("Float64", np.float64, "Float8_e5m2", E5M2, 2.0**-40),
    ("Int64", np.int64, "BFloat16", WIDE, 1),
    ("UInt64", np.uint64, "BFloat16", WIDE, 1),
    ("Int32", np.int32, "BFloat16", NARROW, 1),
    ("UInt32", np.uint32, "BFloat16", NARROW, 1),
]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("source", "kind", "to", "numbers", "little"), CASES)
def test_beside_the_middle(
    source: str, kind: type, to: str, numbers: tuple[float, ...], little: float, arch: str
) -> None:
    if arch == "sm_80" and to != "BFloat16":
        pytest.skip("sm_80 has no floats of 8 bits")
    middle, even, odd = numbers
    given = [middle - little, middle, middle + little, even, odd]
    expected = [even, even, odd, even, odd]
    if source[0] != "U":
        given, expected = given + [-x for x in given], expected + [-x for x in expected]
    count = len(given)
    constants = "".join(f"    res[unsafe_offset={i}] = Float32({to}({source}({x})))\n" for i, x in enumerate(given))
    pointers = f"res: Pointer[Float32, MutAnyOrigin], src: Pointer[{source}, MutAnyOrigin]"
    text = f"""
@kernel(threads={count})
def one({pointers}):
    res[unsafe_offset=thread_idx.x] = Float32({to}(src[unsafe_offset=thread_idx.x]))
@kernel(threads=1)
def vectors({pointers}):
    for i in range({count}):
        var pair = SIMD[DType.{source.lower()}, 2](src[unsafe_offset=i])
        res[unsafe_offset=i] = Float32(pair.cast[DType.{to.lower()}]()[1])
@kernel(threads=1)
def known({pointers}):
{constants}"""
    module = ptxdsl.loads(text)
    for name in module.kernels:
        result = np.zeros(count, np.float32)
        assert module[name].simulate(result, np.array(given, kind), arch=arch).finished
        assert result.tolist() == expected
