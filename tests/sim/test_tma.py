"""Tensor copies in programs: tiles into shared memory and back, multicast, pairs, four rows, changed maps, errors.

What a tile is, is tested against the card in test_tile.py; here expected values are NumPy slices of the arrays.
"""

import numpy as np
import pytest
from async_kernels import CLUSTER_SYNC, SYNC, deadlock, fault, finish, run, wait

from ptxdsl.diagnostics import CompileError
from ptxdsl.sim.copies.tensor_map import TensorMap

SCHEDULES = ["round-robin", "random:5", "slow:tma"]
INIT = "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n" + SYNC + "mov.u64 %d40, map0; cvta.param.u64 %d40, %d40;\n"
SECOND = "mov.u64 %d41, map1; cvta.param.u64 %d41, %d41;\n"
LOAD = "cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.tensor.{}d.global.shared::cta.tile.bulk_group"
DRAIN = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
# All threads copy %r20 bytes of the tile to a0.
OUT = """
shl.b32 %r10, %t, 2;
COPY: mov.u32 %r11, tile; add.u32 %r11, %r11, %r10; ld.shared.u32 %r12, [%r11]; cvt.u64.u32 %d12, %r10;
add.u64 %d12, %d12, %d0; st.global.u32 [%d12], %r12; add.u32 %r10, %r10, 128; setp.lt.u32 %p14, %r10, %r20;
@%p14 bra COPY;
"""


def expect(size):
    return f"@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {size};\n"


def out_bytes(size):
    return f"mov.u32 %r20, {size};\n" + OUT


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_swizzled_tile_there_and_back(schedule):
    """Loaded with 128-byte rows, swizzled; chunk c of row r lies at chunk c ^ r % 8. Stored through another map."""
    source = np.arange(64 * 96, dtype=np.uint16).reshape(64, 96)
    target = np.zeros((40, 128), np.uint16)
    out = np.zeros(16 * 64, np.uint16)
    maps = [TensorMap(array, (16, 64), swizzle="128B") for array in (source, target)]
    body = (
        INIT
        + SECOND
        + expect(2048)
        + f"@%p0 {LOAD.format(2)} [tile], [%d40, {{32, 5}}], [bar];\n"
        + wait("bar", 0, "W")
        + out_bytes(2048)
        + f"@%p0 {STORE.format(2)} [%d41, {{8, 20}}], [tile]; {DRAIN}"
    )
    finish(body, out, *maps, schedule=schedule)
    tile = source[5:21, 32:96]
    rows = np.arange(16)[:, None]
    assert (out.reshape(16, 8, 8)[rows, np.arange(8) ^ rows % 8] == tile.reshape(16, 8, 8)).all()
    assert (target[20:36, 8:72] == tile).all() and target.sum() == tile.sum()


@pytest.mark.parametrize("rank", range(1, 6))
def test_all_ranks(rank):
    shape, box = (3, 4, 5, 6, 40)[-rank:], (2, 3, 2, 3, 8)[-rank:]
    source = np.arange(np.prod(shape), dtype=np.uint32).reshape(shape)
    target = np.zeros(shape, np.uint32)
    maps = [TensorMap(array, box) for array in (source, target)]
    at = (1, 0, 2, 1, 16)[-rank:]
    size = int(np.prod(box)) * 4
    start = f"{{{', '.join(str(c) for c in at[::-1])}}}"
    body = (
        INIT
        + SECOND
        + expect(size)
        + f"@%p0 {LOAD.format(rank)} [tile], [%d40, {start}], [bar];\n"
        + wait("bar", 0, "W")
        + f"@%p0 {STORE.format(rank)} [%d41, {start}], [tile]; {DRAIN}"
    )
    finish(body, np.zeros(1, np.uint32), *maps)
    part = tuple(slice(c, c + b) for c, b in zip(at, box, strict=True))
    expected = np.zeros(shape, np.uint32)
    expected[part] = source[part]
    assert (target == expected).all()


def test_what_is_outside_is_zero_and_counts():
    source = np.ones((5, 20), np.float32)
    out = np.full(8 * 16, 7, np.float32)
    body = INIT + expect(512) + f"@%p0 {LOAD.format(2)} [tile], [%d40, {{12, -2}}], [bar];\n" + wait("bar", 0, "W")
    finish(body + out_bytes(512), out, TensorMap(source, (8, 16)))
    expected = np.zeros((8, 16))
    expected[2:7, :8] = 1
    assert (out.reshape(8, 16) == expected).all()


