"""Instructions of warpgroups in host code: what ``Warpgroup`` and the handlers of ``wgmma`` do, where nothing is wrong.

The first warp that comes to a product makes it, by the machine; the others execute their parts here.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.sim.layout import (
    COMMITTED,
    CTA,
    EXECUTED,
    GROUP_COMMIT,
    GROUP_FENCE,
    GROUP_WAIT,
    ISSUED,
    MOST_PRODUCTS,
    PRODUCT,
    WARPGROUP,
    offset,
)
from ptxdsl.sim.translate.runtime_fields import load, store, unless
from ptxdsl.sim.translate.runtime_mbarriers import CAME_AND_WAITS, LEFT, MAKES_READY, QUIET

_ALL = 15  # warps, a bit each


def _of_rank(name: str, type: str = "i32") -> str:
    """IR for where a warp (``%rank``) has a field of its warpgroup's record, ``%name.at``, and its value ``%name``."""
    return (
        f"%{name}.all = getelementptr i8, ptr %warpgroup, i64 {offset(WARPGROUP, name)}\n"
        f"  %{name}.at = getelementptr {type}, ptr %{name}.all, i32 %rank\n"
        f"  %{name} = load {type}, ptr %{name}.at"
    )


def _warpgroup() -> str:
    """The record of a warp's warpgroup; null if there is none yet, or not all lanes are there."""
    return f"""
define ptr @rt.warpgroup(ptr %warp, i32 %mask) {{
  {load("warp_cta", "ptr", "cta")}
  {load("warp_live")}
  {load("warp_index")}
  %index = lshr i32 %warp_index, 2
  %all = getelementptr i8, ptr %cta, i64 {offset(CTA, "warpgroups")}
  %at = getelementptr ptr, ptr %all, i32 %index
  %there = load ptr, ptr %at
  %lanes = and i32 %mask, %warp_live
  %whole = icmp eq i32 %lanes, -1
  %found = select i1 %whole, ptr %there, ptr null
  ret ptr %found
}}"""


def _settle_groups() -> str:
    """Takes the groups out that are done, until no more than so many may be pending. Whether that is so."""
    return f"""
define i1 @rt.settle_groups(ptr %warp, ptr %warpgroup, i32 %rank, i32 %allowed) {{
entry:
  {load("warpgroup_carried_out")}
  {load("warpgroup_ring")}
  {load("warpgroup_groups", "ptr")}
  {_of_rank("head")}
  {_of_rank("count")}
  {load("warp_clock", "i64")}
  %room = add i32 %warpgroup_ring, 1
  %first = mul i32 %rank, %room
  br label %loop
loop:
  %now = phi i32 [ %head, %entry ], [ %now.next, %over ]
  %left = phi i32 [ %count, %entry ], [ %left.next, %over ]
  %clock = phi i64 [ %warp_clock, %entry ], [ %clock.next, %over ]
  %few = icmp ule i32 %left, %allowed
  br i1 %few, label %out, label %look
look:
  %place = add i32 %first, %now
  %byte = mul i32 %place, {COMMITTED.itemsize}
  %group = getelementptr i8, ptr %warpgroup_groups, i32 %byte
  %number = load i32, ptr %group
  %pending = icmp ugt i32 %number, %warpgroup_carried_out
  br i1 %pending, label %out, label %over
over:
  %time.at = getelementptr i8, ptr %group, i64 {offset(COMMITTED, "time")}
  %time = load i64, ptr %time.at
  %clock.next = call i64 @llvm.smax.i64(i64 %clock, i64 %time)
  %now.more = add i32 %now, 1
  %now.next = and i32 %now.more, %warpgroup_ring
  %left.next = sub i32 %left, 1
  br label %loop
out:
  store i32 %now, ptr %head.at
  store i32 %left, ptr %count.at
  {store("warp_clock", "%clock", "i64")}
  ret i1 %few
}}"""


