"""The Hopper GEMM of the samples: tiles whole and ragged, configurations, majors, types, batches, epilogues."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ptxdsl
from ptxdsl.gemm_launch import sample_kernel
from ptxdsl.kernels import Config
from ptxdsl.kernels import gemm as gemm_of_arrays

# what a small integer is as an 8-bit float: the numbers from 0 on, the negative ones have the top bit set
CODES = {
    "float8_e4m3fn": np.array([0x00, 0x38, 0x40, 0x44, 0x48], np.uint8),
    "float8_e5m2": np.array([0x00, 0x3C, 0x40, 0x42, 0x44], np.uint8),
}
MAP_TYPES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "int32": "s32"}
STORAGE = {"bfloat16": np.uint16, "float16": np.float16, "float32": np.float32, "int32": np.int32}


def stored(values, dtype):
    """Values in a type's bits, as an array that NumPy knows: to the nearest, of 8-bit floats small integers, of float32
    those that tf32 has."""
    if dtype == "bfloat16":
        bits = values.astype(np.float32).view(np.uint32)
        return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)
    if dtype in CODES:
        return (CODES[dtype][np.abs(values)] | (values < 0) * 0x80).astype(np.uint8)
    if dtype == "float32":
        return (values.astype(np.float32).view(np.uint32) & 0xFFFF_E000).view(np.float32)
    return values.astype(dtype)


def known(array, dtype):
    """The values of stored ones."""
    if dtype in CODES:
        values = {c | negative << 7: -i if negative else i for i, c in enumerate(CODES[dtype]) for negative in (0, 1)}
        return np.vectorize(values.get)(array)
    if dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


@pytest.fixture
def gemm(place, launch, rng):
    """gemm(m, n, k, blocks, …): multiplies random matrices and compares with float64.

    C is poisoned, and behind it is room that nobody may touch.
    """

    def run(
        m, n, k, blocks, config=None, *, batches=1, dtype="bfloat16", result="bfloat16", a_mn=False, b_mn=False,
        epilogue="Identity", fields=(), then=lambda product: product, dtype_b=None,
    ):  # fmt: skip
        config, dtype_b = config or Config(), dtype_b or dtype

        def random(type, *shape):
            if type in ("int8", "uint8"):
                return rng.integers(0, 256, shape)
            return rng.integers(-4, 5, shape) if type in CODES else rng.standard_normal(shape)

        def tiles(array, lines, type):
            box = 1, lines, 128 // array.itemsize
            return ptxdsl.TensorMap(place.array(array), box, swizzle="128B", data_type=MAP_TYPES.get(type, "u8"))

        a, b = stored(random(dtype, batches, m, k), dtype), stored(random(dtype_b, batches, n, k), dtype_b)
        left, right = known(a, dtype).astype(np.float64), known(b, dtype_b).astype(np.float64)
        depth, itemsize = 128 // a.itemsize, STORAGE[result]().itemsize
        box = config.box(itemsize)
        size = batches * m * n
        whole = place.array(np.full(size + 4096, 99, STORAGE[result]))
        c = whole[:size].reshape(batches, m, n)
        constants = {
            "T": f"DType.{dtype}", "C": f"DType.{result}", "E": epilogue, "GROUPS": config.groups, "BN": config.columns,
            "STAGES": config.stages, "C_STAGES": config.c_stages, "CLUSTER": config.cluster, "ORDER": config.order,
            "SPLIT": config.split, "SIDEWAYS": config.sideways, "A_MN": a_mn, "B_MN": b_mn, "T_B": f"DType.{dtype_b}",
        }  # fmt: skip
        if a_mn:
            a = np.ascontiguousarray(a.swapaxes(1, 2))
        if b_mn:
            b = np.ascontiguousarray(b.swapaxes(1, 2))
        maps = (
            tiles(a, depth if a_mn else config.rows // config.across, dtype),
            tiles(b, depth if b_mn else config.columns // config.down, dtype_b),
            ptxdsl.TensorMap(c, (1, 64, box), swizzle=f"{box * itemsize}B", data_type=MAP_TYPES[result]),
        )  # fmt: skip
        smem = (
            config.stages * (config.rows + config.columns) * 128
            + config.c_stages * config.rows * box * itemsize
            + config.rows * (config.columns - config.columns // config.split) * 4
        )
        given = [place.array(f) if isinstance(f, np.ndarray) else f for f in fields]
        kernel = sample_kernel("08_gemm_hopper.pdsl", "sm_90a").specialize(**constants)
        launch(
            kernel,
            blocks,
            128 * (config.groups + 1),
            *maps,
            m,
            n,
            k,
            batches,
            tuple(given),
            (),
            smem=smem,
            arch="sm_90a",
        )
        found = place.host(whole)
        assert (found[size:] == 99).all()
        exact = then(left @ right.swapaxes(1, 2))
        rounding = {"bfloat16": 2**-8, "float16": 2**-10, "float32": 2**-20, "int32": 0}[result]
        np.testing.assert_allclose(known(found[:size].reshape(c.shape), result), exact, rtol=rounding, atol=2**-9)

    return run


SHAPES = [
    (128, 256, 64, 1),  # one tile, one step
    (128, 256, 320, 1),  # once round the ring
    (256, 512, 256, 2),  # two tiles a block: the rings go on from one to the next
    (8, 8, 8, 1),  # less than a tile in every direction
    (129, 264, 72, 2),  # one row, eight columns, eight of K over
    (200, 1000, 136, 3),
    (640, 256, 320, 4),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape[:3])))
def test_shapes(shape, gemm):
    gemm(*shape)


CONFIGS = [
    Config(columns=128, stages=6, c_stages=2),
    Config(columns=64, stages=8, c_stages=1, order=1),
    Config(groups=1, columns=64, stages=2, c_stages=2),
    Config(cluster=2, stages=4, c_stages=2),
    Config(columns=144, stages=4, c_stages=2),
    Config(groups=1, columns=240, stages=4, c_stages=2, cluster=2),
    Config(groups=3, columns=160, stages=3, c_stages=2),
    Config(columns=80, stages=3, c_stages=2, cluster=2, sideways=True),
]
SMALL = Config(groups=1, columns=64, stages=2, c_stages=1)
PAIR = Config(groups=1, columns=128, stages=3, c_stages=1, cluster=2)
BESIDE = Config(columns=64, stages=3, c_stages=1, cluster=2, sideways=True)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_configurations(config, gemm):
    gemm(300, 296, 200, 4, config)


@pytest.mark.parametrize(
    ("shape", "blocks", "config"),
    [
        ((64, 64, 264), 4, Config(groups=1, columns=64, stages=3, c_stages=1, split=4)),
        ((128, 128, 136), 2, Config(columns=128, stages=3, c_stages=1, split=2)),
        # tile after tile: what was sent of one has been read before the next one's parts come
        ((136, 72, 136), 2, Config(groups=1, columns=64, stages=2, c_stages=1, split=2)),
    ],
    ids=str,
)
def test_clusters_that_divide_k(shape, blocks, config, gemm):
    gemm(*shape, blocks, config)


@pytest.mark.parametrize(
    ("major", "config"),
    [("A_MN B_MN", Config()), ("A_MN", PAIR), ("B_MN", SMALL), ("A_MN B_MN", PAIR), ("A_MN B_MN", BESIDE)],
    ids=str,
)
def test_majors(major, config, gemm):
    gemm(200, 264, 136, 2, config, a_mn="A_MN" in major, b_mn="B_MN" in major)


@pytest.mark.parametrize(
    "types",
    [
        "float16 float16 float16", "float16 float16 float32", "float8_e4m3fn float8_e4m3fn bfloat16",
        "float8_e5m2 float8_e5m2 float32", "float8_e4m3fn float8_e5m2 float32", "float32 float32 float32",
        "int8 int8 int32", "int8 uint8 float32",
    ],
)  # fmt: skip
def test_types(types, gemm):
    dtype, dtype_b, result = types.split()
    config = Config(columns=128, stages=4, c_stages=1)
    gemm(136, 136, 208, 2, config, dtype=dtype, dtype_b=dtype_b, result=result)


def test_a_sum_of_integers_has_parts_of_several_blocks(gemm):
    config = Config(groups=1, columns=64, stages=2, c_stages=1, split=2)
    gemm(136, 72, 272, 2, config, dtype="uint8", dtype_b="int8", result="int32")


@pytest.mark.parametrize("config", [SMALL, PAIR], ids=str)
def test_batches(config, gemm):
    gemm(136, 136, 136, 4, config, batches=3)


def test_epilogues(gemm, rng):
    bias = rng.standard_normal(72).astype(np.float32)
    residual = rng.standard_normal((72, 72)).astype(np.float32)
    gemm(
        72, 72, 136, 2, SMALL, result="float32", epilogue="Bias[DType.float32]", fields=(bias, 72),
        then=lambda p: p + bias,
    )  # fmt: skip
    gemm(
        72, 72, 136, 2, SMALL, result="float32", epilogue="Residual[DType.float32]", fields=(residual, 72, 72, 2.0),
        then=lambda p: p + 2 * residual,
    )  # fmt: skip
    erf = np.vectorize(math.erf)
    gemm(72, 72, 136, 2, SMALL, result="float32", epilogue="Gelu", then=lambda p: p / 2 * (1 + erf(p / math.sqrt(2))))


@pytest.mark.parametrize(
    ("shape", "config"),
    [
        ((4096, 4096, 512), Config()),
        ((1000, 3000, 2008), Config(cluster=2)),
        ((8192, 256, 4096), Config(columns=128, stages=6, c_stages=2)),
        ((256, 256, 16384), Config(groups=1, columns=128, stages=6, c_stages=1, split=8)),
    ],
    ids=str,
)
def test_large(shape, config, place, gemm):
    if place.name == "sim":
        pytest.skip("for a card")
    gemm(*shape, 132 // config.blocks * config.blocks, config)


@pytest.mark.parametrize("size", [1024, 2048])
def test_launches_in_a_row_see_what_those_before_wrote(size, place):
    """The next launch begins before the one in front has ended; as if the card had been idle, to the bit."""
    if place.name == "sim":
        pytest.skip("for a card")
    torch = place.torch
    a, b, first, second = (torch.randn(size, size, device="cuda").bfloat16() / size**0.5 for _ in range(4))

    def chain(between):
        x, y = first.clone(), second.clone()
        for _ in range(20):
            for right, out in ((a, y), (b, x)):
                gemm_of_arrays(x if out is y else y, right, out)
                between()
        return x.clone()

    assert torch.equal(chain(lambda: None), chain(torch.cuda.synchronize))
