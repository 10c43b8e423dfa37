"""tcgen05.commit, the order of work, and pairs of CTAs."""

from __future__ import annotations

import numpy as np
import pytest
from tcgen05_bench import Bench
from tcgen05_packing import pack_shared

from ptxdsl.sim.host import Fault

COMMIT = "tcgen05.commit.cta_group::{}.mbarrier::arrive::one.shared::cluster{}.b64 [%r1]{};"
SHIFT = "tcgen05.shift.down.cta_group::1 [%r1];"
COPY = "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r1], %d1;"


def test_commit_arrives_when_earlier_work_is_done():
    bench = Bench(eager=False).allocated()
    bench.words()[...] = np.arange(128)[:, None]
    barrier = bench.barrier(0x800)
    bench.execute(SHIFT, {"%r1": 0})
    bench.execute(COMMIT.format(1, "", ""), {"%r1": 0x800})
    bench.execute(SHIFT, {"%r1": 0})
    assert [agent.ready() for agent in bench.agents] == [True, False, False]
    assert bench.agents[1].describe().state.startswith("comes after the tcgen05.shift")
    first, commit, second = bench.agents
    assert first.step()
    assert barrier.phase == 0
    assert commit.ready()
    assert commit.step()
    assert barrier.phase == 1
    assert bench.words()[0, 0] == 1
    assert second.step()
    assert bench.words()[0, 0] == 2


def test_commit_without_work_arrives_too():
    bench = Bench()
    barrier = bench.barrier(0x800, 2)
    bench.execute(COMMIT.format(1, "", ""), {"%r1": 0x800})
    assert (barrier.phase, barrier.pending) == (0, 1)


def test_each_thread_commits():
    """32 threads that execute a commit arrive 32 times."""
    bench = Bench()
    barrier = bench.barrier(0x800, 40)
    from tcgen05_bench import Group, instructions

    from ptxdsl.sim.tcgen05.sync import commit

    (instruction,) = instructions(COMMIT.format(1, "", ""))
    commit(Group(bench, bench.ctas[0].warps[0], instruction, {"%r1": 0x800}, 0xFFFFFFFF))
    bench.run()
    assert barrier.pending == 8


def test_commit_to_several_ctas():
    bench = Bench(4)
    barriers = [bench.barrier(0x800, cta=cta) for cta in range(4)]
    text = COMMIT.format(2, ".multicast::cluster", ", %h1")
    bench.execute(text, {"%r1": 2 << 24 | 0x800, "%h1": 0b1101}, cta=2)
    assert [barrier.phase for barrier in barriers] == [1, 0, 1, 1]
    with pytest.raises(Fault, match="mask 0x0010 in a cluster of 4"):
        bench.execute(text, {"%r1": 0x800, "%h1": 0x10}, cta=2)


def test_commit_to_another_cta():
    bench = Bench(2)
    barrier = bench.barrier(0x800, cta=1)
    bench.execute(COMMIT.format(1, "", ""), {"%r1": 1 << 24 | 0x800})
    assert barrier.phase == 1


def test_commit_needs_a_barrier():
    with pytest.raises(Fault, match="no mbarrier has been initialised"):
        Bench().execute(COMMIT.format(1, "", ""), {"%r1": 0x800})


def test_generic_address():
    bench = Bench()
    barrier = bench.barrier(0x800)
    bench.execute("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d1];", {"%d1": 0x7E0000000000 | 0x800})
    assert barrier.phase == 1


def test_shared_address_where_a_generic_one_is_due():
    """Undefined by the ISA; the card takes it, and Triton relies on that."""
    bench = Bench()
    barrier = bench.barrier(0x800)
    bench.execute("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d1];", {"%d1": 0x800})
    assert barrier.phase == 1


def test_memory_is_read_when_the_copy_is_carried_out():
    """A tile that is overwritten before the commit's arrival spoils the copy."""
    bench = Bench(eager=False).allocated()
    bench.put(0x1000, np.full(512, 1, np.uint8))
    bench.execute(COPY, {"%r1": 0, "%d1": pack_shared(0x1000, 16, 128, "none")})
    bench.put(0x1000, np.full(512, 2, np.uint8))
    bench.run()
    assert bench.words()[0, 0] == 0x02020202


def test_work_of_a_pair_whose_peer_has_gone():
    bench = Bench(2).allocated()
    bench.ctas[1].exited = True
    with pytest.raises(Fault, match="of rank 1, have exited") as fault:
        bench.execute(COPY.replace("group::1", "group::2"), {"%r1": 0, "%d1": pack_shared(0x1000, 16, 128, "none")})
    assert fault.value.code == "E1167"


def test_shared_memory_that_is_not_there():
    from ptxdsl.sim.machine.memory import AccessFault

    bench = Bench(shared=0x1000).allocated()
    with pytest.raises(AccessFault, match="shared memory ends at 0x1000"):
        bench.execute(COPY, {"%r1": 0, "%d1": pack_shared(0xF00, 16, 128, "none")})


def test_fences_have_no_effect_of_their_own():
    Bench().execute("tcgen05.fence::before_thread_sync; tcgen05.fence::after_thread_sync;")
