"""NumPy arrays of bfloat16 and 8-bit floats, whose types are from the package ml_dtypes."""

import numpy as np
import pytest

import ptxdsl
from ptxdsl.kernels import gemm

ml_dtypes = pytest.importorskip("ml_dtypes")

KERNEL = """
@kernel(threads=32)
def doubled(x: Pointer[Float8_e4m3fn, ImmutAnyOrigin], y: Pointer[BFloat16, MutAnyOrigin]):
    var i = Int32(thread_idx.x)
    y[unsafe_offset=i] = BFloat16(Float32(x[unsafe_offset=i]) * Float32(2))
"""


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_products(name):
    rng = np.random.default_rng(0)
    dtype = np.dtype(getattr(ml_dtypes, name))
    a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((72, 64), (80, 64)))  # exact, and so are the sums
    bias, out = np.arange(80).astype(ml_dtypes.bfloat16), np.empty((72, 80), np.float32)
    gemm(a, b.T, out, scale=dtype.type(0.5), bias=bias)
    np.testing.assert_array_equal(out, 0.5 * (a.astype(float) @ b.T.astype(float)) + bias.astype(float))


def test_pointers_and_tensor_maps():
    numbers = np.arange(32).astype(ml_dtypes.float8_e4m3fn)
    kernel = ptxdsl.loads(KERNEL).doubled
    result = np.zeros(32, ml_dtypes.bfloat16)
    for given in (numbers, numbers.view(np.uint8)):  # the bits just as well
        kernel[1, 32](given, result, target="sim")
        np.testing.assert_array_equal(result.astype(float), 2 * numbers.astype(float))
        result[:] = 0
    for other in ("float8_e5m2", "float8_e4m3", "bfloat16"):
        with pytest.raises(ptxdsl.LaunchError, match=f"got an array of {other}"):
            kernel[1, 32](numbers.astype(getattr(ml_dtypes, other)), result, target="sim")
    maps = [ptxdsl.TensorMap(a.reshape(2, 16), (2, 16)).description.data_type for a in (numbers, result)]
    assert maps == ["u8", "bf16"]
