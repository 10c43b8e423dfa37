"""One PTX instruction for each feature of ``targets.FEATURES``, to ask ptxas who has it."""

# %r: b32, %l: b64, %h: b16, %f: f32, %d: f64, %q: b128, %p: pred; s: shared, g: global, c: code
SNIPPETS = {
    "cp.async": "cp.async.ca.shared.global [s], [g], 16;",
    "mbarrier": "mbarrier.arrive.shared.b64 %l1, [s];",
    "mbarrier.arrive": "mbarrier.arrive.shared::cta.b64 _, [s];",
    "mbarrier.parity": "mbarrier.test_wait.parity.shared.b64 %p1, [s], 0;",
    "mbarrier.try_wait": "mbarrier.try_wait.parity.shared::cta.b64 %p1, [s], 0;",
    "mbarrier.expect_tx": "mbarrier.arrive.expect_tx.shared::cta.b64 _, [s], 16;",
    "mbarrier.cluster": "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];",
    "cluster": "barrier.cluster.arrive.relaxed.aligned;",
    "cache.hint": "ld.global.L1::evict_last.b32 %r1, [g];",
    "fence.proxy.async": "fence.proxy.async.shared::cta;",
    "elect": "elect.sync _|%p1, -1;",
    "tma": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [s];",
    "tma.shared_cta": "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [s];",
    "tma.multicast": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
    " [s], [g], 16, [s], %h1;",
    "tma.cta_group": "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::1"
    " [s], [%l1, {%r1, %r2}], [s];",
    "tma.gather4": "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes"
    " [s], [%l1, {%r1, %r2, %r3, %r4, %r5}], [s];",
    "tensormap.replace": "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [s], %l1;",
    "tensormap.fence": "fence.proxy.tensormap::generic.acquire.gpu [g], 128;",
    "setmaxnreg": "setmaxnreg.inc.sync.aligned.u32 64;",
    "wgmma": "wgmma.fence.sync.aligned;",
    "wgmma.mixed": "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8 {%r1,%r2,%r3,%r4}, %l1, %l2, %p1;",
    "wgmma.sparse": "wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.u8 {%r1,%r2,%r3,%r4}, %l1, %l2, %r5, 0, %p1;",
    "tcgen05": "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [s];",
    "tcgen05.scaled": "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%r1], %l1, %l2, %r2,"
    " [%r3], [%r4], %p1;",
    "tcgen05.bytes": "tcgen05.mma.cta_group::1.kind::i8 [%r1], %l1, %l2, %r2, %p1;",
    "tcgen05.divided": "tcgen05.mma.cta_group::1.kind::f16 [%r1], %l1, %l2, %r2, %p1, 3;",
    "tcgen05.packed": "tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale.block32 [%r1], %l1, %l2, [%r5], %r2,"
    " [%r3], [%r4], %p1;",
    "tcgen05.ld.red": "tcgen05.ld.red.sync.aligned.32x32b.x2.max.f32 {%r1, %r2}, %r3, [%r4];",
    "tcgen05.shift": "tcgen05.shift.cta_group::1.down [%r1];",
    "mma.m16n8k16": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4},"
    " {%r5,%r6}, {%f1,%f2,%f3,%f4};",
    "mma.float8": "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4},"
    " {%r5,%r6}, {%f1,%f2,%f3,%f4};",
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [s];",
    "ldmatrix.b8": "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [s];",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x1.shared.b16 [s], {%r1};",
    "griddepcontrol": "griddepcontrol.wait;",
    "redux": "redux.sync.add.s32 %r1, %r2, -1;",
    "redux.f32": "redux.sync.min.f32 %f1, %f2, -1;",
    "multimem": "multimem.ld_reduce.global.add.u32 %r1, [g];",
    "st.async": "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];",
    "st.bulk": "st.bulk.weak.shared::cta [%r1], %l1, 0;",
    "bf16": "fma.rn.bf16 %h1, %h2, %h3, %h4;",
    "bf16.add": "add.rn.bf16 %h1, %h2, %h3;",
    "fp8": "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;",
    "fp4": "{.reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, %f1, %f2;}",
    "tanh": "tanh.approx.f32 %f1, %f2;",
    "atom.v": "atom.global.v2.f32.add {%f1, %f2}, [g], {%f3, %f4};",
    "atom.b128": "atom.global.exch.b128 %q1, [g], %q2;",
    "f32x2": "add.rn.f32x2 %l1, %l2, %l3;",
    "ld.v8": "ld.global.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [g];",
    "clusterlaunchcontrol": "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128"
    " [s], [s];",
    "clusterlaunchcontrol.multicast": "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
    ".multicast::cluster::all.b128 [s], [s];",
    "max3": "max.f32 %f1, %f2, %f3, %f4;",
}


def kernel(name: str, instruction: str) -> str:
    """An entry of one instruction, on a single line."""
    wide = ".reg .b128 %q<3>; " if "%q" in instruction else ""
    return (
        f".visible .entry {name}() {{ .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .b16 %h<9>; .reg .f32 %f<9>; "
        f".reg .pred %p<3>; {wide}.shared .align 128 .b8 s[256]; {instruction} ret; }}"
    )


def module(target: str, version: tuple[int, int], names: list[str]) -> str:
    """Line 5 has the first kernel, line 6 the second …"""
    head = [f".version {version[0]}.{version[1]}", f".target {target}", ".address_size 64"]
    head.append(".global .align 128 .b8 g[256];")
    return "\n".join([*head, *(kernel(f"k{number}", SNIPPETS[name]) for number, name in enumerate(names))]) + "\n"
