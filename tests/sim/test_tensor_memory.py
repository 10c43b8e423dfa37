"""Allocation of tensor memory, who reaches what of it, and races on it."""

from __future__ import annotations

import numpy as np
import pytest
from tcgen05_bench import Bench

from ptxdsl.sim.host import Fault
from ptxdsl.sim.layout import SHARED_START
from ptxdsl.sim.tcgen05.tensor_memory import UNWRITTEN

ALLOC = "tcgen05.alloc.cta_group::{}.sync.aligned.shared::cta.b32 [%r1], %r2;"
DEALLOC = "tcgen05.dealloc.cta_group::{}.sync.aligned.b32 %r1, %r2;"
RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::{}.sync.aligned;"
SLOT = 0x800


def alloc(bench, columns, group=1, cta=0, warp=0):
    """The Wait, or None, and what stands in shared memory afterwards."""
    registers = {"%r1": cta << 24 | SLOT, "%r2": columns}
    wait = bench.execute(ALLOC.format(group), registers, cta=cta, warp=warp)
    return wait, int(bench.ctas[cta].window[SLOT : SLOT + 4].view(np.uint32)[0])


def dealloc(bench, address, columns, group=1, cta=0, warp=0):
    return bench.execute(DEALLOC.format(group), {"%r1": address, "%r2": columns}, cta=cta, warp=warp)


def test_alloc_writes_the_address():
    bench = Bench()
    assert alloc(bench, 128) == (None, 0)
    assert alloc(bench, 64) == (None, 128)
    assert bench.tensor().owned() == "allocated are the columns 0-127, 128-191"
    assert (bench.words() == UNWRITTEN).all()


def test_alloc_waits_until_there_is_room():
    bench = Bench()
    alloc(bench, 256)
    alloc(bench, 256)
    bench.ctas[0].window[SLOT : SLOT + 4] = 0xEE
    wait, word = alloc(bench, 128)
    assert word == 0xEEEEEEEE
    assert not wait.ready()
    assert wait.describe().place == "(128 columns)"
    dealloc(bench, 256, 256)
    assert wait.ready()
    assert alloc(bench, 128) == (None, 256)  # as the machine executes it again


@pytest.mark.parametrize("columns", [0, 16, 48, 1024])
def test_number_of_columns(columns):
    with pytest.raises(Fault, match=r"of \d+ columns") as fault:
        alloc(Bench(), columns)
    assert fault.value.code == "E1160"


def test_allocations_do_not_grow():
    bench = Bench()
    alloc(bench, 32)
    with pytest.raises(Fault, match=r"64 columns after one of 32"):
        alloc(bench, 64)


def test_no_alloc_after_relinquish():
    bench = Bench()
    alloc(bench, 32)
    bench.execute(RELINQUISH.format(1), warp=3)
    bench.execute(RELINQUISH.format(1), warp=0)
    with pytest.raises(Fault, match=r"relinquish"):
        alloc(bench, 32)
    assert dealloc(bench, 0, 32) is None  # this is still allowed


def test_dealloc_takes_back_what_alloc_gave():
    bench = Bench()
    alloc(bench, 64)
    for address, columns in ((32, 64), (0, 32), (64, 64)):
        with pytest.raises(Fault, match=r"not given by tcgen05.alloc") as fault:
            dealloc(bench, address, columns)
        assert fault.value.code == "E1160"
    with pytest.raises(Fault, match=r"lane 32"):
        dealloc(bench, 32 << 16, 64)
    dealloc(bench, 0, 64, warp=2)  # another warp may
    with pytest.raises(Fault, match=r"nothing is allocated"):
        dealloc(bench, 0, 64)


def test_never_deallocated():
    bench = Bench()
    alloc(bench, 64)
    with pytest.raises(Fault, match=r"64 columns of tensor memory are still allocated") as fault:
        bench.exit()
    assert fault.value.code == "E1166"


def test_exit_after_dealloc():
    bench = Bench()
    alloc(bench, 64)
    dealloc(bench, 0, 64)
    bench.exit()


# Pairs


