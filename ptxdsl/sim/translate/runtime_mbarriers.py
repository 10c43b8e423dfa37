"""Host instructions in host code, most of them on mbarriers: what their handlers do, where all lanes do the same and
nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.sim.layout import (
    ARRIVE,
    BLOCKED,
    COME,
    EXECUTED,
    EXPECT,
    FENCE,
    GROUP_COMMIT,
    GROUP_FENCE,
    GROUP_WAIT,
    KNOWN,
    LANE_SETS,
    PART,
    RANK_SHIFT,
    SAW,
    SYNC,
    TEST_WAIT,
    TRY_WAIT,
    WAITED,
    offset,
)
from ptxdsl.sim.translate.runtime_fields import load, set_lanes, splat, store, unless

_SETS = f"<{LANE_SETS} x i32>"
# What became of an instruction. CAME_AND_WAITS: it has changed something and waits. LEFT: nothing, it is the machine's.
QUIET, MAKES_READY, WAITS, CAME_AND_WAITS, LEFT = range(5)


def _alike() -> str:
    """The value that the lanes of %mask have in a register, extended; -1 where they differ."""
    return f"""
define i64 @rt.alike(ptr %warp, i32 %mask, i32 %byte, i1 %wide) {{
  {load("warp_registers", "ptr")}
  %row = getelementptr i8, ptr %warp_registers, i32 %byte
  %lane = call i32 @llvm.cttz.i32(i32 %mask, i1 false)
  br i1 %wide, label %long, label %short
long:
  %l.at = getelementptr i64, ptr %row, i32 %lane
  %l = load i64, ptr %l.at
  %l.all = load <32 x i64>, ptr %row, align 4
  %l.in = insertelement <32 x i64> poison, i64 %l, i64 0
  %l.splat = shufflevector <32 x i64> %l.in, <32 x i64> poison, <32 x i32> zeroinitializer
  %l.eq = icmp eq <32 x i64> %l.all, %l.splat
  br label %compare
short:
  %s.at = getelementptr i32, ptr %row, i32 %lane
  %s = load i32, ptr %s.at
  %s.all = load <32 x i32>, ptr %row, align 4
  %s.in = insertelement <32 x i32> poison, i32 %s, i64 0
  %s.splat = shufflevector <32 x i32> %s.in, <32 x i32> poison, <32 x i32> zeroinitializer
  %s.eq = icmp eq <32 x i32> %s.all, %s.splat
  %s.long = zext i32 %s to i64
  br label %compare
compare:
  %value = phi i64 [ %l, %long ], [ %s.long, %short ]
  %same = phi <32 x i1> [ %l.eq, %long ], [ %s.eq, %short ]
  %bits = bitcast <32 x i1> %same to i32
  %apart = xor i32 %bits, -1
  %bad = and i32 %apart, %mask
  %good = icmp eq i32 %bad, 0
  %result = select i1 %good, i64 %value, i64 -1
  ret i64 %result
}}"""


def _barrier() -> str:
    """The live mbarrier at a shared address, whose bytes are as its last operation left them; or null."""
    return f"""
define ptr @rt.barrier(ptr %warp, i64 %address, i1 %local) {{
  {load("warp_cta", "ptr", "cta")}
  {load("cta_rank")}
  %rank = lshr i64 %address, {RANK_SHIFT}
  %own = zext i32 %cta_rank to i64
  %remote = icmp ne i64 %rank, %own
  %wrong = and i1 %remote, %local
  %far = icmp uge i64 %rank, 16
  %never = or i1 %wrong, %far
  {unless("%never", "none", "near")}
  {load("cta_peers", "ptr")}
  %peer.at = getelementptr i64, ptr %cta_peers, i64 %rank
  %peer = load i64, ptr %peer.at
  %gone.away = icmp eq i64 %peer, 0
  %gone = and i1 %gone.away, %remote
  {unless("%gone", "none", "reached")}
  {load("cta_barriers", "ptr")}
  %table.at = getelementptr ptr, ptr %cta_barriers, i64 %rank
  %table = load ptr, ptr %table.at
  %no.table = icmp eq ptr %table, null
  {unless("%no.table", "none", "listed")}
  {load("cta_shared_end")}
  %end = zext i32 %cta_shared_end to i64
  %byte = and i64 %address, {(1 << RANK_SHIFT) - 1}
  %beyond = icmp uge i64 %byte, %end
  %odd = and i64 %byte, 7
  %skew = icmp ne i64 %odd, 0
  %bad = or i1 %beyond, %skew
  {unless("%bad", "none", "inside")}
  %place = lshr i64 %byte, 3
  %bar.at = getelementptr ptr, ptr %table, i64 %place
  %bar = load ptr, ptr %bar.at
  %absent = icmp eq ptr %bar, null
  {unless("%absent", "none", "found")}
  {load("bar_cell", "ptr")}
  {load("bar_word", "i64")}
  %bytes = load i64, ptr %bar_cell
  %changed = icmp ne i64 %bytes, %bar_word
  {unless("%changed", "none", "good")}
  ret ptr %bar
none:
  ret ptr null
}}"""


def _known() -> str:
    """What an mbarrier knows of a warp."""
    return f"""
