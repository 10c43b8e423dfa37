"""Special registers, bits and floating point: what threads compute for themselves."""

from __future__ import annotations

from ptxdsl.effects import PURE, Effect, Kind
from ptxdsl.intrinsics.row import Row, asm, llvm

_CLOCK = Effect(Kind.READ)


def _sreg(name: str, low: int | None = None, high: int | None = None, feature: str | None = None) -> Row:
    """A special register that does not change during a thread's life; its values are in [low, high)."""
    bounds = "" if low is None else f" range({low}, {high})"
    return llvm(f"i32{bounds} @llvm.nvvm.read.ptx.sreg.{name}()", PURE, feature)


IDS: dict[str, Row] = {
    # threads, blocks, grid (PTX ISA, Special Registers)
    "tid_x": _sreg("tid.x", 0, 1024),
    "tid_y": _sreg("tid.y", 0, 1024),
    "tid_z": _sreg("tid.z", 0, 64),
    "ntid_x": _sreg("ntid.x", 1, 1025),
    "ntid_y": _sreg("ntid.y", 1, 1025),
    "ntid_z": _sreg("ntid.z", 1, 65),
    "ctaid_x": _sreg("ctaid.x", 0, 2147483647),
    "ctaid_y": _sreg("ctaid.y", 0, 65535),
    "ctaid_z": _sreg("ctaid.z", 0, 65535),
    "nctaid_x": _sreg("nctaid.x", 1, -2147483648),
    "nctaid_y": _sreg("nctaid.y", 1, 65536),
    "nctaid_z": _sreg("nctaid.z", 1, 65536),
    "laneid": _sreg("laneid", 0, 32),
    "smid": llvm("i32 @llvm.nvvm.read.ptx.sreg.smid()", _CLOCK),
    "nsmid": _sreg("nsmid"),
    "lanemask_eq": _sreg("lanemask.eq"),
    "lanemask_le": _sreg("lanemask.le"),
    "lanemask_lt": _sreg("lanemask.lt"),
    "lanemask_ge": _sreg("lanemask.ge"),
    "lanemask_gt": _sreg("lanemask.gt"),
    # clusters
    "clusterid_x": _sreg("clusterid.x", feature="cluster"),
    "clusterid_y": _sreg("clusterid.y", feature="cluster"),
    "clusterid_z": _sreg("clusterid.z", feature="cluster"),
    "nclusterid_x": _sreg("nclusterid.x", feature="cluster"),
    "nclusterid_y": _sreg("nclusterid.y", feature="cluster"),
    "nclusterid_z": _sreg("nclusterid.z", feature="cluster"),
    "cluster_ctaid_x": _sreg("cluster.ctaid.x", 0, 16, "cluster"),
    "cluster_ctaid_y": _sreg("cluster.ctaid.y", 0, 16, "cluster"),
    "cluster_ctaid_z": _sreg("cluster.ctaid.z", 0, 16, "cluster"),
    "cluster_nctaid_x": _sreg("cluster.nctaid.x", 1, 17, "cluster"),
    "cluster_nctaid_y": _sreg("cluster.nctaid.y", 1, 17, "cluster"),
    "cluster_nctaid_z": _sreg("cluster.nctaid.z", 1, 17, "cluster"),
    "cluster_ctarank": _sreg("cluster.ctarank", 0, 16, "cluster"),
    "cluster_nctarank": _sreg("cluster.nctarank", 1, 17, "cluster"),
    # time
    "clock": llvm("i32 @llvm.nvvm.read.ptx.sreg.clock()", _CLOCK),
    "clock64": llvm("i64 @llvm.nvvm.read.ptx.sreg.clock64()", _CLOCK),
    "globaltimer": llvm("i64 @llvm.nvvm.read.ptx.sreg.globaltimer()", _CLOCK),
}

