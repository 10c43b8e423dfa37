"""The runtime's control flow: which lanes run next, and why compiled code comes back to the machine.

A *group* is the lanes that run together. Normally it is the runnable lanes with the least block number, so that lanes
that parted meet again as soon as they can. ``others`` is the least block number of the remaining runnable lanes: as
long as the group stays below it, it goes on without asking. A group that keeps others waiting for ``TURN`` turns of a
loop gives way to the next one (a lane that spins on a lock that another lane of its warp holds must not do so always).
"""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.sim.layout import (
    ALL_STOPPED,
    BAD_ADDRESS,
    EXITED,
    FAULT,
    FUEL,
    GATHER,
    HOST,
    TRAPPED,
    WARP,
    offset,
)
from ptxdsl.sim.translate.emitter import WIDTH
from ptxdsl.sim.translate.runtime_fields import load, next_lane, own, set_lanes, splat, store

TURN = 2048  # of a loop
NOBODY = 0x7FFFFFFF  # `others` where there are none
DISPATCH = -1  # what a part of a kernel returns when the next group is to be chosen


def _enter() -> str:
    """Called when the machine calls: what is left from last time is forgotten."""
    return f"""
define void @rt.enter(ptr %warp) {{
  {store("warp_fault_kind", "0")}
  {store("waiting", "0")}
  {store("at_barrier", "0")}
  {store("slice", "0")}
  {store("given", "0")}
  {load("warp_issued", "i64")}
  {store("warp_issued_before", "%warp_issued", "i64")}
  {store("marked", "%warp_issued", "i64")}
  {load("turn")}
  %none = icmp sle i32 %turn, 0
  %new = select i1 %none, i32 {TURN}, i32 %turn
  {store("turn", "%new")}
  ret void
}}"""


def _retire() -> str:
    """Counts what the group has executed; called before the group changes."""
    return f"""
define void @rt.retire(ptr %warp) {{
  {load("warp_issued", "i64")}
  {load("marked", "i64")}
  {load("count")}
  {load("warp_retired", "i64")}
  %new = sub i64 %warp_issued, %marked
  %lanes = zext i32 %count to i64
  %more = mul i64 %new, %lanes
  %sum = add i64 %warp_retired, %more
  {store("warp_retired", "%sum", "i64")}
  {store("marked", "%warp_issued", "i64")}
  ret void
}}"""


def _settle() -> str:
    """Takes what was used of the slice from the fuel and from the turn."""
    return f"""
define void @rt.settle(ptr %warp) {{
  call void @rt.retire(ptr %warp)
  {load("given")}
  {load("slice")}
  %used = sub i32 %given, %slice
  {store("given", "%slice")}
  {load("warp_fuel")}
  %left = sub i32 %warp_fuel, %used
  {store("warp_fuel", "%left")}
  {load("group")}
  {load("runnable")}
  %rest = icmp eq i32 %group, %runnable
  {load("turn")}
  %after = sub i32 %turn, %used
  %new = select i1 %rest, i32 {TURN}, i32 %after
  {store("turn", "%new")}
  ret void
}}"""


