"""Barriers, fences, what a warp does together, mbarrier objects, and what holds or ends a thread."""

from __future__ import annotations

from ptxdsl.effects import PURE, Effect, Kind
from ptxdsl.intrinsics.row import Row, asm, llvm

_WARP = Effect(Kind.WARP_SYNC, convergent=True)
_FENCE_CTA = Effect(Kind.FENCE, scope="cta")
_FENCE_CLUSTER = Effect(Kind.FENCE, scope="cluster")
_FENCE_GPU = Effect(Kind.FENCE, scope="gpu")
_FENCE_SYS = Effect(Kind.FENCE, scope="sys")
_ARRIVE = Effect(Kind.BAR_ARRIVE, "shared", scope="cta", barrier=0)
_ARRIVE_COUNT = Effect(Kind.BAR_ARRIVE, "shared", scope="cta", barrier=0, count=1)
_ARRIVE_REMOTE = Effect(Kind.BAR_ARRIVE, "cluster", scope="cluster", barrier=0, count=1)
_ARRIVE_REMOTE_CTA = Effect(Kind.BAR_ARRIVE, "cluster", scope="cta", barrier=0, count=1)
_WAIT = Effect(Kind.BAR_WAIT, "shared", scope="cta", barrier=0, convergent=True)
_TEST = Effect(Kind.BAR_TEST, "shared", scope="cta", barrier=0)

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
