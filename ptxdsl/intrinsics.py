"""The instructions of the language, one row each. A function marked ``@builtin`` in ``stdlib/`` is the row of its name.

A row says how the instruction is written (an LLVM intrinsic call or inline PTX), what it does (its Effect) and which
target feature it needs. Placeholders:

``$0 $1 …``   the run-time operands in the order of the declaration, structs flattened
``{name}``    a compile-time parameter of the declaration (an int or text); ``{T}`` of a DType parameter is its PTX type
              without the dot (``f32``, ``u32`` …); ``{b}`` the untyped width of the first result or operand (``b32``)

``llvm("ret @name(types and operands)")`` calls an LLVM intrinsic; ``asm("ptx")`` is inline assembly whose outputs come
first as ``$r0 $r1 …``; operand constraints follow from the operands' types, and an address known at compile time is
printed in place (``[buf+8]``). A boolean result of ``asm`` is an i32 in PTX (``selp``) and an i1 outside. ``$r*`` is
the list of all results, ``$2*`` that of the operands from ``$2`` on. ``tied``: the operands from this one on are the
results before the instruction, in the same registers.
"""

from __future__ import annotations

from ptxdsl.effects import PURE, Effect, Kind
from ptxdsl.record import dataclass


@dataclass(frozen=True)
class Row:
    lowering: str  # "llvm" or "asm"
    text: str
    effect: Effect
    feature: str | None = None  # a key of targets.FEATURES; None: every target
    tied: int | None = None


def llvm(text: str, effect: Effect = PURE, feature: str | None = None) -> Row:
    return Row("llvm", text, effect, feature)


def asm(text: str, effect: Effect = PURE, feature: str | None = None, tied: int | None = None) -> Row:
    return Row("asm", text, effect, feature, tied)


def _sreg(name: str, low: int | None = None, high: int | None = None, feature: str | None = None) -> Row:
    """A special register that does not change during a thread's life; its values are in [low, high)."""
    bounds = "" if low is None else f" range({low}, {high})"
    return llvm(f"i32{bounds} @llvm.nvvm.read.ptx.sreg.{name}()", PURE, feature)


# Effects that several rows share.
_WARP = Effect(Kind.WARP_SYNC, convergent=True)
_CLOCK = Effect(Kind.READ)
_FENCE_CTA = Effect(Kind.FENCE, scope="cta")
_FENCE_CLUSTER = Effect(Kind.FENCE, scope="cluster")
_FENCE_GPU = Effect(Kind.FENCE, scope="gpu")
_FENCE_SYS = Effect(Kind.FENCE, scope="sys")
_ATOMIC = Effect(Kind.ATOMIC)
_READ_GLOBAL = Effect(Kind.READ, "global")
_WRITE_GLOBAL = Effect(Kind.WRITE, "global")
_ARRIVE = Effect(Kind.BAR_ARRIVE, "shared", scope="cta", barrier=0)
_ARRIVE_COUNT = Effect(Kind.BAR_ARRIVE, "shared", scope="cta", barrier=0, count=1)
_ARRIVE_REMOTE = Effect(Kind.BAR_ARRIVE, "cluster", scope="cluster", barrier=0, count=1)
_ARRIVE_REMOTE_CTA = Effect(Kind.BAR_ARRIVE, "cluster", scope="cta", barrier=0, count=1)
_WAIT = Effect(Kind.BAR_WAIT, "shared", scope="cta", barrier=0, convergent=True)
_TEST = Effect(Kind.BAR_TEST, "shared", scope="cta", barrier=0)
_CP_ASYNC = Effect(Kind.ASYNC_COPY, "shared", completes_on="cp-async-group")
_BULK_IN = Effect(
    Kind.ASYNC_COPY, "shared", proxy="async", scope="cluster", barrier=3, bytes=2, completes_on="mbarrier"
)
_BULK_PEER = Effect(
    Kind.ASYNC_COPY, "cluster", proxy="async", scope="cluster", barrier=3, bytes=2, completes_on="mbarrier"
)
_BULK_OUT = Effect(Kind.ASYNC_COPY, "global", proxy="async", bytes=2, completes_on="bulk-group")
_TENSOR_IN = Effect(Kind.ASYNC_COPY, "shared", proxy="async", scope="cluster", barrier=2, completes_on="mbarrier")
_TENSOR_MULTICAST = Effect(
    Kind.ASYNC_COPY, "cluster", proxy="async", scope="cluster", barrier=2, completes_on="mbarrier"
)
_TENSOR_OUT = Effect(Kind.ASYNC_COPY, "global", proxy="async", completes_on="bulk-group")
_WGMMA = Effect(Kind.ASYNC_MMA, "shared", proxy="async", completes_on="wgmma-group", convergent=True)
_WGMMA_WAIT = Effect(Kind.WAIT_GROUP, proxy="async", completes_on="wgmma-group", convergent=True)
_LDMATRIX = Effect(Kind.READ, "shared", convergent=True)
_STMATRIX = Effect(Kind.WRITE, "shared", convergent=True)
_TENSOR_MEMORY = Effect(Kind.WRITE, "tensor", convergent=True)
_TCGEN05_MMA = Effect(Kind.ASYNC_MMA, "tensor", proxy="async", completes_on="mbarrier")
_TCGEN05_COPY = Effect(Kind.ASYNC_COPY, "tensor", proxy="async", completes_on="mbarrier")
_TCGEN05_LOAD = Effect(Kind.READ, "tensor", completes_on="tcgen05-wait-ld", convergent=True)
_TCGEN05_STORE = Effect(Kind.WRITE, "tensor", completes_on="tcgen05-wait-st", convergent=True)
_TCGEN05_LOADED = Effect(Kind.WAIT_GROUP, "tensor", completes_on="tcgen05-wait-ld", convergent=True)
_TCGEN05_STORED = Effect(Kind.WAIT_GROUP, "tensor", completes_on="tcgen05-wait-st", convergent=True)
_TCGEN05_FENCE = Effect(Kind.FENCE, "tensor", proxy="async")
_MMA_COMMIT = Effect(Kind.COMMIT, "shared", proxy="async", scope="cluster", barrier=0, completes_on="mbarrier")


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

