"""Warpgroups in the machine: when products are carried out, what is waited for, what is reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxdsl.sim.launch import Report, simulate

HEAD = """.version 8.5
.target sm_90a
.address_size 64
.shared .align 1024 .b8 tiles[4096];
.visible .entry k(.param .u64 out) {
.reg .pred %p;
.reg .b32 %t, %w, %r<8>;
.reg .f32 %f<8>;
.reg .b64 %o, %a, %b, %x;
mov.u32 %t, %tid.x;
shr.u32 %w, %t, 5;
ld.param.u64 %o, [out];
mad.wide.u32 %o, %t, 4, %o;
"""
# All of shared memory becomes ones (f16): A is 64 x 16 at 0, B 16 x 8 at 2048, both without swizzling.
FILL = """mov.u32 %r0, tiles;
mov.u32 %r1, 0x3C003C00;
mad.lo.u32 %r2, %t, 32, %r0;
st.shared.v4.u32 [%r2], {%r1, %r1, %r1, %r1};
st.shared.v4.u32 [%r2+16], {%r1, %r1, %r1, %r1};
shr.u32 %r3, %r0, 4;
cvt.u64.u32 %a, %r3;
mov.b64 %x, 0x1000080000;
or.b64 %a, %a, %x;
add.u64 %b, %a, 128;
mov.f32 %f0, 0f00000000;
mov.f32 %f1, %f0;
mov.f32 %f2, %f0;
mov.f32 %f3, %f0;
fence.proxy.async;
bar.sync 0;
"""
FENCE = "wgmma.fence.sync.aligned;\n"
PRODUCT = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %a, %b, 1, 1, 1, 0, 0;\n"
COMMIT = "wgmma.commit_group.sync.aligned;\n"
WAIT = "wgmma.wait_group.sync.aligned 0;\n"
STORE = "st.global.f32 [%o], %f0;\n"


def run(*parts: str, threads: int = 128, schedule: str = "round-robin") -> tuple[Report, Any]:
    out = np.zeros(threads, np.float32)
    text = HEAD + "".join(parts) + "ret;\n}\n"
    report = simulate(text, "k", grid=1, block=threads, arguments=[out], schedule=schedule)
    return report, out


def message(report: Report) -> str:
    return report.diagnostics[0].message


def test_a_product_of_ones() -> None:
    report, out = run(FILL, FENCE, PRODUCT, PRODUCT, COMMIT, WAIT, STORE)
    assert report.finished and report.diagnostics == ()
    assert set(out) == {32.0}


@pytest.mark.parametrize("schedule", ["round-robin", "random:1", "random:2", "slow:wgmma"])
def test_warps_may_come_at_different_times(schedule: str) -> None:
    # Warp 0 runs ahead by a product, warp 3 comes late.
    late = "setp.lt.u32 %p, %w, 3;\n@%p bra GO;\nmov.u32 %r4, 0;\nSPIN: add.u32 %r4, %r4, 1;\n"
    late += "setp.lt.u32 %p, %r4, 1000;\n@%p bra SPIN;\nGO:\n"
    report, out = run(FILL, late, FENCE, PRODUCT, COMMIT, PRODUCT, COMMIT, WAIT, STORE, schedule=schedule)
    assert report.finished, report.render()
    assert set(out) == {32.0}


def test_a_tile_that_is_overwritten_too_early_is_spoilt() -> None:
    overwrite = "mov.u32 %r1, 0x40004000;\nst.shared.v4.u32 [%r2], {%r1, %r1, %r1, %r1};\n"
    overwrite += "st.shared.v4.u32 [%r2+16], {%r1, %r1, %r1, %r1};\n"
    _, out = run(FILL, FENCE, PRODUCT, COMMIT, overwrite, WAIT, STORE, schedule="slow:wgmma")
    assert (out > 16).any()
    _, out = run(FILL, FENCE, PRODUCT, COMMIT, WAIT, overwrite, STORE, schedule="slow:wgmma")
    assert set(out) == {16.0}


def test_a_wait_leaves_the_newest_groups_pending() -> None:
    # With the products held back, waiting for all but one group lets exactly one be carried out.
    second = PRODUCT.replace("%f0, %f1, %f2, %f3", "%f4, %f5, %f6, %f7")
    zero = "".join(f"mov.f32 %f{i}, 0f00000000;\n" for i in range(4, 8))
    one = WAIT.replace(" 0;", " 1;")
    report, out = run(FILL, zero, FENCE, PRODUCT, COMMIT, second, COMMIT, one, STORE, WAIT, schedule="slow:wgmma")
    assert report.finished, report.render()
    assert set(out) == {16.0}


def test_registers_used_before_the_wait_make_the_product_wait() -> None:
    report, out = run(FILL, FENCE, PRODUCT, COMMIT, "mov.f32 %f7, %f0;\n", WAIT, "st.global.f32 [%o], %f7;\n")
    assert report.finished
    assert set(out) == {16.0}
    (warning,) = report.diagnostics
    assert (warning.code, warning.severity) == ("W1141", "warning")
    assert "mov.f32 uses registers of this wgmma.mma_async" in warning.message


def test_a_warp_that_does_not_take_part_is_named() -> None:
    report, _ = run(FILL, "setp.eq.u32 %p, %w, 2;\n@%p ret;\n", FENCE, PRODUCT, COMMIT, WAIT, STORE)
    assert report.status == "deadlock"
    text = report.render()
    assert "lacks warp 2" in text and "wgmma group" in text


def test_warps_that_disagree() -> None:
    report, _ = run(FILL, "setp.eq.u32 %p, %w, 3;\n@%p add.u64 %b, %b, 1;\n", FENCE, PRODUCT, COMMIT, WAIT)
    assert (report.status, report.diagnostics[0].code) == ("fault", "E1141")
    assert "the warps of warpgroup 0 disagree about the descriptor of B, 0x" in message(report)
    other = PRODUCT.replace("m64n8k16.f32.f16.f16", "m64n8k16.f32.bf16.bf16")
    branch = f"setp.eq.u32 %p, %w, 3;\n@%p bra OTHER;\n{PRODUCT}bra DONE;\nOTHER: {other}DONE:\n"
    report, _ = run(FILL, FENCE, branch, COMMIT, WAIT)
    assert report.diagnostics[0].code == "E1141"
    assert "execute different wgmma instructions: one that of PTX line 35, another that of line 33" in message(report)


def test_what_a_warpgroup_needs() -> None:
    report, _ = run(FILL, PRODUCT, COMMIT, WAIT)
    assert (report.diagnostics[0].code, message(report).split(" (")[0]) == (
        "E1143",
        "wgmma.mma_async without a wgmma.fence before it",
    )
    report, _ = run(FILL, FENCE, PRODUCT, COMMIT, WAIT, threads=96)
    assert report.diagnostics[0].code == "E1142"
    assert "wgmma.fence in warp 0 of 3: a warpgroup of 3 warps" in message(report)


def test_a_descriptor_that_leaves_shared_memory() -> None:
    report, _ = run(FILL, "mov.b64 %b, 0x1000083FF0;\n", FENCE, PRODUCT, COMMIT, WAIT)
    assert report.status == "fault"
    assert "shared address 0x3ff00" in message(report)
    assert report.diagnostics[0].span is not None and "mma_async" in report.diagnostics[0].span.text


SPARSE = (
    "mov.b32 %r5, 0x44444444;\n"
    "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f3}, %a, %b, %r5, 1, 1, 1, 1, 0, 0;\n"
)


def test_a_sparse_product() -> None:
    # Of each four elements of A the first two are stored, as ones: half of the 32 products count.
    report, out = run(FILL, FENCE, SPARSE, COMMIT, WAIT, STORE)
    assert report.finished, report.render()
    assert set(out) == {16.0}
    report, _ = run(FILL, FENCE, SPARSE.replace("0x44444444", "0x44444454"), COMMIT, WAIT, STORE)
    assert report.diagnostics[0].code == "E1147"
    report, _ = run(FILL, FENCE, SPARSE.replace("%r5, 1,", "%r5, 2,"), COMMIT, WAIT, STORE)
    assert "sparsity selector 2 does not exist: 2 of four lanes hold the metadata" in message(report)


def test_a_swizzle_that_is_too_narrow() -> None:
    narrow = "mov.b64 %x, 0xC000000000000000;\nor.b64 %b, %b, %x;\n"
    report, _ = run(FILL, narrow, FENCE, SPARSE, COMMIT, WAIT, STORE)
    assert report.diagnostics[0].code == "E1148"
    assert "B has rows of 64 bytes along K, its descriptor says swizzling of 32 bytes" in message(report)


def test_lanes_that_have_returned() -> None:
    report, _ = run("setp.gt.u32 %p, %t, 125;\n@%p ret;\n", FENCE)
    assert report.diagnostics[0].code == "E1146"
    assert "wgmma in a warp of which 2 lanes do not exist or have exited" in message(report)
