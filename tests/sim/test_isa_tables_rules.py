"""What the PTX ISA forbids of tcgen05 is an error in the simulator, what it promises holds."""

from __future__ import annotations

import numpy as np
import pytest
from isa_bench import Probe, mistake, run
from isa_products import Product, compact
from isa_tables import data_paths, descriptors, rules

from ptxdsl.sim.launch import Report, simulate

HEADER = """
.version 9.0
.target sm_100a
.address_size 64
.extern .shared .align 16 .b8 smem[];
.visible .entry k(.param .u64 p_out)
{
.reg .pred %p, %q, %r;
.reg .b16 %m;
.reg .b32 %thread, %warp, %rank, %base, %t, %x, %y, %v<8>;
.reg .b64 %out, %w;
mov.u32 %thread, %tid.x; shr.u32 %warp, %thread, 5; mov.u32 %rank, %cluster_ctarank; mov.u32 %base, smem;
ld.param.u64 %out, [p_out];
"""


def execute(body: str, threads: int = 32, ctas: int = 1, out: np.ndarray | None = None) -> Report:
    """A kernel of one cluster."""
    return simulate(
        f"{HEADER}{body}\nret;\n}}",
        None,
        grid=ctas,
        block=threads,
        cluster=ctas if ctas > 1 else None,
        shared_bytes=64,
        arguments=[np.zeros(64, np.uint32) if out is None else out],
    )


def error(report: Report) -> str:
    found = [d.code for d in report.diagnostics if d.severity == "error"]
    assert found and not report.finished, report.render()
    return found[0]


def alloc(columns: int) -> str:
    return f"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%base], {columns}; ld.shared.b32 %t, [%base];"


def dealloc(columns: int) -> str:
    return f"tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, {columns};"


# Allocation


@pytest.mark.parametrize("columns", rules.ALLOCATIONS)
def test_allocations(columns: int) -> None:
    report = execute(alloc(columns) + dealloc(columns))
    assert report.finished, report.render()


@pytest.mark.parametrize("columns", rules.NOT_ALLOCATIONS)
def test_sizes_that_do_not_exist(columns: int) -> None:
    assert error(execute(alloc(columns))) == "E1160"


WRONG_ALLOCATIONS = {
    **{name: text.format(address="%base + 4") for name, text in rules.WRONG_ALLOCATIONS.items()},
    "never given back": "mov.u32 %t, 0; ret;",
    "given back in another size": dealloc(32),
    "given back twice": dealloc(64) + dealloc(64),
    "more than there is, by the only warp": alloc(64) * 8,
}
CODES = {
    "two cta_groups in one kernel": "E1167",
    "never given back": "E1166",
    "more than there is, by the only warp": "E1190",  # it waits forever
}


@pytest.mark.parametrize("name", WRONG_ALLOCATIONS)
def test_wrong_allocations(name: str) -> None:
    code = CODES.get(name, "E1160")
    assert error(execute(alloc(64) + WRONG_ALLOCATIONS[name] + dealloc(64))) == code


def test_allocations_do_not_overlap() -> None:
    out = np.zeros(64, np.uint32)
    text = "mov.u32 %t, %v{0}; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 128;"
    body = "".join(f"{alloc(128)} mov.u32 %v{i}, %t; st.global.b32 [%out + {4 * i}], %t;" for i in range(4))
    report = execute(body + "".join(text.format(i) for i in range(4)), out=out)
    assert report.finished, report.render()
    assert sorted(out[:4]) == [0, 128, 256, 384]


@pytest.mark.parametrize("instruction", [alloc(32), "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%t];"])
def test_a_warp_executes_together(instruction: str) -> None:
    """9.7.16.5: undefined unless all threads of the warp do, exited ones too."""
    half = "setp.lt.u32 %p, %thread, 16;"
    assert error(execute(f"mov.u32 %t, 0; {half} @!%p bra END; {instruction} END:")) == "E1180"
    assert error(execute(f"mov.u32 %t, 0; {half} @!%p exit; {instruction}")) == "E1180"


# Access

MEET = "bar.sync 0;"
OPEN = f"setp.eq.u32 %p, %warp, 0; @!%p bra OPENED; {alloc(32)} OPENED: {MEET} ld.shared.b32 %t, [%base];"
CLOSE = f"{MEET} setp.eq.u32 %p, %warp, 0; @!%p bra CLOSED; {dealloc(32)} CLOSED:"


