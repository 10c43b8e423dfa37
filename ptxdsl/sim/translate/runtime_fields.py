"""Fields of the records in the runtime's IR text, and compiled code's own words in a warp's record."""

from __future__ import annotations

import textwrap

from ptxdsl.sim.layout import ACCESS, CTA, LAUNCH, LOG, REGION, WARP, offset

# The words of WARP's `own`, by name.
_OWN = {
    "group": 0,  # lanes
    "runnable": 1,  # lanes
    "others": 2,  # block
    "waiting": 3,  # lanes that stand before a collective whose members are not all there
    "at_barrier": 4,  # those of them that stand before a bar.warp.sync
    "count": 5,  # of lanes in the group
    "slice": 6,  # turns of loops until `renew`
    "given": 7,  # what `slice` was
    "turn": 8,  # turns of loops until other groups come first
    "favoured": 9,  # 0, or 1 + the block from which on a group is looked for first
    "marked": 10,  # two words: `issued` up to which `retired` has been counted
    "wait_members": 16,  # of each waiting lane
    "wait_site": 48,
}


def own(name: str) -> int:
    """The byte offset of one of compiled code's own words in a warp's record."""
    return offset(WARP, "own") + 4 * _OWN[name]


def place(name: str) -> tuple[str, int]:
    """The record (``warp``, ``cta``, …) and byte offset of a field by its name in the runtime's IR."""
    if name in _OWN:
        return "warp", own(name)
    record, _, field = name.partition("_")
    kinds = {"warp": WARP, "cta": CTA, "launch": LAUNCH, "region": REGION, "log": LOG, "access": ACCESS}
    return record, offset(kinds[record], field)


def load(name: str, type: str = "i32", result: str = "") -> str:
    """IR that loads a field into ``%name``."""
    record, byte = place(name)
    result = result or name
    at = f"%{result}.at"
    return f"{at} = getelementptr i8, ptr %{record}, i64 {byte}\n  %{result} = load {type}, ptr {at}, align 4"


_fresh = 0


def store(name: str, value: str, type: str = "i32") -> str:
    """IR that stores a value into a field."""
    global _fresh
    _fresh += 1
    record, byte = place(name)
    return (
        f"%to{_fresh} = getelementptr i8, ptr %{record}, i64 {byte}\n  store {type} {value}, ptr %to{_fresh}, align 1"
    )


def set_lanes(name: str, lanes: str, value: str, key: str) -> str:
    """IR that sets a per-lane field to an i32 in the given lanes. key: makes the names."""
    record, byte = place(name)
    return textwrap.dedent(f"""\
        %{key}.at = getelementptr i8, ptr %{record}, i64 {byte}
          %{key}.old = load <32 x i32>, ptr %{key}.at, align 4
          %{key}.in = insertelement <32 x i32> poison, i32 {value}, i64 0
          %{key}.all = shufflevector <32 x i32> %{key}.in, <32 x i32> poison, <32 x i32> zeroinitializer
          %{key}.lanes = bitcast i32 {lanes} to <32 x i1>
          %{key}.new = select <32 x i1> %{key}.lanes, <32 x i32> %{key}.all, <32 x i32> %{key}.old
          store <32 x i32> %{key}.new, ptr %{key}.at, align 4""")


def splat32(result: str, value: str) -> str:
    """IR for an i32 in all lanes of a warp."""
    return (
        f"%{result}.in = insertelement <32 x i32> poison, i32 {value}, i64 0\n"
        f"  %{result} = shufflevector <32 x i32> %{result}.in, <32 x i32> poison, <32 x i32> zeroinitializer"
    )
