"""Tensor maps whose boxes are not the kernel's are refused (E0923), and only these: the others give NumPy's result."""

import numpy as np
import pytest

import ptxdsl
from ptxdsl import LaunchError, TensorMap
from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.signature import TensorBox
from ptxdsl.sim.limits import Limits
from ptxdsl.source import Source

HEAD = """
from layout import SharedTile, TensorMapSwizzle
from tma import (
    cp_async_bulk_tensor_shared_cluster_global, prefetch_tma_descriptor, tma_gather4, tma_load, tma_prefetch,
    tma_reduce, tma_store,
)
"""
COPY = (
    HEAD
    + """
@kernel(threads=32)
def copy[
    T: DType = DType.float16, RANK: Int = 2, ROWS: Int = 16, COLS: Int = 64, SPAN: Int = 128, ADD: Bool = False
](a: TensorMap, res: Pointer[Scalar[T], MutAnyOrigin], into: TensorMap):
    comptime Tile = SharedTile[T, ROWS, COLS, swizzle=TensorMapSwizzle(SPAN)]
    var memory = unsafe_stack_allocation[Tile.bytes, UInt8, address_space=.SHARED, alignment=1024]()
    var tile = Tile(memory)
    var bars = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED]()
    if thread_idx.x == 0:
        bars[].init(1)
        fence_mbarrier_init()
        bars[].expect_bytes(Int32(Tile.bytes))
        tma_load(tile, a, bars, Array[Int32, RANK](fill=0))
        bars[].wait(0)
        for row in range(Int32(ROWS)):
            for col in range(Int32(COLS)):
                res[unsafe_offset=row * Int32(COLS) + col] = tile.load(row, col)[0]
        comptime if ADD:
            tma_reduce["add"](into, Array[Int32, RANK](fill=0), tile)
        else:
            tma_store(into, Array[Int32, RANK](fill=0), tile)
        cp_async_bulk_commit_group()
        cp_async_bulk_wait_group[0, read=False]()
"""
)
F16 = np.arange(16 * 64, dtype=np.float16).reshape(16, 64) % 61


def made(array, box, swizzle="128B", **options):
    return TensorMap(array, box, swizzle=swizzle, **options)


def copied(array, a, into, **constants):
    """What the kernel has read, with the maps as they are given."""
    kernel = ptxdsl.loads(COPY).copy.specialize(**constants)
    seen = np.zeros_like(array)
    report = kernel.simulate(a, seen, into, grid=1, block=32, arch="sm_90a", limits=Limits(steps=10**5))
    return report.finished, seen


def unchecked(map):
    """The 128 bytes, of which nothing is known."""
    return map.encode(map.array.ctypes.data)


RIGHT = [
    (made(F16, (16, 64)), {}),
    (made(F16, (1, 16, 64), shape=(1, 16, 64), strides=(2048, 128, 2)), {"RANK": 3}),
    (made(F16, (4, 4, 64), shape=(4, 4, 64), strides=(512, 128, 2)), {"RANK": 3}),  # 16 rows in all
    (made(F16.view(np.int16), (16, 64)), {}),  # of as many bits, which are moved as they are
    (made(F16, (16, 64), data_type="u16"), {}),
    (made(F16, (16, 64), "none"), {"SPAN": 16}),
    (made(F16, (16, 32), "64B"), {"SPAN": 64}),  # two boxes side by side
    (made(F16[:1], (1, 64), "none"), {"ROWS": 1}),  # of one line there is nothing to exchange
    (made(F16[:1], (1, 64)), {"ROWS": 1}),
    (made(F16[0], (64,), "none"), {"ROWS": 1, "RANK": 1}),
]


@pytest.mark.parametrize(("map", "constants"), RIGHT)
def test_maps_that_fit(map, constants):
    array = map.array.view(np.float16).reshape(-1, 64)
    into = np.zeros_like(array)
    finished, seen = copied(array, map, map.on(into.view(map.array.dtype).reshape(map.array.shape)), **constants)
    assert finished
    np.testing.assert_array_equal(seen, array)
    np.testing.assert_array_equal(into, array)