CONTROL: dict[str, Row] = {
    "nanosleep": llvm("void @llvm.nvvm.nanosleep(i32 $0)", Effect(Kind.READ)),
    "trap_kernel": llvm("void @llvm.trap()", Effect(Kind.TRAP)),
    "exit_thread": asm("exit;", Effect(Kind.TRAP, convergent=True)),
    "setmaxnreg_inc": llvm(
        "void @llvm.nvvm.setmaxnreg.inc.sync.aligned.u32(i32 {count})",
        Effect(Kind.REGISTERS, convergent=True),
        "setmaxnreg",
    ),
    "setmaxnreg_dec": llvm(
        "void @llvm.nvvm.setmaxnreg.dec.sync.aligned.u32(i32 {count})",
        Effect(Kind.REGISTERS, convergent=True),
        "setmaxnreg",
    ),
    "griddepcontrol_launch_dependents": llvm(
        "void @llvm.nvvm.griddepcontrol.launch.dependents()", Effect(Kind.GRID), "griddepcontrol"
    ),
    "griddepcontrol_wait": llvm("void @llvm.nvvm.griddepcontrol.wait()", Effect(Kind.GRID), "griddepcontrol"),
}

BARRIERS: dict[str, Row] = {
    "barrier": llvm(
        "void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)", Effect(Kind.CTA_SYNC, scope="cta", convergent=True)
    ),
    "named_barrier_sync": llvm(
        "void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 $0, i32 {num_threads})",
        Effect(Kind.NAMED_SYNC, scope="cta", barrier=0, convergent=True),
    ),
    "named_barrier_arrive_row": llvm(
        "void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 $0, i32 {num_threads})",
        Effect(Kind.NAMED_ARRIVE, scope="cta", barrier=0, convergent=True),
    ),
    "cluster_arrive": llvm(
        "void @llvm.nvvm.barrier.cluster.arrive.aligned()",
        Effect(Kind.CLUSTER_ARRIVE, scope="cluster", convergent=True),
        "cluster",
    ),
    "cluster_arrive_relaxed": llvm(
        "void @llvm.nvvm.barrier.cluster.arrive.relaxed.aligned()",
        Effect(Kind.CLUSTER_ARRIVE, convergent=True),
        "cluster",
    ),
    "cluster_wait": llvm(
        "void @llvm.nvvm.barrier.cluster.wait.aligned()",
        Effect(Kind.CLUSTER_WAIT, scope="cluster", convergent=True),
        "cluster",
    ),
    "membar_cta": llvm("void @llvm.nvvm.membar.cta()", _FENCE_CTA),
    "membar_gl": llvm("void @llvm.nvvm.membar.gl()", _FENCE_GPU),
    "membar_sys": llvm("void @llvm.nvvm.membar.sys()", _FENCE_SYS),
    "fence_row": asm("fence.{sem}.{scope};", Effect(Kind.FENCE)),
    "fence_cluster_row": asm("fence.{sem}.cluster;", _FENCE_CLUSTER, "cluster"),
    "fence_mbarrier_init": llvm(
        "void @llvm.nvvm.fence.mbarrier_init.release.cluster()", _FENCE_CLUSTER, "mbarrier.cluster"
    ),
    "fence_proxy_async_all": asm("fence.proxy.async;", Effect(Kind.FENCE, proxy="async"), "fence.proxy.async"),
    "fence_proxy_async_shared": asm(
        "fence.proxy.async.shared::cta;", Effect(Kind.FENCE, "shared", proxy="async", scope="cta"), "fence.proxy.async"
    ),
    "fence_proxy_async_cluster": asm(
        "fence.proxy.async.shared::cluster;",
        Effect(Kind.FENCE, "cluster", proxy="async", scope="cluster"),
        "fence.proxy.async",
    ),
    "fence_proxy_async_global": asm(
        "fence.proxy.async.global;", Effect(Kind.FENCE, "global", proxy="async"), "fence.proxy.async"
    ),
}