def test_a_reduction_of_tiles():
    target = np.arange(64, dtype=np.float32).reshape(4, 16)
    body = (
        """
shl.b32 %r1, %t, 2; mov.u32 %r2, tile; add.u32 %r2, %r2, %r1; cvt.rn.f32.u32 %r3, %t; st.shared.u32 [%r2], %r3;
mov.u64 %d40, map0; cvta.param.u64 %d40, %d40; fence.proxy.async; bar.sync 0;
@%p0 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%d40, {8, 1}], [tile];
"""
        + DRAIN
    )
    expected = target.copy()
    expected[1:4, 8:16] += np.arange(24, dtype=np.float32).reshape(3, 8)
    finish(body, np.zeros(1, np.uint32), TensorMap(target, (4, 8)))
    assert (target == expected).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_multicast(schedule):
    """Both CTAs of a cluster load half of a tile into both."""
    source = np.arange(16 * 16, dtype=np.uint32).reshape(16, 16)
    out = np.zeros((2, 16, 16), np.uint32)
    body = (
        INIT
        + CLUSTER_SYNC
        + expect(1024)
        + f"""
mul.wide.u32 %d2, %rank, 1024; add.u64 %d0, %d0, %d2; shl.b32 %r1, %rank, 3; shl.b32 %r2, %rank, 9;
mov.u32 %r3, tile; add.u32 %r3, %r3, %r2; mov.b16 %h0, 3;
@%p0 {LOAD.format(2)}.multicast::cluster [%r3], [%d40, {{0, %r1}}], [bar], %h0;
"""
        + wait("bar", 0, "W")
        + out_bytes(1024)
        + CLUSTER_SYNC
    )
    finish(body, out, TensorMap(source, (8, 16)), grid=2, cluster=2, schedule=schedule)
    assert (out == source).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_pair_tells_the_leaders_barrier(schedule):
    """Each CTA of a pair loads into its own memory and tells the leader: the barrier's address without the peer bit."""
    source = np.arange(16 * 16, dtype=np.uint32).reshape(16, 16)
    out = np.zeros((4, 8, 16), np.uint32)
    load = LOAD.format(2).replace(".2d.", ".2d.cta_group::2.")
    body = (
        INIT
        + CLUSTER_SYNC
        + f"""
and.b32 %r4, %rank, 1; setp.eq.u32 %p2, %r4, 0; and.pred %p3, %p2, %p0;
@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;
mul.wide.u32 %d2, %rank, 512; add.u64 %d0, %d0, %d2; shl.b32 %r1, %r4, 3;
mov.u32 %r2, bar; and.b32 %r2, %r2, 0xfeffffff;
@%p0 {load} [tile], [%d40, {{0, %r1}}], [%r2];
@!%p2 bra FOLLOWER;
"""
        + wait("bar", 0, "W")
        + "FOLLOWER:\n"
        + CLUSTER_SYNC
        + out_bytes(512)
    )
    finish(body, out, TensorMap(source, (8, 16)), grid=4, cluster=4, target="sm_100a", schedule=schedule)
    assert (out.reshape(2, 16, 16) == source).all()


def test_multicast_in_pairs():
    """Rank 0 sends to ranks 1 and 2; with an mbarrier of odd rank the bytes are told to ranks 1 and 3."""
    source = np.arange(32, dtype=np.uint32).reshape(2, 16)
    out = np.zeros((4, 2, 16), np.uint32)
    load = LOAD.format(2).replace(".tile.", ".") + ".multicast::cluster.cta_group::2"
    body = (
        INIT
        + CLUSTER_SYNC
        + f"""
and.b32 %r4, %rank, 1; setp.eq.u32 %p2, %r4, 1; and.pred %p3, %p2, %p0;
mul.wide.u32 %d2, %rank, 128; add.u64 %d0, %d0, %d2;
setp.eq.u32 %p4, %rank, 0; and.pred %p4, %p4, %p0;
mov.u32 %r2, bar; mapa.shared::cluster.u32 %r2, %r2, 1; mov.b16 %h0, 6;
@%p4 {load} [tile], [%d40, {{0, 0}}], [%r2], %h0;
@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
@!%p2 bra EVEN;
"""
        + wait("bar", 0, "W")
        + "EVEN:\n"
        + CLUSTER_SYNC
        + out_bytes(128)
    )
    finish(body, out, TensorMap(source, (2, 16)), grid=4, cluster=4, target="sm_100a")
    assert (out[1] == source).all() and (out[2] == source).all()
    assert (out[[0, 3]] == 0xFFFFFFFF).all()


