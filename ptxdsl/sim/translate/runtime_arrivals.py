"""Arrivals on mbarriers in host code."""

from __future__ import annotations

from functools import cache

from ptxdsl.sim.layout import (
    ARRIVED,
    BARRIER,
    BROUGHT,
    COMPLETED,
    COUNT_FIELD,
    COUNT_LIMIT,
    EXPECTED_SHIFT,
    LANES,
    MOST_BROUGHT,
    PARITY_SHIFT,
    PENDING_SHIFT,
    TOKEN_PHASE,
    TX_FIELD,
    TX_SHIFT,
    offset,
)
from ptxdsl.sim.translate.runtime_fields import add, load, splat, store, unless
from ptxdsl.sim.translate.runtime_mbarriers import LEFT, MAKES_READY, QUIET


def _packed(phase: str, pending: str, tx: str, expected: str) -> str:
    """IR for the word of a barrier, ``%word`` (``mbarrier_word.pack``)."""
    lines = [f"%w.parity = shl i64 {phase}, {PARITY_SHIFT}"]
    word = "%w.parity"
    for name, value, field, shift in (
        ("pending", pending, COUNT_FIELD, PENDING_SHIFT),
        ("tx", tx, TX_FIELD, TX_SHIFT),
        ("expected", expected, COUNT_FIELD, EXPECTED_SHIFT),
    ):
        w = f"%w.{name}"
        lines += [
            f"{w}.less = sub i32 0, {value}",
            f"{w}.cut = and i32 {w}.less, {field}",
            f"{w}.long = zext i32 {w}.cut to i64",
            f"{w}.at = shl i64 {w}.long, {shift}",
            f"{w} = or i64 {word}, {w}.at",
        ]
        word = w
    return "\n  ".join([*lines, f"%word = or i64 {word}, 0"])


@cache
def _functions() -> dict[str, str]:
    return {
        # The states that an arrival is about to return, if they are wanted: each lane's has those before it as well.
        "tokens": f"""
define void @rt.tokens(ptr %bar, ptr %warp, ptr %site, i32 %mask, i32 %count) {{
  {load("site_result")}
  %unread = icmp slt i32 %site_result, 0
  br i1 %unread, label %done, label %tell
tell:
  {load("bar_phase", "i64")}
  {load("bar_pending")}
  %parity = shl i64 %bar_phase, {PARITY_SHIFT}
  %less = sub i32 0, %bar_pending
  %cut = and i32 %less, {COUNT_FIELD}
  %long = zext i32 %cut to i64
  %count.at = shl i64 %long, {PENDING_SHIFT}
  %low = and i64 %bar_phase, {TOKEN_PHASE}
  %high = or i64 %parity, %count.at
  %first = or i64 %high, %low
  {splat("lanes", "%mask")}
  %before = and <32 x i32> %lanes, <{", ".join(f"i32 {(1 << lane) - 1}" for lane in range(LANES))}>
  %many = call <32 x i32> @llvm.ctpop.v32i32(<32 x i32> %before)
  %many.long = zext <32 x i32> %many to <32 x i64>
  %count.long = zext i32 %count to i64
  %step = shl i64 %count.long, {PENDING_SHIFT}
  {splat("steps", "%step", "<32 x i64>")}
  {splat("firsts", "%first", "<32 x i64>")}
  %more = mul <32 x i64> %many.long, %steps
  %states = add <32 x i64> %firsts, %more
  {load("warp_registers", "ptr")}
  %row = getelementptr i8, ptr %warp_registers, i32 %site_result
  %old = load <32 x i64>, ptr %row, align 4
  %which = bitcast i32 %mask to <32 x i1>
  %new = select <32 x i1> %which, <32 x i64> %states, <32 x i64> %old
  store <32 x i64> %new, ptr %row, align 4
  br label %done
done:
  ret void
}}""",
        "arrive": _ARRIVE,
    }