WARP: dict[str, Row] = {
    "warp_sync": llvm("void @llvm.nvvm.bar.warp.sync(i32 $0)", _WARP),
    "elect": asm("{.reg .pred p; elect.sync _|p, -1; selp.b32 $r0, 1, 0, p;}", _WARP, "elect"),
    "elect_one_sync": asm("{.reg .pred p; elect.sync _|p, -1; selp.b32 $r0, 1, 0, p;}", _WARP, "elect"),
    "elect_mask": asm("{.reg .pred p; elect.sync _|p, $0; selp.b32 $r0, 1, 0, p;}", _WARP, "elect"),
    "shfl_idx": llvm("i32 @llvm.nvvm.shfl.sync.idx.i32(i32 $0, i32 $1, i32 $2, i32 {clamp})", _WARP),
    "shfl_up": llvm("i32 @llvm.nvvm.shfl.sync.up.i32(i32 $0, i32 $1, i32 $2, i32 {clamp})", _WARP),
    "shfl_down": llvm("i32 @llvm.nvvm.shfl.sync.down.i32(i32 $0, i32 $1, i32 $2, i32 {clamp})", _WARP),
    "shfl_bfly": llvm("i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 $0, i32 $1, i32 $2, i32 {clamp})", _WARP),
    "vote_any_sync": llvm("i1 @llvm.nvvm.vote.any.sync(i32 $0, i1 $1)", _WARP),
    "vote_all_sync": llvm("i1 @llvm.nvvm.vote.all.sync(i32 $0, i1 $1)", _WARP),
    "vote_uni_sync": llvm("i1 @llvm.nvvm.vote.uni.sync(i32 $0, i1 $1)", _WARP),
    "vote_ballot_sync": llvm("i32 @llvm.nvvm.vote.ballot.sync(i32 $0, i1 $1)", _WARP),
    "match_any_b32": llvm("i32 @llvm.nvvm.match.any.sync.i32(i32 $0, i32 $1)", _WARP),
    "match_any_b64": llvm("i32 @llvm.nvvm.match.any.sync.i64(i32 $0, i64 $1)", _WARP),
    "match_all_b32": asm("match.all.sync.b32 $r0, $1, $0;", _WARP),
    "match_all_b64": asm("match.all.sync.b64 $r0, $1, $0;", _WARP),
    "active_mask": llvm("i32 @llvm.nvvm.activemask()", Effect(Kind.READ, convergent=True)),
    "redux_sync": asm("redux.sync.{op}.{T} $r0, $1, $0;", _WARP, "redux"),
    "redux_sync_bits": asm("redux.sync.{op}.b32 $r0, $1, $0;", _WARP, "redux"),
    "redux_sync_f32": asm("redux.sync.{op}.f32 $r0, $1, $0;", _WARP, "redux.f32"),
}

# Mbarrier objects: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".
MBARRIER: dict[str, Row] = {
    "mbarrier_init": asm(
        "mbarrier.init.shared.b64 [$0], $1;", Effect(Kind.BAR_INIT, "shared", barrier=0, count=1), "mbarrier"
    ),
    "mbarrier_inval": asm("mbarrier.inval.shared.b64 [$0];", Effect(Kind.BAR_INVAL, "shared", barrier=0), "mbarrier"),
    "mbarrier_arrive": asm("mbarrier.arrive.shared.b64 $r0, [$0];", _ARRIVE, "mbarrier"),
    "mbarrier_arrive_count": asm("mbarrier.arrive.shared::cta.b64 $r0, [$0], $1;", _ARRIVE_COUNT, "mbarrier.try_wait"),
    "mbarrier_arrive_drop": asm("mbarrier.arrive_drop.shared.b64 $r0, [$0];", _ARRIVE, "mbarrier"),
    "mbarrier_arrive_cluster": asm(
        "{.reg .b32 a; mapa.shared::cluster.u32 a, $0, $2; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a], "
        "$1;}",
        _ARRIVE_REMOTE,
        "mbarrier.cluster",
    ),
    "mbarrier_arrive_cluster_cta": asm(
        "{.reg .b32 a; mapa.shared::cluster.u32 a, $0, $2; "
        "mbarrier.arrive.release.cta.shared::cluster.b64 _, [a], $1;}",
        _ARRIVE_REMOTE_CTA,
        "mbarrier.cluster",
    ),
    "mbarrier_arrive_expect_tx": asm(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;",
        Effect(Kind.BAR_EXPECT, "shared", scope="cta", barrier=0, count=1, bytes=1),
        "mbarrier.expect_tx",
    ),
    "mbarrier_arrive_expect_tx_cluster": asm(
        "{.reg .b32 a; mapa.shared::cluster.u32 a, $0, $2; "
        "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [a], $1;}",
        Effect(Kind.BAR_EXPECT, "cluster", scope="cluster", barrier=0, count=1, bytes=1),
        "mbarrier.expect_tx",
    ),
    "mbarrier_expect_tx": asm(
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;",
        Effect(Kind.BAR_EXPECT, "shared", scope="cta", barrier=0, bytes=1),
        "mbarrier.expect_tx",
    ),
    "mbarrier_complete_tx": asm(
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [$0], $1;",
        Effect(Kind.COMMIT, "shared", scope="cta", barrier=0, bytes=1),
        "mbarrier.expect_tx",
    ),
    "mbarrier_wait_parity": asm(
        "{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; @!p bra W;}",
        _WAIT,
        "mbarrier.try_wait",
    ),
    "mbarrier_wait_parity_cluster": asm(
        "{.reg .pred p; W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [$0], $1; @!p bra W;}",
        Effect(Kind.BAR_WAIT, "shared", scope="cluster", barrier=0, convergent=True),
        "mbarrier.cluster",
    ),
    "mbarrier_wait_parity_hint": asm(
        "{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1, $2; @!p bra W;}",
        _WAIT,
        "mbarrier.try_wait",
    ),
    # on targets without try_wait a wait spins on the non-blocking test
    "mbarrier_spin_parity": asm(
        "{.reg .pred p; W: mbarrier.test_wait.parity.shared.b64 p, [$0], $1; @!p bra W;}", _WAIT, "mbarrier.parity"
    ),
    "mbarrier_try_wait_parity": asm(
        "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; selp.b32 $r0, 1, 0, p;}",
        _TEST,
        "mbarrier.try_wait",
    ),
    "mbarrier_test_wait_parity": asm(
        "{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [$0], $1; selp.b32 $r0, 1, 0, p;}",
        _TEST,
        "mbarrier.parity",
    ),
    "mbarrier_test_wait": asm(
        "{.reg .pred p; mbarrier.test_wait.shared.b64 p, [$0], $1; selp.b32 $r0, 1, 0, p;}",
        _TEST,
        # since sm_80, but ptxas 13.5 dies there where the state does not come straight from an arrive
        "mbarrier.try_wait",
    ),
    "mbarrier_pending_count": asm("mbarrier.pending_count.b64 $r0, $0;", PURE, "mbarrier"),
}

