"""ptxdsl.kernels: matrix products called with arrays of NumPy, in the simulator; what is refused; what is chosen."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from ptxdsl.cuda.driver import current_driver
from ptxdsl.cuda.driver_interface import Device
from ptxdsl.diagnostics import LaunchError
from ptxdsl.gemm_configs import choose
from ptxdsl.gemm_operands import Matrices
from ptxdsl.kernels import Config, _multiprocessors, gemm, gemm_launch, prepare_gemm
from ptxdsl.kernels_blackwell import BlackwellConfig

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


@pytest.mark.parametrize("config", [SMALL, BlackwellConfig(ctas=1, columns=64, stages=2)], ids=["hopper", "blackwell"])
def test_what_is_launched_can_be_launched_by_hand(half, config):
    a, b, out = half(72, 40), half(40, 136), np.full((72, 136), np.nan, np.float16)
    made = gemm_launch(a, b, out, config=config)
    made.kernel[made.grid, made.threads](*made.arguments, smem=made.smem, pdl=made.pdl, target="sim")
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


def test_tensor_cores_see_tf32_of_float32():
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((72, 100)).astype(np.float32), rng.standard_normal((136, 100)).astype(np.float32)
    out = np.full((72, 136), np.nan, np.float32)
    gemm(a, b.T, out, tf32=True, config=SMALL)
    seen = [(x.view(np.uint32) & 0xFFFF_E000).view(np.float32).astype(float) for x in (a, b)]
    np.testing.assert_allclose(out, seen[0] @ seen[1].T, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("left", "right"), [(np.int8, np.int8), (np.uint8, np.uint8), (np.int8, np.uint8)])
def test_sums_of_integers_are_exact(left, right):
    """Of unsigned bytes they are beyond what float32 has room for."""
    rng = np.random.default_rng(7)
    a, b = (rng.integers(0, 256, shape).astype(type) for shape, type in (((8, 2000), left), ((16, 2000), right)))
    out = np.zeros((8, 16), np.int32)
    gemm(a, b.T, out, config=SMALL)
    np.testing.assert_array_equal(out, a.astype(np.int64) @ b.astype(np.int64).T)


def test_sums_of_integers_are_scaled_in_float32():
    a, b, out = np.full((8, 16), -3, np.int8), np.full((8, 16), 5, np.int8), np.full((8, 8), np.nan, np.float32)
    gemm(a, b.T, out, scale=0.25, bias=np.ones(8, np.float32), config=SMALL)
    np.testing.assert_array_equal(out, 16 * -15 / 4 + 1)


ZEROS = {kind: np.zeros((8, 16), kind) for kind in ("float16", "float32", "int8", "uint8", "int32")}
TYPES = {
    "a is of int8, b of float16": ("int8", "float16", "int32", {}),
    "tensor cores see 10 bits": ("float32", "float32", "float32", {}),
    "tf32 is for matrices of float32, and a is of float16": ("float16", "float16", "float16", {"tf32": True}),
    "tf32 is True or False, not 1": ("float32", "float32", "float32", {"tf32": 1}),
    "out is of int32, and sums of float16 are of float32": ("float16", "float16", "int32", {}),
    "on Blackwell a and b are of one type, not of int8 and uint8": (
        "int8",
        "uint8",
        "int32",
        {"config": BlackwellConfig()},
    ),
    "a is of int32, not of": ("int32", "int32", "int32", {}),
}


@pytest.mark.parametrize("said", TYPES)
def test_types_that_are_not_multiplied(said):
    left, right, result, given = TYPES[said]
    with pytest.raises(LaunchError, match=said) as caught:
        gemm(ZEROS[left], ZEROS[right].T, np.zeros((8, 8), result), **given)
    assert caught.value.diagnostics[0].code == "E0922"


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "remedy"),
    [
        ("a", "int8", (16, 16), "a.copy()"),
        ("b", "int8", (16, 16), "b.T.copy().T"),
        ("b", "float32", (2, 16, 16), "b.swapaxes(1, 2).copy().swapaxes(1, 2)"),
    ],
)
def test_operands_of_other_than_16_bits_are_copied_as_the_message_says(name, dtype, shape, remedy):
    a, b = np.random.default_rng(8).integers(-4, 4, (2, *shape)).astype(dtype)
    arrays = {"a": a.T, "b": b.T.copy().T} if name == "a" else {"a": a, "b": b}
    given, out = {"tf32": dtype == "float32", "config": SMALL}, np.full(shape, np.nan, np.float32)
    with pytest.raises(LaunchError, match=f"{name}, of {dtype}, is not contiguous along k") as caught:
        gemm(**arrays, out=out, **given)
    assert caught.value.diagnostics[0].help == f"give {remedy}"
    copied = {**arrays, name: eval(remedy, dict(arrays))}
    gemm(**copied, out=out, **given)
    np.testing.assert_array_equal(out, copied["a"].astype(int) @ copied["b"].astype(int))


@pytest.mark.parametrize("name", ["a", "b", "out", "bias", "residual", "groups"])
def test_all_arrays_are_on_one_side(name, array):
    given = {name: np.zeros(shape, kind) for name, shape, kind in (
        ("a", (8, 16), np.float16), ("b", (16, 8), np.float16), ("out", (8, 8), np.float32), ("bias", 8, np.float32),
        ("residual", (8, 8), np.float32), ("groups", 1, np.int32),
    )}  # fmt: skip
    given[name] = array(0x4000, given[name].dtype.str, given[name].shape)
    moved = "b is in host memory, a on a device" if name == "a" else f"{name} is on a device, (a|out) in host memory"
    with pytest.raises(LaunchError, match=moved):
        gemm(**given)


def test_some_tensor_cores_multiply_no_bytes(monkeypatch, array):
    monkeypatch.setattr("ptxdsl.kernels._device", lambda array: Device(0, "card", (10, 3)))
    with pytest.raises(LaunchError, match=r"the tensor cores of .*10\.3\) multiply no int8"):
        gemm(array(0x4000, "|i1", (16, 16)), array(0x5000, "|i1", (16, 16), (1, 16)), array(0x6000, "<f4", (16, 16)))


@pytest.mark.parametrize("given", [{"activation": "relu"}, {"bias": np.ones(8, np.float32)}, {"scale": 2}], ids=str)
def test_sums_in_int32_have_no_epilogue(given):
    with pytest.raises(LaunchError, match="sums in int32 are stored as they are") as caught:
        gemm(ZEROS["int8"], ZEROS["int8"].T, np.zeros((8, 8), np.int32), **given)
    assert caught.value.diagnostics[0].code == "E0922"


def test_groups_lie_one_behind_the_other(half):
    numbers = np.array([2, 9, 0, 9], np.int32)[::2]
    with pytest.raises(LaunchError, match="groups is not contiguous"):
        gemm(half(256, 64), half(3, 64, 64), np.zeros((256, 64), np.float16), groups=numbers)


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
        ((8, 16), (16, 8), (8, 8), {"bias": 3}, "bias is not an array but of type int"),
        ((8, 16), (16, 8), (8, 8), {"residual": [3]}, "residual is not an array but of type list"),
        ((8, 16), (16, 8), (8, 8), {"groups": 3}, "groups is not an array but of type int"),
        ((8, 16), (16, 8), (8, 8), {"scale": "x"}, "scale is a number, not 'x'"),
        ((8, 16), (16, 8), (8, 8), {"scale": "2"}, "scale is a number, not '2'"),
        ((8, 16), (16, 8), (8, 8), {"scale": b"2"}, "scale is a number, not b'2'"),
        ((8, 16), (16, 8), (8, 8), {"scale": True}, "scale is a number, not True"),
        ((8, 16), (16, 8), (8, 8), {"scale": np.ma.masked}, "scale is a number, not masked"),
        ((8, 16), (16, 8), (8, 8), {"scale": np.ones(2)}, "scale is a number, not array"),
        ((8, 16), (16, 8), (8, 8), {"scale": 1e300}, "scale is a float32: 1e.300 is too large"),
        ((8, 16), (16, 8), (8, 8), {"scale": 10**5000}, "scale is a float32: int too large"),
        ((8, 16), (16, 8), (8, 8), {"activation": ["relu"]}, "no activation ..relu"),
        ((8, 16), (16, 8), (8, 8), {"bias": np.zeros(8, complex)}, "bias is of complex128, no type of numbers"),
        ((8, 16), (16, 8), (8, 8), {"bias": np.zeros(8, ">f4")}, "bias cannot be used .* big-endian"),
        ((8, 16), (16, 8), (8, 8), {"bias": np.ma.zeros(8)}, "bias cannot be used .* masked"),
        ((8, 16), (16, 8), (8, 8), {"bias": np.zeros(16, np.float32)[::2]}, "bias is not contiguous"),
        ((8, 16), (16, 8), (8, 8), {"bias": np.zeros(9, np.float16)[1:]}, "no multiple of its pairs' 4 bytes"),
        (
            (8, 16),
            (16, 8),
            (8, 8),
            {"residual": np.zeros(72, np.float16)[8:].reshape(8, 8).T},
            "residual is not contig",
        ),
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


def lying(count, shape, *strides, first=0, dtype=np.float16):
    """A view of so many zeros, of which the first come before it; strides in elements."""
    size = np.dtype(dtype).itemsize
    behind = np.zeros(count, dtype)[first:]
    return np.lib.stride_tricks.as_strided(behind, shape, [size * step for step in strides])


OPERANDS = np.ones((3, 8, 16), np.float16), np.ones((3, 16, 8), np.float16)
SHARED = {
    "out has elements that share memory": [
        lying(192, (8, 8), 0, 1),  # one row for all
        lying(192, (3, 8, 8), 0, 8, 1),  # one matrix for all
        lying(192, (3, 8, 8), 56, 8, 1),  # a matrix begins in the last row of another
    ],
    "out begins at address .*, no multiple of 16": [lying(192, (8, 8), 8, 1, first=1)],
}


@pytest.mark.parametrize(("said", "out"), [(said, out) for said, outs in SHARED.items() for out in outs])
def test_a_result_that_cannot_be_stored_is_refused(said, out):
    a, b = (x if out.ndim == 3 else x[0] for x in OPERANDS)
    with pytest.raises(LaunchError, match=said):
        gemm(a, b, out, config=SMALL)


@pytest.mark.parametrize(("name", "given"), [("bias", (0, 8)), ("residual", (8, 72)), ("groups", (0, 1))])
def test_what_is_read_while_out_is_written_lies_elsewhere(name, given):
    memory = np.zeros(72, np.int32 if name == "groups" else np.float32)
    read, out = memory[slice(*given)], memory[:64].view(np.float32).reshape(8, 8)
    with pytest.raises(LaunchError, match=f"out overlaps {name}"):
        gemm(*(x[0] for x in OPERANDS), out, **{name: read.reshape(8, 8) if name == "residual" else read})


def test_operands_and_result_may_be_columns_of_one_matrix(half):
    """Beside one another, with matrices of the batch between those of the other."""
    rows = half(2, 8, 32).transpose(1, 0, 2).copy().transpose(1, 0, 2)
    a, b, out = rows[..., :16], half(2, 16, 8), rows[..., 16:24]
    untouched = rows[..., 24:].copy()
    gemm(a, b, out, config=SMALL)
    close(out, a.astype(float) @ b.astype(float))
    np.testing.assert_array_equal(rows[..., 24:], untouched)
    with pytest.raises(LaunchError, match="out overlaps a"):
        gemm(a, b, rows[..., 8:16], config=SMALL)


def test_what_is_only_read_may_be_read_only(half):
    a, b, bias, residual = half(8, 16), half(16, 8), half(8), half(1, 8, 8)
    out, exact = np.full((1, 8, 8), np.nan, np.float32), a.astype(float) @ b + bias + residual
    for array in (a, b, bias, residual):
        array.setflags(write=False)
    gemm(a[None], b[None], out, bias=bias, residual=residual, config=SMALL)
    close(out, exact)


def test_relu_hides_no_nan():
    a, b, out = np.eye(8, dtype=np.float16), np.full((8, 8), -1, np.float16), np.zeros((8, 8), np.float32)
    b[0], b[1] = np.nan, np.inf  # and infinity times 0
    with np.errstate(invalid="ignore"):
        exact = np.maximum(a.astype(float) @ b, 0)
    assert np.isnan(exact).any()
    gemm(a, b, out, activation="relu", config=SMALL)
    np.testing.assert_array_equal(out, exact)


def test_a_matrix_that_b_does_not_have_is_zero(half):
    a, b, out = half(3 * 128, 16), half(2, 16, 8), np.full((3 * 128, 8), np.nan, np.float32)
    gemm(a, b, out, groups=np.array([-1, 1, 2], np.int32), config=SMALL)
    close(out, np.concatenate([np.zeros((128, 8)), a[128:256].astype(float) @ b[1], np.zeros((128, 8))]))


def test_arrays_of_numpy_are_multiplied_in_the_simulator_beside_a_gpu_too(fake, half):
    a, b, out = half(8, 16), half(16, 8), np.full((8, 8), np.nan, np.float32)
    gemm(a, b, out, config=SMALL)
    close(out, a.astype(float) @ b)
    with pytest.raises(LaunchError, match="but a is in host memory"):
        prepare_gemm(a, b, out, config=SMALL)


def test_an_array_may_say_no_more_than_where_it_lies():
    class Array:
        __cuda_array_interface__ = {"shape": (8, 16), "typestr": "<f2", "data": (0x4000, False), "version": 3}  # noqa: RUF012

    found = Matrices("a", Array(), ("float16",))
    assert (found.rows, found.cols, found.first, found.end) == (8, 16, 0x4000, 0x4100)


FAULTS = {
    "its numbers are ints, sideways is a bool": [
        {"columns": "64"}, {"columns": 64.0}, {"columns": [64]}, {"groups": True}, {"order": None}, {"sideways": "yes"},
    ],
    "groups is 1, 2 or 3": [{"groups": 0}, {"groups": -1}, {"groups": 4}],
    "one of cluster and split is 1, the other 1 to 8": [
        {"cluster": 0}, {"split": 0}, {"cluster": 2, "split": 2}, {"cluster": 16},
    ],
    "a cluster of 8 blocks has more than the 4 multiprocessors": [{"split": 8}],
    "columns is a multiple of 16 up to 256": [{"columns": 0}, {"columns": -16}, {"columns": 72}, {"columns": 272}],
    "columns is a multiple of 16 up to 192": [{"groups": 3, "columns": 208}],
    "columns is a multiple of 64 up to 256": [{"split": 4, "columns": 80}],
    "stages is 2 or more, c_stages 1 or more, order 1 to 4096": [
        {"stages": 0}, {"stages": 1}, {"c_stages": 0}, {"order": 0}, {"order": 2**32},
    ],
    "it has 278528 bytes of shared memory, a block 231424": [{"stages": 5, "c_stages": 2}],
    "64 rows of a tile are no multiple of 24": [{"groups": 1, "cluster": 3, "sideways": True}],
    "32 columns are no multiple of 24": [{"groups": 1, "columns": 32, "cluster": 3}],
}  # fmt: skip


@pytest.mark.parametrize(("why", "numbers"), [(why, given) for why, all in FAULTS.items() for given in all], ids=str)
def test_what_is_no_configuration(why, numbers):
    a, b = np.zeros((8, 16), np.float16), np.zeros((8, 16), np.float16).T
    config = Config(**numbers)
    with pytest.raises(LaunchError) as caught:
        gemm(a, b, np.zeros((8, 8), np.float16), config=config)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("E0922", f"{config} is not for these matrices: {why}")


def test_a_cluster_of_any_number_that_divides_a_tile(half):
    """Every row of A is loaded by some block of it, also where A has fewer rows than a tile."""
    config = Config(groups=3, columns=16, stages=2, c_stages=1, cluster=3, sideways=True)
    for m in (20, 200):
        a, b, out = half(m, 16), half(136, 16).T, np.full((m, 136), np.nan, np.float32)
        gemm(a, b, out, config=config)
        close(out, a.astype(float) @ b)
