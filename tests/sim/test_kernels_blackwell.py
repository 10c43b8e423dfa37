"""``ptxdsl.kernels.gemm`` with a configuration of Blackwell's, in the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from ptxdsl import LaunchError
from ptxdsl.kernels import gemm
from ptxdsl.kernels_blackwell import BlackwellConfig, choose, has_tensor_memory


@pytest.mark.parametrize(
    "config", [BlackwellConfig(columns=128), BlackwellConfig(1, 64, 2), BlackwellConfig(1, 64, 2, clc=True)], ids=str
)
def test_a_product(config):
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 136, 72)).astype(np.float16), rng.standard_normal((2, 72, 136)).astype(np.float16)
    bias, out = rng.standard_normal(136).astype(np.float32), np.full((2, 136, 136), np.nan, np.float32)
    if config.ctas == 1:  # operands as they lie, transposed
        a, b = (np.ascontiguousarray(x.transpose(0, 2, 1)).transpose(0, 2, 1) for x in (a, b))
    gemm(a, b, out, scale=0.5, bias=bias, activation="relu", config=config)
    expected = np.maximum(0.5 * (a.astype(float) @ b.astype(float)) + bias, 0)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_sums_of_integers_are_exact(dtype):
    """Of unsigned bytes they are beyond what float32 has room for."""
    rng = np.random.default_rng(7)
    a, b = (rng.integers(0, 256, (16, 1152)).astype(dtype) for _ in "ab")
    out = np.zeros((16, 16), np.int32)
    gemm(a, b.T, out, config=SMALL)
    np.testing.assert_array_equal(out, a.astype(np.int64) @ b.astype(np.int64).T)


def test_no_groups():
    a, b, out = np.ones((256, 64), np.float16), np.ones((2, 64, 64), np.float16), np.zeros((256, 64), np.float16)
    with pytest.raises(LaunchError, match="no groups"):
        gemm(a, b, out, groups=np.array([0, 1], np.int32), config=BlackwellConfig())


SMALL = BlackwellConfig(1, 64, 2)


def halves(*shape):
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float16)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (halves(1, 8), halves(8, 8)),
        (halves(8, 1), halves(1, 8)),  # a K of one
        (halves(16, 8)[::2], halves(8, 8)),
        (halves(8, 24)[:, 8:16], halves(8, 8)),
        (np.broadcast_to(halves(8), (8, 8)), halves(8, 8)),
        (halves(2, 8, 8), np.broadcast_to(halves(8, 8), (2, 8, 8))),
    ],
    ids=["one row", "one column", "every other row", "some columns", "one row for all", "one matrix for all"],
)
def test_shapes_and_strides(a, b):
    out = np.full((*a.shape[:-1], b.shape[-1]), np.nan, np.float32)
    gemm(a, b, out, config=SMALL)
    np.testing.assert_allclose(out, a.astype(float) @ b.astype(float), rtol=1e-5, atol=1e-5)


A, B, OUT = halves(8, 8), halves(8, 8), np.zeros((8, 8), np.float32)
READ_ONLY = np.zeros((8, 8), np.float32)
READ_ONLY.setflags(write=False)
WRONG = {
    "a, of the shape (0, 8), has no elements": (A[:0], B, OUT[:0]),
    "b, of the shape (8, 0), has no elements": (A, B[:, :0], OUT[:, :0]),
    "a has rows 8 bytes apart": (halves(8, 4), halves(4, 8), OUT),
    "a has rows -16 bytes apart": (A[::-1], B, OUT),
    "a has strides of (16, 4) bytes: rows or columns must be contiguous": (A[:, ::2], B[:4], OUT),
    "out has rows of 12 bytes, no multiple of 16": (A, halves(8, 16)[:, :3], halves(8, 16).view(np.float32)[:, :3]),
    "out is read-only": (A, B, READ_ONLY),
    "out overlaps a": (A, B, A),
    "out overlaps b": (A, B, B[:8]),
    "out must be stored by rows": (A, B, OUT.T),
    "a is of float64, not of bfloat16, float16, float32, float8_e4m3fn, float8_e5m2, int8, uint8": (
        A.astype(float),
        B,
        OUT,
    ),
    "matrices of (8, 8) and (4, 8) have no product of (8, 8)": (A, B[:4], OUT),
}


@pytest.mark.parametrize("said", WRONG)
def test_what_is_no_product(said):
    with pytest.raises(LaunchError) as caught:
        gemm(*WRONG[said], config=SMALL)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("E0922", said)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (BlackwellConfig(3, 64, 2), "ctas is 1 or 2"),
        (BlackwellConfig(1, 48, 2), "columns are a multiple of 64 up to 256 for these matrices"),
        (BlackwellConfig(2, 64, 2), "columns are a multiple of 128 up to 256 for these matrices"),  # boxes of B
        (BlackwellConfig(1, 320, 2), "columns are a multiple of 64 up to 256 for these matrices"),
        (BlackwellConfig(1, 64, 0), "stages is 1 or more, order 1 to 4096"),
        (BlackwellConfig(1, 64, 2, 2**32), "stages is 1 or more, order 1 to 4096"),
        (BlackwellConfig([1], 64, 2), "its numbers are ints"),
        (BlackwellConfig(1, 256, 5), "it has 278528 bytes of shared memory, a block 231424"),
        (BlackwellConfig(1, 64.0, 2), "its numbers are ints"),
        (BlackwellConfig(1, 64, 2, clc=1), "clc is True or False"),
    ],
    ids=str,
)
def test_what_is_no_configuration(config, why):
    with pytest.raises(LaunchError) as caught:
        gemm(A, B, OUT, config=config)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("E0922", f"{config} is not for these matrices: {why}")


def test_what_is_chosen():
    """Large tiles where they keep all multiprocessors busy."""
    assert choose(4096, 4096, 1, 148) == BlackwellConfig()
    assert choose(2048, 2048, 1, 148).columns == 128
    assert choose(256, 256, 1, 148).ctas == 1
    assert choose(256, 256, 148, 148) == BlackwellConfig()
    assert [has_tensor_memory(c) for c in ((9, 0), (10, 0), (10, 3), (12, 0))] == [False, True, True, False]