MEMORY: dict[str, Row] = {
    # loads and stores of global memory; {hint} is a cache operator with its dot (".nc" too), or empty
    "ld_global_b8": asm("ld.global{hint}.b8 $r0, [$0];", _READ_GLOBAL),
    "ld_global_b16": asm("ld.global{hint}.b16 $r0, [$0];", _READ_GLOBAL),
    "ld_global_b32": asm("ld.global{hint}.b32 $r0, [$0];", _READ_GLOBAL),
    "ld_global_b64": asm("ld.global{hint}.b64 $r0, [$0];", _READ_GLOBAL),
    "ld_global_v2_b32": asm("ld.global{hint}.v2.b32 {$r0, $r1}, [$0];", _READ_GLOBAL),
    "ld_global_v4_b32": asm("ld.global{hint}.v4.b32 {$r0, $r1, $r2, $r3}, [$0];", _READ_GLOBAL),
    "st_global_b8": asm("st.global{hint}.b8 [$0], $1;", _WRITE_GLOBAL),
    "st_global_b16": asm("st.global{hint}.b16 [$0], $1;", _WRITE_GLOBAL),
    "st_global_b32": asm("st.global{hint}.b32 [$0], $1;", _WRITE_GLOBAL),
    "st_global_b64": asm("st.global{hint}.b64 [$0], $1;", _WRITE_GLOBAL),
    "st_global_v2_b32": asm("st.global{hint}.v2.b32 [$0], {$1, $2};", _WRITE_GLOBAL),
    "st_global_v4_b32": asm("st.global{hint}.v4.b32 [$0], {$1, $2, $3, $4};", _WRITE_GLOBAL),
    # the same with an eviction priority or prefetch size in {hint}
    "ld_global_evict_b16": asm("ld.global{hint}.b16 $r0, [$0];", _READ_GLOBAL, "cache.hint"),
    "ld_global_evict_b32": asm("ld.global{hint}.b32 $r0, [$0];", _READ_GLOBAL, "cache.hint"),
    "ld_global_evict_b64": asm("ld.global{hint}.b64 $r0, [$0];", _READ_GLOBAL, "cache.hint"),
    "ld_global_evict_v2_b32": asm("ld.global{hint}.v2.b32 {$r0, $r1}, [$0];", _READ_GLOBAL, "cache.hint"),
    "ld_global_evict_v4_b32": asm("ld.global{hint}.v4.b32 {$r0, $r1, $r2, $r3}, [$0];", _READ_GLOBAL, "cache.hint"),
    "st_global_evict_b16": asm("st.global{hint}.b16 [$0], $1;", _WRITE_GLOBAL, "cache.hint"),
    "st_global_evict_b32": asm("st.global{hint}.b32 [$0], $1;", _WRITE_GLOBAL, "cache.hint"),
    "st_global_evict_b64": asm("st.global{hint}.b64 [$0], $1;", _WRITE_GLOBAL, "cache.hint"),
    "st_global_evict_v2_b32": asm("st.global{hint}.v2.b32 [$0], {$1, $2};", _WRITE_GLOBAL, "cache.hint"),
    "st_global_evict_v4_b32": asm("st.global{hint}.v4.b32 [$0], {$1, $2, $3, $4};", _WRITE_GLOBAL, "cache.hint"),
    "prefetch_global_l2": asm("prefetch.global.L2 [$0];", Effect(Kind.READ, "global")),
    "createpolicy": asm("createpolicy.fractional.L2::{priority}.b64 $r0, 1.0;", PURE, "cache.hint"),
    # distributed shared memory
    "mapa": asm("mapa.shared::cluster.u32 $r0, $0, $1;", PURE, "cluster"),
    "ld_cluster_b32": asm("ld.shared::cluster.b32 $r0, [$0];", Effect(Kind.READ, "cluster"), "cluster"),
    "ld_cluster_b64": asm("ld.shared::cluster.b64 $r0, [$0];", Effect(Kind.READ, "cluster"), "cluster"),
    "st_cluster_b32": asm("st.shared::cluster.b32 [$0], $1;", Effect(Kind.WRITE, "cluster"), "cluster"),
    "st_cluster_b64": asm("st.shared::cluster.b64 [$0], $1;", Effect(Kind.WRITE, "cluster"), "cluster"),
    "st_async_b32": asm(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], $1, [$2];",
        Effect(Kind.ASYNC_COPY, "cluster", scope="cluster", barrier=2, completes_on="mbarrier"),
        "st.async",
    ),
    "st_async_b64": asm(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [$0], $1, [$2];",
        Effect(Kind.ASYNC_COPY, "cluster", scope="cluster", barrier=2, completes_on="mbarrier"),
        "st.async",
    ),
    # cluster launch control: the answer is 16 bytes, opaque
    "try_cancel_row": asm(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [$0], [$1];",
        Effect(Kind.ASYNC_COPY, "shared", proxy="async", scope="cta", barrier=1, completes_on="mbarrier"),
        "clusterlaunchcontrol",
    ),
    "try_cancel_multicast_row": asm(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
        "[$0], [$1];",
        Effect(Kind.ASYNC_COPY, "cluster", proxy="async", scope="cluster", barrier=1, completes_on="mbarrier"),
        "clusterlaunchcontrol.multicast",
    ),
    "query_cancel_row": asm(
        "{.reg .b128 q; .reg .pred p; mov.b128 q, {$0, $1}; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 "
        "p, q; selp.b32 $r0, 1, 0, p;}",
        PURE,
        "clusterlaunchcontrol",
    ),
    "query_first_cta_row": asm(
        "{.reg .b128 q; mov.b128 q, {$0, $1}; clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 "
        "{$r0, $r1, $r2, _}, q;}",
        PURE,
        "clusterlaunchcontrol",
    ),
    # cp.async: 4, 8 or 16 bytes
    "cp_async_ca": asm("cp.async.ca.shared.global [$0], [$1], {bytes};", _CP_ASYNC, "cp.async"),
    "cp_async_cg": asm("cp.async.cg.shared.global [$0], [$1], 16;", _CP_ASYNC, "cp.async"),
    "cp_async_ca_fill": asm("cp.async.ca.shared.global [$0], [$1], {bytes}, $2;", _CP_ASYNC, "cp.async"),
    "cp_async_cg_fill": asm("cp.async.cg.shared.global [$0], [$1], 16, $2;", _CP_ASYNC, "cp.async"),
    "cp_async_commit_group": llvm(
        "void @llvm.nvvm.cp.async.commit.group()", Effect(Kind.COMMIT, completes_on="cp-async-group"), "cp.async"
    ),
    "cp_async_wait_group": llvm(
        "void @llvm.nvvm.cp.async.wait.group(i32 {n})",
        Effect(Kind.WAIT_GROUP, "shared", completes_on="cp-async-group"),
        "cp.async",
    ),
    "cp_async_wait_all": llvm(
        "void @llvm.nvvm.cp.async.wait.all()",
        Effect(Kind.WAIT_GROUP, "shared", completes_on="cp-async-group"),
        "cp.async",
    ),
    "cp_async_mbarrier_arrive": asm(
        "cp.async.mbarrier.arrive.shared.b64 [$0];",
        Effect(Kind.COMMIT, "shared", scope="cta", barrier=0, completes_on="mbarrier"),
        "cp.async",
    ),
    "cp_async_mbarrier_arrive_noinc": asm(
        "cp.async.mbarrier.arrive.noinc.shared.b64 [$0];",
        Effect(Kind.COMMIT, "shared", scope="cta", barrier=0, completes_on="mbarrier"),
        "cp.async",
    ),
    # cp.async.bulk: multiples of 16 bytes, addresses aligned to 16 bytes
    "cp_async_bulk_g2s": asm(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
        _BULK_IN,
        "tma",
    ),
    "cp_async_bulk_g2s_hint": asm(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [$0], [$1], $2, [$3], $4;",
        _BULK_IN,
        "tma",
    ),
    "cp_async_bulk_g2s_multicast": asm(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[$0], [$1], $2, [$3], $4;",
        Effect(Kind.ASYNC_COPY, "cluster", proxy="async", scope="cluster", barrier=3, bytes=2, completes_on="mbarrier"),
        "tma.multicast",
    ),
    "cp_async_bulk_s2s": asm(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
        _BULK_PEER,
        "tma",
    ),
    "cp_async_bulk_s2g": asm("cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;", _BULK_OUT, "tma"),
    "cp_async_bulk_s2g_hint": asm(
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [$0], [$1], $2, $3;", _BULK_OUT, "tma"
    ),
    "cp_reduce_async_bulk_s2g": asm(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{T} [$0], [$1], $2;", _BULK_OUT, "tma"
    ),
    "cp_async_bulk_prefetch_l2": asm(
        "cp.async.bulk.prefetch.L2.global [$0], $1;", Effect(Kind.READ, "global", bytes=1), "tma"
    ),
    "cp_async_bulk_commit_group": llvm(
        "void @llvm.nvvm.cp.async.bulk.commit.group()",
        Effect(Kind.COMMIT, proxy="async", completes_on="bulk-group"),
        "tma",
    ),
    "cp_async_bulk_wait_group_all": llvm(
        "void @llvm.nvvm.cp.async.bulk.wait.group(i32 {n})",
        Effect(Kind.WAIT_GROUP, "global", proxy="async", completes_on="bulk-group"),
        "tma",
    ),
    "cp_async_bulk_wait_group_read": llvm(
        "void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 {n})",
        Effect(Kind.WAIT_GROUP, "shared", proxy="async", completes_on="bulk-group"),
        "tma",
    ),
}