BITS: dict[str, Row] = {
    "popc_b32": llvm("i32 @llvm.ctpop.i32(i32 $0)"),
    "popc_b64": llvm("i64 @llvm.ctpop.i64(i64 $0)"),
    "clz_b32": llvm("i32 @llvm.ctlz.i32(i32 $0, i1 false)"),
    "clz_b64": llvm("i64 @llvm.ctlz.i64(i64 $0, i1 false)"),
    "brev_b32": llvm("i32 @llvm.bitreverse.i32(i32 $0)"),
    "brev_b64": llvm("i64 @llvm.bitreverse.i64(i64 $0)"),
    "bswap_b32": llvm("i32 @llvm.bswap.i32(i32 $0)"),
    "bswap_b64": llvm("i64 @llvm.bswap.i64(i64 $0)"),
    "fshl_b32": llvm("i32 @llvm.fshl.i32(i32 $0, i32 $1, i32 $2)"),
    "fshr_b32": llvm("i32 @llvm.fshr.i32(i32 $0, i32 $1, i32 $2)"),
    "fshl_b64": llvm("i64 @llvm.fshl.i64(i64 $0, i64 $1, i64 $2)"),
    "fshr_b64": llvm("i64 @llvm.fshr.i64(i64 $0, i64 $1, i64 $2)"),
    "prmt": llvm("i32 @llvm.nvvm.prmt(i32 $0, i32 $1, i32 $2)"),
    "mulhi_s32": llvm("i32 @llvm.nvvm.mulhi.i(i32 $0, i32 $1)"),
    "mulhi_u32": llvm("i32 @llvm.nvvm.mulhi.ui(i32 $0, i32 $1)"),
    "mulhi_s64": llvm("i64 @llvm.nvvm.mulhi.ll(i64 $0, i64 $1)"),
    "mulhi_u64": llvm("i64 @llvm.nvvm.mulhi.ull(i64 $0, i64 $1)"),
    "lop3_row": asm("lop3.b32 $r0, $0, $1, $2, {lut};"),
}

# Floating point: PTX ISA, "Floating Point Instructions". The accuracy of the approximate forms is the ISA's.
FLOATS: dict[str, Row] = {
    "sqrt_rn_f32": llvm("float @llvm.nvvm.sqrt.rn.f(float $0)"),
    "sqrt_rn_f64": llvm("double @llvm.nvvm.sqrt.rn.d(double $0)"),
    "rcp_rn_f32": llvm("float @llvm.nvvm.rcp.rn.f(float $0)"),
    "rcp_rn_f64": llvm("double @llvm.nvvm.rcp.rn.d(double $0)"),
    "floor_f32": llvm("float @llvm.floor.f32(float $0)"),
    "floor_f64": llvm("double @llvm.floor.f64(double $0)"),
    "ceil_f32": llvm("float @llvm.ceil.f32(float $0)"),
    "ceil_f64": llvm("double @llvm.ceil.f64(double $0)"),
    "trunc_f32": llvm("float @llvm.trunc.f32(float $0)"),
    "trunc_f64": llvm("double @llvm.trunc.f64(double $0)"),
    "rint_f32": llvm("float @llvm.roundeven.f32(float $0)"),
    "rint_f64": llvm("double @llvm.roundeven.f64(double $0)"),
    "max_nan_f32": llvm("float @llvm.maximum.f32(float $0, float $1)"),
    "sqrt_approx_f32": llvm("float @llvm.nvvm.sqrt.approx.f(float $0)"),
    "rsqrt_approx_f32": llvm("float @llvm.nvvm.rsqrt.approx.f(float $0)"),
    "rsqrt_approx_f64": llvm("double @llvm.nvvm.rsqrt.approx.d(double $0)"),
    "rcp_approx_f32": asm("rcp.approx.f32 $r0, $0;"),
    "div_approx_f32": llvm("float @llvm.nvvm.div.approx.f(float $0, float $1)"),
    "ex2_approx_f32": llvm("float @llvm.nvvm.ex2.approx.f(float $0)"),
    "ex2_approx_ftz_f32": llvm("float @llvm.nvvm.ex2.approx.ftz.f(float $0)"),
    "lg2_approx_f32": llvm("float @llvm.nvvm.lg2.approx.f(float $0)"),
    "sin_approx_f32": llvm("float @llvm.nvvm.sin.approx.f(float $0)"),
    "cos_approx_f32": llvm("float @llvm.nvvm.cos.approx.f(float $0)"),
    "tanh_approx_f32": llvm("float @llvm.nvvm.tanh.approx.f32(float $0)"),
    "ex2_approx_f16": asm("ex2.approx.f16 $r0, $0;"),
    "tanh_approx_f16": asm("tanh.approx.f16 $r0, $0;"),
    "tanh_approx_bf16": asm("tanh.approx.bf16 $r0, $0;", PURE, "bf16.add"),
    "ex2_approx_bf16": asm("ex2.approx.ftz.bf16 $r0, $0;", PURE, "bf16.add"),
}