def test_a_pair_allocates_the_same_columns():
    bench = Bench(2)
    bench.tensor(1).reserve(0, 32, None)
    bench.tensor(1).largest_next = 512
    wait, _ = alloc(bench, 64, 2, cta=0)
    assert not wait.ready()
    assert "rank 1" in wait.describe().state
    assert alloc(bench, 64, 2, cta=1) == (None, 32)  # the first columns that are free in both
    assert wait.ready()
    assert wait.then(wait.group) is None
    assert bench.ctas[0].window[SLOT : SLOT + 4].view(np.uint32)[0] == 32


def test_a_pair_deallocates_together_and_may_exit_at_once():
    bench = Bench(2)
    first, _ = alloc(bench, 64, 2, cta=0)
    alloc(bench, 64, 2, cta=1)
    first.then(first.group)
    wait = dealloc(bench, 0, 64, 2, cta=1)
    assert bench.tensor(1).allocations
    assert dealloc(bench, 0, 64, 2, cta=0) is None
    bench.exit(0)
    assert wait.ready()
    assert wait.then(wait.group) is None
    bench.execute(RELINQUISH.format(2), cta=1)
    bench.exit(1)


def test_a_pair_must_agree():
    bench = Bench(2)
    alloc(bench, 64, 2, cta=0)
    with pytest.raises(Fault, match=r"of 32 columns in one CTA of a pair, tcgen05.alloc of 64"):
        alloc(bench, 32, 2, cta=1)


def test_one_warp_of_each_cta():
    bench = Bench(2)
    alloc(bench, 64, 2, cta=0, warp=0)
    with pytest.raises(Fault, match=r"warp 1 while warp 0 of the same CTA"):
        alloc(bench, 64, 2, cta=0, warp=1)


def test_pairs_need_a_peer():
    for ctas, cta in ((1, 0), (3, 2)):
        with pytest.raises(Fault, match=r"no peer") as fault:
            alloc(Bench(ctas), 64, 2, cta=cta)
        assert fault.value.code == "E1167"


def test_one_cta_group_in_a_kernel():
    bench = Bench(2)
    alloc(bench, 64)
    with pytest.raises(Fault, match=r"cta_group"):
        alloc(bench, 64, 2)


# Access

LOAD = "tcgen05.ld.sync.aligned.{}.b32 {{{}}}, [%r1];"


def load(bench, shape, address, warp=0, registers=1):
    names = ", ".join(f"%r{10 + i}" for i in range(registers))
    values = {"%r1": address}
    bench.execute(LOAD.format(shape, names), values, warp=warp)
    return values


@pytest.mark.parametrize("warp", range(6))
def test_a_warp_reaches_its_own_lanes(warp):
    """ "Access restrictions": the warp's number in the warpgroup, that is modulo 4."""
    bench = Bench(warps=6).allocated()
    for quarter in range(4):
        if quarter == warp % 4:
            load(bench, "32x32b.x1", 32 * quarter << 16, warp)
            load(bench, "16x64b.x1", 32 * quarter << 16, warp)
            load(bench, "16x64b.x1", 32 * quarter + 16 << 16, warp)
        else:
            with pytest.raises(Fault, match=r"lane") as fault:
                load(bench, "32x32b.x1", 32 * quarter << 16, warp)
            assert fault.value.code == "E1162"


def test_where_an_access_may_begin():
    bench = Bench().allocated()
    for shape, lane in (("32x32b.x1", 16), ("32x32b.x1", 1), ("16x64b.x1", 8)):
        with pytest.raises(Fault, match=f"at lane {lane} "):
            load(bench, shape, lane << 16)
    with pytest.raises(Fault, match=r"at lane 128"):
        load(bench, "32x32b.x1", 128 << 16)


def test_only_allocated_columns():
    bench = Bench().allocated(64)
    load(bench, "32x32b.x1", 63)
    with pytest.raises(Fault, match=r"column 64 .* is not allocated; allocated are the columns 0-63") as fault:
        load(bench, "32x32b.x2", 63, registers=2)
    assert fault.value.code == "E1161"
    with pytest.raises(Fault, match=r"beyond tensor memory"):
        load(Bench().allocated(), "32x32b.x2", 511, registers=2)
    with pytest.raises(Fault, match=r"nothing is allocated"):
        load(Bench(), "32x32b.x1", 0)


# Races

STORE = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r10};"
WAIT_ST, WAIT_LD = "tcgen05.wait::st.sync.aligned;", "tcgen05.wait::ld.sync.aligned;"
SHIFT = "tcgen05.shift.down.cta_group::1 [%r1];"