# Tensor copies (TMA): {rank} dimensions, as many coordinates, the innermost first. PTX ISA, "Tensor Copies".
_TENSOR_LOAD = "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
_TENSOR_STORE = "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"
_TENSOR_REDUCE = "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.tile.bulk_group"

TENSOR_COPIES: dict[str, Row] = {
    "tensor_load": asm(f"{_TENSOR_LOAD} [$0], [$1, {{$3*}}], [$2];", _TENSOR_IN, "tma"),
    "tensor_load_hint": asm(f"{_TENSOR_LOAD}.L2::cache_hint [$0], [$1, {{$4*}}], [$2], $3;", _TENSOR_IN, "tma"),
    "tensor_load_multicast": asm(
        f"{_TENSOR_LOAD}.multicast::cluster [$0], [$1, {{$4*}}], [$2], $3;", _TENSOR_MULTICAST, "tma.multicast"
    ),
    "tensor_load_multicast_hint": asm(
        f"{_TENSOR_LOAD}.multicast::cluster.L2::cache_hint [$0], [$1, {{$5*}}], [$2], $3, $4;",
        _TENSOR_MULTICAST,
        "tma.multicast",
    ),
    # the mbarrier may be in the other CTA of the pair
    "tensor_load_pair": asm(f"{_TENSOR_LOAD}.cta_group::2 [$0], [$1, {{$3*}}], [$2];", _TENSOR_IN, "tma.cta_group"),
    "tensor_load_pair_hint": asm(
        f"{_TENSOR_LOAD}.cta_group::2.L2::cache_hint [$0], [$1, {{$4*}}], [$2], $3;",
        _TENSOR_IN,
        "tma.cta_group",
    ),
    "tensor_store": asm(f"{_TENSOR_STORE} [$0, {{$2*}}], [$1];", _TENSOR_OUT, "tma"),
    "tensor_store_hint": asm(f"{_TENSOR_STORE}.L2::cache_hint [$0, {{$3*}}], [$1], $2;", _TENSOR_OUT, "tma"),
    "tensor_reduce": asm(f"{_TENSOR_REDUCE} [$0, {{$2*}}], [$1];", _TENSOR_OUT, "tma"),
    "tensor_reduce_hint": asm(f"{_TENSOR_REDUCE}.L2::cache_hint [$0, {{$3*}}], [$1], $2;", _TENSOR_OUT, "tma"),
    "tensor_prefetch": asm(
        "cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [$0, {$1*}];", Effect(Kind.READ, "global"), "tma"
    ),
    "tensormap_prefetch": asm("prefetch.tensormap [$0];", Effect(Kind.READ), "tma"),
}