def access(warp: int, offset: int, form: str = "32x32b.x1", threads: int = 256) -> Report:
    load = f"tcgen05.ld.sync.aligned.{form}.b32 {{%v0}}, [%x]; tcgen05.wait::ld.sync.aligned;"
    only = f"setp.eq.u32 %p, %warp, {warp}; @!%p bra LOADED; add.u32 %x, %t, {offset}; {load} LOADED:"
    return execute(OPEN + only + CLOSE, threads)


@pytest.mark.parametrize("warp", range(8))
def test_lanes_of_a_warp(warp: int) -> None:
    for part in range(4):
        lane = part * 32
        report = access(warp, lane << data_paths.LANE_SHIFT)
        if lane in data_paths.warp_lanes(warp):
            assert report.finished, report.render()
        else:
            assert error(report) == "E1162"


@pytest.mark.parametrize(("offset", "form"), [(8 << 16, "16x64b.x1"), (16 << 16, "32x32b.x1")])
def test_lanes_at_which_no_access_begins(offset: int, form: str) -> None:
    assert error(access(0, offset, form, 128)) == "E1162"


def test_columns_of_nobody() -> None:
    assert error(access(0, 32, "32x32b.x1", 128)) == "E1161"


def test_a_load_has_one_address() -> None:
    load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%x]; tcgen05.wait::ld.sync.aligned;"
    assert error(execute(f"{alloc(32)} add.u32 %x, %t, %thread; {load} {dealloc(32)}")) == "E1115"


# Commit

ISSUE_AND_LOAD = """
    setp.ne.u32 %q, %warp, 0; @%q bra OTHERS;
    @!%issuer bra ALL; {mma} {commit} ALL: bar.warp.sync -1;
    {wait}
    tcgen05.fence::after_thread_sync;
    add.u32 %x, %mine, 32;
    tcgen05.{move};
    OTHERS:
"""
MOVES = {
    "ld": "ld.sync.aligned.32x32b.x1.b32 {%u0}, [%x]; tcgen05.wait::ld.sync.aligned",
    "st": "st.sync.aligned.32x32b.x1.b32 [%x], {%u0}; tcgen05.wait::st.sync.aligned",
}
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];"
WAIT = "WAITED_FOR: mbarrier.try_wait.parity.shared.b64 %p, [%bar], 0; @!%p bra WAITED_FOR;"


def _product() -> Product:
    a, b = compact("none", False, 128, 32, 0, 1 << 13), compact("none", False, 32, 32, 0, 0)
    return Product("f16", "f16", "f16", "f32", 128, 32, a=a, b=b)


@pytest.mark.parametrize("move", MOVES)
def test_commit_tells_the_end_of_work(move: str) -> None:
    some = _product()
    probe = some.probe()
    mma, probe.body = probe.body, ""
    probe.every = ISSUE_AND_LOAD.format(mma=mma, commit=COMMIT, wait=WAIT, move=MOVES[move])
    run(probe)
    probe.every = ISSUE_AND_LOAD.format(mma=mma, commit="", wait="", move=MOVES[move])
    assert mistake(probe) == "E1165"


@pytest.mark.parametrize("mask", [0b0001, 0b0010, 0b1010, 0b1111])
def test_commit_arrives_where_the_mask_says(mask: int) -> None:
    """One arrival with count 1 on the barrier at the same offset of every CTA in the mask."""
    out = np.zeros(64, np.uint32)
    meet = "barrier.cluster.arrive; barrier.cluster.wait;"
    body = f"""
    setp.eq.u32 %p, %thread, 0; add.u32 %x, %base, 16;
    @%p mbarrier.init.shared.b64 [%x], {rules.COMMIT_COUNT}; @%p fence.mbarrier_init.release.cluster;
    {meet}
    setp.eq.u32 %q, %rank, 0; and.pred %q, %q, %p; mov.b16 %m, {mask};
    @%q tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%x], %m;
    mov.u32 %y, 0;
    TRY: mbarrier.test_wait.parity.shared.b64 %r, [%x], 0; @%r bra ARRIVED;
    add.u32 %y, %y, 1; setp.lt.u32 %r, %y, 100; @%r bra TRY;
    bra NEVER;
    ARRIVED: mul.wide.u32 %w, %rank, 4; add.u64 %w, %out, %w; @%p st.global.b32 [%w], 1;
    NEVER: {meet}"""
    report = execute(body, 32, 4, out)
    assert report.finished, report.render()
    assert [int(arrived) for arrived in out[:4]] == [mask >> rank & 1 for rank in range(4)]