define ptr @rt.known(ptr %bar, ptr %warp) {{
  {load("bar_known", "ptr")}
  {load("warp_number")}
  %at = mul i32 %warp_number, {KNOWN.itemsize}
  %known = getelementptr i8, ptr %bar_known, i32 %at
  ret ptr %known
}}"""


def _saw() -> str:
    """A wait has found the phase before this one complete. False, and nothing done, where the machine must tell it."""
    return f"""
define i1 @rt.saw(ptr %bar, ptr %warp, i32 %mask, ptr %site) {{
  {load("bar_phase", "i64")}
  %phase = sub i64 %bar_phase, 1
  %known = call ptr @rt.known(ptr %bar, ptr %warp)
  %never = icmp slt i64 %phase, 0
  br i1 %never, label %see, label %before
before:
  {load("known_masks", _SETS)}
  {splat("mask.v", "%mask", _SETS)}
  %mine.v = icmp eq {_SETS} %known_masks, %mask.v
  %mine = bitcast <{LANE_SETS} x i1> %mine.v to i{LANE_SETS}
  %unknown = icmp eq i{LANE_SETS} %mine, 0
  br i1 %unknown, label %left, label %found
found:
  %which = call i{LANE_SETS} @llvm.cttz.i{LANE_SETS}(i{LANE_SETS} %mine, i1 true)
  %which.long = zext i{LANE_SETS} %which to i64
  %phases = getelementptr i8, ptr %known, i64 {offset(KNOWN, "phases")}
  %last.at = getelementptr i64, ptr %phases, i64 %which.long
  %last = load i64, ptr %last.at
  %again = icmp eq i64 %last, %phase
  br i1 %again, label %left, label %first
left:
  ret i1 false
first:
  store i64 %phase, ptr %last.at
  br label %see
see:
  {store("bar_seen", "%phase", "i64")}
  {load("warp_clock", "i64")}
  {load("bar_done_at", "i64")}
  %late = icmp sgt i64 %bar_done_at, %warp_clock
  %clock = select i1 %late, i64 %bar_done_at, i64 %warp_clock
  {store("warp_clock", "%clock", "i64")}
  {load("site_result")}
  %unread = icmp slt i32 %site_result, 0
  br i1 %unread, label %done, label %tell
tell:
  {load("warp_registers", "ptr")}
  %row = getelementptr i8, ptr %warp_registers, i32 %site_result
  %old = load <32 x i32>, ptr %row, align 4
  %lanes = bitcast i32 %mask to <32 x i1>
  %new = select <32 x i1> %lanes, <32 x i32> splat (i32 -1), <32 x i32> %old
  store <32 x i32> %new, ptr %row, align 4
  br label %done
done:
  ret i1 true
}}"""


def _wait() -> str:
    """Lanes wait for a phase of an mbarrier, or a generation of a named barrier."""
    return f"""