def _dispatch() -> str:
    """The block of the next group, or -1 - exit code."""
    return f"""
define i32 @rt.dispatch(ptr %warp) {{
  call void @rt.settle(ptr %warp)
  {load("warp_status", "<32 x i32>")}
  %run.v = icmp eq <32 x i32> %warp_status, zeroinitializer
  %runnable = bitcast <32 x i1> %run.v to i32
  {store("runnable", "%runnable")}
  %stopped = icmp eq i32 %runnable, 0
  br i1 %stopped, label %stop, label %some
stop:
  ret i32 {-1 - ALL_STOPPED}
some:
  {load("waiting")}
  %still = and i32 %waiting, %runnable
  %free = xor i32 %still, -1
  %pick = and i32 %runnable, %free
  {load("warp_pc", "<32 x i32>")}
  %all_wait = icmp eq i32 %pick, 0
  br i1 %all_wait, label %gather, label %choose
gather:
  %first = call i32 @llvm.cttz.i32(i32 %still, i1 false)
  %m.base = getelementptr i8, ptr %warp, i64 {own("wait_members")}
  %m.at = getelementptr i32, ptr %m.base, i32 %first
  %m = load i32, ptr %m.at
  %s.base = getelementptr i8, ptr %warp, i64 {own("wait_site")}
  %s.at = getelementptr i32, ptr %s.base, i32 %first
  %s = load i32, ptr %s.at
  {load("wait_site", "<32 x i32>")}
  {load("wait_members", "<32 x i32>")}
  {splat("m.v", "%m")}
  {splat("s.v", "%s")}
  %eq.m = icmp eq <32 x i32> %wait_members, %m.v
  %eq.s = icmp eq <32 x i32> %wait_site, %s.v
  %eq = and <32 x i1> %eq.m, %eq.s
  %eq.bits = bitcast <32 x i1> %eq to i32
  %these = and i32 %eq.bits, %still
  {store("warp_mask", "%these")}
  {store("warp_members", "%m")}
  {store("warp_site", "%s")}
  ret i32 {-1 - GATHER}
choose:
  %pick.v = bitcast i32 %pick to <32 x i1>
  %cand = select <32 x i1> %pick.v, <32 x i32> %warp_pc, <32 x i32> splat (i32 {NOBODY})
  %least = call i32 @llvm.vector.reduce.smin.v32i32(<32 x i32> %cand)
  {load("favoured")}
  %from = sub i32 %favoured, 1
  {splat("from.v", "%from")}
  %late.v = icmp sge <32 x i32> %cand, %from.v
  %late = select <32 x i1> %late.v, <32 x i32> %cand, <32 x i32> splat (i32 {NOBODY})
  %least.late = call i32 @llvm.vector.reduce.smin.v32i32(<32 x i32> %late)
  %has = icmp ne i32 %least.late, {NOBODY}
  %pc = select i1 %has, i32 %least.late, i32 %least
  {splat("pc.v", "%pc")}
  %same.v = icmp eq <32 x i32> %warp_pc, %pc.v
  %same = bitcast <32 x i1> %same.v to i32
  %group = and i32 %same, %runnable
  %not.group = xor i32 %group, -1
  %rest = and i32 %runnable, %not.group
  %rest.v = bitcast i32 %rest to <32 x i1>
  %rest.pc = select <32 x i1> %rest.v, <32 x i32> %warp_pc, <32 x i32> splat (i32 {NOBODY})
  %rest.least = call i32 @llvm.vector.reduce.smin.v32i32(<32 x i32> %rest.pc)
  %fav = icmp ne i32 %favoured, 0
  %others = select i1 %fav, i32 {NOBODY}, i32 %rest.least
  {store("others", "%others")}
  {store("favoured", "0")}
  {store("group", "%group")}
  %count = call i32 @llvm.ctpop.i32(i32 %group)
  {store("count", "%count")}
  %wait.left = and i32 %still, %not.group
  {store("waiting", "%wait.left")}
  {load("at_barrier")}
  %bar.left = and i32 %at_barrier, %not.group
  {store("at_barrier", "%bar.left")}
  {load("warp_fuel")}
  {load("turn")}
  %alone = icmp eq i32 %rest, 0
  %less = call i32 @llvm.smin.i32(i32 %warp_fuel, i32 %turn)
  %slice = select i1 %alone, i32 %warp_fuel, i32 %less
  %slice.ok = call i32 @llvm.smax.i32(i32 %slice, i32 0)
  {store("slice", "%slice.ok")}
  {store("given", "%slice.ok")}
  ret i32 %pc
}}"""


def _renew() -> str:
    """The slice is used up before block %k."""
    return f"""
define i32 @rt.renew(ptr %warp, i32 %k) {{
  call void @rt.settle(ptr %warp)
  {load("group")}
  {set_lanes("warp_pc", "%group", "%k", "pc")}
  {load("turn")}
  {load("runnable")}
  {load("others")}
  {load("warp_fuel")}
  %here = add i32 %k, 1
  %next = add i32 %k, 2
  %over = icmp sle i32 %turn, 0
  %alone = icmp eq i32 %group, %runnable
  %nobody = icmp eq i32 %others, {NOBODY}
  %mine = select i1 %nobody, i32 %here, i32 0
  %then = select i1 %over, i32 %next, i32 %mine
  %favoured = select i1 %alone, i32 0, i32 %then
  {store("favoured", "%favoured")}
  %turn.new = select i1 %over, i32 {TURN}, i32 %turn
  {store("turn", "%turn.new")}
  %empty = icmp sle i32 %warp_fuel, 0
  br i1 %empty, label %back, label %on
back:
  {store("warp_mask", "%group")}
  ret i32 {FUEL}
on:
  ret i32 {DISPATCH}
}}"""


def _split() -> str:
    """Lanes %t of the group go to block %there, its other lanes to block %here."""
    return f"""
define void @rt.split(ptr %warp, i32 %t, i32 %there, i32 %here) {{
  {load("group")}
  %not.t = xor i32 %t, -1
  %rest = and i32 %group, %not.t
  {set_lanes("warp_pc", "%t", "%there", "a")}
  {set_lanes("warp_pc", "%rest", "%here", "b")}
  ret void
}}"""


def _leave() -> str:
    """Lanes %t of the group are done. Gives the rest of the group."""
    return f"""
define i32 @rt.leave(ptr %warp, i32 %t) {{
  call void @rt.retire(ptr %warp)
  {set_lanes("warp_status", "%t", str(EXITED), "s")}
  {load("group")}
  {load("runnable")}
  %not.t = xor i32 %t, -1
  %rest = and i32 %group, %not.t
  {store("group", "%rest")}
  %run = and i32 %runnable, %not.t
  {store("runnable", "%run")}
  %count = call i32 @llvm.ctpop.i32(i32 %rest)
  {store("count", "%count")}
  ret i32 %rest
}}"""