def test_store_then_load_needs_the_wait():
    bench = Bench().allocated()
    bench.execute(STORE, {"%r1": 5, "%r10": 7})
    with pytest.raises(Fault, match=r"tcgen05.ld reads lanes 0-31, column 5 .* tcgen05.st of .*wait::st") as fault:
        load(bench, "32x32b.x1", 5)
    assert fault.value.code == "E1165"
    bench.execute(WAIT_LD)
    with pytest.raises(Fault):
        load(bench, "32x32b.x1", 5)
    load(bench, "32x32b.x1", 6)
    bench.execute(WAIT_ST)
    assert (load(bench, "32x32b.x1", 5)["%r10"] == 7).all()


def test_load_then_store_needs_the_wait():
    bench = Bench().allocated()
    load(bench, "32x32b.x1", 5)
    load(bench, "32x32b.x1", 5)  # two loads do not disturb each other
    with pytest.raises(Fault, match=r"wait::ld"):
        bench.execute(STORE, {"%r1": 5, "%r10": 7})
    bench.execute(WAIT_LD, warp=1)
    with pytest.raises(Fault, match=r"wait::ld"):  # another warp's wait is no help
        bench.execute(STORE, {"%r1": 5, "%r10": 7})
    bench.execute(WAIT_LD)
    bench.execute(STORE, {"%r1": 5, "%r10": 7})


def test_load_before_the_work_is_done():
    bench = Bench(eager=False).allocated()
    bench.execute(SHIFT, {"%r1": 32 << 16 | 8})
    load(bench, "32x32b.x1", 32 << 16 | 16, warp=1)
    load(bench, "32x32b.x1", 8)
    with pytest.raises(Fault, match=r"tcgen05.shift of PTX line .* no tcgen05.commit") as fault:
        load(bench, "32x32b.x1", 32 << 16 | 15, warp=1)
    assert "tcgen05.commit" in fault.value.help
    bench.run()
    load(bench, "32x32b.x1", 32 << 16 | 15, warp=1)


def test_work_is_done_when_a_commit_of_its_thread_has_arrived():
    bench = Bench(eager=False).allocated()
    bench.barrier(SHARED_START, 2)
    commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];"
    bench.execute(SHIFT, {"%r1": 32 << 16 | 8})
    bench.run(committed=False)
    with pytest.raises(Fault, match=r"no tcgen05.commit"):  # carried out, but nobody can know it
        load(bench, "32x32b.x1", 32 << 16 | 15, warp=1)
    bench.execute(commit, {"%r1": SHARED_START}, warp=2)
    bench.run(committed=False)
    with pytest.raises(Fault, match="in the same thread"):
        load(bench, "32x32b.x1", 32 << 16 | 15, warp=1)
    bench.execute(commit, {"%r1": SHARED_START})
    bench.run(committed=False)
    load(bench, "32x32b.x1", 32 << 16 | 15, warp=1)


def test_work_on_what_is_being_loaded_or_stored():
    bench = Bench().allocated()
    load(bench, "32x32b.x1", 3)
    with pytest.raises(Fault, match=r"tcgen05.shift writes .* tcgen05.ld of .*wait::ld"):
        bench.execute(SHIFT, {"%r1": 0})
    bench.execute(WAIT_LD)
    bench.execute(SHIFT, {"%r1": 0})


def test_dealloc_of_what_is_in_use():
    bench = Bench(eager=False)
    alloc(bench, 32)
    bench.execute(SHIFT, {"%r1": 0})
    with pytest.raises(Fault, match=r"no tcgen05.commit"):
        dealloc(bench, 0, 32)
    bench.run()
    bench.execute(STORE, {"%r1": 5, "%r10": 7})
    with pytest.raises(Fault, match=r"wait::st"):
        dealloc(bench, 0, 32)
    bench.execute(WAIT_ST)
    dealloc(bench, 0, 32)


def test_dealloc_after_a_load_not_waited_for():
    """Its registers may be used, which is to wait for it; new work in the same columns is another matter."""
    bench = Bench()
    alloc(bench, 32)
    load(bench, "32x32b.x1", 3)
    dealloc(bench, 0, 32)
    alloc(bench, 32)
    with pytest.raises(Fault, match=r"wait::ld"):
        bench.execute(SHIFT, {"%r1": 0})