define void @rt.wait(ptr %warp, ptr %site, i32 %mask, ptr %for, i32 %what) {{
  {store("warp_wait", "%for", "ptr")}
  {store("warp_wait_mask", "%mask")}
  {store("warp_wait_for", "%what")}
  {store("warp_wait_at", "%site", "ptr")}
  {load("warp_blocked")}
  %all = or i32 %warp_blocked, %mask
  {store("warp_blocked", "%all")}
  {set_lanes("warp_status", "%mask", str(BLOCKED), "s")}
  ret void
}}"""


# What `Turns.host` does with an instruction that host code can execute.
_HOST_INSTRUCTION = f"""
define i32 @rt.host_instruction(ptr %turns, ptr %warp, ptr %site, i32 %mask) {{
entry:
  {load("site_address")}
  {load("site_plus", "i64")}
  {load("site_wide")}
  {load("site_operand")}
  {load("site_constant")}
  {load("site_local")}
  {load("site_kind")}
  switch i32 %site_kind, label %where [ i32 {FENCE}, label %fence i32 {SYNC}, label %named i32 {COME}, label %named
    i32 {GROUP_FENCE}, label %warpgroup i32 {GROUP_COMMIT}, label %warpgroup i32 {GROUP_WAIT}, label %warpgroup
    i32 {PART}, label %warpgroup ]
warpgroup:
  %done = call i32 @rt.warpgroup_instruction(ptr %turns, ptr %warp, ptr %site, i32 %mask)
  ret i32 %done
named:
  %came = call i32 @rt.come(ptr %turns, ptr %warp, ptr %site, i32 %mask)
  ret i32 %came
fence:
  {load("warp_unfenced")}
  {load("site_number")}
  %some = icmp ne i32 %warp_unfenced, 0
  br i1 %some, label %left, label %fenced
fenced:
  call void @rt.event(ptr %turns, ptr %warp, i32 {EXECUTED}, i32 %site_number, i32 %mask, ptr null, i64 0, i64 0)
  ret i32 {QUIET}
where:
  %wide = icmp ne i32 %site_wide, 0
  %given = icmp slt i32 %site_address, 0
  br i1 %given, label %number, label %base
base:
  %value = call i64 @rt.alike(ptr %warp, i32 %mask, i32 %site_address, i1 %wide)
  %apart = icmp eq i64 %value, -1
  br i1 %apart, label %left, label %sum
sum:
  %long = add i64 %value, %site_plus
  %short = and i64 %long, 4294967295
  %there = select i1 %wide, i64 %long, i64 %short
  br label %number
number:
  %address = phi i64 [ %site_plus, %where ], [ %there, %sum ]
  %same = icmp slt i32 %site_operand, 0
  br i1 %same, label %find, label %operand
operand:
  %asked = call i64 @rt.alike(ptr %warp, i32 %mask, i32 %site_operand, i1 false)
  %differ = icmp eq i64 %asked, -1
  br i1 %differ, label %left, label %taken
taken:
  %asked.short = trunc i64 %asked to i32
  br label %find
find:
  %what = phi i32 [ %site_constant, %number ], [ %asked.short, %taken ]
  %local = icmp ne i32 %site_local, 0
  %bar = call ptr @rt.barrier(ptr %warp, i64 %address, i1 %local)
  %none = icmp eq ptr %bar, null
  br i1 %none, label %left, label %do
do:
  switch i32 %site_kind, label %left [ i32 {ARRIVE}, label %arrive i32 {EXPECT}, label %expect
    i32 {TRY_WAIT}, label %wait i32 {TEST_WAIT}, label %wait ]
arrive:
  %arrived = call i32 @rt.arrive(ptr %turns, ptr %bar, ptr %warp, ptr %site, i32 %mask, i32 %what, i32 0)
  ret i32 %arrived
expect:
  %expected = call i32 @rt.arrive(ptr %turns, ptr %bar, ptr %warp, ptr %site, i32 %mask, i32 1, i32 %what)
  ret i32 %expected
wait:
  %no.parity = icmp ugt i32 %what, 1
  br i1 %no.parity, label %left, label %look
look:
  {load("bar_phase", "i64")}
  %phase = trunc i64 %bar_phase to i32
  %odd = and i32 %phase, 1
  %complete = icmp ne i32 %odd, %what
  br i1 %complete, label %see, label %later
see:
  %seen = call i1 @rt.saw(ptr %bar, ptr %warp, i32 %mask, ptr %site)
  br i1 %seen, label %saw, label %left
saw:
  {load("site_number", "i32", "saw.site")}
  {load("bar_seen", "i64")}
  call void @rt.event(ptr %turns, ptr %warp, i32 {SAW}, i32 %saw.site, i32 %mask, ptr %bar, i64 %bar_seen, i64 0)
  ret i32 {QUIET}
later:
  {load("warp_wait", "ptr")}
  %waits = icmp ne ptr %warp_wait, null
  %asks = icmp eq i32 %site_kind, {TEST_WAIT}
  %cannot = or i1 %waits, %asks
  br i1 %cannot, label %left, label %block
block:
  call void @rt.wait(ptr %warp, ptr %site, i32 %mask, ptr %bar, i32 %what)
  {load("site_number", "i32", "wait.site")}
  call void @rt.event(ptr %turns, ptr %warp, i32 {WAITED}, i32 %wait.site, i32 %mask, ptr %bar, i64 0, i64 0)
  ret i32 {WAITS}
left:
  ret i32 {LEFT}
}}"""


_FUNCTIONS: dict[str, Callable[[], str]] = {
    "alike": _alike,
    "barrier": _barrier,
    "known": _known,
    "saw": _saw,
    "wait": _wait,
    "host_instruction": lambda: _HOST_INSTRUCTION,
}


def text(name: str) -> str | None:
    """The IR of a function of this file."""
    make = _FUNCTIONS.get(name)
    return None if make is None else make()