def _wait_over() -> str:
    """Lanes that have waited for a product go on."""
    return f"""
define void @rt.wait_over(ptr %turns, ptr %warp, ptr %warpgroup, ptr %site) {{
  {load("warp_index")}
  {load("site_constant")}
  {load("site_number")}
  %rank = and i32 %warp_index, 3
  %few = call i1 @rt.settle_groups(ptr %warp, ptr %warpgroup, i32 %rank, i32 %site_constant)
  call void @rt.event(ptr %turns, ptr %warp, i32 {EXECUTED}, i32 %site_number, i32 -1, ptr null, i64 0, i64 0)
  ret void
}}"""


# `wgmma.fence`, `.commit_group` and `.wait_group`; with another kind a part of a product.
_INSTRUCTION = f"""
define i32 @rt.warpgroup_instruction(ptr %turns, ptr %warp, ptr %site, i32 %mask) {{
entry:
  %warpgroup = call ptr @rt.warpgroup(ptr %warp, i32 %mask)
  %none = icmp eq ptr %warpgroup, null
  {unless("%none", "left", "there")}
  {load("site_kind")}
  {load("site_number")}
  {load("warp_index")}
  %rank = and i32 %warp_index, 3
  switch i32 %site_kind, label %part [ i32 {GROUP_FENCE}, label %fence i32 {GROUP_COMMIT}, label %commit
    i32 {GROUP_WAIT}, label %wait ]
part:
  %issued.part = call i32 @rt.issue_part(ptr %turns, ptr %warp, ptr %site, ptr %warpgroup)
  ret i32 %issued.part
fence:
  {_of_rank("fenced")}
  store i32 1, ptr %fenced.at
  br label %done
commit:
  {load("warpgroup_carried_out")}
  {load("warpgroup_ring")}
  {load("warpgroup_groups", "ptr")}
  {_of_rank("head")}
  {_of_rank("count")}
  {_of_rank("issued")}
  {_of_rank("latest", "i64")}
  %full = icmp ugt i32 %count, %warpgroup_ring
  {unless("%full", "left", "room")}
  %room.all = add i32 %warpgroup_ring, 1
  %first = mul i32 %rank, %room.all
  %end = add i32 %head, %count
  %in.ring = and i32 %end, %warpgroup_ring
  %place = add i32 %first, %in.ring
  %byte = mul i32 %place, {COMMITTED.itemsize}
  %group = getelementptr i8, ptr %warpgroup_groups, i32 %byte
  %is.done = icmp ule i32 %issued, %warpgroup_carried_out
  %time = select i1 %is.done, i64 %latest, i64 0
  store i32 %issued, ptr %group
  %time.at = getelementptr i8, ptr %group, i64 {offset(COMMITTED, "time")}
  store i64 %time, ptr %time.at
  %more = add i32 %count, 1
  store i32 %more, ptr %count.at
  br label %done
wait:
  {load("site_constant")}
  {load("warp_wait", "ptr")}
  %waits = icmp ne ptr %warp_wait, null
  {unless("%waits", "left", "settle")}
  %few = call i1 @rt.settle_groups(ptr %warp, ptr %warpgroup, i32 %rank, i32 %site_constant)
  br i1 %few, label %done, label %block
block:
  {load("warpgroup_ring", "i32", "ring")}
  {load("warpgroup_groups", "ptr", "groups")}
  {_of_rank("head").replace("%head", "%begin")}
  {_of_rank("count").replace("%count", "%many")}
  %room.ring = add i32 %ring, 1
  %its = mul i32 %rank, %room.ring
  %behind = add i32 %begin, %many
  %back = add i32 %site_constant, 1
  %at = sub i32 %behind, %back
  %at.ring = and i32 %at, %ring
  %target = add i32 %its, %at.ring
  %target.byte = mul i32 %target, {COMMITTED.itemsize}
  %target.at = getelementptr i8, ptr %groups, i32 %target.byte
  %number = load i32, ptr %target.at
  call void @rt.wait(ptr %warp, ptr %site, i32 %mask, ptr %warpgroup, i32 %number)
  ret i32 {CAME_AND_WAITS}
done:
  call void @rt.event(ptr %turns, ptr %warp, i32 {EXECUTED}, i32 %site_number, i32 -1, ptr null, i64 0, i64 0)
  ret i32 {QUIET}
left:
  ret i32 {LEFT}
}}"""

