"""PTX that the simulator's benchmark runs."""

from __future__ import annotations

FMA_LOOP = """
.version 8.0
.target sm_90a
.address_size 64

.visible .entry fma_loop(.param .u64 out, .param .u32 trips)
{
	.reg .pred %p;
	.reg .b32 %r<8>;
	.reg .f32 %f<6>;
	.reg .b64 %w<3>;
	ld.param.u64 %w0, [out];
	ld.param.u32 %r0, [trips];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, 0;
	mov.u32 %r3, %r1;
	cvt.rn.f32.u32 %f0, %r1;
	mov.f32 %f1, 0f3F7FFFF0;
	mov.f32 %f2, 0f3F000000;
LOOP:
	fma.rn.f32 %f0, %f0, %f1, %f2;
	mad.lo.s32 %r3, %r3, 1664525, %r1;
	fma.rn.f32 %f2, %f2, %f1, %f1;
	xor.b32 %r3, %r3, %r2;
	add.s32 %r2, %r2, 1;
	setp.lt.u32 %p, %r2, %r0;
	@%p bra LOOP;
	mov.b32 %r4, %f0;
	add.s32 %r4, %r4, %r3;
	mul.wide.u32 %w1, %r1, 4;
	add.s64 %w2, %w0, %w1;
	st.global.u32 [%w2], %r4;
	ret;
}
"""


def wgmma_gemm(m: int, n: int, k: int) -> str:
    """D = A · B transposed in f32: A is m x k, B is n x k, in bf16, rows along k; a CTA of one warpgroup has 64 x 256.

    Two stages of a tile of A (64 x 64) and one of B (256 x 64) are filled by TMA; 2 x 40 KiB of dynamic shared memory,
    and 1 KiB to align them.
    """
    sums = [f"%d{i}" for i in range(128)]
    multiply = "\n".join(
        f"""	add.s64 %a{i}, %da, {2 * i};
	add.s64 %b{i}, %db, {2 * i};
	wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {{{", ".join(sums)}}}, %a{i}, %b{i}, 1, 1, 1, 0, 0;"""
        for i in range(4)
    )
    # register 4 j + 2 h + l of a lane: row 8 h of its pair of rows, column 8 j + l
    store = "\n".join(
        f"	st.global.v2.f32 [%o{h}+{32 * j}], {{%d{4 * j + 2 * h}, %d{4 * j + 2 * h + 1}}};"
        for j in range(32)
        for h in range(2)
    )
    clear = "\n".join(f"	mov.f32 {name}, 0f00000000;" for name in sums)
    return f"""
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 tiles[];

.visible .entry gemm(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .u64 out)
.reqntid 128, 1, 1
{{
	.reg .pred %p, %q;
	.reg .b32 %r<24>;
	.reg .b64 %w<8>, %ma, %mb, %da, %db, %a<4>, %b<4>, %o<2>;
	.reg .f32 %d<128>;
	.shared .align 8 .b64 full[2];
	mov.u32 %r0, %tid.x;
	setp.ne.u32 %p, %r0, 0;
	mov.b64 %ma, a;
	cvta.param.u64 %ma, %ma;
	mov.b64 %mb, b;
	cvta.param.u64 %mb, %mb;
	mov.u32 %r1, tiles;
	add.u32 %r1, %r1, 1023;
	and.b32 %r1, %r1, 0xfffffc00;
	mov.u32 %r2, %ctaid.x;
	shl.b32 %r2, %r2, 8;
	mov.u32 %r3, %ctaid.y;
	shl.b32 %r3, %r3, 6;
	@%p bra READY;
	mbarrier.init.shared::cta.b64 [full], 1;
	mbarrier.init.shared::cta.b64 [full+8], 1;
	fence.mbarrier_init.release.cluster;
READY:
	bar.sync 0;
{clear}
	mov.u32 %r4, 0;
	@%p bra TURN;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 40960;
	mov.u32 %r5, 0;
	add.u32 %r6, %r1, 8192;
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%ma, {{%r5, %r3}}], [full];
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r6], [%mb, {{%r5, %r2}}], [full];
TURN:
	and.b32 %r7, %r4, 1;
	shr.u32 %r8, %r4, 1;
	and.b32 %r8, %r8, 1;
	mul.lo.u32 %r9, %r7, 40960;
	add.u32 %r9, %r9, %r1;
	mov.u32 %r10, full;
	mad.lo.u32 %r11, %r7, 8, %r10;
	add.u32 %r12, %r4, 1;
	setp.ge.u32 %q, %r12, {k // 64};
	@%q bra WAIT;
	@%p bra WAIT;
	xor.b32 %r13, %r7, 1;
	mul.lo.u32 %r14, %r13, 40960;
	add.u32 %r14, %r14, %r1;
	add.u32 %r15, %r14, 8192;
	mad.lo.u32 %r16, %r13, 8, %r10;
	shl.b32 %r17, %r12, 6;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r16], 40960;
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r14],[%ma, {{%r17,%r3}}], [%r16];
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r15],[%mb, {{%r17,%r2}}], [%r16];
WAIT:
	mbarrier.try_wait.parity.shared::cta.b64 %q, [%r11], %r8;
	@!%q bra WAIT;
	shr.u32 %r18, %r9, 4;
	mov.u32 %r19, 0x40000040;
	or.b32 %r18, %r18, 0x10000;
	mov.b64 %da, {{%r18, %r19}};
	add.s64 %db, %da, 512;
	wgmma.fence.sync.aligned;
{multiply}
	wgmma.commit_group.sync.aligned;
	wgmma.wait_group.sync.aligned 0;
	bar.sync 0;
	mov.u32 %r4, %r12;
	setp.lt.u32 %q, %r4, {k // 64};
	@%q bra TURN;
	ld.param.u64 %w0, [out];
	shr.u32 %r20, %r0, 5;
	and.b32 %r21, %r0, 31;
	shr.u32 %r22, %r21, 2;
	mad.lo.u32 %r20, %r20, 16, %r22;
	add.u32 %r20, %r20, %r3;
	and.b32 %r21, %r21, 3;
	mad.lo.u32 %r21, %r21, 2, %r2;
	mad.lo.u32 %r20, %r20, {n}, %r21;
	mad.wide.u32 %o0, %r20, 4, %w0;
	add.s64 %o1, %o0, {32 * n};
{store}
	ret;
}}
"""