def _host() -> str:
    """Lanes %t stand before host instruction %site, alone in block %k; the guard is false in the group's others."""
    return f"""
define i32 @rt.host(ptr %warp, i32 %t, i32 %k, i32 %next, i32 %site) {{
  call void @rt.split(ptr %warp, i32 %t, i32 %k, i32 %next)
  call void @rt.settle(ptr %warp)
  {store("warp_mask", "%t")}
  {store("warp_site", "%site")}
  ret i32 {HOST}
}}"""


def _trapped() -> str:
    return f"""
define i32 @rt.trapped(ptr %warp, i32 %t, i32 %k, i32 %next, i32 %site) {{
  %code = call i32 @rt.host(ptr %warp, i32 %t, i32 %k, i32 %next, i32 %site)
  ret i32 {TRAPPED}
}}"""


def _faulted() -> str:
    return f"""
define i32 @rt.faulted(ptr %warp, i32 %k) {{
  call void @rt.settle(ptr %warp)
  {load("group")}
  {set_lanes("warp_pc", "%group", "%k", "pc")}
  {store("warp_mask", "%group")}
  ret i32 {FAULT}
}}"""


def _fault() -> str:
    """The first fault of a run is the one that is told."""
    return f"""
define void @rt.fault(ptr %warp, i32 %kind, i32 %lane, i64 %address, i32 %site) {{
  {load("warp_fault_kind")}
  %first = icmp eq i32 %warp_fault_kind, 0
  br i1 %first, label %tell, label %done
tell:
  {store("warp_fault_kind", "%kind")}
  {store("warp_fault_lane", "%lane")}
  {store("warp_fault_address", "%address", "i64")}
  {store("warp_site", "%site")}
  br label %done
done:
  ret void
}}"""


def _true_lanes() -> str:
    """The lanes of a group in which a predicate of the register file is true, or %negated false."""
    return """
define i32 @rt.true_lanes(ptr %p, i32 %group, i1 %negated) {
  %all = load <32 x i32>, ptr %p, align 4
  %true.v = icmp slt <32 x i32> %all, zeroinitializer
  %true = bitcast <32 x i1> %true.v to i32
  %flip = sext i1 %negated to i32
  %asked = xor i32 %true, %flip
  %lanes = and i32 %asked, %group
  ret i32 %lanes
}"""


def _branch_table() -> str:
    """brx.idx: the active lanes of a chunk go to the blocks that a table has for their indices."""
    return f"""
define void @rt.branch_table(ptr %warp, i64 %first, i{WIDTH} %mask, <{WIDTH} x i32> %index, ptr %table, i32 %n,
    i32 %site) {{
entry:
  %indices = alloca <{WIDTH} x i32>
  store <{WIDTH} x i32> %index, ptr %indices
  %wide = zext i{WIDTH} %mask to i64
  %pcs = getelementptr i8, ptr %warp, i64 {offset(WARP, "pc")}
  %none = icmp eq i64 %wide, 0
  br i1 %none, label %done, label %each
each:
  %left = phi i64 [ %wide, %entry ], [ %left.next, %next ]
  %i = call i64 @llvm.cttz.i64(i64 %left, i1 false)
  %lane = add i64 %first, %i
  %at = getelementptr i32, ptr %indices, i64 %i
  %x = load i32, ptr %at
  %ok = icmp ult i32 %x, %n
  br i1 %ok, label %go, label %wrong
wrong:
  %lane.i = trunc i64 %lane to i32
  %x.wide = zext i32 %x to i64
  call void @rt.fault(ptr %warp, i32 {BAD_ADDRESS}, i32 %lane.i, i64 %x.wide, i32 %site)
  br label %next
go:
  %target.at = getelementptr i32, ptr %table, i32 %x
  %target = load i32, ptr %target.at
  %pc.at = getelementptr i32, ptr %pcs, i64 %lane
  store i32 %target, ptr %pc.at
  br label %next
next:
  {next_lane()}
done:
  ret void
}}"""


_FUNCTIONS: dict[str, Callable[[], str]] = {
    "enter": _enter,
    "retire": _retire,
    "settle": _settle,
    "dispatch": _dispatch,
    "renew": _renew,
    "split": _split,
    "leave": _leave,
    "host": _host,
    "trapped": _trapped,
    "faulted": _faulted,
    "fault": _fault,
    "true_lanes": _true_lanes,
    "branch_table": _branch_table,
}


def text(name: str) -> str | None:
    """The IR of a function of this file."""
    make = _FUNCTIONS.get(name)
    return None if make is None else make()