# Descriptors and forms of instructions: what it is -> code of the error, instruction, %d0, %w0.

A = descriptors.shared(0, 4096, 4096, "none")


def f16(a: str = "f16", b: str = "f16", d: str = "f32", **fields: int) -> int:
    return descriptors.typed("f16", a, b, d, **({"m": 128, "n": 64} | fields))


def f8(a: str = "e4m3", b: str = "e4m3", **fields: int) -> int:
    return descriptors.typed("f8f6f4", a, b, **({"m": 128, "n": 64} | fields))


def mx(kind: str, scale: str = "ue8m0", **fields: int) -> int:
    element = "e4m3" if kind == "mxf8f6f4" else "e2m1"
    return descriptors.typed(kind, element, element, scale=scale, **({"m": 128, "n": 64} | fields))


def mma(kind: str, a: str = "%d0", more: str = "", form: str = "") -> str:
    scales = ", [%x], [%y]" if ".block_scale" in kind else ""
    return f"""add.u32 %x, %t, 400; add.u32 %y, %t, 416; add.u32 %v1, %t, 256;
        tcgen05.mma{form}.cta_group::1.kind::{kind} [%t], {a}, %d0, %w0{scales}{more}, %no;"""


MXF8, MXF4, NVF4 = (f"{kind}.block_scale.scale_vec::" for kind in ("mxf8f6f4", "mxf4", "mxf4nvf4"))
I8 = descriptors.typed("i8", "s8", "s8", "s32", m=128, n=64)
T = {"transpose_a": 1}