# Matrix products of a warpgroup: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".
# {types} are those of D, A and B, with what follows them; {tail} is the signs and majornesses after scale-d.
_WGMMA_OF = (
    "{.reg .pred p; setp.ne.b32 p, $%d, 0; wgmma.mma_async%s.sync.aligned.m64n{n}k{k}.{types} {$r*}, %s, p{tail};}"
)
_FRAGMENT = "{$0, $1, $2, $3}"

WARPGROUP: dict[str, Row] = {
    "wgmma_shared": asm(_WGMMA_OF % (2, "", "$0, $1"), _WGMMA, "wgmma", tied=3),
    "wgmma_registers": asm(_WGMMA_OF % (5, "", f"{_FRAGMENT}, $4"), _WGMMA, "wgmma", tied=6),
    # signed by unsigned bytes, which came later
    "wgmma_mixed_shared": asm(_WGMMA_OF % (2, "", "$0, $1"), _WGMMA, "wgmma.mixed", tied=3),
    "wgmma_mixed_registers": asm(_WGMMA_OF % (5, "", f"{_FRAGMENT}, $4"), _WGMMA, "wgmma.mixed", tied=6),
    "wgmma_sparse_shared": asm(_WGMMA_OF % (3, ".sp", "$0, $1, $2, {selector}"), _WGMMA, "wgmma.sparse", tied=4),
    "wgmma_sparse_registers": asm(
        _WGMMA_OF % (6, ".sp", f"{_FRAGMENT}, $4, $5, {{selector}}"), _WGMMA, "wgmma.sparse", tied=7
    ),
    "wgmma_fence_aligned": asm(
        "wgmma.fence.sync.aligned;", Effect(Kind.FENCE, proxy="async", convergent=True), "wgmma"
    ),
    "wgmma_commit_group_sync": asm(
        "wgmma.commit_group.sync.aligned;",
        Effect(Kind.COMMIT, proxy="async", completes_on="wgmma-group", convergent=True),
        "wgmma",
    ),
    "wgmma_wait_group": asm("wgmma.wait_group.sync.aligned {n};", _WGMMA_WAIT, "wgmma"),
    # the same, after which the registers are what the products made of them
    "wgmma_wait_group_of": asm("wgmma.wait_group.sync.aligned {n};", _WGMMA_WAIT, "wgmma", tied=0),
    "stmatrix_x1": asm("stmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 [$0], {$1};", _STMATRIX, "stmatrix"),
    "stmatrix_x2": asm("stmatrix.sync.aligned.m8n8.x2{trans}.shared.b16 [$0], {$1, $2};", _STMATRIX, "stmatrix"),
    "stmatrix_x4": asm(
        "stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [$0], {$1, $2, $3, $4};", _STMATRIX, "stmatrix"
    ),
    "ldmatrix_x1": asm("ldmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 {$r0}, [$0];", _LDMATRIX, "ldmatrix"),
    "ldmatrix_x2": asm("ldmatrix.sync.aligned.m8n8.x2{trans}.shared.b16 {$r0, $r1}, [$0];", _LDMATRIX, "ldmatrix"),
    "ldmatrix_x4": asm(
        "ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {$r0, $r1, $r2, $r3}, [$0];", _LDMATRIX, "ldmatrix"
    ),
}