WRONG = [
    (made(F16, (16, 64), "none"), {}, "the swizzle 'none' instead of '128B'"),
    (made(F16, (16, 64)), {"SPAN": 16}, "the swizzle '128B' instead of 'none'"),
    (made(F16, (16, 32), "64B"), {}, "rows of 64 bytes instead of 128, the swizzle '64B' instead of '128B'"),
    (made(F16, (8, 64)), {}, "8 rows instead of 16"),
    (made(F16, (16, 64), element_strides=(2, 1)), {}, "8 rows instead of 16"),
    (made(F16, (32, 64)), {}, "32 rows instead of 16"),
    (made(F16, (16, 32), "none"), {"SPAN": 16}, "rows of 64 bytes instead of 128"),
    (made(F16, (1, 16, 64), shape=(1, 16, 64), strides=(2048, 128, 2)), {}, "3 dimensions instead of 2"),
    (made(F16, (16, 64)), {"RANK": 3}, "2 dimensions instead of 3"),
    (
        made(F16.view(np.uint8), (16, 128)), {},
        "elements of 8 bits (u8) instead of 16 (float16)",
    ),
    (
        made(F16, (16, 1, 16), "32B", interleave="16B", shape=(16, 1, 64), strides=(128, 128, 2)), {"RANK": 3},
        "the interleave '16B' instead of 'none'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("map", "constants", "message"), WRONG)
def test_maps_that_do_not_fit(map, constants, message):
    """They are refused, with what is different; copied all the same, something else arrives, or not all of it."""
    with pytest.raises(LaunchError) as caught:
        copied(F16, map, unchecked(map), **constants)
    (found,) = caught.value.diagnostics
    assert found.code == "E0923" and found.message.startswith("argument 'a' of kernel 'copy")
    assert message in found.message and "box=(" in found.help
    if map.array.dtype == np.uint8:
        return  # with coordinates of 0 the same bytes arrive; with others, those of other elements
    try:
        finished, seen = copied(F16, unchecked(map), unchecked(made(np.zeros_like(F16), (16, 64))), **constants)
    except ptxdsl.CompileError:
        return
    assert not finished or (seen != F16).any()


def test_every_wrong_argument_is_told():
    with pytest.raises(LaunchError) as caught:
        copied(F16, made(F16, (16, 64), "none"), made(F16, (8, 64)))
    assert [d.message.partition("'")[2][:4] for d in caught.value.diagnostics] == ["a' o", "into"]


def test_reductions_compute_with_the_elements():
    a = made(F16, (16, 64))
    sums = np.ones_like(F16)
    assert copied(F16, a, made(sums, (16, 64)), ADD=True)[0]
    np.testing.assert_array_equal(sums, F16 + 1)
    with pytest.raises(LaunchError, match="elements of bf16 instead of float16, which are combined"):
        copied(F16, a, made(sums, (16, 64), data_type="bf16"), ADD=True)


# ------------------------------------------------------------------------------------------------ what is known of maps


def maps_of(body, parameters="a: TensorMap", head=""):
    text = f"""{HEAD}{head}
comptime Tile = SharedTile[DType.float16, 16, 64]
@kernel(threads=32)
def k({parameters}):
    var tile = Tile(unsafe_stack_allocation[1024, Float16, address_space=.SHARED, alignment=1024]())
    var bars = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED]()
{body}
"""
    made = compile_source(Source("k.pdsl", text), options=Options(arch="sm_100a"))
    return next(iter(made.signatures.values())).params


BOX = TensorBox(2, 16, 64, "float16", 2, ("128B",))
ROW = TensorBox(2, 1, 64, "float16", 2, ("128B",))


@pytest.mark.parametrize(
    ("body", "ranks", "boxes"),
    [
        ("tma_load(tile, a, bars, [0, 0])", (2,), (BOX,)),
        ("tma_load(tile, a, bars, [0, 0]); tma_store(a, [0, 0], tile)", (2,), (BOX,)),
        ("tma_gather4(tile, a, bars, 0, [0, 1, 2, 3])", (), (ROW,)),
        ("tma_prefetch[Tile](a, [0, 0])", (2,), ()),  # what a hint moves is nobody's business
        ("cp_async_bulk_tensor_shared_cluster_global(tile.ptr, a, bars, [0, 0, 0])", (3,), ()),
        ("prefetch_tma_descriptor(a)", (), ()),
        ("pass", (), ()),
    ],
)
def test_what_a_kernel_says_of_its_map(body, ranks, boxes):
    (param,) = maps_of("\n".join(f"    {line}" for line in body.split("; ")))
    assert (param.ranks, param.boxes) == (ranks, boxes)


def test_maps_handed_on_and_chosen():
    """A map is known by its value: through functions and fields, not where it is one of two."""
    head = """
@fieldwise_init
struct Maps(TrivialRegisterPassable):
    var n: Int32
    var first: TensorMap
    var second: TensorMap

def load(tile: Tile, map: TensorMap, bar: Pointer[SharedMemBarrier, MutAnyOrigin, address_space=AddressSpace.SHARED]):
    tma_load(tile, map, bar, [0, 0])
"""
    struct, a, b = maps_of(
        "    load(tile, maps.second, bars)\n    var one = a if maps.n > 0 else b\n    load(tile, one, bars)",
        "maps: Maps, a: TensorMap, b: TensorMap",
        head,
    )
    assert [field.boxes for field in struct.fields[1:]] == [(), (BOX,)]
    assert a.boxes == b.boxes == a.ranks == ()


def test_one_of_several_boxes():
    """A kernel that moves boxes of two kinds by one map takes a map for either."""
    body = "    tma_load(tile, a, bars, [0, 0])\n    tma_load(tile.row_block[8](0), a, bars, [0, 0])"
    with pytest.raises(ptxdsl.CompileError, match="a copy moves whole boxes of 16 rows"):
        maps_of(body)
    half = "    tma_load(SharedTile[DType.float16, 8, 64](tile.ptr), a, bars, [0, 0])"
    (param,) = maps_of(body.partition("\n")[0] + "\n" + half)
    assert [box.rows for box in param.boxes] == [16, 8]


# ------------------------------------------------------------------------------------------------------------ launches


def test_a_quick_launch_takes_only_maps_like_the_first(driver, tensor):
    """Other maps go the general way, which accepts or refuses them."""
    from ptxdsl.api.module import Module

    kernel = Module(Source("k.pdsl", COPY), driver=driver).copy
    into = made(tensor(0x8000, "float16", (16, 64)), (16, 64))
    res = tensor(0xC000, "float16", (16, 64))
    for _ in range(2):
        for address in (0x4000, 0x4800):
            kernel[1, 32](made(tensor(address, "float16", (16, 64)), (16, 64)), res, into)
        with pytest.raises(LaunchError, match="E0923"):
            kernel[1, 32](made(tensor(0x4000, "float16", (16, 64)), (16, 64), "none"), res, into)
    assert len(driver.launches) == 4


def test_a_prepared_launch_is_checked_when_it_is_bound(driver, tensor):
    from ptxdsl.api.module import Module

    kernel = Module(Source("k.pdsl", COPY), driver=driver).copy
    array = tensor(0x4000, "float16", (16, 64))
    good, bad = made(array, (16, 64)), made(array, (8, 64))
    launch = kernel.prepare(1, 32, good, array, good)
    launch()
    with pytest.raises(LaunchError, match="E0923"):
        launch.bind(good, array, bad)
    with pytest.raises(LaunchError, match="E0923"):
        kernel.prepare(1, 32, bad, array, good)
    launch()
    assert len(driver.launches) == 2