WRONG: dict[str, tuple[str, str, int, int]] = {
    "M = 32": ("E1164", mma("f16"), A, f16(m=32)),
    "M = 256 of one CTA": ("E1164", mma("f16"), A, f16(m=256)),
    "N = 0": ("E1164", mma("f16"), A, f16(n=0)),
    "N = 264": ("E1164", mma("f16"), A, f16(n=264)),
    "N = 40 of integers": ("E1164", mma("i8"), A, descriptors.typed("i8", "s8", "s8", "s32", m=128, n=40)),
    "N = 256 of .ws and .sp": (
        "E1164", mma("f16", form=".ws.sp").replace(", %w0", ", [%v1], %w0"), A, f16(sparse=1, n=256)
    ),
    ".sp with .ashift": (
        "E1110", mma("f16.ashift", "[%v1]", form=".sp").replace(", %w0", ", [%v1], %w0"), A, f16(sparse=1)
    ),
    "N = 32 of .ws": ("E1164", mma("f16", form=".ws"), A, f16(n=32)),
    "N = 24 of a transposed B of 8 bits": ("E1164", mma("f8f6f4"), A, f8(n=24, transpose_b=1)),
    "f16 times bf16": ("E1164", mma("f16"), A, f16("f16", "bf16")),
    "bf16 into f16": ("E1164", mma("f16"), A, f16("bf16", "bf16", "f16")),
    "a type that does not exist": ("E1164", mma("f8f6f4"), A, f8() | 2 << 7),
    "sparse A without .sp": ("E1164", mma("f16"), A, f16(sparse=1)),
    "negated integers": ("E1164", mma("i8"), A, I8 | 1 << 13),
    "saturated floats": ("E1164", mma("f16"), A, f16(saturate=1)),
    "transposed 6-bit elements": ("E1164", mma("f8f6f4"), A, f8("e2m3", **T)),
    "transposed 4-bit elements": ("E1164", mma("f8f6f4"), A, f8("e2m1", **T)),
    "transposed A in tensor memory": ("E1164", mma("f16", "[%v1]"), A, f16(**T)),
    "M = 64 of scaled elements": ("E1164", mma(MXF8 + "1X"), A, mx("mxf8f6f4", m=0)),
    "factors of ue4m3 for mxf8f6f4": ("E1164", mma(MXF8 + "1X"), A, mx("mxf8f6f4") & ~(1 << 23)),
    "factors of ue4m3 for 2X": ("E1164", mma(NVF4 + "2X"), A, mx("mxf4nvf4", "ue4m3")),
    "factor id 1 of 2X": ("E1164", mma(MXF4 + "2X"), A, mx("mxf4", a_scale_id=1)),
    "factor id 2 of 4X": ("E1164", mma(NVF4 + "4X"), A, mx("mxf4nvf4", b_scale_id=2)),
    "2X of mxf8f6f4": ("E1164", mma(MXF8 + "2X"), A, mx("mxf8f6f4")),
    "4X of mxf4": ("E1164", mma(MXF4 + "4X"), A, mx("mxf4")),
    "mxf4nvf4 without a vector size": ("E1110", mma("mxf4nvf4.block_scale"), A, mx("mxf4nvf4")),
    "transposed mxf4": ("E1164", mma(MXF4 + "2X"), A, mx("mxf4") | 1 << 15),
    **{f"swizzling mode {code}": ("E1163", mma("f16"), A | code << 61, f16()) for code in (3, 5, 7)},
    "version 0": ("E1163", mma("f16"), A & ~(1 << 46), f16()),
    "16-bit elements, atoms of 32 bytes": ("E1163", mma("f16"), A | 1 << 61, f16(**T)),
    "transposed 32-bit elements, 128B": (
        "E1163", mma("tf32"), A | 2 << 61, descriptors.typed("tf32", "tf32", "tf32", m=128, n=64, **T)
    ),
    ".ashift with A in shared memory": ("E1110", mma("f16.ashift"), A, f16()),
    ".ashift with M = 64": ("E1164", mma("f16.ashift", "[%v1]"), A, f16(m=64)),
    ".ashift with a collector that is filled": ("E1110", mma("f16.ashift.collector::a::fill", "[%v1]"), A, f16()),
    "a collector of B without .ws": ("E1110", mma("f16.collector::b0::fill"), A, f16()),
    "a collector of A with .ws": ("E1110", mma("f16.collector::a::fill", form=".ws"), A, f16()),
    ".ws of scaled elements": ("E1110", mma(MXF8 + "1X", form=".ws"), A, mx("mxf8f6f4")),
    "eight masks for one CTA": ("E1110", mma("f16", more=", {0, 0, 0, 0, 0, 0, 0, 0}"), A, f16()),
    "masks with scaled elements": ("E1110", mma(MXF8 + "1X", more=", {0, 0, 0, 0}"), A, mx("mxf8f6f4")),
    "scale-input-d of 16": ("E1164", mma("f16").replace("%no;", "%yes, 16;"), A, f16()),
    "scale-input-d of f8f6f4": ("E1164", mma("f8f6f4").replace("%no;", "%yes, 1;"), A, f8()),
    "D at lane 16 with M = 128": ("E1161", mma("f16").replace("[%t]", "[%t + 0x100000]"), A, f16()),
    "D beyond the last column": ("E1161", mma("f16").replace("[%t]", "[%t + 480]"), A, f16()),
    "a copy of 64 rows without .warpx2": ("E1110", "tcgen05.cp.cta_group::1.64x128b [%t], %d0;", A, 0),
    "a copy of 32 rows with .warpx2": ("E1110", "tcgen05.cp.cta_group::1.32x128b.warpx2::02_13 [%t], %d0;", A, 0),
    "a compressed copy without .b8x16": ("E1110", "tcgen05.cp.cta_group::1.128x128b.b4x16_p64 [%t], %d0;", A, 0),
    "a shift at lane 5": ("E1162", "tcgen05.shift.cta_group::1.down [%t + 0x50000];", A, 0),
    "a commit of the other cta_group": ("E1167", COMMIT.replace("cta_group::1", "cta_group::2"), A, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_instructions(name: str) -> None:
    code, body, shared, word = WRONG[name]
    assert mistake(Probe(body, shared=(bytes(1 << 15),), descriptors=(shared,), words=(word,))) == code


@pytest.mark.parametrize(
    "text",
    [
        "tcgen05.ld.sync.aligned.16x256b.x64.b32 {%u0}, [%mine];",
        "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%u0}, [%mine];",
        "tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%u0}, [%mine];",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%u0}, [%mine], 3;",
        "tcgen05.ld.32x32b.x1.b32 {%u0}, [%mine];",
        "tcgen05.ld.red.sync.aligned.32x32b.x1.max.f32 {%u0}, %u1, [%mine];",
        "tcgen05.ld.red.sync.aligned.32x32b.x2.max.abs.u32 {%u0, %u1}, %u2, [%mine];",
        "tcgen05.ld.red.sync.aligned.32x32b.x2.pack::16b.max.f32 {%u0, %u1}, %u2, [%mine];",
        "tcgen05.st.sync.aligned.32x32b.x1.pack::16b.b32 [%mine], {%u0};",
    ],
)
def test_wrong_forms_of_loads_and_stores(text: str) -> None:
    assert mistake(Probe(every=text)) == "E1110"
