"""Fields of the records in the runtime's IR text, and compiled code's own words in a warp's record."""

from __future__ import annotations

from ptxdsl.sim.layout import (
    ACCESS,
    BARRIER,
    BROUGHT,
    CLUSTER,
    CTA,
    EVENT,
    KNOWN,
    LAUNCH,
    LOG,
    NAMED,
    PRODUCT,
    REGION,
    SITE,
    TURNS,
    WARP,
    WARPGROUP,
    offset,
)

_RECORDS = {
    "warp": WARP, "cta": CTA, "launch": LAUNCH, "region": REGION, "log": LOG, "access": ACCESS, "turns": TURNS,
    "cluster": CLUSTER, "site": SITE, "bar": BARRIER, "brought": BROUGHT, "known": KNOWN, "event": EVENT,
    "named": NAMED, "product": PRODUCT, "warpgroup": WARPGROUP,
}  # fmt: skip

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
    return record, offset(_RECORDS[record], field)


def load(name: str, type: str = "i32", result: str = "") -> str:
    """IR that loads a field into ``%name``."""
    record, byte = place(name)
    result = result or name
    at = f"%{result}.at"
    return f"{at} = getelementptr i8, ptr %{record}, i64 {byte}\n  %{result} = load {type}, ptr {at}, align 4"


def store(name: str, value: str, type: str = "i32") -> str:
    """IR that stores a value into a field; once a function for each pair of them."""
    record, byte = place(name)
    to = f"%{name}.to.{value.removeprefix('%')}"
    return f"{to} = getelementptr i8, ptr %{record}, i64 {byte}\n  store {type} {value}, ptr {to}, align 1"


def set_lanes(name: str, lanes: str, value: str, key: str) -> str:
    """IR that sets a per-lane field to an i32 in the given lanes. key: makes the names."""
    record, byte = place(name)
    return "\n  ".join(
        (
            f"%{key}.at = getelementptr i8, ptr %{record}, i64 {byte}",
            f"%{key}.old = load <32 x i32>, ptr %{key}.at, align 4",
            splat(f"{key}.all", value),
            f"%{key}.lanes = bitcast i32 {lanes} to <32 x i1>",
            f"%{key}.new = select <32 x i1> %{key}.lanes, <32 x i32> %{key}.all, <32 x i32> %{key}.old",
            f"store <32 x i32> %{key}.new, ptr %{key}.at, align 4",
        )
    )


def splat(result: str, value: str, type: str = "<32 x i32>") -> str:
    """IR for a value in all lanes of a vector, by default an i32 in all lanes of a warp."""
    lanes, _, element = type[1:-1].partition(" x ")
    return (
        f"%{result}.in = insertelement {type} poison, {element} {value}, i64 0\n"
        f"  %{result} = shufflevector {type} %{result}.in, {type} poison, <{lanes} x i32> zeroinitializer"
    )


def next_lane(type: str = "i64") -> str:
    """IR at the end of a loop over the lanes of a mask: takes the lowest out of it and goes to ``each`` or ``done``.

    The loop begins with ``%left = phi``, which has ``%left.next`` from here.
    """
    return (
        f"%less = sub {type} %left, 1\n  %left.next = and {type} %left, %less\n"
        f"  %more = icmp ne {type} %left.next, 0\n  br i1 %more, label %each, label %done"
    )


def count_writes(more: str) -> str:
    """IR that adds an i64 to the count of the launch's writes (``Machine.version``)."""
    return (
        f"{load('launch_writes', 'i64')}\n  %writes.new = add i64 %launch_writes, {more}\n"
        f"  {store('launch_writes', '%writes.new', 'i64')}"
    )


def add(name: str, value: str, type: str = "i32", key: str = "had") -> str:
    """IR that adds to a field; once a function for each key."""
    had = f"{name}.{key}"
    return f"{load(name, type, had)}\n  %{had}.sum = add {type} %{had}, {value}\n  {store(name, f'%{had}.sum', type)}"


def unless(condition: str, then: str, label: str) -> str:
    """IR that goes to a label where an i1 is true, and else on."""
    return f"br i1 {condition}, label %{then}, label %{label}\n{label}:"