def test_four_rows_are_gathered_and_scattered():
    source = np.arange(16 * 64, dtype=np.uint16).reshape(16, 64)
    target = np.zeros((16, 64), np.uint16)
    out = np.zeros((4, 32), np.uint16)
    gather = LOAD.format(2).replace(".tile.", ".tile::gather4.").replace("shared::cluster", "shared::cta")
    scatter = STORE.format(2).replace(".tile.", ".tile::scatter4.")
    body = (
        INIT
        + SECOND
        + expect(256)
        + f"@%p0 {gather} [tile], [%d40, {{16, 9, 2, 15, -1}}], [bar];\n"
        + wait("bar", 0, "W")
        + f"@%p0 {scatter} [%d41, {{32, 0, 1, 5, 16}}], [tile]; {DRAIN}"
        + out_bytes(256)
    )
    maps = [TensorMap(array, (1, 32), swizzle="64B") for array in (source, target)]
    finish(body, out, *maps, target="sm_100a")
    rows = np.zeros((4, 32), np.uint16)
    rows[:3] = source[[9, 2, 15], 16:48]
    chunks = np.arange(4) ^ (np.arange(4) // 2)[:, None]  # 64-byte rows: two in a line of the pattern
    assert (out.reshape(4, 4, 8)[np.arange(4)[:, None], chunks] == rows.reshape(4, 4, 8)).all()
    expected = np.zeros((16, 64), np.uint16)
    expected[[0, 1, 5], 32:64] = rows[:3]
    assert (target == expected).all()


def test_a_map_changed_in_shared_memory():
    """The map of one array is copied, changed to another array's address and rows, and used from global memory."""
    first, second = (np.full((8, 32), value, np.uint16) for value in (1, 2))
    second[1] = 3
    out, place = np.zeros((4, 32), np.uint16), np.zeros(128, np.uint8)
    body = (
        INIT
        + """
mul.wide.u32 %d2, %t, 4; add.u64 %d3, %d40, %d2; ld.param.u64 %d9, [a2];
ld.global.u32 %r1, [%d3]; shl.b32 %r2, %t, 2; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2; st.shared.u32 [%r3+4096], %r1;
bar.sync 0;
@%p0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [tile+4096], %d1;
@%p0 tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [tile+4096], 0, 128;
@%p0 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [tile+4096], 1, 3;
@%p0 tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [tile+4096], 1;
bar.warp.sync 0xffffffff;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d9], [tile+4096], 128;
fence.proxy.tensormap::generic.acquire.gpu [%d9], 128;
"""
        + expect(256)
        + f"@%p0 {LOAD.format(2)} [tile], [%d9, {{0, 0}}], [bar];\n"
        + wait("bar", 0, "W")
        + out_bytes(256)
    )
    finish(body, out, second, place, TensorMap(first, (4, 32)))
    assert (out == np.array([2, 2, 2, 0])[:, None]).all()


def test_maps_of_element_types_that_numpy_lacks():
    """bf16 in uint16, filled with the card's NaN."""
    source = np.zeros((4, 16), np.uint16)
    out = np.zeros((4, 16), np.uint16)
    body = INIT + expect(128) + f"@%p0 {LOAD.format(2)} [tile], [%d40, {{0, 2}}], [bar];\n" + wait("bar", 0, "W")
    finish(body + out_bytes(128), out, TensorMap(source, (4, 16), data_type="bf16", fill="nan"))
    assert (out[:2] == 0).all() and (out[2:] == 0x7FF7).all()


# What is wrong


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ("elemtype.global.b1024.b32 [%d0], 16", "E1153", "elemtype by 16: 0 to 15 exist"),
        ("rank.global.b1024.b32 [%d0], 5", "E1153", "rank by 5: 0 to 4 exist"),
        ("box_dim.global.b1024.b32 [%d0], 5, 1", "E1110", "of a dimension that is not 0 to 4"),
        ("global_stride.global.b1024.b64 [%d0], 4, 16", "E1110", "of a dimension that is not 0 to 3"),
        ("box_dim.global.b1024.b32 [%d0], 1", "E1110", "box_dim takes a number of its dimension and a value"),
        ("rank.global.b1024.b32 [%d0], 1, 1", "E1110", "rank takes a value"),
    ],
)
def test_a_map_cannot_be_changed_to_what_does_not_exist(change, code, words):
    try:
        (found,) = run(f"tensormap.replace.tile.{change};", np.zeros(128, np.uint8)).diagnostics
    except CompileError as problem:
        (found,) = problem.diagnostics
    assert found.code == code and words in found.message