# `Barrier.arrive`, of all lanes of %mask.
_ARRIVE = f"""
define i32 @rt.arrive(ptr %turns, ptr %bar, ptr %warp, ptr %site, i32 %mask, i32 %count, i32 %size) {{
  %known = call ptr @rt.known(ptr %bar, ptr %warp)
  {load("known_arrived")}
  {load("bar_phase", "i64")}
  {load("bar_seen", "i64")}
  {load("bar_pending")}
  {load("bar_tx")}
  {load("bar_brought")}
  %lanes = call i32 @llvm.ctpop.i32(i32 %mask)
  %lanes.long = zext i32 %lanes to i64
  %count.long = zext i32 %count to i64
  %size.long = zext i32 %size to i64
  %pending.long = sext i32 %bar_pending to i64
  %tx.long = sext i32 %bar_tx to i64
  %total.long = mul i64 %lanes.long, %count.long
  %bytes.long = mul i64 %lanes.long, %size.long
  %tx.sum = add i64 %tx.long, %bytes.long
  %seen.next = add i64 %bar_seen, 1
  %new = icmp eq i32 %known_arrived, 0
  %full = icmp uge i32 %bar_brought, {MOST_BROUGHT}
  %zero = icmp eq i32 %count, 0
  %many = icmp ugt i32 %count, {COUNT_LIMIT}
  %ahead = icmp slt i64 %seen.next, %bar_phase
  %surplus = icmp sgt i64 %total.long, %pending.long
  %high = icmp sgt i64 %tx.sum, {COUNT_LIMIT}
  %low = icmp slt i64 %tx.sum, -{COUNT_LIMIT}
  %a = or i1 %new, %full
  %b = or i1 %zero, %many
  %c = or i1 %ahead, %surplus
  %d = or i1 %high, %low
  %ab = or i1 %a, %b
  %cd = or i1 %c, %d
  %any = or i1 %ab, %cd
  {unless("%any", "left", "do")}
  call void @rt.tokens(ptr %bar, ptr %warp, ptr %site, i32 %mask, i32 %count)
  {load("site_number")}
  %mark = add i32 %site_number, 1
  {store("known_arrived", "%mark")}
  %total = trunc i64 %total.long to i32
  %bytes = trunc i64 %bytes.long to i32
  %tx = trunc i64 %tx.sum to i32
  %pending = sub i32 %bar_pending, %total
  {store("bar_tx", "%tx")}
  %records = getelementptr i8, ptr %bar, i64 {offset(BARRIER, "records")}
  %record.byte = mul i32 %bar_brought, {BROUGHT.itemsize}
  %brought = getelementptr i8, ptr %records, i32 %record.byte
  {load("warp_number")}
  {store("brought_phase", "%bar_phase", "i64")}
  {store("brought_warp", "%warp_number")}
  {store("brought_site", "%site_number")}
  {store("brought_arrivals", "%total")}
  {store("brought_expected", "%bytes")}
  %more = add i32 %bar_brought, 1
  {store("bar_brought", "%more")}
  {load("warp_clock", "i64")}
  {load("bar_latest", "i64")}
  %late = icmp sgt i64 %warp_clock, %bar_latest
  %latest = select i1 %late, i64 %warp_clock, i64 %bar_latest
  {store("bar_latest", "%latest", "i64")}
  {load("bar_expected")}
  %left.over = or i32 %pending, %tx
  %complete = icmp eq i32 %left.over, 0
  br i1 %complete, label %next, label %same
next:
  %phase.next = add i64 %bar_phase, 1
  {store("bar_phase", "%phase.next", "i64")}
  {store("bar_done_at", "%latest", "i64")}
  {load("bar_brought_before")}
  %rest = sub i32 %more, %bar_brought_before
  %first.byte = mul i32 %bar_brought_before, {BROUGHT.itemsize}
  %first = getelementptr i8, ptr %records, i32 %first.byte
  %rest.bytes = mul i32 %rest, {BROUGHT.itemsize}
  %rest.long = zext i32 %rest.bytes to i64
  call void @llvm.memmove.p0.p0.i64(ptr %records, ptr %first, i64 %rest.long, i1 false)
  {store("bar_brought", "%rest")}
  {store("bar_brought_before", "%rest")}
  br label %keep
same:
  br label %keep
keep:
  %phase = phi i64 [ %phase.next, %next ], [ %bar_phase, %same ]
  %now = phi i32 [ %bar_expected, %next ], [ %pending, %same ]
  %how = phi i32 [ {MAKES_READY}, %next ], [ {QUIET}, %same ]
  {store("bar_pending", "%now")}
  {_packed("%phase", "%now", "%tx", "%bar_expected")}
  {store("bar_word", "%word", "i64")}
  {load("bar_cell", "ptr")}
  store i64 %word, ptr %bar_cell
  {add("turns_writes", "1")}
  %completes = icmp eq i32 %how, {MAKES_READY}
  %kind = select i1 %completes, i32 {COMPLETED}, i32 {ARRIVED}
  call void @rt.event(ptr %turns, ptr %warp, i32 %kind, i32 %site_number, i32 %mask, ptr %bar, i64 %bar_phase, i64 0)
  ret i32 %how
left:
  ret i32 {LEFT}
}}"""


def text(name: str) -> str | None:
    """The IR of a function of this file."""
    return _functions().get(name)
