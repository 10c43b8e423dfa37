"""ptxdsl.kernels: matrix products called with arrays of NumPy, in the simulator; what is refused; what is chosen."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from ptxdsl.cuda.driver import current_driver
from ptxdsl.diagnostics import LaunchError
from ptxdsl.kernels import Config, _multiprocessors, choose, gemm

SMALL = Config(groups=1, columns=64, stages=2)


@pytest.fixture
def half():
    rng = np.random.default_rng(5)
    return lambda *shape: rng.standard_normal(shape).astype(np.float16)


def test_the_device_of_the_arrays_is_that_of_a_thread_without_one(fake, tensor):
    fake.devices, found = 2, []

    def work():
        assert _multiprocessors(tensor(0x4000, index=1)) == 132
        found.append(current_driver().current_device())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [1]


def close(found, exact):
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, exact, rtol=2**-9, atol=2**-9)


def test_a_product_is_written_to_out(half):
    a, b, out = half(72, 40), half(40, 136), np.full((72, 136), np.nan, np.float16)
    gemm(a, b, out, config=SMALL)
    close(out, a.astype(float) @ b.astype(float))


def test_few_rows(half):
    a, b, out = half(3, 72), half(72, 136), np.full((3, 136), np.nan, np.float16)
    gemm(a, b, out)
    close(out, a.astype(float) @ b.astype(float))


def test_transposes_are_taken_as_they_lie(half):
    a, b, out = half(40, 72).T, half(136, 40).T, np.full((72, 136), np.nan, np.float32)
    gemm(a, b, out, config=SMALL)
    close(out, a.astype(float) @ b.astype(float))


def test_the_epilogue_scales_adds_activates_and_adds(half):
    a, b, bias, residual = half(2 * 64, 64), half(64, 64), half(64), half(2 * 64, 64)
    out = np.full((2 * 64, 64), np.nan, np.float32)
    gemm(a, b, out, scale=0.5, bias=bias, activation="relu", residual=residual, config=SMALL)
    close(out, np.maximum(0.5 * (a.astype(float) @ b.astype(float)) + bias, 0) + residual)


def test_batches(half):
    a, b, out = half(3, 64, 64), half(3, 64, 72), np.full((3, 64, 72), np.nan, np.float16)
    gemm(a, b, out, config=SMALL)
    close(out, a.astype(float) @ b.astype(float))


def test_groups_of_rows_have_their_own_b(half):
    a, b, out = half(5 * 64, 64), half(4, 64, 64), np.full((5 * 64, 64), np.nan, np.float16)
    numbers = np.array([2, 0, 3], np.int32)
    gemm(a, b, out, groups=numbers)
    close(out, np.concatenate([a[128 * i : 128 * i + 128].astype(float) @ b[g] for i, g in enumerate(numbers)]))


@pytest.mark.parametrize(
    ("a", "b", "out", "given", "said"),
    [
        ((8, 16), (8, 16), (8, 16), {}, "have no product"),
        ((8, 16), (16, 8), (8, 16), {}, "have no product"),
        ((2, 8, 16), (16, 8), (8, 8), {}, "batches of 2, 1 and 1 matrices"),
        ((8,), (16, 8), (8, 8), {}, "a has the shape"),
        ((8, 16), (16, 8), (8, 8), {"activation": "swish"}, "no activation 'swish'"),
        ((8, 16), (16, 8), (8, 8), {"groups": np.zeros(2, np.int32)}, "groups of int32 of the shape"),
        ((8, 16), (16, 8), (8, 8), {"config": Config(columns=192, cluster=2)}, "is not for these matrices"),
        ((8, 16), (16, 8), (8, 8), {"bias": np.zeros(4, np.float32)}, "a bias of the shape"),
        ((8, 16), (16, 8), (8, 8), {"bias": 3}, "bias is no array but a int"),
        ((8, 16), (16, 8), (8, 8), {"residual": [3]}, "residual is no array but a list"),
        ((8, 16), (16, 8), (8, 8), {"groups": 3}, "groups is no array but a int"),
        ((8, 16), (16, 8), (8, 8), {"scale": "x"}, "scale is a number, not 'x'"),
        ((8, 16), (16, 8), (8, 8), {"config": "x"}, "config is a Config or a BlackwellConfig, not 'x'"),
    ],
)
def test_what_has_no_product_is_refused(a, b, out, given, said):
    arrays = [np.zeros(shape, np.float16) for shape in (a, b, out)]
    with pytest.raises(LaunchError, match=said) as caught:
        gemm(*arrays, **given)
    assert caught.value.diagnostics[0].code == "E0922"


@pytest.mark.parametrize(
    ("shape", "rows", "columns"),
    [
        ((512, 512), 64, 64),  # so that as many blocks as can be have work
        ((1024, 1024), 64, 128),
        ((1536, 1536), 128, 144),
        ((2048, 2048), 128, 128),
        ((4000, 4000), 192, 160),
        ((4096, 4096), 128, 256),
        ((16384, 16384), 128, 256),
        ((16, 8192), 64, 64),
    ],
)
def test_tiles_are_as_large_as_leaves_no_multiprocessor_idle(shape, rows, columns):
    config = choose(*shape, 2 * max(shape), 1, 132)
    assert (config.rows, config.columns) == (rows, columns)


@pytest.mark.parametrize(("shape", "split"), [((64, 1024, 8192), 4), ((512, 512, 512), 1), ((4096, 4096, 65536), 1)])
def test_few_tiles_divide_a_long_k(shape, split):
    m, n, k = shape
    assert choose(m, n, 2 * k, 1, 132).split == split


@pytest.mark.parametrize(("m", "n", "sideways"), [(8192, 512, True), (512, 8192, False), (4096, 4096, False)])
def test_pairs_of_blocks_share_the_larger_operand_where_each_has_one_tile(m, n, sideways):
    config = choose(m, n, 2 * 4096, 1, 132)
    assert (config.cluster, config.sideways) == (2, sideways)


def test_a_residual_is_read_once_where_it_becomes_the_result(half):
    """Boxes of C that overlap would read what was stored: then, other tiles are taken."""
    a, b, out = half(136, 72), half(72, 144), half(136, 144)
    exact = a.astype(float) @ b + out
    with pytest.raises(LaunchError, match="is not for these matrices"):
        gemm(a, b.T.copy().T, out, residual=out, config=Config(columns=144, stages=4, c_stages=2))
    gemm(a, b.T.copy().T, out, residual=out)
    close(out, exact)