ARRAY = np.zeros((32, 64), np.uint16)
ONE = "@!%p0 bra END;\n"
MISUSE = {
    "no map": (f"{LOAD.format(2)} [tile], [%d0, {{0, 0}}], [bar];", "E1153", "are not a tensor map"),
    "dimensions": (f"{LOAD.format(3)} [tile], [%d40, {{0, 0, 0}}], [bar];", "E1153", "with a tensor map of 2"),
    "map's place": (f"{LOAD.format(2)} [tile], [%d40+8, {{0, 0}}], [bar];", "E1121", "not a multiple of 64"),
    "tile's place": (f"{LOAD.format(2)} [tile+64], [%d40, {{0, 0}}], [bar];", "E1154", "not a multiple of 128"),
    "row's start": (f"{LOAD.format(2)} [tile], [%d40, {{4, 0}}], [bar];", "E1155", "element 4 of the innermost"),
    "stored before the start": (f"{STORE.format(2)} [%d40, {{0, -1}}], [tile];", "E1155", "none may be negative"),
    "window": (f"{LOAD.format(2)} [tile+7168], [%d40, {{0, 0}}], [bar];", "E1120", "shared memory ends at"),
    "four rows of a box of sixteen": (
        f"{LOAD.format(2).replace('.tile.', '.tile::gather4.')} [tile], [%d40, {{0, 0, 1, 2, 3}}], [bar];",
        "E1153",
        "a box of one row",
    ),
    "reduction": (
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.inc.tile.bulk_group [%d40, {0, 0}], [tile];",
        "E1153",
        "reduction 'inc' of a tensor of u16",
    ),
    "over the barrier": (
        f"mbarrier.init.shared::cta.b64 [tile+1024], 1; {LOAD.format(2)} [tile], [%d40, {{0, 0}}], [bar];",
        "E1131",
        "writes over the live mbarrier tile+1024",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSE)
def test_misuse_is_a_fault(name):
    body, code, words = MISUSE[name]
    text = INIT + ONE + body + "\nnanosleep.u32 100;\nEND: bar.sync 0;"
    found, message = fault(text, np.zeros(64, np.uint32), TensorMap(ARRAY, (16, 64)))
    assert (found, words in message) == (code, True), message


def test_a_map_of_more_than_the_array():
    """The map says 100 rows, the array has 32."""
    said = TensorMap(ARRAY, (16, 64), shape=(100, 64), strides=(128, 2))
    code, message = fault(
        INIT + f"@%p0 {LOAD.format(2)} [tile], [%d40, {{0, 24}}], [bar];", np.zeros(1, np.uint32), said
    )
    assert code == "E1120" and "run over the end of argument" in message


def test_im2col_is_refused_before_it_runs():
    body = INIT + "@%p0 cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [tile], "
    with pytest.raises(CompileError, match="im2col mode are not simulated"):
        run(body + "[%d40, {0, 0, 0, 0}], [bar], {%h0, %h1};", np.zeros(1, np.uint32), TensorMap(ARRAY, (16, 64)))


def test_bytes_of_a_tile_that_was_not_loaded():
    body = INIT + expect(4096) + f"@%p0 {LOAD.format(2)} [tile], [%d40, {{0, 0}}], [bar];\n" + wait("bar", 0, "W")
    report = deadlock(body, np.zeros(1, np.uint32), TensorMap(ARRAY, (16, 64)))
    assert "2048 bytes still expected" in report
