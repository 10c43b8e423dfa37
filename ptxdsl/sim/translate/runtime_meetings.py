"""The runtime's part of warp collectives: which lanes of a group can execute one now, and who waits for whom."""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.sim.layout import BAD_MEMBERS, EXITED
from ptxdsl.sim.translate.runtime_fields import load, set_lanes, splat, store


def _narrow() -> str:
    """The guard of a collective is true in lanes %t of the group alone: its others go on to block %next."""
    return f"""
define void @rt.narrow(ptr %warp, i32 %t, i32 %next) {{
  call void @rt.retire(ptr %warp)
  {load("group")}
  %not.t = xor i32 %t, -1
  %rest = and i32 %group, %not.t
  {set_lanes("warp_pc", "%rest", "%next", "pc")}
  {store("group", "%t")}
  %count = call i32 @llvm.ctpop.i32(i32 %t)
  {store("count", "%count")}
  {load("others")}
  %less = call i32 @llvm.smin.i32(i32 %others, i32 %next)
  {store("others", "%less")}
  ret void
}}"""


def _gather() -> str:
    """The lanes of the group that can execute the collective of block %k now, 0 if members are missing. %members: of
    32 lanes. %barrier: bar.warp.sync, whose members may stand at different ones."""
    return f"""
define i32 @rt.gather(ptr %warp, i32 %k, i32 %site, ptr %members, i1 %barrier) {{
entry:
  {load("group")}
  {load("warp_status", "<32 x i32>")}
  %live.v = icmp ne <32 x i32> %warp_status, splat (i32 {EXITED})
  %live = bitcast <32 x i1> %live.v to i32
  %all = load <32 x i32>, ptr %members, align 4
  br label %each
each:
  %left = phi i32 [ %group, %entry ], [ %left.next, %more ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %m.at = getelementptr i32, ptr %members, i32 %lane
  %m = load i32, ptr %m.at, align 4
  {splat("m.v", "%m")}
  %same.v = icmp eq <32 x i32> %all, %m.v
  %same.bits = bitcast <32 x i1> %same.v to i32
  %same = and i32 %same.bits, %group
  %not.m = xor i32 %m, -1
  %bad = and i32 %same, %not.m
  %is.bad = icmp ne i32 %bad, 0
  br i1 %is.bad, label %wrong, label %fine
wrong:
  %bad.lane = call i32 @llvm.cttz.i32(i32 %bad, i1 false)
  %bad.members = zext i32 %m to i64
  call void @rt.fault(ptr %warp, i32 {BAD_MEMBERS}, i32 %bad.lane, i64 %bad.members, i32 %site)
  ret i32 0
fine:
  %need = and i32 %m, %live
  %not.same = xor i32 %same, -1
  %missing = and i32 %need, %not.same
  %complete = icmp eq i32 %missing, 0
  br i1 %complete, label %go, label %elsewhere
go:
  ret i32 %same
elsewhere:
  {load("at_barrier")}
  {load("wait_members", "<32 x i32>")}
  %there.v = icmp eq <32 x i32> %wait_members, %m.v
  %there.bits = bitcast <32 x i1> %there.v to i32
  %there.all = and i32 %there.bits, %at_barrier
  %there = and i32 %there.all, %missing
  %together = icmp eq i32 %there, %missing
  %meet = and i1 %together, %barrier
  br i1 %meet, label %release, label %more
release:
  {load("warp_pc", "<32 x i32>")}
  %after = add <32 x i32> %warp_pc, splat (i32 1)
  %there.lanes = bitcast i32 %there to <32 x i1>
  %pc.new = select <32 x i1> %there.lanes, <32 x i32> %after, <32 x i32> %warp_pc
  {store("warp_pc", "%pc.new", "<32 x i32>")}
  %gone = xor i32 %there, -1
  {load("waiting")}
  %waiting.new = and i32 %waiting, %gone
  {store("waiting", "%waiting.new")}
  %bar.new = and i32 %at_barrier, %gone
  {store("at_barrier", "%bar.new")}
  ret i32 %same
more:
  %left.next = and i32 %left, %not.same
  %again = icmp ne i32 %left.next, 0
  br i1 %again, label %each, label %wait
wait:
  {set_lanes("warp_pc", "%group", "%k", "stay")}
  {set_lanes("wait_site", "%group", "%site", "ws")}
  %group.v = bitcast i32 %group to <32 x i1>
  {load("wait_members", "<32 x i32>", "wm")}
  %wm.new = select <32 x i1> %group.v, <32 x i32> %all, <32 x i32> %wm
  {store("wait_members", "%wm.new", "<32 x i32>")}
  {load("waiting", "i32", "w")}
  %w.new = or i32 %w, %group
  {store("waiting", "%w.new")}
  {load("at_barrier", "i32", "b")}
  %b.add = select i1 %barrier, i32 %group, i32 0
  %b.new = or i32 %b, %b.add
  {store("at_barrier", "%b.new")}
  ret i32 0
}}"""


_FUNCTIONS: dict[str, Callable[[], str]] = {
    "narrow": _narrow,
    "gather": _gather,
}


def text(name: str) -> str | None:
    """The IR of a function of this file."""
    make = _FUNCTIONS.get(name)
    return None if make is None else make()
