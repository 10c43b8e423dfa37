"""What changes meanwhile is one value for nobody: memory that the kernel writes through whatever pointer, or that the
grid before it may still write; and what relaxed operations on barriers do not tell."""

from __future__ import annotations

import pytest
from pipeline_kernels import kernel
from proofs import verdict

from ptxdsl.check.report import ptx_verdicts
from ptxdsl.ptx.reader import read

COUNTED = """
    if t < 32:
        var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))
        for i in range(Int32(src[0])):
            p.acquire()
            p.commit()
    elif t < 64:
        var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))
        for i in range(Int32(src[0])):
            c.wait()
            c.release()
"""
COUNTED = COUNTED.replace("Int32(src[0])", "src.bitcast[Int32]()[0]")


def counted(before: str = "", last: str = "pass", consumer: str = "") -> str:
    """Two roles that read how often they go round, a third one that writes, what all do before, the consumer alone."""
    roles = COUNTED.replace("        var c =", f"        {consumer}\n        var c =") if consumer else COUNTED
    return kernel(f"{before}\n{roles}    else:\n" + last.replace("\n", "\n        ").join(("        ", "\n")), 96)


CHANGES = {
    "by a pointer that is chosen": "var q = src if n > 0 else src.unsafe_offset(1)\nq[0] = 7",
    "by a pointer that goes on": "var q = src\nfor _ in range(n):\n    q[0] = 7\n    q = q + 1",
    "by an atomic operation": "var q = src\nif n > 3:\n    q = src.unsafe_offset(n)\n_ = fetch_add(q, 1)",
}


@pytest.mark.parametrize("name", CHANGES)
def test_memory_that_is_written_meanwhile(name: str) -> None:
    found = verdict(counted(last=CHANGES[name]))
    assert (
        found.verdict == "not provable here" and "a loop's trip count depends on data" in found.diagnostics[0].message
    )


def test_memory_that_nobody_writes() -> None:
    assert verdict(counted(last="var q = res if n > 0 else res.unsafe_offset(1)\nq[0] = 7")).verdict == "proved"


WAIT = "wait_on_dependent_grids()"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (counted(before=f"    {WAIT}"), "proved"),
        (counted(consumer=WAIT), "not provable here"),
        (counted(before=f"    if n > 3:\n        {WAIT}"), "not provable here"),
        (counted(before=f"    {WAIT}", consumer=WAIT), "proved"),
    ],
)
def test_memory_that_the_grid_before_writes(text: str, expected: str) -> None:
    """What lies there before that grid has ended is another value than behind the wait."""
    assert verdict(text).verdict == expected


RELAXED = """
    if t == 0:
        bars[0].expect_bytes(16)
    elif t == 32:
        buf[0] = 1
        {}
    elif t >= 64:
        bars[0].wait(0)
        res[lane] = buf[0]
"""
TELLS = "        bars[0].expect_bytes_relaxed(16)\n        bars[0].complete_bytes(16)\n        _ = bars[0].arrive()"


@pytest.mark.parametrize(
    ("count", "operation", "kinds"),
    [
        (1, "bars[0].complete_bytes(16)", ("slot read before full",)),
        (2, "bars[0].complete_bytes(16)\n        _ = bars[0].arrive()", ()),
        (2, "_ = bars[0].arrive()\n        bars[0].complete_bytes(16)", ()),
    ],
)
def test_bytes_that_a_thread_counts_tell_nothing(count: int, operation: str, kinds: tuple[str, ...]) -> None:
    """PTX ISA: ``mbarrier.complete_tx`` is relaxed."""
    assert verdict(kernel(RELAXED.format(operation), 96, str(count))).kinds == kinds


HANDED = """
.version 8.6
.target sm_90a
.address_size 64
.shared .align 8 .b8 buf[8];
.shared .align 8 .b8 bar[8];
.visible .entry kernel() .reqntid 64
{
  .reg .pred %p<2>; .reg .b32 %r<3>;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra BEGIN;
  mbarrier.init.shared.b64 [bar], 1;
BEGIN:
  bar.sync 0;
  setp.gt.u32 %p1, %r1, 32;
  @%p1 bra END;
  setp.eq.u32 %p1, %r1, 32;
  @%p1 bra READ;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra END;
  st.shared.u32 [buf], 1;
  mbarrier.arrive.ARRIVE.cta.shared::cta.b64 _, [bar];
  bra END;
READ:
  mbarrier.TEST_wait.parity.WAIT.cta.shared::cta.b64 %p1, [bar], 0;
  @!%p1 bra READ;
  ld.shared.u32 %r2, [buf];
  st.shared.u32 [buf+4], %r2;
END:
  ret;
}
"""


@pytest.mark.parametrize(
    ("arrive", "test", "wait", "expected"),
    [
        ("release", "try", "acquire", "proved"),
        ("relaxed", "try", "acquire", "not provable here"),
        ("release", "try", "relaxed", "not provable here"),
        ("release", "test", "relaxed", "not provable here"),
    ],
)
def test_a_relaxed_arrival_or_wait_of_ptx_orders_nothing(arrive: str, test: str, wait: str, expected: str) -> None:
    text = HANDED.replace("ARRIVE", arrive).replace("TEST", test).replace("WAIT", wait)
    (found,) = ptx_verdicts(read(text, "kernel.ptx"))
    assert found.verdict == expected
    assert all("orders nothing" in said.message for said in found.diagnostics)


@pytest.mark.parametrize(
    ("fence", "expected"),
    [
        ("fence.proxy.async.shared::cta;", "proved"),
        ("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;", "proved"),
        ("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;", "not provable here"),
        ("fence.proxy.async.global;", "fault"),
    ],
)
def test_which_fences_of_ptx_stand_before_a_copy(fence: str, expected: str) -> None:
    copy = """
        st.shared.u32 [buf], 1; st.shared.u32 [buf+4], 1; st.shared.u32 [buf+8], 1; st.shared.u32 [buf+12], 1;
        FENCE
        cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buf], 16;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        ret;
    }"""
    head = HANDED.partition("mov.u32")[0].replace("kernel()", "kernel(.param .u64 res)").replace("[8]", "[16]", 1)
    text = head + ".reg .b64 %rd<2>; ld.param.u64 %rd1, [res];" + copy.replace("FENCE", fence)
    (found,) = ptx_verdicts(read(text.replace(".reqntid 64", ".reqntid 1").replace(".align 8", ".align 16"), "k.ptx"))
    assert found.verdict == expected