# The fifth generation of tensor cores: PTX ISA, "TensorCore 5th Generation Family Instructions". Addresses of tensor
# memory and descriptors are integers. {shape} and what else follows a name is written with its dots.
# The lane whose $%d is not 0 starts the work: of a warp that comes together, so that all addresses are uniform.
_BY_ELECTED = "{.reg .pred e; setp.ne.b32 e, $%d, 0; @e %s;}"
_TCGEN05_PRODUCT = (
    "{.reg .pred p, e; setp.ne.b32 p, $%d, 0; setp.ne.b32 e, $%d, 0; "
    "@e tcgen05.mma.cta_group::{cta_group}.kind::{kind}%s [$0], %s, p%s;}"
)
_COMMIT = "tcgen05.commit.cta_group::{cta_group}.mbarrier::arrive::one.shared::cluster"

TENSOR_CORES: dict[str, Row] = {
    "tcgen05_alloc_row": asm(
        "tcgen05.alloc.cta_group::{cta_group}.sync.aligned.shared::cta.b32 [$0], {columns};",
        Effect(Kind.WRITE, "shared", convergent=True),
        "tcgen05",
    ),
    "tcgen05_relinquish_row": asm(
        "tcgen05.relinquish_alloc_permit.cta_group::{cta_group}.sync.aligned;", _TENSOR_MEMORY, "tcgen05"
    ),
    "tcgen05_dealloc_row": asm(
        "tcgen05.dealloc.cta_group::{cta_group}.sync.aligned.b32 $0, {columns};", _TENSOR_MEMORY, "tcgen05"
    ),
    # D, A (a descriptor, or an address of tensor memory), B, instruction descriptor, whether D is added
    "tcgen05_mma_shared": asm(_TCGEN05_PRODUCT % (4, 5, "", "$1, $2, $3", ""), _TCGEN05_MMA, "tcgen05"),
    "tcgen05_mma_tensor": asm(_TCGEN05_PRODUCT % (4, 5, "", "[$1], $2, $3", ""), _TCGEN05_MMA, "tcgen05"),
    "tcgen05_mma_shared_bytes": asm(_TCGEN05_PRODUCT % (4, 5, "", "$1, $2, $3", ""), _TCGEN05_MMA, "tcgen05.bytes"),
    "tcgen05_mma_tensor_bytes": asm(_TCGEN05_PRODUCT % (4, 5, "", "[$1], $2, $3", ""), _TCGEN05_MMA, "tcgen05.bytes"),
    # D is divided by 2 to the {power}
    "tcgen05_mma_shared_divided": asm(
        _TCGEN05_PRODUCT % (4, 5, "", "$1, $2, $3", ", {power}"), _TCGEN05_MMA, "tcgen05.divided"
    ),
    "tcgen05_mma_tensor_divided": asm(
        _TCGEN05_PRODUCT % (4, 5, "", "[$1], $2, $3", ", {power}"), _TCGEN05_MMA, "tcgen05.divided"
    ),
    # with the addresses of the scale factors of A and B, one for {block} elements along K
    "tcgen05_mma_shared_scaled": asm(
        _TCGEN05_PRODUCT % (6, 7, ".block_scale.block{block}", "$1, $2, $3, [$4], [$5]", ""),
        _TCGEN05_MMA,
        "tcgen05.scaled",
    ),
    "tcgen05_mma_tensor_scaled": asm(
        _TCGEN05_PRODUCT % (6, 7, ".block_scale.block{block}", "[$1], $2, $3, [$4], [$5]", ""),
        _TCGEN05_MMA,
        "tcgen05.scaled",
    ),
    # Descriptors of matrices: an address and constant fields, and places a constant further on. LLVM and ptxas must
    # not see that the upper half is constant: they would put each place together of two halves. In a loop a place is
    # then one addition; made before it, it would take two uniform registers, of which there are few.
    "tcgen05_descriptor": asm("add.s64 $r0, $0, {fields};", PURE, "tcgen05"),
    "tcgen05_descriptor_at": asm("add.s64 $r0, $0, {offset};", Effect(convergent=True), "tcgen05"),
    "tcgen05_copy_row": asm(
        _BY_ELECTED % (2, "tcgen05.cp.cta_group::{cta_group}{shape} [$0], $1"), _TCGEN05_COPY, "tcgen05"
    ),
    "tcgen05_shift_row": asm(
        _BY_ELECTED % (1, "tcgen05.shift.cta_group::{cta_group}.down [$0]"), _TCGEN05_COPY, "tcgen05.shift"
    ),
    "tcgen05_load_row": asm("tcgen05.ld.sync.aligned{shape}.b32 {$r*}, [$0]{split};", _TCGEN05_LOAD, "tcgen05"),
    "tcgen05_store_row": asm("tcgen05.st.sync.aligned{shape}.b32 [$0]{split}, {$1*};", _TCGEN05_STORE, "tcgen05"),
    "tcgen05_load_wait_row": asm("tcgen05.wait::ld.sync.aligned;", _TCGEN05_LOADED, "tcgen05"),
    # the same, after which the registers are what the loads made of them
    "tcgen05_load_wait_of": asm("tcgen05.wait::ld.sync.aligned;", _TCGEN05_LOADED, "tcgen05", tied=0),
    "tcgen05_store_wait": asm("tcgen05.wait::st.sync.aligned;", _TCGEN05_STORED, "tcgen05"),
    "tcgen05_fence_before": asm("tcgen05.fence::before_thread_sync;", _TCGEN05_FENCE, "tcgen05"),
    "tcgen05_fence_after": asm("tcgen05.fence::after_thread_sync;", _TCGEN05_FENCE, "tcgen05"),
    "tcgen05_commit": asm(f"{_COMMIT}.b64 [$0];", _MMA_COMMIT, "tcgen05"),
    "tcgen05_commit_multicast": asm(f"{_COMMIT}.multicast::cluster.b64 [$0], $1;", _MMA_COMMIT, "tcgen05"),
    "tcgen05_commit_elected": asm(_BY_ELECTED % (1, f"{_COMMIT}.b64 [$0]"), _MMA_COMMIT, "tcgen05"),
    "tcgen05_commit_multicast_elected": asm(
        _BY_ELECTED % (2, f"{_COMMIT}.multicast::cluster.b64 [$0], $1"), _MMA_COMMIT, "tcgen05"
    ),
}

