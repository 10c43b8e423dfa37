"""Races between the lanes of one warp: the simulator moves them together, and the ISA orders them by ``syncwarp`` and
barriers alone.

Each body is right as it is; without what is marked two of its lanes race.
"""

import numpy as np
import pytest
from async_kernels import kernel as kernel_text
from traced import watched

import ptxdsl
from ptxdsl.races.trace import check_trace

HEAD = """\
from warp import shuffle_xor

@kernel(threads=32)
def kernel(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin]):
    var bars = unsafe_stack_allocation[32, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    var buf = unsafe_stack_allocation[32, Float32, address_space=.SHARED, alignment=128]()
    var lane = Int32(thread_idx.x)
"""
WRITE = "    buf[unsafe_offset=lane] = src[unsafe_offset=lane]\n"
READ = "    res[unsafe_offset=lane] = buf[unsafe_offset=31 - lane]\n"
INIT = """\
    if lane == 0:
        bars[].init(32)
    syncwarp()
"""

RIGHT = {
    "lanes meet after a store": WRITE + "    <<syncwarp()>>\n" + READ,
    "lanes meet before the next store": READ + "    <<syncwarp()>>\n" + WRITE,
    "a barrier of the block": WRITE + "    <<barrier()>>\n" + READ,
    "lanes meet after their waits for copies": """\
    async_copy[4](src.unsafe_offset(lane), buf.unsafe_offset(lane))
    async_copy_commit_group()
    async_copy_wait_group[0]()
    <<syncwarp()>>
"""
    + READ,
    "a copy of what all lanes have written": WRITE
    + """\
    fence_proxy_async[AddressSpace.SHARED]()
    <<syncwarp()>>
    if lane == 0:
        cp_async_bulk_global_shared_cta(res, buf, 128)
        cp_async_bulk_commit_group()
        cp_async_bulk_wait_group[0]()
""",
    "an mbarrier on which every lane arrives": INIT
    + WRITE
    + """\
    _ = bars[].arrive()
    <<bars[].wait(0)>>
"""
    + READ,
    "one lane that has waited": INIT
    + WRITE
    + """\
    _ = bars[].arrive()
    if lane == 0:
        bars[].wait(0)
    <<syncwarp()>>
"""
    + READ,
    "an mbarrier that another lane has initialised": """\
    bars[unsafe_offset=lane].init(1)
    <<syncwarp()>>
    _ = bars[unsafe_offset=31 - lane].arrive()
""",
}
# What the check that takes lanes for ordered where they run together finds as well.
ALSO_TOGETHER = {"a copy of what all lanes have written"}


def found(text, by_lanes=True):
    kernel = ptxdsl.loads(text).kernel
    src, res = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    races, report = check_trace(kernel, (src, res), by_lanes=by_lanes)
    assert report.finished, report.render()
    return races.races


def without(body):
    head, _, rest = body.partition("<<")
    return f"{head}pass{rest.partition('>>')[2]}"


@pytest.mark.parametrize("name", RIGHT)
def test_lanes_race_without_what_orders_them(name):
    body = RIGHT[name]
    assert not found(HEAD + body.replace("<<", "").replace(">>", ""))
    wrong = HEAD + without(body)
    assert len(found(wrong)) == 1
    assert len(found(wrong, by_lanes=False)) == (name in ALSO_TOGETHER)


def test_a_shuffle_makes_lanes_wait_and_orders_nothing():
    shuffled = "    var other = shuffle_xor(lane, 1)\n    res[unsafe_offset=other] = buf[unsafe_offset=31 - lane]\n"
    assert len(found(HEAD + WRITE + shuffled)) == 1


def test_what_one_store_writes_for_several_lanes_is_not_looked_at():
    assert not found(HEAD + "    buf[unsafe_offset=0] = 1.0\n    syncwarp()\n" + READ)


@pytest.mark.parametrize("value", [7, 8])
@pytest.mark.parametrize("by_lanes", [True, False])
def test_stores_of_two_threads_race_also_if_they_write_the_same_value(by_lanes, value):
    """PTX ISA, "Memory Consistency Model": writes of two threads that overlap, in no order, are a data race."""
    body = f"setp.eq.u32 %p1, %t, {5 if by_lanes else 37};\n"
    body += f"@%p0 st.global.u32 [%d0], 7;\n@%p1 st.global.u32 [%d0], {value};"
    (race,) = watched(kernel_text(body), by_lanes, grid=1, block=64, arguments=[np.zeros(4, np.uint32)])[0].races
    assert race.kind == "data race"


USED_AND_ENDED = """\
    if lane == 3:
        _ = bars[].arrive()
    if lane == 5:
        bars[].inval()
"""
PHASES_AHEAD = """\
    if lane == 0:
        bars[].init(1)
    syncwarp()
    if lane == 0:
        _ = bars[].arrive()
    if lane == 3:
        bars[].wait(0)
    res[unsafe_offset=lane] = Float32(shuffle_xor(lane, 1))
    if lane == 0:
        _ = bars[].arrive()
"""


def test_lanes_are_named_where_an_mbarrier_ends_or_goes_on_without_them():
    (race,) = found(HEAD + INIT + USED_AND_ENDED)
    assert race.kind == "re-init or inval while live"
    assert "lane 5 of warp 0 invalidates the mbarrier" in race.diagnostic.message
    assert "the use of it by lane 3 of warp 0 before that" in race.diagnostic.message
    (race,) = found(HEAD + PHASES_AHEAD)
    assert race.kind == "wrong parity"
    assert "lane 3 of warp 0 waits for phase 0" in race.diagnostic.message


def test_the_lanes_and_the_remedy_are_named():
    (race,) = found(HEAD + WRITE + READ)
    assert race.kind == "data race"
    assert race.diagnostic.message == (
        "data race: lane 0 of warp 0 reads buf[31] in shared memory, and nothing orders that with the write elsewhere"
    )
    assert race.diagnostic.notes[0][1] == "lane 31 of warp 0 writes it here"
    assert race.diagnostic.help == "put `syncwarp()` between the two"