_ISSUE_PART = f"""
define i32 @rt.issue_part(ptr %turns, ptr %warp, ptr %site, ptr %warpgroup) {{
entry:
  {load("warp_index")}
  {load("warpgroup_carried_out")}
  {load("warpgroup_pending")}
  {load("site_number")}
  {load("site_address")}
  {load("site_operand")}
  {load("site_result")}
  {load("site_constant")}
  %rank = and i32 %warp_index, 3
  {_of_rank("issued")}
  {_of_rank("fenced")}
  %place = sub i32 %issued, %warpgroup_carried_out
  %unfenced = icmp eq i32 %fenced, 0
  %new = icmp uge i32 %place, %warpgroup_pending
  %first = or i1 %unfenced, %new
  {unless("%first", "left", "find")}
  %at = and i32 %issued, {MOST_PRODUCTS - 1}
  %byte = mul i32 %at, {PRODUCT.itemsize}
  %products = getelementptr i8, ptr %warpgroup, i64 {offset(WARPGROUP, "products")}
  %product = getelementptr i8, ptr %products, i32 %byte
  {load("product_number")}
  {load("product_site")}
  {load("product_open")}
  {load("product_accumulate")}
  {load("product_joined")}
  {load("product_a", "i64")}
  {load("product_b", "i64")}
  %number = add i32 %issued, 1
  %stale = icmp ne i32 %product_number, %number
  %closed = icmp eq i32 %product_open, 0
  %elsewhere = icmp ne i32 %product_site, %site_number
  %c = or i1 %stale, %closed
  %d = or i1 %c, %elsewhere
  {unless("%d", "left", "read")}
  %in.registers = icmp slt i32 %site_address, 0
  br i1 %in.registers, label %second, label %of.a
of.a:
  %a.read = call i64 @rt.alike(ptr %warp, i32 -1, i32 %site_address, i1 true)
  br label %second
second:
  %a = phi i64 [ %product_a, %read ], [ %a.read, %of.a ]
  %b = call i64 @rt.alike(ptr %warp, i32 -1, i32 %site_operand, i1 true)
  %given = icmp slt i32 %site_result, 0
  br i1 %given, label %compare, label %of.scale
of.scale:
  %scale.read = call i64 @rt.alike(ptr %warp, i32 -1, i32 %site_result, i1 false)
  %apart = icmp eq i64 %scale.read, -1
  {unless("%apart", "left", "uniform")}
  %yes = icmp ne i64 %scale.read, 0
  %scale.read.one = zext i1 %yes to i32
  br label %compare
compare:
  %scale = phi i32 [ %site_constant, %second ], [ %scale.read.one, %uniform ]
  %a.differs = icmp ne i64 %a, %product_a
  %b.differs = icmp ne i64 %b, %product_b
  %scale.differs = icmp ne i32 %scale, %product_accumulate
  %e = or i1 %a.differs, %b.differs
  %f = or i1 %e, %scale.differs
  {unless("%f", "left", "do")}
  %bit = shl i32 1, %rank
  %joined = or i32 %product_joined, %bit
  {store("product_joined", "%joined")}
  store i32 %number, ptr %issued.at
  %before = zext i32 %issued to i64
  call void @rt.event(ptr %turns, ptr %warp, i32 {ISSUED}, i32 %site_number, i32 -1, ptr null, i64 %before, i64 0)
  %all = icmp eq i32 %joined, {_ALL}
  %next = icmp eq i32 %place, 0
  %ready = and i1 %all, %next
  %how = select i1 %ready, i32 {MAKES_READY}, i32 {QUIET}
  ret i32 %how
left:
  ret i32 {LEFT}
}}"""


_FUNCTIONS: dict[str, Callable[[], str]] = {
    "warpgroup": _warpgroup,
    "settle_groups": _settle_groups,
    "wait_over": _wait_over,
    "warpgroup_instruction": lambda: _INSTRUCTION,
    "issue_part": lambda: _ISSUE_PART,
}


def text(name: str) -> str | None:
    """The IR of a function of this file."""
    make = _FUNCTIONS.get(name)
    return None if make is None else make()