# Atomics: {sem} relaxed, acquire, release or acq_rel; {scope} cta, cluster, gpu or sys; {space} with its dot, or empty
# for a generic address.
ATOMICS: dict[str, Row] = {
    "atom_add": asm("atom.{sem}.{scope}{space}.add.{T} $r0, [$0], $1;", _ATOMIC),
    "atom_add_s64": asm("atom.{sem}.{scope}{space}.add.u64 $r0, [$0], $1;", _ATOMIC),
    "atom_add_f16": asm("atom.{sem}.{scope}{space}.add.noftz.f16 $r0, [$0], $1;", _ATOMIC),
    "atom_add_bf16": asm("atom.{sem}.{scope}{space}.add.noftz.bf16 $r0, [$0], $1;", _ATOMIC, "bf16.add"),
    "atom_min": asm("atom.{sem}.{scope}{space}.min.{T} $r0, [$0], $1;", _ATOMIC),
    "atom_max": asm("atom.{sem}.{scope}{space}.max.{T} $r0, [$0], $1;", _ATOMIC),
    "atom_and": asm("atom.{sem}.{scope}{space}.and.{b} $r0, [$0], $1;", _ATOMIC),
    "atom_or": asm("atom.{sem}.{scope}{space}.or.{b} $r0, [$0], $1;", _ATOMIC),
    "atom_xor": asm("atom.{sem}.{scope}{space}.xor.{b} $r0, [$0], $1;", _ATOMIC),
    "atom_exch": asm("atom.{sem}.{scope}{space}.exch.{b} $r0, [$0], $1;", _ATOMIC),
    "atom_cas": asm("atom.{sem}.{scope}{space}.cas.{b} $r0, [$0], $1, $2;", _ATOMIC),
    "ld_atomic": asm("ld.{sem}.{scope}{space}.{b} $r0, [$0];", Effect(Kind.ATOMIC)),
    "st_atomic": asm("st.{sem}.{scope}{space}.{b} [$0], $1;", Effect(Kind.ATOMIC)),
    "ld_volatile": asm("ld.volatile{space}.{b} $r0, [$0];", Effect(Kind.READ)),
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

ROWS: dict[str, Row] = {
    **IDS,
    **CONTROL,
    **BARRIERS,
    **WARP,
    **MBARRIER,
    **MEMORY,
    **TENSOR_COPIES,
    **WARPGROUP,
    **TENSOR_CORES,
    **ATOMICS,
    **BITS,
    **FLOATS,
}
